"""Expressions of a shape, with a bound of their elements."""

from __future__ import annotations

from math import prod

from . import conditions
from .draft import Draft, Table, fitted
from .indices import index, part
from .scope import LIMIT, MOST_STEPS, Bounded, Shape

#: Functions with what makes any argument fit them, and a bound.
FUNCTIONS = (
    ("np.sin({})", 1.0),
    ("np.cos({})", 1.0),
    ("np.tanh({})", 1.0),
    ("np.exp(-({}) ** 2)", 1.0),
    ("np.sqrt(0.1 + ({}) ** 2)", 2.1),
    ("1.0 / (1.0 + ({}) ** 2)", 1.0),
    ("np.arctan({})", 1.6),
    ("np.log(1.0 + ({}) ** 2)", 1.7),
    ("np.exp(0.3 * ({}))", 2.0),
)


def array(g: Draft, shape: Shape, depth: int) -> Bounded:
    """An array of this shape, new or a view."""
    if depth > 0:
        made = g.production(ARRAYS, shape, depth)
        if made is not None:
            return made
    return leaf(g, shape)


def leaf(g: Draft, shape: Shape) -> Bounded:
    names = g.scope.of_shape(shape)
    if names and g.c.chance(0.75):
        return Bounded(g.c.pick(names), LIMIT)
    view = part(g, shape)
    if view is not None:
        return Bounded(view, LIMIT)
    return Bounded(g.c.pick(names), LIMIT) if names else _filled(g, shape)


def _filled(g: Draft, shape: Shape) -> Bounded:
    if len(shape) == 1 and g.c.chance(0.6):
        return Bounded(f"np.linspace(0.1, {g.c.number(0.5, 1.5)}, {shape[0]})", 1.5)
    return Bounded(f"np.full({shape}, {g.c.number(0.1, 1.0)})", 1.0)


def _combination(g: Draft, shape: Shape, depth: int) -> Bounded:
    x, y = array(g, shape, depth - 1), operand(g, shape, depth - 1)
    a, b = g.coefficient(), g.coefficient(0.1, 0.5)
    text = f"({a} * {x.text} {'-' if b < 0 else '+'} {abs(b)} * {y.text})"
    return Bounded(text, abs(a) * x.bound + abs(b) * y.bound)


def operand(g: Draft, shape: Shape, depth: int) -> Bounded:
    """An array of the shape, or what broadcasts to it."""
    kind = g.c.below(8)
    if kind == 0:
        return scalar(g, depth)
    if len(shape) == 2 and kind == 1:
        row = array(g, shape[1:], depth)
        return Bounded(f"({row.text})", row.bound)
    if len(shape) == 2 and kind == 2:
        column = leaf(g, shape[:1])
        return Bounded(f"{column.text}[:, None]", column.bound)
    return array(g, shape, depth)


def _product(g: Draft, shape: Shape, depth: int) -> Bounded:
    x, y = array(g, shape, depth - 1), operand(g, shape, depth - 1)
    return Bounded(f"({x.text}) * ({y.text})", x.bound * y.bound)


def _quotient(g: Draft, shape: Shape, depth: int) -> Bounded:
    x, y = array(g, shape, depth - 1), operand(g, shape, depth - 1)
    return Bounded(f"({x.text}) / (1.0 + ({y.text}) ** 2)", x.bound)


def _function(g: Draft, shape: Shape, depth: int) -> Bounded:
    function, bound = g.c.pick(FUNCTIONS)
    return Bounded(function.format(fitted(array(g, shape, depth - 1), LIMIT)), bound)


def _power(g: Draft, shape: Shape, depth: int) -> Bounded:
    x = array(g, shape, depth - 1)
    n = g.c.pick((2, 2, 3))
    return Bounded(f"({x.text}) ** {n}", x.bound**n)


def _chosen(g: Draft, shape: Shape, depth: int) -> Bounded:
    x, y = array(g, shape, depth - 1), array(g, shape, depth - 1)
    mask = conditions.mask(g, shape)
    return Bounded(f"np.where({mask}, {x.text}, {y.text})", max(x.bound, y.bound))


def _extremum(g: Draft, shape: Shape, depth: int) -> Bounded:
    x, y = array(g, shape, depth - 1), operand(g, shape, depth - 1)
    kind, level = g.c.below(4), g.c.number(0.3, 1.5)
    if kind == 0:
        return Bounded(f"np.clip({x.text}, {-level}, {level})", level)
    if kind == 1:
        return Bounded(f"np.abs({x.text})", x.bound)
    name = "np.maximum" if kind == 2 else "np.minimum"
    return Bounded(f"{name}({x.text}, {y.text})", max(x.bound, y.bound))


def _moved(g: Draft, shape: Shape, depth: int) -> Bounded:
    """The same elements at other places."""
    x = array(g, shape, depth - 1)
    axis = f", axis={g.c.below(2)}" if len(shape) == 2 else ""
    kind = g.c.below(4)
    if kind < 2:
        return Bounded(f"np.roll({x.text}, {g.c.pick((1, 1, -1, 2, -3))}{axis})", x.bound)
    if kind == 2:
        return Bounded(f"np.flip({x.text}{axis})", x.bound)
    return Bounded(f"({x.text})[{', '.join(['::-1'] * g.c.between(1, len(shape)))}]", x.bound)


def _joined(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    """Concatenated from pieces."""
    if shape[0] < 2:
        return None
    k = g.c.between(1, shape[0] - 1)
    x, y = array(g, (k, *shape[1:]), depth - 2), array(g, (shape[0] - k, *shape[1:]), depth - 2)
    return Bounded(f"np.concatenate(({x.text}, {y.text}))", max(x.bound, y.bound))


def _product_of_matrices(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    matrices = [s for name in g.scope.of_axes(2) for s in (g.scope.arrays[name],)]
    if not matrices or prod(shape) > 300:
        return None
    inner = g.c.pick(matrices)[1]
    x, y = array(g, (shape[0], inner), depth - 2), array(g, (inner, *shape[1:]), depth - 2)
    return Bounded(f"(({x.text}) @ ({y.text})) / {inner}.0", x.bound * y.bound)


def _outer(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    if len(shape) != 2:
        return None
    x, y = array(g, shape[:1], depth - 2), array(g, shape[1:], depth - 2)
    return Bounded(f"np.outer({x.text}, {y.text})", x.bound * y.bound)


def _along_axis(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    if len(shape) != 1:
        return None
    matrices = [(s, s.index(shape[0])) for s in g.shapes if len(s) == 2 and shape[0] in s]
    if not matrices:
        return None
    (rows, columns), kept = g.c.pick(matrices)
    name = g.c.pick(("np.mean", "np.mean", "np.max", "np.min"))
    matrix = array(g, (rows, columns), depth - 2)
    return Bounded(f"{name}({matrix.text}, axis={1 - kept})", matrix.bound)


def _cumulated(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    if len(shape) != 1:
        return None
    if g.c.chance(0.5):
        x = array(g, shape, depth - 1)
        return Bounded(f"np.cumsum({x.text}) / {shape[0]}.0", x.bound)
    x = array(g, (shape[0] + 1,), depth - 2)
    return Bounded(f"np.diff({x.text})", 2 * x.bound)


def _gathered(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    if len(shape) != 1 or shape[0] > 16:
        return None
    names = g.scope.of_axes(1)
    if not names:
        return None
    name = g.c.pick(names)
    places = [g.c.below(g.scope.arrays[name][0]) for _ in range(shape[0])]
    return Bounded(f"{name}[np.array({places})]", LIMIT)


def _either(g: Draft, shape: Shape, depth: int) -> Bounded:
    x, y = array(g, shape, depth - 1), array(g, shape, depth - 1)
    test = conditions.condition(g)
    return Bounded(f"({x.text} if {test} else {y.text})", max(x.bound, y.bound))


def _reshaped(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    if len(shape) == 1:
        matrices = [s for s in g.shapes if len(s) == 2 and prod(s) == shape[0]]
        if not matrices:
            return None
        x = array(g, g.c.pick(matrices), depth - 1)
        how = g.c.pick(("ravel()", f"reshape({shape[0]})", "flatten()", "reshape(-1)"))
        return Bounded(f"({x.text}).{how}", x.bound)
    x = array(g, (prod(shape),) if g.c.chance(0.5) else shape[::-1], depth - 1)
    how = g.c.pick((f"reshape({shape[0]}, {shape[1]})", f"reshape({shape[0]}, -1)"))
    return Bounded(f"({x.text}).{how}", x.bound)


def _transposed(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    if len(shape) != 2:
        return None
    x = array(g, shape[::-1], depth - 1)
    return Bounded(g.c.pick(("({}).T", "np.transpose({})")).format(x.text), x.bound)


def _copied(g: Draft, shape: Shape, depth: int) -> Bounded:
    x = leaf(g, shape)
    return Bounded(f"{x.text}.copy()" if g.c.chance(0.6) else f"np.array({x.text})", x.bound)


def _called(g: Draft, shape: Shape, depth: int) -> Bounded | None:
    return call(g, shape)


def call(g: Draft, shape: Shape | None) -> Bounded | None:
    """A call of a function beside the program."""
    fitting = [
        h
        for h in (*g.helpers, *g.scope.functions)
        if h.result == shape and h.steps * g.scope.steps <= 2 * MOST_STEPS
    ]
    if not fitting:
        return None
    helper = g.c.pick(fitting)
    arguments = [leaf(g, s).text for s in helper.arrays]
    return Bounded(f"{helper.name}({', '.join([*arguments, scalar(g, 1).text])})", LIMIT)


ARRAYS: Table[Bounded] = (
    (6, _combination),
    (2.5, _product),
    (1, _quotient),
    (3, _function),
    (1, _power),
    (1, _chosen),
    (1, _extremum),
    (2, _moved),
    (1, _joined),
    (1, _product_of_matrices),
    (0.6, _outer),
    (0.7, _along_axis),
    (0.6, _cumulated),
    (0.5, _gathered),
    (0.5, _either),
    (0.6, _reshaped),
    (0.6, _transposed),
    (1, _copied),
    (1.2, _called),
)


# --- numbers -------------------------------------------------------------------------------------


def scalar(g: Draft, depth: int) -> Bounded:
    if depth > 0:
        made = g.production(SCALARS, depth)
        if made is not None:
            return made
    return _number(g, depth)


def _number(g: Draft, depth: int) -> Bounded:
    if g.scope.floats and g.c.chance(0.6):
        return Bounded(g.c.pick(g.scope.floats), LIMIT)
    if g.scope.arrays and g.c.chance(0.7):
        return element(g)
    x = g.c.number(0.1, 1.2)
    return Bounded(str(x), x)


def element(g: Draft) -> Bounded:
    return Bounded(place(g), LIMIT)


def place(g: Draft) -> str:
    """An element of an array, to be read or written."""
    name = g.c.pick(list(g.scope.arrays))
    axes = [index(g, n) for n in g.scope.arrays[name]]
    if len(axes) == 2 and g.c.chance(0.15):
        return f"{name}[{axes[0]}][{axes[1]}]"
    return f"{name}[{', '.join(axes)}]"


def _element(g: Draft, depth: int) -> Bounded | None:
    return element(g) if g.scope.arrays else None


def _sum_of_two(g: Draft, depth: int) -> Bounded:
    x, y = scalar(g, depth - 1), scalar(g, depth - 1)
    a = g.coefficient()
    op = g.c.pick("+-")
    return Bounded(f"({a} * {x.text} {op} {y.text})", abs(a) * x.bound + y.bound)


def _product_of_two(g: Draft, depth: int) -> Bounded:
    x, y = scalar(g, depth - 1), scalar(g, depth - 1)
    return Bounded(f"({x.text}) * ({y.text})", x.bound * y.bound)


def _function_of_number(g: Draft, depth: int) -> Bounded:
    function, bound = g.c.pick(FUNCTIONS)
    if g.c.chance(0.2):
        function = g.c.pick(("math.sin({})", "math.cos({})", "math.tanh({})"))
        bound = 1.0
    return Bounded(function.format(fitted(scalar(g, depth - 1), LIMIT)), bound)


def _by_integer(g: Draft, depth: int) -> Bounded | None:
    if not g.scope.integers:
        return None
    name = g.c.pick(list(g.scope.integers))
    a = round(g.c.number(0.1, 0.9) / (1 + max(map(abs, g.scope.integers[name]))), 3)
    return Bounded(f"{a} * {name}", 1.0)


def _reduced(g: Draft, depth: int) -> Bounded | None:
    if not g.scope.arrays:
        return None
    shape = g.c.pick(list(g.scope.arrays.values()))
    x = array(g, shape, depth - 2)
    n, kind = prod(shape), g.c.below(9)
    if kind < 3:
        return Bounded(f"np.{('max', 'min', 'mean')[kind]}({x.text})", x.bound)
    if kind < 5:
        return Bounded(f"np.sum({x.text}) / {n}.0", x.bound)
    if kind == 5:
        return Bounded(f"({x.text}).mean()", x.bound)
    if kind == 6:
        return Bounded(f"np.linalg.norm(({x.text}) + {x.bound + 1:.3g}) / {n}.0", 2 * x.bound + 1)
    y = array(g, shape, depth - 2)
    product = ("np.dot({}, {})", "np.vdot({}, {})", "({}) @ ({})")[g.c.below(3)]
    if len(shape) == 2:
        product = "np.sum(({}) * ({}))"
    return Bounded(f"{product.format(x.text, y.text)} / {n}.0", x.bound * y.bound)


def _reduced_extent(g: Draft, depth: int) -> Bounded | None:
    """A reduction of as many elements as the loop's index says."""
    names = g.scope.of_axes(1)
    fitting = [
        (name, i, g.scope.arrays[name][0])
        for name in names
        for i, (low, high) in g.scope.integers.items()
        if low >= 0 and high <= g.scope.arrays[name][0]
    ]
    if not fitting:
        return None
    name, i, n = g.c.pick(fitting)
    return Bounded(_EXTENTS[g.c.below(len(_EXTENTS))].format(x=name, i=i, n=f"{n}.0"), 4.0)


_EXTENTS = (
    "np.sum({x}[:{i} + 1]) / {n}",
    "np.sum({x}[{i}:]) / {n}",
    "{x}[:{i}] @ {x}[:{i}] / {n}",
    "np.dot({x}[{i}:], {x}[{i}:]) / {n}",
    "np.max({x}[:{i} + 1])",
    "np.sum(np.sin({x}[:{i}])) / {n}",
    "np.sum({x}[:{i}][::-1] * {x}[:{i}]) / {n}",
    "np.mean({x}[:{i} + 1] ** 2)",
)


def _either_number(g: Draft, depth: int) -> Bounded:
    x, y = scalar(g, depth - 1), scalar(g, depth - 1)
    test = conditions.condition(g)
    return Bounded(f"({x.text} if {test} else {y.text})", max(x.bound, y.bound))


def _extremum_of_two(g: Draft, depth: int) -> Bounded:
    x, y = scalar(g, depth - 1), scalar(g, depth - 1)
    name = g.c.pick(("max", "min", "np.maximum", "np.minimum"))
    return Bounded(f"{name}({x.text}, {y.text})", max(x.bound, y.bound))


def _called_number(g: Draft, depth: int) -> Bounded | None:
    return call(g, ())


def _quotient_of_two(g: Draft, depth: int) -> Bounded:
    x, y = scalar(g, depth - 1), scalar(g, depth - 1)
    return Bounded(f"({x.text}) / (1.0 + ({y.text}) ** 2)", x.bound)


SCALARS: Table[Bounded] = (
    (3, _number),
    (6, _element),
    (4, _sum_of_two),
    (3, _product_of_two),
    (1, _quotient_of_two),
    (2, _function_of_number),
    (1, _by_integer),
    (2, _reduced),
    (1, _reduced_extent),
    (0.7, _either_number),
    (0.7, _extremum_of_two),
    (1, _called_number),
)
