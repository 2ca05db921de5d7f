"""Polar factors of matrices with at least as many rows as columns, from singular values."""

from __future__ import annotations

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.functions.sylvester import halved
from ckad.rules.routines.dense.matrices import (
    Matrix,
    above_square,
    joined,
    matrix,
    need,
    parted,
    stacks,
)
from ckad.rules.routines.dense.systems import inverse_times
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Routine, define
from ckad.tape.types import Type

# polar(A [b, m, n]; complex) -> [b, m + n, n], m >= n: U, and P below it, A = U P, U^H U = 1,
# P Hermitian with eigenvalues >= 0. Singular values that are equal do no harm.


def _shape(attrs: Attributes, a: Type) -> Type:
    stacks("polar", attrs, 1, a)
    batch, m, n = a.shape
    need(m >= n, f"polar of {a}; it needs at least as many rows as columns")
    return a.with_shape((batch, m + n, n))


def _polar(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    u, s, v = np.linalg.svd(joined(a, attrs[0]), full_matrices=False)
    root = np.swapaxes(v, 1, 2).conj() * s[:, None, :]
    return parted(np.concatenate([u @ v, root @ v], 1), attrs[0])


def _by_root(p: Matrix, x: Matrix) -> Matrix:
    """X P^-1; the program stops where P is singular."""
    return inverse_times(p, x.H).H


def _jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """X = U^H dA, P W + W P = X - X^H, dP = X - W P, dU = (dA - U dP) P^-1"""
    assert tangents[0] is not None
    (is_complex,) = attrs
    (u, p), change = above_square(b, out, is_complex), matrix(b, tangents[0], is_complex)
    x = u.H @ change
    by_p = x - halved(p, x - x.H) @ p
    by_u = _by_root(p, change - u @ by_p)
    _, m, n = u.shape
    both = by_u.within((0, 0), (m + n, n)) + by_p.within((m, 0), (m + n, n))
    return both.stacked(is_complex)


def _vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    """H = ct_U P^-1, G = ct_P - U^H H, P W + W P = -G P, ct_A = H + U (G + W - W^H)"""
    (is_complex,) = attrs
    (u, p), (by_u, by_p) = above_square(b, out, is_complex), above_square(b, ct, is_complex)
    h = _by_root(p, by_u)
    g = by_p - u.H @ h
    w = halved(p, -(g @ p))
    return ((h + u @ (g + w - w.H)).stacked(is_complex),)


polar = define(
    Routine(
        "polar",
        _shape,
        _polar,
        _jvp,
        _vjp,
        lambda attrs, a: 20.0 * (1 + attrs[0]) * a.size * a.shape[2],
        calls_blas=True,
    )
)
