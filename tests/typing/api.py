"""The public names as a typed program uses them; mypy reads this file, nothing runs it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import ckad
from ckad import schedules, testing

Array = NDArray[np.float64]


class Parameters(NamedTuple):
    rate: Array
    offset: float


def loss(x: Array, parameters: Parameters) -> Array:
    def step(i: int, u: Array) -> Array:
        return u + parameters.rate * np.sin(u)

    return np.asarray(np.sum(ckad.fori_loop(0, 10, step, x)))


def loss_with_path(x: Array) -> tuple[Array, Array]:
    def step(u: Array, forcing: Array) -> tuple[Array, Array]:
        return u + forcing, u

    last, path = ckad.scan(step, x, xs=np.zeros((10, 3)))
    return np.asarray(last.sum()), path


x = np.ones(3)
parameters = Parameters(rate=np.ones(3), offset=0.5)

value, gradient = ckad.value_and_grad(loss, memory="16 MiB", schedule="revolve")(x, parameters)
both = ckad.grad(loss, argnums=(0, 1), engine="vm", progress=True)(x, parameters)
(value, path), gradient = ckad.value_and_grad(loss_with_path, has_aux=True, memory=2**24)(x)
out, pullback = ckad.vjp(loss, x, parameters)
cotangents = pullback(1.0)
out, out_tangent = ckad.jvp(loss, (x, parameters), (x, parameters))
compiled = ckad.jit(loss)(x, parameters)

tape = ckad.trace(loss)(x, parameters)
text: str = str(tape)
derived = (ckad.adjoint(tape), ckad.tangent(tape))

plan: ckad.Plan = ckad.plan(loss, x, parameters, argnums=0, memory="1 MB")
numbers: list[int] = [plan.n_steps, plan.n_slots, plan.forward_steps, plan.peak_bytes]

schedule = schedules.revolve(100, 5)
count: int = schedules.forward_steps("revolve", 100, 5)
testing.check_schedule(schedule)
testing.check_grads(loss, (x, parameters), modes=("fwd", "rev"), order=1)
