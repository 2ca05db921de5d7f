"""Words for arrays of any kind that NumPy has no name for.

Each is a row of the table like NumPy's functions: its cells are filled where a kind is at home.
Formulas are written in these words and in NumPy's functions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ckad.trace.axes import axis_of
from ckad.trace.dispatch import Traced, call, reject, within

#: An array of any kind: its attributes and methods are those of NumPy's.
Array = Any
#: NumPy's rules for conversions, by their names.
Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


class Deferred:
    """What becomes an array where a function is to compute with it; until then nothing is recorded.

    ``whole()`` makes it.
    """

    whole: Callable[[], Array]

    @property
    def ndim(self) -> int:
        raise NotImplementedError


class OfTraced:
    """What stands for an object of NumPy's or SciPy's that is made of traced values."""

    def _named(self) -> str:
        """What it stands for, as the user knows it."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            reject(True, f"the attribute {name!r} of {self._named()}")
        raise AttributeError(name)


def made_whole(x: Any) -> Any:
    return x.whole() if isinstance(x, Deferred) else x


def run_over(x: Any) -> Any:
    """``x`` for who takes its items: the elements of what becomes an array of one axis."""
    return x.whole() if isinstance(x, Deferred) and x.ndim == 1 else x


def is_traced(x: Any) -> bool:
    return isinstance(x, Traced)


def traced(x: Any) -> Array:
    """``x`` itself if it is traced, else as a constant."""
    return x if isinstance(x, Traced) else within(traced, (x,))


def of_list(x: Any) -> Any:
    """An array in place of a list; NumPy's functions do not look for traced values in lists."""
    return traced(x) if isinstance(x, (list, tuple)) else x


def retyped(x: Any, dtype: Any) -> Array:
    """``x`` as another element type; ``x`` itself if it is that already."""
    return within(retyped, (x, dtype))


def doubles(x: Any) -> Array:
    """``x`` as float64."""
    return retyped(traced(x), np.float64)


def reshaped(x: Any, shape: Any) -> Array:
    """A new value with the elements of ``x`` in another shape."""
    return within(reshaped, (x, shape))


def spread(x: Any, shape: Any) -> Array:
    """``x`` repeated to ``shape`` by NumPy's rule (a new value, not a view)."""
    return within(spread, (x, shape))


def promoted(*xs: Any) -> list[Array]:
    """All operands in their common dtype (Python scalars are weak, as in NumPy 2)."""
    found: list[Array] = within(promoted, xs)
    return found


def matched(*xs: Any) -> list[Array]:
    """All operands in their common shape."""
    found: list[Array] = within(matched, xs)
    return found


def own(x: Any) -> Array:
    """The present value of ``x``, apart from its memory; without axes it is a NumPy scalar."""
    return within(own, (x,))


def copied(x: Any) -> Array:
    """A C-contiguous array of its own with the elements of ``x``."""
    return within(copied, (x,))


def stored(result: Any, out: Any) -> Array:
    """``result``, or ``out`` after ``result`` was written into it; their shapes must agree."""
    return result if out is None else within(stored, (result, out))


def taken(x: Any, index: Any, axis: int) -> Array:
    """The elements at an array of indices along ``axis``."""
    return within(taken, (x, index, axis))


def wrapped(index: Any, n: int) -> Array:
    """An index in [0, n): constants are checked now, traced ones when the program runs."""
    return within(wrapped, (index, n))


def stopping(x: Any, wrong: Any, reason: str) -> Array:
    """``x``; the program stops where the flag ``wrong`` is true, for a reason of this name."""
    return within(stopping, (x, wrong, reason))


def as_spectrum(values: Array, *vectors: Array) -> tuple[Array, ...]:
    """Complex arrays, real where NumPy gives real ones: no imaginary part of ``values`` is left."""
    found: tuple[Array, ...] = within(as_spectrum, (values, *vectors))
    return found


def as_number(x: Array) -> Array:
    """``x``; without axes as a NumPy scalar, as sums and their like give it."""
    return x if x.shape else own(x)


def flat_unless(x: Array, axis: Any) -> tuple[Array, int]:
    """``x`` and its axis of a number that a user gives; all elements as one if that is None."""
    return (reshaped(x, (x.size,)), 0) if axis is None else (x, axis_of(axis, x.ndim))


def known(x: Any) -> np.ndarray | None:
    """The numbers of ``x`` if they depend on constants alone; None if they do not."""
    found: np.ndarray | None = within(known, (x,)) if isinstance(x, Traced) else np.asarray(x)
    return found


def known_as_run(x: Any) -> np.ndarray | None:
    """The same where a program is recorded as it runs: the numbers of the call, of any array."""
    found: np.ndarray | None = within(known_as_run, (x,))
    return found


def padded(x: Any, attrs: Any, shape: Any) -> Array:
    """Zeros of ``shape`` with the elements of ``x`` at starts and steps per axis."""
    return within(padded, (x, attrs, shape))


def flattened(x: Any) -> Array:
    """All elements as one axis, written through."""
    return within(flattened, (x,))


def diagonal_view(x: Any, offset: int, axis1: int, axis2: int, writable: bool) -> Array:
    """The diagonal of two axes, as the last axis."""
    return within(diagonal_view, (x, offset, axis1, axis2, writable))


def sliding(x: Any, axes: Sequence[int], lengths: Sequence[int]) -> Array:
    """Windows of so many places along axes, their places as new last axes; a view."""
    return within(sliding, (x, axes, lengths))


def batched(x: Any, y: Any) -> Array:
    """[b, m, k] @ [b, k, n] in the common dtype of ``x`` and ``y``."""
    return within(batched, (x, y))


def routine(name: str, *arrays: Any, attrs: Sequence[int] = ()) -> Array:
    """What a routine of this name computes of arrays in memory; all floats are float64."""
    return within(routine, (name, tuple(attrs), *arrays))


def in_order(x: Any) -> Array:
    """``x`` with elements that have places: those under a mask are copied one after the other."""
    return within(in_order, (x,)) if isinstance(x, Traced) else x


def complexed(x: Any, part: Any = None) -> Array:
    """``x`` as a complex array whose parts have the dtype ``part``, by default their own."""
    return within(complexed, (x, part))


def paired(real: Any, imag: Any) -> Array:
    """The complex array of two real ones, which are its own memory."""
    return within(paired, (real, imag))


def fori_loop(lower: int, upper: int, body: Any, init: Any) -> Any:
    """``ckad.fori_loop``, recorded as one row."""
    return within(fori_loop, (lower, upper, body, init))


def called(function: Any, *args: Any, **options: Any) -> Any:
    """What the user's ``function`` returns, its loops and branches read from its source."""
    return call(called, (function, *args), options)


def solution(
    method: str, product: Any, b: Any, x: Any, info: Any, preconditioner: Any, bounds: Any
) -> Array:
    """``x``, which an iteration has found, derived as the solution of ``product(x) = b``."""
    return within(solution, (method, product, b, x, info, preconditioner, bounds))


def is_static(x: Array) -> bool:
    """Whether all lengths of ``x`` are known while the program is recorded."""
    return not any(map(is_traced, x.shape))


def by_elements(function: Any, x: Any) -> Array:
    """``function``, which may not be finite everywhere, of each element of ``x``."""
    return within(by_elements, (function, x))


def safe_sqrt(x: Array) -> Array:
    """The square root, with derivative 0 where ``x`` is 0."""
    return by_elements(_safe_sqrt, x)


def _safe_sqrt(x: Array) -> Array:
    at_zero = np.equal(x, 0)
    return own(np.where(at_zero, 0, np.sqrt(np.where(at_zero, 1, x))))


def repeated(values: Any, size: int) -> Array:
    """The first ``size`` elements of ``values`` repeated without end."""
    v = reshaped(traced(values), (traced(values).size,))
    return np.tile(v, -(-size // max(v.size, 1)))[:size]
