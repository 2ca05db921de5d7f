"""The places that sort each row of a matrix: equal elements in their order, NaN last.

    order(x [m, n]; whole) -> places [m, n]               x of integers where ``whole`` is 1

Runs of a few elements are sorted by insertion and merged from one array into another, keys and
places side by side; which of two comes next is chosen without a branch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.routines.dense.matrices import need
from ckad.rules.routines.memory import compiled, copy, doubles, from_code, integers
from ckad.tape.types import DType, Type

#: Elements that are sorted by insertion.
_RUN = 8


def _shape(attrs: Sequence[int], x: Type) -> Type:
    dtype = DType.I64 if tuple(attrs) == (1,) else DType.F64
    fits = len(attrs) == 1 and attrs[0] in (0, 1) and x.dtype is dtype and len(x.shape) == 2
    need(fits and x.size > 0, f"order of {x} with attributes {tuple(attrs)}")
    return Type(DType.I64, x.shape)


@kernel
def _numbers_first(x: np.ndarray, keys: np.ndarray, places: np.ndarray) -> int:
    """How many are not NaN; NaN have their places, but no keys."""
    found, n = 0, len(x)
    for i in range(n):
        if x[i] == x[i]:
            keys[found], places[found] = x[i], i
            found += 1
    at = found
    for i in range(n if found < n else 0):
        if x[i] != x[i]:
            places[at] = i
            at += 1
    return found


@kernel
def _insert(keys: np.ndarray, places: np.ndarray, first: int, last: int) -> None:
    for i in range(first + 1, last):
        key, place, j = keys[i], places[i], i
        while j > first and key < keys[j - 1]:
            keys[j], places[j] = keys[j - 1], places[j - 1]
            j -= 1
        keys[j], places[j] = key, place


@kernel
def _merge(
    keys: np.ndarray,
    places: np.ndarray,
    to_keys: np.ndarray,
    to_places: np.ndarray,
    first: int,
    middle: int,
    last: int,
) -> None:
    i, j, t = first, middle, first
    while i < middle and j < last:
        key, other, place, another = keys[i], keys[j], places[i], places[j]
        later = int(other < key)
        to_keys[t] = other if later else key
        to_places[t] = another if later else place
        i, j, t = i + 1 - later, j + later, t + 1
    for k in range(i, middle):
        to_keys[t], to_places[t] = keys[k], places[k]
        t += 1
    for k in range(j, last):
        to_keys[k], to_places[k] = keys[k], places[k]


@kernel
def _sort(
    x: np.ndarray, keys: np.ndarray, spare: np.ndarray, out: np.ndarray, other: np.ndarray
) -> None:
    n, places = _numbers_first(x, keys, out), out
    for first in range(0, n, _RUN):
        _insert(keys, places, first, min(first + _RUN, n))
    width = _RUN
    while width < n:
        for first in range(0, n, 2 * width):
            middle = min(first + width, n)
            _merge(keys, places, spare, other, first, middle, min(middle + width, n))
        keys, spare = spare, keys
        places, other = other, places
        width *= 2
    copy(out[:n], places[:n])


def _body(words: int, arrays: int, work: int) -> int:
    whole, m, n = integers(words, 3)
    out, x = integers(arrays, 2)
    other = integers(work + 16 * n, n)
    for row in range(m):
        places = integers(out + 8 * row * n, n)
        if whole:
            numbers = integers(x + 8 * row * n, n)
            _sort(numbers, integers(work, n), integers(work + 8 * n, n), places, other)
        else:
            given = doubles(x + 8 * row * n, n)
            _sort(given, doubles(work, n), doubles(work + 8 * n, n), places, other)
    return 0


def _flops(attrs: Sequence[int], x: Type) -> float:
    """A comparison whose outcome is not foreseen takes as long as many operations."""
    return 12.0 * x.size * math.log2(1 + x.shape[1])


_ORDER = compiled(_body, lambda attrs, x: 24 * x.shape[1], calls_blas=False)


order = from_code("order", _shape, _ORDER, flops=_flops)
