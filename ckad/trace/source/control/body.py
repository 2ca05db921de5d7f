"""One recording of a loop's body: what a step starts from, what it hands on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import CarryError
from ckad.tape.control import COUNTED, UNGUARDED, WHILE
from ckad.tape.types import Type
from ckad.trace.memory.context import Trace
from ckad.trace.memory.storage import Storage, link
from ckad.trace.primitives.part.structures import own_part, part_in
from ckad.trace.source.choices import fitted, holds_choice, unified
from ckad.trace.source.control import branches
from ckad.trace.source.control.carried.findings import Again, Findings
from ckad.trace.source.control.carried.kinds import (
    COUNT,
    FLAG,
    INDEX,
    Carried,
    End,
    binds_first,
    carried_from,
    changes,
    is_maybe,
    one_kind,
    remains,
    restructured,
    stays,
)
from ckad.trace.source.control.checks import Stops, maybe, not_caught_outside
from ckad.trace.source.control.flow import Flow, definite
from ckad.trace.source.control.outcome import Bound, Objects, Outcome
from ckad.trace.source.memory.aliases import names_showing
from ckad.trace.source.memory.contents import Contents, Stacked, Whole, changes_length, is_unhoused
from ckad.trace.source.memory.counts import Counts
from ckad.trace.source.memory.growing import Tips, check_outgrown
from ckad.trace.source.memory.handed import handed, housed
from ckad.trace.source.memory.rows import stacks
from ckad.trace.source.memory.rows.stacks import Stack
from ckad.trace.source.memory.sharing import Place, together
from ckad.trace.source.memory.twins import containers
from ckad.trace.source.names import instances
from ckad.trace.source.names.absence import shared, spread
from ckad.trace.source.names.frame import MISSING, RETURN, Key, Maybe, Region, Unclear, ledger, made
from ckad.trace.source.outside.equal import same
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.values import Slot, flatten, join, slot_of
from ckad.trace.values.grown import aligned
from ckad.trace.values.grown import unified as unified_rows
from ckad.trace.values.tracer import Tracer, lift, value

#: Items of a list that are carried one by one at most, if a step moves them all.
FEW = 8


class Body:
    """One recording of a loop's body."""

    def __init__(self, loop: Findings, trace: Trace, region: Region) -> None:
        assert trace.parent is not None
        self.loop, self.trace, self.region, self.around = loop, trace, region, trace.parent
        self.inputs: dict[Key, list[Tracer]] = {}
        self.entered: dict[Place, Storage] = {}  # the arrays among them
        self.started: dict[Key, Any] = {}  # what the names are bound to then
        self.initial: list[tuple[Slot, Any]] = []
        self.outputs: list[int] = []
        self.lead: list[int] = []
        self.ends: dict[Key, Any] = {}
        self.kept: list[Key] = []  # bound anew by each step, and as before the loop without one
        self.kinds: frozenset[int] = frozenset({Flow.NEXT})
        self.guard_in: Tracer | None = None
        self.tips = Tips(trace)

    # --- what a step starts from ----------------------------------------------------------------

    def enter(self) -> None:
        loop, trace = self.loop, self.trace
        self.index = Tracer(Storage(trace, trace.builder.input(INDEX)), (), True, True)
        self.region.index = self.index
        if loop.guard != UNGUARDED:
            self.guard_in = (FLAG if loop.guard == WHILE else COUNT).enter(trace)
        if loop.signals:
            COUNT.enter(trace)
        for key, carried in loop.carried.items():
            frame, name = key
            pairs = list(zip(carried.slots, carried.leaves, strict=True))
            tracers = [s.enter(trace, x) if s else None for s, x in pairs]
            leaves = [x if t is None else t for t, (_, x) in zip(tracers, pairs, strict=True)]
            self.inputs[key] = [t for t in tracers if t is not None]
            self.region.changed.setdefault(key, frame.names.get(name, MISSING))
            first = frame.names.get(name)
            started = housed(trees.unflatten(carried.tree, leaves))
            self.tips.enter(started, first)
            frame.names[name] = self.started[key] = started
            for (copy,) in containers(self.started[key]):
                self.region.copies[id(copy)] = made(copy) if type(copy) in CONTAINERS else copy
            for k, entered in enumerate(tracers):
                if entered is not None and not entered.scalar:
                    self.entered[key, k] = entered.storage
        for (frame, name), unclear in loop.unclear.items():
            self.region.changed.setdefault((frame, name), frame.names.get(name, MISSING))
            frame.names[name] = unclear
        for root in loop.written.values():
            trace.adopt(root)
        self.tips.begin()
        self._link()

    def _link(self) -> None:
        """Note what the arrays that a step starts with may be the same memory as."""
        origins = self.loop.origins
        for place, storage in self.entered.items():
            origins[place].enter(storage)
        for one, other in combinations(self.entered, 2):
            first, second = (self.loop.carried[key].leaves[k] for key, k in (one, other))
            if other in origins[one].others or together(first, second):
                link(self.entered[one], self.entered[other])

    def run(self) -> None:
        loop = self.loop
        # names that are carried count as changed from the start
        try:
            with not_caught_outside():
                flow = loop.steps.step(self.index)
        except Stops:  # at the end of the first step the program is over
            flow = definite(Flow.RAISE)
        kinds = flow.kinds if flow is not None else self.kinds
        self.kinds = kinds
        ends_early = bool(kinds - {Flow.NEXT, Flow.CONTINUE})
        if ends_early and loop.lists:
            raise Whole(next(iter(loop.lists.values())), self.region)
        if ends_early and not loop.signals:
            loop.signals, loop.guard = True, WHILE
            raise Again
        self._guard(flow)
        if loop.signals:
            signal = 0 if flow is None else flow.signal
            if Flow.CONTINUE in kinds:
                signal = np.where(np.equal(signal, Flow.CONTINUE), 0, signal)
            self.lead.append(COUNT.row(signal))

    def _guard(self, flow: Flow | None) -> None:
        """The flag for the next step, or the count as it was."""
        loop = self.loop
        if loop.guard == COUNTED:
            assert self.guard_in is not None
            self.lead.append(value(self.guard_in))
        if loop.guard != WHILE:
            return
        more: Any = True
        goes_on = loop.steps.goes_on
        if goes_on is None and not isinstance(loop.steps.count, int):
            more = np.less(self.index + 1, loop.steps.count)
        runs_on = True if flow is None else flow.goes(Flow.NEXT, Flow.CONTINUE)
        if goes_on is not None:
            more = self._tested(goes_on, runs_on)
        elif runs_on is not True:
            more = runs_on if more is True else np.logical_and(more, runs_on)
        self.lead.insert(0, FLAG.row(lift(more)))

    def _tested(self, goes_on: Callable[[], Any], runs_on: bool | Tracer) -> Any:
        if runs_on is True:
            return goes_on()
        if runs_on is False:
            return False
        if self.loop.is_endless:
            return runs_on
        return branches.either(runs_on, goes_on, lambda: False, ("test", self.loop.steps.node))

    # --- what it hands on -----------------------------------------------------------------------

    def finish(self) -> None:
        """Compare what names are bound to with what they were carried as; the body's tape."""
        first = 0
        for key in self.region.changed:
            end = key[0].names.get(key[1], MISSING)
            end = end if end is self.region.changed[key] else handed(key[0], end)
            made = self._end(key, end, first)
            self.ends[key] = made
            if isinstance(made, End):
                first += sum(s is not None for s in made.slots)
        bound = {k: self._bound(k, end) for k, end in self.ends.items() if isinstance(end, End)}
        self.outcome = Outcome(self.loop, self.trace, self.region, self.entered, bound)
        self.objects = Objects(self.loop, self.region, self.started, bound)
        self.outcome.check_appends()
        self.bound = bound
        lead = (self.loop.guard != UNGUARDED) + self.loop.signals
        self.counts = Counts({key: (x.value, x.end) for key, x in bound.items()}, lead)
        outputs = [*self.lead, *self.outputs]
        outputs += [local.row for local in self.trace.adopted.values()]
        outputs += [value(one.value) for _, found in self.region.appends.values() for one in found]
        self.results, self.inputs_in_order = outputs, self._inputs()
        self.tape = self.trace.tape(outputs, self.inputs_in_order)

    def _bound(self, key: Key, end: End) -> Bound:
        """What a name is bound to at the end of a step, in the form in which it is handed on."""
        shown = own_part(key[0].names[key[1]])
        found = fitted(handed(key[0], shown), end.tree)
        shown = shown if isinstance(shown, CONTAINERS) else found
        if is_maybe(end.tree):
            found, shown = maybe(found), maybe(shown)
        return Bound(end, shown, spread(found, end.tree)[0])

    def find_carried(self) -> None:
        """Names that are read before they are bound carry; record again with those found now."""
        found, rebound = False, self.loop.rebound(self.region)
        for key in self.region.changed:
            frame, before = key[0], self.region.changed[key]
            end = frame.names.get(key[1], MISSING)
            if key in rebound or self.loop.knows(key) or end is before:
                continue
            end = handed(frame, end)
            if before is MISSING:
                if not self._is_bound_by_some(key, end):
                    continue
            elif not self._is_needed(key, end) or remains(before, end, self.region.changed):
                continue
            self._check_window(key, before, end)
            found, is_asked = True, key in self.region.asked
            before = handed(frame, self.loop.before(before, self.region.changed))
            if kept := self.loop.carried_from(key, before, end, is_asked):
                self.loop.carry(key, kept, self.around, spread(end, kept.tree)[0])
        if found:
            self.loop.housing.forget(rebound)
            raise Again

    def _check_window(self, key: Key, before: Any, end: Any) -> None:
        """Have a long list kept as rows of buffers, from one end of which items are taken."""
        frame, _ = key
        if not isinstance(frame, Contents) or type(before) is not tuple or type(end) is not tuple:
            return
        is_shifted = type(frame.owner) is deque or frame.appended is not None
        if is_shifted and len(before) > FEW and not is_unhoused(frame.owner):
            raise Stacked(frame.owner, changes_length("list"), is_needed=False)

    def _is_needed(self, key: Key, end: Any) -> bool:
        """Whether a step needs what a name is bound to after the one before."""
        frame, _ = key
        if key in self.region.read or not isinstance(frame, Contents):
            return key in self.region.read
        if type(end) is not Unclear:
            return True
        may_be_known = self.loop.may_be_written_out and not self.loop.signals
        if may_be_known and next(names_showing(frame.owner), None) is not None:
            raise end.error
        return False

    def _is_bound_by_some(self, key: Key, end: Any) -> bool:
        """Whether some steps bind a name first, and others find it as these left it."""
        frame, name = key
        is_some = type(end) is Maybe
        is_met = key in self.region.unsure and end is not MISSING
        if not (is_some or is_met):
            return False
        is_list = is_some and id(end.value) in ledger().contents  # one from before the loop
        is_carried = not is_list and all(slot_of(x) is not None for x in flatten(end)[0])
        if is_list and frame.is_read_later(name):
            raise binds_first(key)
        if is_met and not (is_carried and is_some) and self.loop.may_be_written_out:
            raise binds_first(key)
        return is_carried and (is_met or (is_some and frame.is_read_later(name)))

    def leaves(self, key: Key) -> bool:
        """Whether a step ends with what a carried name starts with."""
        frame, name = key
        return stays(self.started[key], frame.names.get(name, MISSING))

    def _end(self, key: Key, end: Any, first: int) -> Any:
        carried = self.loop.carried.get(key)
        if carried is not None:
            return self._carried_end(key, carried, end, first)
        if end is MISSING or type(end) is Unclear:
            return end
        before = self.region.changed[key]
        if stays(before, end) and all(x is y for x, y in containers(before, end)):
            return before
        return self._last_value(key, end, first)

    def _carried_end(self, key: Key, carried: Carried, end: Any, first: int) -> Any:
        if type(end) is Unclear:
            raise end.error
        if type(end) is Maybe and carried.tree != flatten(end)[1]:
            self.loop.carried[key] = carried.or_unbound()
            raise Again
        if type(end) is not Maybe and is_maybe(carried.tree):
            end = maybe(end)
        end = fitted(end, carried.tree)
        check_outgrown(self.started[key], end)
        leaves, tree = spread(end, carried.tree)
        if tree != carried.tree and any(aligned(end)):
            unified_rows(self.started[key], end)
            del self.loop.carried[key]
            raise Again
        if type(end) is Stack and tree != carried.tree:
            stacks.unified(self.started[key], end)
            if tree.type is carried.tree.type:  # another of its numbers changes
                del self.loop.carried[key]
                raise Again
        if tree != carried.tree:
            self._widen(key, carried, end)
        if end is MISSING or tree != carried.tree:
            raise restructured(key, carried.tree, tree)
        wider = list(carried.slots)
        for k, (slot, x) in enumerate(zip(carried.slots, leaves, strict=True)):
            found = slot_of(x)
            if slot is None:
                if not same(carried.leaves[k], x):
                    raise changes(key, repr(carried.leaves[k]), repr(x))
                continue
            if x is MISSING:
                continue
            joined = None if found is None else join(slot, found, broadcasts=True)
            if joined is None:
                raise changes(key, str(slot.type), str(found.type) if found else repr(x))
            wider[k] = joined
        if wider != carried.slots:
            self.loop.carried[key] = carried._replace(slots=wider)
            raise Again
        for slot, x, start in zip(carried.slots, leaves, carried.leaves, strict=True):
            if slot is not None:
                self.outputs.append(slot.undefined() if x is MISSING else slot.row(x))
                self.initial.append((slot, start))
        return End(tree, carried.leaves, carried.slots, first)

    def _widen(self, key: Key, carried: Carried, end: Any) -> None:
        """Carry a name that may be None, or something of which may, or yet another object."""
        first = trees.unflatten(carried.tree, carried.leaves)
        partial = flatten(end)[1] if holds_choice(end) else shared(first, end)
        if partial is None or partial == carried.tree or carried.tree.type is Maybe:
            return
        wider = carried_from(key, first, end)
        self.loop.carry(key, wider, self.around, spread(end, partial)[0])
        raise Again

    def _last_value(self, key: Key, end: Any, first: int) -> Any:
        """A name that each step binds anew: what it is after the last one."""
        frame, name = key
        if not frame.is_read_later(name):
            return MISSING if self.region.changed[key] is MISSING else self._no_value(name)
        before = handed(frame, self.region.changed[key])
        certain = isinstance(self.loop.steps.count, int) and self.loop.guard == UNGUARDED
        if certain and type(end) in (int, float, bool) and self.loop.length:
            return end
        before = MISSING if type(before) is Unclear else before
        if before is MISSING and not certain and name != RETURN:
            end, before = maybe(end), MISSING
        elif type(before) is Maybe or type(end) is Maybe:
            end = maybe(end)
            before = before if before is MISSING else maybe(before)
        shown, (before, end) = end, unified(before, end, self.region.made)
        end = own_part(end)
        partial = None if certain or before is MISSING else shared(before, end)
        leaves, tree = flatten(end) if partial is None else spread(end, partial)
        slots = [slot_of(x) for x in leaves]
        if any(s is None for s in slots):
            if any(slots) and instances.among(shown):  # what it holds is of the step's trace
                raise self._no_value(name).error
            if not certain and stays(self.region.changed[key], shown):
                return self.region.changed[key]
            return shown if certain and part_in(leaves) is None else self._no_value(name)
        if not certain:
            self.kept.append(key)
        starts: list[Any] = [MISSING] * len(leaves)
        if before is MISSING and type(end) is Maybe and not certain:
            starts[-1] = False
        if not certain and before is not MISSING:
            olds, old_tree = spread(before, tree)
            kinds = [slot_of(x) for x in olds]
            joined = [
                t if x is MISSING else one_kind(s, t)
                for x, s, t in zip(olds, kinds, slots, strict=False)
            ]
            if old_tree != tree or any(j is None for j in joined):
                return self._no_value(name)
            starts, slots = olds, list(joined)
        for slot, x, start in zip(slots, leaves, starts, strict=True):
            assert slot is not None
            self.outputs.append(slot.row(x))
            self.initial.append((slot, start))
        return End(tree, leaves, slots, first)

    def _no_value(self, name: str) -> Unclear:
        said = f"the variable {name!r} is read after a loop whose steps bind it to values of "
        said += "different kinds, or to what cannot be recorded. Bind it after the loop."
        return Unclear(CarryError.here(said))

    def _inputs(self) -> list[int | Type]:
        """The step's number, the carry, the adopted storages, then what is captured."""
        trace = self.trace
        late = [*trace.adopted_inputs.values(), *trace.captured.values()]
        first = [row for row in trace.builder.inputs if row not in set(late)]
        # a name's last value is an output of a carry whose input nothing reads
        entered = sum(len(x) for x in self.inputs.values())
        return [*first, *(slot.type for slot, _ in self.initial[entered:]), *late]
