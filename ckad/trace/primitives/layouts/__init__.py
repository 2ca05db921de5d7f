"""How arrays lie in memory, where programs ask for it: strides, flags, orders, fields."""

from ckad.trace.primitives.layouts import attributes, strided

#: Those that hold rows of the table.
MODULES = (attributes, strided)
