"""The same on parts of arrays, whose size is only known when the program runs."""

from ckad.trace.primitives.part import access, elements, joins, mask, reductions, shapes, structures

#: Those that hold rows of the table.
MODULES = (elements, reductions, shapes, joins, structures, access, mask)
