"""What names, methods and classes mean while a program is recorded: as in Python, or refused."""

from __future__ import annotations

import enum
import functools
import io
import math
import time

import numpy as np
import pytest
import scipy.special

import ckad
from ckad.errors import CkadError, ConcreteValueError, SkippedCallWarning

pytestmark = pytest.mark.usefixtures("engine")
COUNT = 0
SCALE = 1.0
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def check(function, x=1.7):
    """The value is Python's, the derivative that of differences."""
    value, gradient = ckad.value_and_grad(function)(x)
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    h = 1e-6
    np.testing.assert_allclose(
        gradient, (function(x + h) - function(x - h)) / (2 * h), rtol=1e-5, atol=1e-7
    )


# --- functions made in functions -----------------------------------------------------------------


def halved(f):
    @functools.wraps(f)
    def wrapped(*args):
        return 0.5 * f(*args)

    return wrapped


@program
def wraps_of_inner_functions(x):
    def doubled(f):
        @functools.wraps(f)
        def wrapped(y):
            return 2.0 * f(y)

        return wrapped

    @halved
    @doubled
    @doubled
    def square(y):
        return y**2

    for _ in range(6):
        x = 0.4 * square(x)
    return x


def as_floats(f):
    @functools.wraps(f)
    def wrapped(*args, **options):
        return np.asarray(f(*args, **options), dtype=float) * 1.5

    return wrapped


class Backend:
    asarray = staticmethod(as_floats(np.asarray))
    total = staticmethod(as_floats(np.sum))


@program
def wraps_of_functions_of_numpy(x):
    for _ in range(6):
        x = 0.1 * Backend.total(Backend.asarray([x, x**2]))
    return as_floats(math.sin)(x) + x


@program
def cached_function_of_traced_values(x):
    @functools.cache
    def powers(k):
        return np.linspace(1.0, 0.5, 4) ** k

    for _ in range(6):
        x = 0.5 * x + np.sum(0.1 * powers(2))
    return x


@program
def cached_array_is_one_array(x):
    @functools.cache
    def buffer(n):
        return np.zeros(n)

    mine = buffer(3)
    mine += x
    for _ in range(6):
        also = buffer(3)
        also += x
    return np.sum(x * buffer(3))


def test_write_into_what_a_loop_takes_from_a_cache():
    """In Python all steps write into one array."""

    def function(x):
        @functools.cache
        def buffer(n):
            return np.zeros(n)

        for _ in range(6):
            mine = buffer(3)
            mine += x
        return np.sum(x * buffer(3))

    check(function)


@program
def recursive_cache(x):
    @functools.cache
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    return x * fibonacci(12)


@functools.singledispatch
def kind(y):
    return 0.0 * np.sum(y)


@kind.register(float)
def _of_float(y):
    return 3.0 * y


@kind.register(np.ndarray)
def _of_array(y):
    return 4.0 * np.sum(y)


@program
def single_dispatch(x):
    return kind(x) + kind(x * np.ones(3))


@program
def classes_of_traced_values(x):
    u = x * np.ones(3)
    factor = 2.0 if isinstance(u, np.ndarray) else 3.0
    factor *= 5.0 if isinstance(x, (int, float)) else 7.0
    factor *= 11.0 if type(x) is float else 13.0
    factor *= 17.0 if x.__class__ is float else 19.0
    factor *= 23.0 if type(np.sum(u)) is np.float64 else 29.0
    factor *= 31.0 if isinstance(u + 1j, np.ndarray | list) else 37.0
    return factor * x


# --- names from outside --------------------------------------------------------------------------


@program
def global_counter(x):
    global COUNT
    COUNT = 0
    for _ in range(30):
        x = 0.9 * x
        COUNT += 1
        if x < 1.0:
            COUNT = COUNT + 2
    return x + COUNT


def scaled():
    return SCALE


@program
def global_that_another_function_reads(x):
    global SCALE
    SCALE = 1.0
    total = 0.0
    for _ in range(12):
        total = total + scaled()
        SCALE = 0.1 * total * x
    return total


def counter():
    count = 1.0

    def advance(x):
        nonlocal count
        count = 0.5 * count + x
        return count

    def read():
        return count

    return advance, read


@program
def variable_of_a_closure(x):
    advance, read = counter()
    total = 0.0
    for _ in range(9):
        total = total + advance(x) + read()
    return total


ADVANCE, READ = counter()


def test_outside_is_as_before_after_recording():
    def function(x):
        global COUNT
        total = 0.0
        for _ in range(9):
            COUNT = COUNT + 1
            total = total + ADVANCE(x)
        return total + READ() + COUNT

    before = COUNT, READ()
    ckad.grad(function)(1.7)
    assert (COUNT, READ()) == before


# --- states --------------------------------------------------------------------------------------


class State(enum.Enum):
    HEAT = "heat"
    COOL = "cool"
    REST = "rest"


@program
def enum_state(x):
    state, rests = State.HEAT, 0
    for _ in range(25):
        if state is State.HEAT:
            x = 1.3 * x
            if x > 4.0:
                state = State.COOL
        elif state == State.COOL:
            x = 0.7 * x
            if x < 1.0:
                state = State.REST
        else:
            rests += 1
            if rests > 3:
                state, rests = State.HEAT, 0
        if state in (State.REST, State.COOL):
            x = x + 0.01
    return x


class Oven:
    def __init__(self, x):
        self.x, self.mode = x, None

    def step(self):
        if self.mode is None and self.x > 2.0:
            self.mode = "hot"
        self.x = self.x * (1.1 if self.mode != "hot" else 0.95)


@program
def word_on_an_object(x):
    oven = Oven(x)
    for _ in range(20):
        oven.step()
    return oven.x * (2.0 if oven.mode == "hot" else 3.0)


def test_returned_state():
    def function(x):
        state = "cold"
        for _ in range(9):
            if x > 2.0:
                state = "hot"
            x = 1.05 * x
        return x, state

    assert ckad.jit(function)(1.7)[1] == function(1.7)[1] == "hot"
    assert ckad.jit(function)(0.7)[1] == function(0.7)[1] == "cold"


@pytest.mark.parametrize(
    "use",
    [
        len,
        lambda s: len(s.upper()),
        lambda s: {"a": 1.0}[s],
        lambda s: float(isinstance(s, str)),
        lambda s: 2.0 if s.startswith("a") else 3.0,
    ],
)
def test_what_is_asked_of_a_word(use):
    def function(x):
        state = "a" if x > 1.0 else "b"
        return x * use(state)

    check(function)


# --- functions without a rule --------------------------------------------------------------------


@program
def of_constants(x):
    for _ in range(7):
        free = np.setdiff1d(np.arange(6), [0, 1])
        size = np.max(np.abs(np.linalg.eigvals(np.eye(3) + 0.1)))
        x = 0.5 * x + 0.01 * size * np.sum((x * np.arange(6.0))[free])
    for n in range(6):
        x = x + x / scipy.special.gamma(2.5 + n)
    return x


def test_view_of_a_constant_array_is_not_a_copy():
    def function(x):
        a = np.arange(4.0)
        windows = np.lib.stride_tricks.sliding_window_view(a, 2)
        a[0] = x
        return np.sum(windows)

    check(function)


# --- calls that change no number -----------------------------------------------------------------


def test_one_warning_names_what_is_left_out():
    out = io.StringIO()

    def function(x):
        start = time.perf_counter()
        for k in range(40):
            x = 0.9 * x
            if k % 10 == 0:
                print(k, x, f"{time.perf_counter() - start:.2f}", file=out)
            start = time.perf_counter()
            out.write(f"{x}")
        return x

    with pytest.warns(SkippedCallWarning) as caught:
        gradient = ckad.grad(function)(1.7)
    np.testing.assert_allclose(gradient, 0.9**40)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert all(name in said for name in ("print", "time.perf_counter", "file.write"))
    assert out.getvalue() == ""


def test_number_of_a_call_that_is_left_out():
    def function(x):
        while x < 40.0:
            x = x * (1.5 + abs(int(time.perf_counter() > 0.0)))
        return x

    with pytest.raises(ConcreteValueError, match=r"time\.perf_counter"):
        ckad.grad(function)(1.7)


# --- what a name means is changed ----------------------------------------------------------------


class Single:
    factor = 1.0

    def __init__(self, x):
        self.x = x

    def value(self):
        return self.factor * self.x


class Double(Single):
    def value(self):
        return 2.0 * self.factor * self.x


class Computed:
    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        if name == "twice":
            return 2.0 * self.x
        raise AttributeError(name)


class Descriptor:
    def __get__(self, owner, kind=None):
        return 3.0 * owner.x

    def __set__(self, owner, value):
        owner.x = value / 3.0


class Described:
    triple = Descriptor()

    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Noted:
    def __init__(self, x):
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "n", 0)

    def __setattr__(self, name, value):
        object.__setattr__(self, "n", self.n + 1)
        object.__setattr__(self, name, 0.5 * value)


def one(x):
    return x


def other(x):
    return 3.0 * x


def class_bound_anew(x):
    b = Single(x)
    b.__class__ = Double
    return b.value()


def class_bound_anew_in_a_loop(x):
    b = Single(x)
    for k in range(9):
        b.x = 0.9 * b.x
        if k == 4:
            b.__class__ = Double
    return b.value()


OUTER = Single(1.0)


def class_of_another_bound_anew(x):
    OUTER.__class__ = Double
    return x * OUTER.value()


def class_set_by_name(x):
    b = Single(x)
    setattr(b, "__class__", Double)  # noqa: B010
    return b.value()


def bases_bound_anew(x):
    class Base:
        def value(self):
            return 5.0 * x

    class Other:
        def value(self):
            return 7.0 * x

    class Derived(Base):
        pass

    Derived.__bases__ = (Other,)
    return Derived().value()


def method_rebound_on_the_class(x):
    old = Single.value
    try:
        Single.value = lambda self: 7.0 * self.x
        return Single(x).value()
    finally:
        Single.value = old


def method_rebound_on_the_object(x):
    b = Single(x)
    b.value = lambda: 9.0 * x
    return b.value()


def method_rebound_in_a_loop(x):
    b = Single(x)
    for k in range(8):
        if k == 4:
            b.value = lambda: 0.5 * b.x
        b.x = 0.9 * b.value()
    return b.x


def default_of_the_class(x):
    b = Single(x)
    for _ in range(8):
        b.x = 0.9 * b.value()
        b.factor = 1.1 * b.factor
    return b.value() * Single.factor


def class_attribute_in_a_loop(x):
    old = Single.factor
    try:
        b = Single(x)
        for _ in range(8):
            b.x = 0.9 * b.value()
            Single.factor = Single.factor * 1.1
        return b.value()
    finally:
        Single.factor = old


def function_rebound_in_the_module(x):
    global one
    old = one
    try:
        total = one(x)
        one = other
        return total + one(x)
    finally:
        one = old


def function_rebound_in_a_loop(x):
    global one
    old = one
    try:
        for k in range(8):
            x = 0.5 * one(x)
            if k == 3:
                one = other
        return x
    finally:
        one = old


def code_of_a_function_bound_anew(x):
    def f(y):
        return y

    def g(y):
        return 3.0 * y

    f.__code__ = g.__code__
    return f(x)


def defaults_bound_anew(x):
    def f(y, factor=2.0):
        return factor * y

    f.__defaults__ = (5.0,)
    return f(x)


def attributes_through_the_dict(x):
    b = Single(x)
    for _ in range(8):
        b.__dict__["x"] = 0.9 * b.x
        vars(b)["factor"] = 1.5
    return b.value()


def computed_attributes(x):
    b = Computed(x)
    for _ in range(8):
        b.x = 0.45 * b.twice
    return b.twice


def descriptors(x):
    b = Described(x)
    for _ in range(8):
        b.triple = 0.9 * b.triple
    return b.triple + b.x


def slots(x):
    b = Slotted(x)
    for _ in range(8):
        b.x = 0.9 * b.x
    return b.x


def attributes_that_a_method_sets(x):
    b = Noted(x)
    for _ in range(4):
        b.x = 1.5 * b.x
    return b.x * b.n


def builtin_under_another_name(x):
    abs = lambda y: 3.0 * y  # noqa: E731
    return abs(x)


def numpy_function_rebound(x):
    old = np.sin
    try:
        np.sin = np.cos
        return np.sin(x)
    finally:
        np.sin = old


@pytest.mark.parametrize(
    "function",
    [
        class_bound_anew,
        class_bound_anew_in_a_loop,
        class_set_by_name,
        bases_bound_anew,
        method_rebound_on_the_class,
        method_rebound_on_the_object,
        method_rebound_in_a_loop,
        class_attribute_in_a_loop,
        function_rebound_in_the_module,
        function_rebound_in_a_loop,
        attributes_through_the_dict,
        computed_attributes,
        descriptors,
        slots,
        attributes_that_a_method_sets,
        default_of_the_class,
        builtin_under_another_name,
        numpy_function_rebound,
    ],
)
def test_changed_meaning_is_followed(function):
    check(function)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (class_of_another_bound_anew, "__class__ is bound anew"),
        (code_of_a_function_bound_anew, "__code__"),
        (defaults_bound_anew, "__defaults__"),
    ],
)
def test_changed_meaning_is_refused(function, says):
    with pytest.raises(CkadError, match=says):
        ckad.value_and_grad(function)(1.7)


@pytest.mark.parametrize("function", PROGRAMS)
def test_program(function):
    check(function)
