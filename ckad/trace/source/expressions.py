"""Expressions over tracers: ``evaluate`` finds the function of a node in one table."""

from __future__ import annotations

import ast
import operator
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np

from ckad.trace.memory.opened import making_text
from ckad.trace.source.attributes import attribute_of, by_name
from ckad.trace.source.calls import call
from ckad.trace.source.choices import Choice, numbered
from ckad.trace.source.control import branches, chosen
from ckad.trace.source.control.filled import certain_array
from ckad.trace.source.control.sequences import comprehensions, picking, several
from ckad.trace.source.control.sequences.ordering import found_by, taken_out
from ckad.trace.source.effects import arguments
from ckad.trace.source.kinds import check_items, real_of_spectra
from ckad.trace.source.library.called import writable
from ckad.trace.source.library.lists import columns, without_deques
from ckad.trace.source.memory import keyed, listed, object_arrays
from ckad.trace.source.memory.appends import LENGTHENING, appending, seen
from ckad.trace.source.memory.asked import by_python
from ckad.trace.source.memory.contents import is_in_buffers, new, read, stack_of
from ckad.trace.source.memory.twins import changing, check_key
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import given, given_deep, needed
from ckad.trace.source.names.bindings import clear
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import MISSING, Frame, made
from ckad.trace.source.names.reader import define
from ckad.trace.source.operators import BINARY, UNARY, changed, combine, compared
from ckad.trace.source.outside.judge import hand_over
from ckad.trace.source.outside.kinds import CONTAINERS
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.text import known_now, of_object, shown
from ckad.trace.source.values import as_bound, holds_tracer, lifted, truth, weakened
from ckad.trace.values.array import Array
from ckad.trace.values.tracer import Tracer


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression."""
    return _TABLE[type(node)](frame, node)


# --- names, constants, displays ------------------------------------------------------------------


def _constant(frame: Frame, node: ast.Constant) -> Any:
    return node.value


def _name(frame: Frame, node: ast.Name) -> Any:
    return several.shown(frame.lookup(node.id))


def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    owner = given(unread(frame, node.value))
    frame.line = node.lineno
    own = listed.method(owner, node.attr)
    if own is not None:
        return partial(own, owner)
    if (told := keyed.method(owner, node.attr)) is not None:
        return told
    if several.is_list(owner):
        return several.method(owner, node.attr)
    owner = seen(owner)
    if owner is None and not hasattr(owner, node.attr):
        needed(owner)
    return several.shown(attribute_of(owner, node.attr))


def unread(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression for who looks at a list by ``listed`` alone, or hands it on."""
    if isinstance(node, ast.Name):
        found = frame.lookup(node.id)
    elif isinstance(node, ast.Attribute):
        owner = given(evaluate(frame, node.value))
        frame.line = node.lineno
        found = attribute_of(owner, node.attr)
    elif isinstance(node, ast.Subscript):
        owner, index = unread(frame, node.value), several.index_of(frame, node)
        frame.line = node.lineno
        found = unread_element(owner, index)
    elif isinstance(node, ast.Tuple):
        return tuple(items(frame, node.elts, unread))
    else:
        return evaluate(frame, node)
    as_it_is = type(found) in (Tracer, Choice) or is_in_buffers(found)
    return found if as_it_is else seen(found)


def items(
    frame: Frame, nodes: Iterable[ast.expr], value: Callable[[Frame, ast.expr], Any] = evaluate
) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            given = certain_array(needed(evaluate(frame, node.value)))
            yield from map(clear, by_python.all_of(given, asks_length=True))
        else:
            yield value(frame, node)


def _tuple(frame: Frame, node: ast.Tuple) -> Any:
    return tuple(items(frame, node.elts))


def _list(frame: Frame, node: ast.List) -> Any:
    return made(list(items(frame, node.elts, unread)))


def _set(frame: Frame, node: ast.Set) -> Any:
    found = [*items(frame, node.elts)]
    by_python.note_keys(*found)
    with by_python.noting_changes(*found):
        return made(set(found))


def _dict(frame: Frame, node: ast.Dict) -> Any:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            by_python.put_all(found, needed(evaluate(frame, value)))
        else:
            name = evaluate(frame, key)
            by_python.by_index(operator.setitem, found, name, unread(frame, value))
    return made(found)


def _text(frame: Frame, node: ast.JoinedStr) -> str:
    parts = [evaluate(frame, part) for part in node.values]
    return shown("".join(parts), parts)


_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda x: x, 114: repr, 115: str, 97: ascii}


def _formatted(frame: Frame, node: ast.FormattedValue) -> str:
    found = known_now(evaluate(frame, node.value))
    spec = evaluate(frame, node.format_spec) if node.format_spec else ""
    own, spec = of_object(found, node.conversion, spec)
    if own is MISSING and (watched := watch()):
        hand_over(watched, found)
    with making_text() as traced, by_python.noting_changes(found):
        value = _CONVERSIONS[node.conversion](found) if own is MISSING else own
        text = repr(value) if isinstance(value, Array) else format(value, spec)
    return shown(text, [found, value, *traced])


# --- operators -----------------------------------------------------------------------------------


def _binary(frame: Frame, node: ast.BinOp) -> Any:
    x, y = evaluate(frame, node.left), evaluate(frame, node.right)
    frame.line = node.lineno
    return combine(BINARY[type(node.op)], x, y)


def _unary(frame: Frame, node: ast.UnaryOp) -> Any:
    if isinstance(node.op, ast.Not):
        verdict = tested(frame, node.operand)
        return not verdict if isinstance(verdict, bool) else weakened(np.logical_not(verdict))
    if isinstance(node.operand, ast.Constant) and type(node.operand.value) in (int, float):
        return UNARY[type(node.op)](node.operand.value)
    x = several.condition(unread(frame, node.operand))
    frame.line = node.lineno
    return changed(UNARY[type(node.op)], x)


def tested(frame: Frame, node: ast.expr) -> bool | Tracer:
    """Whether it holds; nobody asks for more of what ``and`` and ``or`` join there."""
    if isinstance(node, ast.BoolOp):
        return truth(_boolean_of(frame, node.values, isinstance(node.op, ast.And), tested))
    return truth(several.condition(unread(frame, node)))


def _boolean(frame: Frame, node: ast.BoolOp) -> Any:
    return _boolean_of(frame, node.values, isinstance(node.op, ast.And), unread)


def _boolean_of(frame: Frame, values: list[ast.expr], is_and: bool, value: Any) -> Any:
    first = value(frame, values[0])
    if len(values) == 1:
        return first
    frame.line = values[0].lineno
    verdict = truth(several.condition(first))
    if isinstance(verdict, bool):
        return _boolean_of(frame, values[1:], is_and, value) if verdict == is_and else first
    first = several.condition(first)
    rest = partial(_boolean_of, frame, values[1:], is_and, value)
    return branches.logical(is_and, first, verdict, rest, ("rest", values[0]))


def _compare(frame: Frame, node: ast.Compare) -> Any:
    return _compare_from(frame, node, evaluate(frame, node.left), 0)


def _compare_from(frame: Frame, node: ast.Compare, x: Any, k: int) -> Any:
    """``x`` compared with operand k, and where that holds, that one with the next."""
    y = evaluate(frame, node.comparators[k])
    frame.line = node.lineno
    found = compared(node.ops[k], x, y)
    if k + 1 == len(node.ops):
        return found
    rest = partial(_compare_from, frame, node, y, k + 1)
    if isinstance(verdict := truth(found), bool):
        return rest() if verdict else found
    return branches.logical(True, found, verdict, rest, ("chain", k, node))


def _if_else(frame: Frame, node: ast.IfExp) -> Any:
    verdict = tested(frame, node.test)
    if isinstance(verdict, bool):
        return evaluate(frame, node.body if verdict else node.orelse)
    return branches.either(
        verdict, lambda: evaluate(frame, node.body), lambda: evaluate(frame, node.orelse), node
    )


def _named(frame: Frame, node: ast.NamedExpr) -> Any:
    value = evaluate(frame, node.value)
    frame.bind(node.target.id, value)
    return value


# --- subscripts ----------------------------------------------------------------------------------


def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    owner = unread(frame, node.value)
    index = several.index_of(frame, node)
    frame.line = node.lineno
    return element(owner, index)


def element(owner: Any, index: Any) -> Any:
    """``owner[index]``; ``unread_element`` is for who looks at a list by ``listed`` alone."""
    found = unread_element(owner, index)
    return found if isinstance(index, slice) else several.shown(found)


def unread_element(owner: Any, index: Any) -> Any:
    if several.is_list(owner) and (found := several.item(owner, index)) is not MISSING:
        return found
    owner = several.opened(owner)
    if stack_of(owner) is not None:
        return listed.item(owner, index)
    if keyed.is_looked_up(owner, index):
        return keyed.item(owner, index)
    owner, index = certain_array(needed(owner)), given_deep(index)
    if type(owner) is Choice:
        return chosen.asked(owner, lambda known: _item_of_one(known, index))
    if isinstance(owner, dict):
        check_key(index)
        if type(index) is Choice:
            return chosen.asked(index, lambda known: element(owner, known))
    index = numbered(index)
    if (found := classes.invoke(owner, "__getitem__", index)) is not MISSING:
        return found
    check_items(owner, "subscriptable", "__getitem__")
    grids = writable(owner, index)
    if grids is not None:
        return grids
    if isinstance(owner, np.ndarray) and holds_tracer(index):
        owner = lifted(owner)
    elif isinstance(owner, (list, tuple, str)) or type(owner) is dict:
        if type(owner) is list:
            object_arrays.looked_into(owner, index)
        if isinstance(index, Tracer):
            return picking.item(owner, index)
        if (part := picking.part(owner, index)) is not None:
            return new(part, owner)
    makes = type(owner) is defaultdict and index not in owner
    if makes:  # looking makes an item
        changing(owner)
    found = clear(by_python.by_index(operator.getitem, owner, index))
    if makes and isinstance(found, (*CONTAINERS, set)):
        return made(found)
    return new(found, owner) if isinstance(index, slice) else found


def _item_of_one(known: Any, index: Any) -> Any:
    if known is None:
        raise LookupError  # not one of those that have items
    return element(known, index)


def _slice(frame: Frame, node: ast.Slice) -> slice:
    parts = (node.lower, node.upper, node.step)
    return slice(*(None if part is None else as_bound(evaluate(frame, part)) for part in parts))


# --- functions -----------------------------------------------------------------------------------


def _call(frame: Frame, node: ast.Call) -> Any:
    if isinstance(node.func, ast.Attribute) and node.func.attr in LENGTHENING:
        with appending():
            callee = evaluate(frame, node.func)
    else:
        callee = evaluate(frame, node.func)
    by_place: Callable[[], Iterator[Any]] = partial(items, frame, node.args, unread)
    match node.args:
        case [ast.Starred(value=starred)] if callee is zip:
            rows = several.opened(unread(frame, starred))
            if stack_of(rows) is not None:
                return _doing(frame, node, partial(columns, rows))
            by_place = partial(iter, by_python.all_of(needed(seen(rows)), asks_length=True))
        case [ast.GeneratorExp() as given_by, *rest] if callee is next and not node.keywords:
            default = list(items(frame, rest))
            return _doing(
                frame, node, partial(comprehensions.first_given, frame, given_by, *default)
            )
        case [ast.GeneratorExp() as given_by, *rest] if comprehensions.takes_all(callee):
            by_place = partial(
                chain, [comprehensions.all_given(frame, given_by)], items(frame, rest, unread)
            )
    args, options = arguments(frame, node, callee, by_place)
    frame.line = node.lineno
    if callee is super and not args:
        return classes.parent(frame)
    args = several.given(callee, real_of_spectra(callee, without_deques(callee, args)))
    return _doing(frame, node, partial(_called, callee, args, options))


def _doing(frame: Frame, node: ast.Call, function: Callable[[], Any]) -> Any:
    """What a call of evaluated arguments gives; names may be read by the rest of its statement."""
    around, frame.doing, frame.line = frame.doing, node, node.lineno
    found = function()
    frame.doing = around
    return found


def _called(callee: Any, args: list[Any], options: dict[str, Any]) -> Any:
    found = chosen.of_one(callee, args, options)
    found = by_name(callee, args) if found is MISSING else found
    if found is not MISSING:
        return found
    owner: Any = getattr(callee, "__self__", None)
    if type(owner) in (list, tuple, deque) and len(args) == 1 and callee.__name__ in _LOOKED_FOR:
        read(owner)
        if any(holds_tracer(x) or type(x) is Choice for x in (*owner, *args)):
            flags = [x is args[0] or compared(ast.Eq(), x, args[0]) for x in owner]
            if callee.__name__ == "remove":
                return taken_out(owner, flags)
            return found_by(flags, callee.__name__ == "count")
    return call(callee, args, options)


#: Methods of lists that look for an item.
_LOOKED_FOR = ("count", "index", "remove")


def closure(frame: Frame, node: ast.FunctionDef | ast.Lambda) -> Closure:
    """The function that a ``def`` or ``lambda`` makes."""
    args = node.args
    defaults = [evaluate(frame, d) for d in args.defaults]
    named = {
        a.arg: evaluate(frame, d)
        for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if d is not None
    }
    return Closure(_defined(node, frame.definition.file), frame, defaults, named)


_defined = cache(define)


_TABLE: dict[type, Callable[[Frame, Any], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.JoinedStr: _text,
    ast.FormattedValue: _formatted,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _if_else,
    ast.NamedExpr: _named,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Call: _call,
    ast.Lambda: closure,
    ast.ListComp: comprehensions.list_comprehension,
    ast.SetComp: comprehensions.set_comprehension,
    ast.DictComp: comprehensions.dict_comprehension,
    ast.GeneratorExp: comprehensions.generator_expression,
}
