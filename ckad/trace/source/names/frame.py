"""A function that is being run from its source: its names, and the objects that it met and made."""

from __future__ import annotations

import ast
import builtins
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any, ClassVar

from ckad.place import Source, at_place
from ckad.trace.memory.changes import note
from ckad.trace.memory.opened import stack
from ckad.trace.source.actions import certain
from ckad.trace.source.names.bindings import MISSING as MISSING
from ckad.trace.source.names.bindings import Bindings, holds_unknown, is_from_around, unclear_around
from ckad.trace.source.names.bindings import Maybe as Maybe
from ckad.trace.source.names.bindings import Unclear as Unclear
from ckad.trace.source.names.follows import RETURN as RETURN
from ckad.trace.source.names.follows import Follows
from ckad.trace.source.names.reader import Definition, nothing
from ckad.trace.source.names.region import Key as Key
from ckad.trace.source.names.region import Region as Region
from ckad.trace.source.names.region import depth_of as depth_of
from ckad.trace.source.names.region import enclosing as enclosing
from ckad.trace.source.names.region import in_loops
from ckad.trace.source.names.region import made as made
from ckad.trace.source.names.region import open_region as open_region
from ckad.trace.source.names.region import region as region
from ckad.trace.source.outside.assigned import depend, depend_on_all, settling
from ckad.trace.source.outside.guard import is_given_up
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.outside.watch import watch


class Frame(Follows):
    """The names of one call of a function, and where in it the program is."""

    #: Whether what straight code binds here stays, as it does in Python.
    LASTS: ClassVar[bool] = False
    __slots__ = (
        *("definition", "depth", "doing", "function", "line", "loops", "names", "outer"),
        *("sources", "statement"),
    )

    def __init__(
        self,
        definition: Definition,
        function: FunctionType,
        outer: Frame | None = None,
        depth: int | None = None,
    ) -> None:
        self.definition = definition
        self.function = function  # the outermost one, for its globals and closure
        self.outer = outer
        inner = region()
        self.depth: int = (inner.depth if inner else 0) if depth is None else depth
        self.names: MutableMapping[str, Any] = {}
        self.line = definition.node.lineno
        self.loops: list[ast.stmt] = []
        self.statement: ast.stmt | None = None
        self.doing: ast.Call | None = None  # the call that is being made, of evaluated arguments
        self.sources: dict[int, Source] = {}

    @property
    def place(self) -> Source:
        found = self.sources.get(self.line)
        if found is None:
            found = self.sources[self.line] = Source(self.definition.file, self.line)
        return found

    # --- names ----------------------------------------------------------------------------------

    def lookup(self, name: str) -> Any:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.definition.locals:
                return frame.local(name, frame is self)
            if name in frame.definition.globals:
                break
            frame = frame.outer
        return self._from_outside(name)

    def local(self, name: str, own: bool = True) -> Any:
        """What a name of this very frame is bound to."""
        self.note_read(name)
        value = self.names.get(name, MISSING)
        if value is MISSING:
            self.note_unsure(name)
            if own:
                raise UnboundLocalError(
                    at_place(f"cannot access local variable {name!r}: it is not bound yet")
                )
            raise NameError(at_place(f"the variable {name!r} is not bound yet"))
        if type(value) is Unclear:
            raise value.error
        if type(value) is Maybe:
            self.note_unsure(name)
            return certain(value)
        return value

    def handed_on(self, name: str) -> Unclear | None:
        """What a name of this frame is bound to if no one value can be recorded."""
        value = self.names.get(name, MISSING)
        if type(value) is not Unclear:
            return None
        self.note_read(name)
        return value

    def binding(self, name: str) -> Any:
        """The same for who asks whether it is bound: a `Maybe`, or MISSING, where it may not be."""
        self.note_read(name)
        value = self.names.get(name, MISSING)
        if type(value) is Unclear:
            raise value.error
        if value is MISSING or type(value) is Maybe:
            self.note_unsure(name)
        return value

    def note_read(self, name: str, hands_on: bool = False) -> None:
        """Note that a name is read, or that one side of a branch ``hands_on`` what it found."""
        inner, key = region(), (self, name)
        while inner is not None and inner.depth > self.depth and key not in inner.changed:
            inner.read.add(key)
            if not hands_on:
                inner.asked.add(key)
            inner = inner.outer

    def note_unsure(self, name: str) -> None:
        """Note that a body has met a name which may not be bound."""
        for inner in enclosing(self.depth):
            inner.unsure.add((self, name))

    def _from_outside(self, name: str) -> Any:
        outside = _outside(self.function, name)
        found = outside.names.read(name)
        outside.note_read(name)
        if name in outside.names:
            return outside.local(name)
        if found is not MISSING:
            if isinstance(found, CONTAINERS):
                outside.names.meet(name, found)
            return found
        outside.note_unsure(name)
        if outside.names.cell is not None:
            raise NameError(at_place(f"the variable {name!r} is not bound yet"))
        if name not in vars(builtins):
            raise NameError(at_place(f"name {name!r} is not defined"))
        return vars(builtins)[name]

    def bind(self, name: str, value: Any) -> None:
        frame = self.owner_of(name) or _outside(self.function, name)
        if type(frame) is Outside and not isinstance(value, (Unclear, Maybe)):
            frame.note_bound(name)
        frame.note_change(name)
        frame.names[name] = value

    def unbind(self, name: str) -> None:
        frame = self.owner_of(name) or _outside(self.function, name)
        if type(frame) is Outside and (watched := watch()):
            depend(watched, frame.names.key(name))
        frame.note_change(name)
        if name not in frame.names:
            frame.note_unsure(name)
            raise NameError(at_place(f"name {name!r} is not defined"))
        frame.restore(name, MISSING)

    def note_change(self, name: str) -> None:
        inner = region()
        if inner is not None and inner.depth > self.depth:
            inner.changed.setdefault((self, name), self.names.get(name, MISSING))

    def meet(self, name: str) -> None:
        """Note what a name is bound to, which is about to be bound anew."""

    def restore(self, name: str, value: Any) -> None:
        if value is MISSING:
            self.names.pop(name, None)
        else:
            self.names[name] = value

    def owner_of(self, name: str) -> Frame | None:
        if name in self.definition.locals or name == RETURN:
            return self
        frame = self.outer
        while frame is not None and name not in self.definition.globals:
            if name in frame.definition.locals:
                return frame
            frame = frame.outer
        return None


def _no_function() -> None: ...


#: Of frames that belong to no call; mypy counts no ``def`` among FunctionType.
NO_FUNCTION: Any = _no_function


class Apart(Frame):
    """Names of no call, such as those of an object or a module: any statement may read them."""

    __slots__ = ()

    def __init__(self, *names: str, depth: int | None = 0) -> None:
        super().__init__(nothing(*names), NO_FUNCTION, None, depth)

    def is_read_later(self, name: str) -> bool:
        return True

    def is_read_in(self, name: str, part: ast.stmt) -> bool:
        return True


class Outside(Apart):
    """Names from outside of the transformed function: a module's, or one variable of a closure."""

    LASTS = True
    __slots__ = ("names",)

    def __init__(self, owner: dict[str, Any], cell: Any = None) -> None:
        super().__init__()
        self.names: Bindings = Bindings(owner, cell)

    def meet(self, name: str) -> None:
        if watched := watch():
            self.names.watched(watched, name, in_loops())
        before = self.names.before(name, MISSING)
        if name not in self.names and before is not MISSING:
            self.names.meet(name, before)
        for opened in _opened.ledgers:
            opened.before.setdefault((self, name), before)

    def note_bound(self, name: str) -> None:
        """Note that a name is about to be bound by straight code."""
        if region() is None and len(_opened.ledgers) == 1 and (watched := watch()):
            self.names.assigned(watched, name)

    def restore(self, name: str, value: Any) -> None:
        if watched := watch():
            self.names.restored(watched, name, value)
        super().restore(name, value)

    def note_change(self, name: str) -> None:
        self.meet(name)
        super().note_change(name)
        for opened in _opened.ledgers:
            if region() is not opened.around:
                opened.recorded.add((self, name))


def outside_of(frame: Frame, name: str) -> Outside | None:
    """Where a name is bound that is none of a call's; None for one of a call around."""
    return None if frame.owner_of(name) else _outside(frame.function, name)


def _outside(function: FunctionType, name: str) -> Outside:
    """Where a name from outside of the transformed function is bound."""
    free = function.__code__.co_freevars
    if name in free and function.__closure__ is not None:
        return outside(function.__globals__, function.__closure__[free.index(name)])
    return outside(function.__globals__)


def outside(owner: dict[str, Any], cell: Any = None) -> Outside:
    """The names of a module, or the one of a cell; recordings within the outermost share them."""
    known, key = outermost_ledger().objects, id(owner) if cell is None else id(cell)
    if key not in known:
        known[key] = Outside(owner, cell)
    found = known[key]
    assert isinstance(found, Outside)
    return found


class Ledger(Apart):
    """A recording: its checks, which loops and branches carry; objects that it met and made."""

    __slots__ = (
        *("around", "before", "caught", "contents", "kept", "made", "met", "numbers", "objects"),
        *("has_spectra", "object_arrays", "passing", "put_back", "recorded", "rows", "skipped"),
        *("streams", "traces", "twins", "undo"),
    )
    CHECKS: ClassVar[str] = "checks"
    KEPT: ClassVar[str] = "what functools.lru_cache keeps"

    def __init__(self) -> None:
        super().__init__(self.CHECKS, depth=None)
        self.names[self.CHECKS] = 0
        # by functions under ``lru_cache`` and their arguments
        self.kept: dict[Any, Any] = self.names.setdefault(self.KEPT, {})
        self.skipped: dict[str, Source] = {}  # calls that were left out
        self.objects: dict[int, Frame] = {}
        self.contents: dict[int, Frame] = {}  # of lists, dicts, sets and deques
        self.made: dict[int, Any] = {}
        self.passing: dict[int, Any] = {}  # plain objects that bodies have made
        self.object_arrays: dict[int, list[Any]] = {}  # lists that stand for them
        self.met: list[Any] = []  # objects of which a name may show one or another
        self.numbers: dict[Any, int] = {}  # their places there
        self.has_spectra = False  # whether eigenvalues are there, which NumPy gives real or complex
        self.before: dict[Key, Any] = {}
        self.caught: tuple[type[BaseException], ...] = ()  # what the handlers around may catch
        self.recorded: set[Key] = set()  # names from outside that bodies bind
        self.around = region()  # the body in which it is made
        self.traces = stack()[:-1]  # and the traces around its own
        self.streams: dict[int, Frame] = {}  # states of generators that are variables
        self.twins: dict[int, tuple[Any, dict[int, Any]]] = {}  # containers that may be one
        self.rows: dict[int, Any] = {}  # containers of which lists in buffers hold copies
        self.undo: dict[int, Callable[[], None]] = {}  # what is put back if the recording fails
        self.put_back: dict[int, Callable[[bool], None]] = {}  # the same after it, by its owner

    def roll_back(self, given_up: bool) -> None:
        restored = set()
        with settling(None if _opened.ledgers or given_up else watch()) as lasting:
            for (frame, name), value in self.before.items():
                if given_up or not (frame.LASTS and self._is_pythons(frame, name)):
                    end = frame.names.get(name)
                    frame.restore(name, value)
                    restored.add(id(frame))
                    if frame.LASTS and (frame, name) not in self.recorded and not given_up:
                        self._leave(frame, name, end)
                elif isinstance(frame, Outside):
                    lasting[frame.names.key(name)] = frame.names.given(name, MISSING)
                    if not _opened.ledgers:
                        note(partial(frame.names.put_back, name, value))
            for owner, put_back in self.put_back.items():
                # what it held before straight code, which came before the loop, changed it
                put_back(id(self.contents.get(owner)) in restored)

    def _leave(self, frame: Frame, name: str, end: Any) -> None:
        """The program around cannot read what was computed here from its own values."""
        if self.traces and is_from_around(end, self.traces):
            frame.restore(name, unclear_around(name))
            for opened in _opened.ledgers:
                opened.recorded.add((frame, name))

    def _is_pythons(self, frame: Frame, name: str) -> bool:
        """Whether a name from outside is bound anew as Python does it, at each recording."""
        if (frame, name) in self.recorded:
            return False
        return not holds_unknown(frame.names.get(name), self.made, self.traces)


class _Opened(threading.local):
    def __init__(self) -> None:
        self.ledgers: list[Ledger] = []


_opened = _Opened()


@contextmanager
def open_ledger() -> Iterator[Ledger]:
    """Note the checks of what is recorded from here on, and the objects that it changes."""
    opened = Ledger()
    opened.caught = _opened.ledgers[-1].caught if _opened.ledgers else ()
    _opened.ledgers.append(opened)
    drawn, given_up = len(_drawn_here()), False
    try:
        yield opened
    except BaseException as error:
        given_up = is_given_up(error)
        for undo in opened.undo.values():
            undo()
        depend_on_all(watch())
        del _drawn_here()[drawn:]
        raise
    finally:
        _opened.ledgers.pop()
        opened.roll_back(given_up)


def _drawn_here() -> list[Any]:
    inner = region()
    return [] if inner is None else inner.draws


def undone_on_failure(key: int, undo: Callable[[], None]) -> None:
    """Let ``undo`` be called if a recording that is open now fails."""
    for opened in _opened.ledgers:
        opened.undo.setdefault(key, undo)


def ledgers() -> list[Ledger]:
    """Those that are open, the outermost first: it is closed when nothing is recorded any more."""
    return _opened.ledgers


def outermost_ledger() -> Ledger:
    return _opened.ledgers[0]


def ledger() -> Ledger:
    return _opened.ledgers[-1]
