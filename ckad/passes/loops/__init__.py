"""Loops as other loops, or as calls.

counted       a loop whose number of steps is computed, as one over all places under a mask
fission       a loop that writes an array twice in each step as two of one write each
same          equal bodies as one object
together      many loops that are alike and do not wait for one another, as the steps of one
eliminations  loops that eliminate, and `substitutions`, as calls of routines; `trial` finds them
"""
