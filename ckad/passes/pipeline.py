"""The route of a tape: which passes make what of a recorded program, in which order.

A function below lists the passes of one product, and nothing else puts passes one after the other.
(What a pass runs by itself, on bodies that it derives, is named in ``inside``.) ``print`` shows a
pipeline, ``watch`` what its passes do to a tape.

    recorded                          what a function did: what the next five start from
    primal                            the values alone
    gradient, pullback, pushforward   what `value_and_grad`, `vjp` and `jvp` run
    hvp                               the derivative of a gradient in one direction
    gradient_and_hvp                  both, and the values and their tangents
    gauss_newton                      an hvp without the second derivative of the function
    members, gradients                `vmap` of a function, and of a gradient
    gradients_apart                   the same where members go through loops in their own time
    pullbacks, pushforwards, hvps     the same for several cotangents or tangents in one run
    diagonals                         the elements of a sparse Jacobian, diagonal by diagonal
    inlined                           a tape on its way into another that is being recorded
    adjoint_of_tape, tangent_of_tape  what `ckad.adjoint` and `ckad.tangent` make of any tape

With ``contract`` products and sums become one op, as in native code. This changes numbers by their
rounding, so a primal is fused before it is derived, and of a derivative only the rows that it adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ckad.passes.activity import dependent
from ckad.passes.adjoint import adjoint, behind, threaded
from ckad.passes.batched import batched
from ckad.passes.calls.hoist import hoist
from ckad.passes.calls.marks import unmarked
from ckad.passes.choices import infinite, unseen
from ckad.passes.dependence import terms_of
from ckad.passes.ends import ends
from ckad.passes.fma import fma
from ckad.passes.integers.ranges import in_range
from ckad.passes.integers.stacked import stacked
from ckad.passes.integers.steady import steady
from ckad.passes.loops.eliminations import Runner, eliminations
from ckad.passes.loops.same import simplified
from ckad.passes.loops.together import together
from ckad.passes.rewrite import appended, seeded, seeded_apart, with_outputs
from ckad.passes.tangent import tangent
from ckad.passes.transpose import transposed
from ckad.passes.untape import untape
from ckad.passes.vectorise import vectorise
from ckad.passes.vectorise.products import products
from ckad.passes.vectorise.segments import segments
from ckad.tape.builder import Builder
from ckad.tape.control import LOOPS
from ckad.tape.tape import Tape

__all__ = [
    "Pass", "Pipeline", "Positions", "Stages", "appended", "transposed", "unmarked", "with_outputs",
]  # fmt: skip

#: Positions of inputs or outputs; None stands for all that are floats.
Positions = Sequence[int] | None


class Pass(NamedTuple):
    """One transformation of a tape."""

    name: str
    does: str
    run: Callable[[Tape], Tape]
    inside: tuple[str, ...] = ()  # which passes it runs by itself, and where


@dataclass(frozen=True)
class Pipeline:
    """The passes that make one product, in order."""

    product: str
    passes: tuple[Pass, ...]

    def run(self, tape: Tape) -> Tape:
        for each in self.passes:
            tape = each.run(tape)
        return tape

    def watch(self, tape: Tape) -> Stages:
        """Run, and keep what there is after every pass."""
        tapes = [tape]
        for each in self.passes:
            tapes.append(each.run(tapes[-1]))
        return Stages(self, tuple(tapes))

    def then(self, other: Pipeline) -> Pipeline:
        """What ``other`` makes of what this one makes."""
        return Pipeline(other.product, (*self.passes, *other.passes))

    def __repr__(self) -> str:
        return f"<{self.product}: {', '.join(each.name for each in self.passes)}>"

    def __str__(self) -> str:
        width = max(len(each.name) for each in self.passes)
        lines = [f"{self.product}:"]
        for each in self.passes:
            lines.append(f"    {each.name:<{width}}  {each.does}")
            lines += [f"    {'':<{width}}    {text}" for text in each.inside]
        return "\n".join(lines)


class Stages(NamedTuple):
    """What a pipeline made of a tape: ``tapes[0]`` as given, ``tapes[k]`` after pass k."""

    pipeline: Pipeline
    tapes: tuple[Tape, ...]

    def __repr__(self) -> str:
        return f"<{len(self.tapes)} tapes of {self.pipeline!r}>"

    def __str__(self) -> str:
        """Rows and loops before and after every pass, those of bodies included."""
        names = [each.name for each in self.pipeline.passes]
        width, digits = max(map(len, names)), max(len(f"{_rows(t):,}") for t in self.tapes)
        changes = [_change(*pair, digits) for pair in pairwise(self.tapes)]
        lines = [f"    {n:<{width}}  {c}" for n, c in zip(names, changes, strict=True)]
        return "\n".join([f"{self.pipeline.product}:", *lines])


def _change(before: Tape, after: Tape, digits: int) -> str:
    if before is after or before.digest == after.digest:
        return f"{_rows(before):>{digits},} rows, unchanged"
    rows = f"{_rows(before):>{digits},} -> {_rows(after):>{digits},} rows"
    loops = _loops(before), _loops(after)
    return rows if loops[0] == loops[1] else f"{rows}, {loops[0]} -> {loops[1]} loops"


def _rows(tape: Tape) -> int:
    return sum(map(len, _tapes(tape).values()))


def _loops(tape: Tape) -> int:
    return sum(row.op in LOOPS for each in _tapes(tape).values() for row in each.rows)


def _tapes(tape: Tape) -> dict[int, Tape]:
    """The tape and its bodies, each once."""
    found = {id(tape): tape}
    for body in tape.bodies:
        found |= _tapes(body)
    return found


SIMPLIFY = Pass("simplify", "the same from fewer rows: fold and cse in one walk, dce", simplified)
VECTORISE = Pass(
    "vectorise",
    "loops over elements become array ops",
    vectorise,
    (
        "each loop, innermost first: predicated, simplify, unflatten, simplify, side_by_side",
        "one that stays a loop: flattened",
        "then the tape around them: simplify, transposes_last, simplify",
    ),
)
PRODUCTS = Pass("products", "sums of products of elements are matrix products", products)
SEGMENTS = Pass("segments", "sums over known runs of places are sparse products", segments)
TOGETHER = Pass("together", "many loops that are alike are the steps of one", together)
IN_RANGE = Pass("in_range", "indices that are proven to be in range are not checked", in_range)
STEADY = Pass("steady", "an element that a loop meets at one place is a scalar around it", steady)
STACKED = Pass("stacked", "what steps write at their number is what a loop gives", stacked)
HOIST = Pass("hoist", "routines and products of what a loop does not change come before it", hoist)
ENDS = Pass("ends", "rows near the end of what a loop stacks, all that is read, are carried", ends)
FMA = Pass("fma", "a product that one sum alone reads joins it", fma)
INFINITE = Pass("infinite", "products with infinite constants are apart", infinite)
UNSEEN = Pass("unseen", "what a choice does not take is computed of a harmless number", unseen)
UNTAPE = Pass("untape", "the taped loops of an adjoint are plain loops again", untape)
THREADED = Pass("threaded", "changing arrays that a loop only reads go through it", threaded)
BEHIND = Pass("behind", "parts that both sides of a branch write are written behind it", behind)
BEFORE = STACKED, ENDS, BEHIND, THREADED  # an adjoint
SEEDED = Pass("seeded", "the cotangent of the result is one", seeded)


def _adjoint(
    wrt: Positions, seeds: Positions = None, keep_outputs: bool = False, contract: bool = False
) -> Pass:
    fuse = ", fuse" if contract else ""
    given, wanted = _named(seeds, "output"), _named(wrt, "input")
    kept = ", after the outputs" if keep_outputs else ""
    return Pass(
        "adjoint",
        f"reverse mode: cotangents of {given} to those of {wanted}{kept}",
        partial(adjoint, wrt=wrt, seeds=seeds, keep_outputs=keep_outputs, contract=contract),
        (
            f"each body, innermost first: adjoint, simplify, products_of{fuse}, split, dce",
            f"then the tape around them: simplify, products_of{fuse}",
        ),
    )


def _tangent(moving: Positions, contract: bool) -> Pass:
    inside = ("each body, innermost first, then the tape around them: simplify, fuse",)
    return Pass(
        "tangent",
        f"forward mode: tangents of {_named(moving, 'input')} to those of all float outputs",
        partial(tangent, wrt=moving, contract=contract),
        inside if contract else (),
    )


def _batched(inputs: Sequence[bool], n: int) -> Pass:
    """Inputs beyond those named are batched as well."""

    def run(tape: Tape) -> Tape:
        more = len(tape.inputs) - len(inputs)
        return batched(tape, [*inputs, *[True] * more], n)

    return Pass("batched", f"for {n} members at once", run)


def _several(
    of: Pipeline, product: str, n_inputs: int, n: int, outputs: slice = slice(None)
) -> Pipeline:
    """``of`` for ``n`` members that differ in the inputs after the first ``n_inputs``."""

    def wanted(tape: Tape) -> Tape:
        return simplified(with_outputs(tape, tape.outputs.tolist()[outputs]))

    chosen = Pass("wanted", "outputs that differ from member to member", wanted)
    passes = (chosen, _batched([False] * n_inputs, n), SIMPLIFY)
    return of.then(Pipeline(product, passes))


def _closed(wrt: Positions, n_outputs: int, loss: Tape | None, contract: bool) -> Pass:
    """Reverse mode whose cotangents are the outputs' tangents, or the loss's `hvp` of them."""

    def run(tape: Tape) -> Tape:
        seeds = [k for k in range(n_outputs) if tape.output_types[k].is_float]
        both = adjoint(tape, wrt=wrt, seeds=seeds, keep_outputs=True, contract=contract)
        n = len(tape.inputs)
        reverse = dependent(both, [k >= n for k in range(len(both.inputs))])
        b, env = Builder(), dict[int, int]()
        for k in (k for k, flag in enumerate(reverse) if not flag):
            env[k] = b.copy_row(both, k, env)
        weights = [env[k] for k in both.outputs.tolist()[n_outputs : len(tape.outputs)]]
        if loss is not None:
            values = [env[k] for k in both.outputs.tolist()[:n_outputs]]
            weights = appended(b, loss, [*values, *weights])
        env |= dict(zip(both.inputs.tolist()[n:], weights, strict=True))
        for k in (k for k, flag in enumerate(reverse) if flag and k not in env):
            env[k] = b.copy_row(both, k, env)
        return b.tape([env[k] for k in both.outputs.tolist()[len(tape.outputs) :]])

    return Pass("closed", "reverse mode from what the tangents have given", run)


def _named(positions: Positions, kind: str) -> str:
    if positions is None:
        return f"all float {kind}s"
    numbers = ", ".join(map(str, positions))
    return f"{kind} {numbers}" if len(positions) == 1 else f"{kind}s {numbers}"


def recorded(run: Runner | None = None) -> Pipeline:
    """``run`` tries what loops compute; without it they stay as they are."""
    does = "loops that eliminate, told by what they make of known factors, are calls"
    more = () if run is None else (Pass("eliminate", does, partial(eliminations, run=run)),)
    return Pipeline("recorded", (SIMPLIFY, VECTORISE, PRODUCTS, SEGMENTS, *more))


def primal(contract: bool = False) -> Pipeline:
    fused = (FMA,) if contract else ()
    return Pipeline("primal", (TOGETHER, IN_RANGE, STEADY, HOIST, ENDS, SIMPLIFY, *fused))


def derived(contract: bool = False) -> Pipeline:
    """The primal as it is differentiated."""
    return primal(contract).then(Pipeline("derived", (INFINITE, UNSEEN)))


def gradient(wrt: Positions = None, contract: bool = False) -> Pipeline:
    """Outputs, of which the first is a scalar, and its cotangents by ``wrt``."""
    reverse = _adjoint(wrt, seeds=(0,), keep_outputs=True, contract=contract)
    return derived(contract).then(Pipeline("gradient", (*BEFORE, reverse, SEEDED, SIMPLIFY)))


def pullback(wrt: Positions = None, contract: bool = False) -> Pipeline:
    """From (inputs, cotangents of the outputs) to the cotangents of ``wrt``."""
    reverse = _adjoint(wrt, contract=contract)
    return derived(contract).then(Pipeline("pullback", (*BEFORE, reverse)))


def pushforward(moving: Positions = None, contract: bool = False) -> Pipeline:
    """From (inputs, tangents of ``moving``) to (outputs, their tangents)."""
    forward = _tangent(moving, contract)
    return derived(contract).then(Pipeline("pushforward", (forward, SIMPLIFY)))


def hvp(wrt: Positions = None, moving: Positions = None, contract: bool = False) -> Pipeline:
    """From (inputs, tangents of ``moving``) to the cotangents of ``wrt``: reverse over forward.

    The tape has one output, a scalar. Its tangent is the second one then, and what is reversed.
    """
    forward, reverse = _tangent(moving, contract), _adjoint(wrt, seeds=(1,), contract=contract)
    return derived(contract).then(Pipeline("hvp", (forward, *BEFORE, reverse, SEEDED, SIMPLIFY)))


def gradient_and_hvp(
    wrt: Sequence[int], moving: tuple[int, ...], n_inputs: int, contract: bool = False
) -> Pipeline:
    """From (inputs, tangents of ``moving``) to the scalar, its tangent, gradient by ``wrt``, `hvp`.

    The tangent is linear in the tangents, and its gradient by them that of the scalar.
    """
    tangents = [n_inputs + moving.index(k) for k in wrt]
    reverse = _adjoint((*tangents, *wrt), seeds=(1,), keep_outputs=True, contract=contract)
    passes = _tangent(moving, contract), *BEFORE, reverse, SEEDED, SIMPLIFY
    return derived(contract).then(Pipeline("gradient_and_hvp", passes))


def gauss_newton(
    wrt: Positions = None, n_outputs: int = 1, loss: Tape | None = None, contract: bool = False
) -> Pipeline:
    """From (inputs, tangents of ``wrt``) to J^T H J times these, cotangents of ``wrt``.

    J is the Jacobian of the tape, H that of the gradient of the loss, of which the inlined `hvp` is
    given. The tangents go forward with the values, then one reverse sweep follows.
    """
    reverse = _closed(wrt, n_outputs, loss, contract)
    passes = _tangent(wrt, contract), *BEFORE, reverse, SIMPLIFY
    return derived(contract).then(Pipeline("gauss_newton", passes))


def members(inputs: Sequence[bool], n: int, contract: bool = False) -> Pipeline:
    """The outputs for ``n`` members, which differ in the chosen inputs."""
    return Pipeline("members", (_batched(inputs, n), SIMPLIFY, *primal(contract).passes))


def gradients(wrt: Positions, inputs: Sequence[bool], n: int, contract: bool = False) -> Pipeline:
    """`gradient` for ``n`` members, which differ in the chosen inputs."""
    return gradient(wrt, contract).then(Pipeline("gradients", (_batched(inputs, n), SIMPLIFY)))


def gradients_apart(
    wrt: Sequence[int], inputs: Sequence[bool], n: int, contract: bool = False
) -> Pipeline:
    """`gradients` where members leave a loop at different times: each goes both ways by itself.

    It is the gradient of the sum over the members, to each of which belongs its own part.
    """
    own = [k in wrt or each for k, each in enumerate(inputs)]
    shared = [k for k in wrt if not inputs[k]]
    reverse = _adjoint(wrt, seeds=(0,), keep_outputs=True, contract=contract)
    each = Pass("each", f"{SEEDED.does}, of each member", partial(seeded_apart, shared))
    passes = _batched(own, n), SIMPLIFY, THREADED, reverse, each, SIMPLIFY
    return derived(contract).then(Pipeline("gradients_apart", passes))


def pullbacks(wrt: Positions, n_inputs: int, n: int, contract: bool = False) -> Pipeline:
    """From (inputs, ``n`` cotangents of each output) to as many cotangents of ``wrt``."""
    return _several(pullback(wrt, contract), "pullbacks", n_inputs, n)


def pushforwards(
    moving: Positions, n_inputs: int, n_outputs: int, n: int, contract: bool = False
) -> Pipeline:
    """From (inputs, ``n`` tangents of each of ``moving``) to as many tangents of the outputs."""
    tangents = slice(n_outputs, None)
    return _several(pushforward(moving, contract), "pushforwards", n_inputs, n, tangents)


def hvps(
    wrt: Positions, moving: Positions, n_inputs: int, n: int, contract: bool = False
) -> Pipeline:
    """`hvp` in ``n`` directions."""
    return _several(hvp(wrt, moving, contract), "hvps", n_inputs, n)


def diagonals(wrt: Sequence[int], contract: bool = False) -> Pipeline:
    """From the inputs to the terms of the Jacobian by the one of ``wrt``."""
    terms = Pass("diagonals", "derivatives by one element each", partial(terms_of, wrt[0]))
    return derived(contract).then(Pipeline("diagonals", (terms, SIMPLIFY)))


def inlined() -> Pipeline:
    return Pipeline("inlined", (UNTAPE, SIMPLIFY))


def adjoint_of_tape(
    wrt: Positions = None,
    seeds: Positions = None,
    keep_outputs: bool = False,
    contract: bool = False,
) -> Pipeline:
    """From (inputs, cotangents of ``seeds``) to the cotangents of ``wrt``."""
    reverse = _adjoint(wrt, seeds, keep_outputs, contract)
    return Pipeline("adjoint of a tape", (UNTAPE, INFINITE, UNSEEN, THREADED, reverse))


def tangent_of_tape(moving: Positions = None, contract: bool = False) -> Pipeline:
    """From (inputs, tangents of ``moving``) to (outputs, their tangents)."""
    forward = _tangent(moving, contract)
    return Pipeline("tangent of a tape", (UNTAPE, INFINITE, UNSEEN, forward, SIMPLIFY))
