"""Arrays that may not be written into, and errors that NumPy raises where it is asked to."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import ckad


def by_its_flags(x: Any) -> Any:
    x.flags.writeable = False
    x[0] = 3.0
    return np.sum(x)


def by_an_item_of_its_flags(x: Any) -> Any:
    y = 2.0 * x
    y.flags["WRITEABLE"] = False
    for k in range(20):
        y[k % 2] += 1.0
    return np.sum(y)


def by_a_view(x: Any) -> Any:
    y = 2.0 * x
    y.setflags(write=False)
    y[1:][0] = 1.0
    return np.sum(y)


@pytest.mark.parametrize("program", [by_its_flags, by_an_item_of_its_flags, by_a_view])
def test_what_a_program_protects_is_not_written_into(program):
    for run in (program, ckad.jit(program), ckad.grad(program)):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            run(np.ones(2))


def test_a_program_may_find_that_out_and_write_into_copies():
    def program(x: Any) -> Any:
        y = 2.0 * x
        y.flags.writeable = False
        z = y.copy()
        z[0] = 5.0
        try:
            y[0] = 1.0
        except ValueError:
            z[1] = 10.0 * x[1]
        y.setflags(write=True)
        y[1] = 7.0
        return np.sum(y * z)

    x = np.array([1.5, 2.5])
    assert ckad.jit(program)(x) == program(x)


def test_arguments_that_may_not_be_written_into():
    def program(x: Any) -> Any:
        for _ in range(20):
            x[0] += 1.0
        return np.sum(x)

    gradient = ckad.grad(program, engine="vm")
    protected = np.ones(2)
    protected.flags.writeable = False
    for x in (protected, np.broadcast_to(1.0, 2)):
        for _ in range(12):
            assert gradient(np.ones(2)).tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            gradient(x)
    assert ckad.grad(lambda x: program(x.copy()))(protected).tolist() == [1.0, 1.0]


def by_an_array(x: Any) -> Any:
    with np.errstate(all="raise"):
        return x * np.sum(np.array([1.0, 0.0]) / np.array([0.0, 1.0]))


def by_what_is_written(x: Any) -> Any:
    y = np.zeros(2)
    y[1] = 1e300
    with np.errstate(over="raise"):
        return x * np.sum(y * 1e300)


@pytest.mark.parametrize("program", [by_an_array, by_what_is_written])
def test_constants_raise_errors_where_numpy_does(program):
    for run in (program, ckad.jit(program), ckad.grad(program)):
        with pytest.raises(FloatingPointError, match="encountered"):
            run(2.0)


def test_what_formulas_compute_of_constants_raises_nothing():
    def program(x: Any) -> Any:
        a = np.zeros(2)
        a[0], a[1] = 0.3, 1.2
        with np.errstate(all="raise"):
            return x * np.nansum(scipy.special.logit(a))

    assert ckad.jit(program)(2.0) == pytest.approx(program(2.0))
