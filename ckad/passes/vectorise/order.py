"""Which values of a loop's body all iterations need, and in which order they can be computed."""

from __future__ import annotations

from collections.abc import Iterable

from ckad.passes.liveness import readers_of
from ckad.passes.vectorise import region as regions
from ckad.passes.vectorise.extremum import Record, follower_of, leader_of
from ckad.passes.vectorise.reduction import Term, terms_of
from ckad.passes.vectorise.region import Region, Unknown
from ckad.passes.vectorise.survey import (
    Blank,
    Entered,
    Initial,
    Patched,
    Source,
    Survey,
    Unfit,
    Written,
)
from ckad.tape.ops import Op


class Order:
    """Which values of the body all iterations need, each after those it is computed from."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.sources: dict[int, Source] = {
            k: survey.source(view) for k, view in survey.views.items() if survey.uses[k]
        }
        cells = range(len(survey.cells))
        entered: list[list[int]] = [[] for _ in cells]
        for k, source in self.sources.items():
            if isinstance(source, Entered):
                entered[source.cell].append(k)
        self._readers = readers_of(survey.rows)
        self._starts = [self._start_of(at, entered[at]) for at in cells]
        self._follows = [self._following(start) for start in self._starts]
        self.terms = [self._terms(at) for at in cells]
        self.leaders = {at: r for at in cells if (r := self._leader(at)) is not None}
        self.records = self.leaders | {
            at: r for at in cells if (r := self._follower(at)) is not None
        }
        self.rows = self._sorted(self._wanted())

    def _start_of(self, at: int, entered: Iterable[int]) -> set[int]:
        """The rows that show what a cell holds when an iteration starts."""
        survey, cell = self.survey, self.survey.cells[at]
        region = cell.region
        if region is None:
            base = survey.inputs[1 + cell.carry]
            region = regions.everything(survey.rows[base].type.shape)
        return {k for k in entered if self.sources[k] == (at, region)}

    def _terms(self, at: int) -> list[Term] | None:
        """The terms of a cell that is a reduction."""
        survey, cell = self.survey, self.survey.cells[at]
        places = [] if cell.region is not None else survey.moving()
        about = self._starts[at], survey.uses, self._follows[at], places
        terms = terms_of(survey.rows, cell.out, *about)
        added = terms is not None and all(t.op in (Op.ADD, Op.SUB) for t in terms)
        if cell.merged and not added:
            raise Unfit("iterations read what earlier ones wrote")
        return terms

    def _leader(self, at: int) -> Record | None:
        out, survey = self.survey.cells[at].out, self.survey
        if len(self._starts[at]) != 1:
            return None
        return leader_of(survey.rows, out, self._starts[at], survey.uses, self._follows[at])

    def _follower(self, at: int) -> Record | None:
        out, survey = self.survey.cells[at].out, self.survey
        if len(self._starts[at]) != 1:
            return None
        led = list(self.leaders.values())
        return follower_of(survey.rows, out, self._starts[at], survey.uses, self._follows[at], led)

    def leader(self, record: Record) -> int:
        """The cell whose value decides whether a record is kept."""
        return next(at for at, r in self.leaders.items() if r.condition == record.condition)

    def _following(self, start: set[int]) -> set[int]:
        follows, pending = set(start), list(start)
        while pending:
            new = [k for k in self._readers[pending.pop()] if k not in follows]
            follows.update(new)
            pending += new
        return follows

    def _wanted(self) -> Iterable[int]:
        survey = self.survey
        yield from survey.outputs[len(survey.loop.carry) :]
        for at, cell in enumerate(survey.cells):
            yield from self._computed(at)
            yield from _unknown(cell.region or ())
        for c in survey.stored:
            for w in survey.spread(c):
                yield survey.writes[w].value
                yield from _unknown(survey.writes[w].region)

    def _computed(self, at: int) -> Iterable[int]:
        """What a cell's value after the loop is made from."""
        terms, record = self.terms[at], self.records.get(at)
        if record is not None:
            yield from (record.found, record.value)
        elif terms is None:
            yield self.survey.cells[at].out
        for term in terms or ():
            yield from (term.row, *(mask.row for mask in term.masks))

    def _sorted(self, wanted: Iterable[int]) -> list[int]:
        """Everything needed, in order; Unfit where a value depends on itself."""
        order: list[int] = []
        state: dict[int, bool] = {}  # whether it is done
        stack = list(wanted)[::-1]
        while stack:
            k = stack.pop()
            if state.get(k) is None:
                state[k] = False
                before = self._before(k)
                stack.append(k)
                for x in before:
                    if state.get(x) is False:
                        raise Unfit("an iteration needs what the one before it computes")
                    if x not in state:
                        stack.append(x)
            elif not state[k]:
                state[k] = True
                order.append(k)
        return order

    def _before(self, k: int) -> list[int]:
        if k in self.sources:
            view = self.survey.views[k]
            return [*_unknown(view.region), *self._of_source(self.sources[k])]
        return [] if k in self.survey.values else list(self.survey.rows[k].operands)

    def _of_source(self, source: Source) -> list[int]:
        if isinstance(source, Initial):
            base = [] if source.base in self.survey.carries else [source.base]
            return [*base, *_unknown(source.region)]
        if isinstance(source, Blank):
            return []
        if isinstance(source, Written):
            return [self.survey.writes[source.write].value]
        if isinstance(source, Patched):
            return [*self._of_source(source.before), self.survey.writes[source.write].value]
        terms, cell = self.terms[source.cell], self.survey.cells[source.cell]
        if terms is not None or source.cell in self.records:
            raise Unfit("a sum is read before it is complete")
        return [cell.out, *_unknown(source.region)]


def _unknown(region: Region) -> list[int]:
    return [a.row for a in region if isinstance(a, Unknown)]
