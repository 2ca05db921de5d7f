"""Discrete Fourier transforms over any axes, in vectors of lines or by NumPy's PocketFFT.

Complex arrays are two real ones, and come out as one array [2, ...]. The memory sees every axis
once.

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
import functools
from collections.abc import Sequence
from math import log2, prod, sqrt
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from ckad.errors import TapeError
from ckad.kernel import interpreted
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import add
from ckad.rules.routines.fourier import lanes, pocketfft
from ckad.rules.routines.fourier.blocks import BLOCK, ROWS, UNITS
from ckad.rules.routines.fourier.body import (
    PART_SYMBOL,
    Kind,
    Norm,
    block_of,
    fourier_body,
    fourier_part,
    head_bytes,
    n_stages,
    numbers_kept,
    rank_of,
)
from ckad.rules.routines.memory import PART, SIGNATURE, compiled, machine_code, run
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import Routine, define
from ckad.tape.types import DType, Type, type_of

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

    ``length`` is that of the real array along the last of the axes. If ``weighted``, the
    frequencies of a half that stand for two count twice (real_to_half), or half (half_to_real), as
    the transposes of each other need.
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
    inside = list(t.axes) == sorted(set(t.axes)) and t.axes[0] >= 0 and t.axes[-1] < len(shape)
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


def by_numpy(attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
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
    return {Norm.NONE: 1.0, Norm.FULL: 1.0 / n, Norm.ROOT: 1.0 / sqrt(n)}[norm]


# --- as machine code ------------------------------------------------------------------------------

#: Whether this NumPy's loops are where they are looked for.
_AVAILABLE = pocketfft.loops() is not None


#: From so many numbers on a transform is worth the attention of several threads.
SHARED = 4096


class _Room(NamedTuple):
    """What a body needs, in complex numbers: what is kept between the axes, a unit's buffer."""

    kept: int
    buffer: int


def _room(t: Transform, shape: Sequence[int]) -> _Room:
    rank = interpreted(rank_of)(shape, t.axes[-1])
    full = t.real_shape(shape)[:rank]
    half = full if t.kind is Kind.COMPLEX_TO_COMPLEX else t.half_shape(shape)[:rank]
    kept = interpreted(numbers_kept)(int(t.kind), t.axes, full, half)
    return _Room(kept, interpreted(block_of)(int(t.kind), t.axes, full, half))


def _workspace(attrs: Sequence[int], *types: Type) -> int:
    """With a cache line more before each of what begins with one."""
    room = _room(read(attrs), types[0].shape)
    units = UNITS if _stages(attrs, *types) else 1
    heads = UNITS * int(interpreted(head_bytes)(len(types[0].shape)))
    return heads + 16 * room.kept + 128 + 32 * units * room.buffer


def _stages(attrs: Sequence[int], *types: Type) -> tuple[tuple[int, int], ...]:
    """Units and work of the stages, if there is enough for several threads."""
    t, size = read(attrs), prod(read(attrs).real_shape(types[0].shape))
    is_block = len(t.axes) == 1 and size <= max(BLOCK, ROWS * t.length)
    if size < SHARED or is_block:
        return ()
    n = int(interpreted(n_stages)(int(t.kind), len(t.axes)))
    return ((UNITS, int(_flops(attrs, *types)) // n),) * n


@functools.cache
def _part_address() -> int:
    pocketfft.register()
    lanes.register()
    return machine_code(fourier_part, PART)


@functools.cache
def _address() -> int:
    llvm.add_symbol(PART_SYMBOL, _part_address())
    return machine_code(fourier_body, SIGNATURE)


_COMPILED = dataclasses.replace(
    compiled(fourier_body, _workspace, calls_blas=False),
    address=_address,
    stages=_stages,
    part=_part_address,
)


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


def transformed(attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
    if not _AVAILABLE:
        return by_numpy(attrs, *arrays)
    return run(_COMPILED, _shape(attrs, *map(type_of, arrays)), attrs, *arrays)


fourier = define(
    Routine(
        "fourier",
        _shape,
        transformed,
        _jvp,
        _vjp,
        _flops,
        alone=_alone,
        compiled=_COMPILED if _AVAILABLE else None,
    )
)
