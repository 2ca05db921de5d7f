"""Batches: what `ckad.vmap` gives is what one call after the other gives."""

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning, BatchError
from ckad.loops.driver import Options
from ckad.passes import pipeline
from ckad.transforms import call
from ckad.transforms.call import Call, compiled

rng = np.random.default_rng(7)
ENGINES = ["vm", "native"]


def stencil(u, k):
    for _ in range(12):
        u = u.copy()
        u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.roll(u, 1) * 0.99
    return u


def branch(x):
    return np.where(x > 0, x**2, -x).sum() if x.size > 1 else x


def own_way(x):
    if x > 0.5:
        y = np.sin(x)
    else:
        y = x**3
    return y


def own_length(x):
    n = 0
    while x < 10.0:
        x = x * 1.7 + 0.1
        n += 1
    return x, n


def products(A, x):
    y = A @ x
    return A.T @ y, np.outer(x, y) @ A


def gathers(x, places):
    y = x[places] * 2.0
    z = np.zeros(5)
    z[places[:2]] += y[:2]
    return y, z, x[::-2], np.cumsum(x), np.sort(x)


def reductions(x):
    return x.max(), x.min(axis=0), np.argmax(x), x.prod(axis=1), x.mean(), np.linalg.norm(x)


def solves(A, b):
    return np.linalg.solve(A, b), np.linalg.cholesky(A @ A.T + np.eye(4))


def history(x):
    rows = []
    for k in range(6):
        x = x + 0.1 * np.array([x[1], -x[0]]) * k
        rows.append(x)
    return np.array(rows)


def scanned(x, forces):
    return ckad.scan(lambda c, f: (c * 0.9 + f, c * f), x, forces)


def trees(p):
    return {"a": p["w"] @ p["v"], "b": (p["v"] * 2, p["w"].T)}


def rotated(z):
    return z * (1 + 2j) + np.conj(z) ** 2


def fourier(x):
    return np.abs(np.fft.rfft(x)) ** 2


def nested_loops(u):
    for _i in range(4):
        for j in range(3):
            u[j] = u[j] * 0.5 + u[j + 1] * u[0]
    return u


B = 5
PROGRAMS = {
    "stencil": (stencil, (rng.normal(size=(B, 9)), rng.random(B))),
    "branch": (branch, (rng.normal(size=(B, 3)),)),
    "own_way": (own_way, (rng.random(B),)),
    "own_length": (own_length, (rng.random(B),)),
    "products": (products, (rng.normal(size=(B, 3, 4)), rng.normal(size=(B, 4)))),
    "gathers": (gathers, (rng.normal(size=(B, 5)), rng.integers(0, 5, (B, 4)))),
    "reductions": (reductions, (rng.normal(size=(B, 3, 4)),)),
    "solves": (solves, (rng.normal(size=(B, 4, 4)) + 4 * np.eye(4), rng.normal(size=(B, 4)))),
    "history": (history, (rng.normal(size=(B, 2)),)),
    "scanned": (scanned, (rng.normal(size=B), rng.normal(size=(B, 7)))),
    "trees": (trees, ({"w": rng.normal(size=(B, 2, 3)), "v": rng.normal(size=(B, 3))},)),
    "rotated": (rotated, (rng.normal(size=(B, 3)) + 1j * rng.normal(size=(B, 3)),)),
    "fourier": (fourier, (rng.normal(size=(B, 16)),)),
    "nested_loops": (nested_loops, (rng.normal(size=(B, 4)),)),
}


def one_by_one(fun, args):
    """The plain function, member by member, its results stacked."""
    members = range(len(ckad.trees.flatten(args)[0][0]))
    leaves, tree = ckad.trees.flatten(args)
    calls = [
        fun(*ckad.trees.unflatten(tree, [np.array(x[k])[()] for x in leaves])) for k in members
    ]
    flat = [ckad.trees.flatten(out) for out in calls]
    stacked = [np.stack(parts) for parts in zip(*(x for x, _ in flat), strict=True)]
    return ckad.trees.unflatten(flat[0][1], stacked)


def assert_alike(found, expected):
    found, found_tree = ckad.trees.flatten(found)
    expected, tree = ckad.trees.flatten(expected)
    assert found_tree == tree
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_members_are_those_of_single_calls(name, engine):
    fun, args = PROGRAMS[name]
    assert_alike(ckad.vmap(fun, engine=engine)(*args), one_by_one(fun, args))


@pytest.mark.parametrize("name", ["stencil", "own_way", "products", "solves", "scanned", "trees"])
def test_gradients_of_members(name):
    fun, args = PROGRAMS[name]

    def total(*args):
        return sum(np.sum(np.sin(x)) for x in ckad.trees.flatten(fun(*args))[0])

    one = ckad.value_and_grad(total)
    expected = one_by_one(one, args)
    assert_alike(ckad.vmap(one)(*args), expected)
    whole = ckad.grad(lambda *a: np.sum(ckad.vmap(total)(*a)))(*args)
    assert_alike(whole, expected[1])


def test_gradients_of_members_keep_to_their_budget():
    fun, args = PROGRAMS["stencil"]
    one = ckad.grad(lambda u, k: np.sum(fun(u, k) ** 2), memory="40 kB")
    assert_alike(ckad.vmap(one)(*args), one_by_one(one, args))


@pytest.mark.parametrize("name", ["stencil", "products", "nested_loops"])
def test_the_tangent_and_the_pullback_of_a_batch_are_each_others_transposes(name):
    fun, args = PROGRAMS[name]
    ckad.testing.check_grads(ckad.vmap(fun), args, order=2)


@pytest.mark.parametrize("memory", [None, "30 kB"])
def test_forward_steps_do_not_depend_on_the_number_of_cotangents(memory):
    def observed(u):
        for _ in range(300):
            u = u + 0.1 * np.sin(np.roll(u, 1))
        return u

    call = Call(observed, (np.ones(40),), {}, Options(memory=memory, engine="native"))
    plans = []
    for n in (1, 8):
        tape = call.made(pipeline.pullbacks, (0,), 1, n)
        plans.append(compiled(tape, call.options).plan)
    steps = [plan.forward_steps for plan in plans]
    assert steps[0] >= 300
    assert steps[1] == steps[0] or (memory and steps[1] < 3 * steps[0])  # their states take memory
    assert memory is None or max(plan.peak_bytes for plan in plans) <= 30_000
    rows = ckad.jacrev(observed, memory=memory, engine="native")(np.ones(40))
    assert_alike(rows, ckad.jacfwd(observed)(np.ones(40)))


def test_batches_in_batches():
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    table = ckad.vmap(ckad.vmap(np.dot, in_axes=(None, 0)), in_axes=(0, None))(x, y)
    np.testing.assert_allclose(table, x @ y.T)


def test_axes():
    x, y = rng.normal(size=(3, 4)), rng.normal(size=3)
    f = ckad.vmap(lambda a, b: a * b, in_axes=(1, None), out_axes=1)
    np.testing.assert_allclose(f(x, y), x * y[:, None])
    g = ckad.vmap(lambda p: p["a"] + p["b"], in_axes=({"a": 0, "b": None},))
    np.testing.assert_allclose(g({"a": x, "b": y[0]}), x + y[0])
    h = ckad.vmap(lambda a: (a, a.sum()), out_axes=(-1, 0))
    assert h(x)[0].shape == (4, 3)
    np.testing.assert_allclose(ckad.vmap(lambda a, scale: a * scale)(x, scale=y), x * y[:, None])


@pytest.mark.parametrize(
    ("args", "options", "says"),
    [
        ((np.ones((2, 3)), np.ones((3, 3))), {}, "one number of members, at least 1; got 2, 3"),
        ((1.0,), {}, "argument 0 holds a float, which has no axis 0"),
        (
            (np.ones(3),),
            {"in_axes": 1},
            "argument 0 holds an array with 1 axes, which has no axis 1",
        ),
        ((np.ones(3),), {"in_axes": (0, 0)}, "in_axes has 2 entries for 1 arguments"),
        ((np.ones(3),), {"in_axes": None}, "at least 1; got none"),
        ((np.ones((0, 3)),), {}, "at least 1; got 0"),
        ((np.ones(3),), {"out_axes": None}, "out_axes holds None"),
    ],
)
def test_what_has_no_members_is_refused(args, options, says):
    with pytest.raises(BatchError, match=says):
        ckad.vmap(lambda *x: x[0], **options)(*args)


def test_what_asks_for_a_members_numbers_runs_for_one_after_the_other():
    x, n = rng.normal(size=(3, 4)), np.array([1, 3, 2])
    found = ckad.vmap(lambda x, n: np.sum(x[: int(n)]))(x, n)
    np.testing.assert_allclose(found, [x[k, : n[k]].sum() for k in range(3)])


def of_elements(x):
    for _ in range(5):
        x = np.sin(x)
    return np.sum(x)


def of_rows(x):
    x = x.copy()
    for i in range(12):
        x[i % 9] = np.sin(x[i % 9] * x[(i + 1) % 9])
    return np.sum(x)


def of_nested(x):
    x = x.copy()
    for i in range(9):
        for j in range(i):
            x[i] = np.sin(x[i]) + 0.1 * x[j]
    return np.sum(x)


def of_branches(x):
    x = x.copy()
    for i in range(9):
        if x[i, 0] > 0.0:
            for j in range(8):
                x[i, j + 1] = x[i, j + 1] * np.sin(x[i, j])
    return np.sum(x)


def until_small(x):
    while np.max(x) > 0.7:
        x = np.sin(x)
    return np.sum(x)


def caught(x):
    try:
        if x[0] > 1.0:
            raise ValueError
        return x[0] ** 2
    except ValueError:
        return 3.0 * x[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("x", [[[0.5], [0.7], [0.2]], [[0.5], [2.0], [0.6]]])
def test_members_that_stop_within_what_is_differentiated(engine, x):
    def total(x):
        return np.sum(ckad.vmap(caught)(x))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AsRunWarning)
        found = ckad.grad(total, engine=engine)(np.array(x))
    np.testing.assert_allclose(found, [[2.0 * k if k <= 1.0 else 3.0] for (k,) in x], rtol=1e-14)


@pytest.mark.parametrize("schedule", ["store_all", "revolve"])
@pytest.mark.parametrize("f", [of_elements, of_rows, of_nested, of_branches, until_small])
def test_lanes_that_only_residuals_differ_in(f, schedule):
    """What comes into the reverse of a loop is the same for all directions."""
    x, v = np.random.default_rng(3).normal(size=(2, 9, 9))
    hessian = ckad.hessian(f, schedule=schedule, engine="vm")(x)
    product = ckad.hvp(f, (x,), (v,), schedule=schedule, engine="vm")
    assert np.abs(product).max() > 0.1
    np.testing.assert_allclose(np.tensordot(hessian, v, 2), product, rtol=1e-11, atol=1e-13)


def settled(x, rate):
    """Members leave the loop at different times."""
    while np.sum(x**2) > 0.1:
        x = x - 0.1 * rate * np.stack([x[0], x[1] ** 3 + x[0]])
    return np.sum(x)


def test_gradients_of_members_that_end_at_different_times():
    """By a rate of their own, and by one that they share; within a budget, too."""
    x, rates = rng.normal(size=(B, 2)) + 2.0, rng.uniform(1.0, 2.0, B)
    one = ckad.value_and_grad(settled, argnums=(0, 1))
    assert_alike(ckad.vmap(one)(x, rates), one_by_one(one, (x, rates)))
    found = ckad.vmap(one, in_axes=(0, None))(x, 1.5)
    assert_alike(found, one_by_one(one, (x, np.full(B, 1.5))))
    small = ckad.value_and_grad(settled, argnums=(0, 1), memory="60 kB")
    assert_alike(ckad.vmap(small)(x, rates), one_by_one(one, (x, rates)))


def test_the_engine_is_chosen_for_all_members(monkeypatch):
    """What is little work for one is much for a thousand."""
    seen = []

    def noted(tape, options):
        seen.append(options.engine)
        return compiled(tape, options)

    monkeypatch.setattr(call, "compiled", noted)

    def grown(x, rate):
        for _ in range(50):
            x = x + 0.01 * rate * np.stack([x[1], -x[0]])
        return np.sum(x**2)

    x, rates = rng.normal(size=(1000, 2)), rng.uniform(1.0, 2.0, 1000)
    ckad.jit(grown)(x[0], rates[0])
    together = ckad.vmap(grown)(x, rates), ckad.vmap(ckad.grad(grown))(x, rates)
    assert seen == ["vm", "native", "native"]
    np.testing.assert_allclose(together[0], np.sum(x**2, 1) * (1 + 1e-4 * rates**2) ** 50)
    np.testing.assert_allclose(together[1], 2 * x * (1 + 1e-4 * rates[:, None] ** 2) ** 50)
