"""Which names a function may read after each of its statements, as they are bound there.

Both sides of a branch are recorded, and what follows a ``break`` or ``return`` is run where it was
not taken: so these do not end a block here. A loop that has one of its own may be left or go on at
each of its statements.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from ckad.trace.source.names.reader import Definition, bound_by, names_read, walk

Names = frozenset[str]
_NONE: Names = frozenset()


@lru_cache(maxsize=4096)
def live_after(definition: Definition) -> dict[tuple[int, int], Names]:
    """The names that may be read after a statement, by its place in the source."""
    found = _Liveness()
    found.before(definition.body, _NONE)
    return found.after


@lru_cache(maxsize=4096)
def read_in(part: ast.AST, but: ast.AST | None = None) -> Names:
    """Names that a part of the source reads; of ``but``, only what it evaluates later."""
    done = set(walk(but)) if but is not None else set()
    for late in [x for x in done if isinstance(x, ast.GeneratorExp)]:
        done.difference_update(walk(late))
    return frozenset(name for name, _ in names_read(x for x in walk(part) if x not in done))


def place_of(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


class _Liveness:
    """From the last statement to the first: what is live after each, by that what is before."""

    def __init__(self) -> None:
        self.after: dict[tuple[int, int], Names] = {}
        self.jumps: list[Names] = []  # what is live wherever the blocks around may be left to

    def before(self, block: Sequence[ast.stmt], live: Names) -> Names:
        """What is live before a block, of what is so after it."""
        anywhere = _NONE.union(*self.jumps)
        live |= anywhere
        for statement in reversed(block):
            self.after[place_of(statement)] = live
            live = self._before(statement, live) | anywhere
        return live

    def _before(self, statement: ast.stmt, live: Names) -> Names:
        if isinstance(statement, ast.If):
            sides = self.before(statement.body, live) | self.before(statement.orelse, live)
            return sides | read_in(statement.test)
        if isinstance(statement, (ast.For, ast.While)):
            return self._before_loop(statement, live)
        if isinstance(statement, ast.Try):
            return self._before_try(statement, live)
        if isinstance(statement, ast.With):
            inside = self._inside(statement.body, live, live)
            return inside.union(*(read_in(item) for item in statement.items))
        if isinstance(statement, ast.Match):
            cases = [self.before(case.body, live) for case in statement.cases]
            guards = [
                read_in(x) for case in statement.cases for x in (case.pattern, case.guard) if x
            ]
            return live.union(*cases, *guards, read_in(statement.subject))
        bound = bound_by(*statement.targets) if isinstance(statement, ast.Assign) else _NONE
        return live - bound | read_in(statement)

    def _before_loop(self, loop: ast.For | ast.While, live: Names) -> Names:
        ends = self.before(loop.orelse, live)
        self.after[place_of(loop)] |= ends.union(*map(read_in, _returning(loop)))
        header = read_in(loop.test if isinstance(loop, ast.While) else loop.target)
        leaves = any(map(_leaves, loop.body))
        head, known = live | ends | header, None
        while head != known:
            known = head
            body = self._inside(loop.body, head, head) if leaves else self.before(loop.body, head)
            bound = bound_by(loop.target) if isinstance(loop, ast.For) else _NONE
            head |= body - bound
        return head | read_in(loop.iter) if isinstance(loop, ast.For) else head

    def _before_try(self, statement: ast.Try, live: Names) -> Names:
        last = self.before(statement.finalbody, live)
        handlers = [self._inside(x.body, last, last) for x in statement.handlers]
        kinds = [read_in(x.type) for x in statement.handlers if x.type is not None]
        caught = last.union(*handlers, *kinds)
        after = self._inside(statement.orelse, last, last)
        return self._inside(statement.body, after, caught) | caught

    def _inside(self, block: Sequence[ast.stmt], live: Names, jump: Names) -> Names:
        """What is live before a block that may be left at any of its statements."""
        self.jumps.append(jump)
        try:
            return self.before(block, live)
        finally:
            self.jumps.pop()


def _returning(loop: ast.stmt) -> list[ast.stmt]:
    """Statements of a loop's blocks that return, which may be run behind it."""
    ifs = [x for x in walk(loop) if isinstance(x, ast.If)]
    return [x for node in ifs for b in (node.body, node.orelse) if ends_by_return(b) for x in b]


def ends_by_return(block: Sequence[ast.stmt]) -> bool:
    """Whether a block returns a value at its end, and does not leave or continue a loop around."""
    last = block[-1] if block else None
    returns = isinstance(last, ast.Return) and last.value is not None
    return returns and not any(map(_leaves, block))


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement of a loop's body leaves or continues that loop."""
    if isinstance(statement, (ast.Break, ast.Continue)):
        return True
    if isinstance(statement, (ast.For, ast.While)):
        return any(map(_leaves, statement.orelse))
    return any(
        _leaves(x) if isinstance(x, ast.stmt) else any(map(_leaves, x.body))
        for x in ast.iter_child_nodes(statement)
        if isinstance(x, (ast.stmt, ast.ExceptHandler, ast.match_case))
    )
