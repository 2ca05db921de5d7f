"""Calls of a form that was there before, for which nothing is looked up again."""
