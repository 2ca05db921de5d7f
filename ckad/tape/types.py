"""What a value of a tape is: an element type and a static shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np


class DType(IntEnum):
    """Element types; the last two are not arrays: a control row's results, and a loop's store."""

    F64 = 0
    F32 = 1
    I64 = 2
    BOOL = 3
    TUPLE = 4
    TOKEN = 5


NUMPY_DTYPES: dict[DType, np.dtype[Any]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.I64: np.dtype(np.int64),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {dtype: code for code, dtype in NUMPY_DTYPES.items()}
NAMES = {
    DType.F64: "f64",
    DType.F32: "f32",
    DType.I64: "i64",
    DType.BOOL: "bool",
    DType.TUPLE: "tuple",
    DType.TOKEN: "token",
}


class Type(NamedTuple):
    """Element type and shape of one value.

    Dimensions are static. A negative entry ``-1 - k`` is reserved for a run-time extent whose
    upper bound stands in the tape's table of extents.
    """

    dtype: DType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def numpy(self) -> np.dtype:
        return NUMPY_DTYPES[self.dtype]

    @property
    def nbytes(self) -> int:
        return self.size * self.numpy.itemsize

    @property
    def is_array(self) -> bool:
        return self.dtype <= DType.BOOL

    @property
    def is_float(self) -> bool:
        return self.dtype <= DType.F32

    def with_shape(self, shape: tuple[int, ...]) -> Type:
        return Type(self.dtype, tuple(shape))

    def with_dtype(self, dtype: DType) -> Type:
        return Type(dtype, self.shape)

    def __str__(self) -> str:
        if not self.is_array:
            return NAMES[self.dtype]
        return f"{NAMES[self.dtype]}[{','.join(map(str, self.shape))}]"


TUPLE = Type(DType.TUPLE, ())
TOKEN = Type(DType.TOKEN, ())


def dtype_of(numpy_dtype: np.dtype) -> DType:
    """The tape's code of a NumPy dtype; KeyError if ckad has no such element type."""
    return _FROM_NUMPY[np.dtype(numpy_dtype)]


def type_of(array: np.ndarray) -> Type:
    """The type of a NumPy array or scalar whose dtype ckad knows."""
    return Type(dtype_of(array.dtype), array.shape)


def parse_type(text: str) -> Type:
    """Inverse of ``str(type)``."""
    name, _, dims = text.partition("[")
    dtype = next(code for code, word in NAMES.items() if word == name)
    shape = tuple(int(d) for d in dims.rstrip("]").split(",") if d)
    return Type(dtype, shape)


def c_strides(shape: Sequence[int]) -> list[int]:
    """Elements from one place to the next along each axis."""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def part_strides(attrs: Sequence[int], shape: Sequence[int]) -> tuple[int, list[int]]:
    """First element and strides of the part of ``shape`` that starts and steps, ``attrs``, pick."""
    strides, rank = c_strides(shape), len(shape)
    first = sum(s * t for s, t in zip(attrs[:rank], strides, strict=True))
    return first, [s * t for s, t in zip(attrs[rank:], strides, strict=True)]
