"""Runs that go on after a kill: a loop's progress is journalled between the pieces of its actions.

What is run again is everything before and after the loop, its last step (which gives the loop's
results) and what was done since the last journal. That is written where no residuals are kept and
the carry lies in a restart slot, or will be read from one: behind a STORE, and behind a REVERSE
that a RESTORE follows. How often: so that it takes a small share of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from ckad.checkpoint.schedules.schedule import Action
from ckad.checkpoint.store.disk import DiskStore
from ckad.checkpoint.store.format.records import Journal
from ckad.engines.actions import Rows, Window
from ckad.loops.between.tiers import KIND, SLOT, START, STOP, Staged

#: A journal is written when so many times the time has gone by that the last one took.
PAUSES = 10
#: Seconds that the first one is thought to take.
GUESS = 0.003
FORWARD, REVERSE = 0, 1


class Resumable(Staged):
    """The course of one run of a loop that can be gone on with.

    On disk the slots of the schedule that are there anyway come first, then that of the state from
    which the loop's results are computed again (``final``), then copies of those in memory.
    """

    store: DiskStore

    def __init__(
        self,
        chunks: Iterator[Rows],
        after: Callable[[int], Iterator[Rows]] | None,
        slots: tuple[int, int],
        length: int,
        knows_end: bool,
        window: Window,
        store: Callable[[], DiskStore],
        tidy: Callable[[], None],
    ) -> None:
        self.n_slots, self.n_disk_slots = slots
        super().__init__(chunks, after, self.n_slots, length, window, store)
        self.final = self.n_slots + self.n_disk_slots
        self.knows_end, self.tidy = knows_end, tidy
        self.reverse = False
        self.row = 0  # rows of the present stream that are carried out or under way
        self.inserted, self.has_final = 0, False  # rows for the final state, and whether it is kept
        self.n_taped = 0  # steps whose residuals are kept
        self.piece: Rows | None = None
        self.in_memory: dict[int, int] = {}  # the steps of the states in memory, by slot
        self.copied: dict[int, int] = {}  # those that have been written
        self.stored_last = -1
        self.given: list[bytes] = []  # what the steps gave up to the final state
        self.n_learnt = -1
        self.totals: list[bytearray] | None = None  # cotangents, to be put back
        self.going_on = (0, -1)  # the row of the reverse sweep, and which state to restore
        self.cost, self.since = GUESS, perf_counter()
        self.busy, self.n_written = 0.0, 0  # seconds of the disk, and states since the last journal
        self.per_step = 0.0  # seconds
        self.began = self.since

    # --- the course -----------------------------------------------------------------------------

    def following(self, n_steps: int | None) -> Rows | None:
        first = self._resumed() if self.piece is None else self._after(self.piece, n_steps)
        self.piece = super().following(None) if first is None else first
        self.began = perf_counter()
        return self.piece

    def _after(self, piece: Rows, n_steps: int | None) -> Rows | None:
        """What is to be done when a piece has been carried out; a next one that is not of the
        stream, if there is one."""
        self._carried_out(piece)
        self._put_away()
        if n_steps is not None:
            self.n_learnt, self.reverse = n_steps, True
            self.row = self.inserted = 0  # of another stream
            self._begin_after(n_steps)
        elif self._is_sound() and (self._is_due() or self._is_done()):
            self._write_journal()
        return self._put_back() if self.reverse and self.totals is not None else None

    def close(self, keep: bool) -> None:
        if self.is_open:
            self.store.close(keep)
            if not keep:
                self.tidy()

    def _carried_out(self, rows: Rows) -> None:
        """Note what a piece has done."""
        kind, length = rows[:, KIND], rows[:, STOP] - rows[:, START]
        forward = (kind == Action.ADVANCE) | (kind == Action.TAPE)
        back = kind == Action.REVERSE
        n = int(np.sum(length[forward | back]))
        if n:
            self.per_step = (perf_counter() - self.began) / n
        self.n_taped += int(np.sum(length[kind == Action.TAPE]) - np.sum(length[back]))
        stops = rows[forward, STOP]
        if not self.reverse and stops.size and int(stops.max()) >= self.n_steps:
            self.reverse = True
            if self.n_learnt < 0:
                self.n_learnt = self.n_steps
        for k in np.flatnonzero((kind == Action.STORE) | (kind == Action.DROP)):
            slot, step = int(rows[k, SLOT]), int(rows[k, START])
            if slot >= self.n_slots or step >= self.n_steps:
                continue
            if kind[k] == Action.STORE:
                self.in_memory[slot] = step
            else:
                self.in_memory.pop(slot, None)

    # --- where a journal can be written ---------------------------------------------------------

    def _piece(self, rows: Rows) -> Rows:
        rows = self._with_final(rows)
        piece = super()._piece(rows[: self._limit(rows)])
        self.row += len(piece)
        return piece

    def _with_final(self, rows: Rows) -> Rows:
        """The last step of the forward sweep alone, and the state before it stored."""
        if self.reverse or not self.knows_end or self.inserted:
            return rows
        n, kind = self.n_steps, rows[:, KIND]
        forward = (kind == Action.ADVANCE) | (kind == Action.TAPE)
        last = np.flatnonzero(forward & (rows[:, STOP] >= n) & (rows[:, START] < n))
        if not last.size:
            return rows
        k = int(last[0])
        what, start, stop, slot = map(int, rows[k])
        new = [(what, start, n - 1, slot)] if start < n - 1 else []
        then = slot + n - 1 - start if what == Action.TAPE else slot
        new += [(int(Action.STORE), n - 1, n - 1, self.final), (what, n - 1, stop, then)]
        self.inserted = len(new) - 1
        whole = np.concatenate([rows[:k], np.array(new, np.int64), rows[k + 1 :]])
        self.ahead[0], self.at = self._chunk(whole), 0
        return whole

    def _limit(self, rows: Rows) -> int:
        """How many rows to carry out before the next look at the time."""
        kind, length = rows[:, KIND], rows[:, STOP] - rows[:, START]
        run = (kind == Action.ADVANCE) | (kind == Action.TAPE) | (kind == Action.REVERSE)
        taped = np.where(kind == Action.TAPE, length, 0)
        taped -= np.where(kind == Action.REVERSE, length, 0)
        sound = self.n_taped + np.cumsum(taped) == 0
        forward = (kind == Action.ADVANCE) | (kind == Action.TAPE)
        back = kind[:-1] == Action.REVERSE
        sound[:-1] &= (kind[:-1] == Action.STORE) | (back & ~forward[1:])
        sound[-1] = False
        seconds = np.cumsum(np.where(run, length, 0)) * self.per_step
        wait = self.since + PAUSES * self.cost - perf_counter()
        found = np.flatnonzero(sound & (seconds >= wait))
        limit = int(found[0]) + 1 if found.size else len(rows)
        ends = np.flatnonzero(kind == Action.END)
        return min(limit, int(ends[0])) if ends.size and ends[0] else limit

    def _is_sound(self) -> bool:
        """Whether a run could go on from here."""
        if self.piece is None or self.n_taped or self.stored_last == self.final:
            return False
        row = self._last_row()
        if row[KIND] == Action.STORE:  # past the end of a shorter loop there is no state
            return bool(row[START] < self.n_steps)
        return bool(row[KIND] == Action.REVERSE and not self._runs_on())

    def _last_row(self) -> np.ndarray:
        """The last row carried out that does more than drop a state."""
        assert self.piece is not None
        rows = self.piece[self.piece[:, KIND] != Action.DROP]
        return np.asarray(rows[-1] if len(rows) else self.piece[-1])

    def _runs_on(self) -> bool:
        rows = self._rest()
        return rows is None or rows[0, KIND] in (Action.ADVANCE, Action.TAPE)

    def _is_due(self) -> bool:
        enough = self.n_written >= self.n_slots + self.n_disk_slots
        return enough or perf_counter() - self.since >= PAUSES * self.cost

    def _is_done(self) -> bool:
        rows = self._rest()
        return self.reverse and rows is not None and rows[0, KIND] == Action.END

    # --- the journal ----------------------------------------------------------------------------

    def _put_away(self) -> None:
        self.stored_last = -1 if self.stored is None else self.stored[0]
        if self.stored_last == self.final:
            self.has_final = True
            self._keep_given()
        self.n_written += self.stored_last >= 0
        super()._put_away()

    def _keep_given(self) -> None:
        self.given = [bytes(part) for part in self.window.live(reverse=False)]

    def _write_journal(self) -> None:
        assert self.piece is not None
        began = perf_counter()
        for slot in self.copied.keys() - self.in_memory.keys():
            self.store.drop(self._copy_of(slot))
        for slot, step in self.in_memory.items():
            if self.copied.get(slot) != step:
                self.store.write(self._copy_of(slot), step, self._gathered(slot))
        self.copied = dict(self.in_memory)
        kind, _, step, slot = map(int, self._last_row())
        restore = -1
        if kind == Action.STORE:
            restore = next(k for k, at in {**self.in_memory, **self.held}.items() if at == step)
        if not self.reverse and not self.knows_end:
            self.store.write(self.final - self.n_slots, step, self._gathered(slot))
            self.held[self.final] = step
            self._keep_given()
        position = {
            "sweep": REVERSE if self.reverse else FORWARD,
            "row": self.row - (self.inserted if self.has_final else 0),
            "restore": restore,
            "n_steps": self.n_learnt,
        }
        blocks = list(self.window.live(reverse=False))
        if self.reverse:
            given = [memoryview(block) for block in self.given]
            blocks = [*given, *self.window.live(reverse=True)]
        self.store.journal(position, blocks)
        self.since, busy = perf_counter(), self.store.seconds_busy
        self.cost = max(self.since - began, busy - self.busy)
        self.busy, self.n_written = busy, 0

    def _copy_of(self, slot: int) -> int:
        """Where a state in memory lies on disk."""
        return self.n_disk_slots + 1 + slot

    # --- going on -------------------------------------------------------------------------------

    def _resumed(self) -> Rows | None:
        """The first piece of a run that goes on; None if it begins anew."""
        journal = self.store.read_journal()
        if journal is None:
            return None
        blocks = [bytearray(size) for size in journal.sizes]
        journal.read([memoryview(block) for block in blocks])
        self._take_slots(journal)
        given = self.window.live(reverse=False)
        for part, block in zip(given, blocks, strict=False):
            part[:] = block
        sweep, row, restore, self.n_learnt = (
            int(journal.position[name]) for name in ("sweep", "row", "restore", "n_steps")
        )
        if sweep == FORWARD:
            self._skip(row)
            return np.array([self._restoring(restore)], np.int64)
        self.given = [bytes(block) for block in blocks[: len(given)]]
        self.totals, self.going_on = blocks[len(given) :], (row, restore)
        last = self.held.get(self.final, 0)
        steps = (int(Action.ADVANCE), last, self.n_learnt, -1)
        rows = [self._restoring(self.final), steps] if self.final in self.held else [steps]
        return np.array(rows, np.int64)

    def _take_slots(self, journal: Journal) -> None:
        """Note what is on disk, and read back what was in memory."""
        for at, step in journal.slots.items():
            slot = at - self.n_disk_slots - 1
            if slot < 0:
                self.held[self.n_slots + at] = step
            else:
                self.in_memory[slot] = step
                self._read(at, step, self.window.slot(slot))
        self.copied = dict(self.in_memory)

    def _restoring(self, slot: int) -> tuple[int, int, int, int]:
        """The action that restores a state; one on disk is in the staging slot then."""
        step = self.held[slot] if slot >= self.n_slots else self.in_memory[slot]
        if slot >= self.n_slots:
            self._fetch(slot, step)
        return int(Action.RESTORE), step, step, min(slot, self.n_slots)

    def _put_back(self) -> Rows | None:
        """The cotangents as they were, and the rest of the actions; the first one, if that is to
        restore a state."""
        assert self.totals is not None
        for part, block in zip(self.window.live(reverse=True), self.totals, strict=True):
            part[:] = block
        self.totals = None
        row, restore = self.going_on
        self._skip(row)
        return None if restore < 0 else np.array([self._restoring(restore)], np.int64)

    def _skip(self, n: int) -> None:
        """Leave out the first rows of the stream."""
        self.row = n
        while n and (rows := self._rest()) is not None:
            some = min(n, len(rows))
            self.at, n = self.at + some, n - some
