"""Sums, means and extrema over the regions of an image that known labels name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage

from ckad.place import at_place
from ckad.trace.arrays import Array, doubles, known, own, traced
from ckad.trace.dispatch import implements, reject


class _Regions(NamedTuple):
    """The elements of an image by regions, of which one may be empty, or part of two."""

    elements: list[Any]  # the numbers in each
    shape: tuple[int, ...]  # of the result

    def result(self, formula: Callable[[Array], Any]) -> Any:
        found = np.stack([formula(x) for x in self.elements]) if self.elements else np.zeros(0)
        return own(np.reshape(found, self.shape))


def _regions(input: Any, labels: Any, index: Any) -> _Regions:
    """As SciPy's functions take them: without an index all that have a label above 0."""
    x = traced(input)
    names, wanted = (None if v is None else known(v) for v in (labels, index))
    unknown = (labels is not None and names is None) or (index is not None and wanted is None)
    reject(unknown, "measurements of scipy.ndimage by traced labels")
    if names is None:
        if wanted is not None:
            raise ValueError(at_place("index without given labels"))
        return _Regions([np.reshape(x, -1)], ())
    flat = np.reshape(np.broadcast_to(x, np.broadcast_shapes(x.shape, names.shape)), -1)
    named = np.broadcast_to(names, np.broadcast_shapes(x.shape, names.shape)).reshape(-1)
    if wanted is None:
        return _Regions([flat[np.flatnonzero(named > 0)]], ())
    places = [np.flatnonzero(named == name) for name in np.ravel(wanted)]
    return _Regions([flat[at] for at in places], np.shape(wanted))


def _mean(x: Array) -> Any:
    return np.sum(x) / np.float64(x.size)


def _variance(x: Array) -> Any:
    return _mean((x - _mean(x)) ** 2)


def _measure(function: Any, formula: Any, of_none: float | None = None, adds: bool = True) -> None:
    """A number of each region; ``of_none`` is that of one without elements, if no formula is.
    What ``adds`` elements of several regions does that in float64."""

    @implements(function)
    def measured(input: Any, labels: Any = None, index: Any = None) -> Any:
        if adds and index is not None and np.ndim(index):
            input = doubles(input)
        regions = _regions(input, labels, index)
        return regions.result(
            lambda x: formula(x) if x.size or of_none is None else x.dtype.type(of_none)
        )


_measure(scipy.ndimage.sum_labels, np.sum)
_measure(scipy.ndimage.sum, np.sum)
_measure(scipy.ndimage.mean, _mean, np.nan)
_measure(scipy.ndimage.variance, _variance, np.nan)
_measure(scipy.ndimage.standard_deviation, lambda x: np.sqrt(_variance(x)), np.nan)
_measure(scipy.ndimage.minimum, np.min, 0.0, adds=False)
_measure(scipy.ndimage.maximum, np.max, 0.0, adds=False)
_measure(scipy.ndimage.median, np.median, np.nan, adds=False)


@implements(scipy.ndimage.center_of_mass)
def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    x = traced(input)
    total = _regions(x, labels, index).result(np.sum)
    grids = np.ogrid[tuple(slice(0, n) for n in x.shape)]
    centers = [_regions(x * g.astype(float), labels, index).result(np.sum) / total for g in grids]
    if np.ndim(total) == 0:
        return tuple(centers)
    return [tuple(c[k] for c in centers) for k in range(total.shape[0])]
