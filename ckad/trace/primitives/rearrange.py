"""New arrays whose elements are those of another in another order, or repeated."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.axes import along, axis_of
from ckad.trace.dispatch import implements, put, reject
from ckad.trace.primitives.join import concatenate
from ckad.trace.primitives.places import wrapped
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import apply, astype, broadcast_to, reshape_value
from ckad.trace.values.tracer import Tracer, lift

#: A padded axis is put together from slices if there are at most so many, else gathered.
MOST_SLICES = 8


# --- roll --------------------------------------------------------------------------------------


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    x = lift(a)
    if axis is None:
        return (
            reshape_value(roll(reshape_value(x, (x.size,)), shift, 0), x.shape)
            if x.shape
            else copied(x)
        )
    shifts, axes = np.broadcast_arrays(shift, axis)
    if shifts.ndim > 1:
        raise ValueError(at_place("'shift' and 'axis' should be scalars or 1-D sequences"))
    result = copied(x)
    for by, k in zip(shifts.ravel().tolist(), axes.ravel().tolist(), strict=True):
        result = _rolled(result, int(by), axis_of(k, x.ndim))
    return result


def _rolled(x: Tracer, by: int, axis: int) -> Tracer:
    n = x.shape[axis]
    return apply(Op.ROLL, x, attrs=(by % n, axis)) if n and by % n else x


# --- repetition --------------------------------------------------------------------------------


@implements(np.tile)
def tile(A: Any, reps: Any) -> Tracer:
    x = lift(A)
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    rank = max(x.ndim, len(reps))
    shape = (*[1] * (rank - x.ndim), *x.shape)
    reps = (*[1] * (rank - len(reps)), *[int(r) for r in reps])
    blocks = reshape_value(x, [d for n in shape for d in (1, n)])
    repeated = broadcast_to(blocks, [d for r, n in zip(reps, shape, strict=True) for d in (r, n)])
    return copied(reshape_value(repeated, [r * n for r, n in zip(reps, shape, strict=True)]))


@implements(np.repeat, contiguous=True)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    x = lift(a)
    if axis is None or not x.shape:
        x, axis = reshape_value(x, (x.size,)), 0
    k = axis_of(axis, x.ndim)
    counts = np.asarray(repeats)
    if counts.size == 1:
        return _each_repeated(x, int(counts.reshape(())), k)
    return gather(x, np.repeat(np.arange(x.shape[k]), counts), k)


def _each_repeated(x: Tracer, count: int, k: int) -> Tracer:
    head, n, tail = x.shape[:k], x.shape[k], x.shape[k + 1 :]
    spread = broadcast_to(reshape_value(x, (*head, n, 1, *tail)), (*head, n, count, *tail))
    return copied(reshape_value(spread, (*head, n * count, *tail)))


def gather(x: Tracer, index: Any, axis: int) -> Tracer:
    """``x`` at ``index`` (any shape, negative from the end) along one axis: a new array."""
    return apply(Op.GATHER, x, wrapped(index, x.shape[axis]), attrs=(axis,))


# --- pad ---------------------------------------------------------------------------------------


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Tracer:
    x = lift(array)
    reject(isinstance(pad_width, dict), "np.pad with a dict as pad_width=")
    pairs = np.broadcast_to(pad_width, (x.ndim, 2)).tolist()
    widths = [[operator.index(w) for w in pair] for pair in pairs]
    if min((w for pair in widths for w in pair), default=0) < 0:
        raise ValueError(at_place("index can't contain negative values: pad_width must be >= 0"))
    if mode == "constant":
        return copied(_pad_constant(x, widths, **options))
    supported = ("edge", "wrap", "reflect", "symmetric", "empty")
    reject(mode not in supported, f"np.pad with mode={mode!r}")
    reject(options.pop("reflect_type", "even") != "even", "np.pad with reflect_type='odd'")
    reject(bool(options), f"np.pad with {min(options, default='')}= in mode {mode!r}")
    mode = "edge" if mode == "empty" else mode
    for k, width in enumerate(widths):
        x = _padded_axis(x, np.pad(np.arange(x.shape[k]), width, mode), k)
    return copied(x)


def _pad_constant(x: Tracer, widths: Any, constant_values: Any = 0) -> Tracer:
    if isinstance(constant_values, Tracer) or np.size(constant_values) == 1:
        return _framed(x, widths, constant_values)
    values = np.broadcast_to(constant_values, (x.ndim, 2))
    for k, (before, after) in enumerate(widths):
        ends = [(*x.shape[:k], n, *x.shape[k + 1 :]) for n in (before, after)]
        low, high = (broadcast_to(values[k, i].astype(x.dtype), ends[i]) for i in (0, 1))
        x = concatenate([low, x, high], k)
    return x


def _framed(x: Tracer, widths: Any, constant: Any) -> Tracer:
    """``x`` in the middle of an array that holds one number."""
    type = x.type.with_shape(tuple(a + n + b for n, (a, b) in zip(x.shape, widths, strict=True)))
    attrs = (*[a for a, _ in widths], *[1] * x.ndim)
    if not isinstance(constant, Tracer) and np.all(np.equal(constant, 0)):
        return apply(Op.PAD, x, attrs=attrs, type=type)
    number = reshape_value(astype(constant, x.dtype), ())
    frame = broadcast_to(number, type.shape)
    return apply(Op.UPDATE, frame, x, attrs=attrs)


def _padded_axis(x: Tracer, index: np.ndarray, k: int) -> Tracer:
    runs = _runs(index)
    if len(runs) > MOST_SLICES:
        return gather(x, index, k)
    return concatenate([_run(x, run, k) for run in runs], k) if runs else x


def _runs(index: np.ndarray) -> list[np.ndarray]:
    """The index cut into stretches of constant step -1, 0 or 1."""
    steps = np.diff(index)
    far = np.abs(steps) > 1
    changes = np.flatnonzero(far | (steps != np.roll(steps, 1)))
    cuts: list[int] = []
    for i in changes.tolist():
        if far[i] or (i and cuts[-1:] != [i]):
            cuts.append(i + 1)
    return [run for run in np.split(index, cuts) if len(run)]


def _step(stretch: np.ndarray) -> int | None:
    steps = set(np.diff(stretch).tolist()) or {1}
    step = steps.pop()
    return step if not steps and abs(step) <= 1 else None


def _run(x: Tracer, run: np.ndarray, k: int) -> Array:
    first, last, step = int(run[0]), int(run[-1]), _step(run)
    if step == 0:
        part = x[along(k, slice(first, first + 1))]
        return broadcast_to(part, (*x.shape[:k], len(run), *x.shape[k + 1 :]))
    assert step is not None, run  # ``_runs`` cuts where it changes
    stop = last + step
    return x[along(k, slice(first, None if stop < 0 else stop, step))]


put(arrays.taken, gather)
