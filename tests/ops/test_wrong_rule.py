"""Tests of the tests: a rule that is wrong by 0.05 %, or forgets a part, is found for every op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ckad.rules import RULES, Contribution
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.ops import Op

from .case import Case
from .cases import smooth_cases
from .checks import Program, check_jvp, check_second_order, check_value, check_vjp

Tangents = Sequence[int | None]
OFF = 1.0005
FAILS = pytest.raises(AssertionError)


def _has_derivative(case: Case) -> bool:
    return case.op in RULES and RULES[case.op].jvp is not None and case.arrays[0].size > 1


#: per op its first case in float64 that is an array and whose derivative is not zero
SMALLEST: dict[Op, Case] = {}
for _case in filter(_has_derivative, smooth_cases()):
    SMALLEST.setdefault(_case.op, _case)
every_op = pytest.mark.parametrize("op", SMALLEST, ids=lambda op: op.name)


def _operands() -> list[tuple[Op, int]]:
    """Every op of several operands with the positions of those that it has a derivative by."""
    found = []
    for op, case in SMALLEST.items():
        program = Program(case)
        moved = zip(case.active, program.vjp(evaluate, program.w), strict=True)
        found += [(op, k) for k, ct in moved if len(case.active) > 1 and ct.any()]
    return found


def _scaled(b: Builder, x: int) -> int:
    return b.mul(x, b.full_like(x, OFF))


def _wrong(contribution: Contribution) -> Contribution:
    """The contribution times 1.0005, also where it is added in place."""
    if contribution is None:
        return None
    if callable(contribution):
        return lambda b, so_far: _plus(b, so_far, _scaled(b, contribution(b, None)))
    return contribution


def _plus(b: Builder, so_far: int | None, x: int) -> int:
    return x if so_far is None else b.add(so_far, x)


def wrong_vjp(rule: Callable[..., Any]) -> Callable[..., Any]:
    def pull(b: Builder, ct: int, out: int, *operands: int, attrs: Any = ()) -> list[Contribution]:
        right = rule(b, ct, out, *operands, attrs=attrs)
        return [_scaled(b, c) if isinstance(c, int) else _wrong(c) for c in right]

    return pull


def wrong_jvp(rule: Callable[..., Any]) -> Callable[..., Any]:
    def push(b: Builder, tangents: Tangents, out: int, *xs: int, attrs: Any = ()) -> Any:
        right = rule(b, tangents, out, *xs, attrs=attrs)
        return None if right is None else _scaled(b, right)

    return push


def forgetful_vjp(rule: Callable[..., Any], k: int) -> Callable[..., Any]:
    """Nothing is passed to operand ``k``."""

    def pull(b: Builder, ct: int, out: int, *operands: int, attrs: Any = ()) -> list[Contribution]:
        right = list(rule(b, ct, out, *operands, attrs=attrs))
        right[k] = None
        return right

    return pull


def forgetful_jvp(rule: Callable[..., Any], k: int) -> Callable[..., Any]:
    def push(b: Builder, tangents: Tangents, out: int, *xs: int, attrs: Any = ()) -> Any:
        rest = [None if j == k else t for j, t in enumerate(tangents)]
        return rule(b, rest, out, *xs, attrs=attrs)

    return push


@every_op
def test_the_right_rule_passes(op: Op) -> None:
    program = Program(SMALLEST[op])
    check_value("numpy", program)
    check_jvp(evaluate, program)
    check_vjp(evaluate, program)
    check_second_order(evaluate, program)


@every_op
def test_a_wrong_vjp_fails(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[op], "vjp", wrong_vjp(RULES[op].vjp))
    with FAILS:
        check_vjp(evaluate, Program(SMALLEST[op]))


@every_op
def test_a_wrong_jvp_fails(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[op], "jvp", wrong_jvp(RULES[op].jvp))
    with FAILS:
        check_jvp(evaluate, Program(SMALLEST[op]))
    with FAILS:
        check_vjp(evaluate, Program(SMALLEST[op]))


@pytest.mark.parametrize(("op", "k"), _operands(), ids=lambda x: getattr(x, "name", None))
def test_a_forgotten_contribution_fails(op: Op, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = RULES[op].vjp, RULES[op].jvp
    monkeypatch.setattr(RULES[op], "vjp", forgetful_vjp(right[0], k))
    with FAILS:
        check_vjp(evaluate, Program(SMALLEST[op]))
    monkeypatch.setattr(RULES[op], "jvp", forgetful_jvp(right[1], k))
    # now both modes are wrong alike and agree with each other; NumPy tells
    with FAILS:
        check_jvp(evaluate, Program(SMALLEST[op]))


@pytest.mark.parametrize("op", [Op.SIN, Op.DIV, Op.POW, Op.TANH, Op.MATMUL], ids=lambda op: op.name)
def test_a_wrong_jvp_fails_at_second_order(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[op], "jvp", wrong_jvp(RULES[op].jvp))
    with FAILS:
        check_second_order(evaluate, Program(SMALLEST[op]))


def test_a_wrong_rule_fails_inside_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = next(case for case in smooth_cases() if case.name == "LOOP-f64-driven-7-of-4")
    check_vjp(evaluate, Program(driven))
    monkeypatch.setattr(RULES[Op.SIN], "vjp", wrong_vjp(RULES[Op.SIN].vjp))
    with FAILS:
        check_vjp(evaluate, Program(driven))


def test_a_wrong_value_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = RULES[Op.EXP].evaluate
    wrong = lambda type, attrs, x: right(type, attrs, x) * (1 + 8 * np.finfo(float).eps)  # noqa: E731
    monkeypatch.setattr(RULES[Op.EXP], "evaluate", wrong)
    with FAILS:
        check_value("numpy", Program(SMALLEST[Op.EXP]))
