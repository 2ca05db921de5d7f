"""Loops and branches as rows with bodies."""
