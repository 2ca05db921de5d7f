"""What loops run over: sequences whose items are known by their number, also a traced one."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import count, cycle, islice
from math import isfinite
from typing import Any

import numpy as np

from ckad.errors import DtypeError, UnrecordableError
from ckad.trace import dispatch
from ckad.trace.arrays import run_over
from ckad.trace.integers.affine import range_of
from ckad.trace.primitives.methods import Flat
from ckad.trace.primitives.part.mask import packed
from ckad.trace.primitives.short.ranges import marked
from ckad.trace.source.control.sequences import generators, picking
from ckad.trace.source.control.sequences.filtered import applied, chosen
from ckad.trace.source.control.sequences.generators import Counted, Endless, counting, cycling
from ckad.trace.source.effects import Progress
from ckad.trace.source.memory import listed
from ckad.trace.source.memory.contents import read, rows_of, stack_of
from ckad.trace.source.memory.twins import read_row
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import needed
from ckad.trace.source.names.frame import MISSING, depth_of, made, region
from ckad.trace.source.names.generated import Driven, run_over_again
from ckad.trace.source.values import arrays_of, as_bound, lifted, weakened
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.fields import Fields
from ckad.trace.values.part import Extents, Part
from ckad.trace.values.short import Short
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
        return SinglePass([self], self.length, lambda k: self.item(number(last - k)))

    def begin(self) -> None:
        """They are run over now."""

    def end(self) -> None:
        """All of them have been run over."""


class _InBuffers(Items):
    """The items of a list in buffers as it is now."""

    def __init__(self, owner: Any) -> None:
        self.owner, self.stack = owner, (stack := listed.stack_in(owner))
        length, most = listed.length(owner), stack.layout.capacity
        super().__init__(length, self._item, most)

    def _item(self, k: Any) -> Any:
        """The item that is there when its turn comes, which steps before may have put there."""
        return read_row(listed.stack_in(self.owner), k)

    def begin(self) -> None:
        if listed.stack_in(self.owner) is not self.stack:
            raise UnrecordableError.here(
                "a list has been changed between here and where an iterator (zip, enumerate, "
                "reversed) over its items was made. Make the iterator where it is run over."
            )


class SinglePass(Items):
    """What Python runs over once: ``zip``, ``enumerate``, ``reversed`` of some sequences."""

    def __init__(self, parts: Sequence[Items], length: Any, item: Callable[[Any], Any]) -> None:
        bounds = [x.most if isinstance(x.length, Tracer) else x.length for x in parts]
        most = min((bound for bound in bounds if bound is not None), default=None)
        super().__init__(length, item, most, [x for part in parts for x in part.read])
        self._parts, self._is_begun, self._is_over = parts, False, False
        made(self)

    def __iter__(self) -> Iterator[Any]:
        self.begin()
        return self._to_the_end()

    def __contains__(self, x: Any) -> bool:
        """Items are taken up to the one that is equal."""
        return any(item is x or item == x for item in self)

    def _to_the_end(self) -> Iterator[Any]:
        yield from super().__iter__()
        self.end()

    def begin(self) -> None:
        if self._is_over:
            return
        self._check_unused()
        self._is_begun = True
        for part in self._parts:
            part.begin()

    def end(self) -> None:
        """Who runs over them again finds none."""
        if not self._is_over:
            self.length, self.most, self._is_over = 0, 0, True

    def _check_unused(self) -> None:
        inner = region()
        if self._is_begun or depth_of(self) < (inner.depth if inner else 0):
            raise run_over_again("an iterator (zip, enumerate, reversed) is")

    def __next__(self) -> Any:
        """The first item; the others are left."""
        if self._is_over:
            raise StopIteration
        self._check_unused()
        if not isinstance(self.length, int):
            raise UnrecordableError.here(
                "next() of an iterator (zip, enumerate, reversed) over items whose number is "
                "only known when the program runs. Use their index: xs[0]."
            )
        if not self.length:
            raise StopIteration
        first, item = self.item(0), self.item
        self.length, self.item = self.length - 1, lambda k: item(number(k + 1))
        return first


class _Elements(Items):
    """Those of ``x.flat``, which is an iterator."""

    def __init__(self, flat: Flat) -> None:
        super().__init__(len(flat), lambda k: flat[k], read=_read(flat))
        self._flat = flat

    def begin(self) -> None:
        self._flat.all_items()


def number(x: Any) -> Any:
    """A number computed from a step's number, which stands for a Python int."""
    return weakened(x) if isinstance(x, Tracer) else x


def items_of(x: Any) -> Items | None:
    """``x`` as items with numbers; None for what only Python can iterate over."""
    x = run_over(needed(x))
    if isinstance(x, Items):
        return x
    if isinstance(x, Progress):
        return items_of(x.iterable)
    if stack_of(x) is not None:
        return _InBuffers(x)
    if rows_of(x) is not None:
        read(x)  # a plain dict again
    if isinstance(x, builtins.range):
        return Items(len(x), lambda k: number(_affine(x.start, x.step, k)))
    if isinstance(x, Fields) and x.record.is_item:
        return None
    if isinstance(x, Short) and isinstance(x.numbers, Part):
        of_part = items_of(x.numbers)
        return of_part and _marked(of_part, x.dtype)
    if type(x) is Flat:
        return _Elements(x)
    if isinstance(x, (Tracer, ComplexTracer, Fields, Short)):
        if not x.shape:
            raise TypeError("iteration over a 0-d array")
        return Items(len(x), lambda k: x[k], read=_read(x))
    if isinstance(x, Part) and isinstance(x.where, Extents):
        return Items(x.shape[0], lambda k: x[k], x.base.shape[0], _read(x))
    if isinstance(x, Part):
        return items_of(packed(x))  # the elements under a mask, in their order
    if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind in "fiubcV":
        return items_of(lifted(x))
    return None


def _marked(items: Items, dtype: np.dtype) -> Items:
    return Items(items.length, lambda k: marked(items.item(k), dtype), items.most, items.read)


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
    x = as_bound(x)
    numbers = known(x) if isinstance(x, Tracer) else None
    if isinstance(x, Tracer) and x.dtype.kind not in "iub":
        raise DtypeError.here(
            f"a bound of range has dtype {x.dtype}; its bounds are integers. Use int(x)"
        )
    return x if numbers is None else numbers[()].__index__()


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    if isinstance(iterable, Driven):
        return Counted(iterable, lambda item, k: (k if _is(start, 0) else k + start, item))
    found = items_of(iterable)
    if found is None:
        return builtins.enumerate(iterable, start)
    return SinglePass(
        [found],
        found.length,
        lambda k: (number(k if _is(start, 0) else k + start), found.item(k)),
    )


def _zip(*iterables: Any, strict: bool = False) -> Any:
    if any(isinstance(x, Driven) for x in iterables):
        return _zipped(iterables, strict)
    found = [items_of(x) for x in iterables]
    if any(isinstance(x, _InBuffers) or _is_open(x) for x in found):
        both = builtins.zip(iterables, found, strict=True)
        found = [of_known(x) if one is None else one for x, one in both]
    if not found or any(x is None for x in found):
        return _zip_by_python(iterables, strict)
    sequences: list[Items] = [x for x in found if x is not None]
    lengths = [x.length for x in sequences]
    if strict and any(isinstance(n, Tracer) for n in lengths):
        raise UnrecordableError.here(
            "zip(strict=True) of sequences whose lengths are only known when the program runs. "
            "Leave out strict."
        )
    if strict and len({*lengths}) > 1:
        raise ValueError("zip() arguments have different lengths")
    return SinglePass(
        sequences, reduce(_least, lengths), lambda k: tuple(x.item(k) for x in sequences)
    )


def _least(x: Any, y: Any) -> Any:
    if isinstance(x, Tracer) or isinstance(y, Tracer):
        return number(np.minimum(x, y))
    return min(x, y)


def _is_plain(x: Any) -> bool:
    return type(x) in (list, tuple) and stack_of(x) is None


#: What Python holds all items of, in either direction.
_KNOWN = (list, tuple, deque, *(type(builtins.reversed(x())) for x in (list, tuple, deque)))


def of_known(x: Any) -> Items | None:
    """A list or tuple that Python holds, beside one in buffers."""
    if type(x) not in _KNOWN:
        return None
    items = tuple(x)
    return Items(
        len(items), partial(picking.live, x, items) if type(x) is list else partial(_item_of, items)
    )


def _zip_by_python(iterables: Sequence[Any], strict: bool) -> Any:
    for x in iterables:
        read(x)  # a plain list again
    return builtins.zip(*iterables, strict=strict)


def _zipped(iterables: Sequence[Any], strict: bool) -> Any:
    """``zip`` of a generator, and of sequences."""
    counted = [x for x in iterables if isinstance(x, Endless)]
    if counted and len(counted) == sum(isinstance(x, Driven) for x in iterables):
        return _zip_with_endless(iterables, strict)
    numbered = [list(x) if _is_plain(x) else items_of(x) for x in iterables]
    at, *others = [k for k, x in enumerate(iterables) if isinstance(x, Driven)]
    sequences = [x for k, x in enumerate(numbered) if k != at]
    if strict or others or any(x is None or _is_open(x) for x in sequences):
        raise UnrecordableError.here(
            "a generator is zipped with what is neither a sequence of known length nor an "
            "array. Make a list of its items: list(...)."
        )

    def item(given: Any, k: Any) -> tuple[Any, ...]:
        return tuple(given if n == at else _item_of(x, k) for n, x in enumerate(numbered))

    lengths = [x.length if isinstance(x, Items) else len(x) for x in sequences if x is not None]
    return Counted(iterables[at], item, min(lengths, default=None), asks_first=at > 0)


def _zip_with_endless(iterables: Sequence[Any], strict: bool) -> Any:
    """``zip`` of sequences, and of ``count`` or ``cycle``, which end with the shortest."""
    found = [None if isinstance(x, Endless) else items_of(x) for x in iterables]
    sequences = [x for x in found if x is not None]
    others = sum(not isinstance(x, Endless) for x in iterables)
    several = len(sequences) < others or any(map(_is_open, sequences))
    endless = [x for x in iterables if isinstance(x, Endless)]
    if strict or not others or several or any(x.is_begun for x in endless):
        plain = [x.by_python() if isinstance(x, Endless) else x for x in iterables]
        return _zip_by_python(plain, strict)

    pairs = builtins.zip(iterables, found, strict=True)
    makers = [given.by_number() if x is None else x.item for given, x in pairs]
    return SinglePass(
        sequences, min(x.length for x in sequences), lambda k: tuple([item(k) for item in makers])
    )


def _is_open(x: Any) -> bool:
    return isinstance(x, Items) and not isinstance(x.length, int)


def _item_of(x: Any, k: Any) -> Any:
    if isinstance(x, Items):
        return x.item(k)
    return picking.item(x, k) if isinstance(k, Tracer) else x[k]


def _reversed(sequence: Any) -> Any:
    found = items_of(sequence)
    return builtins.reversed(sequence) if found is None else found.backwards()


def _length(x: Any) -> Any:
    if isinstance(x, Items):
        return x.length
    found = classes.invoke(x, "__len__")
    return builtins.len(x) if found is MISSING else found


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.reversed: _reversed,
    builtins.len: _length,
    islice: generators.sliced,
    builtins.filter: chosen,
    builtins.map: applied,
    count: counting,
    cycle: cycling,
}
for _builtin, _function in _FUNCTIONS.items():
    dispatch.put(_builtin, _function, (*dispatch.ANY, dispatch.SHORT))
    dispatch.always(_builtin)
