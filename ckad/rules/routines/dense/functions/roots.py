"""Square roots and logarithms of matrices, by SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.functions.exponential import corners
from ckad.rules.routines.dense.functions.sylvester import sylvester
from ckad.rules.routines.dense.matrices import (
    Matrix,
    flags,
    joined,
    matrices,
    matrix,
    parted,
    square,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type

Attributes = Sequence[int]


def _shape(attrs: Attributes, a: Type) -> Type:
    flags("a function of matrices", attrs, 1)
    matrices("a function of matrices", a)
    square("a function of matrices", a)
    return a


def _real_or_refused(name: str, found: np.ndarray, is_complex: int) -> np.ndarray:
    if found.dtype.kind == "c" and not is_complex:
        raise np.linalg.LinAlgError(
            f"the {name} of this real matrix is complex; pass a complex matrix, a + 0j"
        )
    return parted(found, is_complex)


# sqrtm(A; complex) -> X with X X = A; its change solves X dX + dX X = dA


def _root(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    x = joined(a, attrs[0])
    found = np.array([scipy.linalg.sqrtm(m) for m in x]).reshape(x.shape)
    return _real_or_refused("sqrtm", found, attrs[0])


def _root_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    return b.call(out, out, tangents[0], attrs=(sylvester.number, *attrs))


def _root_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    turned = matrix(b, out, attrs[0]).H.stacked(attrs[0])
    return (b.call(turned, turned, ct, attrs=(sylvester.number, *attrs)),)


sqrtm = define(
    Routine(
        "sqrtm",
        _shape,
        _root,
        _root_jvp,
        _root_vjp,
        lambda attrs, a: 30.0 * a.size * a.shape[1],
        calls_blas=True,
    )
)

# logm(A; complex); its derivative at A along E is the upper right corner of it at [[A, E], [0, A]]


def _logarithm(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    x = joined(a, attrs[0])
    with warnings.catch_warnings():  # of an error of 1e-13, and in matrices that users do not see
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.array([scipy.linalg.logm(m) for m in x]).reshape(x.shape)
    return _real_or_refused("logm", found, attrs[0])


def _logarithm_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    x, change = (matrix(b, v, attrs[0]) for v in (a, tangents[0]))
    return _along(b, x, change, attrs[0])


def _logarithm_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    """The adjoint of the derivative at A is the derivative at A^H."""
    x, z = (matrix(b, v, attrs[0]) for v in (a, ct))
    return (_along(b, x.H, z, attrs[0]),)


def _along(b: Builder, a: Matrix, direction: Matrix, is_complex: int) -> int:
    n = a.shape[1]
    both = corners(a, direction).stacked(is_complex)
    found = matrix(b, b.call(both, attrs=(logm.number, is_complex)), is_complex)
    return found.block((0, n), (n, n)).stacked(is_complex)


logm = define(
    Routine(
        "logm",
        _shape,
        _logarithm,
        _logarithm_jvp,
        _logarithm_vjp,
        lambda attrs, a: 30.0 * a.size * a.shape[1],
        calls_blas=True,
    )
)
