"""What calls would give that are left out of a recording: part of other text and calls that are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ckad.errors import ConcreteValueError, SkippedCallWarning
from ckad.place import Source

#: By what traced values are told from others.
_OF_TRACED = ("parts", "scalar", "storage")


class ShownText:
    """Part of the class of texts whose numbers are not known: they decide nothing."""

    __slots__ = ()


class Skipped:
    """What one such call would give."""

    __slots__ = ("name", "why")
    name: str
    why: str | None  # what is said if it is needed, in place of that a call is left out

    def __init__(self, name: str, why: str | None = None) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "why", why)

    def __getattr__(self, name: str) -> Skipped:
        if name.startswith("__") or name in _OF_TRACED:
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None: ...

    def __setitem__(self, index: Any, value: Any) -> None: ...

    def __getitem__(self, index: Any) -> Skipped:
        return self

    def __call__(self, *args: Any, **options: Any) -> Skipped:
        return self

    def __enter__(self) -> Skipped:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"<{self.name}, left out>"

    def _refuse(self, *_: Any, **__: Any) -> Any:
        left_out = (
            f"the program computes with what {self.name} gives, and that call is left out of "
            "the recording: in a loop, or of traced values, nothing is known yet that it "
            "could show. Compute this outside of the transformed function."
        )
        raise ConcreteValueError.here(self.why or left_out)

    __bool__ = __len__ = __iter__ = __index__ = __int__ = __float__ = __array__ = _refuse
    __contains__ = __complex__ = keys = _refuse

    def _absorb(self, *_: Any) -> Any:
        return self

    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _absorb
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _absorb
    __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = __round__ = _absorb
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _absorb
    __hash__ = object.__hash__


def warn_of_skipped(names: Mapping[str, Source], why: str) -> None:
    """One warning at the first of the calls that are left out, which names them all."""
    listed = ", ".join(f"{name} ({place})" for name, place in names.items())
    first = next(iter(names.values()))
    warnings.warn_explicit(
        f"{why}: {listed}. Call them with what the transformed function returns.",
        SkippedCallWarning,
        first.file,
        first.line,
    )
