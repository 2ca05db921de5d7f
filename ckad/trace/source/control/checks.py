"""What stops a program while it runs: a ``raise`` in a body, a variable that nothing has bound.

A check is a WRAP row. It takes part in what is computed: a `Maybe` becomes its value only by its
check, and the checks of ``raise`` statements are counted by a variable of their own, which loops
and branches carry like any other and on which the function's result depends.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import CarryError, CkadError, ConcreteValueError
from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.tape.reasons import Reason
from ckad.trace.integers.affine import is_at_least, is_held, range_of
from ckad.trace.memory.context import current, mark_place
from ckad.trace.memory.storage import Storage
from ckad.trace.source import effects
from ckad.trace.source.draws import streams
from ckad.trace.source.memory.contents import Elsewhere, read
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.frame import Ledger, Maybe, ledger, open_ledger
from ckad.trace.values.apply import apply, astype, broadcast_to
from ckad.trace.values.tracer import (
    Tracer,
    decided,
    fresh,
    known,
    known_as_run,
    lift,
    localise,
    value,
)


def maybe(x: Any) -> Maybe:
    return x if type(x) is Maybe else Maybe(x, True)


#: What Python and NumPy raise where a program is stopped.
_RAISED: dict[Reason, Exception] = {
    Reason.INDEX: IndexError("list index out of range"),
    Reason.UNBOUND: UnboundLocalError("a variable is not associated with a value"),
    Reason.NONE: TypeError("unsupported operand type: 'NoneType'"),
    Reason.RANGE: OverflowError("Python integer out of bounds"),
    Reason.WEIGHTS: ValueError("probabilities do not sum to 1"),
    Reason.ZERO: ZeroDivisionError("division by zero"),
}


def stop_if(wrong: Any, reason: Reason) -> Tracer:
    """Stop the program where ``wrong``, a flag, is true; the number 0. Where it is recorded as it
    runs, a handler meets what Python raises there."""
    mark_place(current())
    raised = _RAISED.get(reason)
    if raised is not None and may_be_caught(type(raised)) and decided(wrong):
        raise type(raised)(*raised.args)
    return apply(Op.WRAP, astype(lift(wrong), np.int64), attrs=(1, int(reason)))


def certain(x: Maybe | OrNone) -> Any:
    """The value of a name that is used: the program stops where it is not bound, or None.

    An array or a container stays what it is, since other names may show it.
    """
    if isinstance(x, Maybe):
        _check_unasked()
        zero = stop_if(np.logical_not(x.bound), Reason.UNBOUND)
    else:
        zero = stop_if(x.absent, Reason.NONE)
    leaves, tree = trees.flatten(x.value)
    if len(leaves) == tree.num_nodes == 1 and getattr(leaves[0], "scalar", True):
        return _after(leaves[0], zero)
    for leaf in leaves:
        if isinstance(leaf, Tracer) and not leaf.scalar:
            _settle(localise(leaf).storage, zero)
    count_check(zero)
    return x.value


#: What is raised where a name is not bound.
_UNBOUND = (UnboundLocalError, AttributeError)


def _check_unasked() -> None:
    """Whether a handler of just that runs is not decided by what only the run has."""
    if may_be_caught(*_UNBOUND) and not may_be_caught(ArithmeticError):
        raise ConcreteValueError.here(
            "a handler waits for a name that is not bound, and whether it is depends on traced "
            "numbers. Bind it before, to None, and ask that."
        )


def _settle(storage: Storage, zero: Tracer) -> None:
    """Let what ``storage`` holds be computed after a check has passed."""
    storage.row = value(_after(Tracer(storage), zero))
    storage.cache.clear()


def _after(x: Any, zero: Tracer) -> Any:
    """``x``, computed after a check has passed."""
    if not isinstance(x, (Tracer, float, int, np.number, np.ndarray)) or isinstance(x, bool):
        return x
    x = lift(x)
    passed = broadcast_to(np.equal(zero, 0), x.shape)
    made = fresh(value(apply(Op.SELECT, passed, x, x)), scalar=x.scalar)
    made.weak, made.classes = x.weak, x.classes
    return made


_Size = Callable[[Any, Any], Any]


def _shifted(x: Any, y: Any) -> Any:
    return np.multiply(x, np.exp2(y))


_POWERS = (operator.pow, operator.ipow)
#: How large a result is, in floats.
_GROWING: dict[Callable[..., Any], _Size] = {
    **dict.fromkeys((operator.mul, operator.imul), np.multiply),
    **dict.fromkeys(_POWERS, np.power),
    **dict.fromkeys((operator.lshift, operator.ilshift), _shifted),
}
_ADDING = (operator.add, operator.iadd)
_SUBTRACTING = (operator.sub, operator.isub)
#: Floats tell no difference to the numbers that 64 bits do not hold.
_MOST = 2.0**63 - 4096


def whole(function: Callable[..., Any], x: Any, y: Any, result: Tracer) -> Tracer:
    """``result``, a Python integer: the program stops where 64 bits do not hold it."""
    if result.dtype != np.int64:
        return _finite(function, (x, y), result) if function in _POWERS else result
    if function in _GROWING:
        wrong = _is_too_large(_GROWING[function], x, y, result)
    elif function in _ADDING or function in _SUBTRACTING:
        wrong = _has_turned(x, y, result, function in _SUBTRACTING)
    else:
        return result
    return result if wrong is None else _unless(wrong, result)


def _unless(wrong: Any, result: Tracer, reason: Reason = Reason.OVERFLOW) -> Tracer:
    checked = _after(result, stop_if(wrong, reason))
    assert isinstance(checked, Tracer)
    return checked


def _is_too_large(size: _Size, x: Any, y: Any, result: Tracer) -> Any:
    if size is np.multiply and _is_small(x, y):
        return None
    found = size(astype(lift(x), np.float64), astype(lift(y), np.float64))
    return _unless_known(np.greater_equal(np.abs(found), _MOST))


def _has_turned(x: Any, y: Any, result: Tracer, subtracts: bool) -> Any:
    """Whether a sum has another sign than both its terms."""
    if is_held(result):
        return None
    first, second = np.less(x, 0), np.less(y, 0)
    alike = np.not_equal(first, second) if subtracts else np.equal(first, second)
    return _unless_known(np.logical_and(alike, np.not_equal(np.less(result, 0), first)))


def _unless_known(wrong: Any) -> Any:
    """The condition of a check; None where it is known to pass."""
    number = known(wrong)
    return None if number is not None and not number else wrong


def _is_constant(x: Any) -> bool:
    """Whether a number is the same in all calls, so that Python itself has computed with it."""
    return known(x) is not None and decided(x) is None


def negated(x: Any, result: Tracer) -> Tracer:
    """``-x`` or ``abs(x)`` of a Python integer: there is no opposite of the least of 64 bits."""
    if result.dtype != np.int64 or x.dtype != np.int64 or is_held(x):
        return result
    wrong = _unless_known(np.equal(x, -(2**63)))
    return result if wrong is None else _unless(wrong, result)


def by_builtin(callee: Callable[..., Any], args: Sequence[Any], result: Tracer) -> Tracer:
    """The same of what a builtin makes of Python numbers."""
    if result.dtype.kind == "f" and (callee is pow or callee in _OF_SOME):
        return _finite(callee, args, result)
    if result.dtype != np.int64 or _is_constant(result):
        return result
    if callee in _ROUNDING:
        return _rounded(args[0], result)
    if callee is abs:
        return negated(args[0], result)
    if callee is pow and len(args) == 2:
        return whole(operator.pow, args[0], args[1], result)
    return _summed(args[0], result) if callee is sum and len(args) == 1 else result


#: What makes integers of floats.
_ROUNDING = (int, round, math.floor, math.ceil, math.trunc)


def _rounded(x: Any, result: Tracer) -> Tracer:
    """``int(x)`` of a float: there is none of NaN, nor of infinities."""
    if not isinstance(x, Tracer) or x.dtype.kind != "f":
        return result
    wrong = _unless_known(np.logical_not(np.less(np.abs(x), 2.0**63)))
    if wrong is None:
        return result
    stop_where_caught(lambda: wrong, lambda: int(_plain(x)), ValueError, OverflowError)
    return _unless(wrong, result, Reason.WHOLE)


def _summed(xs: Any, result: Tracer) -> Tracer:
    if isinstance(xs, Tracer) or is_held(result):
        return result
    size: Any = sum(astype(lift(x), np.float64) for x in xs)
    return _unless(np.greater_equal(np.abs(size), _MOST), result)


_DIVISIONS = (
    *(operator.truediv, operator.floordiv, operator.mod),
    *(operator.itruediv, operator.ifloordiv, operator.imod),
)


def divided(function: Callable[..., Any], x: Any, y: Any, result: Tracer) -> Tracer:
    """``result`` of Python numbers: the program stops where an integer ``y`` is zero."""
    if function not in _DIVISIONS:
        return result
    stop_where_caught(
        lambda: np.equal(y, 0), lambda: function(_plain(x), _plain(y)), ZeroDivisionError
    )
    if not isinstance(y, Tracer) or y.dtype != np.int64:
        return result
    low, high = range_of(y)
    if low > 0 or high < 0 or _is_constant(y):
        return result
    checked = _after(result, stop_if(np.equal(y, 0), Reason.ZERO))
    assert isinstance(checked, Tracer)
    return checked


#: Functions of math that raise an error where NumPy's give inf or nan.
_OF_SOME = {
    *(math.sqrt, math.exp, math.exp2, math.expm1, math.log, math.log2, math.log10, math.log1p),
    *(math.sin, math.cos, math.tan, math.acos, math.asin, math.sinh, math.cosh, math.acosh),
    *(math.atanh, math.fmod, math.remainder, math.pow, math.ldexp, math.gamma, math.lgamma),
}


def _finite(function: Callable[..., Any], args: Sequence[Any], result: Tracer) -> Tracer:
    """``result`` of Python floats, which raise an error where they give no number."""

    def wrong() -> Any:
        none = np.logical_and(np.isnan(result), _all(np.logical_not(np.isnan(x)) for x in args))
        infinite = np.logical_and(np.isinf(result), _all(np.isfinite(x) for x in args))
        return np.logical_or(none, infinite)

    kinds = ValueError, OverflowError, ZeroDivisionError
    stop_where_caught(wrong, lambda: function(*map(_plain, args)), *kinds)
    return result


def _plain(x: Any) -> Any:
    """A number of the call, as Python's."""
    found = known_as_run(x) if isinstance(x, Tracer) else None
    return x if found is None else found.item()


def _all(flags: Iterable[Any]) -> Any:
    return functools.reduce(np.logical_and, flags)


def _is_small(x: Any, y: Any) -> bool:
    """Whether a product is known to be held by 64 bits."""
    most = [max(map(abs, range_of(factor))) for factor in (x, y)]
    return most[0] * most[1] < 2.0**63


# --- raise ---------------------------------------------------------------------------------------


class Stops(BaseException):
    """The side of a branch, or the body of a loop, that is being recorded ends with a ``raise``."""


def note_raise(wrong: Any = True, reason: Reason = Reason.RAISED) -> None:
    """The program stops here if ``wrong``, whatever it computes afterwards."""
    count_check(stop_if(wrong, reason))


def stop_where_caught(
    wrong: Callable[[], Any], plain: Callable[[], Any], *kinds: type[Exception]
) -> None:
    """The program stops where Python raises what one of its handlers may catch; it is raised by
    ``plain``, which asks Python, where it is recorded as it runs."""
    if not may_be_caught(*kinds) or (found := _unless_known(lift(wrong()))) is None:
        return
    if decided(found):
        plain()
    count_check(stop_if(found, Reason.CAUGHT))


def may_be_caught(*kinds: type[Exception]) -> bool:
    """Whether a handler may catch one of these exceptions here."""
    return any(issubclass(kind, ledger().caught) for kind in kinds)


def n_rows() -> int:
    return len(current().builder.rows)


def note_checks(first: int = 0) -> None:
    """The rows from ``first`` on stop the program for what a handler waits for, used or not."""
    if may_be_caught(IndexError, ValueError, TypeError):
        for k, row in enumerate(current().builder.rows[first:], first):
            if row.op is Op.WRAP:
                count_check(np.sum(fresh(k)))


@contextmanager
def not_caught_outside() -> Iterator[None]:
    """What is raised in here is met in here: what a body has done is undone at its end, and a
    handler outside of it would go on without."""
    try:
        yield
        note_checks()
    except CkadError:
        raise
    except Exception as error:
        if not may_be_caught(type(error)):
            raise
        raise CarryError(  # a loop then runs step by step
            at_place(
                f"{type(error).__name__}: {error}, in the body of a loop or on a side of a branch, "
                "which is recorded before it is known whether it is run, and a handler outside of "
                "it may catch that. Write the try statement into it, or test before."
            )
        ) from error


def note_index(index: Any, n: int) -> None:
    """The program stops here if there is none of ``n`` items at ``index``, used or not."""
    if is_at_least(index, -n) and is_at_least(n - 1, index):
        return
    outside = np.logical_or(np.less(index, -n), np.greater_equal(index, n))
    count_check(stop_if(outside, Reason.INDEX))


def count_check(zero: Tracer) -> None:
    """Let the function's result depend on a check."""
    checks = ledger()
    checks.bind(Ledger.CHECKS, np.add(checks.lookup(Ledger.CHECKS), zero))


def none_used() -> NoReturn:
    """None is used where Python needs a value: the program stops here."""
    count_check(stop_if(True, Reason.NONE))
    raise Stops


@contextmanager
def checked() -> Iterator[Callable[[Any], Any]]:
    """Gives what makes a result depend on the checks that were noted in the meantime."""
    with open_ledger() as opened:
        yield lambda result: _after_all(_filled(result), opened)
    effects.warn(opened.skipped)


def _filled(result: Any) -> Any:
    """The result with the items of lists that are kept as rows of buffers."""
    for leaf in trees.flatten(result)[0]:
        if type(leaf) is Elsewhere:
            read(leaf.owner)
    return result


def _after_all(result: Any, opened: Ledger) -> Any:
    for zero in streams.leave():
        count_check(zero)
    checks = opened.names[Ledger.CHECKS]
    is_put_back = opened.before or opened.put_back
    if not isinstance(checks, Tracer):  # a copy, since lists are put back
        return trees.map_leaves(lambda leaf: leaf, result) if is_put_back else result
    of_bools = all(isinstance(leaf, (bool, np.bool_)) for leaf in trees.flatten(result)[0])
    return trees.map_leaves(lambda x: _after(lift(x) if of_bools else x, checks), result)
