"""The vm's machine code by its name, compiled when it is first needed and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from llvmlite import ir

from ckad.engines.symbols import address
from ckad.engines.vm.isa import Key
from ckad.engines.vm.kernels import arrays
from ckad.engines.vm.kernels.elements import elementwise
from ckad.engines.vm.kernels.interpreter import Machine
from ckad.engines.vm.kernels.products import product
from ckad.engines.vm.kernels.strips import strips
from ckad.kernel import KERNELS
from ckad.machine.compiler import Compiler, Library

_COMPILER = Compiler(KERNELS, symbols=address)
_LOOPS = Compiler(KERNELS, vectorises=True, symbols=address)
#: Kernels on whole arrays, by their names.
WHOLE: dict[str, arrays.Body] = {**arrays.BODIES, "product": product, "strips": strips}
_kept: list[Library] = []  # code is in memory as long as its library


@cache
def run() -> int:
    """The address of the interpreter."""
    return _address("run", "run", lambda: Machine().write(), _COMPILER)


@cache
def whole(name: str) -> int:
    """The address of a kernel on whole arrays."""
    return _address(name, "kernel", partial(_whole, name), _LOOPS)


@cache
def elements(key: Key) -> int:
    """The address of an elementwise kernel."""
    return _address(repr(key), "kernel", partial(elementwise, key), _COMPILER)


def _whole(name: str) -> ir.Module:
    w = arrays.Array("kernel")
    WHOLE[name](w)
    return w.finish()


def _address(key: str, name: str, build: Callable[[], ir.Module], compiler: Compiler) -> int:
    library = compiler.library(f"vm {key}".encode(), build)
    _kept.append(library)
    return library.address(name)
