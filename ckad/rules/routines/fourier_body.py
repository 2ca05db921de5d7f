"""The body of Fourier transforms: lines that PocketFFT transforms, axis after axis.

Each axis is a stage, whose lines are shared out in units, to threads if there are any. Between the
axes, arrays of pairs lie in the workspace, their rows apart by other than a power of two, so that
columns meet in all of a cache. Lines of real and imaginary parts are put together and taken apart
a block at a time, which is in the cache meanwhile.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ckad.kernel import kernel
from ckad.rules.routines import pocketfft
from ckad.rules.routines.memory import doubles, integers


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

#: A block is about so many numbers, in so many rows or columns at the least.
BLOCK, ROWS, COLUMNS = 4096, 8, 32
#: Rows of a block of columns are so many numbers further apart than they are long.
GAP = 4
#: The units of a stage.
UNITS = 8
#: Rows of so many pairs are kept apart.
LONG = 64
#: Attributes before the axes.
_FIXED = 7

# --- PocketFFT -----------------------------------------------------------------------------------

_fft, _ifft = pocketfft.external("fft"), pocketfft.external("ifft")
_rfft_even, _rfft_odd = pocketfft.external("rfft_n_even"), pocketfft.external("rfft_n_odd")
_irfft = pocketfft.external("irfft")
_fft_data, _ifft_data, _irfft_data = map(pocketfft.data, ("fft", "ifft", "irfft"))
_rfft_even_data, _rfft_odd_data = map(pocketfft.data, ("rfft_n_even", "rfft_n_odd"))

#: What a block is read from or written to: real and imaginary parts, pairs, real numbers.
_PARTS, _PAIRS, _REAL = range(3)
_FORWARD, _BACKWARD, _FROM_REALS, _TO_REALS = range(4)


class Side(NamedTuple):
    """An array that is read or written; its rows lie ``pitch`` numbers apart."""

    form: int
    at: int
    imag: int
    sign: float  # of the imaginary parts
    pitch: int


class Lines(NamedTuple):
    """Lines in memory: bytes from one to the next, and between the numbers of one."""

    at: int
    line: int
    step: int


@kernel
def _transform(
    what: int, head: int, n: int, count: int, source: Lines, target: Lines, factor: float
) -> None:
    """Transform ``count`` lines."""
    words, numbers = integers(head, 16), doubles(head, 16)
    words[0], words[1], words[2] = source.at, head + 88, target.at
    words[3] = count
    words[4] = n // 2 + 1 if what == _TO_REALS else n
    words[5] = n // 2 + 1 if what == _FROM_REALS else n
    words[6], words[7], words[8] = source.line, 0, target.line
    words[9], words[10] = source.step, target.step
    numbers[11] = factor
    if what == _FORWARD:
        _fft(head, head + 24, head + 48, _fft_data())
    elif what == _BACKWARD:
        _ifft(head, head + 24, head + 48, _ifft_data())
    elif what == _TO_REALS:
        _irfft(head, head + 24, head + 48, _irfft_data())
    elif n % 2 == 0:
        _rfft_even(head, head + 24, head + 48, _rfft_even_data())
    else:
        _rfft_odd(head, head + 24, head + 48, _rfft_odd_data())


# --- blocks --------------------------------------------------------------------------------------


@kernel
def lines(n: int, there: int, least: int) -> int:
    """How many lines of ``n`` numbers are one block, of those that are there."""
    wanted = max(least, BLOCK // n)
    blocks = (there + wanted - 1) // wanted
    return (there + blocks - 1) // blocks


@kernel
def _bytes(form: int) -> int:
    return 8 if form == _REAL else 16


@kernel
def _load(side: Side, at: int, step: int, runs: int, n: int, to: int, pitch: int) -> None:
    """Runs of ``n`` numbers, the first at ``at``, ``step`` apart, into a block."""
    for k in range(runs):
        place = at + k * step
        if side.form == _PARTS:
            real, imag = doubles(side.at + 8 * place, n), doubles(side.imag + 8 * place, n)
            pairs = doubles(to + 16 * k * pitch, 2 * n)
            for i in range(n):
                pairs[2 * i] = real[i]
                pairs[2 * i + 1] = side.sign * imag[i]
        else:
            x, y = doubles(side.at + 8 * place, n), doubles(to + 8 * k * pitch, n)
            for i in range(n):
                y[i] = x[i]


@kernel
def _save(side: Side, at: int, step: int, runs: int, n: int, block: int, pitch: int) -> None:
    """The way back."""
    for k in range(runs):
        place = at + k * step
        if side.form == _PARTS:
            real, imag = doubles(side.at + 8 * place, n), doubles(side.imag + 8 * place, n)
            pairs = doubles(block + 16 * k * pitch, 2 * n)
            for i in range(n):
                real[i] = pairs[2 * i]
                imag[i] = side.sign * pairs[2 * i + 1]
        else:
            x, y = doubles(side.at + 8 * place, n), doubles(block + 8 * k * pitch, n)
            for i in range(n):
                x[i] = y[i]


@kernel
def _ends(where: Lines, n: int, count: int, by: float) -> None:
    """Multiply what a half has of the frequencies that stand for themselves alone."""
    for k in range(count):
        for i in range(0, n // 2 + 1, n // 2) if n % 2 == 0 else range(1):
            pair = doubles(where.at + k * where.line + i * where.step, 2)
            pair[0] *= by
            pair[1] *= by


@kernel
def _line_by_line(
    what: int, head: int, n: int, count: int, source: Lines, target: Lines, factor: float,
    weighted: int,
) -> None:  # fmt: skip
    if what == _TO_REALS and weighted:
        _ends(source, n, count, 2.0)
    _transform(what, head, n, count, source, target, factor)
    if what == _FROM_REALS and weighted:
        _ends(target, n, count, 0.5)


@kernel
def _rows(
    what: int, head: int, n: int, there: int, source: Side, target: Side, a: int, b: int,
    factor: float, weighted: int, first: int, last: int,
) -> None:  # fmt: skip
    """The last axis of an array [there, n]."""
    n_from = n // 2 + 1 if what == _TO_REALS else n
    n_to = n // 2 + 1 if what == _FROM_REALS else n
    w_from, w_to = _bytes(source.form), _bytes(target.form)
    in_place = target.form == _PAIRS and (what == _FORWARD or what == _BACKWARD)
    height = lines(n, there, ROWS)
    blocks = (there + height - 1) // height
    for row in range(blocks * first // UNITS * height, blocks * last // UNITS * height, height):
        count = min(height, there - row)
        to = Lines(b, w_to * n_to, w_to)
        if target.form != _PARTS:
            to = Lines(target.at + w_to * row * target.pitch, w_to * target.pitch, w_to)
        at = source.at + w_from * row * source.pitch
        given = Lines(at, w_from * source.pitch, w_from)
        if source.form == _PARTS:
            given = to if in_place else Lines(a, w_from * n_from, w_from)
            pitch = given.line // w_from
            _load(source, row * source.pitch, source.pitch, count, n_from, given.at, pitch)
        _line_by_line(what, head, n, count, given, to, factor, weighted)
        if target.form == _PARTS:
            _save(target, row * target.pitch, target.pitch, count, n_to, b, n_to)


@kernel
def _columns(
    what: int, head: int, n: int, outer: int, middle: int, across: int, source: Side,
    target: Side, a: int, b: int, factor: float, weighted: int, first: int, last: int,
) -> None:  # fmt: skip
    """The second axis of an array [outer, n, middle, across]."""
    n_from = n // 2 + 1 if what == _TO_REALS else n
    n_to = n // 2 + 1 if what == _FROM_REALS else n
    w_from, w_to = _bytes(source.form), _bytes(target.form)
    step_from, step_to = middle * source.pitch, middle * target.pitch
    width = lines(n, across, COLUMNS)
    in_row = (across + width - 1) // width
    blocks = outer * middle * in_row
    for block in range(blocks * first // UNITS, blocks * last // UNITS):
        row, column = block // in_row, block % in_row * width
        count = min(width, across - column)
        o, m = row // middle, row % middle
        at_from = (o * n_from * middle + m) * source.pitch + column
        at_to = (o * n_to * middle + m) * target.pitch + column
        given = Lines(source.at + 16 * at_from, 16, 16 * step_from)
        if source.form != _PAIRS:
            given = Lines(a, w_from, w_from * (width + GAP))
            _load(source, at_from, step_from, n_from, count, a, width + GAP)
        to = Lines(target.at + 16 * at_to, 16, 16 * step_to)
        if target.form != _PAIRS:
            to = Lines(b, w_to, w_to * (width + GAP))
        _line_by_line(what, head, n, count, given, to, factor, weighted)
        if target.form != _PAIRS:
            _save(target, at_to, step_to, n_to, count, b, width + GAP)


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
def _completed(
    pairs: Side, whole: Side, half: np.ndarray, full: np.ndarray, turned: np.ndarray,
    still: np.ndarray, start: int, stop: int,
) -> None:  # fmt: skip
    """A whole spectrum of a half: the rest is the conjugate of what lies opposite."""
    n, m = full[-1], half[-1]
    for row in range(start, stop):
        own = _row_in(row, full, half, full, still)
        there = _row_in(row, full, half, full, turned)
        x, y = doubles(whole.at + 8 * row * n, n), doubles(whole.imag + 8 * row * n, n)
        if own >= 0:
            z = doubles(pairs.at + 16 * own * pairs.pitch, 2 * m)
            for i in range(m):
                x[i] = z[2 * i]
                y[i] = whole.sign * z[2 * i + 1]
        w = doubles(pairs.at + 16 * there * pairs.pitch, 2 * m)
        if own < 0:
            for i in range(n):
                x[i] = w[2 * i]
                y[i] = -whole.sign * w[2 * i + 1]
        elif m < n:
            for i in range(m, n):
                x[i] = w[2 * (n - i)]
                y[i] = -whole.sign * w[2 * (n - i) + 1]


@kernel
def _halved(
    whole: Side, pairs: Side, half: np.ndarray, full: np.ndarray, turned: np.ndarray,
    still: np.ndarray, start: int, stop: int,
) -> None:  # fmt: skip
    """Half of the mean of a spectrum and the conjugate of what lies opposite."""
    n, m = full[-1], half[-1]
    for row in range(start, stop):
        own = _row_in(row, half, full, full, still)
        there = _row_in(row, half, full, full, turned)
        x, y = doubles(whole.at + 8 * own * n, n), doubles(whole.imag + 8 * own * n, n)
        v, w = doubles(whole.at + 8 * there * n, n), doubles(whole.imag + 8 * there * n, n)
        z = doubles(pairs.at + 16 * row * pairs.pitch, 2 * m)
        if m < n:
            z[0] = 0.5 * (x[0] + v[0])
            z[1] = 0.5 * whole.sign * (y[0] - w[0])
            for i in range(1, m):
                z[2 * i] = 0.5 * (x[i] + v[n - i])
                z[2 * i + 1] = 0.5 * whole.sign * (y[i] - w[n - i])
        else:
            for i in range(m):
                z[2 * i] = 0.5 * (x[i] + v[i])
                z[2 * i + 1] = 0.5 * whole.sign * (y[i] - w[i])


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
def pitch_of(half: np.ndarray, n_axes: int) -> int:
    """From row to row of the pairs: an odd number of cache lines, if rows are long."""
    n = half[-1]
    return n + (4 - n) % 8 if n >= LONG and n_axes > 1 else n


@kernel
def numbers_of_pairs(kind: int, half: np.ndarray, n_axes: int) -> int:
    """How many lie between the axes."""
    if n_axes == 1 and kind != _R2C and kind != _C2R:
        return 0
    return product(half, 0, len(half) - 1) * pitch_of(half, n_axes)


@kernel
def block_of(kind: int, axes: np.ndarray, full: np.ndarray, half: np.ndarray, pitch: int) -> int:
    """The most numbers of a block that is in a unit's memory."""
    found, rank = 0, len(full)
    for axis in axes:
        n = full[axis]
        if axis == rank - 1:
            found = max(found, n * lines(n, product(half, 0, rank - 1), ROWS))
        else:
            padded = pitch != half[-1]
            across = half[-1] if padded else product(half, axis + 1, rank)
            found = max(found, n * (lines(n, across, COLUMNS) + GAP))
    return 2 * found if len(axes) == 1 and (kind == _R2H or kind == _H2R) else found


@kernel
def head_bytes(rank: int) -> int:
    """What a unit tells PocketFFT, and four shapes."""
    return 128 + (32 * rank + 63) // 64 * 64


@kernel
def n_stages(kind: int, n_axes: int) -> int:
    return n_axes + (1 if kind == _R2C or kind == _C2R else 0)


def fourier_part(words: int, arrays: int, work: int, stage: int, first: int, last: int) -> int:
    """The units [first, last) of a stage."""
    attrs = integers(words, _FIXED)
    kind, sign, norm, weighted = attrs[0], float(attrs[1]), attrs[2], attrs[3]
    length, n_axes = attrs[4], attrs[6]
    axes = integers(words + 8 * _FIXED, n_axes)
    given, back = integers(words + 8 * (_FIXED + n_axes), attrs[5]), axes[n_axes - 1]
    rank = rank_of(given, back)
    from_real, to_real = kind == _R2C or kind == _R2H, kind == _C2R or kind == _H2R
    # ``full`` is the shape of the whole spectrum and ``half`` that of the pairs
    head = work + first * head_bytes(rank)
    full, half = integers(head + 128, rank), integers(head + 128 + 8 * rank, rank)
    turned, still = integers(head + 128 + 16 * rank, rank), integers(head + 128 + 24 * rank, rank)
    full[:], turned[:], still[:] = given[:rank], 0, 0
    full[back] = length
    n_all = 1.0
    for j in axes:
        turned[j] = 1
        n_all *= full[j]
    half[:] = full
    if kind != _C2C:
        half[back] = length // 2 + 1
    pitch, n_full, n_half = pitch_of(half, n_axes), product(full, 0, rank), product(half, 0, rank)
    block = block_of(kind, axes, full, half, pitch)
    pairs = Side(_PAIRS, work + UNITS * head_bytes(rank), 0, 1.0, pitch)
    a = pairs.at + 16 * numbers_of_pairs(kind, half, n_axes) + 16 * first * block
    b = a + (8 * block if n_axes == 1 and kind != _C2C else 0)
    out, x = integers(arrays, 2)
    y = x if from_real else integers(arrays, 3)[2]

    if kind == _C2R and stage == 0:
        whole, rows = Side(_PARTS, x, y, sign, full[-1]), product(half, 0, rank - 1)
        _halved(whole, pairs, half, full, turned, still,
                rows * first // UNITS, rows * last // UNITS)  # fmt: skip
        return 0
    if kind == _R2C and stage == n_axes:
        whole = Side(_PARTS, out, out + 8 * n_full, -sign, full[-1])
        rows = product(full, 0, rank - 1)
        _completed(pairs, whole, half, full, turned, still,
                   rows * first // UNITS, rows * last // UNITS)  # fmt: skip
        return 0
    k = stage - 1 if kind == _C2R else stage
    # a half is made by the first, and used by the last
    axis = axes[k] if to_real else axes[n_axes - 1 - k]
    what = _FORWARD if from_real or (kind == _C2C and sign < 0) else _BACKWARD
    if axis == back and kind != _C2C:
        what = _FROM_REALS if from_real else _TO_REALS
    padded, is_last = pitch != half[-1], axis == rank - 1
    across = half[-1] if padded or is_last else product(half, axis + 1, rank)
    middle = product(half, axis + 1, rank - 1) if padded else 1
    source = target = Side(_PAIRS, pairs.at, 0, 1.0, pitch if padded else across)
    if k == 0 and from_real:
        source = Side(_REAL, x, x, 1.0, full[-1] if is_last else across)
    elif k == 0 and kind != _C2R:
        source = Side(_PARTS, x, y, sign if kind == _H2R else 1.0, across)
    if k == n_axes - 1 and to_real:
        target = Side(_REAL, out, out, 1.0, full[-1] if is_last else across)
    elif k == n_axes - 1 and kind != _R2C:
        target = Side(_PARTS, out, out + 8 * n_half, -sign if kind == _R2H else 1.0, across)
    factor = 1.0
    if k == n_axes - 1:
        factor = 1.0 if norm == _NONE else (1.0 / n_all if norm == _FULL else 1.0 / np.sqrt(n_all))
        if weighted:
            factor *= 2.0 if from_real else 0.5
    n = full[axis]
    if is_last:
        rows = product(half, 0, rank - 1)
        _rows(what, head, n, rows, source, target, a, b, factor, weighted, first, last)
    else:
        outer = product(half, 0, axis)
        _columns(what, head, n, outer, middle, across, source, target, a, b, factor, weighted,
                 first, last)  # fmt: skip
    return 0


_part = kernel(fourier_part)


def fourier_body(words: int, arrays: int, work: int) -> int:
    attrs = integers(words, _FIXED)
    for stage in range(n_stages(attrs[0], attrs[6])):
        _part(words, arrays, work, stage, 0, UNITS)
    return 0
