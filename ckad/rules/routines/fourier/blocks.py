"""One axis of an array, block by block: eight lines at a time, or by PocketFFT.

PocketFFT takes lengths with other factors than 2, 3 and 5, and most single lines. For it real and
imaginary parts are put together and taken apart a block at a time, which is in the cache meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from ckad.kernel import kernel
from ckad.rules.routines.fourier import pocketfft
from ckad.rules.routines.fourier.lanes import (
    BACKWARD,
    FORWARD,
    FROM_REALS,
    TO_REALS,
    Lines,
    eight_lines,
    in_lanes,
    in_parts,
    pairs_of,
)
from ckad.rules.routines.fourier.single import one_line
from ckad.rules.routines.fourier.vectors import LANES
from ckad.rules.routines.memory import doubles, integers

#: A block is about so many numbers, in so many rows or columns at the least.
BLOCK, ROWS, COLUMNS = 4096, 8, 32
#: Rows of a block of columns are so many numbers further apart than they are long.
GAP = 4
#: The units of a stage.
UNITS = 8

# --- PocketFFT -----------------------------------------------------------------------------------

_fft, _ifft = pocketfft.external("fft"), pocketfft.external("ifft")
_rfft_even, _rfft_odd = pocketfft.external("rfft_n_even"), pocketfft.external("rfft_n_odd")
_irfft = pocketfft.external("irfft")
_fft_data, _ifft_data, _irfft_data = map(pocketfft.data, ("fft", "ifft", "irfft"))
_rfft_even_data, _rfft_odd_data = map(pocketfft.data, ("rfft_n_even", "rfft_n_odd"))

#: What a block is read from or written to: real and imaginary parts, or real numbers.
PARTS, REAL = range(2)


class Side(NamedTuple):
    """An array that is read or written; its rows lie ``pitch`` numbers apart.

    If there are ``tiles`` they are of one row and eight columns, real and then imaginary parts; so
    many tiles below each other come before those at their right.
    """

    form: int
    at: int
    imag: int
    sign: float  # of the imaginary parts
    pitch: int
    tiles: int


@kernel
def _transform(
    what: int, head: int, n: int, count: int, source: Lines, target: Lines, factor: float
) -> None:
    """Transform ``count`` lines."""
    words, numbers = integers(head, 16), doubles(head, 16)
    words[0], words[1], words[2] = source.at, head + 88, target.at
    words[3] = count
    words[4] = n // 2 + 1 if what == TO_REALS else n
    words[5] = n // 2 + 1 if what == FROM_REALS else n
    words[6], words[7], words[8] = source.line, 0, target.line
    words[9], words[10] = source.step, target.step
    numbers[11] = factor
    if what == FORWARD:
        _fft(head, head + 24, head + 48, _fft_data())
    elif what == BACKWARD:
        _ifft(head, head + 24, head + 48, _ifft_data())
    elif what == TO_REALS:
        _irfft(head, head + 24, head + 48, _irfft_data())
    elif n % 2 == 0:
        _rfft_even(head, head + 24, head + 48, _rfft_even_data())
    else:
        _rfft_odd(head, head + 24, head + 48, _rfft_odd_data())


# --- blocks --------------------------------------------------------------------------------------


@kernel
def lines(what: int, n: int, there: int, least: int) -> int:
    """How many lines of ``n`` numbers are one block, of those that are there."""
    if in_lanes(what, n, there):
        return LANES
    wanted = max(least, BLOCK // n)
    blocks = (there + wanted - 1) // wanted
    return (there + blocks - 1) // blocks


@kernel
def _bytes(form: int) -> int:
    return 8 if form == REAL else 16


@kernel
def _load(side: Side, at: int, step: int, runs: int, n: int, to: int, pitch: int) -> None:
    """Runs of ``n`` numbers, the first at ``at``, ``step`` apart, into a block."""
    for k in range(runs):
        place = at + k * step
        if side.form == PARTS:
            real, imag = doubles(side.at + 8 * place, n), doubles(side.imag + 8 * place, n)
            pairs = doubles(to + 16 * k * pitch, 2 * n)
            for i in range(n):
                pairs[2 * i] = real[i]
                pairs[2 * i + 1] = side.sign * imag[i]
        else:
            x, y = doubles(side.at + 8 * place, n), doubles(to + 8 * k * pitch, n)
            for i in range(n):
                y[i] = x[i]


@kernel
def _save(side: Side, at: int, step: int, runs: int, n: int, block: int, pitch: int) -> None:
    """The way back."""
    for k in range(runs):
        place = at + k * step
        if side.form == PARTS:
            real, imag = doubles(side.at + 8 * place, n), doubles(side.imag + 8 * place, n)
            pairs = doubles(block + 16 * k * pitch, 2 * n)
            for i in range(n):
                real[i] = pairs[2 * i]
                imag[i] = side.sign * pairs[2 * i + 1]
        else:
            x, y = doubles(side.at + 8 * place, n), doubles(block + 8 * k * pitch, n)
            for i in range(n):
                x[i] = y[i]


@kernel
def _ends(where: Lines, n: int, count: int, by: float) -> None:
    """Multiply what a half has of the frequencies that stand for themselves alone."""
    for k in range(count):
        for i in range(0, n // 2 + 1, n // 2) if n % 2 == 0 else range(1):
            pair = doubles(where.at + k * where.line + i * where.step, 2)
            pair[0] *= by
            pair[1] *= by


@kernel
def _line_by_line(
    what: int, head: int, n: int, count: int, source: Lines, target: Lines, factor: float,
    weighted: int,
) -> None:  # fmt: skip
    if what == TO_REALS and weighted:
        _ends(source, n, count, 2.0)
    _transform(what, head, n, count, source, target, factor)
    if what == FROM_REALS and weighted:
        _ends(target, n, count, 0.5)


@kernel
def numbers(what: int, n: int, there: int, is_last: bool) -> int:
    """How many complex numbers one of the two buffers of a block is."""
    if in_lanes(what, n, there):
        return LANES * (pairs_of(what, n) + 1)
    return n * (lines(what, n, there, ROWS) if is_last else lines(what, n, there, COLUMNS) + GAP)


@kernel
def _lines(side: Side, row: int, column: int, is_last: bool, middle: int) -> Lines:
    """Lines from there, along the last axis or along one of which so many rows are a step."""
    if side.tiles:
        at = 16 * LANES * (column // LANES * side.tiles + row)
        line, step, eight = 16 * LANES, 8, 16 * LANES * side.tiles
        if not is_last:
            line, step, eight = 8, 16 * LANES * middle, 16 * LANES * LANES * middle
        return Lines(side.at + at, side.imag + at, line, step, eight)
    at = 8 * (row * side.pitch + column)
    line, step = (8 * side.pitch, 8) if is_last else (8, 8 * side.pitch * middle)
    return Lines(side.at + at, side.imag + at, line, step, LANES * step)


@kernel
def _from(side: Side, at: int) -> Lines:
    """A line along the last axis."""
    return Lines(side.at + 8 * at, side.imag + 8 * at, 0, 8, 0)


@kernel
def axis(
    what: int, head: int, n: int, outer: int, middle: int, across: int, is_last: bool,
    source: Side, target: Side, a: int, b: int, factor: float, weighted: int, first: int,
    last: int,
) -> None:  # fmt: skip
    """The second axis of an array [outer, n, middle, across], or of [outer, n] that is the last."""
    n_from = n // 2 + 1 if what == TO_REALS else n
    n_to = n // 2 + 1 if what == FROM_REALS else n
    groups, there = (1, outer) if is_last else (outer * middle, across)
    by_eight = in_lanes(what, n, there)
    width = lines(what, n, there, ROWS if is_last else COLUMNS)
    in_group = (there + width - 1) // width
    blocks = groups * in_group
    for block in range(blocks * first // UNITS, blocks * last // UNITS):
        group, line = block // in_group, block % in_group * width
        count = min(width, there - line)
        row_from = row_to = line
        column = 0
        if not is_last:
            o, m = group // middle, group % middle
            row_from, row_to, column = o * n_from * middle + m, o * n_to * middle + m, line
        at, to = row_from * source.pitch + column, row_to * target.pitch + column
        if by_eight:
            given = _lines(source, row_from, column, is_last, middle)
            found = _lines(target, row_to, column, is_last, middle)
            eight_lines(what, n, count, given, found, a, b, factor, source.sign, target.sign,
                        weighted)  # fmt: skip
        elif is_last:
            _rows(what, head, n, count, source, at, n_from, target, to, n_to, a, b, factor,
                  weighted)  # fmt: skip
        else:
            _columns(what, head, n, count, width + GAP, source, at, middle * source.pitch, n_from,
                     target, to, middle * target.pitch, n_to, a, b, factor, weighted)  # fmt: skip


@kernel
def _rows(
    what: int, head: int, n: int, count: int, source: Side, at: int, n_from: int, target: Side,
    to: int, n_to: int, a: int, b: int, factor: float, weighted: int,
) -> None:  # fmt: skip
    if in_parts(what, n):
        for k in range(count):
            one = _from(source, at + k * source.pitch)
            one_line(what, n, one, _from(target, to + k * target.pitch), a, b, factor, source.sign,
                     target.sign, weighted)  # fmt: skip
        return
    given = Lines(a, 0, 16 * n_from, 16, 0)
    if source.form == REAL:
        given = Lines(source.at + 8 * at, 0, 8 * source.pitch, 8, 0)
    else:
        _load(source, at, source.pitch, count, n_from, a, n_from)
    found = Lines(a if what in (FORWARD, BACKWARD) else b, 0, 16 * n_to, 16, 0)
    if target.form == REAL:
        found = Lines(target.at + 8 * to, 0, 8 * target.pitch, 8, 0)
    _line_by_line(what, head, n, count, given, found, factor, weighted)
    if target.form == PARTS:
        _save(target, to, target.pitch, count, n_to, found.at, n_to)


@kernel
def _columns(
    what: int, head: int, n: int, count: int, pitch: int, source: Side, at: int, step_from: int,
    n_from: int, target: Side, to: int, step_to: int, n_to: int, a: int, b: int, factor: float,
    weighted: int,
) -> None:  # fmt: skip
    w_from, w_to = _bytes(source.form), _bytes(target.form)
    _load(source, at, step_from, n_from, count, a, pitch)
    place = a if what in (FORWARD, BACKWARD) else b
    given, found = Lines(a, 0, w_from, w_from * pitch, 0), Lines(place, 0, w_to, w_to * pitch, 0)
    _line_by_line(what, head, n, count, given, found, factor, weighted)
    _save(target, to, step_to, n_to, count, place, pitch)
