"""Short programs of one habit each: value, both modes, budgets; loops recorded or written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.trace.source.control import repetition

from ..programs.oracles import Plain
from ..programs.program import Program
from ..programs.test_programs import (
    Differentiated,
    check_arguments,
    check_derivatives,
    check_value,
    least_memory,
)


def check(function: Callable[..., Any], *arguments: Any, difference: float = 1e-6) -> None:
    """By the vm, against NumPy and differences; short loops are recorded, then written out."""
    program = Program(function, lambda rng: arguments, difference=difference)
    for short in (0, repetition.SHORT):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(repetition, "SHORT", short)
            ckad.clear_caches()
            run = Differentiated(program, "vm", Plain(program))
            check_value(run)
            check_derivatives(run)
            check_arguments(run)
            if short == 0:
                _check_budgets(run)
    ckad.clear_caches()


def _check_budgets(run: Differentiated) -> None:
    least = least_memory(run)
    for x, y in zip(run.gradient_within(least), run.gradient, strict=True):
        np.testing.assert_array_equal(x, y)


def check_further(function: Callable[..., Any], *arguments: Any) -> None:
    """The native engine's gradient is the vm's, and the gradient of a gradient the Hessian."""
    places = tuple(range(len(arguments)))
    native, vm = (ckad.grad(function, places, engine=e)(*arguments) for e in ("native", "vm"))
    for got, want in zip(native, vm, strict=True):
        assert got == pytest.approx(want, rel=1e-12)
    first, *others = arguments
    twice = ckad.grad(lambda a: ckad.grad(function)(a, *others))(first)
    assert twice == pytest.approx(ckad.hessian(function)(*arguments), rel=1e-12, abs=1e-12)


def check_number(f: Callable[[float], Any], at: float, *, rel: float = 1e-14, abs: float = 0.0,
                 memory: str | None = None) -> float:  # fmt: skip
    """Value and slope of a function of a number by the vm, and the same bits within ``memory``."""
    expected = f(at)
    value, slope = ckad.value_and_grad(f, engine="vm")(at)
    assert value == pytest.approx(expected, rel=rel)
    difference = (f(at + 1e-6) - f(at - 1e-6)) / 2e-6
    assert slope == pytest.approx(difference, rel=1e-6, abs=abs)
    if memory is not None:
        assert ckad.value_and_grad(f, engine="vm", memory=memory)(at) == (value, slope)
    return float(slope)


def failing_checks(x):
    """Checks that fail and are caught. (Here, since pytest rewrites those of a module of tests.)"""
    total = 0.0
    for k in range(12):
        try:
            assert np.ndim(x) == 1, "a vector"
            total += 100.0
        except AssertionError as error:
            total += x * k * len(error.args)
    return total
