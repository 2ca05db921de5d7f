"""What names are bound to, and names from outside of the function that a recording binds."""

from __future__ import annotations

import builtins
from collections.abc import Container, Sequence
from types import CellType
from typing import Any, NamedTuple, NoReturn

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.tape.ops import Op
from ckad.trace.dispatch import Traced
from ckad.trace.memory.context import current
from ckad.trace.memory.storage import Storage
from ckad.trace.source.outside.assigned import assign, depend_if_back, key_of
from ckad.trace.source.outside.free import note_read, tracked
from ckad.trace.source.outside.kinds import attributes
from ckad.trace.source.outside.watch import Watch, watch
from ckad.trace.source.skipped import Skipped


class _Missing:
    def __repr__(self) -> str:
        return "<not bound>"


MISSING: Any = _Missing()


class Unclear:
    """What a name is bound to where no one value can be recorded; to read it is an error.

    A tuple that a function returns may hold it, whose other items may be read.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __deepcopy__(self, memo: Any) -> Unclear:
        """Of an object that a name like this belongs to."""
        return self

    def _raise(self, *_: Any) -> NoReturn:
        raise self.error

    __getitem__ = __iter__ = __len__ = __bool__ = __call__ = __contains__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _raise
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = _raise
    __array__ = __float__ = __int__ = __index__ = _raise
    __hash__ = object.__hash__


def clear(x: Any) -> Any:
    """``x``, which is read."""
    if type(x) is Unclear:
        raise x.error
    return x


class Maybe(NamedTuple):
    """What a name is bound to if ``bound``, a flag, is true; else it is not bound."""

    value: Any
    bound: Any


def holds_unknown(
    x: Any, made: Container[int], around: Sequence[Any], seen: set[int] | None = None
) -> bool:
    """Whether anything in ``x`` is left out, or traced by another one than the traces ``around``,
    in the objects among ``made``, too, which are known by their identities."""
    seen = set() if seen is None else seen
    for leaf in trees.flatten(x)[0]:
        if isinstance(leaf, Skipped):
            return True
        if isinstance(leaf, Traced) and _trace_of(leaf) not in around:
            return True
        if id(leaf) in made and id(leaf) not in seen:
            seen.add(id(leaf))
            if holds_unknown(list(attributes(leaf).values()), made, around, seen):
                return True
    return False


def _trace_of(x: Traced) -> Any:
    return getattr(getattr(x, "storage", None), "trace", None)


def is_from_around(x: Any, around: Sequence[Any]) -> bool:
    """Whether what is traced in ``x`` depends on no argument of the function being recorded within
    the traces ``around``: were there none of these, it would be numbers, which stay."""
    leaves = [leaf for leaf in trees.flatten(x)[0] if isinstance(leaf, Traced)]
    own = [getattr(leaf, "storage", None) for leaf in leaves if _trace_of(leaf) not in around]
    return bool(own) and all(storage is not None and _is_captured(storage) for storage in own)


def _is_captured(storage: Storage) -> bool:
    rows, captured = storage.trace.builder.rows, set(storage.trace.captured.values())
    left, met = [storage.row], set()
    while left:
        row = left.pop()
        if row in met or row in captured:
            continue
        met.add(row)
        if rows[row].op is Op.INPUT:
            return False
        left += rows[row].operands
    return True


def unclear_around(name: str) -> Unclear:
    return Unclear(
        UnrecordableError.here(
            f"{name!r} is read, which a function that is transformed within this program has bound "
            "to what it computed. Return it from there."
        )
    )


def check_given(owner: Any, name: str) -> None:
    """Refuse to bind a name of a module or an object for which an argument stands: that would be
    read further on, and Python be left with it."""
    if key_of(owner, name) in current().outside:
        raise UnrecordableError.here(f"{name!r} is bound, for which an argument stands.")


class Bindings(dict[str, Any]):
    """Names of a module, or the one of a cell, with what a recording binds them to.

    Python has them bound to the same: it may run functions that read them.
    """

    def __init__(self, owner: dict[str, Any], cell: CellType | None) -> None:
        super().__init__()
        self.owner, self.cell = owner, cell

    @property
    def holder(self) -> Any:
        """What holds them in Python: a dict, or the cell."""
        return self.cell or self.owner

    def given(self, name: str, missing: Any) -> Any:
        """What Python has a name bound to, or the argument that stands for it."""
        if (found := current().outside.get(self.key(name))) is not None:
            return found
        if self.cell is None:
            return self.owner.get(name, missing)
        try:
            return self.cell.cell_contents
        except ValueError:
            return missing

    def read(self, name: str) -> Any:
        """The same, or MISSING, for the program, which reads it."""
        watched = watch()
        if self.cell is None and not current().outside:
            found = self.owner.get(name, MISSING)
            if watched is None or (
                (id(self.owner), name) in watched.noted and type(found) is not int
            ):
                return found  # as it mostly is
        found = self.given(name, MISSING)
        if watched is not None:
            self.watched(watched, name)
            note_read(watched, self.holder, name, found)
        return found

    def before(self, name: str, missing: Any) -> Any:
        """What Python has a name bound to, which is about to be bound anew."""
        check_given(self.holder, name)
        return self.given(name, missing)

    def watched(self, watch: Watch, name: str, is_tracked: bool = True) -> None:
        """Note what Python has a name bound to: tracked, if who asks tells whether he reads it."""
        key = self.key(name)
        if key in current().outside:
            return
        if key in watch.noted and type(self.given(name, 0)) is not int:
            return
        with tracked(watch, self.holder, name, is_tracked):
            if self.cell is not None:
                watch.cell(self.cell)
                return
            watch.name(self.owner, name)
            if name not in self.owner:
                watch.name(vars(builtins), name)

    def key(self, name: str) -> tuple[int, str]:
        """What a watch calls a name."""
        return key_of(self.holder, name)

    def assigned(self, watch: Watch, name: str) -> None:
        """A name is about to be bound, whatever the numbers are."""
        assign(watch, self.holder, name)

    def restored(self, watch: Watch, name: str, value: Any) -> None:
        """A name is about to be bound to what it may have been bound to before all."""
        depend_if_back(watch, self.key(name), value, MISSING)

    def meet(self, name: str, value: Any) -> None:
        """Note what a name is bound to, which will be bound anew."""
        super().__setitem__(name, value)

    def put_back(self, name: str, value: Any) -> None:
        """Have Python bind a name as it was, when the recording is over."""
        if value is MISSING:
            self.pop(name, None)
        else:
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if self.cell is None:
            self.owner[name] = value
        else:
            self.cell.cell_contents = value

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def pop(self, name: str, default: Any = None) -> Any:
        if self.cell is None:
            self.owner.pop(name, None)
        else:
            del self.cell.cell_contents
        return super().pop(name, default)
