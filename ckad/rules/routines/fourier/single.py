"""Transforms of a single line: of eight, of every eighth number, which are joined.

Lane k of a vector has the numbers from number k on (D. H. Bailey, "FFTs in external or hierarchical
memory", 1990). 2 m real numbers are m complex ones, as in ``lanes``.
"""

from __future__ import annotations

from ckad.kernel import kernel
from ckad.rules.routines.fourier.lanes import (
    BACKWARD,
    FROM_REALS,
    PAIRS,
    REALS,
    TO_REALS,
    Lines,
    Planes,
    pairs_of,
    swapped,
    transform_lanes,
    where_tables,
)
from ckad.rules.routines.fourier.vectors import LANES, across
from ckad.rules.routines.memory import doubles, integers


@kernel
def one_line(
    what: int, n: int, given: Lines, found: Lines, a: int, b: int, factor: float, sign: float,
    sign_found: float, weighted: int,
) -> None:  # fmt: skip
    """Transform a line of numbers one behind the other, as ``eight_lines`` does.

    ``a`` and ``b`` are buffers of ``n`` complex numbers.
    """
    m = pairs_of(what, n)
    pairs = a + 16 * m  # behind what the vectors of a buffer take, if the numbers are real
    if what == FROM_REALS:
        _pair(given.at, pairs, m)
        _join(m, pairs, pairs + 8 * m, pairs, pairs + 8 * m, a, b, 1.0, 1.0, False)
        _take_apart(m, pairs, found.at, found.imag, factor, sign_found, weighted)
    elif what == TO_REALS:
        _put_together(m, given.at, given.imag, pairs, sign, weighted)
        _join(m, pairs, pairs + 8 * m, pairs, pairs + 8 * m, a, b, factor, factor, True)
        _unpair(pairs, found.at, m)
    else:
        by_imag = factor if (sign < 0) == (sign_found < 0) else -factor
        back = (what == BACKWARD) != (sign_found < 0)
        _join(m, given.at, given.imag, found.at, found.imag, a, b, factor, by_imag, back)


@kernel
def _join(
    m: int, re: int, im: int, to_re: int, to_im: int, a: int, b: int, by: float, by_imag: float,
    back: bool,
) -> None:  # fmt: skip
    """The transform of ``m`` complex numbers; all of them are read before one is written."""
    eighth = m // LANES
    table = integers(where_tables(), eighth + 1)[eighth]
    x, to = Planes(re, im, REALS), Planes(to_re, to_im, 8 * eighth)
    in_a, in_b = Planes(a, a + REALS, PAIRS), Planes(b, b + REALS, PAIRS)
    if back:  # real and imaginary parts change places
        x, to, in_a, in_b = swapped(x), swapped(to), swapped(in_a), swapped(in_b)
        by, by_imag = by_imag, by
    transform_lanes(table, eighth, x, in_b, in_a, by, by_imag)
    joins = table + integers(table, 16)[13]
    for k in range(0, eighth, LANES):
        i, j = k * PAIRS, 8 * k
        across(in_a.re + i, in_a.im + i, PAIRS, joins + i, to.re + j, to.im + j, to.step)


# --- real numbers --------------------------------------------------------------------------------


@kernel
def _pair(at: int, to: int, m: int) -> None:
    """Numbers with even and with odd places."""
    x, even, odd = doubles(at, 2 * m), doubles(to, m), doubles(to + 8 * m, m)
    for k in range(m):
        even[k], odd[k] = x[2 * k], x[2 * k + 1]


@kernel
def _unpair(at: int, to: int, m: int) -> None:
    """The way back."""
    x, even, odd = doubles(to, 2 * m), doubles(at, m), doubles(at + 8 * m, m)
    for k in range(m):
        x[2 * k], x[2 * k + 1] = even[k], odd[k]


@kernel
def _take_apart(
    m: int, pairs: int, to_re: int, to_im: int, factor: float, sign: float, weighted: int
) -> None:
    """Half of a spectrum of 2 m real numbers, of that of the pairs."""
    table, by = integers(where_tables(), m + 1)[m], 0.5 * factor
    roots = doubles(table + integers(table, 16)[15], m + 2)
    re, im = doubles(pairs, m), doubles(pairs + 8 * m, m)
    found, found_im = doubles(to_re, m + 1), doubles(to_im, m + 1)
    ends = by if weighted else factor
    found[0], found[m] = ends * (re[0] + im[0]), ends * (re[0] - im[0])
    found_im[0] = found_im[m] = 0.0
    for k in range(1, m // 2 + 1):
        even, even_im = re[k] + re[m - k], im[k] - im[m - k]
        x, y, w, v = re[k] - re[m - k], im[k] + im[m - k], roots[2 * k], roots[2 * k + 1]
        odd, odd_im = x * w - y * v, x * v + y * w
        found[k], found_im[k] = by * (even + odd_im), by * sign * (even_im - odd)
        found[m - k], found_im[m - k] = by * (even - odd_im), -by * sign * (even_im + odd)


@kernel
def _put_together(m: int, re: int, im: int, to: int, sign: float, weighted: int) -> None:
    """The spectrum of the pairs of 2 m real numbers, of half of theirs."""
    table, by = integers(where_tables(), m + 1)[m], 2.0 if weighted else 1.0
    roots = doubles(table + integers(table, 16)[15], m + 2)
    x, y, found, found_im = (
        doubles(re, m + 1),
        doubles(im, m + 1),
        doubles(to, m),
        doubles(to + 8 * m, m),
    )
    found[0], found_im[0] = by * (x[0] + x[m]), by * (x[0] - x[m])
    for k in range(1, m // 2 + 1):
        even, even_im = x[k] + x[m - k], sign * (y[k] - y[m - k])
        u, t, w, v = x[k] - x[m - k], sign * (y[k] + y[m - k]), roots[2 * k], -roots[2 * k + 1]
        odd, odd_im = u * w - t * v, u * v + t * w
        found[k], found_im[k] = even - odd_im, even_im + odd
        found[m - k], found_im[m - k] = even + odd_im, odd - even_im
