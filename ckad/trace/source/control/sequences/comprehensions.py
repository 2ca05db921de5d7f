"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ckad.errors import UnrecordableError
from ckad.place import at_place
from ckad.trace.arrays import run_over
from ckad.trace.memory.context import open_trace
from ckad.trace.memory.storage import Written
from ckad.trace.source.actions import (
    assign,
    evaluate,
    listed,
    returned_by,
    run_block,
    tested,
    unread,
)
from ckad.trace.source.control.checks import Stops
from ckad.trace.source.control.sequences import long_lists, several
from ckad.trace.source.control.sequences.filtered import NAMES, filtered
from ckad.trace.source.control.sequences.generators import Endless
from ckad.trace.source.control.sequences.iteration import Items, items_of
from ckad.trace.source.control.sequences.plain import computed
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory.appends import seen
from ckad.trace.source.memory.asked.by_python import all_of, iterated, noting_changes
from ckad.trace.source.memory.contents import stack_of
from ckad.trace.source.names.absence import needed
from ckad.trace.source.names.frame import MISSING, Frame, made, open_region
from ckad.trace.source.names.generated import Driven, Each, Lazy, UndecidedItem
from ckad.trace.source.names.reader import Definition
from ckad.trace.source.names.region import check_iterated
from ckad.trace.source.values import slot_of
from ckad.trace.values.part import Part
from ckad.trace.values.tracer import Tracer


def list_comprehension(frame: Frame, node: ast.ListComp) -> Any:
    iterable = _all_of_users(_unread(frame, node))
    if isinstance(iterable, Driven) and len(node.generators) == 1:
        iterable = listed(iterable)
    if _is_of_rows(iterable, node):
        return _run_as_loop(frame, node, iterable)
    iterable = seen(iterable)
    if not _may_filter(node):
        if _is_of_numbers(frame, node, iterable):
            return _run_as_loop(frame, node, iterable)
        if (numbers := computed(_scope(frame, node), node, iterable)) is not None:
            return made(numbers)
        return made([evaluate(inner, node.elt) for inner in _rounds(frame, node, iterable)])
    iterable = _items_of(iterable)
    if _is_undecided(frame, node, iterable):
        return _kept(frame, node, iterable)
    try:
        return made([evaluate(inner, node.elt) for inner in _rounds(frame, node, iterable)])
    except UndecidedItem:
        return _kept(frame, node, iterable)


def _kept(frame: Frame, node: ast.ListComp, iterable: Any) -> Any:
    """What a traced condition keeps: numbers as flagged items, all else as a list in buffers."""
    if _is_of_objects(frame, node, iterable):
        return _run_as_loop(frame, node, iterable)
    return filtered(_scope(frame, node), iterable, node)


def _is_of_objects(frame: Frame, node: ast.ListComp, iterable: Any) -> bool:
    """Whether it gives objects, dicts or tuples, which have no 0 in their place."""
    with open_trace(adopts=True), open_region():
        try:
            inner = _scope(frame, node)
            assign(inner, node.generators[0].target, next(iter(iterable)))
            return slot_of(evaluate(inner, node.elt)) is None
        except (Exception, Written, Stops):
            return False


def _may_filter(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether it may be found out as the program runs which items a comprehension keeps."""
    (first, *others) = node.generators
    if others or not first.ifs:
        return False
    return not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def _is_undecided(frame: Frame, node: ast.ListComp | ast.GeneratorExp, iterable: Any) -> bool:
    """Whether it is found out only then, seen before calls change something that stays changed."""
    (only,) = node.generators
    parts = (part for x in (node.elt, *only.ifs) for part in ast.walk(x))
    if isinstance(iterable, Iterator) or not any(isinstance(part, ast.Call) for part in parts):
        return False
    with open_trace(adopts=True), open_region():
        try:
            for _ in _rounds(frame, node, iterable):
                pass
        except UndecidedItem:
            return True
        except (Exception, Written, Stops):
            return False
    return False


def _items_of(iterable: Any) -> Any:
    """What can be run over twice."""
    if isinstance(iterable, Lazy):
        return iterable.all_items()
    if isinstance(iterable, Endless):
        raise UnrecordableError.here(
            "a comprehension with a condition runs over itertools.count or cycle, which do not "
            "end. Write a for loop that ends by break."
        )
    check_iterated(iterable)
    return list(iterable) if isinstance(iterable, Iterator) else iterable


def set_comprehension(frame: Frame, node: ast.SetComp) -> Any:
    return made({evaluate(inner, node.elt) for inner in _rounds(frame, node, _first(frame, node))})


def dict_comprehension(frame: Frame, node: ast.DictComp) -> Any:
    rounds = _rounds(frame, node, _first(frame, node))
    pairs = [(evaluate(inner, node.key), evaluate(inner, node.value)) for inner in rounds]
    return made(dict(pairs))


def generator_expression(frame: Frame, node: ast.GeneratorExp) -> Any:
    return _generated(frame, node, _unread(frame, node))


def _generated(frame: Frame, node: ast.GeneratorExp, iterable: Any) -> Any:
    if _is_of_rows(iterable, node):
        return _run_as_loop(frame, node, iterable)
    iterable = seen(iterable)
    if not _may_filter(node):
        return _each(frame, node, iterable)
    one, other = _twice(iterable)
    left = functools.cache(lambda: _items_of(other))
    return Lazy(
        lambda: _is_undecided(frame, node, one),
        lambda: _each(frame, node, one),
        lambda: filtered(_scope(frame, node), left(), node),
    )


def _each(frame: Frame, node: ast.GeneratorExp, iterable: Any) -> Each:
    """The items, each made from what the names of the targets are bound to in its round."""
    scope, (first, *others) = _scope(frame, node), node.generators
    is_quiet = not any(isinstance(part, _DOING) for part in ast.walk(node.elt))
    if others or first.ifs:
        rounds = (dict(inner.names) for inner in _nested_rounds(scope, iterable, node.generators))

        def of_names(names: dict[str, Any]) -> Any:
            scope.names.update(names)
            return evaluate(scope, node.elt)

        return Each(of_names, rounds, is_quiet)

    def of_item(item: Any) -> Any:
        assign(scope, first.target, item)
        return evaluate(scope, node.elt)

    iterable = all_of(needed(iterable))
    return Each(of_item, iter(iterable), is_quiet)


#: What may do more than give a value.
_DOING = (ast.Call, ast.NamedExpr, ast.Await)


def _twice(iterable: Any) -> tuple[Any, Any]:
    """What can be run over twice, as late as it is."""
    if not isinstance(iterable, Iterator):
        return iterable, iterable
    if isinstance(iterable, Driven):
        iterable = made(_items_of(iterable))
        return iterable, iterable
    one, other = itertools.tee(iterable)
    return made(one), made(other)


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _unread(frame: Frame, node: _Comprehension) -> Any:
    return iterated(run_over(several.opened(unread(frame, node.generators[0].iter))))


def _first(frame: Frame, node: _Comprehension) -> Any:
    return _all_of_users(iterated(run_over(evaluate(frame, node.generators[0].iter))))


def _all_of_users(iterable: Any) -> Any:
    """An iterator of a class of the user as a list: it is run over once."""
    if isinstance(iterable, Iterator) and not is_library(type(iterable).__module__):
        check_iterated(iterable)
        with noting_changes(iterable):
            return made(list(iterable))
    return iterable


# --- over lists that are rows of buffers ---------------------------------------------------------

#: Names of what a comprehension that is run as a loop runs over, and of what it gives.
SOURCE, RESULT = "items of a comprehension", "list of a comprehension"
_loops: dict[ast.AST, ast.For] = {}
#: Comprehensions in which others stand are loops for so many items, not for ``long_lists.LONG``.
NESTED = 8


def _is_of_rows(iterable: Any, node: ast.ListComp | ast.GeneratorExp) -> bool:
    is_open = stack_of(iterable) is not None or isinstance(iterable, Part)
    return is_open and len(node.generators) == 1


def _is_taken(iterable: Any) -> bool:
    return isinstance(iterable, Iterator) and not isinstance(iterable, Items)


def _is_of_numbers(frame: Frame, node: ast.ListComp | ast.GeneratorExp, iterable: Any) -> bool:
    """Whether it makes many numbers of as many items: it is recorded once for all of them."""
    known = () if _is_taken(iterable) or len(node.generators) > 1 else iterable
    target = node.generators[0].target
    if type(known) in (list, tuple) and long_lists.are_arrays(known, target):
        items: Items | None = Items(len(known), known.__getitem__)
    else:
        items = items_of(known) or long_lists.listed_numbers(known)
    if items is None or not isinstance(items.length, int) or items.length < NESTED:
        return False
    is_nest = any(isinstance(part, (ast.ListComp, ast.GeneratorExp)) for part in ast.walk(node.elt))
    if items.length < long_lists.LONG and not is_nest:
        return False
    with open_trace(adopts=True), open_region():
        try:
            inner = _scope(frame, node)
            assign(inner, node.generators[0].target, items.item(0))
            first = evaluate(inner, node.elt)
            return isinstance(first, Tracer) and first.scalar
        except (Exception, Written, Stops):
            return False


def _run_as_loop(frame: Frame, node: ast.ListComp | ast.GeneratorExp, iterable: Any) -> Any:
    inner = _scope(frame, node)
    inner.names[SOURCE], inner.names[RESULT] = iterable, made([])
    run_block(inner, [_as_loop(node)])
    return inner.names[RESULT]


def _as_loop(node: ast.ListComp | ast.GeneratorExp) -> ast.For:
    """``for x in xs: if test: result.append(f(x))``."""
    if node not in _loops:
        (only,) = node.generators
        append = ast.Attribute(ast.Name(RESULT, ast.Load()), "append", ast.Load())
        body: list[ast.stmt] = [ast.Expr(ast.Call(append, [node.elt], []))]
        for test in reversed(only.ifs):
            body = [ast.If(test, body, [])]
        loop = ast.For(only.target, ast.Name(SOURCE, ast.Load()), body, [])
        _loops[node] = ast.fix_missing_locations(ast.copy_location(loop, node))
    return _loops[node]


# --- all that are given, and the first -----------------------------------------------------------

#: They take all items at once, as a list.
_TAKE_ALL = (sum, min, max, list, math.fsum, math.prod, np.fromiter)


def takes_all(callee: Any) -> bool:
    return any(callee is function for function in _TAKE_ALL)


def all_given(frame: Frame, node: ast.GeneratorExp) -> Any:
    """The items of a generator expression, of which a list may be made: many numbers at once."""
    iterable = _unread(frame, node)
    is_plain = not _is_of_rows(iterable, node) and not _may_filter(node)
    if is_plain and _is_of_numbers(frame, node, iterable := seen(iterable)):
        return _run_as_loop(frame, node, iterable)
    return _generated(frame, node, iterable)


_searches: dict[ast.AST, list[ast.stmt]] = {}


def first_given(frame: Frame, node: ast.GeneratorExp, default: Any = MISSING) -> Any:
    """``next(f(x) for x in xs if test)``, as a function that returns the first it finds."""
    inner, iterable = _scope(frame, node), _unread(frame, node)
    inner.names[SOURCE], inner.names[RESULT] = iterable, default
    if node not in _searches:
        _searches[node] = _as_search(node, default is not MISSING)
    return returned_by(inner, run_block(inner, _searches[node]))


def _as_search(node: ast.GeneratorExp, has_default: bool) -> list[ast.stmt]:
    body: ast.stmt = ast.Return(node.elt)
    for part in reversed(node.generators):
        for test in reversed(part.ifs):
            body = ast.If(test, [body], [])
        items = ast.Name(SOURCE, ast.Load()) if part is node.generators[0] else part.iter
        body = ast.For(part.target, items, [body], [])
    none = ast.Raise(ast.Constant(StopIteration))  # type: ignore[arg-type]
    last = ast.Return(ast.Name(RESULT, ast.Load())) if has_default else none
    return [ast.fix_missing_locations(ast.copy_location(x, node)) for x in (body, last)]


# --- the names and rounds of any other -----------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _bound_by(node: _Comprehension) -> frozenset[str]:
    parts = (name for part in node.generators for name in ast.walk(part.target))
    return NAMES | {SOURCE, RESULT} | {x.id for x in parts if isinstance(x, ast.Name)}


def _scope(frame: Frame, node: _Comprehension) -> Frame:
    definition = Definition(
        frame.definition.node,
        frame.definition.file,
        frame.definition.name,
        _bound_by(node),
        frozenset(),
    )
    inner = Frame(definition, frame.function, frame)
    inner.line = frame.line
    return inner


def _rounds(frame: Frame, node: _Comprehension, iterable: Any) -> Iterator[Frame]:
    return _nested_rounds(_scope(frame, node), iterable, node.generators)


def _nested_rounds(
    inner: Frame, iterable: Any, generators: list[ast.comprehension]
) -> Iterator[Frame]:
    iterable = all_of(needed(iterable))
    first, *others = generators
    for item in iterable:
        assign(inner, first.target, item)
        if not all(_is_true(inner, test) for test in first.ifs):
            continue
        if others:
            yield from _nested_rounds(inner, evaluate(inner, others[0].iter), others)
        else:
            yield inner


def _is_true(frame: Frame, test: ast.expr) -> bool:
    verdict = tested(frame, test)
    if not isinstance(verdict, bool):
        raise UndecidedItem(
            at_place(
                "which items a comprehension keeps depends on a traced value. Use np.where, or a "
                "loop that writes into an array."
            )
        )
    return verdict
