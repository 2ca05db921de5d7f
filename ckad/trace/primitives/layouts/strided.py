"""``as_strided``: views of the memory itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.dispatch import implements, reject
from ckad.trace.memory import layout
from ckad.trace.memory.strided import StridedView
from ckad.trace.primitives.layouts.attributes import strides
from ckad.trace.primitives.shape import copied
from ckad.trace.values.tracer import Tracer, lift, localise


@implements(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> Tracer:
    a = localise(lift(x))
    a = copied(a) if a.scalar else a
    first = layout.offset(a)
    reject(first is None, "as_strided of an array whose memory is not known: use a .copy() of it")
    assert first is not None
    lengths = a.shape if shape is None else tuple(map(int, np.atleast_1d(shape)))
    view = StridedView(first, lengths, _in_elements(a, strides))
    places = view.places()
    if places.size and not (places.min() >= 0 and places.max() < a.storage.type.size):
        raise ValueError(at_place("as_strided shows what lies outside of the array's memory"))
    return Tracer(a.storage, (view,))


def _in_elements(x: Tracer, wanted: Sequence[int] | None) -> tuple[int, ...]:
    steps = strides(x) if wanted is None else tuple(map(int, np.atleast_1d(wanted)))
    reject(any(s % x.itemsize for s in steps), "as_strided with strides within an element")
    return tuple(s // x.itemsize for s in steps)
