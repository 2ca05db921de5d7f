"""Statements, run over tracers. A block ends with a `Flow`, or None if it runs on."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace.source.attributes import attribute_of, delete_attribute, set_attribute
from ckad.trace.source.calls import call
from ckad.trace.source.choices import Choice, can_be_chosen, numbered
from ckad.trace.source.control import branches, chosen, repetition
from ckad.trace.source.control.checks import may_be_caught, note_raise
from ckad.trace.source.control.counters import attribute_counted, name_counted
from ckad.trace.source.control.filled import certain_array, check_alone, check_alone_in
from ckad.trace.source.control.flow import Flow, definite
from ckad.trace.source.control.guarded import (
    assert_statement,
    raise_statement,
    try_statement,
    with_statement,
)
from ckad.trace.source.control.sequences import several
from ckad.trace.source.control.sequences.generators import yielded
from ckad.trace.source.control.sequences.returns import left_by
from ckad.trace.source.expressions import closure, evaluate, items, tested, unread, unread_element
from ckad.trace.source.kinds import check_items
from ckad.trace.source.libraries import compiles
from ckad.trace.source.library import sparse
from ckad.trace.source.matching import match
from ckad.trace.source.memory import keyed, listed, object_arrays
from ckad.trace.source.memory.appends import extend, is_extended, seen
from ckad.trace.source.memory.asked.by_python import all_of, by_index, check_run_over
from ckad.trace.source.memory.contents import stack_of
from ckad.trace.source.memory.twins import changing, check_key
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import (
    OrNone,
    given,
    given_deep,
    is_changeable,
    needed,
    or_none,
)
from ckad.trace.source.names.bindings import clear
from ckad.trace.source.names.declared import define_class, import_from, import_module
from ckad.trace.source.names.frame import (
    MISSING,
    RETURN,
    Frame,
    Unclear,
    region,
)
from ckad.trace.source.names.generated import loop_of
from ckad.trace.source.operators import IN_PLACE, combine
from ckad.trace.source.outside.kinds import CONTAINERS, SEQUENCES
from ckad.trace.source.skipped import Skipped
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.part import Part
from ckad.trace.values.tracer import Tracer


def run_block(frame: Frame, statements: Sequence[ast.stmt]) -> Flow | None:
    """Run statements one after the other."""
    for k, statement in enumerate(statements):
        flow = run_statement(frame, statement)
        if flow is None:
            continue
        rest = statements[k + 1 :]
        if not rest:
            return flow
        return branches.run_on(flow, partial(run_block, frame, rest), ("rest", statement))
    return None


def run_statement(frame: Frame, node: ast.stmt) -> Flow | None:
    frame.line, frame.statement, frame.doing = node.lineno, node, None
    return _TABLE[type(node)](frame, node)


def returned_by(frame: Frame, flow: Flow | None) -> Any:
    """What a function returns whose body has ended with ``flow``."""
    value = frame.names.get(RETURN, MISSING)
    if flow is None or not flow.kinds & {Flow.RETURN} or value is MISSING:
        return None
    if Flow.NEXT in flow.kinds and value is not None:
        return _or_nothing(frame, flow, value)
    return clear(value)


def _or_nothing(frame: Frame, flow: Flow, value: Any) -> Any:
    """What a function returns that ends without a ``return`` on some path."""
    if type(value) in (Unclear, Choice) or can_be_chosen(value) or is_changeable(value):
        raise CkadReturn.here(
            f"{frame.definition.name}() returns a value on one path and nothing on another, "
            "and which one is taken depends on a traced value. Return a value on each path."
        )
    returns = flow.goes(Flow.RETURN)
    whole = or_none(value)
    return OrNone(whole.value, np.logical_and(whole.present, returns))


class CkadReturn(UnrecordableError):
    """Paths of a function return different things."""


# --- simple statements ---------------------------------------------------------------------------


def _expression(frame: Frame, node: ast.Expr) -> Flow | None:
    if isinstance(node.value, ast.Yield):
        return yielded(frame, node.value)
    if isinstance(node.value, ast.YieldFrom):
        return repetition.for_loop(frame, loop_of(node.value))
    evaluate(frame, node.value)
    return None


def _pass(frame: Frame, node: ast.stmt) -> None:
    return None


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = unread(frame, node.value)
    for target in node.targets:
        frame.line = target.lineno
        assign(frame, target, value)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(frame, node.target, evaluate(frame, node.value))


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    """``target = value``."""
    if isinstance(target, ast.Name):
        frame.bind(target.id, value)
        return
    value = clear(value)
    if isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Subscript):
        owner, index = unread(frame, target.value), several.index_of(frame, target)
        store(owner, index, value)
    elif isinstance(target, ast.Attribute):
        set_attribute(evaluate(frame, target.value), target.attr, value)
    else:
        assert isinstance(target, ast.Starred)
        assign(frame, target.value, value)


def _unpack(frame: Frame, targets: Sequence[ast.expr], value: Any) -> None:
    value = all_of(needed(value))
    starred = [k for k, t in enumerate(targets) if isinstance(t, ast.Starred)]
    values = _items(value, len(targets), bool(starred))
    if not starred:
        if len(values) != len(targets):
            many = "too many" if len(values) > len(targets) else "not enough"
            raise ValueError(
                at_place(f"{many} values to unpack: expected {len(targets)}, got {len(values)}")
            )
    else:
        (at,) = starred
        tail = len(targets) - at - 1
        if len(values) < len(targets) - 1:
            raise ValueError(at_place(f"not enough values to unpack: got {len(values)}"))
        stop = len(values) - tail
        values = [*values[:at], values[at:stop], *values[stop:]]
    for target, item in zip(targets, values, strict=True):
        assign(frame, target, item)


def _items(value: Any, n: int, starred: bool) -> list[Any]:
    """What ``value`` gives to ``n`` names; of a list whose length is computed, that many."""
    if type(value) is Skipped:
        return [value] * n
    stack = stack_of(value)
    if starred or stack is None or stack.is_known or may_be_caught(ValueError):
        return [*iter(seen(value))]  # Python does not ask for its length
    note_raise(np.not_equal(listed.length(value), n))
    return [listed.item(value, k) for k in range(n)]


def store(owner: Any, index: Any, value: Any) -> None:
    """``owner[index] = value``."""
    if stack_of(owner) is not None:
        return listed.store(owner, index, value)
    if several.is_list(owner):
        return several.store(owner, index, value, store)
    if keyed.is_stored(owner, index) and keyed.store(owner, index, value):
        return None
    owner, index = certain_array(needed(owner)), _written(given_deep(index))
    value = value if isinstance(owner, CONTAINERS) else given_deep(value)
    if isinstance(index, slice):
        value = seen(value)  # its items are taken
    if classes.invoke(owner, "__setitem__", index, value) is not MISSING:
        return None
    check_items(owner, "assignable by items", "__setitem__")
    if isinstance(index, slice):
        object_arrays.refuse("a part", owner)
        value = all_of(value, asks_length=True)
    if isinstance(owner, CONTAINERS):
        changing(owner)
    else:
        value = seen(value)  # an array takes its items
        traced = holds_tracer(value) or holds_tracer(index)
        if isinstance(owner, np.ndarray):
            _check_plain(owner, traced)
        elif traced:
            sparse.check_stored(owner)
    if isinstance(owner, dict):
        check_key(index)
        if type(index) is Choice:
            return chosen.put_by(owner, index, value)
    index = numbered(index)
    if type(owner) is list and isinstance(index, Tracer):
        chosen.house_long(owner, index, value)
        chosen.put_item(owner, index, value)
    else:
        by_index(operator.setitem, owner, index, value)
    return None


def _written(index: Any) -> Any:
    """An index that is written through: ``np.where(c)`` in ``x[np.where(c), k]`` is an array with
    an axis of one before its own, which what is written need not have."""
    if type(index) is not tuple:
        return index
    return tuple(
        x[0] if type(x) is tuple and len(x) == 1 and isinstance(x[0], Part) else x for x in index
    )


def _check_plain(owner: np.ndarray, traced: bool) -> None:
    """A plain array in a function that is run from source was made outside of it, or has texts."""
    if owner.dtype.kind in "US":
        msg = "the function writes into an array of texts. Write into a list, and make it of that."
        raise UnrecordableError.here(msg)
    if traced or region() is not None:
        raise UnrecordableError.here(
            "the function writes into an array that it did not get as an argument and did not "
            "make itself. Pass it as an argument, or write into a copy: a = np.array(a)."
        )


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    in_place = IN_PLACE[type(node.op)]
    target = node.target
    if isinstance(target, ast.Name):
        if name_counted(frame, target.id, node):
            return
        old = frame.lookup(target.id)
        check_alone(old, (frame, target.id))
        new = _combined(frame, node, in_place, old)
        frame.bind(target.id, new)
    elif isinstance(target, ast.Subscript):
        owner, index = unread(frame, target.value), several.index_of(frame, target)
        index = _written(index)
        old = unread_element(owner, index)
        check_alone_in(old, owner, index)
        new = _combined(frame, node, in_place, old)
        is_put = type(old) is list and new is old and type(owner) in CONTAINERS
        if not (is_put or several.is_list(old)):
            store(owner, index, new)
    else:
        assert isinstance(target, ast.Attribute)
        owner = given(evaluate(frame, target.value))
        if attribute_counted(owner, target.attr, node):
            return
        old = attribute_of(owner, target.attr)
        check_alone_in(old, owner, target.attr)
        new = _combined(frame, node, in_place, old)
        if not isinstance(owner, Tracer):
            set_attribute(owner, target.attr, new)


def _combined(
    frame: Frame, node: ast.AugAssign, in_place: Callable[[Any, Any], Any], old: Any
) -> Any:
    value = evaluate(frame, node.value)
    frame.line = node.lineno
    if isinstance(old, CONTAINERS):
        object_arrays.refuse("an operator", old)
        value = all_of(value, True) if type(old) in SEQUENCES else value
        check_run_over(value)
    if in_place is operator.iadd and several.is_list(old):
        several.extend(old, value)
        return old
    if in_place is operator.iadd and is_extended(old, value):
        extend(old, value)
        return old
    if isinstance(old, CONTAINERS):
        changing(old)
    elif isinstance(old, np.ndarray):
        _check_plain(old, holds_tracer(value))
    return combine(in_place, old, value)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.unbind(target.id)
        elif isinstance(target, ast.Subscript):
            owner = unread(frame, target.value)
            if stack_of(owner) is not None:
                listed.delete(owner, evaluate(frame, target.slice))
                continue
            object_arrays.check_deleted(owner)
            changing(owner)
            by_index(operator.delitem, owner, evaluate(frame, target.slice))
        elif isinstance(target, ast.Attribute):
            delete_attribute(evaluate(frame, target.value), target.attr)


def _define(frame: Frame, node: ast.FunctionDef | ast.ClassDef) -> None:
    found: Any
    if isinstance(node, ast.ClassDef):
        found = define_class(frame, node)
    else:
        found = closure(frame, node)
    for decorator in reversed(node.decorator_list):
        wrap = evaluate(frame, decorator)
        if not compiles(wrap):
            found = call(wrap, (found,), {})
    frame.bind(node.name, found)


# --- compound statements -------------------------------------------------------------------------


def _if(frame: Frame, node: ast.If) -> Flow | None:
    verdict = tested(frame, node.test)
    if isinstance(verdict, bool):
        return run_block(frame, node.body if verdict else node.orelse)
    flow = branches.branch(
        verdict, lambda: run_block(frame, node.body), lambda: run_block(frame, node.orelse), node
    )
    frame.statement = node
    return flow


def _return(frame: Frame, node: ast.Return) -> Flow:
    value = None if node.value is None else _returned(frame, node.value)
    frame.bind(RETURN, value)
    return definite(Flow.RETURN)


def _returned(frame: Frame, node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(items(frame, node.elts, _item_returned))
    return unread(frame, node)


def _item_returned(frame: Frame, node: ast.expr) -> Any:
    """What has no one value is an error for who reads it."""
    unclear = frame.handed_on(node.id) if isinstance(node, ast.Name) else None
    return unread(frame, node) if unclear is None else unclear


def _break(frame: Frame, node: ast.Break) -> Flow:
    return left_by(node) or definite(Flow.BREAK)


def _continue(frame: Frame, node: ast.Continue) -> Flow:
    return definite(Flow.CONTINUE)


_TABLE: dict[type, Callable[[Frame, Any], Flow | None]] = {
    ast.Expr: _expression,
    ast.Pass: _pass,
    ast.Global: _pass,
    ast.Nonlocal: _pass,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Assert: assert_statement,
    ast.Raise: raise_statement,
    ast.FunctionDef: _define,
    ast.ClassDef: _define,
    ast.Import: import_module,
    ast.ImportFrom: import_from,
    ast.If: _if,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.For: repetition.for_loop,
    ast.While: repetition.while_loop,
    ast.With: with_statement,
    ast.Try: try_statement,
    ast.Match: match,
}
