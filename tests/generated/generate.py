"""The program of a seed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from math import prod

from .choices import Choices
from .codas import with_coda
from .compound import returned, statements
from .draft import Draft, fitted
from .expressions import array
from .program import Program
from .scope import LIMIT, Helper, Scope, Shape

#: Lengths of vectors, on both sides of what engines tell apart; and how often.
LENGTHS = (
    *((4.0, n) for n in (3, 5, 8, 9)),
    *((1.5, n) for n in (1, 2, 4, 7, 16, 17, 33)),
    *((2.0, n) for n in (63, 64, 65, 66)),
    *((0.7, n) for n in (100, 129, 255, 256, 257)),
    *((0.1, n) for n in (513, 1000, 2049, 4097, 20_001)),
)
MATRICES: tuple[tuple[float, Shape], ...] = (
    *((3.0, s) for s in ((3, 4), (3, 3), (4, 3), (2, 5))),
    *((1.5, s) for s in ((8, 8), (5, 13), (9, 9), (13, 5), (2, 33), (33, 2), (1, 5), (5, 1))),
    *((0.5, s) for s in ((16, 16), (17, 15), (18, 15), (4, 65), (65, 4), (2, 64))),
    *((0.03, s) for s in ((70, 70), (150, 150))),
)
VECTORS, MATRIX = "uvw", "ABC"


def generated(seed: int) -> Program:
    """The same program for a seed, whatever runs it."""
    c = Choices(seed)
    g = Draft(c, _shapes(c))
    for _ in range(c.weighted(((6, 0), (3, 1), (0.6, 2)))):
        _helper(g)
    kind = c.weighted(((8, "float"), (1, "array"), (1, "pair")))
    shapes = _arguments(g)
    text = _main(g, kind, shapes)
    parts = [_header(g, text), *g.functions, text]
    whole = ast.unparse(ast.parse(with_coda(seed, "\n\n".join(parts), shapes)))
    short = 0 if c.chance(0.5) else 4
    return Program(whole + "\n", tuple(shapes.values()), seed, short, 2 if c.chance(0.2) else 0)


def _shapes(c: Choices) -> list[Shape]:
    """Few, so that arrays meet others of their shape."""
    n = c.weighted(LENGTHS)
    shapes: list[Shape] = [(n,), (n,)]
    if c.chance(0.35):
        shapes.append((c.weighted(LENGTHS) if n < 1000 else n,))
    if c.chance(0.4) and n < 1000:
        rows, columns = c.weighted(MATRICES)
        shapes += [(rows, columns), (c.pick((rows, columns, rows * columns)),)]
        if c.chance(0.3):
            shapes.append((columns, rows))
    return shapes


def _arguments(g: Draft) -> dict[str, Shape | None]:
    """One to three, the first of them an array."""
    chosen: dict[str, Shape | None] = {}
    for k in range(g.c.weighted(((1, 1), (3, 2), (3, 3)))):
        if k == 2 or (k and g.c.chance(0.2)):
            chosen["kr"[k % 2]] = None
            continue
        shape = g.shapes[0] if g.c.chance(0.6) else g.c.pick(g.shapes)
        chosen[VECTORS[k] if len(shape) == 1 else MATRIX[k]] = shape
    return chosen


def _main(g: Draft, kind: str, arguments: dict[str, Shape | None]) -> str:
    name = "program" if kind == "float" else "inner"
    scope = Scope(
        arrays={x: s for x, s in arguments.items() if s is not None},
        floats=[x for x, s in arguments.items() if s is None],
        returns={"float": ((),), "array": (g.shapes[0],), "pair": (g.shapes[0], ())}[kind],
    )
    functions, header = g.functions, f"def {name}({', '.join(arguments)}):"
    g.functions = []
    with g.function(header, scope):
        g.left = g.c.weighted(((3, 5), (4, 9), (3, 13), (1, 20)))
        _beginning(g)
        statements(g, g.c.between(3, 9))
        g.emit(f"return {_result(g)}")
    *steps, text = g.functions
    g.functions = functions + steps
    return text if kind == "float" else text + _reduced(kind, list(arguments), g.shapes[0])


def _reduced(kind: str, arguments: Sequence[str], shape: Shape) -> str:
    call = f"inner({', '.join(arguments)})"
    weighed = f"np.sum({{}} * {_weights(shape)})"
    if kind == "array":
        body = f"return {weighed.format(call)}"
    else:
        body = f"x, s = {call}\n    return {weighed.format('x')} + 0.7 * s"
    return f"\n\ndef program({', '.join(arguments)}):\n    {body}"


def _beginning(g: Draft) -> None:
    """Arrays and numbers of the program's own."""
    if g.c.chance(0.7):
        s = g.fresh("s")
        g.emit(f"{s} = {g.c.number(0.1, 0.9)}")
        g.scope.floats.append(s)
    for _ in range(g.c.weighted(((2, 0), (2, 1), (2, 2)))):
        shape = g.c.pick(list(g.scope.arrays.values()))
        name, value = g.fresh("x"), fitted(array(g, shape, 1), LIMIT)
        g.emit(f"{name} = {value}")
        g.scope.arrays[name] = shape
    if g.c.chance(0.2):
        u = g.c.pick(list(g.scope.arrays))
        g.emit(f"{u} = {u}.copy()")


def _weights(shape: Shape) -> str:
    if len(shape) == 1:
        return f"WEIGHTS[:{shape[0]}]"
    return f"WEIGHTS[:{prod(shape)}].reshape({shape[0]}, {shape[1]})"


def _result(g: Draft) -> str:
    """All that the program has computed, or a result of the shape that is asked for."""
    shapes = g.scope.returns
    if shapes != ((),):
        return returned(g)
    terms = [_weighed(g, u, s) for u, s in g.scope.arrays.items()]
    terms += [f"{g.c.number(0.3, 1.0)} * {s}" for s in g.scope.floats]
    if len(terms) > 8:
        terms = g.c.some(terms, 8)
    return " + ".join(terms) or "0.0"


def _weighed(g: Draft, u: str, shape: Shape) -> str:
    """A sum that tells elements apart."""
    kind = g.c.below(5)
    if kind == 0:
        return f"np.sum({u} ** 2 * {_weights(shape)})"
    if kind == 1 and len(shape) == 1:
        return f"{u} @ {_weights(shape)}"
    if kind == 2:
        return f"np.sum(np.sin({u}) * {_weights(shape)})"
    return f"np.sum({u} * {_weights(shape)})"


def _header(g: Draft, text: str) -> str:
    text = "\n".join([*g.functions, text])
    lines = ["import numpy as np"]
    lines += ["import math"] if "math." in text else []
    lines += ["import ckad"] if "ckad." in text else []
    largest = max(map(int, re.findall(r"WEIGHTS\[:(\d+)\]", text)), default=0)
    lines += [f"WEIGHTS = np.cos(np.arange({largest}.0))"] if largest else []
    lines += ["FLAG = True"] if "FLAG" in text else []
    lines += ["COUNT = 3"] if "COUNT" in text else []
    return "\n".join(lines)


def _helper(g: Draft) -> None:
    """A function that returns a number or an array, or writes into its argument."""
    name = g.fresh("h")
    arrays = tuple(g.c.pick(g.shapes) for _ in range(g.c.between(1, 2)))
    result: Shape | None = g.c.weighted(((3, ()), (2, g.c.pick(g.shapes)), (2, None)))
    names = ("x", "y")[: len(arrays)]
    scope = Scope(
        arrays=dict(zip(names, arrays, strict=True)),
        floats=["k"],
        steps=8,
        depth=1,
        returns=() if result is None else (result,),
    )
    with g.function(f"def {name}({', '.join([*names, 'k'])}):", scope):
        g.left = g.c.between(1, 5)
        statements(g, g.c.between(1, 3))
        if result is not None:
            g.emit(f"return {returned(g)}")
    g.helpers.append(Helper(name, arrays, result, 8))
