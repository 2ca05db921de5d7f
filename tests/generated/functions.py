"""ckad's own loops and branches, and functions in functions."""

from __future__ import annotations

from . import compound, conditions
from .draft import Draft, Table, fitted
from .expressions import array, scalar
from .scope import LIMIT, MOST_STEPS, Helper, Scope


def own(g: Draft) -> bool | None:
    return g.production(OWN)


def _scan(g: Draft) -> bool | None:
    """``ckad.scan`` over an array, its step a function beside the program or a nested one."""
    sources = [v for v, s in g.scope.arrays.items() if s[0] <= 40]
    if not sources or not g.scope.floats or g.scope.depth > 1:
        return None
    xs = g.c.pick(sources)
    u, s = g.c.pick(list(g.scope.arrays)), g.c.pick(g.scope.floats)
    if g.scope.arrays[xs][0] * g.scope.steps > MOST_STEPS or s in g.scope.kept:
        return None
    step, ys = g.fresh("step"), g.fresh("x")
    _step(g, step, u, xs)
    g.emit(f"({u}, {s}), {ys} = ckad.scan({step}, ({u}, {s}), {xs})")
    g.scope.arrays[ys] = (g.scope.arrays[xs][0],)
    return True


def _step(g: Draft, name: str, u: str, xs: str) -> None:
    shape, item, steps = g.scope.arrays[u], g.scope.arrays[xs][1:], g.scope.arrays[xs][0]
    depth, steps = compound.DEEPEST - 1, steps * g.scope.steps
    scope = Scope({"c": shape}, ["s"], depth=depth, steps=steps, returns=None)
    if item:
        scope.arrays["x"] = item
    else:
        scope.floats.append("x")
        scope.kept = frozenset({"x"})
    with g.function(f"def {name}(carry, x):", scope):
        g.emit("c, s = carry")
        compound.statements(g, g.c.between(1, 3))
        g.emit(f"return (c, s), {fitted(scalar(g, 2), LIMIT)}")


def _fori_loop(g: Draft) -> bool | None:
    u, n = g.c.pick(list(g.scope.arrays)), g.c.between(2, 6)
    if n * g.scope.steps > MOST_STEPS:
        return None
    shape = g.scope.arrays[u]
    i, w = g.fresh("i"), g.fresh("w")
    with g.block() as scope:
        scope.arrays[w] = shape
        scope.integers[i] = (0, n - 1)
        body = fitted(array(g, shape, 2), 0.8)
    body = f"{g.c.number(0.3, 0.6)} * {w} + {body}"
    g.emit(f"{u} = ckad.fori_loop(0, {n}, lambda {i}, {w}: {body}, {u})")
    return True


def _while_loop(g: Draft) -> bool | None:
    names = g.scope.bindable_floats
    if not names or g.scope.depth > 1:
        return None
    s, a, b = g.c.pick(names), g.c.number(0.4, 0.8), g.c.number(0.02, 0.1)
    level = g.c.number(0.1, 0.3)
    g.emit(f"{s} = ckad.while_loop(lambda r: r > {level}, lambda r: {a} * r - {b}, {s})")
    return True


def _cond(g: Draft) -> bool | None:
    names = g.scope.bindable_floats
    if not names:
        return None
    s, x = g.c.pick(names), g.fresh("r")
    with g.block() as scope:
        scope.floats.append(x)
        sides = [fitted(scalar(g, 2), LIMIT) for _ in range(2)]
    test = conditions.traced(g)
    value = scalar(g, 1).text
    g.emit(f"{s} = ckad.cond({test}, lambda {x}: {sides[0]}, lambda {x}: {sides[1]}, {value})")
    return True


def _nested(g: Draft) -> bool | None:
    """A function of a number that reads what is around it, whenever it is called."""
    if g.scope.functions:
        return None
    name, r, n = g.fresh("f"), g.fresh("r"), g.c.below(5)
    shape = g.c.pick(list(g.scope.arrays.values()))
    with g.block() as scope:
        scope.floats.append(r)
        text = fitted(array(g, shape, 2) if n == 0 else scalar(g, 2), LIMIT)
        changed = g.c.pick(list(scope.arrays))
        factor = g.c.number(0.5, 0.95)
    result = shape if n == 0 else ()
    if n == 1:
        g.emit(f"{name} = lambda {r}: {text}")
    elif n == 2:  # it writes into an array around it
        g.emit(f"def {name}({r}):")
        g.emit(f"    {changed}[...] *= {factor}")
        result = None
    else:
        g.emit(f"def {name}({r}):")
        g.emit(f"    return {text}")
    g.scope.functions.append(Helper(name, (), result, 1))
    return True


def _rebinding(g: Draft) -> bool | None:
    """A function that binds a number around it anew."""
    names = [s for s in g.scope.bindable_floats if s.startswith("s")]
    if not names or g.scope.depth:
        return None
    name, s, r = g.fresh("f"), g.c.pick(names), g.fresh("r")
    g.emit(f"def {name}({r}):")
    g.emit(f"    nonlocal {s}")
    g.emit(f"    {s} = {g.c.number(0.3, 0.6)} * {s} + {g.c.number(0.1, 0.4)} * {r}")
    g.scope.functions.append(Helper(name, (), None, 1))
    return True


OWN: Table[bool] = (
    (0.5, _scan),
    (0.4, _fori_loop),
    (0.25, _while_loop),
    (0.4, _cond),
    (0.7, _nested),
    (0.2, _rebinding),
)
