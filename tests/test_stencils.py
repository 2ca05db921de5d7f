"""``ckad.stencil`` against Numba's, SciPy's filters and slices written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from scipy import ndimage

import ckad
from ckad.tape.tape import Tape

U = np.random.default_rng(3).normal(size=(7, 9))
W = np.random.default_rng(4).normal(size=(3, 3))
STEPS = 6


def upwind(a: Any, c: Any) -> Any:
    return c * (a[0, 1] + a[1, 0] + 2 * a[-2, -1] - a[0, 0] ** 2)


def weighted(a: Any, w: Any) -> Any:
    total = 0.0
    for i in range(-1, 2):
        for j in range(-1, 2):
            total += w[i + 1, j + 1] * a[i, j]
    return total


def test_the_constant_mode() -> None:
    inner = upwind(_At(U), 0.3)
    whole = np.full(U.shape, 2.5)
    whole[2:-1, 1:-1] = inner
    np.testing.assert_array_equal(ckad.stencil(upwind, cval=2.5)(U, 0.3), whole)
    ours = np.ones(U.shape)
    assert ckad.stencil(upwind)(U, 0.3, out=ours) is ours
    np.testing.assert_array_equal(ours, np.where(whole == 2.5, 1.0, whole))
    np.testing.assert_array_equal(ckad.stencil(upwind)(U[:2, :2], 1.0), np.zeros((2, 2)))


class _At:
    """The inner elements moved, by hand."""

    def __init__(self, u: Any) -> None:
        self.u = u

    def __getitem__(self, offsets: tuple[int, int]) -> Any:
        (i, j), (m, n) = offsets, self.u.shape
        return self.u[2 + i : m - 1 + i, 1 + j : n - 1 + j]


@pytest.mark.slow
def test_the_constant_mode_is_numbas() -> None:
    for options in ({}, {"cval": 2.5}, {"neighborhood": ((-3, 1), (-1, 2))}):
        theirs = numba.stencil(upwind, **options)
        np.testing.assert_array_equal(ckad.stencil(upwind, **options)(U, 0.3), theirs(U, 0.3))
    theirs, ours = numba.stencil(upwind)(U, 0.3, out=np.ones(U.shape)), np.ones(U.shape)
    ckad.stencil(upwind)(U, 0.3, out=ours)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", ["wrap", "nearest", "reflect", "mirror"])
def test_other_modes_are_those_of_ndimage(mode: str) -> None:
    ours = ckad.stencil(weighted, mode, standard_indexing=("w",))
    np.testing.assert_allclose(ours(U, W), ndimage.correlate(U, W, mode=mode), rtol=1e-13)
    x = np.arange(4.0)
    cube = ckad.stencil(mode)(lambda a, b: a[1, 0, -1] * b[0, 0, 0])  # of any number of axes
    wide = np.pad(x.reshape(2, 2, 1), 1, {"wrap": "wrap"}.get(mode, "edge"))
    if mode != "mirror":
        got = cube(x.reshape(2, 2, 1), np.ones((2, 2, 1)))
        np.testing.assert_array_equal(got, wide[2:, 1:-1, :-2])


def gradient(a: Any) -> Any:
    return a[1, 0] + a[-1, 0] + a[0, 1] + a[0, -1] - 4 * a[0, 0]


def rolled(u: Any) -> Any:
    return (np.roll(u, -1, 0) + np.roll(u, 1, 0) + np.roll(u, -1, 1) + np.roll(u, 1, 1)) - 4 * u


def sliced(u: Any) -> Any:
    new = np.zeros(u.shape)
    new[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return new


def diffused(laplacian: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(u: Any) -> Any:
        for _ in range(STEPS):
            u = u + 0.1 * laplacian(u) * u
        return np.sum(u**2)

    return run


def shown(tape: Tape) -> list[Any]:
    """What is computed, whatever the order of the rows, and from where."""
    rows = sorted((row.op.name, row.attrs, str(row.type)) for row in tape.rows)
    return [*rows, *map(shown, tape.bodies)]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("mode", "by_hand"), [("wrap", rolled), ("constant", sliced)])
def test_the_rows_are_those_of_slices_by_hand(mode: str, by_hand: Callable[[Any], Any]) -> None:
    ours, theirs = diffused(ckad.stencil(gradient, mode)), diffused(by_hand)
    assert shown(ckad.trace(ours)(U)) == shown(ckad.trace(theirs)(U))
    value, slope = ckad.value_and_grad(ours)(U)
    assert value == pytest.approx(ours(U), rel=1e-13)
    np.testing.assert_array_equal(slope, ckad.grad(theirs)(U))


@pytest.mark.parametrize("mode", ["nearest", "mirror"])
def test_gradients_at_edges(mode: str) -> None:
    at_edges = ckad.stencil(weighted, mode, standard_indexing=("w",))
    ckad.testing.check_grads(
        lambda u, w: np.sum(at_edges(at_edges(u, w), w) ** 2), (U[:4, :3], W), modes=("rev",)
    )


SCALE = 2.0


def test_what_a_kernel_reads_from_outside_is_the_present_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scaled = ckad.stencil(lambda a: SCALE * a[1], "wrap")
    slope = ckad.grad(lambda x: np.sum(scaled(x)))
    assert slope(np.ones(3))[0] == 2.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert slope(np.ones(3))[0] == 3.0


def test_a_kernel_that_the_recorded_function_makes() -> None:
    def steps(x: Any) -> Any:
        return np.sum(ckad.stencil(lambda a: a[1] * a[0], "wrap")(x))

    np.testing.assert_array_equal(ckad.grad(steps)(np.array([1.0, 2.0, 4.0])), [6.0, 5.0, 3.0])


def test_what_does_not_fit_is_named() -> None:
    here = r"test_stencils\.py"
    with pytest.raises(ValueError, match=rf"{here}.*'periodic'.*wrap"):
        ckad.stencil(gradient, "periodic")
    with pytest.raises(ValueError, match=rf"{here}.*different shapes.*\(3,\).*\(4,\)"):
        ckad.stencil(lambda a, b: a[0] + b[0])(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match=rf"{here}.*a\[0\].*2 axes"):
        ckad.stencil(lambda a: a[0])(U)
    with pytest.raises(ValueError, match=rf"{here}.*an integer for each"):
        ckad.stencil(lambda a: a[0.5])(np.ones(3))
    with pytest.raises(ValueError, match=rf"{here}.*neighborhood has 1"):
        ckad.stencil(gradient, neighborhood=((-1, 1),))(U)
    with pytest.raises(ValueError, match=rf"{here}.*standard_indexing"):
        ckad.stencil(gradient, standard_indexing=("b",))
    with pytest.raises(ValueError, match=rf"{here}.*\(2,\).*outside of the neighborhood"):
        ckad.stencil(lambda a: a[2], "nearest", neighborhood=((-1, 1),))(np.ones(5))
