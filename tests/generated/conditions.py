"""Conditions: on traced numbers, on integers of loops, on constants."""

from __future__ import annotations

from .draft import Draft, Table
from .scope import Shape


def condition(g: Draft) -> str:
    return g.production(CONDITIONS) or "True"


def traced(g: Draft) -> str:
    """A condition on numbers of the program."""
    from .expressions import scalar

    left = scalar(g, 1).text
    if g.c.chance(0.25):
        return f"{left} {g.c.pick('<>')} {scalar(g, 1).text}"
    if g.c.chance(0.08):
        return f"{-g.c.number(0.3, 1)} < {left} < {g.c.number(0.1, 1)}"
    op = g.c.pick(("<", ">", ">", "<=", ">="))
    return f"{left} {op} {g.c.number(-0.6, 0.9)}"


def _of_integer(g: Draft) -> str | None:
    if not g.scope.integers:
        return None
    name = g.c.pick(list(g.scope.integers))
    low, high = g.scope.integers[name]
    kind = g.c.below(4)
    if kind == 0:
        return f"{name} % {g.c.between(2, 3)} == {g.c.below(2)}"
    if kind == 1:
        return f"{name} == {g.c.between(low, high)}"
    if kind == 2:
        return f"{name} {g.c.pick(('<', '>=', '!='))} {g.c.between(low, high)}"
    return f"{name} {g.c.pick(('<', '>', '=='))} {g.c.pick(list(g.scope.integers))}"


def _of_constants(g: Draft) -> str:
    return g.c.pick(("FLAG", "not FLAG", "COUNT > 2", "COUNT == 2"))


def _joined(g: Draft) -> str:
    op = g.c.pick(("and", "or"))
    return f"({condition(g)} {op} {condition(g)})"


def _negated(g: Draft) -> str:
    return f"not ({condition(g)})"


CONDITIONS: Table[str] = (
    (6, traced),
    (3, _of_integer),
    (0.5, _of_constants),
    (0.7, _joined),
    (0.3, _negated),
)


def mask(g: Draft, shape: Shape) -> str:
    """An array of booleans."""
    from .expressions import leaf

    x = leaf(g, shape).text
    if g.c.chance(0.3):
        return f"{x} {g.c.pick('<>')} {leaf(g, shape).text}"
    text = f"{x} {g.c.pick(('<', '>', '>='))} {g.c.number(-0.5, 0.8)}"
    if g.c.chance(0.15):
        return f"({text}) & ({leaf(g, shape).text} < {g.c.number(0.2, 1.0)})"
    return text
