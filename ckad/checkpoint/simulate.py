"""Carry out a schedule on step numbers alone, and name its first wrong action."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckad.checkpoint.schedules.codes import ADVANCE, DROP, END, RESTORE, REVERSE, STORE, TAPE
from ckad.checkpoint.schedules.schedule import Actions, Schedule
from ckad.errors import ScheduleError
from ckad.kernel import kernel

FREE = -1

# What the simulation knows besides the slots' contents.
(
    HERE,
    FRONTIER,
    N_STEPS,
    ENDED,
    FORWARD_STEPS,
    WRITES,
    FILLED,
    PEAK_SLOTS,
    TAPED,
    PEAK_TAPE_SLOTS,
    N_SLOTS,
    DISK_WRITES,
    DISK_READS,
    ON_DISK,
    PEAK_DISK_SLOTS,
    SCATTERED,
    N_REGISTERS,
) = range(17)

(
    VALID,
    AFTER_END,
    UNKNOWN_KIND,
    EMPTY_RANGE,
    POINT_RANGE,
    PAST_THE_END,
    WRONG_STATE,
    NO_SUCH_SLOT,
    OCCUPIED,
    NOT_HELD,
    NO_SUCH_TAPE_SLOT,
    TAPE_OCCUPIED,
    WRONG_ORDER,
    NOT_TAPED,
    UNREVERSED,
) = range(15)

FAULTS = {
    AFTER_END: "END came before it; END must be the last action",
    UNKNOWN_KIND: "there is no action of this kind",
    EMPTY_RANGE: "its range holds no step",
    POINT_RANGE: "start and stop must be the same step",
    PAST_THE_END: "the loop has {n_steps} steps only",
    WRONG_STATE: "the working state is at step {here}",
    NO_SUCH_SLOT: "the restart slots are 0 to {n_slots} - 1{of_these}",
    OCCUPIED: "the restart slot already holds step {held}; DROP it first",
    NOT_HELD: "the restart slot holds {held}",
    NO_SUCH_TAPE_SLOT: "the residual slots are 0 to {n_tape_slots} - 1",
    TAPE_OCCUPIED: "a residual slot is not free",
    WRONG_ORDER: "the next step to be reversed is {next_step}",
    NOT_TAPED: "its residual slots do not hold the residuals of these steps",
    UNREVERSED: "step {next_step} and those before it are not reversed",
}


class ScheduleReport(NamedTuple):
    """What a valid schedule was seen to do; writes and slots are those in RAM if not on disk."""

    forward_steps: int
    writes: int
    peak_slots: int
    peak_tape_slots: int
    n_actions: int
    disk_writes: int = 0
    disk_reads: int = 0
    peak_disk_slots: int = 0
    arena: tuple[int, ...] = ()
    """The most residual slots in use beside 0, 1, 2 … restart slots in RAM; of schedules that use
    both as stacks."""


def check_schedule(schedule: Schedule) -> ScheduleReport:
    """Simulate ``schedule`` and return what it costs.

    Slots may still hold states at END, but every step must have been reversed, once and in order.

    Raises:
        ScheduleError: an action is wrong (the message names the first one, its index and the
            fault), END is missing, ``schedule.forward_steps`` is not what was counted, or the
            slots do not fit into ``schedule.arena``.

    >>> from ckad.schedules import multistage, revolve
    >>> check_schedule(revolve(1000, 10)).forward_steps
    4636
    >>> report = check_schedule(multistage(1000, 5, 5))
    >>> report.disk_writes, report.disk_reads, report.peak_disk_slots
    (70, 125, 5)
    """
    state = np.zeros(N_REGISTERS, np.int64)
    state[N_STEPS] = state[FRONTIER] = schedule.n_steps
    state[N_SLOTS] = schedule.n_slots
    slots = np.full(schedule.n_slots + schedule.n_disk_slots, FREE, np.int64)
    tape_slots = np.full(schedule.n_tape_slots, FREE, np.int64)
    beside = np.zeros(schedule.n_slots + 1, np.int64)
    n_actions = 0
    for rows in schedule.chunks():
        row, fault = simulate(*rows, state, slots, tape_slots, beside)
        if fault != VALID:
            words = explain(fault, rows, row, state, slots, tape_slots)
            raise ScheduleError(f"Action {n_actions + row}, {rows.describe(row)}: {words}.")
        n_actions += rows.kind.size
    arena = () if state[SCATTERED] else tuple(beside[: state[PEAK_SLOTS] + 1].tolist())
    check_totals(schedule, state, n_actions, arena)
    return ScheduleReport(
        forward_steps=int(state[FORWARD_STEPS]),
        writes=int(state[WRITES]),
        peak_slots=int(state[PEAK_SLOTS]),
        peak_tape_slots=int(state[PEAK_TAPE_SLOTS]),
        n_actions=n_actions,
        disk_writes=int(state[DISK_WRITES]),
        disk_reads=int(state[DISK_READS]),
        peak_disk_slots=int(state[PEAK_DISK_SLOTS]),
        arena=arena,
    )


def check_totals(
    schedule: Schedule, state: NDArray[np.int64], n_actions: int, arena: tuple[int, ...]
) -> None:
    if not state[ENDED]:
        raise ScheduleError(f"The schedule stops after {n_actions} actions without END.")
    if state[FORWARD_STEPS] != schedule.forward_steps:
        raise ScheduleError(
            f"The actions run {state[FORWARD_STEPS]} forward steps, but the schedule says "
            f"forward_steps={schedule.forward_steps}."
        )
    if not schedule.arena:
        return
    if not arena:
        raise ScheduleError(
            "The schedule says that its slots share an arena, but they are not used as stacks, "
            "first in, last out."
        )
    for held, taped in enumerate(arena):
        if held >= len(schedule.arena) or taped > schedule.arena[held]:
            raise ScheduleError(
                f"The actions use {held} restart and {taped} residual slots at once, more than "
                f"the schedule's arena={schedule.arena} has room for."
            )


def explain(
    fault: int,
    rows: Actions,
    row: int,
    state: NDArray[np.int64],
    slots: NDArray[np.int64],
    tape_slots: NDArray[np.int64],
) -> str:
    """The fault of row ``row`` in words, with the numbers as they were just before it."""
    slot, n_slots = int(rows.slot[row]), int(state[N_SLOTS])
    n_disk_slots = slots.size - n_slots
    held = int(slots[slot]) if 0 <= slot < slots.size else FREE
    return FAULTS[fault].format(
        here=state[HERE],
        n_steps=state[N_STEPS],
        next_step=state[FRONTIER] - 1 if state[FRONTIER] else "none",
        n_slots=slots.size,
        of_these=f", the last {n_disk_slots} of them on disk" if n_disk_slots else "",
        n_tape_slots=tape_slots.size,
        held="nothing" if held == FREE else held if fault == OCCUPIED else f"step {held}",
    )


@kernel
def forward_fault(start: int, stop: int, state: NDArray[np.int64]) -> int:
    """What is wrong with running [start, stop)."""
    if stop <= start:
        return EMPTY_RANGE
    if stop > state[N_STEPS]:
        return PAST_THE_END
    return VALID if start == state[HERE] else WRONG_STATE


@kernel
def advance(start: int, stop: int, state: NDArray[np.int64]) -> int:
    fault = forward_fault(start, stop, state)
    if fault == VALID:
        state[HERE] = stop
        state[FORWARD_STEPS] += stop - start
    return fault


@kernel
def tape(
    start: int, stop: int, slot: int, state: NDArray[np.int64], tape_slots: NDArray[np.int64]
) -> int:
    fault = forward_fault(start, stop, state)
    if fault != VALID:
        return fault
    length = stop - start
    if slot < 0 or length > tape_slots.size - slot:
        return NO_SUCH_TAPE_SLOT
    for k in range(length):
        if tape_slots[slot + k] != FREE:
            return TAPE_OCCUPIED
        tape_slots[slot + k] = start + k
    state[SCATTERED] |= slot != state[TAPED]
    state[TAPED] += length
    state[PEAK_TAPE_SLOTS] = max(state[PEAK_TAPE_SLOTS], state[TAPED])
    return advance(start, stop, state)


@kernel
def reverse(
    start: int, stop: int, slot: int, state: NDArray[np.int64], tape_slots: NDArray[np.int64]
) -> int:
    if stop <= start:
        return EMPTY_RANGE
    if stop != state[FRONTIER] or start < 0:
        return WRONG_ORDER
    length = stop - start
    if slot < 0 or length > tape_slots.size - slot:
        return NO_SUCH_TAPE_SLOT
    for k in range(length):
        if tape_slots[slot + k] != start + k:
            return NOT_TAPED
    tape_slots[slot : slot + length] = FREE
    state[TAPED] -= length
    state[SCATTERED] |= slot != state[TAPED]
    state[FRONTIER] = start
    return VALID


@kernel
def use_slot(
    kind: int, step: int, slot: int, state: NDArray[np.int64], slots: NDArray[np.int64]
) -> int:
    """STORE, RESTORE or DROP."""
    if slot < 0 or slot >= slots.size:
        return NO_SUCH_SLOT
    if kind == STORE:
        if step != state[HERE]:
            return WRONG_STATE
        if slots[slot] != FREE:
            return OCCUPIED
        slots[slot] = step
        count(slot, 1, state)
        return VALID
    if slots[slot] == FREE or slots[slot] != step:
        return NOT_HELD
    if kind == RESTORE:
        state[HERE] = step
        state[DISK_READS] += slot >= state[N_SLOTS]
    else:
        slots[slot] = FREE
        count(slot, -1, state)
    return VALID


@kernel
def count(slot: int, change: int, state: NDArray[np.int64]) -> None:
    """One more (1) or less (-1) of the slots in RAM or on disk is filled."""
    if slot >= state[N_SLOTS]:
        state[ON_DISK] += change
        state[DISK_WRITES] += change == 1
        state[PEAK_DISK_SLOTS] = max(state[PEAK_DISK_SLOTS], state[ON_DISK])
        return
    state[SCATTERED] |= slot != state[FILLED] - (change == -1)
    state[FILLED] += change
    state[WRITES] += change == 1
    state[PEAK_SLOTS] = max(state[PEAK_SLOTS], state[FILLED])


@kernel
def perform(
    kind: int,
    start: int,
    stop: int,
    slot: int,
    state: NDArray[np.int64],
    slots: NDArray[np.int64],
    tape_slots: NDArray[np.int64],
) -> int:
    if state[ENDED]:
        return AFTER_END
    if kind == ADVANCE:
        return advance(start, stop, state)
    if kind == TAPE:
        return tape(start, stop, slot, state, tape_slots)
    if kind == REVERSE:
        return reverse(start, stop, slot, state, tape_slots)
    if kind in (STORE, RESTORE, DROP):
        return use_slot(kind, start, slot, state, slots) if start == stop else POINT_RANGE
    if kind == END:
        state[ENDED] = 1
        return VALID if state[FRONTIER] == 0 else UNREVERSED
    return UNKNOWN_KIND


@kernel
def simulate(
    kind: NDArray[np.int8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    slot: NDArray[np.int32],
    state: NDArray[np.int64],
    slots: NDArray[np.int64],
    tape_slots: NDArray[np.int64],
    beside: NDArray[np.int64],
) -> tuple[int, int]:
    """(row, fault) of the first wrong row; the fault is VALID if there is none.

    ``beside[k]`` becomes the most residual slots in use beside k restart slots in RAM.
    """
    for row in range(kind.size):
        fault = perform(kind[row], start[row], stop[row], slot[row], state, slots, tape_slots)
        if fault != VALID:
            return row, fault
        held = state[FILLED]
        beside[held] = max(beside[held], state[TAPED])
    return kind.size, VALID
