"""Primitives as machine code: a function is written that finds arrays at their addresses, calls
the user's code and puts away what it returns; Numba compiles it."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from ckad import trees
from ckad.errors import CkadError, RaisedError, TraceError
from ckad.rules.routines.memory import HEAD, SIGNATURE, doubles, integers
from ckad.tape.routines import Compiled, Failure
from ckad.tape.types import NUMPY_DTYPES, DType
from ckad.trace.arguments import Arguments
from ckad.trace.values.apply import tape_dtype
from ckad.transforms.primitives.declaration import C_TYPES, Declaration, Parameter
from ckad.transforms.primitives.forms import Leaf, Results

_RAISED, _DIFFERS = 1, 2
_raised = threading.local()


@intrinsic  # type: ignore[untyped-decorator]
def _frozen(context: Any, array: Any) -> Any:
    """The same array, which code may not write into."""

    def generate(context: Any, b: Any, signature: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, b, signature.return_type, args[0])

    return array.copy(readonly=True)(array), generate


def _code_of(x: Any) -> int:
    raise NotImplementedError


@overload(_code_of)  # type: ignore[untyped-decorator]
def _(x: Any) -> Any:
    """The tape's number of an element type."""
    try:
        code = int(tape_dtype(as_dtype(getattr(x, "dtype", x))))
    except (CkadError, NotImplementedError, TypeError):
        code = -1

    def found(x: Any) -> Any:
        return code

    return found


class _Errors(dict[int, Failure]):
    """What a status means."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __missing__(self, status: int) -> Failure:
        return RaisedError, f"{self.name} returned {status}"


def _taken(message: str) -> BaseException:
    error: BaseException = _raised.error
    del _raised.error
    return error


# --- what both have in common --------------------------------------------------------------------


def _operands(leaves: Sequence[Leaf], dtypes: Sequence[Any]) -> Iterator[str]:
    """Lines that bind ``x0`` and so on, in these element types."""
    for k, (leaf, dtype) in enumerate(zip(leaves, dtypes, strict=True)):
        cells, size = leaf.cells, max(1, leaf.type.size) if not leaf.type.shape else leaf.type.size
        view = f"{'doubles' if cells.is_float else 'integers'}(at[{k + 1}], {size})"
        name = np.dtype(dtype).name
        if leaf.kind == "array" and leaf.type.shape:
            view += f".reshape({leaf.type.shape!r})"
            yield f"x{k} = {view}" + (
                f".astype(np.{_numba_name(name)})" if dtype != cells.numpy else ""
            )
        else:
            yield (
                f"x{k} = np.{_numba_name(name)}({view}[0])"
                if name != "bool"
                else f"x{k} = {view}[0] != 0"
            )


def _numba_name(name: str) -> str:
    return "bool_" if name == "bool" else name


def _places(results: Results) -> list[tuple[str, Leaf]]:
    """Where the leaves of the packed result are, as an expression."""
    found, at = [], 0
    for leaf in results.leaves:
        view = "doubles" if results.packed.is_float else "integers"
        found.append((f"{view}(at[0] + {8 * at}, {leaf.type.size})", leaf))
        at += leaf.type.size
    return found


def _function(name: str, parameters: str, lines: Sequence[str], known: dict[str, Any]) -> Any:
    text = "\n    ".join([f"def {name}({parameters}):", *lines])
    names = {"np": np, "doubles": doubles, "integers": integers, **known}
    exec(compile(text, f"<ckad.primitive {name}>", "exec"), names)
    return names[name]


def _compiled_at(function: Any) -> tuple[Any, int]:
    """What Numba makes of a function, which has to be kept, and its address."""
    dispatcher = numba.njit(nogil=True)(function)
    dispatcher.compile(SIGNATURE)
    result = dispatcher.overloads[SIGNATURE.args]
    name = result.fndesc.llvm_cfunc_wrapper_name
    return dispatcher, int(result.library.get_pointer_to_function(name))


# --- Numba ---------------------------------------------------------------------------------------


def numba_routine(
    name: str,
    function: Any,
    arguments: Arguments,
    leaves: Sequence[Leaf],
    results: Results,
    again: Callable[..., np.ndarray],
) -> Compiled | None:
    """A dispatcher's code; None for arguments and results that Python alone can hand on.

    ``again`` runs it in Python: what the code raised is known from there.
    """
    known: dict[str, Any] = {}
    call = _call_text(arguments, known)
    returned = _returned(results)
    if call is None or returned is None:
        return None
    retry = _again(leaves, again)

    @functools.cache
    def made() -> tuple[Any, int]:
        try:
            return _numba_code(function, call, known, returned, leaves, results, retry, "_frozen(")
        except NumbaError:
            pass  # it writes into its arguments, or wants arrays that can be written
        try:
            return _numba_code(function, call, known, returned, leaves, results, retry, "np.copy(")
        except NumbaError as error:
            lines = [x for x in str(error).splitlines() if x and not x.startswith("Failed in")]
            said = " ".join(lines[:2])
            raise TraceError(
                f"Numba does not compile {name} for these arguments: {said}"
            ) from error

    errors = _Errors(name)
    errors[_RAISED] = errors[_DIFFERS] = _taken, ""
    return Compiled(lambda: made()[1], lambda attrs, *types: HEAD, errors)


def _numba_code(
    function: Any,
    call: str,
    known: dict[str, Any],
    returned: list[str],
    leaves: Sequence[Leaf],
    results: Results,
    retry: Any,
    guarded: str,
) -> tuple[Any, int]:
    lines = [f"at = integers(arrays, {len(leaves) + 1})"]
    lines += _operands(leaves, [leaf.type.numpy for leaf in leaves])
    for k, leaf in enumerate(leaves):
        if leaf.kind == "array":
            whole = f"x{k}" if leaf.type.shape else f"np.full((), x{k})"
            lines.append(f"x{k} = {guarded}{whole})")
    lines.append(f"r = function({call})")
    for k, leaf in enumerate(results.leaves):
        lines.append(f"r{k} = {returned[k]}")
        lines.append(f"if code_of(r{k}) != {int(leaf.type.dtype)}: return {_DIFFERS}")
        lines.append(f"a{k} = np.asarray(r{k})")
        lines.append(f"if a{k}.ndim != {len(leaf.type.shape)}: return {_DIFFERS}")
        for axis, n in enumerate(leaf.type.shape):
            lines.append(f"if a{k}.shape[{axis}] != {n}: return {_DIFFERS}")
    for k, (place, _) in enumerate(_places(results)):
        lines.append(f"{place}[:] = a{k}.flatten()")
    lines.append("return 0")
    globals_ = {**known, "function": function, "code_of": _code_of, "_frozen": _frozen}
    inner = numba.njit(nogil=True)(_function("inner", "arrays", lines, globals_))
    outer = _function(
        "outer",
        "words, arrays, work",
        [
            "failed = 0",
            "try:",
            "    failed = inner(arrays)",
            "except Exception:",
            f"    failed = {_RAISED}",
            "if failed != 0:",
            "    retry(arrays)",
            "return failed",
        ],
        {"inner": inner, "retry": retry},
    )
    code, address = _compiled_at(outer)
    return (code, retry), address


def _call_text(arguments: Arguments, known: dict[str, Any]) -> str | None:
    """The arguments of the call, ``x0`` and so on where they are arrays."""
    args, kwargs = arguments.treedef.children()
    if kwargs.num_leaves:
        return None
    position = {leaf: k for k, leaf in enumerate(arguments.traced)}
    numbers = iter(range(args.num_leaves))

    def text(tree: trees.Treedef) -> str:
        if tree.type is None:
            at = next(numbers)
            if at in position:
                return f"x{position[at]}"
            known[f"s{at}"] = arguments.leaves[at]
            return f"s{at}"
        if tree.type is type(None):
            return "None"
        if tree.type is not tuple:
            raise NotImplementedError
        return f"({''.join(f'{text(child)}, ' for child in tree.children())})"

    try:
        return ", ".join(map(text, args.children()))
    except NotImplementedError:
        return None


def _returned(results: Results) -> list[str] | None:
    """Expressions for the leaves of a result."""
    if results.tree.num_nodes == 1:
        return ["r"]
    flat = results.tree.type is tuple and results.tree.num_nodes == results.tree.num_leaves + 1
    if not flat or any(leaf.type.dtype is DType.I64 for leaf in results.leaves):
        return None
    return [f"r[{k}]" for k in range(results.tree.num_leaves)]


def _again(leaves: Sequence[Leaf], again: Callable[..., np.ndarray]) -> Any:
    """A function in C that runs in Python what has failed, for what it raises."""

    def run(arrays: int) -> None:
        try:
            addresses = (ctypes.c_int64 * (len(leaves) + 1)).from_address(arrays)
            given = [_array(at, leaf) for at, leaf in zip(addresses[1:], leaves, strict=True)]
            again((), *given)
            raise RaisedError("it raised in machine code, and did not when Python ran it again")
        except BaseException as error:
            _raised.error = error

    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(run)


def _array(address: int, leaf: Leaf) -> np.ndarray:
    """A copy of the array at an address."""
    data = ctypes.string_at(address, leaf.cells.nbytes) if leaf.type.size else b""
    return np.frombuffer(data, leaf.cells.numpy).reshape(leaf.type.shape).copy()


# --- C -------------------------------------------------------------------------------------------


def c_routine(
    name: str,
    address: int,
    declared: Declaration,
    lengths: dict[str, int],
    arguments: Arguments,
    leaves: Sequence[Leaf],
    results: Results,
) -> Compiled:
    """A C function's code."""

    @functools.cache
    def made() -> tuple[Any, int]:
        return _c_code(address, declared, lengths, arguments, leaves, results)

    return Compiled(lambda: made()[1], lambda attrs, *types: HEAD, _Errors(name))


def _c_code(
    address: int,
    declared: Declaration,
    lengths: dict[str, int],
    arguments: Arguments,
    leaves: Sequence[Leaf],
    results: Results,
) -> tuple[Any, int]:
    position = {leaf: k for k, leaf in enumerate(arguments.traced)}
    order = {p.name: k for k, p in enumerate(declared.arguments)}
    dtypes = [np.dtype(np.float64)] * len(leaves)
    for p in declared.arguments:
        if order[p.name] in position:
            k = position[order[p.name]]
            dtypes[k] = np.dtype(C_TYPES[p.type][1] or np.int64)
    lines = [f"at = integers(arrays, {len(leaves) + 1})", *_operands(leaves, dtypes)]
    texts, after = [], []
    outputs = iter(_places(results))
    for p in declared.parameters:
        if p.is_result:
            place, leaf = next(outputs)
            lines.append(f"o_{p.name} = {_room(place, leaf, results)}")
            texts.append(f"o_{p.name}.ctypes.data")
            if _is_apart(leaf, results):
                after.append(f"{place}[:] = o_{p.name}")
        elif p.name in lengths and not p.axes:
            texts.append(repr(lengths[p.name]))
        else:
            texts.append(_given(p, order[p.name], position, arguments))
    result = "status = " if declared.returns != "void" else ""
    lines.append(f"{result}function({', '.join(texts)})")
    if result:
        lines.append("if status != 0: return np.int32(status)")
    lines += [*after, "return np.int32(0)"]
    returns = None if declared.returns == "void" else C_TYPES[declared.returns][0]
    kinds = [ctypes.c_size_t if p.axes else C_TYPES[p.type][0] for p in declared.parameters]
    function = ctypes.CFUNCTYPE(returns, *kinds)(address)
    code, at = _compiled_at(_function("body", "words, arrays, work", lines, {"function": function}))
    return (code, function), at


def _given(p: Parameter, at: int, position: dict[int, int], arguments: Arguments) -> str:
    if at not in position:
        number = arguments.leaves[at]
        return repr(number.item() if isinstance(number, np.generic) else number)
    return f"x{position[at]}.ctypes.data" if p.axes else f"x{position[at]}"


def _is_apart(leaf: Leaf, results: Results) -> bool:
    """Whether a result is of other elements than its place."""
    return leaf.type.numpy != NUMPY_DTYPES[results.packed.dtype]


def _room(place: str, leaf: Leaf, results: Results) -> str:
    if not _is_apart(leaf, results):
        return place
    return f"np.empty({leaf.type.size}, np.{_numba_name(leaf.type.numpy.name)})"
