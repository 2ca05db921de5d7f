"""BDF of variable order, 1 to 5, in quasi-constant steps: SciPy's, turn by turn.

L. F. Shampine, M. W. Reichelt, "The MATLAB ODE Suite", SIAM J. Sci. Comput. 18 (1997) 1-22:
backward differences D[j] of the solution, which a step maps linearly but for its correction d.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.integrate import events as happening
from ckad.integrate.events import Event
from ckad.integrate.problem import Control, Problem
from ckad.integrate.run import Run, State
from ckad.integrate.stages import first_step, rms, smallest_step
from ckad.integrate.stiff.linear import Systems
from ckad.integrate.stiff.newton import implicit, newton, tolerance
from ckad.trace.arrays import traced
from ckad.transforms import cond, stop_gradient, while_loop

MAX_ORDER = 5
ROWS = MAX_ORDER + 3  # of D
MOST_ITERATIONS = 4
MIN_FACTOR, MAX_FACTOR = 0.2, 10.0
_KAPPA = np.array([0.0, -0.1850, -1.0 / 9.0, -0.0823, -0.0415, 0.0])
_GAMMA = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, MAX_ORDER + 1))])
ALPHA = (1.0 - _KAPPA) * _GAMMA
ERRORS = _KAPPA * _GAMMA + 1.0 / np.arange(1, MAX_ORDER + 2)


def _of_orders() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Per order: weights of D in the prediction and in psi; what a step makes of D, and of d."""
    predict, psi = np.zeros((2, MAX_ORDER + 1, ROWS))
    after = np.tile(np.eye(ROWS), (MAX_ORDER + 1, 1, 1))
    by_change = np.zeros((MAX_ORDER + 1, ROWS))
    for k in range(1, MAX_ORDER + 1):
        predict[k, : k + 1] = 1.0
        psi[k, 1 : k + 1] = _GAMMA[1 : k + 1] / ALPHA[k]
        after[k, : k + 1] = np.triu(np.ones((ROWS, ROWS)))[: k + 1]
        after[k, : k + 1, k + 1 :] = 0.0
        after[k, k + 1 : k + 3] = 0.0
        after[k, k + 2, k + 1] = -1.0
        by_change[k, : k + 3] = 1.0
    return predict, psi, after, by_change


PREDICT, PSI, AFTER, BY_CHANGE = _of_orders()


def rescaled(differences: Any, order: Any, factor: Any) -> Any:
    """D for steps that are ``factor`` times as long."""
    both = [_powers(x) for x in (factor, 1.0)]
    matrix = both[0] @ both[1]
    within = np.arange(MAX_ORDER + 1) <= order
    kept = within & within[:, np.newaxis]
    matrix = np.where(kept, matrix, np.eye(MAX_ORDER + 1))
    changed = matrix.T @ differences[: MAX_ORDER + 1]
    return np.concatenate([changed, differences[MAX_ORDER + 1 :]])


def _powers(factor: Any) -> Any:
    j = np.arange(MAX_ORDER + 1.0)
    rows: list[Any] = [traced(np.ones(MAX_ORDER + 1))]
    for i in range(1, MAX_ORDER + 1):
        rows.append(rows[-1] * (i - 1.0 - factor * j) / i)
    return np.stack(rows)


class Bdf(Run):
    """SciPy's ``BDF`` as a loop whose turn is one attempt."""

    def __init__(
        self, problem: Problem, control: Control, events: Sequence[Event],
        systems: tuple[Systems, Systems],
    ) -> None:  # fmt: skip
        super().__init__(problem, control, events)
        self.systems, self.exact = systems  # of the iterations, of derivatives
        self._tolerance = tolerance(control.rtol)

    def begin(self) -> State:
        y0 = self.problem.y0
        f0 = self.problem.fun(self.t0, y0)
        evaluations = 1
        if self.control.first_step is None:
            span = self.cut(self.t0), self.cut(np.abs(self.tf - self.t0)), self.direction
            given = self.cut(y0), self.cut(f0)
            h = first_step(1, self.problem.fun, span, *given, self.control)
            evaluations = 2
        else:
            h = self.control.first_step
        h = self.cut(traced(h))
        differences = np.stack([y0, f0 * (h * self.direction), *[np.zeros_like(y0)] * (ROWS - 2)])
        jacobian = self.systems.jacobian(*stop_gradient((self.t0, y0)))
        state = {
            "t": self.t0,
            "y": y0,
            "time": self.t0,  # of the differences: a terminal event leaves them as they are
            "differences": differences,
            "h": h,
            "order": np.int64(1),
            "equal": np.int64(0),  # steps of this length
            "jacobian": jacobian,
            "factors": self.systems.factors(jacobian, 0.0),
            "valid": np.bool_(False),  # the factors
            "current": np.bool_(False),  # the Jacobian
            "rejected": np.bool_(False),
            "failed": np.bool_(False),
            "nfev": np.int64(evaluations),
            "njev": np.int64(1),
            "nlu": np.int64(0),
        }
        return self.with_events(state)

    def attempt(self, state: State) -> State:
        """A turn of the loop in SciPy's ``BDF._step_impl``."""
        t, order, rejected = state["t"], state["order"], state["rejected"]
        t_new, length, beyond, failed = self._reached(t, state["h"], rejected)
        ratio = length / state["h"]
        differences = rescaled(state["differences"], order, ratio)
        equal = np.where(ratio != 1.0, 0, state["equal"])
        h = t_new - t
        c = h / traced(ALPHA)[order]
        predicted, psi = (traced(w)[order] @ differences for w in (PREDICT, PSI))
        fixed = stop_gradient((t_new, predicted, psi, c))
        solved = self._solved(state, fixed, state["valid"] & ~beyond, rejected)
        safety = 0.9 * (2 * MOST_ITERATIONS + 1) / (2 * MOST_ITERATIONS + solved["iterations"])
        norm = self._norm(ERRORS, order, solved["d"], fixed[1] + solved["d"])
        kept = solved["converged"] & (norm <= 1.0) & np.logical_not(failed)
        d = self._differentiable((t, state["y"]), (t_new, predicted, psi, c), solved["d"], kept)
        y_new = predicted + d
        made = traced(AFTER)[order] @ differences + traced(BY_CHANGE)[order][:, np.newaxis] * d
        ready = equal + 1 >= order + 1
        next_order, grown = self._next(order, made, d, y_new, safety)
        shrunk = _shrunk(solved["converged"] & np.isfinite(norm), norm, order, safety)
        change = np.where(kept, np.where(ready, self.cut(grown), 1.0), stop_gradient(shrunk))
        next_order = np.where(kept & ready, next_order, order)
        differences = rescaled(np.where(kept, made, differences), next_order, change)
        new = {
            "t": np.where(kept, t_new, t),
            "y": np.where(kept, y_new, state["y"]),
            "time": np.where(kept, t_new, t),
            "differences": np.where(failed, state["differences"], differences),
            "h": np.where(failed, state["h"], length * change),
            "order": next_order,
            "equal": np.where(kept & ~ready, equal + 1, 0),
            "jacobian": solved["jacobian"],
            "factors": solved["factors"],
            "valid": np.where(kept, ~ready, solved["converged"]),
            "current": np.logical_not(kept) & solved["current"],
            "rejected": np.logical_not(kept),
            "failed": failed,
        }
        for count in ("nfev", "njev", "nlu"):
            new[count] = np.where(failed, state[count], solved[count])
        if not self.events:
            return new
        whole = happening.Step(kept, t, t_new, y_new, lambda t: self._at(new, t))
        found, t_end, y_end = happening.after_step(self.events, state["events"], whole)
        ended = {"t": np.where(kept, t_end, t), "y": np.where(kept, y_end, state["y"])}
        return {**new, **ended, "events": found}

    def _reached(self, t: Any, h: Any, rejected: Any) -> tuple[Any, Any, Any, Any]:
        """Where a step of ``h`` ends, its length, whether the end cuts it, and is it too short."""
        smallest = smallest_step(stop_gradient(t))
        bounded = np.maximum(np.minimum(h, self.control.max_step), smallest)
        length = np.where(rejected, h, bounded)
        failed = rejected & np.logical_not(length >= smallest)  # NaN, too
        t_new = t + length * self.direction
        beyond = self.direction * (t_new - self.tf) > 0.0
        t_new = np.where(beyond, self.tf, t_new)
        return t_new, np.where(beyond, np.abs(t_new - t), length), beyond, failed

    def _solved(self, state: State, fixed: Any, valid: Any, rejected: Any) -> State:
        """The correction d, with a Jacobian of its own where the one from before is too old."""
        systems, fun = self.systems, self.problem.fun
        t_new, predicted, psi, c = fixed
        scale = self.control.atol + self.control.rtol * np.abs(predicted)

        def turn(now: State) -> State:
            jacobian, factors = now["jacobian"], now["factors"]
            factors = cond(
                now["valid"], lambda j, f: f, lambda j, f: systems.factors(j, c), jacobian, factors
            )

            def change(d: Any) -> Any:
                return systems.solve(factors, c * fun(t_new, predicted + d) - psi - d)

            start = np.zeros_like(predicted)
            found = newton(start, change, scale, MOST_ITERATIONS, self._tolerance)
            again = np.logical_not(found.converged | now["current"])
            jacobian = cond(
                again, lambda j: systems.jacobian(t_new, predicted), lambda j: j, jacobian
            )
            return {
                "d": found.x,
                "iterations": found.iterations,
                "converged": found.converged,
                "jacobian": jacobian,
                "factors": factors,
                "valid": np.logical_not(again),
                "current": now["current"] | again,
                "again": again,
                "nfev": now["nfev"] + found.iterations,
                "njev": now["njev"] + np.where(again, 1, 0),
                "nlu": now["nlu"] + np.where(now["valid"], 0, 1),
            }

        begin = {name: state[name] for name in ("jacobian", "factors", "nfev", "njev", "nlu")}
        begin |= {
            "d": np.zeros_like(predicted),
            "iterations": np.int64(0),
            "converged": np.bool_(False),
            "valid": valid,
            "current": state["current"] & rejected,
            "again": np.bool_(True),
        }
        found: State = stop_gradient(while_loop(lambda s: s["again"], turn, stop_gradient(begin)))
        return found

    def _differentiable(self, begin: Any, step: Any, found: Any, kept: Any) -> Any:
        """The same correction with its derivative; that of no correction if it was not accepted."""
        systems, fun = self.exact, self.problem.fun
        t_new, predicted, psi, c = (
            np.where(kept, x, other) for x, other in zip(step, (*begin, 0.0, 0.0), strict=True)
        )
        found = np.where(kept, found, 0.0)
        place = stop_gradient((t_new, predicted + found))
        factors = systems.factors(systems.jacobian(*place), stop_gradient(c))

        def residual(d: Any) -> Any:
            return d - c * fun(t_new, predicted + d) + psi

        return implicit(found, residual, lambda r: systems.solve(factors, r))

    def _norm(self, constants: np.ndarray, order: Any, d: Any, y: Any) -> Any:
        scale = self.control.atol + self.control.rtol * np.abs(y)
        return rms(traced(constants)[order] * d / scale)

    def _next(self, order: Any, made: Any, d: Any, y: Any, safety: Any) -> tuple[Any, Any]:
        """The order of the next steps, and by what their length is multiplied."""
        made, d, y = self.cut((made, d, y))
        below = self._norm(ERRORS, np.maximum(order - 1, 0), made[order], y)
        above = self._norm(ERRORS, np.minimum(order + 1, MAX_ORDER), made[order + 2], y)
        factors = [
            np.where(order > 1, _factor(below, order), 0.0),
            _factor(self._norm(ERRORS, order, d, y), order + 1),
            np.where(order < MAX_ORDER, _factor(above, order + 2), 0.0),
        ]
        least = np.where(factors[1] > factors[0], 1, 0)
        best = np.maximum(factors[0], factors[1])
        place = np.where(factors[2] > best, 2, least)
        grown = np.minimum(MAX_FACTOR, safety * np.maximum(best, factors[2]))
        return order + place - 1, grown

    def _at(self, state: State, t: Any) -> Any:
        """The polynomial through the last ``order + 1`` states."""
        j, step = np.arange(float(MAX_ORDER)), state["h"] * self.direction
        step = np.where(step == 0.0, 1.0, step)
        x = (t - state["time"] + step * j) / (step * (j + 1.0))
        total: Any = state["differences"][0]
        product: Any = 1.0
        for k in range(MAX_ORDER):
            product = product * np.where(k < state["order"], x[k], 0.0)
            total = total + product * state["differences"][k + 1]
        return total

    def state_at(self, state: State, t: Any) -> tuple[State, Any]:
        return state, self._at(state, t)


def _factor(norm: Any, order: Any) -> Any:
    return np.where(norm > 0.0, norm, 1e-100) ** (-1.0 / order)


def _shrunk(finite: Any, norm: Any, order: Any, safety: Any) -> Any:
    """The part of its length that a rejected step is tried with next."""
    factor = safety * np.where(finite, norm, 1.0) ** (-1.0 / (order + 1))
    return np.where(finite, np.maximum(MIN_FACTOR, factor), 0.5)
