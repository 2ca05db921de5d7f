"""Products of a sparse matrix and a vector, one after the other: by SciPy's CSR, and row by row.

The value is the sum of the squares of the last vector, by the elements of the matrix and by the
first vector. The plane's five-point operator, and a matrix of random places.

Source: npbench's spmv (Ziogas et al., NPBench, ICS 2021, https://github.com/spcl/npbench).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal


def plane(settings: Settings) -> Any:
    import scipy.sparse as sp

    m = int(settings["side"])
    line = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(m, m))
    return (sp.kron(sp.eye(m), line) + sp.kron(line, sp.eye(m))).tocsr()


def scattered(settings: Settings) -> Any:
    """Eight elements in each row."""
    import scipy.sparse as sp

    n, generator = int(settings["side"]) ** 2, np.random.default_rng(42)
    places = np.repeat(np.arange(n), 8), generator.integers(0, n, 8 * n)
    return sp.csr_matrix((generator.normal(size=8 * n) / 4, places), shape=(n, n))


def inputs(settings: Settings, matrix: Callable) -> Inputs:
    found = matrix(settings)
    return found.data, np.random.default_rng(0).normal(size=found.shape[0])


def steps(settings: Settings) -> int:
    return int(settings["steps"])


def by_csr(settings: Settings, matrix: Callable) -> Callable:
    import scipy.sparse as sp

    known, n_steps = matrix(settings), steps(settings)
    indices, indptr, shape = known.indices, known.indptr, known.shape

    def program(data, x):
        a = sp.csr_matrix((data, indices, indptr), shape=shape)
        for _ in range(n_steps):
            x = 0.1 * (a @ x)
        return np.sum(x * x)

    return program


def by_rows(settings: Settings, matrix: Callable) -> Callable:
    known, n_steps = matrix(settings), steps(settings)
    p, columns = known.indptr, known.indices

    def program(data, x):
        n = len(x)
        for _ in range(n_steps):
            y = np.zeros(n)
            for i in range(n):
                y[i] = data[p[i] : p[i + 1]] @ x[columns[p[i] : p[i + 1]]]
            x = 0.1 * y
        return np.sum(x * x)

    return program


def build_ckad(settings: Settings, program: Callable, **options: Any) -> Gradient:
    return ckad_gradient(program(settings), 2, **options)


def build_primal(settings: Settings, program: Callable, **options: Any) -> Value:
    return ckad_primal(program(settings), **options)


def build_jax(settings: Settings, matrix: Callable, form: str) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    known, n_steps = matrix(settings), steps(settings)
    n = known.shape[0]
    rows = jnp.asarray(np.repeat(np.arange(n), np.diff(known.indptr)))
    columns = jnp.asarray(known.indices)

    def times(data, x):
        if form == "BCOO":
            from jax.experimental.sparse import BCOO

            where = jnp.stack([rows, columns], axis=1)
            a = BCOO((data, where), shape=(n, n), indices_sorted=True, unique_indices=True)
            return a @ x
        return jax.ops.segment_sum(data * x[columns], rows, n, indices_are_sorted=True)

    def program(data, x):
        x = jax.lax.scan(lambda x, _: (0.1 * times(data, x), None), x, None, length=n_steps)[0]
        return jnp.sum(x * x)

    return jax_gradient(jax, program, 2)


def case(name: str, title: str, matrix: Callable, program: Callable, n_steps: int) -> Case:
    made = partial(program, matrix=matrix)
    return Case(
        name=name,
        title=title,
        defaults={"side": 80, "steps": n_steps},
        tiny={"side": 4, "steps": 3},
        inputs=partial(inputs, matrix=matrix),
        steps=steps,
        cells=lambda settings: int(settings["side"]) ** 2,
        forms={
            "ckad": {"auto": partial(build_ckad, program=made)},
            "jax": {
                "segment_sum": partial(build_jax, matrix=matrix, form="segment_sum"),
                "BCOO": partial(build_jax, matrix=matrix, form="BCOO"),
            },
        },
        primal=partial(build_primal, program=made),
    )


CASES = (
    case("spmv", "products with a plane's CSR matrix", plane, by_csr, 100),
    case("spmv-scattered", "products with a CSR matrix of random places", scattered, by_csr, 100),
    case("spmv-rows", "the plane's products by row slices", plane, by_rows, 20),
)
