"""Python's ``statistics`` of traced numbers: to the rounding of sums, where Python adds exactly."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import Array, is_traced, retyped, traced
from ckad.trace.dispatch import call, implements


def _numbers(data: Any, name: str, least: int = 1) -> Array:
    """The data as an array of floats, of which there have to be some."""
    x = traced(data if is_traced(data) else list(data))
    if x.ndim != 1:
        raise TypeError(
            at_place(f"statistics.{name} of an array of {x.ndim} axes. Ravel it first.")
        )
    if x.shape[0] < least:
        raise statistics.StatisticsError(
            at_place(f"statistics.{name} requires at least {least} data points")
        )
    return retyped(x, np.float64)


def _number(x: Any) -> Any:
    """A number of Python's."""
    return call(float, (x,), {})


@implements(statistics.mean)
def mean(data: Any) -> Any:
    return _number(np.mean(_numbers(data, "mean")))


@implements(statistics.fmean)
def fmean(data: Any, weights: Any = None) -> Any:
    x = _numbers(data, "fmean")
    return _number(np.mean(x) if weights is None else np.average(x, None, traced(weights)))


@implements(statistics.geometric_mean)
def geometric_mean(data: Any) -> Any:
    return _number(np.exp(np.mean(np.log(_numbers(data, "geometric_mean")))))


def _spread(
    name: str, ddof: int, ending: Callable[[Any], Any], of_all: Callable[..., Any]
) -> Callable[..., Any]:
    """One of the four measures of spread, about the mean or about a number that is given."""

    def measure(data: Any, xbar: Any = None) -> Any:
        x = _numbers(data, name, 1 + ddof)
        if xbar is None:
            return _number(of_all(x, ddof=ddof))
        return _number(ending(np.sum((x - xbar) ** 2) / (x.shape[0] - ddof)))

    def about(data: Any, mu: Any = None) -> Any:
        return measure(data, mu)

    return measure if ddof else about


implements(statistics.variance)(_spread("variance", 1, np.positive, np.var))
implements(statistics.pvariance)(_spread("pvariance", 0, np.positive, np.var))
implements(statistics.stdev)(_spread("stdev", 1, np.sqrt, np.std))
implements(statistics.pstdev)(_spread("pstdev", 0, np.sqrt, np.std))


def _in_order(data: Any, name: str, back: int, wide: bool) -> Any:
    x = np.sort(_numbers(data, name))
    low, high = (x.shape[0] - back) // 2, x.shape[0] // 2
    return _number((x[low] + x[high]) / 2 if wide else x[low])


@implements(statistics.median)
def median(data: Any) -> Any:
    return _in_order(data, "median", 1, True)


@implements(statistics.median_low)
def median_low(data: Any) -> Any:
    return _in_order(data, "median_low", 1, False)


@implements(statistics.median_high)
def median_high(data: Any) -> Any:
    return _in_order(data, "median_high", 0, False)
