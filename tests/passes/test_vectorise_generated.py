"""Random loops over elements: what `vectorise` makes of them computes the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.vectorise import vectorise
from ckad.rules.evaluate import evaluate
from ckad.tape.tape import Tape
from ckad.tape.verify import verify

from .generated import Program, arguments, programs
from .recorded import recorded

adjoint = adjoint_of_tape().run

#: Of random loops, half of which leave the bounds of their arrays.
LEAST_COMPARED = 0.25


def tape_of(program: Program, inputs: list[np.ndarray]) -> Tape | None:
    try:
        return recorded(program, inputs)
    except IndexError:
        return None  # known to be out of bounds while it is recorded


def outcome(tape: Tape, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    try:
        return evaluate(tape, *inputs)
    except IndexError:
        return None


def assert_same(got: list[np.ndarray] | None, expected: list[np.ndarray] | None) -> bool:
    """Whether there were numbers to compare."""
    assert (got is None) == (expected is None)
    if any(not np.all(np.abs(e) < 1e100) for e in expected or []):
        return False  # squares of squares: rounding is all that is left
    for g, e in zip(got or [], expected or [], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(e).max()))
    return expected is not None


def replaces_the_number(program: Program) -> bool:
    """Whether ``s`` is bound anew: what was computed before is not needed, nor where it is read."""
    statements = (*program.before, *program.body, *program.after)
    return any(x.target == "s" and x.op == "=" for x in statements)


def assert_for_random_loops(
    check: Callable[[Program, Tape, list[np.ndarray]], bool], n: int, tally: Counter[str]
) -> None:
    """``check`` tells whether a tape gave numbers to compare, which many of ``n`` have to give."""

    @settings(max_examples=n, suppress_health_check=list(HealthCheck))
    @given(programs(), st.integers(0, 3))
    def judge(program: Program, seed: int) -> None:
        inputs = arguments(seed)
        tape = tape_of(program, inputs)
        compared = tape is not None and check(program, tape, inputs)
        tally["compared" if compared else "out of bounds"] += 1

    judge()
    assert tally["compared"] >= LEAST_COMPARED * tally.total()


def test_random_loops_compute_the_same(tally: Counter[str]) -> None:
    def check(program: Program, tape: Tape, inputs: list[np.ndarray]) -> bool:
        made = vectorise(tape)
        verify(made)
        expected = outcome(tape, inputs)
        if expected is None and replaces_the_number(program):
            return False
        return assert_same(outcome(made, inputs), expected)

    assert_for_random_loops(check, 150, tally)


def test_random_loops_have_the_same_gradient(tally: Counter[str]) -> None:
    def check(_: Program, tape: Tape, inputs: list[np.ndarray]) -> bool:
        if outcome(tape, inputs) is None:
            return False
        seeds = [np.cos(np.arange(t.size)).reshape(t.shape) for t in tape.output_types]
        got, expected = (outcome(adjoint(t), [*inputs, *seeds]) for t in (vectorise(tape), tape))
        return assert_same(got, expected)

    assert_for_random_loops(check, 40, tally)
