"""A matrix's exponential by a Padé approximant, scaled and squared, and what it is made of.

A. H. Al-Mohy and N. J. Higham, "A new scaling and squaring algorithm for the matrix exponential",
2009. LAPACK counts by columns and so sees transposes, whose exponential is the transpose.
"""

from __future__ import annotations

import cmath
from math import factorial

import numpy as np

from ckad.kernel import kernel
from ckad.rules.routines.dense.lapack import (
    N,
    dgemm,
    dgetrf,
    zgemm,
    zgetrf,
)
from ckad.rules.routines.memory import HEAD, copy, doubles, external, letters, short_integers

_dgetrs = external("dgetrs", 9)
_zgetrs = external("zgetrs", 9)

#: Degrees of the approximants p(A) / p(-A), and how large ||A^k||^(1/k) may be for each: where the
#: derivative is as accurate as the exponential, too.
DEGREES = (3, 5, 7, 13)
REACH = (1.08e-2, 2.00e-1, 7.83e-1, 4.25)
LAST = len(DEGREES) - 1
_ROUNDING = 2.0**-53
#: Where ||A^6||^(1/6) is so much less than ||A^4||^(1/4), higher powers may save a squaring.
STEEP = 0.63


def _coefficients(degree: int) -> list[float]:
    """Those of p, filled up by zeros."""
    of = [
        factorial(2 * degree - j) / (factorial(degree - j) * factorial(j))
        for j in range(degree + 1)
    ]
    return of + [0.0] * (DEGREES[-1] - degree)


P = np.array([_coefficients(m) for m in DEGREES])
#: The first coefficient that the approximant has wrong, relative to that of the exponential.
_ERROR = np.array([factorial(m) ** 2 / factorial(2 * m) / factorial(2 * m + 1) for m in DEGREES])
_TERMS = np.array([2 * m + 1 for m in DEGREES])

#: The matrices that are kept, one below the other: X = exp(A), where Q R = P, P = V + U, Q = V - U,
#: U = A W. Then the row exchanges of Q, and one number of three: how often was squared, which
#: triangle, which degree.
X, A, A2, A4, A6, W, Q, R = range(8)
BLOCKS = 8
SHAPES, _UPPER, _LOWER = 4, 1, 2
TIMES = SHAPES * len(DEGREES)


@kernel
def prepare(work: int, n: int) -> None:
    text, sizes, numbers = letters(work, 1), short_integers(work + 8, 2), doubles(work + 16, 4)
    text[0], sizes[0] = N, n
    numbers[:] = 0.0
    numbers[0] = 1.0


@kernel
def times(work: int, to: int, x: int, y: int, n: int, beta: float, is_complex: int) -> None:
    """to <- x y + beta to"""
    size, one = work + 8, work + 16
    doubles(work + 32, 1)[0] = beta
    if is_complex:
        zgemm(work, work, size, size, size, one, x, size, y, size, work + 32, to, size)
    else:
        dgemm(work, work, size, size, size, one, x, size, y, size, work + 32, to, size)


@kernel
def solve(work: int, q: int, exchanges: int, x: int, is_complex: int) -> None:
    size, status = work + 8, work + 12
    if is_complex:
        _zgetrs(work, size, size, q, size, exchanges, x, size, status)
    else:
        _dgetrs(work, size, size, q, size, exchanges, x, size, status)


@kernel
def approximate(work: int, at: int, n: int, is_complex: int) -> None:
    width = 1 + is_complex
    size = n * n * width
    block, exchanges = 8 * size, short_integers(work + HEAD, n)
    space = work + HEAD + 8 * n
    rest, notes = doubles(at + 2 * block, 6 * size), doubles(at + 8 * block, 2 * n * width)
    rest[:] = 0.0
    notes[:] = 0.0
    triangle = _triangle(doubles(at + block, size), n, width)
    degree, squared = _scaled(work, at, space, n, is_complex)
    x, w, q, r = at, at + W * block, at + Q * block, at + R * block
    _polynomial(work, at, at + A2 * block, w, x, n, degree, 1, is_complex)
    times(work, x, at + block, w, n, 0.0, is_complex)
    _polynomial(work, at, at + A2 * block, q, r, n, degree, 0, is_complex)
    u, v, total = doubles(x, size), doubles(q, size), doubles(r, size)
    for i in range(size):
        total[i], v[i] = v[i] + u[i], v[i] - u[i]
    if is_complex:
        zgetrf(work + 8, work + 8, q, work + 8, work + HEAD, work + 12)
    else:
        dgetrf(work + 8, work + 8, q, work + 8, work + HEAD, work + 12)
    solve(work, q, work + HEAD, r, is_complex)
    _exact(r, at + block, n, width, triangle, 1.0)
    copy(u, total)
    for k in range(squared):
        square_once(work, x, space, at + block, n, is_complex, triangle, k)
    for i in range(n):
        notes[width * i] = exchanges[i]
    notes[width * n] = TIMES * squared + len(DEGREES) * triangle + degree


@kernel
def square_once(
    work: int, x: int, space: int, a: int, n: int, is_complex: int, triangle: int, k: int
) -> None:
    """x <- x x, for the k-th time."""
    size = n * n * (1 + is_complex)
    times(work, space, x, x, n, 0.0, is_complex)
    copy(doubles(x, size), doubles(space, size))
    _exact(x, a, n, 1 + is_complex, triangle, 2.0 ** (k + 1))


@kernel
def _polynomial(
    work: int, at: int, powers: int, to: int, space: int, n: int, degree: int, odd: int,
    is_complex: int,
) -> None:  # fmt: skip
    """The odd terms of p without their factor A, or the even ones; A^2, A^4, A^6 at ``powers``."""
    block, p = 8 * n * n * (1 + is_complex), P[degree]
    combined(to, powers, n, is_complex, p[odd], p[2 + odd], p[4 + odd], p[6 + odd])
    if degree == LAST:
        last = p[12 + odd]
        combined(space, powers, n, is_complex, 0.0, p[8 + odd], p[10 + odd], last)
        times(work, to, at + A6 * block, space, n, 1.0, is_complex)


@kernel
def combined(
    to: int, powers: int, n: int, is_complex: int, one: float, c2: float, c4: float, c6: float
) -> None:
    """one I + c2 A^2 + c4 A^4 + c6 A^6"""
    width = 1 + is_complex
    size = n * n * width
    found, a2 = doubles(to, size), doubles(powers, size)
    a4, a6 = doubles(powers + 8 * size, size), doubles(powers + 16 * size, size)
    for i in range(size):
        found[i] = c2 * a2[i] + c4 * a4[i] + c6 * a6[i]
    for i in range(n):
        found[width * i * (n + 1)] += one


# --- degree and scale -----------------------------------------------------------------------------


@kernel
def _scaled(work: int, at: int, space: int, n: int, is_complex: int) -> tuple[int, int]:
    """The powers of A, scaled; the degree, and how often its result has to be squared."""
    block = 8 * n * n * (1 + is_complex)
    a, a2, a4, a6 = at + block, at + A2 * block, at + A4 * block, at + A6 * block
    n1 = _norm(a, space, n, is_complex)
    times(work, a2, a, a, n, 0.0, is_complex)
    n2 = _norm(a2, space, n, is_complex)
    if n2**0.5 <= REACH[0] and _more(a, n1, 0, space, n, is_complex) == 0:
        return 0, 0
    times(work, a4, a2, a2, n, 0.0, is_complex)
    n4 = _norm(a4, space, n, is_complex)
    d4 = n4**0.25
    d6 = (n4 * n2) ** (1 / 6)
    if max(d4, d6) <= REACH[1] and _more(a, n1, 1, space, n, is_complex) == 0:
        return 1, 0
    times(work, a6, a4, a2, n, 0.0, is_complex)
    n6 = _norm(a6, space, n, is_complex)
    d6 = n6 ** (1 / 6)
    reach = max(d4, d6)
    if reach <= REACH[2] and _more(a, n1, 2, space, n, is_complex) == 0:
        return 2, 0
    if d6 < STEEP * d4:
        reach = min(reach, _by_higher_powers(work, at, space, n, is_complex))
    if not reach < np.inf:  # of numbers that are not finite, or so large
        return LAST, 0
    halved = 0 if reach <= REACH[3] else int(np.ceil(np.log2(reach / REACH[3])))
    _scale(at, n, is_complex, halved)
    more = _more(a, n1 * 2.0**-halved, LAST, space, n, is_complex)
    _scale(at, n, is_complex, more)
    return LAST, halved + more


@kernel
def _by_higher_powers(work: int, at: int, space: int, n: int, is_complex: int) -> float:
    """The same bound from ||A^8|| and ||A^10||, which the norms known so far bound by ||A^4||."""
    block = 8 * n * n * (1 + is_complex)
    a4, a6 = at + A4 * block, at + A6 * block
    times(work, at, a4, a4, n, 0.0, is_complex)
    d8: float = _norm(at, space, n, is_complex) ** 0.125
    times(work, at, a4, a6, n, 0.0, is_complex)
    d10: float = _norm(at, space, n, is_complex) ** 0.1
    return max(d8, d10)


@kernel
def _scale(at: int, n: int, is_complex: int, halved: int) -> None:
    """A and its powers as those of 2^-halved A."""
    size = n * n * (1 + is_complex)
    for block, power in ((A, 1), (A2, 2), (A4, 4), (A6, 6)):
        x = doubles(at + 8 * block * size, size)
        for i in range(size):
            x[i] *= 2.0 ** (-power * halved)


@kernel
def _norm(x: int, space: int, n: int, is_complex: int) -> float:
    """The largest sum of absolute values."""
    sums, ones = doubles(space, n), doubles(space + 8 * n, n)
    ones[:] = 1.0
    _absolute(sums, x, ones, n, is_complex)
    return _largest(sums)


@kernel
def _absolute(to: np.ndarray, x: int, v: np.ndarray, n: int, is_complex: int) -> None:
    """to = |x| v"""
    to[:] = 0.0
    if is_complex:
        z = doubles(x, 2 * n * n)
        for j in range(n):
            for i in range(n):
                at = 2 * (j * n + i)
                to[i] += np.sqrt(z[at] * z[at] + z[at + 1] * z[at + 1]) * v[j]
    else:
        y = doubles(x, n * n)
        for j in range(n):
            for i in range(n):
                to[i] += abs(y[j * n + i]) * v[j]


@kernel
def _largest(v: np.ndarray) -> float:
    """NaN if one of them is."""
    found = 0.0
    for x in v:
        if not x <= found:
            found = x
    return found


@kernel
def _more(a: int, norm: float, degree: int, space: int, n: int, is_complex: int) -> int:
    """How often to halve A further so that rounding does not show in its highest powers."""
    terms = _TERMS[degree]
    if _ERROR[degree] * norm ** (terms - 1) <= _ROUNDING:
        return 0
    v, other = doubles(space, n), doubles(space + 8 * n, n)
    v[:] = 1.0
    for _ in range(terms):
        _absolute(other, a, v, n, is_complex)
        copy(v, other)
    excess = _ERROR[degree] * _largest(v) / norm / _ROUNDING
    if not 1.0 < excess < np.inf:
        return 0
    return int(np.ceil(np.log2(excess) / (terms - 1)))


# --- triangles ------------------------------------------------------------------------------------


@kernel
def _triangle(a: np.ndarray, n: int, width: int) -> int:
    """Where a matrix is zero but for its triangle; both of a diagonal one."""
    found = _UPPER | _LOWER
    for i in range(n):
        for j in range(n):
            at = width * (i * n + j)
            if i != j and (a[at] != 0.0 or a[at + width - 1] != 0.0):
                found &= _UPPER if j > i else _LOWER
    return found


@kernel
def _exact(x: int, a: int, n: int, width: int, triangle: int, factor: float) -> None:
    """Of a triangular matrix, exp(factor A) on the diagonal and beside it by their formulas."""
    if triangle == 0:
        return
    to, given = doubles(x, n * n * width), doubles(a, n * n * width)
    beside = 1 if triangle & _UPPER else -1
    for i in range(n):
        for j in range(n):
            at = width * (i * n + j)
            if i == j:
                _set(to, at, width, np.exp(factor * _get(given, at, width)))
            elif (j - i) * beside < 0 or triangle == _UPPER | _LOWER:
                _set(to, at, width, 0j)
            elif j - i == beside:
                p = factor * _get(given, width * i * (n + 1), width)
                q = factor * _get(given, width * j * (n + 1), width)
                _set(to, at, width, factor * _get(given, at, width) * _divided(p, q))


@kernel
def _get(x: np.ndarray, at: int, width: int) -> complex:
    return complex(x[at], x[at + 1] if width == 2 else 0.0)


@kernel
def _set(x: np.ndarray, at: int, width: int, z: complex) -> None:
    x[at] = z.real
    if width == 2:
        x[at + 1] = z.imag


@kernel
def _divided(p: complex, q: complex) -> complex:
    """(e^p - e^q) / (p - q)"""
    half = (p - q) / 2
    found: complex = np.exp(p)
    if abs(half) > 1:
        found = (found - np.exp(q)) / (p - q)
    elif half != 0:
        found = np.exp((p + q) / 2) * cmath.sinh(half) / half
    return found


@kernel
def note_of(at: int, n: int, is_complex: int) -> int:
    return int(doubles(at + 8 * (BLOCKS * n + 1) * n * (1 + is_complex), 1)[0])
