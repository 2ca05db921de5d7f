"""Operations on dicts whose keys are numbers of steps, kept as rows of buffers (``numbered``).

A step's own items stay what they are until it ends: ``x[t] = v`` and then ``x[t][i] = 1`` write
into ``v``. Which keys there are follows from the numbers of the steps, so what a step looks up is
checked to be there, for all steps, when the body has been recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.source.memory.contents import (
    ITEMS,
    Contents,
    Stacked,
    bodies_around,
    changes_length,
    contents,
    is_unhoused,
    read,
    rows_of,
)
from ckad.trace.source.memory.rows.kinds import Kind, kind_of, kind_of_all
from ckad.trace.source.memory.rows.numbered import (
    Rows,
    Several,
    StepKey,
    extended,
    key_of,
    rows_for,
    span_of,
    steps_of,
)
from ckad.trace.source.memory.twins import check_alone, containers, read_row
from ckad.trace.source.names.frame import Region, region
from ckad.trace.values.tracer import Tracer

#: Rows that nobody fills may be so many times as many as there are keys, and all at most so many.
SPARSEST, MOST_ROWS = 4, 1 << 20


class Keyed(Stacked):
    """A dict that a body looks into or fills by its step's number; ``span`` are these keys."""

    def __init__(self, owner: Any, kind: Kind, span: range) -> None:
        super().__init__(owner, changes_length("dict"), kind)
        self.span = span


class Stored:
    """What one body has put into a dict so far, and what it looks up."""

    def __init__(self) -> None:
        self.keys: list[StepKey | Several] = []
        self.open: dict[StepKey, Any] = {}  # items of this step that are not in their rows yet
        self.wanted: list[tuple[StepKey, int, set[int]]] = []  # after how many of ``keys``


def _stored(inner: Region, owner: Any) -> Stored:
    found: tuple[Any, Stored] = inner.keyed.setdefault(id(owner), (owner, Stored()))
    return found[1]


def _no_key() -> UnrecordableError:
    return changes_length("dict")


# --- into and out of buffers ----------------------------------------------------------------------


def _want(owner: Any, new: Any, key: StepKey) -> None:
    """Have a dict kept as rows, with space for a key; nothing if that cannot be."""
    if type(owner) is not dict or is_unhoused(owner) or not bodies_around(owner):
        return
    held = rows_of(owner)
    before: Sequence[int] = list(owner) if held is None else held.keys
    if any(type(x) is not int for x in before):
        return
    # keys that are looked up may be there later only
    numbers = key.numbers() if new else np.asarray(before[:1], np.int64)
    items = list(owner.values()) if held is None else []
    kind = kind_of_all([*items, *new]) if items or new else None
    if kind is not None and held is not None:
        kind = held.kind.joined(kind)
    if kind is None or any(True for x in (*items, *new) for _ in containers(x)):
        return
    span = span_of(before, numbers) if held is None else span_of(held.span, numbers)
    known = len(before if held is None else held.span)
    if len(span) > min(SPARSEST * (known + len(numbers) + SPARSEST), MOST_ROWS):
        return
    raise Keyed(owner, kind, span)


def build(before: Any, kind: Kind, span: range) -> Rows:
    """What a dict holds as rows, with space for the keys of ``span``."""
    if type(before) is not Rows:
        return rows_for(dict(zip(before.keys, before, strict=True)), kind, span)
    if before.kind.is_like(kind) and before.span.step == span.step:
        is_shown = before.stack.layout.is_own
        return before if before.span == span and not is_shown else extended(before, kind, span)
    return rows_for(dict(zip(before.keys, before.views(), strict=True)), kind, span)


# --- reads ----------------------------------------------------------------------------------------


def is_looked_up(owner: Any, index: Any) -> bool:
    """Whether ``owner[index]`` is read or written by ``item`` and ``store``."""
    if type(owner) is not dict:
        return False
    rows, key = rows_of(owner), key_of(index)
    if rows is None:
        return isinstance(index, Tracer) and key is not None
    is_known = key is not None and key.loop is None and key.const in rows.keys
    if is_known or (key is not None and bodies_around(owner)):
        return True
    read(owner)  # a plain dict again
    return False


def item(owner: Any, index: Any) -> Any:
    """``owner[index]``."""
    key = key_of(index)
    assert key is not None
    if rows_of(owner) is None:
        if owner:
            _want(owner, [], key)
        return owner[index]
    found = contents(owner)
    found.note_read(ITEMS)
    rows = rows_of(owner)
    assert rows is not None
    around = bodies_around(owner)
    if not around:
        return rows.views()[rows.keys.index(key.const)]
    for inner in around:
        stored = _stored(inner, owner)
        if key in stored.open:
            return stored.open[key]
    _close(owner, rows, around, key)
    _check(owner, rows, around, key)
    return read_row(rows.stack, rows.place(key))


def _close(owner: Any, rows: Rows, around: Sequence[Region], key: StepKey) -> None:
    """Have the item of a key in its row before it is looked up or changed."""
    for inner in around:
        opened = _stored(inner, owner).open
        for other in [x for x in opened if not x.differs(key)]:
            if inner is not region():
                raise _no_key()
            rows.write(other, opened.pop(other))


def _check(owner: Any, rows: Rows, around: Sequence[Region], key: StepKey) -> None:
    """See to it that a key is there in each step."""
    known = set(rows.keys)
    for inner in reversed(around):
        stored = _stored(inner, owner)
        for one in stored.keys:
            if isinstance(one, Several):
                known.update(one.keys)
            elif one.loop is None:
                known.add(one.const)
        if inner is key.loop:
            stored.wanted.append((key, len(stored.keys), known))
            return
    if key.loop is None and key.const in known:
        return
    if key.loop is not None and np.isin(key.numbers(), list(known)).all():
        return
    raise _no_key()


def _is_there(wanted: tuple[StepKey, int, set[int]], keys: Sequence[StepKey | Several]) -> bool:
    key, before, known = wanted
    numbers = key.numbers()
    found = np.isin(numbers, list(known))
    steps = np.arange(len(numbers))
    for k, one in enumerate(keys):
        if isinstance(one, Several):
            found |= np.isin(numbers, one.keys) & (steps > 0)
        elif not one.factor:
            found |= (numbers == one.const) & (steps > 0)
        else:
            at, rest = np.divmod(numbers - one.const, one.factor)
            found |= (rest == 0) & (at >= 0) & ((at < steps) | ((at == steps) & (k < before)))
    return bool(found.all())


def length(owner: Any) -> int:
    """How many items there are, where no body has changed that."""
    rows = rows_of(owner)
    assert rows is not None
    contents(owner).note_read(ITEMS)
    if any(_stored(inner, owner).keys for inner in bodies_around(owner)):
        raise _no_key()
    return len(rows.keys)


def method(owner: Any, name: str) -> Callable[..., Any] | None:
    """What tells of a dict which keys it has, and leaves it as it is."""
    rows = rows_of(owner)
    if rows is None or name != "keys":
        return None
    length(owner)
    known = dict.fromkeys(rows.keys)
    return lambda: known.keys()


# --- changes --------------------------------------------------------------------------------------


def is_stored(owner: Any, index: Any) -> bool:
    """Whether ``store`` may put an item into a dict."""
    return type(owner) is dict and (isinstance(index, Tracer) or rows_of(owner) is not None)


def store(owner: Any, index: Any, new: Any) -> bool:
    """``owner[index] = new``; False if the dict is a plain one."""
    check_alone(owner)
    around, key = bodies_around(owner), key_of(index)
    if not around or key is None:
        if rows_of(owner) is not None:
            read(owner)
        return False
    if any(not x.takes_appends for x in around) or not (key.loop is None or key.loop in around):
        if rows_of(owner) is None:
            return False
        raise _no_key()
    rows = rows_of(owner)
    if rows is not None and _has_space(owner, rows, around, key, new):
        _put(owner, rows, around, key, new)
        return True
    _want(owner, [new], key)
    if rows is not None:
        raise _no_key()
    return False


def _has_space(owner: Any, rows: Rows, around: Sequence[Region], key: StepKey, new: Any) -> bool:
    kind = kind_of(new)
    if kind is None or not rows.kind.holds(kind) or all(id(owner) not in x.housed for x in around):
        return False
    return set(key.numbers().tolist()) <= set(rows.span)


def _put(owner: Any, rows: Rows, around: Sequence[Region], key: StepKey, new: Any) -> None:
    if any(True for _ in containers(new)):
        raise _no_key()
    stored = _stored(around[0], owner)
    if key.loop not in (None, around[0]):
        raise _no_key()
    if key not in stored.open:
        _close(owner, rows, around, key)
    contents(owner).note_change(ITEMS)
    stored.keys.append(key)
    stored.open[key] = new


# --- ends of steps and loops ----------------------------------------------------------------------


def end_step(inner: Region) -> None:
    """Put the items of a step into their rows; all that it has looked up is there."""
    for owner, stored in inner.keyed.values():
        rows = rows_of(owner)
        if rows is None:
            continue
        for key in list(stored.open):
            rows.write(key, stored.open.pop(key))
        if not all(_is_there(wanted, stored.keys) for wanted in stored.wanted):
            raise _no_key()


def end_loop(body: Region) -> None:
    """What the steps of a loop have put into dicts."""
    for owner, stored in body.keyed.values():
        rows = rows_of(owner)
        if rows is None or not stored.keys:
            continue
        keys = tuple(dict.fromkeys(_in_order(stored.keys, steps_of(body))))
        around = bodies_around(owner)
        if around:
            contents(owner).note_change(ITEMS)
            _stored(around[0], owner).keys.append(Several(keys))
        else:
            _set(contents(owner), rows.with_keys(tuple(dict.fromkeys((*rows.keys, *keys)))))


def _set(found: Contents, rows: Rows) -> None:
    found.has_changed = True
    found.names[ITEMS] = rows


def _in_order(keys: Sequence[StepKey | Several], steps: int) -> Iterator[int]:
    for k in range(steps):
        for one in keys:
            if isinstance(one, StepKey):
                yield one.factor * k + one.const
            elif not k:
                yield from one.keys
