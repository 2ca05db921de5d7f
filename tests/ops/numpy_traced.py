"""A Python function run twice: by NumPy on plain arrays, and recorded and evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from ckad import trees
from ckad.errors import DtypeError, TraceError
from ckad.rules.evaluate import evaluate
from ckad.trace.arguments import take_apart
from ckad.trace.memory.layout import contiguity
from ckad.trace.record import record
from ckad.trace.values.tracer import Tracer

#: relative and absolute: sums in another order; float32 results in units of their own precision
CLOSE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}
SUPPORTED = {np.dtype(t) for t in (np.float64, np.float32, np.int64, np.bool_)}

#: what a recording raises where NumPy raises
REFUSALS = (TraceError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)

Function = Callable[..., Any]


class Leaf(NamedTuple):
    """One array of a recorded result, with what the recording knew about it."""

    array: Any
    scalar: bool  # a NumPy scalar rather than an array
    contiguous: bool | None  # C-contiguous; None: not known
    inputs: frozenset[int] | None  # arguments whose memory it shares; None: not known


#: What is in the slots of a tracer, which a number does not have for a program.
_STORAGE, _SCALAR = Tracer.storage.__get__, Tracer.scalar.__get__


class Known(NamedTuple):
    scalar: bool
    contiguous: bool | None
    inputs: frozenset[int] | None


def _known(leaf: Any, storages: list[Any]) -> Known:
    if not isinstance(leaf, Tracer):
        return Known(not isinstance(leaf, np.ndarray), True, frozenset())
    storage, scalar = _STORAGE(leaf), _SCALAR(leaf)
    # whether a scalar is a new one cannot be seen
    shared = frozenset(k for k, s in enumerate(storages) if s is storage and not scalar)
    return Known(scalar, contiguity(leaf), None if storage.shared else shared)


def record_and_evaluate(fun: Function, *args: Any) -> list[Leaf]:
    """The results of ``fun`` on tracers; the leaves of nested results in order."""
    seen: list[Known] = []

    def watched(*tracers: Any) -> Any:
        storages = [getattr(t, "storage", None) for t in tracers]
        out = fun(*tracers)
        seen[:] = [_known(leaf, storages) for leaf in trees.flatten(out)[0]]  # it may run again
        return out

    arguments = take_apart(args)
    recording = record(watched, arguments)
    arrays = evaluate(recording.tape, *[np.copy(a) for a in arguments.arrays])
    return [Leaf(a, *k) for a, k in zip(arrays, seen, strict=True)]


def run_numpy(fun: Function, *args: Any) -> list[Leaf]:
    """The same of plain NumPy."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        given = fun(*own)
    leaves = [given] if trees.is_short(given) else trees.flatten(given)[0]
    return [_plain(leaf, own) for leaf in leaves]


def _plain(leaf: Any, own: list[Any]) -> Leaf:
    array = np.asarray(leaf)
    shared = frozenset(
        k for k, a in enumerate(own) if isinstance(a, np.ndarray) and np.may_share_memory(a, array)
    )
    scalar = not isinstance(leaf, np.ndarray)
    return Leaf(array.copy(), scalar, bool(array.flags.c_contiguous), shared)


def assert_same(fun: Function, *args: Any, refused: type[Exception] | None = None) -> None:
    """Recorded and plain agree in values, dtypes, shapes, and in what shares memory with what.

    ``refused``: the error in place of what NumPy gives, where there is no rule for it.
    """
    try:
        expected = run_numpy(fun, *args)
    except Exception as error:
        _assert_fails(fun, args, error)
        return
    if refused is not None:
        with pytest.raises(refused):
            record_and_evaluate(fun, *args)
        return
    if {leaf.array.dtype for leaf in expected} - SUPPORTED:
        _assert_fails(fun, args, DtypeError())
        return
    got = record_and_evaluate(fun, *args)
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        _assert_leaf(mine, theirs)


def _assert_leaf(mine: Leaf, theirs: Leaf) -> None:
    assert mine.array.dtype == theirs.array.dtype
    assert mine.array.shape == theirs.array.shape
    tolerance = CLOSE.get(theirs.array.dtype, 0.0)
    np.testing.assert_allclose(mine.array, theirs.array, rtol=tolerance, atol=tolerance)
    assert mine.scalar == theirs.scalar
    if theirs.array.ndim > 1 and theirs.array.size:
        assert mine.contiguous in (None, theirs.contiguous)
    if theirs.array.size:
        assert mine.inputs in (None, theirs.inputs)


def _assert_fails(fun: Function, args: tuple[Any, ...], error: Exception) -> None:
    """What NumPy refuses is refused; a TraceError may stand for NumPy's own exception."""
    refusal = None
    try:
        record_and_evaluate(fun, *args)
    except REFUSALS as caught:
        refusal = caught
    # ckad may give a number where it depends on numbers, or on a method that NumPy's scalars lack
    may_pass = isinstance(error, (ZeroDivisionError, AttributeError))
    assert refusal or may_pass, f"NumPy raises {error!r}, the recording does not"
