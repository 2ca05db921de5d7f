"""Rule block of CALL: what its routine says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.rules.registry import Contribution, Tangents, jvp, rule, vjp
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.routines import ROUTINES, result_type
from ckad.tape.types import Type


def _evaluate(type: Type, attrs: Sequence[int], *arrays: np.ndarray) -> np.ndarray:
    return ROUTINES[attrs[0]].run(attrs[1:], *arrays)


rule(Op.CALL, shape=result_type, evaluate=_evaluate)


@jvp(Op.CALL)
def _(
    b: Builder, tangents: Tangents, out: int, *operands: int, attrs: Sequence[int] = ()
) -> int | None:
    push = ROUTINES[attrs[0]].jvp
    return None if push is None else push(b, tangents, out, *operands, attrs=attrs[1:])


@vjp(Op.CALL)
def _(
    b: Builder, ct: int, out: int, *operands: int, attrs: Sequence[int] = ()
) -> Sequence[Contribution]:
    pull = ROUTINES[attrs[0]].vjp
    if pull is None:
        return (None,) * len(operands)
    contributions: Sequence[Contribution] = pull(b, ct, out, *operands, attrs=attrs[1:])
    return contributions
