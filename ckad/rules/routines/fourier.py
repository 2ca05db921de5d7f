"""Discrete Fourier transforms over any axes, by NumPy's PocketFFT.

Complex arrays are two real ones, and come out as one array [2, ...]. Blocks of them are put
together for PocketFFT in the first cache, so that the memory sees every axis once.

Transforms are linear, so that a tangent is transformed as the value is; and the transpose of a
transform is the one of opposite sign. The kinds differ in what is real, or half of a spectrum:

    complex_to_complex   all of it
    real_to_complex      of a real array the whole spectrum
    complex_to_real      its transpose: the real part of a transform
    real_to_half         of a real array half of the spectrum along the last of the axes
    half_to_real         the way back; what has no counterpart counts half if ``weighted``
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import IntEnum
from math import log2, prod
from typing import NamedTuple

import numpy as np

from ckad.errors import TapeError
from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines import pocketfft
from ckad.rules.routines.dense import add
from ckad.rules.routines.memory import HEAD, compiled, doubles, integers, run
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import Routine, define
from ckad.tape.types import DType, Type, type_of


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


_TRANSPOSED = {
    Kind.COMPLEX_TO_COMPLEX: Kind.COMPLEX_TO_COMPLEX,
    Kind.REAL_TO_COMPLEX: Kind.COMPLEX_TO_REAL,
    Kind.COMPLEX_TO_REAL: Kind.REAL_TO_COMPLEX,
    Kind.REAL_TO_HALF: Kind.HALF_TO_REAL,
    Kind.HALF_TO_REAL: Kind.REAL_TO_HALF,
}
_FROM_REAL = (Kind.REAL_TO_COMPLEX, Kind.REAL_TO_HALF)
_TO_REAL = (Kind.COMPLEX_TO_REAL, Kind.HALF_TO_REAL)
_HALVES = (Kind.REAL_TO_HALF, Kind.HALF_TO_REAL)


class Transform(NamedTuple):
    """The attributes: the sign of the exponent, and the ascending axes.

    ``length`` is that of the real array along the last of the axes. If ``weighted``, the frequencies
    of a half that stand for two count twice (real_to_half), or half (half_to_real), as the
    transposes of each other need.
    """

    kind: Kind
    sign: int
    norm: Norm
    weighted: int
    length: int
    axes: tuple[int, ...]

    def attrs(self, rank: int) -> tuple[int, ...]:
        head = (self.kind, self.sign, self.norm, self.weighted, self.length)
        return (*map(int, head), rank, len(self.axes), *self.axes)

    def real_shape(self, shape: Sequence[int]) -> list[int]:
        """Of an operand's shape that of the array before or after, with its real length."""
        found = list(shape)
        found[self.axes[-1]] = self.length
        return found

    def result_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """What comes of an operand's shape."""
        if self.kind in _TO_REAL:
            return tuple(self.real_shape(shape))
        return (2, *(self.half_shape(shape) if self.kind is Kind.REAL_TO_HALF else shape))

    def half_shape(self, shape: Sequence[int]) -> list[int]:
        found = list(shape)
        found[self.axes[-1]] = self.length // 2 + 1
        return found


def read(attrs: Sequence[int]) -> Transform:
    kind, sign, norm, weighted, length, _, n_axes = attrs[:7]
    return Transform(Kind(kind), sign, Norm(norm), weighted, length, tuple(attrs[7 : 7 + n_axes]))


def _checked(attrs: Sequence[int], types: Sequence[Type]) -> Transform:
    shown = f"fourier of {', '.join(map(str, types))} with attributes {tuple(attrs)}"
    if len(attrs) < 8 or len(attrs) != 7 + attrs[6] or attrs[0] not in range(5):
        raise TapeError(shown)
    t = read(attrs)
    n_operands = 1 if t.kind in _FROM_REAL else 2
    shape = types[0].shape if types else ()
    inside = list(t.axes) == sorted(set(t.axes)) and 0 <= t.axes[0] and t.axes[-1] < len(shape)
    alike = all(x.dtype is DType.F64 and x.shape == shape for x in types)
    if not (inside and alike and len(types) == n_operands and attrs[5] == len(shape)):
        raise TapeError(shown)
    half = t.kind is Kind.HALF_TO_REAL
    wanted = t.half_shape(shape) if half else t.real_shape(shape)
    if wanted != list(shape) or t.sign not in (-1, 1) or t.norm not in range(3) or not prod(shape):
        raise TapeError(shown)
    return t


def _shape(attrs: Sequence[int], *types: Type) -> Type:
    return types[0].with_shape(_checked(attrs, types).result_shape(types[0].shape))


# --- in Python -----------------------------------------------------------------------------------


def _by_numpy(attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
    """The same by the functions of ``np.fft``, where their loops are not to be had."""
    t, axes = read(attrs), read(attrs).axes
    half = t.kind in _HALVES
    ends = [slice(None)] * arrays[0].ndim
    if half and t.weighted:
        ends[axes[-1]] = slice(1, (t.length + 1) // 2)
    z = arrays[0] + 0j if len(arrays) == 1 else arrays[0] + 1j * arrays[1]
    if t.kind is Kind.HALF_TO_REAL:
        z[tuple(ends)] *= 0.5 if t.weighted else 1.0
        z = z if t.sign > 0 else z.conj()
        lengths = [t.real_shape(z.shape)[k] for k in axes]
        found: np.ndarray = np.fft.irfftn(z, lengths, axes, "forward")
    else:
        found = np.fft.fftn(z, None, axes) if t.sign < 0 else np.fft.ifftn(z, None, axes, "forward")
    if t.kind is Kind.REAL_TO_HALF:
        found = np.take(found, range(t.length // 2 + 1), axes[-1])
        found[tuple(ends)] *= 2.0 if t.weighted else 1.0
    found = found * _factor(t.norm, prod(t.real_shape(arrays[0].shape)[k] for k in axes))
    return found.real.copy() if t.kind in _TO_REAL else np.stack([found.real, found.imag])


def _factor(norm: Norm, n: int) -> float:
    return {Norm.NONE: 1.0, Norm.FULL: 1 / n, Norm.ROOT: 1 / n**0.5}[norm]


# --- blocks --------------------------------------------------------------------------------------

#: Whether this NumPy's loops are where they are looked for.
_AVAILABLE = pocketfft.loops() is not None
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
def _lines(outer: int, n: int, inner: int) -> int:
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
    width = _lines(outer, n, inner)
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
        real, imag = doubles(x + 8 * row * n * inner, n * inner), doubles(y + 8 * row * n * inner, n * inner)
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
_FIXED = 7


def _fourier(words: int, arrays: int, work: int) -> int:
    attrs = integers(words, _FIXED)
    kind, sign, weighted, length, rank, n_axes = attrs[0], float(attrs[1]), attrs[3], attrs[4], attrs[5], attrs[6]
    axes = integers(words + 8 * _FIXED, n_axes)
    from_real, to_real = kind == _R2C or kind == _R2H, kind == _C2R or kind == _H2R
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
    factor = 1.0 if attrs[2] == 0 else (1.0 / n_all if attrs[2] == 1 else 1.0 / np.sqrt(n_all))
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
        found = max(found, n * _lines(outer, n, inner))
    return found


def _workspace(attrs: Sequence[int], *types: Type) -> int:
    t = read(attrs)
    shape = list(types[0].shape) if t.kind is Kind.COMPLEX_TO_COMPLEX else t.half_shape(types[0].shape)
    several = len(t.axes) > 1 or t.kind in (Kind.REAL_TO_COMPLEX, Kind.COMPLEX_TO_REAL)
    block = max(
        n * _lines(prod(shape[:k]), n, prod(shape[k + 1 :]))
        for k, n in ((k, t.length if k == t.axes[-1] else shape[k]) for k in t.axes)
    )
    return 16 * (len(shape) + 2 * block + (prod(shape) if several else 0))


_BODY = compiled(_fourier, _workspace)


def _address() -> int:
    pocketfft.register()
    return _BODY.address()


_COMPILED = dataclasses.replace(_BODY, address=_address)


# --- derivatives ---------------------------------------------------------------------------------


def _call(b: Builder, t: Transform, *operands: int) -> int:
    rank = len(b.type(operands[0]).shape)
    return b.call(*operands, attrs=(fourier.number, *t.attrs(rank)))


def _part_attrs(rank: int, k: int) -> tuple[int, ...]:
    """Of the SLICE that takes the real (0) or imaginary (1) part of what a transform gives."""
    return (k, *[0] * rank, *[1] * (rank + 1))


def _part(b: Builder, packed: int, k: int) -> int | None:
    """One of the two parts; None if it is zero. Cotangents are put together from parts."""
    row, (_, *shape) = b.rows[packed], b.type(packed).shape
    if row.op is Op.ADD:
        terms = [_part(b, x, k) for x in row.operands]
        return add(b, [x for x in terms if x is not None])
    for j in (0, 1):
        if row.op is Op.PAD and row.attrs == _part_attrs(len(shape), j):
            return b.reshape_to(row.operands[0], tuple(shape)) if j == k else None
    type = b.type(packed).with_shape((1, *shape))
    one = b.slice(packed, attrs=_part_attrs(len(shape), k), type=type)
    return b.reshape_to(one, tuple(shape))


def _parts(b: Builder, packed: int) -> list[int | None]:
    return [_part(b, packed, k) for k in (0, 1)]


def _transformed(b: Builder, t: Transform, parts: Sequence[int | None]) -> int | None:
    """The transform of what may lack a part, which is zero then."""
    present = [x for x in parts if x is not None]
    if len(present) == len(parts):
        return _call(b, t, *present)
    if not present:
        return None
    if t.kind is Kind.COMPLEX_TO_COMPLEX and parts[1] is None:
        return _call(b, t._replace(kind=Kind.REAL_TO_COMPLEX), *present)
    zero = b.full_like(present[0], 0.0)
    return _call(b, t, *(zero if x is None else x for x in parts))


def _jvp(
    b: Builder, tangents: Tangents, out: int, *operands: int, attrs: Sequence[int]
) -> int | None:
    return _transformed(b, read(attrs), tangents)


def _vjp(
    b: Builder, ct: int, out: int, *operands: int, attrs: Sequence[int]
) -> Sequence[int | None]:
    t = read(attrs)
    weighted = 1 - t.weighted if t.kind in _HALVES else 0
    back = t._replace(kind=_TRANSPOSED[t.kind], sign=-t.sign, weighted=weighted)
    found = _transformed(b, back, [ct] if t.kind in _TO_REAL else _parts(b, ct))
    if found is None:
        return [None] * len(operands)
    return [found] if t.kind in _FROM_REAL else _parts(b, found)


def _alone(
    b: Builder, operands: Sequence[int], attrs: Sequence[int], part: Sequence[int]
) -> int | None:
    """What is read of a complex transform if that is its real part only, or its imaginary one."""
    t, rank = read(attrs), attrs[5]
    if t.kind is not Kind.COMPLEX_TO_COMPLEX:
        return None
    real, imag = operands
    if tuple(part) == _part_attrs(rank, 0):
        found = _call(b, t._replace(kind=Kind.COMPLEX_TO_REAL), real, imag)
    elif tuple(part) == _part_attrs(rank, 1):  # the real part of -i times the transform
        found = _call(b, t._replace(kind=Kind.COMPLEX_TO_REAL), imag, b.neg(real))
    else:
        return None
    return b.reshape_to(found, (1, *b.type(found).shape))


def _flops(attrs: Sequence[int], *types: Type) -> float:
    t = read(attrs)
    shape = t.real_shape(types[0].shape)
    n = prod(shape[k] for k in t.axes)
    return (5.0 if t.kind is Kind.COMPLEX_TO_COMPLEX else 2.5) * prod(shape) * log2(n + 1)


def _run(attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
    if not _AVAILABLE:
        return _by_numpy(attrs, *arrays)
    return run(_COMPILED, _shape(attrs, *map(type_of, arrays)), attrs, *arrays)


fourier = define(
    Routine(
        "fourier",
        _shape,
        _run,
        _jvp,
        _vjp,
        _flops,
        alone=_alone,
        compiled=_COMPILED if _AVAILABLE else None,
    )
)
