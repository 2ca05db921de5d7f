"""A recording is used again only while recording anew would give the same."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import math
import operator
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sps
import scipy.special

import ckad
from ckad.trace.source.outside.purity import reads
from ckad.transforms import reuse

Table = list[float]


def module(text: str, name: str = "user_module") -> types.ModuleType:
    """A module of the user's."""
    made = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(made))
    return made


# --- what is used again ------------------------------------------------------------------------

RATE = 3.0
WEIGHTS = np.array([1.0, 2.0, 3.0])
SETTINGS = {"rate": 2.0, "power": 3, "inner": [1.0, (2.0, 3.0)]}


def helper(x: Any, by: float = 2.0) -> Any:
    return by * x * RATE


def factorial_power(x: Any, n: int) -> Any:
    return x if n <= 1 else x * factorial_power(x, n - 1)


def of_three(x: Any, y: Any, z: Any) -> Any:
    return x * y + np.sin(z)


def with_closure() -> Callable[..., Any]:
    scale, table = 2.0, (1.0, 2.0)
    return lambda x: scale * x * table[1]


def with_loop(x: Any) -> Any:
    return ckad.fori_loop(0, 5, lambda i, c: c * x + RATE, x)


def with_scan(x: Any) -> Any:
    def step(carry: Any, w: Any) -> Any:
        return carry * w, carry

    last, all_of_them = ckad.scan(step, x, np.array([1.0, 2.0, 3.0]))
    return last + np.sum(all_of_them)


def with_branch(x: Any) -> Any:
    return ckad.cond(x > 1.0, lambda x: x**2, np.cos, x)


def with_comprehensions(x: Any) -> Any:
    powers = [x**k for k in range(1, 4)]
    named = {k: p for k, p in zip("abc", powers, strict=True) if k != "b"}
    return sum(p * w for p, w in zip(named.values(), WEIGHTS[:2], strict=True))


def with_local_mutation(x: Any) -> Any:
    rows = []
    for k in range(3):
        rows.append(k * x)
    u = np.zeros_like(np.stack(rows))
    u[1:] = np.stack(rows)[1:] ** 2
    u[0] += x
    return np.sum(u)


def with_check(x: Any, flag: Any = None) -> Any:
    if flag is None and np.ndim(x) != 0:
        raise ValueError("a scalar is wanted")
    return x * 1.5


PURE: dict[str, Callable[..., Any]] = {
    "polynomial": lambda x: 3.0 * x**2 + x,
    "ufuncs": lambda x: np.sin(x) * np.exp(-x) + np.maximum(x, 0.5),
    "global float": lambda x: RATE * x,
    "global array": lambda x: np.sum(WEIGHTS * x),
    "global dict": lambda x: SETTINGS["rate"] * x ** SETTINGS["power"] * SETTINGS["inner"][1][0],
    "helper": lambda x: helper(x) + helper(x, by=1.0),
    "recursive helper": lambda x: factorial_power(x, 4),
    "closure": with_closure(),
    "constants": lambda x: np.pi * x + math.sqrt(2.0) * x + math.pi,
    "scipy": lambda x: scipy.special.erf(x) * scipy.special.expit(x),
    "linalg": lambda x: np.linalg.norm(x * WEIGHTS),
    "methods": lambda x: (x * WEIGHTS).reshape(3, 1).T.sum(),
    "new arrays": lambda x: np.sum(np.linspace(0.0, 1.0, 5) * x + np.zeros(5) + np.arange(5)),
    "dtype": lambda x: np.sum((x * WEIGHTS).astype(np.float64)),
    "reduce": lambda x: functools.reduce(lambda a, b: a * b, [x, x, x]),
    "partial": functools.partial(helper, by=4.0),
    "loop": with_loop,
    "scan": with_scan,
    "branch": with_branch,
    "comprehensions": with_comprehensions,
    "local mutation": with_local_mutation,
    "check": with_check,
}


@pytest.mark.parametrize("name", PURE)
def test_a_pure_function_is_recorded_once(name, recordings):
    g = ckad.value_and_grad(PURE[name])
    first, again, other = g(0.7), g(0.7), g(1.9)
    assert len(recordings) == 1
    reuse._kept.clear()
    assert g(0.7) == first == again
    assert g(1.9) == other != first


def test_every_transformation_uses_recordings_again(recordings):
    h = lambda x: x**3  # noqa: E731
    run = ckad.jit(h)
    for x in (2.0, 3.0):
        assert run(x) == x**3
        assert ckad.grad(h)(x) == 3 * x**2
        assert ckad.jvp(h, (x,), (1.0,)) == (x**3, 3 * x**2)
        assert ckad.vjp(h, x)[1](1.0) == (3 * x**2,)
        assert ckad.hvp(h, (x,), (1.0,)) == 6 * x
    assert recordings == [h]


def test_transformed_functions_are_recorded_once(recordings):
    h = lambda x: x**3  # noqa: E731

    def squared(a: Any) -> None:
        a *= a

    batch = np.array([2.0, 3.0])
    for _ in range(2):
        np.testing.assert_array_equal(ckad.jit(squared, returns=0)(batch), batch**2)
        np.testing.assert_array_equal(
            ckad.jvp(squared, (batch,), (batch,), returns=0)[1], 2 * batch**2
        )
        assert ckad.jit(ckad.grad(h))(2.0) == 12.0
        assert ckad.grad(ckad.jit(h))(2.0) == 12.0
        np.testing.assert_array_equal(ckad.jit(ckad.vmap(h))(batch), batch**3)
        np.testing.assert_array_equal(ckad.jit(ckad.vmap(h, 0, 0))(batch), batch**3)
    assert len(recordings) == 7  # of h by itself, too, in three of them


def by_places(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    n = x.shape[0]
    return np.sum(np.sin(sps.csr_matrix((data, indices, indptr), shape=(n, n)) @ x))


def by_matrix(a: Any, x: Any) -> Any:
    return np.sum(np.sin(a @ x))


def a_matrix(shift: int = 0) -> Any:
    dense = np.diag([1.0, 2.0, 3.0, 4.0])
    dense[1, (2 + shift) % 4] = 5.0
    return sps.csr_matrix(dense)


def parts(a: Any, x: Any) -> tuple[Any, ...]:
    return a.data, a.indices.astype(np.int64), a.indptr.astype(np.int64), x


@pytest.mark.parametrize(
    ("program", "wrt", "arguments"),
    [(by_places, (0, 3), parts), (by_matrix, (0, 1), lambda a, x: (a, x))],
    ids=["indices", "matrix"],
)
def test_a_recording_for_known_places_is_used_again(program, wrt, arguments, recordings):
    """Of a sparse matrix; those that are met at one call alone are not kept."""
    x, g = np.array([0.1, 0.2, 0.3, 0.4]), ckad.value_and_grad(program, wrt)

    def check(a: Any, x: Any) -> None:
        value, (by_a, by_x) = g(*arguments(a, x))
        slope = np.cos(a @ x)
        np.testing.assert_allclose(value, np.sum(np.sin(a @ x)), rtol=1e-14)
        np.testing.assert_allclose(by_x, a.T @ slope, rtol=1e-14)
        by_data = np.asarray(getattr(by_a, "data", by_a))
        rows = np.repeat(np.arange(4), np.diff(a.indptr))
        np.testing.assert_allclose(by_data, slope[rows] * x[a.indices], rtol=1e-14)

    for _ in range(3):
        check(a_matrix(), x)
    made = len(recordings)
    for k in range(12):
        check(2.0 * a_matrix(), x + k)
    assert len(recordings) == made
    check(a_matrix(1), x)  # as many elements, elsewhere
    assert len(recordings) > made
    check(a_matrix(), x)


def test_integers_that_a_function_writes_into_are_met_as_they_were_given():
    def program(x: Any, counts: Any) -> Any:
        total = 0.0
        for k in range(counts[0]):
            total = total + x**k
        counts = counts + 1
        return total * counts.sum()

    g = ckad.value_and_grad(program)
    for n in (3, 3, 3, 2, 3, 2, 2, 2, 3):
        value, slope = g(0.5, np.array([n, 0]))
        assert value == sum(0.5**k for k in range(n)) * (n + 2)
        assert slope == sum(k * 0.5 ** (k - 1) for k in range(n)) * (n + 2)


def test_three_scalars(recordings):
    g = ckad.value_and_grad(of_three, argnums=(0, 1, 2))
    for x, y, z in ((1.0, 2.0, 3.0), (-0.0, 5.0, 0.1), (np.nan, 1.0, 1.0)):
        value, gradient = g(x, y, z)
        np.testing.assert_array_equal(gradient, (y, x, np.cos(z)))
        np.testing.assert_array_equal(value, x * y + np.sin(z))
    assert len(recordings) == 1


def test_results_are_new_arrays(recordings):
    g = ckad.value_and_grad(lambda x: np.sum(x * x))
    x = np.ones(3)
    _, first = g(x)
    first[:] = 7.0
    np.testing.assert_array_equal(g(x)[1], [2.0, 2.0, 2.0])
    assert len(recordings) == 1


def test_an_argument_of_another_transformation_is_recorded_with_it(recordings):
    inner = ckad.grad(lambda x: x**3)
    assert inner(2.0) == 12.0
    for x in (2.0, 3.0):
        assert ckad.grad(inner)(x) == 6 * x
        assert ckad.jit(inner)(x) == 3 * x**2
    # the function, its gradient, and the function again within that
    assert len(recordings) == 3


# --- what has changed outside ------------------------------------------------------------------


class Change(NamedTuple):
    """A function, what changes, and the derivative before and after (at 2.0)."""

    function: Callable[..., Any]
    change: Callable[[], Any]
    before: float
    after: float


def global_float() -> Change:
    m = module("k = 3.0\ndef f(x): return k * x")
    return Change(m.f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def global_float_of_helper() -> Change:
    m = module("k = 3.0\ndef h(x): return k * x\ndef f(x): return h(x)")
    return Change(m.f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def global_of_a_nested_function() -> Change:
    m = module("k = 3.0\ndef f(x):\n    h = lambda x: [k * x for _ in 'a'][0]\n    return h(x)")
    return Change(m.f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def global_hides_builtin() -> Change:
    m = module("def f(x): return abs(x)")
    return Change(m.f, lambda: setattr(m, "abs", lambda x: 5.0 * x), 1.0, 5.0)


def helper_rebound() -> Change:
    m = module("def h(x): return x\ndef f(x): return h(x)")
    return Change(m.f, lambda: setattr(m, "h", lambda x: 7.0 * x), 1.0, 7.0)


def helper_code_replaced() -> Change:
    m = module("def h(x): return x\ndef f(x): return h(x)")
    code = (lambda x: 7.0 * x).__code__
    return Change(m.f, lambda: setattr(m.h, "__code__", code), 1.0, 7.0)


def own_code_replaced() -> Change:
    m = module("def f(x): return x")
    return Change(m.f, lambda: setattr(m.f, "__code__", (lambda x: 7.0 * x).__code__), 1.0, 7.0)


def module_attribute() -> Change:
    other = module("k = 2.0")
    m = module("def f(x): return other.k * x")
    m.other = other
    return Change(m.f, lambda: setattr(other, "k", 5.0), 2.0, 5.0)


def module_rebound() -> Change:
    m = module("def f(x): return other.k * x")
    m.other = module("k = 2.0")
    return Change(m.f, lambda: setattr(m, "other", module("k = 5.0")), 2.0, 5.0)


def module_in_module() -> Change:
    m = module("def f(x): return package.inner.h(x)")
    m.package = module("")
    m.package.inner = module("def h(x): return 2.0 * x")
    change = lambda: setattr(m.package.inner, "h", lambda x: 3.0 * x)  # noqa: E731
    return Change(m.f, change, 2.0, 3.0)


def cell_by_nonlocal() -> Change:
    k = 3.0

    def change() -> None:
        nonlocal k
        k = 4.0

    return Change(lambda x: k * x, change, 3.0, 4.0)


def cell_of_nested_function() -> Change:
    k = 3.0

    def change() -> None:
        nonlocal k
        k = 4.0

    def f(x: Any) -> Any:
        return ckad.fori_loop(0, 2, lambda i, c: c + k * x, 0.0 * x)

    return Change(f, change, 6.0, 8.0)


def cell_of_helper() -> Change:
    k = 3.0

    def change() -> None:
        nonlocal k
        k = 4.0

    def scaled(x: Any) -> Any:
        return k * x

    return Change(lambda x: scaled(x), change, 3.0, 4.0)


def list_in_place() -> Change:
    ks = [3.0]
    return Change(lambda x: ks[0] * x, lambda: operator.setitem(ks, 0, 4.0), 3.0, 4.0)


def list_grown() -> Change:
    ks = [3.0]
    return Change(lambda x: sum(ks) * x, lambda: ks.append(4.0), 3.0, 7.0)


def list_in_list() -> Change:
    ks = [[3.0]]
    return Change(lambda x: ks[0][0] * x, lambda: operator.setitem(ks[0], 0, 4.0), 3.0, 4.0)


def list_in_tuple() -> Change:
    ks = ([3.0],)
    return Change(lambda x: ks[0][0] * x, lambda: operator.setitem(ks[0], 0, 4.0), 3.0, 4.0)


def dict_in_place() -> Change:
    ks = {"k": 3.0}
    return Change(lambda x: ks["k"] * x, lambda: ks.update(k=4.0), 3.0, 4.0)


def dict_reordered() -> Change:
    ks = {"a": 3.0, "b": 4.0}

    def change() -> None:
        ks["a"] = ks.pop("a")

    return Change(lambda x: next_of(ks) * x, change, 3.0, 4.0)


def next_of(ks: dict[str, float]) -> float:
    return list(ks.values())[0]  # noqa: RUF015


def array_in_place() -> Change:
    a = np.array([1.0, 2.0])
    return Change(lambda x: np.sum(a * x), lambda: operator.setitem(a, 0, 5.0), 3.0, 7.0)


def array_in_place_by_view() -> Change:
    a = np.array([1.0, 2.0])
    view = a[::-1]
    return Change(lambda x: np.sum(view[0] * x), lambda: a.fill(5.0), 2.0, 5.0)


def array_shape() -> Change:
    a = np.ones((2, 3))
    change = lambda: a.resize((6, 1), refcheck=False)  # noqa: E731
    return Change(lambda x: len(a) * x, change, 2.0, 6.0)


def array_sign_of_zero() -> Change:
    a = np.array([0.0])
    change = lambda: operator.setitem(a, 0, -0.0)  # noqa: E731
    return Change(lambda x: x * np.copysign(1.0, a)[0], change, 1.0, -1.0)


def array_in_dict() -> Change:
    p = {"a": np.array([1.0, 2.0])}
    return Change(lambda x: np.sum(p["a"] * x), lambda: p["a"].fill(5.0), 3.0, 10.0)


def many_values() -> Change:
    ks = [[float(k)] for k in range(1000)]
    return Change(lambda x: ks[1][0] * x, lambda: operator.setitem(ks[1], 0, 3.0), 1.0, 3.0)


def list_in_itself() -> Change:
    ks: list[Any] = [3.0]
    ks.append(ks)
    return Change(lambda x: ks[1][1][0] * x, lambda: operator.setitem(ks, 0, 4.0), 3.0, 4.0)


def deep_list() -> Change:
    ks = inner = [3.0]
    for _ in range(200):
        ks = [ks]

    def f(x: Any) -> Any:
        found = ks
        for _ in range(201):
            found = found[0]
        return found * x

    return Change(f, lambda: operator.setitem(inner, 0, 4.0), 3.0, 4.0)


def large_array() -> Change:
    a = np.ones(10_000)
    return Change(lambda x: np.sum(a) * x, lambda: operator.setitem(a, 0, 2.0), 10_000.0, 10_001.0)


def default_value() -> Change:
    f = lambda x, k=3.0: k * x  # noqa: E731
    return Change(f, lambda: setattr(f, "__defaults__", (4.0,)), 3.0, 4.0)


def keyword_default() -> Change:
    def f(x: Any, *, k: float = 3.0) -> Any:
        return k * x

    return Change(f, lambda: operator.setitem(f.__kwdefaults__, "k", 4.0), 3.0, 4.0)


def default_list() -> Change:
    ks = [3.0]
    return Change(lambda x, ks=ks: ks[0] * x, lambda: operator.setitem(ks, 0, 4.0), 3.0, 4.0)


def default_of_helper() -> Change:
    m = module("def h(x, k=3.0): return k * x\ndef f(x): return h(x)")
    return Change(m.f, lambda: setattr(m.h, "__defaults__", (4.0,)), 3.0, 4.0)


def attribute_of_an_object() -> Change:
    p = types.SimpleNamespace(k=3.0)
    return Change(lambda x: p.k * x, lambda: setattr(p, "k", 4.0), 3.0, 4.0)


class Space(types.SimpleNamespace):
    def scaled(self, x):
        return self.k * x


def attribute_of_a_namespace_with_methods() -> Change:
    p = Space(k=3.0)
    return Change(lambda x: p.scaled(x), lambda: setattr(p, "k", 4.0), 3.0, 4.0)


def namespaces_compared() -> Change:
    p, q = (types.SimpleNamespace(k=[1.0]) for _ in range(2))
    return Change(lambda x: 3.0 * x if p == q else 4.0 * x, lambda: q.k.append(2.0), 3.0, 4.0)


def namespaces_with_methods_compared() -> Change:
    p, q = Space(k=1.0), Space(k=1.0)
    return Change(lambda x: 3.0 * x if p == q else 4.0 * x, lambda: setattr(q, "m", 2.0), 3.0, 4.0)


def namespace_found_in_a_list() -> Change:
    p, known = types.SimpleNamespace(k=1.0), [types.SimpleNamespace(k=1.0)]
    return Change(
        lambda x: 3.0 * x if p in known else 4.0 * x, lambda: setattr(p, "m", 2.0), 3.0, 4.0
    )


def attribute_of_a_class() -> Change:
    class Settings:
        k = 3.0

    return Change(lambda x: Settings.k * x, lambda: setattr(Settings, "k", 4.0), 3.0, 4.0)


def attribute_of_a_function() -> Change:
    def h(x: Any) -> Any:
        return x

    h.size = 3.0
    return Change(lambda x: h.size * x, lambda: setattr(h, "size", 4.0), 3.0, 4.0)


def attribute_of_a_function_by_another_name() -> Change:
    def h(x: Any) -> Any:
        return x

    h.size = 3.0

    def f(x: Any) -> Any:
        other = h
        return other.size * x

    return Change(f, lambda: setattr(h, "size", 4.0), 3.0, 4.0)


def bound_method() -> Change:
    class Model:
        k = 3.0

        def loss(self, x: Any) -> Any:
            return self.k * x

    model = Model()
    return Change(model.loss, lambda: setattr(model, "k", 4.0), 3.0, 4.0)


def callable_object() -> Change:
    class Model:
        k = 3.0

        def __call__(self, x: Any) -> Any:
            return self.k * x

    model = Model()
    return Change(model, lambda: setattr(model, "k", 4.0), 3.0, 4.0)


def method_of_a_captured_object() -> Change:
    class Model:
        k = 3.0

        def sum(self) -> float:
            return self.k

    model = Model()
    return Change(lambda x: model.sum() * x, lambda: setattr(model, "k", 4.0), 3.0, 4.0)


def partial_of_a_closure() -> Change:
    k = 3.0

    def change() -> None:
        nonlocal k
        k = 4.0

    return Change(functools.partial(lambda by, x: by * k * x, 2.0), change, 6.0, 8.0)


def partial_with_a_list() -> Change:
    ks = [3.0]
    f = functools.partial(lambda ks, x: ks[0] * x, ks)
    return Change(f, lambda: operator.setitem(ks, 0, 4.0), 3.0, 4.0)


def partial_keywords() -> Change:
    f = functools.partial(lambda x, k: k * x, k=3.0)
    return Change(f, lambda: operator.setitem(f.keywords, "k", 4.0), 3.0, 4.0)


def wrapped_function() -> Change:
    k = [3.0]

    def h(x: Any) -> Any:
        return k[0] * x

    @functools.wraps(h)
    def f(x: Any) -> Any:
        return h(x)

    return Change(f, lambda: operator.setitem(k, 0, 4.0), 3.0, 4.0)


def function_through_globals() -> Change:
    m = module("k = 3.0\ndef f(x): return globals()['k'] * x")
    return Change(m.f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def function_through_eval() -> Change:
    m = module("k = 3.0\ndef f(x): return eval('k') * x")
    return Change(m.f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def function_through_its_globals() -> Change:
    m = module("k = 3.0\ndef f(x): return f.__globals__['k'] * x")
    return Change(m.f, lambda: setattr(m, "k", 4.0), 3.0, 4.0)


def function_through_getattr() -> Change:
    p = types.SimpleNamespace(k=3.0)
    return Change(lambda x: getattr(p, "k") * x, lambda: setattr(p, "k", 4.0), 3.0, 4.0)  # noqa: B009


def generator_outside() -> Change:
    ks = iter([3.0, 4.0, 5.0, 6.0])
    return Change(lambda x: next(ks) * x, lambda: None, 3.0, 4.0)


def iterator_in_a_loop() -> Change:
    ks = iter([3.0])

    def f(x: Any) -> Any:
        total = 0.0 * x
        for k in ks:
            total = total + k * x
        return total

    return Change(f, lambda: None, 3.0, 0.0)


def range_of_a_set() -> Change:
    ks = {3.0}
    return Change(lambda x: sum(ks) * x, lambda: ks.add(4.0), 3.0, 7.0)


def import_inside() -> Change:
    sys.modules["user_settings"] = module("k = 3.0", "user_settings")

    def f(x: Any) -> Any:
        import user_settings

        return user_settings.k * x

    return Change(f, lambda: setattr(sys.modules["user_settings"], "k", 4.0), 3.0, 4.0)


def counter_in_a_list() -> Change:
    count = [0.0]

    def f(x: Any) -> Any:
        count[0] += 1.0
        return count[0] * x

    return Change(f, lambda: None, 1.0, 2.0)


def counter_in_an_array() -> Change:
    count = np.zeros(1)

    def f(x: Any) -> Any:
        count[0] += 1.0
        return float(count[0]) * x

    return Change(f, lambda: None, 1.0, 2.0)


def counter_in_an_array_by_out() -> Change:
    count = np.zeros(1)

    def f(x: Any) -> Any:
        np.add(count, 1.0, out=count)
        return float(count[0]) * x

    return Change(f, lambda: None, 1.0, 2.0)


def counter_nonlocal() -> Change:
    count = 0.0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1.0
        return count * x

    return Change(f, lambda: None, 1.0, 2.0)


def counter_global() -> Change:
    m = module("n = 0.0\ndef f(x):\n    global n\n    n += 1.0\n    return n * x")
    return Change(m.f, lambda: None, 1.0, 2.0)


def counter_attribute() -> Change:
    p = types.SimpleNamespace(n=0.0)

    def f(x: Any) -> Any:
        p.n += 1.0
        return p.n * x

    return Change(f, lambda: None, 1.0, 2.0)


def counter_in_a_default() -> Change:
    def f(x: Any, seen: Table = []) -> Any:  # noqa: B006
        seen.append(1.0)
        return sum(seen) * x

    return Change(f, lambda: None, 1.0, 2.0)


def counter_of_a_helper() -> Change:
    m = module("n = [0.0]\ndef h():\n    n[0] += 1.0\n    return n[0]\ndef f(x): return h() * x")
    return Change(m.f, lambda: None, 1.0, 2.0)


def other_module_or_local() -> Change:
    m = module("def f(x, flag=True):\n    local = x\n    return (other if flag else local).k * x")
    m.other = module("k = 3.0")
    return Change(m.f, lambda: setattr(m.other, "k", 4.0), 3.0, 4.0)


CHANGES = [
    case
    for case in list(globals().values())
    if isinstance(case, types.FunctionType) and case.__annotations__.get("return") == "Change"
]


def by_what_is_written(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(u: Any) -> None:
        u[0] = f(u[0])

    return lambda x: ckad.vjp(run, np.full(1, x), returns=0)[1](np.ones(1))[0][0]


#: The gradient of a function, and of what is made of it.
GRADIENTS: dict[str, Callable[..., Any]] = {
    "itself": ckad.grad,
    "called": lambda f: ckad.grad(lambda x: f(x)),
    "compiled": lambda f: ckad.grad(ckad.jit(f)),
    "written": by_what_is_written,
    "compiled after": lambda f: ckad.jit(ckad.grad(f)),
    "of a batch": lambda f: lambda x: ckad.jit(ckad.vmap(ckad.grad(f)))(np.full(2, x))[1],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("gradient", GRADIENTS.values(), ids=GRADIENTS)
def test_a_change_outside_is_noticed(case, gradient):
    f, change, before, after = case()
    g = gradient(f)
    assert g(2.0) == before
    change()
    assert g(2.0) == after


def test_a_counter_counts_every_call():
    count = [0]

    def f(x: Any) -> Any:
        count[0] += 1
        return x

    g = ckad.grad(f)
    for _ in range(4):
        g(1.0)
    assert count == [4]


def test_a_change_is_noticed_back_and_forth(recordings):
    m = module("k = 3.0\ndef f(x): return k * x")
    g = ckad.grad(m.f)
    for k in (3.0, 4.0, 3.0, 0.0, -0.0, np.inf):
        m.k = k
        for _ in range(2):
            np.testing.assert_array_equal(g(2.0), k)
            assert np.signbit(g(2.0)) == np.signbit(k)
    assert (
        len(recordings) == 7
    )  # one with k as an argument: of no use, as Python runs this function


def test_what_is_printed_is_printed_at_each_call(capsys):
    def f(x: Any) -> Any:
        print("recorded")
        return x

    g = ckad.grad(f)
    g(1.0), g(1.0)
    assert capsys.readouterr().out == "recorded\n" * 2


def test_random_numbers_are_drawn_at_each_call():
    rng = np.random.default_rng(0)
    drawn = ckad.grad(lambda x: rng.random() * x), ckad.grad(lambda x: np.random.rand() * x)
    for g in drawn:
        assert len({float(g(1.0)) for _ in range(3)}) == 3


def test_a_tracer_does_not_escape_into_a_list_of_the_caller():
    kept: list[Any] = ["before"]

    def f(x: Any) -> Any:
        kept.append(x)
        return x

    g = ckad.grad(f)
    for _ in range(2):
        assert g(1.0) == 1.0
        assert kept == ["before"]


def test_a_replaced_numpy_function_is_noticed(monkeypatch):
    g = ckad.grad(lambda x: np.sin(x) + abs(x) + scipy.special.erf(0.0 * x))
    assert g(0.5) == np.cos(0.5) + 1.0
    monkeypatch.setattr(np, "sin", lambda x: 2.0 * x)
    assert g(0.5) == 3.0
    monkeypatch.setattr(builtins, "abs", lambda x: 3.0 * x)
    assert g(0.5) == 5.0
    monkeypatch.setattr(scipy.special, "erf", lambda x: 4.0 + 0 * x)
    assert g(0.5) == 5.0


def test_a_reloaded_module_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "reloaded_by_test.py"
    path.write_text("k = 2.0\ndef h(x): return k * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    loaded = importlib.import_module("reloaded_by_test")
    g, own = ckad.grad(lambda x: loaded.h(x)), ckad.grad(loaded.h)
    assert g(1.0) == own(1.0) == 2.0
    path.write_text("k = 33.0\ndef h(x): return k * x + 0.0\n")
    importlib.reload(loaded)
    assert g(1.0) == 33.0
    assert own(1.0) == 33.0
    del sys.modules["reloaded_by_test"]


def test_errors_of_constants_are_handled_as_asked_for_now():
    g = ckad.grad(lambda x: np.where(np.log(np.float64(0.0)) < 0, x, 2.0 * x))
    with np.errstate(divide="ignore"):
        assert g(1.0) == g(1.0) == 1.0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        g(1.0)


@pytest.mark.parametrize(
    "function",
    [np.sin, functools.partial(np.power, 2.0), math.fabs, functools.partial(np.full, 3)],
)
def test_what_is_no_python_function_is_recorded_at_each_call(function, recordings):
    for _ in range(2):
        np.testing.assert_array_equal(ckad.jit(function)(1.0), function(1.0))
    assert len(recordings) == 2


def test_functions_of_one_code_have_their_own_recordings(recordings):
    def scaled(k: float) -> Callable[..., Any]:
        return lambda x: k * x

    functions = [ckad.grad(scaled(k)) for k in (1.0, 2.0, 3.0)]
    for _ in range(2):
        assert [g(5.0) for g in functions] == [1.0, 2.0, 3.0]
    assert len(recordings) == 3


def test_a_failing_function_fails_again():
    def f(x: Any, n: int) -> Any:
        if n > 1:
            raise ValueError("too many")
        return n * x

    g = ckad.grad(f)
    for _ in range(2):
        assert g(1.0, 1) == 1.0
        with pytest.raises(ValueError, match="too many"):
            g(1.0, 2)
        with pytest.raises(ckad.errors.DifferentiationError):
            ckad.grad(f, argnums=1)(1.0, 1)


# --- what is not judged ------------------------------------------------------------------------

UNKNOWN = {
    "a global is written": "global k; k = x",
    "a global is deleted": "global k; del k",
    "an import": "import math",
    "a name imported": "from math import sin",
    "a context": "with x: pass",
    "an exception handled": "try: x()\n    except ValueError: pass",
    "an attribute written": "x.a = 1",
    "an attribute deleted": "del x.a",
    "an attribute of unknown kind": "return x.tofile('file')",
    "an attribute of every object": "return x.__class__",
    "a class": "class A: pass",
    "a set": "return {1.0, x}",
    "a set in a loop": "return {k for k in x}",
    "a text formatted": "return '%d' % x",
    "a text in a tuple": "return ('%d', 'b')",
    "one and the same": "return x is y",
    "another generator": "yield from x",
    "nested code": "return [lambda: x.tofile('file') for _ in y]",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_code_that_may_do_anything_else_is_not_judged(name):
    f = module(f"def f(x, y):\n    {UNKNOWN[name]}").f
    assert reads(f.__code__) is None


def test_a_coroutine_is_not_judged():
    assert reads(module("async def f(x, y): return await x").f.__code__) is None


def test_what_code_reads():
    def f(x: Any) -> Any:
        y = np.sin(x).sum() + RATE
        return [lambda: WEIGHTS.shape[0] + recorded for _ in range(3)] and y

    recorded = 1.0
    assert set(reads(f.__code__) or ()) == {
        ("global", "np", ("sin",)),
        ("global", "RATE", ()),
        ("global", "range", ()),
        ("global", "WEIGHTS", ("shape",)),
        ("cell", "recorded", ()),
    }


# --- what has changed in the arguments ---------------------------------------------------------


def test_kinds_of_static_arguments_are_told_apart():
    def f(x: Any, n: Any) -> Any:
        if isinstance(n, bool):
            return 1.0 * x
        if isinstance(n, int):
            return 2.0 * x + n * x
        return 3.0 * x if n is None else 4.0 * x * n

    g = ckad.grad(f)
    for _ in range(2):
        assert [g(1.0, n) for n in (True, False, 1, 0, None, 1.0, 0.0)] == [1, 1, 3, 2, 3, 4, 0]


def test_structures_of_arguments_are_told_apart():
    def f(x: Any, p: Any) -> Any:
        if isinstance(p, dict):
            return list(p.values())[0] * x + 10 * x  # noqa: RUF015
        return len(p) * p[0] * x

    cases = [(1.0, 2.0), [1.0, 2.0], (1.0,), {"a": 3.0, "b": 4.0}, {"b": 4.0, "a": 3.0}]
    g = ckad.grad(f)
    for _ in range(2):
        assert [g(1.0, p) for p in cases] == [2.0, 2.0, 1.0, 13.0, 14.0]
        assert g(1.0, p=cases[0]) == 2.0


def test_keys_of_dicts_are_told_apart(recordings):
    g = ckad.grad(lambda p: sum(x / (k + 1) for k, x in p.items()))
    for _ in range(2):
        assert g({1: 1.0}) == {1: 0.5}
        (key, value), *_ = g({True: 1.0}).items()
        assert (key, value, type(key)) == (True, 0.5, bool)
    assert len(recordings) == 2


def test_the_order_of_a_dict_is_kept():
    g = ckad.grad(lambda p: p["a"] * p["b"])
    assert list(g({"a": 1.0, "b": 2.0})) == ["a", "b"]
    assert list(g({"b": 2.0, "a": 1.0})) == ["b", "a"]


def test_shapes_and_dtypes_are_told_apart(recordings):
    g = ckad.value_and_grad(lambda x: np.sum(x * x))
    cases = [np.ones(3), np.ones(4), np.ones((2, 2)), np.ones(3, np.float32), np.ones((2, 2)).T]
    cases += [1.0, np.float64(1.0), np.float32(1.0), np.array(1.0)]
    for _ in range(2):
        for x in cases:
            value, gradient = g(x)
            assert value == np.size(x)
            assert isinstance(gradient, np.ndarray) == isinstance(x, np.ndarray)
            assert gradient.dtype == np.asarray(x).dtype
            np.testing.assert_array_equal(gradient, 2 * np.asarray(x))
    assert len(recordings) == len(cases)


def test_keyword_arguments_are_told_apart(recordings):
    g = ckad.grad(lambda x, k=1.0, **more: k * x * (1.0 + len(more)))
    for _ in range(2):
        assert [g(2.0), g(2.0, k=2.0), g(2.0, k=2), g(2.0, k=3.0, n=1)] == [1.0, 2.0, 2.0, 6.0]
        assert np.signbit([g(2.0, k=-0.0), g(2.0, k=0.0)]).tolist() == [True, False]
        assert np.isnan(g(2.0, k=float("nan")))
        assert g(2.0, k=np.array(3.0)) == 3.0
    assert len(recordings) == 8 + 1  # an array among them is never looked at


def test_a_function_as_an_argument_is_recorded_at_each_call():
    k = [3.0]
    g = ckad.grad(lambda x, f: f(x))
    assert g(2.0, lambda x: k[0] * x) == 3.0
    h = lambda x: k[0] * x  # noqa: E731
    assert g(2.0, h) == 3.0
    k[0] = 4.0
    assert g(2.0, h) == 4.0


def test_arguments_that_share_memory_are_told_apart(recordings):
    def f(x: Any, y: Any) -> Any:
        x[0] = 2.0 * x[0]
        return np.sum(x * y)

    g, a = ckad.grad(f), np.ones(4)
    for _ in range(2):
        np.testing.assert_array_equal(g(a, a.copy()), [2.0, 1.0, 1.0, 1.0])
        np.testing.assert_array_equal(g(a[:2], a[2:]), [2.0, 1.0])
        with pytest.raises(ckad.errors.AliasError):
            g(a, a)
        with pytest.raises(ckad.errors.AliasError):
            g(a[1:], a[:-1])


def test_wrong_arguments_are_refused_after_right_ones():
    g = ckad.grad(lambda x: np.sum(x * x))
    g(np.ones(3))
    with pytest.raises(ckad.errors.TraceError, match="masked"):
        g(np.ma.masked_array(np.ones(3), [False, True, False]))
    with pytest.raises(ckad.errors.DifferentiationError, match="real scalar"):
        g(np.ones(3, complex))


def test_argnums_given_as_a_list_may_change_afterwards():
    argnums = [0]
    g = ckad.grad(lambda x, y: x * y, argnums=argnums)
    assert g(2.0, 3.0) == (3.0,)
    argnums.append(1)
    assert g(2.0, 3.0) == (3.0,)


def test_one_recording_serves_other_settings(recordings):
    f = lambda x, y: x * y**2  # noqa: E731
    for _ in range(2):
        assert ckad.grad(f)(2.0, 3.0) == 9.0
        assert ckad.grad(f, argnums=(0,))(2.0, 3.0) == (9.0,)
        assert ckad.grad(f, argnums=(1, 0))(2.0, 3.0) == (12.0, 9.0)
        assert ckad.grad(f, argnums=-1)(2.0, 3.0) == 12.0
        assert ckad.value_and_grad(f, memory="1 MiB")(2.0, 3.0) == (18.0, 9.0)
    assert len(recordings) == 1


def test_arguments_are_not_kept(recordings):
    g, x = ckad.grad(lambda p: np.sum(p["a"] ** 2)), np.ones(3)
    g({"a": x})
    left = weakref.ref(x)
    del x
    assert left() is None
    assert len(reuse._kept) == 1


def test_large_tapes_are_recorded_at_each_call(recordings):
    g = ckad.grad(lambda x: np.sum(np.arange(2_100_000.0) * x))
    assert g(1.0) == g(1.0) == np.sum(np.arange(2_100_000.0))
    assert len(recordings) == 2
    assert not reuse._kept


def test_few_recordings_are_kept(recordings):
    for k in range(3 * reuse.KEPT):
        ckad.grad(lambda x, k=k: k * x)(1.0)
    assert len(reuse._kept) == reuse.KEPT


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_jacobian_is_recorded_once(recordings, mode):
    scale = np.array([1.0, 2.0, 3.0])

    def scaled(a: Any, x: Any, n: int) -> Any:
        return a * scale * x**n

    compute = ckad.jacobian(scaled, 1, mode)
    for x in (np.ones(3), np.arange(3.0)):
        np.testing.assert_allclose(compute(2.0, x, n=2), np.diag(4.0 * scale * x))
    assert len(recordings) == 1


def test_a_hessian_is_recorded_once(recordings):
    def of(a: Any, x: Any, n: int) -> Any:
        return np.sum(a * x**n)

    compute = ckad.hessian(of, (0, 1))
    for x in (np.ones(3), np.arange(3.0)):
        a = x + 2.0
        (_, mixed), (transposed, own) = compute(a, x, n=2)
        np.testing.assert_allclose(own, np.diag(2.0 * a))
        np.testing.assert_allclose(mixed, np.diag(2.0 * x))
        np.testing.assert_allclose(transposed, np.diag(2.0 * x))
    assert len(recordings) == 1


class Drop:
    def __init__(self, radius):
        self.radius = radius


drops: list[Drop] = []


def _volume_of_drops(r):
    global drops
    drops = []
    for k in range(3):
        drops.append(Drop(r * (k + 1.0)))
    return sum(drop.radius**3 for drop in drops)


def test_objects_bound_to_a_name_from_outside_leave_it_as_it_was(recordings):
    for r in (1.0, 2.0):
        assert ckad.grad(_volume_of_drops)(r) == 108.0 * r**2
        assert not drops
    assert len(recordings) == 1


def _by_name_of_its_arguments(x, steps=3):
    def step(t, y):
        return -0.5 * y * t

    if list(inspect.signature(step).parameters) != ["t", "y"]:
        raise ValueError("step(t, y) is expected")
    taken = inspect.getfullargspec(step).args
    for k in range(steps):
        x = x + 0.1 * step(t=0.1 * k, y=x)
    return x * len(taken)


def test_signatures_of_functions_are_read_once(recordings):
    for x in (1.0, 2.0):
        assert ckad.grad(_by_name_of_its_arguments)(x) == _by_name_of_its_arguments(1.0)
    assert len(recordings) == 1


def of_two(x, y=3.0):
    return x * y


def test_a_function_whose_signature_was_read_is_changed(recordings, monkeypatch):
    def f(x):
        default = inspect.signature(of_two).parameters["y"].default
        return x * default

    assert ckad.grad(f)(1.0) == 3.0
    monkeypatch.setattr(of_two, "__defaults__", (5.0,))
    assert ckad.grad(f)(1.0) == 5.0
    monkeypatch.setattr(of_two, "__wrapped__", lambda x, y=7.0: x, raising=False)
    assert ckad.grad(f)(1.0) == 7.0


def walk(x: Any, p: Any) -> Any:
    for _ in range(20):
        x = x + 0.01 * p * np.sin(x)
    return x * x


def calls_made(fun: Any) -> int:
    """Of functions of Python and of C, when it is called."""
    made: list[str] = []
    sys.setprofile(lambda frame, event, arg: made.append(event))
    try:
        fun()
    finally:
        sys.setprofile(None)
    return made.count("call") + made.count("c_call")


@pytest.mark.parametrize("engine", ["native", "vm"])
def test_a_call_of_a_small_gradient_makes_few_calls(engine):
    """On the way to machine code and back: they are what it costs."""
    gradient = ckad.value_and_grad(walk, (0, 1), engine=engine)
    first = gradient(0.3, 0.7)
    assert gradient(0.3, 0.7) == first
    assert calls_made(lambda: gradient(0.3, 0.7)) <= 150  # it is looked up
    for _ in range(15):
        gradient(0.3, 0.7)
    assert calls_made(lambda: gradient(0.3, 0.7)) <= 50


def test_arguments_in_lists_and_dicts_take_few_calls_more():
    gradient = ckad.grad(lambda p: np.sum((p["w"] @ p["b"][0] + p["b"][1]) ** 2), engine="vm")
    given = {"w": np.eye(3), "b": [np.ones(3), np.ones(3)]}
    for _ in range(2):
        np.testing.assert_array_equal(gradient(given)["b"][1], 4 * np.ones(3))
    assert calls_made(lambda: gradient(given)) <= 200


@pytest.mark.parametrize("engine", ["native", "vm"])
def test_memory_that_is_kept_from_call_to_call_begins_anew(engine):
    told = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    gradient = ckad.value_and_grad(walk, (0, 1), engine=engine, progress=tell)
    first, n = gradient(0.3, 0.7), len(told)
    other, again = gradient(-1.0, 2.0), gradient(0.3, 0.7)
    assert first == again != other
    assert told[:n] == told[n : 2 * n] == told[2 * n :]
    assert told[-1] == (40, 40)
