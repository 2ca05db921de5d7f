"""Objects of which a traced condition chooses one: the nearest, the next in turn, a controller."""

from __future__ import annotations

import math
from collections import deque, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import ckad
from ckad.errors import CarryError, CkadError, RaisedError

from .idioms import check, check_further

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


class Sphere:
    def __init__(self, center, radius, colour):
        self.center, self.radius, self.colour = np.array(center), radius, np.array(colour)

    def intersect(self, origin, direction):
        to = origin - self.center
        b, c = 2 * np.dot(to, direction), np.dot(to, to) - self.radius**2
        disc = b * b - 4 * c
        if disc < 0:
            return None
        t = (-b - math.sqrt(disc)) / 2
        return t if t > 1e-4 else None


SCENE = [
    Sphere([0.0, 0.0, 5.0], 1.0, [1.0, 0.2, 0.3]),
    Sphere([0.5, 0.2, 4.0], 0.7, [0.0, 0.2, 0.7]),
    Sphere([-2.0, 0.0, 7.0], 1.5, [0.5, 0.5, 0.3]),
]


def ray(a, b, i):
    direction = np.array([0.1 * i - 0.3 * a, 0.02 * b, 1.0])
    return direction / np.linalg.norm(direction)


@program
def nearest_hit(a, b):
    origin, total = np.zeros(3), 0.0
    for i in range(5):
        hit, least = None, 1e10
        d = ray(a, b, i)
        for sphere in SCENE:
            t = sphere.intersect(origin, d)
            if t is not None and t < least:
                hit, least = sphere, t
        if hit is not None:
            normal = (origin + least * d - hit.center) / hit.radius
            total += np.sum(hit.colour) * max(np.dot(normal, -d), 0)
    return total


@program
def nearest_of_a_function(a, b):
    spheres = [Sphere([a * 0.1, 0.0, 5.0], b, [1.0, 0.0, 0.0]), SCENE[1]]

    def nearest(d):
        best, distance = None, np.inf
        for one in spheres:
            t = one.intersect(np.zeros(3), d)
            if t and t < distance:
                distance, best = t, one
        return best, distance

    total = 0.0
    for i in range(6):
        one, t = nearest(ray(a, b, i))
        if one is None:
            total += 0.1 * a
            continue
        total += one.colour[0] * t + one.radius
    return total


@program
def by_their_number(a, b):
    place, weight, total = 0, 1.0, 0.0
    for k in range(7):
        place = 0
        for i, _ in enumerate(SCENE):
            if math.sin(a * k + i) > 0.5:
                place = i
        weight *= SCENE[place].radius
        total += weight * b
    return total


@program
def of_dicts(a, b):
    walls = [{"at": a, "cost": 1.0}, {"at": 2 * b, "cost": 0.5}]
    total = 0.0
    for k in range(7):
        hit, least = None, np.inf
        for wall in walls:
            distance = (wall["at"] - 0.4 * k) ** 2
            if distance < min(least, 1.1):
                hit, least = wall, distance
        if hit is not None:
            total += hit["cost"] * least + hit["at"]
    return total


class Server:
    def __init__(self, time, name):
        self.time, self.free, self.served, self.name = time, 0.0, 0, name

    def serve(self, now):
        self.free = max(self.free, now) + self.time
        self.served += 1
        return self.free


@program
def changed_where_it_is_chosen(a, b):
    one, other, total = Server(a, "one"), Server(b, "other"), 0.0
    for k in range(12):
        server = one if one.free <= other.free else other
        server.free = max(server.free, 0.31 * k) + server.time
        server.served += 1
        total += server.free
    return total + one.served * a + other.served


@program
def methods_that_change_it(a, b):
    servers, total = [Server(a, "x"), Server(b, "y"), Server(a * b, "z")], 0.0
    for k in range(12):
        server = min(servers, key=lambda s: s.free)
        total += server.serve(0.31 * k)
    return total + sum(s.served * s.free for s in servers)


@program
def told_apart(a, b):
    one, other, x, last, n = Server(a, "one"), Server(b, "other"), a, None, 0
    for k in range(9):
        x = x + b * np.sin(k)
        now = one if x > 1.0 else other
        if last is not None and now is not last:
            n += 1
            x = x + 0.1 * now.time
        if now == one and now.name == "one":
            x -= 0.01 * b
        last = now
    return x * n + last.time


@program
def kept_in_a_list(a, b):
    one, other, x, chosen = Server(a, "one"), Server(b, "other"), a, []
    for k in range(9):
        x = x + b * np.sin(k)
        if x > 0.5:
            chosen.append(one if x > 1.0 else other)
    return sum(server.time for server in chosen) + x


class Cruise:
    gain = 1.0

    def force(self, v, a, b):
        return a * (20 - v)


class Brake:
    gain = 0.5

    def force(self, v, a, b):
        return -b * v


@program
def controllers(a, b):
    cruise, brake, v = Cruise(), Brake(), 10.0
    control = cruise
    for _ in range(50):
        if v > 15:
            control = brake
        elif v < 12:
            control = cruise
        v = v + 0.1 * control.force(v, a, b) * control.gain
    return v


@program
def functions(a, b):
    def slow(x):
        return 0.1 * x * b

    x = a
    for _ in range(9):
        rate = np.sin if x > 1.0 else np.cos
        x = x + 0.3 * rate(x)
        x -= (slow if x > 1.5 else math.sqrt)(x) * 0.1
    return x


@program
def parents(a, b):
    class_of = Server
    nodes = [class_of(a * k, str(k)) for k in range(4)]
    for i, node in enumerate(nodes[1:], 1):
        best, cost = None, np.inf
        for other in nodes[:i]:
            through = other.free + (node.time - other.time) ** 2 + b
            if through < cost:
                cost, best = through, other
        node.parent, node.free = best, cost
    nodes[0].parent = None
    total, node = 0.0, nodes[-1]
    while node.parent is not None:
        total += node.free
        node = node.parent
    return total


Event = namedtuple("Event", "t kind size")


class Trade(NamedTuple):
    price: float
    side: str


@program
def words_in_tuples(a, b):
    infected, healthy, t, events = 1.0, 99.0, 0.0, []
    for _ in range(40):
        new, recovered = 0.3 * a * healthy * infected / 100, 0.1 * b * infected
        healthy -= new
        infected += new - recovered
        if new > recovered:
            events.append((t, "infection"))
        else:
            events.append((t, "recovery"))
        t += a
    return sum(t for t, kind in events if kind == "infection") + infected


@program
def words_in_namedtuples(a, b):
    state = Event(0.0, "run", a)
    for _ in range(30):
        if state.size > 1.2:
            state = state._replace(kind="stop", size=state.size * 0.9)
        else:
            state = state._replace(kind="run", size=state.size + b * 0.1)
        state = state._replace(t=state.t + 0.1)
    return state.size * state.t + (a if state.kind == "stop" else 0.0)


@program
def counted(a, b):
    record, x = {"x": [], "state": []}, a
    for k in range(9):
        x = x + 0.3 * np.sin(b * k)
        record["x"].append(x)
        record["state"].append("up" if x > 1.5 else "down")
    least = record["x"].index(min(record["x"]))
    return record["state"].count("up") * a + record["x"][least] * least


@program
def dicts_with_none(a, b):
    x, best = a, {"x": None, "loss": float("inf"), "n": 0}
    for k in range(9):
        x = x + 0.3 * np.sin(b * k)
        loss = (x - 1.8) ** 2
        if loss < best["loss"]:
            best = {"x": x, "loss": loss, "n": k}
    return best["x"] * a + best["loss"] + best["n"]


@program
def arrays_of_deques(a, b):
    window, total, taps = deque([0.0] * 5), 0.0, np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    for k in range(12):
        window.appendleft(a * np.sin(b * k))
        window.pop()
        total += np.dot(taps, np.array(window)) ** 2
    return total


class Path:
    def __init__(self, n, x):
        self.cost = (x - n) ** 2
        self.points, self.times = [x * np.sin(k) for k in range(n)], [0.1 * k for k in range(n)]


@program
def a_path_of_fewer_points(a, b):
    total, paths = 0.0, [Path(n, a + 1.9) for n in (2, 3, 5)]
    best, least = None, float("inf")
    for path in paths:
        if least >= path.cost:
            least, best = path.cost, path
    for point, t in zip(best.points, best.times):  # noqa: B905
        total = total + point * t
    shortest = min(paths, key=lambda path: abs(path.points[-1] - b))
    total = total + best.points[1] + best.points[-1] + best.times[-1] + len(best.points) * b
    return total + sum(shortest.points) + least


def best_of_a_window(x, n):
    """What is chosen has other shapes than what it starts with; the caller may not want it."""
    best, trajectory, least = [0.0, 0.0], np.array([[x[0], x[1]]]), float("inf")
    for v in np.linspace(x[0], x[0] + 3.0, n):
        rows = np.vstack([np.array([[v, x[1] * v]])] * 3)
        cost = (v - 1.3) ** 2 + rows[-1, 1]
        if least >= cost:
            least, best, trajectory = cost, [v, v * x[2]], rows
    return best, trajectory, least


@program
def the_best_without_its_trajectory(a, b):
    total, x = 0.0, np.array([a, b, a * b])
    for k in range(3):
        u, _, cost = best_of_a_window(x + 0.1 * k, 4)
        total = total + u[0] * u[1] + cost
    found = best_of_a_window(x, 40)
    return total + found[0][1] * found[2] + list(found)[-1]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: np.sum(best_of_a_window(x, 4)[1]),
        lambda x: sum([np.sum(item) for item in best_of_a_window(x, 4)]),
        lambda x: np.array(best_of_a_window(x, 4)[1:]),
        lambda x: best_of_a_window(x, 4)[1:] == (1.0, 2.0),
        lambda x: (lambda u, rows, cost: np.sum(rows))(*best_of_a_window(x, 4)),
        lambda x: best_of_a_window(x, 4)[1],
        lambda x: best_of_a_window(x, 4)[2:0:-1],
    ],
)
def test_an_item_without_one_value_is_an_error_where_it_is_read(read):
    with pytest.raises(CarryError, match=r"'trajectory' is .* on one side of a branch"):
        ckad.jit(read)(np.array([0.4, 0.3, 0.8]))


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_the_one_that_is_chosen(function: Callable[..., Any]) -> None:
    check(function, 1.21, 0.83)


@pytest.mark.slow
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_the_one_that_is_chosen_further(function: Callable[..., Any]) -> None:
    check_further(function, 1.21, 0.83)


def test_none_is_chosen() -> None:
    def nearest(x):
        hit = None
        for one in SCENE:
            if one.radius * x > 2.0:
                hit = one
        return hit.radius * x

    assert ckad.value_and_grad(nearest)(1.5) == (nearest(1.5), 1.5)
    with pytest.raises(RaisedError, match=r"return hit\.radius \* x"):
        ckad.grad(nearest)(0.1)


def test_objects_that_a_loop_makes_are_of_one_class() -> None:
    def latest(x, other):
        server = Server(1.0, "first")
        for _ in range(20):
            x = x * 1.1
            if x > 1.2:
                server = other(x, "new")
        return server.time

    assert ckad.value_and_grad(lambda x: latest(x, Server))(1.5) == pytest.approx(
        (1.5 * 1.1**20, 1.1**20), rel=1e-12
    )

    class Another(Server):
        pass

    with pytest.raises(CarryError, match=r"is made in the body .* @dataclass"):
        ckad.grad(lambda x: latest(x, Another))(1.5)


def test_an_item_that_is_not_there() -> None:
    def place(x):
        return x * [1.0, 2.0 * x, 3.0].index(2.0 * x * x)

    assert ckad.value_and_grad(place)(1.0) == (1.0, 1.0)
    with pytest.raises(CkadError, match="index"):
        ckad.grad(place)(1.7)


def _word(k):
    return ["a", "a"][k]


def _letter(k):
    return "aa"[k]


def _function(k):
    return [_word, _word][k]


SHARED = {"gain": 2.0}


def _item_of_dict(k):
    return [SHARED, SHARED][k]["gain"]


def _flag(k):
    return [True, True][k]


def _field(k):
    pair = (1.0, 2.0)
    return [pair, pair][k][0]


@pytest.mark.parametrize("asked", [_word, _letter, _function, _item_of_dict, _flag, _field])
def test_an_index_beyond_items_that_are_all_alike_stops_the_program(asked):
    def run(x, n):
        total = 0.0
        for k in range(n):
            total = total + (x if asked(k) else 0.0)
        return total

    assert ckad.value_and_grad(run)(1.5, 2) == (3.0, 2.0)
    with pytest.raises(IndexError, match="out of range at step 2"):
        ckad.grad(run)(1.5, 20)


def test_an_index_beyond_one_traced_number_that_a_list_repeats_stops_the_program():
    def run(x, n):
        numbers, total, k = [x, x], 0.0, 0
        while total < n:
            total, k = total + numbers[k], k + 1
        return total

    assert ckad.value_and_grad(run)(1.5, 2.0) == (3.0, 2.0)
    with pytest.raises(IndexError, match="out of range at step 2"):
        ckad.grad(run)(1.5, 20.0)


class Tank:
    def __init__(self, level):
        self.level, self.asked = level, 0

    def __bool__(self):
        self.asked += 1
        return bool(self.level > 0.0)


def the_truth_of_a_chosen_object(x):
    """Its class says it, for the one that is meant alone."""
    full, empty = Tank(x), Tank(-x)
    tanks = [full, empty]
    if x < 2.0:
        tanks.reverse()
    total = 1.0 if tanks[0] else 2.0
    total += 4.0 if not tanks[1] else 8.0
    while tanks[1]:
        total += 3.0
        if total > 20.0:
            break
    return x * total + 0.1 * full.asked + 0.01 * empty.asked


class Row:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)


def the_length_of_a_chosen_object(x):
    none, two = Row([]), Row([x, x])
    row = none if x < 2.0 else two
    return x if row else 3.0 * x


@pytest.mark.parametrize("f", [the_truth_of_a_chosen_object, the_length_of_a_chosen_object])
@pytest.mark.parametrize("x", [1.5, 2.5, -1.5])
def test_the_truth_of_a_chosen_object_is_what_its_class_says(f, x):
    assert ckad.value_and_grad(f, engine="vm")(x) == pytest.approx(
        (f(x), (f(x + 1e-3) - f(x - 1e-3)) / 2e-3)
    )


def test_the_opposite_of_a_chosen_object_is_refused_by_name():
    def f(x):
        tanks = [Tank(x), Tank(-x)]
        return x * -(tanks[0] if x < 2.0 else tanks[1])

    with pytest.raises(ckad.errors.ConcreteValueError, match="which of several objects"):
        ckad.grad(f, engine="vm")(1.5)


class Ball:
    def __init__(self, x, paint, mirror=None):
        self.x, self.paint, self.mirror = x, paint, mirror


def stripes(p):
    return np.abs(np.sin(p))


def painted(x, ask):
    balls = [
        Ball(0.2, np.array([1.0, 0.2])),
        Ball(x, stripes, 0.5),
        Ball(1.9, np.array([0.3, 0.3])),
    ]
    total = 0.0
    for k in range(9):
        p = x + 0.2 * k * np.ones(2)
        ball = min(balls, key=lambda one: abs(one.x - 0.2 * k))
        paint = ask(ball.paint, p)
        if ball.mirror is not None:
            paint = paint * (1.0 - ball.mirror)
        total += np.sum(paint) * ball.x
    return total


def by_length(paint, p):
    if not hasattr(paint, "__len__"):
        paint = paint(p)
    return paint


def by_class(paint, p):
    return paint * 1.0 if isinstance(paint, np.ndarray) else paint(p)


def by_call(paint, p):
    return paint(p) if callable(paint) else paint


@pytest.mark.parametrize("ask", [by_length, by_class, by_call])
def test_an_attribute_is_an_array_in_some_objects_and_a_function_in_others(ask):
    at, h = 0.83, 1e-6
    value, slope = ckad.value_and_grad(lambda x: painted(x, ask), engine="vm")(at)
    np.testing.assert_allclose(value, painted(at, ask), rtol=1e-12)
    central = (painted(at + h, ask) - painted(at - h, ask)) / (2 * h)
    np.testing.assert_allclose(slope, central, rtol=1e-6)


def test_an_attribute_is_a_number_in_some_objects_and_a_function_in_others():
    def weighed(x):
        balls = [Ball(0.2, 0.7), Ball(x, stripes), Ball(1.9, 0.3)]
        total = 0.0
        for k in range(9):
            ball = min(balls, key=lambda one: abs(one.x - 0.2 * k))
            weight = by_call(ball.paint, x + 0.2 * k)
            total += weight * ball.x
        return total

    at, h = 0.83, 1e-6
    value, slope = ckad.value_and_grad(weighed, engine="vm")(at)
    np.testing.assert_allclose(value, weighed(at), rtol=1e-12)
    np.testing.assert_allclose(slope, (weighed(at + h) - weighed(at - h)) / (2 * h), rtol=1e-6)
