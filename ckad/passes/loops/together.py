"""Loops that are alike and do not wait for one another are the steps of one loop.

A helper that is called a hundred times in code that is written out leaves a hundred loops with the
same body. As the steps of one loop around it they are derived, lowered and compiled once: what
differs between them is stacked and read step by step, what is the same for all is captured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ckad.passes.rewrite import in_bodies
from ckad.tape.builder import Builder
from ckad.tape.control import UNBOUNDED, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Row, Source, Tape
from ckad.tape.types import DType, Type

#: So many loops, and rows of all of them, are worth it: few loops are faster one by one.
LEAST, ROWS = 8, 500
#: Elements of what differs, per loop: larger arrays would be copied to be stacked.
FEW = 1_024


def together(tape: Tape) -> Tape:
    """``tape`` with its alike loops, those in bodies too, as one each."""
    if _in_all(tape) < ROWS:
        return tape
    tape = in_bodies(tape, together)
    if _calls_python(tape):  # what such calls do would come in another order
        return tape
    while group := _alike(tape):
        tape = _joined(tape, group)
    return tape


def _in_all(tape: Tape) -> int:
    """Rows, counted as often as they are written out."""
    return len(tape) + sum(map(_in_all, tape.bodies))


def _calls_python(tape: Tape) -> bool:
    own = any(row.op is Op.CALL and routine_of(row).compiled is None for row in tape.rows)
    return own or any(map(_calls_python, tape.bodies))


def _alike(tape: Tape) -> list[int]:
    """Loops that are alike, none of which follows from another; none if there are no such."""
    kinds = defaultdict[object, list[int]](list)
    for k, row in enumerate(tape.rows):
        if row.op is Op.LOOP:
            operands = tuple(tape.rows[x].type for x in row.operands)
            identity = tape.bodies[row.attrs[0]].identity
            kinds[identity, row.attrs[1:], operands, tape.source_of(k)].append(k)
    for loops in kinds.values():
        if not _is_worth(tape, loops):
            continue
        waves = defaultdict[int, list[int]](list)
        for k, wave in zip(loops, _waves(tape, loops), strict=True):
            waves[wave].append(k)
        longest = max(waves.values(), key=len)
        if _is_worth(tape, longest) and _is_small(tape, longest):
            return longest
    return []


def _is_worth(tape: Tape, loops: Sequence[int]) -> bool:
    body = tape.bodies[tape.rows[loops[0]].attrs[0]]
    return len(loops) >= LEAST and len(loops) * _in_all(body) >= ROWS


def _waves(tape: Tape, loops: Sequence[int]) -> list[int]:
    """How many of the loops come one after the other before each of them."""
    own, waves = set(loops), list[int]()
    for row in tape.rows:
        waves.append(max((waves[x] + (x in own) for x in row.operands), default=0))
    return [waves[k] for k in loops]


def _is_small(tape: Tape, loops: Sequence[int]) -> bool:
    """Whether what is stacked is."""
    row = tape.rows[loops[0]]
    loop = read_loop(tape, row)
    stacked = loop.length if loop.n_ys else 1
    results = [t.size for t in loop.body.output_types[: len(loop.carry)]]
    results += [stacked * t.size for t in loop.body.output_types[len(loop.carry) :]]
    given = [tape.rows[xs[0]].type.size for xs in _columns(tape, loops) if _differ(xs)]
    return stacked < UNBOUNDED and max([*results, *given], default=0) <= FEW


def _columns(tape: Tape, loops: Sequence[int]) -> list[tuple[int, ...]]:
    """The operands of the loops, place by place."""
    return list(zip(*(tape.rows[k].operands for k in loops), strict=True))


def _differ(xs: Sequence[int]) -> bool:
    return len(set(xs)) > 1


# --- one loop for all -----------------------------------------------------------------------------


def _joined(tape: Tape, loops: Sequence[int]) -> Tape:
    """What does not follow from the loops up to the last of them; then all of them; the rest."""
    own, last = set(loops), loops[-1]
    b, env, later = Builder(), dict[int, int](), list[int]()
    waiting = set(loops)
    for k, row in enumerate(tape.rows[:last]):
        if k in own:
            continue
        if waiting.isdisjoint(row.operands):
            env[k] = b.copy_row(tape, k, env)
        else:
            waiting.add(k)
            later.append(k)
    results = _around(b, tape, loops, env)
    for k in (*later, *range(last + 1, len(tape))):
        row = tape.rows[k]
        if row.op is Op.RESULT and row.operands[0] in own:
            b.where = tape.sources[row.source]
            at = loops.index(row.operands[0])
            env[k] = _part(b, results[row.attrs[0]], at, row.type)
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _around(b: Builder, tape: Tape, loops: Sequence[int], env: dict[int, int]) -> list[int]:
    """The loop over the loops; what each of them gives, stacked."""
    row = tape.rows[loops[0]]
    b.where = tape.sources[row.source]
    columns = _columns(tape, loops)
    xs = [[env[x] for x in column] for column in columns if _differ(column)]
    same = [env[column[0]] for column in columns if not _differ(column)]
    stacks = [_stack(b, column) for column in xs]
    body = _body(b.where, tape, row, columns)
    types = [t.with_shape((len(loops), *t.shape)) for t in body.output_types]
    attrs = loop_attrs(b.body(body), len(loops), 0, len(stacks))
    return b.control(Op.LOOP, [*stacks, *same], attrs, types)


def _stack(b: Builder, xs: Sequence[int]) -> int:
    """What lies in order in one stack already, as what other loops gave, is that."""
    shape = b.type(xs[0]).shape
    whole = {_is_part(b, x, at) for at, x in enumerate(xs)}
    found = whole.pop() if len(whole) == 1 else None
    if found is not None and b.type(found).shape == (len(xs), *shape):
        return found
    return b.concat(*(b.reshape_to(x, (1, *shape)) for x in xs), attrs=(0,))


def _part(b: Builder, stack: int, at: int, type: Type) -> int:
    one = type.with_shape((1, *type.shape))
    part = b.slice(stack, attrs=_attrs(at, type), type=one)
    return b.reshape_to(part, type.shape)


def _is_part(b: Builder, x: int, at: int) -> int | None:
    """The stack of which ``x`` is the part at ``at``, as `_part` reads it."""
    row = b.rows[x]
    part = b.rows[row.operands[0]] if row.op is Op.RESHAPE else row
    is_one = part.op is Op.SLICE and part.type.shape == (1, *row.type.shape)
    return part.operands[0] if is_one and part.attrs == _attrs(at, row.type) else None


def _attrs(at: int, part: Type) -> tuple[int, ...]:
    """Where a slice of a stack begins, and its steps."""
    n = len(part.shape)
    return (at, *[0] * n, *[1] * (n + 1))


def _body(where: Source, tape: Tape, row: Row, columns: Sequence[Sequence[int]]) -> Tape:
    """One of the loops, as a step: of (i, what differs, what is the same)."""
    b = Builder()
    b.where = where
    b.input(Type(DType.I64, ()))
    inputs = dict[int, int]()
    for differ in (True, False):
        for at, column in enumerate(columns):
            if _differ(column) is differ:
                inputs[at] = b.input(tape.rows[column[0]].type)
    loop = read_loop(tape, row)
    n = len(loop.carry)
    carried, given = loop.body.output_types[:n], loop.body.output_types[n:]
    stacked = [t.with_shape((loop.length, *t.shape)) for t in given]
    attrs = (b.body(loop.body), *row.attrs[1:])
    operands = [inputs[at] for at in range(len(columns))]
    return b.tape(b.control(Op.LOOP, operands, attrs, [*carried, *stacked]))
