"""What a loop carries from step to step: inferred rightly, or a named error.

Cases decide it: buffers that are swapped, names bound inside, views made before the loop, numbers
that become traced, shapes and dtypes that change, indices that are only read, ``break`` and early
``return``, lists that grow. Lengths are plain, or traced and known at run time only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, CarryError, CkadError, UnboundError

pytestmark = pytest.mark.usefixtures("engine")

Fun = Callable[..., Any]
X = np.array([0.9, -0.4, 1.3, 0.7, -1.1])
FEW = np.array(3)  # an array, so that a count of steps is known at run time only
NONE = np.array(0)
TOLERANCE = 1e-12


def complex_step(fun: Fun, x: np.ndarray, *rest: Any) -> np.ndarray:
    gradient = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-30j
        gradient[place] = np.imag(fun(moved if moved.ndim else moved[()], *rest)) / 1e-30
    return gradient


def check(fun: Fun, x: Any = X, *rest: Any) -> None:
    """Value and gradient by the first argument are NumPy's."""
    value, got = ckad.value_and_grad(fun)(x, *rest)
    want = complex_step(fun, np.asarray(x, float), *rest)
    np.testing.assert_allclose(value, fun(np.array(x), *rest), rtol=TOLERANCE)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE * np.abs(want).max())


def refused(fun: Fun, error: type[CkadError], *rest: Any, match: str = "") -> None:
    """An error of this very class, that names this file."""
    with pytest.raises(error, match=rf"test_loop_carry\.py:\d+.*{match}") as caught:
        ckad.value_and_grad(fun)(X, *rest)
    assert caught.type is error


# --- buffers swapped by name ---------------------------------------------------------------------


def test_two_buffers_swapped() -> None:
    def fun(u: Any) -> Any:
        un = np.zeros_like(u)
        for _ in range(5):
            un[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u, un = un, u
        return np.sum(u**2) + np.sum(un**3)

    check(fun)


def test_two_buffers_swapped_as_often_as_is_known_at_run_time() -> None:
    def fun(u: Any, n: Any) -> Any:
        un = 0.5 * u
        for _ in range(n):
            un[1:] = np.sin(u[:-1])
            u, un = un, u
        return np.sum(u**2) + 10 * np.sum(un**3)

    for n in (0, 1, 2, 3):
        check(fun, X, np.array(n))


def test_three_buffers_in_turn() -> None:
    def fun(x: Any) -> Any:
        a, b, c = x.copy(), 0.5 * x, np.zeros_like(x)
        for _ in range(4):
            c[1:-1] = 2 * b[1:-1] - a[1:-1] + 0.1 * (b[2:] - 2 * b[1:-1] + b[:-2])
            a, b, c = b, c, a
        return np.sum(a * b) + np.sum(c**2)

    check(fun)


def test_swapped_by_a_third_name() -> None:
    def fun(x: Any) -> Any:
        old, new = x.copy(), np.zeros_like(x)
        for _ in range(5):
            new[:] = 0.5 * old + 0.1 * np.roll(old, 1) ** 2
            spare = old
            old = new
            new = spare
        return np.sum(old) + np.sum(new**2)

    check(fun)


def test_buffers_swapped_under_a_condition() -> None:
    def fun(x: Any) -> Any:
        u, v = x.copy(), 2.0 * x
        for i in range(5):
            u[i] = u[i] ** 2 + v[i - 1]
            if x[i] > 0:
                u, v = v, u
        return np.sum(u) + 3.0 * np.sum(v**2)

    check(fun)


def test_swapped_while_another_name_of_a_buffer_lives() -> None:
    """The other name means one buffer before the swap and the other after it."""

    def fun(x: Any) -> Any:
        u, un = x.copy(), np.zeros_like(x)
        first = u
        for _ in range(3):
            un[:] = np.sin(u) + 0.1
            u, un = un, u
        return np.sum(u) + np.sum(first**2)

    check(fun)


def test_swapped_while_a_view_of_a_buffer_lives() -> None:
    def fun(x: Any) -> Any:
        u, un = x.copy(), np.zeros_like(x)
        inner = u[1:-1]
        for _ in range(3):
            un[:] = 0.5 * u
            un[1:-1] += inner**2
            u, un = un, u
        return np.sum(u * u)

    check(fun)


def test_views_swapped() -> None:
    def fun(x: Any) -> Any:
        both = np.zeros((2, 5), dtype=x.dtype)
        both[0] = x
        old, new = both[0], both[1]
        for _ in range(3):
            new[:] = np.cos(old) + 0.2 * old[::-1]
            old, new = new, old
        return np.sum(both[0] ** 2) + np.sum(both[1])

    check(fun)


# --- names first bound inside the body -----------------------------------------------------------


def test_a_name_bound_inside_and_read_after() -> None:
    def fun(x: Any) -> Any:
        for i in range(5):
            y = np.exp(x[i]) * x[0]
        return y * 2.0

    check(fun)


def test_a_name_bound_inside_a_loop_of_unknown_length() -> None:
    def fun(x: Any, n: Any) -> Any:
        for i in range(n):
            y = np.exp(x[i]) * x[0]
        return y * 2.0

    check(fun, X, FEW)


def test_a_name_bound_inside_a_loop_that_does_not_run() -> None:
    def known(x: Any) -> Any:
        for i in range(0):
            y = x[i]
        return y

    def unknown(x: Any, n: Any) -> Any:
        for i in range(n):
            y = np.exp(x[i])
        return y * 2.0

    with pytest.raises(UnboundLocalError, match="y"):
        ckad.grad(known)(X)
    with pytest.raises(UnboundError, match=r"test_loop_carry\.py:\d+.*variable"):
        ckad.grad(unknown)(X, NONE)


def test_a_name_bound_inside_a_while() -> None:
    def fun(x: Any) -> Any:
        s = x[0]
        while s < 10.0:
            step = 1.0 + x[2] * s
            s = s + step
        return s * step

    check(fun)
    with pytest.raises(UnboundError, match="step"):
        ckad.grad(fun)(X + 20.0)


def test_a_temporary_is_not_carried() -> None:
    """It has another shape in every step of another loop, and nobody reads it afterwards."""

    def fun(x: Any) -> Any:
        total = 0.0
        for _ in range(3):
            t = np.sin(x)
            total = total + t[0]
        for _ in range(2):
            t = np.outer(x, x)
            total = total + t[1, 2]
        return total

    check(fun)


def test_the_variable_of_the_loop_after_it() -> None:
    def fun(x: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n):
            total = total + x[i]
        return total * i + x[i]

    check(fun, X, 4)
    check(fun, X, FEW)


def test_a_name_deleted_in_the_body() -> None:
    def fun(x: Any) -> Any:
        for _ in range(3):
            t = np.sin(x)
            x = x + 0.5 * t
            del t
        return np.sum(x)

    check(fun)


# --- arrays written through other names ----------------------------------------------------------


def test_an_array_written_through_a_view_made_before_the_loop() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        inner = u[1:-1]
        for _ in range(4):
            inner *= 0.5
            inner += 0.1 * u[:-2] ** 2
        return np.sum(u**2)

    check(fun)


def test_an_array_read_through_a_view_made_before_the_loop() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        left, right = u[:-2], u[2:]
        for _ in range(4):
            u[1:-1] = 0.5 * (left + right) * u[1:-1]
        return np.sum(left) + np.sum(right**2)

    check(fun)


def test_two_names_of_one_array() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        v = u
        for i in range(4):
            u[i] = v[i + 1] ** 2
            v[i + 1] = 0.5 * u[i]
        return np.sum(v)

    check(fun)


def test_a_name_rebound_to_a_new_array_in_the_body() -> None:
    """After the first step the two names mean two arrays."""

    def fun(x: Any) -> Any:
        u = x.copy()
        v = u
        for _ in range(3):
            u = u * 0.5
            u[0] += 1.0
            v[1] += u[1]
        return np.sum(u) + np.sum(v**2)

    check(fun)


def test_an_array_in_a_container() -> None:
    def fun(x: Any) -> Any:
        state = {"u": x.copy(), "pair": [x * 2, 0.0]}
        for i in range(4):
            state["u"][i] += state["pair"][0][i + 1] ** 2
            state["pair"][1] = state["pair"][1] + state["u"][i]
            state["pair"][0] = 0.5 * state["pair"][0]
        return np.sum(state["u"]) * state["pair"][1]

    check(fun)


def test_an_array_of_the_closure_written_by_an_inner_function() -> None:
    def fun(x: Any) -> Any:
        seen = np.zeros_like(x)

        def note(i: Any, v: Any) -> None:
            seen[i] = v

        for i in range(5):
            note(i, x[i] ** 2)
            x = 0.9 * x
        return np.sum(seen * x)

    check(fun)


def test_a_number_of_the_closure_rebound_by_an_inner_function() -> None:
    def fun(x: Any) -> Any:
        total = 0.0

        def add(v: Any) -> None:
            nonlocal total
            total = total + v * v

        for i in range(5):
            add(x[i])
        return total * x[0]

    check(fun)


def test_an_argument_written_and_rebound() -> None:
    def fun(x: Any) -> Any:
        for _ in range(3):
            x[0] = x[1] ** 2
            x = np.roll(x, 1)
        return np.sum(x * np.arange(5.0))

    check(fun)


# --- Python numbers that become traced -----------------------------------------------------------


def test_a_float_that_becomes_traced_in_the_first_step() -> None:
    def fun(x: Any) -> Any:
        s = 0.0
        for i in range(5):
            s = s * 0.5 + x[i]
        return s**2

    check(fun)


def test_an_integer_that_becomes_a_float() -> None:
    def fun(x: Any) -> Any:
        s = 0
        p = 1
        for i in range(5):
            s += x[i] ** 2
            p *= 1.5
        return s * p

    check(fun)


def test_a_float_that_becomes_an_array() -> None:
    def fun(x: Any) -> Any:
        s = 0.0
        for i in range(5):
            s = s + x * (i + 1)
        return np.sum(s**2)

    check(fun)


def test_a_boolean_flag() -> None:
    def fun(x: Any) -> Any:
        seen = False
        total = 0.0
        for i in range(5):
            if x[i] < 0:
                seen = True
            total = total + (2.0 * x[i] if seen else x[i])
        return total

    check(fun)


def test_a_count_under_a_condition() -> None:
    def fun(x: Any) -> Any:
        count = 0
        for i in range(5):
            if x[i] > 0:
                count += 1
        return np.sum(x) / count

    check(fun)


def test_none_before_the_first_step() -> None:
    def fun(x: Any) -> Any:
        best = None
        for i in range(5):
            if best is None or x[i] > best:
                best = x[i]
        return best * 3.0

    check(fun)


def test_single_precision_stays_single() -> None:
    def fun(x: Any) -> Any:
        s = np.float32(0.0)
        for i in range(5):
            s = s * np.float32(0.5) + x[i] * 2.0
        return s

    x = X.astype(np.float32)
    value, gradient = ckad.value_and_grad(fun)(x)
    assert value.dtype == gradient.dtype == np.float32
    np.testing.assert_allclose(value, fun(x), rtol=1e-6)
    np.testing.assert_allclose(gradient, 2.0 * 0.5 ** np.arange(4.0, -1.0, -1.0), rtol=1e-6)


# --- shapes and dtypes that change ---------------------------------------------------------------


def growing(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = np.concatenate([x, x[:1] ** 2])
    return np.sum(x)


def test_a_shape_that_changes() -> None:
    """The loop is short enough to be unrolled."""

    def fun(x: Any) -> Any:
        return growing(x, 3)

    check(fun)


def test_a_shape_that_changes_as_often_as_is_known_at_run_time() -> None:
    value, gradient = ckad.value_and_grad(growing)(X, FEW)
    np.testing.assert_allclose(value, growing(X, 3), rtol=TOLERANCE)
    np.testing.assert_allclose(gradient, complex_step(lambda x: growing(x, 3), X), rtol=TOLERANCE)


def test_a_dtype_that_changes() -> None:
    """float32 that a float64 array widens in the first step, as in NumPy."""

    def fun(x: Any) -> Any:
        u = np.zeros(5, dtype=np.float32)
        for _ in range(3):
            u = u * 0.5 + x
        return np.sum(u * u)

    def plain(x: Any) -> Any:
        return np.sum((1.75 * x) ** 2)

    value, gradient = ckad.value_and_grad(fun)(X)
    np.testing.assert_allclose(value, plain(X), rtol=TOLERANCE)
    np.testing.assert_allclose(gradient, complex_step(plain, X), rtol=TOLERANCE)


def test_a_structure_that_changes() -> None:
    def fun(x: Any, n: Any) -> Any:
        state: Any = x
        for _ in range(n):
            state = (state, x)
        return np.sum(state[1])

    refused(fun, CarryError, FEW)


# --- what the body only reads --------------------------------------------------------------------


def test_a_body_that_only_reads_its_index() -> None:
    def fun(x: Any) -> Any:
        last = 0
        for i in range(5):
            last = i
        return x[last] * (last + 1) + np.sum(x)

    check(fun)


def test_a_body_that_does_nothing() -> None:
    def fun(x: Any, n: Any) -> Any:
        for _ in range(n):
            pass
        return np.sum(x * x)

    check(fun, X, 5)
    check(fun, X, FEW)


def test_an_index_that_weighs() -> None:
    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(2, 11, 3):
            total = total + i * x[0] ** i
        return total

    check(fun)


def test_the_variable_of_the_loop_rebound_in_the_body() -> None:
    """The next step has its own number, whatever the body did to the name."""

    def fun(x: Any) -> Any:
        total = 0.0
        for i in range(4):
            total = total + x[i]
            i = i + 1
            total = total * x[i]
        return total

    check(fun)


# --- break, continue, return ---------------------------------------------------------------------


def test_break_keeps_what_was_done_before_it() -> None:
    def fun(x: Any, limit: Any) -> Any:
        s = 0.0
        n = 0
        for i in range(5):
            s = s + x[i] ** 2
            if s > limit:
                break
            n = n + 1
            s = s * 1.1
        return s * (n + 1)

    for limit in (0.0, 1.0, 3.0, 100.0):
        check(fun, X, limit)


def test_continue_skips_the_rest() -> None:
    def fun(x: Any) -> Any:
        s = 0.0
        for i in range(5):
            s = s + x[i]
            if x[i] < 0:
                continue
            s = s * x[i]
        return s

    check(fun)


def test_an_early_return_from_the_loop() -> None:
    def fun(x: Any, limit: Any) -> Any:
        s = x[0]
        for i in range(1, 5):
            s = s + x[i] * s
            if s < limit:
                return s * i
        return s**2

    for limit in (-10.0, 0.3, 5.0):
        check(fun, X, limit)


def test_a_return_from_two_loops() -> None:
    def fun(x: Any, limit: Any) -> Any:
        s = 0.0
        for i in range(5):
            for j in range(i, 5):
                s = s + x[i] * x[j]
                if s > limit:
                    return s * x[j]
        return s

    for limit in (0.5, 2.0, 100.0):
        check(fun, X, limit)


def test_else_of_a_loop() -> None:
    def fun(x: Any, limit: Any) -> Any:
        s = 0.0
        for i in range(5):
            s = s + x[i] ** 2
            if s > limit:
                break
        else:
            s = -s
        return s

    for limit in (1.0, 100.0):
        check(fun, X, limit)


def test_an_array_written_before_a_break() -> None:
    def fun(x: Any) -> Any:
        u = x.copy()
        for i in range(5):
            u[i] = u[i] ** 2
            if u[i] > 1.5:
                break
            u[i - 1] += 0.5 * u[i]
        return np.sum(u * np.arange(1.0, 6.0))

    check(fun)


# --- lists ---------------------------------------------------------------------------------------


def test_a_list_appended_to() -> None:
    def fun(x: Any) -> Any:
        history = []
        for i in range(4):
            x = np.sin(x) + 0.1 * i
            history.append(x[i])
        return sum(history) + history[-1] * history[0]

    check(fun)


def test_a_list_of_arrays_made_into_one() -> None:
    def fun(x: Any) -> Any:
        rows = [x]
        for _ in range(4):
            rows.append(0.5 * rows[-1] ** 2)
        return np.sum(np.array(rows)[1:-1] ** 2) + np.sum(np.stack(rows)[:, 2])

    check(fun)


def test_a_list_appended_to_as_often_as_is_known_at_run_time() -> None:
    def fun(x: Any, n: Any) -> Any:
        history = []
        for i in range(n):
            history.append(x[i] ** 2)
        return history[0] + history[-1]

    x = np.linspace(0.5, 1.0, 6)
    value, gradient = ckad.value_and_grad(fun)(x, np.array(4))
    assert value == fun(x, 4)
    np.testing.assert_array_equal(gradient, 2 * x * [1, 0, 0, 1, 0, 0])


def test_a_list_appended_to_under_a_condition() -> None:
    def fun(x: Any) -> Any:
        kept = []
        for i in range(5):
            if x[i] > 0:
                kept.append(x[i] ** 2)
        return sum(kept)

    check(fun)


def test_items_of_a_list_rebound() -> None:
    def fun(x: Any) -> Any:
        s = [0.0] * 5
        for i in range(5):
            s[i] = x[i] * (s[i - 1] if i > 0 else 1.0)
        return s[4] + s[2]

    check(fun)


def test_a_list_popped() -> None:
    def fun(x: Any) -> Any:
        stack = [x, 2 * x]
        for _ in range(3):
            top = stack.pop()
            stack.append(np.sin(top))
        return np.sum(stack[0] * stack[1])

    check(fun)


# --- names that some steps leave alone -----------------------------------------------------------


def by_while(u, bound):
    x = bound
    for i in range(6):
        n = 0
        while n < 3 and u[1] < 1.0:
            n += 1
            x = (1.0 + i) * u
        u[1] = 1.9
    return x @ np.arange(5.0)


def by_for(u, bound):
    x = bound
    for i in range(6):
        for j in range(int(np.real(u[1]) < 1.0)):
            x = (1.0 + i + j) * u
        u[1] = 1.9
    return x @ np.arange(5.0)


def by_break(u, bound):
    x = bound
    for i in range(6):
        for _ in range(6):
            if u[1] >= 1.0:
                break
            x = (1.0 + i) * u
        u[1] = 1.9
    return x @ np.arange(5.0)


def two_deep(u, bound):
    x = bound
    for i in range(6):
        for _ in range(5):
            n = 0
            while n < 2 and u[1] < 1.0:
                n += 1
                x = (1.0 + i) * u
            u[1] = 1.9
    return x @ np.arange(5.0)


class State:
    pass


def of_an_attribute(u, bound):
    state = State()
    state.x = bound
    for i in range(6):
        n = 0
        while n < 3 and u[1] < 1.0:
            n += 1
            state.x = (1.0 + i) * u
        u[1] = 1.9
    return state.x @ np.arange(5.0)


def in_a_tuple(u, bound):
    x = (bound, 2.0 * bound)
    for i in range(6):
        n = 0
        while n < 3 and u[1] < 1.0:
            n += 1
            x = ((1.0 + i) * u, x[0])
        u[1] = 1.9
    return x[0] @ np.arange(5.0) + np.sum(x[1])


LEFT_ALONE = [by_while, by_for, by_break, two_deep, of_an_attribute, in_a_tuple]


@pytest.mark.parametrize("fun", LEFT_ALONE)
def test_an_inner_loop_without_a_step_leaves_what_an_earlier_turn_bound(fun: Fun) -> None:
    check(lambda u: fun(1.0 * u, 3.0 * u[::-1]))


def first_bound_by_while(u):
    for i in range(6):
        n = 0
        while n < 3 and u[1] < 1.0:
            n += 1
            x = (1.0 + i) * u
        u[1] = 1.9
    return x @ np.arange(5.0)


def first_bound_by_branch(u):
    for i in range(6):
        if u[1] < 1.0:
            x = (1.0 + i) * u
        u[1] = 1.9
    return x @ np.arange(5.0)


def first_bound_and_read_by_branch(u):
    total = 0.0
    for i in range(6):
        if u[1] < 1.0:
            x = (1.0 + i) * u
            count = i
        total = total + x[0] * count
        u[1] = 1.9
    return total


FIRST_BOUND = [first_bound_by_while, first_bound_by_branch, first_bound_and_read_by_branch]


@pytest.mark.parametrize("fun", FIRST_BOUND)
def test_a_name_that_only_an_early_step_binds(fun: Fun) -> None:
    check(lambda u: fun(1.0 * u))


@pytest.mark.parametrize("fun", FIRST_BOUND)
def test_a_name_that_no_step_binds(fun: Fun) -> None:
    with pytest.raises(ckad.errors.UnboundError, match="nothing has bound"):
        ckad.grad(lambda u: fun(1.0 * u))(X + 3.0)


# --- tests that change what they look at ---------------------------------------------------------


def damped(x):
    x[0] *= 0.6
    return 1.0


def asked_by_a_call(u):
    v = 0.5 * u[::-1]
    n = 0
    while n < 4 and damped(u) > v[1]:
        n += 1
        u, v = v, u
    return np.sum(u * np.arange(5.0)) + np.sum(v)


def asked_and_peeled(u):
    n, v = 0, 1
    while damped(u) > 0.1 * n and n < 12:
        n += 1
        v = 0.5 * v * u
    return np.sum(u * np.arange(5.0)) + np.sum(v)


def asked_and_left(u):
    n = 0
    while damped(u) > 0.05 * n:
        n += 1
        if u[0] ** 2 < 1e-4:
            break
    return np.sum(u * np.arange(5.0)) + n


@pytest.mark.parametrize("fun", [asked_by_a_call, asked_and_peeled, asked_and_left])
def test_a_test_is_made_once_for_each_step(fun: Fun) -> None:
    check(lambda u: fun(1.0 * u))


def test_a_number_that_each_step_binds_is_a_number_after_the_loop() -> None:
    def fun(u):
        for _ in range(7):
            first = 1
            u = 0.9 * u
        return np.sum(u[first : first + 1]) * first

    check(lambda u: fun(1.0 * u))


def test_a_part_that_a_branch_of_cond_writes_is_refused() -> None:
    def fun(u):
        rows, s = np.ones((3, 5)) * u, 0.0
        for row in rows:
            s = s + ckad.cond(
                s < 9.0, lambda r, row=row: halved(rows, row) if row[1] < r else 1.0, lambda r: r, s
            )
        return s

    def halved(rows, row):
        rows[1:] *= 0.5
        return row[0]

    with pytest.raises(AliasError, match="recorded by itself"):
        ckad.grad(lambda u: fun(1.0 * u))(X)


# --- loops over what only Python runs over -------------------------------------------------------


def over_a_dict(u):
    s = 0.0
    for name, weight in {"a": 1.0, "bb": 2.0, "ccc": 3.0}.items():
        s = s + weight * len(name) * u[0]
        if s > 2.0:
            break
    return s


def over_words_with_continue(u):
    s, last = 0.0, u[1]
    for name in ("a", "bb", "ccc", "dd"):
        if s * len(name) > 2.0:
            continue
        s = s + len(name) * u[0]
        last = s * u[2]
    return s + last


def over_words_with_return(u):
    s = 0.0
    for name in ["a", "bb", "ccc"]:
        s = s + len(name) * u[0]
        if s > 1.0:
            return 3.0 * s
    return s


@pytest.mark.parametrize("fun", [over_a_dict, over_words_with_continue, over_words_with_return])
@pytest.mark.parametrize("first", [0.1, 0.45, 0.9])
def test_a_loop_over_words_that_ends_early(fun: Fun, first: float) -> None:
    check(lambda u: fun(1.0 * u), np.array([first, 0.3, -0.7]))


@pytest.mark.parametrize("first", [0.1, 0.45, 0.9])
def test_a_loop_over_a_generator_that_ends_early(first: float) -> None:
    def fun(u):
        s = 0.0
        for name in (name for name in ("a", "bb")):
            s = s + len(name) * u[0]
            if s > 1.0:
                break
        return s

    check(lambda u: fun(1.0 * u), np.array([first, 0.3, -0.7]))


def test_a_generator_of_which_some_items_are_left_is_refused() -> None:
    def fun(u):
        s = 0.0
        names = (name for name in ("a", "bb"))
        for name in names:
            s = s + len(name) * u[0]
            if s > 1.0:
                break
        return s + len(list(names))

    with pytest.raises(CkadError, match="a loop over a generator ends early"):
        ckad.grad(fun)(X)


def read_in_the_else_of_for(u):
    for _ in range(6):
        for k in range(2):
            if u[k] > -0.2:
                u = u * 0.9
    else:
        u = u + np.sum(u[k:])
    return np.sum(u)


def read_in_the_else_of_while(u):
    k = 0
    while k < 6:
        last = u * 1.5
        u = u * 0.9 + 0.01 * np.sum(last)
        k += 1
    else:
        u = u + last
    return np.sum(u * u)


@pytest.mark.parametrize("function", [read_in_the_else_of_for, read_in_the_else_of_while])
def test_the_else_of_a_loop_reads_what_its_steps_bind(function):
    x = np.array([0.3, -0.4])
    np.testing.assert_allclose(ckad.jit(function)(x), function(x.copy()), rtol=1e-14)
    ckad.testing.check_grads(function, (x,))


class Filter:
    """What it was given last is an array, or one of None; nobody looks at it while it runs."""

    def __init__(self, x):
        self.x, self.last, self.state = x, np.array([[None]]), "new"

    def update(self, seen):
        if seen is None:
            self.last, self.state = np.array([[None]]), "missed"
            return
        self.last, self.state = np.array([[seen]]), ("seen", seen)
        self.x = self.x + 0.1 * (seen - self.x)


def filtered(u):
    one = Filter(u)
    for k in range(21):
        one.update(None if k % 3 == 1 else u * k)
    return one


def kept_by_an_object(u):
    return filtered(u).x


def kept_by_a_name(u):
    found: Any = None
    for k in range(20):
        if k % 3 == 1:
            found = "none"
        elif k > 4:
            found = np.ones(3) * u
        u = u + 0.01 * u * k
    del found
    return u


def read_after_all(u):
    one = filtered(u)
    return one.x + one.last[0, 0]


def read_of_a_copy(u):
    one = filtered(u)
    return one.x + copy.deepcopy(one).last[0, 0]


def read_by_dict(u):
    one = filtered(u)
    return one.x + (0.0 if vars(one)["last"] is None else vars(one)["last"][0, 0])


def read_by_the_next_loop(u):
    one = Filter(u)
    s = 0.0
    for j in range(4):
        if j > 0:
            s = s + one.last[0, 0] * j
        for k in range(21):
            one.update(None if k % 3 == 1 else u * k)
    return s


def read_in_between(u):
    found: Any = None
    for k in range(20):
        if k % 3 == 1:
            found = "none"
        elif k > 4:
            found = np.ones(3) * u
        if found is None:
            u = 0.9 * u
        u = u + 0.01 * u * k
    return u


@pytest.mark.parametrize("function", [kept_by_an_object, kept_by_a_name])
def test_what_no_step_reads_may_be_of_another_kind_in_each(function):
    assert ckad.jit(function)(1.2) == pytest.approx(function(1.2), rel=1e-14)
    ckad.testing.check_grads(function, (1.2,))
    assert len(ckad.trace(function)(1.2).rows) < 20  # one step is recorded, for all


@pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")
@pytest.mark.parametrize(
    "function",
    [read_after_all, read_of_a_copy, read_by_dict, read_by_the_next_loop, read_in_between],
)
def test_what_is_read_is_as_in_python(function):
    assert ckad.jit(function)(1.2) == pytest.approx(function(1.2), rel=1e-14)
    ckad.testing.check_grads(function, (1.2,))


def added_up_before_it_is_an_array(x):
    p, total = 0.5, 0.0
    for k in range(9):
        total += np.sum(2.0 * np.sin(p) + 1.0)
        p = 0.9 * p + k * x
    return total


def added_up_in_a_helper(x):
    def size(p):
        return np.linalg.norm(p)

    p, total, k = 2.0, 0.0, 0
    while k < 7:
        k += 1
        total += size(p)
        p = p * 0.5 + x
    return total


def nothing_added_up(x):
    p, total, t = 0.0, 0.0, 0.0
    while t < 3.0 + x[0]:
        t += 0.5
        total += np.sum(p)
        p = p + x
    return total


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize(
    "function", [added_up_before_it_is_an_array, added_up_in_a_helper, nothing_added_up]
)
def test_numbers_that_become_arrays_are_added_up_as_numbers(function, engine):
    at = np.array([0.31, 0.62, 0.95])
    value, gradient = ckad.value_and_grad(function, engine=engine)(at)
    assert value == pytest.approx(function(at), rel=1e-13)
    differences = [(function(at + d) - function(at - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    assert gradient == pytest.approx(differences, rel=1e-6)


def test_where_the_first_step_is_not_known_to_be_made_they_are_refused():
    def program(x):
        p, total = 0.5, 0.0
        while total < 5.0 + x[0]:
            total += 1.0 + np.sum(p)
            p = p * 0.5 + x
        return total

    with pytest.raises(CarryError, match="an array or a number"):
        ckad.grad(program)(np.array([0.31, 0.62, 0.95]))
