"""Axis arguments and shapes, read in one place."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ckad.place import at_place


def axis_of(axis: Any, rank: int) -> int:
    """One axis in [0, rank); AxisError if out of range."""
    return normalize_axis_index(operator.index(axis), rank)


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that an ``axis=`` argument means, in order of the array; ``None`` means all."""
    return tuple(range(rank)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, rank)))


def reduced_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The same where NumPy lets axis 0 of a 0-d array stand for no axis."""
    return () if not rank and axis in (0, -1) else axes_of(axis, rank)


def along(axis: int, index: Any) -> tuple[Any, ...]:
    """The index that applies ``index`` to ``axis`` and takes all of the axes before it."""
    return (*[slice(None)] * axis, index)


def common_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """``np.broadcast_shapes``, for all ranks that NumPy's arrays can have."""
    longer = {shape for shape in map(tuple, shapes) if shape}
    if len(longer) < 2:  # and numbers, which fit any
        return longer.pop() if longer else ()
    rank = max(map(len, shapes), default=0)
    aligned = zip(*((*[1] * (rank - len(s)), *s) for s in shapes), strict=True)
    lengths = [{n for n in axis if n != 1} or {1} for axis in aligned]
    if any(len(n) > 1 for n in lengths):
        raise ValueError(
            at_place(
                f"operands could not be broadcast together with shapes "
                f"{' '.join(str(tuple(s)) for s in shapes)}. Axes have to be equally long, or 1; "
                "x[:, None] inserts an axis."
            )
        )
    return tuple(n for (n,) in lengths)
