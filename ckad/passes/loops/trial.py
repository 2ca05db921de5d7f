"""Loops of exact arithmetic that may eliminate, tried on matrices of known factors.

A loop that adds, multiplies and divides elements, with no choice that depends on them, is a
rational function of these, whatever way it is written in. Of random integers whose pivots are
powers of two an elimination rounds nothing, so what such a loop computes is told from the very
bits of its results: two rational functions that agree there are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ckad.errors import CkadError
from ckad.tape.builder import Builder
from ckad.tape.control import COUNTED, UNGUARDED, Loop, read_loop
from ckad.tape.ops import OPS, Group, Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import DType

#: What runs a tape on arrays.
Runner = Callable[[Tape, Sequence[np.ndarray]], list[np.ndarray]]
#: Matrices of fewer rows stay as they are written.
LEAST = 16
#: Rows, and vectors of elements, of loops that would be tried for too long.
_MOST, _VECTOR = 1.5e9, 8
#: So often a loop is tried.
_TIMES = 2
#: Bits of elements; most places of a pivot's only bit on either side of the point, and of a root.
_BITS, _PLACES, _OF_ROOT = 8, 20, 8

_EXACT = {
    *(Op.INPUT, Op.RESULT, Op.NEG, Op.SQRT, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.FMA, Op.SELECT),
    *(Op.SUM, Op.MATMUL, Op.GATHER, Op.SCATTER, Op.SCATTER_ADD, Op.WRAP, Op.LOOP, Op.COND),
}
_OF_INTEGERS = {
    *(Op.MAXIMUM, Op.MINIMUM, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.AND, Op.OR, Op.NOT),
    *(Op.XOR, Op.FLOORDIV, Op.MOD, Op.ABS),
}
#: Numbers that are added to nothing and multiply exactly; one half stands where nothing is read.
_PLAIN = (0.0, 0.5, 1.0, 2.0)


class Trial(NamedTuple):
    """A loop to be tried: its operands of unknown numbers, and the tape that runs it on them."""

    tape: Tape
    matrix: int  # the operand that is eliminated
    sides: tuple[int, ...]  # vectors beside it
    places: tuple[int, ...]  # of the tape's inputs: 0 the matrix, k the k-th side
    roots: bool  # whether it takes square roots, as Cholesky's factors are made of

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.tape.input_types[self.places.index(0)].shape
        return rows, columns


class Factors(NamedTuple):
    """A matrix of n rows with its factors: what lies to the right of its first n columns, too."""

    square: np.ndarray  # its first n columns
    lower: np.ndarray  # L, with ones on its diagonal unless it is Cholesky's
    upper: np.ndarray  # U
    solved: np.ndarray  # L^-1 of what is to the right
    solved_sides: tuple[np.ndarray, ...]  # and of the vectors beside the matrix

    @property
    def beside(self) -> np.ndarray:
        product: np.ndarray = self.lower @ self.solved
        return product

    @property
    def given(self) -> list[np.ndarray]:
        """The matrix, and what lies beside it."""
        sides = [self.lower @ x for x in self.solved_sides]
        return [np.hstack([self.square, self.beside]), *sides]


def trial_of(tape: Tape, k: int, vectors: bool = False) -> Trial | None:
    """Of the loop in row k, which gives matrices and perhaps vectors, or ``vectors`` alone; None if
    it does anything that an elimination or a substitution does not."""
    loop = read_loop(tape, tape.rows[k])
    if not (_has_form(tape, loop, vectors) and _is_exact(loop.body)):
        return None
    if not (vectors or _divides(loop.body)):
        return None
    if loop.length * _work(loop.body) > _MOST:
        return None
    b, env, places = Builder(), dict[int, int](), list[int]()
    found = list[int]()
    for x in (*loop.carry, *loop.captured):
        if x in env:
            continue
        if _is_known(tape, x):
            _copied(b, tape, x, env)
            continue
        type = tape.rows[x].type
        if type.dtype is not DType.F64 or len(type.shape) not in (1, 2):
            return None
        env[x] = b.input(type)
        found.append(x)
    matrices = [x for x in found if len(tape.rows[x].type.shape) == 2]
    if len(matrices) != 1:
        return None
    rows, columns = tape.rows[matrices[0]].type.shape
    sides = [x for x in found if x not in matrices]
    if not LEAST <= rows <= columns or loop.length not in (rows - 1, rows):
        return None
    if any(tape.rows[x].type.shape != (rows,) for x in sides):
        return None
    if vectors and (rows != columns or len(sides) != 1):
        return None
    roots = _takes_roots(loop.body)
    if roots and (sides or rows != columns):
        return None
    places = [0 if x in matrices else 1 + sides.index(x) for x in found]
    made = b.copy_row(tape, k, env)
    results = [b.emit(Op.RESULT, [made], (i,), tape.rows[x].type) for i, x in enumerate(loop.carry)]
    return Trial(b.tape(results), matrices[0], tuple(sides), tuple(places), roots)


def _has_form(tape: Tape, loop: Loop, vectors: bool) -> bool:
    types = [tape.rows[x].type for x in loop.carry]
    floats = all(t.dtype is DType.F64 and len(t.shape) in (1, 2) for t in types)
    only_vectors = all(len(t.shape) == 1 for t in types)
    plain = loop.guard == UNGUARDED and not loop.xs and not loop.n_ys
    return plain and floats and bool(types) and only_vectors == vectors


def _work(tape: Tape) -> float:
    """Rows that are done, those on large arrays by the vector."""
    total = 0.0
    for row in tape.rows:
        if row.op is Op.LOOP:
            loop = read_loop(tape, row)
            total += loop.length * _work(loop.body) / (2 if loop.guard == COUNTED else 1)
        elif row.op is Op.COND:
            total += sum(_work(tape.bodies[k]) for k in row.attrs)
        elif row.type.is_array:
            moves = OPS[row.op].group in (Group.LEAF, Group.SHAPE)
            changed = row.operands[2] if row.op in (Op.SCATTER, Op.SCATTER_ADD) else None
            size = row.type.size if changed is None else tape.rows[changed].type.size
            total += 1 if moves else 1 + size / _VECTOR
    return total


def _divides(tape: Tape) -> bool:
    return any(row.op is Op.DIV for row in tape.rows) or any(map(_divides, tape.bodies))


def _takes_roots(tape: Tape) -> bool:
    return any(row.op is Op.SQRT for row in tape.rows) or any(map(_takes_roots, tape.bodies))


def _is_exact(tape: Tape) -> bool:
    return all(_is_exact_row(tape, row) for row in tape.rows) and all(map(_is_exact, tape.bodies))


def _is_exact_row(tape: Tape, row: Row) -> bool:
    if row.op is Op.CONST:
        constant = tape.constants[row.attrs[0]]
        return constant.dtype.kind != "f" or bool(np.isin(np.abs(constant), _PLAIN).all())
    if row.op is Op.LOOP:
        return read_loop(tape, row).guard in (UNGUARDED, COUNTED)
    if row.op in _OF_INTEGERS or row.op is Op.CONVERT:
        # a choice by the truth of an element is one by its value
        return not any(t.is_float for t in (row.type, *(tape.rows[x].type for x in row.operands)))
    return row.op in _EXACT or OPS[row.op].group is Group.SHAPE


def _is_known(tape: Tape, k: int) -> bool:
    """Whether it follows from constants that are exact, by few rows."""
    row = tape.rows[k]
    if row.op in (Op.INPUT, Op.RESULT, Op.LOOP) or OPS[row.op].group is Group.CONTROL:
        return False
    return _is_exact_row(tape, row) and all(_is_known(tape, x) for x in row.operands)


def _copied(b: Builder, tape: Tape, k: int, env: dict[int, int]) -> int:
    if k not in env:
        for x in tape.rows[k].operands:
            _copied(b, tape, x, env)
        env[k] = b.copy_row(tape, k, env)
    return env[k]


def ran(trial: Trial, run: Runner, given: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """What the loop makes of a matrix and what is beside it; None if it stops."""
    try:
        return run(trial.tape, [given[place] for place in trial.places])
    except (CkadError, IndexError, ArithmeticError):
        return None


def tried(
    trial: Trial, run: Runner, turned: bool = False
) -> list[tuple[Factors, list[np.ndarray]]] | None:
    """Known factors, and what the loop makes of their product; several times."""
    found = []
    for seed in range(_TIMES):
        rng = np.random.default_rng(seed)
        factors = _cholesky(rng, trial, turned) if trial.roots else _factors(rng, trial)
        results = ran(trial, run, factors.given)
        if results is None:
            return None
        found.append((factors, results))
    return found


def _factors(rng: np.random.Generator, trial: Trial) -> Factors:
    n, columns = trial.shape
    lower = np.tril(numbers(rng, n, n), -1) + np.eye(n)
    upper = np.triu(numbers(rng, n, n), 1) + np.diag(pivots(rng, n))
    solved = numbers(rng, n, columns - n)
    sides = tuple(numbers(rng, n) for _ in trial.sides)
    return Factors(lower @ upper, lower, upper, solved, sides)


def _cholesky(
    rng: np.random.Generator, trial: Trial, turned: bool, negative: int | None = None
) -> Factors:
    """Of a matrix whose upper triangle, or if it is ``turned`` its lower one, is anything; with one
    pivot that is ``negative``."""
    n, _ = trial.shape
    root = np.tril(numbers(rng, n, n), -1) + np.diag(np.abs(pivots(rng, n, _OF_ROOT)))
    kept, signs = np.tri(n, dtype=bool), np.where(np.arange(n) == negative, -1.0, 1.0)
    square = np.where(kept.T if turned else kept, (root * signs) @ root.T, numbers(rng, n, n))
    return Factors(square, root, root.T, np.empty((n, 0)), ())


def with_a_negative_pivot(
    trial: Trial, run: Runner, turned: bool
) -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """Where factors come after the pivot that is negative, and what the loop makes of the matrix,
    nothing if it stops: for the first pivot and another."""
    n, found = trial.shape[0], []
    for k in (0, n // 2):
        factors = _cholesky(np.random.default_rng(k), trial, turned, k)
        after = np.minimum.outer(np.arange(n), np.arange(n)) >= k
        found.append((after, ran(trial, run, factors.given) or []))
    return found


def of_zeros(trial: Trial, run: Runner) -> list[np.ndarray] | None:
    """What the loop makes of nothing but zeros, by which it divides."""
    types = [trial.tape.input_types[trial.places.index(k)] for k in sorted({*trial.places})]
    return ran(trial, run, [np.zeros(t.shape) for t in types])


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integers of few bits, none of them zero."""
    found: np.ndarray = rng.integers(1, 2**_BITS, shape) * rng.choice([-1.0, 1.0], shape)
    return found


def pivots(rng: np.random.Generator, n: int, most: int = _PLACES) -> np.ndarray:
    """Powers of two, by which everything can be divided."""
    places = rng.integers(-most, most + 1, n)
    found: np.ndarray = np.ldexp(rng.choice([-1.0, 1.0], n), places)
    return found
