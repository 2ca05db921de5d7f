"""The interpreter: one loop over instructions, compiled once.

All its state is in the cells, the action tables and the program counter, so it can return to
Python at any backward jump and go on later: that answers Ctrl-C and drives progress bars.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ckad.engines.vm.isa import KERNEL_CODES, Code, Status
from ckad.engines.vm.kernels.elements import apply, copy, emitter
from ckad.engines.vm.kernels.writing import DOUBLE, I32, I64, Number, Word, Writer

#: Columns of an action table's row: the next row, the rows filled, where its buffer begins,
#: where the reverse phase begins, whether that waits for the number of steps, this number, and the
#: largest that it was.
CURSOR, FILLED, FIRST, REVERSE, LEARNS, COUNT, MOST = range(7)
COLUMNS = 7
#: Columns of a row of actions.
ACTION_COLUMNS = 4
#: All bits of an exponent are set where a number is not finite.
_EXPONENT = 0x7FF0000000000000


class Machine(Writer):
    """The interpreter in the making.

    Its arguments are the addresses of the code, of cell 0, of the tables, of the actions and of the
    report, the program counter, and the fuel, about nanoseconds: it runs until the program stops or
    that is used up, and returns the program counter to go on from. The report gets the Status, a
    detail of it, counts the steps done, and gets how many steps an open loop wants.
    """

    def __init__(self) -> None:
        super().__init__("run", 7)
        code, self.base, tables, actions, report, pc, fuel = self.arguments
        self.code, self.actions, self.report = map(self.cells, (code, actions, report))
        self.tables = self.cells(tables)
        self.f, self.i = self.cells(self.base, DOUBLE), self.cells(self.base)
        self.counter, self.fuel = self.variable(pc), self.variable(fuel)
        self.slice, self.fetch, self.stopped = (
            self.b.append_basic_block(name) for name in ("slice", "fetch", "stopped")
        )

    def write(self) -> ir.Module:
        b = self.b
        self.report[0] = int(Status.PAUSED)
        b.branch(self.slice)
        b.position_at_end(self.slice)
        b.cbranch((self.fuel.now > 0).value, self.fetch, self.stopped)
        b.position_at_end(self.fetch)
        self.pc = self.counter.now
        self.words = self.code.behind(self.pc)
        unknown = b.append_basic_block("unknown")
        switch = b.switch(self.words[0].value, unknown)
        for code, instruction in _INSTRUCTIONS.items():
            with self.case(switch, code, None):
                instruction(self)
        for key, number in KERNEL_CODES.items():
            with self.case(switch, number, None):
                _short(self, *emitter(key))
        b.position_at_end(unknown)
        b.unreachable()
        b.position_at_end(self.stopped)
        return self.finish(self.counter.now)

    def after(self, n: Word) -> Number:
        """Where the instruction ends, of so many words."""
        return self.pc + n

    def go(self, to: Number) -> None:
        """Go on there."""
        self.counter.set(to)
        self.b.branch(self.fetch)

    def go_where(self, condition: Number, yes: Number, no: Number) -> None:
        with self.b.if_then(condition.value):
            self.go(yes)
        self.go(no)

    def spend(self, fuel: Number | int) -> None:
        """Use fuel; what follows goes on by ``look``, if some is left."""
        self.fuel.set(self.fuel.now - fuel)

    def look(self, to: Number) -> None:
        self.counter.set(to)
        self.b.branch(self.slice)

    def stop(self, status: Status, detail: Word = 0) -> None:
        self.report[0], self.report[1] = int(status), detail
        self.counter.set(self.pc)
        self.b.branch(self.stopped)


def _short(m: Machine, emit: Callable[..., ir.Value], cells: str) -> None:
    places = [m.words[k] for k in range(2, 6)]
    apply(m, emit, cells, m.base, m.words[1], places, few=True)
    m.go(m.after(6))


def _kernel(m: Machine) -> None:
    m.call(m.words[1], [m.base, *(m.words[k] for k in range(2, 7))])
    m.go(m.after(7))


def _whole(m: Machine) -> None:
    end = m.after(m.words[1])
    m.call(m.words[2], [m.words.address(3), m.base])
    m.go(end)


def _copy(m: Machine) -> None:
    n, dst, src = (m.words[k] for k in (1, 2, 3))
    _copy_cells(m, dst, src, n)
    m.go(m.after(4))


def _copy_cells(m: Machine, dst: Number, src: Number, n: Number) -> None:
    with m.either(n.equals(1)) as (one, more):
        with one:
            m.i[dst] = m.i[src]
        with more:
            copy(m, m.base, dst, src, n)


def _copy_in(m: Machine) -> None:
    n, dst, base, at = (m.words[k] for k in range(1, 5))
    _copy_cells(m, dst, base + m.i[at] * n, n)
    m.go(m.after(5))


def _copy_far(m: Machine) -> None:
    n, dst, cell, at = (m.words[k] for k in range(1, 5))
    _copy_cells(m, dst, m.i[cell] + m.i[at] * n, n)
    m.go(m.after(5))


def _copy_out(m: Machine) -> None:
    n, base, at, src = (m.words[k] for k in range(1, 5))
    _copy_cells(m, base + m.i[at] * n, src, n)
    m.go(m.after(5))


def _next(m: Machine) -> None:
    i, stop, step, target, cost = (m.words[k] for k in range(1, 6))
    at = m.i[i] + step
    m.i[i] = at
    m.spend(cost)
    end = m.i[stop]
    on = (step > 0).chosen(at < end, at >= end)
    with m.when(on):
        m.look(target)
    m.look(m.after(6))


def _next_while(m: Machine) -> None:
    i, stop, step, target, cost, flag = (m.words[k] for k in range(1, 7))
    at = m.i[i] + step
    m.i[i] = at
    m.spend(cost)
    with m.when((at < m.i[stop]) & m.i[flag].differs(0)):
        m.look(target)
    m.look(m.after(7))


def _action(m: Machine) -> None:
    table = m.tables.behind(m.words[1] * COLUMNS)
    cursor = table[CURSOR]
    with m.when(cursor.equals(table[FILLED])):
        m.stop(Status.ACTIONS, m.words[1])
    row, cells = m.actions.behind(cursor * ACTION_COLUMNS), m.i.behind(m.words[2])
    values = [row[k] for k in range(ACTION_COLUMNS)]
    target = m.words[values[0] + 3]
    table[CURSOR] = cursor + 1
    m.spend(10)
    for k, value in enumerate(values[1:]):
        cells[k] = value
    m.look(target)


def _residual(m: Machine) -> None:
    to, slot, i, start = (m.words[k] for k in range(1, 5))
    m.i[to] = m.i[slot] + m.i[i] - m.i[start]
    m.go(m.after(5))


def _set(m: Machine) -> None:
    m.i[m.words[1]] = m.words[2]
    m.go(m.after(3))


def _before(m: Machine) -> None:
    m.i[m.words[1]] = m.i[m.words[2]] - 1
    m.go(m.after(3))


def _jump(m: Machine) -> None:
    m.go(m.words[1])


def _if_last(m: Machine) -> None:
    m.go_where(m.i[m.words[1]] + 1 >= m.i[m.words[2]], m.words[3], m.after(4))


def _if_at(m: Machine) -> None:
    m.go_where(m.i[m.words[1]].equals(m.words[2]), m.words[3], m.after(4))


def _if_zero(m: Machine) -> None:
    m.go_where(m.i[m.words[1]].equals(0), m.words[2], m.after(3))


def _if_reached(m: Machine) -> None:
    m.go_where(m.i[m.words[1]] >= m.i[m.words[2]], m.words[3], m.after(4))


def _step(m: Machine) -> None:
    m.report[2] = m.report[2] + 1
    m.go(m.after(1))


def _wrap(m: Machine) -> None:
    """Bring indices into [0, size); stop if one is out of range."""
    n, dst, src, size = (m.words[k] for k in range(1, 5))
    for k in m.loop(0, n):
        at = m.i[src + k]
        at = (at < 0).chosen(at + size, at)
        with m.when((at < 0) | (at >= size)):
            m.stop(Status.INDEX, m.words[5])
        m.i[dst + k] = at
    m.go(m.after(6))


def _restart(m: Machine) -> None:
    table = m.tables.behind(m.words[1] * COLUMNS)
    table[CURSOR] = m.words[2].equals(0).chosen(table[FIRST], table[REVERSE])
    m.go(m.after(3))


def _check(m: Machine) -> None:
    n, src = m.words[1], m.words[2]
    for k in m.loop(0, n):
        exponent = m.i[src + k] & m.number(_EXPONENT)
        with m.when(exponent.equals(_EXPONENT)):
            m.stop(Status.NOT_FINITE, m.words[3])
    m.go(m.after(4))


def _clip(m: Machine) -> None:
    start, stop, count, target = (m.words[k] for k in range(1, 5))
    last = m.i[stop].least(m.i[count])
    m.i[stop] = last
    m.go_where(m.i[start] >= last, target, m.after(5))


def _learnt(m: Machine) -> None:
    table = m.tables.behind(m.words[1] * COLUMNS)
    count = m.i[m.words[2]]
    table[COUNT] = count
    table[MOST] = table[MOST].most(count)
    table[FILLED] = table[LEARNS].equals(0).chosen(table[FILLED], table[CURSOR])
    m.go(m.after(3))


def _too_long(m: Machine) -> None:
    m.report[3] = m.i[m.words[2]]
    m.stop(Status.LENGTH, m.words[1])


def _run(m: Machine) -> None:
    """Machine code on arrays in the cells; their addresses lie before its workspace."""
    m.spend(m.words[3])
    end, place, address = m.after(m.words[1]), m.words[2], m.words[4]
    work, n = m.words[5], m.words[6]
    for k in m.loop(0, n):
        m.i[work + k] = m.base + m.words[k + 7] * 8
    arrays = m.base + work * 8
    status = m.call(address, [m.words.address(n + 7), arrays, arrays + n * 8], I32)
    with m.when(Number(m.b, m.b.icmp_signed("!=", status.value, ir.Constant(I32, 0)))):
        m.report[3] = Number(m.b, m.b.sext(status.value, I64))
        m.stop(Status.FAILED, place)
    m.look(end)


def _call(m: Machine) -> None:
    m.stop(Status.CALL, m.words[1])


def _halt(m: Machine) -> None:
    m.stop(Status.DONE)


_INSTRUCTIONS: dict[Code, Callable[[Machine], None]] = {
    Code.HALT: _halt,
    Code.COPY: _copy,
    Code.WHOLE: _whole,
    Code.KERNEL: _kernel,
    Code.WRAP: _wrap,
    Code.SET: _set,
    Code.NEXT: _next,
    Code.COPY_IN: _copy_in,
    Code.COPY_OUT: _copy_out,
    Code.JUMP: _jump,
    Code.JUMP_IF_ZERO: _if_zero,
    Code.JUMP_IF_LAST: _if_last,
    Code.JUMP_IF_AT: _if_at,
    Code.ACTION: _action,
    Code.RESTART: _restart,
    Code.RESIDUAL: _residual,
    Code.BEFORE: _before,
    Code.STEP: _step,
    Code.CHECK: _check,
    Code.CLIP: _clip,
    Code.NEXT_WHILE: _next_while,
    Code.JUMP_IF_REACHED: _if_reached,
    Code.TOO_LONG: _too_long,
    Code.LEARNT: _learnt,
    Code.CALL: _call,
    Code.RUN: _run,
    Code.COPY_FAR: _copy_far,
}
