"""Value and gradient are bitwise the same under every schedule and budget, whatever ran before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.rules.evaluate import evaluate
from ckad.transforms.gradients import Gradient

#: More than a strip of the vm holds.
LARGE = 640


class Program(NamedTuple):
    """A scalar function, two sets of arguments, and how many steps its outermost loop has."""

    fun: Callable[..., Any]
    n_steps: int
    shapes: tuple[tuple[int, ...], ...]
    dtype: type = np.float64

    def arguments(self, seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        draws = [rng.uniform(0.2, 0.9, shape).astype(self.dtype) for shape in self.shapes]
        return [x[()] if x.ndim == 0 else x for x in draws]

    def gradient(self, **options: Any) -> Gradient:
        return ckad.value_and_grad(self.fun, tuple(range(len(self.shapes))), **options)


def logistic(x: Any, rate: Any) -> Any:
    """A scalar ODE, Euler's method."""
    return ckad.fori_loop(0, 23, lambda i, x: x + 0.1 * rate * np.sin(x) * (1.0 - x), x)


def diffusion(u: Any, kappa: Any) -> Any:
    """A stencil of slices, written in place, with a captured coefficient per cell."""

    def step(i: Any, u: Any) -> Any:
        u[1:-1] += kappa[1:-1] * 0.4 * (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]
        return u

    return np.sum(ckad.fori_loop(0, 19, step, u) ** 2)


def reaction(u: Any, v: Any) -> Any:
    """Gray–Scott with rolls, two fields."""

    def laplacian(w: Any) -> Any:
        return sum(np.roll(w, s, a) for s in (1, -1) for a in (0, 1)) - 4 * w

    def step(i: Any, carry: Any) -> Any:
        u, v = carry
        uvv = u * v * v
        return (
            u + 0.16 * laplacian(u) - uvv + 0.035 * (1 - u),
            v + 0.08 * laplacian(v) + uvv - 0.1 * v,
        )

    u, v = ckad.fori_loop(0, 9, step, (u, v))
    return np.mean(u * v) + np.sum(np.cos(v))


def observed(x: Any, sources: Any, weights: Any) -> Any:
    """Sources go in at every step, observations come out at every step."""

    def step(x: Any, source: Any) -> Any:
        x = x + 0.1 * np.tanh(source - x * np.roll(x, 1))
        return x, (x**2, np.sum(x))

    x, (squares, sums) = ckad.scan(step, x, sources)
    return np.sum(weights * squares) + np.sum(np.sin(sums)) + np.sum(x)


def nested_short(x: Any, rate: Any) -> Any:
    """A short loop inside a longer one."""

    def inner(j: Any, x: Any) -> Any:
        return x + 0.05 * rate * np.sin(x) * np.roll(x, 1)

    def outer(i: Any, x: Any) -> Any:
        return ckad.fori_loop(0, 3, inner, x) * np.cos(0.1 * x)

    return np.sum(ckad.fori_loop(0, 12, outer, x) ** 3)


def nested_long(x: Any, rate: Any) -> Any:
    """A long loop inside a short one, its state another one than the outer loop's."""

    def inner(j: Any, carry: Any) -> Any:
        x, total = carry
        return x + 0.01 * rate * np.sin(x), total + np.sum(x * x)

    def outer(i: Any, x: Any) -> Any:
        x, total = ckad.fori_loop(0, 37, inner, (x, 0.0))
        return x / (1.0 + 0.01 * total)

    return np.sum(ckad.fori_loop(0, 4, outer, x) ** 2)


def three_deep(x: Any) -> Any:
    def innermost(k: Any, x: Any) -> Any:
        return x + 0.02 * np.sin(x * np.roll(x, 1))

    def inner(j: Any, x: Any) -> Any:
        return ckad.fori_loop(0, 5, innermost, x) * np.cos(0.1 * x)

    def outer(i: Any, x: Any) -> Any:
        return ckad.fori_loop(0, 4, inner, x) - 0.01 * x * x

    return np.sum(ckad.fori_loop(0, 6, outer, x) ** 2)


def in_sequence(x: Any, y: Any) -> Any:
    """Two loops of different length and state, the second over the result of the first."""
    x = ckad.fori_loop(0, 11, lambda i, x: x + 0.1 * np.sin(x) * np.roll(x, 1), x)
    y = ckad.fori_loop(0, 17, lambda i, y: y * np.cos(0.1 * y) + 0.01 * np.mean(x) * y, y)
    return np.sum(x * x) + np.sum(np.exp(-y))


def over_ys(x: Any, a: Any) -> Any:
    """A loop over what another loop left at each step."""
    x, ys = ckad.scan(lambda x, _: (np.sin(x) + a, x * x), x, length=13)
    z, zs = ckad.scan(lambda z, y: (z + np.tanh(y * z), np.sum(z)), np.zeros_like(x), ys)
    return np.sum(z * x) + np.sum(zs**2)


def loop_with_ys_inside(x: Any, a: Any) -> Any:
    def outer(x: Any, _: Any) -> Any:
        x, ys = ckad.scan(lambda x, s: (x + 0.1 * np.sin(x) * s, np.sum(x * s)), x, a)
        return x * (1.0 + 0.1 * np.mean(ys)), np.max(ys)

    x, tops = ckad.scan(outer, x, length=7)
    return np.sum(x) + np.sum(tops**2)


def in_float32(u: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        return u + np.float32(0.1) * np.sin(u) * np.roll(u, 1)

    return np.sum(ckad.fori_loop(0, 15, step, u))


def integer_carry(x: Any) -> Any:
    """An index that is carried along, and decides."""

    def step(i: Any, carry: Any) -> Any:
        x, k = carry
        x = np.where(k % 3 == 0, x * np.cos(x), x + 0.1 * np.sin(x)) + 0.01 * k
        return x, (3 * k + 1) % 7

    return np.sum(ckad.fori_loop(0, 14, step, (x, 2))[0])


def by_loop_index(u: Any) -> Any:
    """The body reads and writes at the loop's own index."""

    def step(i: Any, u: Any) -> Any:
        u[i + 1] = u[i + 1] * np.sin(u[i]) + u[-1] * u[i] ** 2
        return u

    return np.sum(ckad.fori_loop(0, 18, step, u) ** 2)


_WHERE = np.array([3, 1, 3, 7])


def scattered(u: Any, w: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        v = np.sin(u)
        np.add.at(v, _WHERE, w * u[::2])
        v[_WHERE[1:3]] *= 0.5
        return v

    return np.sum(ckad.fori_loop(0, 10, step, u) ** 2)


PROGRAMS = {
    p.fun.__name__: p
    for p in (
        Program(logistic, 23, ((), ())),
        Program(diffusion, 19, ((30,), (30,))),
        Program(diffusion, 19, ((LARGE,), (LARGE,)))._replace(fun=diffusion),
        Program(reaction, 9, ((24, 40), (24, 40))),
        Program(observed, 21, ((4,), (21, 4), (21, 4))),
        Program(nested_short, 12, ((5,), ())),
        Program(nested_long, 4, ((3,), ())),
        Program(three_deep, 6, ((4,),)),
        Program(in_sequence, 17, ((3,), (6,))),
        Program(over_ys, 13, ((4,), (4,))),
        Program(loop_with_ys_inside, 7, ((3,), (11, 3))),
        Program(in_float32, 15, ((9,),), np.float32),
        Program(integer_carry, 14, ((5,),)),
        Program(by_loop_index, 18, ((20,),)),
        Program(scattered, 10, ((8,), (4,))),
    )
}
every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def same(left: Any, right: Any) -> bool:
    """Equal in every bit, in shape and in dtype."""
    a, b = ([v, *g] for v, g in (left, right))
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True)
    )
