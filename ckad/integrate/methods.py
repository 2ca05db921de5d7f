"""The adaptive methods by their names: what makes the loop of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ckad.integrate.events import Event
from ckad.integrate.onestep import OneStep
from ckad.integrate.problem import Control, Problem
from ckad.integrate.run import Run
from ckad.integrate.stages import Explicit, Rhs
from ckad.integrate.stiff.bdf import Bdf
from ckad.integrate.stiff.esdirk import TABLEAUX, Esdirk
from ckad.integrate.stiff.linear import Systems, systems
from ckad.integrate.stiff.rosenbrock import Rodas5P
from ckad.integrate.tableaux import PAIRS


class Asked(NamedTuple):
    """What a loop is made of."""

    problem: Problem
    control: Control
    events: Sequence[Event]
    parts: tuple[Rhs, Rhs] | None  # an explicit and an implicit part of fun
    jac: Any
    jac_sparsity: Any
    args: tuple[Any, ...]


def _explicit(name: str) -> Callable[[Asked], Run]:
    def made(asked: Asked) -> Run:
        stepper = Explicit(PAIRS[name], asked.problem.fun, asked.control)
        return OneStep(stepper, asked.problem, asked.control, asked.events)

    return made


def _esdirk(name: str) -> Callable[[Asked], Run]:
    def made(asked: Asked) -> Run:
        slow, fast = asked.parts or (None, asked.problem.fun)
        stepper = Esdirk(TABLEAUX[name], fast, _systems(asked, fast), asked.control, slow)
        return OneStep(stepper, asked.problem, asked.control, asked.events)

    return made


def _rodas5p(asked: Asked) -> Run:
    stepper = Rodas5P(asked.problem.fun, _systems(asked, asked.problem.fun)[1], asked.control)
    return OneStep(stepper, asked.problem, asked.control, asked.events)


def _bdf(asked: Asked) -> Run:
    both = _systems(asked, asked.problem.fun)
    return Bdf(asked.problem, asked.control, asked.events, both)


def _systems(asked: Asked, fun: Rhs) -> tuple[Systems, Systems]:
    """With the Jacobian that is given, and with that of the tape, which derivatives need."""

    def made(jac: Any) -> Systems:
        return systems(asked.problem, fun, jac, asked.jac_sparsity, asked.args)

    exact = made(None)
    return exact if asked.jac is None else made(asked.jac), exact


STIFF: dict[str, Callable[[Asked], Run]] = {
    **{name: _esdirk(name) for name in TABLEAUX},
    "Rodas5P": _rodas5p,
    "BDF": _bdf,
}
METHODS: dict[str, Callable[[Asked], Run]] = {**{name: _explicit(name) for name in PAIRS}, **STIFF}
#: Those that take fun=(explicit, implicit).
IMEX = tuple(name for name, tableau in TABLEAUX.items() if tableau.explicit is not None)
