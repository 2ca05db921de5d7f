"""Functions of matrices and matrix equations, by SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import (
    Matrix,
    flags,
    joined,
    matrices,
    matrix,
    need,
    parted,
    square,
)
from ckad.rules.routines.dense.triangles import triangular
from ckad.rules.routines.memory import HEAD, compiled, integers, run
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import DType, Type

Attributes = Sequence[int]

# --- analytic functions of matrices ---------------------------------------------------------------

# A function f of [[A, E], [0, A]] has the derivative of f(A) along E in its upper right corner:
# N. J. Higham, "Functions of Matrices", 2008, section 3.2.


def _shape(attrs: Attributes, a: Type) -> Type:
    flags("a function of matrices", attrs, 1)
    matrices("a function of matrices", a)
    square("a function of matrices", a)
    return a


def _along(b: Builder, a: Matrix, direction: Matrix, number: int, is_complex: int) -> int:
    n = a.shape[1]
    whole = (2 * n, 2 * n)
    both = a.within((0, 0), whole) + a.within((n, n), whole) + direction.within((0, n), whole)
    found = matrix(b, b.call(both.stacked(is_complex), attrs=(number, is_complex)), is_complex)
    return found.block((0, n), (n, n)).stacked(is_complex)


def _function(name: str, of_matrix: Callable[[np.ndarray], np.ndarray]) -> Routine:
    def run(attrs: Attributes, a: np.ndarray) -> np.ndarray:
        x = joined(a, attrs[0])
        found = np.array([of_matrix(m) for m in x]).reshape(x.shape)
        if found.dtype.kind == "c" and not attrs[0]:
            raise np.linalg.LinAlgError(
                f"the {name} of this real matrix is complex; pass a complex matrix, a + 0j"
            )
        return parted(found, attrs[0])

    def push(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
        assert tangents[0] is not None
        x, change = (matrix(b, v, attrs[0]) for v in (a, tangents[0]))
        return _along(b, x, change, routine.number, attrs[0])

    def pull(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
        # the adjoint of the derivative at A is the derivative at A^H
        x, z = (matrix(b, v, attrs[0]) for v in (a, ct))
        return (_along(b, x.H, z, routine.number, attrs[0]),)

    routine = define(
        Routine(name, _shape, run, push, pull, lambda attrs, a: 30.0 * a.size * a.shape[1])
    )
    return routine


def _exponential(a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    return np.asarray(scipy.linalg.expm(a))


def _root(a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    return np.asarray(scipy.linalg.sqrtm(a))


def _logarithm(a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    with warnings.catch_warnings():  # of an error of 1e-13, and in matrices that users do not see
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(scipy.linalg.logm(a))


expm = _function("expm", _exponential)
sqrtm = _function("sqrtm", _root)
logm = _function("logm", _logarithm)

# --- Sylvester's equation -------------------------------------------------------------------------

# sylvester(A [b, n, n], B [b, m, m], Q [b, n, m]; complex) -> X with A X + X B = Q


def _sylvester_shape(attrs: Attributes, a: Type, b: Type, q: Type) -> Type:
    flags("sylvester", attrs, 1)
    matrices("sylvester", a, b, q)
    square("sylvester", a)
    square("sylvester", b)
    need(q.shape[1:] == (a.shape[1], b.shape[1]), f"sylvester of {a}, {b} and {q}")
    return q


def _sylvester(attrs: Attributes, *operands: np.ndarray) -> np.ndarray:
    import scipy.linalg

    stacks = [joined(x, attrs[0]) for x in operands]
    found = [scipy.linalg.solve_sylvester(*matrices) for matrices in zip(*stacks, strict=True)]
    return parted(np.array(found).reshape(stacks[2].shape), attrs[0])


def _sylvester_jvp(
    b: Builder, tangents: Tangents, out: int, *operands: int, attrs: Attributes
) -> int | None:
    (is_complex,) = attrs
    x, total = matrix(b, out, is_complex), None
    for k, tangent in enumerate(tangents):
        if tangent is not None:
            change = matrix(b, tangent, is_complex)
            term = (-(change @ x), -(x @ change), change)[k]
            total = term if total is None else total + term
    if total is None:
        return None
    right = total.stacked(is_complex)
    return b.call(operands[0], operands[1], right, attrs=(sylvester.number, is_complex))


def _sylvester_vjp(
    b: Builder, ct: int, out: int, *operands: int, attrs: Attributes
) -> tuple[int, ...]:
    """A^H Y + Y B^H = ct, ct_Q = Y, ct_A = -Y X^H, ct_B = -X^H Y"""
    (is_complex,) = attrs
    turned = [matrix(b, v, is_complex).H.stacked(is_complex) for v in operands[:2]]
    of_right = b.call(*turned, ct, attrs=(sylvester.number, is_complex))
    x, y = (matrix(b, v, is_complex) for v in (out, of_right))
    changes = [(-(y @ x.H)).stacked(is_complex), (-(x.H @ y)).stacked(is_complex)]
    return *changes, of_right


sylvester = define(
    Routine(
        "sylvester",
        _sylvester_shape,
        _sylvester,
        _sylvester_jvp,
        _sylvester_vjp,
        lambda attrs, a, b, q: 25.0 * (a.size * a.shape[1] + b.size * b.shape[1]),
    )
)

# --- LU as SciPy shows it -------------------------------------------------------------------------

# lu_compact(A; complex) -> [b, n + 1, n]: U, and below its diagonal L, of A with its rows in the
# order that the last row says


def _compact_shape(attrs: Attributes, a: Type) -> Type:
    square("lu_compact", _shape(attrs, a))
    batch, n, _ = a.shape
    return a.with_shape((batch, n + 1, n))


def _compact(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    x = joined(a, attrs[0])
    found = np.empty((len(x), x.shape[1] + 1, x.shape[1]), x.dtype)
    for to, m in zip(found, x, strict=True):
        to[:-1], pivots = scipy.linalg.lu_factor(m)
        to[-1] = _order(pivots)
    return parted(found, attrs[0])


def _order(exchanges: np.ndarray) -> np.ndarray:
    order = np.arange(len(exchanges))
    for i, j in enumerate(exchanges):
        order[[i, j]] = order[[j, i]]
    return order


def _parts_of(b: Builder, out: int, is_complex: int) -> tuple[Matrix, Matrix]:
    """The factors in one matrix, and the permutation as a matrix."""
    both = matrix(b, out, is_complex)
    batch, _, n = both.shape
    order = both.block((n, 0), (1, n)).re
    rows = b.broadcast_to(b.reshape_to(order, (batch, n, 1)), (batch, n, n))
    columns = b.broadcast_to(b.const(np.arange(n, dtype=float).reshape(1, 1, n)), (batch, n, n))
    one, zero = b.full_like(rows, 1.0), b.full_like(rows, 0.0)
    return both.block((0, 0), (n, n)), Matrix(b, b.select(b.eq(rows, columns), one, zero))


def _upper(x: Matrix) -> Matrix:
    return x.weighted(np.triu(np.ones(x.shape[1:])))


def _solve(x: Matrix, y: Matrix, lower: int, adjoint: int) -> Matrix:
    """By one of the factors of ``x``; L has ones on its diagonal."""
    is_complex = int(x.im is not None)
    attrs = (triangular.number, lower, adjoint, lower, is_complex)
    found = x.b.call(x.stacked(is_complex), y.stacked(is_complex), attrs=attrs)
    return matrix(x.b, found, is_complex)


def _compact_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """M = L^-1 P dA U^-1, dL = L M below the diagonal, dU = M U from it on"""
    assert tangents[0] is not None
    (is_complex,) = attrs
    lu, p = _parts_of(b, out, is_complex)
    left = _solve(lu, p @ matrix(b, tangents[0], is_complex), 1, 0)
    m = _solve(lu, left.H, 0, 1).H
    n = lu.shape[1]
    unit_lower = lu.lower(0.0) + Matrix(b, b.broadcast_to(b.const(np.eye(n)[None]), lu.shape))
    total = unit_lower @ m.lower(0.0) + _upper(m) @ _upper(lu)
    return total.within((0, 0), (n + 1, n)).stacked(is_complex)


def _compact_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    (is_complex,) = attrs
    lu, p = _parts_of(b, out, is_complex)
    n = lu.shape[1]
    z = matrix(b, ct, is_complex).block((0, 0), (n, n))
    unit_lower = lu.lower(0.0) + Matrix(b, b.broadcast_to(b.const(np.eye(n)[None]), lu.shape))
    m = (unit_lower.H @ z.lower(0.0)).lower(0.0) + _upper(_upper(z) @ _upper(lu).H)
    left = _solve(lu, m, 1, 1)
    return ((p.T @ _solve(lu, left.H, 0, 0).H).stacked(is_complex),)


lu_compact = define(
    Routine(
        "lu_compact",
        _compact_shape,
        _compact,
        _compact_jvp,
        _compact_vjp,
        lambda attrs, a: 2 / 3 * a.size * a.shape[1],
    )
)

# exchanged(rows [b, n]; back) -> the order of the rows after row i was exchanged with row rows[i],
# one after the other, as LAPACK says it; or the way back from the order

_NO_ROWS = 1


def _exchanged_shape(attrs: Attributes, rows: Type) -> Type:
    flags("exchanged", attrs, 1)
    need(rows.dtype is DType.I64 and len(rows.shape) == 2, f"exchanged of {rows}")
    return rows


def _exchanged(words: int, arrays: int, work: int) -> int:
    back, batch, n = integers(words, 3)
    out, rows = integers(arrays, 2)
    for k in range(batch):
        given, found = integers(rows + 8 * k * n, n), integers(out + 8 * k * n, n)
        order = integers(work + HEAD, n) if back else found
        for i in range(n):
            order[i] = i
        for i in range(n):
            j = given[i]
            if back:
                j = i
                while j < n and order[j] != given[i]:
                    j += 1
            if j < 0 or j >= n:
                return _NO_ROWS
            order[i], order[j] = order[j], order[i]
            if back:
                found[i] = j
    return 0


_EXCHANGED = compiled(
    _exchanged,
    lambda attrs, rows: 8 * rows.shape[1],
    {
        _NO_ROWS: (
            ValueError,
            "the second array of LU factors does not say which rows are exchanged",
        )
    },
    calls_blas=False,
)
exchanged = define(
    Routine(
        "exchanged",
        _exchanged_shape,
        lambda attrs, rows: run(_EXCHANGED, Type(DType.I64, rows.shape), attrs, rows),
        compiled=_EXCHANGED,
    )
)
