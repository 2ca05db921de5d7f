"""Checkpoints as bytes on disk; it knows no tapes and no schedules."""
