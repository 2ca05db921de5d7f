"""Loops over elements as array ops: which become so, and that they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import ckad
from ckad import fori_loop
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.rewrite import with_outputs
from ckad.passes.vectorise import vectorise
from ckad.rules.evaluate import evaluate
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.verify import verify

from .recorded import recorded

adjoint = adjoint_of_tape().run


class Case(NamedTuple):
    """A program, the shapes of its arguments, and how many loops are left of it."""

    program: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    loops: int


def stencil(a: Any) -> Any:
    n, m = a.shape

    def row(i: Any, b: Any) -> Any:
        def element(j: Any, b: Any) -> Any:
            b[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
            return b

        return fori_loop(1, m - 1, element, b)

    return fori_loop(1, n - 1, row, a.copy())


def columns_first(a: Any) -> Any:
    n, m = a.shape

    def column(j: Any, b: Any) -> Any:
        def element(i: Any, b: Any) -> Any:
            b[i, j] = a[i, j] * a[i - 1, j]
            return b

        return fori_loop(1, n, element, b)

    return fori_loop(0, m, column, a.copy())


def periodic(u: Any) -> Any:
    n = u.shape[0]

    def element(i: Any, v: Any) -> Any:
        v[i] = u[i] - 0.3 * (u[i] - u[i - 1]) + u[(i + 1) % n]
        return v

    return fori_loop(0, n, element, u.copy())


def in_place(x: Any) -> Any:
    def element(i: Any, x: Any) -> Any:
        x[i] = x[i] * x[i] + 1.0
        return x

    return fori_loop(0, x.shape[0], element, x.copy())


def reads_ahead(x: Any) -> Any:
    def element(i: Any, x: Any) -> Any:
        x[i] = x[i + 1] + x[i + 2]
        return x

    return fori_loop(0, x.shape[0] - 2, element, x.copy())


def recurrence(x: Any) -> Any:
    def element(i: Any, x: Any) -> Any:
        x[i] = x[i] - 0.5 * x[i - 1]
        return x

    return fori_loop(1, x.shape[0], element, x.copy())


def gauss_seidel(a: Any) -> Any:
    def row(i: Any, a: Any) -> Any:
        def element(j: Any, a: Any) -> Any:
            a[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
            return a

        return fori_loop(1, a.shape[1] - 1, element, a)

    return fori_loop(1, a.shape[0] - 1, row, a.copy())


def dot(x: Any, y: Any) -> Any:
    return fori_loop(0, x.shape[0], lambda i, s: s + x[i] * y[i], 0.25)


def largest(x: Any) -> Any:
    return fori_loop(0, x.shape[0], lambda i, s: np.maximum(s, x[i]), -1.0)


def matrix_product(a: Any, b: Any) -> Any:
    def row(i: Any, c: Any) -> Any:
        def element(j: Any, c: Any) -> Any:
            def term(k: Any, c: Any) -> Any:
                c[i, j] += a[i, k] * b[k, j]
                return c

            return fori_loop(0, a.shape[1], term, c)

        return fori_loop(0, b.shape[1], element, c)

    return fori_loop(0, a.shape[0], row, (a[:, :1] + b[:1]) * 0.0)


def forces(x: Any, mass: Any) -> Any:
    n = x.shape[0]

    def body(i: Any, f: Any) -> Any:
        def pair(j: Any, f: Any) -> Any:
            dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
            w = mass[j] / (dx * dx + dy * dy + 0.1)
            f[i, 0] += w * dx
            f[i, 1] += w * dy
            return f

        return fori_loop(0, n, pair, f)

    return fori_loop(0, n, body, x * 0.0)


def limiter(u: Any) -> Any:
    def element(i: Any, v: Any) -> Any:
        def limited(v: Any) -> Any:
            v[i] = (u[i] - u[i - 1]) / (u[i + 1] - u[i])
            return v

        return ckad.cond((u[i] - u[i - 1]) * (u[i + 1] - u[i]) > 0.0, limited, lambda v: v, v)

    return fori_loop(1, u.shape[0] - 1, element, u * 0.0)


def previous(x: Any) -> Any:
    """A scalar that the next iteration reads."""

    def element(i: Any, carry: Any) -> Any:
        y, last = carry
        y[i] = x[i] - last
        return y, x[i]

    return fori_loop(0, x.shape[0], element, (x.copy(), 0.5))


def diagonal(a: Any) -> Any:
    def element(i: Any, carry: Any) -> Any:
        a, trace = carry
        a[i, i] = a[i, i] + 2.0
        return a, trace + a[i, i]

    return fori_loop(0, min(a.shape), element, (a.copy(), 0.0))


def rows(a: Any) -> Any:
    def row(i: Any, b: Any) -> Any:
        b[i, 1:-1] = np.sin(a[i, 2:]) + a[i - 1, :-2] * a[i].sum()
        return b

    return fori_loop(1, a.shape[0], row, a.copy())


def scattered(x: Any) -> Any:
    place = np.array([3, 1, 3, 0, 1, 1])

    def element(i: Any, y: Any) -> Any:
        y[place[i]] += x[i] * x[i]
        return y

    return fori_loop(0, len(place), element, x.copy())


def every_second(x: Any) -> Any:
    def element(i: Any, x: Any) -> Any:
        x[2 * i + 1] = x[2 * i] + x[2 * i + 2]
        return x

    return fori_loop(0, (x.shape[0] - 1) // 2, element, x.copy())


def reversed_order(x: Any) -> Any:
    n = x.shape[0]

    def element(i: Any, x: Any) -> Any:
        x[n - 1 - i] = x[n - 2 - i] * 2.0
        return x

    return fori_loop(0, n - 1, element, x.copy())


def place_of_the_largest(x: Any) -> Any:
    """The first of the largest numbers; what is no number is passed over."""
    best, place = -1.0, 0
    for i in range(x.shape[0]):
        if x[i] > best:
            best, place = x[i], i
    return best, place * 1.0


def any_and_all(x: Any) -> Any:
    positive, small, count = False, True, 0
    for i in range(x.shape[0]):
        positive = positive or x[i] > 0.0
        small = small and x[i] < 1.5
        if x[i] > 0.5:
            count += 1
    return np.where(positive, 1.0, 0.0) + np.where(small, 2.0, 0.0) + count


def skipping(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            continue
        total -= np.sqrt(x[i])
    return total


def work_array(x: Any) -> Any:
    """A small array that every iteration fills anew."""
    y, w = np.zeros((x.shape[0], 3)), np.empty(3)
    for i in range(x.shape[0]):
        w[0], w[1], w[2] = x[i], x[i] ** 2, 1.0
        w *= 2.0
        y[i] = w[::-1] + w[1]
    return y


def many_cases(x: Any) -> Any:
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] < -1.0:
            y[i] = -1.0
        elif x[i] < 0.0:
            y[i] = x[i] ** 2
        elif i == 30:
            y[i] = 5.0
        else:
            y[i] = np.sqrt(x[i])
    return y


def exchanged(x: Any) -> Any:
    x, n = x.copy(), x.shape[0]
    for i in range(n // 2):
        x[i], x[n - 1 - i] = x[n - 1 - i], x[i]
    return x


def sums_under_conditions(x: Any, y: Any) -> Any:
    """The short innermost loop is written out: a sum is added to twice under one condition."""
    s = np.zeros((4, 6))
    for e in range(4):
        for w in range(3):
            for q in range(6):
                for b in range(2):
                    if e - w >= 0:
                        s[e, q] += x[e - w] * y[q] * y[b]
    return s


CASES = {
    case.program.__name__: case
    for case in [
        Case(stencil, ((7, 6),), 0),
        Case(columns_first, ((7, 6),), 0),
        Case(periodic, ((8,),), 0),
        Case(in_place, ((8,),), 0),
        Case(reads_ahead, ((8,),), 0),
        Case(recurrence, ((8,),), 1),
        Case(gauss_seidel, ((6, 7),), 2),
        Case(dot, ((8,), (8,)), 0),
        Case(largest, ((8,),), 0),
        Case(matrix_product, ((4, 5), (5, 3)), 0),
        Case(forces, ((6, 2), (6,)), 0),
        Case(limiter, ((9,),), 0),
        Case(previous, ((8,),), 0),
        Case(diagonal, ((5, 7),), 0),
        Case(rows, ((5, 7),), 0),
        Case(scattered, ((6,),), 0),
        Case(every_second, ((9,),), 0),
        Case(reversed_order, ((8,),), 0),
        Case(place_of_the_largest, ((40,),), 0),
        Case(any_and_all, ((40,),), 0),
        Case(skipping, ((40,),), 0),
        Case(work_array, ((40,),), 0),
        Case(many_cases, ((40,),), 0),
        Case(exchanged, ((80,),), 0),
        Case(sums_under_conditions, ((4,), (6,)), 0),
    ]
}


def loops_in(tape: Tape) -> int:
    own = sum(row.op is Op.LOOP for row in tape.rows)
    return own + sum(map(loops_in, tape.bodies))


def tapes(case: Case) -> tuple[Tape, Tape, list[np.ndarray]]:
    rng = np.random.default_rng(7)
    inputs = [rng.normal(size=shape) for shape in case.shapes]
    tape = recorded(case.program, inputs)
    return tape, vectorise(tape), inputs


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_as_many_loops_are_left(case: Case) -> None:
    _, made, _ = tapes(case)
    verify(made)
    assert loops_in(made) == case.loops


def test_computes_the_same(case: Case) -> None:
    tape, made, inputs = tapes(case)
    for got, expected in zip(evaluate(made, *inputs), evaluate(tape, *inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_has_the_same_gradient(case: Case) -> None:
    tape, made, inputs = tapes(case)
    rng = np.random.default_rng(8)
    seeds = [rng.normal(size=t.shape) for t in tape.output_types if t.is_float]
    got, expected = (evaluate(adjoint(t), *inputs, *seeds) for t in (made, tape))
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-11, atol=1e-11)


def test_engines_compute_the_same(case: Case, engine: str) -> None:
    tape, _, inputs = tapes(case)
    expected = evaluate(tape, *inputs)
    seeds = [np.cos(np.arange(t.size)).reshape(t.shape) for t in tape.output_types]
    out, pullback = ckad.vjp(case.program, *inputs)
    gradient = pullback(tuple(seeds) if isinstance(out, tuple) else seeds[0])
    got = [*(out if isinstance(out, tuple) else [out]), *gradient]
    for g, e in zip(got, [*expected, *evaluate(adjoint(tape), *inputs, *seeds)], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-11, atol=1e-11)


def test_a_branch_not_taken_has_no_part_in_the_gradient() -> None:
    def masked_misfit(model: Any, data: Any) -> Any:
        def term(i: Any, total: Any) -> Any:
            def counted(total: Any) -> Any:
                return total + np.sqrt(data[i]) / (model[i] - data[i])

            return ckad.cond(data[i] > 0.0, counted, lambda total: total, total)

        return fori_loop(0, 4, term, 0.0)

    model, data = np.array([2.0, -1.0, np.nan, 3.0]), np.array([1.0, -1.0, np.nan, 0.0])
    made = vectorise(recorded(masked_misfit, [model, data]))
    assert loops_in(made) == 0
    value, (ct_model, ct_data) = (
        evaluate(made, model, data),
        evaluate(adjoint(made), model, data, 1.0),
    )
    np.testing.assert_allclose(value[0], 1.0)
    np.testing.assert_allclose(ct_model, [-1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(ct_data, [1.5, 0.0, 0.0, 0.0])


def test_a_branch_not_taken_computes_finite_numbers() -> None:
    def program(x: Any) -> Any:
        def element(i: Any, y: Any) -> Any:
            def inside(y: Any) -> Any:
                y[i] = np.log(x[i] - 2.0) / (x[i] - x[i - 1]) + np.exp(2000.0 * x[i - 1])
                return y

            return ckad.cond(x[i] > 2.0, inside, lambda y: y, y)

        return fori_loop(0, 4, element, x.copy())

    x = np.array([-1.0, -1.0, 3.0, 0.0])
    made = vectorise(recorded(program, [x]))
    assert loops_in(made) == 0
    every = with_outputs(made, [k for k, row in enumerate(made.rows) if row.type.is_array])
    assert all(np.all(np.isfinite(value)) for value in evaluate(every, x))


def test_columns_between_bounds_leave_no_transposes() -> None:
    """PolyBench's symm: a column is changed up to a row, and one number scales it."""

    def symm(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
        c, found = c.copy(), np.zeros(b.shape[1])
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[:i, j] += 1.5 * b[i, j] * a[i, :i]
                found[j] = b[:i, j] @ a[i, :i]
            c[i] += 1.5 * b[i] * a[i, i] + 1.5 * found
        return np.sum(c * c)

    a, b, c = np.random.default_rng(2).normal(size=(3, 12, 12))
    compiled = ckad.value_and_grad(symm, (0, 1, 2)).compiled(a, b, c).tape
    rows = [row for body in (compiled, *compiled.bodies) for row in body.rows]
    assert not [row for row in rows if row.op is Op.TRANSPOSE and row.type.size == c.size]
    assert not [row for row in rows if row.op in (Op.LOOP, Op.TAPED_LOOP)]
    ckad.testing.check_grads(symm, (a, b, c))


def test_the_first_of_the_largest_counts() -> None:
    x = np.array([0.0, np.nan, 3.0, 1.0, 3.0] * 8)
    tape = recorded(place_of_the_largest, [x])
    made = vectorise(tape)
    assert loops_in(made) == 0
    np.testing.assert_array_equal(evaluate(made, x), [3.0, 2.0])
    for t in (made, tape):
        np.testing.assert_array_equal(evaluate(adjoint(t), x, 1.0, 1.0)[0], np.arange(40) == 2)


def test_an_index_out_of_bounds_still_stops_the_program() -> None:
    def program(x: Any) -> Any:
        return fori_loop(0, 5, lambda i, s: s + x[i], 0.0)

    tape = recorded(program, [np.ones(4)])
    with pytest.raises(IndexError):
        evaluate(vectorise(tape), np.ones(4))


def test_a_branch_guards_an_index() -> None:
    def program(x: Any) -> Any:
        def element(i: Any, y: Any) -> Any:
            def inside(y: Any) -> Any:
                y[i] = x[i + 1] - x[i]
                return y

            return ckad.cond(i < 4, inside, lambda y: y, y)

        return fori_loop(0, 5, element, x.copy())

    x = np.arange(5.0) ** 2
    made = vectorise(recorded(program, [x]))
    assert loops_in(made) == 0
    np.testing.assert_array_equal(evaluate(made, x)[0], [1.0, 3.0, 5.0, 7.0, 16.0])


def test_values_of_all_iterations_do_not_outgrow_the_program() -> None:
    n = 500

    def program(x: Any) -> Any:
        def row(i: Any, total: Any) -> Any:
            return fori_loop(0, n, lambda j, t: t + np.sin(x[i] * x[j]), total)

        return fori_loop(0, n, row, 0.0)

    made = vectorise(recorded(program, [np.ones(n)]))
    assert loops_in(made) == 1


def test_rows_are_not_copied_for_an_element_of_them() -> None:
    n, steps = 3, 200

    def program(x: Any, k: Any) -> Any:
        def element(t: Any, i: Any, carry: Any) -> Any:
            def other(j: Any, carry: Any) -> Any:
                seen, s = carry
                seen[i, t] += k * (s[j, t] - s[i, t])
                return seen, s

            seen, s = fori_loop(0, n, other, carry)
            s[i, t + 1] = s[i, t] + seen[i, t]
            return seen, s

        def step(t: Any, carry: Any) -> Any:
            return fori_loop(0, n, lambda i, carry: element(t, i, carry), carry)

        seen = np.zeros_like(x, shape=(n, steps))
        start = np.zeros_like(x, shape=(n, steps + 1))
        start[:, 0] = x
        return np.sum(fori_loop(0, steps, step, (seen, start))[1][:, -1] ** 2)

    x = np.arange(3.0)
    tape = recorded(program, [x, 0.01])
    made = vectorise(tape)
    assert loops_in(made) == 2
    assert not any(row.type.shape in ((steps,), (steps + 1,)) for row in rows_in(made))
    np.testing.assert_allclose(evaluate(made, x, 0.01), evaluate(tape, x, 0.01), rtol=1e-14)


def rows_in(tape: Tape) -> list[Row]:
    return [*tape.rows, *(row for body in tape.bodies for row in rows_in(body))]
