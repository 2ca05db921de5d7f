"""Comprehensions and generators; a loop where they run over lists that are rows of buffers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ckad.errors import TraceError
from ckad.place import at_place
from ckad.trace.source.actions import assign, evaluate, run_block, unread
from ckad.trace.source.memory.contents import stack_of
from ckad.trace.source.names.frame import Frame, check_iterated, made
from ckad.trace.source.names.reader import Definition
from ckad.trace.source.values import truth


def list_comprehension(frame: Frame, node: ast.ListComp) -> Any:
    return _items_of(frame, node)


def _items_of(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Any:
    """What a comprehension gives, as a list; a loop where it runs over rows of buffers."""
    over = unread(frame, node.generators[0].iter)
    if stack_of(over) is not None and len(node.generators) == 1:
        inner = _scope(frame, node)
        inner.names[SOURCE], inner.names[RESULT] = over, made([])
        run_block(inner, [_as_loop(node)])
        return inner.names[RESULT]
    return made([evaluate(inner, node.elt) for inner in _rounds(frame, node)])


def set_comprehension(frame: Frame, node: ast.SetComp) -> Any:
    return made({evaluate(inner, node.elt) for inner in _rounds(frame, node)})


def dict_comprehension(frame: Frame, node: ast.DictComp) -> Any:
    pairs = [(evaluate(f, node.key), evaluate(f, node.value)) for f in _rounds(frame, node)]
    return made(dict(pairs))


def generator(frame: Frame, node: ast.GeneratorExp) -> Any:
    if stack_of(unread(frame, node.generators[0].iter)) is not None:
        return _items_of(frame, node)
    rounds = _rounds(frame, node)
    return made(evaluate(inner, node.elt) for inner in rounds)


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


#: Names of what a comprehension that is run as a loop runs over, and of what it gives.
SOURCE, RESULT = "items of a comprehension", "list of a comprehension"
_loops: dict[ast.AST, ast.For] = {}


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


def _rounds(frame: Frame, node: _Comprehension) -> Iterator[Frame]:
    inner = _scope(frame, node)
    return _nested_rounds(inner, evaluate(frame, node.generators[0].iter), node.generators)


def _scope(frame: Frame, node: _Comprehension) -> Frame:
    """The names of a comprehension."""
    names = {SOURCE, RESULT}
    names |= {
        name.id
        for part in node.generators
        for name in ast.walk(part.target)
        if isinstance(name, ast.Name)
    }
    definition = Definition(
        frame.definition.node,
        frame.definition.file,
        frame.definition.name,
        frozenset(names),
        frozenset(),
        frozenset(),
    )
    inner = Frame(definition, frame.function, frame)
    inner.line = frame.line
    return inner


def _nested_rounds(
    inner: Frame, iterable: Any, generators: list[ast.comprehension]
) -> Iterator[Frame]:
    check_iterated(iterable)
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
    verdict = truth(evaluate(frame, test))
    if not isinstance(verdict, bool):
        raise TraceError(
            at_place(
                "which items a comprehension keeps depends on a traced value. Use np.where, or a "
                "loop that writes into an array."
            )
        )
    return verdict
