"""Programs that hypothesis draws: reverse mode agrees with forward mode, engines agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.simplify import simplify
from ckad.passes.tangent import tangent

from .checks import ENGINES, Run, assert_close, assert_same_dot
from .programs import Generated, programs

repeatable = settings(
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
#: Each program is another one to compile.
engines = pytest.mark.parametrize(
    "engine", [pytest.param(e, marks=pytest.mark.slow if e == "native" else ()) for e in ENGINES]
)


def check_modes(run: Run, program: Generated, tolerance: float = 1e-11) -> None:
    """<Jv, w> = <v, J'w> along random directions, and the values are the oracle's."""
    tape, arrays = program
    rng = np.random.default_rng(0)
    v = [np.asarray(rng.uniform(-1, 1, a.shape)) for a in arrays]
    w = [np.asarray(rng.uniform(-1, 1, t.shape)) for t in tape.output_types]
    n = len(w)
    pushed = run(tangent(tape), *arrays, *v)
    pulled = run(adjoint_of_tape(keep_outputs=True).run(tape), *arrays, *w)
    assert_close(pulled[:n], pushed[:n], tolerance, "values")
    assert_close(ENGINES["numpy"](tape, *arrays), pushed[:n], tolerance, "values of the oracle")
    assert_same_dot((pushed[n:], w), (v, pulled[n:]), tolerance, "reverse and forward mode")


@engines
@settings(repeatable, max_examples=250)
@given(program=programs(loops=0))
def test_straight_programs(engine: str, program: Generated) -> None:
    check_modes(ENGINES[engine], program)


@engines
@settings(repeatable, max_examples=200)
@given(program=programs(loops=1))
def test_programs_with_loops(engine: str, program: Generated) -> None:
    check_modes(ENGINES[engine], program)


@settings(repeatable, max_examples=40)
@given(program=programs(loops=1))
def test_some_programs_compiled(program: Generated) -> None:
    check_modes(ENGINES["native"], program)


@engines
@settings(repeatable, max_examples=40)
@given(program=programs(loops=1))
def test_second_order_through_loops(engine: str, program: Generated) -> None:
    """<u, H v> = <v, H u> for the adjoint of the tangent."""
    tape, arrays = program
    run, n, m = ENGINES[engine], len(tape.outputs), len(arrays)
    second = adjoint_of_tape(range(m), range(n, 2 * n)).run(tangent(tape))
    rng = np.random.default_rng(1)
    v, u = ([np.asarray(rng.uniform(-1, 1, a.shape)) for a in arrays] for _ in "vu")
    w = [np.asarray(rng.uniform(-1, 1, t.shape)) for t in tape.output_types]
    hv, hu = (run(second, *arrays, *d, *w) for d in (v, u))
    assert_same_dot((u, hv), (v, hu), 1e-9, "symmetry")


@settings(repeatable, max_examples=60)
@given(program=programs(loops=1))
def test_simplify_keeps_every_bit(program: Generated) -> None:
    tape, arrays = program
    run = ENGINES["numpy"]
    for before in (tape, tangent(tape, [0])):
        inputs = arrays if before is tape else (*arrays, np.ones(arrays[0].shape))
        for a, b in zip(run(before, *inputs), run(simplify(before), *inputs), strict=True):
            np.testing.assert_array_equal(a, b)
