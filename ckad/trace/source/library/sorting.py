"""``sorted``, ``max``, ``min`` and ``list.sort`` with a key, and of lists with traced values;
``sum`` of objects of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ckad.trace.source.actions import extreme, ordered
from ckad.trace.source.libraries import is_in, is_library
from ckad.trace.source.library.written import iterations
from ckad.trace.source.memory.contents import new, read, read_deep
from ckad.trace.source.memory.twins import changing
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.values import asks_traced
from ckad.trace.values.tracer import Tracer


def orders(callee: Any, owner: Any, args: Sequence[Any], options: dict[str, Any]) -> bool:
    """Whether a call orders items by a key, or a list that holds traced values in place, or adds
    objects that have operators of their own."""
    if callee is sum:
        items = args[0] if args and type(args[0]) in (list, tuple) else ()
        given = (*items, *args[1:], *options.values())
        return any(not is_library(type(x).__module__) for x in given)
    if type(owner) is list and callee.__name__ == "sort":
        return "key" in options or asks_traced(owner)
    if not args or not is_in(callee, (sorted, max, min)):
        return False
    if options.get("key") is not None:
        return True
    items = args[0] if len(args) == 1 else args
    if type(items) not in (list, tuple):
        return callee is sorted and type(items) is Tracer
    others = any(isinstance(x, (tuple, list)) or not is_library(type(x).__module__) for x in items)
    return asks_traced(items) and (callee is sorted or others)


def in_order(
    call: Callable[..., Any], callee: Any, owner: Any, args: Sequence[Any], options: dict[str, Any]
) -> Any:
    """What it gives; ``call(key, (x,), {})`` is how the key of ``x`` is asked for."""
    items = owner if type(owner) is list else args[0] if len(args) == 1 else args
    if callee is sum:
        return _total(*args, **options)
    if type(items) is Tracer and callee is sorted and options.get("key") is None:
        return ordered(items, None, options.get("reverse", False))
    read(items)
    items, key = list(items), options.get("key")
    read_deep(tuple(items))
    if not items or (callee in (max, min) and options.keys() - {"key"}):
        return callee(items, **options)

    def by(x: Any) -> Any:
        return x if key is None else call(key, (x,), {})

    if callee in (max, min):
        return extreme(items, by, callee is max)
    found = ordered(items, by, bool(options.get("reverse", False)))
    if type(owner) is not list:
        return new(found, (items,))
    changing(owner)
    owner[:] = found
    return None


def _total(items: Sequence[Any], /, start: Any = 0) -> Any:
    for item in items:
        start = call_from_source(iterations.added, (start, item), {})
    return start
