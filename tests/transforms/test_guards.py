"""What a recording has read of objects, modules and classes: used again while all is as it was."""

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import importlib
import logging
import math
import operator
import os
import os.path
import random
import sys
import time
import types
import typing
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.interpolate

import ckad
from ckad.transforms import reuse


class Mode(enum.Enum):
    LINEAR = 1
    SQUARE = 2


@dataclass
class Rates:
    a: float = 2.0
    b: Any = field(default_factory=lambda: None)


class Pair(NamedTuple):
    a: float
    b: float


Point = namedtuple("Point", "x y")


class Base:
    power = 2

    def __init__(self, n: int = 3) -> None:
        self.n, self.k = n, 3.0
        self.w = np.arange(1.0, n + 1.0)
        self.history: list[float] = []
        self.options = {"scale": 2.0, "inner": [1.0, 4.0]}

    def weighted(self, x: Any) -> Any:
        return self.k * np.sum(self.w * x)

    def __call__(self, x: Any) -> Any:
        return self.weighted(x)


class Model(Base):
    mode = Mode.LINEAR

    def __init__(self, n: int = 3) -> None:
        super().__init__(n)
        self.part = Base(2)

    @property
    def scale(self) -> float:
        return self.options["scale"]

    @staticmethod
    def twice(x: Any) -> Any:
        return 2.0 * x

    @classmethod
    def raised(cls, x: Any) -> Any:
        return x**cls.power

    def __add__(self, x: Any) -> Any:
        return self.k + x

    def __getitem__(self, k: int) -> Any:
        return self.w[k]

    def step(self, x: Any) -> Any:
        return x + 0.1 * self.weighted(x)

    def loss(self, x: Any) -> Any:
        u = np.ones(3) * x
        for _ in range(20):
            u = u + 0.01 * self.weighted(u)
        return np.sum(u)


class Slotted:
    __slots__ = ("k",)

    def __init__(self) -> None:
        self.k = 3.0


class Positive:
    """A descriptor, as people write them."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = "_" + name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return getattr(owner, self.name)

    def __set__(self, owner: Any, value: Any) -> None:
        if value <= 0:
            raise ValueError("positive numbers only")
        setattr(owner, self.name, value)


class Checked:
    k = Positive()

    def __init__(self) -> None:
        self.k = 3.0


class Lazy:
    def __init__(self) -> None:
        self.values = {"k": 3.0}

    def __getattr__(self, name: str) -> Any:
        return self.values[name]


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self, x: Any) -> Any: ...


class Disc(Shape):
    def area(self, x: Any) -> Any:
        return math.pi * x**2


MODEL = Model()
RATES = Rates(2.0, 3.0)
TABLE = {"square": lambda x: x * x, "cube": lambda x: x**3}
SPACE = types.SimpleNamespace(k=3.0, inner=types.SimpleNamespace(k=2.0))


class Network(types.SimpleNamespace):
    def layer(self, x: Any) -> Any:
        return self.activate(self.weight * x)


NETWORK = Network(weight=2.0, activate=np.tanh, unread=np.ones(3))
QUEUE = deque([1.0, 2.0], maxlen=4)


# --- what is recorded once ---------------------------------------------------------------------


def made_inside(x: Any) -> Any:
    model = Model()
    model.k = 2.0
    model.history.append(model.step(x))
    model.part.k += 1.0
    return model.history[-1] + model.part.weighted(x) + model.scale * model.raised(x)


def with_methods_of_a_namespace(x: Any) -> Any:
    return NETWORK.layer(x) + NETWORK.weight


def with_errstate(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.sum(np.log(x) + MODEL.w)


def with_printoptions(x: Any) -> Any:
    for _ in range(3):
        with np.printoptions(precision=2, suppress=True):
            x = x * np.sum(MODEL.w)
    return x


def with_imports_by_name(x: Any) -> Any:
    return x * __import__("math").sqrt(4.0) * importlib.import_module("numpy.linalg").norm(MODEL.w)


def with_imports(x: Any) -> Any:
    import math as m
    from math import exp, pi

    import numpy.fft as fft

    return x * m.sqrt(4.0) * exp(0.5) * pi + np.sum(np.abs(fft.fft(MODEL.w * x)))


def with_exception(x: Any) -> Any:
    try:
        table = {"k": 2.0}
        k = table["missing"]
    except KeyError as error:
        k = float(len(error.args))
    finally:
        x = 2.0 * x
    return k * x


def with_table(x: Any) -> Any:
    return sum(f(x) for f in TABLE.values()) + TABLE["cube"](x)


def with_partial(x: Any) -> Any:
    bound = functools.partial(MODEL.step)
    return bound(x) + functools.partial(lambda a, b: a * b, 3.0)(x)


def with_namespace(x: Any) -> Any:
    own = types.SimpleNamespace(u=x, n=2)
    own.u = own.u * SPACE.k
    return own.u**own.n * SPACE.inner.k


def with_generator(x: Any) -> Any:
    return sum(k * x for k in (1.0, 2.0, 3.0)) + sum(c * x for c in QUEUE)


def with_enum(x: Any) -> Any:
    if MODEL.mode is Mode.LINEAR:
        return MODEL.mode.value * x
    return x * x


def with_dataclass(x: Any) -> Any:
    made = Rates(RATES.a * x, x)
    return made.a * made.b * RATES.b


def with_tuples(x: Any) -> Any:
    pair, point = Pair(x, 2.0), Point(x, 3.0)
    a, b = pair
    return a * b + point.x * point.y + pair._replace(a=2.0 * x).a


def with_cached(x: Any) -> Any:
    @functools.lru_cache
    def weight(k: int) -> float:
        return k + MODEL.k

    return weight(1) * x + weight(1) * x


def with_operators(x: Any) -> Any:
    return (MODEL + x) * MODEL[1] + Disc().area(x) + Slotted().k


def with_seed(x: Any) -> Any:
    rng = np.random.default_rng(3)
    return x * rng.normal() + np.sum(rng.random(3) * x)


def with_seed_of_all(x: Any) -> Any:
    np.random.seed(5)
    random.seed(7)
    weights = np.random.randn(3)
    return np.sum(weights * x) + np.random.rand() * random.random() * x


def with_copies(x: Any) -> Any:
    one, other = copy.deepcopy(MODEL), copy.copy(RATES)
    one.k = x
    one.part.w = one.part.w * x
    other.a = 2.0 * x
    return one.weighted(x) + np.sum(one.part.w) + other.a * other.b


def with_getattr(x: Any) -> Any:
    return getattr(MODEL, "k") * x + (1.0 if hasattr(MODEL, "missing") else 2.0) * x  # noqa: B009


def with_containers(x: Any) -> Any:
    d: Any = defaultdict(list)
    for name, k in OrderedDict(a=1.0, b=2.0).items():
        d[name].append(k * x)
    d["a"].extend(sorted([3.0, 1.0], reverse=True))
    return sum(sum(v) for v in d.values()) * len(set(d)) + max(MODEL.options["inner"]) * x


def with_formats(x: Any) -> Any:
    names = ["%s_%d" % ("u", k) for k in range(2)]  # noqa: UP031
    values = {name: (k + 1.0) * x for k, name in enumerate(names)}
    return values["u_0"] + values[f"u_{1}"] + values["u_{}".format(1)]  # noqa: UP032


def with_state_put_back(x: Any) -> Any:
    MODEL.k = x
    found = MODEL.weighted(2.0)
    MODEL.k = 3.0
    return found


ONCE: list[Callable[..., Any]] = [
    f for name, f in list(globals().items()) if name.startswith(("made_", "with_"))
]
ONCE += [MODEL.loss, MODEL.step, MODEL, functools.partial(MODEL.step)]


@pytest.mark.parametrize("function", ONCE, ids=lambda f: getattr(f, "__name__", type(f).__name__))
def test_a_program_with_objects_is_recorded_once(function, recordings):
    g = ckad.value_and_grad(function)
    for x in (0.7, 1.3, 0.7):
        value, slope = g(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-12)
        central = (function(x + 1e-6) - function(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(slope, central, rtol=1e-6)
        np.testing.assert_allclose(ckad.jvp(function, (x,), (1.0,)), (value, slope), rtol=1e-12)
    assert len(recordings) == 1


def test_objects_as_arguments(recordings):
    def loss(x: Any, model: Any, rates: Any, f: Any, mode: Any) -> Any:
        u = x if mode is Mode.LINEAR else x * x
        return f(model.step(u)) * rates.a * rates.b

    model, other = Model(), Model()
    other.k = 5.0
    sin, cos = (lambda x: np.sin(x)), (lambda x: np.cos(x))
    g = ckad.grad(loss)
    for _ in range(2):
        for case in ((model, Rates(2.0, 3.0), sin, Mode.LINEAR), (other, RATES, cos, Mode.SQUARE)):
            central = (loss(0.3 + 1e-6, *case) - loss(0.3 - 1e-6, *case)) / 2e-6
            np.testing.assert_allclose(g(0.3, *case), central, rtol=1e-6)
    assert len(recordings) == 2
    model.k = 4.0
    first = g(0.3, model, Rates(2.0, 3.0), sin, Mode.LINEAR)
    assert first == g(0.3, model, Rates(2.0, 3.0), sin, Mode.LINEAR)
    assert len(recordings) == 3


def test_the_gradient_by_a_dataclass(recordings):
    def loss(rates: Rates) -> Any:
        return rates.a**2 * np.sum(rates.b)

    g = ckad.grad(loss)
    for a in (1.0, 2.0, 3.0):
        found = g(Rates(a, np.ones(2)))
        assert (found.a, found.b.tolist()) == (4.0 * a, [a * a] * 2)
    assert len(recordings) == 1


def test_named_tuples_and_functions_as_arguments(recordings):
    def loss(pair: Pair, f: Any) -> Any:
        return pair.a * pair.b + f(pair.a)

    g, f = ckad.grad(loss), MODEL.raised
    for a in (1.0, 2.0, 3.0):
        assert g(Pair(a, 3.0), f) == Pair(3.0 + 2.0 * a, a)
    assert g(Pair(1.0, 3.0), MODEL.twice) == Pair(5.0, 1.0)
    assert len(recordings) == 2


def test_copies_of_arrays_are_bounded(recordings, monkeypatch):
    monkeypatch.setattr(reuse, "KEPT_BYTES", 10_000)
    for k in range(5):
        a = np.full(500, float(k))
        assert ckad.grad(lambda x, a=a: x * a[3])(1.0) == k
    assert len(reuse._kept) == 2


def test_second_derivatives_by_a_method(recordings):
    model = Model()
    h = ckad.grad(ckad.grad(lambda x: model.raised(x) * model.k))
    assert h(2.0) == 6.0
    model.k = 4.0
    assert h(2.0) == 8.0


def test_budgets_and_engines_have_the_same_bits(recordings):
    model, x = Model(), 0.01
    expected = ckad.value_and_grad(model.loss, engine="vm")(x)
    for _ in range(2):
        assert ckad.value_and_grad(model.loss, engine="vm", memory="7 KB")(x) == expected
    assert len(recordings) == 1


def test_what_is_printed_is_printed_again(recordings, capsys):
    def loss(x: Any) -> Any:
        print("k", MODEL.k, sep=" = ")
        sys.stdout.write(f"{MODEL.n} weights\n")
        sys.stdout.flush()
        return x

    g = ckad.grad(loss)
    for _ in range(3):
        g(1.0)
    assert capsys.readouterr().out == "k = 3.0\n3 weights\n" * 3
    assert len(recordings) == 1


# --- what has changed --------------------------------------------------------------------------


class Case(NamedTuple):
    """A function, what changes, and the derivative (at 2.0) before and after."""

    function: Callable[..., Any]
    change: Callable[[], Any]
    before: float
    after: float


def attribute() -> Case:
    m = Model()
    return Case(lambda x: m.k * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def attribute_in_a_loop() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        for _ in range(50):
            x = x + m.k
        return m.k * x

    return Case(f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def attribute_of_a_part() -> Case:
    m = Model()
    return Case(lambda x: m.part.k * x, lambda: setattr(m.part, "k", 4.0), 3.0, 4.0)


def part_exchanged() -> Case:
    m, other = Model(), Base()
    other.k = 7.0
    return Case(lambda x: m.part.k * x, lambda: setattr(m, "part", other), 3.0, 7.0)


def array_of_an_object() -> Case:
    m = Model()
    return Case(lambda x: m.w[0] * x, lambda: m.w.fill(4.0), 1.0, 4.0)


def item_of_a_dict_of_an_object() -> Case:
    m = Model()
    change = lambda: m.options.update(scale=5.0)  # noqa: E731
    return Case(lambda x: m.scale * x, change, 2.0, 5.0)


def item_of_a_list_in_a_dict() -> Case:
    m = Model()
    change = lambda: m.options["inner"].append(9.0)  # noqa: E731
    return Case(lambda x: max(m.options["inner"]) * x, change, 4.0, 9.0)


def attribute_of_the_class_hidden() -> Case:
    m = Model()
    return Case(lambda x: m.power * x, lambda: setattr(m, "power", 5), 2.0, 5.0)


def attribute_of_the_class() -> Case:
    class Own(Model): ...

    m = Own()
    return Case(lambda x: m.power * x, lambda: setattr(Own, "power", 5), 2.0, 5.0)


def attribute_of_a_base_class() -> Case:
    class Lower:
        k = 3.0

    class Upper(Lower): ...

    m = Upper()
    return Case(lambda x: m.k * x, lambda: setattr(Lower, "k", 5.0), 3.0, 5.0)


def attribute_in_between() -> Case:
    class Lower:
        k = 3.0

    class Middle(Lower): ...

    class Upper(Middle): ...

    m = Upper()
    return Case(lambda x: m.k * x, lambda: setattr(Middle, "k", 5.0), 3.0, 5.0)


def bases_exchanged() -> Case:
    class One:
        k = 3.0

    class Other:
        k = 4.0

    class Top(One): ...

    m = Top()
    return Case(lambda x: m.k * x, lambda: setattr(Top, "__bases__", (Other,)), 3.0, 4.0)


def class_exchanged() -> Case:
    class One:
        def f(self, x: Any) -> Any:
            return 3.0 * x

    class Other:
        def f(self, x: Any) -> Any:
            return 4.0 * x

    m = One()
    return Case(lambda x: m.f(x), lambda: setattr(m, "__class__", Other), 3.0, 4.0)


def class_exchanged_of_what_is_asked() -> Case:
    class One: ...

    class Other: ...

    m = One()
    f = lambda x: (3.0 if isinstance(m, One) else 4.0) * x  # noqa: E731
    return Case(f, lambda: setattr(m, "__class__", Other), 3.0, 4.0)


def type_of_what_is_asked() -> Case:
    class One: ...

    class Other: ...

    m = One()
    f = lambda x: (3.0 if type(m) is One else 4.0) * x  # noqa: E731
    return Case(f, lambda: setattr(m, "__class__", Other), 3.0, 4.0)


def attributes_exchanged() -> Case:
    m = Model()
    return Case(lambda x: m.k * x, lambda: setattr(m, "__dict__", {"k": 4.0}), 3.0, 4.0)


def method_rebound() -> Case:
    class Own(Model): ...

    m = Own()
    change = lambda: setattr(Own, "step", lambda self, x: 9.0 * x)  # noqa: E731
    return Case(lambda x: m.step(x), change, 1.0 + 0.1 * 18.0, 9.0)


def method_of_one_object() -> Case:
    m = Model()
    return Case(
        lambda x: m.step(x),
        lambda: setattr(m, "step", lambda x: 9.0 * x),
        1.0 + 0.1 * 18.0,
        9.0,
    )


def code_of_a_method() -> Case:
    class Own:
        def f(self, x: Any) -> Any:
            return 3.0 * x

    m = Own()
    change = lambda: setattr(Own.f, "__code__", (lambda self, x: 4.0 * x).__code__)  # noqa: E731
    return Case(lambda x: m.f(x), change, 3.0, 4.0)


def code_of_a_method_made_inside() -> Case:
    class Own:
        def f(self, x: Any) -> Any:
            return 3.0 * x

    change = lambda: setattr(Own.f, "__code__", (lambda self, x: 4.0 * x).__code__)  # noqa: E731
    return Case(lambda x: Own().f(x), change, 3.0, 4.0)


def default_of_a_method() -> Case:
    class Own:
        def f(self, x: Any, k: float = 3.0) -> Any:
            return k * x

    change = lambda: setattr(Own.f, "__defaults__", (4.0,))  # noqa: E731
    return Case(lambda x: Own().f(x), change, 3.0, 4.0)


def property_rebound() -> Case:
    class Own:
        k = property(lambda self: 3.0)

    m = Own()
    change = lambda: setattr(Own, "k", property(lambda self: 4.0))  # noqa: E731
    return Case(lambda x: m.k * x, change, 3.0, 4.0)


def property_added() -> Case:
    class Own: ...

    m = Own()
    m.k = 3.0
    change = lambda: setattr(Own, "k", property(lambda self: 4.0))  # noqa: E731
    return Case(lambda x: m.k * x, change, 3.0, 4.0)


def operator_rebound() -> Case:
    class Own:
        def __add__(self, x: Any) -> Any:
            return 3.0 * x

    m = Own()
    change = lambda: setattr(Own, "__add__", lambda self, x: 4.0 * x)  # noqa: E731
    return Case(lambda x: m + x, change, 3.0, 4.0)


def constructor_rebound() -> Case:
    class Own:
        def __init__(self) -> None:
            self.k = 3.0

    def init(self: Any) -> None:
        self.k = 4.0

    return Case(lambda x: Own().k * x, lambda: setattr(Own, "__init__", init), 3.0, 4.0)


def static_method_rebound() -> Case:
    class Own:
        @staticmethod
        def f(x: Any) -> Any:
            return 3.0 * x

    change = lambda: setattr(Own, "f", staticmethod(lambda x: 4.0 * x))  # noqa: E731
    return Case(lambda x: Own.f(x), change, 3.0, 4.0)


def class_method_reads() -> Case:
    class Own:
        k = 3.0

        @classmethod
        def f(cls, x: Any) -> Any:
            return cls.k * x

    return Case(lambda x: Own.f(x), lambda: setattr(Own, "k", 4.0), 3.0, 4.0)


def parent_method_rebound() -> Case:
    class Lower:
        def f(self, x: Any) -> Any:
            return 3.0 * x

    class Upper(Lower):
        def f(self, x: Any) -> Any:
            return super().f(x)

    m = Upper()
    change = lambda: setattr(Lower, "f", lambda self, x: 4.0 * x)  # noqa: E731
    return Case(lambda x: m.f(x), change, 3.0, 4.0)


def parent_method_in_between() -> Case:
    class Lower:
        def f(self, x: Any) -> Any:
            return 3.0 * x

    class Middle(Lower): ...

    class Upper(Middle):
        def f(self, x: Any) -> Any:
            return super().f(x)

    m = Upper()
    change = lambda: setattr(Middle, "f", lambda self, x: 4.0 * x)  # noqa: E731
    return Case(lambda x: m.f(x), change, 3.0, 4.0)


def slot() -> Case:
    m = Slotted()
    return Case(lambda x: m.k * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def descriptor() -> Case:
    m = Checked()
    return Case(lambda x: m.k * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def computed_attribute() -> Case:
    m = Lazy()
    return Case(lambda x: m.k * x, lambda: m.values.update(k=4.0), 3.0, 4.0)


def computed_attribute_by_name() -> Case:
    m = Lazy()
    f = lambda x: getattr(m, "k") * x  # noqa: E731, B009
    return Case(f, lambda: m.values.update(k=4.0), 3.0, 4.0)


def computed_attribute_that_is_missing() -> Case:
    m = Lazy()
    del m.values["k"]

    def f(x: Any) -> Any:
        try:
            return m.k * x
        except KeyError:
            return 3.0 * x

    return Case(f, lambda: m.values.update(k=4.0), 3.0, 4.0)


def descriptor_by_name() -> Case:
    m = Checked()
    f = lambda x: getattr(m, "k") * x  # noqa: E731, B009
    return Case(f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def property_by_name() -> Case:
    m = Model()
    f = lambda x: getattr(m, "scale") * x  # noqa: E731, B009
    return Case(f, lambda: m.options.update(scale=4.0), 2.0, 4.0)


def method_by_name() -> Case:
    m = Model()
    f = lambda x: getattr(m, "weighted")(x)  # noqa: E731, B009
    return Case(f, lambda: setattr(m, "k", 1.0), 18.0, 6.0)


def branch_on_an_attribute_that_methods_change() -> Case:
    m = Model()
    m.on = True

    def f(x: Any) -> Any:
        if x > 0.0:
            m.k = m.k * 1.0
            if m.on:
                return m.k * x
        return 4.0 * x

    return Case(f, lambda: setattr(m, "on", False), 3.0, 4.0)


def object_changed_between_two_reads() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        m.k = 2.0 * m.k
        m.k = m.k + x - x
        return m.k * x

    return Case(f, lambda: setattr(m, "k", 4.0), 6.0, 8.0)


def computed_attribute_hidden() -> Case:
    m = Lazy()
    return Case(lambda x: m.k * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def missing_attribute() -> Case:
    m = Model()
    f = lambda x: (4.0 if hasattr(m, "extra") else 3.0) * x  # noqa: E731
    return Case(f, lambda: setattr(m, "extra", 1), 3.0, 4.0)


def attribute_with_a_default() -> Case:
    m = Model()
    return Case(lambda x: getattr(m, "extra", 3.0) * x, lambda: setattr(m, "extra", 4.0), 3.0, 4.0)


def attributes_as_a_dict() -> Case:
    m = Model()
    return Case(lambda x: m.__dict__["k"] * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def attributes_by_vars() -> Case:
    m = Model()
    return Case(lambda x: vars(m)["k"] * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def namespace() -> Case:
    s = types.SimpleNamespace(k=3.0)
    return Case(lambda x: s.k * x, lambda: setattr(s, "k", 4.0), 3.0, 4.0)


def dataclass_carried() -> Case:
    state = Rates(3.0, 1.0)

    def f(x: Any) -> Any:
        s = state
        for _ in range(40):
            s = Rates(s.a + 0.0 * x, s.b)
        return s.a * x

    return Case(f, lambda: setattr(state, "a", 4.0), 3.0, 4.0)


def dataclass_field() -> Case:
    rates = Rates(3.0, 1.0)
    return Case(lambda x: rates.a * x, lambda: setattr(rates, "a", 4.0), 3.0, 4.0)


def dataclasses_compared() -> Case:
    one, other = Rates(3.0, 1.0), Rates(3.0, 1.0)
    f = lambda x: (3.0 if one == other else 4.0) * x  # noqa: E731
    return Case(f, lambda: setattr(other, "b", 2.0), 3.0, 4.0)


def list_of_objects() -> Case:
    ms = [Model(), Model()]
    return Case(lambda x: sum(m.k for m in ms) * x, lambda: setattr(ms[1], "k", 4.0), 6.0, 7.0)


def objects_in_a_loop() -> Case:
    ms = [Base(), Base(), Base()]

    def f(x: Any) -> Any:
        for m in ms:
            x = m.k * x
        return x

    return Case(f, lambda: setattr(ms[2], "k", 1.0), 27.0, 9.0)


def sorted_objects() -> Case:
    class Own:
        def __init__(self, k: float) -> None:
            self.k = k

        def __lt__(self, other: Any) -> bool:
            return self.k < other.k

    ms = [Own(3.0), Own(4.0)]
    f = lambda x: sorted(ms)[0].k * x  # noqa: E731
    return Case(f, lambda: setattr(ms[1], "k", 1.0), 3.0, 1.0)


def objects_by_key() -> Case:
    ms = [Base(), Base()]
    f = lambda x: max(ms, key=lambda m: m.k).k * x  # noqa: E731
    return Case(f, lambda: setattr(ms[1], "k", 4.0), 3.0, 4.0)


def object_as_a_number() -> Case:
    class Own:
        k = 3.0

        def __float__(self) -> float:
            return self.k

    m = Own()
    return Case(lambda x: float(m) * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def object_as_an_array() -> Case:
    class Own:
        k = 3.0

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.full(2, self.k)

    m = Own()
    return Case(lambda x: np.mean(m) * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def object_as_a_text() -> Case:
    class Own:
        k = 3.0

        def __str__(self) -> str:
            return str(self.k)

    m = Own()
    return Case(lambda x: float(f"{m}") * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def object_that_is_iterated() -> Case:
    class Own:
        def __init__(self) -> None:
            self.ks = [3.0]

        def __iter__(self) -> Any:
            yield from self.ks

    m = Own()
    f = lambda x: sum(k for k in m) * x  # noqa: E731
    return Case(f, lambda: m.ks.append(4.0), 3.0, 7.0)


def object_with_equality() -> Case:
    class Own:
        k = 3.0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.k == other.k

        __hash__ = None  # type: ignore[assignment]

    one, other = Own(), Own()
    f = lambda x: (3.0 if [one] == [other] else 4.0) * x  # noqa: E731
    return Case(f, lambda: setattr(other, "k", 4.0), 3.0, 4.0)


def truth_of_an_object() -> Case:
    class Own:
        ks = [1]  # noqa: RUF012

        def __len__(self) -> int:
            return len(self.ks)

    m = Own()
    return Case(lambda x: (3.0 if m else 4.0) * x, lambda: Own.ks.clear(), 3.0, 4.0)


def list_derived() -> Case:
    class Own(list): ...

    m = Own([3.0])
    return Case(lambda x: m[0] * x, lambda: m.__setitem__(0, 4.0), 3.0, 4.0)


def array_derived() -> Case:
    class Own(np.ndarray): ...

    m = np.array([3.0]).view(Own)
    return Case(lambda x: np.sum(m * x), lambda: m.fill(4.0), 3.0, 4.0)


def enum_exchanged() -> Case:
    m = Model()
    f = lambda x: (3.0 if m.mode is Mode.LINEAR else 4.0) * x  # noqa: E731
    return Case(f, lambda: setattr(m, "mode", Mode.SQUARE), 3.0, 4.0)


def table_of_functions() -> Case:
    table = {"f": lambda x: 3.0 * x}
    return Case(lambda x: table["f"](x), lambda: table.update(f=lambda x: 4.0 * x), 3.0, 4.0)


def cell_of_a_function_in_a_table() -> Case:
    k = 3.0

    def change() -> None:
        nonlocal k
        k = 4.0

    table = [lambda x: k * x]
    return Case(lambda x: table[0](x), change, 3.0, 4.0)


def partial_of_a_method() -> Case:
    m = Model()
    f = functools.partial(m.weighted)
    return Case(lambda x: f(x), lambda: setattr(m, "k", 1.0), 18.0, 6.0)


def keywords_of_a_partial() -> Case:
    f = functools.partial(lambda x, k: k * x, k=3.0)
    return Case(lambda x: f(x), lambda: f.keywords.update(k=4.0), 3.0, 4.0)


def attribute_of_a_function() -> Case:
    def h(x: Any) -> Any:
        return h.k * x

    h.k = 3.0
    return Case(h, lambda: setattr(h, "k", 4.0), 3.0, 4.0)


def module_of_python_patched() -> Case:
    f = lambda x: len(os.path.basename("abc")) * x  # noqa: E731
    return Case(f, lambda: setattr(os.path, "basename", lambda p: "abcd"), 3.0, 4.0)


def function_imported_inside() -> Case:
    sys.modules["settings_of_a_test"] = types.ModuleType("settings_of_a_test")
    sys.modules["settings_of_a_test"].k = 3.0

    def f(x: Any) -> Any:
        from settings_of_a_test import k

        return k * x

    return Case(f, lambda: setattr(sys.modules["settings_of_a_test"], "k", 4.0), 3.0, 4.0)


def module_exchanged() -> Case:
    for k in (3.0, 4.0):
        sys.modules[f"settings_{k:.0f}"] = types.ModuleType("settings")
        sys.modules[f"settings_{k:.0f}"].k = k

    def f(x: Any) -> Any:
        import settings_3

        return settings_3.k * x

    return Case(f, lambda: sys.modules.update(settings_3=sys.modules["settings_4"]), 3.0, 4.0)


def counter_of_an_object() -> Case:
    s = types.SimpleNamespace(calls=2.0)

    def f(x: Any) -> Any:
        s.calls += 1.0
        return s.calls * x

    return Case(f, lambda: None, 3.0, 4.0)


def history_of_an_object() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        m.history.append(1.0)
        return len(m.history) * x

    return Case(f, lambda: None, 1.0, 2.0)


def generator_of_an_object() -> Case:
    m = Model()
    m.rng = np.random.default_rng(0)
    draws = np.random.default_rng(0).random(2)
    return Case(lambda x: m.rng.random() * x, lambda: None, draws[0], draws[1])


def copied_object() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        own = copy.deepcopy(m)
        own.k += 1.0
        return own.k * own.part.w[0] * x

    return Case(f, lambda: setattr(m.part, "w", np.full(2, 2.0)), 4.0, 8.0)


def array_of_a_copied_object() -> Case:
    m = Model()
    f = lambda x: copy.copy(m).w[0] * x  # noqa: E731
    return Case(f, lambda: m.w.fill(5.0), 1.0, 5.0)


def draws_before_the_seed() -> Case:
    first = np.random.RandomState(3).random_sample(2)

    def f(x: Any) -> Any:
        found = np.random.random_sample() * x
        np.random.seed(3)
        np.random.random_sample()
        return found

    np.random.seed(3)
    return Case(f, lambda: None, first[0], first[1])


def draws_by_the_shared_stream_itself() -> Case:
    drawn = np.random.RandomState(3).random_sample(2)
    f = lambda x: np.random.mtrand._rand.random_sample() * x  # noqa: E731
    np.random.seed(3)
    return Case(f, lambda: None, drawn[0], drawn[1])


def reflected_operator() -> Case:
    class Own:
        k = 3.0

        def __gt__(self, x: Any) -> bool:
            return self.k > x

    m = Own()
    f = lambda x: (3.0 if 3.5 < m else 4.0) * x  # noqa: E731, SIM300
    return Case(f, lambda: setattr(m, "k", 4.0), 4.0, 3.0)


def vectorized() -> Case:
    table = {"k": 3.0}
    f = np.vectorize(lambda t: t * table["k"])
    return Case(lambda x: np.sum(f(np.ones(1))) * x, lambda: table.update(k=4.0), 3.0, 4.0)


def vectorized_of_what_is_traced() -> Case:
    table = {"k": 3.0}
    f = np.vectorize(lambda t: t * table["k"])
    return Case(lambda x: np.sum(f(x * np.ones(1))), lambda: table.update(k=4.0), 3.0, 4.0)


def function_of_a_vectorized_one() -> Case:
    f = np.vectorize(lambda t: 3.0 * t)
    change = lambda: setattr(f, "pyfunc", lambda t: 4.0 * t)  # noqa: E731
    return Case(lambda x: np.sum(f(np.ones(1))) * x, change, 3.0, 4.0)


def function_of_a_vectorized_one_that_is_traced() -> Case:
    f = np.vectorize(lambda t: 3.0 * t)
    change = lambda: setattr(f, "pyfunc", lambda t: 4.0 * t)  # noqa: E731
    return Case(lambda x: np.sum(f(x * np.ones(1))), change, 3.0, 4.0)


def excluded_of_a_vectorized_one() -> Case:
    f = np.vectorize(lambda t, p: t * np.max(p), excluded={1})
    p = np.array([3.0, 1.0])
    return Case(lambda x: np.sum(f(x * np.ones(1), p)), lambda: f.excluded.clear(), 3.0, 4.0)


def row_of_a_table() -> Case:
    table = np.array([[3.0, 9.0], [1.0, 2.0]])
    f = lambda x: np.sum(np.apply_along_axis(lambda r: r * table[0, 0], 0, x * np.ones(1)))  # noqa: E731
    return Case(f, lambda: table.fill(4.0), 3.0, 4.0)


def text_in_an_array() -> Case:
    names = np.array(["three", "four"])
    f = lambda x: (3.0 if names[0] == "three" else 4.0) * x  # noqa: E731
    return Case(f, lambda: names.__setitem__(0, "four"), 3.0, 4.0)


def field_of_an_array() -> Case:
    table = np.array([(3.0, 1)], dtype=[("k", float), ("n", int)])
    return Case(lambda x: table["k"][0] * x, lambda: table["k"].fill(4.0), 3.0, 4.0)


def end_of_a_long_list() -> Case:
    table = [3.0] * 5000
    return Case(lambda x: table[-1] * x, lambda: table.__setitem__(-1, 4.0), 3.0, 4.0)


def end_of_a_long_array() -> Case:
    table = np.full(800_000, 3.0)
    return Case(lambda x: table[-1] * x, lambda: table.__setitem__(-1, 4.0), 3.0, 4.0)


def context_of_a_function() -> Case:
    table = {"k": 3.0}

    def f(x: Any) -> Any:
        @contextlib.contextmanager
        def rate() -> Any:
            yield table["k"]

        with rate() as k:
            return typing.cast(float, k) * x

    return Case(f, lambda: table.update(k=4.0), 3.0, 4.0)


def ufunc_of_a_function() -> Case:
    table = {"k": 3.0}
    f = np.frompyfunc(lambda t: t * table["k"], 1, 1)
    return Case(lambda x: float(f(1.0)) * x, lambda: table.update(k=4.0), 3.0, 4.0)


def polynomial() -> Case:
    p = np.poly1d([3.0])
    return Case(lambda x: p(1.0) * x, lambda: p.c.fill(4.0), 3.0, 4.0)


def spline() -> Case:
    s = scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [3.0, 3.0, 3.0])
    return Case(lambda x: float(s(1.0)) * x, lambda: s.c.__setitem__(-1, 4.0), 3.0, 4.0)


def environment() -> Case:
    os.environ["CKAD_TEST_RATE"] = "3.0"
    change = lambda: os.environ.update(CKAD_TEST_RATE="4.0")  # noqa: E731
    return Case(lambda x: float(os.environ["CKAD_TEST_RATE"]) * x, change, 3.0, 4.0)


def proxy_of_a_dict() -> Case:
    d = {"k": 3.0}
    p = types.MappingProxyType(d)
    return Case(lambda x: p["k"] * x, lambda: d.update(k=4.0), 3.0, 4.0)


def chain_of_dicts() -> Case:
    d = {"k": 3.0}
    p = collections.ChainMap({}, d)
    return Case(lambda x: p["k"] * x, lambda: d.update(k=4.0), 3.0, 4.0)


def bytes_that_change() -> Case:
    b = bytearray([3])
    return Case(lambda x: b[0] * x, lambda: b.__setitem__(0, 4), 3.0, 4.0)


def masked_array() -> Case:
    m = np.ma.masked_array([3.0, 5.0], [False, True])
    return Case(lambda x: float(m.sum()) * x, lambda: m.__setitem__(0, 4.0), 3.0, 4.0)


def getter_of_an_attribute() -> Case:
    m, get = Model(), operator.attrgetter("k")
    return Case(lambda x: get(m) * x, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def getters_of_attributes_mapped() -> Case:
    ms, get = [Base()], operator.attrgetter("k")
    return Case(lambda x: sum(map(get, ms)) * x, lambda: setattr(ms[0], "k", 4.0), 3.0, 4.0)


def function_mapped() -> Case:
    m = Model()
    f = lambda x: sum(map(m.weighted, [0.5])) * x  # noqa: E731
    return Case(f, lambda: setattr(m, "k", 4.0), 9.0, 12.0)


def method_in_a_table() -> Case:
    m = Model()
    table = {"f": m.weighted}
    return Case(lambda x: table["f"](x), lambda: setattr(m, "k", 1.0), 18.0, 6.0)


def dataclass_as_a_dict() -> Case:
    r = Rates(3.0, 1.0)
    f = lambda x: dataclasses.asdict(r)["a"] * x  # noqa: E731
    return Case(f, lambda: setattr(r, "a", 4.0), 3.0, 4.0)


def dataclass_replaced() -> Case:
    r = Rates(3.0, 1.0)
    f = lambda x: dataclasses.replace(r, b=1).a * x  # noqa: E731
    return Case(f, lambda: setattr(r, "a", 4.0), 3.0, 4.0)


def property_of_a_function_that_python_runs() -> Case:
    class Own:
        ks = [3.0]  # noqa: RUF012

        @property
        def k(self) -> Any:
            return next(k for k in iter(lambda: self.ks[0], None))

    return Case(lambda x: Own().k * x, lambda: Own.ks.__setitem__(0, 4.0), 3.0, 4.0)


def cached_property_of_an_object() -> Case:
    class Own:
        k = 3.0

        @functools.cached_property
        def twice(self) -> float:
            return 2.0 * self.k

    m = Own()
    change = lambda: (setattr(Own, "k", 4.0), vars(m).pop("twice"))  # noqa: E731
    return Case(lambda x: m.twice * x, change, 6.0, 8.0)


def reduced_by_a_method() -> Case:
    m = Model()
    f = lambda x: functools.reduce(m.combined, [1.0, x]) * 1.0  # noqa: E731
    m.combined = lambda a, b: a * b * m.k
    return Case(f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def read_in_one_branch_alone() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        if x > 1.0:
            return m.k * x
        return m.part.k * x

    return Case(f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def read_in_a_while_with_break() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        y = 0.0 * x
        while True:
            y = y + 0.5 * x * m.k
            if y > 5.0:
                break
        return y

    return Case(f, lambda: setattr(m, "k", 6.0), 3.0, 3.0)


def deep_in_nested_loops() -> Case:
    m = Model()

    def f(x: Any) -> Any:
        total = 0.0 * x
        for _ in range(10):
            for _ in range(10):
                total = total + m.options["inner"][0] * x
        return total

    return Case(f, lambda: m.options["inner"].__setitem__(0, 2.0), 100.0, 200.0)


def gradient_of_a_gradient() -> Case:
    m = Model()
    inner = ckad.grad(lambda x: m.k * x * x)
    return Case(inner, lambda: setattr(m, "k", 4.0), 6.0, 8.0)


def attribute_in_a_scan() -> Case:
    m = Model()
    f = lambda x: ckad.fori_loop(0, 5, lambda k, c: c + m.k * x, 0.0 * x)  # noqa: E731
    return Case(f, lambda: setattr(m, "k", 4.0), 15.0, 20.0)


def deleted_attribute() -> Case:
    class Own:
        k = 4.0

    m = Own()
    m.k = 3.0
    return Case(lambda x: m.k * x, lambda: delattr(m, "k"), 3.0, 4.0)


def rates_given_by_a_global() -> Case:
    rates = Rates(3.0, [1.0])
    f = lambda x: sum(rates.b) * rates.a * x  # noqa: E731
    return Case(f, lambda: rates.b.append(1.0), 3.0, 6.0)


def set_of_names() -> Case:
    names = {"a"}
    f = lambda x: (3.0 if "b" not in names else 4.0) * x  # noqa: E731
    return Case(f, lambda: names.add("b"), 3.0, 4.0)


def queue() -> Case:
    q = deque([3.0])
    return Case(lambda x: q[0] * x, lambda: q.appendleft(4.0), 3.0, 4.0)


def maker_of_a_default_dict() -> Case:
    d = defaultdict(lambda: 3.0)
    d.default_factory = lambda: 3.0

    def change() -> None:
        d.clear()
        d.default_factory = lambda: 4.0

    return Case(lambda x: d["k"] * x, change, 3.0, 4.0)


CASES = [
    case
    for case in list(globals().values())
    if isinstance(case, types.FunctionType) and case.__annotations__.get("return") == "Case"
]


@pytest.fixture(autouse=True)
def put_back():
    basename = os.path.basename
    yield
    os.path.basename = basename
    os.environ.pop("CKAD_TEST_RATE", None)
    for name in ("settings_of_a_test", "settings_3", "settings_4"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("way", ["itself", "called", "twice"])
def test_a_change_is_noticed(case, way):
    f, change, before, after = case()
    if way == "called":
        inner = f
        f = lambda x: inner(x)  # noqa: E731
    g = ckad.grad(f)
    np.testing.assert_allclose(g(2.0), before, rtol=1e-12)
    if way == "twice" and before == 3.0 and not case.__name__.startswith(("counter", "history")):
        assert g(2.0) == before
    change()
    np.testing.assert_allclose(g(2.0), after, rtol=1e-12)


class Cached:
    def __init__(self, k: Any) -> None:
        self.k, self.calls = k, 0

    @functools.cached_property
    def rate(self) -> Any:
        self.calls += 1
        return self.k * 1.0


def test_a_cached_property_is_computed_once(recordings):
    """From outside, Python stores it for good; in an object of the recording it is recorded."""
    outside = Cached(3.0)
    g = ckad.grad(lambda x: outside.rate * x)
    assert [g(2.0), g(2.0), g(2.0)] == [3.0, 3.0, 3.0]
    assert (len(recordings), outside.calls) == (2, 1)
    outside.k = 4.0
    assert g(2.0) == 3.0
    del outside.rate
    assert (g(2.0), outside.calls) == (4.0, 2)

    def inside(x: Any) -> Any:
        own = Cached(x)
        first = own.rate
        own.k = 5.0 * x
        return first * own.rate + own.calls

    recordings.clear()
    h = ckad.value_and_grad(inside)
    for x in (2.0, 3.0):
        assert h(x) == (x * x + 1, 2 * x)
    assert len(recordings) == 1

    def in_a_loop(x: Any) -> Any:
        own = Cached(x)
        for k in range(8):
            own.k = own.rate + k
        return own.k + own.rate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ckad.value_and_grad(in_a_loop)(2.0) == (in_a_loop(2.0), 2.0)


def test_explain_says_why_calls_record_anew():
    counted: list[float] = []
    rng = np.random.default_rng(0)
    functions = {
        "it changes what it reads": lambda x, _: counted.append(1.0) or x,
        "from outside": lambda x, _: x * rng.random(),
        "holds, a Prepared": lambda x, other: x * other.k,
    }
    for why, fun in functions.items():
        found = ckad.explain(fun, 2.0, Prepared(3.0) if "Prepared" in why else 1)
        assert why in found.anew
        assert found.anew in str(found)
    assert ckad.explain(lambda x: x * 2.0, 2.0).anew == ""


@dataclasses.dataclass
class Prepared:
    k: float

    def __post_init__(self) -> None:
        self.half = self.k / 2


def test_a_reloaded_class_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "model_of_a_test.py"
    path.write_text("class M:\n    def f(self, x):\n        return 2.0 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    loaded = importlib.import_module("model_of_a_test")
    g = ckad.grad(lambda x: loaded.M().f(x))
    assert g(1.0) == g(1.0) == 2.0
    path.write_text("class M:\n    def f(self, x):\n        k = 33.0\n        return k * x\n")
    importlib.reload(loaded)
    assert g(1.0) == 33.0
    del sys.modules["model_of_a_test"]


def test_a_stream_of_random_numbers_is_left_where_the_program_leaves_it(recordings):
    def f(x: Any) -> Any:
        np.random.seed(5)
        random.seed(7)
        return np.random.rand() * x + random.random()

    g, found = ckad.grad(f), []
    for _ in range(3):
        g(1.0)
        found.append((np.random.rand(), random.random()))
    f(1.0)
    assert found == [(np.random.rand(), random.random())] * 3
    assert len(recordings) == 1


def test_what_is_shown_is_shown_once_with_a_warning(recordings, caplog):
    log = logging.getLogger("model")

    def f(x: Any) -> Any:
        log.warning("recorded %d", 1)
        return MODEL.k * x

    g = ckad.grad(f)
    assert g(1.0) == 3.0
    with pytest.warns(ckad.errors.SkippedCallWarning, match="logging.*warning"):
        assert g(1.0) == 3.0
    assert g(1.0) == 3.0
    assert len(recordings) == len(caplog.records) == 1


# --- clocks ------------------------------------------------------------------------------------


def timed(x: Any) -> Any:
    start = time.time()
    for _ in range(30):
        x = x + 0.01 * np.sin(x)
    print(f"took {time.time() - start:.1f} s, in ms: {1000.0 * (time.time() - start) // 10**9}")
    return x


def timed_in_a_loop(x: Any) -> Any:
    start = last = time.perf_counter()
    total = 0.0
    for k in range(30):
        x = x + 0.01 * np.sin(x)
        if k % 10 == 0:
            print("step", k, time.perf_counter() - start, time.perf_counter() - last)
            last = time.perf_counter()
        total = total + 1.0
    return x * total


def timed_by_an_object(x: Any) -> Any:
    timer = types.SimpleNamespace(start=time.perf_counter(), spent=0.0)
    x = np.sin(x)
    timer.spent += round(time.perf_counter() - timer.start, 3)
    minutes, seconds = divmod(timer.spent, 60)
    print("%02d:%02.0f" % (minutes, seconds))  # noqa: UP031
    return x


def timed_by_a_decorator(x: Any) -> Any:
    spent = []

    def timing(function: Any) -> Any:
        @functools.wraps(function)
        def run(*args: Any) -> Any:
            start = time.time()
            result = function(*args)
            spent.append(time.time() - start)
            return result

        return run

    @timing
    def step(x: Any) -> Any:
        return x + 0.1 * np.sin(x)

    return step(step(x))


@pytest.mark.parametrize("function", [timed, timed_by_an_object, timed_by_a_decorator])
def test_a_clock_that_is_only_printed(function, recordings, capsys):
    g = ckad.value_and_grad(function)
    shows = "print" in function.__code__.co_names
    for k, x in enumerate((0.7, 1.3, 0.7)):
        warns = pytest.warns(ckad.errors.SkippedCallWarning, match="print")
        with warns if shows and k == 1 else contextlib.nullcontext():
            value, slope = g(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-12)
        central = (function(x + 1e-6) - function(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(slope, central, rtol=1e-6)
    assert len(recordings) == 1


def test_a_clock_in_a_loop():
    with pytest.warns(ckad.errors.SkippedCallWarning):
        value = ckad.value_and_grad(timed_in_a_loop)(0.7)[0]
    np.testing.assert_allclose(value, timed_in_a_loop(0.7), rtol=1e-12)


CLOCKS = {
    "times": lambda x: x * time.time(),
    "times, exchanged": lambda x: time.time() * x,
    "as a number": lambda x: float(time.time()) * x,
    "an integer": lambda x: int(time.time_ns()) * x,
    "in an array": lambda x: np.array([time.time()])[0] * x,
    "of NumPy": lambda x: np.sqrt(time.time()) * x,
    "a maximum": lambda x: max(time.time(), 0.0) * x,
    "of math": lambda x: math.sqrt(time.time()) * x,
    "a sum": lambda x: sum([time.time()]) * x,
    "in a list": lambda x: np.sum(np.array([time.time(), 1.0]) * x) - x,
    "in place": lambda x: (lambda a: a.__imul__(time.time()))(np.ones(1))[0] * x,
    "a power": lambda x: x ** (1 + 0 * time.time()) * time.time(),
    "a fill": lambda x: np.full(2, time.time())[0] * x,
    "a result": lambda x: (x * 1.0, time.time())[1] * x,
    "a text": lambda x: float(str(time.time())) * x,
    "a formatted text": lambda x: float(f"{time.time():.6f}") * x,
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_that_is_computed_with(name):
    g = ckad.grad(CLOCKS[name])
    first = g(1.0)
    time.sleep(0.01)
    assert g(1.0) > first > 1000.0


def test_a_clock_decides():
    start = time.time()
    f = lambda x: x if time.time() < start + 0.2 else 2.0 * x  # noqa: E731
    g = ckad.grad(f)
    assert g(1.0) == 1.0
    time.sleep(0.2)
    assert g(1.0) == 2.0


def test_what_a_clock_shows_as_a_result():
    run = ckad.jit(lambda x: (2.0 * x, time.time()))
    (y, first), (_, second) = run(1.0), (time.sleep(0.01), run(1.0))[1]
    assert y == 2.0
    assert second > first
