"""What is asked of one of several objects, and put into it, happens to that one alone."""

from __future__ import annotations

import pytest

from .idioms import check_number

AT = 0.371


class Body:
    def __init__(self, x):
        self.x, self.n = x, 0

    @property
    def energy(self):
        return self.x * self.x

    @energy.setter
    def energy(self, value):
        self.x = value / 2

    @property
    def counted(self):
        self.n += 1
        return self.x * self.x

    def __getitem__(self, k):
        self.n += 1
        return self.x * k

    def __len__(self):
        self.n += 1
        return 3

    def __lt__(self, other):
        self.n += 1
        return self.x < other

    __hash__ = None

    def __eq__(self, other):
        self.n += 1
        return self.x == other


class Doubling:
    def __init__(self, x):
        self.x, self.n = x, 0

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2 if name == "x" else value)


def a_property_is_put(one, x):
    one.energy = one.energy + x
    return one.energy


def a_property_counts(one, x):
    return one.counted + x


def items_count(one, x):
    return one[2] + x


def lengths_count(one, x):
    return len(one) + x


def comparisons_count(one, x):
    return x if one < x else 2 * x


def equality_counts(one, x):
    return x if one == x else 2 * x


def an_attribute_is_set(one, x):
    one.x = x
    return one.x


CASES = [
    *((Body, what) for what in (a_property_is_put, a_property_counts, items_count, lengths_count)),
    *((Body, what) for what in (comparisons_count, equality_counts)),
    (Doubling, an_attribute_is_set),
]


@pytest.mark.filterwarnings("ignore::UserWarning")  # some are recorded as they run
@pytest.mark.parametrize(("kind", "what"), CASES)
def test_it_happens_to_one_alone(kind, what):
    def program(a):
        bodies, x, total = [kind(0.3 * k) for k in range(6)], a, 0.0
        for _ in range(9):
            x = (x + 0.37 * a + 0.11) % 1.0
            total += what(bodies[int(x * 6)], x)
        return total + sum(one.x * (one.n + 1) for one in bodies)

    check_number(program, AT)


class Plain:
    def __init__(self, x):
        self.x, self.n, self.is_on = x, 0, False


def test_numbers_of_many_objects():
    def program(a):
        bodies, x, total = [Plain(0.3 * k) for k in range(9)], a, 0.0
        best = bodies[0]
        for _ in range(9):
            x = (x + 0.37 * a + 0.11) % 1.0
            one = bodies[int(x * 9)]
            one.x += x
            one.n += 1
            one.is_on = not one.is_on
            if one.x > best.x:
                best = one
            best.x, one.x = one.x, best.x
            total += best.n * x + best.x * one.x + (a if best.is_on else 2.0)
        return total + sum(one.x * one.n for one in bodies) + bodies[3].n // 2

    check_number(program, AT)
