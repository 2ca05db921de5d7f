"""Least times of segments, by recurrences over their lengths.

A row has a number for each length: ``row[k]`` is for k + 1 steps, as k of them are run before the
last one is taped. Times are whole numbers of any unit; of the steps only those that are run beside
the ones that tape are counted, since each step is taped once.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.schedule import at_least
from ckad.errors import ScheduleError
from ckad.kernel import kernel

Row = NDArray[np.int64]

#: Stands for what cannot be; the sum of three of them is still a number.
NEVER = 2**61
#: Lengths that are computed together, and how much of a row is read for them at a time.
BLOCK, TILE = 32, 1024
#: Numbers in the rows of one search, and sums that are formed for them: about a minute.
MOST_NUMBERS, MOST_SUMS = 2**26, 2**38


@kernel
def least_sum(before: Row, back: Row, shift: int, start: int, stop: int, best: int) -> int:
    """The least of ``best`` and before(j) + back(shift + j), start <= j < stop."""
    # slices, so that no index may be negative and the loop is vectorised
    one, other = before[start:stop], back[shift + start : shift + stop]
    for j in range(one.size):
        best = min(best, one[j] + other[j])
    return best


@kernel
def restored(below: Row, behind: Row, step: int, read: int, least_behind: int) -> Row:
    """P(k) = min(below(k), min over j of j step + behind(k - j) + read + P(j - 1)), j >= 1.

    The start of the segment is kept: ``behind`` is the time of what lies behind another state that
    is kept j steps on, k - j >= ``least_behind``, and ``below`` that of a segment that is not
    divided in this way.
    """
    n = below.size
    least = below.copy()
    back = behind[::-1].copy()
    before = np.zeros(n + 1, np.int64)  # j step + read + P(j - 1)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        for j in range(1, begin, TILE):  # a tile stays in the cache for all lengths of the block
            stop = min(j + TILE, begin)
            for k in range(begin, end):
                least[k] = least_sum(before, back, n - 1 - k, j, stop, least[k])
        for k in range(begin, end):
            stop = k + 1 - least_behind
            least[k] = least_sum(before, back, n - 1 - k, max(1, begin), stop, least[k])
            before[k + 1] = (k + 1) * step + read + least[k]
    return least


@kernel
def written(below: Row, before: Row, most: int) -> Row:
    """O(k) = min(below(k), min over 1 <= j < k, j <= most, of before(j) + O(k - j))."""
    n = below.size
    least = np.empty(n, np.int64)
    back = np.empty(n, np.int64)
    for k in range(n):
        shift = n - 1 - k
        least[k] = least_sum(before, back, shift, 1, min(k, most + 1), below[k])
        back[shift] = least[k]
    return least


@kernel
def longest_useful(row: Row, joint: int) -> int:
    """The longest piece that takes less than any two pieces and ``joint``; it has k + 1 steps."""
    for k in range(row.size - 1, 0, -1):
        useful = True
        for j in range((k + 1) // 2, 0, -1):  # where pieces are too long, halves are the remedy
            if row[j - 1] + row[k - j] + joint <= row[k]:
                useful = False
                break
        if useful:
            return k + 1
    return 1


def first_split(
    n: int, before: Row, behind: Row, step: int, read: int, least_behind: int = 1
) -> int:
    """The least j with which `restored` reaches its minimum for ``n`` steps, if it divides."""
    j = np.arange(1, n - least_behind)
    times = j * step + behind[n - 1 - j] + before[j - 1] + read
    return 1 + int(np.argmin(times))


def one_slot(n: int, step: int, read: int) -> Row:
    """P₀(k, 1) = k (k + 1) / 2 step + k read, for up to n steps."""
    k = np.arange(n)
    return k * (k + 1) // 2 * step + k * read


def binomial_row(n: int, slots: int, step: int) -> Row:
    """t(n, s) step = (r n - β(s + 1, r - 1)) step: what `revolve` runs beside steps it tapes."""
    if slots == 1:
        return one_slot(n, step, 0)
    row = np.empty(n, np.int64)
    begin, r = 1, 0
    while begin <= n:
        end = min(n, comb(slots + r, slots))
        length = np.arange(begin, end + 1)
        row[begin - 1 : end] = r * length - (comb(slots + r, slots + 1) if r else 0)
        begin, r = end + 1, r + 1
    return row * step


def checked(n_rows: int, n_steps: int, per_number: int, **times: int) -> None:
    """Refuse a search that takes too long, or times that are not whole numbers or too large."""
    for name, time in times.items():
        at_least(int(name == "step"), name, time)
        if n_steps * (n_steps + 4) * time >= NEVER:
            raise ScheduleError(
                f"{name}={time} is too large a number for {n_steps} steps. Pass all times in a "
                f"larger unit, {name} below {NEVER // (n_steps * (n_steps + 4))}."
            )
    numbers = n_rows * n_steps
    if numbers > MOST_NUMBERS or numbers * per_number > MOST_SUMS:
        raise ScheduleError(
            f"to find this schedule takes {n_rows} x {n_steps} numbers, each the least of up to "
            f"{per_number}; that takes too long. Pass fewer slots, or take revolve, multistage, "
            f"mixed or periodic_disk, whose schedules have no such table."
        )
