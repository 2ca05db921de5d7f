"""The table of all that is called with traced values, and how a call finds its function.

A row belongs to what is called: a function or ufunc of NumPy, ``(ufunc, "reduce")``, a method of
arrays (``np.ndarray.astype``), ``operator.getitem``, a builtin, a function of ``math``. It has a
cell for each kind of value. The kind of a call is the greatest kind among what it is given.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, UnsupportedFunctionError
from ckad.patterns import is_sparse
from ckad.trace import constants
from ckad.trace.memory.context import current, mark_place
from ckad.trace.memory.layout import is_plain

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

# --- kinds -------------------------------------------------------------------------------------

#: Traced real arrays and numbers, and all that is not traced.
PLAIN = 0
#: Parts of arrays whose size is only known when the program runs: between bounds, or under a mask.
PART = 1
#: Complex numbers, traced or not, and what asks for them (``dtype=complex``).
COMPLEX = 2
#: Arrays with named fields, traced or not, and what asks for them.
FIELDS = 3
#: New arrays of a traced length: only the interpreter asks for this kind.
LENGTH = 4
#: Sparse matrices, traced or SciPy's own.
SPARSE = 5
#: Integers shorter than the tape's, and what asks for them.
SHORT = 6
_COUNT = 7
#: Kinds that a composite takes: their cells are filled wherever there is no other function.
Kinds = tuple[int, ...]
EVERY: Kinds = (PLAIN, PART, COMPLEX)
#: Also what looks at no elements.
ANY: Kinds = (*EVERY, FIELDS)
#: The same where it is no formula of complex numbers,
REAL: Kinds = (PLAIN, PART)
#: and where all lengths have to be known.
STATIC: Kinds = (PLAIN, COMPLEX)
#: What calls functions, and hands on to them whatever it is given.
CALLING: Kinds = (*STATIC, FIELDS, SPARSE, SHORT)


class Traced:
    """The base of all classes of values that are recorded."""

    __slots__ = ()
    kind: ClassVar[int] = PLAIN


#: class -> kind of all its values
_KINDS: dict[type, int] = dict.fromkeys((int, float, bool, type(None), slice, type(...)), PLAIN)


def kind_of(x: Any) -> int:
    """The kind of an argument; of a list it is the greatest in it."""
    kind = _KINDS.get(type(x))
    return _looked_into(x) if kind is None else kind


def _looked_into(x: Any) -> int:
    if isinstance(x, Traced):
        _KINDS[type(x)] = x.kind
        return x.kind
    if is_sparse(x):
        _KINDS[type(x)] = SPARSE
        return SPARSE
    if constants.asks_for_short(x):
        return SHORT
    if isinstance(x, (list, tuple)):
        return FIELDS if _names_fields(x) else max(map(kind_of, x), default=PLAIN)
    if isinstance(x, type):
        return COMPLEX if issubclass(x, (complex, np.complexfloating)) else PLAIN
    if isinstance(x, np.dtype):
        return FIELDS if x.names is not None else COMPLEX if x.kind == "c" else PLAIN
    if isinstance(x, str):
        return COMPLEX if str.startswith(x, "complex") else PLAIN  # of traced text, too
    if isinstance(x, dict):
        return FIELDS if {"names", "formats"} <= x.keys() else PLAIN
    if trees.is_record(x):
        return FIELDS
    return COMPLEX if trees.is_complex(x) else PLAIN


def _names_fields(x: Any) -> bool:
    """Whether a list is a dtype: pairs of a name and what is in that field."""
    first = x[0] if type(x) is list and x else None
    return type(first) is tuple and len(first) in (2, 3) and type(first[0]) is str


def kind_of_call(args: Sequence[Any], options: Mapping[str, Any]) -> int:
    kind = max(map(kind_of, args), default=PLAIN)
    return max(kind, *map(kind_of, options.values())) if options else kind


def holds_complex(x: Any) -> bool:
    """Whether an operand or a list holds complex numbers, or an argument names their dtype."""
    return kind_of(x) == COMPLEX


# --- the table ---------------------------------------------------------------------------------

_table: dict[Any, list[Function | None]] = {}
#: What is called by the table also where no argument is traced, since its result may be written.
_always: set[Any] = set()
#: kind -> how it makes a cell of a row that has none, or says that it does not
_derived: dict[int, Callable[[Any], Function | None]] = {}
#: kind -> what it raises where a row has no cell for it
_refused: dict[int, Callable[[str], NoReturn]] = {}
#: package -> the modules of its rows, imported when the first of its functions is met
_later: dict[str, tuple[str, ...]] = {}


def call(key: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What ``key`` gives for these arguments; UnsupportedFunctionError if no function does."""
    kind = PLAIN
    for x in args:
        found = _KINDS.get(type(x))
        if found is None:
            found = _looked_into(x)
        if found > kind:
            kind = found
    if options:
        kind = max(kind, *map(kind_of, options.values()))
    row = _table.get(key)
    function = row[kind] if row is not None else None
    if function is None:
        function = cell(key, kind)
        if function is None:
            found = NotImplemented
            if kind != PART:
                found = constants.called(key, args, options, _is_traced)
            return found if found is not NotImplemented else _refused[kind](name_of(key))
    mark_place(current())
    return function(*args, **options)


def _is_traced(x: Any) -> bool:
    return isinstance(x, Traced)


def within(key: Any, args: Sequence[Any]) -> Any:
    """The same for what is no call of the user's: the place stays."""
    kind = max(map(kind_of, args), default=PLAIN)
    function = cell(key, kind)
    return _refused[kind](name_of(key)) if function is None else function(*args)


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """The same as NumPy's protocol for ufuncs says it."""
    out = options.get("out")
    if out is not None and len(out) == 1:
        options["out"] = out[0]
    return call(ufunc if method == "__call__" else (ufunc, method), inputs, options)


def call_function(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The same as NumPy's protocol for functions says it."""
    options.pop("like", None)
    return call(function, args, options)


def cell(key: Any, kind: int = PLAIN) -> Function | None:
    """The function for one kind; None if there is none."""
    row = _row(key)
    if row is not None and row[kind] is not None:
        return row[kind]
    derive = _derived.get(kind)
    made = derive(key) if derive is not None else None
    if made is not None:
        _table.setdefault(key, [None] * _COUNT)[kind] = made
    return made


def plain(key: Any) -> Function:
    """The function of ``key`` for real tracers and what is not traced."""
    function = cell(key)
    assert function is not None, key
    return function


def knows(key: Any) -> bool:
    """Whether there is a row for a hashable ``key``."""
    return _row(key) is not None


def is_always_called(key: Any) -> bool:
    return knows(key) and key in _always  # a row may come with its package


def rows() -> list[Any]:
    """All keys that have a function of traced values."""
    return [key for key, row in _table.items() if row[PLAIN] is not None]


def _row(key: Any) -> list[Function | None] | None:
    row = _table.get(key)
    if row is None and _later:
        package = _package(key)
        for prefix in [p for p in _later if package.startswith(p)]:
            for module in _later.pop(prefix):
                importlib.import_module(module)
        row = _table.get(key)
    return row


def _package(key: Any) -> str:
    if isinstance(key, np.ufunc):
        return "" if np.__dict__.get(key.__name__) is key else "scipy.special"
    return getattr(key, "__module__", None) or ""


def name_of(key: Any) -> str:
    """What is called, as the user writes it."""
    if isinstance(key, tuple):
        return f"np.{key[0].__name__}.{key[1]}"
    if isinstance(key, np.ufunc):
        return f"{_package(key) or 'np'}.{key.__name__}"
    if getattr(key, "__objclass__", None) is np.ndarray:
        return f"the method .{key.__name__} of a traced array"
    module = getattr(key, "__module__", None) or "np"
    return f"{module}.{getattr(key, '__name__', key)}"


# --- filling it --------------------------------------------------------------------------------


def put(key: Any, function: Function, kind: int | Kinds = PLAIN) -> None:
    """Fill one cell, or those of all kinds that have no function of their own."""
    row = _table.setdefault(key, [None] * _COUNT)
    for k in kind if isinstance(kind, tuple) else (kind,):
        if k == kind or row[k] is None:
            row[k] = function


def implements(*keys: Any, kind: int | Kinds = PLAIN, contiguous: bool = False) -> Callable[[F], F]:
    """Decorator: what is called in place of ``keys`` where values of ``kind`` are given.

    ``contiguous`` says that NumPy's new arrays are C-contiguous whatever the operands' layout is.
    """

    def register(function: F) -> F:
        whole = _refusing_unknown_options(getattr(keys[0], "__name__", ""), function)
        if (kind == PLAIN or isinstance(kind, tuple)) and not contiguous:
            whole = _marking_layout(whole)
        for key in keys:
            put(key, whole, kind)
        return whole

    return register


def always(*keys: Any) -> None:
    """The interpreter calls these by the table for plain arguments too."""
    _always.update(keys)


def derives(kind: int, derive: Callable[[Any], Function | None]) -> None:
    """How cells of ``kind`` are made that nothing has filled."""
    _derived[kind] = derive


def ufunc_cell(call: Callable[..., Any]) -> Callable[[Any], Function | None]:
    """How ``call``, which takes what NumPy's protocol for ufuncs gives, makes cells of ufuncs."""

    def derive(key: Any) -> Function | None:
        ufunc, method = key if isinstance(key, tuple) else (key, "__call__")
        if not isinstance(ufunc, np.ufunc):
            return None
        return lambda *inputs, **options: call(ufunc, method, inputs, options)

    return derive


def refuses(kind: int, refuse: Callable[[str], NoReturn]) -> None:
    """What is raised where a row has no cell for ``kind``."""
    _refused[kind] = refuse


def later(package: str, *modules: str) -> None:
    """Import modules, which fill rows, when the first function of ``package`` is met."""
    _later[package] = (*_later.get(package, ()), *modules)


def _refusing_unknown_options(name: str, function: F) -> F:
    # NumPy has checked the names already, so one that is not ours is an option without a rule.
    parameters = inspect.signature(function).parameters.values()
    known = {p.name for p in parameters}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        if options:
            unknown = options.keys() - known
            reject(bool(unknown), f"np.{name} with {min(unknown, default='')}=")
        return function(*args, **options)

    return checked  # type: ignore[return-value]


def _marking_layout(function: F) -> F:
    @wraps(function)
    def marking(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        made = [x for x in tracers(result) if len(x.shape) > 1]
        operands = list(tracers((args, tuple(options.values())))) if made else []
        if not all(map(is_plain, operands)):
            own = {id(x.storage) for x in operands}
            for x in (x for x in made if id(x.storage) not in own):
                x.storage.plain = False
        return result

    return marking  # type: ignore[return-value]


# --- what functions share ----------------------------------------------------------------------


def tracers(x: Any) -> Iterator[Any]:
    """All tracers of real values in nested lists and tuples."""
    if isinstance(x, Traced):
        if x.kind == PLAIN:
            yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from tracers(item)


def reject(wrong: Any, call: str) -> None:
    """UnsupportedFunctionError naming ``call`` if ``wrong``."""
    if wrong:
        remedy = "Leave the option out, or write it" if "=" in call else "Write it"
        raise UnsupportedFunctionError.here(
            f"ckad has no rule for {call}. {remedy} with the functions and options that "
            "docs/numpy.md lists."
        )


def needs_numbers(call: str, remedy: str) -> Function:
    """A counterpart that only says why the result's shape or order cannot be recorded."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise ConcreteValueError.here(
            f"the shape of {call} depends on numbers that are not known while the program "
            f"is recorded. {remedy}"
        )

    return refuse


def given(option: Any) -> bool:
    """Whether an optional argument was passed."""
    return option is not None and option is not np._NoValue


def _refuse_plain(name: str) -> NoReturn:
    raise UnsupportedFunctionError.here(
        f"ckad has no rule for {name}. Write it with what docs/numpy.md lists, compute it "
        "outside of the differentiated function, or give its derivative by @ckad.primitive."
    )


def _refuse_complex(name: str) -> NoReturn:
    reject(True, f"{name.replace('numpy', 'np', 1)} of complex numbers")
    raise AssertionError


def _refuse_fields(name: str) -> NoReturn:
    raise UnsupportedFunctionError.here(
        f"ckad has no rule for {name.replace('numpy', 'np', 1)} of arrays with named fields. "
        "Compute with the fields, a['name'], each of which is an array."
    )


refuses(PLAIN, _refuse_plain)
refuses(COMPLEX, _refuse_complex)
refuses(FIELDS, _refuse_fields)
