"""Loops and branches of the user's program, recorded as rows with bodies."""
