"""What loops carry: only what their results need, and only what they change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import ckad
from ckad.passes.dce import dce
from ckad.passes.simplify import simplify
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.control import COUNTED, WHILE, Loop, loop_attrs, read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type
from ckad.tape.verify import verify

from .recorded import raw, recorded

VECTOR, FLAG, NUMBER = Type(DType.F64, (3,)), Type(DType.BOOL, ()), Type(DType.I64, ())


def loop_of(tape: Tape) -> Loop:
    (row,) = (row for row in tape.rows if row.op is Op.LOOP)
    return read_loop(tape, row)


def made_smaller(program: Callable[..., object], *args: np.ndarray) -> tuple[Tape, Loop]:
    tape = raw(program, args)
    small = simplify(tape)
    verify(small)
    for got, expected in zip(evaluate(small, *args), evaluate(tape, *args), strict=True):
        np.testing.assert_array_equal(got, expected)
    return small, loop_of(small)


def test_a_carry_that_nothing_needs_goes() -> None:
    def program(x):
        step = lambda i, c: (c[0] * 0.5, np.sin(c[1]) + c[0])  # noqa: E731
        return ckad.fori_loop(0, 4, step, (x, x))[0]

    _, loop = made_smaller(program, np.ones(3))
    assert len(loop.carry) == 1


def test_a_carry_that_another_one_needs_later_stays() -> None:
    def program(x):
        step = lambda i, c: (c[1], c[2] * 2.0, np.cos(c[2]), c[3] + c[0])  # noqa: E731
        return ckad.fori_loop(0, 5, step, (x, x + 1.0, x + 2.0, x + 3.0))[0]

    _, loop = made_smaller(program, np.ones(3))
    assert len(loop.carry) == 3


def test_what_only_a_dropped_carry_was_computed_from_goes() -> None:
    def program(x, y):
        step = lambda i, c: (c[0] * 0.5, c[1] + c[0])  # noqa: E731
        return ckad.fori_loop(0, 4, step, (x, np.exp(y)))[0]

    small, _ = made_smaller(program, np.ones(3), np.ones(3))
    assert not any(row.op is Op.EXP for row in small.rows)


def test_a_carry_that_never_changes_is_captured() -> None:
    def program(x, y):
        x, y = ckad.fori_loop(0, 4, lambda i, c: (c[0] * c[1], c[1]), (x, y))
        return x + y

    _, loop = made_smaller(program, np.full(3, 2.0), np.arange(3.0))
    assert len(loop.carry) == len(loop.captured) == 1


def test_a_carry_that_an_inner_loop_never_changes_is_captured() -> None:
    def program(x, y):
        def outer(i, c):
            return ckad.fori_loop(0, 3, lambda j, d: (np.sin(d[0]) * d[1], d[1]), c)

        return ckad.fori_loop(0, 4, outer, (x, y))

    _, loop = made_smaller(program, np.full(3, 2.0), np.arange(3.0))
    assert len(loop.carry) == len(loop.captured) == 1
    assert len(loop_of(loop.body).carry) == 1


def test_a_loop_that_changes_nothing_goes() -> None:
    def program(x):
        return ckad.fori_loop(0, 4, lambda i, c: c, x)

    tape = recorded(program, [np.ones(3)])
    assert not any(row.op is Op.LOOP for row in tape.rows)


def test_xs_that_nothing_reads_go() -> None:
    def program(x, xs):
        return ckad.scan(lambda c, e: (c * e[0], c + e[1]), x, xs)[0]

    _, loop = made_smaller(lambda x, a, b: program(x, (a, b)), np.array(2.0), *np.ones((2, 4)))
    assert (len(loop.xs), loop.n_ys) == (1, 0)


def guarded(guard: int, first: Type) -> Tape:
    """A guarded loop whose guard no result needs, with a carry that nothing needs either."""
    body = Builder()
    body.input(NUMBER)
    inputs = [body.input(first), body.input(VECTOR), body.input(VECTOR)]
    doubled, halved = (
        body.mul(x, body.full(VECTOR, f)) for x, f in zip(inputs[1:], (2, 0.5), strict=True)
    )
    b = Builder()
    given = [b.input(first), b.input(VECTOR)]
    attrs = loop_attrs(b.body(body.tape([inputs[0], doubled, halved])), 10, 3, 0, guard)
    results = b.control(Op.LOOP, [*given, given[1]], attrs, [first, VECTOR, VECTOR])
    return b.tape(results[1:2])


def test_what_guards_a_loop_stays() -> None:
    for guard, first, steps in ((WHILE, FLAG, False), (COUNTED, NUMBER, 3)):
        tape = guarded(guard, first)
        small = dce(tape)
        verify(small)
        assert len(loop_of(small).carry) == 2
        assert loop_of(small).guard == guard
        inputs = np.asarray(steps), np.ones(3)
        np.testing.assert_array_equal(evaluate(small, *inputs), evaluate(tape, *inputs))
