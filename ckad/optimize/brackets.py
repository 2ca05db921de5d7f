"""Iterations for one unknown as SciPy makes them, to its own tolerances.

They are Python as a user would write it, and are recorded from their source like a user's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

F = Callable[[Any], Any]
#: Golden section, as Brent's minimisation has it in SciPy.
_GOLDEN = 0.3819660


def brent(f: F, a: Any, b: Any, xtol: Any, rtol: Any, maxiter: int, harmonic: bool) -> Any:
    """(root, whether it is one); Brent (1973), chapter 4; ``harmonic``: Bus & Dekker (1975)."""
    old, x, side = a, b, 0.0 * b
    f_old, f_x = f(old), f(x)
    f_side = 0.0 * f_x
    before, step = 0.0 * b, 0.0 * b
    done = (f_old == 0.0) | (f_x == 0.0)
    x, f_x = np.where(f_old == 0.0, old, x), np.where(f_old == 0.0, 0.0, f_x)
    right = done | (np.signbit(f_old) != np.signbit(f_x))
    if right and not done:
        for _ in range(maxiter):
            if f_old != 0.0 and f_x != 0.0 and np.signbit(f_old) != np.signbit(f_x):
                side, f_side = old, f_old
                before = step = x - old
            if abs(f_side) < abs(f_x):
                old, x, side = x, side, x
                f_old, f_x, f_side = f_x, f_side, f_x
            delta = (xtol + rtol * abs(x)) / 2.0
            half = (side - x) / 2.0
            if f_x == 0.0 or abs(half) < delta:
                done = done | True
                break
            if abs(before) > delta and abs(f_x) < abs(f_old):
                if old == side:
                    tried = -f_x * (x - old) / (f_x - f_old)
                else:
                    by_old = (f_old - f_x) / (old - x)
                    by_side = (f_side - f_x) / (side - x)
                    if harmonic:
                        tried = -f_x * (f_side - f_old) / (f_side * by_old - f_old * by_side)
                    else:
                        top = f_side * by_side - f_old * by_old
                        tried = -f_x * top / (by_side * by_old * (f_side - f_old))
                if 2.0 * abs(tried) < min(abs(before), 3.0 * abs(half) - delta):
                    before, step = step, tried
                else:
                    before, step = half, half
            else:
                before, step = half, half
            old, f_old = x, f_x
            if abs(step) > delta:
                x = x + step
            else:
                x = x + np.where(half > 0.0, delta, -delta)
            f_x = f(x)
    return x, right & done


def bisect(f: F, a: Any, b: Any, xtol: Any, rtol: Any, maxiter: int, ridders: bool) -> Any:
    """The same by halves of the interval, or by Ridders' method (1979)."""
    f_a, f_b = f(a), f(b)
    done = (f_a == 0.0) | (f_b == 0.0)
    x = np.where(f_a == 0.0, a, b)
    right = done | (np.signbit(f_a) != np.signbit(f_b))
    if right and not done:
        if ridders:
            for _ in range(maxiter):
                half = 0.5 * (b - a)
                middle = a + half
                f_m = f(middle)
                part = half * np.sign(f_b - f_a) * f_m / np.sqrt(f_m * f_m - f_a * f_b)
                x = middle - np.sign(part) * min(abs(part), abs(half) - 0.5 * xtol)
                f_x = f(x)
                if np.signbit(f_x) != np.signbit(f_m):
                    a, f_a, b, f_b = x, f_x, middle, f_m
                elif np.signbit(f_x) != np.signbit(f_a):
                    b, f_b = x, f_x
                else:
                    a, f_a = x, f_x
                if f_x == 0.0 or abs(b - a) < xtol + rtol * abs(x):
                    done = done | True
                    break
        else:
            width = b - a
            for _ in range(maxiter):
                width = 0.5 * width
                x = a + width
                f_x = f(x)
                if np.signbit(f_x) == np.signbit(f_a):
                    a = x
                if f_x == 0.0 or abs(width) < xtol + rtol * abs(x):
                    done = done | True
                    break
    return x, right & done


def newton(f: F, slope: F, bend: F | None, x: Any, tol: Any, rtol: Any, maxiter: int) -> Any:
    """Newton's method; Halley's where ``bend``, the second derivative, is given."""
    done = x != x
    for _ in range(maxiter):
        value = f(x)
        if value == 0.0:
            done = done | True
            break
        derivative = slope(x)
        if derivative == 0.0:
            break
        step = value / derivative
        if bend is not None:
            part = step * bend(x) / derivative / 2.0
            step = step / np.where(abs(part) < 1.0, 1.0 - part, 1.0)
        new = x - step
        near = abs(new - x) <= tol + rtol * abs(x)
        x = new
        if near:
            done = done | True
            break
    return x, done


def newton_of_all(f: F, slope: F, bend: F | None, x: Any, tol: Any, maxiter: int) -> Any:
    """Newton's method for each element by itself, until all are found."""
    done = np.any(x != x)
    for _ in range(maxiter):
        value = f(x)
        if np.all(value == 0.0):
            done = done | True
            break
        derivative = slope(x)
        right = derivative != 0.0
        safe = np.where(right, derivative, 1.0)
        step = value / safe
        if bend is not None:
            step = step / (1.0 - 0.5 * step * bend(x) / safe)
        step = np.where(right, step, 0.0)
        x = x - step
        if np.all(np.abs(step) < tol):
            done = done | np.all(right | (value == 0.0))
            break
    return x, done


def secant(f: F, x: Any, other: Any, tol: Any, rtol: Any, maxiter: int) -> Any:
    """The secant method from two points."""
    p0, p1 = x, other
    q0, q1 = f(p0), f(p1)
    p = p1
    done = q0 != q0
    if abs(q1) < abs(q0):
        p0, p1, q0, q1 = p1, p0, q1, q0
    for _ in range(maxiter):
        if q1 == q0:
            p = (p1 + p0) / 2.0
            done = done | (p1 == p0)
            break
        if abs(q1) > abs(q0):
            p = (-q0 / q1 * p1 + p0) / (1.0 - q0 / q1)
        else:
            p = (-q1 / q0 * p0 + p1) / (1.0 - q1 / q0)
        if abs(p - p1) <= tol + rtol * abs(p1):
            done = done | True
            break
        p0, q0, p1 = p1, q1, p
        q1 = f(p1)
    return p, done


def secants(f: F, x: Any, tol: Any, maxiter: int) -> Any:
    """The secant method for each element by itself, until all are found."""
    dx = float(np.finfo(np.float64).eps) ** 0.33
    p, other = x, x * (1.0 + dx) + np.where(x >= 0.0, dx, -dx)
    q0, q1 = f(p), f(other)
    done = np.any(q0 != q0)
    for _ in range(maxiter):
        right = q1 != q0
        step = np.where(right, q1 * (other - p) / np.where(right, q1 - q0, 1.0), 0.0)
        new = np.where(right, other - step, 0.5 * (other + p))
        p, other, q0 = other, new, q1
        if np.all(np.abs(step) < tol):
            done = done | True
            break
        q1 = f(other)
    return other, done


def least_between(f: F, a: Any, b: Any, xatol: Any, maxiter: int) -> Any:
    """(minimum, whether it is one) of Forsythe, Malcolm & Moler's ``fmin`` (1977)."""
    small, part = math.sqrt(2.2e-16), 0.5 * (3.0 - math.sqrt(5.0))
    x = a + part * (b - a)
    w = v = x
    f_x = f(x)
    f_w = f_v = f_x
    rat = e = 0.0 * x
    done = x != x
    for _ in range(maxiter):
        middle = 0.5 * (a + b)
        tol = small * abs(x) + xatol / 3.0
        if abs(x - middle) <= 2.0 * tol - 0.5 * (b - a):
            done = done | True
            break
        rat, e = _onward(rat, e, a, b, x, w, v, f_x, f_w, f_v, tol, part)
        u = x + np.where(rat >= 0.0, 1.0, -1.0) * max(abs(rat), tol)
        f_u = f(u)
        a, b, x, w, v, f_x, f_w, f_v = _taken(u, f_u, a, b, x, w, v, f_x, f_w, f_v)
    return x, done


def _onward(
    rat: Any, e: Any, a: Any, b: Any, x: Any, w: Any, v: Any, f_x: Any, f_w: Any, f_v: Any,
    near: Any, part: float,
) -> Any:  # fmt: skip
    """The next step and the one before it: to the bottom of the parabola through the three best
    points, where that is well within, else a part of the longer side."""
    middle, golden = 0.5 * (a + b), True
    if abs(e) > near:
        one, two = (x - w) * (f_x - f_v), (x - v) * (f_x - f_w)
        p = (x - v) * two - (x - w) * one
        two = 2.0 * (two - one)
        p, two = np.where(two > 0.0, -p, p), abs(two)
        last, e = e, rat
        if abs(p) < abs(0.5 * two * last) and p > two * (a - x) and p < two * (b - x):
            golden = False
            rat = p / two
            if x + rat - a < 2.0 * near or b - x - rat < 2.0 * near:
                rat = np.where(middle >= x, near, -near)
    if golden:
        e = np.where(x >= middle, a - x, b - x)
        rat = part * e
    return rat, e


def _taken(
    u: Any, f_u: Any, a: Any, b: Any, x: Any, w: Any, v: Any, f_x: Any, f_w: Any, f_v: Any
) -> Any:
    """The three best points and the interval after another one."""
    if f_u <= f_x:
        if u >= x:
            a = x
        else:
            b = x
        return a, b, u, x, w, f_u, f_x, f_w
    if u < x:
        a = u
    else:
        b = u
    if f_u <= f_w or w == x:
        return a, b, x, u, w, f_x, f_u, f_w
    if f_u <= f_v or (v == x) | (v == w):
        return a, b, x, w, u, f_x, f_w, f_u
    return a, b, x, w, v, f_x, f_w, f_v


def least(f: F, a: Any, x: Any, c: Any, tol: Any, maxiter: int) -> Any:
    """The same by Brent's method within a bracket a < x < c or c < x < a."""
    a, b = min(a, c), max(a, c)
    w = v = x
    f_x = f(x)
    f_w = f_v = f_x
    rat = e = 0.0 * x
    done = x != x
    for _ in range(maxiter):
        near = tol * abs(x) + 1e-11
        middle = 0.5 * (a + b)
        if abs(x - middle) < 2.0 * near - 0.5 * (b - a):
            done = done | True
            break
        rat, e = _onward(rat, e, a, b, x, w, v, f_x, f_w, f_v, near, _GOLDEN)
        u = x + np.where(abs(rat) < near, np.where(rat >= 0.0, near, -near), rat)
        f_u = f(u)
        a, b, x, w, v, f_x, f_w, f_v = _taken(u, f_u, a, b, x, w, v, f_x, f_w, f_v)
    return x, done


def bracketed(f: F, a: Any, b: Any, limit: float, maxiter: int) -> Any:
    """Three points, the middle one the least, downhill from two; and whether they were found."""
    golden = 1.618034
    f_a, f_b = f(a), f(b)
    if f_a < f_b:
        a, b, f_a, f_b = b, a, f_b, f_a
    c = b + golden * (b - a)
    f_c = f(c)
    found = c != c
    for _ in range(maxiter):
        if f_c >= f_b:
            found = found | True
            break
        one, two = (b - a) * (f_b - f_c), (b - c) * (f_b - f_a)
        value = two - one
        bottom = 2.0 * np.where(abs(value) < 1e-21, 1e-21, value)
        w = b - ((b - c) * two - (b - a) * one) / bottom
        farthest = b + limit * (c - b)
        beyond = c + golden * (c - b)
        if (w - c) * (b - w) > 0.0:
            f_w = f(w)
            if f_w < f_c:
                a, b, f_a, f_b = b, w, f_b, f_w
                found = found | True
                break
            if f_w > f_b:
                c, f_c = w, f_w
                found = found | True
                break
            w = beyond
            f_w = f(w)
        elif (w - farthest) * (farthest - c) >= 0.0:
            w = farthest
            f_w = f(w)
        elif (w - farthest) * (c - w) > 0.0:
            f_w = f(w)
            if f_w < f_c:
                b, c, w = c, w, w + golden * (w - c)
                f_b, f_c = f_c, f_w
                f_w = f(w)
        else:
            w = beyond
            f_w = f(w)
        a, b, c = b, c, w
        f_a, f_b, f_c = f_b, f_c, f_w
    return a, b, c, found
