"""Powell's hybrid method and Levenberg's and Marquardt's, as MINPACK has them.

They are Python as a user would write it, and are recorded from their source like a user's.
Jacobians are exact where MINPACK takes differences; the steps are the same to their error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

F = Callable[[Any], Any]
EPS = float(np.finfo(np.float64).eps)


def length(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


def hybrid(f: F, slopes: F, x: Any, xtol: float, limit: int, factor: float) -> Any:
    """(x, f(x), MINPACK's ``info``, evaluations, whether a step was short) of ``hybrj``
    (Moré, Garbow & Hillstrom 1980). Where f is linear, or rounding all that is left, MINPACK makes
    no progress at the root itself."""
    value = f(x)
    size = length(value)
    scale = 0.0 * x
    radius = 0.0 * size
    info = np.int64(0)
    jacobian = slopes(x)
    fresh = True  # whether the Jacobian is one of this place
    good: Any = np.int64(0)
    bad = slow = slower = good
    calls = np.int64(1)
    near = size != size
    for k in range(limit):
        if fresh:
            columns = np.sqrt(np.sum(jacobian * jacobian, axis=0))
            if k == 0:
                scale = np.where(columns == 0.0, 1.0, columns)
                radius = factor * length(scale * x)
                radius = np.where(radius == 0.0, factor, radius)
            scale = np.maximum(scale, columns)
        step = -dogleg(jacobian, value, scale, radius)
        made = length(scale * step)
        if k == 0:
            radius = np.minimum(radius, made)
        tried = f(x + step)
        calls = calls + 1
        size_tried = length(tried)
        foreseen = value + jacobian @ step
        gained, ratio = agreement(size, size_tried, length(foreseen))
        radius, good, bad = resized(radius, made, ratio, good, bad)
        change = (tried - foreseen) / np.where(made > 0.0, made, 1.0)
        along = scale * scale * step / np.where(made > 0.0, made, 1.0)
        if ratio >= 1e-4:
            x, value, size = x + step, tried, size_tried
        slow = np.where(gained >= 1e-3, 0, slow + 1)
        if fresh:
            slower = np.where(gained >= 0.1, 0, slower + 1)
        whole = length(scale * x)
        near = near | (made <= xtol * whole)
        info = ending(radius <= xtol * whole or size == 0.0, radius, made, whole, slower, slow)
        if info != 0:
            break
        if bad == 2:
            jacobian = slopes(x)
            fresh = True
            good, bad = 0 * good, 0 * bad
        else:
            jacobian = jacobian + change[:, np.newaxis] * along
            fresh = False
    return x, value, np.where(info == 0, 2, info), calls, near


def ending(is_root: Any, radius: Any, made: Any, whole: Any, slower: Any, slow: Any) -> Any:
    """Why no further step is made, as MINPACK's ``info``; 0 if one is."""
    if is_root:
        return 1
    if 0.1 * np.maximum(0.1 * radius, made) <= EPS * whole:
        return 3
    if slower == 5:
        return 4
    return 5 if slow == 10 else 0


def agreement(size: Any, tried: Any, foreseen: Any) -> Any:
    """By which part ‖f‖² has become smaller, and how much that is of what the Jacobian promised."""
    gained = np.where(tried < size, 1.0 - (tried / size) ** 2, -1.0)
    promised = np.where(foreseen < size, 1.0 - (foreseen / size) ** 2, 0.0)
    ratio = np.where(promised > 0.0, gained / np.where(promised > 0.0, promised, 1.0), 0.0)
    return gained, ratio


def resized(radius: Any, made: Any, ratio: Any, good: Any, bad: Any) -> Any:
    """The radius within which the Jacobian is trusted, and steps that were good, or bad, so far."""
    if ratio < 0.1:
        good, bad = 0 * good, bad + 1
        radius = 0.5 * radius
    else:
        good, bad = good + 1, 0 * bad
        if ratio >= 0.5 or good > 1:
            radius = np.maximum(radius, made / 0.5)
        if abs(ratio - 1.0) <= 0.1:
            radius = made / 0.5
    return radius, good, bad


def dogleg(jacobian: Any, value: Any, scale: Any, radius: Any) -> Any:
    """Powell's dogleg: between the step of Newton and that down the scaled gradient."""
    q, r = np.linalg.qr(jacobian)
    pivots = np.diag(r)
    least = EPS * np.max(np.abs(r), axis=0)  # in place of zeros, as in MINPACK
    pivots = np.where(pivots != 0.0, 0.0, np.where(least > 0.0, least, EPS))
    newton = solve_triangular(r + np.diag(pivots), q.T @ value)
    far = length(scale * newton)
    x = newton
    if far > radius:
        down = (jacobian.T @ value) / scale
        steep = length(down)
        x = radius / far * newton
        if steep > 0.0:
            down = down / steep / scale
            rate = length(jacobian @ down)
            best = steep / rate / rate
            alpha = 0.0 * best
            if best < radius:
                a, b = radius / far, best / radius
                t = length(value) / steep * (length(value) / far) * b
                t = t - a * b * b + np.sqrt((t - a) ** 2 + (1.0 - a * a) * (1.0 - b * b))
                alpha = a * (1.0 - b * b) / t
            x = (1.0 - alpha) * np.minimum(best, radius) * down + alpha * newton
    return x


def least_squares(
    f: F, slopes: F, x: Any, value: Any, low: Any, high: Any, tol: float, limit: int
) -> Any:
    """(x, residuals, slopes of half their squares, whether it is a minimum, evaluations); Madsen,
    Nielsen & Tingleff (2004). Unknowns that the slope holds at a bound stay there, and steps of the
    others are cut at the bounds (Bertsekas 1982).

    ``value`` has the shape of the residuals. Each turn tries what the one before has proposed, so
    that f and its slopes stand in the program once.
    """
    none = np.sum(0.0 * x)
    at, size = x, np.inf + none
    jacobian = value[:, np.newaxis] * x
    down, curvature = 0.0 * x, 0.0 * x
    damping, growth, promised = 1e-3 + none, 2.0 + none, 1.0 + none
    done = near = none != none
    calls = np.int64(0)
    for _ in range(limit):
        tried = f(at)
        calls = calls + 1
        size_tried = np.sum(tried * tried)
        if size_tried < size:
            if size < np.inf:
                ratio = np.where(promised > 0.0, (size - size_tried) / promised, 0.5)
                damping = damping * np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3)
            growth = 2.0 + 0.0 * growth
            x, value, size = at, tried, size_tried
            jacobian = slopes(x)
            down = jacobian.T @ value
            curvature = np.maximum(curvature, np.sum(jacobian * jacobian, axis=0))
        else:
            damping, growth = damping * growth, 2.0 * growth
        held = ((x <= low) & (down >= 0.0)) | ((x >= high) & (down <= 0.0))
        free = np.logical_not(held)
        slope = np.where(free, down, 0.0)
        if near or np.max(np.abs(slope)) == 0.0:
            done = size < np.inf
            break
        weights = np.where(curvature > 0.0, curvature, 1.0)
        normal = np.where(
            free[:, np.newaxis] & free,
            jacobian.T @ jacobian + damping * np.diag(weights),
            np.eye(x.size),
        )
        at = np.minimum(np.maximum(x - np.linalg.solve(normal, slope), low), high)
        step = at - x
        scaled = np.sqrt(weights)
        near = length(scaled * step) <= tol * (length(scaled * x) + tol)
        ahead = jacobian @ step
        promised = -np.sum(ahead * ahead) - 2.0 * (down @ step)
    return x, value, down, done, calls
