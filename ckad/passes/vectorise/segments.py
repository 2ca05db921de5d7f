"""Sums over known runs of places become products of a sparse matrix.

``y[i] = data[p[i]:p[i + 1]] @ x[columns[p[i]:p[i + 1]]]`` is recorded for all i as the sum of whole
rows of places under a mask. Where the mask and the columns are known, only what is under it is
computed, run behind run, and ``y`` is the product of a matrix in CSR form with ``x``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckad.passes.contract.bounds import between, evaluated, known
from ckad.passes.cse import Sharing
from ckad.passes.rewrite import in_bodies, rebuild
from ckad.passes.simplify import simplify
from ckad.rules.routines.sparse import packed, product
from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

#: Sums of fewer elements stay as they are, and those of which a mask leaves more than a part.
LEAST, PART = 512, 4


def segments(tape: Tape) -> Tape:
    """``tape`` with sums under known masks as products of sparse matrices."""
    rows = tape.rows
    if not any(r.op is Op.SUM and _is_of_many(r, rows, r.operands[0]) for r in rows):
        return in_bodies(tape, segments)
    found = []

    def rewrite(b: Builder, row: Row, env: list[int]) -> int | None:
        made = _sum(b, row, env)
        if made is not None:
            found.append(made)
        return made

    made = rebuild(tape, rewrite, segments, Sharing())
    return simplify(made) if found else made


def _is_of_many(row: Row, rows: Sequence[Row], term: int) -> bool:
    """Whether a row sums the rows of a large matrix, which ``term`` of ``rows`` is."""
    if row.attrs != (1,) or not row.type.is_float:
        return False
    type = rows[term].type
    return len(type.shape) == 2 and type.size >= LEAST


def _sum(b: Builder, row: Row, env: list[int]) -> int | None:
    if row.op is not Op.SUM:
        return None
    term = env[row.operands[0]]
    if not _is_of_many(row, b.rows, term):
        return None
    type = b.type(term)
    found = _Runs.under(b, _mask(b, term), type.shape)
    if found is None or PART * len(found.places) > type.size:
        return None
    made = _Terms(b, found).added(term)
    return None if made is None else _as(b, made, row.type.dtype)


def _as(b: Builder, x: int, dtype: DType) -> int:
    type = b.type(x)
    return x if type.dtype is dtype else b.convert(x, type=Type(dtype, type.shape))


def _mask(b: Builder, k: int) -> int | None:
    """The mask outside of which row k is a zero, or a product with one, that nobody computes."""
    row = b.rows[k]
    if row.op is Op.SELECT:
        mask, _, rest = row.operands
        return mask if Masks(b.rows, b.constants).is_zero(rest) else None
    if row.op is Op.MUL:
        return next((m for x in row.operands if (m := _mask(b, x)) is not None), None)
    return _mask(b, row.operands[0]) if row.op is Op.NEG else None


class _Runs(NamedTuple):
    """What a mask leaves of the places of rows: run behind run."""

    mask: int
    indptr: np.ndarray  # where the run of each row begins, and the last ends
    rows: np.ndarray  # of each element that is left
    places: np.ndarray
    length: int  # of the rows

    @classmethod
    def under(cls, b: Builder, mask: int | None, shape: Sequence[int]) -> _Runs | None:
        """Those of a mask between known bounds."""
        if mask is None:
            return None
        found = between(b, mask)
        if found is None:
            return None
        first, last = found
        n, length = shape
        counts = last - first
        indptr = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(np.arange(n), counts)
        places = np.arange(indptr[-1]) - indptr[rows] + first[rows]
        return cls(mask, indptr, rows, places, length)

    @property
    def is_all(self) -> bool:
        """Whether each place is met once, in order."""
        return np.array_equal(self.places, np.arange(self.length))


class _Terms:
    """Rows of as many elements as runs have, from rows of all places."""

    def __init__(self, b: Builder, runs: _Runs) -> None:
        self.b, self.runs = b, runs
        self.made: dict[int, int | None] = {}

    def added(self, term: int) -> int | None:
        """The sum over each run."""
        b, row = self.b, self.b.rows[term]
        if row.op is Op.MUL:
            for data, x in (row.operands, row.operands[::-1]):
                picked = self.picked(x)
                if picked is not None and (numbers := self.of(data)) is not None:
                    return self._product(numbers, *picked)
        numbers = self.of(term)
        one = b.const(np.ones(1))
        nothing = np.zeros(len(self.runs.places), np.int64)
        return None if numbers is None else self._product(numbers, one, nothing)

    def _product(self, data: int, x: int, columns: np.ndarray) -> int:
        b, indptr = self.b, self.runs.indptr
        n, m = b.type(x).size, len(indptr) - 1
        where = [b.const(packed(index)) for index in (indptr, columns)]
        x = b.reshape_to(_as(b, x, DType.F64), (n, 1))
        found = product(b, _as(b, data, DType.F64), x, where, (0, m, n))
        return b.reshape_to(found, (m,))

    def picked(self, k: int) -> tuple[int, np.ndarray] | None:
        """A vector and which of its elements row k is, if these are known."""
        b, row = self.b, self.b.rows[k]
        if row.op is Op.SELECT and row.operands[0] == self.runs.mask:
            return self.picked(row.operands[1])
        if row.op is Op.BROADCAST and row.type.shape[0] > 1:
            return self._repeated(row)
        if row.op is not Op.GATHER or row.attrs != (0,) or len(b.type(row.operands[0]).shape) != 1:
            return None
        columns = self.numbers(row.operands[1])
        return None if columns is None else (row.operands[0], columns)

    def _repeated(self, row: Row) -> tuple[int, np.ndarray] | None:
        b, (x,) = self.b, row.operands
        shape = (1,) * (2 - len(b.type(x).shape)) + b.type(x).shape
        if shape[0] != 1 and shape[1] != 1:
            return None
        places = self.runs.rows if shape[0] != 1 else self.runs.places
        return b.reshape_to(x, (b.type(x).size,)), places if max(shape) > 1 else 0 * places

    def of(self, k: int) -> int | None:
        if k not in self.made:
            self.made[k] = self._of(k)
        return self.made[k]

    def _of(self, k: int) -> int | None:
        b, row, runs = self.b, self.b.rows[k], self.runs
        picked = self.picked(k)
        if picked is not None:
            x, places = picked
            if b.type(x).size == runs.length and places is runs.places and runs.is_all:
                return x
            return b.gather(x, b.const(places), attrs=(0,))
        if row.op is Op.SELECT and row.operands[0] == runs.mask:
            return self.of(row.operands[1])
        if not is_elementwise(row.op) or row.op is Op.WRAP:
            return None
        operands = [self.of(x) for x in row.operands]
        if any(x is None for x in operands):
            return None
        type = row.type.with_shape((len(runs.places),))
        return b.emit(row.op, [x for x in operands if x is not None], row.attrs, type)

    def numbers(self, k: int) -> np.ndarray | None:
        """The same of integers that are known."""
        b, row, runs = self.b, self.b.rows[k], self.runs
        if row.op is Op.SELECT and row.operands[0] == runs.mask:
            return self.numbers(row.operands[1])
        whole = known(b, k)
        if whole is not None:
            return np.asarray(whole[runs.rows, runs.places])
        if not is_elementwise(row.op):
            return None
        operands = [self.numbers(x) for x in row.operands]
        if any(x is None for x in operands) or row.type.is_float:
            return None
        try:
            return np.asarray(evaluated(row, (len(runs.places),), operands))
        except IndexError:
            return None
