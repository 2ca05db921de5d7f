"""Simple statements: names bound and exchanged, views taken, elements and parts written."""

from __future__ import annotations

from .conditions import mask
from .draft import Draft, Table, fitted
from .expressions import array, call, leaf, place, scalar
from .indices import part, some_part
from .scope import LIMIT, Shape

#: How much one step may add to an array in place, in all steps together.
GROWTH = 0.5


def simple(g: Draft) -> bool | None:
    return g.production(SIMPLE)


def _shape(g: Draft) -> Shape:
    return g.c.pick(list(g.scope.arrays.values()))


def _bound(g: Draft) -> str:
    """An array that a statement may bind anew."""
    return g.c.pick(list(g.scope.arrays))


# --- numbers -------------------------------------------------------------------------------------


def _number(g: Draft) -> bool | None:
    names = g.scope.bindable_floats
    if names and g.c.chance(0.8):
        name = g.c.pick(names)
        value = fitted(scalar(g, 2), 1.2)
        g.emit(f"{name} = {g.c.number(0.2, 0.5)} * {name} + {g.c.number(0.2, 0.9)} * {value}")
        return True
    value = fitted(scalar(g, 2), LIMIT)
    name = g.fresh("s")
    g.emit(f"{name} = {value}")
    g.scope.floats.append(name)
    return True


def _number_changed(g: Draft) -> bool | None:
    names = g.scope.bindable_floats
    if not names:
        return None
    name = g.c.pick(names)
    kind = g.c.below(3)
    if kind == 0:
        g.emit(f"{name} *= {g.coefficient(0.4, 1.0)}")
    else:
        value = fitted(scalar(g, 2), GROWTH / g.scope.steps)
        g.emit(f"{name} {'+-'[kind - 1]}= {value}")
    return True


def _numbers_exchanged(g: Draft) -> bool | None:
    names = g.c.some(g.scope.bindable_floats, 2)
    if len(names) < 2:
        return None
    s, t = names
    g.emit(
        g.c.pick(
            (
                f"{s}, {t} = {t}, {s}",
                f"{s}, {t} = {t}, 0.5 * {s} + 0.4 * {t}",
                f"{s} = {t}",
            )
        )
    )
    return True


# --- arrays as wholes ----------------------------------------------------------------------------


def _rescaled(g: Draft) -> bool:
    u = _bound(g)
    g.emit(g.c.pick((f"{u} = {{}} * {u}", f"{u} = {u} * {{}}")).format(g.coefficient(0.5, 0.95)))
    return True


def _rebound(g: Draft) -> bool:
    u = _bound(g)
    shape = g.scope.arrays[u]
    if g.c.chance(0.4):
        value = fitted(array(g, shape, 3), LIMIT)
    else:
        kept = g.c.number(0.3, 0.7)
        rest = fitted(array(g, shape, 2), 0.98 * LIMIT * (1 - kept))
        value = f"{kept} * {u} + {rest}"
    g.emit(f"{u} = {value}")
    return True


def _made(g: Draft) -> bool | None:
    if len(g.scope.arrays) > 7:
        return None
    shape = g.c.pick(g.shapes)
    value = fitted(array(g, shape, 2), LIMIT)
    name = g.fresh("x")
    g.emit(f"{name} = {value}")
    g.scope.arrays[name] = shape
    return True


def _two_of_a_shape(g: Draft, n: int = 2) -> list[str] | None:
    names = g.c.some(g.scope.of_shape(_shape(g)), n)
    return names if len(names) == n else None


def _exchanged(g: Draft) -> bool | None:
    if (names := _two_of_a_shape(g)) is None:
        return None
    u, v = names
    ways = (
        (6, f"{u}, {v} = {v}, {u}"),
        (1, f"{u}, {v} = {v}[::-1], {u}"),
        (1, f"{u}, {v} = {v}, 0.9 * {u}"),
        (1, f"{u}, {v} = 0.8 * {v}, {u}.copy()"),
        (1, f"{u}, {v} = {v} * 0.7 + 0.2 * {u}, {u}"),
    )
    g.emit(g.c.weighted(ways))
    return True


def _rotated(g: Draft) -> bool | None:
    if (names := _two_of_a_shape(g, 3)) is None:
        return None
    u, v, w = names
    g.emit(g.c.pick((f"{u}, {v}, {w} = {v}, {w}, {u}", f"{u}, {v}, {w} = {w}, {u}, 0.9 * {v}")))
    return True


def _aliased(g: Draft) -> bool | None:
    if (names := _two_of_a_shape(g)) is None:
        return None
    u, v = names
    ways = (
        f"{u} = {v}",
        f"{u} = {v}",
        f"{u} = {v}.copy()",
        f"{u} = np.copy({v})",
        f"{u} = {v}[::-1]",
    )
    g.emit(g.c.pick(ways))
    return True


def _shifted(g: Draft) -> bool:
    u = _bound(g)
    n, k = g.scope.arrays[u][0], g.c.pick((1, 1, 2, 3))
    ways = [f"{u} = np.roll({u}, {g.c.pick((k, -k))})", f"{u} = {u}[::-1]"]
    if n > k:
        ways.append(f"{u} = np.concatenate(({u}[{k}:], {u}[:{k}]))")
        ways.append(f"{u} = np.concatenate(({u}[-{k}:], 0.9 * {u}[:-{k}]))")
    if len(set(g.scope.arrays[u])) == 1 and len(g.scope.arrays[u]) == 2:
        ways.append(f"{u} = {u}.T")
    if len(g.scope.arrays[u]) == 1 and n < 12:
        ways.append(f"{u} = {u}[np.array({g.c.some(range(n), n)})]")
    g.emit(g.c.pick(ways))
    return True


def _view(g: Draft) -> bool | None:
    """A new name for a part of an array, or an old one that sees it from now on."""
    if g.c.chance(0.4):
        name = _bound(g)
        text = part(g, g.scope.arrays[name])
        if text is None:
            return None
        g.emit(f"{name} = {text}")
        return True
    if len(g.scope.arrays) > 7 or (found := some_part(g, _bound(g))) is None:
        return None
    name = g.fresh("a")
    g.emit(f"{name} = {found[0]}")
    g.scope.arrays[name] = found[1]
    return True


# --- in place ------------------------------------------------------------------------------------


def _target(g: Draft) -> tuple[str, Shape] | None:
    """A part to be written, or the whole of an array."""
    u = _bound(g)
    if g.c.chance(0.25):
        return f"{u}[{g.c.pick((':', '...'))}]", g.scope.arrays[u]
    found = some_part(g, u)
    return None if found is None or found[0].endswith(".T") else found


def _element_written(g: Draft) -> bool | None:
    target = place(g)
    kind = g.c.below(4)
    if kind == 0:
        g.emit(f"{target} = {fitted(scalar(g, 3), LIMIT)}")
    elif kind == 1:
        kept = g.c.number(0.3, 0.7)
        rest = fitted(scalar(g, 2), 0.98 * LIMIT * (1 - kept))
        g.emit(f"{target} = {kept} * {target} + {rest}")
    elif kind == 2:
        g.emit(f"{target} *= {g.coefficient(0.4, 1.0)}")
    else:
        value = fitted(scalar(g, 2), GROWTH / g.scope.steps)
        g.emit(f"{target} {g.c.pick('+-')}= {value}")
    return True


def _elements_exchanged(g: Draft) -> bool:
    one, two = place(g), place(g)
    g.emit(f"{one}, {two} = {two}, {one}")
    return True


def _part_written(g: Draft) -> bool | None:
    if (found := _target(g)) is None:
        return None
    target, shape = found
    kind = g.c.below(5)
    if kind == 0:
        g.emit(f"{target} = {fitted(array(g, shape, 2), LIMIT)}")
    elif kind == 1:
        kept = g.c.number(0.3, 0.7)
        rest = fitted(array(g, shape, 2), 0.98 * LIMIT * (1 - kept))
        g.emit(f"{target} = {kept} * {target} + {rest}")
    elif kind == 2:
        g.emit(f"{target} *= {g.coefficient(0.4, 1.0)}")
    elif kind == 3:
        value = fitted(array(g, shape, 2), GROWTH / g.scope.steps)
        g.emit(f"{target} {g.c.pick('+-')}= {value}")
    else:
        g.emit(f"{target} += {g.c.number(0.1, 0.4)} * ({leaf(g, shape).text} - {target})")
    return True


def _whole_changed(g: Draft) -> bool:
    u = _bound(g)
    shape = g.scope.arrays[u]
    kind = g.c.below(3)
    if kind == 0:
        g.emit(f"{u} *= {g.coefficient(0.4, 1.0)}")
    elif kind == 1:
        value = fitted(array(g, shape, 2), GROWTH / g.scope.steps)
        g.emit(f"{u} {g.c.pick('+-')}= {value}")
    else:
        g.emit(f"{u} += {g.c.number(0.1, 0.4)} * ({leaf(g, shape).text} - {u})")
    return True


def _stencil(g: Draft) -> bool | None:
    u = g.c.pick(g.scope.of_axes(1)) if g.scope.of_axes(1) else None
    if u is None or g.scope.arrays[u][0] < 3:
        return None
    k = g.c.number(0.05, 0.3)
    if g.scope.floats and g.c.chance(0.4):
        k = f"{round(k / 2, 3)} * {g.c.pick(g.scope.floats)} ** 2 / 4"
    v = g.c.pick(g.scope.of_shape(g.scope.arrays[u]))
    difference = g.c.pick(
        (f"{v}[2:] - 2 * {v}[1:-1] + {v}[:-2]", f"{v}[2:] - {v}[:-2]", f"{v}[:-2] - {u}[1:-1]")
    )
    if g.c.chance(0.5):
        g.emit(f"{u}[1:-1] += {k} * ({difference})")
    else:
        g.emit(f"{u}[1:-1] = 0.7 * {v}[1:-1] + {k} * ({difference})")
    return True


def _masked(g: Draft) -> bool:
    u = _bound(g)
    text = mask(g, g.scope.arrays[u])
    kind = g.c.below(3)
    if kind == 0:
        g.emit(f"{u}[{text}] *= {g.coefficient(0.4, 0.95)}")
    elif kind == 1:
        g.emit(f"{u}[{text}] = {fitted(scalar(g, 1), LIMIT)}")
    else:
        g.emit(f"{u}[{text}] += {g.c.number(-0.5, 0.5) / g.scope.steps:.4g}")
    return True


def _extent_written(g: Draft) -> bool | None:
    """As many elements as the loop's index says."""
    fitting = [
        (u, i)
        for u in g.scope.of_axes(1)
        for i, (low, high) in g.scope.integers.items()
        if low >= 0 and high <= g.scope.arrays[u][0]
    ]
    if not fitting:
        return None
    u, i = g.c.pick(fitting)
    v = g.c.pick(g.scope.of_shape(g.scope.arrays[u]))
    a = g.coefficient(0.3, 0.95)
    g.emit(
        g.c.pick(
            (
                f"{u}[:{i} + 1] *= {a}",
                f"{u}[{i}:] = {a} * {v}[{i}:]",
                f"{u}[:{i}] = {a} * {v}[:{i}][::-1]",
                f"{u}[{i}:] += {round(a / 2, 3)} * ({v}[{i}:] - {u}[{i}:])",
                f"{u}[:{i}] = {fitted(scalar(g, 1), LIMIT)}",
            )
        )
    )
    return True


def _into(g: Draft) -> bool | None:
    """NumPy functions with a target."""
    u = _bound(g)
    shape = g.scope.arrays[u]
    x, a = leaf(g, shape).text, g.coefficient(0.2, 0.5)
    ways = [
        f"np.multiply({x}, {a}, out={u})",
        f"np.sin({x}, out={u})",
        f"np.copyto({u}, {x})",
        f"{u}.fill({fitted(scalar(g, 1), LIMIT)})",
    ]
    if len(shape) == 1:
        places = [g.c.below(shape[0]) for _ in range(g.c.between(1, 4))]
        ways.append(f"{u}[np.array({places})] *= {a}")
        value = f"{GROWTH / g.scope.steps / 4:.3g} * {leaf(g, (len(places),)).text}"
        ways.append(f"np.add.at({u}, np.array({places}), {value})")
    g.emit(g.c.pick(ways))
    return True


def _called(g: Draft) -> bool | None:
    """A function that writes into its argument."""
    made = call(g, None)
    if made is None:
        return None
    g.emit(made.text)
    return True


def _integer(g: Draft) -> bool | None:
    names = [x for x in g.scope.integers if x.startswith("p")]
    if names:
        name = g.c.pick(names)
        n = g.scope.integers[name][1] + 1
        g.emit(f"{name} = ({name} * {g.c.between(1, 3)} + {g.c.between(1, 3)}) % {n}")
        return True
    if g.scope.depth:
        return None
    name, n = g.fresh("p"), g.c.between(2, 7)
    g.emit(f"{name} = {g.c.below(n)}")
    g.scope.integers[name] = (0, n - 1)
    return True


SIMPLE: Table[bool] = (
    (3, _number),
    (1.2, _number_changed),
    (0.6, _numbers_exchanged),
    (2, _rescaled),
    (3, _rebound),
    (1, _made),
    (2, _exchanged),
    (0.8, _rotated),
    (1.2, _aliased),
    (1.2, _shifted),
    (1.7, _view),
    (4, _element_written),
    (0.5, _elements_exchanged),
    (4, _part_written),
    (1.5, _whole_changed),
    (1, _stencil),
    (0.8, _masked),
    (0.8, _extent_written),
    (0.8, _into),
    (0.8, _called),
    (0.5, _integer),
)
