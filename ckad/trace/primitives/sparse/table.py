"""All rows of functions of ``scipy.sparse``."""

from ckad.trace.primitives.sparse import assembling, iterating, making, methods, operators, solving

#: Those that hold rows of the table.
MODULES = (operators, methods, making, assembling, solving, iterating)
