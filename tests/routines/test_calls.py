"""Rows that call routines: as text, as types, in both engines, and where they fail."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import ckad
from ckad.errors import TapeError
from ckad.loops.driver import Options, compile_tape
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.parse import from_text
from ckad.tape.routines import (
    ROUTINES,
    Routine,
    define,
    description,
    named,
    read_description,
)
from ckad.tape.text import to_text
from ckad.tape.types import parse_type
from ckad.tape.verify import verify

N = 12
A = np.random.default_rng(0).normal(size=(N, N)) + N * np.eye(N)
Y = np.linspace(1.0, 2.0, N)


def tape_of(name, *types, attrs=()):
    b = Builder()
    xs = [b.input(parse_type(t)) for t in types]
    return b.tape([b.emit(Op.CALL, xs, (named(name).number, *attrs))])


def test_text_names_the_routine_and_is_read_back():
    tape = tape_of("lu_solve", "f64[2,6,5]", "f64[2,5,3]", attrs=(1, 0))
    assert "call %0, %1 (lu_solve, 1, 0) : f64[2,5,3]" in str(tape)
    assert from_text(to_text(tape, full=True)).digest == tape.digest


def test_an_unknown_name():
    text = to_text(tape_of("lu", "f64[1,5,5]", attrs=(0,)), full=True)
    with pytest.raises(TapeError, match="line 4: no routine is called lv"):
        from_text(text.replace("(lu, 0)", "(lv, 0)"))


@pytest.mark.parametrize(
    ("name", "types", "attrs", "said"),
    [
        ("lu", ["f64[1,4,5]"], (0,), "have to be square"),
        ("lu", ["f64[4,4]"], (0,), "three axes"),
        ("lu", ["i64[1,4,4]"], (0,), "float64 in three axes"),
        ("lu_solve", ["f64[1,5,4]", "f64[2,4,1]"], (0, 0), "stacks of different lengths"),
        ("lu_solve", ["f64[1,5,4]", "f64[1,3,1]"], (0, 0), "4 rows are needed"),
        ("lu_solve", ["f64[1,5,4]", "f64[1,4,1]"], (2,), "attributes"),
        ("triangular", ["f64[1,4,4]", "f64[1,4,1]"], (1, 0), "attributes"),
        ("cholesky", ["f64[1,4,5]"], (0,), "have to be square"),
    ],
)
def test_types_that_do_not_fit(name, types, attrs, said):
    with pytest.raises(TapeError, match=said):
        tape_of(name, *types, attrs=attrs)


def test_a_number_that_no_routine_has():
    b = Builder()
    x = b.input(parse_type("f64[3]"))
    with pytest.raises(TapeError, match="number of a routine"):
        b.emit(Op.CALL, [x], (len(ROUTINES),))


def test_a_result_of_another_type_is_found():
    b = Builder()
    x = b.input(parse_type("f64[1,5,5]"))
    wrong = b.append(Op.CALL, (x,), (named("lu").number, 0), parse_type("f64[1,5,5]"))
    with pytest.raises(TapeError, match=r"its type is f64\[1,5,5\]"):
        verify(b.tape([wrong]))


def test_a_description_is_read_back():
    types = [parse_type(t) for t in ("f64[3,4]", "i64[]", "f64[0]")]
    assert read_description(description((7, -1), types)) == ([7, -1], types)


# --- Python's routines ---------------------------------------------------------------------------

TURNED = define(
    Routine(
        "turned",
        lambda attrs, x: x,
        lambda attrs, x: x[::-1],
        jvp=lambda b, tangents, out, x, attrs: b.call(tangents[0], attrs=(TURNED.number,)),
        vjp=lambda b, ct, out, x, attrs: (b.call(ct, attrs=(TURNED.number,)),),
    )
)


def failing(attrs, x):
    if x[0] > 2.5:
        raise KeyError("the third step")
    return x + 1.0


FAILING = define(Routine("failing", lambda attrs, x: x, failing))


def loop_of(routine, length):
    """x <- routine(x), so many times."""
    step = Builder()
    step.input(parse_type("i64[]"))
    x = step.input(parse_type("f64[3]"))
    body = step.tape([step.emit(Op.CALL, [x], (routine.number,))])
    b = Builder()
    start = b.input(parse_type("f64[3]"))
    attrs = (b.body(body), length, 1, 0, 0)
    return b.tape(b.control(Op.LOOP, [start], attrs, [parse_type("f64[3]")]))


def ran(tape, engine, *inputs):
    return compile_tape(tape, Options(engine=engine))(inputs)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_python_is_called(engine):
    (result,) = ran(loop_of(TURNED, 3), engine, np.arange(3.0))
    assert np.array_equal(result, [2.0, 1.0, 0.0])


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_what_python_raises_reaches_the_user(engine):
    with pytest.raises(KeyError, match="the third step") as caught:
        ran(loop_of(FAILING, 5), engine, np.ones(3))
    assert "called here at step 2" in caught.value.__notes__[0]


# --- errors --------------------------------------------------------------------------------------


def singular_at_the_third_step(a, y):
    for k in range(5):
        b = np.where(k < 2, a, 0.0 * a)
        y = np.linalg.solve(b, y)
    return np.sum(y)


def not_positive(a):
    return np.sum(np.linalg.cholesky(a - 100.0 * np.eye(N)))


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(
    ("fun", "args", "said", "line"),
    [
        (singular_at_the_third_step, (A, Y), "Singular matrix at step 2", 3),
        (not_positive, (A @ A.T / 100.0,), "Matrix is not positive definite", 1),
    ],
)
def test_failures_name_the_line(engine, fun, args, said, line):
    with pytest.raises(np.linalg.LinAlgError) as caught:
        ckad.value_and_grad(fun, engine=engine)(*args)
    at = inspect.getsourcelines(fun)[1] + line
    assert f"test_calls.py:{at}: {said}" in str(caught.value)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_branch_that_is_not_taken_does_not_fail(engine):
    def fun(a, y):
        for _ in range(5):
            if y[0] > 100.0:
                y = np.linalg.solve(0.0 * a, y)
            else:
                y = y + 0.1 * np.sin(y)
        return np.sum(y)

    value, gradient = ckad.value_and_grad(fun, 1, engine=engine)(A, Y)
    assert value == pytest.approx(fun(A, Y), rel=1e-14)
    assert np.all(np.isfinite(gradient))


def walk(a, y):
    for _ in range(40):
        y = np.linalg.solve(a, y) + 0.1 * np.sin(y)
        a = a + 0.01 * np.outer(y, y)
    return np.sum(y**2) + np.sum(a)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_budgets_keep_the_bits(engine):
    """The factors are residuals like any other: kept, or computed again."""
    everything = ckad.value_and_grad(walk, (0, 1), engine=engine)(A, Y)
    for memory in ("26 KB", "32 KB", "48 KB"):
        value, gradient = ckad.value_and_grad(walk, (0, 1), engine=engine, memory=memory)(A, Y)
        assert value == everything[0]
        assert all(map(np.array_equal, gradient, everything[1]))


def test_engines_have_the_same_bits():
    found = [ckad.jit(np.linalg.solve, engine=e)(A, Y) for e in ("vm", "native")]
    assert np.array_equal(*found)
