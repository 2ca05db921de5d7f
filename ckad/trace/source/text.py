"""Text made of traced values: it can be shown, and decides nothing.

Its numbers are not known while the program is recorded, so a comparison with it, or a key made of
it, would silently go one way for all of them.
"""

from __future__ import annotations

from typing import Any

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace.source.skipped import Skipped
from ckad.trace.source.values import holds_tracer

#: What may be done with such text: show it, and make it part of other text.
_SHOWS = frozenset(
    """__class__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ __setattr__
    __delattr__ __dir__ __doc__ __sizeof__ __getnewargs__ __reduce__ __reduce_ex__ __getstate__
    __str__ __repr__ __format__ __add__ __mul__ __rmul__ __mod__ __rmod__ encode format join center
    ljust rjust""".split()
)


class TracedText(str):
    """Text that stands for another one, which the numbers of the run would give."""

    __slots__ = ()

    def __add__(self, other: str) -> TracedText:
        return TracedText(str.__add__(self, other))

    def __radd__(self, other: str) -> TracedText:
        return TracedText(str.__add__(other, self))


def shown(text: str, made_of: Any) -> str:
    """``text`` as what it is, if some of what it was made of is traced."""
    parts = made_of if isinstance(made_of, (list, tuple)) else (made_of,)
    traced = holds_tracer(made_of) or any(type(part) in (TracedText, Skipped) for part in parts)
    return TracedText(text) if traced else text


def _refuse(self: TracedText, *_: Any, **__: Any) -> Any:
    raise ConcreteValueError(
        at_place(
            "the program looks into text that is made of traced values, which are not known while "
            "it is recorded. Compare the numbers themselves; text of them can only be printed."
        )
    )


for _name in dir(str):
    if _name not in _SHOWS:
        setattr(TracedText, _name, _refuse)
