"""What passes see without work is what the work would find: fixed points, loops that stay loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ckad.passes import simplify as simplification
from ckad.passes.simplify import simplify, simplify_again
from ckad.passes.vectorise import loops, vectorise
from ckad.passes.vectorise.reduction import is_recurrence
from ckad.tape.control import read_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape

from .recorded import raw, recorded
from .test_vectorise import CASES


def diffusion(u: Any, k: Any) -> Any:
    for _ in range(5):
        u = u + 0.1 * k * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) ** 2
    return np.sum(u)


def halved(u: Any, k: Any) -> Any:
    for _ in range(5):
        u = u * 0.5 + k
    return u


def in_place(u: Any, k: Any) -> Any:
    u, k = u.copy(), k.copy()
    for n in range(5):
        k[n] = np.sqrt(k[n - 1])
        u[1:-1] += k[n] * (u[2:] - u[:-2])
        u[0] = np.negative(-u[1])
        u[0] = u[2] - -u[1]
    return u[:3] * 1.0


def spectral(u: Any, k: Any) -> Any:
    for _ in range(9):
        u = np.real(np.fft.ifft(np.fft.fft(u) * np.exp(-k)))
    return np.fft.rfft(u)[0].real


def summed(u: Any, k: Any) -> Any:
    total, most = 0.0, -np.inf
    for n in range(6):
        total += u[n] * k[n]
        most = max(most, u[n] * 1.0)
    return total + most


RECURRENCES = (diffusion, halved)
PROGRAMS = (*RECURRENCES, spectral, in_place, summed)
INPUTS = np.linspace(0.5, 1.5, 6), np.linspace(1.0, 2.0, 6)


def tapes_of(tape: Tape) -> Iterator[Tape]:
    yield tape
    for body in tape.bodies:
        yield from tapes_of(body)


def settled(tape: Tape) -> list[Tape]:
    return [x for x in tapes_of(tape) if x in simplification._settled]


@pytest.mark.parametrize("program", [diffusion, halved, in_place, summed])
def test_what_needs_no_other_walk_is_a_fixed_point(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = simplify(raw(program, INPUTS))
    found = settled(tape)
    assert found
    monkeypatch.setattr(simplification, "_settled", set())
    for each in found:
        assert simplify_again(each) is each


def test_rows_that_a_rule_has_made_are_walked_again() -> None:
    tape = simplify(raw(lambda x, y: (x - (-(y - (-x)))) @ np.ones((6, 1)), INPUTS))
    once = simplify_again(tape)
    assert simplify_again(once) is once


@pytest.mark.parametrize("program", PROGRAMS)
def test_loops_that_are_seen_to_stay_would_stay(
    program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = recorded(program, INPUTS)
    made = vectorise(tape)
    monkeypatch.setattr(loops, "is_recurrence", lambda *about: False)
    assert vectorise(tape).digest == made.digest


@pytest.mark.parametrize("program", PROGRAMS)
def test_recurrences_are_seen(program: Callable[..., Any]) -> None:
    tape = recorded(program, INPUTS)
    (loop,) = (read_loop(tape, row) for row in tape.rows if row.op is Op.LOOP)
    assert is_recurrence(loop.body, len(loop.carry)) == (program in RECURRENCES)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_loop_over_elements_is_seen_as_one(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    tape = recorded(case.program, [rng.random(shape) for shape in case.shapes])
    made = vectorise(tape)
    monkeypatch.setattr(loops, "is_recurrence", lambda *about: False)
    assert vectorise(tape).digest == made.digest
