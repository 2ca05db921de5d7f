"""``scipy.stats``: distributions and samples."""
