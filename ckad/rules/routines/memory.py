"""Compiled routines: Numba's machine code by address, arrays by address, LAPACK by name."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import typing
from numba.extending import get_cython_function_address, intrinsic

from ckad.kernel import KERNELS, compile_whole, identity, kernel
from ckad.machine.compiler import Compiler, Library
from ckad.machine.functions import translated
from ckad.machine.values import Unknown
from ckad.tape.routines import Compiled, Failure, Routine, define, words_of
from ckad.tape.types import Type, type_of

#: Bytes at the start of every workspace for what is handed to LAPACK by address.
HEAD = 128
#: What compiled code is told: words, arrays, workspace; and what it returns.
SIGNATURE = types.int32(types.int64, types.int64, types.int64)
#: The same of a part: also a stage, and the first and the last of its units.
PART = types.int32(*[types.int64] * 6)
_BODY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(context: Any, address: Any) -> Any:
    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return b.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@kernel
def doubles(address: int, n: int) -> np.ndarray:
    """``n`` float64 in memory."""
    array: np.ndarray = carray(_pointer(address), (n,), np.float64)
    return array


@kernel
def complexes(address: int, n: int) -> np.ndarray:
    """``n`` complex128 in memory."""
    array: np.ndarray = carray(_pointer(address), (n,), np.complex128)
    return array


@kernel
def integers(address: int, n: int) -> np.ndarray:
    """``n`` int64 in memory."""
    array: np.ndarray = carray(_pointer(address), (n,), np.int64)
    return array


@kernel
def short_integers(address: int, n: int) -> np.ndarray:
    """``n`` int32 in memory, as LAPACK counts."""
    array: np.ndarray = carray(_pointer(address), (n,), np.int32)
    return array


@kernel
def naturals(address: int, n: int) -> np.ndarray:
    """``n`` uint32 in memory: as places, none of them is looked at for its sign."""
    array: np.ndarray = carray(_pointer(address), (n,), np.uint32)
    return array


@kernel
def letters(address: int, n: int) -> np.ndarray:
    """``n`` bytes in memory."""
    array: np.ndarray = carray(_pointer(address), (n,), np.uint8)
    return array


@kernel
def copy(to: np.ndarray, x: np.ndarray) -> None:
    """``to[:] = x`` of equal lengths, which Numba compiles seconds of words about lengths for."""
    for k in range(len(to)):
        to[k] = x[k]


@kernel
def is_finite(address: int, n: int) -> bool:
    """Whether ``n`` float64 in memory are finite."""
    x, total = doubles(address, n), 0.0
    for k in range(n):
        total += 0.0 * x[k]
    return total == 0.0


def external(name: str, n_arguments: int) -> Any:
    """A function of BLAS or LAPACK on double precision; all its arguments are addresses."""
    _EXTERNAL.append(name)
    signature = typing.signature(types.void, *[types.int64] * n_arguments)
    return types.ExternalFunction(f"ckad_{name}", signature)


_EXTERNAL: list[str] = []


@functools.cache
def _register() -> None:
    """Tell the linker where SciPy's BLAS and LAPACK are; importing them takes a while."""
    for name in _EXTERNAL:
        llvm.add_symbol(f"ckad_{name}", _in_scipy(name))


def _in_scipy(name: str) -> int:
    for module in ("scipy.linalg.cython_lapack", "scipy.linalg.cython_blas"):
        try:
            return int(get_cython_function_address(module, name))
        except ValueError:
            continue
    raise ImportError(f"this version of SciPy has no {name}")


def compiled(
    function: Callable[[int, int, int], int],
    workspace: Callable[..., int],
    errors: dict[int, Failure] | None = None,
    calls_blas: bool = True,
) -> Compiled:
    """What Numba compiles of ``function(words, arrays, work)``, three addresses, at its first use.

    ``workspace(attrs, *types)`` is what it needs beyond ``HEAD``, in bytes.
    """

    @functools.cache
    def address() -> int:
        if calls_blas:
            _register()
        return machine_code(function, SIGNATURE)

    def nbytes(attrs: Sequence[int], *types: Type) -> int:
        return HEAD + int(workspace(attrs, *types))

    return Compiled(address, nbytes, errors or {}, calls_blas)


def machine_code(function: Callable[..., int], signature: Any) -> int:
    """The address of the compiled function: of what ``ckad.machine`` translates, else by Numba."""
    with suppress(Unknown):
        return _translated(function)
    dispatcher: Any = kernel(function)
    result = compile_whole(dispatcher, signature)
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


_COMPILER = Compiler(KERNELS, vectorises=True)
_kept: list[Library] = []  # code is in memory as long as its library


def _translated(function: Callable[..., int]) -> int:
    key = f"routine {identity(function)!r}".encode()
    library = _COMPILER.library(key, lambda: translated(function, "routine"))
    _kept.append(library)
    return library.address("routine")


def prepared(
    body: Compiled, attrs: Sequence[int], types: Sequence[Type], addresses: Sequence[int]
) -> Callable[[], None]:
    """A compiled routine on memory at these addresses, those of the result and of the operands.

    To call it raises what the routine fails with.
    """
    function, words, nbytes = _form(body, tuple(attrs), tuple(types))
    places = (ctypes.c_int64 * len(addresses))(*addresses)
    work = np.empty(nbytes // 8 + 1)
    at = work.ctypes.data

    def call(kept: object = work) -> None:
        if status := function(words, places, at):
            error, message = body.errors[status]
            raise error(message)

    return call


@functools.lru_cache(256)
def _form(
    body: Compiled, attrs: tuple[int, ...], types: tuple[Type, ...]
) -> tuple[Any, ctypes.Array[ctypes.c_int64], int]:
    """What calls of a routine on arrays of these types share."""
    words = words_of(attrs, types)
    told = (ctypes.c_int64 * (len(words) + 1))(*words)
    return _BODY(body.address()), told, body.workspace(attrs, *types)


def run(body: Compiled, type: Type, attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
    """The result of a compiled routine, computed from Python; raises what it fails with."""
    out, operands = np.empty(type.shape, type.numpy), [np.ascontiguousarray(x) for x in arrays]
    addresses = [x.ctypes.data for x in (out, *operands)]
    prepared(body, attrs, [type_of(x) for x in operands], addresses)()
    return out


def from_code(
    name: str,
    shape: Callable[..., Type],
    body: Compiled,
    jvp: Callable[..., int | None] | None = None,
    vjp: Callable[..., Any] | None = None,
    flops: Callable[..., float] = Routine.flops,
    **facts: Any,
) -> Routine:
    """A routine that Python, too, computes by its machine code."""

    def computed(attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
        return run(body, shape(attrs, *map(type_of, arrays)), attrs, *arrays)

    return define(Routine(name, shape, computed, jvp, vjp, flops, compiled=body, **facts))
