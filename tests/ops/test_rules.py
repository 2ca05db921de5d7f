"""Every op of the op table, on every engine: value, tangent, adjoint, second order."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import OPS, Op
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
#: Thousands of small programs take minutes to compile one by one.
most = pytest.mark.parametrize(
    "engine", [pytest.param(e, marks=pytest.mark.slow if e == "native" else ()) for e in ENGINES]
)
smooth = pytest.mark.parametrize("case", smooth_cases(), ids=str)


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
@pytest.mark.parametrize("case", table(), ids=str)
def test_value(engine: str, case: Case) -> None:
    check_value(engine, program(case))


@most
@smooth
def test_first_order(engine: str, case: Case) -> None:
    check_jvp(ENGINES[engine], program(case))
    check_vjp(ENGINES[engine], program(case))


@most
@smooth
def test_second_order(engine: str, case: Case) -> None:
    check_second_order(ENGINES[engine], program(case))


@most
@pytest.mark.parametrize("case", [c for c in smooth_cases() if len(c.active) > 1], ids=str)
def test_subsets(engine: str, case: Case) -> None:
    check_subsets(ENGINES[engine], program(case))


@pytest.mark.parametrize("case", table(), ids=str)
def test_native(case: Case) -> None:
    """Value, tangent and adjoint, compiled as one program: right, and the vm's to 4 ulp."""
    made, run = program(case), ENGINES["native"]
    smooth = case in smooth_cases()
    if smooth:
        run = run_joined(run, made)
    check_value("native", made, run)
    check_value_like_the_vm(run, made)
    if smooth:
        check_jvp(run, made)
        check_vjp(run, made)
        check_derivatives_like_the_vm(run, made)


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
