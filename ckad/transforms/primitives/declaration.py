"""How a C function is declared: ``"void smooth(const double x[n], double out[n], int64_t n)"``.

``const`` arrays are arguments, other arrays are results. The names in brackets are lengths; a
parameter of such a name gets it. Other parameters are numbers, arguments by value.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import TraceError

#: The type in C, in ctypes, and of the elements of an array.
C_TYPES: dict[str, tuple[Any, Any]] = {
    "double": (ctypes.c_double, np.float64),
    "float": (ctypes.c_float, np.float32),
    "int64_t": (ctypes.c_int64, np.int64),
    "bool": (ctypes.c_bool, np.bool_),
    "int32_t": (ctypes.c_int32, None),
    "int": (ctypes.c_int, None),
    "size_t": (ctypes.c_size_t, None),
}
_FUNCTION = re.compile(r"\s*(void|int|int32_t|int64_t)\s+(\w+)\s*\((.*)\)\s*;?\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*(const\s+)?(\w+)\s+(\w+)\s*((?:\[[^\[\]]*\])*)\s*")
_LENGTH = re.compile(r"\s*(?:(\w+?)\s*(?:([+-])\s*(\d+))?)\s*")


class Length(NamedTuple):
    """``name + more``; a number if there is no name."""

    name: str
    more: int

    def of(self, known: dict[str, int]) -> int:
        return self.more + (known[self.name] if self.name else 0)


class Parameter(NamedTuple):
    name: str
    type: str
    axes: tuple[Length, ...]  # of an array
    is_result: bool


class Declaration(NamedTuple):
    """What a C function takes, in order."""

    name: str
    returns: str
    parameters: tuple[Parameter, ...]

    @property
    def lengths(self) -> set[str]:
        return {axis.name for p in self.parameters for axis in p.axes if axis.name}

    @property
    def arguments(self) -> list[Parameter]:
        """Those that the caller passes."""
        names = self.lengths
        return [p for p in self.parameters if not p.is_result and (p.axes or p.name not in names)]

    @property
    def results(self) -> list[Parameter]:
        return [p for p in self.parameters if p.is_result]


def parse(text: str) -> Declaration:
    """The declaration; TraceError says what is not one."""
    found = _FUNCTION.fullmatch(text)
    if found is None:
        raise _wrong(text, "it is not 'void f(...)' or 'int f(...)'")
    parameters = tuple(_parameter(text, part) for part in found[3].split(","))
    declared = Declaration(found[2], found[1], parameters)
    if len({p.name for p in parameters}) != len(parameters):
        raise _wrong(text, "two parameters have one name")
    if not declared.results:
        raise _wrong(text, "no array is a result: those that are const are arguments")
    bound = {
        axis.name for p in declared.arguments for axis in p.axes if axis.name and not axis.more
    }
    if unbound := sorted(declared.lengths - bound):
        raise _wrong(text, f"the length {unbound[0]} is that of no argument")
    return declared


def _parameter(text: str, part: str) -> Parameter:
    found = _PARAMETER.fullmatch(part)
    if found is None:
        raise _wrong(
            text, f"'{part.strip()}' is not 'double a', 'const double a[n]', 'double a[n]'"
        )
    const, type, name, brackets = found.groups()
    axes = tuple(_length(text, axis) for axis in re.findall(r"\[([^\]]*)\]", brackets))
    if type not in C_TYPES or (axes and C_TYPES[type][1] is None):
        kinds = [k for k, (_, element) in C_TYPES.items() if element is not None or not axes]
        raise _wrong(text, f"'{part.strip()}' is of none of the types {', '.join(kinds)}")
    return Parameter(name, type, axes, bool(axes) and not const)


def _length(text: str, axis: str) -> Length:
    found = _LENGTH.fullmatch(axis)
    if found is None:
        raise _wrong(text, f"[{axis}] is not a length: n, n + 1, n - 1 or 3")
    name, sign, number = found.groups()
    if name.isdigit():
        return Length("", int(name))
    return Length(name, int(f"{sign}{number}") if number else 0)


def _wrong(text: str, why: str) -> TraceError:
    return TraceError.here(
        f"'{text}' declares no C function that ckad can call: {why}. An example: "
        "'void smooth(const double x[n], double out[n], int64_t n)'."
    )
