"""``np.mgrid``, ``np.ogrid``, ``np.r_`` and ``np.c_``: objects that are indexed to make arrays."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.trace.arrays import Array, copied, is_traced, known, promoted, reshaped, retyped, traced
from ckad.trace.dispatch import implements, put, reject, tracers


def _plain(x: Any, traced: bool = False) -> Any:
    """``x`` with its tracers replaced by known numbers; they must be known unless ``traced``."""
    if isinstance(x, slice):
        return slice(*[_plain(v, traced) for v in (x.start, x.stop, x.step)])
    if isinstance(x, tuple):
        return tuple(_plain(v, traced) for v in x)
    number = known(x) if is_traced(x) else x
    if number is None and not traced and x is not None:
        raise ConcreteValueError.here(
            "the step of a grid is a traced value, so the number of points is not known while "
            "the program is recorded. Pass Python numbers, or a number of points: 0:x:20j."
        )
    if number is None:
        return x
    return number[()] if is_traced(x) else number


def _is_traced(key: Any) -> bool:
    if isinstance(key, slice):
        return _is_traced((key.start, key.stop, key.step))
    return any(_is_traced(k) for k in key) if isinstance(key, tuple) else is_traced(key)


def _axis(part: slice) -> Array:
    """The points of one slice of a grid."""
    if not _is_traced(part):
        return traced(np.asarray(np.ogrid[part]))
    if isinstance(part.step, complex):
        return np.linspace(0 if part.start is None else part.start, part.stop, int(abs(part.step)))
    _plain(part)
    raise AssertionError


def _grid(key: Any, sparse: bool) -> Any:
    key = _plain(key, traced=True)
    if not _is_traced(key):
        made = np.ogrid[key] if sparse else np.mgrid[key]
        if isinstance(made, tuple):
            return tuple(traced(x) for x in made)
        return traced(made)
    if isinstance(key, slice):
        return _axis(key)
    axes = promoted(*[_axis(part) for part in key])
    open_axes = [reshaped(x, _along(x, k, len(axes))) for k, x in enumerate(axes)]
    if sparse:
        return tuple(open_axes)
    shape = tuple(x.size for x in axes)
    return np.stack([np.broadcast_to(x, shape) for x in open_axes])


def _along(x: Array, k: int, rank: int) -> list[int]:
    return [x.size if i == k else 1 for i in range(rank)]


# --- r_ and c_ ---------------------------------------------------------------------------------


def _joined(key: Any) -> Array:
    """``np.r_[...]``: slices become ranges, and all is joined along the first axis."""
    parts = key if isinstance(key, tuple) else (key,)
    reject(any(isinstance(p, str) for p in parts), "np.r_ with a text that says how to join")
    return np.concatenate([np.atleast_1d(_part(p)) for p in parts])


def _columns(key: Any) -> Array:
    """``np.c_[...]``: the parts as columns."""
    parts = [np.atleast_1d(_part(p)) for p in (key if isinstance(key, tuple) else (key,))]
    return np.concatenate([reshaped(p, (p.size, 1)) if p.ndim == 1 else p for p in parts], -1)


def _part(part: Any) -> Array:
    part = _plain(part, traced=True) if isinstance(part, slice) else part
    return _axis(part) if isinstance(part, slice) else traced(part)


# rows of objects that are no functions: the interpreter asks for them by what is indexed
put(np.mgrid, partial(_grid, sparse=False))
put(np.ogrid, partial(_grid, sparse=True))
put(np.r_, _joined)
put(np.c_, _columns)


@implements(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """An open mesh of indices; known masks become indices."""
    return tuple(
        reshaped(x, _along(x, k, len(args))) for k, x in enumerate(_index(a) for a in args)
    )


def _index(a: Any) -> Array:
    x = traced(a)
    if x.ndim != 1:
        raise ValueError(at_place("Cross index must be 1 dimensional"))
    numbers = known(x)
    if x.dtype == bool and numbers is not None:
        return traced(np.flatnonzero(numbers))
    reject(x.dtype == bool, "np.ix_ of a traced mask")
    return x


# --- ranges ----------------------------------------------------------------------------------


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    if not any(True for _ in tracers([start, stop])):
        made: Any = np.linspace(  # type: ignore[call-overload]  # none has a bool as retstep
            start, stop, operator.index(num), endpoint, retstep, dtype, axis
        )
        return (traced(made[0]), made[1]) if retstep else traced(made)
    start, stop, _ = promoted(start, stop, 0.0)
    num, gap = operator.index(num), np.subtract(stop, start)
    intervals = num - 1 if endpoint else num
    step = gap / intervals if intervals > 0 else gap * np.nan
    counts = np.arange(num, dtype=gap.dtype).reshape(-1, *[1] * gap.ndim)
    points = counts * (step if intervals > 0 else gap) + start
    if endpoint and num > 1:
        points = np.concatenate(
            [points[:-1], np.expand_dims(np.broadcast_to(stop, points.shape[1:]), 0)]
        )
    if dtype is not None:
        points = retyped(np.floor(points) if np.dtype(dtype).kind in "iu" else points, dtype)
    points = np.moveaxis(points, 0, axis)
    return (points, step) if retstep else points


@implements(np.meshgrid)
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError(at_place(f"indexing must be 'xy' or 'ij', not {indexing!r}"))
    xs, rank = [traced(x) for x in xi], len(xi)
    place = list(range(rank))
    if indexing == "xy" and rank > 1:
        place[:2] = [1, 0]
    grids = [
        x.reshape([-1 if k == p else 1 for k in range(rank)])
        for x, p in zip(xs, place, strict=True)
    ]
    if not sparse:
        shape = np.broadcast_shapes(*[g.shape for g in grids])
        grids = [np.broadcast_to(g, shape) for g in grids]
    return tuple(copied(g) if copy else g for g in grids)


@implements(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    powers = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else retyped(powers, dtype)


@implements(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Array:
    """Between numbers of one sign; the ends are the numbers themselves."""
    if not any(True for _ in tracers([start, stop])):
        return traced(np.geomspace(start, stop, num, endpoint, dtype, axis))
    ratio = np.divide(stop, start)
    share = np.linspace(0.0, 1.0, num, endpoint).reshape(-1, *[1] * np.ndim(ratio))
    points = start * np.power(ratio, share)
    return np.moveaxis(points if dtype is None else retyped(points, dtype), 0, axis)
