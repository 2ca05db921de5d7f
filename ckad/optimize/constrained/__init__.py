"""Minima under constraints, derived by the conditions of Karush, Kuhn and Tucker."""
