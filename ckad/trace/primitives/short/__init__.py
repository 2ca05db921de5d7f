"""Integers shorter than the tape's: computed as the tape's, then wrapped as NumPy's are."""

from ckad.trace.primitives.short import arrays, functions, ufuncs

#: Those that hold rows of the table.
MODULES = (ufuncs, arrays, functions)
