"""Tracers: what the user's function computes with while it is recorded.

A tracer looks like a NumPy array. It names a storage and a view of it, so slices, aliases and
in-place writes mean what they mean in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError, DtypeError, TraceError, UnrecordableError
from ckad.tape.ops import Group
from ckad.tape.types import Type, dtype_of
from ckad.trace import dispatch
from ckad.trace.memory.context import FOREIGN, Given, Trace, current
from ckad.trace.memory.known import number_of_call, numbers_of, numbers_of_call, tried_by_call
from ckad.trace.memory.layout import layout
from ckad.trace.memory.opened import is_open, is_text
from ckad.trace.memory.storage import Storage, spoilt_error
from ckad.trace.memory.views import Path, read, renamed, shape_of, write
from ckad.trace.values.array import Shaped


class Tracer(Shaped):
    """A value being recorded.

    ``scalar`` tells a NumPy scalar (immutable) from a 0-d array; ``weak`` says that it stands for a
    Python number, which takes the dtype of the array it meets. ``classes`` are those that it may be
    of in Python, where a traced condition decides that; ``number`` is that condition where an array
    stands for a number, as far as it is known.
    """

    __slots__ = ("classes", "number", "path", "scalar", "storage", "weak")
    kind = dispatch.PLAIN

    def __init__(
        self,
        storage: Storage,
        path: Path = (),
        scalar: bool = False,
        weak: bool = False,
        classes: frozenset[type] | None = None,
        number: Tracer | None = None,
    ) -> None:
        self.storage = storage
        self.path = path
        self.scalar = scalar
        self.weak = weak
        self.classes = classes
        self.number = number

    # --- what it is ----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        type = self.storage.type
        return shape_of(type, self.path) if self.path else type.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        dispatch.call(np.ndarray.shape, (self, shape), {})

    @property
    def dtype(self) -> np.dtype:
        return self.storage.type.numpy

    @property
    def type(self) -> Type:
        type = self.storage.type
        return type.with_shape(shape_of(type, self.path)) if self.path else type

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            self._number("to iterate over it, or to use it as an axis,")
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        is_text(self)
        return f"<traced {self.type}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        numbers = self._known()
        if numbers is not None:
            return np.array(numbers, dtype)
        raise ConcreteValueError.here(
            "a traced value is turned into a plain NumPy array, written into one, or used as "
            "its index; its numbers are not known while the program is recorded. Make the "
            "array with np.zeros_like(x), np.zeros(n, like=x) or np.stack([...]); read a plain "
            "array a at a traced index by np.asarray(a, like=i)[i]."
        )

    # --- numbers are not known -----------------------------------------------------------------

    def _known(self) -> np.ndarray | None:
        """The numbers of a value that depends on constants alone."""
        self._need_open_trace()
        return known(self)

    def __bool__(self) -> bool:
        numbers = self._known()
        if numbers is not None:
            return bool(numbers)
        raise ConcreteValueError.here(
            "a Python condition (if, while, and, or, not, in, max, sorted) depends on a traced "
            "value. Use np.where(condition, a, b), np.maximum or np.minimum, or "
            "ckad.cond(condition, f, g, *operands); to stop a loop, run it for a fixed number "
            "of steps."
        )

    def _need_open_trace(self) -> None:
        """Only while it is recorded is a tracer's number merely not known yet."""
        if not is_open(self.storage.trace):
            current()
            raise UnrecordableError.here(FOREIGN)

    def _number(self, kind: str, in_text: Any = None) -> Any:
        """The number itself, if it depends on constants alone; what stands for it in a text."""
        numbers = self._known()
        if numbers is not None:
            return numbers
        if in_text is not None and is_text(self):
            return np.array(in_text)
        raise ConcreteValueError.here(
            f"{kind} asks a traced value for its number, which is not known while the program "
            "is recorded. Keep it as an array and use NumPy's functions; make arrays to write "
            "into with np.zeros_like(x); pass numbers that shape the program as Python ints."
        )

    def __float__(self) -> float:
        kind = "float(), or writing it into an element of a plain array,"
        return float(self._number(kind, math.nan))

    def __int__(self) -> int:
        return int(self._number("int()", 0))

    def __index__(self) -> int:
        return index(self._number("using it as a Python integer")[()])

    def __complex__(self) -> complex:
        return complex(self._number("complex()"))

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        shown = self._number(f"the format {spec!r}", repr(self))[()]
        return str(shown) if isinstance(shown, str) else format(shown, spec)

    def __hash__(self) -> int:
        if self.ndim:
            raise TypeError(f"unhashable type: an array of shape {self.shape}")
        if (number := known_as_run(self)) is None:
            number = self._number("a key of a dict or an item of a set")
        return hash(number.item())


#: A number that is known now, or when the program runs.
Number = int | Tracer

# --- making and reading tracers ----------------------------------------------------------------


def fresh(row: int, *, scalar: bool | None = None, trace: Trace | None = None) -> Tracer:
    """A tracer of a new storage that holds ``row``; 0-d results are NumPy scalars."""
    trace = trace or current()
    if scalar is None:
        scalar = not trace.builder.rows[row].type.shape
    return Tracer(Storage(trace, row), (), scalar)


def value(x: Any) -> int:
    """The row of ``x`` in the current trace: a tracer's present value, or a constant."""
    trace = current()
    if not isinstance(x, Tracer):
        if type(x) is np.ndarray:
            trace.note_known(x)
        return trace.builder.const(concrete(x))
    storage = x.storage
    if storage.trace is not trace or storage.spoilt is not None or storage.root is not storage:
        x = localise(x)
        storage = x.storage
    if not x.path:
        return storage.row
    return read(trace.builder, storage.row, x.path, storage.cache)


def localise(x: Tracer) -> Tracer:
    """``x`` as the current trace sees it. A body captures the value of an outer view."""
    if x.storage.root.spoilt is not None:
        raise spoilt_error(x.storage.root.spoilt)
    return x if x.storage.trace is current() else _seen_from(current(), x)


def _seen_from(trace: Trace | None, x: Tracer) -> Tracer:
    if trace is None:
        raise UnrecordableError.here(FOREIGN)
    if x.storage.trace is trace:
        return x
    outer = _seen_from(trace.parent, x)
    own = trace.adopted.get(id(outer.storage.root))
    if own is not None:
        if outer.storage.part:  # the body around shows a part alone: it has to adopt the whole
            raise outer.storage.read_only_error()
        path = renamed(outer.path, trace.capture_row)
        return Tracer(own, path, x.scalar, x.weak, x.classes, x.number)
    b = outer.storage.trace.builder
    row = read(b, outer.storage.row, outer.path, outer.storage.cache)
    mirror = trace.capture(row, outer.storage, outer.path)
    if outer.path:
        mirror.plain, mirror.dense = layout(outer)
    return Tracer(mirror, (), x.scalar, x.weak, x.classes, x.number)


def known(x: Any) -> np.ndarray | None:
    """The numbers of ``x`` if they depend on constants alone; None if they do not."""
    if not isinstance(x, Tracer):
        return np.asarray(x)
    trace, row = current(), value(x)
    found = numbers_of(trace, row)
    return number_of_call(trace, row) if found is None and trace.given else found


def decided(x: Any) -> np.ndarray | None:
    """The same where the program is recorded as it runs; None where it is recorded for all."""
    return known(x) if current().decides >= Given.DECISIONS else None


def known_as_run(x: Tracer) -> np.ndarray | None:
    """The numbers of ``x`` in the call for which the program is recorded as it runs; None where
    it is recorded for all, and within steps of a loop that change them."""
    if current().decides < Given.DECISIONS:
        return None
    return numbers_of_call(current(), value(x))


def tried_as_run(x: Tracer) -> None:
    """Where the program is recorded as it runs, raise what computing ``x`` raises in the call."""
    if current().decides >= Given.DECISIONS:
        tried_by_call(current(), value(x))


def known_by_running(x: Any) -> np.ndarray | None:
    """The same, also of what loops and branches on constants make: they are run."""
    if not isinstance(x, Tracer):
        return np.asarray(x)
    return numbers_of(current(), value(x), running=True)


def alike(x: Any, y: Any) -> bool:
    """Whether both are the same numbers, as far as it can be told: known, or the same part."""
    if any(isinstance(z, dispatch.Traced) and not isinstance(z, Tracer) for z in (x, y)):
        return False
    these, those = known(x), known(y)
    if these is not None and those is not None:
        return bool(np.array_equal(these, those))
    rows, a, b = current().builder.rows, value(x), value(y)
    while a != b:
        one, other = rows[a], rows[b]
        same = one.op is other.op and one[2:4] == other[2:4]  # attributes and type, too
        if not same or one.op.row.group is not Group.SHAPE or len(one.operands) != 1:
            return False
        (a,), (b,) = one.operands, other.operands
    return True


def assign(x: Tracer, row: int) -> None:
    """Write ``row`` (of x's own shape and dtype) through x's view."""
    x = localise(x)
    storage = x.storage
    storage.check_writable()
    storage.write(write(storage.trace.builder, storage.row, x.path, row, storage.cache))


def lift(x: Any) -> Tracer:
    """``x`` itself if it is a tracer, else a tracer of the constant."""
    if isinstance(x, Tracer):
        return x
    if isinstance(x, (list, tuple)) and _holds_tracer(x):
        stacked: Tracer = dispatch.call(np.asarray, (x,), {})
        return stacked
    array = concrete(x)
    lead = fresh(
        current().builder.const(array), scalar=not isinstance(x, np.ndarray) and not array.shape
    )
    lead.weak = type(x) in (int, float, bool)
    return lead


def concrete(x: Any) -> np.ndarray:
    """A plain array of an element type that ckad computes with (smaller integers become int64)."""
    if isinstance(x, (list, tuple)) and _holds_tracer(x):
        raise ConcreteValueError.here(
            "a list holds traced values where NumPy expects an array. Use np.stack([...])."
        )
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and _computes_by_itself(x):
        raise TraceError.here(
            f"a {type(x).__name__} does not compute as an array does, and ckad computes with "
            "arrays. Pass np.asarray(x) for a matrix, x.filled(...) for a masked array."
        )
    return known_dtype(np.asarray(x))


_USUAL = (np.ndarray, np.memmap, np.recarray)
_OPERATORS = [
    f"__{name}__" for name in "array_ufunc add sub mul truediv pow matmul getitem".split()
]


def _computes_by_itself(x: np.ndarray) -> bool:
    """Whether the class of ``x`` has another arithmetic than arrays."""
    if isinstance(x, np.ma.MaskedArray):
        return bool(np.any(np.ma.getmaskarray(x)))
    kind = type(x)
    return any(
        all(getattr(kind, name) is not getattr(usual, name) for usual in _USUAL)
        for name in _OPERATORS
    )


_CONVERT = "Convert the array with .astype(np.float64)."
_REMEDIES = {
    "c": "Compute with the real and the imaginary part as two float arrays.",
    "O": "Make an array of numbers, without None and of one length in every row.",
    "U": "Leave texts out of the computation.",
    "S": "Leave texts out of the computation.",
}


def known_dtype(array: np.ndarray) -> np.ndarray:
    """``array`` in one of float64, float32, int64, bool; DtypeError for others."""
    try:
        dtype_of(array.dtype)
    except KeyError:
        if array.dtype.kind in "iu" and array.dtype != np.uint64:
            return array.astype(np.int64)
        raise DtypeError.here(
            f"dtype {array.dtype} is not supported; ckad computes with float64, float32, int64 "
            f"and bool. {_REMEDIES.get(array.dtype.kind, _CONVERT)}"
        ) from None
    return array


def _holds_tracer(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(_holds_tracer(item) for item in x)
    return isinstance(x, Tracer)
