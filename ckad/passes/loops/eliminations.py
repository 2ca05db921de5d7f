"""Loops that eliminate are calls of a routine that does so in blocks.

However LU factors without an order of rows are written, by elements, by products of parts of rows
and columns, by rows that are subtracted from others, with right-hand sides or without: what a loop
leaves where is read off what it makes of matrices whose factors are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ckad.passes.loops.substitutions import substitute, substitution_of
from ckad.passes.loops.trial import (
    LEAST,
    Factors,
    Runner,
    Trial,
    of_zeros,
    trial_of,
    tried,
    with_a_negative_pivot,
)
from ckad.passes.rewrite import in_bodies
from ckad.rules.routines.dense.functions.elimination import eliminated
from ckad.rules.routines.dense.functions.rooted import rooted
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

__all__ = ["Runner", "eliminations"]

_Formula = Callable[[Factors], np.ndarray]
#: What may lie below the diagonal, on it, above it, and to the right of the square.
_BELOW: Mapping[str, _Formula] = {
    "factors": lambda f: f.lower,
    "zeros": lambda f: np.zeros_like(f.lower),
    "given": lambda f: f.square,
    "times pivots": lambda f: f.lower * np.diag(f.upper),
}
_ON: Mapping[str, _Formula] = {
    "factors": lambda f: f.upper,
    "ones": lambda f: np.ones_like(f.lower),
    "zeros": lambda f: np.zeros_like(f.lower),
}
_ABOVE: Mapping[str, _Formula] = {
    "factors": lambda f: f.upper,
    "zeros": lambda f: np.zeros_like(f.lower),
    "given": lambda f: f.square,
    "over pivots": lambda f: f.upper / np.diag(f.upper)[:, None],
}
#: What zeros and ones are that come of dividing.
_COMPUTED = {"zeros": "zero times factors", "ones": "pivots over themselves"}
_RIGHT: Mapping[str, _Formula] = {"factors": lambda f: f.solved, "given": lambda f: f.beside}
_Outcome = list[tuple[Factors, list[np.ndarray]]]


class _Said(NamedTuple):
    """What one result of a loop is: a matrix by its parts, or a vector and which."""

    below: str = ""
    on: str = ""
    above: str = ""
    right: str = ""  # "none" of a square one
    side: int = -1


class _Elimination(NamedTuple):
    """A loop, and what its results are; ``turned`` if it reads the upper triangle alone."""

    trial: Trial
    said: list[_Said]
    turned: bool


def eliminations(tape: Tape, run: Runner) -> Tape:
    """``tape`` with loops that eliminate, those in bodies too, as calls; ``run`` tries them."""
    if not _may_hold(tape):
        return tape
    tape = in_bodies(tape, partial(eliminations, run=run))
    loops = [k for k, row in enumerate(tape.rows) if row.op is Op.LOOP]
    told = {k: _elimination(tape, k, run) or substitution_of(tape, k, run) for k in loops}
    if not any(told.values()):
        return tape
    b, env = Builder(), dict[int, int]()
    results = dict[tuple[int, int], int]()
    for k, row in enumerate(tape.rows):
        b.where = tape.sources[row.source]
        about = told.get(k)
        if isinstance(about, _Elimination):
            parts = (_Roots if about.trial.roots else _Parts)(b, about, env)
            results |= {(k, i): parts.result(x) for i, x in enumerate(about.said)}
        elif about is not None:
            trial, *flags = about
            solution = substitute(b, env[trial.matrix], env[trial.sides[0]], *flags)
            results |= {(k, i): solution for i in range(len(trial.tape.outputs))}
        elif row.op is Op.RESULT and (row.operands[0], row.attrs[0]) in results:
            env[k] = results[row.operands[0], row.attrs[0]]
        else:
            env[k] = b.copy_row(tape, k, env)
    return b.tape([env[k] for k in tape.outputs.tolist()])


def _may_hold(tape: Tape) -> bool:
    """Whether there is a loop that is given a matrix which is large enough."""
    own = (x for row in tape.rows if row.op is Op.LOOP for x in row.operands)
    types = (tape.rows[x].type for x in own)
    large = any(t.is_array and len(t.shape) == 2 and min(t.shape) >= LEAST for t in types)
    return large or any(map(_may_hold, tape.bodies))


def _elimination(tape: Tape, k: int, run: Runner) -> _Elimination | None:
    """What the results of the loop in row k are; None if it is no elimination."""
    trial = trial_of(tape, k)
    if trial is None:
        return None
    for turned in (False, True) if trial.roots else (False,):
        outcome = tried(trial, run, turned)
        if outcome is None:
            return None
        said = [_said(trial, outcome, i) for i in range(len(outcome[0][1]))]
        known = [x for x in said if x is not None]
        of_factors = any(not {x.below, x.above}.issubset({"", "zeros", "given"}) for x in known)
        if of_factors and len(known) == len(said):
            computed = of_zeros(trial, run)
            if computed is None or (trial.roots and not _are_roots(trial, run, known, turned)):
                return None
            known = [_computed(x, found) for x, found in zip(known, computed, strict=True)]
            return _Elimination(trial, known, turned)
    return None


def _are_roots(trial: Trial, run: Runner, said: list[_Said], turned: bool) -> bool:
    """Whether roots are of pivots, NaN if these are negative, and not of what has their values."""
    parts = _triangles(trial.shape[0])
    for after, results in with_a_negative_pivot(trial, run, turned):
        if len(results) != len(said):
            return False
        for x, found in zip(said, results, strict=True):
            of_factors = [w for name, w in zip(x[:3], parts, strict=True) if name == "factors"]
            if not all(np.array_equal(np.isnan(found)[w], after[w]) for w in of_factors):
                return False
    return True


def _computed(said: _Said, found: np.ndarray) -> _Said:
    """Zeros and ones that the loop does not write but computes, NaN where it divides by zero."""
    if said.side >= 0:
        return said
    names = []
    for name, where in zip(said[:3], _triangles(found.shape[0]), strict=True):
        is_computed = name in _COMPUTED and np.any(np.isnan(found[:, : len(where)][where]))
        names.append(_COMPUTED[name] if is_computed else name)
    below, on, above = names
    return _Said(below, on, above, said.right)


def _triangles(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is below the diagonal of n rows, on it, and above it."""
    lower = np.tri(n, k=-1, dtype=bool)
    return lower, np.eye(n, dtype=bool), lower.T


def _said(trial: Trial, outcome: _Outcome, i: int) -> _Said | None:
    """What result i is."""
    n, columns = trial.shape
    shape = outcome[0][1][i].shape
    if shape == (n,):
        for k in range(len(trial.sides)):
            if all(np.array_equal(f.solved_sides[k], results[i]) for f, results in outcome):
                return _Said(side=k)
        return None
    if shape not in ((n, n), (n, columns)):
        return None
    lower, diagonal, upper = _triangles(n)
    below, above = _name(_BELOW, outcome, i, lower), _name(_ABOVE, outcome, i, upper)
    on, beside = _name(_ON, outcome, i, diagonal), np.ones((n, columns - n), bool)
    if trial.roots and not {below, on, above} <= {"factors", "zeros", "given"}:
        return None
    right = _name(_RIGHT, outcome, i, beside, n) if shape[1] > n else "none"
    return _Said(below, on, above, right) if below and on and above and right else None


def _name(
    formulas: Mapping[str, _Formula], outcome: _Outcome, i: int, where: np.ndarray, start: int = 0
) -> str:
    """The formula of a part of result i."""
    stop = start + where.shape[1]
    for name, formula in formulas.items():
        if all(
            np.array_equal(formula(f)[where], results[i][:, start:stop][where])
            for f, results in outcome
        ):
            return name
    return ""


class _Parts:
    """The parts of results on a tape, each computed once, if at all."""

    def __init__(self, b: Builder, about: _Elimination, env: Mapping[int, int]) -> None:
        trial = about.trial
        self.b, self.turned = b, about.turned
        self.n, self.columns = trial.shape
        self.matrix, self.sides = env[trial.matrix], [env[x] for x in trial.sides]

    def result(self, said: _Said) -> int:
        if said.side >= 0:
            return self._solved(self.sides[said.side])
        square = self._square(said)
        if said.right == "none":
            return square
        right = self._beside if said.right == "given" else self._solved(self._beside)
        return self.b.concat(square, right, attrs=(1,))

    def _square(self, said: _Said) -> int:
        lower, _, upper = _triangles(self.n)
        found, below = self._part(said.on), self._part(said.below)
        above = self._part(said.above, is_above=True)
        for part, where in ((above, upper), (below, lower)):
            if part != found:
                found = self.b.select(self.b.const(where), part, found)
        return found

    def _part(self, name: str, is_above: bool = False) -> int:
        b, shape = self.b, (self.n, self.n)
        if name == "factors":
            return self._above if is_above else self._factors
        if name == "zero times factors":
            # what a factor of an infinite pivot, or of a zero, is times that is no number
            factors = self._part("factors" if is_above else "times pivots", is_above)
            return b.mul(factors, b.full_like(factors, 0.0))
        if name == "pivots over themselves":
            pivots = b.div(self._pivots, self._pivots)
            return b.broadcast_to(b.reshape_to(pivots, (1, self.n)), shape)
        if name == "given":
            return self._given
        if name in ("zeros", "ones"):
            return b.full_like(self._given, float(name == "ones"))
        if name == "times pivots":
            pivots = b.broadcast_to(b.reshape_to(self._pivots, (1, self.n)), shape)
            return b.mul(self._factors, pivots)
        pivots = b.broadcast_to(b.reshape_to(self._pivots, (self.n, 1)), shape)
        return b.div(self._factors, pivots)

    @cached_property
    def _given(self) -> int:
        return self._columns(0, self.n)

    @cached_property
    def _beside(self) -> int:
        return self._columns(self.n, self.columns)

    def _columns(self, start: int, stop: int) -> int:
        if (start, stop) == (0, self.columns):
            return self.matrix
        type = self.b.type(self.matrix).with_shape((self.n, stop - start))
        return self.b.slice(self.matrix, attrs=(0, start, 1, 1), type=type)

    @cached_property
    def _factors(self) -> int:
        n = self.n
        stack = self.b.reshape_to(self._given, (1, n, n))
        return self.b.reshape_to(self.b.call(stack, attrs=(eliminated.number,)), (n, n))

    @property
    def _above(self) -> int:
        """What has the factors above its diagonal."""
        return self._factors

    @cached_property
    def _pivots(self) -> int:
        b = self.b
        eye = b.const(np.eye(self.n, dtype=bool))
        return b.sum(b.select(eye, self._factors, b.full_like(self._factors, 0.0)), attrs=(1,))

    def _solved(self, right: int) -> int:
        """L^-1 of a vector or of columns."""
        return substitute(self.b, self._factors, right, 1, 0, 1)


class _Roots(_Parts):
    """Those of Cholesky's factor."""

    @cached_property
    def _factors(self) -> int:
        n = self.n
        given = self._turned(self._given) if self.turned else self._given
        stack = self.b.reshape_to(given, (1, n, n))
        return self.b.reshape_to(self.b.call(stack, attrs=(rooted.number,)), (n, n))

    @cached_property
    def _above(self) -> int:
        return self._turned(self._factors)

    def _turned(self, x: int) -> int:
        return self.b.transpose(x, attrs=(1, 0))
