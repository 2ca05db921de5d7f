"""Random loops over elements: what `vectorise` makes of them computes the same."""

from __future__ import annotations

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


def assert_same(got: list[np.ndarray] | None, expected: list[np.ndarray] | None) -> None:
    assert (got is None) == (expected is None)
    if any(not np.all(np.abs(e) < 1e100) for e in expected or []):
        return  # squares of squares: rounding is all that is left
    for g, e in zip(got or [], expected or [], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(e).max()))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 3))
def test_random_loops_compute_the_same(program: Program, seed: int) -> None:
    inputs = arguments(seed)
    tape = tape_of(program, inputs)
    if tape is None:
        return
    made = vectorise(tape)
    verify(made)
    assert_same(outcome(made, inputs), outcome(tape, inputs))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 3))
def test_random_loops_have_the_same_gradient(program: Program, seed: int) -> None:
    inputs = arguments(seed)
    tape = tape_of(program, inputs)
    if tape is None or outcome(tape, inputs) is None:
        return
    seeds = [np.cos(np.arange(t.size)).reshape(t.shape) for t in tape.output_types]
    got, expected = (outcome(adjoint(t), [*inputs, *seeds]) for t in (vectorise(tape), tape))
    assert_same(got, expected)
