"""``scipy.linalg``: linear systems and factorisations, by those of ``np.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.trace.arrays import Array, copied, promoted, reshaped, retyped, routine, traced
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.linalg import (
    adjoint,
    cholesky,
    computed,
    det,
    floats,
    inv,
    is_large,
    matrices,
    of_planes,
    planes,
    qr,
    solve,
)
from ckad.trace.numpy.spectra import eig, eigh, eigvals, eigvalsh, is_number, lstsq, pinv, svd

#: Checks and permissions to overwrite, which change no numbers.
_IDLE = {"overwrite_a", "overwrite_b", "overwrite_ab", "check_finite", "lapack_driver", "driver"}


def refuse_unknown(name: str, options: dict[str, Any]) -> None:
    unknown = options.keys() - _IDLE
    reject(unknown, f"scipy.linalg.{name} with {min(unknown, default='')}=")


# --- systems -------------------------------------------------------------------------------------


@implements(scipy.linalg.solve, kind=STATIC)
def linalg_solve(
    a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False, **rest: Any
) -> Array:
    """What is assumed of the matrix says which triangle is read."""
    refuse_unknown("solve", rest)
    x = floats(a)
    if assume_a in ("pos", "positive definite"):
        found = cho_solve((cholesky(x, upper=not lower), lower), b)
        return found
    if assume_a in ("sym", "symmetric", "her", "hermitian"):
        half = np.tril(x) if lower else np.triu(x)
        other = np.tril(x, -1) if lower else np.triu(x, 1)
        x = half + (adjoint(other) if assume_a.startswith("her") else np.swapaxes(other, -1, -2))
    elif assume_a in ("upper triangular", "lower triangular"):
        return solve_triangular(x, b, int(transposed), assume_a.startswith("lower"))
    return solve(np.swapaxes(x, -1, -2) if transposed else x, b)


@implements(scipy.linalg.solve_triangular, kind=STATIC)
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **rest: Any
) -> Array:
    refuse_unknown("solve_triangular", rest)
    x, right = promoted(floats(a), floats(b))
    is_complex = x.dtype.kind == "c"
    kind = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if kind == 1 and is_complex:  # A^T x = b is A^H conj(x) = conj(b)
        return np.conj(solve_triangular(x, np.conj(right), 2, lower, unit_diagonal))
    m = matrices(x)
    n = m.shape[-1]
    if not is_large(m):
        half = np.tril(x, -unit_diagonal) if lower else np.triu(x, int(unit_diagonal))
        half = half + np.eye(n, dtype=x.dtype) if unit_diagonal else half
        return solve(np.swapaxes(half, -1, -2) if kind else half, right)
    vector = right.ndim == x.ndim - 1
    columns = matrices(right[..., None] if vector else right, square=False)
    attrs = (int(lower), int(kind > 0), int(unit_diagonal), int(is_complex))
    found = of_planes(routine("triangular", planes(m), planes(columns), attrs=attrs), right)
    return copied(reshaped(found, right.shape))


@implements(scipy.linalg.solve_toeplitz, kind=STATIC)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Array:
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return solve(toeplitz(column, row), b)


# --- factors -------------------------------------------------------------------------------------


@implements(scipy.linalg.cholesky, kind=STATIC)
def linalg_cholesky(a: Any, lower: bool = False, **rest: Any) -> Array:
    """The triangle that is asked for is also the one that is read."""
    refuse_unknown("cholesky", rest)
    return cholesky(a, upper=not lower)


@implements(scipy.linalg.cho_factor, kind=STATIC)
def cho_factor(a: Any, lower: bool = False, **rest: Any) -> tuple[Array, bool]:
    refuse_unknown("cho_factor", rest)
    return cholesky(a, upper=not lower), lower


@implements(scipy.linalg.cho_solve, kind=STATIC)
def cho_solve(c_and_lower: Any, b: Any, **rest: Any) -> Array:
    refuse_unknown("cho_solve", rest)
    c, lower = c_and_lower
    orders = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, orders[0], lower), orders[1], lower)


@implements(scipy.linalg.lu_factor, kind=STATIC)
def lu_factor(a: Any, **rest: Any) -> tuple[Array, Array]:
    refuse_unknown("lu_factor", rest)
    factors, order = _compact(a)
    return copied(factors), _exchanged(order, back=True)


def _exchanged(rows: Array, back: bool = False) -> Array:
    """The order of rows from LAPACK's exchanges, or the way back."""
    stack = reshaped(rows, (int(np.prod(rows.shape[:-1])), rows.shape[-1]))
    return copied(reshaped(routine("exchanged", stack, attrs=(int(back),)), rows.shape))


def _compact(a: Any) -> tuple[Array, Array]:
    x = floats(a)
    m = matrices(x)
    found = of_planes(computed("lu_compact", m), m)
    order = retyped(np.real(found[:, -1]), np.int64)
    return reshaped(found[:, :-1], x.shape), reshaped(order, x.shape[:-1])


@implements(scipy.linalg.lu_solve, kind=STATIC)
def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, **rest: Any) -> Array:
    refuse_unknown("lu_solve", rest)
    factors, exchanges = lu_and_piv
    reject(np.ndim(factors) != 2, "scipy.linalg.lu_solve of stacks")
    right, order = floats(b), _exchanged(traced(exchanges))
    if trans:
        middle = solve_triangular(factors, right, trans)
        found = solve_triangular(factors, middle, trans, lower=True, unit_diagonal=True)
        return np.take(found, np.argsort(order), 0)
    first = solve_triangular(factors, np.take(right, order, 0), 0, lower=True, unit_diagonal=True)
    return solve_triangular(factors, first)


@implements(scipy.linalg.lu, kind=STATIC)
def lu(a: Any, permute_l: bool = False, **rest: Any) -> tuple[Array, ...]:
    refuse_unknown("lu", rest)
    factors, order = _compact(a)
    n = factors.shape[-1]
    places = np.equal(order[..., None, :], np.arange(n)[:, None])
    p = retyped(places, np.real(factors).dtype)
    lower = np.tril(factors, -1) + np.eye(n, dtype=factors.dtype)
    if permute_l:
        return np.matmul(p, lower), np.triu(factors)
    return p, lower, np.triu(factors)


@implements(scipy.linalg.qr, kind=STATIC)
def linalg_qr(a: Any, *, mode: str = "full", pivoting: bool = False, **rest: Any) -> Any:
    refuse_unknown("qr", rest)
    reject(pivoting or mode == "raw", "scipy.linalg.qr with pivoting or mode='raw'")
    if mode == "r":
        return (qr(a, "complete").R,)
    return tuple(qr(a, "complete" if mode == "full" else "reduced"))


# --- eigenvalues and singular values -------------------------------------------------------------


@implements(scipy.linalg.eigh, kind=STATIC)
def linalg_eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **rest: Any
) -> Any:
    """Of two matrices: A v = w B v by a Cholesky factor of B."""
    reject(rest.pop("type", 1) != 1, "scipy.linalg.eigh with type=")
    refuse_unknown("eigh", rest)
    triangle = "L" if lower else "U"
    if b is None:
        return eigvalsh(a, triangle) if eigvals_only else tuple(eigh(a, triangle))
    x, root = floats(a), cholesky(b if lower else adjoint(floats(b)))
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    whole = half + adjoint(half) + x * np.eye(x.shape[-1])
    left = solve_triangular(root, whole, lower=True)
    inner = solve_triangular(root, adjoint(left), lower=True)
    if eigvals_only:
        return eigvalsh(inner)
    values, vectors = eigh(inner)
    return values, solve_triangular(root, vectors, 2, lower=True)


@implements(scipy.linalg.eigvalsh, kind=STATIC)
def linalg_eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **rest: Any) -> Array:
    values: Array = linalg_eigh(a, b, lower=lower, eigvals_only=True, **rest)
    return values


@implements(scipy.linalg.eigh_tridiagonal)
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, **rest: Any) -> Any:
    reject(rest.pop("select", "a") != "a", "scipy.linalg.eigh_tridiagonal with select=")
    refuse_unknown("eigh_tridiagonal", rest)
    whole = np.diag(floats(d)) + np.diag(floats(e), -1)
    return eigvalsh(whole) if eigvals_only else tuple(eigh(whole))


@implements(scipy.linalg.eig, kind=STATIC)
def linalg_eig(a: Any, b: Any = None, left: bool = False, right: bool = True, **rest: Any) -> Any:
    refuse_unknown("eig", rest)
    reject(b is not None or left, "scipy.linalg.eig with b= or left=")
    return tuple(eig(a)) if right else eigvals(a)


@implements(scipy.linalg.eigvals, kind=STATIC)
def linalg_eigvals(a: Any, b: Any = None, **rest: Any) -> Array:
    refuse_unknown("eigvals", rest)
    reject(b is not None, "scipy.linalg.eigvals with b=")
    return eigvals(a)


@implements(scipy.linalg.svd, kind=STATIC)
def linalg_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **rest: Any) -> Any:
    refuse_unknown("svd", rest)
    found = svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


@implements(scipy.linalg.svdvals, kind=STATIC)
def linalg_svdvals(a: Any, **rest: Any) -> Array:
    refuse_unknown("svdvals", rest)
    values: Array = svd(a, compute_uv=False)
    return values


@implements(scipy.linalg.pinv, kind=STATIC)
def linalg_pinv(
    a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, **rest: Any
) -> Array:
    refuse_unknown("pinv", rest)
    reject(atol is not None or return_rank, "scipy.linalg.pinv with atol= or return_rank=")
    x = floats(a)
    return pinv(x, rtol=max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol)


@implements(scipy.linalg.lstsq, kind=STATIC)
def linalg_lstsq(a: Any, b: Any, cond: Any = None, **rest: Any) -> tuple[Any, ...]:
    refuse_unknown("lstsq", rest)
    return lstsq(a, b, -1 if not is_number(cond) and cond is None else cond)


# --- functions of matrices, equations ------------------------------------------------------------


def _of_matrices(name: str) -> Any:
    def function(A: Any, *args: Any, **options: Any) -> Array:
        reject(args or options, f"scipy.linalg.{name} with options")
        x = floats(A)
        m = matrices(x)
        return copied(reshaped(of_planes(computed(name, m), m), x.shape))

    return function


for _name in ("expm", "sqrtm", "logm"):
    implements(getattr(scipy.linalg, _name), kind=STATIC)(_of_matrices(_name))


@implements(scipy.linalg.solve_sylvester, kind=STATIC)
def solve_sylvester(a: Any, b: Any, q: Any) -> Array:
    xs = promoted(*map(floats, (a, b, q)))
    stacks = [planes(matrices(x, square=False)) for x in xs]
    attrs = (int(xs[0].dtype.kind == "c"),)
    found = of_planes(routine("sylvester", *stacks, attrs=attrs), xs[2])
    return copied(reshaped(found, xs[2].shape))


@implements(scipy.linalg.solve_continuous_lyapunov, scipy.linalg.solve_lyapunov, kind=STATIC)
def solve_continuous_lyapunov(a: Any, q: Any) -> Array:
    x = floats(a)
    return solve_sylvester(x, adjoint(x), q)


@implements(scipy.linalg.solve_discrete_lyapunov, kind=STATIC)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Array:
    """By a bilinear map to the continuous equation, as SciPy does for large matrices."""
    x = floats(a)
    turned, one = adjoint(x), np.eye(x.shape[-1])
    inverse = inv(turned + one)
    b = np.matmul(turned - one, inverse)
    c = 2 * np.matmul(np.matmul(inv(x + one), floats(q)), inverse)
    return solve_continuous_lyapunov(adjoint(b), -c)


# --- others --------------------------------------------------------------------------------------


@implements(scipy.linalg.inv, kind=STATIC)
def linalg_inv(a: Any, **rest: Any) -> Array:
    rest.pop("assume_a", None)
    rest.pop("lower", None)
    refuse_unknown("inv", rest)
    return inv(a)


@implements(scipy.linalg.det, kind=STATIC)
def linalg_det(a: Any, **rest: Any) -> Array:
    refuse_unknown("det", rest)
    return det(a)


@implements(scipy.linalg.norm, kind=STATIC)
def linalg_norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Array:
    found: Array = np.linalg.norm(traced(a), ord, axis, keepdims)
    return found


@implements(scipy.linalg.block_diag, kind=STATIC)
def block_diag(*arrs: Any) -> Array:
    xs = promoted(*(np.atleast_2d(traced(x)) for x in arrs))
    widths = [x.shape[1] for x in xs]
    rows, total, before = [], sum(widths), 0
    for x, width in zip(xs, widths, strict=True):
        sides = (x.shape[0], before), (x.shape[0], total - before - width)
        zeros = [np.zeros(side, x.dtype) for side in sides]
        rows.append(np.concatenate([zeros[0], x, zeros[1]], 1))
        before += width
    return np.concatenate(rows)


def _picked(values: Array, index: np.ndarray) -> Array:
    return reshaped(np.take(values, index.ravel()), index.shape)


@implements(scipy.linalg.toeplitz, kind=STATIC)
def toeplitz(c: Any, r: Any = None) -> Array:
    column = np.ravel(traced(c))
    row = np.conj(column) if r is None else np.ravel(traced(r))
    n, m = column.shape[0], row.shape[0]
    index = np.arange(n)[:, None] - np.arange(m)
    both = np.concatenate([*promoted(column, row[1:])])
    return _picked(both, np.where(index >= 0, index, n - 1 - index))


@implements(scipy.linalg.circulant, kind=STATIC)
def circulant(c: Any) -> Array:
    column = np.ravel(traced(c))
    n = column.shape[0]
    return _picked(column, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1))


@implements(scipy.linalg.hankel, kind=STATIC)
def hankel(c: Any, r: Any = None) -> Array:
    column = np.ravel(traced(c))
    row = np.zeros_like(column) if r is None else np.ravel(traced(r))
    n, m = column.shape[0], row.shape[0]
    both = np.concatenate([*promoted(column, row[1:])])
    return _picked(both, np.arange(n)[:, None] + np.arange(m))
