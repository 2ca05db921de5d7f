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
    ENGINES,
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

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")


def known(programs: Sequence[Wild]) -> list[Any]:
    """The programs as parameters; those that are refused are expected to be, in so many words."""
    return [pytest.param(p, id=p.name, marks=marks(p)) for p in programs]


def marks(wild: Wild) -> list[pytest.MarkDecorator]:
    outcome = REFUSED.get(wild.name)
    if outcome is None:
        return []
    return [pytest.mark.xfail(strict=True, raises=outcome.error, reason=outcome.says)]


@pytest.mark.parametrize("wild", known(PROGRAMS))
def test_program(wild: Wild) -> None:
    plain = Plain(wild.at(wild.small))
    vm, native = (Differentiated(plain.program, engine, plain) for engine in ENGINES)
    check_value(vm)
    check_derivatives(vm)
    check_value(native)
    check_engines_agree(vm, native)
    for run in (vm, native):
        check_arguments(run)


@pytest.mark.parametrize("wild", known(PROGRAMS))
def test_budgets_change_no_bit(wild: Wild) -> None:
    plain = Plain(wild.at(wild.small))
    run = Differentiated(plain.program, "vm", plain)
    least = least_memory(run)
    for memory in (least, 2 * least):
        for x, y in zip(run.gradient_within(memory), run.gradient, strict=True):
            np.testing.assert_array_equal(x, y)


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
    assert len(REFUSED) <= 24
