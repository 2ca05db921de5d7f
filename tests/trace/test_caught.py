"""Exceptions that a program raises and catches by itself."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest

import ckad
from ckad.errors import CarryError, ConcreteValueError, RaisedError, TracedIndexError

from .idioms import check_number, failing_checks

STRICT = True


class TooLarge(ValueError):
    def __init__(self, at):
        super().__init__(f"too large at {at}")
        self.at = at


def refuse(x):
    if STRICT:
        raise TooLarge(3)
    return x


def by_name_in_a_loop(x):
    total = 0.0
    for k in range(12):
        try:
            total += refuse(x * k)
        except (KeyError, ValueError) as error:
            total += x * error.at
    return total


def of_a_class(x):
    for _ in range(12):
        try:
            try:
                if STRICT:
                    raise KeyError
                x = 2.0 * x
            except ZeroDivisionError:
                x = 3.0 * x
            finally:
                x = 0.9 * x
        except LookupError:
            x = np.sin(x)
    return x


def within_a_branch(x):
    if x > 0.2:
        try:
            raise TooLarge(5)
        except TooLarge as error:
            x = x * error.at
    return x


def from_its_own_handler(x):
    for _ in range(12):
        try:
            try:
                raise KeyError
            except KeyError:
                raise ValueError from None
        except ValueError:
            x = np.cos(x)
    return x


@pytest.mark.parametrize(
    "function",
    [by_name_in_a_loop, of_a_class, within_a_branch, from_its_own_handler, failing_checks],
)
def test_what_is_raised_whatever_the_numbers_are(function):
    check_number(function, 0.7, rel=1e-14)


def of_another_kind(x, n):
    total = x
    for k in range(n):
        try:
            if STRICT:
                raise KeyError(k)
        except ValueError:
            total = 2.0 * total
    return total


def test_what_no_handler_catches_stops_the_program():
    with pytest.raises(RaisedError, match="raises an error"):
        ckad.grad(of_another_kind)(0.7, 9)


def by_numbers(x):
    total = 0.0
    for k in range(9):
        try:
            if x * k > 4.0:
                raise ValueError
            total += x * k
        except ValueError:
            total += 1.0
    return total


def test_what_numbers_decide_stops_the_program_where_it_is_raised():
    assert ckad.value_and_grad(by_numbers)(0.3) == pytest.approx((by_numbers(0.3), 36.0))
    with pytest.raises(RaisedError, match="raise ValueError"):
        ckad.grad(by_numbers)(0.7)


class Suppressed:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, where):
        return kind is ValueError


def root(x):
    try:
        return math.sqrt(x - 1.0)
    except Exception:
        return 2.0 * x


def whose_root_is_not_read(x):
    there = 1.0
    try:
        math.log(x - 1.0)
    except:  # noqa: E722
        there = 0.0
    return x * there


def exponential(x):
    try:
        return math.exp(x - 2.0) * math.exp(-700.0 * min(x - 1.5, 0.0) * 100.0)
    except OverflowError:
        return x


def quotient(x):
    with contextlib.suppress(ZeroDivisionError):
        return x / float(math.floor(x))
    return x


def power(x):
    try:
        return float(x - 1.0 if x > 1.0 else 0.0 * x) ** -1.5
    except ArithmeticError:
        return x


def in_a_helper(x):
    def share(a, b):
        return a // b

    try:
        return x + share(2 * int(x), int(x) - 0)
    except (KeyError, ZeroDivisionError):
        return 3.0 * x


def in_a_manager(x):
    y = 3.0 * x
    with Suppressed():
        y = math.acos(2.0 - x)
    return y


def in_a_loop(x):
    total = 0.0
    for k in range(20):
        try:
            total += math.sqrt(x * (k + 1) - 1.0)
        except ValueError:
            total -= 1.0
    return total


def integer(x):
    try:
        return x * int(3.0 + np.log(x - 1.0))
    except (ValueError, OverflowError):
        return x


CAUGHT = [root, whose_root_is_not_read, exponential, quotient, power, in_a_helper, in_a_manager]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", [*CAUGHT, in_a_loop, integer])
def test_errors_of_numbers_that_a_handler_catches_stop_the_program(function, engine):
    assert ckad.jit(function, engine=engine)(1.6) == pytest.approx(function(1.6), rel=1e-14)
    with np.errstate(invalid="ignore"):
        function(0.5)
    with pytest.raises(RaisedError):
        ckad.jit(function, engine=engine)(0.5)


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e19])
def test_integers_of_floats_that_have_none_stop_the_program(number):
    for function in (int, round, math.floor, math.ceil, math.trunc):
        for engine in ("vm", "native"):
            compiled = ckad.jit(lambda x, f=function: x * (f(2.0 * x) % 7), engine=engine)
            assert compiled(1.6) == 1.6 * (function(3.2) % 7)
            with pytest.raises(RaisedError, match="is made an integer"):
                compiled(number)


def test_integers_of_floats_in_a_loop_that_is_one_operation():
    def deposited(x):
        cells = np.zeros(8)
        for k in range(len(x)):
            cells[int(8.0 * x[k]) % 8] += x[k]
        return np.sum(cells**2)

    assert ckad.grad(deposited)(np.array([0.3, 0.35])) == pytest.approx([1.3, 1.3])
    with pytest.raises(RaisedError, match="is made an integer"):
        ckad.grad(deposited)(np.array([0.3, np.nan]))


def raised_by_numpy(x):
    with np.errstate(all="raise"):
        try:
            return np.sqrt(x - 1.0)
        except FloatingPointError:
            return x


def raised_by_numpy_inside(x):
    try:
        with np.errstate(invalid="raise"):
            return np.sqrt(x - 1.0)
    except ArithmeticError:
        return x


@pytest.mark.parametrize("function", [raised_by_numpy, raised_by_numpy_inside])
def test_errors_that_numpy_is_asked_to_raise_and_a_handler_catches_are_refused(function):
    with pytest.raises(ConcreteValueError, match="whether a FloatingPointError is raised"):
        ckad.grad(function)(0.5)


PRICES = {"bread": 2.0}
FACTORS = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]


def after_what_a_step_has_done(x):
    total, paid = x, [x]
    try:
        for _ in range(8):
            total = total + x
            paid[0] += total
            total += PRICES["milk"]
    except KeyError:
        total = 0.5 * total
    return total * paid[0]


def after_what_python_counted(x):
    n = 0
    try:
        for k in range(30):
            n += 1
            assert FACTORS[k]
    except IndexError:
        n += 100
    return n * x


def in_an_object(x):
    total = [x, 0.0]

    def spend(part):
        total[0] = total[0] * part
        return PRICES[part]

    with contextlib.suppress(TypeError, KeyError):
        for k in range(7):
            total[1] += spend(FACTORS[0] * x)
            total[1] += 1000.0 * k
    return total[0]


def in_a_comprehension(x):
    seen = []
    try:
        return sum([(seen.append(x), PRICES[part])[1] for part in ("bread", "milk")])
    except KeyError:
        return len(seen) * x


@pytest.mark.parametrize(
    "function",
    [after_what_a_step_has_done, after_what_python_counted, in_an_object, in_a_comprehension],
)
def test_what_was_done_before_an_error_stays_done(function):
    check_number(function, 0.7, rel=1e-14)


def on_a_side(x):
    total = x
    try:
        if x > 0.5:
            total = total + x
            total += PRICES["milk"]
    except KeyError:
        total = 10.0 * total
    return total


def behind_an_and(x):
    try:
        return 2.0 * x if x > 0.5 and PRICES["milk"] > 1.0 else x
    except LookupError:
        return 3.0 * x


def in_a_loop_of_unknown_length(x):
    total = x
    try:
        while total < 5.0:
            total = total + x
            total += PRICES["milk"]
    except KeyError:
        total = 10.0 * total
    return total


@pytest.mark.parametrize("function", [on_a_side, behind_an_and, in_a_loop_of_unknown_length])
def test_errors_that_a_traced_condition_decides_are_no_matter_of_a_handler_outside(function):
    with pytest.raises(CarryError, match=r"KeyError: 'milk'.* a handler outside of it may"):
        ckad.grad(function)(0.7)


def probes_an_array(x, a, k):
    try:
        a[k]
        x = 2.0 * x
    except IndexError:
        x = 3.0 * x
    return x


def probes_a_list(x, a, k):
    items = [x, 2.0, 3.0]
    for j in range(9):
        if x * j > 3.0:
            items.append(x)
        try:
            items[k + 2 * j]
            x = 2.0 * x
        except LookupError:
            x = 3.0 * x
    return x


def takes_from_a_list(x, a, k):
    items = [x]
    for j in range(9):
        if x * j < 0.6 * k:
            items.append(x)
        with contextlib.suppress(IndexError):
            items.pop()
            x = 1.1 * x
    return x


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", [probes_an_array, probes_a_list, takes_from_a_list])
def test_errors_of_what_is_not_used_stop_the_program_where_a_handler_waits(function, engine):
    def program(x, y):
        return function(x, np.ones(4), int(y))

    with pytest.raises(TracedIndexError):
        ckad.jit(program, engine=engine)(0.7, 5.0)


def test_probes_that_find_something_are_as_in_python():
    for function, y in ((probes_an_array, 3.0), (takes_from_a_list, 20.0)):
        program = lambda x, y, f=function: f(x, np.ones(4), int(y))  # noqa: E731
        assert ckad.jit(program)(0.7, y) == pytest.approx(program(0.7, y))


def by_a_name_that_is_not_there(x):
    if x > 5.0:
        return PRICES["milk"] * x
    elif x > 4.0:
        return FACTORS[30]
    return 2.0 * x


def by_a_variable_of_later(x):
    factor = later * x if x > 5.0 else 3.0  # noqa: F821
    later = 2.0
    return factor * later * x


def behind_a_test(x):
    return 1.0 if x > 5.0 and FACTORS[30] > x else 4.0 * x


@pytest.mark.parametrize(
    "function", [by_a_name_that_is_not_there, by_a_variable_of_later, behind_a_test]
)
def test_errors_on_sides_that_are_not_taken_are_none(function):
    check_number(function, 0.7, rel=1e-14)
    with pytest.raises(RaisedError, match="the program raises an error"):
        ckad.jit(function)(6.0)
