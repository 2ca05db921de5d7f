"""Benchmarks of ckad beside its peers: the same work, in one run, in turn."""
