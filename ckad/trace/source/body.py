"""One recording of a loop's body: what a step starts from, what it hands on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import AliasError, CarryError
from ckad.place import at_place
from ckad.tape.types import Type
from ckad.trace.memory.context import Trace
from ckad.trace.memory.storage import Storage, spoilt_since
from ckad.trace.memory.views import is_static
from ckad.trace.primitives.part.structures import own_part, part_in
from ckad.trace.source import branches
from ckad.trace.source.aliases import live_names
from ckad.trace.source.carrying import (
    COUNT,
    FLAG,
    INDEX,
    Again,
    Carried,
    End,
    Findings,
    carried_from,
    changes,
    is_maybe,
)
from ckad.trace.source.checks import Stops, maybe
from ckad.trace.source.flow import Flow, definite
from ckad.trace.source.frame import (
    MISSING,
    RETURN,
    Key,
    Maybe,
    Region,
    Unclear,
    check_changeable,
)
from ckad.trace.source.sharing import Turn, Turns, memory
from ckad.trace.source.swaps import Places, places_after
from ckad.trace.source.values import Slot, flatten, join, same, slot_of
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.tracer import Tracer, lift, value


class Body:
    """One recording of a loop's body."""

    def __init__(self, loop: Findings, trace: Trace, region: Region) -> None:
        self.loop, self.trace, self.region = loop, trace, region
        self.inputs: dict[Key, list[Tracer]] = {}
        self.initial: list[tuple[Slot, Any]] = []
        self.outputs: list[int] = []
        self.lead: list[int] = []
        self.ends: dict[Key, Any] = {}
        self.places: Places = {}
        self.memories: dict[Key, list[Storage | None]] = {}
        self.kinds: frozenset[int] = frozenset({Flow.NEXT})
        self.guard_in: Tracer | None = None

    # --- what a step starts from ----------------------------------------------------------------

    def enter(self) -> None:
        loop, trace = self.loop, self.trace
        self.index = Tracer(Storage(trace, trace.builder.input(INDEX)), (), True, True)
        if loop.guard:
            self.guard_in = (FLAG if loop.guard == 1 else COUNT).enter(trace)
        if loop.signals:
            COUNT.enter(trace)
        for key, carried in loop.carried.items():
            frame, name = key
            tracers = [s.enter(trace) if s else None for s in carried.slots]
            leaves = [x if t is None else t for t, x in zip(tracers, carried.leaves, strict=True)]
            self.inputs[key] = [t for t in tracers if t is not None]
            self.region.changed.setdefault(key, frame.names.get(name, MISSING))
            frame.names[name] = trees.unflatten(carried.tree, leaves)
        self.entered = set(loop.carried)
        for root in loop.written.values():
            trace.adopt(root)

    def run(self) -> None:
        loop = self.loop
        # names that are carried count as changed from the start; what the body itself binds is
        # told by its bindings
        try:
            flow = loop.steps.step(self.index)
        except Stops:  # at the end of the first step the program is over
            flow = definite(Flow.BREAK)
        kinds = flow.kinds if flow is not None else self.kinds
        self.kinds = kinds
        ends_early = bool(kinds & {Flow.BREAK, Flow.RETURN})
        if ends_early and loop.lists:
            check_changeable(next(iter(loop.lists.values())))
        if ends_early and not loop.signals:
            loop.signals, loop.guard = True, 1
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
        if loop.guard == 2:
            assert self.guard_in is not None
            self.lead.append(value(self.guard_in))
        if loop.guard != 1:
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
        return branches.either(runs_on, goes_on, lambda: False)

    # --- what it hands on -----------------------------------------------------------------------

    def finish(self) -> None:
        """Compare what names are bound to with what they were carried as; the body's tape."""
        self._find_carried()
        first = 0
        for key in self.region.changed:
            frame, name = key
            end = frame.names.get(name, MISSING)
            made = self._end(key, end, first)
            self.ends[key] = made
            if isinstance(made, End):
                first += sum(s is not None for s in made.slots)
        self.places = places_after(self.loop, self.inputs)
        self._note_memory()
        outputs = [*self.lead, *self.outputs]
        outputs += [local.row for local in self.trace.adopted.values()]
        for target, entries in self.region.appends.values():
            if any(x.storage.writes for xs in self.inputs.values() for x in xs):
                check_changeable(target)  # an item may be an array that a later step writes into
            outputs += [value(entry.value) for entry in entries]
        self.tape = self.trace.tape(outputs, self._inputs())

    def _note_memory(self) -> None:
        """What the arrays that are carried are memory of, and those that are shown afterwards."""
        turns = []
        for key, carried in self.loop.carried.items():
            frame, name = key
            ends = flatten(frame.names.get(name, MISSING))[0]
            entered = iter(self.inputs[key])
            for slot, first, end in zip(carried.slots, carried.leaves, ends, strict=True):
                own = next(entered).storage if slot is not None else None
                if own is not None and slot is not None and not slot.scalar:
                    turns.append(Turn(key, memory(first), own, memory(end)))
        self.turns = Turns(turns, self.trace)
        self.turns.check(spoilt_since(self.region.n_spoilt))
        for turn in self.turns.written(self.places):
            for other in self.turns.reached(turn):
                if other.first is not None:
                    self._check_names(turn.key, other.first)
        for key, end in self.ends.items():
            if isinstance(end, End):
                leaves = flatten(own_part(key[0].names[key[1]]))[0]
                self.memories[key] = [memory(leaf) for leaf in leaves]

    def _check_names(self, key: Key, first: Storage) -> None:
        """AliasError where a name shows memory that is written into by ``key`` only at first."""
        loop = self.loop
        other = next(live_names(first.root, loop.carried, loop.steps.node), None)
        if other is not None:
            raise _aliased(key[1], other[1])

    def _find_carried(self) -> None:
        """Names that are read before they are bound carry; record again with those found now."""
        found = False
        for key in self.region.changed:
            if key in self.loop.carried or key not in self.region.read:
                continue
            frame, name = key
            before = self.region.changed[key]
            end = frame.names.get(name, MISSING)
            if before is MISSING or self._stays(before, end):
                continue
            self.loop.carried[key] = kept = carried_from(name, before, end)
            for first in filter(None, map(memory, kept.leaves)):  # it may be written by this name
                self.loop.written.pop(id(first.root), None)
            found = True
        if found:
            raise Again

    def _stays(self, before: Any, end: Any) -> bool:
        if before is end or same(before, end):
            return True
        if type(before) is ComplexTracer and type(end) is ComplexTracer:
            return all(map(self._stays, before.parts, end.parts))
        if type(before) is not Tracer or type(end) is not Tracer or before.path != end.path:
            return False
        same_rows = before.storage.trace is end.storage.trace
        return before.storage.root is end.storage.root and (same_rows or is_static(end.path))

    def _end(self, key: Key, end: Any, first: int) -> Any:
        carried = self.loop.carried.get(key)
        if carried is not None:
            return self._carried_end(key, carried, end, first)
        if end is MISSING or type(end) is Unclear:
            return end
        if self._stays(self.region.changed[key], end):
            return self.region.changed[key]
        return self._last_value(key, end, first)

    def _carried_end(self, key: Key, carried: Carried, end: Any, first: int) -> Any:
        name = key[1]
        if type(end) is Unclear:
            raise end.error
        if type(end) is Maybe and carried.tree != flatten(end)[1]:
            self.loop.carried[key] = carried.or_unbound()
            raise Again
        if type(end) is not Maybe and is_maybe(carried.tree):
            end = maybe(end)
        leaves, tree = flatten(end)
        if end is MISSING or tree != carried.tree:
            raise changes(name, trees.describe(carried.tree), trees.describe(tree))
        wider = list(carried.slots)
        for k, (slot, x) in enumerate(zip(carried.slots, leaves, strict=True)):
            found = slot_of(x)
            if slot is None:
                if not same(carried.leaves[k], x):
                    raise changes(name, repr(carried.leaves[k]), repr(x))
                continue
            joined = None if found is None else join(slot, found, broadcasts=True)
            if joined is None:
                raise changes(name, str(slot.type), str(found.type) if found else repr(x))
            wider[k] = joined
        if wider != carried.slots:
            self.loop.carried[key] = carried._replace(slots=wider)
            raise Again
        for slot, x, start in zip(carried.slots, leaves, carried.leaves, strict=True):
            if slot is not None:
                self.outputs.append(slot.row(x))
                self.initial.append((slot, start))
        return End(tree, carried.leaves, carried.slots, first)

    def _last_value(self, key: Key, end: Any, first: int) -> Any:
        """A name that each step binds anew: what it is after the last one."""
        frame, name = key
        if not frame.is_read_later(name):
            return MISSING if self.region.changed[key] is MISSING else self._no_value(name)
        before = self.region.changed[key]
        certain = isinstance(self.loop.steps.count, int) and self.loop.guard == 0
        if type(before) is Unclear:
            before = MISSING
        if before is MISSING and not certain and name != RETURN:
            end, before = maybe(end), MISSING
        elif type(before) is Maybe or type(end) is Maybe:
            end = maybe(end)
            before = before if before is MISSING else maybe(before)
        leaves, tree = flatten(own_part(end))
        slots = [slot_of(x) for x in leaves]
        if any(s is None for s in slots):
            return end if certain and part_in(leaves) is None else self._no_value(name)
        if not certain:
            frame.note_read(name)
        starts: list[Any] = [MISSING] * len(leaves)
        if before is MISSING and type(end) is Maybe and not certain:
            starts[-1] = False
        if not certain and before is not MISSING:
            olds, old_tree = flatten(before)
            kinds = [slot_of(x) for x in olds]
            joined = [join(s, t) if s and t else None for s, t in zip(kinds, slots, strict=False)]
            if old_tree != tree or any(j is None for j in joined):
                return self._no_value(name)
            starts, slots = olds, list(joined)
        for slot, x, start in zip(slots, leaves, starts, strict=True):
            assert slot is not None
            self.outputs.append(slot.row(x))
            self.initial.append((slot, start))
        return End(tree, leaves, slots, first)

    def _no_value(self, name: str) -> Unclear:
        return Unclear(
            CarryError(
                at_place(
                    f"the variable {name!r} is read after a loop whose steps bind it to values of "
                    "different kinds, or to what cannot be recorded. Bind it after the loop."
                )
            )
        )

    def _inputs(self) -> list[int | Type]:
        """The step's number, the carry, the adopted storages, then what is captured."""
        trace = self.trace
        late = [*trace.adopted_inputs.values(), *trace.captured.values()]
        first = [row for row in trace.builder.inputs if row not in set(late)]
        # a name's last value is an output of a carry whose input nothing reads
        entered = sum(len(x) for x in self.inputs.values())
        return [*first, *(slot.type for slot, _ in self.initial[entered:]), *late]


def _aliased(name: str, other: str) -> AliasError:
    return AliasError(
        at_place(
            f"the loop binds {name!r} to other arrays and writes into them, and {other!r} shows "
            f"the memory that {name!r} starts with. Start with a copy: {name} = {name}.copy()."
        )
    )
