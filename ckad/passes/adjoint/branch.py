"""The adjoint of a branch in two: what the forward sweep keeps, and what the reverse computes.

The residuals of both branches lie in the same places, of which a branch that needs fewer leaves
some at zero. What a branch was given is not kept again but read from where it came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ckad.passes.activity import dependent
from ckad.passes.adjoint.residuals import least, read_by
from ckad.passes.dce import dce, drop_inputs
from ckad.passes.liveness import needed
from ckad.passes.rewrite import with_outputs
from ckad.passes.simplify import mark_simple
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import Type


class BranchAdjoint:
    """A joint tape (inputs, cotangents) -> (outputs, cotangents of inputs), to be cut."""

    def __init__(self, joint: Tape, stays: Sequence[bool], n_outputs: int) -> None:
        self.joint, self.n_inputs = joint, len(stays)
        n_inputs = len(stays)
        outputs = joint.outputs.tolist()
        self.values, self.duals = outputs[:n_outputs], outputs[n_outputs:]
        inputs = joint.inputs.tolist()[:n_inputs]
        dual = dependent(joint, [k >= n_inputs for k in range(len(joint.inputs))])
        # tokens of loops stay within the branch, which is then run again
        loops = any(row.op is Op.TAPED_LOOP for row in joint.rows)
        costly = {k for k, free in zip(inputs, stays, strict=True) if not free}
        residuals = [] if loops else least(joint, dual, costly, read_by(joint, dual, self.duals))
        self.kept = [k for k in residuals if k not in inputs]
        live = needed(joint, self.duals, known=set(self.kept))
        self.read = [at for at, k in enumerate(inputs) if live[k]]

    @property
    def kept_types(self) -> list[Type]:
        return [self.joint.rows[k].type for k in self.kept]

    def taping(self, types: Sequence[Type]) -> Tape:
        """inputs -> (outputs, residuals of the given types)."""
        n = self.n_inputs
        primal = dce(with_outputs(self.joint, [*self.values, *self.kept]))
        primal = drop_inputs(primal, set(range(n, len(primal.inputs))))
        b = Builder()
        env: dict[int, int] = {}
        for k in range(len(primal)):
            env[k] = b.copy_row(primal, k, env)
        outputs = [env[k] for k in primal.outputs.tolist()]
        values, kept = outputs[: len(self.values)], outputs[len(self.values) :]
        places = dict(zip(_places(self.kept_types, types), kept, strict=True))
        full = [places[j] if j in places else b.full(t, 0) for j, t in enumerate(types)]
        return mark_simple(b.tape([*values, *full]))

    def reverse(self, read: Sequence[int], types: Sequence[Type], given: tuple[int, int]) -> Tape:
        """(inputs ``read``, residuals, cotangents given) -> cotangents of the inputs."""
        joint, b = self.joint, Builder()
        inputs = joint.inputs.tolist()
        env = {inputs[at]: b.input(joint.rows[inputs[at]].type) for at in read}
        residuals = [b.input(t) for t in types]
        for k, place in zip(self.kept, _places(self.kept_types, types), strict=True):
            env[k] = residuals[place]
        for k in inputs[self.n_inputs : self.n_inputs + sum(given)]:
            env[k] = b.input(joint.rows[k].type)
        live = needed(joint, self.duals, known=set(env))
        for k in range(len(joint)):
            if live[k] and k not in env:
                env[k] = b.copy_row(joint, k, env)
        return mark_simple(b.tape([env[k] for k in self.duals]))


def shared_types(both: Sequence[Sequence[Type]]) -> list[Type]:
    """The types of places in which the residuals of either branch find room."""
    counts = Counter[Type]()
    for types in both:
        counts |= Counter(types)
    return list(counts.elements())


def _places(types: Sequence[Type], shared: Sequence[Type]) -> list[int]:
    """The place of each residual among those that the branches share."""
    free = list(range(len(shared)))
    found = []
    for t in types:
        place = next(j for j in free if shared[j] == t)
        free.remove(place)
        found.append(place)
    return found
