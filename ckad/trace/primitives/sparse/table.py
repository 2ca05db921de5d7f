"""All rows of functions of ``scipy.sparse``."""

from ckad.trace.primitives.sparse import (
    assembling,
    iterating,
    making,
    methods,
    operators,
    products,
    solving,
    spectra,
)

#: Those that hold rows of the table.
MODULES = (operators, products, methods, making, assembling, solving, iterating, spectra)
