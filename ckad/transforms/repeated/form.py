"""Arguments of one form, taken apart by code that is made for it.

To compare what a call is given with what a recording holds for, and to find the numbers in it,
takes longer than many a program runs. Straight code for one form takes a tenth of that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.patterns import attributes_of
from ckad.transforms import reuse

#: From arguments and options to the numbers in them; None if they have another form.
Take = Callable[[Sequence[Any], Mapping[str, Any]], "list[Any] | None"]
#: Values in the arguments for which there is code.
MOST = 64


class _Unknown(Exception):
    """There is no code for a form."""


class _Code:
    """The code in the making: tests, each of which ends it, and values by their names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {}
        self.arrays: list[str] = []
        self.n_parts = 0

    def value(self, x: Any) -> str:
        """The name of a value that is known."""
        name = f"v{len(self.values)}"
        self.values[name] = x
        return name

    def unless(self, *conditions: str) -> None:
        self.lines.append(f"if not ({' and '.join(conditions)}): return None")

    def parts(self, n: int, whole: str) -> list[str]:
        """The names of the ``n`` parts of something."""
        self.n_parts += n
        if self.n_parts > MOST:
            raise _Unknown
        names = [f"x{self.n_parts - k}" for k in range(n, 0, -1)]
        self.lines.append(f"{', '.join(names)}, = {whole}" if n else "pass")
        return names

    def leaves(self, x: Any, name: str) -> list[str]:
        """The names of the numbers in ``x``, in the order of the leaves of trees."""
        kind = type(x)
        is_kind = f"type({name}) is {self.value(kind)}"
        if kind in reuse.FLOATS:
            self.unless(is_kind)
            return _numbers_of(x, name)
        if kind is np.ndarray:
            self._array(x, name, is_kind)
            return _numbers_of(x, name)
        if kind is dict:
            return self._dict(x, name, is_kind)
        if kind is list or isinstance(x, tuple):
            self.unless(is_kind, f"len({name}) == {len(x)}")
            return self._all(x, self.parts(len(x), name))
        if dataclasses.is_dataclass(kind):
            return self._dataclass(x, name, is_kind)
        if kind in reuse.STATIC or kind is str:
            self.unless(is_kind, f"{name} == {self.value(x)}")
        else:
            self.unless(f"{name} is {self.value(x)}")
        return []

    def _all(self, items: Sequence[Any], names: Sequence[str]) -> list[str]:
        pairs = zip(items, names, strict=True)
        return [leaf for item, name in pairs for leaf in self.leaves(item, name)]

    def _array(self, x: np.ndarray, name: str, is_kind: str) -> None:
        like = f"{name}.dtype is {self.value(x.dtype)}", f"{name}.shape == {x.shape}"
        flags = f"f{name}"
        self.unless(is_kind, *like)
        self.lines.append(f"{flags} = {name}.flags")
        self.unless(f"{flags}.writeable is {x.flags.writeable}")
        if x.flags.c_contiguous:
            self.unless(f"{flags}.c_contiguous")
        else:
            self.unless(f"not {flags}.c_contiguous", f"{name}.strides == {x.strides}")
        self.arrays.append(name)

    def _dict(self, x: dict[Any, Any], name: str, is_kind: str) -> list[str]:
        self.unless(is_kind, f"len({name}) == {len(x)}")
        keys = self.parts(len(x), name)
        if x:
            self.unless(*(f"{key} is {self.value(k)}" for key, k in zip(keys, x, strict=True)))
        names = self.parts(len(x), f"{name}.values()")
        found = [self.leaves(item, at) for item, at in zip(x.values(), names, strict=True)]
        order = trees.items_of(dict(zip(x, range(len(x)), strict=True)))
        return [leaf for k in order for leaf in found[k]]

    def _dataclass(self, x: Any, name: str, is_kind: str) -> list[str]:
        names = attributes_of(x)
        fields = [field.name for field in dataclasses.fields(x)]
        self.unless(is_kind)
        if [*names] != fields or (len(fields) != len(getattr(x, "__dict__", fields))):
            self.unless(f"{self.value(attributes_of)}({name}) == {names!r}")
        elif hasattr(x, "__dict__"):  # which nobody has given others
            self.unless(f"len({name}.__dict__) == {len(fields)}")
        parts = [f"getattr({name}, {each!r}, None)" for each in names]
        found = self.parts(len(names), f"[{', '.join(parts)}]")
        return self._all([getattr(x, each, None) for each in names], found)

    def same(self, options: Mapping[str, Any]) -> None:
        """Options are what they were, in this order: a recording takes their values as they are."""
        for name, x in zip(self.parts(len(options), "options"), options, strict=True):
            self.unless(f"{name} == {x!r}")
        names = self.parts(len(options), "options.values()")
        for name, x in zip(names, options.values(), strict=True):
            if type(x) is float and x and x == x:
                self.unless(f"type({name}) is {self.value(float)}", f"{name} == {self.value(x)}")
            elif type(x) in reuse.STATIC or type(x) is str:
                self.leaves(x, name)
            else:  # a zero has a sign; the recording is one for this very object
                self.unless(f"{name} is {self.value(x)}")

    def share(self) -> None:
        """Arrays that lie in each other's memory are of no form."""
        if len(self.arrays) < 2:
            return
        for name in self.arrays:
            self.lines.append(f"o{name} = {name} if f{name}.owndata else {name}.base")
        owners = ", ".join(f"id(o{name})" for name in self.arrays)
        is_array = self.value(np.ndarray)
        # an array that has no base may lie in memory of its own alone
        own = (f"type(o{name}) is {is_array} and o{name}.flags.owndata" for name in self.arrays)
        apart = " and ".join([f"len({{{owners}}}) == {len(self.arrays)}", *own])
        shared = f"{self.value(reuse.share_memory)}([{', '.join(self.arrays)}])"
        self.lines.append(f"if not ({apart}) and {shared}: return None")


def _numbers_of(x: Any, name: str) -> list[str]:
    return [f"{name}.real", f"{name}.imag"] if trees.is_complex(x) else [name]


def _is_same(x: Any, y: Any) -> bool:
    """Whether two numbers found in arguments are one; the parts of a complex one are new objects,
    in its memory."""
    if x is y:
        return True
    if type(x) is not np.ndarray or type(y) is not np.ndarray:
        return type(x) is type(y) and bool(x == y)
    return bool(x.__array_interface__ == y.__array_interface__)


def taking(
    args: Sequence[Any],
    options: Mapping[str, Any],
    numbers: Sequence[Any],
    dtypes: Sequence[np.dtype],
) -> Take | None:
    """What takes arguments of the form of ``args`` apart, in which the ``numbers`` were found, into
    inputs of these dtypes, where ``options`` are the same; None if there is no code for that."""
    for x, dtype in zip(numbers, dtypes, strict=False):
        if isinstance(x, np.ndarray) and x.dtype is not dtype:
            return None
    code = _Code()
    try:
        code.unless(f"len(args) == {len(args)}", f"len(options) == {len(options)}")
        code.same(options)
        found = code._all(args, code.parts(len(args), "args"))
    except _Unknown:
        return None
    code.share()
    body = "\n    ".join([*code.lines, f"return [{', '.join(found)}]"])
    exec(
        compile(f"def take(args, options):\n    {body}", "<arguments of one form>", "exec"),
        code.values,
    )
    take: Take = code.values["take"]
    taken = take(args, options)
    if taken is None or len(taken) != len(numbers):
        return None
    return take if all(map(_is_same, taken, numbers)) else None
