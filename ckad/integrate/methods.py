"""The adaptive methods by their names: what makes the loop of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.integrate.events import Event
from ckad.integrate.onestep import OneStep
from ckad.integrate.problem import Control, Problem, has_kinks
from ckad.integrate.run import Run
from ckad.integrate.stages import Explicit, Rhs
from ckad.integrate.stiff.bdf import Bdf
from ckad.integrate.stiff.esdirk import TABLEAUX, Esdirk
from ckad.integrate.stiff.linear import Systems, systems
from ckad.integrate.stiff.rosenbrock import Rodas5P
from ckad.integrate.tableaux import PAIRS
from ckad.trace.arrays import traced
from ckad.trace.source import follow
from ckad.transforms.primitives.closed import as_now


class Asked(NamedTuple):
    """What a loop is made of."""

    problem: Problem
    control: Control
    events: Sequence[Event]
    parts: tuple[Rhs, Rhs] | None  # an explicit and an implicit part of fun
    jac: Any
    jac_sparsity: Any
    args: tuple[Any, ...]

    def as_now(self) -> Asked:
        """The same for who solves again later, when the program may have changed what its
        functions read."""
        at = traced(np.float64(0.0)) + self.problem.t0, self.problem.y0
        jac: Any = None
        if self.jac is not None:
            given: Callable[..., Any] = (
                follow(self.jac, often=True) if callable(self.jac) else lambda *_: self.jac
            )
            jac = as_now(lambda t, y: given(t, y, *self.args), *at)
        parts = self.parts and (as_now(self.parts[0], *at), as_now(self.parts[1], *at))
        fun = (lambda t, y: parts[0](t, y) + parts[1](t, y)) if parts else (
            as_now(self.problem.fun, *at)
        )  # fmt: skip
        events = [e._replace(function=as_now(e.function, *at)) for e in self.events]
        problem = self.problem._replace(fun=fun)
        return self._replace(problem=problem, events=events, parts=parts, jac=jac, args=())

    def at(self, times: Any) -> Asked:
        """The same for the states at ``times`` alone."""
        return self._replace(problem=self.problem._replace(t_eval=times, ends=False), events=())

    def with_lengths(self) -> Asked:
        """The same where all steps are read: their times have derivatives, too, if not refused.

        Nor where ``fun`` has kinks, through which the times of steps depend on each other without
        bound.
        """
        wanted = self.control.differentiate_steps
        if wanted is None:
            wanted = not has_kinks(self.problem)
        return self._replace(control=self.control._replace(differentiate_steps=wanted))


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
