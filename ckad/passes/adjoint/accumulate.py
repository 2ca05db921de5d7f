"""The adjoint of a tape: reverse accumulation, as a tape (Griewank & Walther 2008, chapter 3).

The rows are copied, then visited backwards; each turns the cotangent of its value into
contributions to the cotangents of its operands. A loop becomes a pair: TAPED_LOOP keeps what the
reverse needs, REVERSE_LOOP runs the steps backwards. How much is kept and how much is computed
again is not decided here but by the schedule the pair is run with.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import NamedTuple

from ckad.errors import DifferentiationError
from ckad.passes.activity import dependent, useful, varied
from ckad.passes.adjoint.branch import BranchAdjoint, shared_types
from ckad.passes.adjoint.outer import deferred
from ckad.passes.adjoint.pair import Active, LoopAdjoint, key_of, outputs_of, split, steps_of
from ckad.passes.adjoint.residuals import Joint
from ckad.passes.adjoint.undo import Chain, Restoring, chains
from ckad.passes.contributions import plus
from ckad.passes.fma import fuse
from ckad.passes.loops.same import one_each
from ckad.passes.simplify import mark_simple, simplify
from ckad.passes.squares import Pulled, Squares
from ckad.passes.untape import is_taped
from ckad.passes.vectorise.products import products_of
from ckad.rules import RULES, Contribution
from ckad.tape.builder import Builder
from ckad.tape.control import (
    Loop,
    read_loop,
    reverse_loop_attrs,
    taped_loop_attrs,
)
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape
from ckad.tape.types import TOKEN, Type


def adjoint(
    tape: Tape,
    wrt: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    keep_outputs: bool = False,
    contract: bool = False,
) -> Tape:
    """A tape from (inputs, cotangents of the outputs ``seeds``) to the cotangents of ``wrt``.

    ``wrt`` are positions of float inputs, ``seeds`` positions of float outputs (default: all).
    With ``keep_outputs`` the outputs of ``tape`` come first. A cotangent that nothing contributes
    to is zero. The loops of ``tape`` are plain ones: `untape` comes before.

    With ``contract`` products and sums of cotangents are fused. The rows of ``tape`` stay as they
    are, so that its values are the same wherever they are computed; `fma` fuses them before.
    """
    assert not is_taped(tape), "untape comes first"
    if wrt is None:
        wrt = [k for k, t in enumerate(tape.input_types) if t.is_float]
    if seeds is None:
        seeds = [k for k, t in enumerate(tape.output_types) if t.is_float]
    tape, common = one_each(tape), _Common(count(), contract, {})
    pull = _differentiate(tape, wrt, seeds, (), common, [True] * len(tape.inputs))
    outputs = [pull.env[k] for k in tape.outputs.tolist()] if keep_outputs else []
    return pull.finished([*outputs, *pull.cotangents_of(wrt)])


class _Common(NamedTuple):
    """What the bodies of one adjoint have in common."""

    names: Iterator[int]  # of the loops
    contract: bool
    pairs: dict[Hashable, LoopAdjoint]  # of equal loops


def _differentiate(
    tape: Tape,
    wrt: Sequence[int],
    seeds: Sequence[int],
    sums: Sequence[int],
    common: _Common,
    stays: Sequence[bool],
    chains: Sequence[Chain] | None = None,
) -> _Pull:
    """Emit rows and reverse rows; inputs are those of ``tape``, the seeds, and ``sums`` so far.

    An input that ``stays`` is there in the reverse without being kept. Of a loop's body, ``chains``
    are the arrays that can be put back; as they are after the step they are the last inputs.
    """
    pull = _Pull(tape, wrt, seeds, common)
    pull.restoring = Restoring(pull.b, tape, chains or (), pull.env)
    pull.is_outermost = chains is None
    pull.stays = [not x for x in dependent(tape, [not x for x in stays])]
    for t in tape.input_types:
        pull.b.input(t)
    outputs = tape.outputs.tolist()
    given = [(outputs[k], pull.b.input(tape.output_types[k])) for k in seeds]
    for k in sums:
        pull.ct[int(tape.inputs[k])] = pull.b.input(tape.input_types[k])
    pull.restoring.begin()
    pull.forward()
    for x, ct in given:
        pull.add(x, ct)
    pull.backward()
    return pull


class _Pull:
    """One reverse accumulation in progress."""

    def __init__(self, tape: Tape, wrt: Sequence[int], seeds: Sequence[int], common: _Common):
        self.tape, self.common = tape, common
        self.b = Builder()
        self.env: dict[int, int] = {}
        self.ct: dict[int, int] = {}
        self.squares = Pulled(self.b, Squares(tape), self.env)
        self.varied, self.varied_results = varied(tape, [k in wrt for k in range(len(tape.inputs))])
        self.useful, self.useful_results = useful(
            tape, [k in seeds for k in range(len(tape.outputs))]
        )
        self.stays: list[bool] = []  # per row: whether the reverse has it without keeping anything
        self.loops: dict[int, LoopAdjoint] = {}
        self.restoring = Restoring(self.b, tape, (), self.env)
        self.is_outermost = True
        self.results: dict[int, list[int]] = {}
        self.result_cts: dict[int, dict[int, int]] = {}

    # --- forward -------------------------------------------------------------------------------

    def forward(self) -> None:
        for k, row in enumerate(self.tape.rows):
            self.b.where = self.tape.sources[row.source]
            self.restoring.forward(k, row)
            if row.op is Op.INPUT:
                self.env[k] = self.b.inputs[row.attrs[0]]
            elif row.op is Op.RESULT and row.operands[0] in self.results:
                self.env[k] = self.results[row.operands[0]][row.attrs[0]]
            elif row.op is Op.LOOP and self._is_active(k):
                self._taped_loop(k, row)
            else:
                self.env[k] = self.b.copy_row(self.tape, k, self.env)

    def _is_active(self, k: int) -> bool:
        flags = zip(self.varied_results.get(k, ()), self.useful_results.get(k, ()), strict=False)
        return any(v and u for v, u in flags)

    def _taped_loop(self, k: int, row: Row) -> None:
        plan = self._plan_loop(k, read_loop(self.tape, row))
        loop, b = plan.loop, self.b
        n = len(loop.carry)
        operands = [self.env[x] for x in (*loop.carry, *loop.xs, *loop.captured)]
        bodies = b.body(loop.body), b.body(plan.taping)
        attrs = taped_loop_attrs(*bodies, loop.length, n, len(loop.xs), plan.name, loop.guard)
        types = [
            *loop.body.output_types[:n],
            *(t.with_shape((loop.length, *t.shape)) for t in loop.body.output_types[n:]),
        ]
        self.loops[k] = plan
        self.results[k] = b.control(Op.TAPED_LOOP, operands, attrs, [*types, TOKEN])

    def _plan_loop(self, k: int, loop: Loop) -> LoopAdjoint:
        """Derive the bodies of the pair."""
        n, first_x = len(loop.carry), 1 + len(loop.carry)
        first_captured = first_x + len(loop.xs)
        moves, counts = self.varied_results[k], self.useful_results[k]
        both = [m and c for m, c in zip(moves, counts, strict=True)]
        carry = [c for c in range(n) if both[c]]
        ys = [y for y in range(loop.n_ys) if both[n + y]]
        xs = [x for x in range(len(loop.xs)) if self.varied[loop.xs[x]]]
        captured = [x for x in range(len(loop.captured)) if self.varied[loop.captured[x]]]
        wrt_carry, wrt_xs = [1 + c for c in carry], [first_x + x for x in xs]
        sums = [first_captured + x for x in captured]
        shared, price = self._shared(loop, first_captured), partial(self._price, k, loop)
        stays = [True, *[False] * n, *(self.stays[x] for x in (*loop.xs, *loop.captured))]
        active = Active(carry, ys, xs, captured)
        alike = key_of(loop, active, stays, shared, price)
        if alike in self.common.pairs:
            return self.common.pairs[alike]._replace(loop=loop, name=next(self.common.names))
        pull = _differentiate(
            loop.body,
            [*wrt_carry, *wrt_xs, *sums],
            [*carry, *(n + y for y in ys)],
            sums,
            self.common,
            stays,
            chains(loop.body, n),
        )
        values = [pull.env[x] for x in loop.body.outputs.tolist()]
        totals, ct_xs = pull.cotangents_of([*wrt_carry, *sums]), pull.cotangents_of(wrt_xs)
        groups = [values, totals, ct_xs, *pull.restoring.pairs()]
        tape = pull.finished([x for group in groups for x in group])
        first_sum = len(loop.body.inputs) + len(carry) + len(ys)
        so_far = tape.inputs.tolist()[first_sum : first_sum + len(sums)]
        tape, n_outputs, later = deferred(tape, list(map(len, groups)), so_far, loop)
        joint = Joint(tape, len(loop.body.inputs), n, shared)
        rows = outputs_of(tape, n_outputs, pull.restoring)
        name = next(self.common.names)
        made = split(loop, name, active, joint, rows, price)._replace(later=later)
        return self.common.pairs.setdefault(alike, made) if alike is not None else made

    def _price(self, k: int, loop: Loop, c: int) -> int:
        """Bytes that are kept around loop k if the reverse starts from the carry's last state."""
        if self.is_outermost or (k, c) in self.restoring.results:
            return 0
        return loop.body.output_types[c].nbytes

    def _shared(self, loop: Loop, first: int) -> dict[int, int]:
        """Captured arrays that the step around has to keep: position -> bytes per step."""
        types = [self.tape.rows[x].type for x in loop.captured]
        return {
            first + at: -(-t.nbytes // steps_of(loop))
            for at, (x, t) in enumerate(zip(loop.captured, types, strict=True))
            if t.is_array and t.size > 1 and not self.stays[x]
        }

    def finished(self, outputs: Sequence[int]) -> Tape:
        """The tape made so far, simplified; its cotangents fused if that is wanted."""
        tape = simplify(self.b.tape(outputs))
        is_seed = [k >= len(self.tape.inputs) for k in range(len(tape.inputs))]
        tape = simplify(products_of(tape, dependent(tape, is_seed)))
        if not self.common.contract:
            return tape
        return mark_simple(fuse(tape, dependent(tape, is_seed)))

    # --- backward ------------------------------------------------------------------------------

    def add(self, x: int, contribution: Contribution) -> None:
        """Add a contribution to the cotangent of row x of the tape."""
        if contribution is None or not self.varied[x]:
            return
        row = self.tape.rows[x]
        if row.op is Op.RESHAPE:  # an array has one sum in all its shapes: parts are added in place
            return self._add_reshaped(x, row, contribution)
        so_far = self.ct.get(x)
        if callable(contribution):
            self.ct[x] = contribution(self.b, so_far)
        else:
            self.ct[x] = contribution if so_far is None else plus(self.b, so_far, contribution)

    def _add_reshaped(self, x: int, row: Row, contribution: Contribution) -> None:
        source = row.operands[0]
        shape = self.tape.rows[source].type.shape
        if callable(contribution):
            return self.add(source, _reshaped(contribution, row.type.shape, shape))
        rule = RULES[Op.RESHAPE].vjp
        assert rule is not None
        (pulled,) = rule(self.b, contribution, self.env[x], self.env[source], attrs=row.attrs)
        return self.add(source, pulled)

    def backward(self) -> None:
        for k in range(len(self.tape) - 1, -1, -1):
            row = self.tape.rows[k]
            self.b.where = self.tape.sources[row.source]
            if row.op is Op.LOOP:
                self.restoring.loop(k, self._reverse_loop(k) if k in self.loops else {})
            elif row.op is Op.COND and k in self.result_cts:
                self._reverse_cond(k, row)
            elif k in self.ct and self.varied[k] and row.op is not Op.INPUT:
                self._row(k, row)
            self.restoring.backward(k, row)

    def _row(self, k: int, row: Row) -> None:
        if row.op is Op.RESULT:
            self.result_cts.setdefault(row.operands[0], {})[row.attrs[0]] = self.ct[k]
            return
        operands = [self.env[x] for x in row.operands]
        rule = RULES[row.op].vjp
        if rule is None:
            place = self.tape.source_of(k)
            raise DifferentiationError(f"{place}: {row.op.name} has no derivative rule")
        ct = self.squares.received(k, self.ct[k])
        usual = rule(self.b, ct, self.env[k], *operands, attrs=row.attrs)
        for x, contribution in self.squares.contributions(k, ct, usual):
            self.add(x, contribution)

    def _reverse_loop(self, k: int) -> dict[int, int]:
        """The arrays that were put back: place in the carry -> the state before the loop."""
        plan, b = self.loops[k], self.b
        loop, n, active = plan.loop, len(plan.loop.carry), plan.active
        cts = self.result_cts.get(k, {})
        if not cts:
            return {}

        def ct_of(result: int, type: Type) -> int:
            return cts[result] if result in cts else b.full(type, 0.0)

        out_types = [b.type(x) for x in self.results[k]]
        names = [loop.captured[x] for x in active.captured]
        # a value captured twice has one cotangent: the first sum goes on from it, the others from 0
        sums = [
            self.ct[x]
            if x in self.ct and x not in names[:at]
            else b.full(self.tape.rows[x].type, 0.0)
            for at, x in enumerate(names)
        ]
        groups = [
            [self.env[x] for x in loop.xs],
            [self.env[x] for x in loop.captured],
            [ct_of(c, out_types[c]) for c in active.carry],
            [ct_of(n + y, out_types[n + y]) for y in active.ys],
            [*sums, *(self.results[k][c] for c in plan.restored)],
        ]
        bodies = (b.body(plan.advance), b.body(plan.retaping), b.body(plan.reverse))
        counts = tuple(len(g) for g in groups)
        attrs = reverse_loop_attrs(bodies, loop.length, n, counts, plan.name, loop.guard)
        types = [b.type(x) for x in (*groups[2], *groups[4])]
        of_steps = plan.reverse.output_types[len(types) :]
        types += [t.with_shape((loop.length, *t.shape)) for t in of_steps]
        operands = [self.results[k][-1], *(x for g in groups for x in g)]
        values = iter(b.control(Op.REVERSE_LOOP, operands, attrs, types))
        carry, totals, before, ct_xs = (
            list(islice(values, len(x))) for x in (active.carry, sums, plan.restored, active.xs)
        )
        for x in names:
            self.ct.pop(x, None)
        for x, total in zip(names, totals, strict=True):
            self.add(x, total)
        for added in plan.later:
            stacks, x = list(islice(values, 2 * len(added.products))), names[added.at]
            self.add(x, added.total(b, self.tape.rows[x].type, stacks))
        for x, ct in zip(active.xs, ct_xs, strict=True):
            self.add(loop.xs[x], ct)
        for c, ct in zip(active.carry, carry, strict=True):
            self.add(loop.carry[c], ct)
        return dict(zip(plan.restored, before, strict=True))

    def _reverse_cond(self, k: int, row: Row) -> None:
        """A COND of the adjoints; the one in the forward sweep keeps what they read.

        They go on from the cotangents of arrays gathered so far, so that what a branch reads of an
        array is added in place, and what it leaves alone stays.
        """
        b, operands = self.b, row.operands[1:]
        cts = self.result_cts[k]
        seeds = sorted(cts)
        wrt = [x for x in range(len(operands)) if self.varied[operands[x]]]
        sums = [
            x
            for x in wrt
            if operands[x] in self.ct
            and operands.index(operands[x]) == x
            and self.tape.rows[operands[x]].type.size > 1
        ]
        given = len(seeds), len(sums)
        stays = [self.stays[x] for x in operands]
        branches = [
            _branch_adjoint(self.tape.bodies[t], wrt, seeds, sums, self.common, stays)
            for t in row.attrs[:2]
        ]
        kept = shared_types([branch.kept_types for branch in branches])
        taping = [b.body(branch.taping(kept)) for branch in branches]
        at = self.env[k]
        b.rows[at] = b.rows[at]._replace(attrs=(*taping, *row.attrs[2:]))
        n = len(self.tape.bodies[row.attrs[0]].outputs)
        residuals = [b.emit(Op.RESULT, (at,), (n + j,), t) for j, t in enumerate(kept)]
        read = sorted({x for branch in branches for x in branch.read})
        bodies = [b.body(branch.reverse(read, kept, given)) for branch in branches]
        duals = [*(cts[s] for s in seeds), *(self.ct.pop(operands[x]) for x in sums)]
        primal = [*(self.env[operands[x]] for x in read), *residuals]
        types = [self.tape.rows[operands[x]].type for x in wrt]
        values = b.control(Op.COND, [self.env[row.operands[0]], *primal, *duals], bodies, types)
        for x, ct in zip(wrt, values, strict=True):
            self.add(operands[x], ct)

    def cotangents_of(self, inputs: Sequence[int]) -> list[int]:
        """The cotangents of inputs by position; zero where nothing contributed."""
        rows, types = self.tape.inputs.tolist(), self.tape.input_types
        return [
            self.ct[rows[k]] if rows[k] in self.ct else self.b.full(types[k], 0.0) for k in inputs
        ]


def _branch_adjoint(
    tape: Tape,
    wrt: Sequence[int],
    seeds: Sequence[int],
    sums: Sequence[int],
    common: _Common,
    stays: Sequence[bool],
) -> BranchAdjoint:
    """The adjoint of a branch, cut in two."""
    pull = _differentiate(tape, wrt, seeds, sums, common, stays)
    primal = [pull.env[x] for x in tape.outputs.tolist()]
    joint = pull.finished([*primal, *pull.cotangents_of(wrt)])
    return BranchAdjoint(joint, stays, len(primal))


def _reshaped(
    contribution: Callable[[Builder, int | None], int], seen: Sequence[int], shape: Sequence[int]
) -> Contribution:
    """What adds in place to an array seen in the shape ``seen``, for the array of ``shape``."""

    def add_in_place(b: Builder, so_far: int | None) -> int:
        before = None if so_far is None else b.reshape_to(so_far, seen)
        return b.reshape_to(contribution(b, before), shape)

    return add_in_place
