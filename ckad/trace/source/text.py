"""Text made of traced values: it can be shown, and decides nothing.

Its numbers are not known while the program is recorded, so a comparison with it, or a key made of
it, would silently go one way for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace.source.outside.clock import SHOWS, TimeText, shows_time
from ckad.trace.source.skipped import ShownText, Skipped
from ckad.trace.source.values import holds_tracer


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


def check_read(callee: Any, args: Sequence[Any]) -> None:
    """ConcreteValueError where a number is read from such a text."""
    if any(type(x) is TracedText for x in args) and (
        callee is ord or (isinstance(callee, type) and issubclass(callee, Number))
    ):
        _refuse(TracedText())


def _refuse(self: TracedText, *_: Any, **__: Any) -> Any:
    raise ConcreteValueError(
        at_place(
            "the program looks into text that is made of traced values, which are not known while "
            "it is recorded. Compare the numbers themselves; text of them can only be printed."
        )
    )


def _part(self: TracedText, *_: Any, **__: Any) -> TracedText:
    """A part of it, or it in other letters, is such a text again."""
    return TracedText(self)


#: Methods that give a text, whatever the text is.
_PARTS = frozenset(
    """__getitem__ capitalize casefold expandtabs lower lstrip removeprefix removesuffix replace
    rstrip strip swapcase title translate upper zfill""".split()
)
for _name in _PARTS:
    setattr(TracedText, _name, _part)
for _name in dir(str):
    if _name not in SHOWS and _name not in _PARTS:
        setattr(TracedText, _name, _refuse)
