"""What a generator function gives: its body, which is run by the loop that runs over it.

A ``for`` over it interprets the generator's body, and ``yield`` runs the body of the ``for``. So
loops of the generator are recorded once, together with what is done with each item.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ckad.errors import CkadError, TraceError, UnrecordableError
from ckad.place import running
from ckad.trace.memory.context import current, mark_place
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source.actions import ended, listed, run_block
from ckad.trace.source.names.frame import Frame, made, region
from ckad.trace.source.names.reader import ITEM
from ckad.trace.source.names.region import check_changeable

#: What is done with an item; how that ends, as a `Flow`.
Consumer = Callable[[Any], Any]


def run_over_again(what: str) -> UnrecordableError:
    """Items of an iterator are asked for that may have been taken."""
    return UnrecordableError.here(
        f"{what} run over again, after items of it have been taken, or in a loop or branch "
        "that it was made outside of. Make it anew, or make a list of its items: list(...)."
    )


class Thrown(BaseException):
    """An exception of what is done with an item: handlers of the generator do not catch it."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class GeneratorFrame(Frame):
    """A generator function that is being run."""

    __slots__ = ("began", "consumer", "ends", "is_left")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.consumer: Consumer | None = None
        self.ends: set[int] = set()  # how what is done with the items may end the loop
        self.began: Any = None  # the region in which it is run
        self.is_left = False  # what is done with an item certainly ends it, there

    @property
    def returns(self) -> bool:
        """Whether the generator has a ``return`` of its own."""
        return self.definition.returns


class Driven:
    """Items that are given one after the other to a consumer."""

    def run(self, consumer: Consumer) -> Any:
        """Give it the items; how the loop ends: as the consumer's ``break`` or ``return`` say."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return iter(listed(self, apart=True))


class Once(Driven):
    """Items that can be run over once."""

    def __next__(self) -> Any:
        raise UnrecordableError.here(
            "single items of a generator are asked for by next(). Run over it by a for loop, "
            "or make a list of its items: list(...)."
        )


class Generated(Once):
    """What a call of a generator function gives."""

    def __init__(self, frame: GeneratorFrame, plain: Callable[[], Iterator[Any]] | None) -> None:
        self.frame, self._plain = frame, plain
        self._by_python: Iterator[Any] | None = None
        self._is_begun = False
        made(self)

    def run(self, consumer: Consumer, catches: bool = False) -> Any:
        """Run the body, which ``catches`` what the consumer raises or not."""
        if self.is_begun:
            raise run_over_again("a generator is")
        self._is_begun, self.frame.began = True, region()
        return ended(self.frame, driven(self.frame, consumer, catches))

    def __next__(self) -> Any:
        if self._plain is None or self._is_begun:
            return super().__next__()
        return next(self.by_python())

    @property
    def is_begun(self) -> bool:
        """Whether items of it have been asked for."""
        return self._is_begun or self._by_python is not None

    @property
    def is_of_python(self) -> bool:
        """Whether Python can run it."""
        return self._plain is not None

    def by_python(self) -> Iterator[Any]:
        """The generator, as Python runs it."""
        if self._by_python is None:
            if self._plain is None or self._is_begun:
                raise run_over_again("a generator is")
            self._by_python = self._plain()
        return self._by_python

    def __getattr__(self, name: str) -> Any:
        if name not in ("send", "throw", "close"):
            raise AttributeError(name)
        if self._plain is None or self._is_begun:
            raise UnrecordableError.here(
                f"{name}() of a generator is asked for that is run from its source. Define the "
                "generator function in a module, and run no loop over it before."
            )
        return getattr(self.by_python(), name)


class Filtered(Driven):
    """Items of which it is not known which there are; they can be reduced to numbers."""

    @property
    def count(self) -> Any:
        """How many there are."""
        raise NotImplementedError

    def refuse(self, *_: Any, **__: Any) -> Any:
        raise UnrecordableError.here(
            "which items a comprehension keeps depends on a traced value, so that there is no "
            "list of them: they can be counted, reduced (sum, max, min, any, all, np.mean) and "
            "run over by a for loop. Use np.where, or a loop that writes into an array."
        )

    __getitem__ = __setitem__ = __contains__ = __eq__ = __bool__ = refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __iadd__ = __lt__ = __gt__ = refuse
    __iter__ = refuse
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.refuse()


class Each(Iterator[Any]):
    """A generator expression without a condition: ``value`` of each of ``items``, made when asked
    for. It ``is_quiet`` where that does nothing but compute."""

    def __init__(
        self, value: Callable[[Any], Any], items: Iterator[Any], is_quiet: bool = False
    ) -> None:
        self.value, self.items, self.is_quiet = value, items, is_quiet
        made(self)

    def __next__(self) -> Any:
        return self.value(next(self.items))

    def of(self, items: Any) -> Each:
        """The same of other items."""
        return Each(self.value, iter(items), self.is_quiet)


class Lazy:
    """A generator expression with a condition, which may be traced."""

    def __init__(
        self,
        is_undecided: Callable[[], bool],
        plain: Callable[[], Each],
        filtered: Callable[[], Filtered],
    ) -> None:
        self.is_undecided, self.plain, self.filtered = is_undecided, plain, filtered
        self._iterator: Each | None = None
        self._is_used = False
        made(self)

    def all_items(self) -> Any:
        """A list of the items, or what stands for it where it is not known which there are."""
        if self._iterator is None and self.is_undecided():
            return self.used()
        try:
            return list(iter(self))
        except UndecidedItem:
            return self.used()

    def used(self) -> Filtered:
        """The items that are kept, which none is left of then."""
        self._check_unused()
        self._is_used = True
        return self.filtered()

    def _check_unused(self) -> None:
        if self._is_used:
            raise run_over_again("a generator is")

    def __iter__(self) -> Each:
        self._check_unused()
        check_changeable(self)
        if self._iterator is None:
            self._iterator = self.plain()
        return self._iterator

    def __next__(self) -> Any:
        return next(iter(self))


class UndecidedItem(TraceError):
    """Whether a comprehension keeps an item is not known while it is recorded."""


def driven(frame: GeneratorFrame, consumer: Consumer, catches: bool) -> Any:
    """Run the body of a generator; how it ends."""
    functions = running()
    caller = functions[-1] if functions else None

    def called(item: Any) -> Any:
        if caller is not None:
            functions.append(caller)
        try:
            return consumer(item)
        except CkadError:
            raise
        except Exception as error:
            if catches:
                raise
            raise Thrown(error) from None
        finally:
            if caller is not None:
                functions.pop()

    frame.consumer = called
    functions.append(frame)
    try:
        return run_block(frame, frame.definition.body)
    except Thrown as thrown:
        raise thrown.error from None
    finally:
        functions.pop()
        if functions and is_tracing():
            mark_place(current())


_loops: dict[ast.YieldFrom, ast.For] = {}


def loop_of(node: ast.YieldFrom) -> ast.For:
    """``for item in items: yield item``."""
    if node not in _loops:
        item = ast.Name(ITEM, ast.Load())
        each = ast.Expr(ast.Yield(item))
        made = ast.For(ast.Name(ITEM, ast.Store()), node.value, [each], [])
        for part in (made, made.target, each, each.value, item):
            ast.copy_location(part, node)
        _loops[node] = made
    return _loops[node]
