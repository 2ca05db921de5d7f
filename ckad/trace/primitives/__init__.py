"""What emits rows: NumPy's functions on real tracers, on parts of arrays, on complex numbers."""
