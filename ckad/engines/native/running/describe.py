"""A native program as text: for each of its functions the rows in registers, and the nests.

A nest is shown as what it computes at one place of its interior. Names of functions and nests are
those of the IR and the assembly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath

from ckad.engines.native.nests.boxes import Shape
from ckad.engines.native.nests.fusion import Fusion, Nest
from ckad.engines.native.nests.walk import At, Index, Walk
from ckad.engines.native.rows.writer import Emitted, Writer
from ckad.engines.native.values.registers import is_small
from ckad.place import NOWHERE
from ckad.tape.control import UNBOUNDED, Loop, ReverseLoop, read_loop, read_reverse_loop
from ckad.tape.extents import Bound
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.tape import Row, Tape
from ckad.tape.text import constant_text

_SIGNS = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
_AXES = "ijklmnpq"
INDENT = "    "


def program_text(tape: Tape, writer: Writer) -> str:
    """The functions of a program in the order in which they were written."""
    titles = {id(tape): "the program"}
    for body, title in _titles(tape):
        titles.setdefault(body, title)
    first: dict[int, str] = {}
    parts = []
    for part in writer.emitted:
        title = titles.get(id(part.tape), "the residuals alone of a last step")
        known = first.setdefault(id(part.tape), part.function)
        if known == part.function:
            parts.append("\n".join(_part(writer, part, title)))
        else:
            parts.append(f"{part.function}: {title}, as in {known}")
    return "\n\n".join(parts)


# --- what the tapes of a program are for ---------------------------------------------------------


def _titles(tape: Tape) -> Iterator[tuple[int, str]]:
    """By the ids of all bodies: what their functions do."""
    for row in tape.rows:
        if OPS[row.op].group is Group.CONTROL:
            for body, title in _bodies(tape, row):
                yield id(body), title + _place(tape, row)
    for body in tape.bodies:
        yield from _titles(body)


def _bodies(tape: Tape, row: Row) -> Iterator[tuple[Tape, str]]:
    if row.op is Op.COND:
        yes, no = (tape.bodies[k] for k in row.attrs[:2])
        yield yes, "where the condition holds"
        yield no, "where the condition does not hold"
    elif row.op is Op.REVERSE_LOOP:
        back = read_reverse_loop(tape, row)
        name = f"of loop {back.name} ({_steps(back)})"
        yield back.reverse, f"the reverse of a step {name}"
        yield back.taping, f"a step {name} run again, which keeps its residuals"
        yield back.advance, f"a step {name} run again"
    else:
        loop = read_loop(tape, row)
        name = f"of loop {loop.name} ({_steps(loop)})" if loop.taping else ""
        yield loop.body, f"a step {name or f'of a loop ({_steps(loop)})'}"
        if loop.taping:
            yield loop.taping, f"a step {name}, which keeps its residuals"


def _steps(loop: Loop | ReverseLoop) -> str:
    """How many steps a loop runs, as far as its tape says."""
    if loop.length >= UNBOUNDED:
        return "any number of steps"
    return f"{'at most ' if loop.guard else ''}{loop.length:,} steps"


def _place(tape: Tape, row: Row) -> str:
    source = tape.sources[row.source]
    return "" if source == NOWHERE else f", {PurePath(source.file).name}:{source.line}"


# --- functions ------------------------------------------------------------------------------------


def _part(writer: Writer, part: Emitted, title: str) -> Iterator[str]:
    tape, fusion = part.tape, writer.fusion(part.tape)
    yield f"{part.function}: {title}"
    yield f"{INDENT}given {_values(tape.inputs.tolist(), tape)}"
    for item in fusion.items:
        if isinstance(item, Nest):
            function, shape = writer.nest(tape, item)
            yield from (INDENT + line for line in _nest_lines(function.name, fusion, item, shape))
        elif tape.rows[item].op is not Op.INPUT and _is_written(fusion, item):
            yield INDENT + row_text(tape, item)
    yield f"{INDENT}gives {_values(tape.outputs.tolist(), tape)}"


def _is_written(fusion: Fusion, k: int) -> bool:
    """Repeated scalars and scalar constants are shown where they are read."""
    row = fusion.rows[k]
    if fusion.uniform[k] is not None and not fusion.in_memory[k]:
        return False
    return row.op is not Op.CONST or row.type.size > 1


def _values(rows: Sequence[int], tape: Tape) -> str:
    return ", ".join(f"%{k} {tape.rows[k].type}" for k in rows) or "nothing"


def row_text(tape: Tape, k: int) -> str:
    """A row as one line, with the user's place.

    >>> import numpy as np, ckad
    >>> tape = ckad.trace(lambda x: 2.0 * x)(np.ones(3))
    >>> row_text(tape, len(tape) - 1).partition("  #")[0]
    '%3 = %2 * %0 : f64[3]'
    """
    row = tape.rows[k]
    values = [_operand(tape, x) for x in row.operands]
    where = "" if is_small(row.type) or not row.type.is_array else " in memory"
    comment = _place(tape, row).replace(", ", "  # ", 1)
    return f"%{k} = {_right(tape, row, values)} : {row.type}{where}{comment}"


def _right(tape: Tape, row: Row, values: Sequence[str]) -> str:
    if row.op is Op.CONST:
        return constant_text(tape.constants[row.attrs[0]])
    return _applied(row.op, values, row.attrs if OPS[row.op].group is not Group.CONTROL else ())


def _applied(op: Op, values: Sequence[str], attrs: Sequence[int] = ()) -> str:
    """An op as one reads it in a formula."""
    if op in _SIGNS:
        return f" {_SIGNS[op]} ".join(values)
    if op == Op.FMA:
        return "{} * {} + {}".format(*values)
    if op == Op.NEG:
        return f"-{values[0]}"
    given = ", ".join(values) + (f"; {', '.join(map(str, attrs))}" if attrs else "")
    return f"{op.name.lower()}({given})"


def _operand(tape: Tape, k: int) -> str:
    row = tape.rows[k]
    if row.op is Op.CONST and row.type.size == 1:
        return constant_text(tape.constants[row.attrs[0]].reshape(()))
    return f"%{k}"


# --- nests ----------------------------------------------------------------------------------------


class _Text:
    """Gives each result a name, and writes a line for it."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.lines: list[str] = []

    def leaf(self, k: int, index: Index) -> str:
        return f"%{k}[{', '.join(map(_at, index))}]"

    def uniform(self, k: int) -> str:
        return _operand(self.tape, k)

    def zero(self, row: Row) -> str:
        return "0"

    def apply(self, op: Op, operands: Sequence[Row], out: Row, values: Sequence[str]) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {_applied(op, values)}")
        return name


def _at(at: At) -> str:
    if at.axis < 0:
        return str(at.shift)
    text = _AXES[at.axis % len(_AXES)]
    if at.around:
        return f"({text} + {at.shift}) % {at.around}"
    return f"{text} {'+' if at.shift > 0 else '-'} {abs(at.shift)}" if at.shift else text


def _places(nest: Nest, axis: int, n: int) -> str:
    """The places of an axis that a nest computes."""
    lows, highs = ["0"], [str(n)]
    for span in nest.spans or ():
        if span.axis == axis:
            lows += [_bound(x) for x in span.lows]
            highs += [_bound(x) for x in span.highs]
    first = lows[0] if len(lows) == 1 else f"max({', '.join(lows)})"
    last = highs[0] if len(highs) == 1 else f"min({', '.join(highs)})"
    return f"[{first}, {last})"


def _bound(x: Bound) -> str:
    text = f"{'-' if x.sign < 0 else ''}%{x.row}"
    return f"{text} {'+' if x.shift > 0 else '-'} {abs(x.shift)}" if x.shift else text


def _nest_lines(name: str, fusion: Fusion, nest: Nest, shape: Shape) -> Iterator[str]:
    """The loops of a nest and the lines inside of them."""
    axes = [f"{_AXES[a]} in {_places(nest, a, n)}" for a, n in enumerate(nest.shape)]
    cuts = "one pass" if shape.flat else f"borders {shape.borders}"
    yield f"{name}: for {', '.join(axes)}  # {cuts}"
    interior = [max(pairwise(b), key=lambda s: s[1] - s[0]) for b in shape.borders]
    if shape.flat:
        interior = [(0, n) for n in nest.shape]
    walk = Walk(fusion, nest, tuple(interior), text := _Text(fusion.tape))
    stored = [f"%{k}[{', '.join(map(_at, walk.own))}] = {walk.root(k)}" for k in nest.outputs]
    summed = [f"%{k} += {walk.root(fusion.rows[k].operands[0])}" for k in nest.sums]
    for line in (*text.lines, *stored, *summed):
        yield INDENT + line
