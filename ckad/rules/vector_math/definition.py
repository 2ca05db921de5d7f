"""A function is written once per module and number of lanes, and called from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from llvmlite import ir as llvm

from ckad.rules import ir
from ckad.rules.vector_math.real import Real

#: Calls of one function that a caller may have inlined. More gain nothing that compares with the
#: time that LLVM then takes: 2 ms (exp of one double) to 60 ms (pow of eight) for each.
INLINED = 2
_calls: WeakKeyDictionary[Any, Counter[str]] = WeakKeyDictionary()


def function(formula: Callable[..., Real]) -> ir.Emitter:
    """The emitter of a call of ``formula``, which takes and returns a ``Real``.

    The function is internal to the module and named after the formula and the number of lanes, such
    as ``ckad_exp_v8``.
    """

    def emit(b: Any, *xs: Any) -> Any:
        called = _definition(b.module, formula.__name__, formula, xs)
        calls = _calls.setdefault(b.function, Counter())
        calls[called.name] += 1
        return b.call(called, xs, attrs=("noinline",) if calls[called.name] > INLINED else ())

    emit.__doc__ = formula.__doc__
    return emit


def apart(name: str, formula: Callable[..., Real]) -> ir.Emitter:
    """The same for what is hardly ever called: it is kept out of the caller's way."""

    def emit(b: Any, *xs: Any) -> Any:
        called = _definition(b.module, name, formula, xs)
        called.attributes.add("cold")
        called.attributes.add("noinline")
        return b.call(called, xs)

    return emit


def _definition(module: Any, name: str, formula: Callable[..., Real], xs: Sequence[Any]) -> Any:
    types = [x.type for x in xs]
    lanes = types[0].count if isinstance(types[0], llvm.VectorType) else 1
    name = f"ckad_{name}_v{lanes}"
    if name in module.globals:
        return module.globals[name]
    defined = llvm.Function(module, llvm.FunctionType(types[0], types), name)
    defined.linkage = "internal"
    defined.attributes.add("nounwind")
    b = llvm.IRBuilder(defined.append_basic_block("entry"))
    b.ret(formula(*(Real(b, x) for x in defined.args)).value)
    return defined
