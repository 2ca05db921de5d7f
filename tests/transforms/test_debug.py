"""ckad.debug: the values of a line, at a step, in either sweep."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import PlaceError


def line_of(fun: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(fun)
    return first + next(k for k, line in enumerate(lines) if text in line)


def growth(x: Any, rate: Any) -> Any:
    def outer(i: Any, x: Any) -> Any:
        def inner(j: Any, x: Any) -> Any:
            return x + rate * x  # inner step

        return np.sin(ckad.fori_loop(0, 4, inner, x))  # outer step

    return 0.5 * np.sum(np.exp(ckad.fori_loop(0, 300, outer, x)))  # value


STEP, SINE, VALUE = (line_of(growth, f"# {w}") for w in ("inner step", "outer step", "value"))
X, RATE = np.array([0.3, 0.5]), 0.25


def before(n_outer: int, n_inner: int) -> np.ndarray:
    """The state before a step."""
    x = X
    for _ in range(n_outer):
        for _ in range(4):
            x = x + RATE * x
        x = np.sin(x)
    for _ in range(n_inner):
        x = x + RATE * x
    return x


@pytest.mark.parametrize("step", [(0, 0), (7, 3), (299, 1)])
def test_a_step_of_nested_loops(step: tuple[int, int]) -> None:
    stop = ckad.debug(growth, X, RATE, at=STEP, step=step)
    x = before(*step)
    values = {seen.origin.op: seen.value for seen in stop}
    np.testing.assert_allclose(values["mul"], RATE * x, rtol=1e-13)
    np.testing.assert_allclose(values["add"], x + RATE * x, rtol=1e-13)
    assert all(seen.steps == step for seen in stop)
    assert f"at step {step[0]} of the loop at line {VALUE}, inner step {step[1]} of" in str(stop)
    assert "return x + rate * x" in str(stop)


def test_without_a_step_the_first_one_is_shown() -> None:
    (sine,) = (s for s in ckad.debug(growth, X, RATE, at=SINE) if s.origin.op == "sin")
    assert sine.steps == (0,)
    np.testing.assert_allclose(sine.value, before(1, 0), rtol=1e-13)
    (sine,) = (s for s in ckad.debug(growth, X, RATE, at=SINE, step=5) if s.origin.op == "sin")
    np.testing.assert_allclose(sine.value, before(6, 0), rtol=1e-13)


def test_the_reverse_sweep() -> None:
    """What leaves step 0 in reverse is the gradient; the last step is the first in reverse."""
    gradient = ckad.grad(growth)(X, RATE)
    stop = ckad.debug(growth, X, RATE, at=STEP, step=(0, 0), reverse=True)
    np.testing.assert_allclose(stop[-1].value, gradient, rtol=1e-12)
    last = ckad.debug(growth, X, RATE, at=STEP, reverse=True)
    assert {seen.steps for seen in last} == {(299, 3)}
    assert "reverse sweep" in str(last)
    outside = ckad.debug(growth, X, RATE, at=VALUE, reverse=True)
    ct = 0.5 * np.exp(before(300, 0))
    assert any(np.allclose(seen.value, ct) for seen in outside)
    assert "exp" not in {seen.origin.op for seen in outside}


def test_it_runs_no_further_than_needed() -> None:
    def f(x: Any) -> Any:
        x = ckad.fori_loop(0, 2**40, lambda i, x: 0.5 * x + 1.0, x)  # never ends
        return x[np.int64(7)] if False else x

    stop = ckad.debug(f, 1.0, at=line_of(f, "never ends"), step=1000)
    assert stop[-1].value == 2.0
    assert len(stop) == 2


def test_branches_show_the_side_that_is_taken() -> None:
    def f(x: Any) -> Any:
        def one(x: Any) -> Any:
            return np.sin(x)  # one

        return ckad.cond(x > 0.0, one, lambda x: np.cos(x), x)  # other

    assert [s.origin.op for s in ckad.debug(f, 1.0, at=line_of(f, "# one"))] == ["sin"]
    assert "cos" not in {s.origin.op for s in ckad.debug(f, 1.0, at=line_of(f, "# other"))}
    with pytest.raises(PlaceError, match="were not run"):
        ckad.debug(f, -1.0, at=line_of(f, "# one"))


def test_other_files_are_named_by_their_ends() -> None:
    stop = ckad.debug(growth, X, RATE, at=f"tests/transforms/test_debug.py:{VALUE}")
    assert repr(stop).startswith("<")
    assert [s.origin.op for s in stop if s.origin.op in ("exp", "sum")] == ["exp", "sum"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": 1}, r"no op comes from test_debug.py:1\. The program has ops from test_debug"),
        ({"at": f"model.py:{STEP}"}, "but from that line of test_debug.py"),
        ({"at": STEP, "step": 300}, "were not run at step 300"),
        ({"at": STEP, "step": (2, 4)}, "were not run at step 2, inner step 4"),
        ({"at": STEP, "step": (2, 1, 0)}, "are inside of 2 loops of the tape, and step= names"),
        ({"at": "here"}, "pass the number of a line"),
    ],
)
def test_errors_say_what_there_is(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlaceError, match=message) as caught:
        ckad.debug(growth, X, RATE, **options)
    assert str(caught.value).startswith(f"{__file__}:")
