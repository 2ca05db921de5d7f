"""What is known while recording: shapes and dtypes, answered in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace.arrays import is_traced, traced
from ckad.trace.axes import axes_of
from ckad.trace.dispatch import implements, put


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return traced(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return traced(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = traced(a)
    return int(np.prod([x.shape[k] for k in axes_of(axis, x.ndim)], dtype=np.int64))


def _plain_type(x: Any) -> Any:
    return x.dtype if is_traced(x) else x


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*map(_plain_type, arrays_and_dtypes))


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(_plain_type(from_), _plain_type(to), casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, traced(x).dtype) for x in arrays])


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return False


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return True


@implements(np.may_share_memory, np.shares_memory)
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return is_traced(a) and is_traced(b) and a.storage.root is b.storage.root


def _places_in(function: Any) -> Any:
    def places(arr: Any, *args: Any, **options: Any) -> tuple[np.ndarray, ...]:
        return function(np.empty(traced(arr).shape, bool), *args, **options)

    return places


for _function in (np.diag_indices_from, np.tril_indices_from, np.triu_indices_from):
    put(_function, _places_in(_function))
