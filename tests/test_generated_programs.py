"""Random programs: right or refused with a line, in both modes, engines, under all budgets."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import pytest

from .generated.generate import generated
from .generated.judge import FAILED, INVALID, LONG, LOOSE, REFUSED, judge, warm_up
from .generated.program import runnable

#: Programs of a test; tests of the usual run and of the long one.
PROGRAMS, USUAL, SLOW = 10, 16, 500
#: Of a hundred programs, so many may be refused, near a tie, or too long to be compiled.
MOST = {REFUSED: 15, LOOSE: 15, LONG: 4}


def checked(seed: int) -> str:
    """The outcome of a seed's program, which is not a failure."""
    warm_up()
    program = generated(seed)
    verdict = judge(program)
    if verdict.outcome in (FAILED, INVALID):
        said = f"seed {seed}: {verdict.oracle}: {verdict.message}\n"
        said += f"python -m tests.generated --seed {seed} --programs 1 shrinks it\n"
        pytest.fail(said + runnable(program), pytrace=False)
    return verdict.outcome


@pytest.fixture(scope="session")
def first_seed(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--generated-seed"))


@pytest.mark.parametrize(
    "k", [*range(USUAL), *(pytest.param(k, marks=pytest.mark.slow) for k in range(USUAL, SLOW))]
)
def test_generated_programs(k: int, first_seed: int) -> None:
    outcomes = Counter(checked(first_seed + PROGRAMS * k + j) for j in range(PROGRAMS))
    assert outcomes[REFUSED] <= PROGRAMS // 2, outcomes


@pytest.mark.slow
def test_as_long_as_asked_for(request: pytest.FixtureRequest, first_seed: int) -> None:
    """For ``--generated-seconds`` seconds, with seeds that no other test uses."""
    seconds = float(request.config.getoption("--generated-seconds"))
    end, outcomes = time.monotonic() + seconds, Counter[str]()
    for seed in itertools.count(first_seed + 1_000_000):
        if time.monotonic() > end:
            break
        outcomes[checked(seed)] += 1
    n = sum(outcomes.values())
    for outcome, most in MOST.items():
        assert n < 200 or outcomes[outcome] <= most * n / 100, outcomes
