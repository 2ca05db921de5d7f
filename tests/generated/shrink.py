"""A failing program made as short as it goes while the same oracle objects."""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from .judge import FAILED, Verdict
from .program import NAME, Program

Judge = Callable[[Program, str], Verdict]
#: Numbers of elements and steps that are tried first.
SMALL = (0, 1, 2, 3, 5, 9)


def shrunk(
    program: Program, verdict: Verdict, judge: Judge, seconds: float = 120.0
) -> tuple[Program, Verdict]:
    """The smallest program found within the time, and its verdict.

    ``judge`` takes a program and the stage of oracles after which it may stop.
    """
    end, wanted = time.monotonic() + seconds, alike(verdict)
    tried, changed = {program}, True
    while changed:
        changed = False
        for made in simpler(program):
            if time.monotonic() > end:
                return program, verdict
            if made in tried:
                continue
            tried.add(made)
            found = judge(made, verdict.stage)
            if found.outcome == FAILED and alike(found) == wanted:
                program, verdict, changed = made, found, True
                break
    return program, verdict


def alike(verdict: Verdict) -> tuple[str, str]:
    """What two failures of one cause have in common."""
    if not verdict.oracle.startswith("error"):
        return verdict.oracle, ""
    message = re.sub(r"\S*\.py:\d+|'\w+'|\"\w+\"|[\d,.]+", "", verdict.message.split("\n")[0])
    return verdict.oracle.partition(",")[0], message[:80]


def simpler(program: Program) -> Iterator[Program]:
    """Programs with one thing less, the largest first."""
    tree = ast.parse(program.text)
    for change in (_without, _unwrapped, _fewer_steps, _smaller_expressions):
        for made in change(tree):
            try:
                text = ast.unparse(ast.fix_missing_locations(made)) + "\n"
                ast.parse(text)
            except (ValueError, SyntaxError):
                continue
            yield program._replace(text=text)
    yield from _smaller_arrays(program)
    yield from _plainer(program)


# --- places of a tree ----------------------------------------------------------------------------


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Lists of statements, in an order that copies of a tree share."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and statements:
                yield statements


def _edited(tree: ast.Module, block: int, edit: Callable[[list[ast.stmt]], None]) -> ast.Module:
    made = copy.deepcopy(tree)
    for k, statements in enumerate(_blocks(made)):
        if k == block:
            edit(statements)
    return made


def _without(tree: ast.Module) -> Iterator[ast.Module]:
    """Runs of statements deleted, long ones first."""
    spans = []
    for block, statements in enumerate(_blocks(tree)):
        n = len(statements)
        for length in sorted({n // 2, n // 4, 2, 1}, reverse=True):
            spans += [(length, block, k) for k in range(n - length, -1, -1) if length]
    for length, block, k in sorted(spans, key=lambda span: -span[0]):
        made = _edited(
            tree, block, lambda s, k=k, length=length: s.__delitem__(slice(k, k + length))
        )
        if _is_complete(made):
            yield _filled(made)


def _is_complete(tree: ast.Module) -> bool:
    return any(isinstance(s, ast.FunctionDef) and s.name == NAME for s in tree.body)


def _filled(tree: ast.Module) -> ast.Module:
    """Blocks that became empty hold ``pass``; sides of branches may be empty."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While, ast.If, ast.FunctionDef)) and not node.body:
            node.body = [ast.Pass()]
    return tree


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """A loop or a branch replaced by what stands in it."""
    for block, statements in enumerate(_blocks(tree)):
        for k, statement in enumerate(statements):
            for inner in _inside(statement):
                yield _edited(
                    tree, block, lambda s, k=k, inner=inner: s.__setitem__(slice(k, k + 1), inner)
                )


def _inside(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.For):
        first = ast.Assign([statement.target], ast.Constant(1))
        yield [first, *copy.deepcopy(statement.body)]
        yield copy.deepcopy(statement.body)
    elif isinstance(statement, (ast.If, ast.While)):
        yield copy.deepcopy(statement.body)
        if statement.orelse:
            yield copy.deepcopy(statement.orelse)


# --- numbers and expressions ---------------------------------------------------------------------


def _replaced(tree: ast.Module, place: int, new: ast.expr) -> ast.Module:
    made = copy.deepcopy(tree)
    target = list(ast.walk(made))[place]
    for node in ast.walk(made):
        for field, value in ast.iter_fields(node):
            if value is target:
                setattr(node, field, new)
            elif isinstance(value, list):
                setattr(node, field, [new if item is target else item for item in value])
    return made


def _fewer_steps(tree: ast.Module) -> Iterator[ast.Module]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"):
            continue
        for argument in node.args:
            if isinstance(argument, ast.Constant) and argument.value > 1:
                for n in (1, argument.value // 2, argument.value - 1):
                    yield _replaced(tree, _place(tree, argument), ast.Constant(n))
            elif not isinstance(argument, ast.Constant):
                for n in (2, 5):
                    yield _replaced(tree, _place(tree, argument), ast.Constant(n))


def _place(tree: ast.Module, wanted: ast.AST) -> int:
    return next(k for k, node in enumerate(ast.walk(tree)) if node is wanted)


def _smaller_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    for place, node in enumerate(ast.walk(tree)):
        for new in _parts(node):
            yield _replaced(tree, place, copy.deepcopy(new))


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """Simpler expressions of the same kind."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Call):
        yield from node.args
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") != "np":
            yield node.func.value
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        if node.value not in (0.5, 1.0):
            yield from (ast.Constant(1.0), ast.Constant(0.5))
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
        if not isinstance(node.slice, (ast.Constant, ast.Slice, ast.Tuple)):
            yield ast.Subscript(node.value, ast.Constant(1), ast.Load())


# --- arrays, arguments, settings -----------------------------------------------------------------


def _smaller_arrays(program: Program) -> Iterator[Program]:
    """A length replaced by another wherever it stands."""
    lengths = {n for shape in program.shapes if shape for n in shape}
    for n in sorted(lengths, reverse=True):
        for m in (*SMALL[1:], n // 2, n - 1):
            if 0 < m < n:
                shapes = tuple(
                    None if s is None else tuple(m if x == n else x for x in s)
                    for s in program.shapes
                )
                text = re.sub(rf"(?<![\w.]){n}(?![\w.])", str(m), program.text)
                yield program._replace(text=text, shapes=shapes)
                yield program._replace(shapes=shapes)


def _plainer(program: Program) -> Iterator[Program]:
    for settings in ({"level": 0}, {"short": 4}):
        if any(getattr(program, name) != value for name, value in settings.items()):
            yield program._replace(**settings)  # type: ignore[arg-type]
    for k in range(len(program.shapes)):
        made = _without_argument(program, k)
        if made is not None and len(program.shapes) > 1:
            yield made


def _without_argument(program: Program, k: int) -> Program | None:
    """One argument less; it becomes a number or an array of ones."""
    tree: Any = ast.parse(program.text)
    (function,) = (s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == NAME)
    name = function.args.args.pop(k).arg
    shape = program.shapes[k]
    value = "0.7" if shape is None else f"np.linspace(0.1, 0.8, {shape[0]})"
    if shape is not None and len(shape) > 1:
        return None
    function.body[:0] = ast.parse(f"{name} = {value}").body
    shapes = program.shapes[:k] + program.shapes[k + 1 :]
    return program._replace(text=ast.unparse(tree) + "\n", shapes=shapes)
