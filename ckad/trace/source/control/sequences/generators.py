"""Loops over what generator functions give, and ``yield``."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.source.actions import assign, evaluate, run_block
from ckad.trace.source.control import branches
from ckad.trace.source.control.flow import Flow, definite
from ckad.trace.source.control.sequences import picking
from ckad.trace.source.memory.appends import append
from ckad.trace.source.memory.contents import read, stack_of
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import NO_FUNCTION, Frame, made, region
from ckad.trace.source.names.generated import Consumer, Driven, Generated, GeneratorFrame, Once
from ckad.trace.source.names.reader import definition_of, nothing
from ckad.trace.source.values import truth
from ckad.trace.values.array import Array
from ckad.trace.values.tracer import Tracer

#: Lists that are made of a generator's items are at most so long.
MOST_LISTED = 100_000
COUNT = "count"


def over(frame: Frame, node: ast.For, items: Driven) -> Flow | None:
    """A ``for`` over what a generator gives."""

    def step(item: Any) -> Flow | None:
        frame.line = node.lineno
        assign(frame, node.target, item)
        flow: Flow | None = run_block(frame, node.body)
        if flow is not None and flow.always(Flow.BREAK) and region() is before:
            breaks.append(flow)
        return flow

    before, breaks = region(), list[Flow]()
    if node.orelse and isinstance(items, Counted) and items.length is not None:
        raise UnrecordableError.here(
            "a for loop over zip() of a generator has an else. Set a flag before break, and "
            "look at it after the loop."
        )
    flow: Flow | None = items.run(step)
    if node.orelse and flow is not None and flow.always(Flow.BREAK) and not breaks:
        raise _several_ends()
    return flow


def _several_ends() -> UnrecordableError:
    return UnrecordableError.here(
        "a loop over a generator may end in several ways (break, return, a return of the "
        "generator), and a traced value decides in which. Set a flag and break, and look "
        "at the flag after the loop."
    )


def yielded(frame: Frame, node: ast.Yield) -> Flow | None:
    """``yield item`` as a statement: what the loop outside does with the item."""
    assert isinstance(frame, GeneratorFrame)
    assert frame.consumer is not None
    flow = frame.consumer(None if node.value is None else evaluate(frame, node.value))
    if flow is None:
        return None
    goes = flow.goes(Flow.NEXT, Flow.CONTINUE)
    if goes is True:
        return None
    left = flow.kinds - {Flow.NEXT, Flow.CONTINUE}
    frame.ends |= {k if k == Flow.RETURN else Flow.BREAK for k in left}
    if goes is False:
        frame.is_left = region() is frame.began
        return definite(Flow.RETURN)
    signal = np.where(goes, Flow.NEXT, Flow.RETURN)
    return Flow(frozenset({Flow.NEXT, Flow.RETURN}), signal)


def ended(frame: GeneratorFrame, flow: Flow | None) -> Flow | None:
    """How a loop ends whose generator's body has ended with ``flow``."""
    if flow is None or not frame.ends or Flow.RETURN not in flow.kinds:
        return None
    is_clear = flow.is_definite and (frame.is_left or Flow.RETURN not in frame.ends)
    if len(frame.ends) > 1 or (frame.returns and not is_clear):
        raise _several_ends()
    (kind,) = frame.ends
    if flow.is_definite:
        return definite(kind)
    signal = np.where(np.equal(flow.signal, Flow.RETURN), kind, Flow.NEXT)
    return Flow(frozenset({Flow.NEXT, kind}), signal)


def listed(items: Driven, apart: bool) -> list[Any]:
    """A list of all items, which may be rows of buffers if they are not to be taken ``apart``."""
    found: list[Any] = made([])

    def take(item: Any) -> None:
        if len(found) >= MOST_LISTED:
            raise UnrecordableError.here(
                f"a generator gives more than {MOST_LISTED:,} items to a list. Run over it by "
                "a for loop that ends."
            )
        append(found, item)

    items.run(take)
    if apart:
        read(found)
    return found


def generated_by(manager: Any) -> Generated | None:
    """The generator behind a context manager that ``contextlib.contextmanager`` has made."""
    if type(manager) is not contextlib._GeneratorContextManager:
        return None
    if isinstance(manager.gen, Generated):
        return manager.gen
    function = manager.func
    if type(function) is not FunctionType or definition_of(function) is None:
        return None
    found = call_from_source(function, manager.args, manager.kwds)
    return found if isinstance(found, Generated) else None


def around(generated: Generated, body: Consumer) -> Flow | None:
    """The body of a ``with`` statement, run where its generator yields; how it ends."""
    before, entered, flows = region(), [], []

    def inside(value: Any) -> None:
        entered.append(value)
        if region() is not before:
            raise UnrecordableError.here(
                "a context manager yields in a loop, or on a side of a traced condition. "
                "Yield after it."
            )
        flows.append(body(value))

    generated.run(inside, catches=True)
    if len(entered) != 1:
        raise RuntimeError(f"the generator of a context manager yields {len(entered)} times, not 1")
    flow: Flow | None = flows[0] if flows else None  # it has caught what the body has raised
    return flow


class Counted(Once):
    """Items of a generator and their numbers: ``enumerate``, ``zip`` with what has a length.

    ``item`` makes an item of one and its number, which may be traced. At most ``length`` are
    given, and with ``asks_first`` the generator is not run on to find that there are more.
    """

    def __init__(
        self,
        items: Driven,
        item: Callable[[Any, Any], Any],
        length: int | None = None,
        asks_first: bool = True,
    ) -> None:
        self.items, self.item, self.length, self.asks_first = items, item, length, asks_first
        made(self)

    def run(self, consumer: Consumer) -> Flow | None:
        if self.length == 0 and self.asks_first:
            return None
        counter, breaks = _counter(), False

        def counted(item: Any) -> Flow | None:
            nonlocal breaks
            k = counter.local(COUNT)
            counter.bind(COUNT, k + 1)
            if self.asks_first:
                flow = consumer(self.item(item, k))
                breaks |= flow is not None and Flow.BREAK in flow.kinds
                return branches.run_on(_next(flow), lambda: self._ended_at(k + 1), ("zip", self))
            return branches.run_on(
                self._ended_at(k), lambda: consumer(self.item(item, k)), ("zip", self)
            )

        flow: Flow | None = self.items.run(counted)
        if flow is None or not flow.always(Flow.BREAK) or breaks:
            return flow
        return None if self.asks_first else flow

    def __iter__(self) -> Iterator[Any]:
        if self.length is not None:
            return super().__iter__()
        items = listed(self.items, apart=True)
        return iter([self.item(item, k) for k, item in enumerate(items)])

    def _ended_at(self, k: Any) -> Flow | None:
        """Whether there are no more than ``k`` items."""
        if self.length is None:
            return None
        more = truth(k < self.length)
        if isinstance(more, bool):
            return None if more else definite(Flow.BREAK)
        signal = np.where(more, Flow.NEXT, Flow.BREAK)
        return Flow(frozenset({Flow.NEXT, Flow.BREAK}), signal)


def _next(flow: Flow | None) -> Flow | None:
    """A flow by which a step goes on with the next, as one that runs on."""
    if flow is None or flow.always(Flow.CONTINUE):
        return None
    if Flow.CONTINUE not in flow.kinds:
        return flow
    signal = np.where(np.equal(flow.signal, Flow.CONTINUE), Flow.NEXT, flow.signal)
    return Flow(flow.kinds - {Flow.CONTINUE} | {Flow.NEXT}, signal)


class Endless(Generated):
    """Items without an end: ``itertools.count``, ``itertools.cycle``.

    ``begin`` gives a function that makes an item of its number.
    """

    def __init__(
        self,
        items: Generated,
        begin: Callable[[], Callable[[Any], Any]],
        plain: Callable[[], Iterator[Any]],
    ) -> None:
        super().__init__(items.frame, plain)
        self._begin = begin

    def __iter__(self) -> Iterator[Any]:
        return self.by_python()

    def by_number(self) -> Callable[[Any], Any]:
        """What makes an item of its number; how many are then taken is not known."""
        self._is_begun = True
        return self._begin()


def counting(start: Any = 0, step: Any = 1) -> Endless:
    """``itertools.count(start, step)``."""
    made = _of_source(_count, start, step)
    return Endless(made, lambda: lambda k: start + k * step, lambda: itertools.count(start, step))


def cycling(iterable: Any) -> Endless:
    """``itertools.cycle(iterable)``, whose items are taken when they are first asked for."""
    found: Any = iterable if isinstance(iterable, (list, Array)) else tuple(iterable)

    def begin() -> Callable[[Any], Any]:
        items = list(found)

        def item(k: Any) -> Any:
            at = k % len(items)
            if isinstance(at, Tracer):
                _check_kept(found, items)
                return picking.item(items, at)
            if type(found) is list and k < len(items) == len(found):
                items[at] = found[at]  # it is kept as it is found in the first round
            return items[at]

        return item

    return Cycle(_of_source(_cycle, found), begin, lambda: itertools.cycle(found), found)


class Cycle(Endless):
    """``itertools.cycle`` of ``found``, whose items are kept when they are first asked for."""

    def __init__(self, items: Generated, begin: Any, plain: Any, found: Any) -> None:
        super().__init__(items, begin, plain)
        self._found = found

    def run(self, consumer: Consumer, catches: bool = False) -> Any:
        items = list(self._found)

        def checked(item: Any) -> Any:
            flow = consumer(item)
            _check_kept(self._found, items)
            return flow

        return super().run(checked, catches)


def _check_kept(found: Any, items: list[Any]) -> None:
    """A list that a loop runs over again and again keeps its items meanwhile."""
    if type(found) is not list or stack_of(found) is not None:
        return
    if len(found) != len(items) or any(x is not y for x, y in zip(found, items, strict=True)):
        raise UnrecordableError.here(
            "a loop over itertools.cycle changes the list that it runs over, of which Python "
            "keeps the items of the first round. Run over a copy: itertools.cycle(tuple(xs))."
        )


def sliced(iterable: Any, *bounds: Any) -> Any:
    """``itertools.islice(iterable, *bounds)``."""
    start, stop, step = (None, *bounds, None) if len(bounds) == 1 else (*bounds, None)[:3]
    if not isinstance(iterable, Driven) or len(bounds) > 3:
        return itertools.islice(iterable, *bounds)
    is_head = start in (None, 0) and step in (None, 1) and stop is not None
    if isinstance(iterable, Generated) and (
        iterable.is_begun or (iterable.is_of_python and not is_head)
    ):
        return itertools.islice(iterable.by_python(), *bounds)
    if not is_head:
        raise UnrecordableError.here(
            "islice() with a start, a step or no end is taken of a generator that is recorded "
            "as a loop over its items. Make a list of them, and take a slice: list(...)[1:]."
        )
    return Counted(iterable, lambda item, _: item, stop.__index__())


def _of_source(function: Callable[..., Any], *args: Any) -> Generated:
    found = call_from_source(function, args, {})
    assert isinstance(found, Generated)
    return found


def _count(number: Any, step: Any) -> Iterator[Any]:
    while True:
        yield number
        number = number + step


def _cycle(items: Any) -> Iterator[Any]:
    items = tuple(items)
    while True:
        yield from items


def _counter() -> Frame:
    counter = Frame(nothing(COUNT), NO_FUNCTION)
    counter.names[COUNT] = 0
    return counter
