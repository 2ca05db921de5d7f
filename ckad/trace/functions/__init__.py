"""NumPy's functions on tracers, one module per idea; importing the package fills the table."""

from ckad.trace.functions import (
    calculus,
    creation,
    cumulative,
    einsum,
    info,
    join,
    norms,
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
    "cumulative",
    "einsum",
    "info",
    "join",
    "norms",
    "products",
    "rearrange",
    "reduce",
    "select",
    "shape",
    "table",
    "triangle",
]
