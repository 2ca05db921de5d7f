"""Sparse matrices while tracing: the pattern is known, the numbers are a traced array.

``numbers`` has the elements row after row, by ascending columns. Its data cannot be written, only
single elements, by the code that made it. It is not read after a write into the array that it was
made of.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import (
    AliasError,
    ConcreteValueError,
    UnrecordableError,
    UnsupportedFunctionError,
)
from ckad.patterns import Pattern
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.dispatch import Traced, call
from ckad.trace.memory.context import Trace, current
from ckad.trace.values.array import Array
from ckad.trace.values.tracer import Tracer, fresh, value


def _writing(ufunc: Any) -> Any:
    def operator(self: Sparse, other: Any) -> Any:
        return self._in_place(other, call(ufunc, (self, other), {}))

    return operator


class Sparse(Array):
    """A sparse matrix being recorded."""

    __slots__ = ("_numbers", "_source", "pattern")
    kind = dispatch.SPARSE
    __array_priority__ = 4000

    def __init__(self, pattern: Pattern, numbers: Tracer, source: Tracer | None = None) -> None:
        self.pattern, self._numbers = pattern, numbers
        self._source = None if source is None else (source.storage, source.storage.row)

    @property
    def numbers(self) -> Tracer:
        """The elements; AliasError if the array that SciPy would share was written since."""
        if self._source is not None:
            storage, row = self._source
            trace: Trace | None = current()
            adopted = False
            while trace is not None and trace is not storage.trace:
                adopted = adopted or id(storage.root) in trace.adopted
                trace = trace.parent
            if adopted or storage.row != row:
                raise AliasError(
                    at_place(
                        "a sparse matrix was made of an array that is written into afterwards, "
                        "and may share its memory. Make it of a copy, or make it again."
                    )
                )
        return self._numbers

    def become(self, other: Sparse) -> None:
        """Have the elements of another matrix: some of them were written."""
        self.pattern, self._numbers, self._source = other.pattern, other.numbers, None

    def _in_place(self, other: Any, new: Any) -> Any:
        """``A *= s``: SciPy writes the data of the matrix, but for formats that have none."""
        if np.ndim(other) or self.format in ("lil", "dok"):
            return new
        if self.numbers.storage.trace is not current():
            raise UnrecordableError(
                at_place(
                    "a loop or branch writes into a sparse matrix that was made outside of it. "
                    "Make a new one: A = A * s in place of A *= s."
                )
            )
        self.become(new)
        return self

    __imul__, __itruediv__ = _writing(np.multiply), _writing(np.divide)
    __iadd__, __isub__ = Array.__add__, Array.__sub__

    # --- what it is ----------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.numbers.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    ndim = 2

    @property
    def nnz(self) -> int:
        return self.pattern.nnz

    size = nnz

    @property
    def format(self) -> str:
        return self.pattern.format

    def getformat(self) -> str:
        return self.format

    def getnnz(self) -> int:
        return self.nnz

    def get_shape(self) -> tuple[int, int]:
        return self.shape

    def __len__(self) -> NoReturn:
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __repr__(self) -> str:
        return f"<traced sparse matrix, {self.pattern!r}>"

    # --- its parts -----------------------------------------------------------------------------

    def _only_for(self, name: str, *formats: str) -> None:
        if self.format not in formats:
            raise AttributeError(f"{self.pattern.cls.__name__} has no attribute {name!r}")
        if not self.pattern.ordered:
            raise UnsupportedFunctionError(
                at_place(
                    f".{name} of this sparse matrix would be in SciPy's order, and ckad keeps the "
                    "elements by rows and columns. Ask a CSR matrix with sorted indices for it "
                    "(A.tocsr(), A.sort_indices() and A.sum_duplicates(), before the call)."
                )
            )

    @property
    def data(self) -> Any:
        self._only_for("data", "csr", "coo")
        shown = fresh(value(self.numbers))
        shown.storage.shared = "the data of a sparse matrix"
        return shown

    @data.setter
    def data(self, new: Any) -> None:
        raise UnrecordableError(
            at_place(
                "the data of a traced sparse matrix cannot be set. Make a new one: "
                "csr_matrix((data, A.indices, A.indptr), shape=A.shape)."
            )
        )

    @property
    def indices(self) -> np.ndarray:
        self._only_for("indices", "csr")
        return self.pattern.indices.copy()

    @property
    def indptr(self) -> np.ndarray:
        self._only_for("indptr", "csr")
        return self.pattern.indptr.copy()

    @property
    def row(self) -> np.ndarray:
        self._only_for("row", "coo")
        return self.pattern.rows.astype(np.int32)

    @property
    def col(self) -> np.ndarray:
        self._only_for("col", "coo")
        return self.pattern.indices.copy()

    # --- numbers are not known -----------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ConcreteValueError(
            at_place("a traced sparse matrix is turned into a plain array. Use A.toarray().")
        )

    def __bool__(self) -> NoReturn:
        raise ValueError(at_place("the truth value of a sparse matrix is ambiguous"))

    __hash__ = object.__hash__


class Dense(Array):
    """What SciPy gives as an ``np.matrix``, which has two axes always and ``*`` as the product.

    It is only good for being turned into an array.
    """

    __slots__ = ("numbers",)
    kind = dispatch.SPARSE
    __array_priority__ = 4000

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.numbers.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, int]:
        shape: tuple[int, int] = self.numbers.shape
        return shape

    ndim = 2

    @property
    def A(self) -> Any:
        return self.numbers

    @property
    def A1(self) -> Any:
        return call(np.ravel, (self.numbers,), {})

    def __repr__(self) -> str:
        return "<traced matrix; np.asarray(m) is the array>"

    __hash__ = object.__hash__


def _refuse(name: str) -> NoReturn:
    raise UnsupportedFunctionError(
        at_place(
            f"ckad has no rule for {name.replace('numpy', 'np', 1)} of sparse matrices. "
            "docs/programs.md says what is done with them; A.toarray() is a dense one."
        )
    )


trees.register_matrix(Sparse, Traced)
dispatch.refuses(dispatch.SPARSE, _refuse)
