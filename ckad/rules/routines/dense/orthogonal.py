"""QR factors, real or complex, on stacks of matrices in C order.

Formulas of derivatives: D. Roberts, L. Roberts, "QR and LQ decomposition matrix backpropagation
algorithms for square, wide, and deep matrices", 2020.
"""

from __future__ import annotations

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import (
    BLOCK,
    set_sizes,
    turned,
    turned_into_parts,
    turned_parts,
)
from ckad.rules.routines.dense.matrices import above_square, matrix, need, stacks
from ckad.rules.routines.dense.triangles import divide
from ckad.rules.routines.memory import HEAD, compiled, doubles, external, from_code, integers
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

_dgeqrf = external("dgeqrf", 8)
_dorgqr = external("dorgqr", 9)
_zgeqrf = external("zgeqrf", 8)
_zungqr = external("zungqr", 9)

# --- QR ------------------------------------------------------------------------------------------

# qr(A [b, m, n]; complex) -> [b, m + n, n], m >= n: Q, and R below it


def _qr_shape(attrs: Attributes, a: Type) -> Type:
    stacks("qr", attrs, 1, a)
    batch, m, n = a.shape
    need(m >= n, f"qr of {a}; it needs at least as many rows as columns")
    return a.with_shape((batch, m + n, n))


def _qr(words: int, arrays: int, work: int) -> int:
    is_complex, planes, m, n = integers(words, 4)
    out, a = integers(arrays, 2)
    batch, width, size = planes >> is_complex, 1 + is_complex, (m + n) * n
    sizes = set_sizes(work, m, m)
    sizes[3], sizes[4] = n, BLOCK * max(n, 1)
    z = work + HEAD
    tau = z + 8 * width * m * n
    space = tau + 8 * width * n
    for k in range(batch):
        at, im = a + 8 * k * m * n, a + 8 * (batch + k) * m * n
        to, to_im = out + 8 * k * size, out + 8 * (batch + k) * size
        if is_complex:
            turned_parts(z, at, im, m, n)
            _zgeqrf(work, work + 12, z, work + 4, tau, space, work + 16, work + 8)
            _upper_part(to + 8 * m * n, z, m, n, 2)
            _upper_part(to_im + 8 * m * n, z + 8, m, n, 2)
            _zungqr(work, work + 12, work + 12, z, work + 4, tau, space, work + 16, work + 8)
            turned_into_parts(to, to_im, z, n, m)
        else:
            turned(z, at, m, n)
            _dgeqrf(work, work + 12, z, work + 4, tau, space, work + 16, work + 8)
            _upper_part(to + 8 * m * n, z, m, n, 1)
            _dorgqr(work, work + 12, work + 12, z, work + 4, tau, space, work + 16, work + 8)
            turned(to, z, n, m)
    return 0


@kernel
def _upper_part(to: int, x: int, m: int, n: int, width: int) -> None:
    """R by rows, from what LAPACK has made of columns of ``m`` numbers."""
    target, source = doubles(to, n * n), doubles(x, width * (m * n - 1) + 1)
    for i in range(n):
        target[i * n : i * n + i] = 0.0
        for j in range(i, n):
            target[i * n + j] = source[width * (j * m + i)]


def _qr_workspace(attrs: Attributes, a: Type) -> int:
    _, m, n = a.shape
    return 8 * (1 + attrs[0]) * n * (m + 1 + BLOCK)


_QR = compiled(_qr, _qr_workspace)


def _qr_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    """X = dA R^-1, dQ = X + Q (W - Q^H X), dR = (Q^H X - W) R; W is antihermitian, its lower
    triangle that of Q^H X"""
    assert tangents[0] is not None
    (is_complex,) = attrs
    q, r = above_square(b, out, is_complex)
    x = divide(r, matrix(b, tangents[0], is_complex).H, 0, 1).H
    inner = q.H @ x
    below = inner.lower(0.0, 0.5)
    rest = inner - (below - below.H)
    by_q, by_r = x - q @ rest, rest @ r
    _, m, n = q.shape
    both = by_q.within((0, 0), (m + n, n)) + by_r.within((m, 0), (m + n, n))
    return both.stacked(is_complex)


def _qr_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    """ct_A = (ct_Q + Q S) R^-H; S is Hermitian, its lower triangle that of R ct_R^H - ct_Q^H Q"""
    (is_complex,) = attrs
    q, r = above_square(b, out, is_complex)
    by_q, by_r = above_square(b, ct, is_complex)
    inner = (r @ by_r.H - by_q.H @ q).lower(0.5, 0.0)
    total = by_q + q @ (inner + inner.H)
    return (divide(r, total.H, 0, 0).H.stacked(is_complex),)


qr = from_code(
    "qr",
    _qr_shape,
    _QR,
    _qr_jvp,
    _qr_vjp,
    lambda attrs, a: 4.0 * (1 + attrs[0]) * a.size * a.shape[2],
)
