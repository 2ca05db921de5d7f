"""Loops that are recorded once for all their steps.

The body is recorded in a trace of its own, again and again until it is known what a step takes
from the one before: names that it binds and reads (their kinds may have to grow: an int that
becomes a float), and arrays from outside that it writes into.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import CarryError, CkadError
from ckad.place import call_site
from ckad.tape.control import COUNTED, UNBOUNDED, UNGUARDED, WHILE, loop_attrs
from ckad.tape.ops import Op
from ckad.trace.memory.context import (
    Trace,
    current,
    gathering,
    mark_place,
    open_trace,
    storage_in,
)
from ckad.trace.memory.foreseen import UNKNOWN, Foreseen, foresee
from ckad.trace.memory.storage import Storage, Written
from ckad.trace.source.control import notes
from ckad.trace.source.control.body import Body
from ckad.trace.source.control.carried.findings import Again, Findings, Mistaken, Stepping, freed
from ckad.trace.source.control.carried.kinds import COUNT, FLAG, End, number
from ckad.trace.source.control.filled import note_number
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.control.recalled import failures, guesses
from ckad.trace.source.draws.events import Loop, Stepped
from ckad.trace.source.draws.noted import Uncounted, drawn
from ckad.trace.source.memory import keyed
from ckad.trace.source.memory.appends import extend_by_steps
from ckad.trace.source.memory.contents import Stacked, Whole
from ckad.trace.source.memory.growing import Growing, Outgrown
from ckad.trace.source.memory.handed import housed
from ckad.trace.source.memory.housing import repeat_growth
from ckad.trace.source.memory.sharing import Place
from ckad.trace.source.names.frame import MISSING, Frame, Key, Region, open_region
from ckad.trace.values.filled import is_filled
from ckad.trace.values.grown import Grown, settle_tips
from ckad.trace.values.tracer import Tracer, fresh, lift

#: How often a body is recorded at most: without the rounds that find arrays to keep, and in all.
MOST_ROUNDS, MOST_OF_ALL = 24, 120


class StagedLoop:
    """A loop while it is found out what it carries, and then recorded."""

    def __init__(self, frame: Frame, steps: Stepping) -> None:
        self.frame, self.steps = frame, steps
        self.found = Findings(steps)
        self.around = current()
        self.place = (steps.node, call_site())
        self.likely: list[Key] = []  # names that the loop carried when it was recorded last
        self.order: guesses.Order | None = None  # of what is recalled from another recording
        is_known = self.found.is_known(self.place, self.around)
        self.order = guesses.recall(self.found.key, frame, self.found, self.around)
        self.known = self.order and self.order.guess  # as long as nothing else is found
        if self.order is not None:
            self.likely = list(self.found.carried)
        elif is_known:
            self.likely = self.found.as_before(frame, self.around)
        self.guessed = dict(self.found.written)
        self.buffers: dict[int, Storage] = {}  # of lists, likely to be written into
        self.wanted: list[Stacked] = []  # of the last round, to be kept in buffers

    # --- recording until nothing new is found --------------------------------------------------

    def run(self) -> Flow | None:
        written_out = self.around.written_out.get(self.steps.node)
        if error := written_out or failures.recall(self.found.path):
            raise error
        try:
            flow = self._settled()
        except BaseException as error:
            self.found.housing.leave()
            failures.note(self.found.path, error)
            guesses.fail(self.found.key, error)
            raise
        self.around.filling += [self.steps.node] if self.found.fills_lists else []
        return flow

    def _settled(self) -> Flow | None:
        for k in range(MOST_OF_ALL):
            if k >= MOST_ROUNDS + self.found.housing.rounds + len(self.found.written):
                break
            try:
                return self._round()
            except (Again, Uncounted) as found:
                self.known = None
                if type(found) is Mistaken:
                    self._start_over()
            except Exception as error:
                if self.order is not None:
                    self._start_over()
                elif not isinstance(error, CkadError):
                    raise
                elif self.likely:
                    self._forget(self.likely)  # it may be right without them
                elif not self.found.housing.drop():
                    raise
            finally:
                self.found.remember(self.frame, self.around)
        if self.found.housing.error is not None:
            raise self.found.housing.error
        raise CarryError.here(
            "the kinds of what this loop carries do not settle. Simplify its body."
        )

    def _start_over(self) -> None:
        """Find out everything anew: what was recalled is not as it was."""
        self.around.known_loops[self.steps.node] = None
        self.found.housing.leave()
        self.found = self.found.anew()
        self.order, self.known, self.likely, self.guessed = None, None, [], {}
        self.wanted = []

    def _check_recalled(self, is_right: bool) -> None:
        if self.order is not None and not is_right:
            raise Mistaken

    def _forget(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.found.forget(key)
        self.likely = []

    def _check_likely(self, body: Body) -> None:
        """Names that steps leave as they were are not carried."""
        wrong = [key for key in self.likely if body.leaves(key)]
        if wrong:
            self._check_recalled(False)
            self._forget(wrong)
            raise Again
        self.likely = []

    def _round(self) -> Flow | None:
        mark_place(current())
        if self.order is not None:
            self.order.restore(self.found)
        wanted: Stacked | Growing | Outgrown | None = None
        self.found.begin(self.around)
        self._house_lists()
        first = self._first_guard()
        with open_trace(adopts=True) as trace, open_region() as inner:
            trace.recalls, trace.path = self.order is not None, self.found.path
            stop = self.found.length
            trace.index_range = (0, stop) if stop < UNBOUNDED else None
            inner.steps = self._steps_of_draws(trace)
            self.found.mark(inner)
            try:
                with self._new_lists(inner), gathering(trace, self.found.written, Again):
                    body = Body(self.found, trace, inner)
                    body.enter()
                    body.run()
                    keyed.end_step(inner)
                self._settle(body, trace)
            except Written as found:
                if found.trace is not trace:
                    raise
                self.found.written[id(found.root)] = found.root
                raise Again from None
            except (Stacked, Growing, Outgrown) as found:
                wanted = found
            except Whole as found:
                if found.region is not inner:
                    raise
                self._check_recalled(self.order is None or self.order.needs_more)
                del self.found.lists[id(found.target)]
                self.found.whole[id(found.target)] = found.target
                raise Again from None
        if wanted is not None:
            self._check_recalled(self.order is None or self.order.needs_more)
            self._house(wanted)
            raise Again
        freed(body.ends, body.initial)
        foreseen = self._foresee(body, first)
        if not self._has_space(body, foreseen):
            raise Again
        failures.forget(self.found.path)
        guesses.remember(self.found.key, self.frame, body, self.known)
        self.order = None
        carry = self._initial(body, first)
        with drawn(self._draws(body, carry)):
            return self._emit(body, carry, foreseen)

    @contextmanager
    def _new_lists(self, inner: Region) -> Iterator[None]:
        """All lists that a round finds to be appended to are known in the next one, and kept in
        buffers there if need be. What else it finds may come of that they lack an item."""
        try:
            yield
        except Exception:
            if not (inner.new_lists or inner.wanted):
                raise
        finally:
            self.found.lists.update(inner.new_lists)
            self.wanted += inner.wanted
        if inner.new_lists or inner.wanted:
            raise Again

    def _steps_of_draws(self, trace: Trace) -> int:
        """For how many steps numbers are drawn, as far as it is known."""
        if self.found.guard == UNGUARDED:
            return self.found.length
        return trace.steps_of_draws.get(self.place, 1)

    def _draws(self, body: Body, carry: list[int]) -> Loop | None:
        """What the steps draw of random numbers."""
        if not body.region.draws:
            return None
        guard, n = self.found.guard, len(carry)
        _, *inputs = body.inputs_in_order
        carried = zip(inputs[:n], carry, body.results[:n], strict=True)
        loop = Stepped(body.trace, body.index.storage.row, list(carried), guard, body.region.steps)
        return Loop(loop, self.place, body.region.draws)

    # --- what is known of its steps before they run ----------------------------------------------

    def _foresee(self, body: Body, first: Any) -> Foreseen | None:
        is_while = self.found.guard == WHILE
        wanted = body.counts.positions
        if not (is_while or wanted) or self.found.guard == COUNTED:
            return None
        carry = [first] * is_while + [0] * self.found.signals
        carry += [UNKNOWN if x is MISSING else x for _, x in body.initial]
        numbers = [number(x) for x in carry]
        return foresee(body.tape, numbers, wanted, self.found.length, 0 if is_while else None)

    def _has_space(self, body: Body, foreseen: Foreseen | None) -> bool:
        """Whether the lists of this loop have space for what its steps append."""
        if foreseen is None:
            return self.found.housing.is_enough(body.region.growth, self._most())
        length = min(self._most(), foreseen.steps)
        most = body.counts.most(foreseen, self.found.housing.arrays)
        return self.found.housing.is_enough(body.region.growth, length, most)

    def _house(self, found: Stacked | Growing | Outgrown) -> None:
        """Keep a list or an array in buffers from now on, or not any more."""
        housing, most = self.found.housing, self._most()
        own = housing.outgrown(found) if isinstance(found, Outgrown) else housing.want(found, most)
        if not own:
            raise found
        if isinstance(found, Stacked):
            self.found.lists.pop(id(found.owner), None)

    def _house_lists(self) -> None:
        """Let the steps start with lists as they are kept now."""
        while self.wanted:
            self._house(self.wanted.pop(0))
        self.buffers |= self.found.housing.enter(self.found.written)
        self._forget(self.found.given_up())
        if self.order is not None and self.order.buffers:
            self.order.enter(self.found, self.around)
            self.likely = list(self.found.carried)
        for house in self.found.housing.houses.values():
            frame, name = key = house.key
            carried = self.found.carried.get(key)
            if carried is not None and carried.starting_with(frame.names[name]) is None:
                self._forget([key])

    def _most(self) -> float:
        """A bound of the number of steps."""
        return self.found.length if self.found.length < UNBOUNDED else math.inf

    def _settle(self, body: Body, trace: Trace) -> None:
        self.frame.statement = self.steps.node
        self.frame.line = self.steps.node.lineno
        self._check_likely(body)
        body.find_carried()
        self._check_guessed(trace)
        body.finish()
        self._check_recalled(self.order is None or guesses.holds(body, self.order))

    def _check_guessed(self, trace: Trace) -> None:
        """Take back what an earlier recording wrote into, and this one does not."""
        unwritten = {key for key, adopted in trace.adopted.items() if not adopted.writes}
        self._check_recalled(unwritten.isdisjoint(self.guessed))
        wrong = unwritten & {*self.guessed, *self.buffers}
        self.guessed, self.buffers = {}, {}
        for key in wrong:
            self.found.written.pop(key, None)
        if wrong:
            raise Again

    def _first_guard(self) -> Any:
        """Whether the loop starts at all, or how often it runs."""
        if self.found.guard == COUNTED:
            return self.steps.count
        if self.steps.goes_on is not None:
            return self.steps.first
        if self.found.guard == WHILE:
            return True if isinstance(self.steps.count, int) else np.greater(self.steps.count, 0)
        return None

    # --- the row --------------------------------------------------------------------------------

    def _initial(self, body: Body, first: Any) -> list[int]:
        """What the first step starts from: the rows of the carry."""
        mark_place(current())
        slot = FLAG if self.found.guard == WHILE else COUNT
        carry = [] if self.found.guard == UNGUARDED else [slot.row(lift(first))]
        if self.found.signals:
            carry.append(COUNT.row(0))
        for slot, leaf in body.initial:
            carry.append(slot.undefined() if leaf is MISSING else slot.row(leaf))
        return carry + [self._outer(body, key).row for key in body.trace.adopted]

    def _outer(self, body: Body, root: int) -> Storage:
        """What the trace around has of an array that the body adopts."""
        return storage_in(current(), body.trace.adopted[root].root)

    def _emit(self, body: Body, carry: list[int], foreseen: Foreseen | None) -> Flow | None:
        b, tape = current().builder, body.tape
        roots = list(body.trace.adopted)
        locals_ = [self._outer(body, key) for key in roots]
        operands = [*carry, *body.trace.captured]
        length, guard = self.found.length, self.found.guard
        if foreseen is not None and foreseen.is_exact:
            length, guard = foreseen.steps, UNGUARDED
        attrs = loop_attrs(b.body(tape), length, len(carry), 0, guard)
        n, given = len(carry), tape.output_types
        types = [*given[:n], *(t.with_shape((length, *t.shape)) for t in given[n:])]
        rows = b.control(Op.LOOP, operands, attrs, types)
        rows, stacks = rows[:n], [fresh(row, scalar=False) for row in rows[n:]]
        for key, local, row in zip(roots, locals_, rows[len(rows) - len(roots) :], strict=True):
            if body.trace.adopted[key].writes:
                local.check_writable()
                local.write(row)
        notes.note_recorded(self.frame.place, self.found, list(body.trace.adopted.values()))
        self._bind(body, rows, stacks)
        runs = self.found.guard == UNGUARDED and self.found.length > 0
        body.counts.settle(foreseen, self.found.housing.arrays, runs)
        self._extend_lists(body, iter(stacks))
        keyed.end_loop(body.region)
        return self._flow(body, rows)

    def _extend_lists(self, body: Body, stacks: Iterator[Tracer]) -> None:
        """What the steps have appended, at the end of the lists."""
        for target, entries in body.region.appends.values():
            each = [(next(stacks), entry.many) for entry in entries]
            extend_by_steps(target, each, [entry.slot for entry in entries], self.found.length)

    def _bind(self, body: Body, rows: list[int], stacks: list[Tracer]) -> None:
        for frame, name in [*self.found.carried, *body.kept]:
            frame.note_read(name, hands_on=(frame, name) not in body.region.asked)
        found: dict[Place, Any] = {}
        for key, end in body.ends.items():
            if isinstance(end, End):
                found.update(self._results(key, end, body.bound[key].leaves, rows))
        exact = body.outcome.exact
        tips: list[tuple[Grown, bool]] = []
        for key, end in body.ends.items():
            (frame, name), bound = key, end
            if isinstance(end, End):
                leaves = [exact.get((key, k), found[key, k]) for k in range(len(end.slots))]
                bound = body.objects.after(key, housed(trees.unflatten(end.tree, leaves)))
                tips += body.tips.after(bound, body.started.get(key), body.bound[key].value)
            frame.note_change(name)
            frame.restore(name, bound)
        settle_tips(tips)
        repeat_growth(body.region.growth, self._most())
        body.outcome.settle(found, [stack.storage for stack in stacks])
        body.objects.settle()

    def _results(
        self, key: Key, end: End, ends: Sequence[Any], rows: list[int]
    ) -> Iterator[tuple[Place, Any]]:
        """What the leaves of a name are after the loop."""
        at = (self.found.guard != UNGUARDED) + self.found.signals + end.first
        slots = self.found.of_last(end.slots, ends)
        carried = self.found.carried.get(key)
        for k, (slot, leaf) in enumerate(zip(slots, end.leaves, strict=True)):
            shown = leaf if slot is None else slot.show(rows[at])
            if carried is not None and is_filled(shown):
                shown = self._or_number(shown, ends[k], carried.leaves[k])
            yield (key, k), shown
            at += slot is not None

    def _or_number(self, x: Tracer, end: Any, before: Any) -> Tracer:
        """What a name shows after the loop, which is a number if it was and no step was made."""
        started = self._first_guard()
        return x if started is None else note_number(x, np.greater(started, 0), (end, before))

    def _flow(self, body: Body, rows: list[int]) -> Flow | None:
        if not self.found.signals:
            return None
        over: set[int] = set() if self.found.is_endless else {Flow.NEXT}
        kinds = body.kinds - {Flow.CONTINUE, Flow.NEXT} | over
        return Flow(kinds, COUNT.show(rows[int(self.found.guard != UNGUARDED)]))
