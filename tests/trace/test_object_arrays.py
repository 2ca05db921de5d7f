"""Arrays of objects, as programs keep their panels, cells and bodies."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ckad
from ckad.errors import UnrecordableError


class Panel:
    def __init__(self, x, length):
        self.x, self.length, self.strength = x, length, 0.0


def solved(r, u):
    """Source panels: made one by one, read in pairs, changed in a loop."""
    ends = r * np.cos(np.linspace(0.1, 3.0, 7))
    panels = np.empty(6, dtype=object)
    for i in range(6):
        panels[i] = Panel(0.5 * (ends[i] + ends[i + 1]), abs(ends[i + 1] - ends[i]))
    a = np.empty((panels.size, panels.shape[0]), dtype=float)
    np.fill_diagonal(a, 2.0)
    for i, one in enumerate(panels):
        for j, other in enumerate(panels):
            if i != j:
                a[i, j] = other.length / (1.0 + (one.x - other.x) ** 2)
    strengths = np.linalg.solve(a, u * np.sin([p.x for p in panels]))
    for i, panel in enumerate(panels):
        panel.strength = strengths[i]
    return sum(p.strength * p.length for p in panels) + len(panels)


def listed(r, u):
    panels = np.array([Panel(r, u), Panel(2.0 * u, r)], dtype=object)
    for _ in range(20):
        for p in panels:
            p.x = p.x + 0.1 * math.sin(p.length)
        panels[0], panels[1] = panels[1], panels[0]
    return panels[0].x * panels[1].x ** 2


@pytest.mark.parametrize("f", [solved, listed])
def test_items_of_arrays_of_objects(f):
    value, (by_r, by_u) = ckad.value_and_grad(f, (0, 1), engine="vm")(1.2, 0.7)
    assert value == pytest.approx(f(1.2, 0.7), rel=1e-13)
    h = 1e-6
    assert by_r == pytest.approx((f(1.2 + h, 0.7) - f(1.2 - h, 0.7)) / (2 * h), rel=1e-7, abs=1e-8)
    assert by_u == pytest.approx((f(1.2, 0.7 + h) - f(1.2, 0.7 - h)) / (2 * h), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda xs: xs + xs, "an operator"),
        (lambda xs: xs * 2, "an operator"),
        (lambda xs: xs[1:], "a part"),
        (lambda xs: xs[[0, 1]], "a part"),
        (lambda xs: xs.T, ".T"),
        (lambda xs: xs.sum(), ".sum"),
        (lambda xs: xs == 3, "an operator"),
    ],
)
def test_what_tells_them_from_lists_is_refused(use, what):
    def f(r):
        xs = np.empty(3, dtype=object)
        for i in range(3):
            xs[i] = np.ones(2) * r
        return np.sum(use(xs)[0])

    with pytest.raises(UnrecordableError, match=f"^[^:]*:[^:]*: {what} of an array of objects"):
        ckad.grad(f)(1.0)


def chosen(r):
    a = np.zeros(4, dtype=object)
    if r * np.sin(r) > 0:
        a = np.ones(4, dtype=object)
    return a


def carried(r):
    a = np.zeros(4, dtype=object)
    for _ in range(30):
        b = np.zeros(4, dtype=object)
        for i in range(4):
            b[i] = a[i] + r
        a = b
    return a


def added_in_place(a):
    a += a
    return a[0] * len(a)


USES = [
    lambda a: (a + a)[0],
    lambda a: (a * 2)[1] * len(a * 2),
    added_in_place,
    lambda a: (-a)[0],
    lambda a: isinstance(a, np.ndarray) * a[0],
    lambda a: np.asarray(a)[0],
    lambda a: a.shape[0] * a[0],
]


@pytest.mark.parametrize("make", [chosen, carried])
@pytest.mark.parametrize("use", USES)
def test_after_loops_and_branches_they_are_no_lists(make, use):
    with pytest.raises(UnrecordableError, match="array of objects"):
        ckad.jit(lambda r: use(make(r)) * r, engine="vm")(1.1)


class Strip:
    def __init__(self, x):
        self.x, self.strength = x, 0.0


def strengths_of_panels(r):
    panels = np.empty(4, dtype=object)
    for i in range(4):
        panels[i] = Strip(i * r)
    for i in range(len(panels)):
        panels[i].strength = panels[i].x ** 2
    every = np.append([p.strength for p in panels], r)
    return np.sum(every) + np.asarray([p.x for p in panels])[3]


def test_numbers_of_as_many_objects_are_a_list():
    value, slope = ckad.value_and_grad(strengths_of_panels, engine="vm")(1.1)
    assert value == pytest.approx(strengths_of_panels(1.1))
    assert slope == pytest.approx(2 * 14 * 1.1 + 1 + 3)


def labels_of_atoms(r):
    names, mass = np.array(["H", "O", "H", "C", "H", "H"]), {"H": 1.0, "O": 16.0, "C": 12.0}
    masses, total = np.array([mass[n] for n in names]) * r, 0.0
    for i in range(6):
        if names[i] == "H":
            total += masses[i] ** 2
    for i, name in enumerate(np.asarray(["H", "C"])):
        total += np.sum(masses[names == name]) * i
    if "O" in names:
        total *= names.size
    return total + np.count_nonzero(names != "H") * r


def test_arrays_of_texts_are_read():
    value, slope = ckad.value_and_grad(labels_of_atoms, engine="vm")(1.1)
    assert value == pytest.approx(labels_of_atoms(1.1))
    ahead, back = labels_of_atoms(1.1 + 1e-6), labels_of_atoms(1.1 - 1e-6)
    assert slope == pytest.approx((ahead - back) / 2e-6, rel=1e-7)


def test_arrays_of_texts_are_not_written():
    def renamed(r):
        names = np.array(["H", "O"])
        names[0] = "C"
        return r * (names[0] == "C")

    with pytest.raises(UnrecordableError, match=r"test_object_arrays.py.*array of texts"):
        ckad.jit(renamed, engine="vm")(1.1)


def _decides(items, x):
    return x if items else 2.0 * x


def _deleted(items, x):
    del items[0]
    return x


@pytest.mark.parametrize("asked", [_decides, _deleted])
def test_an_array_is_no_condition_and_keeps_its_length(asked):
    def f(x):
        items = np.empty(3, dtype=object)
        items[0] = x
        return asked(items, x)

    with pytest.raises(ValueError, match=r"ambiguous|cannot"):
        f(1.1)
    with pytest.raises(ValueError, match=r"test_object_arrays.py.*(ambiguous|cannot)"):
        ckad.jit(f, engine="vm")(1.1)
