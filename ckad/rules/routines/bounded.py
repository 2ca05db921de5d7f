"""Products with matrices of which each row is read, or computed, between two bounds.

Bounds are known numbers, for each row the first place and the one behind the last. What lies
outside of them is not looked at: an infinity there changes nothing. The three products are closed
under derivatives: each is linear in each of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.routines.dense.lapack import N, T
from ckad.rules.routines.dense.matrices import bilinear, need
from ckad.rules.routines.memory import (
    compiled,
    doubles,
    external,
    from_code,
    integers,
    letters,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.types import DType, Type

Attributes = Sequence[int]
Contributions = Sequence[int | None]

_dgemm = external("dgemm", 13)
_dgemv = external("dgemv", 11)
_dger = external("dger", 9)

#: Rows that are multiplied at once between the bounds that all of them have in common; of what
#: lies beside these, fewer rows at once.
_ROWS, _FEW_ROWS = 64, 16


def product(b: Builder, a: int, x: int, bounds: Sequence[int], transposed: bool = False) -> int:
    """A X, or A^T X, with zeros in place of what lies outside of the bounds in rows of A."""
    return b.call(a, x, *bounds, attrs=(dot.number, int(transposed)))


def samples(b: Builder, u: int, v: int, bounds: Sequence[int]) -> int:
    """U V^T between the bounds of each row, zeros elsewhere."""
    return b.call(u, v, *bounds, attrs=(sampled.number,))


def _check(name: str, floats: Sequence[Type], rows: int, bounds: Sequence[Type]) -> None:
    shown = f"{name} of {', '.join(map(str, (*floats, *bounds)))}"
    need(all(t.dtype is DType.F64 and len(t.shape) == 2 for t in floats), shown)
    need(len(bounds) == 2 and all(t == Type(DType.I64, (rows,)) for t in bounds), shown)


@kernel
def _prepare(work: int) -> None:
    """What BLAS is told in every call: letters, the step of a vector, one and zero."""
    text, sizes, numbers = letters(work, 2), short_integers(work + 16, 8), doubles(work + 64, 2)
    text[0], text[1], sizes[6] = N, T, 1
    numbers[0], numbers[1] = 1.0, 0.0


@kernel
def _common(first: np.ndarray, last: np.ndarray, start: int, stop: int) -> tuple[int, int]:
    """The places between the bounds of all of some rows."""
    low, high = first[start], last[start]
    for i in range(start + 1, stop):
        low, high = max(low, first[i]), min(high, last[i])
    return low, max(low, high)


# --- A X, and A^T X ------------------------------------------------------------------------------

# bounded_dot(A [m, k], X [k, n], first [m], last [m]; transposed) -> [m, n]; X [m, n] -> [k, n]


def _dot_shape(attrs: Attributes, a: Type, x: Type, *bounds: Type) -> Type:
    _check("bounded_dot", (a, x), a.shape[0] if a.shape else 0, bounds)
    need(len(attrs) == 1, f"bounded_dot with attributes {tuple(attrs)}")
    rows, length = a.shape[:: -1 if attrs[0] else 1]
    need(x.shape[0] == length, f"bounded_dot of {a} and {x}: {length} rows are needed")
    return x.with_shape((rows, x.shape[1]))


def _dot(words: int, arrays: int, work: int) -> int:
    transposed, m, length, _, n = integers(words, 5)
    out, at_a, at_x, at_first, at_last = integers(arrays, 5)
    first, last = integers(at_first, m), integers(at_last, m)
    sizes = short_integers(work + 16, 8)
    _prepare(work)
    sizes[0], sizes[3], sizes[4] = n, n, length
    doubles(out, (length if transposed else m) * n)[:] = 0.0
    for begin in range(0, m, _ROWS):
        end = min(m, begin + _ROWS)
        left, right = _common(first, last, begin, end)
        _dot_block(work, transposed, begin, end, left, right, length, n, out, at_a, at_x)
        for start in range(begin, end, _FEW_ROWS):
            stop = min(end, start + _FEW_ROWS)
            low, high = _common(first, last, start, stop)
            for a, z in ((low, min(left, high)), (max(low, right), high)):
                _dot_block(work, transposed, start, stop, a, z, length, n, out, at_a, at_x)
            for i in range(start, stop):
                for a, z in ((first[i], min(low, last[i])), (max(first[i], high), last[i])):
                    _edge(work, transposed, i, a, z, length, n, out, at_a, at_x)
    return 0


@kernel
def _dot_block(
    work: int, transposed: int, start: int, stop: int, low: int, high: int, length: int, n: int,
    out: int, a: int, x: int,
) -> None:  # fmt: skip
    """What places add that some rows have in common."""
    if high <= low:
        return
    sizes, one, part = short_integers(work + 16, 8), work + 64, a + 8 * (start * length + low)
    if transposed:
        sizes[1], sizes[2] = high - low, stop - start
        _dgemm(work, work + 1, work + 16, work + 20, work + 24, one, x + 8 * start * n, work + 28,
               part, work + 32, one, out + 8 * low * n, work + 28)  # fmt: skip
    else:
        sizes[1], sizes[2] = stop - start, high - low
        _dgemm(work, work, work + 16, work + 20, work + 24, one, x + 8 * low * n, work + 28,
               part, work + 32, one, out + 8 * start * n, work + 28)  # fmt: skip


@kernel
def _edge(
    work: int, transposed: int, i: int, low: int, high: int, length: int, n: int,
    out: int, a: int, x: int,
) -> None:  # fmt: skip
    """What places of one row add, beside those that its neighbours have, too."""
    if high <= low:
        return
    sizes, one, step = short_integers(work + 16, 8), work + 64, work + 40
    row, sizes[5] = a + 8 * (i * length + low), high - low
    if transposed:
        _dger(work + 16, work + 36, one, x + 8 * i * n, step, row, step, out + 8 * low * n,
              work + 28)  # fmt: skip
    else:
        _dgemv(work, work + 16, work + 36, one, x + 8 * low * n, work + 28, row, step, one,
               out + 8 * i * n, step)  # fmt: skip


def _dot_vjp(
    b: Builder, ct: int, out: int, a: int, x: int, *bounds: int, attrs: Attributes
) -> Contributions:
    pair = (x, ct) if attrs[0] else (ct, x)
    return samples(b, *pair, bounds), product(b, a, ct, bounds, not attrs[0]), None, None


_DOT = compiled(_dot, lambda attrs, *types: 0)
dot = from_code(
    "bounded_dot",
    _dot_shape,
    _DOT,
    jvp=bilinear(lambda b, a, x, bounds, attrs: product(b, a, x, bounds, bool(attrs[0]))),
    vjp=_dot_vjp,
    flops=lambda attrs, a, x, *bounds: 1.0 * a.size * x.shape[1],
)

# --- elements of U V^T ---------------------------------------------------------------------------

# bounded_sampled(U [m, k], V [n, k], first [m], last [m]) -> [m, n]: products of their rows


def _sampled_shape(attrs: Attributes, u: Type, v: Type, *bounds: Type) -> Type:
    _check("bounded_sampled", (u, v), u.shape[0] if u.shape else 0, bounds)
    need(u.shape[1] == v.shape[1], f"bounded_sampled of {u} and {v}")
    return u.with_shape((u.shape[0], v.shape[0]))


def _sample(words: int, arrays: int, work: int) -> int:
    m, k, n = integers(words, 3)
    out, at_u, at_v, at_first, at_last = integers(arrays, 5)
    first, last = integers(at_first, m), integers(at_last, m)
    sizes = short_integers(work + 16, 8)
    _prepare(work)
    doubles(out, m * n)[:] = 0.0
    sizes[2], sizes[3], sizes[4] = k, k, n
    for begin in range(0, m, _ROWS):
        end = min(m, begin + _ROWS)
        left, right = _common(first, last, begin, end)
        _sampled_block(work, begin, end, left, right, k, n, out, at_u, at_v)
        for start in range(begin, end, _FEW_ROWS):
            stop = min(end, start + _FEW_ROWS)
            low, high = _common(first, last, start, stop)
            for a, z in ((low, min(left, high)), (max(low, right), high)):
                _sampled_block(work, start, stop, a, z, k, n, out, at_u, at_v)
            for i in range(start, stop):
                for a, z in ((first[i], min(low, last[i])), (max(first[i], high), last[i])):
                    _elements(work, i, a, z, k, n, out, at_u, at_v)
    return 0


@kernel
def _sampled_block(
    work: int, start: int, stop: int, low: int, high: int, k: int, n: int,
    out: int, u: int, v: int,
) -> None:  # fmt: skip
    """Elements that some rows have in common."""
    if high <= low:
        return
    sizes, one, zero = short_integers(work + 16, 8), work + 64, work + 72
    sizes[0], sizes[1] = high - low, stop - start
    _dgemm(work + 1, work, work + 16, work + 20, work + 24, one, v + 8 * low * k, work + 28,
           u + 8 * start * k, work + 28, zero, out + 8 * (start * n + low), work + 32)  # fmt: skip


@kernel
def _elements(
    work: int, i: int, low: int, high: int, k: int, n: int, out: int, u: int, v: int
) -> None:
    """Elements of one row beside those that its neighbours have, too."""
    if high <= low:
        return
    sizes, one, zero, step = short_integers(work + 16, 8), work + 64, work + 72, work + 40
    sizes[5] = high - low
    _dgemv(work + 1, work + 24, work + 36, one, v + 8 * low * k, work + 28, u + 8 * i * k, step,
           zero, out + 8 * (i * n + low), step)  # fmt: skip


def _sampled_vjp(
    b: Builder, ct: int, out: int, u: int, v: int, *bounds: int, attrs: Attributes
) -> Contributions:
    return product(b, ct, v, bounds), product(b, ct, u, bounds, True), None, None


_SAMPLED = compiled(_sample, lambda attrs, *types: 0)
sampled = from_code(
    "bounded_sampled",
    _sampled_shape,
    _SAMPLED,
    jvp=bilinear(lambda b, u, v, bounds, attrs: samples(b, u, v, bounds)),
    vjp=_sampled_vjp,
    flops=lambda attrs, u, v, *bounds: 1.0 * u.size * v.shape[0],
)
