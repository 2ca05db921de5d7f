"""Indices proven to be in range are not checked; elements that stay the same are read once."""

import numpy as np
import pytest

import ckad
from ckad.passes.integers.affine import Sum, Symbols
from ckad.passes.integers.ranges import in_range
from ckad.passes.integers.steady import steady
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.simplify import simplify
from ckad.tape.ops import Op
from ckad.tape.verify import verify
from ckad.trace.arguments import take_apart
from ckad.trace.record import record

X = np.linspace(0.5, 1.5, 80)


def recorded(fun, *args):
    """The tape as it is before loops become operations on arrays."""
    return simplify(record(fun, take_apart(args), {}).tape)


def count(tape, op):
    return sum(row.op is op for row in tape.rows) + sum(count(body, op) for body in tape.bodies)


def deepest(tape):
    """The innermost body of the first loop."""
    while tape.bodies:
        tape = tape.bodies[0]
    return tape


def looped(body, lower=0, upper=80):
    return lambda x: ckad.fori_loop(lower, upper, lambda i, s: s + body(x, i), 0.0)


@pytest.mark.parametrize(
    ("body", "lower", "upper", "left"),
    [
        (lambda x, i: x[i], 0, 80, 0),
        (lambda x, i: x[i - 1], 1, 80, 0),
        (lambda x, i: x[i - 80], 0, 80, 0),  # all negative: counted from the end
        (lambda x, i: x[i - 1], 0, 80, 1),  # the first one wraps, the others do not
        (lambda x, i: x[2 * i + 1], 0, 40, 0),
        (lambda x, i: x[2 * i + 1], 0, 41, 1),
        (lambda x, i: x[79 - i], 0, 80, 0),
        (lambda x, i: x[(i + 7) % 80], 0, 500, 0),
        (lambda x, i: x[i // 3], 0, 240, 0),
        (lambda x, i: x[np.minimum(i, 79)], 0, 500, 0),
        (lambda x, i: x[np.where(i > 0, i - 1, 79)], 0, 80, 0),
        (lambda x, i: x[np.maximum(i, 3) - 3], 0, 83, 0),
        (lambda x, i: ckad.cond(i > 0, lambda: x[i - 1], lambda: 0.0), 0, 81, 0),
    ],
)
def test_checks_that_ranges_make_needless_go(body, lower, upper, left):
    tape = recorded(looped(body, lower, upper), X)
    assert count(tape, Op.WRAP) == 1
    assert count(in_range(tape), Op.WRAP) == left
    verify(in_range(tape))


def test_ranges_of_an_outer_loop_reach_the_inner_one():
    def rows(x):
        def row(i, s):
            return ckad.fori_loop(0, 10, lambda j, s: s + x[i * 8 + j - 1], s)

        return ckad.fori_loop(1, 8, row, 0.0)

    tape = recorded(rows, X)
    assert count(tape, Op.WRAP) == 1
    assert count(in_range(tape), Op.WRAP) == 0


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_check_that_stays_stops_the_run(engine):
    fun = looped(lambda x, i: x[i], 0, 81)
    with pytest.raises(IndexError, match=r"test_ranges\.py"):
        ckad.jit(fun, engine=engine)(X)


def test_bounds_of_sums_use_the_bounds_of_their_symbols():
    """0 <= k <= 9 and 0 <= i <= 8 - k, so that k + 1 + i <= 9."""
    symbols = Symbols()
    k = symbols.new([0], [9])
    i = symbols.new([0], [Sum(8).minus(k)])
    assert symbols.bounds(k + i + Sum(1)) == (1, 9)
    assert symbols.bounds(k.minus(i)) == (-8, 9)


def eliminate(a):
    """Rows 1 ... less multiples of row 0, element by element."""
    a = a.reshape(81) * 1.0

    def row(i, a):
        def column(j, a):
            a[9 * i + j] -= a[9 * i] * a[j]
            return a

        return ckad.fori_loop(1, 9, column, a)

    return np.sum(np.square(ckad.fori_loop(1, 9, row, a)))


def test_an_element_that_no_step_writes_is_read_before_the_loop():
    tape = in_range(recorded(eliminate, np.ones((9, 9))))
    body = deepest(simplify(steady(tape)))
    assert count(deepest(tape), Op.GATHER) == 3
    assert count(body, Op.GATHER) == 1  # a[j]
    assert count(body, Op.SCATTER) == 0
    assert count(body, Op.SCATTER_ADD) == 1


def running(x):
    """Each of the first elements gathers all behind the tenth."""
    x = x * 1.0

    def outer(r, x):
        def body(i, x):
            x[r] = x[r] * 0.9 + x[i] * x[i]
            return x

        return ckad.fori_loop(10, 80, body, x)

    return np.sum(ckad.fori_loop(0, 8, outer, x))


def crossing(x):
    """An element that other writes reach as well stays where it is."""
    x = x * 1.0

    def body(i, x):
        x[3] = x[3] * 0.5 + x[i]
        x[i] = x[i] * x[3]
        return x

    return np.sum(ckad.fori_loop(0, 80, body, x))


def test_an_element_that_each_step_changes_is_carried():
    body = deepest(simplify(steady(in_range(recorded(running, X)))))
    assert count(body, Op.SCATTER) + count(body, Op.SCATTER_ADD) == 0
    body = deepest(simplify(steady(in_range(recorded(crossing, X)))))
    assert count(body, Op.SCATTER) + count(body, Op.UPDATE) == 2


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("fun", [running, crossing])
def test_carried_elements_have_the_right_gradient(fun, engine):
    def plain(x):
        x = list(x)
        if fun is running:
            for r in range(8):
                for i in range(10, 80):
                    x[r] = x[r] * 0.9 + x[i] * x[i]
        else:
            for i in range(80):
                x[3] = x[3] * 0.5 + x[i]
                x[i] = x[i] * x[3]
        return sum(x)

    start = X * 0.1
    value, gradient = ckad.value_and_grad(fun, engine=engine)(start)
    assert value == pytest.approx(plain(start), rel=1e-12)
    steps = 1e-30j * np.eye(80)
    assert gradient == pytest.approx([plain(start + d).imag / 1e-30 for d in steps], rel=1e-11)


def test_a_step_keeps_elements_and_no_arrays():
    """Also of an array that only the steps around the loop change."""

    def fun(x):
        x = x * 1.0

        def outer(i, x):
            total = ckad.fori_loop(0, 80, lambda j, s: s + x[j] * x[79 - j], 0.0)
            x[i] = total * 0.01
            return x

        return np.sum(ckad.fori_loop(0, 80, outer, x))

    tape = adjoint_of_tape().run(steady(in_range(recorded(fun, X))))

    def residuals(tape):
        for row in tape.rows:
            if row.op is Op.TAPED_LOOP:
                body, taping = (tape.bodies[k] for k in row.attrs[:2])
                yield from taping.output_types[len(body.outputs) :]
        for body in tape.bodies:
            yield from residuals(body)

    assert all(not t.is_array or t.size == 1 for t in residuals(tape))
    ckad.testing.check_grads(fun, (X,), modes=("rev",), order=1)


def kept_before_it_changes(x):
    before = np.copy(x)
    for i in range(3):
        for _ in range(6):
            before = np.copy(x)
            x[i] = x[i] * 0.5 + 1.0
    return np.sum(before * np.arange(80.0)) + 3.0 * np.sum(x)


def kept_by_a_branch(x):
    seen = np.zeros(80)
    for i in range(3):
        for j in range(6):
            x[i] = x[i] * 0.5 + 1.0
            seen = seen + 0.1 * (x if x[j + 40] > 1.0 else np.cos(x))
    return np.sum(seen * np.arange(80.0))


def kept_by_an_inner_loop(x):
    before = np.copy(x)
    for i in range(3):
        for j in range(6):
            x[i] = x[i] * 0.5 + 1.0
            for k in range(5):
                if x[j + k + 40] > 1.0:
                    before = np.copy(x)
    return np.sum(before * np.arange(80.0)) + 3.0 * np.sum(x)


def stacked(x):
    kept = []
    for i in range(3):
        for _ in range(6):
            x[1] = x[1] * 0.5 + i
            kept.append(np.copy(x))
    return np.sum(np.array(kept) * np.arange(18.0)[:, None])


@pytest.mark.parametrize(
    "fun", [kept_before_it_changes, kept_by_a_branch, kept_by_an_inner_loop, stacked]
)
def test_an_array_that_is_shown_elsewhere_keeps_its_elements(fun, engine):
    """A step that changes an element hands on the array before, or after, by another name."""
    value, gradient = ckad.value_and_grad(lambda x: fun(1.0 * x), engine=engine)(X)
    assert value == pytest.approx(fun(X.copy()), rel=1e-13)
    steps = 1e-30j * np.eye(80)
    want = [np.imag(fun(X + d)) / 1e-30 for d in steps]
    np.testing.assert_allclose(gradient, want, rtol=1e-12, atol=1e-13)
