"""How pseudo-inverses and least squares are derived: as those of matrices of the same rank.

G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate", SIAM J. Numer. Anal. 10, 1973.
"""

from __future__ import annotations

from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import add, matrix, need, stacks
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, mark
from ckad.tape.types import Type

# pinv(P [b, n, m], A [b, m, n]; complex) -> P, a mark: the pseudo-inverse of A


def _pinv_shape(attrs: Attributes, p: Type, a: Type) -> Type:
    stacks("pinv", attrs, 1, p, a)
    need(p.shape[1:] == a.shape[:0:-1], f"pinv of {p} and {a}")
    return p


def _pinv_jvp(
    b: Builder, tangents: Tangents, out: int, p: int, a: int, attrs: Attributes
) -> int | None:
    """dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P"""
    if tangents[1] is None:
        return None
    q, x, change = (matrix(b, v, attrs[0]) for v in (out, a, tangents[1]))
    rows, columns = q @ (q.H @ change.H), (change.H @ q.H) @ q
    total = rows - (rows @ x) @ q + columns - q @ (x @ columns) - q @ (change @ q)
    return total.stacked(attrs[0])


def _pinv_vjp(b: Builder, ct: int, out: int, p: int, a: int, attrs: Attributes) -> tuple[None, int]:
    q, x, z = (matrix(b, v, attrs[0]) for v in (out, a, ct))
    rows, columns = (z.H @ q) @ q.H, q.H @ (q @ z.H)
    total = rows - x @ (q @ rows) + columns - (columns @ q) @ x - (q.H @ z) @ q.H
    return None, total.stacked(attrs[0])


pinv = mark("pinv", _pinv_shape, _pinv_jvp, _pinv_vjp)

# lstsq(X [b, n, k], A [b, m, n], Y [b, m, k], P; complex) -> X = P Y, a mark: the shortest least
# squares solutions of A X = Y. Its rules are products with X and Y, which have few columns. What is
# outside of a range is projected twice: of a matrix without such an outside it is all rounding,
# which P P^H would multiply by the square of the condition.


def _lstsq_shape(attrs: Attributes, x: Type, a: Type, y: Type, p: Type) -> Type:
    stacks("lstsq", attrs, 1, x, a, y, p)
    (_, m, n), k = a.shape, y.shape[2]
    fits = (x.shape[1:], y.shape[1:], p.shape[1:]) == ((n, k), (m, k), (n, m))
    need(fits, f"lstsq of {x}, {a}, {y} and {p}")
    return x


def _lstsq_jvp(
    b: Builder, tangents: Tangents, out: int, solution: int, a: int, y: int, p: int,
    attrs: Attributes,
) -> int | None:  # fmt: skip
    """dX = P (dY - dA X) + P P^H dA^H (Y - A X) + (1 - P A) dA^H P^H X"""
    x, m, inverse = (matrix(b, v, attrs[0]) for v in (out, a, p))
    terms = []
    if tangents[2] is not None:
        terms.append(inverse @ matrix(b, tangents[2], attrs[0]))
    if tangents[1] is not None:
        change, gap = matrix(b, tangents[1], attrs[0]), matrix(b, y, attrs[0]) - m @ x
        gap = gap - m @ (inverse @ gap)
        turned = change.H @ (inverse.H @ x)
        moved = inverse @ (inverse.H @ (change.H @ gap) - change @ x)
        outside = turned - inverse @ (m @ turned)
        terms.append(moved + outside - inverse @ (m @ outside))
    return add(b, [term.stacked(attrs[0]) for term in terms])


def _lstsq_vjp(
    b: Builder, ct: int, out: int, solution: int, a: int, y: int, p: int, attrs: Attributes
) -> tuple[None, int, int, None]:
    x, m, inverse, z = (matrix(b, v, attrs[0]) for v in (out, a, p, ct))
    of_y = inverse.H @ z
    gap, within = matrix(b, y, attrs[0]) - m @ x, z - m.H @ of_y
    gap, within = gap - m @ (inverse @ gap), within - m.H @ (inverse.H @ within)
    of_a = gap @ (inverse @ of_y).H - of_y @ x.H + (inverse.H @ x) @ within.H
    return None, of_a.stacked(attrs[0]), of_y.stacked(attrs[0]), None


lstsq = mark("lstsq", _lstsq_shape, _lstsq_jvp, _lstsq_vjp)
