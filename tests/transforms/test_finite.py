"""check_finite: what is not finite is found, named, and nothing else is."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.engines import flags
from ckad.errors import NonFiniteError
from ckad.loops import driver, watch

pytestmark = pytest.mark.usefixtures("engine")
FILE = __file__


def raised(fun: Any, *args: Any, transform: Any = ckad.value_and_grad, **options: Any) -> str:
    with pytest.raises(NonFiniteError) as caught:
        transform(fun, check_finite=True, **options)(*args)
    return str(caught.value)


def line_of(fun: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(fun)
    return first + next(k for k, line in enumerate(lines) if text in line)


# --- what is found -------------------------------------------------------------------------------


def vanishing_quotient(x: Any) -> Any:
    y = 1.0 / (x - 1.0)  # infinite for 1
    return np.sum(1.0 / y)


def vanishing_overflow(x: Any) -> Any:
    return np.sum(x / np.exp(800.0 * x))


def vanishing_logarithm(x: Any) -> Any:
    return np.sum(np.maximum(np.log(x - 1.0), -1e3))


def vanishing_power(x: Any) -> Any:
    return np.sum(1.0 / (x - 1.0) ** (-2.5 * x))


VANISHING = vanishing_quotient, vanishing_overflow, vanishing_logarithm, vanishing_power


@pytest.mark.parametrize("shape", [(), (3,), (9,), (5, 31)])
@pytest.mark.parametrize("fun", VANISHING)
def test_what_vanishes_again_is_found(fun: Any, shape: tuple[int, ...]) -> None:
    harmless = 0.5 if fun is vanishing_overflow else 2.0
    assert np.isfinite(ckad.jit(fun, check_finite=True)(np.full(shape, harmless)[()]))
    x = np.full(shape, 1.0)[()]
    assert np.isfinite(ckad.jit(fun)(x))
    assert re.search("gives (a NaN|an infinity)", raised(fun, x, transform=ckad.jit))


def test_one_element_of_many_is_enough_also_in_a_helper() -> None:
    def f(u: Any) -> Any:
        return np.sum(1.0 / (1.0 / u))

    u = np.full((400, 500), 2.0)
    for threads in (1, 3):
        assert ckad.jit(f, check_finite=True, threads=threads)(u) == u.sum()
        for at in (0, 123, -1):
            v = u.copy()
            v[at, -1] = 0.0
            assert "div gives" in raised(f, v, transform=ckad.jit, threads=threads)


@pytest.mark.parametrize("options", [{}, {"memory": "10 KiB"}, {"schedule": "revolve"}])
def test_the_first_step_is_named(options: dict[str, Any]) -> None:
    def f(x: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return s + 1.0 + 0.0 / (1.0 / (s - 31.0))  # vanishes

        return np.sum(ckad.fori_loop(0, 60, step, x))

    message = raised(f, np.ones(3), **options)
    assert f"{FILE}:{line_of(f, '# vanishes')}: div gives" in message
    assert f"at step 30 of the loop at line {line_of(f, 'fori_loop')}. Look" in message
    assert "reverse" not in message


def test_nested_loops_are_told_apart() -> None:
    def f(x: Any) -> Any:
        def inner(i: Any, j: Any, s: Any) -> Any:
            return 0.5 * np.sin(s) + np.log(10.0 * i + j - 34.5 - 5.0 * np.cos(s) ** 2) * 1e-3

        def outer(i: Any, s: Any) -> Any:
            return ckad.fori_loop(0, 10, lambda j, s: inner(i, j, s), s)  # inner loop

        return ckad.fori_loop(3, 6, outer, x) + ckad.fori_loop(1, 6, outer, x)  # outer loop

    message = raised(f, 0.5)
    outer, inner = line_of(f, "# outer loop"), line_of(f, "# inner loop")
    # steps are counted from 0
    assert f"at step 0 of the loop at line {outer}, inner step 0 of the loop at line {inner}" in (
        message
    )


def test_the_reverse_sweep_is_named() -> None:
    def outside(x: Any) -> Any:
        return np.sum(np.sqrt(x))

    def inside(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 5, lambda i, s: np.sqrt(s), x))

    for f, step in ((outside, ""), (inside, "step 4 of the loop")):
        message = raised(f, np.array([1.0, 0.0]))
        assert "This is in the reverse sweep." in message
        assert step in message
    _, pullback = ckad.vjp(outside, np.array([1.0, 0.0]), check_finite=True)
    with pytest.raises(NonFiniteError, match="This is in the reverse sweep"):
        pullback(1.0)
    with pytest.raises(NonFiniteError) as caught:
        ckad.jvp(outside, (np.array([0.0]),), (np.array([1.0]),), check_finite=True)
    assert "reverse" not in str(caught.value)


# --- arguments -----------------------------------------------------------------------------------


def misfit(u: Any, observed: dict[str, Any]) -> Any:
    return np.sum((u - observed["data"]) ** 2)


def test_the_argument_is_named() -> None:
    data = np.ones((2, 3))
    data[1, 2] = np.nan
    message = raised(misfit, 2.0 * np.ones((2, 3)), {"data": data})
    assert "sub gives" in message
    assert "Argument 1 (observed) itself holds a NaN in element [1, 2]." in message
    assert "Argument 0 (u) itself holds an infinity." in raised(misfit, np.inf, {"data": 1.0})
    assert "Argument 0" in raised(np.log, np.inf)


def test_a_cotangent_is_named() -> None:
    _, pullback = ckad.vjp(lambda x: 2.0 * x, 1.0, check_finite=True)
    with pytest.raises(NonFiniteError, match="A tangent or cotangent holds a NaN"):
        pullback(np.nan)


def test_what_no_row_computes_with_is_no_error() -> None:
    def masked(u: Any, data: Any) -> Any:
        return np.sum(np.where(data > 0.0, u, 0.0)), np.minimum(u, data)

    u, data = np.ones(3), np.array([np.inf, 1.0, 2.0])
    total, least = ckad.jit(masked, check_finite=True)(u, data)
    assert total == 3.0
    np.testing.assert_array_equal(least, u)


# --- nothing else --------------------------------------------------------------------------------


def steps(x: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        return u + 0.01 * np.sin(np.roll(u, 1)) * np.log1p(u * u) - 0.002 * u**3

    return np.sum(np.tanh(ckad.fori_loop(0, 40, step, x)))


def test_bits_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise AssertionError("run row by row")

    monkeypatch.setattr(driver, "_row_by_row", fail)
    for n in (4, 100):
        x = np.linspace(-2.0, 2.0, n)
        plain, checked = ckad.value_and_grad(steps), ckad.value_and_grad(steps, check_finite=True)
        for got, expected in zip(checked(x), plain(x), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_branch_not_taken_is_no_error() -> None:
    def f(x: Any, n: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            return ckad.cond(x > 0.0, lambda s: s + 1.0 / x, lambda s: s + 1.0, s)

        return ckad.fori_loop(0, 20, body, 0.0 * x + n)

    checked = ckad.value_and_grad(f, check_finite=True)
    for _ in range(3):
        assert checked(0.0, 1.0) == (21.0, 0.0)
    assert "div gives" in raised(lambda x: 1.0 / f(x, -20.0), 0.0)


def test_a_false_alarm_is_raised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    watched = watch.Watch(ckad.trace(np.sin)(1.0), lambda x: seen.append(x) or [np.ones(1)])

    def alarm() -> list[np.ndarray]:
        flags.begin()
        float("inf") * np.zeros(1).item()
        flags.note()
        return [np.ones(1)]

    for _ in range(3):
        assert watched(alarm, [])[0] == 1.0
    assert len(seen) == int(flags.AVAILABLE) or not flags.AVAILABLE


def test_what_depends_on_constants_alone_is_found() -> None:
    zeros = np.zeros(4)

    def f(x: Any) -> Any:
        return np.sum(x + 1.0 / (1.0 / np.asarray(zeros, like=x)))

    assert "div gives an infinity in element [0]" in raised(f, np.ones(4))


def test_without_flags_every_row_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "AVAILABLE", False)
    assert "div gives" in raised(vanishing_quotient, np.ones(3))
    x = np.full(3, 2.0)
    assert ckad.jit(vanishing_quotient, check_finite=True)(x) == 3.0


def test_a_failing_callback_leaves_no_watch_behind() -> None:
    with pytest.raises(ZeroDivisionError), flags.watching():
        raise ZeroDivisionError
    flags.begin()
    flags.note()
    assert flags._local.watch is None
