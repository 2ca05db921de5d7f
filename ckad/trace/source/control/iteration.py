"""What loops run over: sequences whose items are known by their number, also a traced one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ckad.errors import DtypeError
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.integers.affine import range_of
from ckad.trace.source.effects import Progress
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import needed
from ckad.trace.source.names.frame import MISSING
from ckad.trace.source.values import arrays_of, lifted, weakened
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.fields import Fields
from ckad.trace.values.part import Extents, Part
from ckad.trace.values.tracer import Tracer, known


class Items:
    """A sequence to loop over: its length, traced or not, and the item at a number.

    ``most`` is a bound of a traced length; None if none is known. ``read`` are the arrays whose
    elements the items are, as they were when they were read.
    """

    def __init__(
        self,
        length: Any,
        item: Callable[[Any], Any],
        most: int | None = None,
        read: Sequence[Any] = (),
    ) -> None:
        self.length, self.item, self.most, self.read = length, item, most, read

    def __iter__(self) -> Iterator[Any]:
        return (self.item(k) for k in builtins.range(self.__index_of_length()))

    def __index_of_length(self) -> int:
        found: int = self.length.__index__()
        return found

    def __len__(self) -> int:
        return self.__index_of_length()

    def __reversed__(self) -> Items:
        return self.backwards()

    def backwards(self) -> Items:
        last = self.length - 1
        return Items(self.length, lambda k: self.item(number(last - k)), self.most, self.read)


def number(x: Any) -> Any:
    """A number computed from a step's number, which stands for a Python int."""
    return weakened(x) if isinstance(x, Tracer) else x


def items_of(x: Any) -> Items | None:
    """``x`` as items with numbers; None for what only Python can iterate over."""
    x = needed(x)
    if isinstance(x, Items):
        return x
    if isinstance(x, Progress):
        return items_of(x.iterable)
    if isinstance(x, builtins.range):
        return Items(len(x), lambda k: number(_affine(x.start, x.step, k)))
    if isinstance(x, Fields) and x.record.is_item:
        return None
    if isinstance(x, (Tracer, ComplexTracer, Fields)):
        if not x.shape:
            raise TypeError("iteration over a 0-d array")
        return Items(len(x), lambda k: x[k], read=_read(x))
    if isinstance(x, Part) and isinstance(x.where, Extents):
        return Items(x.shape[0], lambda k: x[k], x.base.shape[0], _read(x))
    if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind in "fiubcV":
        return items_of(lifted(x))
    return None


def _read(x: Any) -> Sequence[Tracer]:
    """The arrays whose elements are read as numbers; rows of a matrix are views, not copies."""
    one = x.base if isinstance(x, Part) else x
    return arrays_of(one) if x.ndim == 1 and type(x) is not Fields else []


def _affine(start: Any, step: Any, k: Any) -> Any:
    scaled = k if _is(step, 1) else k * step
    return scaled if _is(start, 0) else scaled + start


def _is(x: Any, number: int) -> bool:
    return not isinstance(x, Tracer) and x == number


# --- builtins that make sequences ----------------------------------------------------------------


def _range(*bounds: Any) -> Any:
    plain = [_plain(b) for b in bounds]
    if not any(isinstance(b, Tracer) for b in plain):
        return builtins.range(*plain)
    start, stop, step = (0, plain[0], 1) if len(plain) == 1 else (*plain, 1)[:3]
    distance = stop - start if not _is(start, 0) else stop
    if isinstance(step, Tracer):
        count = np.maximum(np.floor_divide(distance + step - np.sign(step), step), 0)
    elif step > 0:
        count = np.maximum(distance if step == 1 else (distance + (step - 1)) // step, 0)
    else:
        count = np.maximum((distance + (step + 1)) // step, 0)
    count = number(count)
    most = range_of(count)[1]
    bound = int(most) if isfinite(most) else None
    return Items(count, lambda k: number(_affine(start, step, k)), bound)


def _plain(x: Any) -> Any:
    """A number that is known, as Python's range wants it."""
    numbers = known(x) if isinstance(x, Tracer) else None
    if isinstance(x, Tracer) and x.dtype.kind not in "iub":
        raise DtypeError(
            at_place(f"a bound of range has dtype {x.dtype}; its bounds are integers. Use int(x)")
        )
    return x if numbers is None else numbers[()].__index__()


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    found = items_of(iterable)
    if found is None:
        return builtins.enumerate(iterable, start)
    return Items(
        found.length,
        lambda k: (number(k if _is(start, 0) else k + start), found.item(k)),
        found.most,
        found.read,
    )


def _zip(*iterables: Any, strict: bool = False) -> Any:
    found = [items_of(x) for x in iterables]
    if not found or any(x is None or isinstance(x.length, Tracer) for x in found):
        return builtins.zip(*iterables, strict=strict)
    sequences: list[Items] = [x for x in found if x is not None]
    lengths = {x.length for x in sequences}
    if strict and len(lengths) > 1:
        raise ValueError("zip() arguments have different lengths")
    read = [x for found in sequences for x in found.read]
    return Items(min(lengths), lambda k: tuple(x.item(k) for x in sequences), read=read)


def _reversed(sequence: Any) -> Any:
    if isinstance(sequence, builtins.range):
        return sequence[::-1]
    found = items_of(sequence)
    return builtins.reversed(sequence) if found is None else found.backwards()


def _length(x: Any) -> Any:
    if isinstance(x, Items):
        return x.length
    found = classes.invoke(x, "__len__")
    return builtins.len(x) if found is MISSING else found


for _builtin, _function in {
    builtins.range: _range,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.reversed: _reversed,
    builtins.len: _length,
}.items():
    dispatch.put(_builtin, _function, dispatch.ANY)
    dispatch.always(_builtin)
