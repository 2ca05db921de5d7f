"""The control rows of the case table: loops and conditions around small bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.control import loop_attrs
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

from .case import F32, F64, SHORT, Case
from .elementwise import rng_of

INDEX = Type(DType.I64, ())
Emit = Callable[..., Sequence[int]]


def body(types: Sequence[Type], emit: Emit) -> Tape:
    b = Builder()
    inputs = [b.input(t) for t in types]
    return b.tape(emit(b, *inputs))


def loop(
    b: Builder,
    emit: Emit,
    length: int,
    carry: Sequence[int] = (),
    xs: Sequence[int] = (),
    captured: Sequence[int] = (),
) -> list[int]:
    """A LOOP row around ``emit(b, i, *carry, *x, *captured) -> (*carry, *y)``."""
    elements = [b.type(x).with_shape(b.type(x).shape[1:]) for x in xs]
    types = [INDEX, *map(b.type, carry), *elements, *map(b.type, captured)]
    tape = body(types, emit)
    n = len(carry)
    ys = [t.with_shape((length, *t.shape)) for t in tape.output_types[n:]]
    attrs = loop_attrs(b.body(tape), length, n, len(xs))
    return b.control(Op.LOOP, [*carry, *xs, *captured], attrs, [*tape.output_types[:n], *ys])


def cond(b: Builder, predicate: int, operands: Sequence[int], yes: Emit, no: Emit) -> list[int]:
    types = [b.type(x) for x in operands]
    bodies = [body(types, emit) for emit in (yes, no)]
    attrs = [b.body(t) for t in bodies]
    return b.control(Op.COND, [predicate, *operands], attrs, bodies[0].output_types)


def _stack(ys: Sequence[np.ndarray], like: np.ndarray) -> np.ndarray:
    return np.stack(ys) if ys else np.zeros((0, *like.shape), like.dtype)


# --- carry, xs, ys and a captured array --------------------------------------------------------


def _driven(b: Builder, i: int, c: int, x: int, k: int) -> list[int]:
    new = b.add(b.mul(c, k), b.sin(b.mul(c, x)))
    return [new, b.mul(new, x)]


def _driven_numpy(c: Any, k: Any, xs: Any) -> tuple[Any, Any]:
    ys = [None] * len(xs)
    for i in range(len(xs)):
        c = c * k + np.sin(c * xs[i])
        ys[i] = c * xs[i]
    return c, _stack(ys, c)


def driven(length: int, width: int, dtype: np.dtype) -> Case:
    name = f"LOOP-{SHORT[dtype]}-driven-{length}-of-{width}"
    rng = rng_of(name)
    c, k = rng.uniform(-1, 1, (2, width)).astype(dtype)
    xs = rng.uniform(-1, 1, (length, width)).astype(dtype)

    def build(b: Builder, c: int, k: int, xs: int) -> list[int]:
        return loop(b, _driven, length, [c], [xs], [k])

    def expected(c: Any, k: Any, xs: Any) -> tuple[Any, Any]:
        return _driven_numpy(c, k, xs)

    return Case(name, Op.LOOP, (c, k, xs), build, expected, ulp=16, floor=1.0)


# --- what a body may do with its carry ---------------------------------------------------------


def swapped() -> Case:
    """Carries that change places, one that passes through, a counter, and no xs."""

    def emit(b: Builder, i: int, u: int, v: int, p: int, n: int, k: int) -> list[int]:
        step = b.convert(i, type=b.type(k))
        new = b.add(b.mul(u, k), b.sin(b.mul(step, v)))
        return [v, new, p, b.add(n, i), b.mul(p, u)]

    def build(b: Builder, u: int, v: int, p: int, k: int) -> list[int]:
        start = b.const(np.int64(3))
        return loop(b, emit, 6, [u, v, p, start], [], [k])

    def expected(u: Any, v: Any, p: Any, k: Any) -> tuple[Any, ...]:
        n, ys = 3, []
        for i in range(6):
            ys.append(p * u)
            u, v, n = v, u * k + np.sin(i * v), n + i
        return u, v, p, np.int64(n), np.stack(ys)

    arrays = tuple(np.asarray(x) for x in (0.4, -0.7, 1.3, 0.8))
    return Case("LOOP-f64-swapped", Op.LOOP, arrays, build, expected, 64, 1.0)


def mapped() -> Case:
    """No carry: a loop that only maps its xs; two xs of different shapes."""

    def emit(b: Builder, i: int, x: int, z: int, k: int) -> list[int]:
        stretched = b.broadcast_to(b.mul(z, k), b.type(x).shape)
        return [b.exp(b.mul(x, stretched)), b.sum(x, attrs=(0,))]

    def build(b: Builder, xs: int, zs: int, k: int) -> list[int]:
        return loop(b, emit, 5, [], [xs, zs], [k])

    def expected(xs: Any, zs: Any, k: Any) -> tuple[Any, Any]:
        return np.exp(xs * (zs * k)[:, None]), xs.sum(1)

    rng = rng_of("mapped")
    arrays = (rng.uniform(-1, 1, (5, 3)), rng.uniform(-1, 1, 5), np.asarray(0.7))
    return Case("LOOP-f64-mapped", Op.LOOP, arrays, build, expected, 8, 1.0)


def indexed() -> Case:
    """The index reads an element and writes one: ``u[i] = sin(u[i] * w[i] + u[0])``."""

    def emit(b: Builder, i: int, u: int, w: int) -> list[int]:
        mine, weight = (b.gather(a, i, attrs=(0,)) for a in (u, w))
        first = b.gather(u, b.const(np.int64(0)), attrs=(0,))
        return [b.scatter(u, i, b.sin(b.add(b.mul(mine, weight), first)), attrs=(0, 1))]

    def build(b: Builder, u: int, w: int) -> list[int]:
        return loop(b, emit, 6, [u], [], [w])

    def expected(u: Any, w: Any) -> Any:
        u = u.copy()
        for i in range(6):
            u[i] = np.sin(u[i] * w[i] + u[0])
        return u

    rng = rng_of("indexed")
    arrays = (rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6))
    return Case("LOOP-f64-indexed", Op.LOOP, arrays, build, expected, 8, 1.0)


def stencil(width: int, length: int) -> Case:
    """Diffusion with a captured diffusivity, written into the inner part of the state."""

    def emit(b: Builder, i: int, u: int, k: int) -> list[int]:
        inner = Type(DType.F64, (width - 2,))
        left, middle, right = (b.slice(u, attrs=(s, 1), type=inner) for s in (0, 1, 2))
        bend = b.sub(b.add(left, right), b.add(middle, middle))
        rate = b.slice(k, attrs=(1, 1), type=inner)
        return [b.slice_add(u, b.mul(rate, bend), attrs=(1, 1))]

    def build(b: Builder, u: int, k: int) -> list[int]:
        (last,) = loop(b, emit, length, [u], [], [k])
        return [b.sum(b.mul(last, last), attrs=(0,))]

    def expected(u: Any, k: Any) -> Any:
        u = u.copy()
        for _ in range(length):
            u[1:-1] = u[1:-1] + k[1:-1] * (u[:-2] + u[2:] - (u[1:-1] + u[1:-1]))
        return (u * u).sum()

    rng = rng_of(f"stencil{width}")
    arrays = (rng.uniform(-1, 1, width), rng.uniform(0.1, 0.4, width))
    name = f"LOOP-f64-stencil-{length}-of-{width}"
    return Case(name, Op.LOOP, arrays, build, expected, 16, float(width))


def shared() -> Case:
    """One value in several places of a loop, as cse leaves it, and used after it as well."""

    def emit(b: Builder, i: int, u: int, v: int, x: int, z: int, k: int, m: int) -> list[int]:
        new = b.add(b.mul(u, k), b.sin(b.mul(v, m)))
        return [new, b.mul(b.mul(u, v), x), b.mul(z, k)]

    def build(b: Builder, u: int, xs: int, k: int) -> list[int]:
        last, other, ys = loop(b, emit, 4, [u, u], [xs, xs], [k, k])
        again = loop(b, emit, 4, [k, last], [xs, ys], [k, last])
        return [b.mul(last, b.add(k, u)), other, *again, b.exp(k)]

    def run(u: Any, v: Any, xs: Any, zs: Any, k: Any, m: Any) -> tuple[Any, Any, Any]:
        ys = []
        for x, z in zip(xs, zs, strict=True):
            u, v = u * k + np.sin(v * m), u * v * x
            ys.append(z * k)
        return u, v, np.stack(ys)

    def expected(u: Any, xs: Any, k: Any) -> tuple[Any, ...]:
        last, other, ys = run(u, u, xs, xs, k, k)
        again = run(k, last, xs, ys, k, last)
        return last * (k + u), other, *again, np.exp(k)

    rng = rng_of("shared")
    arrays = (rng.uniform(-1, 1, 3), rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, 3))
    return Case("LOOP-f64-shared", Op.LOOP, arrays, build, expected, 64, 1.0)


# --- loops and conditions inside each other ----------------------------------------------------


def nested() -> Case:
    """The inner loop captures the outer carry, an outer captured array, and has xs and ys."""

    def inner(b: Builder, j: int, w: int, x: int, u: int, k: int) -> list[int]:
        new = b.add(b.mul(b.sin(b.mul(w, k)), u), x)
        return [new, b.mul(new, u)]

    def outer(b: Builder, i: int, u: int, xs: int, k: int) -> list[int]:
        w, ys = loop(b, inner, 3, [u], [xs], [u, k])
        total = b.sum(ys, attrs=(0,))
        return [b.tanh(b.add(w, total)), b.sum(total, attrs=(0,))]

    def build(b: Builder, u: int, xs: int, k: int) -> list[int]:
        return loop(b, outer, 4, [u], [xs], [k])

    def expected(u: Any, xs: Any, k: Any) -> tuple[Any, Any]:
        sums = []
        for i in range(4):
            w, total = u, 0.0
            for j in range(3):
                w = np.sin(w * k) * u + xs[i, j]
                total = total + w * u
            u = np.tanh(w + total)
            sums.append(total.sum())
        return u, np.stack(sums)

    rng = rng_of("nested")
    shapes = ((2,), (4, 3, 2), (2,))
    arrays = tuple(rng.uniform(-1, 1, s) for s in shapes)
    return Case("LOOP-f64-nested", Op.LOOP, arrays, build, expected, 256, 1.0)


def chosen(truth: bool, dtype: np.dtype) -> Case:
    """One branch reads only one operand; one result is the same constant in both."""

    def yes(b: Builder, x: int, y: int) -> list[int]:
        return [b.mul(x, b.sin(y)), b.exp(x), b.full_like(x, 2.0)]

    def no(b: Builder, x: int, y: int) -> list[int]:
        return [b.sqrt(y), b.full_like(x, 1.0), b.full_like(x, 2.0)]

    def build(b: Builder, p: int, x: int, y: int) -> list[int]:
        return cond(b, p, [x, y], yes, no)

    def expected(p: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        ones = np.ones_like(x)
        return (x * np.sin(y), np.exp(x), 2 * ones) if p else (np.sqrt(y), ones, 2 * ones)

    rng = rng_of(f"chosen{truth}")
    pair = (rng.uniform(-1, 1, 5).astype(dtype), rng.uniform(0.5, 2, 5).astype(dtype))
    name = f"COND-{SHORT[dtype]}-{str(truth).lower()}"
    return Case(name, Op.COND, (np.asarray(truth), *pair), build, expected, ulp=4, floor=1.0)


def chosen_in_loop() -> Case:
    """Every step takes a branch by its index; a branch holds a loop."""

    def step(b: Builder, j: int, u: int, k: int) -> list[int]:
        return [b.mul(b.cos(u), k)]

    def yes(b: Builder, u: int, k: int) -> list[int]:
        return loop(b, step, 2, [u], [], [k])

    def no(b: Builder, u: int, k: int) -> list[int]:
        return [b.add(u, b.mul(k, k))]

    def outer(b: Builder, i: int, u: int, k: int) -> list[int]:
        odd = b.eq(b.mod(i, b.const(np.int64(2))), b.const(np.int64(1)))
        return cond(b, odd, [u, k], yes, no)

    def build(b: Builder, u: int, k: int) -> list[int]:
        return loop(b, outer, 5, [u], [], [k])

    def expected(u: Any, k: Any) -> Any:
        for i in range(5):
            u = np.cos(np.cos(u) * k) * k if i % 2 else u + k * k
        return u

    rng = rng_of("chosen in loop")
    arrays = (rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3))
    return Case("COND-f64-in-loop", Op.COND, arrays, build, expected, 64, 1.0)


def all_composites() -> Iterator[Case]:
    for length in (0, 1, 7):
        yield driven(length, 4, F64)
    yield driven(5, 3, F32)
    yield driven(3, 1300, F64)
    yield from (swapped(), mapped(), indexed(), shared(), nested())
    yield from (stencil(12, 9), stencil(1300, 4))
    for dtype in (F64, F32):
        yield from (chosen(True, dtype), chosen(False, dtype))
    yield chosen_in_loop()
