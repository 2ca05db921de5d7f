"""Arguments of one form, results of one form, and how several of them lie in one array."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import CkadError, TracedShapeError, TraceError
from ckad.tape.builder import Builder
from ckad.tape.types import DType, Type, type_of
from ckad.trace.arguments import Arguments, take_apart
from ckad.trace.dispatch import Traced
from ckad.trace.values.apply import tape_dtype
from ckad.trace.values.tracer import Tracer

#: From here on float64 leaves integers out.
MOST_EXACT = 2**53


class Leaf(NamedTuple):
    """An array, a NumPy scalar or a Python number, as a function gets or gives it."""

    type: Type
    kind: str  # "array", "scalar" or "number"

    @property
    def cells(self) -> Type:
        """As a routine has it, which knows float64 and int64 alone."""
        return self.type.with_dtype(DType.F64 if self.type.is_float else DType.I64)

    def restored(self, x: np.ndarray) -> Any:
        """What the function gets of an array, which it may not change."""
        if self.kind == "number":
            return x.item()
        own = x.astype(self.type.numpy, copy=False)
        if self.kind == "scalar":
            return own[()]
        own.flags.writeable = False
        return own

    def example(self) -> Any:
        """One that is as good as any."""
        return self.restored(np.full(self.type.shape, self.type.is_float, self.cells.numpy))

    def __str__(self) -> str:
        return f"{self.type.numpy} of shape {self.type.shape}"


def leaf_of(x: Any) -> Leaf:
    """What an argument is, traced or not."""
    if isinstance(x, Tracer):
        kind = "number" if x.weak else "scalar" if x.scalar else "array"
        return Leaf(x.type, kind)
    if type(x) is float:
        return Leaf(type_of(np.asarray(x)), "number")
    return Leaf(type_of(np.asarray(x)), "array" if isinstance(x, np.ndarray) else "scalar")


def given(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Arguments taken apart; TraceError where a function cannot be told of them."""
    arguments = take_apart((args, kwargs))
    if any(trees.imaginary(arguments.treedef)):
        raise TraceError.here(
            f"{name} gets a complex number, and its derivative rules are of real ones. Pass "
            "the real and the imaginary part as two arrays."
        )
    for leaf in arguments.leaves:
        if isinstance(leaf, Traced) and not isinstance(leaf, Tracer):
            raise TraceError.here(
                f"{name} gets a {type(leaf).__name__}, an array whose size or fields are only "
                "known when the program runs. Pass a whole array, and where its part ends as "
                "another argument."
            )
    return arguments


def key_of(name: str, arguments: Arguments, leaves: Sequence[Leaf]) -> Hashable:
    """What arguments of one form have in common."""
    traced = set(arguments.traced)
    static = [x for k, x in enumerate(arguments.leaves) if k not in traced]
    try:
        hash(tuple(static))
    except TypeError as error:
        raise TraceError.here(
            f"{name} gets an argument that is no array and cannot be a key: {error}. Pass "
            "arrays, numbers, texts, functions, or tuples, lists and dicts of them."
        ) from None
    return (
        arguments.treedef,
        tuple((type(x), _same(x)) for x in static),
        tuple(leaves),
        tuple(arguments.traced),
    )


def _same(x: Any) -> Hashable:
    """Equal numbers of one type that are not the same differ: -0.0 and 0.0."""
    return (x, str(x)) if isinstance(x, (float, np.floating)) else x


class Results(NamedTuple):
    """What a function gives."""

    tree: trees.Treedef
    leaves: tuple[Leaf, ...]

    @property
    def packed(self) -> Type:
        """All of it as one array: itself if it is one, else in float64, one after the other."""
        if len(self.leaves) == 1:
            return self.leaves[0].cells
        return Type(DType.F64, (sum(x.type.size for x in self.leaves),))

    def pack(self, name: str, result: Any) -> np.ndarray:
        """The array of a result; TracedShapeError if it is not as declared."""
        values, tree = trees.flatten(result)
        if tree != self.tree:
            raise TracedShapeError(
                f"{name} returned {trees.describe(tree)}; {trees.describe(self.tree)} was declared"
            )
        arrays = [self._checked(name, k, x) for k, x in enumerate(values)]
        if len(arrays) == 1:
            return arrays[0].astype(self.packed.numpy, copy=False)
        return np.concatenate([x.astype(np.float64).ravel() for x in arrays])

    def _checked(self, name: str, k: int, value: Any) -> np.ndarray:
        x, leaf = np.asarray(value), self.leaves[k]
        which = f"result {k} of {name}" if len(self.leaves) > 1 else f"the result of {name}"
        if x.shape != leaf.type.shape or not _stands_for(x.dtype, leaf.type):
            raise TracedShapeError(
                f"{which} is {x.dtype} of shape {x.shape}, where {leaf} was declared. Both follow "
                "from the shapes and dtypes of the arguments alone: give shape= a rule that says "
                "what they are, and return that."
            )
        many = len(self.leaves) > 1 and x.dtype.kind in "iu" and x.size
        if many and int(np.abs(x).max()) > MOST_EXACT:
            raise TracedShapeError(f"{which}: integers beside floats are at most 2**53")
        return x

    def unpacked(self, packed: np.ndarray) -> Any:
        """The result of its packed array."""
        ends = np.cumsum([x.type.size for x in self.leaves])[:-1]
        parts = [packed] if len(self.leaves) == 1 else np.split(packed, ends)
        pairs = zip(self.leaves, parts, strict=True)
        arrays = [x.reshape(leaf.type.shape).astype(leaf.type.numpy) for leaf, x in pairs]
        own = [x if x.shape else x[()] for x in arrays]
        return trees.unflatten(self.tree, own)

    def pieces(self, b: Builder, packed: int) -> list[int]:
        """Rows of the leaves of a packed array."""
        if len(self.leaves) == 1:
            return [converted(b, packed, self.leaves[0].type)]
        at, found = 0, []
        for leaf in self.leaves:
            size = leaf.type.size
            row = b.slice(packed, attrs=(at, 1), type=Type(DType.F64, (size,)))
            found.append(converted(b, b.reshape_to(row, leaf.type.shape), leaf.type))
            at += size
        return found

    def joined(self, b: Builder, rows: Sequence[int]) -> int:
        """The packed array of leaves."""
        if len(rows) == 1:
            return rows[0]
        flat = [b.reshape_to(converted(b, x, b.type(x).with_dtype(DType.F64)), (b.type(x).size,))
                for x in rows]  # fmt: skip
        return b.concat(*flat, attrs=(0,), type=self.packed)


def _stands_for(dtype: np.dtype, type: Type) -> bool:
    try:
        return bool(tape_dtype(dtype) is type.dtype)
    except CkadError:
        return False


def results_of(name: str, result: Any) -> Results:
    """The form of a result; TraceError if it is not made of arrays."""
    values, tree = trees.flatten(result)
    if not values or any(trees.imaginary(tree)):
        what = "complex numbers" if values else "no array"
        raise TraceError.here(
            f"{name} returns {what}; ckad takes real arrays and numbers. Return these."
        )
    try:
        return Results(tree, tuple(map(_result_leaf, values)))
    except (CkadError, TypeError, KeyError):
        raise TraceError.here(
            f"{name} returns {', '.join(sorted({type(x).__name__ for x in values}))}; ckad "
            "takes arrays of float64, float32, int64 and bool, and numbers. Return these."
        ) from None


def _result_leaf(x: Any) -> Leaf:
    array = np.asarray(x)
    kind = "array" if isinstance(x, np.ndarray) else "scalar"
    return Leaf(Type(tape_dtype(array.dtype), array.shape), kind)


def converted(b: Builder, x: int, type: Type) -> int:
    """A row as another element type."""
    return x if b.type(x).dtype == type.dtype else b.convert(x, type=type)


def signature_of(function: Any) -> inspect.Signature | None:
    """That of a function; None where it takes any names, or Python cannot tell."""
    try:
        found = inspect.signature(getattr(function, "py_func", function))
    except (TypeError, ValueError):
        return None
    kinds = {p.kind for p in found.parameters.values()}
    return None if inspect.Parameter.VAR_KEYWORD in kinds else found
