"""Exceptions that the numbers of a call raise, and that a handler of the program meets."""

from __future__ import annotations

import contextlib
import math
import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AsRunWarning, DivisionError, RaisedError

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
X = np.array([0.3, 1.4, 0.8, 2.0, 0.6])


class TooLarge(Exception):
    def __init__(self, size):
        self.size = size


def raised_by_a_function(x):
    def square(v):
        if v > 1.2:
            raise TooLarge(v)
        return v * v

    s = 0.0
    for v in x:
        try:
            s += square(v)
        except TooLarge as error:
            s += 10.0 * error.size
        else:
            s += 0.5 * v
        finally:
            s *= 1.1
    return s


def factorised(x):
    """A list gets an item only where nothing is raised before."""
    found = []
    for v in x:
        matrix = np.array([[v, 1.0], [1.0, 1.0]])
        try:
            found.append(np.linalg.cholesky(matrix)[1, 1])
        except np.linalg.LinAlgError:
            found.append(3.0 * v)
    return sum(found)


def singular(x):
    try:
        return np.sum(np.linalg.solve(np.outer(x[:2], x[:2]) * 0.0, x[:2]))
    except np.linalg.LinAlgError:
        return np.sum(x**2)


def by_math(x):
    n, s = 0, 0.0
    while True:
        try:
            s += math.log(x[n] - 0.5)
        except ValueError:
            s -= x[n]
        except IndexError:
            break
        n += 1
    return s


def looked_up(x):
    table = {0: 2.0, 1: 3.0}
    s = 0.0
    for v in x:
        try:
            s += table[int(3.0 * v)] * v
        except KeyError:
            s += v
    return s


def divided(x):
    with contextlib.suppress(ZeroDivisionError):
        return x[1] / (5 // int(x[0]))
    return 4.0 * x[2]


def left(x):
    s = x[0]
    try:
        for _ in range(100):
            s = s * 1.3
            if s > 5.0:
                raise StopIteration
    except StopIteration:
        s = 2.0 * s
    return s


def of_nan(x):
    try:
        k = int(x[0] * np.nan)
    except ValueError:
        k = 3
    return k * x[1]


def asserted(x):
    try:
        # as an exception, since pytest writes assertions anew
        if not x[0] > 1.0:
            raise AssertionError("small")
        return 3.0 * x[0]
    except AssertionError as error:
        return len(str(error)) * x[0]


PROGRAMS = [
    *(raised_by_a_function, factorised, singular, by_math, looked_up, divided, left, of_nan),
    asserted,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_handler_meets_what_the_numbers_raise(f):
    value, gradient = ckad.value_and_grad(f, engine="vm")(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    h = 1e-6 * np.eye(5)
    differences = [(f(X + d) - f(X - d)) / 2e-6 for d in h]
    assert gradient == pytest.approx(differences, rel=1e-7, abs=1e-7)
    assert ckad.jvp(f, (X,), (np.ones(5),))[1] == pytest.approx(np.sum(gradient), rel=1e-13)


def test_what_raises_nothing_is_recorded_for_all_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)
        assert ckad.grad(left)(np.full(5, 1e-12))[0] == pytest.approx(1.3**100)
    assert ckad.grad(left)(X)[0] == pytest.approx(2.0 * 1.3**11)


def test_the_others_too():
    pulled = ckad.vjp(left, X)[1](1.0)[0]
    assert pulled[0] == pytest.approx(ckad.jit(left)(X) / X[0], rel=1e-14)
    assert not ckad.hessian(left)(X).any()
    assert ckad.jacobian(left)(X)[0] == pulled[0]
    assert not ckad.hvp(left, (X,), (X,)).any()


def test_what_no_handler_meets_is_raised():
    def f(x):
        try:
            if x[0] < 1.0:
                raise TooLarge(1)
        except KeyError:
            return 0.0
        return x[0]

    with pytest.raises(TooLarge):
        ckad.grad(f)(X)


def test_where_the_warning_is_an_error_the_program_stops():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)
        ckad.clear_caches()
        with pytest.raises(RaisedError, match="the program raises an error at step 10"):
            ckad.grad(left)(X)


def chain(x):
    """What only a recording as it runs takes."""
    items = [x[0], x[1], x[2]]
    while len(items) > 1:
        a, b = items.pop(), items.pop()
        if a * b > 0.1:
            items.append(a * b * 0.9)
    return items[0] if items else x[0]


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: chain(x) * int(x[3] * np.nan), RaisedError),
        (lambda x: chain(x) * (5 // int(x[0])), DivisionError),
        (lambda x: x[0] * round(x[3] * np.inf), RaisedError),
        (lambda x: chain(x) * round(x[3] * np.inf), RaisedError),
    ],
)
def test_integers_that_are_none_stop_what_is_recorded_as_it_runs_as_well(f, error):
    with pytest.raises(error):
        ckad.value_and_grad(f)(X)


def test_the_words_of_what_is_raised_and_of_the_warning():
    def f(x):
        try:
            return x[1] / (5 // int(x[0]))
        except ZeroDivisionError as error:
            return x[2] * len(str(error))

    with pytest.warns(AsRunWarning, match="A handler of the program may meet that.*by 'if'"):
        value = ckad.jit(f, engine="vm")(X)
    assert value == f(X)


def linear_or_cubic(x):
    try:
        math.sqrt(x[0])
        return np.sum(x)
    except ValueError:
        return np.sum(x**3)


def constant_or_linear(x):
    try:
        if x[0] < 0.0:
            raise ValueError
        return np.floor(x)
    except ValueError:
        return 5.0 * x


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_derivative_that_is_zero_unless_a_handler_goes_on(engine):
    x = np.array([-1.0, 2.0])

    def nested(x):
        return ckad.hessian(linear_or_cubic)(x) * 1.0

    hessians = [ckad.hessian(linear_or_cubic, engine=engine, sparse=k)(x) for k in (False, True)]
    hessians += [ckad.jit(nested, engine=engine)(x), ckad.jacobian(ckad.grad(linear_or_cubic))(x)]
    for found in hessians:
        np.testing.assert_allclose(found @ np.ones(2), 6.0 * x)
    products = ckad.hvp(linear_or_cubic, (x,), (np.ones(2),), engine=engine)
    np.testing.assert_allclose(products, 6.0 * x)
    for sparse in (False, True):
        found = ckad.jacobian(constant_or_linear, engine=engine, sparse=sparse)
        np.testing.assert_allclose(found(x) @ np.ones(2), 5.0)
        assert not (found(-x[::-1] + 3.0) @ np.ones(2)).any()
