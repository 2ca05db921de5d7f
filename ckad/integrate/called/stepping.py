"""SciPy's objects that take steps one at a time, where a recorded program makes one.

They are classes as a user would write them, and their methods are recorded from their source like a
user's: what a loop changes in them is carried like all else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckad.integrate.called.steps import Integrator, Steps, refuse, started
from ckad.integrate.solve import solve_ivp


class Ode:
    """``scipy.integrate.ode``: each call of ``integrate`` is a solution from where it stands."""

    def __init__(self, f: Callable[..., Any], jac: Any = None, scalar: type = float) -> None:
        self.f, self.jac, self.f_params, self.jac_params = f, jac, (), ()
        self.t: Any = 0.0
        self._y: Any = []
        self._scalar = scalar
        self._by: Any = None

    @property
    def y(self) -> Any:
        return self._y

    @property
    def _integrator(self) -> Any:
        return refuse("_integrator", "Give options to set_integrator.")

    def set_initial_value(self, y: Any, t: Any = 0.0) -> Ode:
        if self._by is None:
            self.set_integrator("vode")
        self._y = started(y, self._scalar, self._by)
        self.t = t
        return self

    def set_integrator(self, name: str, **options: Any) -> Ode:
        self._by = Integrator.named(name, options)
        return self

    def set_f_params(self, *args: Any) -> Ode:
        self.f_params = args
        return self

    def set_jac_params(self, *args: Any) -> Ode:
        self.jac_params = args
        return self

    def set_solout(self, solout: Any) -> None:
        refuse("set_solout", "Give solve_ivp t_eval= or events=.")

    def integrate(self, t: Any, step: Any = False, relax: Any = False) -> Any:
        if (step or relax) and self._by.stops:
            refuse("integrate(step=True)", "Write integrate(t) for times that are known.")
        by = self._by
        span = self.t, t
        sol = solve_ivp(self.f, span, self._y, by.method, args=self.f_params, **by.options)
        if by.writes:
            self._y[:] = sol.y[:, -1]
        else:
            self._y = sol.y[:, -1]
        self.t = t
        return self._y

    def successful(self) -> bool:
        return True

    def get_return_code(self) -> int:
        return 1 if self._by is not None and self._by.name.startswith("dop") else 2


class Stepper:
    """``scipy.integrate.RK45`` and its like: one step of ``solve_ivp`` after the other."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._state = steps.begin()
        self.t_old: Any = self._state["t"]
        self.t_bound, self.direction, self.n = steps.run.tf, steps.run.direction, steps.n

    @property
    def t(self) -> Any:
        return self._state["t"]

    @property
    def y(self) -> Any:
        return self._state["y"]

    @property
    def nfev(self) -> Any:
        return self._state["nfev"]

    @property
    def njev(self) -> Any:
        return self._state["njev"]

    @property
    def nlu(self) -> Any:
        return self._state["nlu"]

    @property
    def h_abs(self) -> Any:
        return self._state["h"]

    @property
    def step_size(self) -> Any:
        return abs(self._state["t"] - self.t_old)

    @property
    def status(self) -> str:
        if self._state["failed"]:
            return "failed"
        return "running" if self._steps.goes_on(self._state) else "finished"

    def step(self) -> None:
        if self.status != "running":
            raise RuntimeError("Attempt to step on a failed or finished solver.")
        self.t_old = self._state["t"]
        self._state = self._steps.one(self._state)

    def dense_output(self) -> Any:
        self._state = self._steps.evaluated(self._state)
        return self._steps.interpolant(self._state)
