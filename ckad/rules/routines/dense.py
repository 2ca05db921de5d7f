"""Dense linear systems by LAPACK, on stacks of matrices in C order.

LAPACK counts by columns and so sees every matrix transposed. Nothing is transposed for it: a
product or a solution of transposes, from the other side, is the same bytes.

Formulas of derivatives: M. B. Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ckad.errors import TapeError
from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    doubles,
    external,
    integers,
    letters,
    run,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Failure, Routine, define
from ckad.tape.types import DType, Type

_dgetrf = external("dgetrf", 6)
_dpotrf = external("dpotrf", 5)
_dtrsm = external("dtrsm", 11)
_dtrsv = external("dtrsv", 8)

_L, _R, _U, _N, _T = (ord(letter) for letter in "LRUNT")
_SINGULAR, _NOT_POSITIVE = 1, 1
#: NumPy's words.
SINGULAR: Failure = (np.linalg.LinAlgError, "Singular matrix")
NOT_POSITIVE: Failure = (np.linalg.LinAlgError, "Matrix is not positive definite")


def need(condition: bool, message: str) -> None:
    if not condition:
        raise TapeError(message)


def matrices(name: str, *stacks: Type) -> None:
    """TapeError unless these are stacks of float64 matrices, as many in each."""
    shown = ", ".join(map(str, stacks))
    fits = all(t.dtype is DType.F64 and len(t.shape) == 3 for t in stacks)
    need(fits, f"{name} of {shown}; it needs float64 in three axes")
    need(len({t.shape[0] for t in stacks}) == 1, f"{name} of {shown}: stacks of different lengths")


def swapped(b: Builder, x: int) -> int:
    """The transpose of every matrix of a stack."""
    return b.transpose(x, attrs=(0, 2, 1))


def add(b: Builder, terms: Sequence[int]) -> int | None:
    """The sum of what there is."""
    total: int | None = None
    for term in terms:
        total = term if total is None else b.add(total, term)
    return total


def outer(b: Builder, x: int, y: int) -> int:
    """X Y^T; of columns element by element, which is computed where it is added up."""
    (batch, n, m), k = b.type(x).shape, b.type(y).shape[1]
    if m != 1:
        return b.matmul(x, y, attrs=(0, 1))
    row = b.broadcast_to(b.reshape_to(y, (batch, 1, k)), (batch, n, k))
    return b.mul(b.broadcast_to(x, (batch, n, k)), row)


# --- LU ------------------------------------------------------------------------------------------

# lu(A [b, n, n]) -> [b, n + 1, n]: the factors of each matrix and its row exchanges, which only
# routines read that take both. To derivatives it is the matrix itself: the tangent of factors has
# that of A in its first n rows, and so has the cotangent.


def _lu_shape(attrs: Sequence[int], a: Type) -> Type:
    matrices("lu", a)
    batch, n, m = a.shape
    need(n == m, f"lu of {a}; the matrices have to be square")
    return a.with_shape((batch, n + 1, n))


def _lu(words: int, arrays: int, work: int) -> int:
    batch, n = integers(words, 2)
    out, a = integers(arrays, 2)
    sizes = short_integers(work, HEAD // 4)
    sizes[0], sizes[1] = n, max(n, 1)
    exchanges = short_integers(work + HEAD, n)
    for k in range(batch):
        factors = doubles(out + 8 * k * (n + 1) * n, (n + 1) * n)
        factors[: n * n] = doubles(a + 8 * k * n * n, n * n)
        _dgetrf(work, work, factors.ctypes.data, work + 4, work + HEAD, work + 8)
        for i in range(n):
            factors[n * n + i] = exchanges[i] - 1
    return 0


_LU = compiled(_lu, lambda attrs, a: 4 * a.shape[1])


def _of_matrix(b: Builder, x: int) -> int:
    """The part of a tangent or cotangent of factors that is the matrix's."""
    batch, rows, n = b.type(x).shape
    type = b.type(x).with_shape((batch, rows - 1, n))
    return b.slice(x, attrs=(0, 0, 0, 1, 1, 1), type=type)


def _of_factors(b: Builder, x: int) -> int:
    """The way back."""
    batch, n, m = b.type(x).shape
    type = b.type(x).with_shape((batch, n + 1, m))
    return b.pad(x, attrs=(0, 0, 0, 1, 1, 1), type=type)


lu = define(
    Routine(
        "lu",
        _lu_shape,
        lambda attrs, a: run(_LU, _lu_shape(attrs, _type(a)), attrs, a),
        jvp=lambda b, tangents, out, a, attrs: _of_factors(b, tangents[0]),
        vjp=lambda b, ct, out, a, attrs: (_of_matrix(b, ct),),
        flops=lambda attrs, a: 2 / 3 * a.size * a.shape[1],
        compiled=_LU,
    )
)


def _type(x: np.ndarray) -> Type:
    return Type(DType.F64 if x.dtype.kind == "f" else DType.I64, x.shape)


# --- solutions by LU -----------------------------------------------------------------------------

# lu_solve(lu(A), B [b, n, m]; transposed) -> X with A X = B, or A^T X = B


def _solution(name: str, factors: Type, right: Type, n: int) -> Type:
    matrices(name, factors, right)
    need(right.shape[1] == n, f"{name} of {factors} and {right}: {n} rows are needed")
    return right


def _lu_solve_shape(attrs: Sequence[int], factors: Type, right: Type) -> Type:
    need(len(attrs) == 1 and attrs[0] in (0, 1), f"lu_solve with attributes {tuple(attrs)}")
    matrices("lu_solve", factors, right)
    return _solution("lu_solve", factors, right, factors.shape[2])


def _lu_solve(words: int, arrays: int, work: int) -> int:
    transposed, batch, _, n, _, _, m = integers(words, 7)
    out, factors, right = integers(arrays, 3)
    for k in range(batch):
        x, f = out + 8 * k * n * m, factors + 8 * k * (n + 1) * n
        to, pivots = doubles(x, n * m), doubles(f, (n + 1) * n)
        for i in range(n):
            if pivots[i * (n + 1)] == 0.0:
                return _SINGULAR
        to[:] = doubles(right + 8 * k * n * m, n * m)
        if transposed:
            for i in range(n):
                _exchange(to, m, i, int(pivots[n * n + i]))
            _triangular(work, f, x, n, m, _L, _T, _U)
            _triangular(work, f, x, n, m, _U, _T, _N)
        else:
            _triangular(work, f, x, n, m, _U, _N, _N)
            _triangular(work, f, x, n, m, _L, _N, _U)
            for i in range(n - 1, -1, -1):
                _exchange(to, m, i, int(pivots[n * n + i]))
    return 0


@kernel
def _exchange(x: np.ndarray, m: int, i: int, j: int) -> None:
    """Two rows of ``m`` elements."""
    if i != j:
        for c in range(m):
            x[i * m + c], x[j * m + c] = x[j * m + c], x[i * m + c]


@kernel
def _triangular(
    work: int, a: int, x: int, n: int, m: int, uplo: int, transposed: int, diagonal: int
) -> None:
    """x <- x a^-1 or x a^-T as LAPACK counts, where x has m rows and n columns."""
    if n == 0 or m == 0:
        return
    text, sizes, number = letters(work, 4), short_integers(work, 16), doubles(work, 8)
    sizes[1], sizes[2], sizes[3], number[3] = n, m, 1, 1.0
    if m == 1:
        # the row x a^-1 is the column a^-T x
        text[0], text[1], text[2] = uplo, _N if transposed == _T else _T, diagonal
        _dtrsv(work, work + 1, work + 2, work + 4, a, work + 4, x, work + 12)
    else:
        text[0], text[1], text[2], text[3] = _R, uplo, transposed, diagonal
        _dtrsm(work, work + 1, work + 2, work + 3, work + 8, work + 4, work + 24, a, work + 4,
               x, work + 8)  # fmt: skip


_LU_SOLVE = compiled(_lu_solve, lambda attrs, f, x: 0, {_SINGULAR: SINGULAR})


def _lu_solve_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, right: int, attrs: Sequence[int]
) -> int | None:
    """dX = A^-1 (dB - dA X)"""
    by_factors, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_factors is not None:
        change = b.matmul(_of_matrix(b, by_factors), out, attrs=(attrs[0], 0))
        terms.append(b.neg(change))
    total = add(b, terms)
    return None if total is None else _solved(b, factors, total, attrs[0])


def _solved(b: Builder, factors: int, right: int, transposed: int) -> int:
    return b.call(factors, right, attrs=(lu_solve.number, transposed))


def _lu_solve_vjp(
    b: Builder, ct: int, out: int, factors: int, right: int, attrs: Sequence[int]
) -> tuple[int, int]:
    """ct_B = A^-T ct, ct_A = -ct_B X^T"""
    (transposed,) = attrs
    of_right = _solved(b, factors, ct, 1 - transposed)
    pair = (out, of_right) if transposed else (of_right, out)
    return _of_factors(b, b.neg(outer(b, *pair))), of_right


lu_solve = define(
    Routine(
        "lu_solve",
        _lu_solve_shape,
        lambda attrs, f, x: run(_LU_SOLVE, _type(x), attrs, f, x),
        jvp=_lu_solve_jvp,
        vjp=_lu_solve_vjp,
        flops=lambda attrs, f, x: 2.0 * x.size * x.shape[1],
        compiled=_LU_SOLVE,
    )
)

# --- determinants by LU --------------------------------------------------------------------------

# slogdet(lu(A)) -> [b, 2]: the sign of the determinant, and the logarithm of its size


def _slogdet_shape(attrs: Sequence[int], factors: Type) -> Type:
    matrices("slogdet", factors)
    return factors.with_shape((factors.shape[0], 2))


def _slogdet(words: int, arrays: int, work: int) -> int:
    batch, _, n = integers(words, 3)
    out, factors = integers(arrays, 2)
    for k in range(batch):
        f, to = doubles(factors + 8 * k * (n + 1) * n, (n + 1) * n), doubles(out + 16 * k, 2)
        sign, total = 1.0, 0.0
        for i in range(n):
            pivot = f[i * (n + 1)]
            if f[n * n + i] != i:
                sign = -sign
            sign *= np.sign(pivot)
            total += np.log(abs(pivot))
        to[0], to[1] = sign, total
    return 0


_SLOGDET = compiled(_slogdet, lambda attrs, f: 0)


def _inverse_transposed(b: Builder, factors: int) -> int:
    batch, _, n = b.type(factors).shape
    eye = b.broadcast_to(b.const(np.eye(n)[None]), (batch, n, n))
    return _solved(b, factors, eye, 1)


def _column(b: Builder, x: int, k: int) -> int:
    """Column k of an array [b, 2]."""
    type = b.type(x).with_shape((b.type(x).shape[0], 1))
    return b.slice(x, attrs=(0, k, 1, 1), type=type)


def _slogdet_jvp(
    b: Builder, tangents: Tangents, out: int, factors: int, attrs: Sequence[int]
) -> int | None:
    """d log|det A| = tr(A^-1 dA)"""
    assert tangents[0] is not None
    product = b.mul(_inverse_transposed(b, factors), _of_matrix(b, tangents[0]))
    trace = b.reshape_to(b.sum(product, attrs=(1, 2)), (b.type(factors).shape[0], 1))
    return b.pad(trace, attrs=(0, 1, 1, 1), type=b.type(out))


def _slogdet_vjp(b: Builder, ct: int, out: int, factors: int, attrs: Sequence[int]) -> tuple[int]:
    inverse = _inverse_transposed(b, factors)
    batch, n, _ = b.type(inverse).shape
    ct = b.reshape_to(_column(b, ct, 1), (batch, 1, 1))
    return (_of_factors(b, b.mul(b.broadcast_to(ct, (batch, n, n)), inverse)),)


slogdet = define(
    Routine(
        "slogdet",
        _slogdet_shape,
        lambda attrs, f: run(_SLOGDET, _slogdet_shape(attrs, _type(f)), attrs, f),
        jvp=_slogdet_jvp,
        vjp=_slogdet_vjp,
        compiled=_SLOGDET,
    )
)

# --- triangular systems --------------------------------------------------------------------------

# triangular(A [b, n, n], B [b, n, m]; lower, transposed, unit) -> X with A X = B or A^T X = B; only
# one triangle of A is read


def _triangular_shape(attrs: Sequence[int], a: Type, right: Type) -> Type:
    fits = len(attrs) == 3 and all(k in (0, 1) for k in attrs)
    need(fits, f"triangular with attributes {tuple(attrs)}")
    matrices("triangular", a, right)
    need(a.shape[1] == a.shape[2], f"triangular of {a}; the matrices have to be square")
    return _solution("triangular", a, right, a.shape[2])


def _solve_triangular(words: int, arrays: int, work: int) -> int:
    lower, transposed, unit, batch, n, _, _, _, m = integers(words, 9)
    out, a, right = integers(arrays, 3)
    uplo, turned = _U if lower else _L, _T if transposed else _N
    for k in range(batch):
        at, x = a + 8 * k * n * n, out + 8 * k * n * m
        matrix = doubles(at, n * n)
        for i in range(n):
            if not unit and matrix[i * (n + 1)] == 0.0:
                return _SINGULAR
        doubles(x, n * m)[:] = doubles(right + 8 * k * n * m, n * m)
        _triangular(work, at, x, n, m, uplo, turned, _U if unit else _N)
    return 0


_TRIANGULAR = compiled(_solve_triangular, lambda attrs, a, x: 0, {_SINGULAR: SINGULAR})


def _triangle(b: Builder, x: int, lower: int, unit: int = 0) -> int:
    """One triangle of every matrix, without the diagonal if that is all ones; zeros elsewhere."""
    n = b.type(x).shape[1]
    mask = np.tril(np.ones((n, n), bool), -unit) if lower else np.triu(np.ones((n, n), bool), unit)
    kept = b.broadcast_to(b.const(mask[None]), b.type(x).shape)
    return b.select(kept, x, b.full_like(x, 0.0))


def _triangular_jvp(
    b: Builder, tangents: Tangents, out: int, a: int, right: int, attrs: Sequence[int]
) -> int | None:
    lower, transposed, unit = attrs
    by_matrix, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_matrix is not None:
        change = b.matmul(_triangle(b, by_matrix, lower, unit), out, attrs=(transposed, 0))
        terms.append(b.neg(change))
    total = add(b, terms)
    return None if total is None else b.call(a, total, attrs=(triangular.number, *attrs))


def _triangular_vjp(
    b: Builder, ct: int, out: int, a: int, right: int, attrs: Sequence[int]
) -> tuple[int, int]:
    lower, transposed, unit = attrs
    of_right = b.call(a, ct, attrs=(triangular.number, lower, 1 - transposed, unit))
    pair = (out, of_right) if transposed else (of_right, out)
    of_matrix = b.neg(outer(b, *pair))
    return _triangle(b, of_matrix, lower, unit), of_right


triangular = define(
    Routine(
        "triangular",
        _triangular_shape,
        lambda attrs, a, x: run(_TRIANGULAR, _type(x), attrs, a, x),
        jvp=_triangular_jvp,
        vjp=_triangular_vjp,
        flops=lambda attrs, a, x: 1.0 * x.size * x.shape[1],
        compiled=_TRIANGULAR,
    )
)

# --- Cholesky ------------------------------------------------------------------------------------

# cholesky(A [b, n, n]) -> L, lower, with A = L L^T; reads the lower triangle


def _cholesky_shape(attrs: Sequence[int], a: Type) -> Type:
    matrices("cholesky", a)
    need(a.shape[1] == a.shape[2], f"cholesky of {a}; the matrices have to be square")
    return a


def _cholesky(words: int, arrays: int, work: int) -> int:
    batch, n = integers(words, 2)
    out, a = integers(arrays, 2)
    text, sizes = letters(work, 4), short_integers(work, 16)
    for k in range(batch):
        to, matrix = doubles(out + 8 * k * n * n, n * n), doubles(a + 8 * k * n * n, n * n)
        for i in range(n):
            to[i * n : i * n + i + 1] = matrix[i * n : i * n + i + 1]
            to[i * n + i + 1 : (i + 1) * n] = 0.0
        text[0], sizes[1], sizes[2], sizes[3] = _U, n, max(n, 1), 0
        _dpotrf(work, work + 4, to.ctypes.data, work + 8, work + 12)
        if sizes[3]:
            return _NOT_POSITIVE
    return 0


_CHOLESKY = compiled(_cholesky, lambda attrs, a: 0, {_NOT_POSITIVE: NOT_POSITIVE})


def _half_lower(b: Builder, x: int) -> int:
    """The lower triangle with half of the diagonal."""
    n = b.type(x).shape[1]
    weights = np.tril(np.ones((n, n))) - np.eye(n) / 2
    return b.mul(x, b.broadcast_to(b.const(weights[None]), b.type(x).shape))


def _between(b: Builder, root: int, x: int, turned: int) -> int:
    """L^-1 x L^-T; or L^-T x L^-1, if ``turned``."""
    solve = partial(b.call, attrs=(triangular.number, 1, turned, 0))
    left = solve(root, x)
    return swapped(b, solve(root, swapped(b, left)))


def _symmetric(b: Builder, x: int) -> int:
    """The symmetric matrices that have these lower triangles."""
    lower = _half_lower(b, x)
    return b.add(lower, swapped(b, lower))


def _cholesky_jvp(
    b: Builder, tangents: Tangents, out: int, a: int, attrs: Sequence[int]
) -> int | None:
    """dL = L P(L^-1 dA L^-T), where P is the lower triangle with half of the diagonal"""
    assert tangents[0] is not None
    inner = _between(b, out, _symmetric(b, tangents[0]), 0)
    return b.matmul(out, _half_lower(b, inner), attrs=(0, 0))


def _cholesky_vjp(b: Builder, ct: int, out: int, a: int, attrs: Sequence[int]) -> tuple[int]:
    """ct_A = L^-T P(L^T ct) L^-1, its two triangles in the lower one"""
    inner = _half_lower(b, b.matmul(out, ct, attrs=(1, 0)))
    both = _between(b, out, inner, 1)
    return (_half_lower(b, b.add(both, swapped(b, both))),)


cholesky = define(
    Routine(
        "cholesky",
        _cholesky_shape,
        lambda attrs, a: run(_CHOLESKY, _type(a), attrs, a),
        jvp=_cholesky_jvp,
        vjp=_cholesky_vjp,
        flops=lambda attrs, a: 1 / 3 * a.size * a.shape[1],
        compiled=_CHOLESKY,
    )
)
