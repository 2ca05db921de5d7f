"""Products of complex arrays: sums of the products of their parts."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.trace.arrays import Array
from ckad.trace.axes import along, axis_of, reduced_axes
from ckad.trace.dispatch import (
    COMPLEX,
    Function,
    given,
    holds_complex,
    implements,
    plain,
    put,
    reject,
)
from ckad.trace.primitives.complex.ufuncs import stored
from ckad.trace.values.complex import ComplexTracer, as_complex, check_kept, part_type
from ckad.trace.values.tracer import Tracer, lift

#: Functions linear in each of their leading arguments -> which of these are conjugated.
PRODUCTS: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys(
        (np.dot, np.inner, np.outer, np.tensordot, np.kron, np.convolve, np.cross, np.matmul), ()
    ),
    **dict.fromkeys((np.linalg.matmul, np.linalg.tensordot, np.linalg.cross), ()),
    **dict.fromkeys((np.linalg.outer, np.polymul), ()),
    np.vdot: (0,),
    np.linalg.vecdot: (0,),
    np.vecdot: (0,),
    np.correlate: (1,),
}
if hasattr(np, "matvec"):  # NumPy 2.2
    PRODUCTS |= {np.matvec: (), np.vecmat: (0,)}


def product_of(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A product of complex operands as the sum of the products of their parts."""
    conjugated = PRODUCTS[function]
    factors = [_factor(x, k in conjugated) for k, x in enumerate(args[:2])]
    counterpart = plain(function)
    return _expanded(lambda *parts: counterpart(*parts, *args[2:], **options), factors)


def _factor(x: Any, conjugated: bool = False) -> tuple[Tracer, Tracer | None]:
    """The parts of a factor; a real one has a single part."""
    if not holds_complex(x):
        return lift(x), None
    real, imag = as_complex(x).parts
    return real, -imag if conjugated else imag


def _expanded(product: Function, factors: Sequence[tuple[Tracer, Tracer | None]]) -> ComplexTracer:
    sums: list[Any] = [None, None]
    for choice in itertools.product((0, 1), repeat=len(factors)):
        parts = [factor[k] for factor, k in zip(factors, choice, strict=True)]
        if any(part is None for part in parts):
            continue
        turns = sum(choice)  # a factor i for each imaginary part
        term, old = product(*parts), sums[turns % 2]
        combine = operator.sub if turns % 4 >= 2 else operator.add
        sums[turns % 2] = (-term if turns % 4 >= 2 else term) if old is None else combine(old, term)
    return ComplexTracer(*sums)


def _product(function: Any) -> Function:
    def handler(*args: Any, out: Any = None, **options: Any) -> Any:
        return stored(out, product_of(function, args, options))

    return handler


for _function in PRODUCTS:
    put(_function, _product(_function), COMPLEX)


@implements(np.einsum, kind=COMPLEX)
def einsum(*operands: Any, out: Any = None, **options: Any) -> Any:
    listed = not isinstance(operands[0], str)
    places = range(0, len(operands) - 1, 2) if listed else range(1, len(operands))
    counterpart = plain(np.einsum)
    reject("dtype" in options, "np.einsum of complex numbers with dtype=")

    def product(*parts: Any) -> Any:
        args = list(operands)
        for k, part in zip(places, parts, strict=True):
            args[k] = part
        return counterpart(*args, **options)

    return stored(out, _expanded(product, [_factor(operands[k]) for k in places]))


@implements(np.linalg.multi_dot, kind=COMPLEX)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    return stored(out, functools.reduce(np.dot, map(as_complex, arrays)))


def _in_dtype(function: Any, a: Any, dtype: Any) -> Array:
    if dtype is None:
        return as_complex(a)
    check_kept(function, dtype)
    return as_complex(a, part_type(dtype))


@implements(np.prod, kind=COMPLEX)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """By halves: their products, then the product of those."""
    x = _in_dtype(np.prod, a, dtype)
    x = x if where is True or where is np._NoValue else np.where(where, x, 1.0)
    shape, axes = x.shape, reduced_axes(axis, x.ndim)
    for k in reversed(axes):
        x = _product_along(x, k)
    if keepdims and keepdims is not np._NoValue:
        x = x.reshape([1 if k in axes else d for k, d in enumerate(shape)])
    return stored(out, x * initial if given(initial) else np.positive(x))


def _product_along(x: Array, axis: int) -> Array:
    while (n := x.shape[axis]) > 1:
        halved = x[along(axis, slice(0, n - n % 2, 2))] * x[along(axis, slice(1, None, 2))]
        x = np.concatenate([halved, x[along(axis, slice(-1, None))]], axis) if n % 2 else halved
    if not x.shape[axis]:
        return as_complex(np.ones_like(x.parts[0][along(axis, slice(0, 0))].sum(axis)))
    return x[along(axis, 0)]


@implements(np.cumprod, kind=COMPLEX)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """By doubling the number of factors."""
    x = _in_dtype(np.cumprod, a, dtype)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(axis, x.ndim))
    n, width = x.shape[axis], 1
    while width < n:
        later = x[along(axis, slice(width, None))] * x[along(axis, slice(0, n - width))]
        x = np.concatenate([x[along(axis, slice(0, width))], later], axis)
        width *= 2
    return stored(out, np.positive(x))
