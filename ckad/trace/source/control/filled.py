"""Numbers that may have to be arrays: both compute alike, but ``shape`` and ``+=`` tell them apart.

A value that is a number before a loop or on one side of a branch, and an array after it, is noted
as such. Who asks for more than its elements gets an array, or an error that names the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ckad.errors import CarryError
from ckad.trace.memory.context import Trace, current, resumed
from ckad.trace.source.choices import Choice, numbered
from ckad.trace.source.control.checks import note_raise
from ckad.trace.source.memory.aliases import live_names, shows_elsewhere
from ckad.trace.source.names.frame import Key
from ckad.trace.source.values import check_width, check_widths
from ckad.trace.values.apply import astype
from ckad.trace.values.filled import Zero, as_array, is_by_elements, is_filled
from ckad.trace.values.tracer import Tracer

#: What gives the same of a number and of an array that is filled with it,
_ALIKE = frozenset(
    {
        *(np.max, np.min, np.mean, np.median, np.any, np.all, np.allclose, np.ptp, np.std, np.var),
        *(np.nanmax, np.nanmin, np.nanmean, np.isscalar, np.may_share_memory, np.shares_memory),
    }
)
#: and what does if the number is 0.
_ALIKE_OF_ZEROS = frozenset({np.sum, np.nansum, np.prod, np.linalg.norm, np.count_nonzero})
#: The same as methods and attributes of NumPy's numbers; Python's have nothing of an array.
_METHODS = frozenset("max min mean any all std var real imag conj dtype astype round clip".split())
_NUMBERS = (Tracer, np.ndarray, np.generic, int, float)
#: What only looks at items, and raises of a number.
_OF_ITEMS = frozenset({len, sum, list, tuple, iter, enumerate, zip, reversed, sorted, any, all})
#: What numbers of float32 and of float64 have alike.
_OF_ANY_WIDTH = frozenset("shape ndim size astype item tolist".split())


def told_apart(callee: Any, args: Sequence[Any]) -> Sequence[Any]:
    """The operands of a function of NumPy or SciPy, which are arrays if it looks at more than
    single elements: else the program stops there, or it is a CarryError. A ConcreteValueError if
    they are numbers of float32 or of float64."""
    module = str(getattr(callee, "__module__", ""))
    known = isinstance(callee, np.ufunc) or module.startswith(("numpy", "scipy"))
    if known and not isinstance(callee, type):
        check_widths(args)
        if is_by_elements(callee) and all(isinstance(x, _NUMBERS) for x in args):
            check_width(callee, list(map(as_array, args)))
    if callee in _OF_ITEMS:
        return [certain_array(x) for x in args]
    one_by_one = any(map(is_filled, args))
    if not known or (one_by_one and is_by_elements(callee)):
        return args
    zeros = all(Zero in x.classes for x in args if is_filled(x))
    if one_by_one and (callee in _ALIKE or (zeros and callee in _ALIKE_OF_ZEROS)):
        return args
    return [_array(x, f"np.{callee.__name__}") for x in args]


def owner_of(owner: Any, name: str) -> Any:
    """The same of what has an attribute ``name``."""
    if not is_filled(owner):
        if name not in _OF_ANY_WIDTH:
            check_widths((owner,))
        return owner
    if np.float64 not in owner.classes:
        return owner if hasattr(float, name) else certain_array(owner)
    return owner if name in _METHODS else _array(owner, f"its attribute {name!r}")


def certain_array(x: Any) -> Any:
    """``x``, of which Python's numbers do not have what is asked for: the program stops where a
    number is known to be there."""
    return _array(x, "") if is_filled(x) and x.number is not None else x


def check_alone(x: Any, key: Key) -> None:
    """CarryError if a name is changed in place by ``+=`` whose value other names show, too: they
    see that of an array, and not that of a number."""
    if is_filled(x) and (other := next(live_names(x.storage.root, [key]), None)):
        _refuse_shared(repr(key[1]), repr(other[1]))


def check_alone_in(x: Any, owner: Any, place: Any) -> None:
    """The same of an item of ``owner``, or of an attribute."""
    if not is_filled(x) or isinstance(place, Tracer):
        return
    if type(owner) is list:
        place %= len(owner)
    if other := shows_elsewhere(x.storage.root, owner, place):
        _refuse_shared(f"{place!r} of a {type(owner).__name__}", repr(other))


def _refuse_shared(changed: str, other: str) -> NoReturn:
    raise CarryError.here(
        f"{changed} is changed in place, and is an array or a number: {other} shows "
        "the same and would change with it if it is an array alone. Which of these it is "
        "depends on a traced condition. Write x = x + y, or start with an array."
    )


def _array(x: Any, how: str) -> Any:
    if type(x) in (list, tuple):
        return type(x)([_array(item, how) for item in x])
    if not is_filled(x):
        return x
    if x.number is None:
        raise CarryError.here(
            "a value is asked for its elements or its shape that is an array or a number, and "
            f"which of these depends on a traced condition or the number of the step ({how})"
            ". Start with an array: np.zeros_like(x), or np.full(n, number)."
        )
    note_raise(x.number)
    return as_array(x)


def note_number(x: Tracer, chosen: Tracer, sides: Sequence[Any]) -> Tracer:
    """``x``, which is the first of two values if ``chosen``: when it is a number."""
    flags = [_flag(side) for side in sides]
    if is_filled(x) and all(flag is not None for flag in flags):
        x.number = astype(np.where(chosen, *flags), bool)
    return x


def no_functions(traces: Sequence[Trace], x: Any, y: Any) -> list[Any]:
    """Values of two sides: what may be an array or a function, as an array where the other is."""
    found = []
    for trace, one, other in zip(traces, (x, y), (y, x), strict=True):
        with resumed(trace):
            is_mixed = type(one) is Choice and isinstance(other, Tracer)
            found.append(numbered(one) if is_mixed else one)
    return found


def _flag(x: Any) -> Any:
    """Whether ``x`` is a number; None where that is not known here."""
    if not is_filled(x):
        return not np.shape(x)
    flag = x.number
    return flag if flag is not None and current().is_inside(flag.storage.trace) else None
