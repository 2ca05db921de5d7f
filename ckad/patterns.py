"""Sparse matrices as their numbers and a pattern: which elements there are, row after row.

Every format of ``scipy.sparse`` is taken apart in the same way, into the numbers of its CSR form
with sorted columns and without duplicates; the pattern says how the matrix is put together again.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from ctypes import string_at
from functools import cached_property
from typing import Any

import numpy as np

#: Classes of single numbers, and element types of arrays that are taken as they are.
_NUMBERS = frozenset((float, int, bool, str))
_ELEMENTS = frozenset(np.dtype(kind).char for kind in (np.float64, np.float32, np.int64, np.bool_))


def is_whole(x: Any) -> bool:
    """Whether a leaf certainly has no parts, as sparse matrices and complex numbers have; most
    calls have no others, and wait for this."""
    kind = type(x)
    return kind in _NUMBERS or (kind is np.ndarray and x.dtype.char in _ELEMENTS)


#: Of a class: that it is no builtin one.
_MADE_BY_PYTHON = 1 << 9


def attributes_of(x: Any) -> tuple[str, ...]:
    """What an object of a dataclass is made up of: its fields, and what else it was given. What a
    ``cached_property`` has kept follows from these."""
    kind = type(x)
    fields = tuple(field.name for field in dataclasses.fields(kind))
    held: dict[str, Any] = getattr(x, "__dict__", {})
    others = held.keys() - set(fields)
    kept = {name for name in others if isinstance(getattr(kind, name, None), cached_property)}
    return (*fields, *(name for name in held if name in others and name not in kept))


def made_of(kind: type, attributes: Mapping[str, Any]) -> Any:
    """An object of a dataclass with these attributes. Its ``__init__`` and ``__post_init__`` are
    not run: they may compute others, or refuse what is no argument but a derivative."""
    base: Any = next(x for x in kind.__mro__ if not x.__flags__ & _MADE_BY_PYTHON)
    made = base.__new__(kind)
    unset = {x.name for x in dataclasses.fields(kind) if not (x.init or hasattr(kind, x.name))}
    for name, x in attributes.items():
        if x is not None or name not in unset:
            object.__setattr__(made, name, x)
    return made


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is one of SciPy's sparse matrices or arrays; it loads no SciPy."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def is_superlu(x: Any) -> bool:
    """Whether ``x`` are factors that SciPy has made (``splu``); nothing changes them."""
    module = sys.modules.get("scipy.sparse.linalg")
    return module is not None and type(x) is module.SuperLU


#: Why it is not known which numbers SciPy would store, and in which order.
REPEATED = "elements were given several times"
UNSORTED = "elements were not given in the order of their columns"
FROM_DENSE = "it was made of an array, of which SciPy leaves out what is 0"
DROPPED = "what is 0 was to be left out"
PRODUCT = "SciPy leaves out what is 0 of a product, and orders it in a way of its own"
BLOCKS = "SciPy fills blocks or diagonals with zeros"


class Pattern:
    """Where the elements of a sparse matrix are, and of which class of SciPy's it is.

    ``indptr`` and ``indices`` are those of CSR, columns sorted, no element twice. ``ordered`` says
    whether SciPy's ``data`` would have the numbers in the order of the pattern; ``loose`` says why
    nothing of what SciPy would store is known, if that is so.
    """

    def __init__(
        self,
        cls: type,
        shape: tuple[int, int],
        indptr: np.ndarray,
        indices: np.ndarray,
        *,
        ordered: bool = True,
        block: tuple[int, int] | None = None,
        loose: str = "",
    ) -> None:
        self.cls, self.shape, self.block, self.ordered = cls, shape, block, ordered
        self.loose = loose
        self.indptr, self.indices = indptr.astype(np.int32), indices.astype(np.int32)

    @cached_property
    def _kind(self) -> tuple[Any, ...]:
        """What patterns that are equal have in common, and others seldom."""
        some = self.indices[:: max(1, self.nnz // 16)].tobytes()
        return self.cls, self.shape, self.block, self.ordered, self.loose, self.nnz, some

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Pattern):
            return self is other
        at = (self.indptr, other.indptr), (self.indices, other.indices)
        return self._kind == other._kind and all(np.array_equal(x, y) for x, y in at)

    def __hash__(self) -> int:
        return hash(self._kind)

    def __repr__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]}, {self.nnz} elements"

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def is_array(self) -> bool:
        """Whether it is one of SciPy's sparse arrays, of which ``*`` is by elements."""
        return self.cls.__name__.endswith("array")

    @property
    def format(self) -> str:
        return self.cls.__name__.partition("_")[0]

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each element."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    @cached_property
    def places(self) -> np.ndarray:
        """The place of each element in the dense matrix, ascending."""
        return self.rows * self.shape[1] + self.indices

    @cached_property
    def bands(self) -> tuple[int, int]:
        """How many diagonals below and above the main one the elements are on."""
        offsets = self.indices - self.rows
        return int(max(-offsets.min(initial=0), 0)), int(max(offsets.max(initial=0), 0))

    def of(
        self, cls: type, ordered: bool = True, *, block: tuple[int, int] | None = None,
        loose: str | None = None,
    ) -> Pattern:  # fmt: skip
        """The same elements of another class."""
        loose = self.loose if loose is None else loose
        return Pattern(
            cls, self.shape, self.indptr, self.indices, ordered=ordered, block=block, loose=loose
        )

    @cached_property
    def by_columns(self) -> np.ndarray:
        """The elements column after column, as CSC stores them."""
        return np.argsort(self.indices, kind="stable")

    def csr(self, data: np.ndarray) -> Any:
        """A CSR array with these numbers."""
        from scipy import sparse

        where = self.indices.copy(), self.indptr.copy()  # which users may write into
        made = sparse.csr_array((data, *where), shape=self.shape)
        made.has_canonical_format = True
        return made

    def plain(self, data: np.ndarray) -> Any:
        """A matrix of the class with these numbers."""
        made = self.csr(np.array(data))
        if self.block is not None:
            return self.cls(made.tobsr(self.block))
        return self.cls(made)


def taken_apart(matrix: Any) -> tuple[np.ndarray, Pattern]:
    """The numbers and the pattern of one of SciPy's matrices."""
    csr, block = matrix, None
    if matrix.format == "dia":
        csr = _of_diagonals(matrix)
    elif matrix.format == "bsr":
        block = int(matrix.blocksize[0]), int(matrix.blocksize[1])
    csr = csr.tocsr()
    loose = ""
    unsorted = matrix.format in ("csr", "csc", "bsr") and not matrix.has_sorted_indices
    if unsorted or matrix.format == "dok":
        loose = UNSORTED
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if matrix.format in ("csr", "csc", "bsr", "coo") and csr.nnz != matrix.nnz:
        loose = REPEATED
    ordered = matrix.format in ("csr", "lil") or (matrix.format == "csc" and matrix.nnz == 0)
    ordered = ordered and bool(matrix.format == "lil" or matrix.has_canonical_format)
    ordered = ordered or (matrix.format == "coo" and _is_sorted(matrix))
    shape = (int(csr.shape[0]), int(csr.shape[1]))
    pattern = Pattern(
        type(matrix), shape, csr.indptr, csr.indices, ordered=ordered, block=block, loose=loose
    )
    return np.ascontiguousarray(csr.data), pattern


def _is_sorted(matrix: Any) -> bool:
    places = matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col
    return bool(np.all(np.diff(places) > 0))


def _of_diagonals(matrix: Any) -> Any:
    """All elements of a DIA matrix, also those that are 0, which SciPy would leave out."""
    from scipy import sparse

    m, n = matrix.shape
    columns = np.arange(matrix.data.shape[1])
    rows = columns[None, :] - np.asarray(matrix.offsets)[:, None]
    inside = (rows >= 0) & (rows < m) & (columns < n)[None, :]
    columns = np.broadcast_to(columns, inside.shape)
    return sparse.coo_array((matrix.data[inside], (rows[inside], columns[inside])), shape=(m, n))


# --- arrays of short integers, of which a tape has those of int64 ---------------------------------


def longs(shorts: list[np.ndarray]) -> dict[int, list[Any]]:
    """By their identity, arrays that share memory, as parts of one of int64: what is written into
    one of them is read from the others."""
    found: dict[int, list[Any]] = {}
    if len(shorts) < 2:
        return found
    for members, first, length in together(shorts):
        dtype = members[0].dtype
        offsets = [x.ctypes.data - first for x in members]
        is_one = all(x.dtype == dtype for x in members) and not any(
            at % dtype.itemsize for at in offsets
        )
        if len(members) < 2 or not is_one:
            continue
        whole = np.frombuffer(string_at(first, length), dtype).astype(np.int64)
        times = whole.itemsize // dtype.itemsize
        for x, at in zip(members, offsets, strict=True):
            strides = [times * step for step in x.strides]
            found[id(x)] = [np.ndarray(x.shape, whole.dtype, whole, times * at, strides)]
    return found


def together(arrays: Iterable[np.ndarray]) -> list[tuple[list[np.ndarray], int, int]]:
    """Those whose memory overlaps, together: where it begins, and how many bytes it has."""
    extents: list[tuple[int, int, list[np.ndarray]]] = []
    every = [(*np.lib.array_utils.byte_bounds(x), x) for x in arrays if x.size]
    for start, end, x in sorted(every, key=lambda one: one[:2]):
        if extents and start < extents[-1][1]:
            first, last, members = extents.pop()
            extents.append((first, max(last, end), [*members, x]))
        else:
            extents.append((start, end, [x]))
    return [(members, first, last - first) for first, last, members in extents]
