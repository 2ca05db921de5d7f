"""Python's operators on tracers: each is NumPy's ufunc of that meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.tracer import Tracer


def _operator(ufunc: Any, turned: bool = False) -> Any:
    def method(self: Tracer, other: Any = None) -> Any:
        return ufunc(other, self) if turned else ufunc(self, other)

    return method


def _in_place(ufunc: Any) -> Any:
    # NumPy scalars are immutable: x += 1 binds the name to a new one.
    def method(self: Tracer, other: Any) -> Any:
        return ufunc(self, other) if self.scalar else ufunc(self, other, out=self)

    return method


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "divmod": np.divmod,
}.items():
    setattr(Tracer, f"__{_name}__", _operator(_ufunc))
    setattr(Tracer, f"__r{_name}__", _operator(_ufunc, turned=True))
    if _name != "divmod":
        setattr(Tracer, f"__i{_name}__", _in_place(_ufunc))

for _name, _ufunc in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    setattr(Tracer, f"__{_name}__", _operator(_ufunc))

for _name, _ufunc in {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}.items():
    setattr(Tracer, f"__{_name}__", lambda self, f=_ufunc: f(self))
