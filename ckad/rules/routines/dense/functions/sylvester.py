"""Sylvester's equation, by SciPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import flags, joined, matrices, matrix, need, parted, square
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]

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
        calls_blas=True,
    )
)
