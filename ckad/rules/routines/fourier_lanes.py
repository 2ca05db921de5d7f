"""Transforms of eight lines at a time, lane k of a vector for line k, so that none is shuffled.

The passes are Stockham's, which need no reversal of bits (P. N. Swarztrauber, "FFT algorithms for
vector computers", 1984), between two buffers of vectors. Lines along the first axis of a matrix are
read and written where they are; others are turned in blocks. 2 m real numbers are m complex ones, with
a last pass that takes the spectra of the even and the odd ones apart.
"""

from __future__ import annotations

import functools
from math import prod
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from ckad.kernel import kernel
from ckad.rules.routines import pocketfft
from ckad.rules.routines.fourier_vectors import LANES, apart, butterfly, together, transposed
from ckad.rules.routines.memory import doubles, integers

FORWARD, BACKWARD, FROM_REALS, TO_REALS = range(4)
#: Fewer lines are better transformed one by one.
LEAST_LINES = 3
#: Lengths up to here are taken if they are products of 2, 3 and 5, and this power of two.
_SMOOTH, _LONGEST = 1024, 2048
#: Bytes of a number in eight lanes, and of a complex one.
_REALS, _PAIRS = 8 * LANES, 16 * LANES


class Lines(NamedTuple):
    """Lines in memory: bytes from one to the next, and between the numbers of one."""

    at: int
    imag: int
    line: int
    step: int


class _Planes(NamedTuple):
    """Vectors of real and of imaginary parts, ``step`` bytes apart."""

    re: int
    im: int
    step: int


# --- lengths and roots of one --------------------------------------------------------------------


@kernel
def pairs_of(what: int, n: int) -> int:
    """How many complex numbers a line of ``n`` is; none if there is no half."""
    if what == FORWARD or what == BACKWARD:
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
    """What a transform of ``n`` numbers needs: how many radices there are, the radices; where roots
    of the order 2 n lie, in bytes; then the roots that the passes multiply by."""
    radices, left, passes = _radices(n), n, []
    for radix in radices[:-1]:
        powers = np.outer(np.arange(left // radix), np.arange(1, radix))
        passes.append(_roots(left, powers.ravel()))
        left //= radix
    factors = np.concatenate([*passes, _roots(2 * n, np.arange(n // 2 + 1))])
    head = np.zeros(16, np.int64)
    head[: len(radices) + 1] = len(radices), *radices
    head[15] = 8 * (16 + sum(map(len, passes)))
    return np.concatenate([head.view(np.float64), factors])


_where = pocketfft.data("roots")


@functools.cache
def _tables() -> tuple[np.ndarray, list[np.ndarray]]:
    """The addresses of tables by length, and the tables."""
    lengths = [n for n in range(2, _LONGEST + 1) if in_lanes(FORWARD, n, LEAST_LINES)]
    addresses, tables = np.zeros(_LONGEST + 1, np.int64), [_table(n) for n in lengths]
    addresses[lengths] = [table.ctypes.data for table in tables]
    return addresses, tables


def register() -> None:
    """Tell the linker where the tables are."""
    llvm.add_symbol("ckad_roots_data", _tables()[0].ctypes.data)


# --- passes --------------------------------------------------------------------------------------


def _pass(radix: int, is_last: bool) -> object:
    step = butterfly(radix, is_last)

    @kernel
    def run(
        x: _Planes, to: _Planes, roots: int, m: int, s: int, by_re: float, by_im: float
    ) -> None:
        for p in range(m):
            for q in range(s):
                i, j = x.step * (q + s * p), to.step * (q + s * radix * p)
                step(
                    x.re + i, x.im + i, x.step * s * m, to.re + j, to.im + j, to.step * s,
                    roots + 16 * (radix - 1) * p, by_re, by_im,
                )  # fmt: skip

    return run


_two, _three, _four, _five, _eight = (_pass(radix, False) for radix in (2, 3, 4, 5, 8))
_last_two, _last_three, _last_four, _last_five, _last_eight = (
    _pass(radix, True) for radix in (2, 3, 4, 5, 8)
)


@kernel
def _one_pass(
    radix: int, is_last: bool, x: _Planes, to: _Planes, roots: int, m: int, s: int,
    by_re: float, by_im: float,
) -> None:  # fmt: skip
    if is_last:
        if radix == 8:
            _last_eight(x, to, roots, m, s, by_re, by_im)
        elif radix == 4:
            _last_four(x, to, roots, m, s, by_re, by_im)
        elif radix == 2:
            _last_two(x, to, roots, m, s, by_re, by_im)
        elif radix == 3:
            _last_three(x, to, roots, m, s, by_re, by_im)
        else:
            _last_five(x, to, roots, m, s, by_re, by_im)
    elif radix == 8:
        _eight(x, to, roots, m, s, by_re, by_im)
    elif radix == 4:
        _four(x, to, roots, m, s, by_re, by_im)
    elif radix == 2:
        _two(x, to, roots, m, s, by_re, by_im)
    elif radix == 3:
        _three(x, to, roots, m, s, by_re, by_im)
    else:
        _five(x, to, roots, m, s, by_re, by_im)


@kernel
def _passes(
    table: int, n: int, x: _Planes, to: _Planes, a: int, b: int, by_re: float, by_im: float
) -> None:
    """All of them; buffer ``b`` is written to first, so that ``x`` may be buffer ``a``."""
    head = integers(table, 16)
    roots, m, s = table + 128, n, 1
    for k in range(1, head[0] + 1):
        radix, is_last = head[k], k == head[0]
        m //= radix
        at = b if k % 2 else a
        written = to if is_last else _Planes(at, at + _REALS, _PAIRS)
        _one_pass(radix, is_last, x, written, roots, m, s, by_re, by_im)
        roots += 16 * (radix - 1) * m
        s *= radix
        x = written


# --- real numbers --------------------------------------------------------------------------------


@kernel
def _take_apart(
    table: int, m: int, x: int, to: _Planes, by: float, sign: float, weighted: int
) -> None:
    """Half of a spectrum of 2 m real numbers, ``m + 1`` vectors, of that of the pairs."""
    roots, by = table + integers(table, 16)[15], 0.5 * by
    ends = by if weighted else 2 * by
    re, im = doubles(x, LANES), doubles(x + _REALS, LANES)
    first, first_im = doubles(to.re, LANES), doubles(to.im, LANES)
    last, last_im = doubles(to.re + m * to.step, LANES), doubles(to.im + m * to.step, LANES)
    for k in range(LANES):
        first[k], last[k] = ends * (re[k] + im[k]), ends * (re[k] - im[k])
        first_im[k], last_im[k] = 0.0, 0.0
    for k in range(1, m // 2 + 1):
        i, j = k * _PAIRS, k * to.step
        apart(x + i, x + i + _REALS, (m - 2 * k) * _PAIRS, to.re + j, to.im + j,
              (m - 2 * k) * to.step, roots + 16 * k, by, sign * by)  # fmt: skip


@kernel
def _put_together(table: int, m: int, x: _Planes, to: int, sign: float, weighted: int) -> None:
    """The spectrum of the pairs of 2 m real numbers, of half of theirs."""
    roots, by = table + integers(table, 16)[15], 2.0 if weighted else 1.0
    first, last = doubles(x.re, LANES), doubles(x.re + m * x.step, LANES)
    re, im = doubles(to, LANES), doubles(to + _REALS, LANES)
    for k in range(LANES):
        re[k], im[k] = by * (first[k] + last[k]), by * (first[k] - last[k])
    for k in range(1, m // 2 + 1):
        i, j = k * x.step, k * _PAIRS
        together(x.re + i, x.im + i, (m - 2 * k) * x.step, to + j, to + j + _REALS,
                 (m - 2 * k) * _PAIRS, roots + 16 * k, 1.0, sign)  # fmt: skip


# --- blocks --------------------------------------------------------------------------------------


@kernel
def _turn(
    at: int, line: int, step: int, to: int, to_line: int, to_step: int, count: int, n: int
) -> None:
    """Lines of ``n`` numbers as other lines; of one of the two, eight lie side by side."""
    done = 0
    if count == LANES and (step == 8 or to_step == 8):
        done = n // LANES * LANES
        wide, to_wide = step if step > 8 else line, to_step if to_step > 8 else to_line
        for k in range(0, done, LANES):
            transposed(at + k * step, wide, to + k * to_step, to_wide)
    for k in range(done, n):
        for j in range(count):
            place = to + j * to_line + k * to_step
            doubles(place, 1)[0] = doubles(at + j * line + k * step, 1)[0]


@kernel
def eight_lines(
    what: int, n: int, count: int, given: Lines, found: Lines, a: int, b: int, factor: float,
    sign: float, sign_found: float, weighted: int,
) -> None:  # fmt: skip
    """Transform up to eight lines; ``sign`` and ``sign_found`` are those of the imaginary parts.

    ``a`` and ``b`` are buffers of eight lines and eight numbers more.
    """
    m = pairs_of(what, n)
    table = integers(_where(), m + 1)[m]
    free, used = (a, b) if integers(table, 1)[0] % 2 == 0 else (b, a)
    back = what == BACKWARD or what == TO_REALS
    if sign < 0 and what != TO_REALS:  # of what is conjugate
        back, sign_found = not back, -sign_found
    in_place, to_place = given.line == 8 and count == LANES, found.line == 8 and count == LANES
    if what == FROM_REALS:
        x = _Planes(given.at, given.at + given.step, 2 * given.step)
        if not in_place:
            _turn(given.at, given.line, given.step, a, 8, _REALS, count, n)
    else:
        x = _Planes(given.at, given.imag, given.step)
        if not in_place:
            at, half = (b, m + 1) if what == TO_REALS else (a, m)
            _turn(given.at, given.line, given.step, at, 8, _PAIRS, count, half)
            _turn(given.imag, given.line, given.step, at + _REALS, 8, _PAIRS, count, half)
    if what == TO_REALS:
        half = x if in_place else _Planes(b, b + _REALS, _PAIRS)
        _put_together(table, m, half, a, sign, weighted)
    if what == TO_REALS or not in_place:
        x = _Planes(a, a + _REALS, _PAIRS)
    to = _Planes(free, free + _REALS, _PAIRS)
    if to_place and what != FROM_REALS:
        to = _Planes(found.at, found.imag, found.step)
        if what == TO_REALS:
            to = _Planes(found.at, found.at + found.step, 2 * found.step)
    by = 1.0 if what == FROM_REALS else factor
    by_imag = by if what == TO_REALS or what == FROM_REALS else by * sign_found
    if back:  # real and imaginary parts change places
        x, to = _Planes(x.im, x.re, x.step), _Planes(to.im, to.re, to.step)
        _passes(table, m, x, to, a, b, by_imag, by)
    else:
        _passes(table, m, x, to, a, b, by, by_imag)
    if what == FROM_REALS:
        to = _Planes(used, used + _REALS, _PAIRS)
        if to_place:
            to = _Planes(found.at, found.imag, found.step)
        _take_apart(table, m, free, to, factor, sign_found, weighted)
        free = used
    if not to_place:
        if what == TO_REALS:
            _turn(free, 8, _REALS, found.at, found.line, found.step, count, n)
        else:
            half = m + 1 if what == FROM_REALS else m
            _turn(free, 8, _PAIRS, found.at, found.line, found.step, count, half)
            _turn(free + _REALS, 8, _PAIRS, found.imag, found.line, found.step, count, half)
