"""Sums over lags and linear recurrences along the last axis, of which digital filters are made.

    lagged(c [k], x [m, n]) -> s [m, n + k - 1 + lag]     s[t + j + lag] += c[j] x[t]
    lagged(c [k], s [m, n]) -> x [m, n - k + 1 - lag]     x[t] += c[j] s[t + j + lag]
    lagged(x [m, n], s [m, l]) -> c [l - n + 1 - lag]     c[j] += x[t] s[t + j + lag]

are three views of one form that is linear in c, x and s, each the derivative of the others.

    recurrence(a [k], p [m, n + k]) -> q [m, n + k]       q[t] + sum a[j] q[t - 1 - j] = p[t]

runs forwards, with earlier q below n alone; its transpose runs backwards from what stands behind n,

    s[t] + sum a[j] s[t + 1 + j] = p[t] for t < n         s[t] = p[t] from there on
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import bilinear, need
from ckad.rules.routines.memory import compiled, copy, doubles, from_code, integers
from ckad.tape.builder import Builder
from ckad.tape.types import DType, Type

Contributions = Sequence[int | None]

# --- sums over lags ------------------------------------------------------------------------------

#: What is summed up: s, x or c.
SPREAD, GATHERED, COUNTED = range(3)


def _lagged_shape(attrs: Sequence[int], first: Type, second: Type) -> Type:
    shown = f"lagged of {first} and {second} with attributes {tuple(attrs)}"
    need(len(attrs) == 2 and attrs[0] in range(3) and attrs[1] >= 0, shown)
    kind, lag = attrs
    rank = 2 if kind == COUNTED else 1
    floats = first.dtype is DType.F64 and second.dtype is DType.F64
    need(floats and len(first.shape) == rank and len(second.shape) == 2, shown)
    (*rows, n), (m, k) = first.shape, second.shape
    need(m > 0 and n > 0 and k > 0 and rows in ([], [m]), shown)
    length = n + k - 1 + lag if kind == SPREAD else k - n + 1 - lag
    need(length > 0, shown)
    return first.with_shape((length,) if kind == COUNTED else (m, length))


@kernel
def _gathered(y: np.ndarray, c: np.ndarray, x: np.ndarray) -> None:
    """``y[t] += c[j] x[t + j]``, four j at a time: y is read and written a fourth as often."""
    n, k = len(y), len(c) // 4 * 4
    for j in range(0, k, 4):
        c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
        x0, x1, x2, x3 = x[j:], x[j + 1 :], x[j + 2 :], x[j + 3 :]
        for t in range(n):
            y[t] += (c0 * x0[t] + c1 * x1[t]) + (c2 * x2[t] + c3 * x3[t])
    for j in range(k, len(c)):
        c0, x0 = c[j], x[j:]
        for t in range(n):
            y[t] += c0 * x0[t]


@kernel
def _spread(y: np.ndarray, c: np.ndarray, x: np.ndarray) -> None:
    """``y[t + j] += c[j] x[t]``, the same way; at both ends some of the four are not there."""
    n = len(x)
    k = len(c) // 4 * 4 if n > 3 else 0
    for j in range(0, k, 4):
        c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
        y3, x1, x2, x3 = y[j + 3 :], x[1:], x[2:], x[3:]
        for t in range(n - 3):
            y3[t] += (c0 * x3[t] + c1 * x2[t]) + (c2 * x1[t] + c3 * x[t])
        for i in range(4):
            for t in range(3 - i):
                y[j + i + t] += c[j + i] * x[t]
            for t in range(n - i, n):
                y[j + i + t] += c[j + i] * x[t]
    for j in range(k, len(c)):
        c0, y0 = c[j], y[j:]
        for t in range(n):
            y0[t] += c0 * x[t]


def _lagged(words: int, arrays: int, work: int) -> int:
    kind, lag = integers(words, 2)
    rank = 2 if kind == COUNTED else 1
    k = integers(words, 2 + rank)[1 + rank]
    m, n = integers(words + 8 * (2 + rank), 2)
    out, first, second = integers(arrays, 3)
    length = n + k - 1 + lag if kind == SPREAD else n - k + 1 - lag
    if kind == COUNTED:
        y = doubles(out, length)
        y[:] = 0.0
        for row in range(m):
            c, x = doubles(first + 8 * row * k, k), doubles(second + 8 * row * n, n)
            _gathered(y, c, x[lag:])
        return 0
    c = doubles(first, k)
    for row in range(m):
        x, y = doubles(second + 8 * row * n, n), doubles(out + 8 * row * length, length)
        y[:] = 0.0
        if kind == SPREAD:
            _spread(y[lag:], c, x)
        else:
            _gathered(y, c, x[lag:])
    return 0


def lagged_form(b: Builder, kind: int, lag: int, first: int, second: int) -> int:
    return b.call(first, second, attrs=(lagged.number, kind, lag))


def _lagged_vjp(
    b: Builder, ct: int, out: int, first: int, second: int, attrs: Sequence[int]
) -> Contributions:
    kind, lag = attrs
    if kind == SPREAD:
        of_first = lagged_form(b, COUNTED, lag, second, ct)
        return of_first, lagged_form(b, GATHERED, lag, first, ct)
    if kind == GATHERED:
        of_first = lagged_form(b, COUNTED, lag, ct, second)
        return of_first, lagged_form(b, SPREAD, lag, first, ct)
    of_first = lagged_form(b, GATHERED, lag, ct, second)
    return of_first, lagged_form(b, SPREAD, lag, ct, first)


def _lagged_flops(attrs: Sequence[int], first: Type, second: Type) -> float:
    length = _lagged_shape(attrs, first, second).shape[-1]
    return 2.0 * second.shape[0] * first.shape[-1] * min(length, second.shape[1])


_LAGGED = compiled(_lagged, lambda attrs, *types: 0, calls_blas=False)


lagged = from_code(
    "lagged",
    _lagged_shape,
    _LAGGED,
    jvp=bilinear(lambda b, x, y, _, attrs: lagged_form(b, attrs[0], attrs[1], x, y)),
    vjp=_lagged_vjp,
    flops=_lagged_flops,
)

# --- recurrences ---------------------------------------------------------------------------------


def _recurrence_shape(attrs: Sequence[int], a: Type, p: Type) -> Type:
    shown = f"recurrence of {a} and {p} with attributes {tuple(attrs)}"
    need(len(attrs) == 1 and attrs[0] in (0, 1), shown)
    floats = a.dtype is DType.F64 and p.dtype is DType.F64
    need(floats and len(a.shape) == 1 and len(p.shape) == 2, shown)
    need(0 < a.shape[0] < p.shape[1] and p.shape[0] > 0, shown)
    return p


# The next number waits for one product alone, which is subtracted last and from a register.


@kernel
def _forwards(a: np.ndarray, q: np.ndarray, n: int) -> None:
    k, last = len(a), q[0]
    for t in range(1, n):
        found = q[t]
        for j in range(min(k, t) - 1, 0, -1):
            found -= a[j] * q[t - 1 - j]
        last = found - a[0] * last
        q[t] = last
    for t in range(n, n + k):
        for j in range(min(k, t) - 1, t - n - 1, -1):
            q[t] -= a[j] * q[t - 1 - j]


@kernel
def _backwards(a: np.ndarray, q: np.ndarray, n: int) -> None:
    last = q[n]
    for t in range(n - 1, -1, -1):
        found = q[t]
        for j in range(len(a) - 1, 0, -1):
            found -= a[j] * q[t + 1 + j]
        last = found - a[0] * last
        q[t] = last


def _recurrence(words: int, arrays: int, work: int) -> int:
    backwards, k, m, length = integers(words, 4)
    out, at_a, at_p = integers(arrays, 3)
    a, n = doubles(at_a, k), length - k
    for row in range(m):
        p, q = doubles(at_p + 8 * row * length, length), doubles(out + 8 * row * length, length)
        copy(q, p)
        if backwards:
            _backwards(a, q, n)
        else:
            _forwards(a, q, n)
    return 0


def _solved(b: Builder, backwards: int, a: int, p: int) -> int:
    return b.call(a, p, attrs=(recurrence.number, backwards))


def _head(b: Builder, x: int, n: int) -> int:
    m = b.type(x).shape[0]
    return b.slice(x, attrs=(0, 0, 1, 1), type=b.type(x).with_shape((m, n)))


def _length(b: Builder, a: int, p: int) -> int:
    """How many numbers are before those behind the end."""
    return b.type(p).shape[1] - b.type(a).size


def _recurrence_jvp(
    b: Builder, tangents: Tangents, out: int, a: int, p: int, attrs: Sequence[int]
) -> int | None:
    (backwards,), (by_a, change) = attrs, tangents
    if by_a is not None:
        if backwards:
            given = lagged_form(b, GATHERED, 1, by_a, out)
            given = b.pad(given, attrs=(0, 0, 1, 1), type=b.type(p))
        else:
            given = lagged_form(b, SPREAD, 1, by_a, _head(b, out, _length(b, a, p)))
        change = b.neg(given) if change is None else b.sub(change, given)
    return None if change is None else _solved(b, backwards, a, change)


def _recurrence_vjp(
    b: Builder, ct: int, out: int, a: int, p: int, attrs: Sequence[int]
) -> Contributions:
    (backwards,), n = attrs, _length(b, a, p)
    of_p = _solved(b, 1 - backwards, a, ct)
    earlier, later = (of_p, out) if backwards else (out, of_p)
    return b.neg(lagged_form(b, COUNTED, 1, _head(b, earlier, n), later)), of_p


_RECURRENCE = compiled(_recurrence, lambda attrs, *types: 0, calls_blas=False)


recurrence = from_code(
    "recurrence",
    _recurrence_shape,
    _RECURRENCE,
    jvp=_recurrence_jvp,
    vjp=_recurrence_vjp,
    flops=lambda attrs, a, p: 2.0 * a.size * p.size,
)
