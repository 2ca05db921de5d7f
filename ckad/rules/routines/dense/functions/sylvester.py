"""Sylvester's equation, by LAPACK as SciPy calls it."""

from __future__ import annotations

from functools import cache

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import joined, matrix, need, parted, square, stacks
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Routine, define
from ckad.tape.types import Type

# sylvester(A [b, n, n], B [b, m, m], Q [b, n, m]; complex) -> X with A X + X B = Q


def _sylvester_shape(attrs: Attributes, a: Type, b: Type, q: Type) -> Type:
    stacks("sylvester", attrs, 1, a, b, q)
    square("sylvester", a)
    square("sylvester", b)
    need(q.shape[1:] == (a.shape[1], b.shape[1]), f"sylvester of {a}, {b} and {q}")
    return q


def _sylvester(attrs: Attributes, *operands: np.ndarray) -> np.ndarray:
    stacks = [joined(x, attrs[0]) for x in operands]
    found = [_solved(*given) for given in zip(*stacks, strict=True)]
    return parted(np.array(found).reshape(stacks[2].shape), attrs[0])


def _solved(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """SciPy's ``solve_sylvester`` without what it does beside LAPACK, which takes twice as long as
    that for small matrices."""
    from scipy.linalg import lapack

    if a.size == 0 or b.size == 0:
        return np.empty(q.shape, q.dtype)
    letter = "z" if q.dtype.kind == "c" else "d"
    r, u = _schur(letter, a)
    # derivatives of square roots and of signs have one matrix on both sides
    is_one = np.array_equal(a, b)
    s, v = (r, u) if is_one else _schur(letter, b.conj().T)
    right = np.dot(np.dot(u.conj().T, q), v)
    turned = "N" if is_one else "C"
    y, scale, info = getattr(lapack, f"{letter}trsyl")(r, s, right, tranb=turned)
    if info == 1:  # it has moved eigenvalues apart
        raise np.linalg.LinAlgError(
            "Singular matrix: eigenvalues of both matrices add up to zero, or nearly"
        )
    found: np.ndarray = np.dot(np.dot(u, scale * y), v.conj().T)
    return found


def _schur(letter: str, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import lapack

    if not np.isfinite(a).all():
        raise ValueError("array must not contain infs or NaNs")
    triangle, *_, vectors, _, info = getattr(lapack, f"{letter}gees")(
        _unsorted, a, lwork=_schur_workspace(letter, len(a)), sort_t=0
    )
    if info:
        raise np.linalg.LinAlgError("Schur form not found. Possibly ill-conditioned.")
    return triangle, vectors


def _unsorted(*_: object) -> None:
    return None


@cache
def _schur_workspace(letter: str, n: int) -> int:
    """What LAPACK asks for, which its bits depend on."""
    from scipy.linalg import lapack

    found = getattr(lapack, f"{letter}gees")(_unsorted, np.zeros((n, n)), lwork=-1)
    return int(found[-2][0].real)


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
        calls_blas=True,
    )
)
