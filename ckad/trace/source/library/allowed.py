"""Which functions of libraries may be called in a body, recorded once for all its steps."""

from __future__ import annotations

import builtins
import dis
import functools
import math
import types
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace.constants import computes
from ckad.trace.source.libraries import is_library, scalar_function
from ckad.trace.source.memory.twins import changing, check_alone
from ckad.trace.source.names.frame import outside, region
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.outside.purity import is_pure
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.tracer import Tracer

#: Methods that change a list, dict or set.
_CHANGING = frozenset(
    """append extend insert pop remove clear update setdefault popitem add discard sort reverse
    __setitem__ __delitem__ intersection_update difference_update symmetric_difference_update
    popleft appendleft extendleft rotate move_to_end subtract""".split()
)


def check_callable(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> None:
    """In a body, which is recorded once, refuse what depends on more than its arguments."""
    if not callable(callee):
        name = type(callee).__name__
        if isinstance(callee, Tracer):
            name = "ndarray" if callee.ndim else callee.dtype.name
        raise TypeError(at_place(f"{name!r} object is not callable"))
    owner = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", type(callee).__name__)
    if isinstance(callee, type(str.join)) and args:
        owner = args[0]  # list.append(items, x)
    if isinstance(owner, CONTAINERS) and name in _CHANGING:
        return changing(owner)
    if _is_repeatable(callee, owner):
        return None
    for x in args:
        check_alone(x)
    if region() is None:
        return None
    given = [*args, *options.values()]
    if computes(callee) and not holds_tracer(given) and not any(map(_is_users, given)):
        return None
    if isinstance(owner, np.ufunc) and (name != "at" or type(args[0]) is Tracer):
        return None  # its outer, reduce, accumulate and reduceat; at writes into its argument
    raise UnrecordableError.here(
        f"the body of a loop or branch calls {_named(callee)}, and is recorded once for all "
        "its steps: what the call gives or does at each of them is not known. Call it before "
        "the loop (draw random numbers into an array, for example)."
    )


def _named(callee: Any) -> str:
    module = getattr(callee, "__module__", None)
    name = getattr(callee, "__qualname__", type(callee).__name__)
    return f"{module}.{name}" if module and module != "builtins" else str(name)


def _is_users(x: Any) -> bool:
    """Whether ``x`` may be a function of the user, which may change anything."""
    return callable(x) and not isinstance(x, (type, np.ufunc))


_PLAIN = (int, float, complex, bool, str, bytes, tuple, list, dict, set, frozenset, np.ndarray)


def _is_repeatable(callee: Any, owner: Any) -> bool:
    try:
        if is_pure(callee) or callee is print:
            return True
    except TypeError:
        return False
    if isinstance(owner, (Tracer, np.generic, *_PLAIN)) or isinstance(callee, type(str.join)):
        return True
    if any(owner is x for x in _PLAIN) and callee.__name__ != "__new__":  # dict.fromkeys
        return True
    if isinstance(callee, type) or scalar_function(callee) is not None:
        return True
    module = getattr(callee, "__module__", None) or ""
    if module.partition(".")[0] == "ckad":
        return True
    if isinstance(callee, BuiltinFunctionType):
        return (
            isinstance(owner, types.ModuleType)
            and owner in (builtins, math)
            and (callee not in (next, input, open, setattr, delattr, id, vars, globals, locals))
        )
    if type(callee) is FunctionType:  # its source is not known: it is called on traced values
        if is_library(module):
            return module.startswith(("numpy", "scipy", "functools"))
        for name in callee.__code__.co_names:
            outside(callee.__globals__).note_read(name)
        return not _changes_state(callee.__code__)
    return type(callee).__module__.startswith("ckad")


_STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_SUBSCR"}


@functools.lru_cache(maxsize=1024)
def _changes_state(code: types.CodeType) -> bool:
    """Whether a function that Python runs changes more than its own variables and arrays."""
    if _CHANGING.intersection(code.co_names):
        return True
    return any(
        x.opname in _STORES or (x.opname == "STORE_DEREF" and x.argval in code.co_freevars)
        for x in dis.get_instructions(code)
    )
