"""Comprehensions of which the program knows only while it runs which items they keep.

Each item is computed, or 0 in its place, beside a flag whether it is kept. What reduces the items
to a number needs no more; a list of them would have a length that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.trace.arrays import Array, called
from ckad.trace.memory.views import ReshapeView, SliceView
from ckad.trace.source.actions import run_block
from ckad.trace.source.control import branches
from ckad.trace.source.memory import listed as in_buffers
from ckad.trace.source.memory.appends import seen
from ckad.trace.source.memory.contents import stack_of
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import Frame, made
from ckad.trace.source.names.generated import Consumer, Filtered
from ckad.trace.source.values import holds_tracer, slot_of, weakened
from ckad.trace.values.tracer import Tracer, lift

Comprehension = ast.ListComp | ast.GeneratorExp
_ITEMS, _KEEP, _VALUES, _FLAGS = "the items", "is kept", "all values", "all flags"
#: Variables of the scope of a comprehension, beside its own.
NAMES = frozenset({_ITEMS, _KEEP, _VALUES, _FLAGS})


class Kept(Filtered):
    """The items that a comprehension keeps."""

    def __init__(self, values: Any, flags: Any) -> None:
        self.values, self.flags = values, flags

    def __len__(self) -> int:
        return self.count  # type: ignore[no-any-return]

    @property
    def count(self) -> Any:
        return weakened(np.sum(self.flags))

    @property
    def selected(self) -> Any:
        """As an array of which some elements count."""
        return self.values[self.flags]

    def run(self, consumer: Consumer) -> Any:
        kept = call_from_source(_each, (self.values, self.flags), {})
        return kept.run(consumer)


def _each(values: Any, flags: Any) -> Any:
    for value, is_kept in zip(values, flags, strict=True):
        if is_kept:
            yield value


def chosen(function: Any, items: Any) -> Any:
    """``filter(function, items)``."""
    return call_from_source(_chosen, (function, items), {})


def _chosen(function: Any, items: Any) -> Any:
    return (x for x in items if (x if function is None else function(x)))


def applied(function: Any, items: Any, *others: Any) -> Any:
    """``map(function, items, *others)``."""
    if others:
        return call_from_source(_applied, (function, items, *others), {})
    return call_from_source(_applied_to_each, (function, items), {})


def _applied(function: Any, *items: Any) -> Any:
    return (function(*given) for given in zip(*items, strict=False))


def _applied_to_each(function: Any, items: Any) -> Any:
    return (function(x) for x in items)


def filtered(inner: Frame, iterable: Any, node: Comprehension) -> Kept:
    """What a comprehension over one iterable keeps, whose scope is ``inner``."""
    inner.names.update({_VALUES: made([]), _FLAGS: made([]), _ITEMS: _sequence(iterable)})
    run_block(inner, [_loop(node)])
    values, flags = inner.names[_VALUES], inner.names[_FLAGS]
    return Kept(_sequence(values, 1), _sequence(flags, 1))


_loops: dict[Comprehension, ast.For] = {}


def _loop(node: Comprehension) -> ast.For:
    """The loop that appends each item, or 0, and whether it is kept."""
    if node not in _loops:
        (part,) = node.generators
        test = part.ifs[0] if len(part.ifs) == 1 else ast.BoolOp(ast.And(), part.ifs)
        flag = ast.IfExp(test, ast.Constant(True), ast.Constant(False))
        keep = ast.Assign([ast.Name(_KEEP, ast.Store())], flag)
        item = ast.IfExp(ast.Name(_KEEP, ast.Load()), node.elt, ast.Constant(0))
        steps = [keep, _append(_VALUES, item), _append(_FLAGS, ast.Name(_KEEP, ast.Load()))]
        made = ast.For(part.target, ast.Name(_ITEMS, ast.Load()), steps, [])
        for inner in ast.walk(made):
            if not hasattr(inner, "lineno"):
                ast.copy_location(inner, node)
        _loops[node] = made
    return _loops[node]


def _append(name: str, item: ast.expr) -> ast.stmt:
    appended = ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load())
    return ast.Expr(ast.Call(appended, [item], []))


def _sequence(items: Any, least: int = 5) -> Any:
    """Numbers in a list as an array, which a loop is recorded once for."""
    if stack_of(items) is not None:
        rows = in_buffers.array(items)
        return seen(items) if rows is None else rows
    if not isinstance(items, (list, tuple)) or len(items) < least:
        return items
    whole = _whole(items)
    if whole is not None:
        return whole
    slots = [slot_of(x) for x in items]
    if any(s is None or s.type.shape for s in slots):
        return items
    return np.stack([lift(x) for x in items]) if holds_tracer(items) else lift(np.array(items))


def _whole(items: Sequence[Any]) -> Tracer | None:
    """The stack whose items a list holds, all and in their order."""
    first = items[0]
    if type(first) is not Tracer or len(first.path) < 2:
        return None
    below = first.path[:-2]
    for k, x in enumerate(items):
        if type(x) is not Tracer or x.storage is not first.storage or x.path[:-2] != below:
            return None
        *_, part, shaped = x.path if len(x.path) > 1 else (None, None)
        if not isinstance(part, SliceView) or not isinstance(shaped, ReshapeView):
            return None
        if part.attrs[0] != k or part.shape != (1, *x.shape):
            return None
    whole = Tracer(first.storage, below)
    return whole if whole.shape == (len(items), *first.shape) else None


# --- what is made of them ------------------------------------------------------------------------


def _sum(kept: Kept, start: Any = 0) -> Any:
    return start + np.sum(kept.selected)


def _extremum(function: Callable[..., Any]) -> Callable[..., Any]:
    def best(kept: Kept, key: Any = None, **options: Any) -> Any:
        found = _reduced(function)
        if key is not None:
            keys = call_from_source(_keys, (kept.values, kept.flags, key), {})
            about = kept.values, keys.values, kept.flags, function is np.max

            def found(_: Kept) -> Any:
                return call_from_source(_first_best, about, {})

        if "default" not in options:
            return found(kept)
        is_any = np.greater(np.sum(kept.flags), 0)
        assert isinstance(is_any, Tracer)
        place = ("default", options["default"] is None)
        return branches.either(is_any, lambda: found(kept), lambda: options["default"], place)

    return best


def _keys(values: Any, flags: Any, key: Any) -> Any:
    return [key(values[k]) for k in range(len(values)) if flags[k]]


def _first_best(values: Any, keys: Any, flags: Any, is_max: bool) -> Any:
    at = -1
    for k in range(len(keys)):
        if flags[k] and (at < 0 or (keys[k] > keys[at] if is_max else keys[k] < keys[at])):
            at = k
    if at < 0:
        raise ValueError("the iterable argument is empty")
    return values[at]


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(kept: Kept) -> Array:
        found: Array = function(kept.selected)
        return found

    return reduced


#: Builtins that need to know of the items no more than which are kept.
BUILTINS: dict[Any, Callable[..., Any]] = {
    len: lambda kept: kept.count,
    sum: _sum,
    max: _extremum(np.max),
    min: _extremum(np.min),
    any: _reduced(np.any),
    all: _reduced(np.all),
    list: lambda kept: kept,
    tuple: lambda kept: kept,
}


def reduced(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a function makes of items of which it is not known which there are."""
    first, *others = args
    if isinstance(first, Kept) and not any(isinstance(x, Filtered) for x in others):
        if callee in BUILTINS:
            return BUILTINS[callee](first, *others, **options)
        if (getattr(callee, "__module__", None) or "").startswith("numpy"):
            return called(callee, first.selected, *others, **options)
    return next(x for x in args if isinstance(x, Filtered)).refuse()
