"""Arrays that are made of the same rows are computed together, however heavy these are."""

import numpy as np
import pytest

import ckad


def seven(u, x):
    x = u / (1.5 + x)
    x = u / (1.6 + x)
    x = u / (1.7 + x)
    x = u / (1.8 + x)
    x = u / (1.9 + x)
    x = u / (2.0 + x)
    return u / (2.1 + x)


def fluxes(count):
    """``count`` fields that each step makes of one long chain of quotients."""

    def f(x):
        fields = [x * (k + 1.0) for k in range(count)]
        for _ in range(6):
            u = fields[-1]
            common = seven(u, seven(u, seven(u, seven(u, fields[0]))))
            fields = [0.9 * u + 0.01 * (k + 1.0) * common for k, u in enumerate(fields)]
        return sum(np.sum(u**2) for u in fields)

    return f


X = np.linspace(0.1, 0.9, 100)


def size(count):
    run = ckad.jit(fluxes(count), engine="native")
    assert run(X) == pytest.approx(fluxes(count)(X.copy()), rel=1e-13)
    return len(run.compiled(X).llvm)


def test_what_they_share_is_written_once():
    assert size(6) < 3 * size(1)
