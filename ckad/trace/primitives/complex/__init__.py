"""The same on complex numbers, as pairs of real tracers."""

from ckad.trace.primitives.complex import (
    elementary,
    functions,
    linalg,
    methods,
    products,
    scalars,
    ufuncs,
)

#: Those that hold rows of the table.
MODULES = (ufuncs, elementary, functions, products, linalg, scalars, methods)
