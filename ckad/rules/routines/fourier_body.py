"""The body of Fourier transforms: blocks that PocketFFT transforms, axis after axis.

Arrays of pairs lie in the workspace between the axes. Blocks of whole rows, or of a few columns,
are put together from real and imaginary parts and taken apart again in the first cache.
"""

from __future__ import annotations

from enum import IntEnum

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


# --- blocks --------------------------------------------------------------------------------------

#: A block is about so many numbers of whole rows, or so many columns.
BLOCK, ROWS, COLUMNS = 2048, 8, 8
_fft, _ifft = pocketfft.external("fft"), pocketfft.external("ifft")
_rfft_even, _rfft_odd = pocketfft.external("rfft_n_even"), pocketfft.external("rfft_n_odd")
_irfft = pocketfft.external("irfft")
_fft_data, _ifft_data, _irfft_data = map(pocketfft.data, ("fft", "ifft", "irfft"))
_rfft_even_data, _rfft_odd_data = map(pocketfft.data, ("rfft_n_even", "rfft_n_odd"))

#: What a block is read from or written to: real and imaginary parts, pairs, real numbers.
_PARTS, _PAIRS, _REAL = range(3)
_FORWARD, _BACKWARD, _FROM_REALS, _TO_REALS = range(4)


@kernel
def lines(outer: int, n: int, inner: int) -> int:
    """How many lines of ``n`` numbers are one block."""
    return min(outer, max(ROWS, BLOCK // n)) if inner == 1 else min(inner, COLUMNS)


@kernel
def _load(
    form: int, x: int, y: int, at: int, stride: int, runs: int, n: int, to: int, sign: float
) -> None:
    """Runs of ``n`` numbers, the first at ``at``, ``stride`` apart, into a block."""
    extent = (runs - 1) * stride + n
    if form == _PARTS:
        real, imag = doubles(x + 8 * at, extent), doubles(y + 8 * at, extent)
        pairs = doubles(to, 2 * runs * n)
        for k in range(runs):
            for i in range(n):
                pairs[2 * (k * n + i)] = real[k * stride + i]
                pairs[2 * (k * n + i) + 1] = sign * imag[k * stride + i]
    elif form == _PAIRS:
        _copy_runs(x + 16 * at, 2 * stride, to, 2 * n, runs, 2 * n)
    else:
        _copy_runs(x + 8 * at, stride, to, n, runs, n)


@kernel
def _save(
    form: int, x: int, y: int, at: int, stride: int, runs: int, n: int, block: int, sign: float
) -> None:
    """The way back."""
    extent = (runs - 1) * stride + n
    if form == _PARTS:
        real, imag = doubles(x + 8 * at, extent), doubles(y + 8 * at, extent)
        pairs = doubles(block, 2 * runs * n)
        for k in range(runs):
            for i in range(n):
                real[k * stride + i] = pairs[2 * (k * n + i)]
                imag[k * stride + i] = sign * pairs[2 * (k * n + i) + 1]
    elif form == _PAIRS:
        _copy_runs(block, 2 * n, x + 16 * at, 2 * stride, runs, 2 * n)
    else:
        _copy_runs(block, n, x + 8 * at, stride, runs, n)


@kernel
def _copy_runs(source: int, apart: int, target: int, stride: int, runs: int, n: int) -> None:
    x, y = doubles(source, (runs - 1) * apart + n), doubles(target, (runs - 1) * stride + n)
    if n == 2 * COLUMNS:
        for k in range(runs):
            for i in range(2 * COLUMNS):
                y[k * stride + i] = x[k * apart + i]
    else:
        for k in range(runs):
            for i in range(n):
                y[k * stride + i] = x[k * apart + i]


@kernel
def _ends(block: int, n: int, count: int, line: int, step: int, by: float) -> None:
    """Multiply what a half has of the frequencies that stand for themselves alone."""
    pairs = doubles(block, 2 * count * (n // 2 + 1))
    for i in range(count):
        at = 2 * i * line
        pairs[at] *= by
        pairs[at + 1] *= by
        if n % 2 == 0:
            at += n * step
            pairs[at] *= by
            pairs[at + 1] *= by


@kernel
def _transform(
    what: int, work: int, a: int, b: int, n: int, count: int, rows: bool, factor: float
) -> None:
    """Transform ``count`` lines from block a to block b; they are rows, or columns."""
    head, numbers = integers(work, 16), doubles(work, 16)
    n_from = n // 2 + 1 if what == _TO_REALS else n
    n_to = n // 2 + 1 if what == _FROM_REALS else n
    w_from = 8 if what == _FROM_REALS else 16
    w_to = 8 if what == _TO_REALS else 16
    head[0], head[1], head[2] = a, work + 88, b
    head[3], head[4], head[5] = count, n_from, n_to
    head[6], head[7], head[8] = w_from * (n_from if rows else 1), 0, w_to * (n_to if rows else 1)
    head[9], head[10] = w_from * (1 if rows else count), w_to * (1 if rows else count)
    numbers[11] = factor
    if what == _FORWARD:
        _fft(work, work + 24, work + 48, _fft_data())
    elif what == _BACKWARD:
        _ifft(work, work + 24, work + 48, _ifft_data())
    elif what == _TO_REALS:
        _irfft(work, work + 24, work + 48, _irfft_data())
    elif n % 2 == 0:
        _rfft_even(work, work + 24, work + 48, _rfft_even_data())
    else:
        _rfft_odd(work, work + 24, work + 48, _rfft_odd_data())


@kernel
def _along(
    what: int, work: int, outer: int, n: int, inner: int, factor: float, weighted: int,
    source: int, x: int, y: int, sign: float,
    target: int, to: int, to_imag: int, to_sign: float,
    a: int, b: int,
) -> None:  # fmt: skip
    """One axis of an array [outer, n, inner], block by block."""
    rows = inner == 1
    width = lines(outer, n, inner)
    n_from = n // 2 + 1 if what == _TO_REALS else n
    n_to = n // 2 + 1 if what == _FROM_REALS else n
    same = what in (_FORWARD, _BACKWARD)
    # what PocketFFT can read or write where it lies is not copied
    read_there, written_there = rows and source != _PARTS, rows and target != _PARTS
    w_from, w_to = 8 if source == _REAL else 16, 8 if target == _REAL else 16
    for first in range(0, outer, width if rows else 1):
        for column in range(0, inner, 1 if rows else width):
            count = min(width, outer - first if rows else inner - column)
            at_from, at_to = first * n_from * inner + column, first * n_to * inner + column
            if read_there:
                start = x + w_from * at_from
            else:
                start = to + w_to * at_to if same and written_there else a
                runs, length = (1, count * n_from) if rows else (n_from, count)
                _load(source, x, y, at_from, inner, runs, length, start, sign)
            result = start if same else (to + w_to * at_to if written_there else b)
            line, step = (n // 2 + 1, 1) if rows else (1, count)
            if what == _TO_REALS and weighted:
                _ends(start, n, count, line, step, 2.0)
            _transform(what, work, start, result, n, count, rows, factor)
            if what == _FROM_REALS and weighted:
                _ends(result, n, count, line, step, 0.5)
            if not written_there:
                runs, length = (1, count * n_to) if rows else (n_to, count)
                _save(target, to, to_imag, at_to, inner, runs, length, result, to_sign)


# --- spectra of real arrays ----------------------------------------------------------------------


@kernel
def _opposite(row: int, shape: np.ndarray, turned: np.ndarray, n_axes: int) -> int:
    """The place among the first axes where every index k of the turned ones is -k."""
    place, stride = 0, 1
    for j in range(n_axes - 1, -1, -1):
        k = row % shape[j]
        row //= shape[j]
        if turned[j] and k > 0:
            k = shape[j] - k
        place += k * stride
        stride *= shape[j]
    return place


@kernel
def _completed(
    pairs: int, real: int, imag: int, shape: np.ndarray, turned: np.ndarray, axis: int, n: int,
    sign: float,
) -> None:  # fmt: skip
    """A whole spectrum of a half: the rest is the conjugate of what lies opposite."""
    outer, inner, half = _product(shape, 0, axis), _product(shape, axis + 1, len(shape)), n // 2 + 1
    for row in range(outer):
        there = _opposite(row, shape, turned, axis)
        z = doubles(pairs + 16 * row * half * inner, 2 * half * inner)
        w = doubles(pairs + 16 * there * half * inner, 2 * half * inner)
        x = doubles(real + 8 * row * n * inner, n * inner)
        y = doubles(imag + 8 * row * n * inner, n * inner)
        for i in range(half * inner):
            x[i] = z[2 * i]
            y[i] = sign * z[2 * i + 1]
        for k in range(half, n):
            for i in range(inner):
                at = (n - k) * inner + i
                x[k * inner + i] = w[2 * at]
                y[k * inner + i] = -sign * w[2 * at + 1]


@kernel
def _halved(
    x: int, y: int, pairs: int, shape: np.ndarray, turned: np.ndarray, axis: int, n: int,
    sign: float,
) -> None:  # fmt: skip
    """Half of the mean of a spectrum and the conjugate of what lies opposite."""
    outer, inner, half = _product(shape, 0, axis), _product(shape, axis + 1, len(shape)), n // 2 + 1
    for row in range(outer):
        there = _opposite(row, shape, turned, axis)
        real = doubles(x + 8 * row * n * inner, n * inner)
        imag = doubles(y + 8 * row * n * inner, n * inner)
        real_there = doubles(x + 8 * there * n * inner, n * inner)
        imag_there = doubles(y + 8 * there * n * inner, n * inner)
        z = doubles(pairs + 16 * row * half * inner, 2 * half * inner)
        for k in range(half):
            other = n - k if k else 0
            for i in range(inner):
                at, opposite = k * inner + i, other * inner + i
                z[2 * at] = 0.5 * (real[at] + real_there[opposite])
                z[2 * at + 1] = 0.5 * sign * (imag[at] - imag_there[opposite])


@kernel
def _product(shape: np.ndarray, start: int, stop: int) -> int:
    found = 1
    for j in range(start, stop):
        found *= shape[j]
    return found


# --- all axes ------------------------------------------------------------------------------------

_C2C, _R2C, _C2R, _R2H, _H2R = map(int, Kind)
_NONE, _FULL = int(Norm.NONE), int(Norm.FULL)
#: Attributes before the axes.
_FIXED = 7


def fourier_body(words: int, arrays: int, work: int) -> int:
    attrs = integers(words, _FIXED)
    kind, sign, norm, weighted = attrs[0], float(attrs[1]), attrs[2], attrs[3]
    length, rank, n_axes = attrs[4], attrs[5], attrs[6]
    axes = integers(words + 8 * _FIXED, n_axes)
    from_real, to_real = kind in (_R2C, _R2H), kind in (_C2R, _H2R)
    last = axes[n_axes - 1]
    shape, turned = integers(work + 128, rank), integers(work + 128 + 8 * rank, rank)
    shape[:] = integers(words + 8 * (_FIXED + n_axes), rank)
    shape[last] = length
    turned[:] = 0
    n_all = 1.0
    for j in axes:
        turned[j] = 1
        n_all *= shape[j]
    n_reals = _product(shape, 0, rank)
    shape[last] = length if kind == _C2C else length // 2 + 1
    n_pairs = _product(shape, 0, rank)
    factor = 1.0 if norm == _NONE else (1.0 / n_all if norm == _FULL else 1.0 / np.sqrt(n_all))
    if weighted:
        factor *= 2.0 if from_real else 0.5

    a = work + 128 + 16 * rank
    b = a + 16 * _block(axes, shape, length)
    pairs = b + 16 * _block(axes, shape, length)
    out, x = integers(arrays, 2)
    y = x if from_real else integers(arrays, 3)[2]
    if kind == _C2R:
        _halved(x, y, pairs, shape, turned, last, length, sign)
    for k in range(n_axes):
        # a half is made by the first, and used by the last
        axis = axes[k] if to_real else axes[n_axes - 1 - k]
        what = _FORWARD if from_real or (kind == _C2C and sign < 0) else _BACKWARD
        if axis == last and kind != _C2C:
            what = _FROM_REALS if from_real else _TO_REALS
        source, x_at, y_at, sign_at = _PAIRS, pairs, pairs, 1.0
        if k == 0 and kind != _C2R:
            source, x_at, y_at = _REAL if from_real else _PARTS, x, y
            sign_at = sign if kind == _H2R else 1.0
        target, to, to_imag, to_sign = _PAIRS, pairs, pairs, 1.0
        if k == n_axes - 1 and kind != _R2C:
            target, to, to_imag = _REAL if to_real else _PARTS, out, out + 8 * n_pairs
            to_sign = -sign if kind == _R2H else 1.0
        outer, inner = _product(shape, 0, axis), _product(shape, axis + 1, rank)
        n = length if axis == last else shape[axis]
        _along(
            what, work, outer, n, inner, factor if k == n_axes - 1 else 1.0, weighted,
            source, x_at, y_at, sign_at, target, to, to_imag, to_sign, a, b,
        )  # fmt: skip
    if kind == _R2C:
        _completed(pairs, out, out + 8 * n_reals, shape, turned, last, length, -sign)
    return 0


@kernel
def _block(axes: np.ndarray, shape: np.ndarray, length: int) -> int:
    """The most numbers of a block."""
    found, last = 0, axes[len(axes) - 1]
    for axis in axes:
        outer, inner = _product(shape, 0, axis), _product(shape, axis + 1, len(shape))
        n = length if axis == last else shape[axis]
        found = max(found, n * lines(outer, n, inner))
    return found
