"""Attributes by name, and whether there is one: in bodies as in Python, step by step."""

import dataclasses
import functools
import operator

import numpy as np
import pytest

import ckad
from ckad.errors import UnsupportedFunctionError


class Body:
    def __init__(self, w):
        self.w = w

    def stop(self):
        self.stopped = True


@dataclasses.dataclass
class Pair:
    w: float
    v: float = 0.0


class Slotted:
    __slots__ = ("v", "w")

    def __init__(self, w):
        self.w = w


class Halved:
    def __init__(self, x):
        self._x = x

    x = property(lambda self: self._x, lambda self, value: setattr(self, "_x", 0.5 * value))


def read_by_name_alone(x):
    a = Body(x)
    for _ in range(30):
        a.w = getattr(a, "w") * 1.01  # noqa: B009
    return a.w


def bound_by_name(x):
    a = Pair(x)
    for _ in range(30):
        for name in ("w", "v"):
            setattr(a, name, 0.9 * getattr(a, name) + 0.1)
    return a.w * a.v


def bound_in_a_branch(x):
    a = Body(x)
    if x > 1:
        setattr(a, "w", 2 * x)  # noqa: B010
    else:
        setattr(a, "v", 3 * x)  # noqa: B010
    return a.w * getattr(a, "v", 0.5)


def deleted_in_a_branch(x):
    a = Body(x)
    a.v = x
    if x > 1:
        delattr(a, "v")
    return getattr(a, "v", 3.0) * x


def deleted_by_a_step(x):
    a, s = Body(x), 0.0
    for i in range(30):
        if i == 10:
            a.stop()
        if i == 20:
            del a.stopped
        if hasattr(a, "stopped"):
            s = s + a.w
        a.w = 0.9 * a.w
    return s


def one_of_two(x):
    a, b = Body(x), Body(2 * x)
    p = a if x > 1 else b
    setattr(p, "w", 3 * getattr(p, "w"))  # noqa: B009, B010
    return a.w + b.w * getattr(p, "v", 2.0)


def through_a_property(x):
    a, s = Halved(x), 0.0
    for _ in range(10):
        setattr(a, "x", 1.5 * getattr(a, "x"))  # noqa: B009, B010
        s = s + a.x
    return s


def looked_for(x):
    a, s = Body(x), 0.0
    for i in range(30):
        if i == 10:
            a.stop()
        if hasattr(a, "stopped"):
            s = s + a.w
        a.w = 0.9 * a.w
    return s


def looked_for_in_slots(x):
    a, s = Slotted(x), 0.0
    for i in range(30):
        if hasattr(a, "v"):
            s = s + a.v
        if i >= 10:
            a.v = a.w
        a.w = 0.9 * a.w
    return s


def read_with_a_default(x):
    a, s = Body(x), 0.0
    for _ in range(30):
        if a.w < 0.5:
            a.least = a.w
        s = s + getattr(a, "least", 2.0) * a.w
        a.w = 0.9 * a.w
    return s


def a_default_of_another_kind(x):
    a, s = Body(x), 0.0
    for i in range(30):
        if i == 10:
            a.mode = "slow"
        s = s + (0.1 if getattr(a, "mode", None) == "slow" else 1.0) * a.w
    return s


def made_when_it_is_missing(x):
    a, s = Body(x), 0.0
    for _ in range(30):
        if not hasattr(a, "velocity"):
            a.velocity = np.zeros(3)
        a.velocity = 0.9 * a.velocity - 0.1 * a.w
        a.w = a.w + a.velocity[0]
        s = s + a.w**2
    return s


def met_by_a_try(x):
    a, s = Body(x), 0.0
    for _ in range(30):
        try:
            s = s + a.first * a.w
        except AttributeError:
            a.first = a.w
        a.w = 0.9 * a.w
    return s


def met_by_a_try_later(x):
    a, s = Body(x), 0.0
    for i in range(30):
        try:
            s = s + a.least
        except AttributeError:
            s = s + 1.0
        if i == 10:
            a.least = a.w
        a.w = 0.9 * a.w
    return s


def a_variable_met_by_a_try(x):
    s = 0.0
    for _ in range(30):
        try:
            s = s + first * x
        except NameError:
            first = 2 * x  # noqa: F841
        x = 0.9 * x
    return s


def a_variable_met_by_a_try_later(x):
    s = 0.0
    for i in range(30):
        try:
            s = s + found  # noqa: F821
        except UnboundLocalError:
            s = s + 1.0
        if i == 10:
            found = x  # noqa: F841
        x = 0.9 * x
    return s


def in_a_while(x):
    a, s, i = Body(x), 0.0, 0
    while a.w > 0.1:
        if i == 10:
            a.stop()
        if hasattr(a, "stopped"):
            s = s + a.w
        a.w = 0.9 * a.w
        i += 1
    return s


def in_loops_of_loops(x):
    a, s = Body(x), 0.0
    for i in range(5):
        for j in range(4):
            if i == 2 and j == 1:
                a.stop()
            s = s + (a.w if hasattr(a, "stopped") else 0.5 * a.w)
        a.w = 0.9 * a.w
    return s


def in_the_dict(x):
    a, s = Body(x), 0.0
    for i in range(30):
        if "stopped" in a.__dict__:
            s = s + a.w
        if i == 10:
            a.stop()
        a.w = 0.9 * a.w
    return s


def by_a_partial(x):
    a, s = Body(x), 0.0
    get = functools.partial(getattr, a)
    for _ in range(10):
        s = s + get("w") + operator.attrgetter("w")(a)
        a.w = 0.9 * a.w
    return s


class Guessed:
    def __init__(self, w):
        self.w, self.asked = w, 0

    def __getattr__(self, name):
        self.asked += 1
        if name == "twice":
            return 2.0 * self.w
        raise AttributeError(name)


def by_methods_that_say_which_there_are(x):
    a, s = Guessed(x), 0.0
    for _ in range(10):
        s = s + getattr(a, "twice", 5.0) + x * getattr(a, "thrice", 0.5)
    return s * a.asked


OWN = [f for f in list(globals().values()) if getattr(f, "__module__", "") == __name__]
PROGRAMS = [f for f in OWN if not isinstance(f, type)]


@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_as_in_python(program, engine):
    value, gradient = ckad.value_and_grad(program, engine=engine)(1.3)
    assert value == pytest.approx(program(1.3), rel=1e-13)
    difference = (program(1.3 + 1e-6) - program(1.3 - 1e-6)) / 2e-6
    assert gradient == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_a_name_that_no_step_has_bound_stops_the_program():
    def program(x):
        a = Body(x)
        if x > 1:
            a.v = x
        return a.v * x

    assert ckad.grad(program)(1.3) == pytest.approx(2.6)
    with pytest.raises(ckad.errors.UnboundError, match="nothing has bound"):
        ckad.grad(program)(0.5)


def test_a_body_that_deletes_what_hides_a_value_of_the_class():
    class Spring:
        k = 5.0

    def program(x):
        a = Spring()
        a.k = x
        if x > 1:
            del a.k
        return getattr(a, "k", 0.0) * x

    with pytest.raises(ckad.errors.UnrecordableError, match="class has a value of that name"):
        ckad.grad(program)(1.3)


def test_getattr_takes_one_default():
    with pytest.raises(TypeError):
        ckad.jit(lambda x: getattr(None, "w", x, x))(1.3)
    assert ckad.jit(lambda x: getattr(None, "w", 2 * x))(1.5) == 3.0


def test_what_decides_whether_a_handler_runs_is_named():
    def program(x):
        a = Body(x)
        if x > 1:
            a.v = x
        try:
            return a.v * x
        except AttributeError:
            return x

    with pytest.raises(ckad.errors.ConcreteValueError, match="a handler waits for a name"):
        ckad.grad(program)(1.3)


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda x: int(x[0] * 10.0).bit_length(), UnsupportedFunctionError, r"\.bit_length of a"),
        (lambda x: float(x[0]).hex(), UnsupportedFunctionError, r"\.hex of a traced float"),
        (lambda x: x.unknown, AttributeError, "'ndarray' object has no attribute 'unknown'"),
        (lambda x: x[0].unknown, AttributeError, "'float64' object has no attribute 'unknown'"),
        (lambda x: (x + 1j).unknown, AttributeError, "'ndarray' object has no"),
    ],
)
def test_what_traced_values_have_not_is_told_as_of_those_of_numpy(ask, error, says):
    with pytest.raises(error, match=says):
        ckad.jit(ask)(np.ones(3))


def test_a_default_is_taken_for_what_arrays_have_not():
    def program(x):
        return getattr(x, "unknown", 2.0) * x[0] + hasattr(x, "unknown")

    assert ckad.jit(program)(np.array([3.0])) == 6.0
