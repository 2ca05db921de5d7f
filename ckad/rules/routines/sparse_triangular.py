"""Triangular systems of sparse matrices in CSR form, and how solutions of systems are derived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import SINGULAR
from ckad.rules.routines.dense.matrices import add, need
from ckad.rules.routines.memory import compiled, copy, doubles, from_code, integers, naturals
from ckad.rules.routines.sparse import (
    Contributions,
    check,
    check_pattern,
    product,
    samples,
    turned,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import named
from ckad.tape.types import Type

_SINGULAR = 1
#: Places as unsigned numbers: Numba then looks for no negative ones.
_U = np.uint64

# --- triangular systems --------------------------------------------------------------------------

# sparse_triangular(data [nnz], B [n, k], indptr, indices; transposed, lower, unit, n) -> X with
# A X = B or A^T X = B; A has no elements outside of its triangle, and none on a unit diagonal


def square(name: str, m: int, data: Type, right: Type, indptr: Type, indices: Type) -> Type:
    check(name, (data, right), indptr, indices)
    fits = len(data.shape) == 1 and len(right.shape) == 2 and right.shape[0] == m
    need(fits, f"{name} of {data} and {right}: {m} rows are needed")
    check_pattern(name, m, data.size, indptr, indices)
    return right


def _triangular_shape(attrs: Sequence[int], *types: Type) -> Type:
    need(len(attrs) == 4, f"sparse_triangular with attributes {tuple(attrs)}")
    return square("sparse_triangular", attrs[3], *types)


def _solve_triangular(words: int, arrays: int, work: int) -> int:
    transposed, lower, unit, n, nnz, _, k = integers(words, 7)
    out, at_data, at_right, at_indptr, at_indices = integers(arrays, 5)
    data, x = doubles(at_data, nnz), doubles(out, n * k)
    indptr, indices = naturals(at_indptr, n + 1), naturals(at_indices, nnz)
    copy(x, doubles(at_right, n * k))
    for step in range(n):
        i = step if lower != transposed else n - 1 - step
        # sorted columns: the diagonal is at the end of a row of a lower triangle
        first, last, diagonal = _U(indptr[i]), _U(indptr[i + 1]), 1.0
        if not unit:
            at = last - _U(1) if lower else first
            if first == last or indices[at] != i or data[at] == 0.0:
                return _SINGULAR
            diagonal = data[at]
            first, last = (first, last - _U(1)) if lower else (first + _U(1), last)
        for c in range(k):
            if transposed:
                x[i * k + c] /= diagonal
                for p in range(first, last):
                    x[_U(indices[p]) * _U(k) + _U(c)] -= data[p] * x[i * k + c]
            else:
                total = x[i * k + c]
                for p in range(first, last):
                    total -= data[p] * x[_U(indices[p]) * _U(k) + _U(c)]
                x[i * k + c] = total / diagonal
    return 0


def solution_rules(
    name: str, turned: Callable[[Sequence[int]], Sequence[int]], rows: int
) -> dict[str, Any]:
    """Derivatives of X with A X = B (A^T X = B where the first attribute is 1).

    ``turned`` are the attributes of the transposed system, ``rows`` is the one that says how many
    rows there are.
    """

    def solved(b: Builder, operands: Sequence[int], attrs: Sequence[int]) -> int:
        return b.call(*operands, attrs=(named(name).number, *attrs))

    def jvp(
        b: Builder, tangents: Tangents, out: int, data: int, x: int, *where: int,
        attrs: Sequence[int],
    ) -> int | None:  # fmt: skip
        """dX = A^-1 (dB - dA X)"""
        n = attrs[rows]
        terms = [] if tangents[1] is None else [tangents[1]]
        if tangents[0] is not None:
            change = product(b, tangents[0], out, where[:2], (attrs[0], n, n))
            terms.append(b.neg(change))
        total = add(b, terms)
        return None if total is None else solved(b, (data, total, *where), attrs)

    def vjp(
        b: Builder, ct: int, out: int, data: int, x: int, *where: int, attrs: Sequence[int]
    ) -> Contributions:
        """ct_B = A^-T ct, ct_A = -ct_B X^T"""
        n = attrs[rows]
        of_right = solved(b, (data, ct, *where), turned(attrs))
        pair = (out, of_right) if attrs[0] else (of_right, out)
        of_data = b.neg(samples(b, *pair, where[:2], (n, n, b.type(data).size)))
        return (of_data, of_right, *[None] * len(where))

    return {"jvp": jvp, "vjp": vjp}


_TRIANGULAR = compiled(_solve_triangular, lambda attrs, *types: 0, {_SINGULAR: SINGULAR})
triangular = from_code(
    "sparse_triangular",
    _triangular_shape,
    _TRIANGULAR,
    flops=lambda attrs, data, x, *where: 2.0 * data.size * x.shape[1],
    **solution_rules("sparse_triangular", turned, 3),
)
