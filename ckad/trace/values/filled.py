"""Arrays that a number stands for, where one side of a branch or the first step has only that.

Such a name is an array that is filled with the number. Functions of single elements see no
difference: what they give is filled, too, unless another operand is as large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.trace.values.tracer import Tracer

#: What is done with each element, beside ufuncs.
_BY_ELEMENTS = frozenset(
    {np.where, np.clip, np.nan_to_num, np.round, np.isclose, np.real, np.imag}
    | {np.zeros_like, np.ones_like, np.full_like, np.copy, np.array, np.asarray}
)


class Zero(float):
    """A number that is 0: so is the sum of an array that is filled with it."""


def is_filled(x: Any) -> bool:
    """Whether ``x`` may be a number in Python, and an array here."""
    return type(x) is Tracer and x.classes is not None and bool(x.shape)


def is_undecided(x: Any) -> bool:
    """Whether an operand may be of several classes in Python, or a list of operands holds such."""
    if type(x) in (list, tuple):
        return any(map(is_undecided, x))
    return type(x) is Tracer and x.classes is not None


def is_by_elements(callee: Any) -> bool:
    """Whether a function computes each element from those of its operands."""
    if isinstance(callee, np.ufunc):
        return not callee.signature
    return any(callee is function for function in _BY_ELEMENTS)


def as_array(x: Any) -> Any:
    """``x`` where it is an array for certain."""
    return Tracer(x.storage, x.path, x.scalar, x.weak) if is_filled(x) else x


def of_function(function: Callable[..., Any], given: Sequence[Any], result: Any) -> Any:
    """``function(*given)`` of single elements, some of ``given`` filled with numbers."""
    numbers = [x for x in given if is_filled(x)]
    if type(result) is not Tracer or not result.shape or not numbers:
        return result
    others = [np.shape(x) for x in given if not is_filled(x)]
    if np.broadcast_shapes(*others) == result.shape:
        return as_array(result)  # in place of an operand it is that one
    python = all(np.float64 not in x.classes if is_filled(x) else _is_python(x) for x in given)
    if isinstance(function, np.ufunc) or function in _BY_ELEMENTS:
        python = False
    kinds = {np.ndarray, float if python else np.float64}
    if all(_is_zero(function, given, other) for other in (0.7, -1.3)):
        kinds.add(Zero)
    result.classes, result.number = frozenset(kinds), None
    if len(numbers) == 1:
        result.number = numbers[0].number
    return result


def _is_python(x: Any) -> bool:
    return bool(x.weak) if type(x) is Tracer else type(x) in (int, float, bool)


def _is_zero(function: Callable[..., Any], given: Sequence[Any], other: float) -> bool:
    """Whether a function of numbers that are 0, and of others, is 0."""
    numbers = [
        (0.0 if Zero in x.classes else other) if is_filled(x) else _sample(x, other) for x in given
    ]
    try:
        return not function(*numbers)
    except (ArithmeticError, TypeError):
        return False


def _sample(x: Any, other: float) -> Any:
    return other if isinstance(x, (Tracer, np.ndarray)) else x
