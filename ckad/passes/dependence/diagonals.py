"""The Jacobian of a program of shifts and elementwise ops, as the diagonals that it is a sum of.

An element of such a value changes with few elements of the input. A *term* is one of them for each
element: where it lies in the input, which is known, and the derivative by it, a row of the tape.
Rules of tangents are linear in what they are given: of the derivatives of the operands in place of
tangents they make that of the result, term by term. So a stencil of five elements has five terms,
and nothing is multiplied by zeros, as it is when several columns share a tangent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ckad.passes.activity import varied
from ckad.passes.squares import Squares
from ckad.rules import RULES
from ckad.tape.builder import Builder
from ckad.tape.ops import Op, is_elementwise
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType, Type

#: Terms of one value, and rows of terms, beyond which tangents of several columns are cheaper.
MOST_TERMS, MOST_ROWS = 32, 4096
#: Places that are held at once, of all values.
MOST_PLACES = 2**26
#: Elements that the order of terms is chosen by.
SAMPLE = 256
#: Ops that put elements of their float operands to other places, each to one of the result's own.
_MOVES = frozenset(
    {Op.RESHAPE, Op.BROADCAST, Op.TRANSPOSE, Op.SLICE, Op.PAD, Op.ROLL, Op.GATHER, Op.CONCAT,
     Op.UPDATE}
)  # fmt: skip


class Term(NamedTuple):
    """One element of the input for each element of a value, and the derivative by it."""

    label: int  # what it is told by among the terms of values that are joined
    value: int  # a row; 0 where there is none
    places: np.ndarray  # int32, flat: where it lies in the input; -1: there is none


class Diagonals(NamedTuple):
    """The derivatives of the one output, an array [*shape, terms], and where they belong."""

    tape: Tape
    places: np.ndarray  # int32 [size, terms], ascending in most rows; -1: there is none


class _OtherOps(Exception):
    """The tape does more than shifts and elementwise ops."""


def diagonals_of(tape: Tape, wrt: int) -> Diagonals | None:
    """From the inputs to the derivatives of the only output by input ``wrt``; None if the tape has
    loops, sums, computed indices or others of which a value depends on many elements."""
    squares = Squares(tape)
    if squares.wanted or squares.signed:
        return None
    walk = _Walk(tape, wrt)
    try:
        terms = walk.run()
    except _OtherOps:
        return None
    if not terms or not terms[0].places.size:
        return None
    b, places = walk.b, np.stack([t.places for t in terms], -1)
    order = _usual_order(terms)
    rows = [b.reshape_to(t.value, (*b.type(t.value).shape, 1)) for t in (terms[k] for k in order)]
    axis = len(b.type(rows[0]).shape) - 1
    return Diagonals(b.tape([b.concat(*rows, attrs=(axis,))]), places[:, order])


def terms_of(wrt: int, tape: Tape) -> Tape:
    """The tape of `diagonals_of`, where there are such."""
    found = diagonals_of(tape, wrt)
    assert found is not None
    return found.tape


def _usual_order(terms: Sequence[Term]) -> np.ndarray:
    """The order in which terms are ascending in most elements of a sample."""
    size = len(terms[0].places)
    sample = np.linspace(0, size - 1, min(SAMPLE, size)).astype(np.int64)
    of = np.stack([t.places[sample] for t in terms], 1)
    orders = np.argsort(np.where(of < 0, np.iinfo(np.int32).max, of), axis=1, kind="stable")
    found, counts = np.unique(orders, axis=0, return_counts=True)
    most: np.ndarray = found[counts.argmax()]
    return most


class _Walk:
    """One tape, row by row: copied, and the terms of what varies."""

    def __init__(self, tape: Tape, wrt: int) -> None:
        self.tape, self.wrt, self.b = tape, wrt, Builder()
        self.env: dict[int, int] = {}
        self.terms: dict[int, list[Term]] = {}
        self.n_labels = 0
        self.places: dict[bytes, np.ndarray] = {}
        self.held = 0

    def run(self) -> list[Term]:
        tape, b = self.tape, self.b
        moving, _ = varied(tape, [k == self.wrt for k in range(len(tape.inputs))])
        for k, row in enumerate(tape.rows):
            b.where = tape.sources[row.source]
            self.env[k] = b.copy_row(tape, k, self.env)
            if moving[k]:
                self.terms[k] = list(self._told_apart(self._terms(k, row)))
            if len(self.terms.get(k, ())) > MOST_TERMS or len(b.rows) > MOST_ROWS:
                raise _OtherOps
        return self.terms.get(int(tape.outputs[0]), [])

    def _terms(self, k: int, row: Row) -> Iterator[Term]:
        if row.op is Op.INPUT:
            places = np.arange(row.type.size, dtype=np.int32)
            yield Term(0, self.b.full_like(self.env[k], 1.0), self._known(places))
        elif is_elementwise(row.op):
            yield from self._elementwise(k, row)
        elif row.op in _MOVES:
            yield from self._moved(k, row)
        else:
            raise _OtherOps

    def _told_apart(self, terms: Iterable[Term]) -> Iterator[Term]:
        """The same under labels of which none occurs twice."""
        seen = set[int]()
        for term in terms:
            label = term.label
            if label in seen:
                self.n_labels += 1
                label = self.n_labels
            seen.add(label)
            yield term._replace(label=label)

    def _of_rule(self, k: int, row: Row, given: Sequence[Term | None]) -> int:
        rule = RULES[row.op].jvp
        assert rule is not None
        values = [None if t is None else t.value for t in given]
        operands = [self.env[x] for x in row.operands]
        found = rule(self.b, values, self.env[k], *operands, attrs=row.attrs)
        return self.b.full_like(self.env[k], 0.0) if found is None else found

    def _elementwise(self, k: int, row: Row) -> Iterator[Term]:
        """Terms of the operands about the same elements go through the rule at once."""
        n = len(row.operands)
        groups: list[tuple[list[Term | None], np.ndarray]] = []
        for at, x in enumerate(row.operands):
            for term in self.terms.get(x, ()):
                free = [g for g, (given, _) in enumerate(groups) if given[at] is None]
                same = [g for g in free if groups[g][1] is term.places]
                for g in same or free:
                    given, places = groups[g]
                    both = _joined(places, term.places)
                    if both is not None:
                        given[at] = term
                        groups[g] = given, both
                        break
                else:
                    groups.append(([term if j == at else None for j in range(n)], term.places))
        for given, places in groups:
            label = next(t.label for t in given if t is not None)
            yield Term(label, self._of_rule(k, row, given), places)

    def _moved(self, k: int, row: Row) -> Iterator[Term]:
        """No two operands give to one place, so that any of their terms may be one; those of one
        label are. At the end, where nothing follows, they are told by their order in a row."""
        left = {at: list(self.terms[x]) for at, x in enumerate(row.operands) if x in self.terms}
        if row.op is Op.CONCAT and k == self.tape.outputs[0]:
            left = {at: _ranked(terms) for at, terms in left.items()}
        while any(left.values()):
            label = next(terms[0].label for terms in left.values() if terms)
            given: list[Term | None] = [None] * len(row.operands)
            for at, terms in left.items():
                same = [j for j, t in enumerate(terms) if t.label == label]
                if same:
                    given[at] = terms.pop(same[0])
            for at, terms in left.items():
                if given[at] is None and terms and not _is_elsewhere(terms[0], left, at):
                    given[at] = terms.pop(0)
            places = self._places(row, given)
            if (places >= 0).any():
                value = self._everywhere(row, given)
                value = self._of_rule(k, row, given) if value is None else value
                yield Term(label, value, self._known(places))

    def _everywhere(self, row: Row, given: Sequence[Term | None]) -> int | None:
        """A number that all elements have is that of any of them."""
        b, first = self.b, given[0]
        if row.op in (Op.PAD, Op.CONCAT, Op.UPDATE) or first is None:
            return None
        of = b.rows[first.value]
        if of.op is not Op.BROADCAST or b.type(of.operands[0]).shape:
            return None
        return b.broadcast_to(of.operands[0], row.type.shape)

    def _known(self, places: np.ndarray) -> np.ndarray:
        """The array of the same places that there is already, so that it is told by what it is."""
        key = blake2b(places.tobytes(), digest_size=16).digest()
        self.held += 0 if key in self.places else places.size
        if self.held > MOST_PLACES:
            raise _OtherOps
        return self.places.setdefault(key, places)

    def _places(self, row: Row, given: Sequence[Term | None]) -> np.ndarray:
        """What the op does to places: it is run on them, from 1 on."""
        operands: list[np.ndarray] = []
        for x, term in zip(row.operands, given, strict=True):
            of = self.tape.rows[x]
            if term is not None:
                operands.append((term.places + 1).reshape(of.type.shape))
            elif of.type.is_float:
                operands.append(np.zeros(of.type.shape, np.int32))
            elif of.op is Op.CONST:
                operands.append(self.tape.constants[of.attrs[0]])
            else:
                raise _OtherOps  # a computed index
        evaluator = RULES[row.op].evaluate
        assert evaluator is not None
        found = evaluator(Type(DType.I64, row.type.shape), row.attrs, *operands)
        return np.asarray(found, np.int32).ravel() - np.int32(1)


def _ranked(terms: Sequence[Term]) -> list[Term]:
    return [terms[k]._replace(label=rank) for rank, k in enumerate(_usual_order(terms))]


def _is_elsewhere(term: Term, left: dict[int, list[Term]], own: int) -> bool:
    """Whether another operand has a term of that label, too."""
    return any(t.label == term.label for at, ts in left.items() if at != own for t in ts)


def _joined(p: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """The places of two terms as those of one; None where an element would have two."""
    if p is q:
        return p
    step = max(len(p) // SAMPLE, 1)
    for x, y in ((p[::step], q[::step]), (p, q)):
        if np.any((x != y) & (x >= 0) & (y >= 0)):
            return None
    joined: np.ndarray = np.maximum(p, q)
    return joined
