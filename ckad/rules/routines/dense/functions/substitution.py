"""Substitution as loops spell it out: by one triangle, or by both that an elimination has left.

A zero on the diagonal is divided by, as those loops do: nothing is said of it.
"""

from __future__ import annotations

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.lapack import divided
from ckad.rules.routines.dense.matrices import Matrix, add, matrices, need, square, stacks
from ckad.rules.routines.dense.systems import solution
from ckad.rules.routines.dense.triangles import triangle
from ckad.rules.routines.memory import compiled, copy, doubles, from_code, integers, is_finite
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

# substituted(T [b, n, n], B [b, n, m]; lower, adjoint, unit) -> X with T X = B or T^T X = B; only
# one triangle of T is read


def _substituted_shape(attrs: Attributes, t: Type, right: Type) -> Type:
    stacks("substituted", attrs, 3, t, right)
    square("substituted", t)
    return solution("substituted", t, right, t.shape[2])


def _substituted(words: int, arrays: int, work: int) -> int:
    lower, adjoint, unit, batch, n, _, _, _, m = integers(words, 9)
    out, t, right = integers(arrays, 3)
    copy(doubles(out, batch * n * m), doubles(right, batch * n * m))
    for k in range(batch):
        x = out + 8 * k * n * m
        divided(work, t + 8 * k * n * n, x, n, m, 1 - lower, adjoint, unit, 0)
        if not is_finite(x, n * m):  # as in ``eliminated``
            copy(doubles(x, n * m), doubles(right + 8 * k * n * m, n * m))
            _rows(t + 8 * k * n * n, x, n, m, lower, adjoint, unit)
    return 0


@kernel
def _rows(t: int, x: int, n: int, m: int, lower: int, adjoint: int, unit: int) -> None:
    """The same row by row."""
    a, b = doubles(t, n * n), doubles(x, n * m)
    down = lower != adjoint
    for k in range(n):
        i = k if down else n - 1 - k
        first, last = 0 if down else i + 1, i if down else n
        for c in range(m):
            total = b[i * m + c]
            for j in range(first, last):
                total -= (a[j * n + i] if adjoint else a[i * n + j]) * b[j * m + c]
            b[i * m + c] = total if unit else total / a[i * n + i]


_SUBSTITUTED = compiled(_substituted, lambda attrs, t, right: 0)


def _substituted_jvp(
    b: Builder, tangents: Tangents, out: int, t: int, right: int, attrs: Attributes
) -> int | None:
    lower, adjoint, unit = attrs
    by_matrix, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_matrix is not None:
        change = triangle(Matrix(b, by_matrix), lower, unit)
        terms.append((-((change.T if adjoint else change) @ Matrix(b, out))).plain().re)
    total = add(b, terms)
    return None if total is None else b.call(t, total, attrs=(substituted.number, *attrs))


def _substituted_vjp(
    b: Builder, ct: int, out: int, t: int, right: int, attrs: Attributes
) -> tuple[int, int]:
    lower, adjoint, unit = attrs
    of_right = b.call(t, ct, attrs=(substituted.number, lower, 1 - adjoint, unit))
    x, y = Matrix(b, out), Matrix(b, of_right)
    return triangle(-(x @ y.T if adjoint else y @ x.T), lower, unit).plain().re, of_right


substituted = from_code(
    "substituted",
    _substituted_shape,
    _SUBSTITUTED,
    _substituted_jvp,
    _substituted_vjp,
    lambda attrs, t, x: 1.0 * x.size * x.shape[1],
)

# solved_by(A [b, n, n], LU [b, n, n], B [b, n, m]; adjoint) -> X with A X = B or A^T X = B. The
# body reads eliminated(A) alone, derivatives are those of the system, which does not ask how A is
# factored.


def _solved_by_shape(attrs: Attributes, a: Type, factors: Type, right: Type) -> Type:
    stacks("solved_by", attrs, 1, a, factors, right)
    square("solved_by", a)
    need(a == factors, f"solved_by of {a} and {factors}")
    matrices("solved_by", a, right)
    return solution("solved_by", a, right, a.shape[2])


def _solved_by(words: int, arrays: int, work: int) -> int:
    adjoint, batch, n, _, _, _, _, _, _, m = integers(words, 10)
    out, _a, factors, right = integers(arrays, 4)
    copy(doubles(out, batch * n * m), doubles(right, batch * n * m))
    for k in range(batch):
        lu, x = factors + 8 * k * n * n, out + 8 * k * n * m
        # what is lower is upper to BLAS, which sees transposes
        divided(work, lu, x, n, m, adjoint, adjoint, 1 - adjoint, 0)
        divided(work, lu, x, n, m, 1 - adjoint, adjoint, adjoint, 0)
        if not is_finite(x, n * m):
            copy(doubles(x, n * m), doubles(right + 8 * k * n * m, n * m))
            _rows(lu, x, n, m, 1 - adjoint, adjoint, 1 - adjoint)
            _rows(lu, x, n, m, adjoint, adjoint, adjoint)
    return 0


_SOLVED_BY = compiled(_solved_by, lambda attrs, a, factors, right: 0)


def _solved_by_jvp(
    b: Builder, tangents: Tangents, out: int, a: int, factors: int, right: int, attrs: Attributes
) -> int | None:
    by_matrix, _, by_right = tangents
    terms = [] if by_right is None else [by_right]
    if by_matrix is not None:
        change = Matrix(b, by_matrix)
        terms.append((-((change.T if attrs[0] else change) @ Matrix(b, out))).plain().re)
    total = add(b, terms)
    number = solved_by.number
    return None if total is None else b.call(a, factors, total, attrs=(number, *attrs))


def _solved_by_vjp(
    b: Builder, ct: int, out: int, a: int, factors: int, right: int, attrs: Attributes
) -> tuple[int, None, int]:
    of_right = b.call(a, factors, ct, attrs=(solved_by.number, 1 - attrs[0]))
    x, y = Matrix(b, out), Matrix(b, of_right)
    return (-(x @ y.T if attrs[0] else y @ x.T)).plain().re, None, of_right


solved_by = from_code(
    "solved_by",
    _solved_by_shape,
    _SOLVED_BY,
    _solved_by_jvp,
    _solved_by_vjp,
    lambda attrs, a, factors, x: 2.0 * x.size * x.shape[1],
)
