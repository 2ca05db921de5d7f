"""The same on arrays whose size is only known when the program runs."""

from ckad.trace.primitives.part import (
    access,
    elements,
    joins,
    masked,
    methods,
    reductions,
    shapes,
    structures,
)

#: Those that hold rows of the table.
MODULES = (elements, reductions, shapes, joins, methods, masked, structures, access)
