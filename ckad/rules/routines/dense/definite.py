"""Cholesky factors by LAPACK, on stacks of matrices in C order.

Formulas of derivatives: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
"""

from __future__ import annotations

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    FEW,
    NOT_POSITIVE,
    L,
    N,
    R,
    T,
    U,
    dgemm,
    dtrsm,
    gathered,
    parted_to,
    set_sizes,
)
from ckad.rules.routines.dense.matrices import (
    Matrix,
    add,
    matrices,
    matrix,
    need,
    square,
    square_stack,
)
from ckad.rules.routines.dense.triangles import divide
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    external,
    from_code,
    integers,
    letters,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

_dpotrf = external("dpotrf", 5)
_zpotrf = external("zpotrf", 5)
_dsymm = external("dsymm", 12)
_NOT_POSITIVE = 1

# --- Cholesky ------------------------------------------------------------------------------------

# cholesky(A [b, n, n]; complex) -> L, lower, with A = L L^H; reads the lower triangle


def _cholesky_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("cholesky", attrs, 1, a)
    return a


def _cholesky(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    batch = planes >> is_complex
    text, sizes = letters(work + 16, 1), set_sizes(work, n, n)
    text[0] = U
    for k in range(batch):
        to, matrix = doubles(out + 8 * k * n * n, n * n), doubles(a + 8 * k * n * n, n * n)
        if is_complex:
            # LAPACK sees conj(A) in the bytes of A, and makes conj(L)^H of it, whose bytes are L's
            at = work + HEAD
            gathered(at, a, k, batch, n * n, 1)
            _zpotrf(work + 16, work, at, work + 4, work + 8)
            z = doubles(at, 2 * n * n)
            for i in range(n):
                z[2 * (i * n + i + 1) : 2 * (i + 1) * n] = 0.0
            parted_to(out, at, k, batch, n * n, 1)
        else:
            for i in range(n):
                copy(to[i * n : i * n + i + 1], matrix[i * n : i * n + i + 1])
                to[i * n + i + 1 : (i + 1) * n] = 0.0
            _dpotrf(work + 16, work, to.ctypes.data, work + 4, work + 8)
        if sizes[2]:
            return _NOT_POSITIVE
    return 0


_CHOLESKY = compiled(
    _cholesky, lambda attrs, a: 16 * attrs[0] * a.shape[1] ** 2, {_NOT_POSITIVE: NOT_POSITIVE}
)


def _cholesky_jvp(
    b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes
) -> int | None:
    """dL = L P(L^-1 dA L^-H), where P is the lower triangle with half of the diagonal"""
    assert tangents[0] is not None
    root = matrix(b, out, attrs[0])
    half = matrix(b, tangents[0], attrs[0]).lower(0.5, 0.0)
    return (root @ _between_inverses(root, half + half.H, 0).lower(0.5, 0.0)).stacked(attrs[0])


def _between_inverses(root: Matrix, x: Matrix, adjoint: int) -> Matrix:
    """L^-1 X L^-H, or L^-H X L^-1."""
    left = divide(root, x, 1, adjoint)
    return divide(root, left.H, 1, adjoint).H


def _cholesky_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    """ct_A = L^-H P(L^H ct) L^-1, its two triangles in the lower one"""
    if not attrs[0]:
        return (b.call(out, ct, attrs=(cholesky_pull.number,)),)
    root = matrix(b, out, 1)
    both = _pulled(root, matrix(b, ct, 1))
    return ((both + both.H).lower(0.5, 0.0).stacked(1),)


def _pulled(root: Matrix, ct: Matrix) -> Matrix:
    return _between_inverses(root, (root.H @ ct).lower(0.5, 0.0), 1)


cholesky = from_code(
    "cholesky",
    _cholesky_shape,
    _CHOLESKY,
    jvp=_cholesky_jvp,
    vjp=_cholesky_vjp,
    flops=lambda attrs, a: (1 + attrs[0]) / 3 * a.size * a.shape[1],
)


# cholesky_pull(L [b, n, n], ct [b, n, n]) -> ct_A, lower, of real matrices: two thirds of n^3
# operations, where the formula takes 3 n^3

#: Rows of a triangle that are multiplied together.
_STRIP = 128


def _cholesky_pull_shape(attrs: Attributes, root: Type, ct: Type) -> Type:
    matrices("cholesky_pull", root, ct)
    square("cholesky_pull", root)
    need(not attrs and root == ct, f"cholesky_pull of {root} and {ct}")
    return ct


def _cholesky_pull(words: int, arrays: int, work: int) -> int:
    batch, n = integers(words, 2)
    out, root, ct = integers(arrays, 3)
    numbers = doubles(work + 64, 2)
    numbers[0], numbers[1] = -1.0, 1.0
    for k in range(batch):
        at = 8 * k * n * n
        to, given = doubles(out + at, n * n), doubles(ct + at, n * n)
        for i in range(n):
            copy(to[i * n : i * n + i + 1], given[i * n : i * n + i + 1])
            to[i * n + i + 1 : (i + 1) * n] = 0.0
        _reverse(work, root + at, out + at, n, n)
        for i in range(n):
            to[i * n + i + 1 : (i + 1) * n] = 0.0
    return 0


@kernel
def _reverse(work: int, x: int, y: int, n: int, step: int) -> None:
    """A cotangent at ``y`` of a factor at ``x``, both with rows ``step`` apart, to that of A.

    In halves, as the factor of A is computed; only lower triangles are read.
    """
    if n <= FEW:
        _reverse_rows(x, y, n, step)
        return
    first = (n // 2 + 7) // 8 * 8
    rest = n - first
    below, corner = 8 * first * step, 8 * first * (step + 1)
    _reverse(work, x + corner, y + corner, rest, step)
    text, sizes, number = letters(work, 4), short_integers(work + 16, 8), work + 64
    diagonal = doubles(y + corner, (rest - 1) * (step + 1) + 1)
    for i in range(0, len(diagonal), step + 1):
        diagonal[i] *= 2.0
    # ct_21 -= (ct_22 + ct_22^T) L_21
    text[0], text[1] = R, U
    sizes[0], sizes[1], sizes[2] = first, rest, step
    _dsymm(work, work + 1, work + 16, work + 20, number, y + corner, work + 24, x + below,
           work + 24, number + 8, y + below, work + 24)  # fmt: skip
    for i in range(0, len(diagonal), step + 1):
        diagonal[i] *= 0.5
    # ct_21 <- ct_21 L_11^-1
    text[0], text[1], text[2], text[3] = L, U, N, N
    dtrsm(work, work + 1, work + 2, work + 3, work + 16, work + 20, number + 8, x, work + 24,
           y + below, work + 24)  # fmt: skip
    # ct_11 -= ct_21^T L_21
    text[0], text[1] = N, T
    for start in range(0, first, _STRIP):
        end = min(first, start + _STRIP)
        sizes[3], sizes[4] = end, end - start
        dgemm(work, work + 1, work + 28, work + 32, work + 20, number, x + below, work + 24,
               y + below + 8 * start, work + 24, number + 8, y + 8 * start * step,
               work + 24)  # fmt: skip
    _reverse(work, x, y, first, step)


@kernel
def _reverse_rows(x: int, y: int, n: int, step: int) -> None:
    """The same row by row."""
    m = (n - 1) * step + n
    root, ct = doubles(x, m), doubles(y, m)
    for k in range(n - 1, -1, -1):
        row = k * step
        scale = 1.0 / root[row + k]
        total = ct[row + k]
        for i in range(k + 1, n):
            c = ct[i * step + k] * scale
            ct[i * step + k] = c
            total -= c * root[i * step + k]
        total *= scale
        for j in range(k):
            ct[row + j] -= total * root[row + j]
        for i in range(k + 1, n):
            c = ct[i * step + k]
            for j in range(k):
                ct[row + j] -= c * root[i * step + j]
                ct[i * step + j] -= c * root[row + j]
        ct[row + k] = 0.5 * total


_CHOLESKY_PULL = compiled(_cholesky_pull, lambda attrs, root, ct: 0)


def _cholesky_pull_jvp(
    b: Builder, tangents: Tangents, out: int, root: int, ct: int, attrs: Attributes
) -> int | None:
    """With S = L^-T P(L^T ct) L^-1: dS = L^-T (P(d(L^T ct)) - dL^T S L - L^T S dL) L^-1"""
    by_root, by_ct = (None if t is None else Matrix(b, t) for t in tangents)
    x, z = Matrix(b, root), Matrix(b, ct)
    terms = [] if by_ct is None else [(x.T @ by_ct).lower(0.5).re]
    if by_root is not None:
        s, change = _pulled(x, z), by_root.lower()
        turned = change.T @ (s @ x) + x.T @ (s @ change)
        terms.append(((change.T @ z).lower(0.5) - turned).plain().re)
    total = add(b, terms)
    if total is None:
        return None
    both = _between_inverses(x, Matrix(b, total), 1)
    return (both + both.T).lower(0.5).plain().re


def _cholesky_pull_vjp(
    b: Builder, ct: int, out: int, root: int, given: int, attrs: Attributes
) -> tuple[int, int]:
    """By ct the push of ct; by L the transpose of what the tangent does with dL"""
    x, z, w = Matrix(b, root), Matrix(b, given), Matrix(b, ct).lower(0.5)
    whole, s = w + w.T, _pulled(x, z)
    inner = _between_inverses(x, whole, 0).lower(0.5)
    right = divide(x, (whole @ (s + s.T)), 1, 0).T
    return (z @ inner.T - right).lower().plain().re, (x @ inner).lower().plain().re


cholesky_pull = from_code(
    "cholesky_pull",
    _cholesky_pull_shape,
    _CHOLESKY_PULL,
    _cholesky_pull_jvp,
    _cholesky_pull_vjp,
    lambda attrs, root, ct: 2 / 3 * root.size * root.shape[1],
)
