"""Equal bodies are one object, and derived once."""

import numpy as np

import ckad
from ckad.engines.vm.assembly.placement import order_of
from ckad.passes.loops.same import one_each
from ckad.passes.simplify import simplify
from ckad.tape.builder import Builder
from ckad.tape.control import loop_attrs
from ckad.tape.ops import Op
from ckad.tape.types import TUPLE, DType, Type

NUMBER, INDEX = Type(DType.F64, ()), Type(DType.I64, ())


def _damped(x, rate):
    for _ in range(3):
        x = x + rate * np.sin(x)
    return x


def _once(x, rate):
    x = _damped(_damped(_damped(x, rate), rate), rate)
    x = _damped(_damped(_damped(x, rate), rate), 2.0 * rate)
    return _damped(_damped(_damped(x, rate), rate), rate)


def _objects(tape):
    found = {id(body): body for body in tape.bodies}
    for body in tape.bodies:
        found |= _objects(body)
    return found


def _by_steps(x, rate):
    for k in range(9):
        x = _damped(x, 2.0 * rate if k == 5 else rate)
    return x


def test_equal_loops_have_one_adjoint():
    f = ckad.value_and_grad(_once, (0, 1), engine="vm")
    assert len(_objects(f.compiled(0.3, 0.1).tape)) < 9
    value, (by_x, by_rate) = f(0.3, 0.1)
    assert value == _once(0.3, 0.1)
    _, (dx, dr) = ckad.value_and_grad(_by_steps, (0, 1), engine="vm")(0.3, 0.1)
    np.testing.assert_allclose([by_x, by_rate], [dx, dr], rtol=1e-14)


def _adding(number):
    b = Builder()
    b.input(INDEX)
    x = b.input(NUMBER)
    return b.tape([b.add(x, b.const(number))])


def _loops(numbers):
    b = Builder()
    x = b.input(NUMBER)
    for number in numbers:
        loop = b.emit(Op.LOOP, (x,), loop_attrs(b.body(_adding(number)), 2, 1, 0), TUPLE)
        x = b.emit(Op.RESULT, (loop,), (0,), NUMBER)
    return b.tape([x])


def test_equal_bodies_are_one():
    tape = _loops([0.0, -0.0, 1.0, 0.0, -0.0, 1.0, 1.0, 1.0])
    made = one_each(tape)
    assert len(_objects(tape)) == 8
    assert len(_objects(made)) == 3
    assert made.identity == tape.identity
    assert made.bodies[0] is made.bodies[3] is not made.bodies[1]
    assert len(_objects(simplify(made))) == 3


def test_the_order_of_a_body_is_found_once():
    body = _adding(1.0)
    assert order_of(body, True) is order_of(body, True)
    assert order_of(body, False) is not order_of(body, True)
