"""Programs that call Python's own modules, or show objects, are recorded once for many calls."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import datetime
import decimal
import fractions
import gc
import heapq
import io
import json
import logging
import os
import re
import statistics
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import pytest
import scipy.stats
from scipy.interpolate import CubicSpline

import ckad
from ckad.errors import ConcreteValueError

PATTERN = re.compile(r"(\d+) ([A-Z])")
OPTIONS = argparse.Namespace(rate=0.1, n=3)


@dataclass(frozen=True)
class Dose:
    time: float
    amount: float = 1.0


@dataclass
class Cell:
    n: int
    scale: Any = 1.0
    weights: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        total = 0.0
        for k in range(self.n):
            total = total + self.scale * k
        self.weights["all"] = total


def words_of_a_formula(x: Any) -> Any:
    found: Any = re.match(r"\s*(\d*)", "12 a")
    return x * int(found.group(1)) * len(re.split("[;,]", "a;b,c"))


def methods_of_a_series(x: Any) -> Any:
    inner: Any = np.polynomial.legendre.Legendre.basis(4).deriv().roots()
    return x * float(inner[2] + inner[0])


def a_pattern_from_outside(x: Any) -> Any:
    found = [int(a) for a, _ in PATTERN.findall("2 A 3 B")]
    return x * sum(found) * re.compile("a+").sub("", "aab").count("b")


def options_of_a_command(x: Any) -> Any:
    parser = argparse.ArgumentParser(description="a model")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args([])
    return x * args.rate if not args.verbose else x


def options_from_outside(x: Any) -> Any:
    return x * OPTIONS.rate * len(vars(OPTIONS))


def doses_in_order(x: Any) -> Any:
    doses = sorted([Dose(3.0, x), Dose(1.0, 2.0)], key=lambda d: d.time)
    return doses[0].amount * doses[1].amount


def fields_of_an_object(x: Any) -> Any:
    dose = Dose(x)
    found = sum(getattr(dose, f.name) for f in dataclasses.fields(dose))
    return found * dataclasses.asdict(dose)["time"] * dataclasses.replace(dose, amount=3.0).amount


def a_dataclass_that_computes(x: Any) -> Any:
    return Cell(20, x).weights["all"] * Cell(n=3).weights["all"]


def texts_and_dates(x: Any) -> Any:
    days = (datetime.date(2020, 1, 3) - datetime.date(2020, 1, 1)).days
    lines = textwrap.dedent("  a\n  b").splitlines()
    return x * days * len(lines) * json.loads('{"a": 2}')["a"]


def numbers(x: Any) -> Any:
    heap = [3, 1, 2]
    heapq.heapify(heap)
    return x * float(fractions.Fraction(1, 3)) * statistics.mean([1.0, 2.0]) * heapq.heappop(heap)


def a_dict_of_keys(x: Any) -> Any:
    rates = dict.fromkeys("abc", 0.0)
    rates["b"] += x
    return sum(rates.values()) * int.from_bytes(b"a", "big")


def an_object_is_printed(x: Any) -> Any:
    probe = Probe(x)
    print(probe)
    return probe.x * 3.0


def a_table(x: Any) -> Any:
    return x * np.loadtxt(io.StringIO("1 2\n3 4")).sum()


def an_interpolant(x: Any) -> Any:
    return x * float(CubicSpline([0, 1, 2.0], [0, 1, 4.0])(0.5))


def settings(x: Any) -> Any:
    return x * (1 + sys.float_info.epsilon)


def what_functions_are_made_of(x: Any) -> Any:
    def scale(a: Any, b: Any) -> Any:
        return a * b

    return scale(x, scale.__code__.co_argcount) + ast.literal_eval("[1, 2.5]")[1] * x


def drawn_by_scipy(x: Any) -> Any:
    np.random.seed(3)
    return np.sum(scipy.stats.norm.rvs(x, 2.0, size=3)) + scipy.stats.norm.rvs(random_state=None)


ONCE: list[Callable[[Any], Any]] = [
    *(words_of_a_formula, a_pattern_from_outside, options_of_a_command, options_from_outside),
    *(doses_in_order, fields_of_an_object, a_dataclass_that_computes, texts_and_dates, numbers),
    *(a_dict_of_keys, an_object_is_printed, methods_of_a_series),
    *(a_table, an_interpolant, settings, what_functions_are_made_of, drawn_by_scipy),
]


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
@pytest.mark.parametrize("function", ONCE)
def test_what_computes_from_its_arguments_is_called_once(function, recordings):
    g = ckad.value_and_grad(function)
    for x in (0.7, 1.3, 0.7):
        value, slope = g(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-12)
        central = (function(x + 1e-6) - function(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(slope, central, rtol=1e-6)
    assert len(recordings) == 1


def test_what_need_not_be_done_again(recordings):
    def rests(x: Any) -> Any:
        time.sleep(0)
        gc.collect()
        warnings.warn("rests", RuntimeWarning, stacklevel=1)
        numba.set_num_threads(min(1, os.cpu_count() or 1))
        marks = {id(part): x for part in ([], {})}
        return marks.popitem()[1] * x

    g = ckad.grad(rests)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [g(x) for x in (2.0, 3.0)] == [4.0, 6.0]
    assert len(recordings) == 1


def from_the_command_line(x: Any) -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=0.5)
    args, _ = parser.parse_known_args()
    return x * args.rate


def test_the_words_of_the_command_line_are_noticed(monkeypatch):
    g = ckad.grad(from_the_command_line)
    monkeypatch.setattr(sys, "argv", ["model"])
    assert g(2.0) == 0.5
    monkeypatch.setattr(sys, "argv", ["model", "--rate", "3"])
    assert g(2.0) == 3.0
    sys.argv.extend(["--rate", "4"])
    assert g(2.0) == 4.0


def test_options_that_change_are_noticed(monkeypatch):
    g = ckad.grad(options_from_outside)
    assert g(2.0) == pytest.approx(0.2)
    monkeypatch.setattr(OPTIONS, "rate", 0.3)
    assert g(2.0) == pytest.approx(0.6)


TOTAL: list[float] = []


def heap_from_outside(x: Any) -> Any:
    heapq.heappush(TOTAL, 1.0)
    return x * len(TOTAL)


def test_a_heap_from_outside_grows_at_each_call():
    TOTAL.clear()
    g = ckad.grad(heap_from_outside)
    assert [g(2.0), g(2.0)] == [1.0, 2.0]


# --- objects that are shown -----------------------------------------------------------------------


class Probe:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __repr__(self) -> str:
        return f"Probe({self.x:.2f})"

    def __str__(self) -> str:
        return "at %.3f" % self.x  # noqa: UP031


def shows(x: Any) -> Any:
    probe = Probe(x)
    print(probe, [probe], f"{probe!r:>20}", str(probe), repr(probe))
    print("%s, %r" % (probe, probe), f"{probe}")  # noqa: UP031
    return probe.x * 2


def shows_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(30):
        total = total + k * x
        probe = Probe(total)
        if k % 10 == 0:
            print(k, probe, f"{probe!r}")
    return total


@pytest.mark.parametrize(("function", "slope"), [(shows, 2.0), (shows_in_a_loop, 435.0)])
@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_objects_show_traced_values_by_their_methods(function, slope):
    assert ckad.value_and_grad(function)(1.5) == (function(1.5), slope)


def looks_into_its_text(x: Any) -> Any:
    return x if str(Probe(x)) == "at 1.500" else 2 * x


def test_text_of_an_object_decides_nothing():
    with pytest.raises(ConcreteValueError, match="looks into text"):
        ckad.grad(looks_into_its_text)(1.5)


LOGGER = logging.getLogger("of a test")


@pytest.mark.parametrize(
    "asked",
    [
        lambda: LOGGER.level,
        lambda: LOGGER.getEffectiveLevel(),
        lambda: 2.0 if LOGGER.isEnabledFor(25) else 3.0,
        lambda: np.get_printoptions()["precision"],
        lambda: decimal.getcontext().prec,
    ],
)
def test_what_is_asked_of_what_shows_things_is_asked_each_time(asked):
    value = ckad.jit(lambda x: x * asked(), engine="vm")
    for k in (20, 30, 20, 20, 20, 30):
        LOGGER.setLevel(k)
        with np.printoptions(precision=k), decimal.localcontext() as context:
            context.prec = k
            assert value(2.0) == 2.0 * asked()
