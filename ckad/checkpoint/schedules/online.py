"""Checkpoints for a loop whose length is learnt while it runs.

On the way forward a state that is needed least gives its slot to the present one wherever that
leaves less work, should the loop end soon. Reversal then is binomial in every gap between two
checkpoints, with the slots that have become free. What is done at a step follows from its number
alone, so that a sweep can be found again from where it ended.

Replacing checkpoints on the way is the idea of P. Stumm, A. Walther, "New algorithms for optimal
online checkpointing", SIAM J. Sci. Comput. 32 (2010), and of Q. Wang, P. Moin, G. Iaccarino,
"Minimal repetition dynamic checkpointing", SIAM J. Sci. Comput. 31 (2009); both choose by other
rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.generators import binomial
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import (
    MAX_STEPS,
    Action,
    Actions,
    Family,
    Schedule,
    at_least,
)
from ckad.kernel import kernel

#: More slots are not used: with so many 131 327 steps are run twice on the average.
MOST_SLOTS = 512
#: Of all steps every n-th may be stored, n a power of two: about so many per slot, or with more
#: than FEW slots FEWER.
PLACES, FEW, FEWER = 16, 64, 4

#: Rows that are listed at a time.
MOST_ROWS = 4096
#: Where the first piece of a sweep of unknown length ends, if it has not ended before.
NEAR = 2**16

Row = tuple[int, int, int, int]
Held = tuple[NDArray[np.int64], NDArray[np.int32]]  # steps and their slots


# --- which states are kept -----------------------------------------------------------------------


@kernel
def reversal_steps(n: int, s: int) -> float:
    """F(n, s), see `binomial.binomial_forward_steps`; rounded beyond 2**53."""
    if n < 2:
        return float(n)
    if s == 1:
        return 0.5 * n * (n + 1.0)
    if s >= n - 1:
        return 2.0 * n - 1.0
    r, beta = binomial.repetitions(n, s)
    return n + r * float(n) - float(beta) * (s + r) / (s + 1.0)


@kernel
def replaced(held: NDArray[np.int64], n: int, horizon: int, rest: NDArray[np.float64]) -> int:
    """The checkpoint that the state at step ``n`` had better replace; 0 if none.

    Each choice is judged by what reversal costs if the loop ends at ``horizon``; of equal ones the
    first goes. ``rest`` is room for two numbers more than there are slots.
    """
    s = held.size
    rest[s] = 0.0
    gap = n - held[s - 1]
    for k in range(s - 1, 0, -1):  # what lies behind checkpoint k, with a slot more than now
        rest[k] = rest[k + 1] + reversal_steps(gap, s - k + 1)
        gap = held[k] - held[k - 1]
    before, best, least = 0.0, 0, np.inf
    for k in range(1, s):
        behind = held[k + 1] if k + 1 < s else n
        joined = reversal_steps(behind - held[k - 1], s - k + 1)
        cost = before + joined + rest[k + 1]
        if cost < least:
            best, least = k, cost
        before += reversal_steps(held[k] - held[k - 1], s - k + 1)
    as_it_is = before + reversal_steps(horizon - held[s - 1] - 1, 1)
    return best if least + reversal_steps(horizon - n - 1, 1) <= as_it_is else 0


@kernel
def joined_first(held: NDArray[np.int64], n: int, first: int) -> int:
    """The checkpoint whose gaps are the first to be joined so that no step runs thrice; 0 if none.

    Those before ``first`` have been looked at. It is as good as any choice while there are at
    most (s + 1)(s + 2) / 2 steps.
    """
    s = held.size
    for k in range(first, s):
        behind = held[k + 1] if k + 1 < s else n
        if behind - held[k - 1] <= s + 2 - k:
            return k
    return 0


@kernel
def next_store(
    held: NDArray[np.int64],
    n_held: int,
    here: int,
    first: int,
    limit: int,
    rest: NDArray[np.float64],
) -> tuple[int, int]:
    """The next step after ``here`` that is stored, and which checkpoint it replaces.

    ``n_held`` stands for a slot that is still empty; (limit, 0) if nothing more is stored.
    """
    s = held.size
    n, places = here, (PLACES if s <= FEW else FEWER) * s
    while s > 1:
        distance = 1
        while 2 * distance * places <= n:
            distance *= 2
        n = (n // distance + 1) * distance
        if n >= limit:
            break
        if n_held < s:
            return n, n_held
        k = 0
        if s > FEW and 2 * n < (s + 1) * (s + 2):
            k = joined_first(held, n, first)
        if k == 0:
            k = replaced(held, n, n + max(2, distance), rest)
        if k:
            return n, k
    return limit, 0


def stores(n_slots: int, limit: int, held: list[Held]) -> Iterator[tuple[int, int, int]]:
    """(step, slot, step that was in it or -1) of the states stored on the way to ``limit``.

    ``held`` gets what is held at the end.
    """
    steps, slots = np.zeros(n_slots, np.int64), np.arange(n_slots, dtype=np.int32)
    rest = np.zeros(n_slots + 2)
    n_held, here, first = 1, 0, 1
    while True:
        n, k = next_store(steps, n_held, here, first, limit, rest)
        if n >= limit:
            break
        dropped, slot = -1, int(slots[k])
        if k < n_held:
            dropped, first = int(steps[k]), k
            steps[k:-1], slots[k:-1] = steps[k + 1 :].copy(), slots[k + 1 :].copy()
            slots[-1], steps[-1] = slot, n
        else:
            steps[n_held] = n
            n_held += 1
        here = n
        yield n, slot, dropped
    held.append((steps[:n_held], slots[:n_held]))


def held_at(n_steps: int, n_slots: int) -> Held:
    """The checkpoints when the loop has run ``n_steps`` steps."""
    found: list[Held] = []
    for _ in stores(n_slots, n_steps, found):
        pass
    return found[0]


# --- actions -------------------------------------------------------------------------------------


def sweep_rows(n_slots: int, limit: int) -> Iterator[Row]:
    """STORE, ADVANCE and DROP up to the last store before ``limit``, and on to it."""
    yield Action.STORE, 0, 0, 0
    here = 0
    for n, slot, dropped in stores(n_slots, limit, []):
        yield Action.ADVANCE, here, n, -1
        if dropped >= 0:
            yield Action.DROP, dropped, dropped, slot
        yield Action.STORE, n, n, slot
        here = n
    if here < limit:
        yield Action.ADVANCE, here, limit, -1


def reversal(held: Held, n_left: int, n_actions: int) -> Iterator[Actions]:
    """Reverse the steps before ``n_left``, gap by gap, and END."""
    steps, slots = held
    end = n_left
    for k in range(len(steps) - 1, -1, -1):
        begin = int(steps[k])
        yield from _gap(begin, end - begin, slots[k:], n_actions)
        end = begin
    yield _listed([(Action.END, 0, 0, -1)])


def _gap(begin: int, length: int, slots: NDArray[np.int32], n_actions: int) -> Iterator[Actions]:
    """Reverse the steps behind a checkpoint, in the first of ``slots``; the others are free."""
    own = int(slots[0])
    if length < 2:
        drop = (Action.DROP, begin, begin, own)
        yield _listed([(Action.RESTORE, begin, begin, own), drop] if length else [drop])
    if length == 0:
        return
    fresh = length > 1
    for rows in revolve(length, len(slots)).chunks(n_actions):
        if fresh:
            rows.kind[0], fresh = Action.RESTORE, False
        if rows.kind[-1] == Action.END:
            rows = rows.piece(0, rows.kind.size - 1)
        on_slots = np.isin(rows.kind, (Action.STORE, Action.RESTORE, Action.DROP))
        slot = np.where(on_slots, slots[np.where(on_slots, rows.slot, 0)], rows.slot)
        yield Actions(rows.kind, rows.start + begin, rows.stop + begin, slot.astype(np.int32))


def _listed(rows: Sequence[Row]) -> Actions:
    columns = np.array(rows, np.int64).T
    return Actions(*columns)._replace(
        kind=columns[0].astype(np.int8), slot=columns[3].astype(np.int32)
    )


def _in_pieces(pieces: Iterator[Actions], n_actions: int) -> Iterator[Actions]:
    """The same rows, ``n_actions`` at a time."""
    kept: list[Actions] = []
    n_kept = 0
    for piece in pieces:
        kept.append(piece)
        n_kept += piece.kind.size
        if n_kept >= n_actions:
            whole = _joined(kept)
            full = n_kept // n_actions * n_actions
            for at in range(0, full, n_actions):
                yield whole.piece(at, at + n_actions)
            kept, n_kept = [whole.piece(full, n_kept)], n_kept - full
    if n_kept:
        yield _joined(kept)


def _joined(pieces: list[Actions]) -> Actions:
    return Actions(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def _batches(rows: Iterator[Row], n_actions: int) -> Iterator[Actions]:
    while some := list(islice(rows, min(n_actions, MOST_ROWS))):
        yield _listed(some)


@dataclass(frozen=True)
class Online:
    """The actions for a loop of ``n_steps`` steps; in two parts, where that is not known yet."""

    n_steps: int
    n_slots: int

    def chunks(self, n_actions: int) -> Iterator[Actions]:
        n = self.n_steps
        if n == 0:
            return iter((_listed([(Action.END, 0, 0, -1)]),))
        last = [(Action.TAPE, n - 1, n, 0), (Action.REVERSE, n - 1, n, 0)]
        rows = self._forward(n)
        parts = (_batches(rows, n_actions), iter((_listed(last),)), self._backward(n, n_actions))
        return _in_pieces(chain(*parts), n_actions)

    def _forward(self, n: int) -> Iterator[Row]:
        """The sweep, short of the last step, which is taped."""
        for row in sweep_rows(self.n_slots, n):
            kind, start, stop, slot = row
            if kind == Action.ADVANCE and stop == n:
                stop = n - 1
            if kind != Action.ADVANCE or start < stop:
                yield kind, start, stop, slot

    def _backward(self, n: int, n_actions: int) -> Iterator[Actions]:
        # a generator, since to find out what is held takes as long as the sweep's actions
        yield from reversal(held_at(n, self.n_slots), n - 1, n_actions)

    # --- where the number of steps is learnt ----------------------------------------------------

    def sweep(self, n_actions: int) -> Iterator[Actions]:
        """The forward phase of a loop that may go on for ever.

        With few slots a thousand rows lead to the end of all numbers, and what is far takes long to
        find; so a piece ends where it has come far beyond the one before.
        """
        most, some, far = min(n_actions, MOST_ROWS), list[Row](), NEAR
        for row in sweep_rows(self.n_slots, MAX_STEPS):
            some.append(row)
            if len(some) == most or row[2] >= far:
                yield _listed(some)
                some, far = [], max(far, 4 * row[2])
        if some:
            yield _listed(some)

    def after(self, n_steps: int, n_actions: int) -> Iterator[Actions]:
        """The reverse phase when the sweep has been stopped after ``n_steps`` steps."""
        if n_steps == 0:
            return iter((_listed([(Action.END, 0, 0, -1)]),))
        held = held_at(n_steps, self.n_slots)
        return _in_pieces(reversal(held, n_steps, n_actions), n_actions)


def _arguments(n_steps: int, n_slots: int) -> tuple[int, int]:
    n, s = at_least(0, "n_steps", n_steps), at_least(1, "n_slots", n_slots)
    return n, min(s, MOST_SLOTS)


def forward_steps(n_steps: int, n_slots: int) -> int:
    """The sweep, and the binomial count of each gap with the slots from its own on."""
    n, s = _arguments(n_steps, n_slots)
    if n == 0:
        return 0
    steps, _ = held_at(n, s)
    ends = [*steps[1:].tolist(), n - 1]
    gaps = zip(steps.tolist(), ends, range(len(steps), 0, -1), strict=True)
    count = binomial.binomial_forward_steps
    return n + sum(count(end - begin, slots) for begin, end, slots in gaps)


def online(n_steps: int, n_slots: int) -> Schedule:
    """Reverse ``n_steps`` steps that nobody knows to be so many until the last one is done.

    It needs at most ``n_slots`` restart slots, of which it uses 512 at the most, and one residual
    slot. It runs hardly more steps than `revolve`, which knows how many there are: for up to
    (s + 1)(s + 2) / 2 of them at most one, on the average over all lengths 2 % more with three
    slots and at most 1 % with five or more. A while loop is reversed this way; the last step,
    which is taped here at once, is then found to be the last when it has been run, so that a few
    more are run again.

    Raises:
        ScheduleError: ``n_steps`` is negative or above 2**62, ``n_slots`` is below 1, or one of
            them is not an integer.

    >>> from ckad.schedules import online
    >>> online(66, 10).forward_steps, online(1000, 10).forward_steps
    (186, 4764)
    """
    n, s = _arguments(n_steps, n_slots)
    n_held = len(held_at(n, s)[0]) if n else 0
    return Schedule("online", n, n_held, min(n, 1), forward_steps(n, s), Online(n, s))


def unknown(n_steps: int, n_slots: int) -> Schedule:
    """`online` for a loop that is thought to run ``n_steps`` steps: it has all the slots.

    ``forward_steps`` is that of `revolve`, a little less than what will be run.
    """
    n, s = _arguments(n_steps, n_slots)
    return Schedule("online", n, s, 1, binomial.binomial_forward_steps(n, s), Online(n, s))


FAMILY = Family(
    "online",
    online,
    forward_steps,
    examples=((0, 1), (1, 1), (2, 1), (9, 1), (60, 2), (10, 3), (66, 10), (100, 5), (7, 50)),
)
