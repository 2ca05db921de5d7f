"""Transforms of eight lines at a time, lane k of a vector for line k, so that none is shuffled.

Every part of a line is transformed in whole before the next, while it is in the first cache (M.
Frigo & S. G. Johnson, "The design and implementation of FFTW3", 2005). Lines along the first axis
of a matrix are read and written where they are; others are turned in blocks. 2 m real numbers are
m complex ones, with a last pass that takes the spectra of the even and the odd ones apart.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from ckad.kernel import interpreted, kernel
from ckad.rules.routines.fourier import pocketfft
from ckad.rules.routines.fourier.vectors import (
    LANES,
    apart,
    butterfly,
    together,
    transposed,
)
from ckad.rules.routines.memory import doubles, integers

FORWARD, BACKWARD, FROM_REALS, TO_REALS = range(4)
#: Fewer lines are better transformed one by one.
LEAST_LINES = 3
#: Lengths up to here are taken if they are products of 2, 3 and 5, and this power of two.
_SMOOTH, _LONGEST = 1024, 2048
#: Bytes of a number in eight lanes, and of a complex one.
REALS, PAIRS = 8 * LANES, 16 * LANES


class Lines(NamedTuple):
    """Lines in memory: bytes from one to the next, between the numbers of one, and from eight of
    them to the next eight."""

    at: int
    imag: int
    line: int
    step: int
    eight: int


class Planes(NamedTuple):
    """Vectors of real and of imaginary parts, ``step`` bytes apart."""

    re: int
    im: int
    step: int


# --- lengths and roots of one --------------------------------------------------------------------


@kernel
def pairs_of(what: int, n: int) -> int:
    """How many complex numbers a line of ``n`` is; none if there is no half."""
    if what in (FORWARD, BACKWARD):
        return n
    return n // 2 if n % 2 == 0 else 0


@kernel
def in_lanes(what: int, n: int, there: int) -> bool:
    """Whether lines of ``n`` numbers are transformed in lanes, where so many are side by side."""
    m = pairs_of(what, n)
    if there < LEAST_LINES or m < 2 or m > _SMOOTH:
        return there >= LEAST_LINES and m == _LONGEST
    for p in (2, 3, 5):
        while m % p == 0:
            m //= p
    return m == 1


@kernel
def in_parts(what: int, n: int) -> bool:
    """Whether a single line is transformed as eight, of every eighth number."""
    m = pairs_of(what, n)
    if m % LANES**2 or m > LANES * _SMOOTH or not in_lanes(FORWARD, m // LANES, LANES):
        return False
    return n == m or in_lanes(FORWARD, m, LANES)


def _radices(n: int) -> list[int]:
    """Factors of ``n``, of which the powers of two come last."""
    found = []
    for p in (5, 3):
        while n % p == 0:
            found.append(p)
            n //= p
    twos = n.bit_length() - 1
    few = {0: [], 1: [4, 4] if twos > 1 else [2], 2: [4]}[twos % 3]
    while prod(few) < n:
        few.append(8)
    return [*found, *few]


def _roots(n: int, powers: np.ndarray) -> np.ndarray:
    angles = -2 * np.pi * (powers % n) / n
    return np.column_stack([np.cos(angles), np.sin(angles)]).ravel()


def _table(n: int) -> np.ndarray:
    """What a transform of ``n`` numbers needs: how many radices there are, the radices; roots that
    each pass multiplies by; where in a line the first butterflies begin; roots of the order 2 n,
    and of the order 8 n as ``across`` takes them. Words 14, 15 and 13 say where the last three lie,
    in bytes."""
    radices, left, passes = _radices(n), n, [np.empty(0)]
    begins = np.zeros(1, np.int64)
    for radix in radices[:-1]:
        begins = np.add.outer(begins, n // left * np.arange(radix)).ravel()
        left //= radix
        passes.append(_roots(left * radix, np.outer(np.arange(left), np.arange(1, radix)).ravel()))
    head = np.zeros(16, np.int64)
    head[: len(radices) + 1] = len(radices), *radices
    head[14] = 8 * (16 + sum(map(len, passes)))
    head[15] = head[14] + 8 * len(begins)
    last = _roots(2 * n, np.arange(n // 2 + 1))
    head[13] = head[15] + 8 * len(last)
    joins = np.empty(0)
    if interpreted(in_parts)(FORWARD, LANES * n):
        pairs = _roots(LANES * n, np.outer(np.arange(n), np.arange(LANES)).ravel())
        joins = pairs.reshape(n, LANES, 2).swapaxes(1, 2).ravel()
    return np.concatenate([head.view(float), *passes, begins.view(float), last, joins])


where_tables = pocketfft.data("roots")


@functools.cache
def _tables() -> tuple[np.ndarray, list[np.ndarray]]:
    """The addresses of tables by length, and the tables."""
    are_taken = interpreted(in_lanes)
    lengths = [n for n in range(2, _LONGEST + 1) if are_taken(FORWARD, n, LEAST_LINES)]
    addresses, tables = np.zeros(_LONGEST + 1, np.int64), [_table(n) for n in lengths]
    addresses[lengths] = [table.ctypes.data for table in tables]
    return addresses, tables


def register() -> None:
    """Tell the linker where the tables are."""
    llvm.add_symbol("ckad_roots_data", _tables()[0].ctypes.data)


# --- passes --------------------------------------------------------------------------------------


def _first(radix: int) -> Any:
    step = butterfly(radix, True)

    @kernel
    def run(
        x: Planes, begins: np.ndarray, far: int, to: Planes, by_re: float, by_im: float
    ) -> None:
        """Butterflies of numbers ``far`` apart, one behind the other."""
        for k in range(len(begins)):
            i, j = x.step * begins[k], to.step * radix * k
            step(x.re + i, x.im + i, x.step * far, to.re + j, to.im + j, to.step, 0, by_re, by_im)

    return run


def _later(radix: int) -> Any:
    step = butterfly(radix, False)

    @kernel
    def run(x: Planes, m: int, to: Planes, roots: int) -> None:
        """Out of transforms of ``m`` numbers one behind the other that of them all."""
        for k in range(m):
            i, j, w = k * x.step, k * to.step, roots + 16 * (radix - 1) * k
            step(x.re + i, x.im + i, m * x.step, to.re + j, to.im + j, m * to.step, w, 1.0, 1.0)

    return run


_first_two, _first_three, _first_four, _first_five, _first_eight = map(_first, (2, 3, 4, 5, 8))
_two, _three, _four, _five, _eight = map(_later, (2, 3, 4, 5, 8))


@kernel
def _begin(
    radix: int, x: Planes, begins: np.ndarray, far: int, to: Planes, by_re: float, by_im: float
) -> None:
    if radix == 8:
        _first_eight(x, begins, far, to, by_re, by_im)
    elif radix == 4:
        _first_four(x, begins, far, to, by_re, by_im)
    elif radix == 2:
        _first_two(x, begins, far, to, by_re, by_im)
    elif radix == 3:
        _first_three(x, begins, far, to, by_re, by_im)
    else:
        _first_five(x, begins, far, to, by_re, by_im)


@kernel
def _continue(radix: int, x: Planes, m: int, to: Planes, roots: int) -> None:
    if radix == 8:
        _eight(x, m, to, roots)
    elif radix == 4:
        _four(x, m, to, roots)
    elif radix == 2:
        _two(x, m, to, roots)
    elif radix == 3:
        _three(x, m, to, roots)
    else:
        _five(x, m, to, roots)


@kernel
def _moved(x: Planes, k: int) -> Planes:
    return Planes(x.re + k * x.step, x.im + k * x.step, x.step)


@kernel
def transform_lanes(
    table: int, n: int, x: Planes, buffer: Planes, to: Planes, by_re: float, by_im: float
) -> None:
    """By way of a buffer, from the smallest parts on."""
    head = integers(table, 16)
    last = head[0]
    radix = head[last]
    begins = integers(table + head[14], n // radix)
    if last == 1:
        _begin(radix, x, begins, 1, to, by_re, by_im)
        return
    together = head[last - 1]
    for k in range(0, n // radix, together):
        part = begins[k : k + together]
        _begin(radix, x, part, n // radix, _moved(buffer, k * radix), by_re, by_im)
        # then whatever is complete
        m, end, level = radix, (k + together) * radix, last - 1
        roots = table + head[14]
        while level > 0 and end % (m * head[level]) == 0:
            roots -= 16 * (head[level] - 1) * m
            at = _moved(buffer, end - m * head[level])
            _continue(head[level], at, m, to if level == 1 else at, roots)
            m *= head[level]
            level -= 1


# --- real numbers --------------------------------------------------------------------------------


@kernel
def _take_apart(
    table: int, m: int, x: int, to: Planes, by: float, sign: float, weighted: int
) -> None:
    """Half of a spectrum of 2 m real numbers, ``m + 1`` vectors, of that of the pairs."""
    roots, by = table + integers(table, 16)[15], 0.5 * by
    ends = by if weighted else 2 * by
    re, im = doubles(x, LANES), doubles(x + REALS, LANES)
    first, first_im = doubles(to.re, LANES), doubles(to.im, LANES)
    last, last_im = doubles(to.re + m * to.step, LANES), doubles(to.im + m * to.step, LANES)
    for k in range(LANES):
        first[k], last[k] = ends * (re[k] + im[k]), ends * (re[k] - im[k])
        first_im[k], last_im[k] = 0.0, 0.0
    for k in range(1, m // 2 + 1):
        i, j = k * PAIRS, k * to.step
        apart(x + i, x + i + REALS, (m - 2 * k) * PAIRS, to.re + j, to.im + j,
              (m - 2 * k) * to.step, roots + 16 * k, by, sign * by)  # fmt: skip


@kernel
def _put_together(table: int, m: int, x: Planes, to: int, sign: float, weighted: int) -> None:
    """The spectrum of the pairs of 2 m real numbers, of half of theirs."""
    roots, by = table + integers(table, 16)[15], 2.0 if weighted else 1.0
    first, last = doubles(x.re, LANES), doubles(x.re + m * x.step, LANES)
    re, im = doubles(to, LANES), doubles(to + REALS, LANES)
    for k in range(LANES):
        re[k], im[k] = by * (first[k] + last[k]), by * (first[k] - last[k])
    for k in range(1, m // 2 + 1):
        i, j = k * x.step, k * PAIRS
        together(x.re + i, x.im + i, (m - 2 * k) * x.step, to + j, to + j + REALS,
                 (m - 2 * k) * PAIRS, roots + 16 * k, 1.0, sign)  # fmt: skip


# --- blocks --------------------------------------------------------------------------------------


@kernel
def _lines(at: int, imag: int, step: int) -> Lines:
    """Those that are in a buffer."""
    return Lines(at, imag, 8, step, LANES * step)


@kernel
def _turn(given: Lines, at: int, to: Lines, to_at: int, count: int, n: int) -> None:
    """Lines of ``n`` numbers as other lines; of one of the two, eight lie side by side."""
    done = 0
    if count == LANES and (given.step == 8 or to.step == 8):
        done = n // LANES * LANES
        wide = given.step if given.step > 8 else given.line
        to_wide = to.step if to.step > 8 else to.line
        for k in range(done // LANES):
            transposed(at + k * given.eight, wide, to_at + k * to.eight, to_wide)
    for k in range(done, n):
        place = at + k // LANES * given.eight + k % LANES * given.step
        to_place = to_at + k // LANES * to.eight + k % LANES * to.step
        for j in range(count):
            doubles(to_place + j * to.line, 1)[0] = doubles(place + j * given.line, 1)[0]


@kernel
def swapped(x: Planes) -> Planes:
    return Planes(x.im, x.re, x.step)


@kernel
def eight_lines(
    what: int, n: int, count: int, given: Lines, found: Lines, a: int, b: int, factor: float,
    sign: float, sign_found: float, weighted: int,
) -> None:  # fmt: skip
    """Transform up to eight lines; ``sign`` and ``sign_found`` are those of the imaginary parts.

    ``a`` and ``b`` are buffers of eight lines and eight numbers more.
    """
    m = pairs_of(what, n)
    table = integers(where_tables(), m + 1)[m]
    in_place, to_place = given.line == 8 and count == LANES, found.line == 8 and count == LANES
    in_a, in_b = Planes(a, a + REALS, PAIRS), Planes(b, b + REALS, PAIRS)
    x, to = Planes(given.at, given.imag, given.step), Planes(found.at, found.imag, found.step)
    if what == FROM_REALS:
        x = Planes(given.at, given.at + given.step, 2 * given.step)
        if not in_place:
            _turn(given, given.at, _lines(a, 0, REALS), a, count, n)
            x = in_a
    elif not in_place:
        half = m + 1 if what == TO_REALS else m
        x = in_b if what == TO_REALS else in_a
        _turn(given, given.at, _lines(x.re, x.im, PAIRS), x.re, count, half)
        _turn(given, given.imag, _lines(x.re, x.im, PAIRS), x.im, count, half)
    if what == TO_REALS:
        _put_together(table, m, x, a, sign, weighted)
        x, to = in_a, Planes(found.at, found.at + found.step, 2 * found.step)
    is_real = what in (FROM_REALS, TO_REALS)
    # of what is conjugate, and the conjugate of what is found, the transform of the other sign
    back = what == TO_REALS or ((what == BACKWARD) != (not is_real and sign_found < 0))
    by = 1.0 if what == FROM_REALS else factor
    by_imag = by if is_real or (sign < 0) == (sign_found < 0) else -by
    end = to if to_place and what != FROM_REALS else in_b
    if back:  # real and imaginary parts change places
        transform_lanes(table, m, swapped(x), swapped(in_b), swapped(end), by_imag, by)
    else:
        transform_lanes(table, m, x, in_b, end, by, by_imag)
    if what == FROM_REALS:
        end = to if to_place else in_a
        _take_apart(table, m, b, end, factor, sign_found, weighted)
    if not to_place and what == TO_REALS:
        _turn(_lines(b, 0, REALS), b, found, found.at, count, n)
    elif not to_place:
        half = m + 1 if what == FROM_REALS else m
        _turn(_lines(end.re, end.im, PAIRS), end.re, found, found.at, count, half)
        _turn(_lines(end.re, end.im, PAIRS), end.im, found, found.imag, count, half)
