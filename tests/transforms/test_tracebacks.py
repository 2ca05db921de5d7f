"""Errors show the user's lines, not those of ckad, NumPy or SciPy."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import ckad
from ckad.errors import (
    AsRunWarning,
    CarryError,
    CkadError,
    UnsupportedFunctionError,
)

X = np.ones(4)


def refused(x: Any) -> Any:
    return np.busday_count(x, x)


def nested(x: Any) -> Any:
    for _ in range(20):
        for _ in range(20):
            x = x + refused(x)
    return np.sum(x)


ENTRIES: dict[str, Callable[[], Any]] = {
    "value_and_grad": lambda: ckad.value_and_grad(nested)(X),
    "grad": lambda: ckad.grad(nested)(X),
    "plan": lambda: ckad.plan(nested, X),
    "compiled": lambda: ckad.value_and_grad(nested).compiled(X),
    "jit": lambda: ckad.jit(nested)(X),
    "trace": lambda: ckad.trace(nested)(X),
    "jvp": lambda: ckad.jvp(nested, (X,), (X,)),
    "linearize": lambda: ckad.linearize(nested, X),
    "vjp": lambda: ckad.vjp(nested, X),
    "hvp": lambda: ckad.hvp(nested, (X,), (X,)),
    "jacobian": lambda: ckad.jacobian(nested)(X),
    "hessian": lambda: ckad.hessian(nested)(X),
    "explain": lambda: ckad.explain(nested, X),
    "inside of another": lambda: ckad.grad(lambda x: np.sum(ckad.grad(nested)(x)))(X),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_traceback_is_short_and_begins_with_the_users_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CKAD_DEBUG", raising=False)
    with pytest.raises(UnsupportedFunctionError) as caught:
        ENTRIES[name]()
    line = refused.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(f"{__file__}:{line}: ")
    shown = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len(shown) <= 24
    assert not any("/ckad/trace/" in text for text in shown)
    assert "During handling" not in "\n".join(shown)


def test_all_frames_are_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKAD_DEBUG", "1")
    with pytest.raises(UnsupportedFunctionError) as caught:
        ckad.grad(nested)(X)
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("/ckad/trace/") > 10


def missing(x: Any) -> Any:
    return x["missing"]


def each_missing(x: Any) -> Any:
    for _ in range(3):
        yield missing(x)


def raising(x: Any) -> Any:
    raise ValueError("mine")


@pytest.mark.parametrize(
    ("function", "error", "chain", "noted"),
    [
        (missing, KeyError, ["missing"], True),
        (lambda x: sum(each_missing(x)), KeyError, ["<lambda>", "each_missing", "missing"], True),
        (raising, ValueError, ["raising"], False),
        (lambda x: x["u"][9], IndexError, ["<lambda>"], False),
    ],
)
def test_errors_of_the_users_program_show_its_calls_as_python_does(
    function: Any, error: Any, chain: list[str], noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CKAD_DEBUG", raising=False)
    with pytest.raises(error) as caught:
        ckad.grad(function)({"u": X})
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [x.name for x in frames] == [frames[0].name, "called", *chain]
    assert {x.filename for x in frames[2:]} == {__file__}
    assert ("CKAD_DEBUG=1" in "".join(getattr(caught.value, "__notes__", []))) == noted


def test_what_goes_wrong_in_ckad_shows_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CKAD_DEBUG", raising=False)
    monkeypatch.setattr("ckad.passes.pipeline.recorded", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        ckad.grad(lambda x: np.sum(x))(X)
    assert "/ckad/transforms/repeated/recording.py" in "".join(
        traceback.format_exception(caught.value)
    )


def test_what_stands_in_both_ways_is_said_once() -> None:
    def body(carry: Any, x: Any) -> Any:
        return np.concatenate([carry, carry]), x

    with pytest.warns(AsRunWarning), pytest.raises(CarryError) as caught:
        ckad.jit(lambda x: ckad.scan(body, x, x)[0])(X)
    shown = "".join(traceback.format_exception_only(caught.value))
    assert shown.count("changes from f64[4] to f64[8]") == 1


# --- inside of libraries ------------------------------------------------------------------


def of_zeta(x: Any) -> Any:
    return np.sum(scipy.special.zeta(x + 2.0))


def of_differences(x: Any) -> Any:
    return scipy.optimize.approx_fprime(x, lambda y: y @ y)[0]


@pytest.mark.parametrize("function", [of_zeta, of_differences])
def test_what_goes_wrong_inside_of_scipy_is_told_at_the_users_line(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(CkadError, match=r"This happens in scipy.*\.py:\d+, called from") as caught:
        ckad.grad(function)(X)
    line = function.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(f"{__file__}:{line}: ")
    assert "scipy." in str(caught.value).splitlines()[-1]


def test_a_function_is_named_as_it_was_called() -> None:
    with pytest.raises(UnsupportedFunctionError, match=r"no rule for scipy\.special\.mathieu_a\."):
        ckad.grad(lambda x: np.sum(scipy.special.mathieu_a(1, x)))(X)


@pytest.mark.parametrize(
    ("ours", "same"), [(scipy.special.log1p, np.log1p), (scipy.special.expm1, np.expm1)]
)
def test_functions_that_numpy_has_too(ours: Any, same: Any) -> None:
    x = np.linspace(-0.5, 0.5, 5)
    found = ckad.value_and_grad(lambda x: np.sum(ours(x)))(x)
    wanted = ckad.value_and_grad(lambda x: np.sum(same(x)))(x)
    assert found[0] == wanted[0]
    assert found[1].tobytes() == wanted[1].tobytes()
