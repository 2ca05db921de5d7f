"""Programs with one thing changed: an operator, a number, a name, a statement."""

from __future__ import annotations

import ast
import copy
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .program import Program

Rng = np.random.Generator
#: A place in a tree, and what to do there.
Change = Callable[[], str]

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def mutated(program: Program, rng: Rng, directory: Path, n_changes: int = 1) -> tuple[Any, str]:
    """The program's function in a copy of its module with random changes, and what they were."""
    function = getattr(program.function, "py_func", program.function)
    module = sys.modules[function.__module__]
    tree = ast.parse(inspect.getsource(module))
    (node,) = [n for n in tree.body if getattr(n, "name", "") == function.__name__]
    said = []
    for _ in range(n_changes):
        changes = list(_changes(node, rng))
        said.append(changes[rng.integers(len(changes))]())
    # np.empty, which a test can fill, says the same as np.ndarray, which is a class
    text = ast.unparse(ast.fix_missing_locations(tree)).replace("np.ndarray(", "np.empty(")
    name = f"mutated_{abs(hash(text))}"
    path = directory / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"{module.__package__}.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return getattr(made, function.__name__), "; ".join(said)


def _changes(function: ast.AST, rng: Rng) -> Iterator[Change]:
    names = sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name)} - {"np", "numba"})
    for node in ast.walk(function):
        yield from _of_expression(node, names, rng)
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield from _of_statements(statements, rng)


def _of_expression(node: ast.AST, names: list[str], rng: Rng) -> Iterator[Change]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if isinstance(op, _ARITHMETIC):
            yield lambda: _set(node, "op", _other(_ARITHMETIC, op, rng))
        case ast.Compare(ops=[op]) if isinstance(op, _ORDER):
            yield lambda: _set(node, "ops", [_other(_ORDER, op, rng)])
        case ast.Constant(value=bool() | str() | None):
            return
        case ast.Constant(value=int() as number):
            yield lambda: _set(node, "value", number + int(rng.choice([-1, 1])))
        case ast.Constant(value=float() as number):
            yield lambda: _set(node, "value", number * 1.25 + 0.125)
        case ast.Name(ctx=ast.Load()) if node.id in names:
            yield lambda: _set(node, "id", str(rng.choice(names)))
        case ast.If():
            yield lambda: _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.IfExp():
            yield lambda: _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.BoolOp():
            swapped = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            yield lambda: _set(node, "op", swapped)


def _of_statements(statements: list[ast.stmt], rng: Rng) -> Iterator[Change]:
    for k, statement in enumerate(statements):
        if isinstance(statement, (ast.FunctionDef, ast.Import, ast.ImportFrom)):
            continue
        if len(statements) > 1 and not isinstance(statement, ast.Return):
            yield lambda k=k: _removed(statements, k)
        if k + 1 < len(statements) and not isinstance(statements[k + 1], ast.Return):
            yield lambda k=k: _exchanged(statements, k)
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            yield lambda k=k: _repeated(statements, k)
        if isinstance(statement, ast.Break):
            yield lambda k=k: _replaced(statements, k, ast.Continue())
        if isinstance(statement, ast.Continue):
            yield lambda k=k: _replaced(statements, k, ast.Break())


def _other(kinds: tuple[type, ...], op: ast.AST, rng: Rng) -> ast.AST:
    rest = [kind for kind in kinds if not isinstance(op, kind)]
    return rest[rng.integers(len(rest))]()


def _set(node: ast.AST, field: str, value: Any) -> str:
    before = ast.unparse(node)
    setattr(node, field, value)
    return f"line {node.lineno}: {before} -> {ast.unparse(ast.fix_missing_locations(node))}"


def _removed(statements: list[ast.stmt], k: int) -> str:
    gone = statements.pop(k)
    return f"line {gone.lineno}: removed {ast.unparse(gone)}"


def _exchanged(statements: list[ast.stmt], k: int) -> str:
    statements[k], statements[k + 1] = statements[k + 1], statements[k]
    return f"line {statements[k].lineno}: exchanged with the statement before"


def _repeated(statements: list[ast.stmt], k: int) -> str:
    statements.insert(k, copy.deepcopy(statements[k]))
    return f"line {statements[k].lineno}: repeated {ast.unparse(statements[k])}"


def _replaced(statements: list[ast.stmt], k: int, by: ast.stmt) -> str:
    before, statements[k] = statements[k], ast.copy_location(by, statements[k])
    return f"line {before.lineno}: {ast.unparse(before)} -> {ast.unparse(by)}"
