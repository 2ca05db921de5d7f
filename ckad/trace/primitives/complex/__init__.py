"""The same on complex numbers, as pairs of real tracers."""

from ckad.trace.primitives.complex import (
    elementary,
    extended,
    functions,
    methods,
    products,
    scalars,
    ufuncs,
)

#: Those that hold rows of the table.
MODULES = (ufuncs, elementary, extended, functions, products, scalars, methods)
