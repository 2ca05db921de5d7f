"""Chains of elementwise instructions, run on one strip after the other."""

from __future__ import annotations

from ckad.engines.vm.isa import STRIP, Code
from ckad.engines.vm.kernels.arrays import Array, copy_row
from ckad.engines.vm.kernels.elements import copy, sum_cells
from ckad.engines.vm.kernels.writing import Cells, Number


def strips(w: Array) -> None:
    """The words: size, the length of the instructions, these."""
    size, length = w.first(2)
    instructions = w.words.behind(2)
    for at in w.loop(0, size, STRIP):
        n = (size - at).least(STRIP)
        _strip(w, instructions, length, at, n)


def _strip(w: Array, instructions: Cells, length: Number, at: Number, n: Number) -> None:
    p = w.variable(0)
    with w.repeat(lambda: p.now < length):
        words, place = instructions.behind(p.now), p.now
        after, switch = w.switch(words[0])
        for code, (instruction, n_words) in _INSTRUCTIONS.items():
            with w.case(switch, code, after):
                instruction(w, words, at, n)
                p.set(place + n_words + words[4] * _PER_AXIS.get(code, 0))
        _elementwise(w, words, at, n)
        p.set(place + 9)
        w.b.branch(after)
        w.b.position_at_end(after)


def _elementwise(w: Array, words: Cells, at: Number, n: Number) -> None:
    places = [words[k] + at * words[k + 1] for k in (1, 3, 5, 7)]
    w.call(words[0], [w.base, n, *places])


def _sum(w: Array, words: Cells, at: Number, n: Number) -> None:
    src = words[2] + at * words[3]
    w.f[words[1]] = w.f[words[1]] + sum_cells(w, w.base, src, n)


def _roll(w: Array, words: Cells, at: Number, n: Number) -> None:
    """n cells from place ``at`` on of rows of a length, each turned by a shift."""
    dst, src, length, shift = words[1] + at * words[2], words[3], words[4], words[5]
    row, column, done = w.variable(at // length * length), w.variable(at % length), w.variable(0)
    with w.repeat(lambda: done.now < n):
        source = column.now - shift
        source = (source < 0).chosen(source + length, source)
        part = (n - done.now).least(length - column.now).least(length - source)
        copy(w, w.base, dst + done.now, src + row.now + source, part)
        done.add(part)
        column.add(part)
        with w.when(column.now.equals(length)):
            row.add(length)
            column.set(0)


def _view(w: Array, words: Cells, at: Number, n: Number) -> None:
    """n elements from place ``at`` on of a strided view, in C order."""
    dst, src, rank = words[1] + at * words[2], words[3], words[4]
    dims, strides = words.behind(5), words.behind(rank + 5)
    last = rank - 1
    inner, step = dims[last], strides[last]
    row, column, done = w.variable(at // inner), w.variable(at % inner), w.variable(0)
    with w.repeat(lambda: done.now < n):
        source, left = w.variable(src + column.now * step), w.variable(row.now)
        for a in w.loop(0, last - 1):
            axis = last - 1 - a
            source.add(left.now % dims[axis] * strides[axis])
            left.set(left.now // dims[axis])
        with w.when(rank > 1):
            source.add(left.now * strides[0])
        part = (n - done.now).least(inner - column.now)
        copy_row(w, "", dst + done.now, w.number(1), source.now, step, part)
        done.add(part)
        row.add(1)
        column.set(0)


def _pad(w: Array, words: Cells, at: Number, n: Number) -> None:
    """n elements from place ``at`` on of an array of zeros with another one inside."""
    dst, src, rank = words[1] + at * words[2], words[3], words[4]
    outer, starts, dims = (words.behind(k) for k in (w.number(5), rank + 5, rank * 2 + 5))
    last, done = rank - 1, w.variable(0)
    length, begin, inner = outer[last], starts[last], dims[last]
    with w.repeat(lambda: done.now < n):
        row, column = w.variable((at + done.now) // length), (at + done.now) % length
        part = (n - done.now).least(length - column)
        source, stride, hit = w.variable(src), w.variable(inner), w.variable(1)
        for a in w.loop(0, last):
            axis = last - 1 - a
            place = row.now % outer[axis] - starts[axis]
            row.set(row.now // outer[axis])
            inside = (place >= 0) & (place < dims[axis])
            hit.set(inside.chosen(hit.now, 0))
            source.add(place * stride.now)
            stride.set(stride.now * dims[axis])
        first = (begin - column).most(0).least(part)
        end = (begin + inner - column).most(first).least(part)
        first, end = (hit.now.equals(1).chosen(x, part) for x in (first, end))
        to = dst + done.now
        for zeros in ((w.number(0), first), (end, part)):
            for k in w.loop(*zeros):
                w.f[to + k] = 0.0
        with w.when(first < end):
            copy(w, w.base, to + first, source.now + column + first - begin, end - first)
        done.add(part)


#: The instructions beside elementwise kernels, and their words; those on views have more per axis.
_INSTRUCTIONS = {
    Code.SUM: (_sum, 4),
    Code.ROLL: (_roll, 6),
    Code.VIEW: (_view, 5),
    Code.PAD: (_pad, 5),
}
_PER_AXIS = {Code.VIEW: 2, Code.PAD: 3}
