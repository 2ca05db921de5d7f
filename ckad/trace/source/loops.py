"""Loops that are recorded once for all their steps.

The body is recorded in a trace of its own, again and again until it is known what a step takes
from the one before: names that it binds and reads (their kinds may have to grow: an int that
becomes a float), and arrays from outside that it writes into.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import AliasError, CarryError
from ckad.tape.control import UNBOUNDED, loop_attrs
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type
from ckad.trace.complex_numbers import ComplexTracer
from ckad.trace.context import (
    Storage,
    Trace,
    Written,
    current,
    mark_place,
    open_trace,
    spoil,
    spoilt_since,
    storage_in,
)
from ckad.trace.parts import own_part, part_in
from ckad.trace.source import notes
from ckad.trace.source.aliases import live_names, names_of
from ckad.trace.source.appends import Appended, extend
from ckad.trace.source.checks import Stops, maybe
from ckad.trace.source.flow import Flow, definite
from ckad.trace.source.frame import (
    MISSING,
    RETURN,
    Frame,
    Key,
    Ledger,
    Maybe,
    Region,
    Unclear,
    check_changeable,
    open_region,
)
from ckad.trace.source.sharing import Shown, Turn, Turns, memory, settle_loop
from ckad.trace.source.values import Slot, arrays_of, flatten, join, same, slot_of
from ckad.trace.tracer import Tracer, assign, fresh, lift, value
from ckad.trace.views import is_static
from ckad.trace.where import at_place

INDEX = Type(DType.I64, ())
FLAG = Slot(Type(DType.BOOL, ()), True, False)
COUNT = Slot(INDEX, True, True)
#: A loop's body is recorded at most so often until it is known what it carries.
MOST_ROUNDS = 24


class Steps(NamedTuple):
    """What a loop does: how often at most, and what one step is.

    ``count`` is an int, a traced int, or None for a loop that runs while ``goes_on``. ``most`` is
    a bound of a count that is not an int. ``step`` gets the step's number and says how it ends.
    """

    node: ast.For | ast.While
    count: Any
    most: int | None
    step: Callable[[Tracer], Flow | None]
    goes_on: Callable[[], Any] | None = None


class _Carried(NamedTuple):
    """A name whose value goes from step to step: its structure, the kinds of its leaves."""

    tree: trees.Treedef
    slots: list[Slot | None]
    leaves: list[Any]  # the first value; what is not traced stays

    def or_unbound(self) -> _Carried:
        """The same for a name that may not be bound after some step."""
        leaves, tree = flatten(maybe(trees.unflatten(self.tree, self.leaves)))
        return _Carried(tree, [*self.slots, slot_of(True)], leaves)


class _Again(Exception):
    """The body has to be recorded again, with more that it carries."""


class _End(NamedTuple):
    """What a name is bound to at the end of a step: result rows, from ``first`` on."""

    tree: trees.Treedef
    leaves: list[Any]
    slots: list[Slot | None]
    first: int


class StagedLoop:
    """A loop while it is found out what it carries, and then recorded."""

    def __init__(self, frame: Frame, steps: Steps) -> None:
        self.frame, self.steps = frame, steps
        self.carried: dict[Key, _Carried] = {}
        self.written: dict[int, Storage] = {}
        self.lists: dict[int, list[Any]] = {}  # what the body appends to
        self.guard = 0 if isinstance(steps.count, int) else 2
        if steps.goes_on is not None:
            self.guard = 1
        self.signals = False  # whether a signal is carried: how the loop ended

    @property
    def length(self) -> int:
        """The bound of the number of steps."""
        if isinstance(self.steps.count, int):
            return self.steps.count
        return UNBOUNDED if self.steps.most is None else max(0, self.steps.most)

    @property
    def is_endless(self) -> bool:
        """Whether the loop only ends where its body leaves it: ``while True``."""
        node = self.steps.node
        return isinstance(node, ast.While) and isinstance(node.test, ast.Constant)

    # --- recording until nothing new is found --------------------------------------------------

    def run(self) -> Flow | None:
        for _ in range(MOST_ROUNDS):
            try:
                return self._round()
            except _Again:
                continue
        raise CarryError(
            at_place("the kinds of what this loop carries do not settle. Simplify its body.")
        )

    def _round(self) -> Flow | None:
        mark_place(current())
        first = self._first_guard()
        with open_trace(adopts=True) as trace, open_region() as region:
            stop = self.length
            trace.index_range = (0, stop) if stop < UNBOUNDED else None
            region.takes_appends = self.guard == 0
            region.appends = {key: (target, []) for key, target in self.lists.items()}
            try:
                body = _Body(self, trace, region)
                body.enter()
                body.run()
            except Written as found:
                if found.trace is not trace:
                    raise
                self.written[id(found.root)] = found.root
                raise _Again from None
            except Appended as found:
                if found.region is not region:
                    raise
                self.lists[id(found.target)] = found.target
                raise _Again from None
            self.frame.statement = self.steps.node
            self.frame.line = self.steps.node.lineno
            body.finish()
        return self._emit(body, first)

    def _first_guard(self) -> Any:
        """Whether the loop starts at all, or how often it runs; evaluated around the body."""
        if self.guard == 2:
            return self.steps.count
        if self.steps.goes_on is not None:
            return self.steps.goes_on()
        if self.guard == 1:
            return True if isinstance(self.steps.count, int) else np.greater(self.steps.count, 0)
        return None

    def restart(self) -> None:
        raise _Again

    # --- the row --------------------------------------------------------------------------------

    def _emit(self, body: _Body, first: Any) -> Flow | None:
        trace = current()
        mark_place(trace)
        b, tape = trace.builder, body.tape
        carry = [] if self.guard == 0 else [(FLAG if self.guard == 1 else COUNT).row(lift(first))]
        if self.signals:
            carry.append(COUNT.row(0))
        for slot, leaf in body.initial:
            carry.append(slot.undefined() if leaf is MISSING else slot.row(leaf))
        roots = list(body.trace.adopted)
        locals_ = [storage_in(trace, body.trace.adopted[key].root) for key in roots]
        carry += [s.row for s in locals_]
        operands = [*carry, *body.trace.captured]
        attrs = loop_attrs(b.body(tape), self.length, len(carry), 0, self.guard)
        types, n = tape.output_types, len(carry)
        types = [*types[:n], *(t.with_shape((self.length, *t.shape)) for t in types[n:])]
        rows = b.control(Op.LOOP, operands, attrs, types)
        self._extend_lists(body, rows[n:])
        rows = rows[:n]
        for key, local, row in zip(roots, locals_, rows[len(rows) - len(roots) :], strict=True):
            if body.trace.adopted[key].writes:
                local.check_writable()
                local.write(row)
        self._note(body)
        self._bind(body, rows)
        return self._flow(body, rows)

    def _extend_lists(self, body: _Body, rows: list[int]) -> None:
        """What the steps have appended, at the end of the lists."""
        stacks = iter(rows)
        for target, entries in body.region.appends.values():
            found = [(fresh(next(stacks), scalar=False), entry.many) for entry in entries]
            extend(target, found, self.length)

    def _note(self, body: _Body) -> None:
        """What `ckad.explain` says of this loop."""
        arrays = [adopted for adopted in body.trace.adopted.values() if adopted.writes]
        state = [name for _, name in self.carried if name not in (RETURN, Ledger.CHECKS)]
        state += [f"{name}[...]" for x in arrays for name in names_of(x.root)]
        length = self.length
        known = self.guard == 0
        steps = f"{length:,}" if known else "unknown" if length >= UNBOUNDED else f"≤ {length:,}"
        notes.note(self.frame.place, "recorded once", steps, state)

    def _bind(self, body: _Body, rows: list[int]) -> None:
        start = (self.guard > 0) + self.signals
        shown: list[Shown] = []
        for frame, name in self.carried:
            frame.note_read(name)
        for (frame, name), end in body.ends.items():
            if not isinstance(end, _End):
                bound = end
            else:
                at = start + end.first
                leaves = []
                for slot, leaf in zip(end.slots, end.leaves, strict=True):
                    leaves.append(leaf if slot is None else slot.show(rows[at]))
                    at += slot is not None
                bound = trees.unflatten(end.tree, leaves)
            place = body.places.get((frame, name))
            if place is not None:  # buffers that took turns: the name now shows one of them
                for array, new in zip(place, arrays_of(bound), strict=True):
                    assign(array, value(new))
                bound = place[0] if len(place) == 1 else ComplexTracer(*place)
            elif isinstance(end, _End):
                shown += self._shown(body, (frame, name), flatten(bound)[0])
            frame.note_change(name)
            frame.restore(name, bound)
        for root in body.region.spoilt:
            spoil(root)
        body.turns.spoil(body.places)
        settle_loop(body.turns, shown)

    def _shown(self, body: _Body, key: Key, leaves: list[Any]) -> list[Shown]:
        """The arrays that a name shows after the loop, and what they may be memory of."""
        before, runs = body.region.changed[key], self.guard == 0 and self.length > 0
        firsts = [None] * len(leaves) if before is MISSING else flatten(before)[0]
        firsts = firsts if len(firsts) == len(leaves) else [None] * len(leaves)
        found = []
        for leaf, end, first in zip(leaves, body.memories[key], firsts, strict=False):
            result = memory(leaf)
            if result is not None:
                outside = body.turns.outside(end, memory(first), runs)
                found.append(Shown(result, end, outside))
        return found

    def _flow(self, body: _Body, rows: list[int]) -> Flow | None:
        if not self.signals:
            return None
        kinds = body.kinds - {Flow.CONTINUE} | {Flow.NEXT}
        if self.is_endless:
            kinds -= {Flow.NEXT}
        return Flow(kinds, COUNT.show(rows[int(self.guard > 0)]))


class _Body:
    """One recording of a loop's body."""

    def __init__(self, loop: StagedLoop, trace: Trace, region: Region) -> None:
        self.loop, self.trace, self.region = loop, trace, region
        self.inputs: dict[Key, list[Tracer]] = {}
        self.initial: list[tuple[Slot, Any]] = []
        self.outputs: list[int] = []
        self.lead: list[int] = []
        self.ends: dict[Key, Any] = {}
        self.places: dict[Key, tuple[Tracer, ...]] = {}
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
            loop.restart()
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
        from ckad.trace.source import branches

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
            if isinstance(made, _End):
                first += sum(s is not None for s in made.slots)
        self._find_places()
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
            if isinstance(end, _End):
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
            self._carry(key, before, end)
            found = True
        if found:
            self.loop.restart()

    def _stays(self, before: Any, end: Any) -> bool:
        if before is end or same(before, end):
            return True
        if type(before) is ComplexTracer and type(end) is ComplexTracer:
            return all(map(self._stays, before.parts, end.parts))
        if type(before) is not Tracer or type(end) is not Tracer or before.path != end.path:
            return False
        same_rows = before.storage.trace is end.storage.trace
        return before.storage.root is end.storage.root and (same_rows or is_static(end.path))

    def _carry(self, key: Key, before: Any, end: Any) -> None:
        """Carry ``key`` from now on, as what holds both its first value and that after a step."""
        name = key[1]
        for x in (before, end):
            if type(x) is Unclear:
                raise x.error
        if end is MISSING:
            raise CarryError(at_place(f"the loop deletes {name!r}, which its next step reads."))
        if type(before) is Maybe or type(end) is Maybe:
            before, end = maybe(before), maybe(end)
        leaves, tree = flatten(before)
        new, new_tree = flatten(end)
        if tree != new_tree:
            raise _changes(name, trees.describe(tree), trees.describe(new_tree))
        slots: list[Slot | None] = []
        for a, b in zip(leaves, new, strict=True):
            s, t = slot_of(a), slot_of(b)
            if s is None or t is None:
                if not same(a, b):
                    raise _changes(name, repr(a), repr(b))
                slots.append(None)
                continue
            joined = join(s, t, broadcasts=True)
            if joined is None:
                raise _changes(name, str(s.type), str(t.type))
            slots.append(joined)
        self.loop.carried[key] = _Carried(tree, slots, leaves)
        for first in filter(None, map(memory, leaves)):  # written into by this name, it may be
            self.loop.written.pop(id(first.root), None)

    def _end(self, key: Key, end: Any, first: int) -> Any:
        carried = self.loop.carried.get(key)
        if carried is not None:
            return self._carried_end(key, carried, end, first)
        if end is MISSING or type(end) is Unclear:
            return end
        if self._stays(self.region.changed[key], end):
            return self.region.changed[key]
        return self._last_value(key, end, first)

    def _carried_end(self, key: Key, carried: _Carried, end: Any, first: int) -> Any:
        name = key[1]
        if type(end) is Unclear:
            raise end.error
        if type(end) is Maybe and carried.tree != flatten(end)[1]:
            self.loop.carried[key] = carried.or_unbound()
            self.loop.restart()
        if type(end) is not Maybe and _is_maybe(carried.tree):
            end = maybe(end)
        leaves, tree = flatten(end)
        if end is MISSING or tree != carried.tree:
            raise _changes(name, trees.describe(carried.tree), trees.describe(tree))
        wider = list(carried.slots)
        for k, (slot, x) in enumerate(zip(carried.slots, leaves, strict=True)):
            found = slot_of(x)
            if slot is None:
                if not same(carried.leaves[k], x):
                    raise _changes(name, repr(carried.leaves[k]), repr(x))
                continue
            joined = None if found is None else join(slot, found, broadcasts=True)
            if joined is None:
                raise _changes(name, str(slot.type), str(found.type) if found else repr(x))
            wider[k] = joined
        if wider != carried.slots:
            self.loop.carried[key] = carried._replace(slots=wider)
            self.loop.restart()
        for slot, x, start in zip(carried.slots, leaves, carried.leaves, strict=True):
            if slot is not None:
                self.outputs.append(slot.row(x))
                self.initial.append((slot, start))
        return _End(tree, carried.leaves, carried.slots, first)

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
        return _End(tree, leaves, slots, first)

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

    # --- memory that has two names --------------------------------------------------------------

    def _find_places(self) -> None:
        """Find the names that only take turns: theirs are the arrays that they start with."""
        firsts = self._first_arrays()
        written = [key for key in firsts if any(x.storage.writes for x in self.inputs[key])]
        if not written:
            return
        self.places = self._turns(firsts)

    def _first_arrays(self) -> dict[Key, tuple[Tracer, ...]]:
        """The carried names that are one array each, with their first values."""
        found = {}
        for key, carried in self.loop.carried.items():
            if len(carried.leaves) == 1 or carried.tree.type is trees.Complex:
                arrays = tuple(x for x in carried.leaves if type(x) is Tracer and not x.scalar)
                if arrays:
                    found[key] = arrays
        return found

    def _turns(self, firsts: dict[Key, tuple[Tracer, ...]]) -> dict[Key, tuple[Tracer, ...]]:
        """Where the arrays of names that only change their arrays among them are after the loop.

        A step is a permutation of these, and after n steps it has been applied n times.
        """
        count = self.loop.steps.count
        if not isinstance(count, int) or self.loop.guard:
            return {}
        owner = {id(self.inputs[key][0].storage): key for key in firsts}
        following: dict[Key, Key] = {}
        for key, first in firsts.items():
            frame, name = key
            end = arrays_of(frame.names.get(name))
            whole = len(end) == len(first) and not any(x.path for x in (*end, *first))
            if whole and id(end[0].storage) in owner:
                source = owner[id(end[0].storage)]
                if [x.storage for x in end] == [x.storage for x in self.inputs[source]]:
                    following[key] = source
        while True:
            closed = {k: v for k, v in following.items() if v in following}
            if len(closed) == len(following):
                break
            following = closed
        if len(set(following.values())) != len(following):
            return {}
        return {key: firsts[_after(following, key, count)] for key in following}


def _after(following: dict[Key, Key], key: Key, count: int) -> Key:
    cycle = [key]
    while following[cycle[-1]] != key:
        cycle.append(following[cycle[-1]])
    return cycle[count % len(cycle)]


def _is_maybe(tree: trees.Treedef) -> bool:
    return tree.type is Maybe


def _changes(name: str, before: str, after: str) -> CarryError:
    return CarryError(
        at_place(
            f"the loop carries {name!r} from step to step, and it changes from {before} to "
            f"{after}. Start with the shape, dtype and structure that the body gives it."
        )
    )


def _aliased(name: str, other: str) -> AliasError:
    return AliasError(
        at_place(
            f"the loop binds {name!r} to other arrays and writes into them, and {other!r} shows "
            f"the memory that {name!r} starts with. Start with a copy: {name} = {name}.copy()."
        )
    )
