"""Differences, derivatives and integrals of sampled functions; convolution; polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    copied,
    in_order,
    is_traced,
    padded,
    promoted,
    reshaped,
    retyped,
    routine,
    spread,
    traced,
)
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import EVERY, REAL, STATIC, given, implements, reject

# --- differences -------------------------------------------------------------------------------


@implements(np.diff, kind=REAL)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    x = in_order(traced(a))
    if n == 0:
        return a
    if n < 0 or not x.shape:
        raise ValueError(at_place(f"np.diff needs n >= 0 and axes, got n={n}, shape {x.shape}"))
    k = axis_of(axis, x.ndim)
    parts = [_edge(prepend, x, k), x, _edge(append, x, k)]
    if given(prepend) or given(append):
        x = np.concatenate([part for part in parts if part is not None], k)
    subtract = np.not_equal if x.dtype == bool else np.subtract
    for _ in range(n):
        x = subtract(x[along(k, slice(1, None))], x[along(k, slice(None, -1))])
    return x


def _edge(number: Any, x: Array, k: int) -> Array | None:
    if not given(number):
        return None
    edge = traced(number)
    return edge if edge.shape else spread(edge, (*x.shape[:k], 1, *x.shape[k + 1 :]))


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    x = traced(ary)
    flat = reshaped(x, (x.size,))
    gaps = np.subtract(flat[1:], flat[:-1])
    ends = [retyped(v, x.dtype) for v in (to_begin, to_end) if v is not None]
    first = [reshaped(v, (v.size,)) for v in ends]
    before, after = first[: to_begin is not None], first[to_begin is not None :]
    return np.concatenate([*before, gaps, *after]) if ends else gaps


@implements(np.unwrap, kind=REAL)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Array:
    """The jumps taken out are multiples of ``period``, with derivative 0."""
    x = in_order(traced(p))
    reject(x.dtype.kind != "f", "np.unwrap of integers")
    k = axis_of(axis, x.ndim)
    gaps = diff(x, axis=k)
    half = period / 2
    turned = np.remainder(gaps + half, period) - half
    turned = np.where(np.equal(turned, -half) & (gaps > 0), half, turned)
    jump = np.where(np.abs(gaps) < (half if discont is None else discont), 0, turned - gaps)
    first, rest = x[along(k, slice(0, 1))], x[along(k, slice(1, None))]
    return np.concatenate([first, rest + np.cumsum(jump, k)], k)


# --- np.gradient -------------------------------------------------------------------------------


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = traced(f)
    dtype = x.dtype if x.dtype.kind == "f" else np.float64
    x = x if x.dtype == bool else retyped(x, dtype)
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    if edge_order not in (1, 2):
        raise ValueError(at_place(f"'edge_order' greater than 2 not supported, got {edge_order}"))
    gaps = _spacings(varargs, x, list(axes))
    slopes = tuple(
        retyped(_slope(x, gap, k, edge_order), dtype) for gap, k in zip(gaps, axes, strict=True)
    )
    return slopes[0] if len(slopes) == 1 else slopes


def _spacings(varargs: Sequence[Any], x: Array, axes: list[int]) -> list[Any]:
    """Per axis a scalar, or the gaps between the coordinates."""
    spacings = [1.0] if not varargs else list(varargs)
    if len(spacings) == 1 and not np.shape(spacings[0]):
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(at_place(f"np.gradient got {len(spacings)} spacings for {len(axes)} axes"))
    return [_gaps(s, x.shape[k]) for s, k in zip(spacings, axes, strict=True)]


def _gaps(spacing: Any, n: int) -> Any:
    if not np.shape(spacing):
        return spacing
    if np.shape(spacing) != (n,):
        raise ValueError(
            at_place(f"{np.shape(spacing)} coordinates do not fit an axis of length {n}")
        )
    gaps = np.diff(spacing if is_traced(spacing) else np.asarray(spacing, np.float64))
    evenly = not is_traced(gaps) and len(gaps) and (gaps == gaps[0]).all()
    return gaps[0] if evenly else gaps


def _slope(x: Array, gap: Any, k: int, edge_order: int) -> Array:
    n = x.shape[k]
    if n < edge_order + 1:
        raise ValueError(
            at_place(f"an axis of {n} elements is too short for edge_order={edge_order}")
        )

    def at(start: int, stop: int | None) -> Array:
        return x[along(k, slice(start, stop))]

    edge = _edge_of_first_order if edge_order == 1 else _edge_of_second_order
    inner = _inner_slope(at(0, -2), at(1, -1), at(2, None), gap, k, x.ndim)
    first = edge([at(i, i + 1) for i in range(edge_order + 1)], gap, (0, 1))
    ends = [at(n - 1 - i, n - i) for i in range(edge_order + 1)]
    last = edge(ends, gap, (-1, -2))
    return np.concatenate([first, inner, -last], k)


def _inner_slope(left: Array, middle: Array, right: Array, gap: Any, k: int, rank: int) -> Array:
    if not np.shape(gap):
        return (right - left) / (2.0 * gap)
    shape = [-1 if i == k else 1 for i in range(rank)]
    before, after = gap[:-1].reshape(shape), gap[1:].reshape(shape)
    a = -after / (before * (before + after))
    b = (after - before) / (before * after)
    c = before / (after * (before + after))
    return a * left + b * middle + c * right


def _near_edge(gap: Any, position: int) -> Any:
    return gap[position] if np.shape(gap) else gap


def _edge_of_first_order(values: Sequence[Array], gap: Any, order: tuple[int, int]) -> Array:
    return (values[1] - values[0]) / _near_edge(gap, order[0])


def _edge_of_second_order(values: Sequence[Array], gap: Any, order: tuple[int, int]) -> Array:
    """One-sided three-point formula, from the edge inwards."""
    first, second, third = values
    if not np.shape(gap):
        return (-1.5 * first + 2.0 * second - 0.5 * third) / gap
    near, far = (_near_edge(gap, p) for p in order)
    a = -(2.0 * near + far) / (near * (near + far))
    b = (near + far) / (near * far)
    c = -near / (far * (near + far))
    return a * first + b * second + c * third


# --- integrals ---------------------------------------------------------------------------------


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    y = in_order(traced(y))
    k = axis_of(axis, y.ndim)
    width = dx
    if x is not None:
        x = traced(x)
        width = np.diff(x, axis=0 if np.ndim(x) == 1 else k)
        if np.ndim(x) == 1:
            width = width.reshape([-1 if i == k else 1 for i in range(y.ndim)])
    return np.sum(width * (y[along(k, slice(1, None))] + y[along(k, slice(None, -1))]) / 2.0, k)


implements(np.trapezoid, kind=REAL)(trapezoid)
if "trapz" in np.__dict__:  # before NumPy 2.4
    implements(np.__dict__["trapz"], kind=REAL)(trapezoid)


# --- convolution -------------------------------------------------------------------------------


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    x, y = _signals(np.atleast_1d(traced(a)), np.atleast_1d(traced(v)))
    long, short = (x, y) if x.size >= y.size else (y, x)
    return _convolved(long, short, mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    x, y = _signals(a, v)
    if x.size >= y.size:
        return _convolved(x, y[::-1], mode)
    return copied(_convolved(y, x[::-1], mode)[::-1])


#: A convolution with more elements is a routine.
MOST_IN_TABLE = 8


def _signals(a: Any, v: Any) -> list[Array]:
    xs = promoted(traced(a), traced(v))
    if any(x.ndim != 1 or not x.size for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ValueError(
            at_place(f"one-dimensional arrays that are not empty are needed: {shapes}")
        )
    return xs


def _convolved(long: Array, short: Array, mode: str) -> Array:
    """By a routine; small ones and integers by all products in a table, its rows shifted.

    Row j of the padded table, read in rows that are one shorter, lies j places further right.
    """
    n, m = long.size, short.size
    if m > MOST_IN_TABLE and long.dtype.kind == "f":
        full = routine("lagged", short, reshaped(long, (1, n)), attrs=(0, 0))[0]
        return _of_full(retyped(full, long.dtype), n, m, mode)
    products = np.multiply(reshaped(short, (m, 1)), long)
    table = padded(products, (0, 0, 1, 1), (m, n + m))
    flat = reshaped(table, (m * (n + m),))[: m * (n + m - 1)]
    return _of_full(retyped(np.sum(reshaped(flat, (m, n + m - 1)), 0), long.dtype), n, m, mode)


def _of_full(full: Array, n: int, m: int, mode: str) -> Array:
    starts = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}
    reject(mode not in starts, f"np.convolve with mode={mode!r}")
    start, length = starts[mode]
    return full if mode == "full" else copied(full[start : start + length])


# --- polynomials -------------------------------------------------------------------------------


@implements(np.polyval, kind=EVERY)
def polyval(p: Any, x: Any) -> Array:
    at = traced(x)
    result = np.zeros_like(at)
    for c in traced(p):
        result = result * at + c
    return result


@implements(np.vander, kind=STATIC)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Array:
    x = traced(x)
    if x.ndim != 1:
        raise ValueError(at_place("x must be a one-dimensional array or sequence."))
    x = retyped(x, np.promote_types(x.dtype, int))
    powers = [np.ones_like(x)]
    for _ in range(1, x.size if N is None else int(N)):
        powers.append(powers[-1] * x)
    if N == 0 or not x.size:
        return np.zeros_like(x, shape=(x.size, x.size if N is None else int(N)))
    return np.stack(powers if increasing else powers[::-1], 1)


def _coefficients(p: Any) -> Array:
    x = traced(p)
    if x.ndim != 1:
        raise ValueError(at_place(f"a polynomial has one axis of coefficients, not {x.ndim}"))
    return x


@implements(np.polyder, kind=STATIC)
def polyder(p: Any, m: int = 1) -> Array:
    result = _coefficients(p)
    for _ in range(m):
        result = result[:-1] * np.arange(result.size)[:0:-1]
    return copied(result)


@implements(np.polyint, kind=STATIC)
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    result = _coefficients(p)
    constants = np.zeros(m) if k is None else np.broadcast_to(traced(k), (m,))
    for c in constants:
        grown = np.true_divide(result, np.arange(result.size, 0, -1))
        result = np.concatenate([grown, reshaped(retyped(c, grown.dtype), (1,))])
    return result


@implements(np.polyadd, kind=STATIC)
def polyadd(a1: Any, a2: Any) -> Array:
    return np.add(*_of_one_degree(a1, a2))


@implements(np.polysub, kind=STATIC)
def polysub(a1: Any, a2: Any) -> Array:
    return np.subtract(*_of_one_degree(a1, a2))


def _of_one_degree(a: Any, b: Any) -> list[Array]:
    xs = promoted(_coefficients(a), _coefficients(b))
    n = max(x.size for x in xs)
    return [np.concatenate([np.zeros_like(x, shape=n - x.size), x]) for x in xs]
