"""NumPy's functions that are formulas in other functions."""
