"""Text made of traced values: it can be shown, and decides nothing.

Its numbers are not known while the program is recorded, so a comparison with it, or a key made of
it, would silently go one way for all of them.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
from collections.abc import Iterator, Sequence
from functools import reduce
from inspect import unwrap
from numbers import Number
from typing import Any

from ckad.errors import ConcreteValueError
from ckad.trace.memory.context import current
from ckad.trace.memory.known import numbers_of
from ckad.trace.source.libraries import is_library
from ckad.trace.source.names import classes
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import MISSING
from ckad.trace.source.outside.clock import SHOWS, TimeText, overriding, shows_time
from ckad.trace.source.outside.kinds import is_written
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.skipped import ShownText, Skipped
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.tracer import Tracer, decided, value


def _refuse(self: TracedText, *_: Any, **__: Any) -> Any:
    raise ConcreteValueError.here(
        "the program looks into text that is made of traced values, which are not known while "
        "it is recorded. Compare the numbers themselves; text of them can only be printed."
    )


def _part(self: TracedText, *_: Any, **__: Any) -> TracedText:
    """A part of it, or it in other letters, is such a text again."""
    return TracedText(self)


#: Methods that give a text, whatever the text is.
_PARTS = frozenset(
    """__getitem__ capitalize casefold expandtabs lower lstrip removeprefix removesuffix replace
    rstrip strip swapcase title translate upper zfill""".split()
)


def _method(name: str) -> Any:
    return _part if name in _PARTS else _refuse


@overriding(set(dir(str)) - SHOWS, _method)
class TracedText(ShownText, str):
    """Text that stands for another one, which the numbers of the run would give."""

    __slots__ = ()

    def __add__(self, other: str) -> TracedText:
        return TracedText(str.__add__(self, other))

    def __radd__(self, other: str) -> TracedText:
        return TracedText(str.__add__(other, self))


def shown(text: str, made_of: Any) -> str:
    """``text`` as what it is, if some of what it was made of is traced."""
    parts = made_of if isinstance(made_of, (list, tuple)) else (made_of,)
    if holds_tracer(made_of) or any(type(part) in (TracedText, Skipped) for part in parts):
        return TracedText(text)
    return TimeText(text) if any(map(shows_time, parts)) else text


def known_now(x: Any) -> Any:
    """A number that depends on constants alone, as itself, also in a tuple, and an integer where
    the program is recorded as it runs: it may be a name or a key. All else as it is."""
    if type(x) is tuple:
        return tuple(map(known_now, x))
    if type(x) is not Tracer or not x.scalar or x.classes:
        return x
    found = numbers_of(current(), value(x))
    if found is None and x.dtype.kind == "i":
        found = decided(x)
    return x if found is None else found.item() if x.weak else found[()]


def check_read(callee: Any, args: Sequence[Any]) -> None:
    """ConcreteValueError where a number is read from such a text."""
    if any(type(x) is TracedText for x in args) and (
        callee is ord or (isinstance(callee, type) and issubclass(callee, Number))
    ):
        _refuse(TracedText())


# --- of objects ----------------------------------------------------------------------------------


def as_builtin(function: Any, args: Sequence[Any]) -> Any:
    """What ``float(x)`` or ``str(x)`` makes a number or a text of: what methods of the user's give,
    or the fields of a dataclass; MISSING where Python makes it."""
    if len(args) == 1 and function in (str, repr) and (x := known_now(args[0])) is not args[0]:
        return function(x)
    if len(args) != 1 or function not in (str, repr) or is_library(type(args[0]).__module__):
        return classes.as_builtin(function, args)
    (x,) = args
    kind: Any = type(x)
    if watched := watch():
        watched.object(x)
        watched.on_class(kind, "__repr__")
    if function is str and kind.__str__ is object.__str__:  # which asks for the other one
        function = repr
    maker = next(base for base in kind.__mro__ if "__repr__" in vars(base))
    if function is repr and _is_of_fields(maker):
        return _shown(x, maker)
    return classes.as_builtin(function, args)


#: Where the code stands that goes around the ``__repr__`` which Python writes of a dataclass.
_AROUND = (dataclasses.__file__, reprlib.__file__)


def _is_of_fields(kind: type) -> bool:
    code = getattr(kind.__repr__, "__code__", None)
    is_around = code is not None and code.co_filename in _AROUND
    return dataclasses.is_dataclass(kind) and is_around and is_written(unwrap(kind.__repr__))


def of_object(x: Any, conversion: int, spec: str) -> tuple[Any, str]:
    """The text that methods of the user make of an object, and what is to be applied to it of
    ``spec``; MISSING where Python makes it."""
    kind: Any = type(x)
    if conversion == -1 and kind.__format__ is not object.__format__:
        own = classes.by_builtin(format, (x, spec))
        return own, spec if own is MISSING else ""
    named: Any = {ord("r"): repr, ord("s"): str}.get(conversion)
    if conversion == -1 and not spec:
        named = str
    return MISSING if named is None else as_builtin(named, (x,)), spec


_being_shown: set[int] = set()


def _shown(owner: Any, kind: Any) -> str:
    """The text that Python makes of a dataclass, in which an object within itself is three dots."""
    if id(owner) in _being_shown:
        return "..."
    names = [field.name for field in dataclasses.fields(kind) if field.repr]
    _being_shown.add(id(owner))
    try:
        fields = [call_from_source(_field_shown, (owner, name), {}) for name in names]
    finally:
        _being_shown.remove(id(owner))
    return reduce(operator.add, [*_between(fields), ")"], type(owner).__qualname__ + "(")


def _between(texts: list[str]) -> Iterator[str]:
    for k, text in enumerate(texts):
        yield from (", ", text) if k else (text,)


def _field_shown(owner: Any, name: str) -> str:
    return f"{name}={getattr(owner, name)!r}"
