"""What methods change that Python runs by itself is changed at each step of a loop."""

from __future__ import annotations

import itertools
import operator
from typing import ClassVar

import numpy as np
import pytest

import ckad

count = 0


class Meter:
    """Each of its methods counts how often it is asked."""

    def __init__(self, x):
        self.x, self.n, self.log, self.by = x, 0, [], {"n": 0}

    def __float__(self):
        self._asked()
        return self.x * 1.0

    def __int__(self):
        self.log.append(self.x)
        self.n = len(self.log)
        return 3

    def __index__(self):
        global count
        count += 1
        return 1

    def __str__(self):
        self.by["n"] += 1
        self.n = self.by["n"]
        return "meter"

    def __iter__(self):
        self._asked()
        return iter([self.x, 2.0])

    def __hash__(self):
        self._asked()
        return 1

    def __eq__(self, other):
        self._asked()
        return True

    def __array__(self, dtype=None, copy=None):
        self._asked()
        return np.array([1.0, 2.0])

    def __enter__(self):
        self._asked()
        return self

    def __exit__(self, *raised):
        self._asked()

    def keeps(self, v):
        self._asked()
        return v > 0.3

    def _asked(self):
        self.n += 1


class Answering(Meter):
    """It looks its attributes up itself."""

    def __getattribute__(self, name):
        if name == "noted":
            object.__getattribute__(self, "_asked")()
        return object.__getattribute__(self, "x" if name == "noted" else name)


class Counted:
    """How many there are its class counts where Python makes one."""

    made: ClassVar[list[int]] = []

    def __new__(cls, x):
        cls.made.append(1)
        return object.__new__(cls)

    def __init__(self, x):
        self.x = x


def _unpacked(o, x):
    u, v = o
    return u * v


def _entered(o, x):
    with o as one:
        return one.x


ASKED = {
    "float": lambda o, x: float(o),
    "int": lambda o, x: int(o),
    "an index": lambda o, x: [0.3, x][o],
    "a bound": lambda o, x: sum([x, 0.5][:o]),
    "str": lambda o, x: len(str(o)),
    "a text": lambda o, x: len(f"{o}"),
    "%": lambda o, x: len("%s" % o),  # noqa: UP031
    "unpacked": _unpacked,
    "spread": lambda o, x: max(*o),
    "a sum": lambda o, x: sum(o),
    "a comprehension": lambda o, x: sum([v * x for v in o]),
    "zip": lambda o, x: sum(u * v for u, v in zip(o, [x, 3.0], strict=False)),
    "a key": lambda o, x: len({o: x}),
    "a set": lambda o, x: len({o}),
    "in": lambda o, x: x if 3 in [o] else 2.0,
    "an array": lambda o, x: np.sum(np.array(o)) * x,
    "an attribute": lambda o, x: o.noted,
    "with": _entered,
    "taken": lambda o, x: len(list(itertools.takewhile(o.keeps, [0.5, 0.4, 0.1, 0.9]))),
    "by a getter": lambda o, x: operator.attrgetter("noted")(o),
    "made": lambda o, x: Counted(x).x,
}


@pytest.mark.parametrize("traced", [False, True], ids=["a number", "a traced one"])
@pytest.mark.parametrize("name", ASKED)
def test_is_noted_at_each_step(name, traced):
    asked = ASKED[name]

    def f(a):
        global count
        count = 0
        Counted.made = []
        kind = Answering if "tribute" in name or "getter" in name else Meter
        o, total, x = kind(a if traced else 0.7), 0.0, a
        for _ in range(9):
            x = (x * 1.1 + 0.1) % 1.0
            total = total + asked(o, x) * x
        return total + a * (o.n + 2 * count + len(Counted.made) + len(o.log))

    value, slope = ckad.value_and_grad(f, engine="vm")(0.37)
    assert value == pytest.approx(f(0.37), rel=1e-13)
    assert slope == pytest.approx((f(0.37 + 1e-6) - f(0.37 - 1e-6)) / 2e-6, rel=1e-6)


def test_texts_of_what_is_printed_are_made():
    def f(a):
        o, x = Meter(0.7), a
        for _ in range(9):
            x = (x * 1.1 + 0.1) % 1.0
            print(o, x)
        return x + o.n * a

    with pytest.warns(ckad.errors.SkippedCallWarning):
        assert ckad.value_and_grad(f, engine="vm")(0.37)[0] == pytest.approx(f(0.37), rel=1e-13)


def test_of_one_of_several():
    def f(a):
        meters, total, x = [Meter(0.3 * k) for k in range(5)], 0.0, a
        for _ in range(9):
            x = (x * 1.7 + 0.1) % 1.0
            o = meters[int(5 * x)]
            with o:
                total = total + x * float(o)
        return total + a * sum(o.n * (k + 1) for k, o in enumerate(meters))

    value, slope = ckad.value_and_grad(f, engine="vm")(0.37)
    assert value == pytest.approx(f(0.37), rel=1e-13)
    assert slope == pytest.approx((f(0.37 + 1e-6) - f(0.37 - 1e-6)) / 2e-6, rel=1e-6)


def test_functions_that_cython_has_compiled_are_called():
    def f(x):
        draws, total = np.random.default_rng(3), 0.0
        for _ in range(9):
            total = total + x * draws.random() + draws.normal()
        return total

    value = ckad.value_and_grad(f, engine="vm")(0.37)[0]
    assert value == pytest.approx(f(0.37), rel=1e-13)


class Total:
    """An array of the module's, which a method writes into."""

    seen = np.zeros(2)

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        Total.seen[0] += 1.0
        return np.array([1.0, 2.0])


class Grand:
    """A number of the class, which a method changes."""

    n = 0

    def __array__(self, dtype=None, copy=None):
        Grand.n += 1
        return np.array([1.0, 2.0])


@pytest.mark.parametrize("kind", [lambda x: Total(x), lambda x: Grand()])
def test_arrays_and_classes_from_outside_are_changed_too(kind):
    def f(a):
        Total.seen[:] = 0.0
        Grand.n = 0
        o, total, x = kind(a), 0.0, a
        for _ in range(9):
            x = (x * 1.1 + 0.1) % 1.0
            total = total + x * np.array(o)[1]
        return total + a * (Grand.n + float(Total.seen[0]))

    assert ckad.value_and_grad(f, engine="vm")(0.37)[0] == pytest.approx(f(0.37), rel=1e-13)


class Roll:
    """Notes how often its length is asked for."""

    def __init__(self, x):
        self.x, self.log = x, []

    def __iter__(self):
        return iter([self.x, 1.0])

    def __len__(self):
        self.log.append(self.x)
        return 2


def test_a_list_with_all_items_asks_for_their_number_in_loops_written_out_too():
    def shown(x):
        roll, total = Roll(x), 0.0
        for _ in range(8):
            total = total + np.sum(np.array([*roll]))
        return total + len(roll.log)

    assert ckad.value_and_grad(shown, engine="vm")(0.3) == pytest.approx((shown(0.3), 8.0))
