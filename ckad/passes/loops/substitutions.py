"""Loops that substitute, forwards or backwards, as calls of a routine; found as eliminations are.

Both substitutions by the factors of one elimination solve its system: that is one call, whose
derivatives are the system's, with no cotangent of the factors.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from ckad.passes.loops.trial import Runner, Trial, numbers, pivots, ran, trial_of
from ckad.rules.routines.dense.functions.elimination import eliminated
from ckad.rules.routines.dense.functions.substitution import solved_by, substituted
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape


class Substitution(NamedTuple):
    """A loop all of whose results solve a triangular system, and which."""

    trial: Trial
    lower: int
    adjoint: int
    unit: int


def substitution_of(tape: Tape, k: int, run: Runner) -> Substitution | None:
    """What the loop in row k is; None if it does not substitute."""
    trial = trial_of(tape, k, vectors=True)
    if trial is None:
        return None
    for flags in product((1, 0), repeat=3):
        if all(_solves(trial, run, seed, *flags) for seed in range(2)):
            return Substitution(trial, *flags)
    return None


def _solves(trial: Trial, run: Runner, seed: int, lower: int, adjoint: int, unit: int) -> bool:
    rng, n = np.random.default_rng(seed), trial.shape[0]
    matrix, solution = numbers(rng, n, n), numbers(rng, n)
    np.fill_diagonal(matrix, pivots(rng, n))
    triangle = np.tril(matrix, -unit) if lower else np.triu(matrix, unit)
    triangle = triangle + unit * np.eye(n)
    right = (triangle.T if adjoint else triangle) @ solution
    found = ran(trial, run, [matrix, right])
    return found is not None and all(np.array_equal(x, solution) for x in found)


def substitute(b: Builder, matrix: int, right: int, lower: int, adjoint: int, unit: int) -> int:
    """The solution of a triangular system, ``right`` a vector or a matrix."""
    n = b.type(matrix).shape[0]
    shape = b.type(right).shape
    read = np.tri(n, k=-unit, dtype=bool)
    factors = b.reshape_to(_read(b, matrix, read if lower else read.T), (1, n, n))
    whole, first = b.rows[factors], b.rows[_plain(b, right)]
    is_factored = whole.op is Op.CALL and whole.attrs == (eliminated.number,)
    is_second = first.op is Op.CALL and first.attrs == (substituted.number, 1, 0, 1)
    both = is_factored and is_second and first.operands[0] == factors
    if both and (lower, adjoint, unit) == (0, 0, 0):
        operands = *whole.operands, factors, first.operands[1]
        return b.reshape_to(b.call(*operands, attrs=(solved_by.number, 0)), shape)
    stack = b.reshape_to(right, (1, n, *(shape[1:] or (1,))))
    attrs = substituted.number, lower, adjoint, unit
    return b.reshape_to(b.call(factors, stack, attrs=attrs), shape)


def _read(b: Builder, k: int, where: np.ndarray) -> int:
    """A matrix that has the same elements where ``where`` is true, and comes from fewer rows."""
    row = b.rows[k]
    if row.op is Op.RESHAPE and _is_whole(b, row.operands[0], where):
        return _read(b, row.operands[0], where)
    if row.op is Op.SELECT and b.rows[row.operands[0]].op is Op.CONST:
        mask = b.constants[b.rows[row.operands[0]].attrs[0]].reshape(where.shape)[where]
        if np.all(mask) or not np.any(mask):
            return _read(b, row.operands[1 if np.all(mask) else 2], where)
    return k


def _is_whole(b: Builder, k: int, where: np.ndarray) -> bool:
    return b.type(k).shape in (where.shape, (1, *where.shape))


def _plain(b: Builder, k: int) -> int:
    """What is shaped anew."""
    while b.rows[k].op is Op.RESHAPE:
        k = b.rows[k].operands[0]
    return k
