"""``a.flat``: the elements of an array in C order, whatever its layout."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ckad.trace.arrays import repeated
from ckad.trace.dispatch import call
from ckad.trace.memory.views import ReshapeView
from ckad.trace.primitives.shape import copied
from ckad.trace.values.apply import reshape_value
from ckad.trace.values.tracer import Tracer, lift, localise


class Flat(Tracer):
    """An iterator in NumPy; here a one-dimensional view whose parts are copies, as in NumPy."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        part = call(operator.getitem, (self, index), {})
        return part if part.scalar else copied(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        new = reshape_value(lift(value), (lift(value).size,))
        if new.size == 1:
            call(operator.setitem, (self, index, reshape_value(new, ())), {})
        else:
            size = np.arange(self.size)[index].size
            call(operator.setitem, (self, index, repeated(new, size)), {})

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(self.size))


def flat(x: Tracer) -> Flat:
    x = localise(x)
    path = x.path if x.ndim == 1 else (*x.path, ReshapeView((x.size,)))
    return Flat(x.storage, path)


def set_flat(x: Tracer, value: Any) -> None:
    """``x.flat = value``"""
    flat(x)[:] = value
