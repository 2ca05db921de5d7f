"""Passes on choices between two values, element by element."""
