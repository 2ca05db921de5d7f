"""Loops over the elements of arrays, as one writes them for Numba: at each place its neighbours."""

from __future__ import annotations

from math import prod

from .draft import Draft
from .scope import MOST_STEPS, Shape

#: Elements that such a loop may visit.
LARGEST = 150


def sweep(g: Draft) -> bool | None:
    """One loop per axis, with a few statements on elements in the innermost."""
    shapes = [s for s in g.scope.arrays.values() if 1 < prod(s) <= LARGEST]
    if not shapes or g.scope.depth + 2 > 3:
        return None
    shape = g.c.pick(shapes)
    border = g.c.weighted(((3, 0), (3, 1), (1, 2)))
    if min(shape) <= 2 * border or prod(shape) * g.scope.steps > 2 * MOST_STEPS:
        return None
    before, names = g.indent, []
    for n in shape:
        names.append(g.fresh("i"))
        g.emit(f"for {names[-1]} in {_range(g, n, border)}:")
        g.indent += 1
    for _ in range(g.c.between(1, 3)):
        _statement(g, shape, names, border)
    g.indent = before
    return True


def _range(g: Draft, n: int, border: int) -> str:
    if g.c.chance(0.25):
        return f"range({n - 1 - border}, {border - 1}, -1)"
    return f"range({border}, {n - border})" if border else f"range({n})"


def _statement(g: Draft, shape: Shape, names: list[str], border: int) -> None:
    target = _place(g, shape, names, border if g.c.chance(0.2) else 0)
    value = _value(g, shape, names, border)
    if g.c.chance(0.2):
        left = _place(g, shape, names, border)
        test = f"{left} > {g.c.number(-0.5, 0.5)}" if g.c.chance(0.7) else f"{names[-1]} % 2 == 0"
        g.emit(f"if {test}:")
        g.emit(f"    {target} = {value}")
        return
    floats = g.scope.bindable_floats
    if floats and g.c.chance(0.3):
        s = g.c.pick(floats)
        g.emit(f"{s} = {g.c.number(0.5, 0.9)} * {s} + 0.05 * {value}")
        target = target if g.c.chance(0.5) else ""
        value = f"0.8 * {value} + 0.15 * {s}"
    if target:
        g.emit(f"{target} = {value}")


def _value(g: Draft, shape: Shape, names: list[str], border: int) -> str:
    """A combination whose coefficients add up to less than one."""
    n = g.c.between(1, 3)
    terms = [f"{g.c.number(0.1, 0.98 / n)} * {_read(g, shape, names, border)}" for _ in range(n)]
    text = " - ".join(terms) if g.c.chance(0.3) else " + ".join(terms)
    kind = g.c.below(6)
    if kind == 0:
        return f"np.sin({text})"
    if kind == 1:
        return f"max({text}, {_read(g, shape, names, border)})"
    return f"({text})"


def _read(g: Draft, shape: Shape, names: list[str], border: int) -> str:
    """An element near by, or one of a vector along an axis."""
    vectors = [(u, k) for k, n in enumerate(shape) for u in g.scope.of_shape((n,))]
    if len(shape) == 2 and vectors and g.c.chance(0.3):
        u, k = g.c.pick(vectors)
        return f"{u}[{_near(g, names[k], border)}]"
    x = _place(g, shape, names, border)
    return f"{x} * {_place(g, shape, names, border)} / 2.0" if g.c.chance(0.15) else x


def _place(g: Draft, shape: Shape, names: list[str], border: int) -> str:
    u = g.c.pick(g.scope.of_shape(shape))
    return f"{u}[{', '.join(_near(g, i, border) for i in names)}]"


def _near(g: Draft, i: str, border: int) -> str:
    offset = g.c.between(-border, border)
    return i if not offset else f"{i} {'-' if offset < 0 else '+'} {abs(offset)}"
