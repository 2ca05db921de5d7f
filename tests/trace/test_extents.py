"""Slices with computed bounds, against NumPy and against differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ckad
from ckad.errors import UnknownLengthError

from .extent_programs import PROGRAMS, VECTOR


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_like_numpy_and_its_gradient(engine, name):
    function, args = PROGRAMS[name]
    expected = function(*(x.copy() for x in args))
    np.testing.assert_allclose(ckad.jit(function)(*args), expected, rtol=1e-11)
    ckad.testing.check_grads(function, args)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["cholesky_by_rows", "durbin", "clipped_windows", "items"])
def test_second_order(engine, name):
    function, args = PROGRAMS[name]
    ckad.testing.check_grads(function, args, order=2)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"items_of_three_axes", "in_order"}))
def test_loops_are_recorded_once(name):
    function, args = PROGRAMS[name]
    longer = [np.ones([2 * n for n in x.shape]) for x in args]
    if name in ("cholesky_by_rows", "lu"):
        longer[0] += 30 * np.eye(len(longer[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(function.__globals__, "WEIGHTS", np.ones((12, 12)))
        long_tape = ckad.trace(function)(*longer)
    short_tape = ckad.trace(function)(*args)
    assert len(str(long_tape)) < 1.2 * len(str(short_tape)) + 400


# --- bounds of any value -----------------------------------------------------------------------


def _all_slices(x, a, b):
    y = x.copy()
    y[a:b] *= 2.0
    y[a:b:-1] += 100.0
    y[a:] += 3.0
    y[:b] -= x[:b] * x[:b]
    z = y[a:b][::-1]
    total = np.sum(x[a::-1] * 7) + np.sum(x[:b:-1]) + np.sum(z[1:] * 5.0)
    total += np.sum(y[a:b][-2:] * 11) + np.sum(y[a:b][:-1])
    return y, total, y[a:b].shape[0], np.sum(np.cumsum(y[a:b]))


def test_bounds_wrap_and_clip_as_in_numpy(engine):
    x = VECTOR[:4]
    compiled = ckad.jit(_all_slices)
    for a, b in itertools.product(range(-6, 7), repeat=2):
        for got, expected in zip(
            compiled(x, np.array(a), np.array(b)), _all_slices(x, a, b), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-12, err_msg=f"{a}:{b}")


def test_an_item_of_a_part_is_checked(engine):
    def last(x, k):
        return x[:k][-1] + x[:k][2]

    assert ckad.jit(last)(VECTOR, np.array(4)) == VECTOR[3] + VECTOR[2]
    with pytest.raises(IndexError, match=r"test_extents.py:\d+"):
        ckad.jit(last)(VECTOR, np.array(2))


def test_different_lengths_stop_the_program(engine):
    def total(x, j, k):
        return np.sum(x[:j] * x[:k])

    compiled = ckad.jit(total)
    assert compiled(VECTOR, np.array(3), np.array(3)) == np.sum(VECTOR[:3] ** 2)
    with pytest.raises(ValueError, match=r"test_extents.py:\d+: lengths .* differ"):
        compiled(VECTOR, np.array(3), np.array(2))


def test_different_lengths_stop_a_program_that_needs_only_one_of_them(engine):
    """Both parts reach to an end of their array: no place is compared with the lengths."""

    def total(x, j):
        return np.sum(x[j:] * x[:j])

    compiled = ckad.jit(total)
    half = len(VECTOR) // 2
    assert len(VECTOR) % 2 == 0
    assert compiled(VECTOR, np.array(half)) == np.sum(VECTOR[half:] * VECTOR[:half])
    with pytest.raises(ValueError, match=r"test_extents.py:\d+: lengths .* differ"):
        compiled(VECTOR, np.array(1))


def test_the_maximum_of_nothing_stops_the_program(engine):
    def largest(x, k):
        return np.max(x[:k])

    assert ckad.jit(largest)(VECTOR, np.array(2)) == np.max(VECTOR[:2])
    with pytest.raises(IndexError, match=r"test_extents.py:\d+"):
        ckad.jit(largest)(VECTOR, np.array(0))


def test_nothing_has_sum_zero(engine):
    def total(x, k):
        return np.sum(np.log(x[:k])) + np.prod(x[:k]) + x[:k] @ x[:k]

    value, gradient = ckad.value_and_grad(total)(VECTOR, np.array(0))
    assert value == 1
    assert not np.any(gradient)


def test_bounds_that_are_known_make_static_parts():
    def total(x):
        k = np.sum(np.array([1, 2]))  # traced, but of known numbers
        return np.sum(x[:k])

    assert total(VECTOR) == pytest.approx(ckad.jit(total)(VECTOR))
    assert "select" not in str(ckad.trace(total)(VECTOR))


def _step_of_two(x, k):
    return np.sum(x[k::2])


def _median(x, k):
    return np.median(x[:k])


def _returned(x, k):
    return x[:k]


def test_an_array_made_of_a_length_that_is_counted(engine):
    def fun(x):
        return np.sum(np.ones(int(np.sum(x > 0)))) * x[0]

    for signs in ([1, -1, 1], [-1, -1, -1], [1, 1, 1]):
        x = np.array(signs) * [1.5, 2.0, 2.5]
        value, gradient = ckad.value_and_grad(fun, engine=engine)(x)
        assert value == fun(x)
        np.testing.assert_array_equal(gradient, [np.sum(x > 0), 0, 0])


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_step_of_two, UnknownLengthError, "a step below -1, or one above 1 and a computed start"),
        (
            _median,
            UnknownLengthError,
            "np.median is not supported for an array whose length is only known",
        ),
        (_returned, UnknownLengthError, "returns an array whose length is computed"),
    ],
)
def test_what_is_not_supported_is_named(function, error, message):
    with pytest.raises(error, match=message) as caught:
        ckad.jit(function)(VECTOR, np.array(2))
    assert caught.type is error


def test_a_product_with_one_element_repeats_nothing(engine):
    def fun(x, n):
        for k in range(n):
            i = 1 + k % 2
            x = 0.9 * x
        return x[i : i + 1] @ np.full(1, 3.0)

    value, gradient = ckad.value_and_grad(fun, engine=engine)(np.arange(4.0), 6)
    assert value == pytest.approx(3.0 * 0.9**6 * 2.0, rel=1e-14)
    np.testing.assert_allclose(gradient, [0.0, 0.0, 3.0 * 0.9**6, 0.0], rtol=1e-14)
    with pytest.raises(ckad.errors.CkadError, match="differ"):
        ckad.value_and_grad(lambda x, n: fun(x, n) + _too_long(x, n), engine=engine)(np.ones(4), 6)


def _too_long(x, n):
    for k in range(n):
        i = 1 + k % 2
        x = 0.9 * x
    return x[:i] @ np.ones(1)
