"""Every op of the op table, on every engine: value, tangent, adjoint, second order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.types import type_of

from .case import Case, one_row
from .cases import OCCURS_IN, cases_of, smooth_cases, table
from .checks import (
    ENGINES,
    Program,
    check_derivatives_like_the_vm,
    check_jvp,
    check_second_order,
    check_subsets,
    check_value,
    check_value_like_the_vm,
    check_vjp,
    run_joined,
)

program = cache(Program)
engines = pytest.mark.parametrize("engine", ENGINES)
#: How many cases of an op the native engine compiles as one program.
TOGETHER = 12
most = pytest.mark.parametrize(
    "engine", [pytest.param(e, marks=pytest.mark.slow if e == "native" else ()) for e in ENGINES]
)


def of_each(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """A test for each op that has cases: they are thousands, and each test of pytest takes time."""
    return pytest.mark.parametrize("op", dict.fromkeys(c.op for c in cases), ids=lambda op: op.name)


every_op, smooth_op = of_each(table()), of_each(smooth_cases())
several_operands = [case for case in smooth_cases() if len(case.active) > 1]


def smooth_programs(op: Op) -> list[Program]:
    return [program(case) for case in cases_of(op) if program(case).is_smooth]


def in_pieces(op: Op) -> list[Sequence[Case]]:
    """Cases of an op that are compiled together. Taped loops share their names: each is alone."""
    cases, n = cases_of(op), 1 if op.row.group is Group.CONTROL else TOGETHER
    return [cases[k : k + n] for k in range(0, len(cases), n)]


def test_no_op_is_missing_from_the_table() -> None:
    named = {case.op for case in table()}
    assert named | set(OCCURS_IN) == set(OPS) - {Op.CALL}  # routines have tests of their own
    assert set(OCCURS_IN.values()) <= named


@pytest.mark.parametrize("op", OCCURS_IN, ids=lambda op: op.name)
def test_ops_without_cases_occur_where_the_table_says(op: Op) -> None:
    def occurs(case: Case) -> bool:
        tape = program(case).adjoint
        return any(row.op is op for t in (tape, *tape.bodies) for row in t.rows)

    assert any(occurs(case) for case in cases_of(OCCURS_IN[op]))


def test_every_op_with_a_derivative_has_smooth_cases() -> None:
    differentiable = {op for op, rule in RULES.items() if rule.jvp is not None} - {Op.CALL}
    assert differentiable <= {case.op for case in smooth_cases()}
    assert all((rule.jvp is None) == (rule.vjp is None) for rule in RULES.values())


def test_case_names_are_unique() -> None:
    names = [case.name for case in table()]
    assert sorted(set(names)) == sorted(names)


@most
@every_op
def test_value(engine: str, op: Op) -> None:
    for case in cases_of(op):
        check_value(engine, program(case))


@most
@smooth_op
def test_first_order(engine: str, op: Op) -> None:
    for made in smooth_programs(op):
        check_jvp(ENGINES[engine], made)
        check_vjp(ENGINES[engine], made)


@pytest.mark.sampled(2)
@most
@smooth_op
def test_second_order(engine: str, op: Op) -> None:
    for made in smooth_programs(op):
        check_second_order(ENGINES[engine], made)


@most
@of_each(several_operands)
def test_subsets(engine: str, op: Op) -> None:
    for case in several_operands:
        if case.op is op:
            check_subsets(ENGINES[engine], program(case))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cases", [c for op in Op for c in in_pieces(op)], ids=lambda c: str(c[0]))
def test_native(cases: Sequence[Case]) -> None:
    """Value, tangent and adjoint, compiled as one program: right, and the vm's to 4 ulp."""
    made = [program(case) for case in cases]
    run = run_joined(ENGINES["native"], made)
    for each in made:
        check_value("native", each, run)
        check_value_like_the_vm(run, each)
        if each.is_smooth:
            check_jvp(run, each)
            check_vjp(run, each)
            check_derivatives_like_the_vm(run, each)


# --- what stands outside of the table ----------------------------------------------------------


@engines
@pytest.mark.parametrize("index", [7, -8, 2**40])
def test_wrap_stops_at_an_index_out_of_range(engine: str, index: int) -> None:
    case = Case("WRAP", Op.WRAP, (np.array([0, index, 3]),), one_row(Op.WRAP, (7,)), lambda x: x)
    with pytest.raises(IndexError):
        ENGINES[engine](case.tape(), *case.arrays)


@engines
def test_inputs_are_never_written_to(engine: str) -> None:
    x, y = np.arange(6.0), np.ones(2)
    b = Builder()
    xs = [b.input(type_of(a)) for a in (x, y)]
    tape = b.tape([b.update(*xs, attrs=(1, 2)), b.slice_add(*xs, attrs=(0, 1))])
    ENGINES[engine](tape, x, y)
    np.testing.assert_array_equal(x, np.arange(6.0))
    np.testing.assert_array_equal(y, np.ones(2))


@engines
def test_results_of_one_tape_do_not_share_memory(engine: str) -> None:
    b = Builder()
    x = b.input(type_of(np.ones(3)))
    first, second = ENGINES[engine](b.tape([b.exp(x), b.neg(b.neg(x))]), np.ones(3))
    first[:] = 7.0
    np.testing.assert_array_equal(second, np.ones(3))
