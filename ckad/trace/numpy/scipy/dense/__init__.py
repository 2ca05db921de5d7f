"""``scipy.linalg``, one file per family."""
