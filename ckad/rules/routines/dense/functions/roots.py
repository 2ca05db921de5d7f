"""Square roots, signs and logarithms of matrices, by SciPy."""

from __future__ import annotations

import warnings

import numpy as np

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.functions.exponential import corners
from ckad.rules.routines.dense.functions.sylvester import halved
from ckad.rules.routines.dense.matrices import Matrix, joined, matrix, parted, square_stack
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Routine, define
from ckad.tape.types import Type


def _shape(attrs: Attributes, a: Type) -> Type:
    square_stack("a function of matrices", attrs, 1, a)
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
    x, change = (matrix(b, v, attrs[0]) for v in (out, tangents[0]))
    return halved(x, change).stacked(attrs[0])


def _root_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    return (halved(matrix(b, out, attrs[0]).H, matrix(b, ct, attrs[0])).stacked(attrs[0]),)


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

# signm(A; complex) -> S with S S = 1, A S = S A; its change solves N dS + dS N = dA - S dA S with
# N = A S (C. Kenney, A. J. Laub, "Polar decomposition and matrix sign function condition
# estimates", SIAM J. Sci. Stat. Comput. 12, 1991)


def _sign(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    x = joined(a, attrs[0])
    found = np.array([scipy.linalg.signm(m) for m in x]).reshape(x.shape)
    if found.dtype.kind == "c" and not attrs[0]:  # on the way, complex eigenvalues
        found = found.real
    return parted(found, attrs[0])


def _sign_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    s, x, change = (matrix(b, v, attrs[0]) for v in (out, a, tangents[0]))
    return halved(x @ s, change - s @ change @ s).stacked(attrs[0])


def _sign_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    s, x = (matrix(b, v, attrs[0]).H for v in (out, a))
    y = halved(s @ x, matrix(b, ct, attrs[0]))
    return ((y - s @ y @ s).stacked(attrs[0]),)


signm = define(
    Routine(
        "signm",
        _shape,
        _sign,
        _sign_jvp,
        _sign_vjp,
        lambda attrs, a: 30.0 * a.size * a.shape[1],
        calls_blas=True,
    )
)

# logm(A; complex); its derivative at A along E is the upper right corner of it at [[A, E], [0, A]]


def _logarithm(attrs: Attributes, a: np.ndarray) -> np.ndarray:
    import scipy.linalg

    x = joined(a, attrs[0])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")  # of an error of 1e-13, in matrices that users do not see
        found = np.array([scipy.linalg.logm(m) for m in x]).reshape(x.shape)
    if any(w.category.__name__ == "LogmExactlySingularWarning" for w in told):
        raise np.linalg.LinAlgError("Singular matrix: it has no logarithm")
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
