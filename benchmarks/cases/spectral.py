"""Spectral codes: steps that go to the frequencies and back, in one and in two dimensions.

``fft2`` and ``rfft2`` are transforms with next to nothing between them. ``schroedinger`` is a
split-step (nonlinear Schroedinger equation), ``kdv`` RK4 with an integrating factor (L. N.
Trefethen, "Spectral Methods in MATLAB", 2000, program 27), ``ks`` the Kuramoto-Sivashinsky equation
by ETD1 and ``navier_stokes`` a vorticity with dealiasing, RK2. All are written once, for NumPy,
SciPy and JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal


def size(settings: Settings) -> int:
    return int(settings["size"])


def steps(settings: Settings) -> int:
    return int(settings["n_steps"])


def waves(n: int) -> np.ndarray:
    return np.fft.fftfreq(n, 1 / n)


def line(settings: Settings) -> Inputs:
    x = 2 * np.pi * np.arange(size(settings)) / size(settings)
    return (np.cos(x) + 0.1 * np.sin(3 * x),)


def plane(settings: Settings, count: int = 1) -> Inputs:
    n, generator = size(settings), np.random.default_rng(5)
    k = np.hypot(*np.meshgrid(waves(n), waves(n)))
    fields = np.fft.fft2(generator.normal(size=(count, n, n))) * np.exp(-((k / 6) ** 2))
    return tuple(6 * np.fft.ifft2(fields).real)


def fft2(xp, fft, loop, settings, x, y):
    n = size(settings)
    decay = np.exp(-1e-4 * (waves(n)[:, None] ** 2 + waves(n) ** 2))
    z = loop(lambda z: fft.ifft2(decay * fft.fft2(z)), x + 1j * y, steps(settings))
    return xp.sum(z.real**2) + xp.sum(z.imag**2)


def rfft2(xp, fft, loop, settings, x):
    n = size(settings)
    decay = np.exp(-1e-4 * (waves(n)[:, None] ** 2 + np.arange(n // 2 + 1) ** 2))
    x = loop(lambda x: fft.irfft2(decay * fft.rfft2(x), s=(n, n)), x, steps(settings))
    return xp.sum(x**2)


def navier_stokes(xp, fft, loop, settings, w):
    n, h, viscosity = size(settings), 1e-3, 1e-3
    kx, ky = waves(n)[:, None], np.arange(n // 2 + 1.0)[None]
    k2 = kx**2 + ky**2
    inverse = 1 / np.where(k2 == 0, 1.0, k2)
    kept = (abs(kx) < n / 3) & (abs(ky) < n / 3)

    def slope(w_hat):
        psi = inverse * w_hat
        u = fft.irfft2(1j * ky * psi, s=(n, n))
        v = fft.irfft2(-1j * kx * psi, s=(n, n))
        w_x = fft.irfft2(1j * kx * w_hat, s=(n, n))
        w_y = fft.irfft2(1j * ky * w_hat, s=(n, n))
        return -(kept * fft.rfft2(u * w_x + v * w_y)) - viscosity * k2 * w_hat

    def advance(w_hat):
        return w_hat + h * slope(w_hat + h / 2 * slope(w_hat))

    w_hat = loop(advance, fft.rfft2(w), steps(settings))
    return xp.sum(fft.irfft2(w_hat, s=(n, n)) ** 2)


def schroedinger(xp, fft, loop, settings, x):
    h = 1e-3
    phase = np.exp(-0.5j * h * waves(size(settings)) ** 2)

    def advance(z):
        angle = h * (z.real**2 + z.imag**2)
        return fft.ifft(phase * fft.fft(z * (xp.cos(angle) + 1j * xp.sin(angle))))

    z = loop(advance, x + 0j, steps(settings))
    return xp.sum(xp.cos(z.real))


def kdv(xp, fft, loop, settings, u):
    n, h = size(settings), 0.1 / size(settings) ** 2
    k = np.arange(n // 2 + 1.0)
    half, g = np.exp(0.5j * h * k**3), -0.5j * h * k

    def slope(v):
        return g * fft.rfft(fft.irfft(v, n) ** 2)

    def advance(v):
        a = slope(v)
        b = slope(half * (v + a / 2))
        c = slope(half * v + b / 2)
        d = slope(half**2 * v + half * c)
        return half**2 * v + (half**2 * a + 2 * half * (b + c) + d) / 6

    v = loop(advance, fft.rfft(u), steps(settings))
    return xp.sum(fft.irfft(v, n) ** 3)


def ks(xp, fft, loop, settings, u):
    n, h = size(settings), 0.05
    k = np.arange(n // 2 + 1.0) / 16
    linear = k**2 - k**4
    decay = np.exp(h * linear)
    weight = np.where(linear == 0, h, (decay - 1) / np.where(linear == 0, 1.0, linear))

    def advance(v):
        return decay * v - 0.5j * k * weight * fft.rfft(fft.irfft(v, n) ** 2)

    v = loop(advance, fft.rfft(u), steps(settings))
    return xp.sum(fft.irfft(v, n) ** 2)


def in_python(advance: Callable, start: Any, n: int) -> Any:
    for _ in range(n):
        start = advance(start)
    return start


def bound(function: Callable, settings: Settings, fft: Any = np.fft) -> Callable:
    return lambda *arrays: function(np, fft, in_python, settings, *arrays)


def build_ckad(settings: Settings, function: Callable, n_inputs: int, **options: Any) -> Gradient:
    return ckad_gradient(bound(function, settings), n_inputs, **options)


def build_primal(settings: Settings, function: Callable, **options: Any) -> Value:
    return ckad_primal(bound(function, settings), **options)


def build_numpy(settings: Settings, function: Callable) -> Value:
    run = bound(function, settings)
    return lambda arrays: float(run(*arrays))


def build_scipy(settings: Settings, function: Callable) -> Value:
    import scipy.fft

    run = bound(function, settings, scipy.fft)
    return lambda arrays: float(run(*arrays))


def build_jax(settings: Settings, function: Callable, n_inputs: int) -> Gradient:
    import jax
    import jax.numpy as jnp

    from benchmarks.peers import jax_gradient, jax_nested_scan

    def loop(advance: Callable, start: Any, n: int) -> Any:
        return jax_nested_scan(lambda state, _: (advance(state), None), start, n, 1, False)

    def value(*arrays: Any) -> Any:
        return function(jnp, jnp.fft, loop, settings, *arrays)

    return jax_gradient(jax, value, n_inputs)


def case(function: Callable, n: int, n_steps: int, inputs: Callable, n_inputs: int = 1) -> Case:
    dimensions = 1 if inputs is line else 2
    return Case(
        name=f"{function.__name__}-{n}",
        title=f"{function.__name__} on {' x '.join([str(n)] * dimensions)} points",
        defaults={"size": n, "n_steps": n_steps},
        tiny={"size": 16, "n_steps": 2},
        inputs=inputs,
        steps=steps,
        cells=lambda settings: size(settings) ** dimensions,
        forms={
            "ckad": {"auto": partial(build_ckad, function=function, n_inputs=n_inputs)},
            "jax": {"jit": partial(build_jax, function=function, n_inputs=n_inputs)},
        },
        primal=partial(build_primal, function=function),
        bases={
            "NumPy": partial(build_numpy, function=function),
            "SciPy": partial(build_scipy, function=function),
        },
    )


CASES = (
    *(case(fft2, n, 4, partial(plane, count=2), 2) for n in (64, 256, 512)),
    *(case(rfft2, n, 4, plane) for n in (64, 256, 512)),
    *(case(navier_stokes, n, 20, plane) for n in (64, 128, 256)),
    *(case(f, n, 50, line) for f in (schroedinger, kdv, ks) for n in (256, 1024, 4096)),
)
