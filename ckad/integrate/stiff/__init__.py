"""Stiff methods, one file per family, and the systems that they solve."""
