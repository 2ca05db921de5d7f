"""Functions without a rule whose operands depend on constants alone: NumPy or SciPy is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.trees import SHORT

#: What is called for what it does to an argument, and what draws numbers.
_WRITE = frozenset("copyto fill_diagonal place put put_along_axis putmask shuffle".split())


def computes(function: Any) -> bool:
    """Whether a function of NumPy or SciPy computes from its arguments alone."""
    module = getattr(function, "__module__", None) or ""
    if isinstance(function, np.ufunc):
        return True
    known = module.partition(".")[0] in ("numpy", "scipy") and callable(function)
    name = getattr(function, "__name__", "")
    return known and "random" not in module and "stats" not in module and name not in _WRITE


def called(
    function: Any,
    args: Sequence[Any],
    options: dict[str, Any],
    is_traced: Callable[[Any], bool],
) -> Any:
    """The result for known numbers; NotImplemented where some are not known, or are shown by it.

    A view of an argument would not see what is written into that later.
    """
    if isinstance(function, tuple) or not computes(function) or options.get("out") is not None:
        return NotImplemented
    try:
        plain = [_numbers(x, is_traced) for x in args]
        named = {name: _numbers(x, is_traced) for name, x in options.items()}
    except ConcreteValueError:
        return NotImplemented
    try:
        result = function(*plain, **named)
    except ValueError as error:
        if "read-only" in str(error):
            return NotImplemented
        raise
    given = list(_arrays([*plain, *named.values()]))
    shown = any(np.may_share_memory(x, y) for x in _arrays(result) for y in given)
    return NotImplemented if shown else result


def _numbers(x: Any, is_traced: Callable[[Any], bool]) -> Any:
    """The numbers of ``x``, which cannot be written into; ConcreteValueError for unknown ones."""
    if is_traced(x):
        numbers = np.array(x)
        numbers.flags.writeable = False
        return numbers[()]
    if isinstance(x, np.ndarray):
        shown = x.view()
        shown.flags.writeable = False
        return shown
    return type(x)(_numbers(item, is_traced) for item in x) if type(x) in (list, tuple) else x


def _arrays(x: Any) -> Iterator[np.ndarray]:
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _arrays(item)


# --- integers that no tape has ---------------------------------------------------------------

_SHORT_NAMES = frozenset(
    """int8 int16 int32 uint8 uint16 uint32 i1 i2 i4 u1 u2 u4 <i2 <i4 <u2 <u4 =i2 =i4 =u2 =u4
    byte short intc ubyte ushort uintc i""".split()
)


def asks_for_short(x: Any) -> bool:
    """Whether ``x`` is a plain array of integers that no tape has, their dtype, or its name."""
    if isinstance(x, (np.ndarray, np.generic, np.dtype)):
        return getattr(x, "dtype", x) in SHORT
    if isinstance(x, type):
        return issubclass(x, np.integer) and x.__name__ in _SHORT_NAMES
    return type(x) is str and x in _SHORT_NAMES
