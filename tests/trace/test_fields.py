"""Arrays with named fields, against NumPy and against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError, DifferentiationError, DtypeError, UnsupportedFunctionError

from .idioms import check, check_further

SPECIES = [("U", np.double), ("V", np.double)]
BODY = np.dtype([("position", float, (2,)), ("mass", float), ("kind", int), ("fixed", bool)])
PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(function)
    return function


@program
def species(a, b):
    Z = np.zeros((5, 5), SPECIES)
    Z["U"] = 0.5 * a
    Z["V"][2, 2] = b
    U, V = Z["U"], Z["V"]
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    for _ in range(6):
        L = U[:-2, 1:-1] + U[2:, 1:-1] + U[1:-1, :-2] + U[1:-1, 2:] - 4 * u
        uvv = u * v * v
        u += 0.1 * L - uvv
        v += uvv - b * v
    return np.sum(Z["U"] ** 2) + np.mean(Z["V"])


@program
def inside_views(a, b):
    Z = np.zeros((4, 5), SPECIES)
    Z["U"][...] = a
    inside = Z[1:-1, 1:-1]
    inside["V"] += b
    inside["U"][0] *= 2.0
    Z[2]["U"] += a * b
    Z[:, 1]["V"][:] = a
    return np.sum(Z["U"] * Z["V"]) + Z["U"][1, 2] + Z[3, 4]["U"]


@program
def elements(a, b):
    Z = np.zeros(4, dtype=BODY)
    for i in range(len(Z)):
        Z[i]["position"] = (a * i, b)
        Z[i]["mass"] += 1.0 + a
        Z["kind"][i] = i % 2
        Z[i]["position"][0] += b
    Z[1] = ((a, b), 2.0, 3, True)
    Z[2] = Z[1]
    Z[2]["mass"] *= a
    p = Z[3]
    p["mass"] = b
    return np.sum(Z["position"] * Z["mass"][:, None]) + p["mass"] * Z[2]["kind"] + Z["kind"][3]


@program
def items_in_a_loop(a, b):
    bodies = np.zeros(5, dtype=BODY)
    bodies["position"] = np.arange(10.0).reshape(5, 2) * a
    bodies["mass"] = 1.0
    total = 0.0
    for body in bodies:
        body["position"][1] += b
        body["mass"] *= 1 + a
        x, m = body["position"], body["mass"]
        total += m * np.sum(x**2)
    for i, body in enumerate(bodies):
        if body["mass"] > 1.0:
            total += i * body["mass"]
    return total + sum(body["mass"] for body in bodies) + bodies["mass"].sum()


@program
def rows_from_tuples(a, b):
    Z = np.array([(a, 1.0), (b, 2.0), (a * b, 3.0)], dtype=SPECIES)
    W = np.array([(1.0, 2.0), (3.0, 4.0)], dtype=SPECIES)
    W[0] = Z[1]
    W["V"] *= b
    Z[1:] = W
    Z[0] = (W["U"][1], a)
    Z[:2] = [(a, b), (b, a)]
    return np.sum(Z["U"] * Z["V"]) + W[0]["V"]


@program
def copies(a, b):
    Z = np.zeros(4, SPECIES)
    Z["U"] = a
    W = Z.copy()
    X = np.zeros_like(Z)
    Y = np.copy(Z)
    Z["U"] *= b
    X["V"] = Z["U"] + W["U"]
    X[:] = X[::-1]
    Y[1:] = Z[:-1]
    facts = (Z.dtype.names, Z.shape, len(Z), Z.ndim, Z.size, Z.itemsize, isinstance(Z, np.ndarray))
    if facts != (("U", "V"), (4,), 4, 1, 4, 16, True) or X.dtype != Z.dtype:
        return 0.0
    return sum(np.sum(A[name] ** 2) for A in (Z, W, X, Y) for name in A.dtype.names)


@program
def in_branches(a, b):
    Z = np.zeros(4, SPECIES)
    for k in range(4):
        if a * k > 1.0:
            Z["U"][k] = a * k
            Z[k]["V"] += b
        elif k > 0:
            Z[k] = (b, Z["U"][k - 1])
        else:
            Z["V"] += 0.1 * a
    return np.sum(Z["U"] ** 2 + Z["V"])


@program
def bound_anew(a, b):
    Z = np.zeros(3, SPECIES)
    Z["U"] = a
    old = Z.copy()
    k = 0
    while np.sum(Z["U"]) < 30.0:
        new = np.empty_like(Z)
        new["U"] = Z["U"] * 1.5 + old["U"]
        new["V"] = Z["U"] - b
        old, Z = Z, new
        k += 1
        if k > 20:
            break
    if a > b:
        W = Z
    else:
        W = old
    return np.sum(W["V"] * Z["U"]) + k * a


@program
def masks(a, b):
    Z = np.zeros(6, dtype=BODY)
    Z["mass"] = np.arange(6) * a
    Z["kind"] = np.arange(6) % 3
    Z["fixed"][2:4] = True
    heavy = Z["mass"] > 1.5
    Z["mass"][heavy] *= b
    Z["position"][Z["kind"] == 1] = (a, b)
    free = ~Z["fixed"]
    Z["position"][free] += 1.0
    young = Z[Z["kind"] < 2]
    young["mass"] += 1.0
    order = Z[[3, 1]]
    order["mass"] = 100.0
    late = Z[np.array([4, 5])]
    return (
        np.sum(Z["position"]) + np.sum(Z["mass"]) + young["mass"] @ young["mass"] + late["mass"][0]
    )


@program
def under_traced_masks(a, b):
    Z = np.zeros(5, SPECIES)
    Z["U"] = np.arange(5.0) * a
    Z["V"] = 1.0
    Z["V"][Z["U"] > 1.0] = b
    Z[Z["U"] > 2.0] = (a, b)
    return np.sum(Z["U"] * Z["V"]) + np.sum(Z[Z["V"] > 0.5]["U"])


@program
def records(a, b):
    Z = np.zeros(4, dtype=[("x", float), ("y", float)]).view(np.recarray)
    R = np.recarray((3,), dtype=[("x", float), ("v", float)])
    R.x = a
    R.v = np.arange(3.0)
    F = np.rec.fromarrays([a * np.ones(2), b * np.ones(2)], names="p, q")
    Z.x[:] = a
    Z.y += b
    for i in range(4):
        Z[i].x += i
        R.x += 0.1 * R.v
    Z.x *= Z.y
    return np.sum(Z.x) + R.x @ R.v + F.p @ F.q


@program
def nested(a, b):
    inner = np.dtype([("x", float), ("y", float)])
    Z = np.zeros(3, dtype=[("pos", inner), ("vel", inner), ("w", complex)])
    Z["pos"]["x"] = a
    Z["vel"]["y"][1:] = b
    Z["w"] = a + 1j * b
    for _ in range(5):
        Z["pos"]["x"] += 0.1 * Z["vel"]["x"]
        Z["pos"]["y"] += 0.1 * Z["vel"]["y"]
        Z["vel"]["x"] -= Z["pos"]["x"] * a
        Z[1]["pos"]["y"] = b * Z["pos"]["x"][0]
        Z["w"] *= 1j * a
    return np.sum(Z["pos"]["x"] * Z["pos"]["y"]) + np.sum(np.abs(Z["w"]) ** 2) + Z[2]["vel"]["x"]


class Swarm:
    def __init__(self, n, a):
        self.p = np.zeros(n, dtype=[("position", float, 2), ("velocity", float, 2)])
        self.p["position"] = np.linspace(0, 1, 2 * n).reshape(n, 2)
        self.p["velocity"][:, 0] = a

    def move(self, drag):
        P, V = self.p["position"], self.p["velocity"]
        dx = np.subtract.outer(P[:, 0], P[:, 0])
        V -= drag * V
        V[:, 1] -= 0.1 * dx.sum(axis=0)
        P += 0.1 * V
        np.add(P, 0.01 * V, out=P)


@program
def in_methods(a, b):
    swarm = Swarm(4, a)
    for _ in range(7):
        swarm.move(b * 0.1)
    return np.sum(swarm.p["position"] ** 2) + swarm.p["velocity"][1, 1]


@program
def kept_frames(a, b):
    Z = np.zeros(3, SPECIES)
    frames = []
    history = np.zeros((6, 3), SPECIES)
    for k in range(6):
        Z["U"] += a * k
        Z["V"] = Z["U"] * b
        history[k] = Z
        frames.append(Z["U"].copy())
    return np.sum(history["V"][2:4]) + np.sum(np.array(frames) * history["U"]) + history[5, 1]["U"]


@program
def shapes(a, b):
    Z = np.zeros((2, 3), SPECIES)
    Z["U"] = a * np.arange(6.0).reshape(2, 3)
    flat = Z.ravel()
    flat["V"] += b
    T = Z.T
    T["U"][0] *= 2.0
    other = np.concatenate([Z[0], Z[1], np.ones(2, SPECIES)])
    W = np.roll(other, 1)
    row = Z["U"].reshape(-1)
    row[1] = b
    return np.sum(W["U"] * W["V"]) + np.sum(Z["U"]) + np.sum(Z["V"] * Z["U"])


@program
def two_loops(a, b):
    cells = np.zeros((3, 4), dtype=[("h", np.float32), ("q", "f8"), ("n", "i4")])
    cells["q"] = a
    cells["h"] += 1
    for i in range(3):
        for j in range(1, 4):
            cells[i, j]["q"] = cells[i, j - 1]["q"] * b + cells["q"][i - 1, j]
            cells[i, j]["n"] += i * j
            if cells["q"][i, j] > 2.0:
                cells["q"][i, j] -= a
                break
    return np.sum(cells["q"] * cells["n"]) + np.sum(cells["h"]).astype(float)


@program
def elements_are_views(a, b):
    Z = np.zeros(3, SPECIES)
    p, q = Z[0], Z[1]
    Z[0]["U"] = a
    q["V"] = b
    U = Z["U"]
    U[1] += 2 * a
    Z[0], Z[2] = Z[1], Z[0]
    return p["U"] * 3 + q["V"] * 5 + np.sum(Z["U"] * Z["V"]) + Z["U"][2] + sum(q) + q[1]


@program
def traced_places(a, b):
    Z = np.zeros(6, SPECIES)
    k = 0
    while k * a < 2.0:
        k += 1
    Z[k]["U"] = a
    Z[k - 1] = (a, b)
    Z["V"][k] += b
    p = Z[k]
    p["V"] *= a
    for i in range(8):
        j = int(abs(np.sin(a * i)) * 5)
        Z[j]["U"] += b
        Z[j]["V"] = Z["U"][j] * a
    return np.sum(Z["U"] ** 2 + Z["V"] * 3)


@program
def swapped(a, b):
    Z, W = np.zeros(5, SPECIES), np.zeros(5, SPECIES)
    Z["U"] = a
    for k in range(7):
        W["U"][1:] = Z["U"][:-1] * b + k
        W["V"] = Z["V"] + Z["U"]
        Z, W = W, Z
    return np.sum(Z["V"]) + np.sum(W["U"])


@program
def walkers(a, b):
    Z = np.zeros(5, [("p", "f8", (2,)), ("age", "i4"), ("alive", "?")])
    Z["alive"] = True
    n = 0
    for step in range(6):
        for walker in Z:
            if not walker["alive"]:
                continue
            walker["p"] += (a, b)
            walker["age"] += 1
            if walker["p"][0] > 2.0:
                walker["alive"] = False
                n += 1
        if n > 3:
            break
        Z["p"][step % 5] *= 1.5
        Z["p"][Z["age"] > 2] += a
    return np.sum(Z["p"] ** 2) + n * a + np.sum(Z["age"]) * b


@program
def dtypes(a, b):
    padded = {"names": ["x", "y"], "formats": ["f8", "f4"], "offsets": [8, 0], "itemsize": 24}
    Z = np.ones(3, dtype=np.dtype(padded))
    Z["x"] *= a
    W = np.empty(3, dtype={"names": ["x", "y"], "formats": [float, int]})
    W[:] = 0
    W["x"] += Z["x"]
    W["y"] = 3
    X = np.full(2, (1.0, 2.0), dtype=SPECIES)
    X["U"] *= a
    Y = np.full_like(X, b)
    return np.sum(W["x"] * W["y"]) + np.sum(X["U"] * X["V"]) + np.sum(Y["U"] * X["U"])


class Reactor:
    def __init__(self, a):
        self.state, self.log = np.zeros(4, SPECIES), []
        self.state["U"] = a

    def step(self, b):
        old, new = self.state, self.state.copy()
        new["U"][1:-1] += b * (old["U"][2:] - old["U"][:-2] + old["V"][1:-1])
        new["V"] += old["U"] * b
        self.state = new
        self.log.append(new["U"][1])


@program
def in_objects_and_lists(a, b):
    reactor = Reactor(a)
    for _ in range(9):
        reactor.step(b)
    kept = {"state": reactor.state}
    both = [reactor.state, reactor.state.copy()]
    both[1]["U"] *= 2
    both[0]["V"] += 1
    return sum(reactor.log) + np.sum(kept["state"]["V"]) + both[1]["U"][1]


@program
def chosen(a, b):
    Z, W = np.zeros(4, SPECIES), np.ones(4, SPECIES)
    Z["U"] += a
    Y = Z.copy() if a > b else W.copy()
    Y["V"] *= b
    total = 0.0
    for k in range(5):
        if k * b > 1:
            Y = np.ones(4, SPECIES)
            Y["U"] *= a
        else:
            Y["U"] += b
        total += np.sum(Y["U"])
    return total


def put_into(Z, i, v):
    Z[i]["U"] = v
    Z["V"][i] += v
    return Z["U"].sum()


@program
def passed_on(a, b):
    Z = np.zeros(3, SPECIES)
    total = 0
    for i in range(3):
        total = total + put_into(Z, i, a * i + b)
    return total + np.sum(Z["V"])


@program
def iterated(a, b):
    Z = np.zeros(4, SPECIES)
    Z["U"] = [a, b, a * b, 1.0]
    Z["V"] = np.arange(4)
    total = 0.0
    for u, v in Z:
        total += u * v
    for (u, v), w in zip(Z, [1.0, 2.0, 3.0, 4.0], strict=True):
        total += u * v * w
    for i, (u, _) in enumerate(Z):
        total += i * u
    for name in Z.dtype.names:
        total += Z[name].sum()
    together = np.stack([Z[name] for name in Z.dtype.names], axis=-1)
    turned = Z[["V", "U"]]
    turned["V"][0] = 5 * a
    return total + sum([p["U"] for p in Z]) * max(Z["U"]) + together.sum() + Z["V"][0]


@program
def places_in_two_axes(a, b):
    Z = np.zeros((3, 4), SPECIES)
    Z["U"] = np.arange(12.0).reshape(3, 4) * a
    Z[1:, ::2]["V"] += b
    Z[-1]["V"][0] = a
    Z[..., 0]["U"] *= 2
    Z[0, :] = (a, b)
    Z[:, 1] = Z[:, 0]
    Z[1] = Z[0]
    Z[2, 2] = Z[0, 0]
    i = np.array([0, 2])
    Z["U"][i, i] += b
    Z[i, 1] = (b, a)
    Z[None]["V"][0, 0] *= 3
    return np.sum(Z["U"] * Z["V"]) + Z[Z["U"] > a]["V"].sum() + (Z["U"] * Z["V"])[1:].mean()


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_program(function: Callable[..., Any]) -> None:
    check(function, 0.7, 0.45)


@pytest.mark.parametrize("function", [species, elements, walkers], ids=lambda f: f.__name__)
def test_second_derivatives_and_the_native_engine(function: Callable[..., Any]) -> None:
    check_further(function, 0.7, 0.45)


# --- arguments and results -----------------------------------------------------------------------


def given(n: int = 4) -> np.ndarray:
    Z = np.zeros(n, dtype=BODY)
    Z["position"] = np.arange(2.0 * n).reshape(n, 2)
    Z["mass"] = 1.0 + np.arange(n)
    Z["kind"] = np.arange(n) % 2
    return Z


def by_argument(a, Z):
    W = Z.copy()
    W["mass"] *= a
    total = 0.0
    for body in Z:
        total += body["mass"] * a
    W[1] = Z[2]
    return np.sum(W["mass"][W["kind"] == 1]) + total + np.sum(W["position"] * a**2)


def test_arguments_that_are_read() -> None:
    Z = given()
    value, gradient = ckad.value_and_grad(by_argument)(0.7, Z)
    assert value == pytest.approx(by_argument(0.7, Z), rel=1e-14)
    difference = (by_argument(0.7 + 1e-6, Z) - by_argument(0.7 - 1e-6, Z)) / 2e-6
    assert gradient == pytest.approx(difference, rel=1e-8)
    Z["kind"] = 1
    assert ckad.value_and_grad(by_argument)(0.7, Z)[0] == pytest.approx(by_argument(0.7, Z))


def test_arguments_that_are_written() -> None:
    def moved(a, Z):
        Z["mass"] += a
        Z["position"][:, 0] = a
        return np.sum(Z["mass"] * Z["position"][:, 0])

    Z = given()
    value = ckad.value_and_grad(moved)(0.7, Z)[0]
    np.testing.assert_array_equal(Z["mass"], given()["mass"])
    assert value == moved(0.7, Z)


def test_a_gradient_has_the_fields_of_its_argument() -> None:
    Z = np.zeros(3, SPECIES)
    Z["U"], Z["V"] = np.arange(3.0), 2.0
    gradient = ckad.grad(lambda Z: np.sum(Z["U"] ** 2 * Z["V"]))(Z)
    assert gradient.dtype == Z.dtype
    np.testing.assert_array_equal(gradient["U"], 2 * Z["U"] * Z["V"])
    np.testing.assert_array_equal(gradient["V"], Z["U"] ** 2)


def test_a_jacobian_is_of_one_array_of_numbers() -> None:
    Z = np.ones(3, SPECIES)
    with pytest.raises(DifferentiationError, match="argument 0 has named fields"):
        ckad.jacobian(lambda Z: Z["U"] * Z["V"])(Z)
    with pytest.raises(DifferentiationError, match="the result has named fields"):
        ckad.jacobian(lambda a: np.full(3, a, SPECIES))(2.0)
    with pytest.raises(DifferentiationError, match="holds dtype int64"):
        ckad.grad(lambda Z: np.sum(Z["mass"]))(given())


def test_results_with_fields() -> None:
    def made(a):
        Z = np.zeros(3, dtype=BODY)
        Z["mass"] = a
        return Z, Z[1], Z["kind"]

    (Z, item, kinds) = ckad.jit(made)(0.5)
    want, one, _ = made(0.5)
    assert Z.dtype == want.dtype
    assert item.dtype == one.dtype
    assert type(item) is type(one)
    np.testing.assert_array_equal(Z, want)
    assert item["mass"] == 0.5
    assert kinds.shape == (3,)


def test_arrays_from_outside() -> None:
    Z = given()

    def read(a):
        first = Z[0]["mass"]
        W = Z.copy()
        W["mass"] += a
        k = 0
        while a * k < 1.0:
            k += 1
        return np.sum(W["mass"]) * first + Z["mass"][k] * a + Z[k]["mass"]

    value, gradient = ckad.value_and_grad(read)(0.7)
    assert value == pytest.approx(read(0.7), rel=1e-14)
    assert gradient == pytest.approx((read(0.7 + 1e-6) - read(0.7 - 1e-6)) / 2e-6, rel=1e-8)


def test_texts_beside_numbers_are_read() -> None:
    people = np.array([("Ann", 30, 60.0), ("Bob", 40, 80.0)], "U10, i4, f8")

    def total(a):
        table = np.array([("x", 1.0), ("y", 2.0)], dtype=[("name", "U5"), ("w", float)])
        return np.sum(table["w"] * a) + people["f2"].sum() * a

    assert ckad.grad(total)(2.0) == 143.0


# --- refused by name -----------------------------------------------------------------------------


def text(a):
    Z = np.zeros(3, dtype=[("name", "U10"), ("x", float)])
    Z["x"] = a
    return np.sum(Z["x"])


def arithmetic(a):
    Z = np.ones(3, SPECIES)
    return np.sum((Z * a)["U"])


def unknown_sum(a):
    return np.sum(np.ones(3, SPECIES)) * a


def by_order(a):
    Z = np.ones(3, SPECIES)
    Z["U"] = a
    return np.sort(Z, order="U")["V"].sum()


def as_floats(a):
    Z = np.ones(3, SPECIES)
    Z["U"] = a
    return Z.view(float).sum()


def attribute(a):
    Z = np.ones(3, SPECIES)
    Z.total = a
    return np.sum(Z["U"])


@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (text, DtypeError, "the field 'name' holds <U10"),
        (arithmetic, UnsupportedFunctionError, "np.multiply of arrays with named fields"),
        (unknown_sum, UnsupportedFunctionError, "np.sum of arrays with named fields"),
        (by_order, UnsupportedFunctionError, "np.sort of arrays with named fields"),
        (as_floats, UnsupportedFunctionError, r"\.view of an array with named fields"),
        (attribute, CkadError, "the attribute 'total'"),
    ],
)
def test_refused(function: Callable[..., Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        ckad.grad(function)(2.0)
    assert "test_fields.py" in str(caught.value)
