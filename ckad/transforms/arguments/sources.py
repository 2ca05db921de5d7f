"""Arguments that lie in files and are read by pieces (zarr's and h5py's arrays, and their like).

A program reads numbers where they lie. So such an argument is read once for a call, block by block:
into a file of the budget's disk, which is mapped and gone with the call, or into memory if it fits.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ckad import trees
from ckad.checkpoint.budget import Budget
from ckad.checkpoint.store.faults import told
from ckad.errors import BudgetError, TraceError
from ckad.loops.driver import Options
from ckad.memory import format_bytes, free_memory, parse_bytes
from ckad.place import at_place
from ckad.trace.dispatch import Traced
from ckad.trace.values.tracer import known_dtype

#: Bytes that are read at a time; one element along the first axis if that is more.
BLOCK = 2**22
#: Most arguments are of these classes, which are no sources, nor hold any.
PLAIN = frozenset((np.ndarray, np.float64, float, int, complex, str))
#: Without a budget, this part of the free memory is taken.
PART = 4


@runtime_checkable
class Source(Protocol):
    """What has numbers and gives some of them when it is sliced."""

    shape: Any
    dtype: Any

    def __getitem__(self, key: slice, /) -> Any: ...


@runtime_checkable
class _Computes(Protocol):
    def __add__(self, other: Any, /) -> Any: ...


def as_arrays(args: Sequence[Any], options: Options) -> tuple[Sequence[Any], Options]:
    """``args`` with every source as an array; the options say what is left of the disk."""
    for x in args:
        if type(x) not in PLAIN and _may_be_one(x):
            break
    else:
        return args, options
    leaves, tree = trees.flatten(tuple(args), _is_source)
    found = [k for k, x in enumerate(leaves) if _is_source(x)]
    if not found:
        return args, options
    for k in found:
        leaves[k], options = _as_array(leaves[k], options)
    return trees.unflatten(tree, leaves), options


def _may_be_one(x: Any) -> bool:
    """The same of an argument; of Python's own containers by what lies in them, since to ask
    whether something is a source takes longer than a small call."""
    kind = type(x)
    if kind in PLAIN:
        return False
    if kind is list or kind is tuple or kind is dict:
        try:
            return any(map(_may_be_one, x.values() if kind is dict else x))
        except RecursionError:  # it holds itself, which is refused where it is taken apart
            return True
    return _may_hold(kind)


def _may_hold(kind: type) -> bool:
    """Whether an object of this class may be a source, or hold one."""
    return not issubclass(kind, (np.ndarray, np.generic, float, int, complex, str, Traced))


def _is_source(x: Any) -> bool:
    """Numbers that compute by themselves are no source: they are in memory. Nor is a dataclass
    with arrays in it, which is a structure of them; those of zarr are dataclasses too."""
    if not _may_hold(type(x)) or isinstance(x, _Computes) or not isinstance(x, Source):
        return False
    has_numbers = isinstance(x.shape, tuple) and bool(x.shape) and _has_dtype(x)
    return has_numbers and not (trees.is_dataclass(x) and _holds_arrays(x))


def _holds_arrays(x: Any) -> bool:
    fields = [getattr(x, field.name, None) for field in dataclasses.fields(x)]
    inside, _ = trees.flatten(fields, trees.is_dataclass)
    return any(
        _holds_arrays(y) if trees.is_dataclass(y) else isinstance(y, (np.ndarray, Traced))
        for y in inside
    )


def _has_dtype(x: Source) -> bool:
    try:
        np.dtype(x.dtype)
    except TypeError:
        return False
    return True


def _as_array(source: Source, options: Options) -> tuple[np.ndarray, Options]:
    shape = tuple(int(n) for n in source.shape)
    dtype = known_dtype(np.empty(0, source.dtype)).dtype
    nbytes = prod(shape) * dtype.itemsize
    budget = options.memory
    if isinstance(budget, Budget) and budget.disk_bytes is not None and nbytes:
        left = budget.disk_bytes - nbytes
        if left <= 0:
            have = f"disk={budget.disk!r} is {budget.disk_bytes:,} bytes"
            raise BudgetError(_refused(source, nbytes, have, "more disk="))
        mapped = _in_file(
            source, shape, dtype, os.fspath(budget.directory or tempfile.gettempdir())
        )
        return mapped, dataclasses.replace(options, memory=dataclasses.replace(budget, disk=left))
    asked = options.asked
    room = free_memory() // PART if asked is None else parse_bytes(asked)
    if nbytes > room:
        have = f"memory={asked!r}" if asked is not None else "a quarter of the free memory"
        raise BudgetError(_refused(source, nbytes, f"{have} is {room:,} bytes", "a disk"))
    whole = np.empty(shape, dtype)
    for first, block in _blocks(source, shape, dtype):
        whole[first : first + len(block)] = block
    return whole, options


def _refused(source: Source, nbytes: int, have: str, wanted: str) -> str:
    return at_place(
        f"an argument is a {type(source).__name__} of shape {source.shape}, which is read by "
        f"pieces; as {nbytes:,} bytes it has to lie on disk or in memory while steps read it, and "
        f"{have}. "
        f'Pass {wanted}: memory=ckad.Budget(memory=..., disk="{format_bytes(2 * nbytes)}"); or a '
        "np.memmap, which is read where it lies; or the part of it that the function needs."
    )


def _in_file(source: Source, shape: tuple[int, ...], dtype: Any, directory: str) -> np.ndarray:
    """The numbers in a file that has no name: it is gone with the array, also after a kill."""
    nbytes = prod(shape) * dtype.itemsize
    blocks = _blocks(source, shape, dtype)
    with (
        told(directory, directory, nbytes),
        tempfile.TemporaryFile(dir=directory, buffering=0) as file,
    ):
        for _, block in blocks:
            left = block.data.cast("B")
            while left:
                left = left[file.write(left) :]
        return np.memmap(file, dtype, "r", shape=shape)


def _blocks(source: Source, shape: tuple[int, ...], dtype: Any) -> Iterator[tuple[int, np.ndarray]]:
    """The index of the first of some elements along the first axis, and these."""
    at_once = max(1, BLOCK // max(1, prod(shape[1:]) * dtype.itemsize))
    chunks = getattr(source, "chunks", None)
    if isinstance(chunks, tuple) and 1 < chunks[0] < at_once:  # each chunk is decoded once
        at_once -= at_once % chunks[0]
    for first in range(0, shape[0], at_once):
        last = min(first + at_once, shape[0])
        block = np.ascontiguousarray(source[first:last], dtype)
        if block.shape != (last - first, *shape[1:]):
            raise TraceError.here(
                f"a {type(source).__name__} says that its shape is {shape}, and "
                f"[{first}:{last}] of it has shape {block.shape}. Pass an array, or what gives "
                "the elements of its first axis when it is sliced."
            )
        yield first, block
