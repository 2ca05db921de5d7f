"""NumPy and Numba programs as their users write them; ``registry`` lists them with arguments."""
