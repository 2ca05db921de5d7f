"""A step along a direction that makes a function smaller."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.transforms import while_loop

#: Of the conditions of Wolfe.
DECREASE, SLOPE = 1e-4, 0.9
#: What rounding may add to a function's value, relative to it.
NOISE = 1e-14
TRIALS = 50


def along(valued: Callable[[Any], tuple[Any, Any]], x: Any, f: Any, g: Any, d: Any, t: Any) -> Any:
    """x + t d by bisection to the weak conditions of Wolfe (Lewis & Overton 2013, algorithm 4.6).

    Where the value changes by rounding alone the slope decides (Hager & Zhang 2005, equation 27).
    """
    slope = g @ d

    def tried(s: dict[str, Any]) -> dict[str, Any]:
        t = s["t"]
        new = x + t * d
        f_new, g_new = valued(new)
        slope_new = g_new @ d
        by_value = f_new <= f + DECREASE * t * slope
        level = f_new <= f + NOISE * np.abs(f)
        falls = by_value | (level & (slope_new <= (2.0 * DECREASE - 1.0) * slope))
        flat = slope_new >= SLOPE * slope
        low, high = np.where(falls, t, s["low"]), np.where(falls, s["high"], t)
        return {
            "t": np.where(np.isinf(high), 2.0 * low, 0.5 * (low + high)),
            "low": low,
            "high": high,
            "x": np.where(falls, new, s["x"]),
            "f": np.where(falls, f_new, s["f"]),
            "g": np.where(falls, g_new, s["g"]),
            "ok": s["ok"] | falls,
            "done": falls & flat,
            "n": s["n"] + 1,
        }

    begin = {"t": t, "low": np.float64(0.0), "high": np.float64(math.inf), "x": x, "f": f, "g": g}
    begin |= {"ok": np.bool_(False), "done": np.bool_(False), "n": np.int64(0)}
    return while_loop(lambda s: np.logical_not(s["done"]) & (s["n"] < TRIALS), tried, begin)
