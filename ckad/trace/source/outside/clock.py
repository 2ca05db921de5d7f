"""What a clock shows while a program is recorded.

A program that only prints it can be recorded once for many calls. One that computes with it is
recorded at each call, and gets the number.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ckad.trace.source.outside.watch import watch

_NAMES = "monotonic perf_counter process_time thread_time time".split()
_Text = TypeVar("_Text", bound=str)
CLOCKS = frozenset(getattr(time, name + end) for name in _NAMES for end in ("", "_ns"))


def computed(x: Any) -> Any:
    """The number of a clock, with which the program computes."""
    if type(x) is not Moment:
        return x
    give_up()
    return x.number


def give_up() -> None:
    if watched := watch():
        watched.give_up("computes with a clock")


def _is_time(x: Any) -> bool:
    return type(x) in (Moment, int, float)


def _between(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator of which a time comes out, and the same with its operands exchanged."""

    def own(x: Moment, y: Any) -> Any:
        if _is_time(y):
            return Moment(function(x.number, y.number if type(y) is Moment else y))
        return NotImplemented if type(y).__name__ == "Skipped" else function(computed(x), y)

    return own, lambda x, y: own(Moment(y), x) if _is_time(y) else function(y, computed(x))


def _deciding(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *others: function(computed(x), *map(computed, others))


def _parts_of_quotient(exchanged: bool) -> Callable[..., Any]:
    return lambda x, y: (y // x, y % x) if exchanged else (x // y, x % y)


class Moment:
    """A number that a clock has shown, or the time between two of them."""

    __slots__ = ("number",)

    def __init__(self, number: float) -> None:
        self.number = number

    def __format__(self, spec: str) -> str:
        return format(self.number, spec)

    def __repr__(self) -> str:
        return repr(self.number)

    def __round__(self, digits: int | None = None) -> Moment:
        return Moment(round(self.number, digits))

    def __hash__(self) -> int:
        return hash(computed(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(computed(self), dtype)

    __add__, __radd__ = _between(operator.add)
    __sub__, __rsub__ = _between(operator.sub)
    __mul__, __rmul__ = _between(operator.mul)
    __truediv__, __rtruediv__ = _between(operator.truediv)
    __floordiv__, __rfloordiv__ = _between(operator.floordiv)
    __mod__, __rmod__ = _between(operator.mod)
    __divmod__, __rdivmod__ = _parts_of_quotient(False), _parts_of_quotient(True)
    __lt__, __le__ = _deciding(operator.lt), _deciding(operator.le)
    __gt__, __ge__ = _deciding(operator.gt), _deciding(operator.ge)
    __eq__, __ne__ = _deciding(operator.eq), _deciding(operator.ne)
    __neg__, __pos__ = _deciding(operator.neg), _deciding(operator.pos)
    __pow__, __abs__ = _deciding(operator.pow), _deciding(abs)
    __bool__, __float__ = _deciding(bool), _deciding(float)
    __int__, __index__ = _deciding(int), _deciding(operator.index)


# --- text made of it ------------------------------------------------------------------------------

#: What may be done with such text: show it, and make it part of other text.
SHOWS = frozenset(
    """__class__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ __setattr__
    __delattr__ __dir__ __doc__ __sizeof__ __getnewargs__ __reduce__ __reduce_ex__ __getstate__
    __str__ __repr__ __format__ __add__ __mul__ __rmul__ __mod__ __rmod__ encode format join center
    ljust rjust""".split()
)


def overriding(
    names: Iterable[str], method: Callable[[str], Any]
) -> Callable[[type[_Text]], type[_Text]]:
    """Class decorator: ``method(name)`` in place of each of these methods of a base class."""

    def changed(cls: type[_Text]) -> type[_Text]:
        for name in names:
            setattr(cls, name, method(name))
        return cls

    return changed


def _looked_into(name: str) -> Callable[..., Any]:
    def method(self: TimeText, *args: Any, **options: Any) -> Any:
        give_up()
        return getattr(str, name)(str.__str__(self), *args, **options)

    return method


@overriding(set(dir(str)) - SHOWS, _looked_into)
class TimeText(str):
    """Text that shows what a clock has shown."""

    __slots__ = ()

    def __add__(self, other: str) -> TimeText:
        return TimeText(str.__add__(self, other))

    def __radd__(self, other: str) -> TimeText:
        return TimeText(str.__add__(other, self))


def shows_time(x: Any) -> bool:
    """Whether a value is a time, or text of one; or one that a text is to be made of."""
    return type(x) in (Moment, TimeText) or (type(x) is tuple and any(map(shows_time, x)))


def numbers_in(x: Any) -> Any:
    """What a text is to be made of, with numbers in place of times."""
    if type(x) is tuple:
        return tuple(map(numbers_in, x))
    return x.number if type(x) is Moment else x
