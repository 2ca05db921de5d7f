"""Generators of random numbers, NumPy's and Python's: which calls draw, and their states."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Generator = np.random.RandomState | np.random.Generator | random.Random

#: The generator behind NumPy's functions.
GLOBAL: np.random.RandomState = vars(np.random)["randn"].__self__
#: Functions of NumPy that are no methods of it, and the methods that they call.
_FUNCTIONS: dict[Any, str] = {
    np.random.seed: "seed",
    np.random.ranf: "random_sample",
    np.random.sample: "random_sample",
}
#: Methods that draw, or start anew from a seed, and do nothing else.
_METHODS = frozenset(
    """seed random random_sample rand randn randint random_integers integers standard_normal normal
    uniform standard_exponential exponential standard_gamma gamma beta binomial
    negative_binomial chisquare noncentral_chisquare choice permutation permuted shuffle
    dirichlet f noncentral_f geometric gumbel hypergeometric laplace logistic lognormal logseries
    multinomial multivariate_normal multivariate_hypergeometric pareto poisson power rayleigh
    standard_cauchy standard_t triangular vonmises wald weibull zipf tomaxint
    randrange choices sample getrandbits gauss normalvariate lognormvariate
    expovariate vonmisesvariate gammavariate betavariate paretovariate weibullvariate
    binomialvariate""".split()
)


def drawing(callee: Any) -> tuple[Generator, str] | None:
    """The generator that a call draws from, and the method of it; None for any other call."""
    owner = getattr(callee, "__self__", None)
    if owner is None:
        name = _FUNCTIONS.get(callee) if type(callee) is type(np.random.seed) else None
        return None if name is None else (GLOBAL, name)
    if type(owner) not in (np.random.RandomState, np.random.Generator, random.Random):
        return None
    name = callee.__name__
    return (owner, name) if name in _METHODS else None


def restoring(generator: Generator) -> Callable[[], None]:
    """What puts a generator back into the state in which it is now."""
    if isinstance(generator, random.Random):
        state: Any = generator.getstate()
        return lambda: generator.setstate(state)
    if isinstance(generator, np.random.RandomState):
        state = generator.get_state(legacy=False)
        return lambda: generator.set_state(state)
    bits = generator.bit_generator
    state = bits.state

    def put_back() -> None:
        bits.state = state

    return put_back
