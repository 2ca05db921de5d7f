"""Code of single ops on arrays in memory."""
