"""NumPy's `poly1d`; its package of series is loaded when the first of its functions is met."""
