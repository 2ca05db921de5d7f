"""Polynomials: NumPy's `poly1d`; its package of series, loaded when the first of its functions is met."""
