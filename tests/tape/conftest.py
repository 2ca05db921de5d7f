"""Programs recorded as tapes, and what the passes make of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ckad.passes.cse import cse
from ckad.passes.dce import dce
from ckad.passes.fold import fold
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.simplify import simplify
from ckad.passes.tangent import tangent
from ckad.trace.arguments import take_apart
from ckad.trace.bodies.loops import fori_loop, scan
from ckad.trace.record import record

adjoint = adjoint_of_tape().run


def elementwise(x, y):
    x = np.where(x > y, np.sin(x) * y, np.hypot(x, y)) / (1.0 + np.maximum(x, y) ** 2)
    return np.sum(x, axis=0), np.exp(-x)


def diffusion(kappa, u):
    def step(i, u):
        u = u.copy()
        u[1:-1] += kappa[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    return np.sum(fori_loop(0, 7, step, u) ** 2)


def driven(a, sources):
    def step(carry, source):
        u, v = carry
        u, v = u + 0.1 * v * a, v - 0.1 * np.sin(u) + source
        return (u, v), u * v

    (u, _), ys = scan(step, (np.zeros(3), np.ones(3) * a), sources)
    return u, np.sum(ys[::-2])


def nested(a, u):
    def outer(i, u):
        def inner(j, state):
            u, total = state
            return u + 0.1 * np.sin(u * a) + i, total + u[0] * j

        u, total = fori_loop(0, 3, inner, (u, a * 0.0))
        return u * 1.01 + total

    return fori_loop(0, 5, outer, u)


def thrice_nested(a, u):
    def innermost(k, u):
        return u * np.cos(a * u)

    def inner(j, u):
        return np.roll(fori_loop(0, 2, innermost, u), 1)

    return fori_loop(0, 4, lambda i, u: fori_loop(0, 3, inner, u) + u, u)


def picked(x, table):
    def step(carry, i):
        return carry + table[i] ** 2, np.float32(1) * x.astype(np.float32)

    total, ys = scan(step, x, np.array([2, 0, 2, 1]))
    return total, ys, np.argmax(x)


A, U = np.float64(0.5), np.linspace(0.1, 1.0, 4)
PROGRAMS = {
    elementwise: (U, U[::-1].copy()),
    diffusion: (0.1 + 0 * U, U),
    driven: (A, np.arange(12.0).reshape(4, 3)),
    nested: (A, U),
    thrice_nested: (A, U),
    picked: (U, np.arange(12.0).reshape(3, 4)),
}
PASSES = {
    "recorded": lambda tape: tape,
    "fold": fold,
    "cse": cse,
    "dce": dce,
    "simplify": simplify,
    "tangent": tangent,
    "adjoint": adjoint,
    "adjoint with outputs": adjoint_of_tape(keep_outputs=True).run,
    "adjoint of one input": adjoint_of_tape(wrt=[1], seeds=[0]).run,
    "adjoint of the tangent": lambda tape: adjoint(tangent(tape)),
    "adjoint of the simplified tangent": lambda tape: adjoint(simplify(tangent(tape))),
    "tangent of the tangent": lambda tape: tangent(tangent(tape)),
    "folded adjoint": lambda tape: dce(cse(fold(adjoint(tape)))),
}


@cache
def recorded(program):
    return record(program, take_apart(PROGRAMS[program])).tape


@cache
def transformed(program, name):
    return PASSES[name](recorded(program))


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.__name__)
def program(request):
    return request.param


@pytest.fixture(params=PASSES)
def tape(request, program):
    """The tape of every program after every pass."""
    return transformed(program, request.param)


@pytest.fixture
def pair():
    """A tape with TAPED_LOOP, REVERSE_LOOP and loops inside of them."""
    return transformed(nested, "adjoint")
