"""Rule block of the batched matrix product."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import Contribution, Lanes, Tangents, batch, jvp, rule, vjp
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import Type

# MATMUL [b, m, k] @ [b, k, n] -> [b, m, n]; the attributes say which operands lie transposed.


def _turned(shape: Sequence[int], transposed: int) -> tuple[int, ...]:
    batch, rows, columns = shape
    return (batch, columns, rows) if transposed else (batch, rows, columns)


def _product_shape(x: Type, y: Type, attrs: Sequence[int]) -> Type:
    batch, m, _ = _turned(x.shape, attrs[0])
    return x.with_shape((batch, m, _turned(y.shape, attrs[1])[2]))


def _product(type: Type, attrs: Sequence[int], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = x.swapaxes(1, 2) if attrs[0] else x
    product: np.ndarray = x @ (y.swapaxes(1, 2) if attrs[1] else y)
    return product


rule(Op.MATMUL, shape=_product_shape, evaluate=_product)

#: From this many elements on the outer product of two vectors is a product of elements, which
#: fuses with what is done with them.
LARGE_OUTER = 256


def _times(b: Builder, x: int, y: int, attrs: Sequence[int]) -> int:
    """The matrix product of ``x`` and ``y``."""
    columns, rows = (_turned(b.type(v).shape, t) for v, t in zip((x, y), attrs, strict=True))
    shape = (*columns[:2], rows[2])
    if columns[2] != 1 or math.prod(shape) < LARGE_OUTER:
        return b.matmul(x, y, attrs=attrs)
    left, right = b.reshape_to(x, columns), b.reshape_to(y, rows)
    return b.mul(b.broadcast_to(left, shape), b.broadcast_to(right, shape))


def _is_own(b: Builder, x: int, y: int, attrs: Sequence[int]) -> bool:
    """Whether a product is that of a matrix by its own transpose: one product derives both."""
    return x == y and attrs[0] != attrs[1] and b.type(x).shape[1 if attrs[0] else 2] > 1


def _with_mirror(b: Builder, x: int) -> int:
    return b.add(x, _turned_last(b, x))


@jvp(Op.MATMUL)
def _(
    b: Builder, tangents: Tangents, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> int | None:
    dx, dy = tangents
    if dx is not None and dx == dy and _is_own(b, x, y, attrs):
        return _with_mirror(b, b.matmul(x, dy, attrs=attrs))
    terms = []
    if dx is not None:
        terms.append(b.matmul(dx, y, attrs=attrs))
    if dy is not None:
        terms.append(b.matmul(x, dy, attrs=attrs))
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else b.add(*terms)


@vjp(Op.MATMUL)
def _(
    b: Builder, ct: int, out: int, x: int, y: int, attrs: Sequence[int] = ()
) -> tuple[Contribution, ...]:
    tx, ty = attrs
    if _is_own(b, x, y, attrs):
        both = _with_mirror(b, ct)
        return (_times(b, x, both, (0, 0)) if tx else _times(b, both, x, (0, 0))), None
    # out = X Y with X = x or x^T, Y = y or y^T:  ct_X = ct Y^T,  ct_Y = X^T ct
    ct_x = _times(b, y, ct, (ty, 1)) if tx else _times(b, ct, y, (0, 1 - ty))
    ct_y = _times(b, ct, x, (1, tx)) if ty else _times(b, x, ct, (1 - tx, 0))
    return ct_x, ct_y


@batch(Op.MATMUL)
def _(b: Builder, lanes: Lanes, x: int, y: int) -> int:
    """One product of all members, side by side, where they share a matrix."""
    n, (tx, ty), (first, second) = lanes.n, lanes.attrs, lanes.batched
    stack, rows, columns = lanes.type.shape
    if stack != 1 or (first and second):
        wide = [b.reshape_to(v, (n * stack, *b.type(v).shape[2:])) for v in lanes.all(b, (x, y))]
        return b.reshape_to(b.matmul(*wide, attrs=lanes.attrs), lanes.out.shape)
    if first:
        product = b.matmul(_as_rows(b, x, tx), y, attrs=(0, ty))
        return b.reshape_to(product, lanes.out.shape)
    # the transpose of it: members are rows again
    product = b.matmul(_as_rows(b, y, 1 - ty), x, attrs=(0, 1 - tx))
    return _turned_last(b, b.reshape_to(product, (n, stack, columns, rows)))


def _as_rows(b: Builder, x: int, turn: int) -> int:
    """[n, 1, m, k] as [1, n m, k]; with ``turn`` the last two axes change places before."""
    x = _turned_last(b, x) if turn else x
    n, _, m, k = b.type(x).shape
    return b.reshape_to(x, (1, n * m, k))


def _turned_last(b: Builder, x: int) -> int:
    shape = b.type(x).shape
    if 1 in shape[-2:]:  # the elements stay in their order
        return b.reshape_to(x, (*shape[:-2], shape[-1], shape[-2]))
    first = range(len(shape) - 2)
    return b.transpose(x, attrs=(*first, len(shape) - 1, len(shape) - 2))
