"""Numbers of a loop that are known before it runs: its steps, followed while it is recorded.

How many steps a loop makes and how long its lists become often depends on known numbers alone:
``while t < end: ... t += dt``, ``if k % 50 == 0``. The rows that these come from are run here, step
by step, as Python's numbers. What depends on anything else is `UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ckad.tape.control import UNBOUNDED, UNGUARDED, read_loop
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.trace.memory.instructions import UNKNOWN as UNKNOWN
from ckad.trace.memory.instructions import Instruction, Values, elementwise

#: So many rows are run at most: some tenths of a second.
MOST_ROWS = 400_000
#: Longer chains of rows are not followed.
LONGEST = 200


class Foreseen(NamedTuple):
    """What is known of a loop: a bound of its steps, and numbers after it."""

    steps: int
    is_exact: bool  # whether it makes just so many steps
    last: dict[int, Any]  # carried numbers after the loop, by their position
    most: dict[int, Any]  # the greatest of them, before, after and meanwhile


class _TooLong(Exception):
    """The rows are too many."""


def foresee(
    tape: Tape, first: Sequence[Any], wanted: Sequence[int], length: int, flag: int | None
) -> Foreseen | None:
    """Follow a loop whose body is ``tape``; ``first`` is its first carry, as far as it is known.

    ``flag`` is the position of the flag by which it goes on. None if too much would be to follow.
    """
    positions = list(wanted) if flag is None else [flag, *wanted]
    try:
        made: _Made = {}
        carried = _closed(tape, positions, len(first), made)
        step = _Steps(tape, carried, made)
        return _follow(step, carried, first, wanted, length, flag)
    except (_TooLong, ArithmeticError, LookupError, ValueError, TypeError):
        return None


def _closed(tape: Tape, positions: Sequence[int], n_carry: int, made: _Made) -> list[int]:
    """The carried values on which those at ``positions`` depend."""
    found: list[int] = []
    pending = list(positions)
    while pending:
        position = pending.pop()
        if position in found:
            continue
        found.append(position)
        inputs = _steps(tape, position, made).inputs
        pending += [k - 1 for k in inputs if 0 < k <= n_carry]
    return found


def _follow(
    step: _Steps,
    carried: Sequence[int],
    first: Sequence[Any],
    wanted: Sequence[int],
    length: int,
    flag: int | None,
) -> Foreseen | None:
    values = {k: first[k] for k in carried}
    step.settle(values)
    steady = not step.reads_index
    known = [k for k in wanted if values[k] is not UNKNOWN]
    if not known and (flag is None or values[flag] is UNKNOWN):
        return None
    most = {k: values[k] for k in known}
    budget = MOST_ROWS // max(step.size, 1)
    exact, k, lost = True, 0, set[int]()
    before: list[Any] = []
    while k < length:
        if flag is not None:
            if values[flag] is UNKNOWN:
                exact = False
            elif not values[flag]:
                break
        if steady:
            now = list(values.values())
            if _are_same(before, now):  # so will all others be
                if length >= UNBOUNDED:
                    return None
                k = length
                break
            before = now
        if k >= budget:
            return None
        inputs: dict[int, Any] = {position + 1: x for position, x in values.items()}
        inputs[0] = k
        values = dict(zip(carried, step.run(inputs), strict=True))
        k += 1
        for position in known:
            new, old = values[position], most[position]
            if new is UNKNOWN:
                most[position] = UNKNOWN
            elif old is not UNKNOWN and new > old:
                most[position] = new
        unknown = {position for position, x in values.items() if x is UNKNOWN}
        if not unknown <= lost:
            lost |= unknown
            if step.forget(unknown) >= {*wanted} and flag is None and length <= budget:
                k = length
                break
    last = {position: values[position] if exact else UNKNOWN for position in wanted}
    return Foreseen(k, exact, last, {k: most.get(k, UNKNOWN) for k in wanted})


def _are_same(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
    """Whether nothing tells the numbers apart; the zeros of either sign are told."""
    return xs == ys and list(map(repr, xs)) == list(map(repr, ys))


class _Steps:
    """The rows of a tape on which some of its outputs depend, as instructions.

    Each row has a place in the list of values that an instruction reads.
    """

    def __init__(self, tape: Tape, outputs: Sequence[int], made: _Made) -> None:
        self.tape, self._made = tape, made
        self.targets = [int(tape.outputs[k]) for k in outputs]
        self.inputs: set[int] = set()
        self.code: list[tuple[int, Instruction]] = []
        self._places: dict[int, int] = {}
        self._blank: list[Any] = []  # constants are there from the start
        self._entries: list[tuple[int, int]] = []  # place, position of the input
        self._controls: dict[int, _Control] = {}
        self._outputs = outputs
        self.size = 0
        self._rows: Sequence[Row] = tape.rows
        seen: set[int] = set()
        for target in self.targets:
            self._visit(target, seen)
        self._ends = [self._places[target] for target in self.targets]
        self.reads_index = 0 in self.inputs

    def _visit(self, target: int, seen: set[int]) -> None:
        pending = [(target, False)]
        while pending:
            k, is_ready = pending.pop()
            if is_ready:
                self._add(k)
                continue
            if k in seen:
                continue
            seen.add(k)
            if len(seen) > LONGEST:
                raise _TooLong
            pending.append((k, True))
            pending += [(x, False) for x in self._needed(k)]

    def _needed(self, k: int) -> Sequence[int]:
        row = self._rows[k]
        if row.op == Op.RESULT:
            return self._control(k).needed
        return row.operands if self._is_number(row) else ()

    def _is_number(self, row: Row) -> bool:
        return row.type.is_array and row.type.size == 1 and not row.type.shape

    def settle(self, values: dict[int, Any]) -> None:
        """Leave out what no step knows; mark what is carried and no step knows so."""
        while True:
            known = {k + 1 for k, x in values.items() if x is not UNKNOWN}
            dead = self._dead({0, *known})
            pairs = zip(self._outputs, self.targets, strict=True)
            lost = [k for k, target in pairs if target in dead and values[k] is not UNKNOWN]
            if not lost:
                break
            values.update((k, UNKNOWN) for k in lost)
        kept = {place for k, place in self._places.items() if k not in dead}
        self.code = [x for x in self.code if x[0] in kept]
        self._entries = [x for x in self._entries if x[0] in kept]
        self.reads_index = any(position == 0 for _, position in self._entries)

    def forget(self, unknown: set[int]) -> set[int]:
        """The carried values, of those unknown now, that no later step knows; what only they lead
        to is run no more."""
        while True:
            others = {k + 1 for k in self._outputs if k not in unknown}
            dead = self._dead({0, *others}, closely=True)
            pairs = zip(self._outputs, self.targets, strict=True)
            found = {k for k, target in pairs if k in unknown and target in dead}
            if found == unknown:
                break
            unknown = found
        gone = {self._places[k] for k in dead}
        self.code = [x for x in self.code if x[0] not in gone]
        return unknown

    def gives(self, known: set[int]) -> bool:
        """Whether its one output may be known if no other inputs are."""
        return self.targets[0] not in self._dead(known, closely=True)

    def _dead(self, known: set[int], closely: bool = False) -> set[int]:
        """Rows that are unknown at every step if no other inputs are known; looked at ``closely``,
        what is chosen by an unknown condition is one of two that are known, too."""
        dead: set[int] = set()
        for k in self._places:
            row, needed = self._rows[k], self._needed(k)
            if row.op == Op.INPUT:
                is_dead = row.attrs[0] not in known
            elif closely and row.op == Op.SELECT:
                is_dead = sum(x in dead for x in needed[1:]) + (needed[0] in dead) > 1
            elif closely and row.op == Op.RESULT:
                is_dead = not self._control(k).may_be_known(dead)
            elif row.op in (Op.AND, Op.OR, Op.SELECT, Op.RESULT):
                is_dead = all(x in dead for x in needed)
            else:
                is_dead = any(x in dead for x in needed) or (
                    row.op != Op.CONST and not self._is_number(row)
                )
            if is_dead:
                dead.add(k)
        return dead

    def _control(self, k: int) -> _Control:
        if k not in self._controls:
            self._controls[k] = self._made_control(k)
        return self._controls[k]

    def _made_control(self, k: int) -> _Control:
        row = self._rows[k]
        owner = self._rows[row.operands[0]]
        if owner.op == Op.COND:
            return _Cond(self.tape, owner, row.attrs[0], self._made)
        if owner.op == Op.LOOP:
            return _Loop(self.tape, owner, row.attrs[0], self._made)
        return _Control()

    def _add(self, k: int) -> None:
        row = self._rows[k]
        self.size += 1
        place = self._places[k] = len(self._blank)
        self._blank.append(UNKNOWN)
        if row.op == Op.INPUT:
            self.inputs.add(row.attrs[0])
            self._entries.append((place, row.attrs[0]))
        elif not self._is_number(row):
            return
        elif row.op == Op.CONST:
            self._blank[place] = self.tape.constants[row.attrs[0]].item()
        elif row.op == Op.RESULT:
            control = self._control(k)
            control.read(self._places)
            self.size += control.size
            self.code.append((place, control.run))
        elif OPS[row.op].group is Group.ELEMENTWISE:
            operands = [self._places[x] for x in row.operands]
            self.code.append((place, elementwise(row, operands, self._rows)))

    def run(self, inputs: Mapping[int, Any]) -> list[Any]:
        values, get = self._blank.copy(), inputs.get
        for place, position in self._entries:
            values[place] = get(position, UNKNOWN)
        for place, instruction in self.code:
            values[place] = instruction(values)
        return [values[place] for place in self._ends]


#: Those of one output of a tape: branches within branches ask for them again and again.
_Made: TypeAlias = dict[tuple[int, int], _Steps]


def _steps(tape: Tape, output: int, made: _Made) -> _Steps:
    key = id(tape), output
    if key not in made:
        made[key] = _Steps(tape, [output], made)
    return made[key]


# --- rows with bodies ----------------------------------------------------------------------------


class _Control:
    """One result of a row with bodies."""

    needed: Sequence[int] = ()
    size = 0

    def read(self, places: Mapping[int, int]) -> None:
        """Note the places of the rows that it needs."""

    def may_be_known(self, dead: set[int]) -> bool:
        """Whether it may give a number where these rows are unknown."""
        return not dead.issuperset(self.needed)

    def run(self, values: Values) -> Any:
        return UNKNOWN


class _Cond(_Control):
    def __init__(self, tape: Tape, row: Row, result: int, made: _Made) -> None:
        predicate, *operands = row.operands
        self.sides = [_steps(tape.bodies[k], result, made) for k in row.attrs[:2]]
        self.inputs = sorted({k for side in self.sides for k in side.inputs})
        self.needed = [predicate, *(operands[k] for k in self.inputs)]
        self.size = sum(side.size for side in self.sides)

    def may_be_known(self, dead: set[int]) -> bool:
        predicate, *operands = self.needed
        known = {k for k, x in zip(self.inputs, operands, strict=True) if x not in dead}
        told = any if predicate not in dead else all
        return told(side.gives(known) for side in self.sides)

    def read(self, places: Mapping[int, int]) -> None:
        self.predicate, *operands = (places[k] for k in self.needed)
        self.operands = dict(zip(self.inputs, operands, strict=True))

    def run(self, values: Values) -> Any:
        inputs = {k: values[place] for k, place in self.operands.items()}
        verdict = values[self.predicate]
        if verdict is not UNKNOWN:
            return self.sides[0 if verdict else 1].run(inputs)[0]
        one, other = (side.run(inputs)[0] for side in self.sides)
        alike = one is not UNKNOWN and other is not UNKNOWN and one == other
        return one if alike else UNKNOWN


class _Loop(_Control):
    def __init__(self, tape: Tape, row: Row, result: int, made: _Made) -> None:
        loop = read_loop(tape, row)
        self.length, self.result = loop.length, result
        self.is_plain = loop.guard == UNGUARDED and result < len(loop.carry) and not loop.xs
        if not self.is_plain:
            return
        self.carried = _closed(loop.body, [result], len(loop.carry), made)
        self.steps = _Steps(loop.body, self.carried, made)
        around = [*loop.carry, *loop.captured]
        self.inputs = {k: around[k - 1] for k in self.steps.inputs if k > 0}
        self.inputs.update((k + 1, loop.carry[k]) for k in self.carried)
        self.needed = list(self.inputs.values())
        self.size = self.steps.size * self.length

    def read(self, places: Mapping[int, int]) -> None:
        if self.is_plain:
            self.places = {k: places[row] for k, row in self.inputs.items()}

    def run(self, values: Values) -> Any:
        if not self.is_plain:
            return UNKNOWN
        inputs = {k: values[place] for k, place in self.places.items()}
        before: list[Any] = []
        for k in range(self.length):
            inputs[0] = k
            now = self.steps.run(inputs)
            for c, x in zip(self.carried, now, strict=True):
                inputs[c + 1] = x
            if not self.steps.reads_index and _are_same(before, now):
                break
            before = now
        return inputs[self.result + 1]
