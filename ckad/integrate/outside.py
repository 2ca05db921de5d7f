"""ckad's own methods as classes of SciPy's, for use outside of recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import DenseOutput, OdeSolver

from ckad import trees
from ckad.integrate.run import Run, State
from ckad.transforms.call import Call


def solver_of(made: Callable[[], Run]) -> Any:
    """A class that SciPy's ``solve_ivp`` takes, whose attempts are compiled."""
    begin = _once(lambda: made().begin())
    first = begin()  # here, so that errors name the user's line
    attempt = _once(lambda state: made().attempt(state))
    state_at = _once(lambda state, t: made().state_at(state, t)[1])

    def start(solver: Any, fun: Any, t0: Any, y0: Any, tf: Any, vectorized: Any, **_: Any) -> None:
        OdeSolver.__init__(solver, fun, t0, y0, tf, vectorized)
        _move(solver, first)

    def step(solver: Any) -> tuple[bool, str | None]:
        state = attempt(solver.state)
        while state["rejected"] and not state["failed"]:
            state = attempt(state)
        _move(solver, state)
        return not state["failed"], solver.TOO_SMALL_STEP if state["failed"] else None

    def within(solver: Any) -> Any:
        return _Within(solver.t_old, solver.t, {"state": solver.state, "state_at": state_at})

    own = {"__init__": start, "_step_impl": step, "_dense_output_impl": within}
    return type("Solver", (OdeSolver,), own)


def _once(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun`` compiled, and recorded at its first call alone: nothing that it reads changes."""
    first: list[Call] = []

    def run(*given: Any) -> Any:
        leaves, tree = trees.flatten(given)  # a number of NumPy's is no constant as an array
        args = trees.unflatten(tree, [np.asarray(x) for x in leaves])
        if not first:
            first.append(Call(fun, args, {}))
        call = first[0]
        call.arguments = call.arguments.like(args)
        return call.results(call.run(call.primal))

    return run


def _move(solver: Any, state: State) -> None:
    solver.state, solver.t, solver.y = state, float(state["t"]), state["y"]
    for name in ("nfev", "njev", "nlu"):
        setattr(solver, name, int(state[name]))


def _begin_within(dense: Any, t_old: float, t: float, of: dict[str, Any]) -> None:
    DenseOutput.__init__(dense, t_old, t)
    dense.of = of


def _call_within(dense: Any, t: np.ndarray) -> Any:
    state, state_at = dense.of["state"], dense.of["state_at"]
    found = [state_at(state, x) for x in np.ravel(t)]
    return np.stack(found, axis=-1) if t.ndim else found[0]


#: The solution within a step.
_Within: Any = type(
    "_Within", (DenseOutput,), {"__init__": _begin_within, "_call_impl": _call_within}
)
