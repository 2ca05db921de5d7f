"""Eigenvalues, singular values, and what is made of them: ranks, least squares, pseudo-inverses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    as_number,
    as_spectrum,
    copied,
    own,
    promoted,
    reshaped,
    retyped,
    routine,
    stopping,
    traced,
)
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.linalg import computed, floats, inv, matrices, of_planes, planes

# --- eigenvalues ---------------------------------------------------------------------------------


class EighResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


@implements(np.linalg.eigh, kind=STATIC)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Reads one triangle. The eigenvectors have derivatives where no eigenvalues are equal."""
    x, m, pairs = _eigenpairs(a, UPLO)
    is_complex = int(m.dtype.kind == "c")
    vectors = of_planes(routine("eigenvectors", pairs, attrs=(is_complex,)), m)
    return EighResult(_eigenvalues(x, m, pairs), copied(reshaped(vectors, x.shape)))


def _eigenpairs(a: Any, triangle: str) -> tuple[Array, Array, Array]:
    x = floats(a)
    if triangle not in ("L", "U", "l", "u"):
        raise ValueError(at_place("UPLO argument must be 'L' or 'U'"))
    m = matrices(x)
    return x, m, computed("eigh", m, int(triangle in "Uu"))


def _eigenvalues(x: Array, m: Array, pairs: Array) -> Array:
    values = routine("eigenvalues", pairs, attrs=(int(m.dtype.kind == "c"),))
    return copied(retyped(reshaped(values, x.shape[:-1]), np.real(x).dtype))


@implements(np.linalg.eigvalsh, kind=STATIC)
def eigvalsh(a: Any, UPLO: str = "L") -> Array:
    return _eigenvalues(*_eigenpairs(a, UPLO))


@implements(np.linalg.eig, kind=STATIC)
def eig(a: Any) -> EigResult:
    """Real where no imaginary part is left; derivatives where no eigenvalues are equal."""
    found = values_and_vectors(a)
    return EigResult(*(as_spectrum(*found) if traced(a).dtype.kind != "c" else found))


def values_and_vectors(a: Any) -> tuple[Array, Array]:
    """Complex, whatever they are."""
    x, like, pairs = _general(a)
    vectors = of_planes(routine("eig_vectors", pairs), like)
    return _general_values(x, like, pairs), copied(reshaped(vectors, x.shape))


def _general(a: Any) -> tuple[Array, Array, Array]:
    x = floats(a)
    dtype = np.result_type(x.dtype, np.complex64)
    return x, np.empty(0, dtype), computed("eig", matrices(x))


def _general_values(x: Array, like: Array, pairs: Array) -> Array:
    values = of_planes(routine("eig_values", pairs), like)
    return copied(reshaped(values, x.shape[:-1]))


@implements(np.linalg.eigvals, kind=STATIC)
def eigvals(a: Any) -> Array:
    found = complex_values(a)
    return as_spectrum(found)[0] if traced(a).dtype.kind != "c" else found


def complex_values(a: Any) -> Array:
    return _general_values(*_general(a))


@implements(np.roots, kind=STATIC)
def roots(p: Any) -> Array:
    """Eigenvalues of the companion matrix; simple ones have derivatives."""
    c = floats(np.atleast_1d(traced(p)))
    if c.ndim != 1:
        raise ValueError(at_place("Input must be a rank-1 array."))
    if c.size < 2:
        return np.zeros_like(c, shape=0)
    ends = np.logical_or(np.equal(c[0], 0), np.equal(c[-1], 0))
    c = c[stopping(np.arange(c.size), ends, "ROOTS")]
    below = np.eye(c.size - 2, c.size - 1, dtype=c.dtype)
    return eigvals(np.concatenate([reshaped(-c[1:] / c[0], (1, c.size - 1)), below]))


# --- singular values -----------------------------------------------------------------------------


class SVDResult(NamedTuple):
    U: Any
    S: Any
    Vh: Any


@implements(np.linalg.svd, kind=STATIC)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The vectors have derivatives where no singular values are equal.

    Of a matrix that is not square, those that ``full_matrices`` adds move with the others only.
    """
    x = floats(a)
    m = matrices(x, square=False)
    rows, columns = m.shape[1:]
    full = int(bool(full_matrices and compute_uv) and rows != columns)
    factors, kind = computed("svd", m, full), int(m.dtype.kind == "c")

    def factor(which: int) -> Array:
        found = routine("singular", factors, attrs=(which, rows, columns, full, kind))
        found = retyped(found, np.real(m).dtype) if which == 1 else of_planes(found, m)
        shape = found.shape[2:] if which == 1 else found.shape[1:]
        return copied(reshaped(found, (*x.shape[:-2], *shape)))

    return SVDResult(factor(0), factor(1), factor(2)) if compute_uv else factor(1)


@implements(np.linalg.svdvals, kind=STATIC)
def svdvals(x: Any, /) -> Array:
    values: Array = svd(x, compute_uv=False)
    return values


@implements(np.linalg.matrix_rank, kind=STATIC)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    x = floats(A)
    if x.ndim < 2:
        return own(np.any(np.not_equal(x, 0)) + 0)
    values = svdvals(x)
    largest = np.max(values, -1, keepdims=True, initial=0)
    if tol is None:
        tol = largest * _cut(x, rtol)
    else:
        tol = np.asarray(tol)[..., None] if np.ndim(tol) else tol
    found = np.sum(np.greater(values, tol), -1)
    return as_number(found)


def _cut(x: Array, rcond: Any) -> Any:
    """Singular values of so much of the largest one count as 0."""
    return max(x.shape[-2:]) * np.finfo(x.dtype).eps if rcond is None else rcond


@implements(np.linalg.cond, kind=STATIC)
def cond(x: Any, p: Any = None) -> Array:
    a = floats(x)
    matrices(a, square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        values = svdvals(a)
        ends = values[..., 0], values[..., -1]
        return own(ends[1] / ends[0] if p == -2 else ends[0] / ends[1])
    norms = [np.linalg.norm(v, p, (-2, -1)) for v in (a, inv(a))]
    return own(norms[0] * norms[1])


# --- pseudo-inverses and least squares -----------------------------------------------------------


@implements(np.linalg.pinv, kind=STATIC)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """By singular values; the derivative is that of matrices of the same rank."""
    x = floats(a)
    m = matrices(x, square=False)
    if rcond is None:
        # NumPy's two names have different defaults
        rcond = 1e-15 if rtol is None else rtol
    cut = np.broadcast_to(floats(rcond)[..., None, None], (*x.shape[:-2], 1, 1))
    return _inverted(x, m, reshaped(cut, (m.shape[0], 1, 1)))


def _inverted(x: Array, m: Array, cut: Array) -> Array:
    found = _marked("pinv", m, _by_factors(m, cut), m)
    return copied(reshaped(found, (*x.shape[:-2], *found.shape[1:])))


def _by_factors(m: Array, cut: Array) -> Array:
    """V S^-1 U^H without the singular values that count as 0: how it is derived, a mark says."""
    u, s, vh = svd(m, full_matrices=False)
    kept = s > cut[:, 0] * np.max(s, -1, keepdims=True, initial=0)
    inverse = np.where(kept, 1, 0) / np.where(kept, s, 1)
    scaled = np.conj(np.swapaxes(vh, 1, 2)) * inverse[:, None, :]
    found: Array = np.matmul(retyped(scaled, m.dtype), np.conj(np.swapaxes(u, 1, 2)))
    return found


def _marked(name: str, like: Array, *stacks: Array) -> Array:
    """The first of these stacks, derived by the rules of a mark."""
    is_complex = int(like.dtype.kind == "c")
    return of_planes(routine(name, *map(planes, stacks), attrs=(is_complex,)), like)


@implements(np.linalg.lstsq, kind=STATIC)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, ...]:
    """The shortest of the solutions. The residuals are those of full rank."""
    x, y = promoted(floats(a), floats(b))
    if x.ndim != 2 or x.shape[0] != y.shape[0]:
        raise np.linalg.LinAlgError(at_place(f"shapes {x.shape} and {y.shape} do not fit"))
    rows, columns = x.shape
    rcond = np.finfo(x.dtype).eps if is_number(rcond) and rcond == -1 else _cut(x, rcond)
    m, sides = matrices(x, square=False), reshaped(y, (1, rows, math.prod(y.shape[1:])))
    inverse = _inverted(m, m, reshaped(floats(rcond), (1, 1, 1)))
    solution = _marked("lstsq", m, np.matmul(inverse, sides), m, sides, inverse)
    solution = reshaped(solution, (columns, *y.shape[1:]))
    gaps = y - np.matmul(x, solution)
    squares = np.sum(np.abs(gaps) ** 2, 0)
    residuals = reshaped(squares, (squares.size,))[: None if rows > columns else 0]
    values = svdvals(x)
    rank = np.sum(np.greater(values, np.max(values, initial=0) * rcond))
    return copied(solution), copied(residuals), own(rank).astype(np.int32), values


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float))


@implements(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    at, values = floats(x), floats(y)
    if isinstance(at.size, int) and not at.size:
        raise TypeError(at_place("expected non-empty vector for x"))
    powers = np.vander(at, deg + 1)
    if rcond is None:
        rcond = at.size * np.finfo(at.dtype).eps
    if w is not None:
        powers, values = powers * traced(w)[:, None], (values.T * traced(w)).T
    scale = np.sqrt(np.sum(powers * powers, 0))
    scaled = powers / scale
    solution, residuals, rank, singular = np.linalg.lstsq(scaled, values, rcond)
    found = (solution.T / scale).T
    if full:
        return found, residuals, rank, singular, rcond
    if not cov:
        return found
    spread = inv(np.matmul(scaled.T, scaled)) / np.outer(scale, scale)
    if isinstance(cov, str) and cov == "unscaled":
        return found, spread
    more = at.size - (deg + 1)
    reject(not isinstance(more, int), "np.polyfit with cov= of elements under a mask")
    if more <= 0:
        raise ValueError(at_place("the number of data points must exceed order to scale cov="))
    each = residuals / more
    return found, spread * each if values.ndim == 1 else spread[..., None] * each
