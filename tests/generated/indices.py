"""Indices, slices and views: parts of the arrays that a program has."""

from __future__ import annotations

from .draft import Draft, Table
from .scope import Shape

STEPS = (1, 1, 1, 1, 1, 2, 3, -1, -1, -2)


def index(g: Draft, n: int) -> str:
    """An integer that is a valid index of an axis of n elements."""
    return g.production(INDICES, n) or _constant(g, n)


def _constant(g: Draft, n: int) -> str:
    k = g.c.below(n)
    return str(k - n if g.c.chance(0.3) else k)


def _integer(g: Draft) -> tuple[str, int, int] | None:
    """An integer variable with its range; the innermost loop's more often."""
    names = list(g.scope.integers)
    if not names:
        return None
    name = names[-1] if g.c.chance(0.5) else g.c.pick(names)
    return name, *g.scope.integers[name]


def _shifted(g: Draft, n: int) -> str | None:
    if (found := _integer(g)) is None or found[2] - found[1] >= n:
        return None
    name, low, high = found
    offset = g.c.between(-low, n - 1 - high)
    if low + offset >= 0 and not g.c.chance(0.7):
        return f"{name} - {n - offset}"  # the same place, counted from the end
    return name if not offset else f"{name} {'-' if offset < 0 else '+'} {abs(offset)}"


def _mirrored(g: Draft, n: int) -> str | None:
    if (found := _integer(g)) is None or found[1] < 0 or found[2] >= n:
        return None
    name, _, high = found
    shift = g.c.between(0, n - 1 - high)
    return f"-{1 + shift} - {name}" if g.c.chance(0.6) else f"{n - 1 - shift} - {name}"


def _scaled(g: Draft, n: int) -> str | None:
    if (found := _integer(g)) is None or found[1] < 0 or 2 * found[2] >= n:
        return None
    return f"2 * {found[0]} + {g.c.between(0, n - 1 - 2 * found[2])}"


def _periodic(g: Draft, n: int) -> str | None:
    if (found := _integer(g)) is None:
        return None
    other = g.c.pick([str(g.c.between(0, 4)), _integer(g)[0]])  # type: ignore[index]
    return f"({found[0]} * {g.c.between(1, 3)} + {other}) % {n}"


def _clipped(g: Draft, n: int) -> str | None:
    if (found := _integer(g)) is None or found[1] < 0:
        return None
    return f"min({found[0]}, {n - 1})" if g.c.chance(0.5) else f"{found[0]} // 2 % {n}"


def _sum(g: Draft, n: int) -> str | None:
    one, two = _integer(g), _integer(g)
    if one is None or two is None or one[1] + two[1] < 0 or one[2] + two[2] >= n:
        return None
    return f"{one[0]} + {two[0]}"


def _largest(g: Draft, n: int) -> str | None:
    names = g.scope.of_shape((n,))
    return f"np.argmax({g.c.pick(names)})" if names else None


INDICES: Table[str] = (
    (3, _constant),
    (6, _shifted),
    (2, _mirrored),
    (1, _scaled),
    (1.5, _periodic),
    (0.7, _clipped),
    (0.7, _sum),
    (0.15, _largest),
)


def region(g: Draft, n: int, m: int) -> str | None:
    """A slice of m of n elements."""
    if m < 1 or m > n:
        return None
    if g.c.chance(0.2) and (found := _integer(g)) and found[1] >= 0 and found[2] + m <= n:
        return f"{found[0]}:{found[0]} + {m}"
    step = g.c.pick(STEPS)
    span = (m - 1) * abs(step) + 1
    if span > n:
        return None
    low = g.c.between(0, n - span)
    return _forward(g, n, low, span, step) if step > 0 else _backward(n, low, span, step)


def _forward(g: Draft, n: int, low: int, span: int, step: int) -> str:
    stop = low + span
    first = str(low - n if low and g.c.chance(0.2) else low) if low else ""
    last = str(stop - n if g.c.chance(0.5) else stop) if stop < n else ""
    return f"{first}:{last}" + (f":{step}" if step > 1 else "")


def _backward(n: int, low: int, span: int, step: int) -> str:
    first = "" if low + span == n else str(low + span - 1)
    return f"{first}:{low - 1 if low else ''}:{step}"


def part(g: Draft, shape: Shape) -> str | None:
    """A view of a variable, of this shape, that may be read and written."""
    names = list(g.scope.arrays)
    for name in g.c.some(names, 3):
        own = g.scope.arrays[name]
        made = _PARTS.get((len(own), len(shape)), _nothing)(g, name, own, shape)
        if made is not None:
            return made
    return None


def _nothing(g: Draft, name: str, own: Shape, shape: Shape) -> str | None:
    return None


def _of_vector(g: Draft, name: str, own: Shape, shape: Shape) -> str | None:
    where = region(g, own[0], shape[0])
    return None if where is None else f"{name}[{where}]"


def _line_of_matrix(g: Draft, name: str, own: Shape, shape: Shape) -> str | None:
    """A row or a column, or a piece of one."""
    (rows, columns), (m,) = own, shape
    if g.c.chance(0.5):
        where = region(g, columns, m)
        if where is None:
            return None
        row = index(g, rows)
        return f"{name}[{row}]" if m == columns and g.c.chance(0.7) else f"{name}[{row}, {where}]"
    where = region(g, rows, m)
    if where is None:
        return None
    return f"{name}[{where if m < rows or g.c.chance(0.3) else ':'}, {index(g, columns)}]"


def _of_matrix(g: Draft, name: str, own: Shape, shape: Shape) -> str | None:
    if own[::-1] == shape and g.c.chance(0.5):
        return f"{name}.T"
    where = [region(g, n, m) for n, m in zip(own, shape, strict=True)]
    return None if None in where else f"{name}[{where[0]}, {where[1]}]"


def _matrix_of_vector(g: Draft, name: str, own: Shape, shape: Shape) -> str | None:
    return f"{name}.reshape({shape[0]}, {shape[1]})" if own[0] == shape[0] * shape[1] else None


_PARTS = {
    (1, 1): _of_vector,
    (2, 1): _line_of_matrix,
    (2, 2): _of_matrix,
    (1, 2): _matrix_of_vector,
}


def some_part(g: Draft, name: str) -> tuple[str, Shape] | None:
    """A part of an array, of any shape that its text gives."""
    own = g.scope.arrays[name]
    if len(own) == 1:
        m = g.c.between(1, own[0])
        where = region(g, own[0], m)
        return None if where is None or m < 1 else (f"{name}[{where}]", (m,))
    kind = g.c.below(4)
    rows, columns = own
    if kind == 0:
        return f"{name}[{index(g, rows)}]", (columns,)
    if kind == 1:
        return f"{name}[:, {index(g, columns)}]", (rows,)
    if kind == 2 or not (g.c.chance(0.8) or rows * columns > 100):
        return f"{name}.T", (columns, rows)
    m, k = g.c.between(1, rows), g.c.between(1, columns)
    first, second = region(g, rows, m), region(g, columns, k)
    return None if first is None or second is None else (f"{name}[{first}, {second}]", (m, k))
