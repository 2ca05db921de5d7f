"""``scipy.linalg``: factors that are seldom asked for, orthonormal bases, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ckad.place import at_place
from ckad.trace.arrays import Array, copied, fori_loop, reshaped, routine, spread, stopping
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.linalg import (
    adjoint,
    apart,
    computed,
    floats,
    matrices,
    negligible,
    of_planes,
    planes,
    qr,
    reflection,
)
from ckad.trace.numpy.scipy.dense.matrices import of_scipy
from ckad.trace.numpy.spectra import svd


@of_scipy(scipy.linalg.polar)
def polar(a: Any, side: str = "right") -> tuple[Array, Array]:
    """A = U P, or P U; of a wide matrix by its adjoint, P U^H."""
    if side not in ("right", "left"):
        raise ValueError(at_place("`side` must be either 'right' or 'left'"))
    x = floats(a)
    rows, columns = x.shape[-2:]
    is_wide = rows < columns
    m = matrices(adjoint(x) if is_wide else x, square=False)
    most, least = max(rows, columns), min(rows, columns)
    both = reshaped(of_planes(computed("polar", m), m), (*x.shape[:-2], most + least, least))
    u, p = both[..., :most, :], both[..., most:, :]
    if is_wide == (side == "right"):
        p = np.matmul(np.matmul(u, p), adjoint(u))
    return copied(adjoint(u) if is_wide else u), copied(p)


@of_scipy(scipy.linalg.ldl)
def ldl(A: Any, lower: bool = True, hermitian: bool = True) -> tuple[Array, Array, Array]:
    """Reads one triangle. Derivatives are those with the same exchanges of rows."""
    x = floats(A)
    reject(x.ndim != 2, "scipy.linalg.ldl of stacks")
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    middle = (np.real(x) if hermitian else x) * np.eye(x.shape[-1], dtype=x.dtype)
    m = matrices(half + middle + (adjoint(half) if hermitian else np.swapaxes(half, -1, -2)))
    found = of_planes(computed("ldl", m, int(lower), int(hermitian)), m)[0]
    n = x.shape[0]
    order = np.real(found[-1]).astype(np.int64)
    return copied(found[:n]), copied(found[n : 2 * n]), order


# --- orthonormal columns -------------------------------------------------------------------------


@of_scipy(scipy.linalg.qr)
def linalg_qr(a: Any, *, mode: str = "full", pivoting: bool = False) -> Any:
    """Which column comes next is no matter of derivatives."""
    reject(mode == "raw", "scipy.linalg.qr with mode='raw'")
    x = floats(a)
    order: tuple[Array, ...] = ()
    if pivoting:
        m = matrices(x, square=False)
        attrs = (int(x.dtype.kind == "c"),)
        places = routine("column_order", planes(m), attrs=attrs)
        order = (copied(reshaped(places, (*x.shape[:-2], x.shape[-1]))),)
        x = np.take_along_axis(x, spread(order[0][..., None, :], x.shape), -1)
    if mode == "r":
        return (qr(x, "complete").R, *order)
    return (*qr(x, "complete" if mode == "full" else "reduced"), *order)


@of_scipy(scipy.linalg.qr_multiply)
def qr_multiply(
    a: Any, c: Any, mode: str = "right", pivoting: bool = False, conjugate: bool = False
) -> tuple[Array, ...]:
    if mode not in ("left", "right"):
        raise ValueError(at_place(f"Mode argument can only be 'left' or 'right' but not '{mode}'"))
    q, *others = linalg_qr(a, mode="economic", pivoting=pivoting)
    factor = np.conj(q) if conjugate else q
    product = np.matmul(factor, c) if mode == "left" else np.matmul(c, factor)
    return product, *others


@of_scipy(scipy.linalg.orth)
def orth(A: Any, rcond: Any = None) -> Array:
    """Of a matrix of full rank: a basis of fewer columns than that would have another shape."""
    x = floats(A)
    reject(x.ndim != 2, "scipy.linalg.orth of stacks")
    u, s, _ = svd(x, full_matrices=False)
    if rcond is None:
        rcond = np.finfo(s.dtype).eps * max(x.shape)
    wrong = np.any(s <= np.max(s, initial=0.0) * rcond)
    return u - stopping(np.zeros((), s.dtype), wrong, "SINGULAR")


@of_scipy(scipy.linalg.hessenberg)
def hessenberg(a: Any, calc_q: bool = False) -> Any:
    """By Householder's reflections with LAPACK's signs."""
    x = floats(a)
    reject(x.ndim != 2 or x.dtype.kind == "c", "scipy.linalg.hessenberg of complex or stacked a")
    m = matrices(x)
    n = m.shape[-1]
    q = spread(np.eye(n, dtype=x.dtype), m.shape)
    if n > 2:
        m, q = fori_loop(0, n - 2, _reduce, (m, q))
        # a column of zeros may go anywhere, and leaves those behind it without derivatives
        wrong = negligible(np.diagonal(m[0], -1)[: n - 2], np.max(np.abs(x)))
        m, q = apart(m, wrong), apart(q, wrong)
    reduced = copied(np.triu(m[0], -1))
    return (reduced, copied(q[0])) if calc_q else reduced


def _reduce(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
    """Zeros below row k + 1 of column k, by the same reflection from both sides."""
    m, q = state
    v, scale, sign = reflection(m, k, k + 1)
    turned, back = np.swapaxes(v, 1, 2), np.swapaxes(sign, 1, 2)
    m = sign * (m - scale * v * np.matmul(turned, m))
    m = (m - scale * np.matmul(m, v) * turned) * back
    return m, (q - scale * np.matmul(q, v) * turned) * back


def _without(function: Any, remedy: str) -> None:
    """Say what to write in place of a function whose result is one of many, by LAPACK's choice."""

    def refuse(*args: Any, **options: Any) -> Any:
        reject(True, f"scipy.linalg.{function.__name__} ({remedy})")

    implements(function, kind=STATIC)(refuse)


_without(
    scipy.linalg.null_space,
    "np.eye(A.shape[1]) - np.linalg.pinv(A) @ A, the projection onto it, is the same in each basis",
)
_without(scipy.linalg.schur, "np.linalg.eigh(A) of symmetric matrices, np.linalg.eig(A) of others")
_without(scipy.linalg.qz, "scipy.linalg.eigh(A, B) of symmetric matrices, or eig(solve(B, A))")
