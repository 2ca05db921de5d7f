"""The body of Fourier transforms: axis after axis.

Each axis is a stage, whose lines are shared out in units, to threads if there are any. Between the
axes, what is transformed lies in the workspace, in tiles that the lanes of vectors are read from,
or with rows apart by other than a power of two, so that columns meet in all of a cache.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numba import types

from ckad.kernel import kernel
from ckad.rules.routines.fourier.blocks import PARTS, REAL, UNITS, Side, axis, numbers
from ckad.rules.routines.fourier.lanes import (
    BACKWARD,
    FORWARD,
    FROM_REALS,
    TO_REALS,
    in_lanes,
)
from ckad.rules.routines.fourier.vectors import LANES
from ckad.rules.routines.memory import PART, copy, doubles, integers


class Kind(IntEnum):
    COMPLEX_TO_COMPLEX = 0
    REAL_TO_COMPLEX = 1
    COMPLEX_TO_REAL = 2
    REAL_TO_HALF = 3
    HALF_TO_REAL = 4


class Norm(IntEnum):
    """What a transform of n elements is multiplied by: 1, 1 / n, or 1 / sqrt(n)."""

    NONE = 0
    FULL = 1
    ROOT = 2


_C2C, _R2C, _C2R, _R2H, _H2R = map(int, Kind)
_NONE, _FULL = int(Norm.NONE), int(Norm.FULL)

#: Rows of so many pairs are kept apart.
LONG = 64
#: Attributes before the axes.
_FIXED = 7

# --- spectra of real arrays ----------------------------------------------------------------------


@kernel
def _row_in(
    row: int, given: np.ndarray, found: np.ndarray, full: np.ndarray, turned: np.ndarray
) -> int:
    """Where a row of an array lies in one of other lengths; -1 if it is not there.

    ``turned`` says along which axes every index k becomes -k, of the full lengths.
    """
    place, stride = 0, 1
    for j in range(len(given) - 2, -1, -1):
        k = row % given[j]
        row //= given[j]
        if turned[j] and k > 0:
            k = full[j] - k
        if k >= found[j]:
            return -1
        place += k * stride
        stride *= found[j]
    return place


@kernel
def _row(side: Side, row: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    at = 8 * row * side.pitch
    return doubles(side.at + at, n), doubles(side.imag + at, n)


@kernel
def _completed(
    kept: Side, whole: Side, half: np.ndarray, full: np.ndarray, turned: np.ndarray,
    still: np.ndarray, start: int, stop: int,
) -> None:  # fmt: skip
    """A whole spectrum of a half: the rest is the conjugate of what lies opposite."""
    n, m = full[-1], half[-1]
    for row in range(start, stop):
        own = _row_in(row, full, half, full, still)
        there = _row_in(row, full, half, full, turned)
        x, y = doubles(whole.at + 8 * row * n, n), doubles(whole.imag + 8 * row * n, n)
        if own >= 0:
            u, v = _row(kept, own, m)
            for i in range(m):
                x[i] = u[i]
                y[i] = whole.sign * v[i]
        u, v = _row(kept, there, m)
        if own < 0:
            for i in range(n):
                x[i] = u[i]
                y[i] = -whole.sign * v[i]
        elif m < n:
            for i in range(m, n):
                x[i] = u[n - i]
                y[i] = -whole.sign * v[n - i]


@kernel
def _halved(
    whole: Side, kept: Side, half: np.ndarray, full: np.ndarray, turned: np.ndarray,
    still: np.ndarray, start: int, stop: int,
) -> None:  # fmt: skip
    """Half of the mean of a spectrum and the conjugate of what lies opposite."""
    n, m = full[-1], half[-1]
    for row in range(start, stop):
        own = _row_in(row, half, full, full, still)
        there = _row_in(row, half, full, full, turned)
        x, y = doubles(whole.at + 8 * own * n, n), doubles(whole.imag + 8 * own * n, n)
        v, w = doubles(whole.at + 8 * there * n, n), doubles(whole.imag + 8 * there * n, n)
        re, im = _row(kept, row, m)
        if m < n:
            re[0] = 0.5 * (x[0] + v[0])
            im[0] = 0.5 * whole.sign * (y[0] - w[0])
            for i in range(1, m):
                re[i] = 0.5 * (x[i] + v[n - i])
                im[i] = 0.5 * whole.sign * (y[i] - w[n - i])
        else:
            for i in range(m):
                re[i] = 0.5 * (x[i] + v[i])
                im[i] = 0.5 * whole.sign * (y[i] - w[i])


# --- all axes ------------------------------------------------------------------------------------


@kernel
def product(shape: np.ndarray, start: int, stop: int) -> int:
    found = 1
    for j in range(start, stop):
        found *= shape[j]
    return found


@kernel
def rank_of(shape: np.ndarray, last: int) -> int:
    """How many axes there are without those of length 1 behind the ``last`` transformed one."""
    rank = len(shape)
    while rank > last + 1 and shape[rank - 1] == 1:
        rank -= 1
    return rank


@kernel
def is_kept(kind: int, n_axes: int) -> bool:
    """Whether anything lies between the axes."""
    return n_axes > 1 or kind in (_R2C, _C2R)


@kernel
def _step(kind: int, sign: float, axes: np.ndarray, k: int) -> tuple[int, int]:
    """The axis that is transformed after ``k`` others, and what is done to it."""
    n_axes, from_real = len(axes), kind in (_R2C, _R2H)
    # a half is made by the first, and used by the last; else the last axis is the last, since
    # results are better written along their rows
    at = n_axes - 1 - k if from_real else k
    what = FORWARD if from_real or (kind == _C2C and sign < 0) else BACKWARD
    if at == n_axes - 1 and kind != _C2C:
        what = FROM_REALS if from_real else TO_REALS
    return axes[at], what


@kernel
def kept_rows(kind: int, axes: np.ndarray, full: np.ndarray, half: np.ndarray) -> tuple[int, int]:
    """How what is kept lies: numbers from row to row, and how many tiles are below each other.

    Long rows are an odd number of cache lines apart, or in tiles, where all is done in lanes.
    """
    n, rows = half[-1], product(half, 0, len(half) - 1)
    if n < LONG or not is_kept(kind, len(axes)):
        return n, 0
    tiled = kind != _R2C and kind != _C2R
    for k in range(len(axes)):
        at, what = _step(kind, 1.0, axes, k)
        there = rows if at == len(half) - 1 else n
        tiled = tiled and in_lanes(what, full[at], there)
    return (8 * ((n + 7) // 8), rows) if tiled else (8 * ((n + 7) // 8 | 1), 0)


@kernel
def numbers_kept(kind: int, axes: np.ndarray, full: np.ndarray, half: np.ndarray) -> int:
    """How many complex numbers are kept between the axes."""
    rows = product(half, 0, len(half) - 1)
    return rows * kept_rows(kind, axes, full, half)[0] if is_kept(kind, len(axes)) else 0


@kernel
def _beside(half: np.ndarray, axis: int, is_split: bool) -> tuple[int, int]:
    """How many lines of an axis lie side by side, and how many times."""
    rank = len(half)
    if axis == rank - 1:
        return 1, product(half, 0, axis)
    if is_split:
        return product(half, axis + 1, rank - 1), half[-1]
    return 1, product(half, axis + 1, rank)


@kernel
def block_of(kind: int, axes: np.ndarray, full: np.ndarray, half: np.ndarray) -> int:
    """The most complex numbers of a buffer; a unit has two."""
    found, (pitch, tiles) = 0, kept_rows(kind, axes, full, half)
    for k in range(len(axes)):
        axis, what = _step(kind, 1.0, axes, k)
        there = _beside(half, axis, tiles > 0 or pitch != half[-1])[1]
        found = max(found, numbers(what, full[axis], there, axis == len(full) - 1))
    return (found + 3) // 4 * 4


@kernel
def head_bytes(rank: int) -> int:
    """What a unit tells PocketFFT, and four shapes."""
    return 128 + (32 * rank + 63) // 64 * 64


@kernel
def n_stages(kind: int, n_axes: int) -> int:
    return n_axes + (1 if kind in (_R2C, _C2R) else 0)


# --- stages --------------------------------------------------------------------------------------


class Call(NamedTuple):
    """What the words, the arrays and the workspace say."""

    kind: int
    sign: float
    axes: np.ndarray
    full: np.ndarray  # the shape of the whole spectrum
    half: np.ndarray  # and that of what is kept of it
    turned: np.ndarray  # which axes are transformed
    still: np.ndarray  # zeros
    scale: float
    weighted: int
    parts: Side  # a spectrum that is read, or written if what is read is real
    other: Side  # a real array, or the other spectrum
    kept: Side
    head: int  # a unit's own memory
    a: int
    b: int


@kernel
def _read(words: int, arrays: int, work: int, first: int) -> Call:
    attrs = integers(words, _FIXED)
    kind, sign, norm, weighted, length = attrs[0], float(attrs[1]), attrs[2], attrs[3], attrs[4]
    n_axes, axes = attrs[6], integers(words + 8 * _FIXED, attrs[6])
    given, back = integers(words + 8 * (_FIXED + n_axes), attrs[5]), axes[n_axes - 1]
    rank = rank_of(given, back)
    head = work + first * head_bytes(rank)
    full, half = integers(head + 128, rank), integers(head + 128 + 8 * rank, rank)
    turned, still = integers(head + 128 + 16 * rank, rank), integers(head + 128 + 24 * rank, rank)
    copy(full, given)
    turned[:], still[:] = 0, 0
    full[back] = length
    n = 1.0
    for j in axes:
        turned[j] = 1
        n *= full[j]
    copy(half, full)
    if kind != _C2C:
        half[back] = length // 2 + 1
    scale = 1.0 if norm == _NONE else (1.0 / n if norm == _FULL else 1.0 / np.sqrt(n))
    from_real = kind in (_R2C, _R2H)
    if weighted:
        scale *= 2.0 if from_real else 0.5
    pitch, tiles = kept_rows(kind, axes, full, half)
    block, n_kept = 16 * block_of(kind, axes, full, half), numbers_kept(kind, axes, full, half)
    room = (work + UNITS * head_bytes(rank) + 63) // 64 * 64
    kept = Side(PARTS, room, room + (8 * LANES if tiles else 8 * n_kept), 1.0, pitch, tiles)
    a = room + (16 * n_kept + 63) // 64 * 64 + 2 * first * block
    out, x = integers(arrays, 2)
    whole = full if kind in (_C2C, _R2C) else half
    other = Side(REAL, x if from_real else out, 0, 1.0, 0, 0)
    if from_real:
        parts = Side(PARTS, out, out + 8 * product(whole, 0, rank), -sign, 0, 0)
    else:
        parts = Side(PARTS, x, integers(arrays, 3)[2], 1.0 if kind == _C2C else sign, 0, 0)
    if kind == _C2C:
        other = Side(PARTS, out, out + 8 * product(whole, 0, rank), 1.0, 0, 0)
    return Call(kind, sign, axes, full, half, turned, still, scale, weighted, parts, other, kept,
                head, a, a + block)  # fmt: skip


@kernel
def _placed(side: Side, sign: float, pitch: int) -> Side:
    return Side(side.form, side.at, side.imag, sign, pitch, side.tiles)


@kernel
def _axis(call: Call, k: int, first: int, last: int) -> None:
    """Units of the axis that is transformed after ``k`` others."""
    kind, half, n_axes = call.kind, call.half, len(call.axes)
    at, what = _step(kind, call.sign, call.axes, k)
    is_end, is_last = k == n_axes - 1, at == len(half) - 1
    is_split = call.kept.tiles > 0 or call.kept.pitch != half[-1]
    middle, across = _beside(half, at, is_split)
    far, of_real = (half[-1], call.full[-1]) if is_last else (across, across)
    source = target = _placed(call.kept, 1.0, call.kept.pitch if is_split else far)
    if what == FROM_REALS:
        source = _placed(call.other, 1.0, of_real)
    elif k == 0 and kind != _C2R:
        source = _placed(call.parts, call.parts.sign, far)
    if what == TO_REALS:
        target = _placed(call.other, 1.0, of_real)
    elif is_end and kind != _R2C:
        target = _placed(call.other if kind == _C2C else call.parts, call.parts.sign, far)
    factor = call.scale if is_end else 1.0
    axis(what, call.head, call.full[at], product(half, 0, at), middle, across, is_last, source,
         target, call.a, call.b, factor, call.weighted, first, last)  # fmt: skip


def fourier_part(words: int, arrays: int, work: int, stage: int, first: int, last: int) -> int:
    """The units [first, last) of a stage."""
    call = _read(words, arrays, work, first)
    full, half = call.full, call.half
    if call.kind == _C2R and stage == 0:
        n = product(half, 0, len(half) - 1)
        _halved(call.parts, call.kept, half, full, call.turned, call.still,
                n * first // UNITS, n * last // UNITS)  # fmt: skip
    elif call.kind == _R2C and stage == len(call.axes):
        n = product(full, 0, len(full) - 1)
        _completed(call.kept, call.parts, half, full, call.turned, call.still,
                   n * first // UNITS, n * last // UNITS)  # fmt: skip
    else:
        _axis(call, stage - 1 if call.kind == _C2R else stage, first, last)
    return 0


#: ``fourier_part`` by its address, so that it is compiled once for threads and without them.
PART_SYMBOL = "ckad_fourier_part"
_part = types.ExternalFunction(PART_SYMBOL, PART)


def fourier_body(words: int, arrays: int, work: int) -> int:
    attrs = integers(words, _FIXED)
    for stage in range(n_stages(attrs[0], attrs[6])):
        _part(words, arrays, work, stage, 0, UNITS)
    return 0
