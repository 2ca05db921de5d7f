"""What the body of a loop or branch may call, though it is recorded once for all its steps."""

from __future__ import annotations

import builtins
import dis
import functools
import math
import types
from collections.abc import Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.purity import ATTRIBUTES, is_pure
from ckad.trace.source.frame import region
from ckad.trace.source.libraries import is_library
from ckad.trace.source.lookup import is_users
from ckad.trace.source.twins import changing, check_alone
from ckad.trace.tracer import FUNCTIONS, Tracer
from ckad.trace.where import at_place

#: Methods that change a list, dict or set.
CHANGING = frozenset(
    """append extend insert pop remove clear update setdefault popitem add discard sort reverse
    __setitem__ __delitem__ __iadd__ __imul__ __ior__ __iand__ __isub__ __ixor__
    intersection_update difference_update symmetric_difference_update""".split()
)
CONTAINERS = (list, dict, set)
#: Classes of methods of built-in classes that are not bound to an object.
_UNBOUND = (types.MethodDescriptorType, types.WrapperDescriptorType)


def check_callable(callee: Any, args: Sequence[Any]) -> None:
    """In a body, which is recorded once, refuse what depends on more than its arguments."""
    owner = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", type(callee).__name__)
    if isinstance(callee, _UNBOUND) and args:
        owner = args[0]  # list.append(items, x)
    if isinstance(owner, CONTAINERS) and name in CHANGING:
        return changing(owner)
    if _is_repeatable(callee, owner):
        return check_methods(*args)
    for x in args:
        check_alone(x)
    if region() is None:
        return None
    if isinstance(owner, np.ufunc) and (name != "at" or type(args[0]) is Tracer):
        return None  # its outer, reduce, accumulate and reduceat; at writes into its argument
    raise _refused(_named(callee))


def check_implicit(function: Any) -> None:
    """The same for a method of the user that Python calls by itself."""
    if region() is not None and type(function) is FunctionType and not _is_harmless(function):
        raise _refused(_named(function))


def check_methods(*args: Any) -> None:
    """The same for all methods of arguments that Python, or a library, may call on them."""
    for x in args if region() is not None else ():
        if isinstance(x, (list, tuple, set, frozenset)):
            check_methods(*x)
        elif isinstance(x, dict):
            check_methods(*x, *x.values())
        if is_users(x):
            for name, function in _methods(type(x)):
                if name.startswith("__") and name not in _NEVER:
                    check_implicit(function)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    for base in kind.__mro__:
        if not is_library(base.__module__):
            yield from base.__dict__.items()


#: Methods that no function of a library calls on its argument.
_NEVER = frozenset(
    """__init__ __new__ __setattr__ __delattr__ __setitem__ __delitem__ __enter__ __exit__
    __post_init__ __init_subclass__ __set_name__ __call__ __del__""".split()
)


def _refused(what: str) -> UnrecordableError:
    return UnrecordableError(
        at_place(
            f"the body of a loop or branch calls {what}, and is recorded once for all "
            "its steps: what the call gives or does at each of them is not known. Call it before "
            "the loop (draw random numbers into an array, for example)."
        )
    )


def _named(callee: Any) -> str:
    module = getattr(callee, "__module__", None)
    name = getattr(callee, "__qualname__", type(callee).__name__)
    return f"{module}.{name}" if module and module != "builtins" else str(name)


_PLAIN = (int, float, complex, bool, str, bytes, tuple, list, dict, set, frozenset, np.ndarray)
#: Builtins that do more than compute from their arguments.
_IMPURE = frozenset(
    getattr(builtins, name)
    for name in """next input open setattr delattr id vars globals locals dir eval exec
    compile __import__ breakpoint""".split()
)


def _is_repeatable(callee: Any, owner: Any) -> bool:
    try:
        if is_pure(callee) or callee in FUNCTIONS or callee is print:
            return True
    except TypeError:
        return False
    if isinstance(owner, (Tracer, np.generic, *_PLAIN)):
        return True
    if isinstance(callee, type):
        return True
    module = getattr(callee, "__module__", None) or ""
    if module.partition(".")[0] == "ckad":
        return True
    if isinstance(callee, BuiltinFunctionType):
        is_known = isinstance(owner, types.ModuleType) and owner in (builtins, math)
        return is_known and callee not in _IMPURE
    if type(callee) is FunctionType:  # its source is not known: it is called on traced values
        if is_library(module):
            return module.startswith(("numpy", "scipy", "functools"))
        return _is_harmless(callee)
    return type(callee).__module__.startswith("ckad")


# --- functions that Python runs ------------------------------------------------------------------

_STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_SUBSCR"}


def _is_harmless(function: FunctionType) -> bool:
    """Whether a function that Python runs certainly changes no more than its own variables."""
    return _changes_nothing(function, set())


def _changes_nothing(function: FunctionType, seen: set[int]) -> bool:
    if id(function) in seen:
        return True
    seen.add(id(function))
    codes = list(_nested(function.__code__))
    if any(map(_changes_state, codes)):
        return False
    names = {name for code in codes for name in _calls(code, function.__globals__)}
    known = (function.__globals__.get(name) for code in codes for name in code.co_names)
    others = (x for x in known if type(x) is FunctionType and not is_library(x.__module__))
    return names <= ATTRIBUTES and all(_changes_nothing(x, seen) for x in others)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


@functools.lru_cache(maxsize=1024)
def _changes_state(code: types.CodeType) -> bool:
    if CHANGING.intersection(code.co_names):
        return True
    return any(
        x.opname in _STORES or (x.opname == "STORE_DEREF" and x.argval in code.co_freevars)
        for x in dis.get_instructions(code)
    )


def _calls(code: types.CodeType, names: dict[str, Any]) -> Iterator[str]:
    """The methods that code calls, but for functions of modules."""
    base: Any = None
    for row in dis.get_instructions(code):
        if row.opname == "LOAD_GLOBAL":
            base = names.get(row.argval)
        elif row.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if isinstance(base, ModuleType):
                base = vars(base).get(row.argval)
            elif row.opname == "LOAD_METHOD" or (row.arg or 0) & 1:
                yield row.argval
        else:
            base = None
