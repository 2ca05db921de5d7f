"""The disturbance that grows most: optimal perturbations of a two-dimensional flow.

Vorticity in a periodic square follows w_t + u . grad w = nu lap w; derivatives are taken by Fourier
transforms, with two thirds of the wave numbers kept, and time steps are Runge and Kutta's. Of all
small disturbances of a shear flow, the one whose energy grows most until a given time is the first
singular vector of the linearised flow. SciPy's Lanczos method finds it from products with the
Jacobian (``jvp``) and its transpose (``vjp``), which is never formed.

    python examples/navier_stokes.py --output navier_stokes.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse.linalg import LinearOperator, svds

import ckad

NU, SHEAR = 2e-3, 4  # viscosity; waves of the shear flow across the square


class Growth(NamedTuple):
    """Vorticities, each float64[n, n], and energies."""

    base: np.ndarray
    optimal: np.ndarray  # the disturbance at the start
    evolved: np.ndarray  # and at the end
    factor: float  # by which its energy grows
    ordinary: np.ndarray  # factors of random disturbances


class Waves(NamedTuple):
    """Wave numbers of ``rfft2`` of an n by n square, sides 2 pi; each float64[n, n // 2 + 1]."""

    x: np.ndarray
    y: np.ndarray
    squared: np.ndarray  # with 1 at zero
    kept: np.ndarray  # 1 or 0


def waves(n: int) -> Waves:
    y, x = np.meshgrid(np.fft.fftfreq(n, 1.0 / n), np.fft.rfftfreq(n, 1.0 / n), indexing="ij")
    squared = x**2 + y**2
    squared[0, 0] = 1.0
    kept = (np.abs(x) < n / 3) & (np.abs(y) < n / 3) & (x**2 + y**2 > 0.0)
    return Waves(x, y, squared, kept.astype(float))


def rate(w, k):
    """dw/dt, of rfft2 coefficients."""
    stream = w / k.squared
    u = np.fft.irfft2(1j * k.y * stream)
    v = np.fft.irfft2(-1j * k.x * stream)
    advected = u * np.fft.irfft2(1j * k.x * w) + v * np.fft.irfft2(1j * k.y * w)
    return -k.kept * np.fft.rfft2(advected) - NU * k.squared * w


def flow(vorticity, time, n_steps, k):
    """The vorticity, float64[n, n], after that time."""
    dt = time / n_steps
    w = np.fft.rfft2(vorticity)
    for _ in range(n_steps):
        first = rate(w, k)
        second = rate(w + 0.5 * dt * first, k)
        third = rate(w + 0.5 * dt * second, k)
        fourth = rate(w + dt * third, k)
        w = w + dt / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return np.fft.irfft2(w)


def from_energy(x, k, n):
    """Vorticity of a field whose sum of squares is the energy of the flow."""
    return np.fft.irfft2(k.kept * np.sqrt(k.squared) * np.fft.rfft2(x.reshape(n, n)))


def to_energy(w, k):
    return np.fft.irfft2(k.kept * np.fft.rfft2(w) / np.sqrt(k.squared)).ravel()


def grow(n: int = 48, time: float = 2.0, n_steps: int = 100, seed: int = 0) -> Growth:
    k = waves(n)
    y = 2.0 * np.pi * np.arange(n) / n
    base = np.repeat(-SHEAR * np.cos(SHEAR * y)[:, None], n, axis=1)

    def until(x):
        return to_energy(flow(base + from_energy(x, k, n), time, n_steps, k), k)

    still = np.zeros(n * n)
    _, pullback = ckad.vjp(until, still, memory="8 MiB")
    linear = LinearOperator(
        (n * n, n * n),
        matvec=lambda x: ckad.jvp(until, (still,), (x.ravel(),))[1],
        rmatvec=lambda x: pullback(x.ravel())[0],
        dtype=np.float64,
    )
    _, factors, right = svds(linear, k=1, random_state=seed)
    optimal = right[0]
    draw = np.random.default_rng(seed)
    others = [to_energy(from_energy(draw.normal(size=n * n), k, n), k) for _ in range(20)]
    ordinary = np.array([np.sum((linear @ x) ** 2) / np.sum(x**2) for x in others])
    evolved = from_energy(linear @ optimal, k, n)
    return Growth(base, from_energy(optimal, k, n), evolved, float(factors[0] ** 2), ordinary)


def report(growth: Growth) -> str:
    return (
        f"energy of the optimal disturbance grows {growth.factor:.1f} times, that of random ones "
        f"{np.mean(growth.ordinary):.2f} +- {np.std(growth.ordinary):.2f}"
    )


def draw_figure(growth: Growth, path: str) -> None:
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    pictures = {
        "shear flow": growth.base,
        "optimal disturbance": growth.optimal,
        f"later: energy {growth.factor:.1f} times": growth.evolved,
    }
    for axes, (title, picture) in zip(figure.subplots(1, 3), pictures.items(), strict=True):
        largest = np.max(np.abs(picture))
        axes.imshow(picture, vmin=-largest, vmax=largest, cmap="RdBu", origin="lower")
        axes.set(title=title, xticks=[], yticks=[])
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Optimal disturbances of a shear flow.")
    parser.add_argument("--output", default="navier_stokes.png", help="where to write the figure")
    parser.add_argument("--cells", type=int, default=48, help="along a side")
    parser.add_argument("--time", type=float, default=2.0)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args(arguments)
    growth = grow(options.cells, options.time, options.steps)
    print(report(growth))
    draw_figure(growth, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
