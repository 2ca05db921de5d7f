"""How the elements of a sparse derivative come out of a few products; made once per tape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import DifferentiationError
from ckad.passes import pipeline
from ckad.passes.dependence import LARGEST, Columns, dependence, diagonals_of
from ckad.patterns import Pattern
from ckad.trace.values.tracer import Tracer
from ckad.transforms.call import Call, also_cleared
from ckad.transforms.repeated.recording import remember
from ckad.transforms.sparse.colouring import (
    bound,
    columns_coloured,
    n_colours,
    picked,
    symmetric_coloured,
    turned,
)

#: A term takes about half of what a seed does: so many for one element of a row are worth it.
MORE_TERMS = 2
#: The share of elements that are put to their places one by one rather than all of them copied.
FEW = 0.1
#: Shapes of the arrays whose elements are a pattern's rows and columns.
Shapes = tuple[Sequence[int], Sequence[int]]

#: The patterns and recipes of tapes, found again by their contents.
_patterns: OrderedDict[Any, Found] = OrderedDict()
_recipes: OrderedDict[Any, Recipe] = OrderedDict()
also_cleared.extend([_patterns, _recipes])


class Found(NamedTuple):
    """A pattern that is kept."""

    pattern: Pattern

    @property
    def nbytes(self) -> int:
        return int(self.pattern.indices.nbytes + self.pattern.indptr.nbytes)


class Recipe(NamedTuple):
    """Products to be made, and where in them the elements are."""

    pattern: Pattern
    mode: str  # "fwd": of the matrix with each seed; "rev": of its transpose; "terms": no seeds
    seeds: np.ndarray  # float [n_colours, n]
    places: np.ndarray  # integers [nnz]: of each element in the products, flat
    astray: np.ndarray | None = None  # elements whose place is another, where few are
    more: tuple[tuple[np.ndarray, np.ndarray], ...] = ()  # elements that further places add to

    @property
    def nbytes(self) -> int:
        own = self.seeds.nbytes + self.places.nbytes + 2 * self.pattern.indices.nbytes
        more = sum(to.nbytes + places.nbytes for to, places in self.more)
        return int(own + more + (0 if self.astray is None else self.astray.nbytes))

    def elements(self, products: Any) -> Any:
        """The elements, row after row, from what the products gave."""
        flat = products.reshape(-1)
        if isinstance(flat, Tracer):
            return self._traced(flat)
        if self.astray is not None:
            flat[self.astray] = flat[self.places[self.astray]]
            return flat
        out = np.empty(len(self.places), flat.dtype)
        picked(out, flat, self.places)
        for to, places in self.more:
            out[to] += flat[places]
        return out

    def _traced(self, flat: Any) -> Any:
        found = np.take(flat, self.places)
        for to, places in self.more:
            every = np.full(len(self.places), flat.size)
            every[to] = places
            found = found + np.take(np.concatenate([flat, np.zeros(1, flat.dtype)]), every)
        return found


def pattern_of(call: Call, wrt: Sequence[int], second: bool = False) -> Pattern:
    """Which elements of the Jacobian by the inputs ``wrt`` may differ from 0, or of the Hessian."""
    known = _known(call)
    key = _key(call, known, tuple(wrt), second)

    def found() -> Found:
        about = tuple(wrt), known
        return Found(_hessian(call, *about) if second else _jacobian(call, *about))

    return call.once(("pattern", key), lambda: remember(_patterns, key, found)).pattern


def recipe_of(
    call: Call, wrt: Sequence[int], mode: str, given: Pattern | None = None, second: bool = False
) -> Recipe:
    """The recipe of a Jacobian, or a Hessian, of a pattern that is ``given`` or found."""
    how = second, mode, given, call.contracts
    key = _key(call, _known(call), tuple(wrt), *how)
    dtype = call.tape.input_types[wrt[0]].numpy
    shapes = call.tape.output_types[0].shape, call.tape.input_types[wrt[0]].shape

    def made() -> Recipe:
        pattern = pattern_of(call, wrt, second) if given is None else given
        if second:
            return _symmetric(mirrored(pattern), dtype)
        found = _of_terms(call, wrt[0], pattern) if given is None and mode == "auto" else None
        return _recipe(pattern, mode, shapes, dtype) if found is None else found

    return call.once(("recipe", key), lambda: remember(_recipes, key, made))


def _known(call: Call) -> dict[int, np.ndarray]:
    """The arguments of integers and bools, on which a pattern may depend."""
    types = call.tape.input_types
    arrays = call.arguments.arrays
    return {
        k: np.asarray(x, types[k].numpy)
        for k, x in enumerate(arrays)
        if not types[k].is_float and not isinstance(x, Tracer)
    }


def _key(call: Call, known: dict[int, np.ndarray], *about: Any) -> tuple[Any, ...]:
    numbers = tuple((k, x.tobytes()) for k, x in known.items())
    return (call.tape.identity, numbers, *about)


# --- patterns ------------------------------------------------------------------------------------


def _jacobian(call: Call, wrt: Sequence[int], known: dict[int, np.ndarray]) -> Pattern:
    return _pattern(call, dependence(call.tape, wrt, known)[0])


def _hessian(call: Call, wrt: Sequence[int], known: dict[int, np.ndarray]) -> Pattern:
    """What the gradient depends on; where only one of two mirrored elements is, both are 0."""
    tape = pipeline.inlined().run(call.made(pipeline.gradient, tuple(wrt)))
    rows = dependence(tape, wrt, known)[-1]
    matrix = _pattern(call, rows).csr(np.ones(_pattern(call, rows).nnz, bool))
    return _of(matrix.multiply(matrix.T).tocsr())


def _pattern(call: Call, found: Columns) -> Pattern:
    m, n = found.rows.shape
    shared = int(found.common.sum())
    if found.rows.nnz + shared * m > LARGEST:
        raise DifferentiationError.here(
            f"a derivative of {call.name} with {m:,} rows and {n:,} columns is not sparse, as "
            f"far as its program tells: {shared:,} columns have elements in every row. Pass "
            "sparsity= if you know better, or use ckad.jvp, ckad.vjp or ckad.hvp."
        )
    return _of(found.whole())


def _of(matrix: Any) -> Pattern:
    matrix.sort_indices()
    return Pattern(type(matrix), matrix.shape, matrix.indptr, matrix.indices)


# --- recipes -------------------------------------------------------------------------------------


def _recipe(pattern: Pattern, mode: str, shapes: Shapes, dtype: np.dtype) -> Recipe:
    by_mode = {"fwd": (pattern, shapes[1]), "rev": (turned(pattern), shapes[0])}
    modes = [mode] if mode != "auto" else sorted(by_mode, key=lambda m: bound(by_mode[m][0]))
    best, colours = modes[0], columns_coloured(*by_mode[modes[0]])
    for other in modes[1:]:
        if bound(by_mode[other][0]) < n_colours(colours):
            tried = columns_coloured(*by_mode[other])
            if n_colours(tried) < n_colours(colours):
                best, colours = other, tried
    m, n = pattern.shape
    if best == "fwd":
        places = colours[pattern.indices] * m + pattern.rows
    else:
        places = colours[pattern.rows] * n + pattern.indices
    return Recipe(pattern, best, _seeds(colours, dtype), _narrow(places))


def _of_terms(call: Call, wrt: int, pattern: Pattern) -> Recipe | None:
    """Where the tape gives each element by itself, in no more arrays than there are in a row."""
    found = diagonals_of(pipeline.derived(call.contracts).run(call.tape), wrt)
    least = max(min(bound(pattern), bound(turned(pattern))), 1)
    if found is None or found.places.shape[1] > MORE_TERMS * least:
        return None
    row, term = np.nonzero(found.places >= 0)
    at = row * pattern.shape[1] + found.places[row, term]
    order = np.argsort(at, kind="stable")
    at, places = at[order], (row * found.places.shape[1] + term)[order]
    is_first = np.append(True, at[1:] != at[:-1])
    if not np.array_equal(at[is_first], pattern.places):
        return None
    more = _repeated(is_first, places)
    astray, places = None, places[is_first]
    if len(places) == found.places.size:
        others = np.flatnonzero(places != np.arange(len(places)))
        astray = others if len(others) < FEW * len(places) else None
    return Recipe(pattern, "terms", np.zeros((0, 0)), _narrow(places), astray, more)


def _repeated(
    is_first: np.ndarray, places: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Where several terms of a row are one element, as at repeated edges: the second ones, ..."""
    to = np.cumsum(is_first) - 1
    rank = np.arange(len(to)) - np.flatnonzero(is_first)[to]
    levels = range(1, int(rank.max(initial=0)) + 1)
    return tuple((to[rank == k], places[rank == k]) for k in levels)


def mirrored(pattern: Pattern) -> Pattern:
    matrix = pattern.csr(np.ones(pattern.nnz, bool))
    return _of((matrix + matrix.T).tocsr())


def _symmetric(pattern: Pattern, dtype: np.dtype) -> Recipe:
    """Of two mirrored elements one is alone of its colour in its row."""
    colours = symmetric_coloured(pattern)
    n, rows, columns = pattern.shape[0], pattern.rows, pattern.indices.astype(np.int64)
    products = rows * n_colours(colours) + colours[columns]
    _, which, counts = np.unique(products, return_inverse=True, return_counts=True)
    alone = counts[which] == 1
    places = np.where(alone, colours[columns] * n + rows, colours[rows] * n + columns)
    return Recipe(pattern, "sym", _seeds(colours, dtype), _narrow(places))


def _narrow(places: np.ndarray) -> np.ndarray:
    """In 32 bits where they fit, half of what is read beside the elements."""
    return places.astype(np.int32) if places.max(initial=0) < 2**31 else places


def _seeds(colours: np.ndarray, dtype: np.dtype) -> np.ndarray:
    seeds = np.zeros((n_colours(colours), len(colours)), dtype)
    seeds[colours, np.arange(len(colours))] = 1.0
    return seeds
