"""The same on parts of arrays, whose size is only known when the program runs."""

from ckad.trace.primitives.part import (
    access,
    elements,
    fits,
    found,
    joins,
    mask,
    reductions,
    shapes,
    structures,
)

#: Those that hold rows of the table.
MODULES = (elements, found, reductions, shapes, joins, structures, access, mask, fits)
