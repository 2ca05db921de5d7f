"""Grey morphology of images by ``scipy.ndimage``: extrema of windows, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage

from ckad.place import at_place
from ckad.trace.arrays import Array, known, stored, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import implements, reject
from ckad.trace.numpy.scipy.images.ranks import extreme


def _on_axis(function: Any, largest: bool) -> None:
    @implements(function)
    def filtered(
        input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect",
        cval: Any = 0.0, origin: int = 0,
    ) -> Array:  # fmt: skip
        x = traced(input)
        k = axis_of(axis, x.ndim)
        shape = [size if i == k else 1 for i in range(x.ndim)]
        origins = [origin if i == k else 0 for i in range(x.ndim)]
        return stored(extreme(x, np.ones(shape, bool), None, mode, cval, origins, largest), output)


_on_axis(scipy.ndimage.minimum_filter1d, largest=False)
_on_axis(scipy.ndimage.maximum_filter1d, largest=True)


def _shapes(x: Array, size: Any, footprint: Any, structure: Any) -> tuple[Any, Any]:
    """Which elements of a window count, and what is added to each."""
    if size is None and footprint is None and structure is None:
        raise ValueError(at_place("size, footprint, or structure must be specified"))
    added = None if structure is None else known(structure)
    there = None if footprint is None else known(footprint)
    traced_ones = (structure is not None and added is None) or (
        footprint is not None and there is None
    )
    reject(traced_ones, "morphology of scipy.ndimage with a traced footprint or structure")
    if there is None:
        there = np.ones(np.broadcast_to(size, (x.ndim,)) if added is None else added.shape, bool)
    return np.asarray(there, bool), added


def eroded(x: Array, about: tuple[Any, Any, Any], mode: str, cval: Any, origin: Any) -> Array:
    there, added = _shapes(x, *about)
    added = None if added is None else -np.asarray(added, float)
    return extreme(x, there, added, mode, cval, origin, largest=False)


def dilated(x: Array, about: tuple[Any, Any, Any], mode: str, cval: Any, origin: Any) -> Array:
    """By the window turned round."""
    there, added = _shapes(x, *about)
    turned = (slice(None, None, -1),) * x.ndim
    origins = np.broadcast_to(origin, (x.ndim,)).tolist()
    origins = [-o - (n % 2 == 0) for o, n in zip(origins, there.shape, strict=True)]
    added = None if added is None else np.asarray(added, float)[turned]
    return extreme(x, there[turned], added, mode, cval, origins, largest=True)


def _both(first: Any, second: Any) -> Any:
    return lambda x, *about: second(first(x, *about), *about)


opened, closed = _both(eroded, dilated), _both(dilated, eroded)


def _laplacian(x: Array, *about: Any) -> Array:
    return dilated(x, *about) + eroded(x, *about) - 2 * x


for _function, _formula in {
    scipy.ndimage.grey_erosion: eroded,
    scipy.ndimage.grey_dilation: dilated,
    scipy.ndimage.grey_opening: opened,
    scipy.ndimage.grey_closing: closed,
    scipy.ndimage.white_tophat: lambda x, *about: x - opened(x, *about),
    scipy.ndimage.black_tophat: lambda x, *about: closed(x, *about) - x,
    scipy.ndimage.morphological_gradient: lambda x, *about: dilated(x, *about) - eroded(x, *about),
    scipy.ndimage.morphological_laplace: _laplacian,
}.items():

    @implements(_function)
    def morphology(
        input: Any, size: Any = None, footprint: Any = None, structure: Any = None,
        output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0, *,
        formula: Any = _formula, axes: Any = None,
    ) -> Array:  # fmt: skip
        reject(axes is not None, "morphology of scipy.ndimage with axes=")
        x, about = traced(input), (size, footprint, structure)
        return stored(formula(x, about, mode, cval, origin), output)
