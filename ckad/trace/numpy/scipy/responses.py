"""Responses of filters to frequencies, waves of known forms, and systems from continuous time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal

from ckad.trace.arrays import Array, doubles, known, own, traced
from ckad.trace.dispatch import STATIC, implements, reject
from ckad.trace.numpy.scipy.dense.matrices import expm

# --- responses ---------------------------------------------------------------------------------


@implements(scipy.signal.freqz, kind=STATIC)
def freqz(
    b: Any, a: Any = 1, worN: Any = 512, whole: bool = False, plot: Any = None,
    fs: Any = 2.0 * math.pi, include_nyquist: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    reject(plot is not None or np.ndim(b) > 1 or np.ndim(a) > 1, "scipy.signal.freqz with plot= "
           "or of several filters")  # fmt: skip
    given = known(worN) if worN is not None and np.ndim(worN) == 0 else None
    if worN is None or given is not None:
        n = 512 if given is None else int(given)
        last = 2.0 * math.pi if whole else math.pi
        w: Any = np.linspace(0.0, last, n, endpoint=include_nyquist and not whole)
    else:
        w = traced(worN) * (2.0 * math.pi / fs)
    z = np.exp(-1j * w)
    b, a = np.reshape(traced(b), -1), np.reshape(traced(a), -1)
    return w * (fs / (2.0 * math.pi)), np.polyval(b[::-1], z) / np.polyval(a[::-1], z)


@implements(scipy.signal.freqs, kind=STATIC)
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> tuple[Array, Array]:
    named = plot is not None or worN is None or np.ndim(worN) == 0
    reject(named, "scipy.signal.freqs with plot= or without frequencies")
    w = traced(worN)
    s = 1j * w
    return w, np.polyval(np.reshape(traced(b), -1), s) / np.polyval(np.reshape(traced(a), -1), s)


# --- waves -------------------------------------------------------------------------------------


@implements(scipy.signal.sawtooth)
def sawtooth(t: Any, width: Any = 1) -> Array:
    t, w = np.broadcast_arrays(doubles(t), doubles(width))
    there = np.logical_and(w >= 0.0, w <= 1.0)
    phase = np.mod(t, 2.0 * math.pi)
    rises = phase < w * (2.0 * math.pi)
    up = phase / (math.pi * np.where(rises, w, 1.0)) - 1.0
    down = (math.pi * (w + 1.0) - phase) / (math.pi * (1.0 - np.where(rises, 0.0, w)))
    return own(np.where(there, np.where(rises, up, down), np.nan))


@implements(scipy.signal.square)
def square(t: Any, duty: Any = 0.5) -> Array:
    t, w = np.broadcast_arrays(doubles(t), doubles(duty))
    there = np.logical_and(w >= 0.0, w <= 1.0)
    high = np.mod(t, 2.0 * math.pi) < w * (2.0 * math.pi)
    return own(np.where(there, np.where(high, 1.0, -1.0), np.nan))


@implements(scipy.signal.chirp)
def chirp(
    t: Any, f0: Any, t1: Any, f1: Any, method: str = "linear", phi: Any = 0,
    vertex_zero: bool = True, *, complex: bool = False,
) -> Array:  # fmt: skip
    linear = method in ("linear", "lin", "li")
    reject(complex or not (linear or method in ("quadratic", "quad", "q")),
           "scipy.signal.chirp with complex= or another method= than 'linear' and "
           "'quadratic'")  # fmt: skip
    t, f0, t1, f1 = (doubles(x) for x in (t, f0, t1, f1))
    if linear:
        turns = f0 * t + 0.5 * (f1 - f0) / t1 * t * t
    elif vertex_zero:
        turns = f0 * t + (f1 - f0) / t1**2 * t**3 / 3.0
    else:
        turns = f1 * t + (f1 - f0) / t1**2 * ((t1 - t) ** 3 - t1**3) / 3.0
    return own(np.cos(2.0 * math.pi * turns + doubles(phi) * (math.pi / 180.0)))


# --- systems -----------------------------------------------------------------------------------


@implements(scipy.signal.cont2discrete)
def cont2discrete(system: Any, dt: Any, method: str = "zoh", alpha: Any = None) -> Any:
    """Of state-space matrices: by the exponential, or by the generalised bilinear rule."""
    reject(len(system) != 4, "scipy.signal.cont2discrete of other than (A, B, C, D)")
    weights = {"bilinear": 0.5, "tustin": 0.5, "euler": 0.0, "forward_diff": 0.0,
               "backward_diff": 1.0, "gbt": alpha}  # fmt: skip
    reject(method != "zoh" and method not in weights, f"scipy.signal.cont2discrete with {method!r}")
    a, b, c, d = (np.atleast_2d(doubles(x)) for x in system)
    n, inputs = b.shape
    if method == "zoh":
        below = np.zeros((inputs, n + inputs))
        whole = np.concatenate([np.concatenate([a, b], 1) * dt, below])
        found = expm(whole)
        return found[:n, :n], found[:n, n:], c, d, dt
    weight = weights[method]
    left = np.eye(n) - weight * dt * a
    ad = np.linalg.solve(left, np.eye(n) + (1.0 - weight) * dt * a)
    bd = np.linalg.solve(left, dt * b)
    cd = np.linalg.solve(left.T, c.T).T
    return ad, bd, cd, d + weight * (c @ bd), dt
