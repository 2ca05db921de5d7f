"""Polynomials: `objects` of NumPy's `poly1d`, and its series, loaded when one is met."""
