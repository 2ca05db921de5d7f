"""The nine functions on which FastAD was measured by its author, each at its largest size.

Single functions of large arrays, or of as many scalars in a loop; no time steps. "Per step" is
the whole function, "per cell" one number of its input. The titles hold what FastAD took in its own
suite (g++ 12, -O3 -march=native, Eigen 3.4; microseconds on one core of two): first the value, then
value and gradient. The factors are scaled so that products stay near 1: FastAD's underflow to 0.

Source: J. Yang, FastAD: expression template-based C++ library for fast and memory-efficient
automatic differentiation, arXiv:2102.03681, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal

Function = Callable[..., Any]


def size(settings: Settings) -> int:
    return int(settings["size"])


def random(settings: Settings, *shape: int) -> np.ndarray:
    """Between -1 and 1, as in FastAD's suite."""
    return np.random.default_rng(size(settings)).uniform(-1.0, 1.0, shape)


def numbers(settings: Settings) -> Inputs:
    return (random(settings, size(settings)),)


def factors(settings: Settings) -> Inputs:
    """Positive numbers whose product is 1."""
    logarithms = random(settings, size(settings)) / 2
    return (np.exp(logarithms - np.mean(logarithms)),)


def no_data(_: Settings) -> Inputs:
    return ()


# The functions, made from a namespace like NumPy and a scan like JAX ------------------------------


def total(xp: Any, scan: Callable) -> Function:
    return lambda x: xp.sum(x)


def total_by_loop(xp: Any, scan: Callable) -> Function:
    return lambda x: scan(lambda partial_sum, e: (partial_sum + e, None), 0.0, x)[0]


def product(xp: Any, scan: Callable) -> Function:
    return lambda x: xp.prod(x)


def product_by_loop(xp: Any, scan: Callable) -> Function:
    return lambda x: scan(lambda partial_product, e: (partial_product * e, None), 1.0, x)[0]


def log_sum_exp(xp: Any, scan: Callable) -> Function:
    return lambda x: xp.log(xp.sum(xp.exp(x)))


def matrices(settings: Settings) -> Inputs:
    a, b = random(settings, 2, size(settings), size(settings))
    return a, b


def matrix_product(xp: Any, scan: Callable) -> Function:
    return lambda a, b: xp.sum(a @ b)


def normal_log_density(xp: Any) -> Function:
    """Without the constant, as everywhere in the suite; sigma is one number."""
    return lambda z, sigma: -0.5 * (xp.sum(z * z) / sigma**2) - z.size * xp.log(sigma)


def normal_log_pdf(xp: Any, scan: Callable) -> Function:
    mu, sigma = -0.56, 1.37
    log_density = normal_log_density(xp)
    return lambda x: log_density(x - mu, sigma)


def weights(settings: Settings) -> Inputs:
    """The weights of the columns; the offset and the deviation."""
    return random(settings, size(settings)), np.array([0.3, 0.7])


def observations(settings: Settings) -> Inputs:
    """The table of a regression, and what it should explain."""
    rows, generator = int(settings["rows"]), np.random.default_rng(11)
    table = generator.uniform(-1.0, 1.0, (rows, size(settings)))
    return table, generator.uniform(-1.0, 1.0, rows)


def regression(xp: Any, scan: Callable) -> Function:
    log_density = normal_log_density(xp)

    def value(w, parameters, table, observed):
        offset, sigma = parameters[0], parameters[1]
        likelihood = log_density(observed - (table @ w + offset), sigma)
        return likelihood + log_density(w, 1.0) - 0.5 * offset**2 - np.log(9.9)

    return value


def volatility_inputs(settings: Settings) -> Inputs:
    """The innovations of the log-variance h; the persistence phi, its deviation, its mean."""
    return random(settings, size(settings)), np.array([0.6, 0.4, -0.2])


def returns(settings: Settings) -> Inputs:
    return (np.random.default_rng(13).uniform(-1.0, 1.0, size(settings)),)


def stochastic_volatility(xp: Any, scan: Callable) -> Function:
    log_density = normal_log_density(xp)

    def log_cauchy(x, scale):
        return -xp.log(scale * (1.0 + (x / scale) ** 2))

    def value(innovations, parameters, seen):
        phi, sigma, mu = parameters[0], parameters[1], parameters[2]

        def step(previous, innovation):
            h = mu + sigma * innovation + phi * (previous - mu)
            return h, h

        first = mu + sigma * innovations[:1] / xp.sqrt(1.0 - phi * phi)
        _, rest = scan(step, first[0], innovations[1:])
        deviation = xp.exp(xp.concatenate([first, rest]) / 2)
        likelihood = -0.5 * xp.sum((seen / deviation) ** 2) - xp.sum(xp.log(deviation))
        prior = log_density(innovations, 1.0)
        return likelihood + prior + log_cauchy(sigma, 5.0) + log_cauchy(mu, 10.0)

    return value


# ckad and JAX ------------------------------------------------------------------------------------


class Work(NamedTuple):
    """How to make a function and what it takes."""

    function: Callable[[Any, Callable], Function]
    inputs: Callable[[Settings], Inputs]
    data: Callable[[Settings], Inputs]


def build_ckad(work: Work, settings: Settings, **options) -> Gradient:
    import ckad

    value, count = work.function(np, ckad.scan), len(work.inputs(settings))
    return ckad_gradient(value, count, work.data(settings), **options)


def build_primal(work: Work, settings: Settings, **options) -> Value:
    import ckad

    return ckad_primal(work.function(np, ckad.scan), work.data(settings), **options)


def build_jax(
    work: Work, settings: Settings, remat_step: bool = False, unroll: int = 1
) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient

    def scan(step, init, xs):
        step = jax.checkpoint(step) if remat_step else step
        return jax.lax.scan(step, init, xs, unroll=unroll)

    value = work.function(jnp, scan)
    gradient = jax_gradient(jax, value, len(work.inputs(settings)))
    data = jax.device_put(work.data(settings))
    return lambda arrays: gradient((*arrays, *data))


def jax_forms(work: Work, loop: bool) -> dict[str, Callable[[Settings], Gradient]]:
    if not loop:
        return {"arrays": partial(build_jax, work)}
    return {
        "scan": partial(build_jax, work),
        "scan, remat step": partial(build_jax, work, remat_step=True),
        "scan, unroll 16": partial(build_jax, work, unroll=16),
    }


def case(
    name: str,
    work: Work,
    reference: tuple[float, float],
    loop: bool = False,
    **sizes: tuple[int, int],
) -> Case:
    """`reference` is FastAD's time for value and gradient, `sizes` a default and a tiny one."""
    return Case(
        name=f"fastad_{name}",
        title=f"{name}: FastAD takes {reference[0]} us for the value, {reference[1]} for both",
        defaults={key: default for key, (default, _) in sizes.items()},
        tiny={key: tiny for key, (_, tiny) in sizes.items()},
        inputs=work.inputs,
        steps=lambda settings: 1,
        cells=lambda settings: sum(array.size for array in work.inputs(settings)),
        forms={"ckad": {"auto": partial(build_ckad, work)}, "jax": jax_forms(work, loop)},
        primal=partial(build_primal, work),
    )


LARGE = (2**14, 32)
VOLATILITY = Work(stochastic_volatility, volatility_inputs, returns)

CASES = (
    case("sum", Work(total, numbers, no_data), (1.12, 3.5), size=LARGE),
    case("sum_iter", Work(total_by_loop, numbers, no_data), (13.4, 22.7), loop=True, size=LARGE),
    case("prod", Work(product, factors, no_data), (1.12, 26.2), size=LARGE),
    case("prod_iter", Work(product_by_loop, factors, no_data), (13.4, 36.1), loop=True, size=LARGE),
    case("log_sum_exp", Work(log_sum_exp, numbers, no_data), (16.6, 23.2), size=LARGE),
    case("matrix_product", Work(matrix_product, matrices, no_data), (284, 875), size=(181, 5)),
    case("normal_log_pdf", Work(normal_log_pdf, numbers, no_data), (1.13, 5.8), size=LARGE),
    case(
        "regression",
        Work(regression, weights, observations),
        (12.9, 27.0),
        size=(150, 4),
        rows=(1000, 9),
    ),
    case("stochastic_volatility", VOLATILITY, (54.7, 180), loop=True, size=(2**13, 20)),
)
