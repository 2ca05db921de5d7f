"""Comprehensions of numbers that are all known: Python computes their items, as it would."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from ckad.trace.source.actions import evaluate
from ckad.trace.source.libraries import is_library
from ckad.trace.source.library.formulas import is_math
from ckad.trace.source.memory.asked.by_python import all_of
from ckad.trace.source.names.frame import MISSING, Frame, Outside, outside_of

#: So many items are worth a look at what they are computed from.
FEW = 16
_NUMBERS = frozenset({int, float})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_SIGNS = (ast.USub, ast.UAdd)
#: Functions that give a number for numbers, and do nothing else.
_BUILTINS = (abs, min, max, round, pow, int, float)
_OF_PAIRS = ("modf", "frexp")
#: The names of the items, and of the one item, in the code that computes a list.
_ITEMS, _ITEM = "items", "item"


class _Code(NamedTuple):
    """What computes the list, and what it reads: by their names there, numbers and functions."""

    code: CodeType
    numbers: tuple[tuple[str, ast.expr], ...]
    functions: tuple[tuple[str, ast.expr], ...]


def computed(frame: Frame, node: ast.ListComp, iterable: Any) -> list[Any] | None:
    """The items, if nothing in them is traced, and nothing but numbers is asked; else None.
    ``frame`` has the names of the comprehension."""
    if type(iterable) not in (range, list, tuple) or len(iterable) < FEW:
        return None
    made = _code_of(node)
    if made is None or not (type(iterable) is range or _NUMBERS.issuperset(map(type, iterable))):
        return None
    known: dict[str, Any] = {"__builtins__": {}}
    for name, leaf in made.numbers:
        known[name] = _read(frame, leaf)
        if type(known[name]) not in _NUMBERS:
            return None
    for name, leaf in made.functions:
        function = known[name] = _read(frame, leaf)
        is_taken = is_math(function) and function.__name__ not in _OF_PAIRS
        if not (is_taken or any(function is x for x in _BUILTINS)):
            return None
    try:
        found: list[Any] = eval(made.code, known | {_ITEMS: all_of(iterable)})
    except Exception:  # it is met again, at its place
        return None
    return found if _NUMBERS.issuperset(map(type, found)) else None


def _read(frame: Frame, leaf: ast.expr) -> Any:
    """A number, or what a library's module has by a name, read as the program does; MISSING for all
    else, of which it is not known what reading does."""
    base = leaf.value if isinstance(leaf, ast.Attribute) else leaf
    assert isinstance(base, ast.Name)
    found = _bound_to(frame, base.id)
    if base is not leaf:
        is_module = type(found) is ModuleType and is_library(found.__name__)
        return evaluate(frame, leaf) if is_module else MISSING
    is_known = type(found) in _NUMBERS or is_math(found) or any(found is x for x in _BUILTINS)
    return evaluate(frame, leaf) if is_known else MISSING


def _bound_to(frame: Frame, name: str) -> Any:
    """What a name is bound to, without reading it."""
    owner = frame.owner_of(name) or outside_of(frame, name)
    if owner is None or name in owner.names:
        return MISSING if owner is None else owner.names[name]
    if not isinstance(owner, Outside):
        return MISSING
    found = owner.names.given(name, MISSING)
    return vars(builtins).get(name, MISSING) if found is MISSING else found


@lru_cache(maxsize=1024)
def _code_of(node: ast.ListComp) -> _Code | None:
    (first, *others) = node.generators
    if others or first.ifs or first.is_async or not isinstance(first.target, ast.Name):
        return None
    renamed = _Renamed(first.target.id)
    try:
        element = renamed.of(node.elt)
    except LookupError:
        return None
    target, items = ast.Name(_ITEM, ast.Store()), ast.Name(_ITEMS, ast.Load())
    whole = ast.Expression(ast.ListComp(element, [ast.comprehension(target, items, [], 0)]))
    code = compile(ast.fix_missing_locations(whole), "<numbers>", "eval")
    return _Code(code, tuple(renamed.numbers), tuple(renamed.functions))


class _Renamed:
    """A formula with names of its own for what it reads; LookupError if it is none of numbers."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.numbers: list[tuple[str, ast.expr]] = []
        self.functions: list[tuple[str, ast.expr]] = []

    def of(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(value=value) if type(value) in _NUMBERS:
                return node
            case ast.Name(id=name) if name == self.target:
                return ast.Name(_ITEM, ast.Load())
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
                return ast.BinOp(self.of(left), op, self.of(right))
            case ast.UnaryOp(op=op, operand=operand) if isinstance(op, _SIGNS):
                return ast.UnaryOp(op, self.of(operand))
            case ast.Call(func=callee, args=args, keywords=[]):
                return ast.Call(self._leaf(callee, self.functions), [*map(self.of, args)], [])
        return self._leaf(node, self.numbers)

    def _leaf(self, node: ast.expr, found: list[tuple[str, ast.expr]]) -> ast.Name:
        base = node.value if isinstance(node, ast.Attribute) else node
        if not isinstance(base, ast.Name) or base.id == self.target:
            raise LookupError
        name = f"x{len(self.numbers) + len(self.functions)}"
        found.append((name, node))
        return ast.Name(name, ast.Load())
