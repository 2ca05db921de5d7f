"""The inner loops of NumPy's transforms (PocketFFT), by address: called without the GIL.

``numpy.fft`` is made of ufuncs, whose C functions have a signature and a place in the ufunc that
are part of NumPy's stable interface. What the ufuncs compute is verified before it is relied on.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import typing
from numba.extending import intrinsic

_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
#: ufuncs of ``numpy.fft`` -> the types of the loop that is wanted
_WANTED = {
    "fft": "Dd->D",
    "ifft": "Dd->D",
    "rfft_n_even": "dd->D",
    "rfft_n_odd": "dd->D",
    "irfft": "Dd->d",
}


class _Ufunc(ctypes.Structure):
    """The beginning of a PyUFuncObject."""

    _fields_ = (
        ("head", ctypes.c_byte * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


class Loop(NamedTuple):
    """``function(arrays, lengths, strides, data)``, all addresses."""

    function: int
    data: int


def _loop(ufunc: np.ufunc, signature: str) -> Loop | None:
    """The loop of ``ufunc`` for these types; None if the object is not what is expected."""
    found = _Ufunc.from_address(id(ufunc))
    expected = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (found.nin, found.nout, found.nargs, found.ntypes) != expected:
        return None
    if expected[:3] != (2, 1, 3) or signature not in ufunc.types:
        return None
    k = ufunc.types.index(signature)
    address = found.functions[k]
    data = found.data[k] if found.data else None
    return Loop(address, data or 0) if address else None


@functools.cache
def loops() -> dict[str, Loop] | None:
    """The loops by the names of their ufuncs; None if this NumPy has them otherwise."""
    try:
        module = importlib.import_module("numpy.fft._pocketfft_umath")
        found = {name: _loop(getattr(module, name), t) for name, t in _WANTED.items()}
    except (ImportError, AttributeError):
        return None
    right = {n: loop for n, loop in found.items() if loop is not None}
    return right if len(right) == len(_WANTED) and _is_verified(right) else None


def _is_verified(found: dict[str, Loop]) -> bool:
    """Whether the loops compute what NumPy's functions do."""
    z = np.arange(6.0) + 1j * np.arange(6.0)[::-1] ** 2
    for name, x, want in (
        ("fft", z, np.fft.fft(z)),
        ("ifft", z, np.fft.ifft(z) * 6),
        ("rfft_n_even", z.imag.copy(), np.fft.rfft(z.imag)),
        ("rfft_n_odd", z.imag[:5].copy(), np.fft.rfft(z.imag[:5])),
        ("irfft", z[:4], np.fft.irfft(z[:4]) * 6),
    ):
        out, factor = np.empty_like(want), np.ones(1)
        places = np.array([x.ctypes.data, factor.ctypes.data, out.ctypes.data], np.int64)
        lengths = np.array([1, len(x), len(want)], np.int64)
        strides = np.array([x.nbytes, 0, out.nbytes, x.itemsize, out.itemsize], np.int64)
        loop = found[name]
        words = (a.ctypes.data for a in (places, lengths, strides))
        _LOOP(loop.function)(*words, loop.data)
        if not np.allclose(out, want, rtol=1e-12, atol=1e-12):
            return False
    return True


def external(name: str) -> Any:
    """A loop as a function that compiled code calls; its arguments are addresses."""
    signature = typing.signature(types.void, *[types.int64] * 4)
    return types.ExternalFunction(f"ckad_{name}", signature)


def data(name: str) -> Any:
    """A function that gives what the loop of a ufunc takes as its last argument."""

    @intrinsic  # type: ignore[untyped-decorator]
    def address(context: Any) -> Any:
        def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
            symbol = f"ckad_{name}_data"
            known = b.module.globals
            place = known.get(symbol) or ir.GlobalVariable(b.module, ir.IntType(8), symbol)
            return b.ptrtoint(place, ir.IntType(64))

        return types.int64(), generate

    return address


def register() -> None:
    """Tell the linker where the loops and their arguments are."""
    for name, loop in (loops() or {}).items():
        llvm.add_symbol(f"ckad_{name}", loop.function)
        llvm.add_symbol(f"ckad_{name}_data", loop.data or loop.function)
