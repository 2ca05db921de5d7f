"""Loops that end on a flag or after a number of steps known when they run."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import BudgetError, CarryError, ConcreteValueError, ScheduleError
from ckad.rules.evaluate import evaluate
from ckad.tape.control import COUNTED, GUESS, UNBOUNDED, WHILE, loop_attrs
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type
from ckad.tape.verify import verify
from ckad.trace.memory.context import current, open_trace
from ckad.trace.memory.storage import Storage
from ckad.trace.values.tracer import Tracer, fresh, lift, value

ENGINES = ("vm", "native")
FIRST = {WHILE: Type(DType.BOOL, ()), COUNTED: Type(DType.I64, ())}


def guarded(guard, length, first, body, state, xs=()):
    """A guarded LOOP row: ``body(i, *state, *x)`` returns the new state, after the flag if any."""
    state, xs = [lift(x) for x in state], [lift(x) for x in xs]
    with open_trace() as t:
        i = fresh(t.builder.input(FIRST[COUNTED]), scalar=True)
        kept = t.builder.input(FIRST[guard])
        types = [x.type for x in state] + [x.type.with_shape(x.shape[1:]) for x in xs]
        inputs = [Tracer(Storage(t, t.builder.input(k)), (), not k.shape) for k in types]
        out = [value(lift(x)) for x in body(i, *inputs)]
        tape = t.tape(out if guard == WHILE else [kept, *out])
    b = current().builder
    start = value(lift(first))
    operands = [start, *(value(x) for x in (*state, *xs)), *t.captured]
    attrs = loop_attrs(b.body(tape), length, 1 + len(state), len(xs), guard)
    rows = b.control(Op.LOOP, operands, attrs, [FIRST[guard], *(x.type for x in state)])
    return [fresh(r, scalar=x.scalar) for r, x in zip(rows[1:], state, strict=True)]


# --- programs ------------------------------------------------------------------------------------


def newton(a):
    return ckad.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)


def decay(u, k):
    def step(s):
        u, total = s
        return u * (1 - k * np.exp(-u)), total + u**2

    return ckad.while_loop(lambda s: s[0] > 1e-3, step, (u, 0.0))[1]


def steps_below(n):
    """Exactly ``n`` steps of a while loop."""

    def run(u, k):
        def step(s):
            j, u, total = s
            return j + 1, u + k * np.sin(u), total + u

        _, u, total = ckad.while_loop(lambda s: s[0] < n, step, (0, u, 0.0))
        return u * total

    return run


def relaxed(u, k):
    """A large state, a stencil, and a residual that ends the loop."""

    def step(s):
        u, _ = s
        new = u + k * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
        return new, np.max(np.abs(new - u))

    u, _ = ckad.while_loop(lambda s: s[1] > 1e-2, step, (u, 1.0))
    return np.sum(u**2)


def burgers(u, k):
    """A large state whose every step is read in reverse."""

    def step(s):
        u, v, n = s
        u = u - 0.05 * u * (u - np.roll(u, 1)) + k * np.roll(v, 2)
        return u, 0.5 * v + 0.01 * u * v, n + 1

    u, v, _ = ckad.while_loop(lambda s: np.sum(s[0] ** 2) > 181.0, step, (1.0 + u, u, 0))
    return np.sum(u * v) + np.sum(u)


def inner_burgers(u, k):
    def outer(i, u):
        def step(s):
            u, n = s
            return u - 0.1 * u * (u - np.roll(u, 1)) + 1e-3 * k, n + 1

        return ckad.while_loop(lambda s: s[1] < 2 + i % 3, step, (u * np.cos(u), 0))[0]

    return np.sum(ckad.fori_loop(0, 9, outer, 1.0 + u))


def inner_while(u, k):
    """A time loop whose steps iterate until they converge, each as long as it takes."""

    def step(i, u):
        def solve(s):
            x, _ = s
            new = u + 0.5 * k * np.tanh(x) + 0.01 * i
            return new, np.abs(new - x)

        return ckad.while_loop(lambda s: s[1] > 1e-9, solve, (u, 1.0))[0]

    return ckad.fori_loop(0, 12, step, u) ** 2


def twice_unknown(u, k):
    """A while loop in a while loop in a counted one."""

    def once(i, u):
        def outer(s):
            u, n = s

            def inner(t):
                v, total = t
                return v * (0.7 - 0.1 * k), total + np.sin(v)

            _, total = ckad.while_loop(lambda t: t[0] > 1e-2, inner, (u, 0.0))
            return 0.5 * u + 0.1 * total * k, n + 1

        return ckad.while_loop(lambda s: s[0] > 0.35 * k, outer, (u + 1.0, 0))[0]

    return ckad.fori_loop(0, 4, once, u)


@ckad.jit
def triangular(u, k):
    """The inner loop runs as often as the index of the outer one says."""

    def outer(i, u):
        def step(j, v):
            return (v + 0.1 * k * np.sin(v) * (j + 1),)

        return guarded(COUNTED, 8, i, step, [u])[0]

    return ckad.fori_loop(0, 8, outer, u)


def counted(n):
    @ckad.jit
    def run(u, k):
        limit = ckad.cond(u > -100.0, lambda: np.int64(n), lambda: np.int64(3))
        return guarded(COUNTED, UNBOUNDED, limit, lambda i, v: (v + k * np.sin(v),), [u])[0]

    return run


@ckad.jit
def broken_off(u, k):
    """A for loop over rows of data with a break."""
    data = np.linspace(0.5, 2.0, 40)[:, None] * k

    def step(i, u, row):
        new = u + row[0] * 0.1
        return np.sum(new) < 4.0, new

    return np.sum(guarded(WHILE, 40, True, step, [u], [data])[0] ** 2)


@ckad.jit
def never_broken(u, k):
    return guarded(WHILE, 200, True, lambda i, v: (i < 1000, v + k * np.sin(v)), [u])[0]


U = np.linspace(0.0, 1.0, 100) ** 2
PROGRAMS = {
    "newton": (lambda u, k: newton(u) * k, 9.0, 0.5),
    "decay": (decay, 1.0, 0.5),
    "long": (steps_below(777), 0.3, 0.001),
    "none": (decay, 1e-4, 0.5),
    "one": (steps_below(1), 0.3, 0.1),
    "all but one": (steps_below(GUESS - 1), 0.3, 0.01),
    "assumed": (steps_below(GUESS), 0.3, 0.01),
    "one more": (steps_below(GUESS + 1), 0.3, 0.01),
    "relaxed": (relaxed, U, 0.2),
    "burgers": (burgers, U, -0.02),
    "inner burgers": (inner_burgers, U, 0.3),
    "inner": (inner_while, 0.4, 0.8),
    "twice": (twice_unknown, 0.5, 0.9),
    "triangular": (triangular, 0.7, 0.3),
    "counted": (counted(5), 0.7, 0.3),
    "counted none": (counted(-2), 0.7, 0.3),
    "counted many": (counted(333), 0.7, 0.003),
    "broken off": (broken_off, 0.7, 0.8),
    "never broken": (never_broken, 0.7, 0.005),
}


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]


def gradients(program, **options):
    fun, *args = program
    value, grads = ckad.value_and_grad(fun, argnums=(0, 1), **options)(*args)
    return [np.asarray(x) for x in (value, *grads)]


def same_bits(xs, ys):
    return all(x.tobytes() == y.tobytes() for x, y in zip(xs, ys, strict=True))


# --- values and gradients ------------------------------------------------------------------------


def test_the_oracle_and_both_engines_agree(program):
    fun, *args = program
    tape = verify(ckad.trace(fun)(*args))
    expected = evaluate(tape, *map(np.asarray, args))[0]
    for engine in ENGINES:
        got = ckad.jit(fun, engine=engine)(*args)
        np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_the_adjoint_in_the_oracle(program):
    fun, *args = program
    tape = verify(ckad.adjoint(ckad.trace(fun)(*args)))
    expected = evaluate(tape, *map(np.asarray, args), np.float64(1.0))
    for engine in ENGINES:
        got = gradients(program, engine=engine)
        for x, y in zip(got[1:], expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
def test_against_differences(program, engine):
    """Of the function compiled once, as a loop at plain arrays compiles anew at each point; it is
    the loop's own also beside the point that it was recorded at."""
    fun, *args = program
    compiled = ckad.jit(fun, engine=engine)
    ckad.testing.check_grads(compiled, args, engine=engine)
    beside = [1.001 * np.asarray(x)[()] for x in args]
    np.testing.assert_allclose(compiled(*beside), fun(*beside), rtol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["newton", "decay", "inner", "triangular", "broken off"])
def test_second_order(name, engine):
    fun, *args = PROGRAMS[name]
    ckad.testing.check_grads(ckad.jit(fun, engine=engine), args, order=2, engine=engine)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_schedule_gives_the_same_bits(program, engine):
    expected = gradients(program, engine=engine)
    for schedule in ("store_all", "two_level", "revolve", "online"):
        assert same_bits(gradients(program, engine=engine, schedule=schedule), expected), schedule
    for schedule in (
        lambda n: ckad.schedules.two_level(n, 7),
        lambda n: ckad.schedules.two_level(n, 5, 2),
        lambda n: ckad.schedules.revolve(n, 3),
        lambda n: ckad.schedules.online(n, 4),
    ):
        assert same_bits(gradients(program, engine=engine, schedule=schedule), expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_budget_gives_the_same_bits(program, engine):
    expected = gradients(program, engine=engine)
    with pytest.raises(BudgetError, match="at least") as caught:
        gradients(program, engine=engine, memory=1)
    least = int(str(caught.value).split("at least ")[-1].split()[0].rstrip(".").replace(",", ""))
    tried = 0
    for memory in np.geomspace(least, 40 * least, 8).astype(int).tolist():
        try:
            got = gradients(program, engine=engine, memory=memory)
        except BudgetError:
            continue  # the least is that of the steps assumed at first
        assert same_bits(got, expected), memory
        tried += 1
    assert tried > 3


# --- how many steps ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [0, 1, 2, GUESS - 1, GUESS, GUESS + 1, 5 * GUESS])
def test_the_number_of_steps_is_exact(n, engine):
    def run(n):
        return ckad.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1]), (0, n))[0]

    assert ckad.jit(run, engine=engine)(n) == n

    def grown(x, n):
        return x ** (run(n) * 1.0)

    assert ckad.grad(grown, engine=engine)(2.0, n) == pytest.approx(n * 2.0 ** (n - 1))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_program_for_short_and_long_loops(engine):
    fun = ckad.value_and_grad(decay, engine=engine)
    alone = [ckad.value_and_grad(decay, engine=engine)(1.0, k) for k in (0.5, 0.02, 0.2)]
    assert [fun(1.0, k) for k in (0.5, 0.02, 0.2)] == alone


def test_outside_of_a_transformed_function():
    assert ckad.while_loop(lambda x: x < 100.0, lambda x: 2 * x, 1.0) == 128.0


def test_a_state_that_changes_is_refused():
    with pytest.raises(CarryError, match=r"item 0 .* from i64\[\] to f64\[\]"):
        ckad.grad(lambda x: ckad.while_loop(lambda s: s < x, lambda s: s * 1.5, 0))(2.0)
    with pytest.raises(CarryError, match="changes its structure"):
        ckad.grad(lambda x: ckad.while_loop(lambda s: s < x, lambda s: (s, s), x))(2.0)
    with pytest.raises(ConcreteValueError, match=r"has shape \(3,\)"):
        ckad.grad(lambda x: ckad.while_loop(lambda s: s < 3, lambda s: s, x).sum())(np.ones(3))


def test_a_gradient_of_a_gradient():
    def fun(a):
        return newton(a) ** 3

    assert ckad.grad(ckad.grad(fun))(4.0) == pytest.approx(0.75 / 2.0)


# --- schedules made on the way -------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_loop_in_little_memory(engine):
    program = (steps_below(5_000), 0.3, 1e-4)
    fun, *args = program
    expected = gradients(program, engine=engine)
    gradient = ckad.value_and_grad(fun, argnums=(0, 1), engine=engine, memory="12 KiB")
    value, grads = gradient(*args)
    assert same_bits([np.asarray(x) for x in (value, *grads)], expected)
    plan = gradient.compiled(*args).plan
    assert plan.schedule.family in ("online", "two_level")
    assert plan.peak_bytes <= 12 * 1024
    assert f"the {plan.n_steps:,} steps of the last run" in str(plan)


@pytest.mark.parametrize("engine", ENGINES)
def test_online_runs_once(engine):
    """However long the loop turns out: nothing is planned again, and few steps run again."""
    options = {"engine": engine, "schedule": "online", "memory": "12 KiB"}
    gradient = ckad.value_and_grad(steps_below(3_000), **options)
    before = gradient.compiled(0.3, 1e-4)
    feeds = before._run.feeds
    gradient(0.3, 1e-4)
    assert gradient.compiled(0.3, 1e-4) is before
    assert before._run.feeds is feeds
    assert before.plan.schedule.family == "online"


def test_a_schedule_for_fewer_steps_is_refused():
    schedule = ckad.schedules.revolve(100, 5)
    gradient = ckad.grad(steps_below(90), schedule=schedule)
    assert gradient(0.3, 0.01) == ckad.grad(steps_below(90))(0.3, 0.01)
    with pytest.raises(ScheduleError, match=r"made for 100 steps.*schedule=\"online\""):
        ckad.grad(steps_below(101), schedule=schedule)(0.3, 0.01)


def test_a_budget_that_cannot_hold_what_the_loop_turns_out_to_need():
    gradient = ckad.grad(inner_until(100_000), memory="16 KiB")
    with pytest.raises(BudgetError, match=r"least that .* needs is .* has run \d[\d,]* steps"):
        gradient(0.3)


def inner_until(n):
    def run(u):
        def inner(i, u):
            def step(s):
                return s[0] + 1, s[1] + 1e-4 * np.sin(s[1])

            return ckad.while_loop(lambda s: s[0] < n, step, (0, u))[1]

        return ckad.fori_loop(0, 3, inner, u)

    return run


@pytest.mark.parametrize("engine", ENGINES)
def test_the_next_run_has_the_memory_that_this_one_needed(engine):
    def run(u):
        def inner(i, u):
            def step(s):
                return s[0] + 1, s[1] + 1e-4 * np.sin(s[1])

            return ckad.while_loop(lambda s: s[0] < 3, step, (0, u))[1]

        return ckad.fori_loop(0, 20_000, inner, u)

    gradient = ckad.value_and_grad(run, engine=engine)
    planned = gradient.compiled(0.3).plan.peak_bytes
    first = gradient(0.3)
    assert gradient.compiled(0.3).plan.peak_bytes < planned / 4
    assert gradient(0.3) == first


def test_machine_code_where_nobody_knows_how_long_it_runs():
    assert ckad.jit(newton).compiled(2.0).engine == "native"
    assert "any number of steps" in ckad.jit(newton).compiled(2.0).text
