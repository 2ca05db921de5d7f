"""``for`` and ``while``: run step by step in Python, or recorded as one loop.

A loop over numbers or over the first axis of an array is recorded once for all its steps, if it
computes with arrays at all. What cannot be is run step by step, and a warning names a long one.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from ckad.errors import (
    AliasError,
    CarryError,
    CkadError,
    ConcreteValueError,
    UnrecordableError,
    UnsupportedFunctionError,
)
from ckad.trace.memory.context import Given, current, effort, local_storage, tried_for
from ckad.trace.source.actions import assign, run_block, tested, unread
from ckad.trace.source.control import branches, notes, trial
from ckad.trace.source.control.carried.findings import Stepping, forget_loop
from ckad.trace.source.control.filled import certain_array
from ckad.trace.source.control.flow import OF_LOOPS, Flow
from ckad.trace.source.control.loops import StagedLoop
from ckad.trace.source.control.notes import MOST_ROWS, limited
from ckad.trace.source.control.sequences import generators, long_lists, returns, several
from ckad.trace.source.control.sequences.early import rest_of
from ckad.trace.source.control.sequences.iteration import Items, items_of, number
from ckad.trace.source.control.trial import depth_in, lengthened, make_items, needs_room, records
from ckad.trace.source.memory.asked.by_python import all_of, check_run_over
from ckad.trace.source.names import classes
from ckad.trace.source.names.frame import MISSING, Frame
from ckad.trace.source.names.generated import Driven
from ckad.trace.values.tracer import Tracer, decided

#: Loops of at most so many steps are written out, unless loops so deep stand in them, or a step has
#: more rows than these: what is written out on every level is long.
SHORT, DEEP, LONG = 4, 2, 1_000
#: So many steps that may leave a loop are written out at most: each in a branch of the one before.
MOST_LEFT = 128
#: One step is tried for those over objects until it has made this part of the rows of them all.
OF_ALL = 0.3


# --- for -----------------------------------------------------------------------------------------


def for_loop(frame: Frame, node: ast.For) -> Flow | None:
    found = unread(frame, node.iter)
    over, given = several.RunOver(found), several.opened(found)
    own = classes.invoke(given, "__iter__")
    iterable = certain_array(given) if own is MISSING else own
    items = None if isinstance(iterable, Driven) else items_of(iterable)
    with _inside(frame, node):
        if isinstance(iterable, Driven):
            check_run_over(iterable)
            flow = generators.over(frame, node, iterable)
        elif items is None:
            node = returns.behind(frame, node)
            flow = _over_python(frame, node, iterable, over)
        else:
            items.begin()
            node = returns.behind(frame, node)
            flow = _For(frame, node, items, over).run()
            if flow is None:
                items.end()
    frame.statement = node
    return returns.returned(frame, node, returns.after(frame, node, flow))


@contextmanager
def _inside(frame: Frame, node: ast.stmt) -> Iterator[None]:
    frame.loops.append(node)
    try:
        yield
    finally:
        frame.loops.pop()


class _For:
    """A ``for`` statement over items."""

    def __init__(
        self,
        frame: Frame,
        node: ast.For,
        items: Items,
        over: several.RunOver | long_lists.Unchanged,
    ) -> None:
        self.frame, self.node, self.items, self.over = frame, node, items, over
        parts = map(type, ast.walk(node.target))
        self.has_plain_target = {ast.Subscript, ast.Attribute}.isdisjoint(parts)
        self.keeps_target = True  # whether the body has left the target's names as they were

    def step(self, k: Any) -> Flow | None:
        self.frame.line = self.node.lineno
        assign(self.frame, self.node.target, self.items.item(k))
        before = self._target()
        flow: Flow | None = run_block(self.frame, self.node.body)
        self.over.check()
        self.keeps_target = self.has_plain_target and all(
            map(trial.is_view, before, self._target())
        )
        return flow

    def run(self, peels: bool = True) -> Flow | None:
        """Record the loop once if it computes with arrays, else run it step by step."""
        if (n := decided(self.items.length)) is not None:
            self.items.length = int(n)
        if current().decides is Given.STEPS:
            return self.run_each(most=sys.maxsize)
        length = self.items.length
        if isinstance(length, Tracer):
            return self.staged()
        is_short = length <= SHORT and (length < 2 or depth_in(self.node) < DEEP)
        if is_short and not self._needs_room():
            notes.note(self.frame.place, "written out: short", f"{length:,}")
            return self.run_each(most=LONG)
        make_items(self.frame, self.node.body)
        return self._once(peels) if records(lambda: self.step(0)) else self._by_python()

    def _needs_room(self) -> bool:
        """Whether arrays are made longer on one side of a branch: only a loop has room for that."""
        names = lengthened(self.node)
        return bool(names) and needs_room(self.frame, names, self.run_each)

    def _by_python(self) -> Flow | None:
        """Steps that Python alone runs. After one that computes with arrays, as the second step
        of a triangular loop may be, the others are recorded once."""
        notes.note(self.frame.place, "run by Python: no arrays in it", f"{self.items.length:,}")
        rows = current().builder.rows
        for k in range(self.items.length):
            if k == 1 and records(lambda: self.step(1)):
                return self._from(1)._once()
            before = len(rows)
            flow = self.step(k)
            if flow is not None and not flow.always(Flow.CONTINUE):
                return branches.run_on_from(self.node, self.run_each, flow, k + 1)
            if len(rows) > before and k + 1 < self.items.length:
                return self._from(k + 1)._once()
        return None

    def _from(self, k: int) -> _For:
        """The loop over the items from number ``k`` on."""
        rest = Items(self.items.length - k, lambda i: self.items.item(number(i + k)))
        return _For(self.frame, self.node, rest, self.over)

    def _once(self, peels: bool = True) -> Flow | None:
        """Record one step for all, or step by step what cannot be recorded so."""
        try:
            return self.staged()
        except (*_PEELED, *_WRITTEN_OUT) as error:
            if peels and isinstance(error, _PEELED):
                return self._peeled(error)
            if isinstance(error, UnboundLocalError):
                raise
            return self._written_out(error)

    def staged(self) -> Flow | None:
        length = self.items.length
        before = self._rows_read()
        flow = StagedLoop(self.frame, Stepping(self.node, length, self.items.most, self.step)).run()
        kept = self.keeps_target and self._rows_read() == before
        if flow is None and isinstance(length, int) and length and kept:
            assign(self.frame, self.node.target, self.items.item(length - 1))
        return flow

    def _rows_read(self) -> list[int]:
        """What the arrays hold whose elements are the items."""
        return [local_storage(x.storage).row for x in self.items.read]

    def _target(self) -> list[Any]:
        """What the names of the target are bound to."""
        target = self.node.target
        parts = [target] if isinstance(target, ast.Name) else ast.walk(target)
        return [self.frame.names.get(x.id) for x in parts if isinstance(x, ast.Name)]

    def _peeled(self, error: Exception) -> Flow | None:
        """The first step alone, since what it starts from is of another kind; then the others."""
        flow = self.step(0)
        forget_loop(self.node, current())
        if flow is not None and not flow.always(Flow.CONTINUE):
            return self._others(flow, error)
        return self._from(1).run(peels=False)

    def _others(self, flow: Flow, error: Exception) -> Flow | None:
        """The steps after the first, which ended with ``flow``: a loop, maybe of none, or each."""
        goes = flow.goes(Flow.NEXT, Flow.CONTINUE)
        if isinstance(goes, Tracer) and flow.kinds <= OF_LOOPS and not self.node.orelse:
            rest, most = self._from(1), self.items.length - 1
            rest.items.length, rest.items.most = np.where(goes, most, 0)[()], most
            with suppress(CarryError, AliasError):
                return rest.staged()
        is_long = isinstance(goes, Tracer) and self.items.length > MOST_LEFT
        if is_long and isinstance(error, CkadError):
            raise error
        return branches.run_on_from(self.node, self.run_each, flow, 1)

    def run_each(self, first: int = 0, most: int = MOST_ROWS) -> Flow | None:
        """The steps from ``first`` on; after one of more than ``most`` rows the others at once."""
        rows, length = current().builder.rows, self.items.length
        for k in range(first, length):
            before = len(rows)
            flow = self.step(k)
            if flow is not None and not flow.always(Flow.CONTINUE):
                return branches.run_on_from(self.node, self.run_each, flow, k + 1)
            if len(rows) - before > most and k + 2 < length:
                return self._from(k + 1)._once()
        return None

    def _written_out(self, error: CkadError) -> Flow | None:
        with limited(self.frame, self.node, error) as check:
            return self._each_checked(check, 0)

    def _each_checked(self, check: Callable[[], bool], first: int) -> Flow | None:
        for k in range(first, self.items.length):
            flow = self.step(k)
            others = check()
            if flow is not None and not flow.always(Flow.CONTINUE):
                rest = partial(self._each_checked, check)
                return branches.run_on_from(self.node, rest, flow, k + 1)
            if others:
                return self._from(k + 1).run()
        return None


def _over_python(frame: Frame, node: ast.For, iterable: Any, over: several.RunOver) -> Flow | None:
    """Over what has no numbers for its items; a long list is an array nonetheless."""
    each = _Each(frame, node, iterable, over)
    if current().decides is not Given.STEPS:
        items = long_lists.items_of(iterable, node, is_deep=depth_in(node) >= DEEP)
        if items is not None and records(lambda: each.loop.step(items.item(0))):
            with suppress(*_PEELED, *_WRITTEN_OUT):
                flow = _For(frame, node, items, long_lists.Unchanged(iterable)).staged()
                if isinstance(iterable, Iterator):
                    deque(iterable, maxlen=0)  # nothing is left for who runs over it again
                return flow
    return each.run()


class _Each:
    """A ``for`` statement over what Python alone can iterate over."""

    def __init__(self, frame: Frame, node: ast.For, iterable: Any, over: several.RunOver) -> None:
        iterable = all_of(iterable)
        self.loop = _For(frame, node, Items(0, lambda item: item), over)
        self.iterable = iterable
        self.tries = current().decides is not Given.STEPS

    def run(self) -> Flow | None:
        return self._rest(iter(self.iterable))

    def _rest(self, iterator: Iterator[Any]) -> Flow | None:
        for item in iterator:
            before = effort()
            flow = self.loop.step(item)
            if flow is not None and not flow.always(Flow.CONTINUE):
                return self._left(flow, iterator)
            n_rows = effort() - before
            if self.tries and (others := self._others(iterator, n_rows)) is not None:
                with (
                    suppress(*_PEELED, *_WRITTEN_OUT),
                    tried_for(OF_ALL * n_rows * len(others.items)),
                ):
                    return others.staged()
        return None

    def _others(self, iterator: Iterator[Any], n_rows: int) -> _For | None:
        """The steps after one that has made so many rows, if one is to be recorded for all."""
        items = long_lists.of_objects(iterator, self.loop.node, n_rows)
        if items is None:
            return None
        self.tries = False
        return _For(self.loop.frame, self.loop.node, items, long_lists.Unchanged(self.iterable))

    def _left(self, flow: Flow, iterator: Iterator[Any]) -> Flow | None:
        node, goes = self.loop.node, flow.goes(Flow.NEXT, Flow.CONTINUE)
        if not isinstance(goes, bool):  # a branch, whose sides may be recorded more than once
            n_left, again = rest_of(iterator)
            return branches.run_on_from(node, lambda _: self._rest(again()), flow, n_left)
        return branches.run_on_from(node, lambda _: self._rest(iterator), flow, 0)


# --- while ---------------------------------------------------------------------------------------


def while_loop(frame: Frame, node: ast.While) -> Flow | None:
    node = returns.behind(frame, node)
    with _inside(frame, node):
        flow = _While(frame, node).run()
    frame.statement = node
    return returns.returned(frame, node, returns.after(frame, node, flow))


class _While:
    """A ``while`` statement."""

    def __init__(self, frame: Frame, node: ast.While) -> None:
        self.frame, self.node = frame, node

    def goes_on(self) -> bool | Tracer:
        self.frame.line = self.node.lineno
        verdict: bool | Tracer = tested(self.frame, self.node.test)
        return verdict

    def step(self, _: Any = None) -> Flow | None:
        flow: Flow | None = run_block(self.frame, self.node.body)
        return flow

    def run(self) -> Flow | None:
        """Run steps in Python as long as they do nothing else, then record the others once."""
        while True:
            first = self.goes_on()
            if first is False:
                return None
            each = first is True and current().decides is Given.STEPS
            if not each and (first is not True or records(self._round)):
                return self._recorded(first)
            flow = self.step()
            if flow is not None and not flow.always(Flow.CONTINUE):
                return flow

    def _round(self) -> None:
        self.step()
        self.goes_on()

    def _recorded(self, first: bool | Tracer, peels: bool = True) -> Flow | None:
        """The steps from here on; ``first`` is the test, which may change what it looks at."""
        try:
            return self.staged(first)
        except (*_PEELED, *_WRITTEN_OUT) as error:
            if first is not True:
                raise
            if peels and isinstance(error, _PEELED):
                return self._peeled()
            if isinstance(error, UnboundLocalError):
                raise
            return self._written_out(error)

    def _peeled(self) -> Flow | None:
        """The first step alone, since what it starts from is of another kind; then the others."""
        flow = self.step()
        forget_loop(self.node, current())
        if flow is not None and not flow.always(Flow.CONTINUE):
            return branches.run_on_from(self.node, lambda _: self._from_test(), flow, 1)
        goes = self.goes_on()
        return None if goes is False else self._recorded(goes, peels=False)

    def _from_test(self) -> Flow | None:
        goes = self.goes_on()
        return None if goes is False else self.staged(goes)

    def _written_out(self, error: CkadError) -> Flow | None:
        with limited(self.frame, self.node, error) as check:
            return self._each(check)

    def staged(self, first: bool | Tracer) -> Flow | None:
        steps = Stepping(self.node, None, None, self.step, self.goes_on, first)
        return StagedLoop(self.frame, steps).run()

    def _each(self, check: Callable[[], bool]) -> Flow | None:
        """Steps, of which the first is known to be made."""
        while True:
            flow = self.step()
            others = check()
            if flow is not None and not flow.always(Flow.CONTINUE):
                return branches.run_on_from(self.node, lambda _: self._tested(check), flow, 1)
            goes = self.goes_on()
            if goes is not True:
                return self.staged(goes) if goes is not False else None
            if others:
                return self._recorded(goes)

    def _tested(self, check: Callable[[], bool]) -> Flow | None:
        goes = self.goes_on()
        if goes is False:
            return None
        return self._each(check) if goes is True else self.staged(goes)


#: What is otherwise after the first step: a name of another kind, one that it binds, a full dict.
_PEELED = (CarryError, AliasError, UnrecordableError, UnboundLocalError)
_WRITTEN_OUT = (ConcreteValueError, UnsupportedFunctionError)
