"""Loops, branches, and what leaves them."""

from __future__ import annotations

from math import prod

from . import conditions, functions
from .draft import Draft, Table, fitted
from .expressions import array, leaf, scalar
from .scope import LIMIT, MOST_STEPS, Shape
from .statements import simple
from .sweeps import sweep

DEEPEST = 3
#: Elements that a loop over an array may have.
LONGEST = 66


def statements(g: Draft, n: int) -> None:
    """``n`` statements, at least one."""
    before = len(g.lines)
    for _ in range(n):
        if g.left <= 0:
            break
        if g.c.chance(COMPOUND[min(g.scope.depth, 3)]):
            g.production(TABLE)
        else:
            simple(g)
    if len(g.lines) == before and not simple(g):
        g.emit("pass")


#: How often a statement holds others, by depth.
COMPOUND = (0.45, 0.35, 0.25, 0.12)


def _body(g: Draft, most: int = 4) -> None:
    statements(g, min(g.c.between(1, most), g.c.between(1, most)))
    if g.scope.loop and g.c.chance(0.12):
        g.production(LEAVES)
        if g.c.chance(0.6):
            statements(g, 1)


# --- for -----------------------------------------------------------------------------------------


def _for(g: Draft) -> bool | None:
    """Over a range."""
    if g.scope.depth >= DEEPEST:
        return None
    i = g.fresh("i")
    made = g.production(RANGES)
    if made is None:
        return None
    text, low, high, steps, certain = made
    if steps * g.scope.steps > MOST_STEPS:
        return None
    leaves = g.n_leaves
    g.emit(f"for {i} in {text}:")
    with _loop(g, "for", steps) as scope:
        scope.integers[i] = (low, high)
        _body(g)
    if certain and leaves == g.n_leaves and g.c.chance(0.3):
        g.scope.take(scope)  # names keep what the last step has bound
    _otherwise(g)
    return True


def _loop(g: Draft, kind: str, steps: int):  # type: ignore[no-untyped-def]
    scope = g.scope
    return g.block(steps=scope.steps * max(1, steps), depth=scope.depth + 1, loop=kind)


def _otherwise(g: Draft) -> None:
    if g.c.chance(0.04):
        g.emit("else:")
        with g.block(loop=""):
            statements(g, 1)


Range = tuple[str, int, int, int, bool]  # text, least, largest, steps, whether there is one


def _short_range(g: Draft) -> Range:
    n = g.c.weighted(((1, 1), (2, 2), (2, 3), (2, 4), (3, 5), (2, 6), (1, 8), (1, 12), (0.1, 0)))
    return f"range({n})", 0, max(n - 1, 0), n, n > 0


def _other_range(g: Draft) -> Range:
    low, n, step = g.c.between(0, 3), g.c.between(2, 6), g.c.pick((1, 1, 2))
    high = low + (n - 1) * step
    kind = g.c.below(3)
    if kind == 0:
        return f"range({high}, {low - 1}, {-step})", low, high, n, True
    if kind == 1:
        return f"reversed(range({low}, {high + 1}, {step}))", low, high, n, True
    return f"range({low}, {high + 1}, {step})", low, high, n, True


def _range_of_array(g: Draft) -> Range | None:
    if not g.scope.arrays:
        return None
    u = g.c.pick(list(g.scope.arrays))
    n = g.scope.arrays[u][0]
    if n > LONGEST:
        return None
    text = g.c.pick((f"len({u})", f"{u}.shape[0]", str(n)))
    if n > 2 and g.c.chance(0.5):
        return f"range(1, {text} - 1)", 1, n - 2, n - 2, True
    return f"range({text})", 0, n - 1, n, True


def _triangular(g: Draft) -> Range | None:
    outer = [(i, *x) for i, x in g.scope.integers.items() if x[0] >= 0 and x[1] <= 9]
    if not outer:
        return None
    i, _, high = g.c.pick(outer)
    kind = g.c.below(3)
    if kind == 0:
        return f"range({i})", 0, max(0, high - 1), high, False
    if kind == 1:
        return f"range({i} + 1)", 0, high, high + 1, False
    return f"range({i}, {high + 1})", 0, high, high + 1, False


RANGES: Table[Range] = (
    (6, _short_range),
    (1.5, _other_range),
    (2, _range_of_array),
    (1, _triangular),
)


def _for_each(g: Draft) -> bool | None:
    """Over the first axis of arrays."""
    names = [u for u, s in g.scope.arrays.items() if s[0] * g.scope.steps <= MOST_STEPS // 4]
    if g.scope.depth >= DEEPEST or not names:
        return None
    u = g.c.pick(names)
    n, item = g.scope.arrays[u][0], g.scope.arrays[u][1:]
    x, i, kind = g.fresh("e"), g.fresh("i"), g.c.below(4)
    others = [v for v in names if g.scope.arrays[v] == (n,)]
    pair = g.fresh("e")
    v = g.c.pick(others) if others else None
    text = f"for {x} in {u}:"
    if kind == 1:
        text = f"for {i}, {x} in enumerate({u}):"
    elif kind == 2 and v:
        text = f"for {x}, {pair} in zip({u}, {v}):"
    elif kind == 3:
        text = f"for {x} in {u}[::-1]:"
    leaves = g.n_leaves
    g.emit(text)
    with _loop(g, "for", n) as scope:
        if item:
            scope.arrays[x] = item
        else:
            scope.floats.append(x)
            scope.kept = scope.kept | {x}
        if kind == 1:
            scope.integers[i] = (0, n - 1)
        if kind == 2 and v:
            scope.floats.append(pair)
        _body(g, 3)
    if leaves == g.n_leaves and g.c.chance(0.3):
        g.scope.take(scope)
    return True


# --- while ---------------------------------------------------------------------------------------


def _while(g: Draft) -> bool | None:
    """Bounded by a counter, a contraction, or both."""
    steps = g.c.between(2, 8)
    if g.scope.depth >= DEEPEST or steps * g.scope.steps > MOST_STEPS:
        return None
    kind = g.c.below(3)
    s, n = g.fresh("t"), g.fresh("n")
    if kind:
        g.emit(f"{s} = {fitted(scalar(g, 1), LIMIT)}")
    if kind != 1:
        g.emit(f"{n} = 0")
    tests = (
        f"{n} < {steps} and {conditions.traced(g)}",
        f"{s} > {g.c.number(0.05, 0.3)}",
        f"{s} > {g.c.number(-0.3, 0.3)} and {n} < {steps}",
    )
    g.emit(f"while {tests[kind]}:")
    with _loop(g, "while", steps if kind != 1 else 6) as scope:
        if kind:
            g.emit(f"{s} = {g.c.number(0.3, 0.7)} * {s} - {g.c.number(0.01, 0.1)}")
            scope.floats.append(s)
            scope.kept = scope.kept | {s}
        if kind != 1:
            g.emit(f"{n} += 1")
            scope.integers[n] = (1, steps)
        _body(g, 3)
    if kind:
        g.scope.floats.append(s)
        g.scope.kept = g.scope.kept | {s}
    return True


# --- branches ------------------------------------------------------------------------------------


def _if(g: Draft) -> bool:
    g.emit(f"if {conditions.condition(g)}:")
    _side(g)
    if g.c.chance(0.2):
        g.emit(f"elif {conditions.condition(g)}:")
        _side(g)
    if g.c.chance(0.4):
        g.emit("else:")
        _side(g)
    return True


def _side(g: Draft) -> None:
    with g.block(depth=g.scope.depth):
        statements(g, g.c.between(1, 2))
        if g.scope.loop and g.c.chance(0.15):
            g.n_leaves += 1
            g.emit(g.c.pick(("break", "continue")))


# --- what leaves a block -------------------------------------------------------------------------


def _break(g: Draft) -> bool:
    g.n_leaves += 1
    g.emit(f"if {conditions.condition(g)}:")
    g.emit("    break")
    return True


def _continue(g: Draft) -> bool:
    g.n_leaves += 1
    g.emit(f"if {conditions.condition(g)}:")
    g.emit("    continue")
    return True


def _return(g: Draft) -> bool | None:
    if g.scope.returns is None:
        return None
    g.n_leaves += 1
    g.emit(f"if {conditions.traced(g)}:")
    with g.block():
        g.emit(f"return {returned(g)}".rstrip())
    return True


def returned(g: Draft) -> str:
    """Results of the shapes that the function has."""
    values = (array(g, shape, 1) if shape else scalar(g, 2) for shape in g.scope.returns or ())
    return ", ".join(fitted(value, LIMIT) for value in values)


LEAVES: Table[bool] = ((3, _break), (3, _continue), (2, _return))


def _list(g: Draft) -> bool | None:
    """A list that the next loop appends to; what is stacked of it is an array afterwards."""
    if g.scope.depth:
        return None
    name, stacked = g.fresh("history"), g.fresh("x")
    shape = g.c.pick(((), *(s for s in g.scope.arrays.values() if len(s) == 1)))
    n, i = g.c.between(2, 7), g.fresh("i")
    g.emit(f"{name} = []")
    g.emit(f"for {i} in range({n}):")
    with _loop(g, "for", n) as scope:
        scope.integers[i] = (0, n - 1)
        for _ in range(g.c.between(0, 2)):
            simple(g)  # which does not leave the step
        value = fitted(leaf(g, shape) if shape else scalar(g, 2), LIMIT)
        g.emit(f"{name}.append({value})")
        statements(g, 1)
    g.emit(f"{stacked} = {g.c.pick(('np.stack', 'np.array'))}({name})")
    g.scope.arrays[stacked] = (n, *shape)
    return True


def _packed(g: Draft) -> bool | None:
    """Names in a tuple, and back from it in another order."""
    names = g.c.some(list(g.scope.arrays), 2)
    if len(names) < 2 or g.scope.arrays[names[0]] != g.scope.arrays[names[1]]:
        return None
    pair, (u, v) = g.fresh("pair"), names
    g.emit(f"{pair} = ({u}, {v})")
    statements(g, g.c.between(1, 2))
    g.emit(g.c.pick((f"{u}, {v} = {pair}", f"{v}, {u} = {pair}", f"{u} = 0.9 * {pair}[1]")))
    return True


def _read_within(g: Draft) -> bool | None:
    """An inner loop reads elements of arrays that the outer one binds anew after it."""
    largest = max(g.scope.arrays.values(), key=prod)
    names, numbers = g.c.some(g.scope.of_shape(largest), 2), g.scope.bindable_floats
    n, m = g.c.between(2, 7), g.c.between(2, 7)
    if (
        g.scope.depth + 2 > DEEPEST
        or len(names) < 2
        or not numbers
        or n * m * g.scope.steps > MOST_STEPS
    ):
        return None
    s = g.c.pick(numbers)
    g.emit(f"for {g.fresh('i')} in range({n}):")
    with _loop(g, "for", n):
        g.emit(f"for {g.fresh('i')} in range({m}):")
        with _loop(g, "for", m):
            product = " * ".join(f"{u}[{_anywhere(g, g.scope.arrays[u])}]" for u in names)
            g.emit(f"{s} = {g.c.number(0.3, 0.6)} * {s} + {g.c.number(0.02, 0.1)} * {product}")
            if g.c.chance(0.3):
                simple(g)
        for u in names:
            way = g.c.weighted(((4, "{0} = {1} * {0}"), (4, "{0} = {0} * {1}"), (1, "{0} *= {1}")))
            g.emit(way.format(u, g.coefficient(0.5, 0.95)))
        if g.c.chance(0.3):
            simple(g)
    return True


def _anywhere(g: Draft, shape: Shape) -> str:
    return ", ".join(str(g.c.below(min(n, 9))) for n in shape)


TABLE: Table[bool] = (
    (8, _for),
    (1.2, _for_each),
    (1.5, _while),
    (4, _if),
    (1.5, functions.own),
    (1.5, sweep),
    (0.5, _list),
    (0.35, _return),
    (0.6, _packed),
    (1.5, _read_within),
)
