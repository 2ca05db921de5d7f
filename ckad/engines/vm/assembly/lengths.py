"""How many steps a guarded loop runs: learnt in its forward sweep, kept in its token."""

from __future__ import annotations

from ckad.engines.vm.assembly.assembler import Assembler
from ckad.engines.vm.assembly.region import Region
from ckad.engines.vm.isa import Code
from ckad.tape.control import COUNTED, WHILE, Loop, is_open


class End:
    """How many steps a guarded loop runs: in the first cell of its token, too many until known.

    In an open loop ``limit`` + 1 stands for more than the actions are made for.
    """

    def __init__(self, a: Assembler, loop: Loop, token: Region, first: Region) -> None:
        self.a, self.guard, self.first = a, loop.guard, first
        self.n_steps = Region(token.offset, 1)
        self.limit = a.hold(a.new(1))
        self.is_open = is_open(loop.length, loop.guard)
        self.table = a.loops.setdefault(loop.name, len(a.loops))
        limit = a.slots[loop.name].n_steps if self.is_open else loop.length
        a.emit(Code.SET, self.limit.offset, limit)
        a.emit(Code.SET, self.n_steps.offset, min(limit + 1, loop.length))
        if loop.guard == COUNTED:
            a.emit(Code.SET, self.n_steps.offset, loop.length)
            words = a.zero.offset, self.n_steps.offset, first.offset, 0
            skip = a.emit(Code.CLIP, *words) + 4
        else:
            skip = a.emit(Code.JUMP_IF_ZERO, first.offset, 0) + 2
        begin = a.emit(Code.JUMP, 0) + 1
        a.code[skip] = len(a.code)
        a.emit(Code.SET, self.n_steps.offset, 0)
        self.none = a.emit(Code.JUMP, 0) + 1  # out of the loop
        a.code[begin] = len(a.code)
        if self.is_open and loop.guard == COUNTED:
            self._give_up_unless_reached(self.limit, self.n_steps, self.n_steps)

    def leave(self, i: Region, stop: Region) -> int:
        """The code after steps were run; returns the address of the exit's target."""
        a = self.a
        if self.guard == WHILE:
            ended = a.emit(Code.JUMP_IF_ZERO, self.first.offset, 0) + 2
            on = a.emit(Code.JUMP, 0) + 1
            a.code[ended] = len(a.code)
            a.emit(Code.COPY, 1, self.n_steps.offset, i.offset)
            a.code[on] = len(a.code)
        if self.guard == WHILE and self.is_open:
            last = a.emit(Code.JUMP_IF_REACHED, stop.offset, self.limit.offset, 0) + 3
            on = a.emit(Code.JUMP, 0) + 1
            a.code[last] = len(a.code)
            self._give_up_unless_reached(self.limit, self.n_steps, a.zero)
            a.code[on] = len(a.code)
        return a.emit(Code.JUMP_IF_REACHED, stop.offset, self.n_steps.offset, 0) + 3

    def _give_up_unless_reached(self, limit: Region, n_steps: Region, wanted: Region) -> None:
        a = self.a
        enough = a.emit(Code.JUMP_IF_REACHED, limit.offset, n_steps.offset, 0) + 3
        a.emit(Code.TOO_LONG, self.table, wanted.offset)
        a.code[enough] = len(a.code)
