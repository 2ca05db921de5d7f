"""``scipy.linalg``: functions of matrices, products and systems with matrices of few numbers.

Each is a formula in the exponential, in factors or in Fourier transforms, as SciPy computes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.place import at_place
from ckad.trace.arrays import Array, is_traced, promoted, reshaped, stopping, traced
from ckad.trace.dispatch import reject
from ckad.trace.numpy.linalg import adjoint, floats, qr, solve
from ckad.trace.numpy.scipy.dense.matrices import (
    diagonals,
    expm,
    linalg_pinv,
    logm,
    of_scipy,
    of_triangle,
)

# --- functions of matrices -----------------------------------------------------------------------


@of_scipy(scipy.linalg.expm_frechet)
def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True) -> Any:
    """From the exponential of [[A, E], [0, A]], whose upper blocks are both."""
    x, direction = promoted(floats(A), floats(E))
    n = x.shape[-1]
    rows = np.concatenate([x, direction], -1), np.concatenate([np.zeros_like(x), x], -1)
    whole = expm(np.concatenate(rows, -2))
    derivative = whole[..., :n, n:]
    return (whole[..., :n, :n], derivative) if compute_expm else derivative


def _turned(A: Any) -> tuple[Array, Array]:
    """Cosine and sine, from the exponentials of i A and -i A."""
    x = floats(A)
    if x.dtype.kind != "c":
        both = expm(1j * x)
        return both.real, both.imag
    up, down = expm(1j * x), expm(-1j * x)
    return 0.5 * (up + down), -0.5j * (up - down)


def _hyperbolic(A: Any) -> tuple[Array, Array]:
    x = floats(A)
    up, down = expm(x), expm(-x)
    return 0.5 * (up + down), 0.5 * (up - down)


of_scipy(scipy.linalg.cosm)(lambda A: _turned(A)[0])
of_scipy(scipy.linalg.sinm)(lambda A: _turned(A)[1])
of_scipy(scipy.linalg.tanm)(lambda A: solve(*_turned(A)))
of_scipy(scipy.linalg.coshm)(lambda A: _hyperbolic(A)[0])
of_scipy(scipy.linalg.sinhm)(lambda A: _hyperbolic(A)[1])
of_scipy(scipy.linalg.tanhm)(lambda A: solve(*_hyperbolic(A)))


@of_scipy(scipy.linalg.fractional_matrix_power)
def fractional_matrix_power(A: Any, t: Any) -> Array:
    """A whole number of products, and the exponential of a part of the logarithm."""
    x = floats(A)
    if is_traced(t):
        return expm(t * logm(x))
    whole = int(np.floor(t + 0.5))
    products = np.linalg.matrix_power(x, whole)
    return products if whole == t else np.matmul(products, expm((t - whole) * logm(x)))


# --- factors -------------------------------------------------------------------------------------


@of_scipy(scipy.linalg.rq)
def rq(a: Any, mode: str = "full") -> Any:
    """Q and R of the matrix turned about its other diagonal, turned back."""
    turned = adjoint(floats(a)[::-1, ::-1])
    q, r = qr(turned, "reduced" if mode == "economic" else "complete")
    right = adjoint(r)[::-1, ::-1]
    return right if mode == "r" else (right, adjoint(q)[::-1, ::-1])


@of_scipy(scipy.linalg.pinvh)
def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False
) -> Array:
    whole = of_triangle(floats(a), lower)
    return linalg_pinv(whole, atol=atol, rtol=rtol, return_rank=return_rank)


# --- matrices of few numbers ---------------------------------------------------------------------


@of_scipy(scipy.linalg.companion)
def companion(a: Any) -> Array:
    c = floats(a)
    reject(c.ndim != 1, "scipy.linalg.companion of stacks")
    n = c.shape[0] - 1
    if n < 1:
        raise ValueError(at_place("companion needs two coefficients or more"))
    leading = stopping(c[:1], np.equal(c[0], 0), "SINGULAR")
    first = reshaped(-c[1:] / leading, (1, n))
    return np.concatenate([first, np.eye(n - 1, n, dtype=first.dtype)])


@of_scipy(scipy.linalg.khatri_rao)
def khatri_rao(a: Any, b: Any) -> Array:
    x, y = promoted(traced(a), traced(b))
    found = x[..., :, None, :] * y[..., None, :, :]
    rows = x.shape[-2] * y.shape[-2]
    return reshaped(found, (*found.shape[:-3], rows, found.shape[-1]))


@of_scipy(scipy.linalg.matmul_toeplitz)
def matmul_toeplitz(c_or_cr: Any, x: Any, workers: Any = None) -> Array:
    """By a circulant matrix that holds the one which is given."""
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    c, r = diagonals(floats(column), None if row is None else floats(row))
    c, r, right = promoted(c, r, floats(x))
    n, m = c.shape[0], r.shape[0]
    if right.shape[0] != m:
        raise ValueError(at_place(f"a matrix with {m} columns and x of {right.shape} do not fit"))
    around = np.concatenate([c, r[:0:-1]])
    width = (slice(None), *(None,) * (right.ndim - 1))
    if right.dtype.kind == "c":
        return np.fft.ifft(np.fft.fft(around)[width] * np.fft.fft(right, n + m - 1, 0), axis=0)[:n]
    product = np.fft.rfft(around)[width] * np.fft.rfft(right, n + m - 1, 0)
    return np.fft.irfft(product, n + m - 1, 0)[:n]


@of_scipy(scipy.linalg.solve_circulant)
def solve_circulant(c: Any, b: Any, singular: str = "raise", tol: Any = None) -> Array:
    """A division of Fourier transforms."""
    column, right = promoted(floats(c), floats(b))
    reject(singular != "raise", "scipy.linalg.solve_circulant with singular=")
    reject(column.ndim != 1, "scipy.linalg.solve_circulant of stacks")
    if right.shape[:1] != column.shape:
        raise ValueError(at_place(f"shapes of c {column.shape} and b {right.shape} do not fit"))
    turned = np.fft.fft(column)
    square = turned.real**2 + turned.imag**2
    least = column.size * np.finfo(np.float64).eps * np.sqrt(np.max(square)) if tol is None else tol
    square = stopping(square, np.any(square <= least**2), "SINGULAR")
    width = (slice(None), *(None,) * (right.ndim - 1))
    quotient = np.fft.fft(right, axis=0) * (np.conj(turned) / square)[width]
    found = np.fft.ifft(quotient, axis=0)
    return found if right.dtype.kind == "c" else found.real
