"""Where other tools give a wrong gradient without a word: each such program here, against NumPy.

Arrays overwritten in loops, products and quotients in place, the loop's variable as an index, the
last step of a ``while``, branches and lengths frozen at the first call, a second control after the
first, a reverse sweep that was aborted, indices that are clamped instead of checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.engines import native, vm
from ckad.errors import ConcreteValueError, TracedIndexError, UnrecordableError
from ckad.transforms.call import compiled

pytestmark = pytest.mark.usefixtures("engine")

X = np.array([0.9, -0.4, 1.3, 0.7, -1.1])
TOLERANCE = 1e-12


def complex_step(fun: Callable[..., Any], x: Any, *rest: Any) -> np.ndarray:
    """The gradient of ``fun`` by each element of ``x``, run by NumPy on complex numbers."""
    x = np.asarray(x, float)
    gradient = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-30j
        gradient[place] = fun(moved if moved.ndim else moved[()], *rest).imag / 1e-30
    return gradient


def check(fun: Callable[..., Any], x: Any, *rest: Any, gradient: Any = None) -> None:
    """Value and gradient by the first argument are NumPy's."""
    gradient = gradient or ckad.value_and_grad(fun)
    value, got = gradient(x, *rest)
    want = complex_step(fun, x, *rest)
    np.testing.assert_allclose(value, fun(np.array(x), *rest), rtol=TOLERANCE)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE * np.abs(want).max())


# --- arrays overwritten in loops -----------------------------------------------------------------


def test_an_array_read_and_then_overwritten() -> None:
    def fun(x: Any) -> Any:
        y = x.copy()
        total = 0.0
        for i in range(5):
            total = total + y[i] ** 2
            y[i] = total
        return total * y[2]

    check(fun, X)


def test_an_array_overwritten_as_a_whole_every_step() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for _ in range(6):
            u[:] = np.sin(u) * x + 0.5 * u[::-1]
        return np.sum(u * u)

    check(fun, X)


def test_an_element_overwritten_twice_in_a_step() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(1, 5):
            u[i] = u[i] * u[i - 1]
            u[i] = u[i] ** 2 + u[0]
            u[0] = 0.5 * u[i]
        return u[0] + u[4]

    check(fun, X)


def test_an_array_overwritten_after_a_nonlinear_read() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        energy = 0.0
        for _ in range(4):
            energy = energy + np.sum(u**3)
            u *= 0.0
            u += 0.3 * x
        return energy

    check(fun, X)


def test_a_temporary_that_is_reused() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        work = np.zeros_like(x)
        for _ in range(5):
            work[:] = u * u
            u[1:] += 0.1 * work[:-1]
            work[:] = np.cos(u)
            u[:-1] -= 0.1 * work[1:]
        return np.sum(u * work)

    check(fun, X)


def test_an_overwritten_argument_is_differentiated_by_what_was_passed() -> None:
    def fun(x: Any) -> Any:
        for i in range(1, 5):
            x[i] = x[i] * x[i - 1]
        x[0] = 0.0
        return np.sum(x)

    given = X.copy()
    check(fun, given)
    np.testing.assert_array_equal(given, X)


# --- in place: *=, /=, -=, **= -------------------------------------------------------------------


def test_products_in_place() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(5):
            u *= x
            u[i] *= u[i]
        return np.sum(u)

    check(fun, X)


def test_quotients_in_place() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(1, 5):
            u /= 1.0 + x * x
            u[i] /= u[i - 1]
        return np.sum(u)

    check(fun, X)


def test_a_scalar_multiplied_in_place() -> None:
    def fun(x: Any) -> Any:
        p = 1.0
        q = 2.0
        for i in range(5):
            p *= x[i]
            q /= 1.0 + p * p
        return p + q

    check(fun, X)


def test_powers_and_remainders_in_place() -> None:
    def fun(x: Any) -> Any:
        u = x * x + 1.0
        for _ in range(3):
            u **= 1.2
            u -= 0.3 * u
        return np.sum(u)

    check(fun, X)


def test_the_same_array_on_both_sides() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for _ in range(3):
            u += u
            u *= u
            u -= 0.5 * u * x
        return np.sum(u)

    check(fun, 0.5 * X)


def test_overlapping_source_and_target() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for _ in range(3):
            u[1:] = u[:-1] * x[1:]
            u[:-1] *= u[1:]
        return np.sum(u * u)

    check(fun, X)


def test_a_product_through_a_view() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        tail = u[2:]
        for i in range(3):
            tail *= u[i]
        return np.sum(u)

    check(fun, X)


# --- the loop's variable as an index -------------------------------------------------------------


def test_the_variable_of_the_loop_as_an_index() -> None:
    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(5):
            total = total + np.sin(x[i]) * x[-i - 1] * (i + 1)
        return total

    check(fun, X)


def test_an_index_computed_from_the_variables_of_two_loops() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(3):
            for j in range(i, 5):
                u[(2 * i + j) % 5] += 0.1 * u[j] * u[i]
        return np.sum(u**2)

    check(fun, X)


def test_one_element_written_by_many_steps() -> None:
    """The last write wins; the others have no derivative."""

    def fun(x: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(5):
            y[i // 2] = x[i] ** 2
        return y[0] + 10 * y[1] + 100 * y[2]

    check(fun, X)


def test_repeated_indices_add_up_only_where_numpy_adds() -> None:
    places = np.array([0, 1, 1, 3, 0])

    def buffered(x: Any) -> Any:
        y = np.zeros_like(x)
        for _ in range(2):
            y[places] += x
        return np.sum(y * y)

    def unbuffered(x: Any) -> Any:
        y = np.zeros_like(x)
        for _ in range(2):
            np.add.at(y, places, x * x)
        return np.sum(y * y)

    check(buffered, X)
    check(unbuffered, X)


def test_the_variable_of_a_loop_that_counts_down() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(3, -1, -1):
            u[i] = u[i] * u[i + 1] + i * u[i]
        return u[0]

    check(fun, X)


def test_an_index_out_of_range_is_an_error_not_the_nearest_element() -> None:
    def fun(x: Any, stride: Any) -> Any:
        total = 0.0
        for i in range(4):
            total = total + x[i * stride] ** 2
        return total

    gradient = ckad.value_and_grad(fun)
    np.testing.assert_allclose(gradient(X, np.array(1))[0], fun(X, 1))
    with pytest.raises(TracedIndexError, match="out of"):
        gradient(X, np.array(2))


def test_a_float_as_an_index_is_an_error() -> None:
    def fun(x: Any, place: Any) -> Any:
        total = 0.0
        for i in range(5):
            total = total + x[i * place]
        return total

    np.testing.assert_array_equal(ckad.grad(fun)(X, np.array(1)), np.ones(5))
    with pytest.raises(IndexError, match=r"test_silent_failures\.py:\d+.*integers"):
        ckad.grad(fun)(X, 1.0)


def test_an_array_does_not_fit_into_an_element() -> None:
    def fun(x: Any) -> Any:
        y = np.zeros(5)
        for i in range(5):
            y[i] = np.sin(x)
        return np.sum(y)

    with pytest.raises(ValueError, match=r"test_silent_failures\.py:\d+.*shape"):
        ckad.grad(fun)(X)


# --- while: its last step, its length ------------------------------------------------------------


def test_the_last_step_of_a_while() -> None:
    def fun(x: Any) -> Any:
        while abs(x) < 10.0:
            x = x * x + 0.5
        return x

    for start in (0.3, 1.1, 2.9, 3.2, 11.0):
        check(fun, start)


def test_a_while_that_never_runs() -> None:
    def fun(x: Any) -> Any:
        y = 3.0 * x
        while y > 100.0:
            y = 0.5 * y
        return y

    check(fun, 2.0)


def test_a_while_that_ends_with_break() -> None:
    def fun(x: Any) -> Any:
        n = 0
        y = x
        while True:
            y = 1.5 * y + 0.1 * x
            n += 1
            if abs(y) > 20.0:
                break
            y = y - 0.05
        return y * n

    for start in (0.3, 1.7, 25.0):
        check(fun, start)


def test_every_call_of_a_while_has_its_own_length() -> None:
    def fun(x: Any) -> Any:
        y = np.sum(x)
        steps = 0.0
        while abs(y) < 50.0:
            y = y + y * y * 0.1 + 0.5
            steps = steps + 1.0
        return y * steps + x[0]

    gradient = ckad.value_and_grad(fun)
    for shift in (0.0, 3.0, 7.5, 0.5, 40.0, 0.0):
        check(fun, X + shift, gradient=gradient)


def test_the_state_before_the_condition_failed_is_not_the_result() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        norm = 100.0
        while norm > 0.5:
            u *= 0.7
            u[1:] += 0.05 * u[:-1]
            norm = np.sqrt(np.sum(u * u))
        return np.sum(u**3) * norm

    check(fun, X + 2.0)


# --- branches are taken anew at every call -------------------------------------------------------


def test_the_other_side_of_a_branch_at_the_second_call() -> None:
    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(5):
            if x[i] > 0:
                total = total + x[i] ** 2
            else:
                total = total - 3.0 * x[i]
        return total

    def smooth(x: Any) -> Any:
        return np.sum(np.where(x.real > 0, x**2, -3.0 * x))

    gradient = ckad.value_and_grad(fun)
    for point in (X, -X, X - 1.0, np.abs(X)):
        np.testing.assert_allclose(gradient(point)[1], complex_step(smooth, point), rtol=TOLERANCE)


def test_an_early_return_taken_at_one_call_only() -> None:
    def fun(x: Any) -> Any:
        s = x
        for i in range(10):
            s = s * 1.5
            if abs(s) > 20.0:
                return s * (i + 1)
        return -s

    gradient = ckad.value_and_grad(fun)
    for start in (0.1, 1.0, 5.0, 0.1):
        check(fun, start, gradient=gradient)


def test_a_branch_that_is_not_taken_poisons_nothing() -> None:
    """The root's derivative at zero is infinite; nothing of it may reach the gradient."""

    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(3):
            total = total + (np.sqrt(x[i]) if x[i] > 0 else 2.0 * x[i])
        return total

    value, gradient = ckad.value_and_grad(fun)(np.array([4.0, 0.0, -1.0]))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, [0.25, 2.0, 2.0])


def test_a_function_that_asks_for_the_type_of_a_value() -> None:
    """Traced values are what NumPy's would be: the way through the function is the same."""

    def fun(x: Any) -> Any:
        total = 0.0
        if isinstance(x, np.ndarray) and type(x) is np.ndarray and not np.isscalar(x):
            total = np.sum(x**3)
        for i in range(5):
            y = x[i]
            if isinstance(y, (float, complex)) and np.isscalar(y) and not isinstance(y, int):
                total = total + y * i
            if not isinstance(i, int):
                total = total * 10.0
        return total

    check(fun, X)


def test_keys_and_text_made_of_the_variable_of_a_loop() -> None:
    """They are what they are without ckad; a loop that needs them is written out."""
    weights = {0: 1.0, 3: 2.0, (1, 2): 4.0, "k4": 8.0}

    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(5):
            total = total + weights.get(i, 0.5) * x[i] ** 2
            total = total + weights.get((i, i + 1), 0.25) * x[i]
            if str(i) == "3" or f"k{i}" in weights or "{}-{:d}".format("n", i) == "n-1":
                total = total * 2.0
        return total

    check(fun, X)


def test_keys_and_text_made_of_traced_values_are_refused() -> None:
    def key(x: Any) -> Any:
        return {0.9: 2.0}.get(x[0], 3.0) * x[1]

    def text(x: Any) -> Any:
        return x[1] if f"{x[0]:.1f}" == "0.9" else x[2]

    def other_text(x: Any) -> Any:
        return x[1] if str(x[0]) + "" in ("0.9", "1.0") else x[2]

    for fun in (key, text, other_text):
        with pytest.raises(ConcreteValueError, match=r"test_silent_failures\.py:\d+"):
            ckad.grad(fun)(X)


# --- a second control after the first ------------------------------------------------------------


def test_a_second_argument_after_the_first() -> None:
    def fun(x: Any, rate: Any) -> Any:
        u = x.copy()
        for _ in range(20):
            u += rate * np.sin(u) * x
        return np.sum(u * u)

    gradient = ckad.value_and_grad(fun, memory="8 KiB")
    for x, rate in ((X, 0.1), (2 * X, 0.1), (X, 0.3), (X, 0.1)):
        check(fun, x, rate, gradient=gradient)


def test_an_array_of_the_closure_changed_between_calls() -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(5):
            total = total + weights[i] * x[i] ** 2
        return total

    gradient = ckad.value_and_grad(fun)
    check(fun, X, gradient=gradient)
    weights[1:4] = -7.0
    check(fun, X, gradient=gradient)


def test_a_number_of_the_closure_changed_between_calls() -> None:
    power, steps = 2, 3

    def fun(x: Any) -> Any:
        for _ in range(steps):
            x = x**power * 0.5
        return np.sum(x)

    gradient = ckad.value_and_grad(fun)
    check(fun, X, gradient=gradient)
    power, steps = 3, 2
    check(fun, X, gradient=gradient)


def test_a_list_of_the_closure_that_grew() -> None:
    layers = [0.5, 1.5]

    def fun(x: Any) -> Any:
        for layer in layers:
            x = np.sin(layer * x)
        return np.sum(x)

    gradient = ckad.value_and_grad(fun)
    check(fun, X, gradient=gradient)
    layers.append(2.5)
    check(fun, X, gradient=gradient)


def test_a_helper_that_was_replaced() -> None:
    def square(x: Any) -> Any:
        return x * x

    def cube(x: Any) -> Any:
        return x * x * x

    power = square

    def fun(x: Any) -> Any:
        for _ in range(2):
            x = power(x) + 0.1
        return np.sum(x)

    gradient = ckad.value_and_grad(fun)
    check(fun, X, gradient=gradient)
    power = cube
    check(fun, X, gradient=gradient)


def test_two_pullbacks_of_one_run() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(1, 5):
            u[i] *= u[i - 1]
        return u

    _, pullback = ckad.vjp(fun, X)
    jacobian = np.array([complex_step(lambda x, k=k: fun(x)[k], X) for k in range(5)])
    for k in (0, 4, 2, 4):
        np.testing.assert_allclose(pullback(np.eye(5)[k])[0], jacobian[k], rtol=TOLERANCE)


# --- an aborted reverse sweep, then again --------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_an_aborted_reverse_sweep_then_again(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(40):
            for j in range(1, 5):
                u[j] *= 0.9 + 0.1 * np.sin(u[j - 1])
            u[0] = u[4] + 0.01 * i
        return np.sum(u * u)

    gradient = ckad.value_and_grad(fun, schedule="revolve")
    expected = ckad.grad(fun)(X)
    call, tape, _ = gradient.prepare((X,), {})
    program = compiled(tape, gradient.options)

    def abort(done: int) -> None:
        if done >= share * program.total_steps:
            raise KeyboardInterrupt

    monkeypatch.setattr(vm.machine, "SLICE", 50)
    for fuel in ("FIRST_FUEL", "MOST_FUEL"):
        monkeypatch.setattr(native.running.machine, fuel, 50)
    with pytest.raises(KeyboardInterrupt):
        program(call.arguments.arrays, abort)
    assert gradient(X)[1].tobytes() == expected.tobytes()
    check(fun, X, gradient=gradient)


# --- what has no derivative says so --------------------------------------------------------------


def test_an_integer_buffer_does_not_swallow_the_derivative() -> None:
    """NumPy drops the fraction of what is written: the derivative of the write is zero."""

    def fun(x: Any) -> Any:
        y = np.zeros(5, dtype=np.int64)
        for i in range(5):
            y[i] = 10 * x[i]
        return np.sum(y * x)

    value, gradient = ckad.value_and_grad(fun)(X)
    np.testing.assert_allclose(value, fun(X), rtol=TOLERANCE)
    np.testing.assert_allclose(gradient, np.trunc(10 * X), rtol=TOLERANCE)


def test_an_array_of_the_closure_that_is_written() -> None:
    """Refused, and left alone."""
    log = np.zeros(5)

    def fun(x: Any) -> Any:
        for i in range(5):
            log[i] = x[i] ** 2
        return np.sum(log)

    with pytest.raises(UnrecordableError, match=r"test_silent_failures\.py:\d+"):
        ckad.value_and_grad(fun)(X)
    assert not log.any()
