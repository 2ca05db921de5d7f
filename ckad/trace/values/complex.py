"""Complex numbers while tracing: pairs of real tracers.

A complex array is two arrays with memory of their own, its real and its imaginary part. Slices,
reshapes and writes go to both in the same way, so ``z.real`` and ``z.imag`` are views that can be
written, as in NumPy. The tape, the engines and the derivatives know real numbers alone.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, DtypeError
from ckad.place import at_place, user_place
from ckad.trace import dispatch
from ckad.trace.dispatch import holds_complex
from ckad.trace.memory.context import current
from ckad.trace.memory.opened import is_text
from ckad.trace.values.apply import astype, broadcast
from ckad.trace.values.array import Shaped
from ckad.trace.values.part import Part
from ckad.trace.values.tracer import Tracer, fresh, lift, value

#: Of the parts of each complex dtype.
_PART = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}


class ComplexTracer(Shaped):
    """A complex array or number being recorded: its ``parts`` are real and have one shape.

    They are tracers, or both are what a mask or slice whose size is not known makes of them.
    """

    __slots__ = ("parts",)
    kind = dispatch.COMPLEX
    __array_priority__ = 1001

    def __init__(self, real: Any, imag: Any) -> None:
        self.parts = real, imag

    # --- what it is ----------------------------------------------------------------------------

    @property
    def scalar(self) -> bool:
        return getattr(self.parts[0], "scalar", False)

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.parts[0].shape
        return shape

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(self.parts[0].dtype, np.complex64)

    @property
    def size(self) -> int:
        size: int = self.parts[0].size
        return size

    def __len__(self) -> int:
        return len(self.parts[0])

    def __repr__(self) -> str:
        is_text(self)
        return f"<traced complex {self.dtype} of shape {self.shape}>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        first = self.parts[0]
        (first.base if isinstance(first, Part) else first)._need_open_trace()
        raise ConcreteValueError.here(
            "a traced complex value is turned into a plain NumPy array, written into one, or "
            "used where ckad takes real values alone. Compute with its .real and .imag there; "
            "make arrays to write into with np.zeros_like(z), of values with np.stack([...])."
        )

    # --- numbers are not known -----------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(dispatch.call(np.not_equal, (self, 0), {}))

    def __float__(self) -> float:
        return float(self.parts[0])

    def __int__(self) -> int:
        return int(self.parts[0])

    def __complex__(self) -> complex:
        return complex(*map(float, self.parts))

    # --- parts and elements --------------------------------------------------------------------

    @property
    def real(self) -> Tracer:
        part: Tracer = dispatch.call(np.ndarray.real, (self,), {})
        return part

    @real.setter
    def real(self, new: Any) -> None:
        self._write(0, new)

    @property
    def imag(self) -> Tracer:
        part: Tracer = dispatch.call(np.ndarray.imag, (self,), {})
        return part

    @imag.setter
    def imag(self, new: Any) -> None:
        self._write(1, new)

    def _write(self, k: int, new: Any) -> None:
        if self.scalar:
            raise AttributeError("the parts of a NumPy scalar are not writable")
        self.parts[k][...] = new

    __hash__ = object.__hash__


def paired(real: Any, imag: Any) -> ComplexTracer:
    """The complex value of two real ones, of which one may be plain."""
    if isinstance(real, Tracer) and isinstance(imag, Tracer) and real.type == imag.type:
        return ComplexTracer(real, imag)
    dtype = np.result_type(real.dtype if isinstance(real, Tracer) else imag.dtype, np.float32)
    one, other = broadcast(astype(real, dtype), astype(imag, dtype))
    return ComplexTracer(one, other)


trees.register_complex(ComplexTracer, Tracer, paired)


# --- taking apart and putting together ---------------------------------------------------------


def part_type(dtype: Any) -> np.dtype:
    """The dtype of the parts of a complex dtype; DtypeError for those without one."""
    whole: np.dtype = np.dtype(dtype)
    if whole.kind != "c":
        return whole
    if whole not in _PART:
        raise DtypeError.here(
            f"dtype {whole} is not supported; ckad computes with complex128 and complex64. "
            "Convert the array with .astype(np.complex128)."
        )
    return _PART[whole]


def check_kept(function: Any, dtype: Any) -> None:
    """DtypeError if a result of complex numbers in this dtype would lose their imaginary parts."""
    if np.dtype(dtype).kind != "c":
        raise DtypeError.here(
            f"np.{function.__name__} turns complex numbers into {np.dtype(dtype)}, which loses "
            "the imaginary part. Take the real part first: np.real(z)."
        )


def settled(x: Any) -> Any:
    """The present value of a part, apart from its memory."""
    return fresh(value(x), scalar=x.scalar) if isinstance(x, Tracer) else x


def halves(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part of a value to be written; 0 is the imaginary part of a real one."""
    if isinstance(x, (list, tuple)):
        x = np.array(x, like=_first_traced(x)) if _first_traced(x) is not None else np.asarray(x)
    if isinstance(x, ComplexTracer):
        return x.parts
    if not trees.is_complex(x):
        return x, 0.0
    check_plain(x)
    return x.real, x.imag


def _first_traced(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return next((found for item in x if (found := _first_traced(item)) is not None), None)
    return x if isinstance(x, (Tracer, ComplexTracer)) else None


def check_plain(x: Any) -> None:
    """DtypeError for a plain complex value that is longer than complex128."""
    part_type(getattr(x, "dtype", np.complex128))


def as_complex(x: Any, part: Any = None) -> ComplexTracer:
    """``x`` as a traced complex value whose parts have the dtype ``part``, by default their own."""
    if isinstance(x, (list, tuple)):
        x = np.array(x, like=_first_traced(x)) if _first_traced(x) is not None else np.asarray(x)
    if isinstance(x, ComplexTracer):
        return x if part is None else ComplexTracer(*(_cast(half, part) for half in x.parts))
    if isinstance(x, Part):
        real = _cast(x, part or np.result_type(x.dtype, np.float32))
        return ComplexTracer(real, np.zeros_like(real))
    if trees.is_complex(x):
        check_plain(x)
        dtype = part or part_type(np.asarray(x).dtype)
        return ComplexTracer(*(_constant(x, half, dtype) for half in (x.real, x.imag)))
    real = lift(x)
    real = astype(real, part or np.result_type(real.dtype, np.float32))
    zeros = current().builder.full(real.type, 0)
    return ComplexTracer(real, fresh(zeros, scalar=real.scalar))


def _cast(x: Any, dtype: Any) -> Any:
    if isinstance(x, Part):
        return x if x.dtype == dtype else x.astype(dtype)
    return astype(x, dtype)


def _constant(whole: Any, half: Any, dtype: Any) -> Tracer:
    array = np.array(half, dtype)
    return lift(array if isinstance(whole, np.ndarray) else array[()])


def together(*xs: ComplexTracer) -> list[ComplexTracer]:
    """Complex values in their common shape; parts of arrays find it as they are combined."""
    if any(isinstance(part, Part) for x in xs for part in x.parts):
        return list(xs)
    real, imag = (broadcast(*(x.parts[k] for x in xs)) for k in (0, 1))
    return [ComplexTracer(a, b) for a, b in zip(real, imag, strict=True)]


def discarded(x: Any) -> Any:
    """The real part of what is written into a real array, with NumPy's warning."""
    if not holds_complex(x):
        return x
    if type(x) is complex:
        raise TypeError(at_place("float() argument must be a string or a real number, not complex"))
    message = "Casting complex values to real discards the imaginary part"
    place = user_place()
    warnings.warn_explicit(message, np.exceptions.ComplexWarning, place.file, place.line)
    return settled(halves(x)[0])
