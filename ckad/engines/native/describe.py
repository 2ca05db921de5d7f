"""A nest as text: what it computes at one place of its interior, and what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ckad.engines.native.fusion import Fusion, Nest
from ckad.engines.native.nests import Shape
from ckad.engines.native.walk import At, Index, Walk
from ckad.tape.ops import Op
from ckad.tape.tape import Row

_SIGNS = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
_AXES = "ijklmnpq"


class _Text:
    """Gives each result a name, and writes a line for it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def leaf(self, k: int, index: Index) -> str:
        return f"%{k}[{', '.join(map(_at, index))}]"

    def uniform(self, k: int) -> str:
        return f"%{k}"

    def zero(self, row: Row) -> str:
        return "0"

    def apply(self, op: int, operands: Sequence[Row], out: Row, values: Sequence[str]) -> str:
        name = f"t{len(self.lines)}"
        sign = _SIGNS.get(Op(op))
        right = f" {sign} ".join(values) if sign else f"{Op(op).name.lower()}({', '.join(values)})"
        self.lines.append(f"{name} = {right}")
        return name


def _at(at: At) -> str:
    if at.axis < 0:
        return str(at.shift)
    text = _AXES[at.axis % len(_AXES)]
    if at.around:
        return f"({text} + {at.shift}) % {at.around}"
    return f"{text} {'+' if at.shift > 0 else '-'} {abs(at.shift)}" if at.shift else text


def nest_text(name: str, fusion: Fusion, nest: Nest, shape: Shape) -> str:
    """The loops of a nest and the lines inside of them."""
    return "\n".join(_lines(name, fusion, nest, shape))


def _lines(name: str, fusion: Fusion, nest: Nest, shape: Shape) -> Iterator[str]:
    axes = [f"{_AXES[a]} in [0, {n})" for a, n in enumerate(nest.shape)]
    cuts = "one pass" if shape.flat else f"borders {shape.borders}"
    yield f"{name}: for {', '.join(axes)}  # {cuts}"
    interior = [max(pairwise(b), key=lambda s: s[1] - s[0]) for b in shape.borders]
    if shape.flat:
        interior = [(0, n) for n in nest.shape]
    walk = Walk(fusion, nest, tuple(interior), text := _Text())
    stored = [f"%{k}[{', '.join(map(_at, walk.own))}] = {walk.root(k)}" for k in nest.outputs]
    summed = [f"%{k} += {walk.root(fusion.rows[k].operands[0])}" for k in nest.sums]
    for line in (*text.lines, *stored, *summed):
        yield f"    {line}"
