"""Value and gradient are bitwise the same under every schedule and budget, whatever ran before."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.engines import native, vm
from ckad.rules.evaluate import evaluate
from ckad.transforms.call import compiled

from ..loop_programs import REACTION, Program

pytestmark = pytest.mark.usefixtures("engine")


def logistic(x: Any, rate: Any) -> Any:
    """A scalar ODE, Euler's method."""
    return ckad.fori_loop(0, 23, lambda i, x: x + 0.1 * rate * np.sin(x) * (1.0 - x), x)


def diffusion(u: Any, kappa: Any) -> Any:
    """A stencil of slices, written in place, with a captured coefficient per cell."""

    def step(i: Any, u: Any) -> Any:
        u[1:-1] += kappa[1:-1] * 0.4 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        return u

    return np.sum(ckad.fori_loop(0, 19, step, u) ** 2)


def observed(x: Any, sources: Any, weights: Any) -> Any:
    """Sources go in at every step, observations come out at every step."""

    def step(x: Any, source: Any) -> Any:
        x = x + 0.1 * np.tanh(source - x * np.roll(x, 1))
        return x, (x**2, np.sum(x))

    x, (squares, sums) = ckad.scan(step, x, sources)
    return np.sum(weights * squares) + np.sum(np.sin(sums)) + np.sum(x)


def nested_short(x: Any, rate: Any) -> Any:
    """A short loop inside a longer one."""

    def inner(j: Any, x: Any) -> Any:
        return x + 0.05 * rate * np.sin(x) * np.roll(x, 1)

    def outer(i: Any, x: Any) -> Any:
        return ckad.fori_loop(0, 3, inner, x) * np.cos(0.1 * x)

    return np.sum(ckad.fori_loop(0, 12, outer, x) ** 3)


def nested_long(x: Any, rate: Any) -> Any:
    """A long loop inside a short one, its state another one than the outer loop's."""

    def inner(j: Any, carry: Any) -> Any:
        x, total = carry
        return x + 0.01 * rate * np.sin(x), total + np.sum(x * x)

    def outer(i: Any, x: Any) -> Any:
        x, total = ckad.fori_loop(0, 37, inner, (x, 0.0))
        return x / (1.0 + 0.01 * total)

    return np.sum(ckad.fori_loop(0, 4, outer, x) ** 2)


def three_deep(x: Any) -> Any:
    def innermost(k: Any, x: Any) -> Any:
        return x + 0.02 * np.sin(x * np.roll(x, 1))

    def inner(j: Any, x: Any) -> Any:
        return ckad.fori_loop(0, 5, innermost, x) * np.cos(0.1 * x)

    def outer(i: Any, x: Any) -> Any:
        return ckad.fori_loop(0, 4, inner, x) - 0.01 * x * x

    return np.sum(ckad.fori_loop(0, 6, outer, x) ** 2)


def in_sequence(x: Any, y: Any) -> Any:
    """Two loops of different length and state, the second over the result of the first."""
    x = ckad.fori_loop(0, 11, lambda i, x: x + 0.1 * np.sin(x) * np.roll(x, 1), x)
    y = ckad.fori_loop(0, 17, lambda i, y: y * np.cos(0.1 * y) + 0.01 * np.mean(x) * y, y)
    return np.sum(x * x) + np.sum(np.exp(-y))


def over_ys(x: Any, a: Any) -> Any:
    """A loop over what another loop left at each step."""
    x, ys = ckad.scan(lambda x, _: (np.sin(x) + a, x * x), x, length=13)
    z, zs = ckad.scan(lambda z, y: (z + np.tanh(y * z), np.sum(z)), np.ones_like(x), ys)
    return np.sum(z * x) + np.sum(zs**2)


def loop_with_ys_inside(x: Any, a: Any) -> Any:
    def outer(x: Any, _: Any) -> Any:
        x, ys = ckad.scan(lambda x, s: (x + 0.1 * np.sin(x) * s, np.sum(x * s)), x, a)
        return x * (1.0 + 0.1 * np.mean(ys)), np.max(ys)

    x, tops = ckad.scan(outer, x, length=7)
    return np.sum(x) + np.sum(tops**2)


def in_float32(u: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        return u + np.float32(0.1) * np.sin(u) * np.roll(u, 1)

    return np.sum(ckad.fori_loop(0, 15, step, u))


def integer_carry(x: Any) -> Any:
    """An index that is carried along, and decides."""

    def step(i: Any, carry: Any) -> Any:
        x, k = carry
        x = np.where(k % 3 == 0, x * np.cos(x), x + 0.1 * np.sin(x)) + 0.01 * k
        return x, (3 * k + 1) % 7

    return np.sum(ckad.fori_loop(0, 14, step, (x, 2))[0])


def by_loop_index(u: Any) -> Any:
    """The body reads and writes at the loop's own index."""

    def step(i: Any, u: Any) -> Any:
        u[i + 1] = u[i + 1] * np.sin(u[i]) + u[-1] * u[i] ** 2
        return u

    return np.sum(ckad.fori_loop(0, 18, step, u) ** 2)


_WHERE = np.array([3, 1, 3, 7])


def scattered(u: Any, w: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        v = np.sin(u)
        np.add.at(v, _WHERE, w * u[::2])
        v[_WHERE[1:3]] *= 0.5
        return v

    return np.sum(ckad.fori_loop(0, 10, step, u) ** 2)


PROGRAMS = {
    p.fun.__name__: p
    for p in (
        Program(logistic, 23, ((), ())),
        Program(diffusion, 19, ((30,), (30,))),
        REACTION,
        Program(observed, 21, ((4,), (21, 4), (21, 4))),
        Program(nested_short, 12, ((5,), ())),
        Program(nested_long, 4, ((3,), ())),
        Program(three_deep, 6, ((4,),)),
        Program(in_sequence, 17, ((3,), (6,))),
        Program(over_ys, 13, ((4,), (4,))),
        Program(loop_with_ys_inside, 7, ((3,), (11, 3))),
        Program(in_float32, 15, ((9,),), np.float32),
        Program(integer_carry, 14, ((5,),)),
        Program(by_loop_index, 18, ((20,),)),
        Program(scattered, 10, ((8,), (4,))),
    )
}
every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def same(left: Any, right: Any) -> bool:
    """Equal in every bit, in shape and in dtype."""
    a, b = ([v, *g] for v, g in (left, right))
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True)
    )


def everything_kept(program: Program, seed: int = 1) -> Any:
    return program.gradient(schedule="store_all")(*program.arguments(seed))


def families(n: int) -> list[Callable[[int], schedules.Schedule]]:
    """Ways to reverse an outermost loop, as functions of its length; n is that of the longest."""
    slots = [*range(1, min(n, 7) + 1), n - 1, n]
    periods = [1, 2, 3, n // 2, n - 1, n]
    return [
        *(lambda m, s=s: schedules.revolve(m, min(s, m)) for s in slots),
        *(lambda m, p=p: schedules.two_level(m, p) for p in periods),
        *(lambda m, p=p: schedules.two_level(m, p, ahead=True) for p in (1, 4, n - 1)),
        *(lambda m, p=p, k=k: schedules.two_level(m, p, k) for p in (2, 5) for k in (0, 1, 3)),
    ]


@every_program
def test_the_numbers_are_those_of_the_oracle(program: Program) -> None:
    arguments = program.arguments(1)
    gradient = program.gradient()
    value, gradients = gradient(*arguments)
    call, tape, _ = gradient.prepare(arguments, {})
    expected = evaluate(tape, *call.arguments.arrays)
    rtol = 1e-5 if program.dtype is np.float32 else 1e-12
    for got, want in zip([value, *gradients], expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.max(np.abs(want)))
    assert any(np.any(g != 0) for g in gradients)


@pytest.mark.sampled(2)
@every_program
def test_every_schedule(program: Program) -> None:
    arguments, expected = program.arguments(1), everything_kept(program)
    for number, family in enumerate(families(program.n_steps)):
        found = program.gradient(schedule=family)(*arguments)
        assert same(found, expected), (number, family(program.n_steps))


def test_every_number_of_slots() -> None:
    program = PROGRAMS["logistic"]
    arguments, expected = program.arguments(1), everything_kept(program)
    for slots in range(2, program.n_steps + 1):
        schedule = schedules.revolve(program.n_steps, slots)
        assert same(program.gradient(schedule=schedule)(*arguments), expected), schedule


@pytest.mark.sampled(2)
@every_program
def test_every_budget(program: Program) -> None:
    arguments, expected = program.arguments(1), everything_kept(program)
    most = program.gradient(schedule="store_all").plan(*arguments).peak_bytes
    least = minimum(program, arguments)
    for memory in np.linspace(least, most, 9, dtype=int).tolist():
        gradient = program.gradient(memory=memory)
        assert gradient.plan(*arguments).peak_bytes <= memory
        assert same(gradient(*arguments), expected), gradient.plan(*arguments)


def minimum(program: Program, arguments: list[Any]) -> int:
    with pytest.raises(ckad.errors.BudgetError) as caught:
        program.gradient(memory=1)(*arguments)
    return int(re.findall(r"to at least ([0-9,]+)", str(caught.value))[0].replace(",", ""))


@every_program
def test_one_control_after_another(program: Program) -> None:
    first, second = program.arguments(1), program.arguments(2)
    expected = [everything_kept(program, 1), everything_kept(program, 2)]
    assert not same(*expected)
    gradient = program.gradient(schedule=lambda n: schedules.revolve(n, min(n, 3)))
    assert same(gradient(*first), expected[0])
    assert same(gradient(*second), expected[1])
    assert same(gradient(*first), expected[0])


# --- after an exception --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("name", ["reaction", "nested_short", "observed", "in_sequence"])
def test_after_an_interrupt(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C somewhere in the two sweeps, delivered between two time slices."""
    program = PROGRAMS[name]
    arguments, expected = program.arguments(1), everything_kept(program)
    gradient = program.gradient(schedule=lambda n: schedules.revolve(n, min(n, 3)))
    call, tape, _ = gradient.prepare(arguments, {})
    compiled_program = compiled(tape, gradient.options)
    stop_at = int(share * compiled_program.total_steps)
    reached = []

    def interrupt(done: int) -> None:
        reached.append(done)
        if done >= stop_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(vm.machine, "SLICE", 300)
    for fuel in ("FIRST_FUEL", "MOST_FUEL"):
        monkeypatch.setattr(native.running.machine, fuel, 300)
    with pytest.raises(KeyboardInterrupt):
        compiled_program.run(call.arguments.arrays, interrupt)
    assert stop_at <= reached[-1] <= compiled_program.total_steps
    assert share > 0.5 or reached[-1] < compiled_program.total_steps
    assert same(gradient(*arguments), expected)


def test_after_an_error_in_a_sweep() -> None:
    """An index out of range at some step of one call leaves nothing behind for the next."""

    def fun(u: Any, jump: Any) -> Any:
        def step(i: Any, u: Any) -> Any:
            at = i * jump.astype(int)
            u[0] += np.sin(u[at]) * u[1]
            return u * 0.9

        return np.sum(ckad.fori_loop(0, 12, step, u) ** 2)

    u = np.linspace(0.1, 1.0, 12)
    good, bad = np.array(1.0), np.array(3.0)
    expected = ckad.value_and_grad(fun, schedule="store_all")(u, good)
    gradient = ckad.value_and_grad(fun, schedule=schedules.revolve(12, 3))
    with pytest.raises(ckad.errors.TracedIndexError, match="out of range"):
        gradient(u, bad)
    for value, wanted in zip(gradient(u, good), expected, strict=True):
        assert np.asarray(value).tobytes() == np.asarray(wanted).tobytes()


def test_after_a_nan_in_the_reverse_phase() -> None:
    """The root's derivative at zero is not finite, the value is."""

    def fun(u: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 9, lambda i, u: 0.5 * np.sqrt(u) + 0.1 * u, u))

    expected = ckad.value_and_grad(fun, schedule="store_all")(np.array([0.3, 0.7]))
    gradient = ckad.value_and_grad(fun, schedule=schedules.revolve(9, 2), check_finite=True)
    with pytest.raises(ckad.errors.NonFiniteError, match="test_bitwise"):
        gradient(np.array([0.3, 0.0]))
    value, found = gradient(np.array([0.3, 0.7]))
    assert value == expected[0]
    assert found.tobytes() == expected[1].tobytes()


def test_inputs_are_not_written_to() -> None:
    for program in PROGRAMS.values():
        arguments = program.arguments(3)
        before = [np.copy(x) for x in arguments]
        program.gradient(schedule="two_level")(*arguments)
        pairs = zip(map(np.asarray, arguments), before, strict=True)
        assert all(x.tobytes() == y.tobytes() for x, y in pairs)
