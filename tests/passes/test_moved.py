"""Parts of what is moved are taken first; moves of moves are one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

import ckad
from ckad.tape.ops import Op

from .recorded import recorded

X = np.random.default_rng(3).normal(size=(4, 10, 12))
PLACES = np.array([[0, 3], [9, 9], [2, 5]])


def windows(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, (3, 2), axis=(1, 2))


PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda x: x.transpose(2, 0, 1)[1::3, :, 2:-1],
    "backwards": lambda x: x.transpose(2, 0, 1)[::-2, ::-1, 3],
    "picked": lambda x: x[:, PLACES][1:3, ::2, :, 1::4],
    "of what was picked": lambda x: x[:, PLACES, :][:, 1],
    "strided windows": lambda x: windows(x)[:, ::2, ::3].transpose(0, 3, 4, 1, 2),
    "windows within": lambda x: windows(x)[:, ::-1, 1:-1, 1:, ::-1],
    "windows of one axis twice": lambda x: np.lib.stride_tricks.sliding_window_view(
        x, (3, 2), axis=(2, 2)
    )[..., ::3, :, :],
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_taken_first(name: str) -> None:
    part, w = PARTS[name], np.random.default_rng(1).normal(size=PARTS[name](X).shape)
    np.testing.assert_array_equal(ckad.jit(part)(X), part(X))
    rows = ckad.jit(part).compiled(X).tape.rows
    moved = [row for row in rows if row.op in (Op.GATHER, Op.TRANSPOSE)]
    # a first axis' windows may be more than what is left of them
    assert max(row.type.size for row in moved) <= max(3 * X.size, prod(part(X).shape))
    assert len([row for row in rows if row.op is Op.TRANSPOSE]) <= 1

    def fun(x: np.ndarray) -> np.floating:
        return np.sum(w * part(x) ** 2)

    ckad.testing.check_grads(fun, (X,))


def test_transposes_of_transposes_vanish() -> None:
    def there_and_back(x: np.ndarray) -> np.ndarray:
        return x.transpose(2, 0, 1).swapaxes(0, 1).transpose(0, 2, 1) * 1.0

    tape = ckad.jit(there_and_back).compiled(X).tape
    assert not [row for row in tape.rows if row.op is Op.TRANSPOSE]
    np.testing.assert_array_equal(ckad.jit(there_and_back)(X), X)


def rows_added_to(x: np.ndarray) -> np.ndarray:
    s = np.zeros((6, 10))
    for i in range(6):
        k = (5 * i) % 6
        s[k] += np.sin(x[0, :, i])
        s[k] += x[1, :, i] ** 2
        s[k] *= x[2, :, i]
    return s


def rows_written_back(x: np.ndarray) -> np.ndarray:
    s = 1.0 * x[0]
    for i in range(10):
        row = s[i]
        s[i] = row
        s[i] = x[1, i]
    return s


@pytest.mark.parametrize(("fun", "left"), [(rows_added_to, 1), (rows_written_back, 1)])
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_what_is_written_over_is_not_written(
    fun: Callable[[np.ndarray], np.ndarray], left: int, engine: str
) -> None:
    tape = recorded(fun, (X,))
    written = [row for body in tape.bodies for row in body.rows if row.op is Op.SCATTER]
    assert len(written) <= left
    np.testing.assert_allclose(ckad.jit(fun, engine=engine)(X), fun(X), rtol=1e-14)
    ckad.testing.check_grads(lambda x: np.sum(np.cos(fun(x))), (X,))


def test_what_is_read_in_between_is_written() -> None:
    """Else the step would need the array before both writes as well: a copy of all of it."""

    def scaled(x: np.ndarray) -> np.ndarray:
        s = 1.0 * x[0, 0]
        for i in range(1, 12):
            s[i] -= x[1, 0, i]
            s[i] /= s[(5 * i) % 12]
        return s

    X = np.random.default_rng(5).uniform(1, 2, (2, 1, 12))
    (body,) = recorded(scaled, (X,)).bodies
    first, second = [k for k, row in enumerate(body.rows) if row.op is Op.SCATTER]
    assert body.rows[second].operands[0] == first
    np.testing.assert_allclose(ckad.jit(scaled)(X), scaled(X), rtol=1e-14)
    ckad.testing.check_grads(lambda x: np.sum(np.cos(scaled(x))), (X,))


def test_of_repeated_places_the_last_write_counts() -> None:
    places = np.array([1, 3, 1, 0])

    def twice(x: np.ndarray) -> np.ndarray:
        s = 1.0 * x[0, :, 0]
        s[places] = x[1, 0, :4]
        s[places] = x[2, 0, :4] ** 2
        return s

    np.testing.assert_array_equal(ckad.jit(twice)(X), twice(X))
    ckad.testing.check_grads(lambda x: np.sum(np.cos(twice(x))), (X,))
