"""SciPy's samples of images between their pixels, and what is made of them; loaded when needed.

A sample of order k is a sum of B-splines of that degree. Their coefficients are linear in the
pixels of each line, by a matrix that SciPy's own filter gives for unit vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.special

from ckad.place import at_place
from ckad.trace.arrays import Array, known, retyped, stored, traced
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import implements, reject

#: Pixels that an image is continued by where its last ones are repeated; SciPy's number.
_MARGIN = 12
_MODES = ("constant", "nearest", "wrap", "grid-wrap", "mirror", "reflect", "grid-mirror")
#: How coefficients go on where pixels do not, or meet the first one twice.
_SPLINES = {"constant": "mirror", "wrap": "mirror"}


def _within(x: Array, n: int, mode: str, order: int) -> Array:
    """Where a coordinate lies in an image of ``n`` pixels that goes on by ``mode``.

    In one whose last pixels are repeated it stays where it is.
    """
    last = n - 1.0
    if n == 1:
        return np.clip(x, 0.0, last)
    if mode == "nearest":
        return x
    if mode == "wrap":  # a period is from the first pixel's centre to the last one's
        # left of the first pixel is the last one, right of the last the first
        inside = np.where(x > last, np.mod(x, last), x)
        return np.where(x < 0.0, last - np.mod(-x, last), inside)
    if mode == "grid-wrap":
        return np.mod(x, float(n))
    if mode == "mirror":
        turned = np.mod(x, 2.0 * last)
        found = last - np.abs(turned - last)
        if order > 0:
            return found
        # SciPy turns what is less than a pixel outside after it has found the nearest pixel
        return np.where((x > last) & (turned > last) & (turned < n), turned, found)
    return n - 0.5 - np.abs(np.mod(x + 0.5, 2.0 * n) - n)  # reflect


@implements(scipy.ndimage.map_coordinates)
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    image, places = _image(input), [traced(x) * 1.0 for x in coordinates]
    if len(places) != image.ndim:
        raise RuntimeError(at_place(f"{len(places)} coordinates in an image of {image.ndim} axes"))
    return _output(_sampled(image, places, order, mode, cval, prefilter), image, output)


@implements(scipy.ndimage.shift)
def shift(
    input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    image, by = _image(input), np.broadcast_to(traced(shift), (np.ndim(input),))
    places = [k * 1.0 - by[axis] for axis, k in enumerate(np.indices(image.shape))]
    return _output(_sampled(image, places, order, mode, cval, prefilter), image, output)


@implements(scipy.ndimage.affine_transform)
def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None,
    order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    image, m = _image(input), traced(matrix) * 1.0
    n = image.ndim
    if m.ndim == 2 and m.shape[1] == n + 1:
        m, offset = m[:n, :n], m[:n, n]
    if m.shape not in ((n,), (n, n)):
        raise RuntimeError(at_place(f"a matrix of shape {m.shape} for an image of {n} axes"))
    if output_shape is None:
        output_shape = image.shape if output is None or np.ndim(output) == 0 else output.shape
    at, by = np.indices(output_shape) * 1.0, np.broadcast_to(traced(offset), (n,))
    if m.ndim == 1:
        places = [m[k] * at[k] + by[k] for k in range(n)]
    else:
        places = [sum(m[k, j] * at[j] for j in range(n)) + by[k] for k in range(n)]
    return _output(_sampled(image, places, order, mode, cval, prefilter), image, output)


@implements(scipy.ndimage.rotate)
def rotate(
    input: Any, angle: Any, axes: Sequence[int] = (1, 0), reshape: bool = True, output: Any = None,
    order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """Each plane of two axes by itself."""
    image, degrees = _image(input), known(angle)
    reject(degrees is None and reshape, "scipy.ndimage.rotate by a traced angle with reshape=True")
    plane = sorted(axis_of(k, image.ndim) for k in axes)
    if degrees is None:
        turn = traced(angle) * (np.pi / 180.0)
        c, s = np.cos(turn), np.sin(turn)
    else:
        c, s = (f(float(degrees)) for f in (scipy.special.cosdg, scipy.special.sindg))
    size = np.array([image.shape[k] for k in plane])
    shape = size
    if reshape:
        ends = np.array([[c, s], [-s, c]]) @ [[0, 0, *size[[0, 0]]], [0, size[1], 0, size[1]]]
        shape = (np.ptp(ends, axis=1) + 0.5).astype(int)
    at = np.indices(tuple(shape.tolist())) - (shape[:, None, None] - 1) / 2
    (y, x), (m, n) = at, (size - 1) / 2
    places = [c * y + s * x + m, c * x - s * y + n]
    turned = np.moveaxis(image, plane, (0, 1))
    found = _sampled(turned, places, order, mode, cval, prefilter)
    return _output(np.moveaxis(found, (0, 1), plane), image, output)


@implements(scipy.ndimage.zoom)
def zoom(
    input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True, *, grid_mode: bool = False,
) -> Array:  # fmt: skip
    """Linear along each axis: SciPy's own numbers for unit vectors."""
    image, factors = _image(input), known(zoom)
    reject(factors is None, "scipy.ndimage.zoom by a traced factor")
    assert factors is not None
    options: dict[str, Any] = {"order": order, "mode": mode, "prefilter": prefilter,
                               "grid_mode": grid_mode}  # fmt: skip
    found = image * 1.0
    for axis, factor in enumerate(np.broadcast_to(factors, (image.ndim,)).tolist()):
        n = image.shape[axis]
        lines = [scipy.ndimage.zoom(line, factor, **options) for line in np.eye(n)]
        found = _along(found, np.array(lines).T, axis)
    if cval != 0.0:
        none = np.zeros(image.shape)
        found = found + scipy.ndimage.zoom(none, factors, cval=cval, **options)
    return _output(found, image, output)


@implements(scipy.ndimage.spline_filter1d)
def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Array:
    image = _image(input)
    found = image if order < 2 else _coefficients(image, order, [axis_of(axis, image.ndim)], mode)
    return _output(found, image, output)


@implements(scipy.ndimage.spline_filter)
def spline_filter(
    input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror"
) -> Array:
    if not 2 <= order <= 5:
        raise RuntimeError(at_place("spline order not supported"))
    image = _image(input)
    return _output(_coefficients(image, order, range(image.ndim), mode), image, output)


# --- what they share -----------------------------------------------------------------------------


def _image(x: Any) -> Array:
    image = traced(x)
    reject(image.dtype.kind != "f", "scipy.ndimage on what is not real")
    return image


def _output(found: Any, image: Array, output: Any) -> Array:
    """In the image's type, unless ``output`` is another one, or an array."""
    if output is None:
        return retyped(found, image.dtype)
    if isinstance(output, (str, type, np.dtype)):
        return retyped(found, np.dtype(output))
    return stored(found, output)


def _along(x: Array, matrix: np.ndarray, axis: int) -> Array:
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def _coefficients(image: Array, order: int, axes: Sequence[int], mode: str) -> Array:
    found = image.astype(np.float64)
    for axis in axes:
        found = _along(found, _filter(image.shape[axis], order, mode), axis)
    return found


@lru_cache(maxsize=32)
def _filter(n: int, order: int, mode: str) -> np.ndarray:
    found: np.ndarray = scipy.ndimage.spline_filter1d(np.eye(n), order, 0, mode=mode)
    return found


def _sampled(
    image: Array, places: list[Any], order: int, mode: str, cval: Any, prefilter: bool
) -> Array:
    """At places along the first axes of an image; the others stay, behind those of the places."""
    if not 0 <= order <= 5:
        raise RuntimeError(at_place("spline order not supported"))
    reject(mode not in _MODES, f"a sample of scipy.ndimage with mode {mode!r}")
    shape = image.shape[: len(places)]
    outside: Any = np.zeros(places[0].shape, bool)
    if mode == "constant":
        for x, n in zip(places, shape, strict=True):
            outside = np.logical_or(outside, (x < 0.0) | (x > n - 1.0))
    if order > 1 and prefilter:
        if mode == "nearest":
            width = [(_MARGIN, _MARGIN)] * len(shape) + [(0, 0)] * (image.ndim - len(shape))
            image, places = np.pad(image, width, "edge"), [x + _MARGIN for x in places]
            shape = image.shape[: len(places)]
        image = _coefficients(image, order, range(len(places)), mode)
    how = "nearest" if mode == "constant" else mode  # what lies outside is not looked at
    around = _between if order < 2 else _spline
    axes = [
        around(_within(x, n, how, order), n, order, mode)
        for x, n in zip(places, shape, strict=True)
    ]
    more = (...,) + (None,) * (image.ndim - len(places))
    total: Any = 0.0
    for corner in product(*axes):
        weight: Any = 1.0
        for _, factor in corner:
            weight = weight * factor
        total = total + traced(weight)[more] * image[tuple(at for at, _ in corner)]
    return np.where(outside[more], cval, total) if mode == "constant" else total


def _between(x: Array, n: int, order: int, mode: str) -> list[tuple[Any, Any]]:
    """The pixels around x and their weights: the nearest one, or two."""
    if order == 0:
        whole = np.floor(x + 0.5)
        at = whole.astype(np.int64)
        return [(_continued(at, n, mode if mode in ("grid-wrap", "mirror") else "nearest"), 1.0)]
    if mode != "grid-wrap":
        x = np.clip(x, 0.0, n - 1.0)
    low = np.clip(np.floor(x), 0.0, n - 1.0 if mode == "grid-wrap" else max(n - 2.0, 0.0))
    at = low.astype(np.int64)
    after = np.mod(at + 1, n) if mode == "grid-wrap" else np.minimum(at + 1, n - 1)
    return [(at, 1.0 - (x - low)), (after, x - low)]


def _spline(x: Array, n: int, order: int, mode: str) -> list[tuple[Any, Any]]:
    """The coefficients around x and the values of their splines, by the recursion over degrees
    (de Boor, A Practical Guide to Splines, ch. X)."""
    half = 0.0 if order % 2 else 0.5
    low = np.floor(x + half)
    right = x + half - low
    values: list[Any] = [1.0]
    for degree in range(1, order + 1):
        shares = [value / degree for value in values]
        values = [0.0] * (degree + 1)
        for k, share in enumerate(shares):
            values[k] = values[k] + (k + 1.0 - right) * share
            values[k + 1] = (right + (degree - 1.0 - k)) * share
    first = low.astype(np.int64) - order // 2
    return [(_continued(first + k, n, _SPLINES.get(mode, mode)), v) for k, v in enumerate(values)]


def _continued(at: Array, n: int, mode: str) -> Array:
    """Which coefficient is at a place beyond the ends."""
    if n == 1:
        return at * 0
    if mode == "grid-wrap":
        return np.mod(at, n)
    if mode == "nearest":
        return np.clip(at, 0, n - 1)
    if mode == "mirror":
        return n - 1 - np.abs(np.mod(at, 2 * n - 2) - (n - 1))
    at = np.mod(at, 2 * n)  # reflect
    return np.minimum(at, 2 * n - 1 - at)
