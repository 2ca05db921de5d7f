"""The case table: for every op the programs and inputs that the tests hold it to."""

from __future__ import annotations

from functools import cache

from ckad.tape.ops import Op

from .arrays import all_arrays
from .case import Case
from .composites import all_composites
from .elementwise import all_elementwise
from .reductions import all_reductions

#: Ops that no case is named after, and the ops whose cases they occur in.
OCCURS_IN = {
    Op.INPUT: Op.NEG,
    Op.RESULT: Op.LOOP,
    Op.CONST: Op.LOOP,
    Op.TAPED_LOOP: Op.LOOP,
    Op.REVERSE_LOOP: Op.LOOP,
}


@cache
def table() -> tuple[Case, ...]:
    return (*all_elementwise(), *all_arrays(), *all_reductions(), *all_composites())


@cache
def cases_of(op: Op) -> tuple[Case, ...]:
    return tuple(case for case in table() if case.op is op)


@cache
def smooth_cases() -> tuple[Case, ...]:
    """Those whose derivatives are checked."""
    return tuple(case for case in table() if case.smooth and _has_floats(case))


def _has_floats(case: Case) -> bool:
    return bool(case.active) and any(t.is_float for t in case.tape().output_types)
