"""Whether what a name is bound to may be read after the present statement of a function."""

from __future__ import annotations

import ast

from ckad.place import running
from ckad.trace.source.names.liveness import live_after, place_of, read_in
from ckad.trace.source.names.reader import Definition, bound_by

#: Where the value that a function returns is kept among its names.
RETURN = "return"
#: What runs a text in the names of a function.
_TEXTS = frozenset(("eval", "exec"))


class Follows:
    """What follows where a call of a function is."""

    __slots__ = ()
    definition: Definition
    statement: ast.stmt | None
    doing: ast.Call | None  # the call that is being made, of evaluated arguments

    @property
    def is_calling(self) -> bool:
        """Whether a function is running that this one has called."""
        functions = running()
        return bool(functions) and id(functions[-1]) != id(self)

    @property
    def _runs_texts(self) -> bool:
        """Whether the function may run a text, which may read any name."""
        return not _TEXTS.isdisjoint(self.definition.reads)

    def is_read_later(self, name: str) -> bool:
        """Whether a name may be read after the present statement, or by another step of a loop."""
        if name == RETURN or name in self.definition.inner_reads or self._runs_texts:
            return True
        statement, is_read = self.statement, name in self.definition.reads
        if statement is None or not is_read:
            return is_read
        if (self.doing is not None or self.is_calling) and name in read_in(statement, self.doing):
            return True  # by the rest of the statement
        if isinstance(statement, ast.Assign) and name in bound_by(*statement.targets):
            return False
        live = live_after(self.definition).get(place_of(statement))
        return live is None or name in live

    def is_read_by_next(self, name: str, loop: ast.For | ast.While) -> bool:
        """Whether a name may be read as a step of a loop leaves it, by the next one or later."""
        if self._runs_texts:
            return True
        live = live_after(self.definition).get(place_of(loop.body[-1]))
        return self.is_read_in(name, loop) if live is None else name in live

    def is_read_in(self, name: str, part: ast.stmt) -> bool:
        """Whether a name is read somewhere in a statement of this function."""
        if self._runs_texts:
            return True
        lines = self.definition.reads.get(name, ())
        return any(part.lineno <= line <= (part.end_lineno or part.lineno) for line in lines)
