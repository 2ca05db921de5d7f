"""``scipy.linalg``: linear systems and factorisations, by those of ``np.linalg``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.linalg

from ckad.trace.arrays import (
    Array,
    as_spectrum,
    copied,
    promoted,
    reshaped,
    retyped,
    routine,
    traced,
)
from ckad.trace.dispatch import STATIC, Kinds, implements, reject
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
    solve,
)
from ckad.trace.numpy.spectra import (
    complex_values,
    eigh,
    eigvalsh,
    is_number,
    lstsq,
    pinv,
    svd,
    values_and_vectors,
)

#: Checks and permissions to overwrite, which change no numbers.
_IDLE = {
    "overwrite_a", "overwrite_b", "overwrite_ab", "check_finite", "lapack_driver", "driver",
    "lwork",
}  # fmt: skip
F = TypeVar("F", bound=Callable[..., Any])


def of_scipy(*keys: Any, kind: Kinds = STATIC) -> Callable[[F], F]:
    """Decorator: what is called in place of functions of ``scipy.linalg``, without idle options."""

    def register(function: F) -> F:
        known = inspect.signature(function).parameters.keys()
        names = list(inspect.signature(keys[0]).parameters)
        first = next((k for k, name in enumerate(names) if name in _IDLE), None)

        def called(*args: Any, **options: Any) -> Any:
            if first is not None and len(args) > first:  # from there on the places are SciPy's
                options |= zip(names[first:], args[first:], strict=False)
                args = args[:first]
            options = {name: x for name, x in options.items() if name not in _IDLE}
            unknown = options.keys() - known
            reject(unknown, f"scipy.linalg.{keys[0].__name__} with {min(unknown, default='')}=")
            return function(*args, **options)

        return implements(*keys, kind=kind)(called)  # type: ignore[return-value]

    return register


# --- systems -------------------------------------------------------------------------------------


@of_scipy(scipy.linalg.solve)
def linalg_solve(
    a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False
) -> Array:
    """What is assumed of the matrix says which triangle is read."""
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


@of_scipy(scipy.linalg.solve_triangular)
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
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


@of_scipy(scipy.linalg.solve_toeplitz)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Array:
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return solve(toeplitz(column, row), b)


# --- factors -------------------------------------------------------------------------------------


@of_scipy(scipy.linalg.cholesky)
def linalg_cholesky(a: Any, lower: bool = False) -> Array:
    """The triangle that is asked for is also the one that is read."""
    return cholesky(a, upper=not lower)


@of_scipy(scipy.linalg.cho_factor)
def cho_factor(a: Any, lower: bool = False) -> tuple[Array, bool]:
    return cholesky(a, upper=not lower), lower


@of_scipy(scipy.linalg.cho_solve)
def cho_solve(c_and_lower: Any, b: Any) -> Array:
    c, lower = c_and_lower
    orders = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, orders[0], lower), orders[1], lower)


@of_scipy(scipy.linalg.lu_factor)
def lu_factor(a: Any) -> tuple[Array, Array]:
    factors, order = _compact(a)
    return copied(factors), _exchanged(order, back=True)


def _exchanged(rows: Array, back: bool = False) -> Array:
    """The order of rows from LAPACK's exchanges, or the way back."""
    stack = reshaped(rows, (int(np.prod(rows.shape[:-1])), rows.shape[-1]))
    return copied(reshaped(routine("exchanged", stack, attrs=(int(back),)), rows.shape))


def _compact(a: Any) -> tuple[Array, Array]:
    x = floats(a)
    m = matrices(x, square=False)
    is_square = m.shape[-2] == m.shape[-1]
    reject(not is_square, "LU factors of a matrix that is not square")
    found = of_planes(computed("lu_compact", m), m)
    order = retyped(np.real(found[:, -1]), np.int64)
    return reshaped(found[:, :-1], x.shape), reshaped(order, x.shape[:-1])


@of_scipy(scipy.linalg.lu_solve)
def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0) -> Array:
    factors, exchanges = lu_and_piv
    reject(np.ndim(factors) != 2, "scipy.linalg.lu_solve of stacks")
    right, order = floats(b), _exchanged(traced(exchanges))
    if trans:
        middle = solve_triangular(factors, right, trans)
        found = solve_triangular(factors, middle, trans, lower=True, unit_diagonal=True)
        return np.take(found, np.argsort(order), 0)
    first = solve_triangular(factors, np.take(right, order, 0), 0, lower=True, unit_diagonal=True)
    return solve_triangular(factors, first)


@of_scipy(scipy.linalg.lu)
def lu(a: Any, permute_l: bool = False) -> tuple[Array, ...]:
    factors, order = _compact(a)
    n = factors.shape[-1]
    places = np.equal(order[..., None, :], np.arange(n)[:, None])
    p = retyped(places, np.real(factors).dtype)
    lower = np.tril(factors, -1) + np.eye(n, dtype=factors.dtype)
    if permute_l:
        return np.matmul(p, lower), np.triu(factors)
    return p, lower, np.triu(factors)


def of_triangle(x: Array, lower: bool) -> Array:
    """The Hermitian matrices of which one triangle is read."""
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    return half + adjoint(half) + x * np.eye(x.shape[-1])


# --- eigenvalues and singular values -------------------------------------------------------------


@of_scipy(scipy.linalg.eigh)
def linalg_eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, type: int = 1,
    subset_by_index: Any = None,
) -> Any:  # fmt: skip
    """Of two matrices: A v = w B v by a Cholesky factor of B."""
    reject(type != 1, "scipy.linalg.eigh with type=")
    if subset_by_index is not None:
        first, last = (int(k) for k in subset_by_index)
        found = linalg_eigh(a, b, lower=lower, eigvals_only=eigvals_only)
        if eigvals_only:
            return copied(found[..., first : last + 1])
        return tuple(copied(x[..., first : last + 1]) for x in found)
    triangle = "L" if lower else "U"
    if b is None:
        return eigvalsh(a, triangle) if eigvals_only else tuple(eigh(a, triangle))
    x, root = floats(a), cholesky(b if lower else adjoint(floats(b)))
    left = solve_triangular(root, of_triangle(x, lower), lower=True)
    inner = solve_triangular(root, adjoint(left), lower=True)
    if eigvals_only:
        return eigvalsh(inner)
    values, vectors = eigh(inner)
    return values, solve_triangular(root, vectors, 2, lower=True)


@of_scipy(scipy.linalg.eigvalsh)
def linalg_eigvalsh(
    a: Any, b: Any = None, *, lower: bool = True, type: int = 1, subset_by_index: Any = None
) -> Array:
    about = {"lower": lower, "type": type, "subset_by_index": subset_by_index}
    values: Array = linalg_eigh(a, b, eigvals_only=True, **about)
    return values


@of_scipy(scipy.linalg.eig)
def linalg_eig(a: Any, b: Any = None, left: bool = False, right: bool = True) -> Any:
    reject(b is not None or left, "scipy.linalg.eig with b= or left=")
    if not right:
        return complex_values(a)
    values, vectors = values_and_vectors(a)
    return values, vectors if traced(a).dtype.kind == "c" else as_spectrum(values, vectors)[1]


@of_scipy(scipy.linalg.eigvals)
def linalg_eigvals(a: Any, b: Any = None) -> Array:
    reject(b is not None, "scipy.linalg.eigvals with b=")
    return complex_values(a)


@of_scipy(scipy.linalg.svd)
def linalg_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    found = svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


of_scipy(scipy.linalg.svdvals)(lambda a: svd(a, compute_uv=False))


@of_scipy(scipy.linalg.pinv)
def linalg_pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Array:
    reject(atol is not None or return_rank, "scipy.linalg.pinv with atol= or return_rank=")
    x = floats(a)
    return pinv(x, rtol=max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol)


@of_scipy(scipy.linalg.lstsq)
def linalg_lstsq(a: Any, b: Any, cond: Any = None) -> tuple[Any, ...]:
    return lstsq(a, b, -1 if not is_number(cond) and cond is None else cond)


# --- functions of matrices, equations ------------------------------------------------------------


def _of_matrices(name: str) -> Any:
    def function(A: Any, *args: Any, **options: Any) -> Array:
        reject(args or options, f"scipy.linalg.{name} with options")
        x = floats(A)
        m = matrices(x)
        return copied(reshaped(of_planes(computed(name, m), m), x.shape))

    return function


@of_scipy(scipy.linalg.expm)
def expm(A: Any) -> Array:
    x = floats(A)
    m = matrices(x)
    attrs = (0, int(m.dtype.kind == "c"))
    found = of_planes(routine("expm", computed("expm_parts", m), attrs=attrs), m)
    return copied(reshaped(found, x.shape))


implements(scipy.linalg.sqrtm, kind=STATIC)(_of_matrices("sqrtm"))
implements(scipy.linalg.signm, kind=STATIC)(_of_matrices("signm"))
logm = implements(scipy.linalg.logm, kind=STATIC)(_of_matrices("logm"))


@of_scipy(scipy.linalg.solve_sylvester)
def solve_sylvester(a: Any, b: Any, q: Any) -> Array:
    xs = promoted(*map(floats, (a, b, q)))
    is_complex = int(xs[0].dtype.kind == "c")
    *both, right = (planes(matrices(x, square=False)) for x in xs)
    forms = [routine("schur", x, attrs=(is_complex,)) for x in both]
    found = of_planes(routine("sylvester", *forms, right, attrs=(0, is_complex)), xs[2])
    return copied(reshaped(found, xs[2].shape))


@of_scipy(scipy.linalg.solve_continuous_lyapunov, scipy.linalg.solve_lyapunov)
def solve_continuous_lyapunov(a: Any, q: Any) -> Array:
    x = floats(a)
    return solve_sylvester(x, adjoint(x), q)


@of_scipy(scipy.linalg.solve_discrete_lyapunov)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Array:
    """By a bilinear map to the continuous equation, as SciPy does for large matrices."""
    x = floats(a)
    turned, one = adjoint(x), np.eye(x.shape[-1])
    inverse = inv(turned + one)
    b = np.matmul(turned - one, inverse)
    c = 2 * np.matmul(np.matmul(inv(x + one), floats(q)), inverse)
    return solve_continuous_lyapunov(adjoint(b), -c)


# --- others --------------------------------------------------------------------------------------


of_scipy(scipy.linalg.inv)(lambda a, assume_a=None, lower=False: inv(a))
of_scipy(scipy.linalg.det)(lambda a: det(a))


@of_scipy(scipy.linalg.norm)
def linalg_norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    found: Array = np.linalg.norm(traced(a), ord, axis, keepdims)
    return found


@of_scipy(scipy.linalg.block_diag)
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
    found = np.take(values, index.ravel(), -1)
    return reshaped(found, (*values.shape[:-1], *index.shape))


def diagonals(c: Any, r: Any) -> tuple[Array, Array]:
    """The first column and row of a Toeplitz matrix; versions of SciPy make flat ones or stacks of
    others."""
    column = np.atleast_1d(traced(c))
    row = np.conj(column) if r is None else np.atleast_1d(traced(r))
    flat = column.ndim == row.ndim == 1
    reject(not flat, "Toeplitz matrices of arrays of several axes (np.ravel them, or take a loop)")
    return column, row


@of_scipy(scipy.linalg.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Array:
    column, row = diagonals(c, r)
    n, m = column.shape[0], row.shape[0]
    index = np.arange(n)[:, None] - np.arange(m)
    both = np.concatenate([*promoted(column, row[1:])])
    return _picked(both, np.where(index >= 0, index, n - 1 - index))


@of_scipy(scipy.linalg.circulant)
def circulant(c: Any) -> Array:
    column = np.atleast_1d(traced(c))
    n = column.shape[-1]
    return _picked(column, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1))


@of_scipy(scipy.linalg.hankel)
def hankel(c: Any, r: Any = None) -> Array:
    column = np.ravel(traced(c))
    row = np.zeros_like(column) if r is None else np.ravel(traced(r))
    n, m = column.shape[0], row.shape[0]
    both = np.concatenate([*promoted(column, row[1:])])
    return _picked(both, np.arange(n)[:, None] + np.arange(m))
