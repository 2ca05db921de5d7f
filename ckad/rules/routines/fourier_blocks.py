"""Blocks of lines that PocketFFT transforms, in rows or in columns.

Lines of real and imaginary parts are put together and taken apart a block at a time, which is in
the cache meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from ckad.kernel import kernel
from ckad.rules.routines import pocketfft
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

#: What a block is read from or written to: real and imaginary parts, pairs, real numbers.
PARTS, PAIRS, REAL = range(3)
FORWARD, BACKWARD, FROM_REALS, TO_REALS = range(4)


class Side(NamedTuple):
    """An array that is read or written; its rows lie ``pitch`` numbers apart."""

    form: int
    at: int
    imag: int
    sign: float  # of the imaginary parts
    pitch: int


class Lines(NamedTuple):
    """Lines in memory: bytes from one to the next, and between the numbers of one."""

    at: int
    line: int
    step: int


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
def lines(n: int, there: int, least: int) -> int:
    """How many lines of ``n`` numbers are one block, of those that are there."""
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
def rows(
    what: int, head: int, n: int, there: int, source: Side, target: Side, a: int, b: int,
    factor: float, weighted: int, first: int, last: int,
) -> None:  # fmt: skip
    """The last axis of an array [there, n]."""
    n_from = n // 2 + 1 if what == TO_REALS else n
    n_to = n // 2 + 1 if what == FROM_REALS else n
    w_from, w_to = _bytes(source.form), _bytes(target.form)
    in_place = target.form == PAIRS and (what in (FORWARD, BACKWARD))
    height = lines(n, there, ROWS)
    blocks = (there + height - 1) // height
    for row in range(blocks * first // UNITS * height, blocks * last // UNITS * height, height):
        count = min(height, there - row)
        to = Lines(b, w_to * n_to, w_to)
        if target.form != PARTS:
            to = Lines(target.at + w_to * row * target.pitch, w_to * target.pitch, w_to)
        at = source.at + w_from * row * source.pitch
        given = Lines(at, w_from * source.pitch, w_from)
        if source.form == PARTS:
            given = to if in_place else Lines(a, w_from * n_from, w_from)
            pitch = given.line // w_from
            _load(source, row * source.pitch, source.pitch, count, n_from, given.at, pitch)
        _line_by_line(what, head, n, count, given, to, factor, weighted)
        if target.form == PARTS:
            _save(target, row * target.pitch, target.pitch, count, n_to, b, n_to)


@kernel
def columns(
    what: int, head: int, n: int, outer: int, middle: int, across: int, source: Side,
    target: Side, a: int, b: int, factor: float, weighted: int, first: int, last: int,
) -> None:  # fmt: skip
    """The second axis of an array [outer, n, middle, across]."""
    n_from = n // 2 + 1 if what == TO_REALS else n
    n_to = n // 2 + 1 if what == FROM_REALS else n
    w_from, w_to = _bytes(source.form), _bytes(target.form)
    step_from, step_to = middle * source.pitch, middle * target.pitch
    width = lines(n, across, COLUMNS)
    in_row = (across + width - 1) // width
    blocks = outer * middle * in_row
    for block in range(blocks * first // UNITS, blocks * last // UNITS):
        row, column = block // in_row, block % in_row * width
        count = min(width, across - column)
        o, m = row // middle, row % middle
        at_from = (o * n_from * middle + m) * source.pitch + column
        at_to = (o * n_to * middle + m) * target.pitch + column
        given = Lines(source.at + 16 * at_from, 16, 16 * step_from)
        if source.form != PAIRS:
            given = Lines(a, w_from, w_from * (width + GAP))
            _load(source, at_from, step_from, n_from, count, a, width + GAP)
        to = Lines(target.at + 16 * at_to, 16, 16 * step_to)
        if target.form != PAIRS:
            to = Lines(b, w_to, w_to * (width + GAP))
        _line_by_line(what, head, n, count, given, to, factor, weighted)
        if target.form != PAIRS:
            _save(target, at_to, step_to, n_to, count, b, width + GAP)
