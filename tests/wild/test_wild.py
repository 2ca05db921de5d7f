"""Programs as they are found: the right value and gradient, or listed with what ckad says.

Values are NumPy's, derivatives those of differences; <Jv, w> = <v, J'w>; both engines agree, and a
budget changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ckad

from ..programs.oracles import Plain
from ..programs.test_programs import (
    Differentiated,
    check_arguments,
    check_derivatives,
    check_engines_agree,
    check_value,
    least_memory,
)
from .outcomes import REFUSED
from .program import Wild
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


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_listed_is_what_is_said(name: str) -> None:
    (wild,) = (p for p in PROGRAMS if p.name == name)
    plain = Plain(wild.at(wild.small))
    with pytest.raises(REFUSED[name].error) as caught:
        ckad.value_and_grad(wild.function, plain.argnums)(*plain.arguments)
    assert REFUSED[name].says in str(caught.value).partition("\n")[0]


def test_most_are_taken() -> None:
    """A refusal more has to be meant."""
    assert len(PROGRAMS) >= 40
    assert set(REFUSED) <= {p.name for p in PROGRAMS}
    assert len(REFUSED) <= 16
