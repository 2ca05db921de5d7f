"""Views made before a nest of loops and branches, and written in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad

VIEWS: dict[str, Callable[[Any], Any]] = {
    "tail": lambda v: v[1:],
    "head": lambda v: v[:3],
    "reversed": lambda v: v[::-1],
    "view of a view": lambda v: v[::-1][1:],
    "every other": lambda v: v[::2],
    "reshaped": lambda v: v.reshape(2, 2)[1],
    "column": lambda v: v.reshape(2, 2)[:, 0],
}


def _scale(a: Any) -> None:
    a -= 0.1 * a * a


def _element(a: Any) -> None:
    a[0] -= 0.1 * a[1]


def _whole(a: Any) -> None:
    a[:] = np.sin(a) * np.cos(np.arange(len(a)))


def _out(a: Any) -> None:
    np.sin(a, out=a)


@pytest.mark.parametrize("write", [_scale, _element, _whole, _out])
@pytest.mark.parametrize("view", VIEWS)
def test_written_in_two_loops(view, write, engine):
    def program(v):
        v = v.copy()
        a = VIEWS[view](v)
        for _ in range(5):
            for _ in range(6):
                write(a)
        return np.sum(v * np.arange(1, 5.0))

    _check(program, engine)


@pytest.mark.parametrize("view", VIEWS)
def test_written_in_a_branch_of_a_loop(view, engine):
    def program(v):
        v = v.copy()
        a = VIEWS[view](v)
        for i in range(5):
            if v[0] > 0.05 * i:
                a -= 0.1 * a * a
        return np.sum(v * np.arange(1, 5.0))

    _check(program, engine)


def test_written_in_a_while_of_a_loop(engine):
    def program(v):
        v = v.copy()
        b = v[::-1][1:]
        for _ in range(5):
            s = v[0]
            while s < 2:
                s = s + 0.5
                if s > 1:
                    b *= 0.5
        return np.sum(v * np.arange(1, 5.0))

    _check(program, engine)


def test_row_of_a_step(engine):
    def program(v):
        a = v.reshape(1, 4) * np.ones((5, 1))
        for i in range(5):
            r = a[i, ::-1]
            for _ in range(5):
                for _ in range(5):
                    r *= 0.9
                if r[0] > 0:
                    r[1:] -= 0.1 * r[:-1]
        return np.sum(a * np.arange(1, 5.0))

    _check(program, engine)


def test_changed_after_the_loop_that_binds_it(engine):
    """``a *= 2`` reads the name, though it is a target."""

    def program(v):
        x = v.copy()
        for _ in range(5):
            a = x[1:]
            v = v * 0.5
        a *= 2.0
        return np.sum(x * v)

    _check(program, engine)


def test_names_of_a_branch_that_may_be_one_array():
    """What the second step writes into may be what ``b`` shows."""

    def program(v):
        b = v
        for i in range(2):
            if v[i] > 5:
                b = np.roll(b, -3)
            else:
                v[2] *= 0.5
        return np.sum(v**2) + b @ np.arange(4.0)

    with pytest.raises(ckad.errors.AliasError):
        ckad.jit(program)(np.arange(4.0))


def _check(program: Callable[[Any], Any], engine: str) -> None:
    v = np.array([0.3, 0.2, 0.5, 0.4])
    np.testing.assert_allclose(ckad.jit(program)(v), program(v), rtol=1e-13)
    ckad.testing.check_grads(program, (v,))
