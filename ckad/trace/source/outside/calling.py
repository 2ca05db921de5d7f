"""Python's functions that call a function they are given: ``reduce`` and those of ``itertools``.

`calls` and `judge` ask which of them do, and which hand their items to that function alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ckad.trace.source.libraries import is_in, is_library
from ckad.trace.source.outside.kinds import CONTAINERS, is_ours

#: What calls a function that it is given, and where that stands; the items stand beside it.
CALLING: dict[Any, int] = {
    functools.reduce: 0,
    itertools.accumulate: 1,
    itertools.starmap: 0,
    itertools.takewhile: 0,
    itertools.dropwhile: 0,
    itertools.filterfalse: 0,
    itertools.groupby: 1,
}
_TRUTH = ("__bool__", "__len__")
#: What Python asks of what the function gives.
ASKED: dict[Any, tuple[str, ...]] = {
    itertools.takewhile: _TRUTH,
    itertools.dropwhile: _TRUTH,
    itertools.filterfalse: _TRUTH,
    itertools.groupby: ("__eq__", *_TRUTH),
}


def calls(callee: Any) -> bool:
    return is_in(callee, tuple(CALLING))


def hands_on(callee: Any, args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether the items go to a function that is run from source, and Python's own class says which
    they are."""
    at = CALLING[callee]
    named = options.get("func", options.get("key"))
    function = args[at] if len(args) > at else named
    items = args[1 - at] if len(args) > 1 - at else options.get("iterable")
    if not _is_from_source(function) or not is_library(type(items).__module__):
        return False
    if callee is not itertools.starmap or type(items) not in (*CONTAINERS, tuple):
        return True
    return all(is_library(type(x).__module__) for x in items or ())


def _is_from_source(function: Any) -> bool:
    """Whether it is what stands for a function where Python calls it."""
    module = getattr(function, "__module__", None) or ""
    return is_ours(type(function)) or module.startswith("ckad.trace.")
