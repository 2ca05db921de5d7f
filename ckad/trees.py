"""Pytrees: nested tuples, lists, dicts, namedtuples and dataclasses of arrays.

A complex leaf is a subtree of two real leaves, its real and its imaginary part; an array with named
fields is one of its fields.
"""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optree

from ckad.errors import UnrecordableError
from ckad.patterns import Pattern, attributes_of, is_sparse, is_whole, longs, made_of, taken_apart

_NAMESPACE = "ckad"
_ONE_LEVEL: dict[str, Any] = {"none_is_leaf": True, "namespace": _NAMESPACE}
_known: set[type] = set()
_lock = threading.Lock()

Treedef = optree.PyTreeSpec


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Treedef]:
    """Leaves in order, and the structure; None has no leaves, what ``is_leaf`` says is one."""
    try:
        leaves, treedef = optree.tree_flatten(tree, is_leaf, namespace=_NAMESPACE)
    except RecursionError as error:
        raise UnrecordableError.here("objects hold one another. Hold numbers.") from error
    odd = [x for x in leaves if not is_whole(x)]
    new = {type(x) for x in odd if is_dataclass(x) and not (is_leaf and is_leaf(x))}
    for cls in new:
        _register(cls)
    if new:
        return flatten(tree, is_leaf)
    return _with_parts(leaves, treedef) if odd else (leaves, treedef)


# --- complex leaves ----------------------------------------------------------------------------


class Complex(tuple[Any, Any]):  # optree's annotations want a collection
    """Stands in a structure for a complex number or array, whose leaves are its two parts."""


#: Class of a traced part -> what puts two of them together; the classes of what comes out.
_joins: dict[type, Callable[[Any, Any], Any]] = {}
_wholes: tuple[type, ...] = ()


def register_complex(whole: type, part: type, join: Callable[[Any, Any], Any]) -> None:
    """Make instances of ``whole``, which have two ``parts``, two leaves that ``join`` unites."""
    global _wholes
    _joins[part] = join
    _wholes = (*_wholes, whole)


def is_complex(x: Any) -> bool:
    """Whether ``x`` is one complex number or array, plain or traced."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind == "c"
    return isinstance(x, (complex, *_wholes))


def parts(x: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of a complex leaf; of an array they are views."""
    return getattr(x, "parts", None) or (x.real, x.imag)


def joined(real: Any, imag: Any) -> Any:
    """The complex leaf with these parts; a pair of what are no numbers."""
    for part, join in _joins.items():
        if isinstance(real, part) or isinstance(imag, part):
            return join(real, imag)
    if not all(isinstance(x, (np.ndarray, np.generic, int, float)) for x in (real, imag)):
        return real, imag
    whole = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), _complex_type(real, imag))
    whole.real, whole.imag = real, imag
    return whole if isinstance(real, np.ndarray) else whole[()]


def _complex_type(real: Any, imag: Any) -> np.dtype:
    return np.result_type(np.asarray(real).dtype, np.asarray(imag).dtype, np.complex64)


optree.register_pytree_node(
    Complex,
    lambda _: ((0.0, 0.0), None, ("real", "imag")),
    lambda _, children: joined(*children),
    namespace=_NAMESPACE,
)


# --- arrays with named fields --------------------------------------------------------------------


class RecordType(NamedTuple):
    """What an array with named fields is apart from what is in them."""

    dtype: np.dtype
    is_item: bool = False  # one element of an array
    has_attributes: bool = False  # fields are attributes too: ``np.recarray``

    def __repr__(self) -> str:
        return ", ".join(self.dtype.names or ())

    def lead(self, first: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an array whose first field has a shape."""
        assert self.dtype.names is not None
        return first[: len(first) - self.dtype[self.dtype.names[0]].ndim]


class Record(tuple[Any, ...]):
    """Stands in a structure for an array with named fields, whose leaves are these."""

    type: RecordType


#: Class of arrays with traced fields -> the class of all that is traced.
_records: dict[Callable[[RecordType, tuple[Any, ...]], Any], type] = {}


def register_record(whole: Callable[[RecordType, tuple[Any, ...]], Any], traced: type) -> None:
    """Make instances of ``whole``, which have a ``record`` and ``fields``, trees of these."""
    _records[whole] = traced


def is_record(x: Any) -> bool:
    """Whether ``x`` is an array with named fields, or an element of one, plain or traced."""
    if isinstance(x, (np.ndarray, np.void)):
        return x.dtype.names is not None
    return type(x) in _records


def record_of(x: Any) -> tuple[RecordType, tuple[Any, ...]]:
    """What an array with named fields is, and its fields; of a plain array they are views."""
    if type(x) in _records:
        return x.record, x.fields
    item = isinstance(x, np.void)
    attributes = isinstance(x, (np.recarray, np.record))
    return RecordType(x.dtype, item, attributes), tuple(x[name] for name in x.dtype.names)


def _rebuilt(kind: RecordType, fields: Any) -> Any:
    """An array with these fields; a tuple of what are no numbers."""
    for whole, traced in _records.items():
        if any(isinstance(x, traced) for x in fields):
            return whole(kind, tuple(fields))
    if not all(isinstance(x, (np.ndarray, np.generic, int, float)) for x in fields):
        return tuple(fields)
    plain: Any = np.empty(kind.lead(np.shape(fields[0])), kind.dtype)
    for name, x in zip(kind.dtype.names or (), fields, strict=True):
        plain[name] = x
    plain = plain.view(np.recarray) if kind.has_attributes else plain
    return plain[()] if kind.is_item else plain


_flat_record: Any = lambda x: (tuple(x), x.type, x.type.dtype.names)  # noqa: E731
_whole_record: Any = _rebuilt
optree.register_pytree_node(Record, _flat_record, _whole_record, namespace=_NAMESPACE)


# --- sparse matrices -----------------------------------------------------------------------------


class Matrix(tuple[Any, ...]):
    """Stands in a structure for a sparse matrix, whose leaf is its numbers."""

    pattern: Pattern


#: Class of traced matrices -> the class of all that is traced.
_matrices: dict[Callable[[Pattern, Any], Any], type] = {}


def register_matrix(whole: Callable[[Pattern, Any], Any], traced: type) -> None:
    """Make instances of ``whole``, which have a ``pattern`` and ``numbers``, trees of these."""
    _matrices[whole] = traced


def is_matrix(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix, plain or traced."""
    return type(x) in _matrices or is_sparse(x)


def matrix_of(x: Any) -> tuple[Any, Pattern]:
    """The numbers of a sparse matrix, and their places."""
    return (x.numbers, x.pattern) if type(x) in _matrices else taken_apart(x)


def _whole_matrix(pattern: Pattern, children: Any) -> Any:
    """A matrix with these numbers; what is no array stays."""
    (numbers,) = children
    for whole, traced in _matrices.items():
        if isinstance(numbers, traced):
            return whole(pattern, numbers)
    plain = isinstance(numbers, np.ndarray) and numbers.shape == (pattern.nnz,)
    return pattern.plain(numbers) if plain else numbers


_flat_matrix: Any = lambda x: (tuple(x), x.pattern, ("data",))  # noqa: E731
_matrix: Any = _whole_matrix
optree.register_pytree_node(Matrix, _flat_matrix, _matrix, namespace=_NAMESPACE)


# --- arrays of short integers --------------------------------------------------------------------


class ShortIntegers(tuple[Any, ...]):
    """Stands in a structure for traced integers of a short dtype, whose leaf is their numbers."""

    dtype: np.dtype


#: Class of traced short integers -> the classes of their numbers.
_shorts: dict[Callable[[Any, np.dtype], Any], tuple[type, ...]] = {}


def register_short(whole: Callable[[Any, np.dtype], Any], *traced: type) -> None:
    """Make instances of ``whole``, which have ``numbers`` and a ``dtype``, trees of these."""
    _shorts[whole] = traced


_SIGNED = (np.int8, np.int16, np.int32)
_NATIVE = frozenset(map(np.dtype, (*_SIGNED, np.uint8, np.uint16, np.uint32)))
#: Integers that no tape has, in either order of bytes: what is computed from them alone wraps
#: around in NumPy.
SHORT = _NATIVE | {dtype.newbyteorder("S") for dtype in _NATIVE}


def is_short(x: Any) -> bool:
    """Whether ``x`` is an array or NumPy scalar of short integers, plain or traced."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype in SHORT
    return type(x) in _shorts


def of_numbers(treedef: Treedef) -> Treedef:
    """The same structure with arrays of any dtype in place of those of short integers."""
    return flatten(unflatten(treedef, [0.0] * treedef.num_leaves))[1]


def _whole_short(dtype: np.dtype, children: Any) -> Any:
    """Integers with these numbers; what is no number stays."""
    (numbers,) = children
    for whole, traced in _shorts.items():
        if isinstance(numbers, traced):
            return whole(numbers, dtype)
    if isinstance(numbers, (np.ndarray, np.generic)):
        return numbers.astype(dtype)
    return dtype.type(numbers) if isinstance(numbers, int) else numbers


_flat_short: Any = lambda x: (tuple(x), x.dtype, ("numbers",))  # noqa: E731
_short: Any = _whole_short
optree.register_pytree_node(ShortIntegers, _flat_short, _short, namespace=_NAMESPACE)


# --- taking them apart ---------------------------------------------------------------------------

_ANY_LEAF: Any = 0.0
_LEAF = optree.tree_structure(_ANY_LEAF, namespace=_NAMESPACE)


def _stand_in(x: Any) -> Any:
    """What has the structure of a leaf that is taken apart."""
    if is_record(x):
        kind, fields = record_of(x)
        found = Record(map(_stand_in, fields))
        found.type = kind
        return found
    if is_matrix(x):
        numbers, pattern = matrix_of(x)
        whole = Matrix((_stand_in(numbers),))
        whole.pattern = pattern
        return whole
    if is_short(x):
        short = ShortIntegers((0.0,))
        short.dtype = x.dtype.newbyteorder("=")
        return short
    return Complex() if is_complex(x) else 0.0


def _leaves_of(x: Any) -> list[Any]:
    if is_record(x):
        return [leaf for field in record_of(x)[1] for leaf in _leaves_of(field)]
    if is_matrix(x):
        return _leaves_of(matrix_of(x)[0])
    if is_short(x):
        return [x.numbers if type(x) in _shorts else x.astype(np.int64)]
    return list(parts(x)) if is_complex(x) else [x]


def _with_parts(leaves: list[Any], treedef: Treedef) -> tuple[list[Any], Treedef]:
    """The same tree with every complex leaf, and every one with fields, taken apart."""
    if not any(is_complex(x) or is_record(x) or is_matrix(x) or is_short(x) for x in leaves):
        return leaves, treedef
    pending = iter(leaves)
    whole = optree.treespec_transform(
        treedef,
        None,
        lambda _: optree.tree_structure(_stand_in(next(pending)), namespace=_NAMESPACE),
    )
    long = longs([x for x in leaves if isinstance(x, np.ndarray) and is_short(x)])
    return [part for x in leaves for part in long.get(id(x)) or _leaves_of(x)], whole


def imaginary(treedef: Treedef) -> list[bool]:
    """Per leaf, whether it is the imaginary part of a complex number or array."""
    if treedef.type is Complex:
        return [False, True]
    if treedef == _LEAF:
        return [False]
    return [own for child in treedef.children() for own in imaginary(child)]


def has_matrix(treedef: Treedef) -> bool:
    """Whether there is a sparse matrix in a structure."""
    return treedef.type is Matrix or any(map(has_matrix, treedef.children()))


# --- structures --------------------------------------------------------------------------------


def with_children(x: Any, children: list[Treedef]) -> Treedef:
    """The structure of a tuple or dict whose items have these structures."""
    pending = iter(children)
    items: Any = x
    outer = optree.tree_structure(items, is_leaf=lambda y: y is not x, namespace=_NAMESPACE)
    return optree.treespec_transform(outer, None, lambda _: next(pending))


def with_items(x: tuple[Any, ...], items: list[Any]) -> Any:
    """A tuple like ``x`` with other items."""
    whole: Any = x
    structure = optree.tree_structure(whole, is_leaf=lambda part: part is not whole, **_ONE_LEVEL)
    return optree.tree_unflatten(structure, items)


def items_of(x: Any) -> list[Any]:
    """What a tuple or dict holds, in the order of the children of its structure."""
    found: list[Any] = optree.tree_leaves(x, is_leaf=lambda part: part is not x, **_ONE_LEVEL)
    return found


def unflatten(treedef: Treedef, leaves: list[Any]) -> Any:
    return optree.tree_unflatten(treedef, leaves)


def describe(treedef: Treedef) -> str:
    """The structure for people: ``{'a': array, 'b': (array, array)}``."""
    text = str(treedef).removeprefix("PyTreeSpec(").removesuffix(")")
    text = text.removesuffix(f", namespace={_NAMESPACE!r}")
    text = text.replace("CustomTreeNode(Complex[None], [*, *])", "complex array")
    text = re.sub(r"CustomTreeNode\(ShortIntegers\[dtype\('(\w+)'\)\], \[\*\]\)", r"\1 array", text)
    text = re.sub(r"CustomTreeNode\(Whole\[(.+?)\], \[\]\)", r"\1", text)
    text = text.replace("*", "array")
    return text.replace("CustomTreeNode(", "(") if "CustomTreeNode" in text else text


def map_leaves(
    function: Callable[..., Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    leaves, treedef = flatten(tree, is_leaf)
    return unflatten(treedef, [function(x) for x in leaves])


def is_dataclass(x: Any) -> bool:
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def register(cls: type, children: Callable[[Any], Any], rebuild: Callable[[Any, Any], Any]) -> None:
    """Make instances of ``cls`` inner nodes of structures.

    ``children(x)`` gives the children and what else says how ``rebuild(that, children)`` makes it.
    """
    optree.register_pytree_node(cls, children, rebuild, namespace=_NAMESPACE)


def _register(cls: type) -> None:
    def children(x: Any) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[str, ...]]:
        names = attributes_of(x)
        return tuple([getattr(x, name, None) for name in names]), names, names

    def rebuild(names: Any, values: Any) -> Any:
        return made_of(cls, dict(zip(names, values, strict=True)))

    with _lock:
        if cls not in _known:
            optree.register_pytree_node(cls, children, rebuild, namespace=_NAMESPACE)
            _known.add(cls)
