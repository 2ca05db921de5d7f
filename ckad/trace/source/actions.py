"""What the interpreter does with expressions, targets and blocks, for the modules below it.

Expressions hold calls, calls run blocks, and blocks hold expressions: this is where the round
closes. The functions are handed over once, when the interpreter is put together.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn


class Actions(NamedTuple):
    evaluate: Callable[..., Any]
    assign: Callable[..., None]
    run_block: Callable[..., Any]
    returned_by: Callable[..., Any]
    certain: Callable[..., Any]
    none_used: Callable[[], NoReturn]


_known: list[Actions] = []


def hand_over(actions: Actions) -> None:
    _known[:] = [actions]


def evaluate(frame: Any, node: ast.expr) -> Any:
    """The value of an expression."""
    return _known[0].evaluate(frame, node)


def assign(frame: Any, target: ast.expr, value: Any) -> None:
    """Bind a target to a value."""
    _known[0].assign(frame, target, value)


def run_block(frame: Any, statements: Any) -> Any:
    """Run statements; how they end."""
    return _known[0].run_block(frame, statements)


def returned_by(frame: Any, flow: Any) -> Any:
    """What a function returns whose body ended so."""
    return _known[0].returned_by(frame, flow)


def certain(x: Any) -> Any:
    """The value of a name that may not be bound, or be None: the program stops where it is so."""
    return _known[0].certain(x)


def none_used() -> NoReturn:
    """The program stops here, in the body being recorded."""
    _known[0].none_used()
