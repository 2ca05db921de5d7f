"""What SciPy's objects that take steps are made of, checked; what their source does not say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from ckad.errors import SolverWarning, UnrecordableError
from ckad.integrate.methods import METHODS, Asked
from ckad.integrate.onestep import OneStep
from ckad.integrate.problem import Control, Problem, has_kinks
from ckad.integrate.run import State
from ckad.place import at_place, user_place
from ckad.trace.arrays import known, traced
from ckad.transforms import while_loop

#: Relative tolerance above which the choice of steps is differentiated.
_LOOSE = 1e-5
#: The methods in place of those of ``scipy.integrate.ode``.
_METHODS = {
    "dopri5": "RK45", "dop853": "DOP853", "lsoda": "BDF", "vode": "DOP853", "zvode": "DOP853",
}  # fmt: skip
#: Options that choose how these work; what bounds their steps is heeded.
_OF_STEPS = frozenset(
    """method with_jacobian lband uband order nsteps min_step first_step safety ifactor dfactor beta
    verbosity ixpr max_hnil max_order_ns max_order_s""".split()
)


class Integrator(NamedTuple):
    """A method for ``ode``, in place of the one that is named."""

    name: str
    method: str
    options: dict[str, Any]  # of solve_ivp
    stops: bool  # whether SciPy's heeds step= and relax=
    writes: bool  # whether SciPy's writes a new state into the array of the old one

    @staticmethod
    def named(name: str, options: dict[str, Any]) -> Integrator:
        asked = str(name).lower() or "vode"
        if asked not in _METHODS:
            names = ", ".join(_METHODS)
            raise ValueError(at_place(f"ode has no integrator {name!r}; it has {names}."))
        if wrong := options.keys() - _OF_STEPS - {"rtol", "atol", "max_step"}:
            raise TypeError(at_place(f"{asked} has no option {', '.join(sorted(wrong))}."))
        stiff = asked in ("vode", "zvode") and str(options.get("method")).lower() == "bdf"
        method = "BDF" if stiff else _METHODS[asked]
        _warn_of_method(asked, method)
        longest = options.get("max_step") or np.inf
        bounds = {"rtol": options.get("rtol", 1e-6), "atol": options.get("atol", 1e-12)}
        about = bounds | {"max_step": longest}, not asked.startswith("dop"), _writes(asked)
        return Integrator(asked, method, *about)


@lru_cache(maxsize=8)
def _writes(name: str) -> bool:
    solver = scipy.integrate.ode(lambda t, y: 0.0 * y).set_integrator(name)
    solver.set_initial_value([1.0], 0.0)
    begin = solver.y
    return bool(np.shares_memory(begin, solver.integrate(1.0)))


def _warn_of_method(name: str, method: str) -> None:
    place = user_place()
    told = (
        f"scipy.integrate.ode by {name!r} is recorded with the steps of {method}, within the same "
        "rtol and atol: states agree with SciPy's to these, not to the last digit. Write "
        f"solve_ivp(f, (t, t_new), y, {method!r}).y[:, -1] to say so."
    )
    warnings.warn_explicit(told, SolverWarning, place.file, place.line)


def started(y: Any, scalar: type, by: Integrator) -> Any:
    """A first state as an array of its own."""
    begin = np.atleast_1d(traced(y))
    return begin.astype(complex if by.name == "zvode" or scalar is complex else float)


def refuse(what: str, instead: str) -> Any:
    raise UnrecordableError.here(
        f"{what} of scipy.integrate.ode is about steps in SciPy's own code, which are not "
        f"recorded. {instead}"
    )


class Steps:
    """The loop of a method, of which one step at a time is made."""

    def __init__(self, name: str, asked: Problem, bounds: Control, jac: Any, sparsity: Any) -> None:
        asked = asked._replace(t_eval=traced(np.zeros(1)))  # so that it keeps its last step
        self.n = asked.y0.size
        self.run = METHODS[name](Asked(asked, bounds, (), None, jac, sparsity, ()))

    def begin(self) -> State:
        return self.run.begin()

    def goes_on(self, state: State) -> Any:
        return self.run.goes_on(state, self.run.tf)

    def one(self, state: State) -> State:
        """After one more step, or where it has failed."""

        def attempt(carry: Any) -> Any:
            return self.run.attempt(carry[0]), carry[0]["t"]

        def tried(carry: Any) -> Any:
            return self.goes_on(carry[0]) & (carry[0]["t"] == carry[1])

        found: State = while_loop(tried, attempt, (state, state["t"]))[0]
        return found

    def evaluated(self, state: State) -> State:
        """With what an interpolant takes of evaluations counted, as often as one is made."""
        more = self.run.stepper.n_extra if isinstance(self.run, OneStep) else 0
        return {**state, "nfev": state["nfev"] + more}

    def interpolant(self, state: State) -> Callable[[Any], Any]:
        """The solution within the last step, as a function of time."""

        def at(t: Any) -> Any:
            times = traced(t)
            if times.ndim:
                return np.stack([at(times[k]) for k in range(len(times))], axis=-1)
            return self.run.state_at(state, times)[1]

        return at


def chooses(asked: Problem, rtol: Any) -> bool | None:
    """Whether the choice of the lengths of SciPy's steps is differentiated, as the program's own
    derivative is; None where it is not, unless all steps are read."""
    return (_is_loose(rtol) and not has_kinks(asked)) or None


def _is_loose(rtol: Any) -> bool:
    """Whether the lengths of steps move a result by what is seen.

    Below, only noise is left of them. Where ``fun`` has a kink the times of steps depend on each
    other without bound at all tolerances, and wider differences of the program show none of it.
    """
    found = known(rtol)
    return found is not None and found.dtype.kind in "fiu" and bool(np.all(found > _LOOSE))
