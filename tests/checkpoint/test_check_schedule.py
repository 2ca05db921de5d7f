"""`check_schedule` against corrupted schedules and a second simulator written for clarity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckad.checkpoint.schedules import SCHEDULES
from ckad.checkpoint.schedules.schedule import Listed
from ckad.checkpoint.simulate import FAULTS, check_schedule
from ckad.errors import ScheduleError
from ckad.schedules import (
    Action,
    Actions,
    Schedule,
    hrevolve,
    mixed,
    mixed_bytes,
    multistage,
    revolve,
)

SMALL = [
    family.build(*arguments)
    for family in SCHEDULES.values()
    for arguments in family.examples
    if arguments[0] <= 60
]
COLUMNS = Actions._fields


def listed(rows, n_steps, n_slots=2, n_tape_slots=2):
    """A schedule of (kind, start, stop, slot) rows."""
    columns = Actions._make(np.array(column) for column in zip(*rows, strict=True))
    return Schedule.from_actions(
        columns, n_steps=n_steps, n_slots=n_slots, n_tape_slots=n_tape_slots
    )


STORE_0 = (Action.STORE, 0, 0, 0)
ADVANCE_1 = (Action.ADVANCE, 0, 1, -1)
TAPE_1 = (Action.TAPE, 1, 2, 0)
REVERSE_1 = (Action.REVERSE, 1, 2, 0)
RESTORE_0 = (Action.RESTORE, 0, 0, 0)
DROP_0 = (Action.DROP, 0, 0, 0)
TAPE_0 = (Action.TAPE, 0, 1, 0)
REVERSE_0 = (Action.REVERSE, 0, 1, 0)
END = (Action.END, 0, 0, -1)
GOOD = [
    STORE_0, ADVANCE_1, TAPE_1, REVERSE_1, RESTORE_0, DROP_0, TAPE_0, REVERSE_0, END
]  # fmt: skip


def changed(index, row):
    return GOOD[:index] + [row] + GOOD[index + 1 :]


def inserted(index, *rows):
    return GOOD[:index] + list(rows) + GOOD[index:]


CORRUPT = {
    "action after END": ([*GOOD, END], 9, "END came before"),
    "unknown kind": (changed(1, (9, 0, 1, -1)), 1, "kind 9 .* no action of this kind"),
    "negative kind": (changed(1, (-1, 0, 1, -1)), 1, "no action of this kind"),
    "advance over nothing": (inserted(1, (Action.ADVANCE, 0, 0, -1)), 1, "holds no step"),
    "advance backwards": (inserted(2, (Action.ADVANCE, 1, 0, -1)), 2, "holds no step"),
    "tape nothing": (inserted(2, (Action.TAPE, 1, 1, 0)), 2, "holds no step"),
    "reverse nothing": (inserted(3, (Action.REVERSE, 2, 2, 0)), 3, "holds no step"),
    "store a range": (changed(0, (Action.STORE, 0, 1, 0)), 0, "must be the same step"),
    "advance too far": (changed(1, (Action.ADVANCE, 0, 3, -1)), 1, "has 2 steps only"),
    "tape too far": (changed(2, (Action.TAPE, 1, 3, 0)), 2, "has 2 steps only"),
    "advance from another step": (changed(1, (Action.ADVANCE, 1, 2, -1)), 1, "is at step 0"),
    "tape another step": (changed(2, TAPE_0), 2, "is at step 1"),
    "store another step": (changed(0, (Action.STORE, 1, 1, 0)), 0, "is at step 0"),
    "slot too large": (changed(0, (Action.STORE, 0, 0, 2)), 0, "slots are 0 to 2 - 1"),
    "slot negative": (changed(0, (Action.STORE, 0, 0, -1)), 0, "slots are 0 to 2 - 1"),
    "store over a checkpoint": (inserted(1, STORE_0), 1, "already holds step 0; DROP it"),
    "restore an empty slot": (changed(4, (Action.RESTORE, 0, 0, 1)), 4, "holds nothing"),
    "restore another step": (changed(4, (Action.RESTORE, 1, 1, 0)), 4, "holds step 0"),
    "drop an empty slot": (inserted(6, DROP_0), 6, "holds nothing"),
    "tape slot too large": (changed(2, (Action.TAPE, 1, 2, 2)), 2, "slots are 0 to 2 - 1"),
    "tape slot negative": (changed(2, (Action.TAPE, 1, 2, -1)), 2, "slots are 0 to 2 - 1"),
    "reverse slot too large": (changed(3, (Action.REVERSE, 1, 2, 7)), 3, "slots are 0 to 2 - 1"),
    "tape over residuals": (inserted(3, RESTORE_0, TAPE_0), 4, "a residual slot is not free"),
    "reverse what is not taped": (changed(3, (Action.REVERSE, 1, 2, 1)), 3, "do not hold"),
    "reverse too much": (changed(3, (Action.REVERSE, 0, 2, 0)), 3, "do not hold"),
    "reverse twice": (inserted(4, REVERSE_1), 4, "next step to be reversed is 0"),
    "reverse out of order": (inserted(3, REVERSE_0), 3, "next step to be reversed is 1"),
    "reverse after the first step": (inserted(8, REVERSE_0), 8, "to be reversed is none"),
    "a step never reversed": (GOOD[:7] + [END], 7, "step 0 and those before it"),
}


def test_the_uncorrupted_rows_are_valid():
    assert check_schedule(listed(GOOD, 2)) == (3, 1, 1, 1, 9, 0, 0, 0, (1, 1))


@pytest.mark.parametrize(("rows", "index", "message"), CORRUPT.values(), ids=CORRUPT)
def test_the_first_wrong_action_is_named(rows, index, message):
    with pytest.raises(ScheduleError, match=rf"^Action {index}, .*{message}"):
        check_schedule(listed(rows, 2))


def test_every_fault_has_a_corrupted_schedule():
    messages = set()
    for rows, _, _ in CORRUPT.values():
        with pytest.raises(ScheduleError) as caught:
            check_schedule(listed(rows, 2))
        messages.add(str(caught.value))
    for words in FAULTS.values():
        assert any(words.split("{")[0] in message for message in messages), words


def test_a_missing_end_is_named():
    with pytest.raises(ScheduleError, match="stops after 8 actions without END"):
        check_schedule(listed(GOOD[:-1], 2))


def test_a_wrong_count_is_named():
    with pytest.raises(ScheduleError, match=r"run 3 forward steps, but .* forward_steps=4"):
        check_schedule(replace(listed(GOOD, 2), forward_steps=4))


def test_slots_beyond_those_declared_are_named():
    with pytest.raises(ScheduleError, match="slot 4: the restart slots are 0 to 4 - 1"):
        check_schedule(replace(revolve(100, 5), n_slots=4))


def test_slots_on_disk_beyond_those_declared_are_named():
    schedule = multistage(100, 3, 2)
    message = r"slot 4: the restart slots are 0 to 4 - 1, the last 1 of them on disk"
    with pytest.raises(ScheduleError, match=message):
        check_schedule(replace(schedule, n_disk_slots=1))
    # what counts as RAM follows from the numbers alone
    moved = check_schedule(replace(schedule, n_slots=4, n_disk_slots=1))
    kept = check_schedule(schedule)
    assert moved.writes + moved.disk_writes == kept.writes + kept.disk_writes == schedule.writes + 5
    assert (moved.peak_slots, moved.peak_disk_slots) == (4, 1)
    assert moved.disk_writes < kept.disk_writes


def with_row(schedule, kind, on_disk, **columns):
    """The schedule with the first action of a kind, in RAM or on disk, changed."""
    rows = Actions._make(column.copy() for column in schedule.actions)
    (at, *_) = np.flatnonzero((rows.kind == kind) & ((rows.slot >= schedule.n_slots) == on_disk))
    for name, value in columns.items():
        getattr(rows, name)[at] = value
    return at, replace(schedule, source=Listed(rows))


@pytest.mark.parametrize("build", [multistage, hrevolve])
@pytest.mark.parametrize(
    ("kind", "message"),
    [(Action.STORE, "holds step|holds nothing"), (Action.RESTORE, "holds"), (Action.DROP, "holds")],
)
def test_a_state_on_disk_is_not_found_in_ram(build, kind, message):
    schedule = build(100, 3, 2)
    for on_disk, slot in ((True, 0), (False, schedule.n_slots)):
        at, wrong = with_row(schedule, kind, on_disk, slot=slot)
        with pytest.raises(ScheduleError, match=message) as caught:
            check_schedule(wrong)
        assert int(str(caught.value).split(",")[0].removeprefix("Action ")) >= at


def test_less_memory_than_is_used_is_refused():
    for schedule in (mixed(60, 4), mixed_bytes(60, 21, 2, 5)):
        report = check_schedule(schedule)
        for held, taped in enumerate(report.arena):
            less = list(report.arena)
            less[held] = taped - 1
            with pytest.raises(ScheduleError, match=rf"use {held} restart and {taped} residual"):
                check_schedule(replace(schedule, arena=tuple(less)))
        with pytest.raises(ScheduleError, match="restart and"):
            check_schedule(replace(schedule, arena=report.arena[:-1]))


@pytest.mark.parametrize("columns", [{"slot": 1}])
@pytest.mark.parametrize("taped", [False, True])
def test_slots_that_are_no_stacks_share_no_memory(columns, taped):
    rows = list(GOOD)
    used = (2, 3) if taped else (0, 4, 5)
    for at in used:
        rows[at] = (*rows[at][:3], columns["slot"])
    schedule = listed(rows, 2)
    assert check_schedule(schedule).arena == ()
    with pytest.raises(ScheduleError, match="not used as stacks"):
        check_schedule(replace(schedule, arena=(2, 2, 2)))


def test_peaks_are_those_of_the_slots_in_use():
    """A slot used late in the highest place, and one never dropped, both count."""
    third = (Action.STORE, 0, 0, 3)
    rows = [third, *GOOD]
    schedule = replace(listed(rows, 2), n_slots=2, n_disk_slots=2)
    report = check_schedule(schedule)
    assert (report.peak_slots, report.peak_disk_slots) == (1, 1)
    assert (report.writes, report.disk_writes, report.disk_reads) == (1, 1, 0)
    assert (schedule.writes, schedule.disk_writes, schedule.disk_reads) == (1, 1, 0)


def test_a_fault_in_a_later_piece_keeps_its_index():
    rows = Actions._make(column.copy() for column in revolve(20_000, 3).actions)
    index = rows.kind.size - 5
    assert index > 65_536
    rows.slot[index] = 3
    wrong = Schedule.from_actions(rows, n_steps=20_000, n_slots=3, n_tape_slots=1)
    with pytest.raises(ScheduleError, match=f"^Action {index}, "):
        check_schedule(wrong)


def is_valid(schedule):
    """The rules once more, on dictionaries."""
    here, next_step, slots, residuals, ended = 0, schedule.n_steps - 1, {}, {}, False
    rows = schedule.actions
    n_restart = schedule.n_slots + schedule.n_disk_slots
    for kind, start, stop, slot in zip(*(column.tolist() for column in rows), strict=True):
        if ended:
            return False
        steps = range(start, stop)
        own = {slot + k: step for k, step in enumerate(steps)}
        if kind in (Action.ADVANCE, Action.TAPE):
            if not steps or start != here or stop > schedule.n_steps:
                return False
            here = stop
            if kind == Action.TAPE:
                allowed = set(range(schedule.n_tape_slots)) - residuals.keys()
                if not own.keys() <= allowed:
                    return False
                residuals |= own
        elif kind == Action.REVERSE:
            if not steps or stop - 1 != next_step or not own.items() <= residuals.items():
                return False
            next_step = start - 1
            residuals = {s: held for s, held in residuals.items() if s not in own}
        elif kind == Action.END:
            ended = True
            if next_step >= 0:
                return False
        elif start != stop:
            return False
        elif kind == Action.STORE:
            if start != here or slot in slots or slot not in range(n_restart):
                return False
            slots[slot] = start
        elif kind in (Action.RESTORE, Action.DROP):
            if slots.get(slot) != start:
                return False
            here = start if kind == Action.RESTORE else here
            if kind == Action.DROP:
                del slots[slot]
        else:
            return False
    return ended


def like(made, rows):
    """Other rows with the slots of ``made``."""
    return Schedule.from_actions(
        rows,
        n_steps=made.n_steps,
        n_slots=made.n_slots,
        n_tape_slots=made.n_tape_slots,
        n_disk_slots=made.n_disk_slots,
    )


def accepts(schedule):
    try:
        check_schedule(schedule)
    except ScheduleError:
        return False
    return True


@settings(max_examples=400)
@given(st.data())
def test_one_changed_row_is_judged_as_by_the_second_simulator(data):
    made = data.draw(st.sampled_from(SMALL))
    rows = Actions._make(column.copy() for column in made.actions)
    row = data.draw(st.integers(0, rows.kind.size - 1))
    column = data.draw(st.sampled_from(COLUMNS))
    far = 127 if column == "kind" else 9999
    getattr(rows, column)[row] = data.draw(st.integers(-2, 12) | st.integers(-far, far))
    judged = like(made, rows)
    assert accepts(judged) == is_valid(judged)


@settings(max_examples=200)
@given(st.data())
def test_a_lost_or_swapped_row_is_judged_as_by_the_second_simulator(data):
    made = data.draw(st.sampled_from([s for s in SMALL if s.n_steps]))
    row = data.draw(st.integers(0, made.actions.kind.size - 2))
    order = list(range(made.actions.kind.size))
    if data.draw(st.booleans()):
        del order[row]
    else:
        order[row], order[row + 1] = order[row + 1], order[row]
    rows = Actions._make(column[order] for column in made.actions)
    judged = like(made, rows)
    assert accepts(judged) == is_valid(judged)


@pytest.mark.parametrize("extreme", [np.iinfo(np.int64).min, np.iinfo(np.int64).max])
@pytest.mark.parametrize("column", ["start", "stop"])
@pytest.mark.parametrize("row", range(len(GOOD) - 1))
def test_extreme_steps_do_not_wrap_around(row, column, extreme):
    rows = Actions._make(c.copy() for c in listed(GOOD, 2).actions)
    getattr(rows, column)[row] = extreme
    with pytest.raises(ScheduleError, match=f"^Action {row}, "):
        check_schedule(
            replace(listed(GOOD, 2), source=Schedule.from_actions(rows, n_steps=2).source)
        )
