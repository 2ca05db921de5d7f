"""Linear systems by iteration: cg, bicgstab and gmres as SciPy has them, on a matrix in CSR form.

The solution is differentiated as that of the system, whatever the iteration has done: its adjoint
is one solution with the transpose, to the same tolerance; no memory depends on the iterations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import add, need
from ckad.rules.routines.memory import HEAD, compiled, copy, doubles, from_code, integers, naturals
from ckad.rules.routines.sparse import (
    check,
    check_pattern,
    product,
    samples,
    times,
    times_transposed,
)
from ckad.tape.builder import Builder
from ckad.tape.reasons import Reason
from ckad.tape.types import DType, Type

#: The first attribute.
METHODS = ("cg", "bicgstab", "gmres")
_CG, _BICGSTAB = 0, 1
#: Elements, indptr, indices.
_Matrix = tuple[np.ndarray, np.ndarray, np.ndarray]
_EPS = float(np.finfo(np.float64).eps)

# sparse_krylov(data [nnz], b [n], indptr, indices, x0 [n], M's data, its indptr, its indices,
# tolerances [2]; method, transposed, maxiter, restart, n) -> [n + 1]: x and SciPy's ``info``. M is
# applied to residuals, none if it has no elements; tolerances are rtol and atol.


def _shape(attrs: Sequence[int], *types: Type) -> Type:
    need(len(attrs) == 5 and len(types) == 9, f"sparse_krylov with attributes {tuple(attrs)}")
    data, b, indptr, indices, x0, m_data, m_indptr, m_indices, tolerances = types
    n = attrs[4]
    check("sparse_krylov", (data, b, x0, m_data, tolerances), indptr, indices, m_indptr, m_indices)
    fits = b.shape == x0.shape == (n,) and tolerances.shape == (2,) and len(data.shape) == 1
    need(fits, f"sparse_krylov of {data} and {b}: {n} rows are needed")
    check_pattern("sparse_krylov", n, data.size, indptr, indices)
    check_pattern("sparse_krylov", n, m_data.size, m_indptr, m_indices)
    return b.with_shape((n + 1,))


def _workspace(attrs: Sequence[int], *types: Type) -> int:
    """Vectors, of gmres those of its space, and its small matrix."""
    n, restart = attrs[4], attrs[3]
    return 8 * (10 * n + (restart + 1) * n + (restart + 4) * (restart + 2))


@kernel
def _times(
    y: np.ndarray,
    x: np.ndarray,
    data: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    transposed: int,
) -> None:
    """y <- A x, or A^T x; x itself if there is no element."""
    if len(data) == 0:
        copy(y, x)
    elif transposed:
        times_transposed(y, x, data, indptr, indices)
    else:
        times(y, x, data, indptr, indices)


@kernel
def _dot(x: np.ndarray, y: np.ndarray) -> float:
    """Four sums, which the processor adds at once."""
    n = len(x)
    s0, s1, s2, s3, whole = 0.0, 0.0, 0.0, 0.0, n - n % 4
    for i in range(0, whole, 4):
        s0 += x[i] * y[i]
        s1 += x[i + 1] * y[i + 1]
        s2 += x[i + 2] * y[i + 2]
        s3 += x[i + 3] * y[i + 3]
    for i in range(whole, n):
        s0 += x[i] * y[i]
    return (s0 + s1) + (s2 + s3)


def _krylov(words: int, arrays: int, work: int) -> int:
    method, transposed, maxiter, restart, n, nnz = integers(words, 6)
    places = integers(arrays, 10)
    m_nnz = integers(words, 11)[10]
    out, data, b = doubles(places[0], n + 1), doubles(places[1], nnz), doubles(places[2], n)
    where = naturals(places[3], n + 1), naturals(places[4], nnz)
    m_where = naturals(places[7], n + 1), naturals(places[8], m_nnz)
    a, m = (data, where[0], where[1]), (doubles(places[6], m_nnz), m_where[0], m_where[1])
    tolerances, x, space = doubles(places[9], 2), out[:n], work + HEAD
    copy(x, doubles(places[5], n))
    size = math.sqrt(_dot(b, b))
    enough = max(tolerances[1], tolerances[0] * size)
    info = 0
    if size == 0.0:
        copy(x, b)
    elif method == _CG:
        info = _cg(x, b, a, m, transposed, maxiter, enough, doubles(space, 4 * n))
    elif method == _BICGSTAB:
        info = _bicgstab(x, b, a, m, transposed, maxiter, enough, doubles(space, 8 * n))
    else:
        memory = doubles(space, 10 * n + (restart + 1) * n + (restart + 4) * (restart + 2))
        info = _gmres(x, b, a, m, transposed, maxiter, restart, enough, size, memory)
    out[n] = info
    return 0


@kernel
def _residual(r: np.ndarray, x: np.ndarray, b: np.ndarray, a: _Matrix, transposed: int) -> None:
    """r <- b - A x"""
    _times(r, x, a[0], a[1], a[2], transposed)
    for i in range(len(r)):
        r[i] = b[i] - r[i]


@kernel
def _cg(
    x: np.ndarray, b: np.ndarray, a: _Matrix, m: _Matrix, transposed: int, maxiter: int,
    enough: float, memory: np.ndarray,
) -> int:  # fmt: skip
    n = len(x)
    r, z, p, q = memory[:n], memory[n : 2 * n], memory[2 * n : 3 * n], memory[3 * n :]
    _residual(r, x, b, a, transposed)
    before = 0.0
    for step in range(maxiter):
        if math.sqrt(_dot(r, r)) < enough:
            return 0
        _times(z, r, m[0], m[1], m[2], transposed)
        rho = _dot(r, z)
        beta = rho / before if step > 0 else 0.0
        for i in range(n):
            p[i] = z[i] + beta * p[i] if step > 0 else z[i]
        _times(q, p, a[0], a[1], a[2], transposed)
        alpha = rho / _dot(p, q)
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * q[i]
        before = rho
    return maxiter


@kernel
def _bicgstab(
    x: np.ndarray, b: np.ndarray, a: _Matrix, m: _Matrix, transposed: int, maxiter: int,
    enough: float, memory: np.ndarray,
) -> int:  # fmt: skip
    n = len(x)
    r, first, p, v = memory[:n], memory[n : 2 * n], memory[2 * n : 3 * n], memory[3 * n : 4 * n]
    p_hat, s_hat, t = memory[4 * n : 5 * n], memory[5 * n : 6 * n], memory[6 * n : 7 * n]
    _residual(r, x, b, a, transposed)
    copy(first, r)
    before, alpha, omega = 1.0, 1.0, 1.0
    for step in range(maxiter):
        if math.sqrt(_dot(r, r)) < enough:
            return 0
        rho = _dot(first, r)
        if abs(rho) < _EPS * _EPS:
            return -10
        if step == 0:
            copy(p, r)
        else:
            if abs(omega) < _EPS * _EPS:
                return -11
            beta = (rho / before) * (alpha / omega)
            for i in range(n):
                p[i] = (p[i] - omega * v[i]) * beta + r[i]
        _times(p_hat, p, m[0], m[1], m[2], transposed)
        _times(v, p_hat, a[0], a[1], a[2], transposed)
        rv = _dot(first, v)
        if rv == 0.0:
            return -11
        alpha = rho / rv
        for i in range(n):
            r[i] -= alpha * v[i]
            x[i] += alpha * p_hat[i]
        if math.sqrt(_dot(r, r)) < enough:
            return 0
        _times(s_hat, r, m[0], m[1], m[2], transposed)
        _times(t, s_hat, a[0], a[1], a[2], transposed)
        omega = _dot(t, r) / _dot(t, t)
        for i in range(n):
            x[i] += omega * s_hat[i]
            r[i] -= omega * t[i]
        before = rho
    return maxiter


@kernel
def _next_direction(v: np.ndarray, w: np.ndarray, h: np.ndarray, k: int) -> bool:
    """Arnoldi: ``w`` without the directions before it; whether nothing is left of it."""
    whole = math.sqrt(_dot(w, w))
    for j in range(k + 1):
        h[k, j] = _dot(v[j], w)
        for i in range(len(w)):
            w[i] -= h[k, j] * v[j, i]
    h[k, k + 1] = math.sqrt(_dot(w, w))
    if h[k, k + 1] <= _EPS * whole:
        h[k, k + 1] = 0.0
        copy(v[k + 1], w)
        return True
    for i in range(len(w)):
        v[k + 1, i] = w[i] / h[k, k + 1]
    return False


@kernel
def _rotate(h: np.ndarray, s: np.ndarray, cosines: np.ndarray, sines: np.ndarray, k: int) -> None:
    """Givens rotations make row k triangular; the right side turns with it."""
    for j in range(k):
        one, other = h[k, j], h[k, j + 1]
        h[k, j] = cosines[j] * one + sines[j] * other
        h[k, j + 1] = -sines[j] * one + cosines[j] * other
    length = math.hypot(h[k, k], h[k, k + 1])
    cosines[k] = h[k, k] / length if length > 0.0 else 1.0
    sines[k] = h[k, k + 1] / length if length > 0.0 else 0.0
    h[k, k], h[k, k + 1] = length, 0.0
    s[k + 1] = -sines[k] * s[k]
    s[k] *= cosines[k]


@kernel
def _improve(x: np.ndarray, v: np.ndarray, h: np.ndarray, s: np.ndarray, last: int) -> None:
    """x <- x + the least-squares combination of the directions, by substitution."""
    if h[last, last] == 0.0:
        s[last] = 0.0
    for k in range(last, -1, -1):
        if s[k] != 0.0:
            s[k] /= h[k, k]
            for j in range(k):
                s[j] -= s[k] * h[k, j]
        for i in range(len(x)):
            x[i] += s[k] * v[k, i]


@kernel
def _gmres(
    x: np.ndarray, b: np.ndarray, a: _Matrix, m: _Matrix, transposed: int, maxiter: int,
    restart: int, enough: float, size: float, memory: np.ndarray,
) -> int:  # fmt: skip
    """Preconditioned from the left, restarted; tolerances as SciPy adapts them."""
    n = len(x)
    r, w = memory[:n], memory[n : 2 * n]
    v = memory[2 * n : (restart + 3) * n].reshape(restart + 1, n)
    rest = memory[(restart + 3) * n :]
    width = restart + 1
    h = rest[: restart * width].reshape(restart, width)
    s, cosines = rest[restart * width :][:width], rest[(restart + 1) * width :][:width]
    sines = rest[(restart + 2) * width :][:width]
    _times(w, b, m[0], m[1], m[2], transposed)
    factor = 1.0
    small = math.sqrt(_dot(w, w)) * min(1.0, enough / size)
    _residual(r, x, b, a, transposed)
    left = math.sqrt(_dot(r, r))
    if left < enough:
        return 0
    for _ in range(maxiter):
        _times(v[0], r, m[0], m[1], m[2], transposed)
        s[:] = 0.0
        s[0] = math.sqrt(_dot(v[0], v[0]))
        for i in range(len(r)):
            v[0, i] /= s[0]
        broken, now, last = False, 0.0, 0
        for k in range(restart):
            last = k
            _times(r, v[k], a[0], a[1], a[2], transposed)
            _times(w, r, m[0], m[1], m[2], transposed)
            broken = _next_direction(v, w, h, k)
            _rotate(h, s, cosines, sines, k)
            now = abs(s[k + 1])
            if now <= small or broken:
                break
        _improve(x, v, h, s, last)
        _residual(r, x, b, a, transposed)
        left = math.sqrt(_dot(r, r))
        if left <= enough or broken:
            break
        factor = max(_EPS, 0.25 * factor) if now <= small else min(1.0, 1.5 * factor)
        small = now * min(factor, enough / left)
    return 0 if left <= enough else maxiter


_KRYLOV = compiled(_krylov, _workspace, calls_blas=False)


def _vector(b: Builder, x: int, n: int) -> int:
    """The first ``n`` elements."""
    return b.slice(x, attrs=(0, 1), type=b.type(x).with_shape((n,)))


def _column(b: Builder, x: int) -> int:
    return b.reshape_to(x, (b.type(x).size, 1))


def _info(b: Builder, found: int, n: int) -> int:
    kept = b.slice(found, attrs=(n, 1), type=b.type(found).with_shape((1,)))
    return b.convert(b.reshape_to(kept, ()), type=Type(DType.I64, ()))


def _solved(
    b: Builder, out: int, data: int, right: int, rest: Sequence[int], attrs: Sequence[int]
) -> int:
    """The solution, from a first guess of zeros. It stops the program where that or the one it
    belongs to has not converged: what was found is not the solution then."""
    indptr, indices, _, *others = rest
    guess = b.full_like(right, 0.0)
    found = b.call(data, right, indptr, indices, guess, *others, attrs=(krylov.number, *attrs))
    x, n = _vector(b, found, attrs[4]), attrs[4]
    for told in (out, found):
        zero = b.convert(
            b.wrap(_info(b, told, n), attrs=(1, Reason.UNSOLVED)), type=Type(DType.F64, ())
        )
        x = b.sub(x, b.broadcast_to(zero, (n,)))
    return x


def _jvp(
    b: Builder, tangents: Tangents, out: int, data: int, right: int, *rest: int,
    attrs: Sequence[int],
) -> int | None:  # fmt: skip
    """dx = A^-1 (db - dA x)"""
    n, x = attrs[4], _vector(b, out, attrs[4])
    terms = [] if tangents[1] is None else [tangents[1]]
    if tangents[0] is not None:
        change = product(b, tangents[0], _column(b, x), rest[:2], (attrs[1], n, n))
        terms.append(b.neg(b.reshape_to(change, (n,))))
    total = add(b, terms)
    if total is None:
        return None
    return b.pad(_solved(b, out, data, total, rest, attrs), attrs=(0, 1), type=b.type(out))


def _vjp(
    b: Builder, ct: int, out: int, data: int, right: int, *rest: int, attrs: Sequence[int]
) -> Sequence[int | None]:
    """ct_b = A^-T ct, ct_A = -ct_b x^T"""
    method, transposed, *others = attrs
    n, x = attrs[4], _vector(b, out, attrs[4])
    turned = (method, 1 - transposed, *others)
    of_right = _solved(b, out, data, _vector(b, ct, n), rest, turned)
    pair = (x, of_right) if transposed else (of_right, x)
    of_data = b.neg(
        samples(b, _column(b, pair[0]), _column(b, pair[1]), rest[:2], (n, n, b.type(data).size))
    )
    return of_data, of_right, *[None] * len(rest)


krylov = from_code(
    "sparse_krylov",
    _shape,
    _KRYLOV,
    jvp=_jvp,
    vjp=_vjp,
    # nobody knows how many iterations there are
    flops=lambda attrs, data, b, *rest: 50.0 * (2 * data.size + 10 * b.size),
)
