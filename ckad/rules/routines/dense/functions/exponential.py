"""The exponential of matrices, and its derivative by that of the approximant.

A. H. Al-Mohy and N. J. Higham, "Computing the Fréchet derivative of the matrix exponential, with an
application to condition number estimation", 2009.
"""

from __future__ import annotations

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.functions.pade import (
    A2,
    A4,
    A6,
    BLOCKS,
    DEGREES,
    LAST,
    SHAPES,
    TIMES,
    A,
    P,
    Q,
    R,
    W,
    approximate,
    combined,
    note_of,
    prepare,
    solve,
    square_once,
    times,
)
from ckad.rules.routines.dense.lapack import gathered, parted_to
from ckad.rules.routines.dense.matrices import (
    Matrix,
    flags,
    matrices,
    matrix,
    need,
    square_stack,
)
from ckad.rules.routines.dense.systems import of_factors, of_matrix
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    from_code,
    integers,
    short_integers,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes
from ckad.tape.types import Type

# expm_parts(A [b, n, n]; complex) -> [b, 8 n + 2, n]: what pade.py keeps of each matrix. To
# derivatives it is the matrix itself, in its first n rows (as the factors of systems.py).


def _parts_shape(attrs: Attributes, a: Type) -> Type:
    square_stack("expm_parts", attrs, 1, a)
    batch, n, _ = a.shape
    return a.with_shape((batch, BLOCKS * n + 2, n))


def _parts(words: int, arrays: int, work: int) -> int:
    is_complex, planes, n = integers(words, 3)
    out, a = integers(arrays, 2)
    batch, size = planes >> is_complex, n * n * (1 + is_complex)
    if n == 0:
        return 0
    prepare(work, n)
    for k in range(batch):
        at = out + 8 * k * (BLOCKS * n + 2) * n * (1 + is_complex)
        gathered(at + 8 * A * size, a, k, batch, n * n, is_complex)
        approximate(work, at, n, is_complex)
    return 0


_PARTS = compiled(_parts, lambda attrs, a: 8 * (a.shape[1] * (a.shape[1] * (1 + attrs[0]) + 3) + 2))


expm_parts = from_code(
    "expm_parts",
    _parts_shape,
    _PARTS,
    jvp=lambda b, tangents, out, a, attrs: of_factors(b, tangents[0], out),
    vjp=lambda b, ct, out, a, attrs: (of_matrix(b, ct),),
    flops=lambda attrs, a: 16.0 * (1 + attrs[0]) * a.size * a.shape[1],
)

# --- what is read of it ---------------------------------------------------------------------------

# expm(expm_parts(A); itself, complex) -> exp(A), or A itself


def _read_shape(attrs: Attributes, parts: Type) -> Type:
    flags("expm", attrs, 2)
    return _matrix_of("expm", parts)


def _matrix_of(name: str, parts: Type) -> Type:
    matrices(name, parts)
    batch, rows, n = parts.shape
    need(rows == BLOCKS * n + 2, f"{name} of {parts}, which are no parts of an exponential")
    return parts.with_shape((batch, n, n))


def _read(words: int, arrays: int, work: int) -> int:
    itself, is_complex, planes, _, n = integers(words, 5)
    out, parts = integers(arrays, 2)
    batch, size = planes >> is_complex, n * n * (1 + is_complex)
    for k in range(batch):
        at = parts + 8 * k * (BLOCKS * n + 2) * n * (1 + is_complex)
        if n == 0 or not itself:
            factor, x = 1.0, at
        else:
            factor, x = 2.0 ** (note_of(at, n, is_complex) // TIMES), at + 8 * size
        parted_to(out, x, k, batch, n * n, is_complex)
        for half in range(1 + is_complex):
            of = doubles(out + 8 * (half * batch + k) * n * n, n * n)
            for i in range(n * n):
                of[i] *= factor
    return 0


_READ = compiled(_read, lambda attrs, parts: 0, calls_blas=False)


def _read_jvp(b: Builder, tangents: Tangents, out: int, parts: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    itself, is_complex = attrs
    change = of_matrix(b, tangents[0])
    return change if itself else b.call(parts, change, attrs=(along.number, is_complex))


def _read_vjp(b: Builder, ct: int, out: int, parts: int, attrs: Attributes) -> tuple[int]:
    itself, is_complex = attrs
    change = ct if itself else _back(b, parts, matrix(b, ct, is_complex), is_complex)
    return (of_factors(b, change, parts),)


def _back(b: Builder, parts: int, z: Matrix, is_complex: int) -> int:
    """The adjoint of the derivative: that at A^H along Z, which is at A along Z^H, turned."""
    found = b.call(parts, z.H.stacked(is_complex), attrs=(along.number, is_complex))
    return matrix(b, found, is_complex).H.stacked(is_complex)


expm = from_code(
    "expm",
    _read_shape,
    _READ,
    _read_jvp,
    _read_vjp,
    lambda attrs, parts: float(parts.size / BLOCKS),
)

# expm_along(expm_parts(A), E [b, n, n]; complex) -> the derivative of exp at A along E

_E, _M2, _M4, _M6, _MW, _T, _L, _POWER = range(8)  # E, changes of A^2, A^4, A^6, W; the result: L


def _along_shape(attrs: Attributes, parts: Type, direction: Type) -> Type:
    flags("expm_along", attrs, 1)
    need(_matrix_of("expm_along", parts) == direction, f"expm_along of {parts} and {direction}")
    return direction


def _along(words: int, arrays: int, work: int) -> int:
    is_complex, planes, _, n = integers(words, 4)
    out, parts, direction = integers(arrays, 3)
    batch, size = planes >> is_complex, n * n * (1 + is_complex)
    if n == 0:
        return 0
    prepare(work, n)
    space = work + HEAD + 8 * n
    for k in range(batch):
        at = parts + 8 * k * (BLOCKS * n + 2) * n * (1 + is_complex)
        gathered(space, direction, k, batch, n * n, is_complex)
        _along_one(work, at, space, n, is_complex)
        parted_to(out, space + 8 * _L * size, k, batch, n * n, is_complex)
    return 0


@kernel
def _along_one(work: int, at: int, space: int, n: int, is_complex: int) -> None:
    size = n * n * (1 + is_complex)
    block, note = 8 * size, note_of(at, n, is_complex)
    squared, triangle, degree = note // TIMES, note // len(DEGREES) % SHAPES, note % len(DEGREES)
    e, scale = doubles(space, size), 2.0**-squared
    for i in range(size):
        e[i] *= scale
    _change_powers(work, at, space, n, degree, is_complex)
    m2, mw, t, found = space + block, space + _MW * block, space + _T * block, space + _L * block
    _change_polynomial(work, at, m2, mw, t, n, degree, 1, is_complex)
    _change_polynomial(work, at, m2, found, t, n, degree, 0, is_complex)
    # with U = A W: Q L = dU + dV + (dU - dV) R
    times(work, t, at + block, mw, n, 0.0, is_complex)
    times(work, t, space, at + W * block, n, 1.0, is_complex)
    u, v = doubles(t, size), doubles(found, size)
    for i in range(size):
        v[i], u[i] = u[i] + v[i], u[i] - v[i]
    times(work, found, t, at + R * block, n, 1.0, is_complex)
    exchanges = short_integers(work + HEAD, n)
    kept = doubles(at + BLOCKS * block, n * (1 + is_complex))
    for i in range(n):
        exchanges[i] = int(kept[(1 + is_complex) * i])
    solve(work, at + Q * block, work + HEAD, found, is_complex)
    power = space + _POWER * block
    copy(doubles(power, size), doubles(at + R * block, size))
    for k in range(squared):
        times(work, t, power, found, n, 0.0, is_complex)
        times(work, t, found, power, n, 1.0, is_complex)
        copy(v, u)
        if k + 1 < squared:
            square_once(work, power, t, at + block, n, is_complex, triangle, k)


@kernel
def _change_powers(work: int, at: int, space: int, n: int, degree: int, is_complex: int) -> None:
    block = 8 * n * n * (1 + is_complex)
    a, a2, a4 = at + block, at + A2 * block, at + A4 * block
    m2, m4, m6 = space + block, space + _M4 * block, space + _M6 * block
    times(work, m2, a, space, n, 0.0, is_complex)
    times(work, m2, space, a, n, 1.0, is_complex)
    doubles(m4, 2 * n * n * (1 + is_complex))[:] = 0.0
    if degree > 0:
        times(work, m4, a2, m2, n, 0.0, is_complex)
        times(work, m4, m2, a2, n, 1.0, is_complex)
    if degree > 1:
        times(work, m6, a4, m2, n, 0.0, is_complex)
        times(work, m6, m4, a2, n, 1.0, is_complex)


@kernel
def _change_polynomial(
    work: int, at: int, changes: int, to: int, space: int, n: int, degree: int, odd: int,
    is_complex: int,
) -> None:  # fmt: skip
    """That of ``_polynomial``."""
    block, p = 8 * n * n * (1 + is_complex), P[degree]
    combined(to, changes, n, is_complex, 0.0, p[2 + odd], p[4 + odd], p[6 + odd])
    if degree == LAST:
        powers, last = at + A2 * block, p[12 + odd]
        combined(space, powers, n, is_complex, 0.0, p[8 + odd], p[10 + odd], last)
        times(work, to, changes + 2 * block, space, n, 1.0, is_complex)
        combined(space, changes, n, is_complex, 0.0, p[8 + odd], p[10 + odd], last)
        times(work, to, at + A6 * block, space, n, 1.0, is_complex)


_ALONG = compiled(
    _along, lambda attrs, parts, e: 8 * e.shape[1] * (8 * e.shape[1] * (1 + attrs[0]) + 1)
)

# The derivative at A along E is the upper right corner of exp([[A, E], [0, A]]): N. J. Higham,
# "Functions of Matrices", 2008, section 3.2. Its own derivatives are those of the corner.


def _doubled(b: Builder, parts: int, direction: int, is_complex: int) -> int:
    """The parts of [[A, E], [0, A]]."""
    a = matrix(b, b.call(parts, attrs=(expm.number, 1, is_complex)), is_complex)
    whole = corners(a, matrix(b, direction, is_complex)).stacked(is_complex)
    return b.call(whole, attrs=(expm_parts.number, is_complex))


def corners(a: Matrix, e: Matrix) -> Matrix:
    """[[A, E], [0, A]]"""
    n = a.shape[1]
    whole = (2 * n, 2 * n)
    return a.within((0, 0), whole) + a.within((n, n), whole) + e.within((0, n), whole)


def _along_jvp(
    b: Builder, tangents: Tangents, out: int, parts: int, direction: int, attrs: Attributes
) -> int | None:
    by_parts, by_direction = tangents
    (is_complex,) = attrs
    if by_parts is None:
        return None if by_direction is None else b.call(parts, by_direction, attrs=_number(attrs))
    by_matrix = of_matrix(b, by_parts)
    if by_direction is None:
        by_direction = b.full_like(by_matrix, 0.0)
    change = corners(matrix(b, by_matrix, is_complex), matrix(b, by_direction, is_complex))
    doubled = _doubled(b, parts, direction, is_complex)
    found = matrix(b, b.call(doubled, change.stacked(is_complex), attrs=_number(attrs)), is_complex)
    n = b.type(direction).shape[1]
    return found.block((0, n), (n, n)).stacked(is_complex)


def _along_vjp(
    b: Builder, ct: int, out: int, parts: int, direction: int, attrs: Attributes
) -> tuple[int, int]:
    (is_complex,) = attrs
    z, n = matrix(b, ct, is_complex), b.type(direction).shape[1]
    corner = z.within((0, n), (2 * n, 2 * n))
    found = matrix(
        b, _back(b, _doubled(b, parts, direction, is_complex), corner, is_complex), is_complex
    )
    by_matrix = found.block((0, 0), (n, n)) + found.block((n, n), (n, n))
    return of_factors(b, by_matrix.stacked(is_complex), parts), _back(b, parts, z, is_complex)


def _number(attrs: Attributes) -> tuple[int, ...]:
    return (along.number, *attrs)


along = from_code(
    "expm_along",
    _along_shape,
    _ALONG,
    _along_jvp,
    _along_vjp,
    lambda attrs, parts, e: 40.0 * (1 + attrs[0]) * e.size * e.shape[1],
)
