"""Random loops over elements, for the property tests of `vectorise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import ckad

#: The arrays that a program has: two vectors and two matrices, the first of each may be written.
N, ROWS, COLUMNS = 9, 6, 7


class Place(NamedTuple):
    """An index ``scale * i + offset``, of the loop's own index or the outer one's."""

    outer: bool
    scale: int
    offset: int
    periodic: bool

    def at(self, i: Any, o: Any, n: int) -> Any:
        index = self.scale * (o if self.outer else i) + self.offset
        return index % n if self.periodic else index


INDEX = Place(False, 1, 0, False)


class Statement(NamedTuple):
    """``target[place] (op)= a combination of reads``."""

    target: str
    places: tuple[Place, ...]
    reads: tuple[tuple[str, tuple[Place, ...]], ...]
    op: str
    twist: str


def places(offsets: int = 2) -> st.SearchStrategy[Place]:
    return st.builds(
        Place,
        st.booleans(),
        st.sampled_from([1, 1, 1, 1, -1, 2, 0]),
        st.integers(-offsets, offsets),
        st.sampled_from([False, False, True]),
    )


def _accesses(names: str) -> st.SearchStrategy[tuple[str, tuple[Place, ...]]]:
    def with_places(name: str) -> st.SearchStrategy[tuple[str, tuple[Place, ...]]]:
        count = {"s": 0, "x": 1, "y": 1}.get(name, 2)
        return st.tuples(st.just(name), st.tuples(*[places()] * count))

    return st.sampled_from(names).flatmap(with_places)


def statements() -> st.SearchStrategy[Statement]:
    return st.builds(
        lambda target, reads, op, twist: Statement(*target, tuple(reads), op, twist),
        _accesses("xxaaas"),
        st.lists(_accesses("xyabyabs"), min_size=1, max_size=3),
        st.sampled_from(["=", "=", "=", "+=", "-=", "max", "larger"]),
        st.sampled_from(["plain", "plain", "sin", "index", "where", "cond", "if", "if first"]),
    )


class Program(NamedTuple):
    """Statements in a loop, or in two nested ones."""

    outer: tuple[int, int] | None
    inner: tuple[int, int]
    before: tuple[Statement, ...]
    body: tuple[Statement, ...]
    after: tuple[Statement, ...]

    def __call__(self, x: Any, y: Any, a: Any, b: Any, s: Any) -> Any:
        fixed = {"y": y, "b": b}

        def inner(o: Any) -> Callable[[Any, Any], Any]:
            return lambda i, state: _run(self.body, i, o, state, fixed)

        def outer(o: Any, state: Any) -> Any:
            state = _run(self.before, o, o, state, fixed)
            state = ckad.fori_loop(*self.inner, inner(o), state)
            return _run(self.after, o, o, state, fixed)

        start = (x * 1.0, a * 1.0, s * 1.0)
        if self.outer is None:
            return ckad.fori_loop(*self.inner, inner(2), start)
        return ckad.fori_loop(*self.outer, outer, start)


def _run(
    statements: tuple[Statement, ...], i: Any, o: Any, state: Any, fixed: dict[str, Any]
) -> Any:
    arrays = {"x": state[0], "a": state[1], "s": state[2], **fixed}
    for statement in statements:
        name = statement.target
        if statement.twist.startswith("if"):
            y = arrays["y"][_index(statement.places[:1] or (INDEX,), i, o, (N,))]
            chosen = y > 0 if statement.twist == "if" else i < 3
            arrays[name] = ckad.cond(
                chosen,
                lambda array, s=statement: _after(s, i, o, {**arrays, s.target: array}),
                lambda array: array,
                arrays[name],
            )
        else:
            arrays[name] = _after(statement, i, o, arrays)
    return arrays["x"], arrays["a"], arrays["s"]


def _after(statement: Statement, i: Any, o: Any, arrays: dict[str, Any]) -> Any:
    """The statement's target after it."""
    new = _value(statement, i, o, arrays)
    array = arrays[statement.target]
    if statement.target == "s":
        return _joined(statement.op, array, new)
    index = _index(statement.places, i, o, array.shape)
    array[index] = _joined(statement.op, array[index], new)
    return array


def _index(places: tuple[Place, ...], i: Any, o: Any, shape: tuple[int, ...]) -> Any:
    index = tuple(p.at(i, o, n) for p, n in zip(places, shape, strict=True))
    return index if len(index) > 1 else index[0]


def _value(statement: Statement, i: Any, o: Any, arrays: dict[str, Any]) -> Any:
    total = 0.3
    for name, where in statement.reads:
        array = arrays[name]
        term = array if name == "s" else array[_index(where, i, o, array.shape)]
        total = 0.5 * total + term * 0.7
    if statement.twist == "sin":
        return np.sin(total)
    if statement.twist == "index":
        return total * i
    if statement.twist == "where":
        return np.where(total > 0.5, total, i * 0.1)
    if statement.twist == "cond":
        return ckad.cond(total > 0.5, lambda t: t * t, lambda t: 0.2 - t, total)
    return total


def _joined(op: str, old: Any, new: Any) -> Any:
    if op == "max":
        return np.maximum(old, new)
    if op == "larger":
        return np.where(new > old, new, old)
    return new if op == "=" else old + new if op == "+=" else old - new


def programs() -> st.SearchStrategy[Program]:
    bounds = st.tuples(st.integers(0, 2), st.integers(3, 6))
    few = st.lists(statements(), max_size=1).map(tuple)
    return st.builds(
        Program,
        st.one_of(st.none(), bounds),
        bounds,
        few,
        st.lists(statements(), min_size=1, max_size=3).map(tuple),
        few,
    )


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes: list[tuple[int, ...]] = [(N,), (N,), (ROWS, COLUMNS), (ROWS, COLUMNS), ()]
    return [rng.normal(size=s) for s in shapes]
