"""Sparse matrices: programs as people write them, and the routines below."""
