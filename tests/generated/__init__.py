"""Random programs, judged by NumPy and by what two engines, budgets and modes must agree on.

`generate` writes the program of a seed, `judge` says whether ckad does it right, `shrink` makes a
failing program small. ``python -m tests.generated`` runs many of them.
"""
