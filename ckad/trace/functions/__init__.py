"""NumPy's functions on tracers, one module per idea; importing the package fills the table."""

from ckad.trace.functions import (
    calculus,
    creation,
    einsum,
    info,
    join,
    products,
    rearrange,
    reduce,
    select,
    shape,
    table,
    triangle,
)

__all__ = [
    "calculus",
    "creation",
    "einsum",
    "info",
    "join",
    "products",
    "rearrange",
    "reduce",
    "select",
    "shape",
    "table",
    "triangle",
]
