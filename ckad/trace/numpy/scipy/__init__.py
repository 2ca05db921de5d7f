"""SciPy's functions that are formulas in others; loaded when the first of their package is met."""
