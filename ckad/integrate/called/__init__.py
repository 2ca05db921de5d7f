"""Solvers and integrals of SciPy's, where a program that is recorded calls them."""
