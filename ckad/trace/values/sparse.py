"""Sparse matrices while tracing: the pattern is known, the numbers are a traced array.

``numbers`` has the elements row after row, by ascending columns. Its data cannot be written, only
single elements, by the code that made it. It is not read after a write into the array that it was
made of.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import (
    AliasError,
    ConcreteValueError,
    UnrecordableError,
    UnsupportedFunctionError,
)
from ckad.patterns import UNSORTED, Pattern
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.dispatch import Traced, call
from ckad.trace.memory.context import Trace, current
from ckad.trace.values.array import Array
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.tracer import Tracer, fresh, value


def _by_name(key: str) -> Callable[..., Any]:
    """A method that NumPy's arrays do not have: the table has it by its name."""

    def method(self: Array, *args: Any, **options: Any) -> Any:
        function = dispatch.cell(key, dispatch.SPARSE)
        assert function is not None, key
        return function(self, *args, **options)

    return method


def _of_elements(ufunc: Any) -> Callable[[Any], Any]:
    return lambda self: call(ufunc, (self,), {})


class Sparse(Array):
    """A sparse matrix being recorded."""

    __slots__ = ("_numbers", "_pattern", "_source")
    kind = dispatch.SPARSE
    __array_priority__ = 4000

    def __init__(self, pattern: Pattern, numbers: Any, source: Tracer | None = None) -> None:
        self._pattern, self._numbers = pattern, numbers
        self._source = None if source is None else (source.storage, source.storage.row)

    @property
    def pattern(self) -> Pattern:
        """Which elements there are."""
        return self._pattern

    def replace(self, pattern: Pattern, numbers: Any = None) -> None:
        """Be another matrix from now on."""
        self._pattern = pattern
        if numbers is not None:
            self._numbers, self._source = numbers, None

    @property
    def numbers(self) -> Any:
        """The elements; AliasError if the array that SciPy would share was written since."""
        if self._source is not None:
            storage, row = self._source
            trace: Trace | None = current()
            adopted = False
            while trace is not None and trace is not storage.trace:
                adopted = adopted or id(storage.root) in trace.adopted
                trace = trace.parent
            if adopted or storage.row != row:
                raise AliasError.here(
                    "a sparse matrix was made of an array that is written into afterwards, "
                    "and may share its memory. Make it of a copy, or make it again."
                )
        return self._numbers

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
        self._need_tidy("nnz")
        return self.pattern.nnz

    size = nnz

    @property
    def format(self) -> str:
        return self.pattern.format

    def getformat(self) -> str:
        return self.format

    def getnnz(self, axis: Any = None) -> Any:
        if axis is None:
            return self.nnz
        self._need_tidy("getnnz")
        at: np.ndarray = self.pattern.indices if axis in (0, -2) else self.pattern.rows
        return np.bincount(at, minlength=self.shape[1 if axis in (0, -2) else 0])

    @property
    def has_sorted_indices(self) -> bool:
        self._only_for("has_sorted_indices", "csr", "csc", "bsr")
        return True

    @property
    def has_canonical_format(self) -> bool:
        self._only_for("has_canonical_format", "csr", "csc")
        return True

    def get_shape(self) -> tuple[int, int]:
        return self.shape

    def __len__(self) -> NoReturn:
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __repr__(self) -> str:
        return f"<traced sparse matrix, {self.pattern!r}>"

    # --- its parts -----------------------------------------------------------------------------

    def _need_tidy(self, name: str) -> None:
        if self.pattern.loose and not (self.pattern.loose == UNSORTED and "nnz" in name):
            raise UnsupportedFunctionError.here(
                f".{name} of this sparse matrix: {self.pattern.loose}, and ckad keeps the "
                "elements by rows and columns, each once. Ask for it after "
                "A = A.tocsr(); A.sum_duplicates(), or make the matrix with sorted columns."
            )

    def _only_for(self, name: str, *formats: str) -> None:
        if self.format not in formats and name not in dir(self.pattern.cls((1, 1))):
            raise AttributeError(f"{self.pattern.cls.__name__} has no attribute {name!r}")
        self._need_tidy(name)
        if self.format not in formats or not (self.pattern.ordered or self.format == "csc"):
            raise UnsupportedFunctionError.here(
                f".{name} of this sparse matrix would be in SciPy's order, and ckad keeps the "
                "elements by rows and columns. Ask a CSR matrix for it: A.tocsr()."
            )

    @property
    def data(self) -> Any:
        self._only_for("data", "csr", "csc", "coo")
        found = self.numbers
        if self.format == "csc":
            found = call(np.take, (found, self.pattern.by_columns), {})
        parts = found.parts if isinstance(found, ComplexTracer) else (found,)
        shown = [fresh(value(part)) for part in parts]
        for part in shown:
            part.storage.shared = "the data of a sparse matrix"
        return shown[0] if len(shown) == 1 else ComplexTracer(*shown)

    @data.setter
    def data(self, new: Any) -> None:
        raise UnrecordableError.here(
            "the data of a traced sparse matrix cannot be set. Make a new one: "
            "csr_matrix((data, A.indices, A.indptr), shape=A.shape)."
        )

    @property
    def indices(self) -> np.ndarray:
        self._only_for("indices", "csr", "csc")
        if self.format == "csc":
            rows: np.ndarray = self.pattern.rows[self.pattern.by_columns].astype(np.int32)
            return rows
        return self.pattern.indices.copy()

    @property
    def indptr(self) -> np.ndarray:
        self._only_for("indptr", "csr", "csc")
        if self.format == "csc":
            counts = np.bincount(self.pattern.indices, minlength=self.shape[1])
            return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return self.pattern.indptr.copy()

    @property
    def row(self) -> np.ndarray:
        self._only_for("row", "coo")
        return self.pattern.rows.astype(np.int32)

    @property
    def col(self) -> np.ndarray:
        self._only_for("col", "coo")
        return self.pattern.indices.copy()

    # --- SciPy's methods -----------------------------------------------------------------------

    tocsr, tocsc, tocoo = _by_name("tocsr"), _by_name("tocsc"), _by_name("tocoo")
    tobsr, todia, asformat = _by_name("tobsr"), _by_name("todia"), _by_name("asformat")
    tolil, todok, setdiag = _by_name("tolil"), _by_name("todok"), _by_name("setdiag")
    getrow, getcol, reshape = _by_name("getrow"), _by_name("getcol"), _by_name("reshape")
    todense, toarray, getH = _by_name("todense"), _by_name("toarray"), _by_name("getH")
    multiply, power, asfptype = _by_name("multiply"), _by_name("power"), _by_name("asfptype")
    maximum, minimum, prune = _by_name("maximum"), _by_name("minimum"), _by_name("prune")
    count_nonzero, sum_duplicates = _by_name("count_nonzero"), _by_name("sum_duplicates")
    eliminate_zeros = _by_name("eliminate_zeros")
    sort_indices, sorted_indices = _by_name("sort_indices"), _by_name("sorted_indices")
    __iadd__, __isub__ = _by_name("+="), _by_name("-=")
    __imul__, __itruediv__ = _by_name("*="), _by_name("/=")
    sqrt, sign, expm1 = _of_elements(np.sqrt), _of_elements(np.sign), _of_elements(np.expm1)
    log1p, rint, trunc = _of_elements(np.log1p), _of_elements(np.rint), _of_elements(np.trunc)
    sin, tan, sinh = _of_elements(np.sin), _of_elements(np.tan), _of_elements(np.sinh)
    tanh, arcsin, arctan = _of_elements(np.tanh), _of_elements(np.arcsin), _of_elements(np.arctan)
    arcsinh, arctanh = _of_elements(np.arcsinh), _of_elements(np.arctanh)
    deg2rad, rad2deg = _of_elements(np.deg2rad), _of_elements(np.rad2deg)
    ceil, floor = _of_elements(np.ceil), _of_elements(np.floor)

    # --- numbers are not known -----------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ConcreteValueError.here(
            "a traced sparse matrix is turned into a plain array. Use A.toarray()."
        )

    def __bool__(self) -> NoReturn:
        raise ValueError(at_place("the truth value of a sparse matrix is ambiguous"))

    __hash__ = object.__hash__


class Dense(Array):
    """What SciPy gives as an ``np.matrix``, which has two axes always and ``*`` as the product.

    It is only good for products, and for being turned into an array.
    """

    __slots__ = ("numbers",)
    kind = dispatch.SPARSE
    __array_priority__ = 4000

    def __mul__(self, other: Any) -> Any:
        return call(operator.mul, (self, other), {})

    def __rmul__(self, other: Any) -> Any:
        of_matrices = isinstance(other, np.matrix)
        return call(operator.mul if of_matrices else np.multiply, (other, self), {})

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

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        size: int = self.numbers.size
        return size

    @property
    def A(self) -> Any:
        return self.numbers

    @property
    def A1(self) -> Any:
        return call(np.ravel, (self.numbers,), {})

    def getA(self) -> Any:
        return self.A

    def getA1(self) -> Any:
        return self.A1

    I, H = property(_by_name("matrix.I")), property(_by_name("matrix.H"))  # noqa: E741
    trace, ravel = _by_name("matrix.trace"), _by_name("matrix.ravel")
    reshape, astype = _by_name("matrix.reshape"), _by_name("matrix.astype")
    item, tolist = _by_name("matrix.item"), _by_name("matrix.tolist")
    __pow__, __rpow__ = _by_name("matrix ** n"), _by_name("n ** matrix")
    __matmul__, __rmatmul__ = _by_name("matrix @"), _by_name("@ matrix")
    __iadd__, __isub__ = _by_name("matrix +="), _by_name("matrix -=")
    __imul__, __itruediv__ = _by_name("matrix *="), _by_name("matrix /=")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ConcreteValueError.here(
            "a traced np.matrix is turned into a plain array. Use np.asarray(m) of it."
        )

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __repr__(self) -> str:
        return "<traced matrix; np.asarray(m) is the array>"

    __hash__ = object.__hash__


def refuse(name: str) -> NoReturn:
    """A function without a rule for sparse matrices."""
    raise UnsupportedFunctionError.here(
        f"ckad has no rule for {name.replace('numpy', 'np', 1)} of sparse matrices. "
        "docs/programs.md says what is done with them; A.toarray() is a dense one."
    )


trees.register_matrix(Sparse, Traced)
dispatch.refuses(dispatch.SPARSE, refuse)
