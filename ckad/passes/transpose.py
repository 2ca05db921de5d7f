"""A linear tape the other way round."""

from __future__ import annotations

import numpy as np

from ckad.passes.activity import dependent
from ckad.passes.adjoint import adjoint
from ckad.passes.rewrite import appended, bind
from ckad.passes.simplify import simplify
from ckad.passes.untape import untape
from ckad.tape.builder import Builder
from ckad.tape.tape import Tape


def transposed(tape: Tape, n: int) -> Tape | None:
    """From directions of the outputs to those of the first ``n`` inputs; the others follow.

    None if the outputs are not linear in the first ``n`` inputs.
    """
    pulled = simplify(untape(adjoint(untape(tape), wrt=tuple(range(n)))))
    flags = dependent(pulled, [k < n for k in range(len(pulled.inputs))])
    if any(flags[k] for k in pulled.outputs.tolist()):
        return None
    types = pulled.input_types
    fixed = bind(pulled, {k: np.zeros(types[k].shape, types[k].numpy) for k in range(n)})
    b, rest = Builder(), len(fixed.inputs) - len(tape.outputs)
    directions = [b.input(t) for t in fixed.input_types[rest:]]
    others = [b.input(t) for t in fixed.input_types[:rest]]
    return b.tape(appended(b, fixed, [*others, *directions]))
