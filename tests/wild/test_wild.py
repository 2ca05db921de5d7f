"""Programs as they are found: the right value and gradient, or listed with what ckad says.

Values are NumPy's, derivatives those of differences; <Jv, w> = <v, J'w>; both engines agree, and a
budget changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError

from ..programs.oracles import Plain
from ..programs.test_programs import (
    Differentiated,
    check_arguments,
    check_derivatives,
    check_engines_agree,
    check_value,
    least_memory,
)
from .outcomes import REFUSED, REFUSED_LONG, Outcome
from .program import Size, Wild
from .registry import PROGRAMS

pytestmark = [
    pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning"),
    pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning"),
]


def known(programs: Sequence[Wild]) -> list[Any]:
    """The programs as parameters; those that are refused are expected to be, in so many words."""
    return [pytest.param(p, id=p.name, marks=marks(p)) for p in programs]


def marks(wild: Wild) -> list[pytest.MarkDecorator]:
    outcome = REFUSED.get(wild.name)
    if outcome is None:
        return []
    return [pytest.mark.xfail(strict=True, raises=outcome.error, reason=outcome.says)]


every_program = pytest.mark.parametrize("wild", known(PROGRAMS))


@pytest.mark.sampled(2)
@every_program
def test_program(wild: Wild) -> None:
    vm = by_engine(wild, "vm")
    check_value(vm)
    check_derivatives(vm)
    check_arguments(vm)


@pytest.mark.slow
@every_program
def test_engines_agree(wild: Wild) -> None:
    native = by_engine(wild, "native")
    check_value(native)
    check_engines_agree(by_engine(wild, "vm"), native)
    check_arguments(native)


@pytest.mark.slow
@every_program
def test_budgets_change_no_bit(wild: Wild) -> None:
    run = by_engine(wild, "vm")
    least = least_memory(run)
    for memory in (least, 2 * least):
        for x, y in zip(run.gradient_within(memory), run.gradient, strict=True):
            np.testing.assert_array_equal(x, y)


def by_engine(wild: Wild, engine: str) -> Differentiated:
    program = wild.at(wild.small)
    return Differentiated(program, engine, Plain(program))


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_LONG])
def test_what_is_listed_is_what_is_said(name: str) -> None:
    wild = named(name)
    if name in REFUSED:
        assert_says(wild, wild.small, REFUSED[name])
    else:
        assert_says(wild, wild.large, REFUSED_LONG[name])


def named(name: str) -> Wild:
    (wild,) = (p for p in PROGRAMS if p.name == name)
    return wild


def assert_says(wild: Wild, size: Size, outcome: Outcome) -> None:
    plain = Plain(wild.at(size))
    with pytest.raises(outcome.error) as caught:
        ckad.trace(wild.function)(*plain.arguments)
    assert outcome.says in str(caught.value).partition("\n")[0]


def test_most_are_taken() -> None:
    """A refusal more has to be meant."""
    assert len(PROGRAMS) >= 40
    assert set(REFUSED) | set(REFUSED_LONG) <= {p.name for p in PROGRAMS}
    assert not REFUSED
    assert len(REFUSED_LONG) <= 2


# --- found beside the programs: another number than NumPy's, in silence --------------------------


def else_of_try(x):
    s = 0.0
    for k in range(8):
        try:
            if x > k:
                continue
        except ValueError:
            pass
        else:
            s = s + x
    return s


def caught_division(x):
    try:
        y = 1.0 / (x - 2.0)
    except ZeroDivisionError:
        y = 0.5
    return x * y


def caught_root(x):
    try:
        return math.sqrt(x - 3.0)
    except ValueError:
        return 0.5 * x


class Tripled:
    def __get__(self, owner, kind=None):
        return owner.kept * 3

    def __set__(self, owner, value):
        owner.kept = value + 1


class Model:
    tripled = Tripled()


def descriptor(x):
    model = Model()
    model.tripled = x
    return model.tripled


@pytest.mark.parametrize("fun", [else_of_try, descriptor])
def test_python_decides(fun: Any) -> None:
    assert ckad.value_and_grad(fun)(2.0)[0] == fun(2.0)


@pytest.mark.parametrize("fun", [caught_division, caught_root])
def test_what_python_alone_raises_is_named(fun: Any) -> None:
    assert ckad.value_and_grad(fun)(5.0)[0] == fun(5.0)
    with pytest.raises(RaisedError, match="Python raises an error for these numbers that the"):
        ckad.value_and_grad(fun)(2.0)
