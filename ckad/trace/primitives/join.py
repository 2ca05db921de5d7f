"""Arrays put together from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.tape.ops import Op
from ckad.trace.axes import axis_of
from ckad.trace.dispatch import implements, reject
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import apply, astype, finish, reshape_value
from ckad.trace.values.tracer import Tracer, lift


def _common(arrays: Any, dtype: Any) -> list[Tracer]:
    """The arrays in one dtype; a Python number counts as an array here, not as a weak scalar."""
    xs = [lift(x) for x in arrays]
    if not xs:
        raise ValueError(at_place("need at least one array to concatenate"))
    dtype = np.result_type(*[x.dtype for x in xs]) if dtype is None else dtype
    return [astype(x, dtype) for x in xs]


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    reject(casting != "same_kind", f"np.concatenate with casting={casting!r}")
    xs = _common(arrays, dtype)
    if axis is None:
        xs, axis = [reshape_value(x, (x.size,)) for x in xs], 0
    if any(not x.shape for x in xs):
        raise ValueError(at_place("zero-dimensional arrays cannot be concatenated; use np.stack"))
    k = axis_of(axis, xs[0].ndim)
    _check_shapes(xs, k)
    return finish(copied(xs[0]) if len(xs) == 1 else apply(Op.CONCAT, *xs, attrs=(k,)), out)


def _check_shapes(xs: Sequence[Tracer], axis: int) -> None:
    rest = {(x.ndim, *x.shape[:axis], *x.shape[axis + 1 :]) for x in xs}
    if len(rest) > 1:
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ValueError(at_place(f"shapes {shapes} differ in more than axis {axis}"))


@implements(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    xs = [lift(x) for x in arrays]
    if len({x.shape for x in xs}) > 1:
        raise ValueError(at_place(f"np.stack needs equal shapes, got {[x.shape for x in xs]}"))
    k = axis_of(axis, xs[0].ndim + 1) if xs else 0
    return concatenate([_with_axis(x, k) for x in xs], k, out, dtype=dtype, casting=casting)


def _with_axis(x: Tracer, axis: int) -> Tracer:
    return reshape_value(x, (*x.shape[:axis], 1, *x.shape[axis:]))
