"""Numbers from outside that are others at each call: what is recorded for one does for all."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import ckad
from ckad.trace import numbers_outside
from ckad.trace.source.outside import watch

pytestmark = pytest.mark.usefixtures("engine")

X = np.array([0.5, -0.25, 1.5])
SCALE = 1.0
DATA = np.ones(3)


def steps(x, scale, data):
    for _ in range(7):
        x = x + 0.1 * scale * np.sin(x) * data
    return np.sum(x * data)


def right(scale, data, x=X):
    return ckad.value_and_grad(steps)(x, scale, data)


def check(got, scale, data, x=X):
    want = right(scale, data, x)
    assert got[0] == pytest.approx(want[0], rel=1e-15)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-14)


def of_module(x):
    return steps(x, SCALE, DATA)


def test_of_a_module(monkeypatch, recordings):
    g = ckad.value_and_grad(of_module)
    right(1.0, DATA)
    counts = []
    for k in range(8):
        scale, data = 1.0 + k, np.arange(3.0) + k
        monkeypatch.setitem(globals(), "SCALE", scale)
        monkeypatch.setitem(globals(), "DATA", data)
        before = len(recordings)
        check(g(X), scale, data)
        counts.append(len(recordings) - before)
    assert counts == [1, 1, 1, 1, 0, 0, 0, 0]


def test_of_closures_and_objects(recordings):
    model = SimpleNamespace(scale=1.0)

    class Model:
        def __init__(self):
            self.data = np.ones(3)

        def loss(self, x):
            return steps(x, scale * model.scale, self.data)

    scale, owner = 1.0, Model()
    g = ckad.value_and_grad(owner.loss)
    for k in range(8):
        scale = 0.5 + k
        owner.data = owner.data + 0.125
        check(g(X), scale, owner.data)
    right(1.0, DATA)
    before = len(recordings)
    for k in range(3):
        scale = 2.5 + k
        owner.data[:] = k  # in place
        check(g(X), scale, owner.data)
    model.scale = 2.0
    check(g(X), 2.0 * scale, owner.data)
    assert len(recordings) == before + 1


def test_what_a_number_decides_is_decided_anew():
    threshold = 0.0

    def f(x):
        return np.sum(x) if threshold > 1.0 else np.sum(x * threshold)

    g = ckad.grad(f)
    for threshold in (0.0, 0.25, 0.5, 0.75, 2.0, 0.125):
        want = np.ones(3) if threshold > 1.0 else np.full(3, threshold)
        np.testing.assert_array_equal(g(X), want)


def test_it_becomes_another_thing():
    data = 1.0

    def f(x):
        return np.sum(x * data)

    g = ckad.grad(f)
    for data in (1.0, 2.0, 3.0, 4.0, 5, np.float32(6.0), np.arange(3.0), np.ones((2, 3)), 7.0):
        want = np.sum(data, 0) if np.ndim(data) == 2 else np.broadcast_to(data, 3)
        np.testing.assert_array_equal(g(X), want)


def test_the_argument_itself(recordings):
    data = np.ones(3)

    def f(x):
        return np.sum(x * x * data)

    g = ckad.grad(f)
    for k in range(5):
        data = np.arange(3.0) + k
        np.testing.assert_array_equal(g(X), 2.0 * X * data)
        np.testing.assert_array_equal(g(data), 2.0 * data * data)


def test_an_argument_that_is_written():
    data = np.ones(3)

    def f(x):
        x[0] = 2.0 * x[1]
        return np.sum(x * data)

    g = ckad.grad(f)
    for k in range(5):
        data = np.arange(3.0) + k
        np.testing.assert_array_equal(g(X), [0.0, 2.0 * data[0] + data[1], data[2]])
        with pytest.raises(ckad.errors.AliasError):
            g(data)


def test_what_is_written_from_outside_is_refused_as_before():
    data = np.ones(3)

    def f(x):
        data[0] = x[0]
        return np.sum(x * data)

    g = ckad.grad(f)
    for k in range(5):
        data = np.arange(3.0) + k
        with pytest.raises(ckad.errors.UnrecordableError, match="writes into an array"):
            g(X)


def test_arguments_counted_from_the_last_and_results_beside():
    data = np.ones(3)

    def f(a, x, *, power):
        return np.sum(a * x**power * data), {"data": data, "x": x}

    g = ckad.value_and_grad(f, argnums=-1, has_aux=True)
    for k in range(6):
        data = np.arange(3.0) + k
        (value, aux), gradient = g(2.0, X, power=2)
        assert value == np.sum(2.0 * X**2 * data)
        np.testing.assert_array_equal(aux["data"], data)
        np.testing.assert_array_equal(aux["x"], X)
        np.testing.assert_allclose(gradient, 4.0 * X * data, rtol=1e-15)


def test_functions_that_python_runs_and_transforms_within():
    data = np.ones(3)

    def key(item):
        return item * data[0]

    def inner(x):
        return np.sum(x**3 * data)

    def f(x):
        first = sorted([3.0, 1.0, 2.0], key=key)[0]
        return first * np.sum(ckad.grad(inner)(x))

    g = ckad.grad(f)
    for k in range(5):
        data = np.arange(3.0) + 1.0 + k
        np.testing.assert_allclose(g(X), 6.0 * X * data, rtol=1e-14)
        np.testing.assert_allclose(ckad.hessian(inner)(X), np.diag(6.0 * X * data), rtol=1e-14)
        np.testing.assert_allclose(ckad.jit(inner)(X), inner(X), rtol=1e-14)


def test_names_that_the_program_binds():
    total = 0.0

    def f(x):
        nonlocal total
        total = total + 1.0
        return np.sum(x) * total

    g = ckad.grad(f)
    for k in range(6):
        total = k * 0.5
        np.testing.assert_array_equal(g(X), np.full(3, k * 0.5 + 1.0))
        assert total == k * 0.5 + 1.0


def test_threads():
    local = threading.local()

    def made(data):
        def f(x):
            return steps(x, 1.0, data)

        return f

    def run(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(5):
                data = rng.uniform(size=3)
                check(ckad.value_and_grad(made(data))(X), 1.0, data)
        except BaseException as error:
            errors.append(error)

    errors: list[BaseException] = []
    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert not vars(local)


def test_large_arrays_are_recorded_once(recordings, monkeypatch):
    monkeypatch.setattr(watch, "LARGEST", 100)
    monkeypatch.setattr(numbers_outside, "LARGEST", 100)
    data, more = np.arange(12.0), np.ones(40)

    def f(x):
        return np.sum(x * data[:3]) + x[0] * np.sum(more)

    g = ckad.grad(f)
    for k in range(5):
        before = len(recordings)
        np.testing.assert_array_equal(g(X), data[:3] + [40.0 * (1.0 + k), 0.0, 0.0])
        assert len(recordings) - before == (k < 2)
        data[1] += 1.0
        more = more + 1.0


@pytest.mark.parametrize("dtype", [np.float16, ">f8", np.longdouble, object])
def test_arrays_of_other_dtypes_stay_as_they_are(dtype):
    data = np.ones(3).astype(dtype)

    def f(x):
        return np.sum(x * data.astype(float))

    g = ckad.grad(f)
    for k in range(5):
        data = (np.arange(3.0) + k).astype(dtype)
        np.testing.assert_array_equal(g(X), data.astype(float))


def of_attributes(x, model):
    scale = model.scale
    for _ in range(3):
        model.scale = model.scale * 1.5
    return np.sum(x) * scale * model.scale


def of_attributes_in_a_row(x, model):
    before = model.scale
    model.scale = before + 1.0
    return np.sum(x) * before * model.scale


def of_names_under_a_condition(x, _):
    global SCALE
    if x[0] > 0.0:
        SCALE = 2.0 * SCALE
    return np.sum(x) * SCALE


@pytest.mark.parametrize("fun", [of_attributes, of_attributes_in_a_row, of_names_under_a_condition])
def test_what_the_program_binds_itself(fun, monkeypatch):
    class Model:
        scale = 1.0

    model = Model()
    g = ckad.jit(lambda x: fun(x, model))
    for k in range(6):
        scale = 0.5 + k
        monkeypatch.setitem(globals(), "SCALE", scale)
        model.scale = scale
        found = g(X)
        assert (model.scale, SCALE) == (scale, scale)
        assert found == pytest.approx(fun(X, model), rel=1e-15)


def test_what_the_program_binds_by_a_method_of_its_own():
    class Model:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)

    def f(x):
        before = model.scale
        model.scale = 2.0 * before
        found = np.sum(x) * model.scale
        model.scale = before
        return found

    model, g = Model(), ckad.jit(f)
    for k in range(6):
        model.scale = 0.5 + k
        assert g(X) == pytest.approx(f(X), rel=1e-15)
        assert model.scale == 0.5 + k
