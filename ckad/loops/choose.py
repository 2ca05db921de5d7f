"""Choosing a schedule for every taped loop of a program so that all fits into the budget.

What a choice costs is predicted from the sizes of the loops' tokens; a whole program is assembled
and measured only to correct the prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import isqrt
from types import MappingProxyType

from ckad.checkpoint.plan import LoopPlan, fitting_schedule
from ckad.checkpoint.schedules.online import MOST_SLOTS, unknown
from ckad.checkpoint.schedules.periodic import even_period
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import two_level
from ckad.engines.actions import ACTION_BYTES
from ckad.engines.arena import MOST
from ckad.engines.measure import TapedLoop, step_bytes, token_bytes
from ckad.loops.advice import too_small
from ckad.loops.arenas import Schedules, in_arenas, slots_of
from ckad.loops.asked import Choice, asked_for, family
from ckad.loops.costs import CACHE, nanoseconds, slot_bytes
from ckad.loops.offers import Offer, binomial, ladder, saving, worthwhile
from ckad.loops.tables import FEWEST_ROWS, piece_rows, streamed_rows, whole_rows

#: The bytes of a whole run, from schedules and how many actions there are at a time.
Measure = Callable[[Schedules, int], int]
#: How often the prediction is corrected by a measurement before the best choice so far is taken.
MOST_TRIES = 8
#: Room for tokens that is not worth another try.
ALIGNMENT = 64
#: A step costs about as much as moving this many bytes, beside those of its state and residuals.
STEP_OVERHEAD = 256
#: Segments of a loop that keeps all residuals, if a run can be gone on with: one may be run again.
SEGMENTS = 63


class Chooser:
    """Finds schedules for ``loops``; ``measure`` gives the bytes of a whole run.

    ``most_rows`` is how many actions of an outermost loop the program gets at a time.
    """

    def __init__(
        self,
        loops: dict[int, TapedLoop],
        budget: int,
        choice: Choice,
        measure: Measure,
        requested: str | int | None,
        step_ns: Mapping[int, float] = MappingProxyType({}),
        resumes: bool = False,
        beside: frozenset[int] = frozenset(),
        overlaps: bool = False,
        largest: Callable[[int], str] = lambda needed: "",
    ) -> None:
        self.largest = largest  # the arrays that take the most of so many bytes, in words
        self.resumes, self.overlaps = resumes, overlaps
        self.loops, self.budget, self.choice, self.requested = loops, budget, choice, requested
        self._measure, self.step_ns, self.beside = measure, step_ns, beside
        self.is_limited = requested is not None  # the budget is somebody's, not what is free
        self.outer = [x for x in loops.values() if x.depth == 1]
        self.most_rows = piece_rows(budget // max(1, len(self.outer)))
        self.inner = [x for x in loops.values() if x.depth > 1]
        self.ladders = {x.name: ladder(x) for x in loops.values()}
        kept = {name for x in loops.values() for name in x.inner}
        self.roots = [x for x in loops.values() if x.name not in kept]

    def schedules(self) -> Schedules:
        """The cheapest schedules that were found to fit; BudgetError if none do."""
        if self.choice != "auto":
            return self._as_asked()
        chosen = self._nearer(in_arenas(self, self._fewest_steps()))
        return self._in_segments(chosen) if self.resumes else chosen

    def _in_segments(self, chosen: Schedules) -> Schedules:
        """Instead of the residuals of all steps those of a segment at a time: without restart
        states a run cannot be gone on with."""
        segments = SEGMENTS
        while segments > 1:
            found = dict(chosen)
            for x in self.outer:
                if x.n_steps > 1 and not chosen[x.name].n_slots:
                    found[x.name] = two_level(x.n_steps, even_period(x.n_steps, segments))
            if self.measured(found) <= self.budget:
                return found
            segments //= 2
        return chosen

    def is_likely_to_keep_all(self) -> bool:
        """Whether no step will be run again, as far as that is known before measuring."""
        if self.choice != "auto" or self.resumes:
            return self.choice == "store_all"
        everything = self._everything()
        fits = self._tokens(everything) <= self.budget
        return fits and self._nearest(everything) == everything

    def _everything(self) -> Schedules:
        return {x.name: store_all(x.n_steps) for x in self.loops.values()}

    def _fewest_steps(self) -> Schedules:
        everything = self._everything()
        all_used = self.measured(everything)
        if all_used <= self.budget:
            return everything
        best = self._least()
        used = self.measured(best)
        if used > self.budget:  # what is least depends on how many actions there are at a time
            self.most_rows = FEWEST_ROWS
            best = self._least()
            used = self.measured(best)
        if used > self.budget:
            # a short loop's residuals may be less than what recomputes them
            all_used = self.measured(everything)
            if all_used <= self.budget:
                return everything
            if self.requested is not None:
                raise too_small(self, min(used, all_used), "this program")
            return best  # nobody asked for a limit: as little as possible
        return self._fitted(best, used)

    def _fitted(self, least: Schedules, used: int) -> Schedules:
        """The cheapest that fits. What lies beside the tokens is known when a choice is measured,
        so the room for them is corrected, and halved between one that fits and one that does not.
        """
        best, fits, too_much = least, 0, None
        room = self.budget - used + self._tokens(least)
        for _ in range(MOST_TRIES):
            found = self._within(room)
            if found is None:
                break
            used = self.measured(found)
            corrected = self.budget - used + self._tokens(found)
            if used > self.budget:
                too_much = room
            else:
                fits = room
                if self._work(found) < self._work(best):
                    best = found
            if fits < corrected < (too_much or corrected + 1):
                room = corrected
            elif too_much is None or too_much - fits <= ALIGNMENT:
                break
            else:
                room = (fits + too_much) // 2
        return best

    def measured(self, schedules: Schedules) -> int:
        return self._measure(schedules, self.most_rows)

    def measured_tightly(self, schedules: Schedules) -> int:
        """With fewer actions at a time, from now on, where it is too much otherwise."""
        if self.measured(schedules) > self.budget:
            self.most_rows = FEWEST_ROWS
        return self.measured(schedules)

    def _nearer(self, chosen: Schedules) -> Schedules:
        """Instead of residuals in memory so few that caches hold them, where that is faster.

        To run a step again may take less time than to move its residuals to memory and back.
        """
        found = self._nearest(chosen)
        return found if found == chosen or self.measured(found) <= self.budget else chosen

    def _nearest(self, chosen: Schedules) -> Schedules:
        slots, found = slots_of(chosen), dict(chosen)
        for x in self.outer:
            if x.name in self.step_ns and x.n_steps > 1:
                size = step_bytes(self.loops, slots, x.name)
                period = isqrt(x.n_steps * x.state_bytes // max(1, size))
                period = max(1, min(period, CACHE // max(1, size), x.n_steps))
                options = [chosen[x.name], two_level(x.n_steps, period)]
                kept = slot_bytes(x, size, options[0])
                for room in (MOST, MOST // 4):  # the less, the nearer
                    if kept > room:
                        options += self._in_kept_memory(x, size, room)
                step = self.step_ns[x.name]
                found[x.name] = min(options, key=lambda s: nanoseconds(x, size, s, step))
        return found

    def _in_kept_memory(self, x: TapedLoop, size: int, room: int) -> list[Schedule]:
        """The best schedule in memory that is there from run to run, with room for all else."""
        room = room * 3 // 4 // len(self.outer)
        found = fitting_schedule(x.n_steps, x.state_bytes, size, room, binomial(x))
        return [] if found is None else [found]

    # --- predictions ---------------------------------------------------------------------------

    def _tokens(self, schedules: Schedules) -> int:
        """Bytes that depend on the schedules: action tables and tokens.

        An inner loop's token lies in that of the loop around it, and in cells of its own while it
        is in use.
        """
        slots = slots_of(schedules)
        tokens = sum(token_bytes(self.loops, slots, x.name) for x in self.loops.values())
        return tokens + sum(self._table(x, schedules[x.name]) for x in self.loops.values())

    def _table(self, x: TapedLoop, schedule: Schedule) -> int:
        inner = x.depth > 1
        rows = whole_rows(schedule) if inner else streamed_rows(schedule, self.most_rows)
        return rows * ACTION_BYTES

    def _work(self, schedules: Schedules) -> int:
        """What both sweeps compute, in bytes moved: forward steps by the size of a step."""
        return sum(x.runs * self._reversed(x, schedules) for x in self.roots)

    def _reversed(self, x: TapedLoop, schedules: Schedules) -> int:
        """A step is taped once, with its inner loops; all its other runs run them plainly."""
        again = schedules[x.name].weight - x.n_steps
        taped = _own(x) + sum(self._reversed(self.loops[k], schedules) for k in x.inner)
        return int(again * self._plain(x)) + x.n_steps * taped

    def _plain(self, x: TapedLoop) -> int:
        inner = [self.loops[k] for k in x.inner]
        return _own(x) + sum(loop.n_steps * self._plain(loop) for loop in inner)

    # --- the search ----------------------------------------------------------------------------

    def _least(self) -> Schedules:
        """The fewest bytes for every loop, from the innermost ones outwards."""
        chosen: Schedules = {}
        for x in sorted(self.inner, key=lambda x: -x.depth):
            chosen[x.name] = self._smallest(x, self.ladders[x.name], chosen)
        return {**chosen, **self._least_outer(chosen)}

    def _least_outer(self, inner: Schedules) -> Schedules:
        return {
            x.name: self._smallest(x, [store_all(x.n_steps), binomial(x)(x.n_steps, 1)], inner)
            for x in self.outer
        }

    def _smallest(self, x: TapedLoop, options: list[Schedule], inner: Schedules) -> Schedule:
        loops = {k: self.loops[k] for k in (x.name, *inner)}

        def size(schedule: Schedule) -> int:
            token = token_bytes(loops, slots_of({**inner, x.name: schedule}), x.name)
            return x.depth * token + self._table(x, schedule)

        return min(options, key=lambda schedule: (size(schedule), schedule.forward_steps))

    def _within(self, room: int) -> Schedules | None:
        """The best choice whose tokens are predicted to take ``room`` bytes at most.

        Inner loops are improved one after the other, each rung of its ladder with the outermost
        loops fitted into what is left, until nothing changes.
        """
        least = self._least()
        starts = [{x.name: store_all(x.n_steps) for x in self.inner}]
        starts.append({x.name: least[x.name] for x in self.inner})
        found = [self._improved(start, room) for start in (starts if self.inner else starts[:1])]
        return min((s for s in found if s), key=self._work, default=None)

    def _improved(self, inner: Schedules, room: int) -> Schedules | None:
        best = self._outer_for(inner, room)
        for _ in range(len(self.inner)):
            before = best
            for x in self.inner:
                tried = [self._outer_for({**inner, x.name: s}, room) for s in self.ladders[x.name]]
                best = min((s for s in (best, *tried) if s), key=self._work, default=None)
                if best:
                    inner = {k.name: best[k.name] for k in self.inner}
            if best is before:
                break
        return best

    def _outer_for(self, inner: Schedules, room: int) -> Schedules | None:
        """Give the room that the inner loops leave to the outermost ones, where it saves most."""
        chosen = {**inner, **self._least_outer(inner)}
        spare = room - self._tokens(chosen)
        if spare < 0:
            return None
        if len(self.outer) > 1:
            spare = self._spend(chosen, spare)
        slots = slots_of(chosen)
        for x in self.outer:
            step, own = (f(self.loops, slots, x.name) for f in (step_bytes, token_bytes))
            taken = own - x.head_bytes + self._table(x, chosen[x.name])
            best = self._fitting(x, step, taken + spare)
            if best and best.weight < chosen[x.name].weight:
                chosen[x.name] = best
                spare = room - self._tokens(chosen)
        return chosen

    def _fitting(self, x: TapedLoop, step: int, room: int) -> Schedule | None:
        """The fewest forward steps for slots and actions in ``room`` bytes; of these, a schedule
        with more slots has more."""
        table = -1
        best: Schedule | None = None
        while best is None or table < self._table(x, best):
            table = self._table(x, best) if best else 0
            sizes = x.n_steps, x.state_bytes, step, room - table
            best = fitting_schedule(*sizes, binomial(x), x.name in self.beside)
            if best is None:
                break
        return best

    def _spend(self, chosen: Schedules, spare: int) -> int:
        """Take better schedules, what saves most per byte first; returns the bytes left."""
        steps = []
        for x in self.outer:
            offers = worthwhile(self._offers(x, chosen))
            steps += [(saving(a, b), x.name, a, b) for a, b in pairwise(offers)]
        stuck = set()
        for _, name, a, b in sorted(steps, key=lambda step: -step[0]):
            if name in stuck or b.size - a.size > spare:
                stuck.add(name)  # its larger offers build on this one
            else:
                chosen[name], spare = b.schedule, spare - (b.size - a.size)
        return spare

    def _offers(self, x: TapedLoop, chosen: Schedules) -> list[Offer]:
        """What each rung of a loop's ladder takes and costs, after the schedule chosen so far."""
        step = step_bytes(self.loops, slots_of(chosen), x.name)
        plain = self._plain(x)
        offers = [
            Offer(
                s.n_slots * x.state_bytes + s.n_tape_slots * step + self._table(x, s),
                s.forward_steps * plain,
                s,
            )
            for s in (chosen[x.name], *self.ladders[x.name])
        ]
        return [offer for offer in offers if offer.size >= offers[0].size]

    # --- what the user asked for ---------------------------------------------------------------

    def _as_asked(self) -> Schedules:
        """The schedule asked for in the outermost loops; inner ones keep all, or least."""
        least = self._least()
        everything = {x.name: store_all(x.n_steps) for x in self.inner}
        chosen: Schedules = {}
        outer = {x.name: asked_for(self.choice, x) for x in self.outer}
        needed = []
        for inner in (everything, {x.name: least[x.name] for x in self.inner}):
            chosen = {**inner, **outer}
            needed.append(self.measured_tightly(chosen))
            if needed[-1] <= self.budget:
                grows = self.choice in ("revolve", "online")
                return self._with_more_slots(chosen) if grows else chosen
        if self.requested is not None:
            raise too_small(self, min(needed), "this schedule")
        return chosen

    def _with_more_slots(self, chosen: Schedules) -> Schedules:
        """Give one loop after the other the slots that fit into the room left over."""
        used = self.measured(chosen)
        for x in self.outer:
            state = max(1, x.state_bytes)
            make = family(self.choice, x)
            most = MOST_SLOTS if make is unknown else x.n_steps
            slots = min(most, 1 + (self.budget - used) // state)
            while slots > 1:
                more = {**chosen, x.name: make(x.n_steps, slots)}
                needed = self.measured(more)
                if needed <= self.budget:
                    chosen, used = more, needed
                    break
                slots -= -((self.budget - needed) // state)
        return chosen

    def under(self, budget: int) -> Chooser:
        """The same for another budget, which nobody asked for."""
        rest = None, self.step_ns, self.resumes, self.beside, self.overlaps
        other = Chooser(self.loops, budget, self.choice, self._measure, *rest)
        other.is_limited = True
        return other

    def factor(self, schedules: Schedules) -> float:
        """How often a step is computed forward, on the average."""
        everything = self._everything()
        return self._work(schedules) / max(1, self._work(everything))

    def plans(self, schedules: Schedules) -> tuple[LoopPlan, ...]:
        slots = slots_of(schedules)
        return tuple(
            LoopPlan(
                x.n_steps,
                x.state_bytes,
                step_bytes(self.loops, slots, x.name),
                schedules[x.name],
                x.runs,
                x.depth,
                x.is_open,
                str(x.place),
                x.name,
                beside=schedules[x.name].n_beside if x.name in self.beside else 0,
            )
            for x in sorted(self.loops.values(), key=lambda x: x.depth)
        )


def _own(x: TapedLoop) -> int:
    """The weight of one step, without its inner loops."""
    return STEP_OVERHEAD + x.state_bytes + x.residual_bytes
