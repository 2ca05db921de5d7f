"""Loops that are alike: one function for all, with the numbers of each."""

import gc

import numpy as np
import pytest

import ckad
from ckad import cache
from ckad.engines.native.ir import alike
from ckad.engines.native.running.compiler import COMPILER


def settle(x, rate):
    for _ in range(30):
        y = x
        while np.abs(y[0]) > 0.5:
            y = 0.5 * y - 0.1 * np.sin(y)
        x = x + rate * (y - 0.2 * x)
    return x


def summed(u, rate):
    x = settle(u, rate)
    y = settle(x[::-1] + 0.1, rate)
    return np.sum(settle(0.3 * y, 0.7 * rate) * np.cos(x))


def long_rows(u, rate):
    v = u.copy()
    for _ in range(20):
        v[1:-1] += rate * (v[2:] - 2 * v[1:-1] + v[:-2])
    w = v[::-1].copy()
    for _ in range(20):
        w[1:-1] += rate * (w[2:] - 2 * w[1:-1] + w[:-2])
    return np.sum(v * w)


def indexed(u, rate):
    total = 0.0
    for _ in range(2):
        for k in range(20):
            total = total + u[k % 7] * rate
            u = u * np.cos(0.1 * total)
        for k in range(20):
            total = total + u[k % 7] * rate
            u = u * np.cos(0.1 * total)
    return total


RESTARTS = {"schedule": "revolve", "memory": 200_000}
CASES = [(summed, 5, RESTARTS), (long_rows, 300, RESTARTS), (indexed, 8, {})]


def results(fun, n, options):
    u = np.linspace(0.2, 1.7, n)
    value, slopes = ckad.value_and_grad(fun, (0, 1), engine="native", **options)(u, 0.3)
    return [np.asarray(x).tobytes() for x in (value, *slopes)]


def forget():
    ckad.clear_caches()
    gc.collect()
    COMPILER.libraries.clear()
    cache._directory.cache_clear()


@pytest.mark.parametrize(
    ("fun", "n", "options"), CASES, ids=lambda x: getattr(x, "__name__", str(x))
)
def test_the_same_to_the_bit(monkeypatch, tmp_path, fun, n, options):
    # kernels of schedules are compiled before, into the folder that all tests share
    ckad.value_and_grad(fun, (0, 1), engine="native", **options).plan(np.linspace(0.2, 1.7, n), 0.3)
    monkeypatch.setenv("CKAD_CACHE_DIR", str(tmp_path / "apart"))
    forget()
    apart = results(fun, n, options)
    monkeypatch.setenv("CKAD_CACHE_DIR", str(tmp_path / "shared"))
    forget()
    monkeypatch.setattr(alike, "PROGRAM", 0)
    monkeypatch.setattr(alike, "FUNCTION", 5)
    groups = []
    as_one = alike._as_one
    monkeypatch.setattr(alike, "_as_one", lambda *args: groups.append(args) or as_one(*args))
    assert results(fun, n, options) == apart
    assert groups
    forget()
