"""Which of a call's arguments share memory, with each other or with what lies outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ckad.errors import ArgumentAliasError
from ckad.trace.memory.context import Trace
from ckad.trace.values.tracer import Tracer


def sharing(arrays: Sequence[Any]) -> set[int]:
    """Positions of the arrays whose memory overlaps that of another one."""
    found: set[int] = set()
    storages: dict[int, int] = {}
    extents: list[tuple[int, int, int]] = []
    together: list[list[int]] = []  # found or not as a whole
    for k, x in enumerate(arrays):
        if isinstance(x, Tracer):
            other = storages.setdefault(id(x.storage), k)
            found.update({k, other} if other != k else ())
        elif isinstance(x, np.ndarray) and x.size:
            start, end = np.lib.array_utils.byte_bounds(x)
            before = together[-1] if together else []
            if before and before[-1] == k - 1 and all(_are_parts(arrays[j], x) for j in before):
                first, last, _ = extents.pop()
                start, end = min(first, start), max(last, end)
                before.append(k)
            else:
                together.append([k])
            extents.append((start, end, k))
    furthest, last = 0, -1
    for start, end, k in sorted(extents):
        if start < furthest:
            found.update((k, last))
        if end > furthest:
            furthest, last = end, k
    for group in together:
        found.update(group if found.intersection(group) else ())
    return found


def written_into(trace: Trace, tracers: Sequence[Tracer]) -> list[int]:
    """Which arguments were written into; an error if one of these is read by another name, too."""
    found = [k for k, x in enumerate(tracers) if x.storage.writes]
    for k in found:
        if k in trace.met:
            raise ArgumentAliasError.here(
                "the function writes into an argument that is, or shares memory with, an array "
                "that it also reads from outside, here. Hand over a .copy(), or write into one.",
                trace.met[k],
            )
    return found


def apart(arrays: Iterable[np.ndarray], others: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Those of some arrays that share memory with none of the others."""
    every = [*others]
    return [x for x in arrays if not meets(x, every)]


def meets(array: Any, others: Sequence[np.ndarray]) -> bool:
    """Whether an array, if it is one, lies in the memory of one of the others."""
    if not isinstance(array, np.ndarray):
        return False
    return any(np.may_share_memory(array, other) for other in others)


def _are_parts(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether they are other parts of the elements of one array: of complex numbers, or fields."""
    whole = x.base
    if not isinstance(whole, np.ndarray) or whole is not y.base or whole.dtype.kind not in "cV":
        return False
    (start, end), (first, last) = (_within_element(part, whole) for part in (x, y))
    return end <= first or last <= start


def _within_element(part: np.ndarray, whole: np.ndarray) -> tuple[int, int]:
    """Which bytes of the elements of ``whole`` a part of them is, from where to where."""
    start = (part.ctypes.data - whole.ctypes.data) % whole.itemsize
    own = [s for s in zip(part.strides, part.shape, strict=True) if s[0] % whole.itemsize]
    return start, start + part.itemsize + sum(abs(step) * (n - 1) for step, n in own)
