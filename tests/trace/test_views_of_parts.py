"""What NumPy gives of an array as it is, without a copy, shows what is written later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad

SAME: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "asanyarray": np.asanyarray,
    "ascontiguousarray": np.ascontiguousarray,
    "array without copy": lambda a: np.array(a, copy=None),
    "asarray of its dtype": lambda a: np.asarray(a, dtype=a.dtype),
    "astype without copy": lambda a: a.astype(a.dtype, copy=False),
}
ALSO_SAME: dict[str, Callable[[Any], Any]] = {
    "real": np.real,
    "reversed": lambda a: np.asarray(a[::-1]),
    "reversed in order": lambda a: np.ascontiguousarray(a[::-1]),  # of one element it is the same
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "array": np.array,
    "copy": np.copy,
    "array of numbers": lambda a: np.array(a, dtype=float),
    "asarray as complex": lambda a: np.asarray(a, dtype=complex).real,
    "asarray with copy": lambda a: np.asarray(a, copy=True),
}


def halved(x: Any, look: Callable[[Any], Any]) -> Any:
    a, s = x.copy(), 0.0
    for k in range(1, 6):
        part = look(a[:k])
        part *= 0.5
        s += k * np.sum(part)
        a[0] += 1.0
        s += part[0]
    return s + np.sum(a * np.arange(5.0))


def check(fun: Callable[[Any], Any], x: np.ndarray) -> None:
    value, gradient = ckad.value_and_grad(fun, engine="vm")(x)
    assert value == pytest.approx(fun(x.copy()), rel=1e-14)
    moved = [fun(x + 1e-6 * e) - fun(x - 1e-6 * e) for e in np.eye(len(x))]
    np.testing.assert_allclose(gradient, np.array(moved) / 2e-6, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [*SAME, *ALSO_SAME, *COPIES])
@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_parts(name: str) -> None:
    look = {**SAME, **ALSO_SAME, **COPIES}[name]
    check(lambda x: halved(x, look), np.linspace(0.3, 1.1, 5))


@pytest.mark.parametrize("name", SAME)
def test_complex_parts(name: str) -> None:
    def fun(x: Any) -> Any:
        z = x + 0.5j
        for k in range(1, 6):
            part = SAME[name](z[:k])
            part *= 0.5j
        return np.sum(z.real * np.arange(5.0) + z.imag * x)

    check(fun, np.linspace(0.3, 1.1, 5))


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_parts_of_matrices_in_order(rows: bool) -> None:
    def fun(x: Any) -> Any:
        a = np.outer(x, x)
        for k in range(1, 6):
            part = np.ascontiguousarray(a[:k] if rows else a[:, :k])
            part *= 0.5
        return np.sum(a * np.arange(25.0).reshape(5, 5))

    check(fun, np.linspace(0.3, 1.1, 5))


@pytest.mark.parametrize("function", [np.asarray, np.asanyarray, np.ascontiguousarray, np.array])
def test_complex_arrays_of_real_ones_are_their_own(function: Callable[..., Any]) -> None:
    def fun(x: Any) -> Any:
        x = 1.0 * x
        z = function(x, dtype=complex)
        z *= 0.5j
        return np.sum(z.imag * np.arange(5.0)) + np.sum(x**2)

    check(fun, np.linspace(0.3, 1.1, 5))


def test_known_truth_values_of_a_part_as_numbers() -> None:
    def fun(x: Any) -> Any:
        n = np.zeros(5, dtype=int)
        for k in range(5):
            n[:k] += np.array(x[:k] > 0.55, dtype=int)
        return np.sum(n * x)

    check(fun, np.linspace(0.3, 1.1, 5))


def by_arrays_of_no_axes(x: Any) -> Any:
    a, s = np.outer(x, x), 0.0
    for k in range(6):
        row = a[np.array(k % 5)]
        row *= 2.0
        column = a[1:, np.array(k % 5)]
        column -= x[0]
        part = a[: k % 4 + 1][np.array(0)]
        part += 1.0
        same = a[np.argmax(a[0]), 1:]
        same *= 0.9
        s += np.sum(row) + np.sum(column) + np.sum(part)
        a[np.array(2)] += 0.1
    return s + np.sum(a * np.arange(25.0).reshape(5, 5))


def of_short_integers(x: Any) -> Any:
    a = np.outer(x * 20.37, x).astype(np.int32)
    for k in range(6):
        turned = np.ascontiguousarray(a.T)
        turned += k
        same = np.ascontiguousarray(a)
        same += 1
        other = np.asarray(a.T, order="C")
        other *= 3
    return np.sum(a * x)


def of_named_fields(x: Any) -> Any:
    z = np.zeros(6, [("a", float), ("b", float, (2,))])
    z["a"][:5] = x
    for _ in range(6):
        some = np.ascontiguousarray(z[::2])
        some["a"] *= 3.0
        some["b"] += 1.0
        same = np.ascontiguousarray(z)
        same["a"] *= 0.9
        same["b"] += 0.1
        turned = np.asarray(z[::-1], order="C")
        turned["a"] += 7.0
    return np.sum(z["a"] * np.arange(6.0)) + np.sum(z["b"]) * x[1]


@pytest.mark.parametrize("fun", [by_arrays_of_no_axes, of_short_integers, of_named_fields])
def test_copies_of_some(fun: Callable[[Any], Any]) -> None:
    check(fun, np.linspace(0.3, 1.1, 5))
