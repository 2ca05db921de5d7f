"""NumPy's package of polynomials; loaded when the first of its functions is met."""
