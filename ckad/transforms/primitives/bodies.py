"""What computes a primitive: Python under the GIL, Numba's machine code, a C function."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import CkadError, TracedShapeError, TraceError
from ckad.place import at_place
from ckad.rules.routines.memory import run as run_compiled
from ckad.tape.routines import Compiled
from ckad.tape.types import Type
from ckad.trace.arguments import Arguments
from ckad.trace.values.apply import tape_dtype
from ckad.transforms.primitives.declaration import C_TYPES, Declaration, Parameter, parse
from ckad.transforms.primitives.forms import (
    Leaf,
    Results,
    given,
    key_of,
    leaf_of,
    results_of,
    signature_of,
)
from ckad.transforms.primitives.machine import c_routine, numba_routine

Run = Callable[..., np.ndarray]
#: The class of all functions of ctypes.
_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]


class Body:
    """A Python function."""

    kind = "Python, with the GIL"

    def __init__(self, function: Any, shape: Callable[..., Any] | None, name: str | None) -> None:
        self.function, self.shape = function, shape
        self.name: str = name or getattr(function, "__name__", None) or type(function).__name__
        self.doc = getattr(function, "__doc__", None)
        self.signature = signature_of(function)

    def plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Outside of transformations."""
        return self.function(*args, **kwargs)

    def bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position as far as they have one, with defaults."""
        if self.signature is None:
            return args, kwargs
        try:
            found = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(at_place(f"{self.name}: {error}")) from None
        found.apply_defaults()
        return found.args, found.kwargs

    def results(self, arguments: Arguments) -> Results:
        """The form of the result; of ``arguments`` only the kinds mean anything."""
        args, kwargs = arguments.rebuild(arguments.arrays)
        called = self.shape or self.function
        try:
            found = called(*args, **kwargs)
        except Exception as error:
            how = "shape=" if self.shape else "the function, called once on ones to see its result,"
            raise TraceError.here(
                f"the shape of {self.name} is not known: {how} raised {type(error).__name__}: "
                f"{error}. Give shape= a function that returns the shape for any numbers."
            ) from error
        return declared(self.name, found) if self.shape else results_of(self.name, found)

    def compiled(
        self, arguments: Arguments, leaves: Sequence[Leaf], results: Results
    ) -> Compiled | None:
        return None

    def runner(
        self,
        arguments: Arguments,
        leaves: Sequence[Leaf],
        results: Results,
        compiled: Compiled | None,
    ) -> Run:
        """What computes the packed result of arrays as a routine has them."""
        if compiled is not None:
            return lambda attrs, *arrays: run_compiled(compiled, results.packed, attrs, *arrays)

        def run(attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
            pairs = zip(leaves, arrays, strict=True)
            args, kwargs = arguments.rebuild([leaf.restored(x) for leaf, x in pairs])
            return results.pack(self.name, self.function(*args, **kwargs))

        return run


class NumbaBody(Body):
    """A function under ``numba.njit``."""

    kind = "machine code of Numba"

    def results(self, arguments: Arguments) -> Results:
        leaves = [np.array(x) if isinstance(x, np.ndarray) else x for x in arguments.leaves]
        return super().results(arguments._replace(leaves=leaves))

    def compiled(
        self, arguments: Arguments, leaves: Sequence[Leaf], results: Results
    ) -> Compiled | None:
        again = self.runner(arguments, leaves, results, None)
        return numba_routine(self.name, self.function, arguments, leaves, results, again)


class CBody(Body):
    """A function in C."""

    def __init__(self, address: int, text: str, shape: Any, name: str | None) -> None:
        self.declaration = parse(text)
        if shape is not None:
            raise TraceError.here("the declaration says the shapes; leave shape= out.")
        super().__init__(address, None, name or self.declaration.name)
        self.address, self.doc = address, text
        self.kind = f"C, {text}"
        self._known: dict[Any, tuple[Results, Run]] = {}

    @property
    def _parameters(self) -> list[Parameter]:
        return self.declaration.arguments

    def plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = self.bound(args, kwargs)
        arguments = given(self.name, args, kwargs)
        leaves = tuple(map(leaf_of, arguments.arrays))
        key = key_of(self.name, arguments, leaves)
        if key not in self._known:
            results = self.results(arguments)
            compiled = self.compiled(arguments, leaves, results)
            self._known[key] = results, self.runner(arguments, leaves, results, compiled)
        results, run = self._known[key]
        pairs = zip(leaves, arguments.arrays, strict=True)
        return results.unpacked(run((), *(np.asarray(x, leaf.cells.numpy) for leaf, x in pairs)))

    def bound(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [inspect.Parameter(p.name, kind) for p in self._parameters]
        self.signature = inspect.Signature(names)
        return super().bound(args, kwargs)

    def results(self, arguments: Arguments) -> Results:
        args, _ = arguments.rebuild(arguments.arrays)
        known: dict[str, int] = {}
        for p, x in zip(self._parameters, args, strict=True):
            self._check(p, x)
            for axis, n in zip(p.axes, np.shape(x), strict=True):
                own = axis.name and not axis.more
                if own and known.setdefault(axis.name, n) != n:
                    raise self._differs(p, x, f"{axis.name} = {known[axis.name]}")
        for p, x in zip(self._parameters, args, strict=True):
            if tuple(axis.of(known) for axis in p.axes) != np.shape(x):
                raise self._differs(p, x, ", ".join(f"{k} = {n}" for k, n in known.items()))
        shapes = [tuple(axis.of(known) for axis in p.axes) for p in self.declaration.results]
        types = [C_TYPES[p.type][1] for p in self.declaration.results]
        found = list(zip(shapes, types, strict=True))
        return declared(self.name, found if len(found) > 1 else found[0])

    def _check(self, p: Parameter, x: Any) -> None:
        array, element = np.asarray(x), C_TYPES[p.type][1] or np.int64
        if array.ndim != len(p.axes) or not np.can_cast(array.dtype, element, "safe"):
            raise TraceError.here(
                f"{self.name} gets {p.name} of {array.dtype} and shape {array.shape}; it is "
                f"declared as {p.type} of {len(p.axes)} axes. Convert it."
            )

    def _differs(self, p: Parameter, x: Any, known: str) -> TracedShapeError:
        return TracedShapeError.here(
            f"{self.name} gets {p.name} of shape {np.shape(x)}; the other arguments say {known}"
        )

    def compiled(
        self, arguments: Arguments, leaves: Sequence[Leaf], results: Results
    ) -> Compiled | None:
        args, _ = arguments.rebuild(arguments.arrays)
        shapes = [np.shape(x) for x in args]
        pairs = zip(self._parameters, shapes, strict=True)
        lengths = {
            axis.name: n for p, shape in pairs for axis, n in zip(p.axes, shape, strict=True)
            if axis.name and not axis.more
        }  # fmt: skip
        d: Declaration = self.declaration
        return c_routine(self.name, self.address, d, lengths, arguments, leaves, results)


def declared(name: str, found: Any) -> Results:
    """What a shape rule says."""
    several = type(found) is list
    try:
        leaves = tuple(map(_declared, found if several else [found]))
    except (CkadError, TypeError, ValueError):
        raise TraceError.here(
            f"shape= of {name} gives {found!r}; it is a shape, (shape, dtype), an array, or a "
            "list of these."
        ) from None
    tree = trees.flatten(tuple(leaf.type.size for leaf in leaves) if several else 0)[1]
    return Results(tree, leaves)


def _declared(x: Any) -> Leaf:
    if isinstance(x, tuple):
        shape, dtype = x if len(x) == 2 and isinstance(x[0], tuple) else (x, np.float64)
    else:
        array = np.asarray(x)
        shape, dtype = array.shape, array.dtype
    shape = tuple(int(n) for n in shape)
    if any(n < 0 for n in shape):
        raise ValueError
    return Leaf(Type(tape_dtype(dtype), shape), "array" if shape else "scalar")


def body_of(
    function: Any, declaration: str | None, shape: Callable[..., Any] | None, name: str | None
) -> Body:
    """The body for a function of any kind."""
    address = _address(function)
    if address is not None:
        if declaration is None:
            raise TraceError.here(
                "a C function needs its declaration: "
                "'void smooth(const double x[n], double out[n], int64_t n)'."
            )
        return CBody(address, declaration, shape, name)
    if not callable(function):
        raise TraceError.here(f"a {type(function).__name__} is no function.")
    if declaration is not None:
        raise TraceError.here("a declaration is for a function in C; leave it out.")
    kind = type(function)
    is_numba = kind.__module__.startswith("numba.") and hasattr(kind, "compile")
    return (NumbaBody if is_numba else Body)(function, shape, name)


def _address(function: Any) -> int | None:
    """Of a C function: as an int, from ctypes, of a capsule, or under ``numba.cfunc``."""
    if type(function) is int:
        return function
    if isinstance(function, _C_FUNCTION):
        return ctypes.cast(function, ctypes.c_void_p).value
    if type(function).__name__ == "PyCapsule":
        name = ctypes.pythonapi.PyCapsule_GetName
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        found: int | None = pointer(function, name(function))
        return found
    address = getattr(function, "address", None) if type(function).__name__ == "CFunc" else None
    return address
