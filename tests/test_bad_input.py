"""Bad input gets a named error with the user's file and line and the remedy.

Every function under ``@bad`` does one thing wrong, at the line that ends in ``# here``.
"""

from __future__ import annotations

import inspect
import math
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import ckad
from ckad.errors import (
    AliasError,
    AsRunWarning,
    BudgetError,
    CarryError,
    CkadError,
    ConcreteValueError,
    DifferentiationError,
    DtypeError,
    EngineError,
    LengthError,
    NonFiniteError,
    ScheduleError,
    TapeError,
    TracedIndexError,
    TraceError,
    UnrecordableError,
    UnsupportedFunctionError,
)

pytestmark = pytest.mark.usefixtures("engine")

X = np.linspace(0.1, 1.0, 5)
FILE = Path(__file__).name
BUFFER = np.zeros(5)
BAD: dict[str, tuple[Callable[[], Any], type[CkadError], str]] = {}


def bad(error: type[CkadError], message: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that has to raise ``error`` with ``message``, a pattern."""

    def register(wrong: Callable[[], Any]) -> Callable[[], Any]:
        BAD[wrong.__name__] = wrong, error, message
        return wrong

    return register


def marked_line(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))


# --- what cannot be recorded -------------------------------------------------------------------


@bad(
    UnsupportedFunctionError,
    r"no rule for numpy\.packbits\. Write it with .*docs/numpy\.md",
)
def unknown_function() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.packbits(x))  # here

    ckad.grad(f)(X)


@bad(UnsupportedFunctionError, r"no rule for np\.gcd\. Write it with")
def unknown_ufunc() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.gcd(x.astype(int), 4) * x)  # here

    ckad.grad(f)(X)


@bad(ConcreteValueError, "asks a traced value .* Python ints")
def range_of_a_traced_value() -> None:
    def f(x: Any) -> Any:
        return sum(x[i] for i in range(np.argmax(x)))  # here

    ckad.grad(lambda x: np.sum(ckad.grad(f)(x)))(X)


@bad(TraceError, "returns a str; ckad can return arrays.* Return one of these")
def returns_text() -> None:
    ckad.jit(lambda x: "text")(X)  # here


# --- writes into plain arrays ------------------------------------------------------------------


@bad(UnrecordableError, r"an array that it did not get as an argument.* a = np\.array\(a\)")
def writes_an_element() -> None:
    def f(x: Any) -> Any:
        BUFFER[0] = x[0]  # here
        return np.sum(x)

    ckad.grad(f)(X)


@bad(UnrecordableError, r"an array that it did not get as an argument.* a = np\.array\(a\)")
def writes_a_slice() -> None:
    def f(x: Any) -> Any:
        BUFFER[:] = x  # here
        return np.sum(x)

    ckad.grad(f)(X)


@bad(UnrecordableError, r"an array that it did not get as an argument.* a = np\.array\(a\)")
def adds_in_place() -> None:
    def f(x: Any) -> Any:
        buffer = BUFFER
        buffer += x  # here
        return np.sum(buffer)

    ckad.grad(f)(X)


@bad(ConcreteValueError, r"written into a plain NumPy array.* np\.zeros_like")
def writes_by_out() -> None:
    def f(x: Any) -> Any:
        np.add(x, x, out=BUFFER)  # here
        return np.sum(BUFFER)

    ckad.grad(f)(X)


@bad(ConcreteValueError, r"written into a plain NumPy array.* np\.zeros_like")
def writes_by_copyto() -> None:
    def f(x: Any) -> Any:
        np.copyto(BUFFER, x)  # here
        return np.sum(BUFFER)

    ckad.grad(f)(X)


@bad(ConcreteValueError, r"written into a plain NumPy array.* np\.zeros_like")
def writes_by_add_at() -> None:
    def f(x: Any) -> Any:
        np.add.at(BUFFER, [0], x[0])  # here
        return np.sum(BUFFER)

    ckad.grad(f)(X)


@bad(AliasError, "recorded by itself, .* writes into an array from around it. Hand the array over")
def writes_a_captured_array() -> None:
    def f(x: Any) -> Any:
        y = 2 * x

        def side(u: Any) -> Any:
            y[0] = u[0]  # here
            return u

        ckad.cond(x[0] > 0.0, side, lambda u: u, x)
        return np.sum(y)

    ckad.grad(f)(X)


# --- carries and lengths -----------------------------------------------------------------------


@bad(CarryError, r"item 0 .* changes from f64\[5\] to f64\[6\].* Start the loop with")
def carry_changes_shape() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 3, lambda i, u: np.append(u, u[0]), x))  # here

    ckad.grad(f)(X)


@bad(CarryError, r"item 1 .* changes from i64\[\] to f64\[\].*0\.0 instead of 0")
def carry_changes_dtype() -> None:
    def f(x: Any) -> Any:
        return ckad.fori_loop(0, 3, lambda i, c: (c[0], c[1] + x[0]), (x, 0))[1]  # here

    ckad.grad(f)(X)


@bad(CarryError, r"starts as array and the body returns \(array, array\)\. Return what the body")
def carry_changes_structure() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 3, lambda i, u: (u, u), x))  # here

    ckad.grad(f)(X)


@bad(CarryError, r"starts as \{'u': array\} and the body returns \{'v': array\}")
def carry_changes_keys() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 3, lambda i, c: {"v": c["u"]}, {"u": x})["u"])  # here

    ckad.grad(f)(X)


@bad(CarryError, "starts as array and the body returns None")
def body_returns_nothing() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, 3, lambda i, u: None, x))  # here

    ckad.grad(f)(X)


@bad(CarryError, r"returned array; it has to return \(carry, y\), with None for y")
def step_returns_the_carry_alone() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.scan(lambda c, _: c, x, length=3)[0])  # here

    ckad.grad(f)(X)


@bad(LengthError, "length=-1 is negative; pass 0 or more")
def negative_length() -> None:
    ckad.scan(lambda c, _: (c, c), X, length=-1)  # here


@bad(LengthError, "length=-4 is negative")
def negative_length_while_tracing() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.scan(lambda c, _: (c, c), x, length=-4)[0])  # here

    ckad.grad(f)(X)


@bad(LengthError, "pass length=")
def missing_length() -> None:
    ckad.scan(lambda c, _: (c, c), X)  # here


@bad(LengthError, "xs of length 5 in a loop of length 3")
def contradicted_length() -> None:
    ckad.scan(lambda c, x: (c + x, c), 0.0, X, length=3)  # here


@bad(LengthError, "xs of length 4 in a loop of length 5; give all xs the same")
def xs_of_different_lengths() -> None:
    ckad.scan(lambda c, x: (c, c), 0.0, (X, X[1:]))  # here


@bad(LengthError, "xs holds a scalar.* Capture the scalar")
def scalar_xs() -> None:
    ckad.scan(lambda c, x: (c, c), 0.0, 3.0)  # here


@bad(LengthError, r"upper=2\.5 is a float; pass a Python int")
def float_bound() -> None:
    ckad.fori_loop(0, 2.5, lambda i, u: u, X)  # type: ignore[arg-type]  # here


@bad(ConcreteValueError, "upper is a traced value.* Python int")
def traced_bound() -> None:
    def f(x: Any) -> Any:
        return np.sum(ckad.fori_loop(0, np.argmax(x), lambda i, u: u, x))  # here

    ckad.grad(lambda x: np.sum(ckad.grad(f)(x)))(X)


# --- what has no derivative --------------------------------------------------------------------


@bad(DifferentiationError, r"returned float64 of shape \(5,\).*np\.sum, or use ckad\.vjp")
def array_output() -> None:
    ckad.grad(lambda x: 2 * x)(X)  # here


@bad(DifferentiationError, r"returned int64 of shape \(\); a gradient needs a float scalar")
def integer_output() -> None:
    ckad.grad(lambda x: np.argmax(x))(X)  # here


@bad(DifferentiationError, "holds int, which cannot .*2.0 instead of 2")
def integer_argument() -> None:
    ckad.grad(lambda x: x * 1.0)(3)  # here


@bad(DifferentiationError, "holds dtype int64, which cannot .*astype")
def integer_array() -> None:
    ckad.value_and_grad(lambda x: np.sum(x * 1.0))(np.arange(3))  # here


@bad(DifferentiationError, "holds dtype bool")
def boolean_array() -> None:
    ckad.value_and_grad(lambda x: np.sum(x * 1.0))(np.array([True]))  # here


@bad(DifferentiationError, "holds int, which cannot")
def integer_in_vjp() -> None:
    ckad.vjp(np.sin, 3)  # here


@bad(DifferentiationError, "primal 0 of .* holds int.* tangent is not zero")
def integer_in_jvp() -> None:
    ckad.jvp(lambda n: n * 2.0, (3,), (1.0,))  # here


@bad(DifferentiationError, "holds dtype int64")
def integer_in_hessian() -> None:
    ckad.hessian(lambda x: np.sum(x**2))(np.arange(3))  # here


@bad(DifferentiationError, r"returned \(array, array\).*\(scalar, aux\) with has_aux=True")
def tuple_output() -> None:
    ckad.grad(lambda x: (np.sum(x), x))(X)  # here


@bad(DifferentiationError, "returned None")
def no_output() -> None:
    ckad.grad(lambda x: None)(X)  # here


@bad(DifferentiationError, r"has to return \(scalar, aux\); it returned array")
def no_aux() -> None:
    ckad.grad(lambda x: np.sum(x), has_aux=True)(X)  # here


@bad(DifferentiationError, "holds no arrays.* Pass an array")
def empty_argument() -> None:
    ckad.grad(lambda x: 1.0)(())  # here


@bad(DifferentiationError, "argnums=3 names argument 3, but the call has 1 positional")
def argnums_too_large() -> None:
    ckad.grad(lambda x: np.sum(x), argnums=3)(X)  # here


@bad(DifferentiationError, "argnums=-2 names argument -2")
def argnums_too_small() -> None:
    ckad.grad(lambda x: np.sum(x), argnums=-2)(X)  # here


@bad(DifferentiationError, "argnums='x'; pass an int")
def argnums_is_text() -> None:
    ckad.grad(lambda x: np.sum(x), argnums="x")(X)  # type: ignore[arg-type]  # here


@bad(DifferentiationError, r"holds memoryview, .*\. Pass its numbers as an array, np\.asarray\(x\)")
def differentiated_by_a_buffer() -> None:
    ckad.grad(lambda x: np.sum(np.asarray(x)))(memoryview(X))  # here


@bad(DifferentiationError, "holds object, .* Pass its numbers alone, as arrays in a tuple, a dict")
def differentiated_by_an_object() -> None:
    ckad.grad(lambda x, owner: np.sum(x), (0, 1))(X, object())  # here


@bad(TraceError, "returns a generator; ckad can return arrays")
def generator_as_result() -> None:
    ckad.jit(lambda x: (item for item in x))(X)  # here


@bad(TraceError, "returns its argument as it is, a object; ckad can return arrays")
def object_as_argument() -> None:
    ckad.jit(np.sum)(object())  # here


@bad(TraceError, r"^\S+ 3\.0 is no function\. Pass the function itself, .* ckad\.grad\(f\)\(x\)")
def number_as_function() -> None:
    ckad.grad(3.0)(X)  # type: ignore[arg-type]  # here


def shift(u: Any, by: float) -> None:
    u += by


@bad(TraceError, r"shift .*writes into argument 0 and returns nothing; .* pass returns=0")
def nothing_returned_by_jit() -> None:
    ckad.jit(shift)(X, 1.0)  # here


@bad(TraceError, "writes into argument 0 and returns nothing")
def nothing_returned_by_vjp() -> None:
    ckad.vjp(shift, X, 1.0)  # here


@bad(UnsupportedFunctionError, r"no rule for np\.linalg\.solve of sparse matrices\. .*toarray\(\)")
def dense_function_of_a_sparse_matrix() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.linalg.solve(scipy.sparse.diags(x), x))  # here

    ckad.grad(f)(X)


@bad(CarryError, r"different structures, array and \(array, array\)\. Return the same")
def sides_of_different_structures() -> None:
    ckad.jit(lambda x: ckad.cond(x[0] > 0, lambda y: y, lambda y: (y, y), x))(X)  # here


@bad(DifferentiationError, "argnums=2 names argument 2, but the call has 1 positional arguments")
def argnums_of_jacobian() -> None:
    ckad.jacobian(np.sin, argnums=2)(X)  # here


@bad(DifferentiationError, 'use "auto", "fwd" or "rev"')
def unknown_mode() -> None:
    ckad.jacobian(np.sin, mode="sideways")  # here


@bad(DifferentiationError, r"a tangent has shape \(4,\); its primal has shape \(5,\)")
def tangent_of_another_shape() -> None:
    ckad.jvp(np.sin, (X,), (X[1:],))  # here


@bad(DifferentiationError, r"structure \(\); pass a tuple like the primals of sin, \(array,\)")
def missing_tangent() -> None:
    ckad.jvp(np.sin, (X,), ())  # here


@bad(DifferentiationError, "primals is a ndarray; pass a tuple")
def primals_without_a_tuple() -> None:
    ckad.jvp(np.sin, X, X)  # here


@bad(DifferentiationError, r"a cotangent has shape \(4,\)")
def cotangent_of_another_shape() -> None:
    ckad.vjp(np.sin, X)[1](X[1:])  # here


@bad(DifferentiationError, r"the cotangent has the structure \(array,\)")
def cotangent_of_another_structure() -> None:
    ckad.vjp(np.sin, X)[1]((X,))  # here


@bad(TapeError, r"ckad\.adjoint takes a Tape.*ckad\.trace")
def adjoint_of_a_function() -> None:
    ckad.adjoint(np.sin)  # type: ignore[arg-type]  # here


@pytest.mark.parametrize("dtype", [np.float16, object, np.longdouble, "U3", np.uint64])
def test_unsupported_dtypes_are_named(dtype: Any) -> None:
    x = np.ones(3).astype(dtype)
    with pytest.raises(DtypeError, match=rf"{FILE}:.*{re.escape(str(x.dtype))} is not supported"):
        ckad.jit(lambda x: x)(x)
    with pytest.raises(DtypeError, match=FILE):
        ckad.grad(lambda x: np.sum(x))(x)


# --- tracers that leave their function ---------------------------------------------------------


def leaked() -> Any:
    kept = threading.local()
    ckad.grad(lambda x: setattr(kept, "x", x) or np.sum(x))(X)  # type: ignore[func-returns-value]
    return kept.x


@bad(TraceError, "outside of the function that made it. Return it")
def leaked_arithmetic() -> None:
    leaked() + 1  # here


@bad(TraceError, "outside of the function that made it. Return it")
def leaked_float() -> None:
    float(leaked())  # here


@bad(TraceError, "outside of the function that made it. Return it")
def leaked_condition() -> None:
    bool(leaked())  # here


@bad(TraceError, "outside of the function that made it. Return it")
def leaked_index() -> None:
    leaked()[0]  # here


@bad(TraceError, "outside of the function that made it. Return it")
def leaked_into_numpy() -> None:
    np.asarray(leaked())  # here


@bad(UnrecordableError, "of another function or loop body is used here. Return it")
def leaked_into_another_function() -> None:
    kept = leaked()

    def f(x: Any) -> Any:
        return np.sum(x * kept)  # here

    ckad.grad(f)(X)


@bad(UnrecordableError, "of another function or loop body is used here.*through the carry")
def leaked_out_of_a_body() -> None:
    def f(x: Any) -> Any:
        kept = []
        u = ckad.fori_loop(0, 3, lambda i, u: kept.append(u) or 2 * u, x)  # type: ignore
        return np.sum(u * kept[0])  # here

    ckad.grad(f)(X)


@bad(UnrecordableError, "of another function or loop body is used here")
def leaked_into_another_body() -> None:
    def f(x: Any) -> Any:
        kept = []
        ckad.fori_loop(0, 3, lambda i, u: kept.append(u) or 2 * u, x)  # type: ignore
        return ckad.fori_loop(0, 3, lambda i, s: s + np.sum(kept[0]), 0.0)  # here

    ckad.grad(f)(X)


# --- memory, schedules, engines ----------------------------------------------------------------


def steps(x: Any) -> Any:
    return np.sum(ckad.fori_loop(0, 50, lambda i, u: np.sin(u), x))


@bad(BudgetError, "the least that this program needs is .* Raise memory= to at least")
def budget_below_the_minimum() -> None:
    ckad.grad(steps, memory=100)(X)  # here


@bad(BudgetError, "Raise memory= to at least")
def budget_below_the_minimum_without_a_loop() -> None:
    ckad.grad(lambda x: np.sum(x), memory=10)(X)  # here


@bad(BudgetError, 'not an amount of memory; write .* "64 MiB"')
def unreadable_memory() -> None:
    ckad.grad(steps, memory="lots")  # here


@bad(BudgetError, "give a positive amount")
def negative_memory() -> None:
    ckad.grad(steps, memory=-1)  # here


@bad(BudgetError, "resume=True is no path; pass a str or a Path")
def resume_without_a_directory() -> None:
    ckad.value_and_grad(steps, resume=True)(X)  # type: ignore  # here


@bad(BudgetError, "resume='' is no path")
def resume_in_no_directory() -> None:
    ckad.grad(steps, resume="")(X)  # here


@bad(ScheduleError, "schedule='best' is not known; use one of 'auto', 'store_all'")
def unknown_schedule() -> None:
    ckad.grad(steps, schedule="best")  # here


@bad(ScheduleError, r"made for 10 steps, the loop has 50\. Build it for 50")
def schedule_for_another_length() -> None:
    ckad.grad(steps, schedule=ckad.schedules.revolve(10, 3))(X)  # here


@bad(ScheduleError, r"revolve is called with the number of steps alone.*lambda n: revolve\(n,")
def schedule_function_of_two_numbers() -> None:
    ckad.grad(steps, schedule=ckad.schedules.revolve)(X)  # type: ignore  # here


@bad(ScheduleError, "gave int; a schedule of ckad.schedules is wanted")
def schedule_function_gives_a_number() -> None:
    ckad.grad(steps, schedule=lambda n: 4)(X)  # type: ignore  # here


@bad(EngineError, "engine='gpu' is not known; use one of 'auto', 'vm'")
def unknown_engine() -> None:
    ckad.jit(steps, engine="gpu")  # here


@pytest.mark.parametrize("memory", ["", "64 XiB", "1e3", "-3", 0, 1.5, True, "MiB"])
def test_unreadable_amounts_of_memory(memory: Any) -> None:
    with pytest.raises(BudgetError, match=rf"{FILE}:\d+: memory={re.escape(repr(memory))}"):
        ckad.value_and_grad(steps, memory=memory)


@pytest.mark.parametrize("schedule", ["auto", "revolve", "store_all", "two_level"])
def test_the_minimum_that_the_error_names_works(schedule: str) -> None:
    with pytest.raises(BudgetError) as caught:
        ckad.grad(steps, memory=64, schedule=schedule)(X)
    minimum = int(re.search(r"at least ([\d,]+)", str(caught.value))[1].replace(",", ""))  # type: ignore
    assert np.array_equal(
        ckad.grad(steps, memory=minimum, schedule=schedule)(X), ckad.grad(steps)(X)
    )
    with pytest.raises(BudgetError):
        ckad.grad(steps, memory=minimum - 1, schedule=schedule)(X)


@pytest.mark.parametrize("n_slots", [0, -1])
def test_slots_below_one(n_slots: int) -> None:
    with pytest.raises(ScheduleError, match=rf"n_slots={n_slots} is below 1\. Pass at least 1"):
        ckad.schedules.revolve(10, n_slots)
    with pytest.raises(ScheduleError, match="below 1"):
        ckad.schedules.forward_steps("revolve", 10, n_slots)


@pytest.mark.parametrize("make", [ckad.schedules.store_all, ckad.schedules.two_level])
def test_negative_lengths_of_schedules(make: Any) -> None:
    with pytest.raises(ScheduleError, match="n_steps=-1 is below 0"):
        make(-1)


# --- numbers at run time -----------------------------------------------------------------------


@bad(TracedIndexError, r"an index is out of range at step 5\. Keep computed indices within")
def index_out_of_range() -> None:
    def body(i: Any, s: Any) -> Any:
        return 0.5 * s + X[i]  # here

    ckad.fori_loop(0, 10, body, 0.0)


@bad(TracedIndexError, r"out of range at step 1, inner step 3\.")
def index_out_of_range_in_a_nested_loop() -> None:
    def f(x: Any) -> Any:
        def inner(j: Any, s: Any, i: Any) -> Any:
            return 0.5 * s + x[2 * i + j]  # here

        def outer(i: Any, s: Any) -> Any:
            return ckad.fori_loop(0, 4, lambda j, s: inner(j, s, i), s)

        return ckad.fori_loop(0, 3, outer, 0.0)

    ckad.grad(f)(X)


@bad(TracedIndexError, r"an index is out of range\. Keep")
def index_out_of_range_outside_of_loops() -> None:
    ckad.jit(lambda x, i: x[i])(X, np.array(9))  # here


@bad(NonFiniteError, r"log gives a NaN at step 1 of the loop at line \d+\. Look for")
def not_finite() -> None:
    def body(i: Any, s: Any) -> Any:
        return np.log(s)  # here

    ckad.grad(lambda x: ckad.fori_loop(0, 50, body, x), check_finite=True)(0.5)


@bad(NonFiniteError, r"at step 2 of the loop at line \d+, inner step 5 of the loop at line \d+\.")
def not_finite_in_a_nested_loop() -> None:
    def inner(i: Any, j: Any, s: Any) -> Any:
        return 0.5 * s - 1 / (10.0 * i + j - 25)  # here

    def outer(i: Any, s: Any) -> Any:
        return ckad.fori_loop(0, 10, lambda j, s: inner(i, j, s), s)

    ckad.jit(lambda x: ckad.fori_loop(0, 4, outer, x), check_finite=True)(0.5)


@bad(NonFiniteError, r"at step 3 of the loop at line \d+\.")
def not_finite_in_the_second_of_two_loops() -> None:
    def second(i: Any, s: Any) -> Any:
        return s / (i - 3.0)  # here

    def f(x: Any) -> Any:
        x = ckad.fori_loop(0, 20, lambda i, s: s * 1.1, x)
        return ckad.fori_loop(0, 20, second, x)

    ckad.grad(f, check_finite=True)(0.5)


@bad(NonFiniteError, r"div gives an infinity\. .*This is in the reverse sweep\.")
def not_finite_in_the_reverse_sweep() -> None:
    def f(x: Any) -> Any:
        return np.sqrt(x)  # here

    ckad.grad(f, check_finite=True)(0.0)


def test_two_places_with_the_same_program_are_told_apart() -> None:
    def one(x: Any) -> Any:
        return np.sum(np.log(x))

    def other(x: Any) -> Any:
        return np.sum(np.log(x))

    ckad.jit(one, check_finite=True)(X)
    with pytest.raises(NonFiniteError) as caught:
        ckad.jit(other, check_finite=True)(-X)
    assert f"{FILE}:{inspect.getsourcelines(other)[1] + 1}" in str(caught.value)


def test_not_a_number_is_allowed_in_inputs() -> None:
    x = np.array([np.nan, np.inf, 1.0])
    value, gradient = ckad.value_and_grad(lambda x: np.sum(x * x))(x)
    assert np.isnan(value)
    np.testing.assert_array_equal(gradient, 2 * x)


def test_checking_passes_what_is_finite() -> None:
    checked = ckad.value_and_grad(steps, check_finite=True)(X)
    np.testing.assert_array_equal(checked[1], ckad.grad(steps)(X))


# --- inputs stay as they are -------------------------------------------------------------------


def overwrite(u: Any) -> Any:
    u[0] = 7.0
    u[1:] *= 2.0
    u += 1.0
    return u


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, *x: ckad.grad(f)(*x),
        lambda f, *x: ckad.vjp(f, *x)[1](1.0),
        lambda f, *x: ckad.jvp(f, x, x),
        lambda f, *x: ckad.jit(f)(*x),
        lambda f, *x: ckad.hvp(f, x, x),
    ],
)
def test_arguments_are_never_written_to(transform: Any) -> None:
    x, y = X.copy(), X.copy()
    transform(lambda x, y: np.sum(overwrite(x) * overwrite(y)), x, y)
    assert np.array_equal(x, X)
    assert np.array_equal(y, X)


def test_carries_captures_and_xs_are_never_written_to() -> None:
    init, captured, xs = X.copy(), X.copy(), np.ones((3, 5))

    def step(u: Any, x: Any) -> Any:
        u = overwrite(u)
        x = overwrite(x)
        return u * captured + x, u

    ckad.scan(step, init, xs)
    ckad.grad(lambda u: np.sum(ckad.scan(step, u, xs)[0]))(init)
    for array in (init, captured):
        assert np.array_equal(array, X)
    assert np.array_equal(xs, np.ones((3, 5)))


def test_results_do_not_share_memory_with_inputs() -> None:
    x = X.copy()
    out = ckad.jit(lambda x: x)(x)
    gradient = ckad.grad(lambda x: np.sum(x * X))(x)
    out[:] = gradient[:] = 0.0
    assert np.array_equal(x, X)


def test_read_only_and_strided_inputs() -> None:
    x = np.arange(12.0).reshape(3, 4).T[::-1]
    x.flags.writeable = False
    gradient = ckad.grad(lambda x: np.sum(x * x * x))(x)
    np.testing.assert_array_equal(gradient, 3 * x * x)


# --- every function above ----------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD)
def test_the_error_names_the_line_and_the_remedy(name: str) -> None:
    wrong, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        wrong()
    assert caught.type is error
    assert f"{FILE}:{marked_line(wrong)}" in str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_a_failure_leaves_nothing_behind(name: str) -> None:
    wrong, error, _ = BAD[name]
    with pytest.raises(error):
        wrong()
    np.testing.assert_array_equal(BUFFER, np.zeros(5))
    np.testing.assert_array_equal(ckad.grad(lambda x: np.sum(x * x))(X), 2 * X)


def test_the_users_own_errors_pass_through() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ckad.grad(f)(X)


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: x + x[1:], ValueError, "operands could not be broadcast"),
        (lambda x: x @ x[1:], ValueError, r"do not fit: 5 != 4\. .* x\.T turns a matrix"),
        (lambda x: x + None, TypeError, r"None is used .* without return gives None"),
        (lambda x: x(0), TypeError, "'ndarray' object is not callable"),
        (lambda x: np.sum(x, dim=0), UnsupportedFunctionError, "dim=.* Leave the option out"),
        (lambda x: math.factorial(x[0]), UnsupportedFunctionError, r"traced value\. Write it with"),
    ],
)
def test_errors_of_python_name_the_line(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=rf"{FILE}:\d+: .*{message}"):
        ckad.jit(f)(X)


def test_options_that_are_given_to_the_function_are_told() -> None:
    with pytest.raises(TypeError, match=r"'memory'\. If it .* ckad\.grad\(f, memory=\.\.\.\)\(x\)"):
        ckad.grad(lambda x: np.sum(x))(X, memory="1 MB")


def test_a_missing_key_is_told_by_its_number() -> None:
    with pytest.warns(AsRunWarning), pytest.raises(KeyError, match=r"^0\.1\b"):
        ckad.jit(lambda x: x * {0.5: 2.0}[x[0]])(X)


class Doubled(np.ndarray):
    def __mul__(self, other):
        return 2.0 * (np.asarray(self) * other)


class Counted(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *args, **options):
        return 3.0 * ufunc(*map(np.asarray, args), **options)


class Named(np.ndarray):
    name = "height"


def test_arrays_with_an_arithmetic_of_their_own_are_refused(tmp_path):
    numbers = np.arange(3.0)
    masked = np.ma.array(numbers, mask=[0, 1, 0])
    for own in (numbers.view(Doubled), numbers.view(Counted), masked):
        with pytest.raises(TraceError, match="does not compute as an array does"):
            ckad.jit(lambda x: x * x)(own)
        with pytest.raises(TraceError, match="does not compute as an array does"):
            ckad.jit(lambda x, own=own: x * own)(numbers)
    filed = np.memmap(tmp_path / "numbers", float, "w+", shape=(3,))
    for own in (numbers.view(Named), filed, numbers.view(np.recarray), np.ma.array(numbers)):
        np.testing.assert_array_equal(ckad.jit(lambda x: x * x)(own), np.asarray(own) ** 2)


@pytest.mark.parametrize("f", [lambda x: np.ndarray.sum(x), lambda x: np.ndarray.__mul__(x, 2.0)])
def test_methods_that_are_called_by_their_class_are_refused_with_the_line(f):
    with pytest.raises(TraceError, match=rf"{FILE}:\d+: ndarray.* Call it as a method: x\."):
        ckad.jit(f)(X)


def test_a_condition_in_code_without_source_is_told_where_it_would_do() -> None:
    names: dict[str, Any] = {}
    exec("def distance(x):\n    return x if x > 0 else -x", names)
    with pytest.raises(ConcreteValueError, match=r"typed at Python's prompt.* in a file it may be"):
        ckad.vmap(names["distance"])(X)
