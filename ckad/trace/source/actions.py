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
    unread: Callable[..., Any]
    tested: Callable[..., Any]
    assign: Callable[..., None]
    run_block: Callable[..., Any]
    returned_by: Callable[..., Any]
    certain: Callable[..., Any]
    none_used: Callable[[], NoReturn]
    stop: Callable[..., None]
    ended: Callable[..., Any]
    listed: Callable[..., Any]
    reduced: Callable[..., Any]
    ordered: Callable[..., Any]
    extreme: Callable[..., Any]
    by_builtin: Callable[..., Any]
    told_apart: Callable[..., Any]
    truth_of: Callable[..., Any]
    element: Callable[..., Any]


_known: list[Actions] = []


def hand_over(actions: Actions) -> None:
    _known[:] = [actions]


def evaluate(frame: Any, node: ast.expr) -> Any:
    """The value of an expression."""
    return _known[0].evaluate(frame, node)


def unread(frame: Any, node: ast.expr) -> Any:
    """The same for who looks at a list by ``listed`` alone, or hands it on."""
    return _known[0].unread(frame, node)


def tested(frame: Any, node: ast.expr) -> Any:
    """Whether an expression holds."""
    return _known[0].tested(frame, node)


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


def ended(frame: Any, flow: Any) -> Any:
    """How a loop over a generator ends whose body has ended so."""
    return _known[0].ended(frame, flow)


def listed(items: Any, apart: bool = False) -> Any:
    """A list of what a generator gives; ``apart`` for Python, which takes its items one by one."""
    return _known[0].listed(items, apart)


def reduced(callee: Any, args: Any, options: Any) -> Any:
    """What a function makes of items of which it is not known which there are."""
    return _known[0].reduced(callee, args, options)


def ordered(items: Any, key: Any, reverse: Any) -> Any:
    """Items sorted by a key."""
    return _known[0].ordered(items, key, reverse)


def extreme(items: Any, key: Any, is_max: Any) -> Any:
    """The best of items by a key."""
    return _known[0].extreme(items, key, is_max)


def by_builtin(callee: Any, args: Any, result: Any) -> Any:
    """What a builtin makes of Python numbers: the program stops where 64 bits do not hold it."""
    return _known[0].by_builtin(callee, args, result)


def told_apart(callee: Any, args: Any) -> Any:
    """Operands that are arrays for certain where a function tells them from numbers."""
    return _known[0].told_apart(callee, args)


def truth_of(choice: Any) -> Any:
    """Whether the one of several objects that is meant is true."""
    return _known[0].truth_of(choice)


def element(owner: Any, index: Any) -> Any:
    """``owner[index]``."""
    return _known[0].element(owner, index)


def none_used() -> NoReturn:
    """The program stops here, in the body being recorded."""
    _known[0].none_used()


def stop(wrong: Any) -> None:
    """The program stops here if ``wrong``, whatever it computes afterwards."""
    _known[0].stop(wrong)
