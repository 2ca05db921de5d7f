"""Complex data, and derivatives by differences along the real and the imaginary axis."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import ckad

RNG = np.random.default_rng(5)
Z = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
W = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
M = RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3))
U = RNG.normal(size=(3, 4))


def differences(f: Any, z: Any, h: float = 1e-6) -> np.ndarray:
    """``df/dx - i df/dy`` per element of ``z``, or ``df/dx`` if that is real."""
    z = np.asarray(z)
    slopes = np.zeros(z.shape, z.dtype)
    for i in np.ndindex(z.shape):
        for turn in (1, 1j) if np.iscomplexobj(z) else (1,):
            d = np.zeros(z.shape, z.dtype)
            d[i] = turn * h
            # -i is the conjugate of i
            slopes[i] += np.conj(turn) * (f(z + d) - f(z - d)) / (2 * h)
    return slopes


def weighted(out: Any) -> Any:
    """A real number that depends on every part of ``out``."""
    weights = np.arange(1, np.size(out) + 1).reshape(np.shape(out))
    return np.sum(np.real(out) * weights) + np.sum(np.imag(out) * weights**0.5)


def check(f: Any, *args: Any, derivative: bool = True, rtol: float = 1e-6) -> None:
    """``f`` is what it is in NumPy, also in kind, and its gradient what differences give."""
    want = f(*copy.deepcopy(args))
    got = ckad.jit(f)(*args)
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    if derivative:
        slope = differences(lambda x: weighted(f(x, *copy.deepcopy(args[1:]))), args[0])
        gradient = ckad.grad(lambda *xs: weighted(f(*xs)))(*args)
        assert type(gradient) is type(args[0])
        scale = np.max(np.abs(slope), initial=1.0)
        np.testing.assert_allclose(gradient, slope, rtol=rtol, atol=1e-7 * scale)
