"""Programs that read and write rows and slices of arrays, step by step (PolyBench and the like).

ckad takes the loops of `programs/slices.py`. JAX has no slices whose length a step computes: its
form is a scan over the steps, of whole rows under masks, with each step checkpointed or not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal
from benchmarks.programs import slices


def size(settings: Settings) -> int:
    return int(settings["size"])


def inputs(settings: Settings, kinds: str) -> Inputs:
    """By letter: a matrix with a strong diagonal, a symmetric positive one, any one, a vector."""
    n, rng = size(settings), np.random.default_rng(5)

    def made(kind: str) -> np.ndarray:
        if kind == "v":
            return rng.normal(size=n)
        a = rng.normal(size=(n, n)) / np.sqrt(n)
        return {"d": 2 * np.eye(n) + 0.1 * a, "s": 2 * np.eye(n) + a @ a.T, "a": a}[kind]

    return tuple(made(kind) for kind in kinds)


# --- JAX: the steps, from (i, carry, arrays) to the carry -----------------------------------------


def trsm_step(jnp, i, x, a, b):
    row = jnp.where(jnp.arange(a.shape[1]) < i, a[i], 0.0)
    return x.at[i].set((x[i] - row @ x) / a[i, i])


def trmm_step(jnp, i, b, a, _):
    column = jnp.where(jnp.arange(a.shape[0]) > i, a[:, i], 0.0)
    return b.at[i].add(column @ b)


def cholesky_step(jnp, j, a, _):
    at = jnp.arange(a.shape[0])
    row = jnp.where(at < j, a[j], 0.0)
    pivot = jnp.sqrt(a[j, j] - row @ row)
    column = jnp.where(at > j, (a[:, j] - a @ row) / pivot, a[:, j])
    return a.at[:, j].set(column.at[j].set(pivot))


def lu_step(jnp, k, a, _):
    at = jnp.arange(a.shape[0])
    column = jnp.where(at > k, a[:, k] / a[k, k], 0.0)
    row = jnp.where(at > k, a[k], 0.0)
    a = a.at[:, k].set(jnp.where(at > k, column, a[:, k]))
    return a - jnp.outer(column, row)


def gram_schmidt_step(jnp, k, carry, _):
    a, q, r = carry
    norm = jnp.sqrt(a[:, k] @ a[:, k])
    unit = a[:, k] / norm
    row = jnp.where(jnp.arange(a.shape[1]) > k, unit @ a, 0.0)
    return a - jnp.outer(unit, row), q.at[:, k].set(unit), r.at[k].set(row.at[k].set(norm))


def covariance_step(jnp, i, carry, _):
    c, x = carry
    n = x.shape[0]
    row = jnp.where(jnp.arange(c.shape[0]) >= i, x[:, i] @ x / (n - 1.0), c[i])
    column = jnp.where(jnp.arange(c.shape[0]) >= i, row, c[:, i])
    return c.at[i].set(row).at[:, i].set(column), x


def correlation_step(jnp, i, carry, _):
    c, x = carry
    beyond = jnp.arange(c.shape[0]) > i
    row = jnp.where(beyond, x[:, i] @ x, c[i])
    return c.at[i].set(row).at[:, i].set(jnp.where(beyond, row, c[:, i])), x


def second(jnp, a, b):
    return b


def first(jnp, a):
    return a


def centred(jnp, x):
    return jnp.zeros((x.shape[1], x.shape[1])), x - jnp.mean(x, axis=0)


def scaled(jnp, x):
    x = (x - jnp.mean(x, axis=0)) / (jnp.sqrt(x.shape[0]) * jnp.std(x, axis=0))
    return jnp.eye(x.shape[1]), x


def three(jnp, a):
    return a, jnp.zeros_like(a), jnp.zeros_like(a)


def squares(jnp, x):
    return jnp.sum(x * x)


def first_squares(jnp, carry):
    return squares(jnp, carry[0])


def lower(jnp, a):
    return jnp.sum(jnp.tril(a) ** 2 * 0.1)


def both(jnp, carry):
    return jnp.sum(carry[1] ** 4) + jnp.sum(carry[2] * carry[2])


#: program -> what its inputs are, JAX's first carry, its step, and what becomes of the last one
PROGRAMS: dict[str, tuple[str, Callable, Callable, Callable]] = {
    "trsm": ("da", second, trsm_step, squares),
    "trmm": ("aa", second, trmm_step, squares),
    "cholesky": ("s", first, cholesky_step, lower),
    "lu": ("d", first, lu_step, squares),
    "gram_schmidt": ("d", three, gram_schmidt_step, both),
    "covariance": ("a", centred, covariance_step, first_squares),
    "correlation": ("a", scaled, correlation_step, first_squares),
}
#: Programs that JAX is not asked for: it has no form whose work is that of the slices.
OWN = {"trsv": "dv", "cholesky2": "s", "durbin": "v", "syrk": "aa", "lu_elements": "d", "sor": "aa"}


def build_ckad(settings: Settings, name: str, n_inputs: int, **options: Any) -> Gradient:
    return ckad_gradient(getattr(slices, name), n_inputs, **options)


def build_primal(settings: Settings, name: str, **options: Any) -> Value:
    return ckad_primal(getattr(slices, name), **options)


def build_jax(settings: Settings, name: str, remat: bool) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    kinds, begin, step, end = PROGRAMS[name]
    n = size(settings) - (name in ("lu", "correlation"))

    def value(*arrays: Any) -> Any:
        def once(carry: Any, i: Any) -> tuple[Any, None]:
            return step(jnp, i, carry, *arrays), None

        body = jax.checkpoint(once) if remat else once
        return end(jnp, jax.lax.scan(body, begin(jnp, *arrays), jnp.arange(n))[0])

    return jax_gradient(jax, value, len(kinds))


def case(name: str, n: int) -> Case:
    kinds = PROGRAMS[name][0] if name in PROGRAMS else OWN[name]
    forms = {"ckad": {"auto": partial(build_ckad, name=name, n_inputs=len(kinds))}}
    if name in PROGRAMS:
        forms["jax"] = {
            "scan": partial(build_jax, name=name, remat=False),
            "scan, remat step": partial(build_jax, name=name, remat=True),
        }
    return Case(
        name=f"slices_{name}-{n}",
        title=f"{name} by slices, {n} rows",
        defaults={"size": n},
        tiny={"size": 9},
        inputs=partial(inputs, kinds=kinds),
        steps=size,
        cells=lambda settings: size(settings) ** 2,
        forms=forms,
        primal=partial(build_primal, name=name),
    )


#: Loops over elements are run at the first size alone.
SIZES = (400, 1000, 2000)
CASES = tuple(
    case(name, n)
    for name in (*PROGRAMS, *OWN)
    for n in (SIZES[:1] if name in ("lu_elements", "sor", "cholesky2", "syrk") else SIZES)
)
