"""Two streams of instructions in one block."""

from __future__ import annotations

from itertools import pairwise

from llvmlite import ir

from ckad.engines.native.ir.element import DOUBLE, Value
from ckad.engines.native.ir.turns import in_turns


def builder() -> ir.IRBuilder:
    function = ir.Function(ir.Module(), ir.FunctionType(DOUBLE, [DOUBLE]), "f")
    return ir.IRBuilder(function.append_basic_block())


def chain(b: ir.IRBuilder, n: int, name: str) -> list[Value]:
    value = b.function.args[0]
    for _ in range(n):
        value = b.fadd(value, value, name)
    return [value]


def order(b: ir.IRBuilder) -> str:
    return "".join(x.name[0] for x in b.function.entry_basic_block.instructions)


def test_instructions_are_spread_evenly_and_stay_in_order() -> None:
    b = builder()
    chain(b, 2, "z")
    (x,), (y,) = in_turns(b, lambda: chain(b, 3, "x"), lambda: chain(b, 6, "y"))
    chain(b, 1, "z")
    assert order(b) == "zz" + "yxyyxyyxy" + "z"
    for last in (x, y):
        stream = [i for i in b.block.instructions if i.name[0] == last.name[0]]
        assert stream[-1] is last
        assert all(a.operands[0] is before for before, a in pairwise(stream))


def test_a_stream_with_branches_stays_whole() -> None:
    b = builder()

    def branching() -> list[Value]:
        with b.if_then(b.fcmp_ordered(">", b.function.args[0], ir.Constant(DOUBLE, 0.0))):
            chain(b, 1, "x")
        return chain(b, 1, "x")

    in_turns(b, lambda: chain(b, 3, "y"), branching)
    assert order(b).startswith("yyy")
