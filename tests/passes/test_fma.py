"""Fused multiply-add: what it computes, which rows it takes, and that every schedule agrees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.errors import BudgetError
from ckad.loops.driver import Options, compile_tape
from ckad.passes.fma import fma
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.rewrite import bind, with_outputs
from ckad.passes.simplify import simplify
from ckad.passes.tangent import tangent
from ckad.passes.untape import untape
from ckad.rules import RULES
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import parse_type, type_of
from ckad.tape.verify import verify
from ckad.trace.arguments import take_apart
from ckad.trace.record import record

from ..loop_programs import REACTION, Program

# --- the op ------------------------------------------------------------------------------------

SPECIAL = np.array([0.0, 1.0, 1e308, 5e-324, 2.0**-1000, 1 + 2.0**-52, np.inf, np.nan])
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def draws(low: int, high: int, seed: int) -> list[np.ndarray]:
    """Three operands with exponents from ``low`` to ``high``; often the sum nearly cancels."""
    rng, n = np.random.default_rng(seed), 2000

    def draw() -> np.ndarray:
        return np.ldexp(rng.uniform(-2, 2, n), rng.integers(low, high, n))

    with np.errstate(all="ignore"):
        x, y, z = draw(), draw(), draw()
        near = -x * y * (1 + rng.integers(-3, 3, n) * 2.0**-52)
    return [x, y, np.where(rng.random(n) < 0.5, near, z)]


OPERANDS = {
    "special": [v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL, SPECIAL)],
    **{f"2^{a} to 2^{b}": draws(a, b, b) for a, b in ((-3, 3), (-60, 60), (-600, 600))},
    "products that underflow": draws(-560, -480, 1),
    "products that overflow": draws(490, 515, 2),
    "every float": draws(-1074, 1023, 3),
}
operands = pytest.mark.parametrize("xs", OPERANDS.values(), ids=OPERANDS)


def fused(*xs: np.ndarray) -> np.ndarray:
    rule = RULES[Op.FMA].evaluate
    assert rule is not None
    return rule(type_of(xs[0]), (), *xs)


def same(left: Any, right: Any) -> bool:
    """Equal in every bit, any NaN taken for any other."""
    x, y = np.asarray(left), np.asarray(right)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    either = np.isnan(x) & np.isnan(y)
    return np.where(either, 0, x).tobytes() == np.where(either, 0, y).tobytes()


@operands
def test_it_rounds_once(xs: list[np.ndarray]) -> None:
    finite = np.all(np.isfinite(xs), axis=0)
    xs = [x[finite] for x in xs]
    with mpmath.workprec(6000):
        exact = [mpmath.mpf(x) * mpmath.mpf(y) + mpmath.mpf(z) for x, y, z in zip(*xs, strict=True)]
        # mpmath has no largest or smallest exponent; Python's division of integers does
        expected = [rounded(v) for v in exact]
    found = fused(*xs)
    assert np.array_equal(found, expected)


def rounded(exact: Any) -> float:
    mantissa, exponent = (int(v) for v in exact.man_exp)
    sign = -1 if exact < 0 else 1
    try:
        size = float(mantissa << exponent) if exponent >= 0 else mantissa / (1 << -exponent)
    except OverflowError:
        size = np.inf
    return sign * size


@operands
def test_the_vm_computes_the_same_bits(xs: list[np.ndarray]) -> None:
    assert same(by_vm(*xs), fused(*xs))


def test_float32_goes_through_float64() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.uniform(-2, 2, (2, 5000)).astype(np.float32)
    z = (-x * y * (1 + rng.integers(-3, 3, 5000) * 2.0**-23)).astype(np.float32)
    expected = (x.astype(float) * y + z).astype(np.float32)
    assert same(fused(x, y, z), expected)
    assert same(by_vm(x, y, z), expected)


def by_vm(*xs: np.ndarray) -> np.ndarray:
    b = Builder()
    tape = b.tape([b.fma(*(b.input(type_of(x)) for x in xs))])
    return compile_tape(tape, Options())(xs)[0]


# --- the pass ----------------------------------------------------------------------------------


def lorenz(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
    """Runge-Kutta 4, ten steps."""

    def rate(u: Sequence[Any]) -> list[Any]:
        x, y, z = u
        return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

    def step(i: Any, u: Sequence[Any]) -> tuple[Any, ...]:
        h = 0.01
        k1 = rate(u)
        k2 = rate([a + h / 2 * k for a, k in zip(u, k1, strict=True)])
        k3 = rate([a + h / 2 * k for a, k in zip(u, k2, strict=True)])
        k4 = rate([a + h * k for a, k in zip(u, k3, strict=True)])
        return tuple(
            a + h / 6 * (p + 2 * q + 2 * r + s)
            for a, p, q, r, s in zip(u, k1, k2, k3, k4, strict=True)
        )

    x, y, z = ckad.fori_loop(0, 10, step, (x, y, z))
    return x * y + z * z


def count(tape: Tape) -> Counter[str]:
    return Counter(row.op.name for row in tape.rows)


def test_rows_of_a_lorenz_step() -> None:
    tape = recorded(PROGRAMS["lorenz"])
    before, after = count(tape.bodies[0]), count(fma(tape).bodies[0])
    assert after["FMA"] == 27
    assert before["MUL"] - after["MUL"] == 27
    assert before["ADD"] + before["SUB"] - after["ADD"] - after["SUB"] == 27
    adjoint_of = [adjoint_of_tape(seeds=[0], contract=c).run(fma(tape)) for c in (False, True)]
    plain, contracted = (count(reverse_body(t)) for t in adjoint_of)
    assert contracted["FMA"] - plain["FMA"] == plain["MUL"] - contracted["MUL"] > 25
    assert contracted["MUL"] + contracted["FMA"] == plain["MUL"] + plain["FMA"]


def reverse_body(tape: Tape) -> Tape:
    row = next(row for row in tape.rows if row.op is Op.REVERSE_LOOP)
    return tape.bodies[row.attrs[2]]


FORMS: dict[str, tuple[Callable[..., int], list[str]]] = {
    "x y + z": (lambda b, x, y, z: b.add(b.mul(x, y), z), ["FMA"]),
    "z + x y": (lambda b, x, y, z: b.add(z, b.mul(x, y)), ["FMA"]),
    "x y - z": (lambda b, x, y, z: b.sub(b.mul(x, y), z), ["NEG", "FMA"]),
    "z - x y": (lambda b, x, y, z: b.sub(z, b.mul(x, y)), ["NEG", "FMA"]),
    "z - x (-y)": (lambda b, x, y, z: b.sub(z, b.mul(x, b.neg(y))), ["FMA"]),
    "x x + y z": (lambda b, x, y, z: b.add(b.mul(x, x), b.mul(y, z)), ["MUL", "FMA"]),
    "(x y + y z) + x z": (
        lambda b, x, y, z: b.add(b.add(b.mul(x, y), b.mul(y, z)), b.mul(x, z)),
        ["MUL", "FMA", "FMA"],
    ),
    "roll(x y) + z": (
        lambda b, x, y, z: b.add(b.roll(b.mul(x, y), attrs=(1, 0)), z),
        ["MUL", "ROLL", "ADD"],
    ),
    "(x y + z) (x y)": (
        lambda b, x, y, z: b.mul(b.add(p := b.mul(x, y), z), p),
        ["MUL", "ADD", "MUL"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_forms(form: str, dtype: str) -> None:
    make, expected = FORMS[form]
    b = Builder()
    tape = b.tape([make(b, *(b.input(parse_type(f"{dtype}[5]")) for _ in range(3)))])
    changed = verify(simplify(fma(tape)))
    assert [row.op.name for row in changed.rows if row.op is not Op.INPUT] == expected
    xs = np.random.default_rng(5).uniform(1, 2, (3, 5)).astype(changed.input_types[0].numpy)
    found, wanted = evaluate(changed, *xs)[0], evaluate(tape, *xs)[0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8 * np.finfo(xs.dtype).eps)


def test_integers_and_products_that_are_returned_stay() -> None:
    b = Builder()
    i, x = b.input(parse_type("i64[3]")), b.input(parse_type("f64[3]"))
    product = b.mul(x, x)
    tape = b.tape([b.add(b.mul(i, i), i), b.add(product, x), product])
    assert fma(tape).digest == tape.digest


def test_the_sign_of_a_constant_is_changed_in_the_constant() -> None:
    b = Builder()
    x, z = b.input(parse_type("f64[3]")), b.input(parse_type("f64[3]"))
    tape = b.tape([b.sub(z, b.mul(x, b.full_like(x, 3.0)))])
    changed = simplify(fma(tape))
    assert count(changed) == {"INPUT": 2, "CONST": 1, "BROADCAST": 1, "FMA": 1}
    assert changed.constants == (-3.0,)


def test_constants_are_rounded_once() -> None:
    b = Builder()
    x = b.const(1 + 2.0**-30)
    tape = simplify(b.tape([b.fma(x, x, b.const(-(1 + 2.0**-29)))]))
    assert tape.constants == (2.0**-60,)


# --- programs ----------------------------------------------------------------------------------


def diffusion(u: Any, kappa: Any) -> Any:
    """A stencil of slices, written in place, observed at every step."""

    def step(u: Any, _: Any) -> Any:
        u = u.copy()
        u[1:-1] += kappa[1:-1] * 0.4 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1] - 0.1 * u[1:-1] ** 2
        return u, np.sum(u * u - kappa * u)

    u, ys = ckad.scan(step, u, length=19)
    return np.sum(u**2) - np.sum(ys * ys)


def nested(x: Any, rate: Any, sources: Any) -> Any:
    """Loops inside a loop, driven from outside, with quotients, roots and a branch."""

    def inner(x: Any, source: Any) -> Any:
        x = x - 0.05 * rate * np.sin(x) * np.roll(x, 1) + 0.1 * source * x
        return x, x * source - rate * x

    def outer(i: Any, x: Any) -> Any:
        x, ys = ckad.scan(inner, x, sources)
        x = ckad.cond(
            x[0] * x[1] - x[2] > 0.1,
            lambda x: x * np.cos(x) - 0.3 * x * x,
            lambda x: np.sqrt(x * x + 1.0) - 0.1 * x * np.tan(0.1 * x),
            x,
        )
        return x / (1.0 + 0.1 * np.sum(ys * ys))

    return np.sum(ckad.fori_loop(0, 12, outer, x) ** 3)


def in_float32(u: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        return u + np.float32(0.1) * np.sin(u) * np.roll(u, 1) - np.float32(0.01) * u * u

    return np.sum(ckad.fori_loop(0, 15, step, u))


PROGRAMS = {
    p.fun.__name__: p
    for p in (
        Program(lorenz, 10, ((),) * 6),
        Program(diffusion, 19, ((30,), (30,))),
        REACTION,
        Program(nested, 12, ((5,), (), (4, 5))),
        Program(in_float32, 15, ((9,),), np.float32),
    )
}
every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def recorded(program: Program) -> Tape:
    return simplify(record(program.fun, take_apart(program.arguments())).tape)


def gradient(tape: Tape, contract: bool = True) -> Tape:
    """From the inputs to the outputs and the gradient of the last one."""
    last = len(tape.outputs) - 1
    wrt = range(len(tape.inputs))
    joint = adjoint_of_tape(wrt, seeds=[last], keep_outputs=True, contract=contract).run(tape)
    one = np.ones((), tape.output_types[last].numpy)
    return verify(simplify(bind(joint, {len(tape.inputs): one})))


def along(tape: Tape, contract: bool = True) -> Tape:
    """From the inputs to the outputs and their tangents along ones."""
    ones = {len(tape.inputs) + k: np.ones(t.shape, t.numpy) for k, t in enumerate(tape.input_types)}
    return verify(simplify(bind(tangent(tape, contract=contract), ones)))


def run(tape: Tape, arguments: Sequence[Any], **options: Any) -> list[np.ndarray]:
    return compile_tape(tape, Options(**options))([np.asarray(x) for x in arguments])


def contracted(program: Program) -> Tape:
    return gradient(fma(recorded(program)))


def second_order(program: Program) -> Tape:
    """The gradient of a directional derivative."""
    return gradient(along(fma(recorded(program))))


def assert_close(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for x, y in zip(found, expected, strict=True):
        eps = np.finfo(y.dtype).eps
        np.testing.assert_allclose(x, y, rtol=1e4 * eps, atol=1e4 * eps * np.max(np.abs(y)))


@every_program
@pytest.mark.parametrize("derive", [contracted, second_order])
def test_every_schedule(program: Program, derive: Callable[[Program], Tape]) -> None:
    tape, arguments = derive(program), program.arguments()
    expected = run(tape, arguments, schedule="store_all")
    for choice in (
        lambda n: schedules.revolve(n, 1),
        lambda n: schedules.revolve(n, min(n, 3)),
        lambda n: schedules.two_level(n, 2),
        lambda n: schedules.two_level(n, 4, 1),
    ):
        found = run(tape, arguments, schedule=choice)
        assert all(same(x, y) for x, y in zip(found, expected, strict=True))


@every_program
def test_every_budget(program: Program) -> None:
    tape, arguments = contracted(program), program.arguments()
    expected = run(tape, arguments, schedule="store_all")
    most = compile_tape(tape, Options(schedule="store_all")).plan.peak_bytes
    with pytest.raises(BudgetError) as caught:
        run(tape, arguments, memory=1)
    least = int(re.findall(r"to at least ([0-9,]+)", str(caught.value))[0].replace(",", ""))
    for memory in np.linspace(least, most, 5, dtype=int).tolist():
        found = run(tape, arguments, memory=memory)
        assert all(same(x, y) for x, y in zip(found, expected, strict=True))


@every_program
def test_values_are_those_of_the_primal(program: Program) -> None:
    """With derivatives or without: the rows of the primal are fused once and for all."""
    primal, arguments = fma(recorded(program)), program.arguments()
    (value,) = run(primal, arguments)
    assert same(run(gradient(primal), arguments)[0], value)
    assert same(run(along(primal), arguments)[0], value)
    assert same(run(second_order(program), arguments)[0], value)


@every_program
def test_derivatives_are_right(program: Program) -> None:
    tape, arguments = recorded(program), program.arguments()
    plain = gradient(tape, contract=False)
    assert_close(run(contracted(program), arguments), run(plain, arguments))
    assert_close(evaluate(contracted(program), *arguments), evaluate(plain, *arguments))
    plain = gradient(along(tape, contract=False), contract=False)
    assert_close(run(second_order(program), arguments), run(plain, arguments))


@every_program
def test_only_rows_of_the_derivative_are_fused(program: Program) -> None:
    tape = recorded(program)
    assert total(gradient(tape)) > total(gradient(tape, contract=False)) == 0
    assert total(along(tape)) > total(along(tape, contract=False)) == 0
    assert total(value_alone(gradient(tape))) == 0


def total(tape: Tape) -> int:
    """The FMA rows of a tape and its bodies."""
    return count(tape)["FMA"] + sum(map(total, tape.bodies))


def value_alone(tape: Tape) -> Tape:
    """The rows that the first output needs."""
    return simplify(with_outputs(untape(tape), tape.outputs.tolist()[:1]))
