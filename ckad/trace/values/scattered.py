"""Sparse matrices whose places are traced: elements, and the row and column of each.

What they are made for is to be multiplied by arrays, summed, and turned into arrays: each element
is added to its place. Which elements there are is not known, so nothing else is.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.dispatch import Traced, call
from ckad.trace.values.array import Array
from ckad.trace.values.sparse import Dense


class Scattered(Array):
    """Elements ``numbers`` at ``rows`` and ``columns``, where several may meet."""

    __slots__ = ("cls", "columns", "numbers", "rows", "shape")
    kind = dispatch.SPARSE
    __array_priority__ = 4000
    ndim = 2

    def __init__(
        self, cls: type, shape: tuple[int, int], numbers: Any, rows: Any, columns: Any
    ) -> None:
        self.cls, self.shape = cls, shape
        self.numbers, self.rows, self.columns = numbers, rows, columns

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.numbers.dtype
        return dtype

    @property
    def is_array(self) -> bool:
        return self.cls.__name__.endswith("array")

    def turned(self) -> Scattered:
        m, n = self.shape
        return Scattered(self.cls, (n, m), self.numbers, self.columns, self.rows)

    def of(self, numbers: Any) -> Scattered:
        """Other elements at the same places."""
        return Scattered(self.cls, self.shape, numbers, self.rows, self.columns)

    def times(self, dense: Any) -> Any:
        """The product by an array with one or two axes."""
        m, n = self.shape
        if dense.ndim not in (1, 2) or dense.shape[0] != n:
            raise ValueError(
                at_place(f"matmul: dimension mismatch of {self.shape} and {dense.shape}")
            )
        factors = self.numbers if dense.ndim == 1 else self.numbers[:, np.newaxis]
        terms = call(np.multiply, (factors, dense[self.columns]), {})
        return self._added((m, *dense.shape[1:]), self.rows, terms)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        m, n = self.shape
        flat = self._added((m * n,), self.rows * n + self.columns, self.numbers)
        return call(np.reshape, (flat, (m, n)), {})

    def todense(self, order: Any = None, out: Any = None) -> Dense:
        return Dense(self.toarray())

    def _added(self, shape: tuple[int, ...], places: Any, terms: Any) -> Any:
        total = call(np.zeros_like, (terms[:1],), {"shape": shape})
        call((np.add, "at"), (total, places, terms), {})
        return total

    def _same(self, *args: Any, **options: Any) -> Scattered:
        return self.of(self.numbers)

    tocsr = tocsc = tocoo = asformat = _same

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ConcreteValueError.here(
            "a traced sparse matrix is turned into a plain array. Use A.toarray()."
        )

    def __repr__(self) -> str:
        return f"<traced sparse matrix at traced places, {self.shape}>"

    __hash__ = object.__hash__


def _children(x: Scattered) -> tuple[list[Any], Any, None]:
    return [x.numbers, x.rows, x.columns], (x.cls, x.shape), None


def _rebuilt(aux: Any, children: Any) -> Any:
    children = tuple(children)
    return Scattered(*aux, *children) if isinstance(children[0], Traced) else children


trees.register(Scattered, _children, _rebuilt)
