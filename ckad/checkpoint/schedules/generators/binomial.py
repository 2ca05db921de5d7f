"""The binomial generator: the segment on top of the stack is split where it costs least.

β(s, r) = C(s + r, s) throughout; A. Griewank, A. Walther, "Algorithm 799:
Revolve", ACM Trans. Math. Softw. 26 (2000) 19–45.
"""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.codes import END, RESTORE, STORE, TAPE
from ckad.checkpoint.schedules.generators.filling import NEXT
from ckad.checkpoint.schedules.generators.stack import FRONTIER, HERE, OWN, TOP, on_a_stack
from ckad.kernel import kernel

SWEEPING, PERIOD, EXTRA, STACK = range(OWN, OWN + 4)

# Float products this far above 2**62 exceed every n_steps whatever their rounding.
SATURATED = 2.0**62 * (1 + 1e-9)


def least_repetitions(n: int, s: int) -> int:
    """The least r with β(s, r) >= n; any size."""
    low, high = -1, 1
    while comb(s + high, s) < n:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if comb(s + middle, s) < n:
            low = middle
        else:
            high = middle
    return high


def binomial_forward_steps(n: int, s: int) -> int:
    """F(n, s) = n + r n - β(s + 1, r - 1), the fewest forward steps that reverse n steps."""
    if n < 2:
        return n
    if s == 1:
        return n * (n + 1) // 2
    s = min(s, n - 1)
    r = least_repetitions(n, s)
    return n + r * n - comb(s + r, s + 1)


def registers(n_steps: int, period: int, extra_slots: int, sweep: bool) -> tuple[int, ...]:
    """Start of `fill` for segments of ``period`` steps, ``extra_slots`` inside each of them.

    With ``sweep`` each segment's start is stored on the way to the end of the loop, and the last
    segment is restarted like the others.
    """
    first = END if n_steps == 0 else TAPE if n_steps == 1 and not sweep else STORE
    return (first, 0, n_steps, -1, int(sweep), period, extra_slots)


@kernel
def scaled(x: int, numerator: int, denominator: int) -> int:
    """x · numerator / denominator, known to be whole, without forming the product."""
    quotient, rest = x // denominator, x % denominator
    return quotient * numerator + rest * numerator // denominator


@kernel
def repetitions(n: int, s: int) -> tuple[int, int]:
    """(r, β(s, r - 1)) with β(s, r - 1) < n <= β(s, r), for s >= 2."""
    r, beta = 0, 1
    if s == 2 and n > 64:
        # r grows like √(2n) here, like a third or higher root elsewhere: start close below.
        r = int(sqrt(2.0 * n)) - 4
        beta = (r + 1) * (r + 2) // 2
    while True:
        if float(beta) * (s + r + 1) / (r + 1) > SATURATED:
            return r + 1, beta
        larger = scaled(beta, s + r + 1, r + 1)
        if larger >= n:
            return r + 1, beta
        r, beta = r + 1, larger


@kernel
def split(n: int, s: int) -> int:
    """How far to advance before the next checkpoint: optimal, and with the fewest writes.

    Every i between β(s, r-2) and β(s, r-1) that leaves between β(s-1, r-1) and β(s-1, r) steps is
    optimal; leaving β(s-1, r-1) + β(s-2, r-1) where the bounds allow it writes least.
    """
    if s == 1:
        return n - 1
    if s >= n - 1:
        return 1
    r, most = repetitions(n, s)
    least = scaled(most, r - 1, s + r - 1)  # β(s, r-2)
    beside = most - least  # β(s-1, r-1)
    wanted = n - beside - scaled(beside, s - 1, s + r - 2)
    return min(max(wanted, least), most)


@kernel
def advance(state: NDArray[np.int64]) -> int:
    """Where the next ADVANCE stops; sets what follows it."""
    here, frontier, period = state[HERE], state[FRONTIER], state[PERIOD]
    stop: int
    if state[SWEEPING]:
        stop = here + min(period, frontier - here)
        state[SWEEPING] = stop < frontier
        state[NEXT] = STORE if stop < frontier else RESTORE
        return stop
    n_free = (frontier - 1) // period + 1 + state[EXTRA] - state[TOP]
    stop = here + split(frontier - here, n_free)
    state[NEXT] = TAPE if frontier - stop == 1 else STORE
    return stop


@kernel
def is_taped(state: NDArray[np.int64]) -> bool:
    """Whether one step is left."""
    is_one: bool = state[FRONTIER] - state[HERE] == 1
    return is_one


fill = on_a_stack(advance, is_taped, STACK)
