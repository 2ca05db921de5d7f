"""SciPy's samples of images between their pixels; loaded when needed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import scipy.ndimage

from ckad.place import at_place
from ckad.trace.arrays import Array, retyped, stored, traced
from ckad.trace.dispatch import implements, reject


def _within(x: Array, n: int, mode: str) -> Array:
    """Where a coordinate lies in an image of ``n`` pixels that goes on by ``mode``."""
    last = n - 1.0
    if mode == "nearest" or n == 1:
        return np.clip(x, 0.0, last)
    if mode == "wrap":  # a period is from the first pixel's centre to the last one's
        return np.where((x < 0.0) | (x > last), np.mod(x, last), x)
    if mode == "grid-wrap":
        return np.mod(x, float(n))
    if mode == "mirror":
        return last - np.abs(np.mod(x, 2.0 * last) - last)
    return np.clip(n - 0.5 - np.abs(np.mod(x + 0.5, 2.0 * n) - n), 0.0, last)  # reflect


@implements(scipy.ndimage.map_coordinates)
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    reject(order not in (0, 1), f"scipy.ndimage.map_coordinates of order {order} (1 is linear)")
    known = ("constant", "nearest", "wrap", "grid-wrap", "mirror", "reflect", "grid-mirror")
    reject(mode not in known, f"scipy.ndimage.map_coordinates with mode {mode!r}")
    reject(output is not None and np.ndim(output) == 0, "map_coordinates with a dtype as output")
    image, places = traced(input), [traced(x) * 1.0 for x in coordinates]
    reject(image.dtype.kind != "f", "scipy.ndimage on what is not real")
    if len(places) != image.ndim:
        raise RuntimeError(at_place(f"{len(places)} coordinates in an image of {image.ndim} axes"))
    outside: Any = np.zeros(places[0].shape, bool)
    if mode == "constant":
        for x, n in zip(places, image.shape, strict=True):
            outside = np.logical_or(outside, (x < 0.0) | (x > n - 1.0))
    how = "nearest" if mode == "constant" else mode
    found = _sampled(
        image, [_within(x, n, how) for x, n in zip(places, image.shape, strict=True)], order, how
    )
    found = np.where(outside, cval, found) if mode == "constant" else found
    return stored(retyped(found, image.dtype), output)


@implements(scipy.ndimage.shift)
def shift(
    input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    by = np.broadcast_to(traced(shift), (np.ndim(input),))
    places = [k * 1.0 - by[axis] for axis, k in enumerate(np.indices(np.shape(input)))]
    return map_coordinates(input, places, output, order, mode, cval)


def _sampled(image: Array, places: list[Array], order: int, mode: str) -> Array:
    corners: list[tuple[Any, ...]] = []
    weights: list[tuple[Any, ...]] = []
    for x, n in zip(places, image.shape, strict=True):
        if order == 0:
            whole = np.floor(x + 0.5)
            at = np.mod(whole, float(n)) if mode == "grid-wrap" else np.clip(whole, 0.0, n - 1.0)
            corners.append((at.astype(np.int64),))
            weights.append((1.0,))
            continue
        most = n - 1.0 if mode == "grid-wrap" else max(n - 2.0, 0.0)
        low = np.clip(np.floor(x), 0.0, most)
        at = low.astype(np.int64)
        after = np.mod(at + 1, n) if mode == "grid-wrap" else np.minimum(at + 1, n - 1)
        corners.append((at, after))
        weights.append((1.0 - (x - low), x - low))
    total: Any = 0.0
    for corner in product(*(range(len(c)) for c in corners)):
        weight: Any = 1.0
        for k, side in enumerate(corner):
            weight = weight * weights[k][side]
        place = tuple(c[side] for c, side in zip(corners, corner, strict=True))
        total = total + weight * image[place]
    return total
