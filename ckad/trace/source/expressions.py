"""Expressions, evaluated over tracers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ckad.errors import TraceError
from ckad.place import at_place
from ckad.trace.source import branches, classes, objects
from ckad.trace.source.actions import assign
from ckad.trace.source.appends import appending, seen
from ckad.trace.source.calls import call, writable
from ckad.trace.source.checks import divided, whole
from ckad.trace.source.closures import Closure
from ckad.trace.source.frame import MISSING, Frame, check_iterated, made
from ckad.trace.source.reader import Definition, define
from ckad.trace.source.text import TracedText, shown
from ckad.trace.source.values import holds_tracer, is_weak, lifted, truth, weakened
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.tracer import Tracer

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
IN_PLACE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of an expression."""
    return _TABLE[type(node)](frame, node)


# --- names, constants, displays ------------------------------------------------------------------


def _constant(frame: Frame, node: ast.Constant) -> Any:
    return node.value


def _name(frame: Frame, node: ast.Name) -> Any:
    return seen(frame.lookup(node.id))


def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    owner = evaluate(frame, node.value)
    frame.line = node.lineno
    computed = classes.attribute(owner, node.attr)
    return computed if computed is not MISSING else seen(objects.read(owner, node.attr))


def items(frame: Frame, nodes: Iterable[ast.expr]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            several = evaluate(frame, node.value)
            check_iterated(several)
            yield from several
        else:
            yield evaluate(frame, node)


def _tuple(frame: Frame, node: ast.Tuple) -> Any:
    return tuple(items(frame, node.elts))


def _list(frame: Frame, node: ast.List) -> Any:
    return made(list(items(frame, node.elts)))


def _set(frame: Frame, node: ast.Set) -> Any:
    return made(set(items(frame, node.elts)))


def _dict(frame: Frame, node: ast.Dict) -> Any:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            found.update(evaluate(frame, value))
        else:
            name = evaluate(frame, key)
            found[name] = evaluate(frame, value)
    return made(found)


def _text(frame: Frame, node: ast.JoinedStr) -> str:
    parts = [evaluate(frame, part) for part in node.values]
    return shown("".join(parts), parts)


_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda x: x, 114: repr, 115: str, 97: ascii}


def _formatted(frame: Frame, node: ast.FormattedValue) -> str:
    found = evaluate(frame, node.value)
    value = _CONVERSIONS[node.conversion](found)
    spec = evaluate(frame, node.format_spec) if node.format_spec else ""
    return shown(repr(value) if isinstance(value, Tracer) else format(value, spec), found)


# --- operators -----------------------------------------------------------------------------------


def _binary(frame: Frame, node: ast.BinOp) -> Any:
    x, y = evaluate(frame, node.left), evaluate(frame, node.right)
    frame.line = node.lineno
    return combine(_BINARY[type(node.op)], x, y)


def combine(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``x op y``; of two Python numbers it is one, also where they are traced."""
    result = classes.operated(function, x, y)
    if result is not MISSING:
        return result
    if type(x) in (str, TracedText) and function is operator.mod and holds_tracer(y):
        return shown(x, y)
    result = function(x, y)
    if type(result) in (Tracer, ComplexTracer):
        if result.scalar and is_weak(x) and is_weak(y):
            own = weakened(result)
            if type(own) is Tracer:
                own = divided(function, y, whole(function, x, y, own))
            return own
        return result
    return shown(result, (x, y)) if type(result) is str else lifted(result)


def _unary(frame: Frame, node: ast.UnaryOp) -> Any:
    x = evaluate(frame, node.operand)
    frame.line = node.lineno
    if isinstance(node.op, ast.Not):
        verdict = truth(x)
        if isinstance(verdict, bool):
            return not verdict
        return weakened(np.logical_not(verdict))
    result = classes.operated_on(_UNARY[type(node.op)], x)
    if result is not MISSING:
        return result
    result = _UNARY[type(node.op)](x)
    traced = isinstance(result, (Tracer, ComplexTracer))
    return weakened(result) if is_weak(x) and traced else lifted(result)


def _boolean(frame: Frame, node: ast.BoolOp) -> Any:
    return _boolean_of(frame, node.values, isinstance(node.op, ast.And))


def _boolean_of(frame: Frame, values: list[ast.expr], is_and: bool) -> Any:
    first = evaluate(frame, values[0])
    if len(values) == 1:
        return first
    frame.line = values[0].lineno
    verdict = truth(first)
    if isinstance(verdict, bool):
        return _boolean_of(frame, values[1:], is_and) if verdict == is_and else first
    rest = lambda: _boolean_of(frame, values[1:], is_and)  # noqa: E731
    return branches.logical(is_and, first, verdict, rest, ("rest", values[0]))


def _compare(frame: Frame, node: ast.Compare) -> Any:
    x = evaluate(frame, node.left)
    so_far: Any = True
    for op, right in zip(node.ops, node.comparators, strict=True):
        y = evaluate(frame, right)
        frame.line = node.lineno
        one = compared(op, x, y)
        if len(node.ops) == 1:
            return one
        verdict = truth(one)
        if verdict is False:
            return one
        so_far = verdict if so_far is True else np.logical_and(so_far, verdict)
        x = y
    return so_far


def compared(op: ast.cmpop, x: Any, y: Any) -> Any:
    if isinstance(op, ast.Is):
        return x is y
    if isinstance(op, ast.IsNot):
        return x is not y
    if isinstance(op, (ast.In, ast.NotIn)):
        return _contained(x, y, isinstance(op, ast.In))
    result = classes.operated(_COMPARE[type(op)], x, y)
    if result is not MISSING:
        return result
    result = _COMPARE[type(op)](x, y)
    if type(result) is Tracer and is_weak(x) and is_weak(y):
        return weakened(result)
    return lifted(result)


def _contained(x: Any, y: Any, wanted: bool) -> Any:
    said = classes.invoke(y, "__contains__", x)
    if said is not MISSING:
        verdict = truth(said)
        if isinstance(verdict, bool):
            return verdict is wanted
        return verdict if wanted else np.logical_not(verdict)
    if not (holds_tracer(x) or holds_tracer(y)):
        return (x in y) is wanted
    if isinstance(y, dict):
        y = list(y)
    found: Any = False
    if isinstance(y, Tracer):
        found = np.any(np.equal(y, x))
    else:
        for item in y:
            found = np.logical_or(found, np.all(np.equal(item, x)))
    verdict = truth(found)
    if isinstance(verdict, bool):
        return verdict is wanted
    return verdict if wanted else np.logical_not(verdict)


def _if_else(frame: Frame, node: ast.IfExp) -> Any:
    verdict = truth(evaluate(frame, node.test))
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
    owner = evaluate(frame, node.value)
    index = evaluate(frame, node.slice)
    frame.line = node.lineno
    return element(owner, index)


def element(owner: Any, index: Any) -> Any:
    """``owner[index]``."""
    found = classes.invoke(owner, "__getitem__", index)
    if found is not MISSING:
        return found
    grids = writable(owner, index)
    if grids is not None:
        return grids
    if isinstance(owner, np.ndarray) and holds_tracer(index):
        owner = lifted(owner)
    elif isinstance(owner, (list, tuple)) and isinstance(index, Tracer):
        return branches.item(owner, index)
    return seen(owner[index])


def _slice(frame: Frame, node: ast.Slice) -> slice:
    parts = (node.lower, node.upper, node.step)
    return slice(*(None if part is None else evaluate(frame, part) for part in parts))


# --- functions -----------------------------------------------------------------------------------


def _call(frame: Frame, node: ast.Call) -> Any:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "append":
        with appending():
            callee = evaluate(frame, node.func)
    else:
        callee = evaluate(frame, node.func)
    args = list(items(frame, node.args))
    options: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            options.update(evaluate(frame, keyword.value))
        else:
            options[keyword.arg] = evaluate(frame, keyword.value)
    frame.line = node.lineno
    if callee is super and not args:
        return classes.parent(frame)
    return call(callee, args, options)


def closure(frame: Frame, node: ast.FunctionDef | ast.Lambda) -> Closure:
    """The function that a ``def`` or ``lambda`` makes."""
    args = node.args
    defaults = [evaluate(frame, d) for d in args.defaults]
    named = {
        a.arg: evaluate(frame, d)
        for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if d is not None
    }
    return Closure(_inner(frame, node), frame, defaults, named)


_definitions: dict[ast.AST, Definition] = {}


def _inner(frame: Frame, node: ast.FunctionDef | ast.Lambda) -> Definition:
    if node not in _definitions:
        _definitions[node] = define(node, frame.definition.file)
    return _definitions[node]


def _lambda(frame: Frame, node: ast.Lambda) -> Closure:
    return closure(frame, node)


# --- comprehensions ------------------------------------------------------------------------------


def _list_comprehension(frame: Frame, node: ast.ListComp) -> Any:
    return made([evaluate(inner, node.elt) for inner in _rounds(frame, node)])


def _set_comprehension(frame: Frame, node: ast.SetComp) -> Any:
    return made({evaluate(inner, node.elt) for inner in _rounds(frame, node)})


def _dict_comprehension(frame: Frame, node: ast.DictComp) -> Any:
    pairs = [(evaluate(f, node.key), evaluate(f, node.value)) for f in _rounds(frame, node)]
    return made(dict(pairs))


def _generator(frame: Frame, node: ast.GeneratorExp) -> Any:
    rounds = _rounds(frame, node)
    return made(evaluate(inner, node.elt) for inner in rounds)


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _rounds(frame: Frame, node: _Comprehension) -> Iterator[Frame]:
    names = {
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
    return _nested_rounds(inner, evaluate(frame, node.generators[0].iter), node.generators)


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
    ast.Lambda: _lambda,
    ast.ListComp: _list_comprehension,
    ast.SetComp: _set_comprehension,
    ast.DictComp: _dict_comprehension,
    ast.GeneratorExp: _generator,
}
