"""Batched tapes: what they give for a member is what the tape gives for it alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ckad.passes.batched import batched
from ckad.passes.pipeline import adjoint_of_tape
from ckad.rules import RULES
from ckad.rules.evaluate import evaluate
from ckad.tape.ops import Group, Op
from ckad.tape.tape import Tape
from ckad.tape.verify import verify

from ..ops.case import Case
from ..ops.cases import OCCURS_IN, cases_of

OPS = [op for op in Op if op not in OCCURS_IN and op is not Op.CALL]
DIFFERENTIABLE = [op for op in OPS if op.row.group is Group.CONTROL or RULES[op].jvp is not None]
#: Cases of one op that are looked at; they begin with one of each kind.
CASES = 12


def members_of(x: np.ndarray) -> np.ndarray:
    """Three members: an array, its elements from the end, and moved by one."""
    return np.stack([x, np.flip(x), np.roll(x, 1)])


def check(tape: Tape, arrays: Sequence[np.ndarray], flags: Sequence[bool]) -> None:
    given = [members_of(x) if f else x for x, f in zip(arrays, flags, strict=True)]
    made = batched(tape, flags, 3)
    if all(0 not in x.shape for x in arrays):  # a recorded loop runs at least once
        verify(made)
    found = evaluate(made, *given)
    for k in range(3):
        one = [x[k] if f else x for x, f in zip(given, flags, strict=True)]
        for x, y in zip(found, evaluate(tape, *one), strict=True):
            assert x.dtype == y.dtype
            assert_rounded(x[k], y)


def assert_rounded(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal but for rounding: where terms of a sum cancel, that of the largest."""
    rounding = 0.0
    if wanted.dtype.kind == "f" and wanted.size:
        rounding = 4 * np.finfo(wanted.dtype).eps * np.abs(wanted).max()
    rtol = 2e-5 if wanted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rounding)


def subsets(n: int) -> list[list[bool]]:
    """All inputs, and each alone."""
    return [[True] * n, *([j == k for j in range(n)] for k in range(n) if n > 1)]


def looked_at(op: Op) -> list[Case]:
    cases = cases_of(op)
    return list(cases[:: max(1, len(cases) // CASES)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # members outside of a function's domain
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op(op: Op) -> None:
    for case in looked_at(op):
        for flags in subsets(len(case.arrays)):
            check(case.tape(), case.arrays, flags)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_adjoint_of_every_op(op: Op) -> None:
    for case in looked_at(op)[:4]:
        tape = case.tape()
        cotangents = [np.ones(t.shape, t.numpy) for t in tape.output_types if t.is_float]
        if not case.active or not cotangents:
            continue
        adjoint = adjoint_of_tape(case.active).run(tape)
        arrays = [*case.arrays, *cotangents]
        check(adjoint, arrays, [False] * len(case.arrays) + [True] * len(cotangents))
        check(adjoint, arrays, [True] * len(arrays))
