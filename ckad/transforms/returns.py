"""Functions whose result is what they write into their arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import TraceError
from ckad.trace.memory.opened import is_tracing
from ckad.trace.memory.storage import watch
from ckad.trace.source import follow
from ckad.trace.values.tracer import Tracer
from ckad.transforms.reuse import Transformed

Function = Callable[..., Any]


def returning(fun: Function, returns: int | Sequence[int] | None) -> Function:
    """``fun``, giving the arguments at the positions ``returns`` as they are after the call.

    What ``fun`` itself returns, unless that is None, comes before them: ``(result, argument)``.
    """
    if returns is None:
        return fun
    return _Returning(fun, returns)


class _Returning(Transformed):
    def __init__(self, fun: Function, returns: int | Sequence[int]) -> None:
        self.fun = fun
        self.returns = returns if isinstance(returns, int) else tuple(returns)
        self.__doc__ = fun.__doc__

    @property
    def asked(self) -> Hashable:
        return self.returns

    def __call__(self, *args: Any, **options: Any) -> Any:
        single = isinstance(self.returns, int)
        positions = (self.returns,) if isinstance(self.returns, int) else self.returns
        written = [_argument(self, args, k) for k in positions]
        for leaf in trees.flatten(written)[0] if is_tracing() else ():
            if isinstance(leaf, Tracer):
                watch(leaf.storage)
        result = follow(self.fun)(*args, **options)
        after: Any = written[0] if single else tuple(written)
        return after if result is None else (result, after)


def _argument(function: _Returning, args: Sequence[Any], k: int) -> Any:
    if not -len(args) <= k < len(args):
        raise TraceError.here(
            f"returns={function.returns} names argument {k} of {function.__name__}, but the "
            f"call has {len(args)} positional arguments. Pass those to return by position."
        )
    return args[k]


def write_back(returns: int | Sequence[int], args: Sequence[Any], result: Any) -> Any:
    """Copy what a call gives of its arguments into the caller's arrays; the result with these."""
    positions = (returns,) if isinstance(returns, int) else tuple(returns)
    own = args[positions[0]] if isinstance(returns, int) else tuple(args[k] for k in positions)
    alone = len(trees.flatten(result)[0]) == len(trees.flatten(own)[0])
    new = result if alone else result[1]
    for target, source in zip(trees.flatten(own)[0], trees.flatten(new)[0], strict=True):
        if not isinstance(target, np.ndarray):
            raise TraceError.here(
                f"in_place writes into the caller's arrays, and an argument in "
                f"returns={returns} holds a {type(target).__name__}. Pass an array."
            )
        np.copyto(target, source)
    return own if alone else (result[0], own)
