"""Native and vm agree, and the native engine gives the same bits under every budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ckad
from ckad.errors import BudgetError


def assert_agreement(program: Callable[..., Any], *args: np.ndarray) -> None:
    """Value and gradient by all arguments: NumPy's value, the vm's gradient, under any budget."""
    every = tuple(range(len(args)))
    value, gradients = ckad.value_and_grad(program, every, engine="native")(*args)
    expected, references = ckad.value_and_grad(program, every, engine="vm")(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(value, program(*(x.copy() for x in args)), rtol=1e-12)
    for gradient, reference in zip(gradients, references, strict=True):
        np.testing.assert_allclose(gradient, reference, rtol=1e-11, atol=1e-13)
    for budget in budgets(program, args):
        again = ckad.value_and_grad(program, every, engine="native", memory=budget)(*args)
        assert value == again[0]
        assert all(np.array_equal(a, b) for a, b in zip(gradients, again[1], strict=True))


def budgets(program: Callable[..., Any], args: tuple[np.ndarray, ...]) -> Iterator[int]:
    every = tuple(range(len(args)))
    most = ckad.plan(program, *args, argnums=every, engine="native").peak_bytes
    for budget in (most, 3 * most // 4, most // 2):
        try:
            ckad.plan(program, *args, argnums=every, engine="native", memory=budget)
        except BudgetError:
            continue
        yield budget
