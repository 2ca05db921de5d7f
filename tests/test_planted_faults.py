"""Faults planted in passes and engines are found by the generated programs of the usual run."""

from __future__ import annotations

import pytest

from .generated.faults import FAULTS, planted
from .generated.generate import generated
from .generated.judge import FAILED, judge
from .test_generated_programs import PROGRAMS, USUAL


@pytest.mark.parametrize("what", FAULTS)
def test_is_found(what: str) -> None:
    seed = FAULTS[what].seed
    assert seed in range(PROGRAMS * USUAL)
    with planted(what):
        verdict = judge(generated(seed))
    assert verdict.outcome == FAILED, verdict


def test_there_are_enough() -> None:
    assert len(FAULTS) >= 20
