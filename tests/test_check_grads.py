"""check_grads passes where derivatives are right, and fails where one is wrong by 0.05 %."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import DifferentiationError, GradientCheckError
from ckad.rules import RULES
from ckad.tape.ops import Op
from ckad.testing import check_grads
from ckad.transforms import call, reuse
from ckad.transforms.repeated import recording

from .ops.test_wrong_rule import wrong_jvp, wrong_vjp

pytestmark = pytest.mark.usefixtures("engine")

U = np.linspace(0.2, 1.4, 6)
Pair = namedtuple("Pair", ["a", "b"])


def ring(u: Any, k: Any) -> Any:
    return ckad.fori_loop(0, 7, lambda i, u: u + k * np.sin(np.roll(u, 1)), u)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scalar": (lambda x: x**3, (1.7,)),
    "elementwise": (lambda x: np.exp(x) * np.cos(x), (U,)),
    "two arguments": (lambda x, y: np.sin(x) * y, (U, 2.0)),
    "loop": (ring, (U, 0.1)),
    "sum over a loop": (lambda u, k: np.sum(ring(u, k) ** 2), (U, 0.1)),
    "tuple out": (lambda x: (np.sum(x), x[1:] * x[:-1]), (U,)),
    "dict in and out": (lambda p: {"y": p["a"] * p["b"], "z": p["b"]}, ({"a": U, "b": 3.0},)),
    "namedtuple": (lambda p: Pair(p.a @ p.b, p.b), (Pair(np.outer(U, U), U),)),
    "integer result beside": (lambda x: (x * 2.0, np.argmax(x)), (U,)),
    "zero derivative": (lambda x: x - x + 5.0, (U,)),
    "constant": (lambda x: np.floor(x), (U,)),
    "writes in place": (lambda x: _doubled(x), (U,)),
    "narrow domain": (lambda x: np.log(x), (np.array([1e-3, 1.0, 40.0]),)),
    "large values": (lambda x: 1e8 * x + np.sin(x), (1e4 * U,)),
    "small values": (lambda x: np.exp(1e6 * x), (1e-6 * U,)),
}


def _doubled(x: Any) -> Any:
    x[1:] *= 2.0
    return x * x


@pytest.fixture
def fresh_tapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No derived tape from before a rule was replaced, and none left behind."""
    tapes: OrderedDict[Any, Any] = OrderedDict()
    monkeypatch.setattr(call, "tapes", tapes)
    monkeypatch.setattr(recording, "tapes", tapes)
    monkeypatch.setattr(call, "_cache", OrderedDict())
    monkeypatch.setattr(reuse, "_kept", OrderedDict())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_right_derivatives_pass(name: str) -> None:
    fun, args = FUNCTIONS[name]
    assert check_grads(fun, args) is None


@pytest.mark.parametrize(
    "name", ["two arguments", "sum over a loop", "dict in and out", "tuple out"]
)
def test_right_second_derivatives_pass(name: str) -> None:
    fun, args = FUNCTIONS[name]
    check_grads(fun, args, order=2)


def test_third_order() -> None:
    check_grads(lambda x: np.sum(x**4), (U,), order=3)


@pytest.mark.parametrize("seed", range(5))
def test_every_seed_passes(seed: int) -> None:
    check_grads(ckad.jit(ring), (U, 0.1), seed=seed)  # at plain arrays a loop compiles each time


def test_float32() -> None:
    check_grads(ckad.jit(ring), (U.astype(np.float32), np.float32(0.1)))


def test_options_reach_the_reverse_sweep() -> None:
    check_grads(ring, (U, 0.1), memory="1 MiB", schedule="revolve", order=2)
    with pytest.raises(ckad.errors.ScheduleError):
        check_grads(ring, (U, 0.1), schedule="unheard of")


def test_arguments_are_not_changed() -> None:
    u = U.copy()
    check_grads(_doubled, (u,))
    assert np.array_equal(u, U)


# --- what is wrong is found --------------------------------------------------------------------


@pytest.mark.usefixtures("fresh_tapes")
@pytest.mark.parametrize("modes", [("rev",), ("fwd", "rev")])
def test_a_wrong_vjp_fails(modes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[Op.SIN], "vjp", wrong_vjp(RULES[Op.SIN].vjp))
    with pytest.raises(GradientCheckError, match="vjp of ring disagrees with its jvp"):
        check_grads(ring, (U, 0.1), modes)


@pytest.mark.usefixtures("fresh_tapes")
def test_a_wrong_jvp_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[Op.SIN], "jvp", wrong_jvp(RULES[Op.SIN].jvp))
    with pytest.raises(GradientCheckError, match=r"jvp of ring, result 0 is .* differences give"):
        check_grads(ring, (U, 0.1), ("fwd",))
    with pytest.raises(GradientCheckError, match="disagrees with its jvp"):
        check_grads(ring, (U, 0.1), ("rev",))


@pytest.mark.usefixtures("fresh_tapes")
@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_rule_that_only_second_order_uses_fails(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RULES[Op.COS], "vjp", wrong_vjp(RULES[Op.COS].vjp))
    monkeypatch.setattr(RULES[Op.COS], "jvp", wrong_jvp(RULES[Op.COS].jvp))
    fun = lambda x: np.sum(np.sin(x))  # noqa: E731
    check_grads(fun, (U,), (mode,))
    with pytest.raises(GradientCheckError):
        check_grads(fun, (U,), (mode,), order=2)


@pytest.mark.usefixtures("fresh_tapes")
def test_both_modes_wrong_alike_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[Op.SIN], "vjp", wrong_vjp(RULES[Op.SIN].vjp))
    monkeypatch.setattr(RULES[Op.SIN], "jvp", wrong_jvp(RULES[Op.SIN].jvp))
    with pytest.raises(GradientCheckError, match="differences give"):
        check_grads(lambda x: np.sum(np.sin(x)), (U,), ("rev",))


@pytest.mark.usefixtures("fresh_tapes")
def test_the_worst_element_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES[Op.SIN], "vjp", wrong_vjp(RULES[Op.SIN].vjp))
    x = np.array([1e-3, 0.5, 1e-3])
    with pytest.raises(GradientCheckError, match=r"Worst element: \[1\] of argument leaf 1"):
        check_grads(lambda y, x: y * np.sum(np.sin(100 * x) * x), (2.0, x))


def test_a_value_that_tracing_changes_fails() -> None:
    # without a source Python runs it, on tracers
    sees_the_tracer = eval("lambda x: 3.0 * x if hasattr(x, 'storage') else 2.0 * x")

    with pytest.raises(GradientCheckError, match="NumPy gives 2"):
        check_grads(sees_the_tracer, (np.ones(2),))


def bent(x: Any) -> Any:
    return np.where(x >= 0, x, 3 * x)


def test_a_kink_fails_and_says_so() -> None:
    with pytest.raises(GradientCheckError, match="or bent has a kink"):
        check_grads(bent, (np.zeros(2),))
    check_grads(bent, (np.array([-1.0, 2.0]),))


def test_tolerances_widen_the_bound() -> None:
    check_grads(bent, (np.zeros(2),), ("fwd",), atol=10.0)


@pytest.mark.parametrize(
    ("fun", "args", "message"),
    [
        (lambda x: x, (3,), "holds int64"),
        (lambda x: x, (np.arange(3),), "holds int64"),
        (lambda x: np.argmax(x), (U,), "returns no floats"),
    ],
)
def test_what_has_no_derivative_is_refused(fun: Any, args: Any, message: str) -> None:
    with pytest.raises(DifferentiationError, match=message):
        check_grads(fun, args)


@pytest.mark.parametrize("modes", ["fwd", (), ("forward",)])
def test_unknown_modes_are_refused(modes: Any) -> None:
    with pytest.raises(ValueError, match="modes="):
        check_grads(np.sin, (1.0,), modes)


def test_order_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="order=0"):
        check_grads(np.sin, (1.0,), order=0)


def test_check_schedule_is_here_too() -> None:
    ckad.testing.check_schedule(ckad.schedules.revolve(10, 3))


def test_arguments_come_in_a_tuple() -> None:
    with pytest.raises(TypeError, match=r"pass the arguments of fun in a tuple, \(x,\) for one"):
        check_grads(np.sin, np.ones(3))
