"""Transformations of tapes: pure functions; `pipeline` says which of them make what."""
