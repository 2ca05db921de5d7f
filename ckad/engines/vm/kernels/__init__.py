"""The interpreter and its kernels: what Numba compiles, once."""
