"""Calls of libraries, which Python runs: which of them depend on their arguments alone."""

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import functools
import importlib
import inspect
import io
import itertools
import os
import sys
import types
import warnings
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

from ckad.patterns import is_sparse, is_superlu
from ckad.trace.constants import computes
from ckad.trace.dispatch import Traced
from ckad.trace.source.libraries import is_in, is_library, scalar_function
from ckad.trace.source.outside.calling import ASKED, calls, hands_on
from ckad.trace.source.outside.clock import TimeText, give_up
from ckad.trace.source.outside.draws import draws
from ckad.trace.source.outside.files import are_of_files
from ckad.trace.source.outside.guard import ABSENT, BUILTIN, IMMUTABLE
from ckad.trace.source.outside.kinds import (
    CONTAINERS,
    DISPLAYS,
    INERT,
    METHODS,
    attributes,
    is_distribution,
    is_member,
    is_operator,
    is_ours,
    is_written,
    top_of,
    users,
)
from ckad.trace.source.outside.purity import is_pure
from ckad.trace.source.outside.python import OF_CODE, described, run_by_python
from ckad.trace.source.outside.standard import is_computed, is_standard, reads_commands
from ckad.trace.source.outside.watch import Watch
from ckad.trace.source.outside.watch import watch as watch_now

#: Modules of which every function computes from its arguments alone.
_MODULES = frozenset(
    {"math", "cmath", "operator", "_operator", "itertools", "functools"}
    | {"numba.np.ufunc.parallel"}  # how many threads there are
)
#: Functions of NumPy that read or change more than their arguments.
_REACHING = frozenset(
    """errstate fromfile genfromtxt get_printoptions getbufsize geterr geterrcall load loadtxt
    memmap open_memmap save savetxt savez savez_compressed set_printoptions setbufsize seterr
    seterrcall""".split()
)
#: Classes whose objects hold what they are given.
_CLASSES = frozenset(
    {
        *(set, frozenset, bytes, bytearray, str, slice, object, staticmethod, classmethod),
        *(io.StringIO, io.BytesIO, property, SimpleNamespace, np.errstate, np.ndarray),
        *(partial, types.MethodType, super),
        *(collections.deque, collections.defaultdict, collections.OrderedDict),
        *(collections.Counter, contextlib.nullcontext, contextlib.suppress),
        contextlib._GeneratorContextManager,
    }
)
_OTHERS = frozenset(
    {
        *(iter, next, repr, ascii, chr, ord, bin, hex, hash, format, issubclass, delattr, setattr),
        *(id, os.cpu_count, warnings.warn, warnings.simplefilter, warnings.filterwarnings),
        np.printoptions,  # it ends with its block
        *(hasattr, getattr, dataclasses.fields, dataclasses.dataclass, np.geterr),
        *(collections.namedtuple, cast, contextlib.contextmanager),
    }
)
#: Methods by which a class decides how its objects are copied.
_OF_COPIES = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__")
#: What looks up names where it stands; of a text if that is all it is given.
_OF_NAMES = (globals, locals, eval, exec)
#: What looks at attributes of an object by name.
_BY_NAME = (getattr, hasattr, setattr, delattr)
#: Methods that do it.
_BY_METHODS = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")
#: What looks at an object's class, and at nothing else of it.
_OF_CLASS = (isinstance, issubclass, type, callable)
#: What imports modules by name.
_IMPORTING = (__import__, importlib.import_module)
#: What orders items.
_ORDERING = (sorted, min, max)
#: What gives an object's fields, all that they hold copied, or puts them into another.
_OF_FIELDS = (dataclasses.asdict, dataclasses.astuple, dataclasses.replace)
#: What keeps objects without looking into them.
_KEEPING = frozenset(
    {list, tuple, set, dict, zip, enumerate, reversed, iter, range, len, cast, id}
    | {property, staticmethod, classmethod, dataclasses.dataclass, functools.total_ordering}
    | {dataclasses.fields, contextlib.contextmanager}
    | {itertools.chain, itertools.chain.from_iterable, itertools.combinations}
    | {itertools.combinations_with_replacement}
    | {itertools.cycle, itertools.islice, itertools.pairwise, itertools.permutations}
    | {itertools.product, itertools.repeat, itertools.tee, itertools.zip_longest}
)
#: What heaps and sets ask of their items.
_COMPARING = ("__eq__", "__lt__", "__gt__")
_METHODS_KEEPING = frozenset(
    """append extend insert items values keys get pop popleft popitem appendleft extendleft
    update setdefault copy clear reverse __getitem__ __setitem__""".split()
)


def judge(watch: Watch, callee: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Note what the call of a library reads."""
    owner = getattr(callee, "__self__", None)
    if is_in(callee, _BY_NAME):
        return _by_name(watch, args)
    if callee is copy.copy or callee is copy.deepcopy:
        return _copied(watch, args[0])
    if is_in(callee, _OF_FIELDS) and "dict_factory" not in options:
        if callee is dataclasses.replace and not _is_plain_class(watch, type(args[0])):
            return watch.give_up(f"{type(args[0]).__qualname__}, which Python makes")
        return _copied(watch, args[0])
    if is_in(callee, _OF_NAMES) and not options and not any(type(x) is not str for x in args):
        return None  # names are noted where they are looked up
    if callee is vars and args:
        return watch.attribute(args[0], "__dict__")
    if draws(watch, callee, args, options) or are_of_files(watch, callee, args, options):
        return None
    if callee is np.apply_along_axis and any(isinstance(x, Traced) for x in args):
        return None  # its function is run from source
    if is_in(callee, _OF_CLASS):
        for x in args:
            watch.object(x) if not is_library(type(x).__module__) else None
        return None
    if isinstance(callee, type) and not is_library(callee.__module__):
        if not _is_plain_class(watch, callee):
            return watch.give_up(f"{callee.__qualname__}, which Python makes")
    elif is_in(callee, _IMPORTING) and args and type(args[0]) is str:
        watch.name(sys.modules, args[0])
    elif reads_commands(callee, args, options):
        watch.attribute(sys, "argv")
    elif is_in(callee, OF_CODE) and args:
        return described(watch, args[0])
    elif not _is_known(watch, callee, owner, args) or options.get("namespace") is not None:
        return watch.give_up(f"calls {_named(callee)}")
    keeps = _keeps(watch, callee, args, options)
    follows = is_ours(type(callee)) or (getattr(callee, "__module__", "") or "").startswith("ckad")
    for x in (*args, *options.values()):
        hand_over(watch, x, keeps, follows)
    return None


def _keeps(watch: Watch, callee: Any, args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether a function runs no method of the user's for the objects that it is given."""
    owner, name = getattr(callee, "__self__", None), getattr(callee, "__name__", "")
    if is_in(callee, _KEEPING) or is_in(callee, _CLASSES):
        return True
    if is_in(callee, _ORDERING) or (type(owner) is list and name == "sort"):
        return True  # methods that compare are run from source
    if isinstance(callee, type) and not is_library(callee.__module__):
        return True
    if type(owner) in CONTAINERS and name in _METHODS_KEEPING:
        return True
    if callee is sum or callee is map or callee is filter:
        return True  # operators and functions of the user's are run from source
    if calls(callee):
        return hands_on(callee, args, options)
    if type(owner) is set and name in ("add", "discard"):
        return _lacks(watch, args, ("__eq__", "__hash__"))
    if type(owner) is list and name in ("index", "count", "remove"):
        return _lacks(watch, [owner, *args], ("__eq__",))
    if callee is all or callee is any:
        return _lacks(watch, args[0], ("__bool__", "__len__"))
    return getattr(callee, "__module__", "") == "_heapq" and _lacks(watch, args, _COMPARING)


def _lacks(watch: Watch, x: Any, names: Sequence[str]) -> bool:
    """Whether the class of an object, and of all that a container holds, has none of these methods
    by the user: Python then tells objects by what they are."""
    kind: Any = type(x)
    if kind in CONTAINERS or kind is tuple:
        return all(_lacks(watch, part, names) for part in (x.values() if kind is dict else x))
    if is_library(kind.__module__):
        return True
    for name in names:
        watch.on_class(kind, name)
    return all(users(kind, name) is ABSENT for name in names)


def given_back(callee: Any, result: Any) -> Any:
    """What a function of the user's gives to Python's ``callee``, which may ask it by methods."""
    watched, names = watch_now(), ASKED.get(callee) if calls(callee) else None
    if watched is not None and names is not None and not _lacks(watched, result, names):
        watched.give_up(f"a {type(result).__qualname__}, which Python asks")
    return result


def _copied(watch: Watch, x: Any) -> None:
    """Note all attributes of an object that Python copies, and of those in it."""
    kind: Any = type(x)
    if kind in CONTAINERS or isinstance(x, tuple):
        for part in x.values() if isinstance(x, dict) else x:
            _copied(watch, part)
    elif not (kind in INERT or isinstance(x, Traced) or is_ours(kind) or watch.is_own(x)):
        watch.attribute(x, "__dict__")
    if is_library(kind.__module__) or isinstance(x, type):
        return None
    if any(users(kind, name) is not ABSENT for name in _OF_COPIES):
        return watch.give_up(f"a copy of a {kind.__qualname__}, which its methods make")
    for name in _OF_COPIES:
        watch.on_class(kind, name)
    for part in attributes(x).values():
        _copied(watch, part)
    return None


#: The classes of NumPy's functions.
SIMPLE: frozenset[type] = frozenset({np.ufunc, type(np.sum)})


@functools.lru_cache(maxsize=1024)
def is_simple(callee: Any) -> bool:
    """Whether a function of NumPy computes from its arguments alone, and calls no function."""
    return is_pure(callee) and callee not in (np.apply_along_axis, np.apply_over_axes)


def adopted(watch: Watch, callee: Any, result: Any) -> None:
    """Note an object that a library has made."""
    if callee is copy.copy or callee is copy.deepcopy:
        return watch.adopt_all(result)
    if top_of(type(result)) in DISPLAYS or type(result) is tuple:
        return watch.adopt_all(result) if _is_display(callee) else None
    made = isinstance(callee, type) or callee is np.random.default_rng or is_standard(result)
    made = made or callee is open or _makes_inert(callee) or _is_series(type(result))
    if isinstance(result, inspect.BoundArguments):
        watch.adopt(result.arguments)
        made = True
    if made and not isinstance(result, (type, tuple)) and type(result) not in IMMUTABLE:
        watch.adopt(result)
    return None


def _is_display(callee: Any) -> bool:
    module = getattr(callee, "__module__", None) or type(callee).__module__
    return module.partition(".")[0] in DISPLAYS


def _by_name(watch: Watch, args: Sequence[Any]) -> None:
    owner, name = args[0], args[1]
    if isinstance(owner, Traced):
        return
    if type(name) is not str:
        return watch.give_up("attributes by a name that is no text")
    watch.attribute(owner, name)
    kind: type = type(owner)
    if is_library(kind.__module__):
        return None
    found = type(users(kind, name))
    computed = found in (property, functools.cached_property) or (
        hasattr(found, "__get__") and found not in METHODS
    )
    if computed or not all(is_written(users(kind, by)) for by in _BY_METHODS):
        watch.give_up(f"{kind.__qualname__}.{name}, which Python computes")
    return None


def _is_known(watch: Watch, callee: Any, owner: Any, args: Sequence[Any]) -> bool:
    """Whether a function is known to compute from its arguments alone."""
    if is_in(callee, _CLASSES) or is_in(callee, _OTHERS):
        return True
    if owner is not None and not isinstance(owner, (ModuleType, type)):
        if is_sparse(owner) or is_superlu(owner) or is_operator(owner):
            return True
        if _is_formula(callee, owner):
            return True
        if is_computed(callee, args, watch.is_own):
            return True
        if is_ours(type(owner)):
            return True
        return type(owner) in INERT or isinstance(owner, (tuple, Traced)) or watch.is_own(owner)
    if isinstance(callee, type) and issubclass(callee, BaseException):
        return True
    if _makes_inert(callee) or (isinstance(owner, type) and _is_series(owner)):
        return True
    if is_computed(callee, args, watch.is_own):
        return True
    if watch.is_own(callee) and is_library(type(callee).__module__):
        return True  # as an interpolant that the recording has made
    try:
        if is_pure(callee):
            return True
    except TypeError:
        return watch.is_own(callee)
    if isinstance(callee, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return bool(args) and (type(args[0]) in INERT or isinstance(args[0], Traced))
    module = getattr(callee, "__module__", None) or ""
    name = getattr(callee, "__name__", "")
    if module in _MODULES or module.partition(".")[0] == "ckad" or is_ours(type(callee)):
        return True
    if type(callee) is np.vectorize:
        for part in ("pyfunc", "otypes", "excluded", "signature"):
            watch.holds(callee, part)
        if not any(isinstance(x, Traced) for x in args):
            run_by_python(watch, callee.pyfunc)
        return True
    if scalar_function(callee) is not None:  # Numba compiles what it reads as constants
        watch.holds(callee, "__wrapped__")
        return True
    if isinstance(callee, np.ufunc):  # not one that was made of a function of the user
        special: Any = sys.modules.get("scipy.special", np)
        return callee in (vars(np).get(name), vars(special).get(name))
    functions: tuple[type, ...] = (FunctionType, BuiltinFunctionType, type, *SIMPLE)
    reaches = name in _REACHING and not (args and watch.is_own(args[0]))  # as of a text
    return isinstance(callee, functions) and computes(callee) and not reaches


def _makes_inert(callee: Any) -> bool:
    """Whether it is a method of a class of Python's own, as ``dict.fromkeys``."""
    owner = getattr(callee, "__self__", None)
    return isinstance(owner, type) and (owner in INERT or owner.__module__ in _MODULES)


def _is_series(kind: type) -> bool:
    """Whether it is one of NumPy's classes of series, whose methods give new objects."""
    return kind.__module__.startswith("numpy.polynomial")


def _is_formula(callee: Any, owner: Any) -> bool:
    """Whether it is a method of one of SciPy's distributions that draws and fits nothing."""
    return is_distribution(owner) and callee.__name__ not in ("rvs", "fit", "expect")


def _is_plain_class(watch: Watch, kind: type) -> bool:
    """Whether Python makes an object of a class of the user by code that it has written itself."""
    if type(kind) not in (type, abc.ABCMeta):
        return False
    for name in ("__new__", "__init__", "__post_init__"):
        watch.on_class(kind, name)
    new, init = users(kind, "__new__"), users(kind, "__init__")
    if issubclass(kind, tuple):
        return hasattr(kind, "_fields") and init is ABSENT and is_written(new)
    if dataclasses.is_dataclass(kind):
        for made in [x.default_factory for x in dataclasses.fields(kind)]:
            if made is not dataclasses.MISSING and made not in CONTAINERS:
                run_by_python(watch, made)
        return is_written(init) and not hasattr(kind, "__post_init__")
    plain = kind.__init__ is object.__init__ or issubclass(kind, BaseException)
    return plain and new is ABSENT and init is ABSENT


def hand_over(
    watch: Watch, x: Any, keeps: bool = False, follows: bool = False, depth: int = 4
) -> None:
    """Note a value that Python is given: its methods are run by Python, too."""
    kind: Any = type(x)
    if kind is TimeText:
        give_up()
    if kind in IMMUTABLE or isinstance(x, Traced) or is_ours(kind) or is_superlu(x):
        return
    if is_sparse(x) or is_operator(x):
        return watch.enter(x) if is_sparse(x) else watch.attribute(x, "A")
    if kind in CONTAINERS or isinstance(x, (tuple, frozenset, KeysView, ValuesView, ItemsView)):
        for part in x.values() if isinstance(x, dict) else x:
            if depth:
                hand_over(watch, part, keeps, follows, depth - 1)
    elif kind is np.ndarray:
        if x.dtype.hasobject:
            hand_over(watch, list(x.flat), keeps, follows, depth)
    elif kind is FunctionType or kind is partial:
        if not (follows or keeps or is_library(x.__module__)):
            run_by_python(watch, x)
    elif kind is slice or isinstance(x, (np.dtype, ModuleType, *BUILTIN)) or is_member(kind):
        return
    elif isinstance(x, type):
        if not (keeps or follows or is_library(x.__module__)):
            watch.give_up(f"{x.__qualname__}, which Python makes")
    elif isinstance(x, Iterator) or watch.is_own(x):
        if not is_library(kind.__module__) and not keeps:
            watch.give_up(f"a {kind.__qualname__}, which Python looks into")
    elif not (keeps or (follows and kind is MethodType)):
        watch.give_up(f"a {kind.__qualname__}, which Python looks into")


def _named(callee: Any) -> str:
    module = getattr(callee, "__module__", None)
    name = getattr(callee, "__qualname__", type(callee).__name__)
    return f"{module}.{name}" if module else str(name)
