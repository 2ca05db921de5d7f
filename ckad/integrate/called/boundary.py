"""SciPy's boundary value problems, where a program that is recorded asks for them.

J. Kierzenka, L. F. Shampine, ACM Trans. Math. Softw. 27 (2001) 299-316: SciPy's cubic collocation,
on a mesh of as many nodes as are given, or more. The derivative is that of its equations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
from scipy.sparse.linalg import spsolve

from ckad.errors import DifferentiationError, SolverWarning, UnrecordableError
from ckad.place import at_place, user_place
from ckad.trace.arrays import traced
from ckad.trace.dispatch import CALLING, always, put
from ckad.trace.results import Result
from ckad.trace.source import follow
from ckad.trace.source.library.noted import by_library
from ckad.transforms import jacobian, jvp, scan, stop_gradient, while_loop
from ckad.transforms.primitives.closed import Closed
from ckad.transforms.primitives.implicit import FAILED, root_of

Function = Callable[..., Any]
#: Nodes of a mesh (the most that SciPy takes, if it is not told), and unknowns on it, that are
#: taken where fewer nodes are given.
NODES, UNKNOWNS = 1001, 4000
#: Meshes that are tried.
TURNS = 10
#: Newton's steps, how often one is halved, and how exactly the equations have to hold.
STEPS, HALVINGS, EXACT = 50, 30, 1e-10
MESSAGES = {
    0: "The algorithm converged to the desired accuracy.",
    1: "The maximum number of mesh nodes is exceeded.",
    2: "A singular Jacobian encountered when solving the collocation system.",
}
#: Of Lobatto's rule with five points on [-1, 1], the inner ones beside the middle.
_LOBATTO = float(np.sqrt(3.0 / 7.0))


class Mesh(NamedTuple):
    """A problem of ``n`` equations with ``k`` parameters on nodes ``x``."""

    fun: Function
    bc: Function
    x: Any  # float64[m]
    n: int
    k: int

    def apart(self, z: Any) -> tuple[Any, tuple[Any, ...]]:
        """States float64[n, m], and the parameters where there are any."""
        size = self.n * self.x.size
        states = np.reshape(z[:size], (self.x.size, self.n)).T
        return states, (z[size:],) if self.k else ()

    def slopes(self, x: Any, y: Any, p: tuple[Any, ...]) -> Any:
        found = traced(self.fun(x, y, *p)) * 1.0
        if found.shape != y.shape:
            raise ValueError(
                at_place(f"fun returns shape {found.shape}, of states of shape {y.shape}.")
            )
        return found

    def middle(self, y: Any, f: Any) -> Any:
        h = np.diff(self.x)
        return 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])

    def equations(self, z: Any) -> Any:
        """What is 0: Simpson's rule on every interval, and the conditions at both ends."""
        y, p = self.apart(z)
        h = np.diff(self.x)
        f = self.slopes(self.x, y, p)
        between = self.slopes(self.x[:-1] + 0.5 * h, self.middle(y, f), p)
        inner = y[:, 1:] - y[:, :-1] - h / 6.0 * (f[:, :-1] + f[:, 1:] + 4.0 * between)
        ends = traced(self.bc(y[:, 0], y[:, -1], *p)) * 1.0
        if ends.shape != (self.n + self.k,):
            wanted = self.n + self.k
            raise ValueError(at_place(f"bc returns shape {ends.shape}; {wanted} are needed."))
        return np.concatenate([np.reshape(inner.T, (inner.size,)), ends])

    def left(self, y: Any, f: Any, p: tuple[Any, ...]) -> Any:
        """SciPy's estimate of what the cubics miss the equation by, for each interval."""
        h = np.diff(self.x)
        middles = self.x[:-1] + 0.5 * h
        total: Any = 0.0
        for at, weight in ((0.0, 32 / 45), (-_LOBATTO, 49 / 90), (_LOBATTO, 49 / 90)):
            t = 0.5 * (1.0 + at) + 0.0 * h
            value, rate = cubic(y, f, h, t)
            right = self.slopes(middles + 0.5 * at * h, value, p)
            total = total + weight * np.sum(((rate - right) / (1.0 + np.abs(right))) ** 2, axis=0)
        return np.sqrt(0.5 * total)


def cubic(y: Any, f: Any, h: Any, s: Any, at: Any = None) -> tuple[Any, Any]:
    """Hermite's cubics and their slopes at ``s`` in [0, 1] of each interval, or of those ``at``."""
    if at is None:
        y0, y1, f0, f1 = y[:, :-1], y[:, 1:], f[:, :-1], f[:, 1:]
    else:
        y0, y1, f0, f1, h = y[:, at], y[:, at + 1], f[:, at], f[:, at + 1], h[at]
    c = (y1 - y0) / h
    d, e = 3.0 * c - 2.0 * f0 - f1, f0 + f1 - 2.0 * c
    return y0 + h * s * (f0 + s * (d + s * e)), f0 + s * (2.0 * d + 3.0 * s * e)


def _solve_bvp(
    fun: Function, bc: Function, x: Any, y: Any, p: Any = None, S: Any = None,
    fun_jac: Any = None, bc_jac: Any = None, tol: float = 1e-3, max_nodes: int = 1000,
    verbose: int = 0, bc_tol: Any = None,
) -> Any:  # fmt: skip
    rest = (x, y, p, S, fun_jac, bc_jac, tol, max_nodes, verbose, bc_tol)
    known = by_library(scipy.integrate.solve_bvp, fun, bc, *rest)
    if known is not None:
        return known
    if S is not None:
        raise UnrecordableError.here(
            "solve_bvp with S= is not recorded. Begin the mesh a little off the origin."
        )
    _warn()
    x, y = traced(x) * 1.0, traced(y) * 1.0
    if y.dtype.kind == "c" or y.ndim != 2 or x.shape != y.shape[1:] or x.size < 2:
        raise ValueError(at_place(f"x has shape {x.shape}, and y {y.shape} of {y.dtype}."))
    given = () if p is None else (traced(p) * 1.0,)
    x, y = _finer(x, y)
    about = (follow(fun, often=True), follow(bc, often=True))
    mesh = Mesh(*about, x, y.shape[0], given[0].size if given else 0)
    found = _adapted(mesh, np.concatenate([np.reshape(y.T, (y.size,)), *given]), tol)
    status = np.where(found["failed"], 2, np.where(np.max(found["rms"]) <= tol, 0, 1))
    mesh = mesh._replace(x=x[0] + (x[-1] - x[0]) * found["t"])
    z = _derived(mesh, found["z"], status != 0)
    told = {"rms": found["rms"], "status": status, "niter": found["count"]}
    return _result(mesh, *mesh.apart(z), told)


def _warn() -> None:
    place = user_place()
    told = (
        "scipy.integrate.solve_bvp is recorded with its collocation on a mesh whose number of "
        "nodes is fixed: within the same tol, or success is False. Give a finer x to choose."
    )
    warnings.warn_explicit(told, SolverWarning, place.file, place.line)


def _finer(x: Any, y: Any) -> tuple[Any, Any]:
    """Each interval in as many parts as make a mesh that is fine enough for most problems."""
    most = max(min(NODES, UNKNOWNS // y.shape[0]), x.size)
    parts = (most - 1) // (x.size - 1)
    t = np.arange(parts) / parts

    def within(a: Any) -> Any:
        inner = a[..., :-1, np.newaxis] + np.diff(a)[..., np.newaxis] * t
        inner = np.reshape(inner, (*a.shape[:-1], parts * (x.size - 1)))
        return np.concatenate([inner, a[..., -1:]], axis=-1)

    return within(x), within(y)


def _adapted(mesh: Mesh, z: Any, tol: float) -> dict[str, Any]:
    """Solved on meshes whose nodes gather where the equation is missed, until it is by ``tol``."""
    start, end = stop_gradient((mesh.x[0], mesh.x[-1]))

    def turn(s: dict[str, Any]) -> dict[str, Any]:
        at = mesh._replace(x=start + (end - start) * s["t"])
        z, failed, count = _solved(at, s["z"])
        y, p = at.apart(z)
        f = at.slopes(at.x, y, p)
        rms, k = at.left(y, f, p), s["turn"] + 1
        on = (np.max(rms) > tol) & np.logical_not(failed) & (k < TURNS)
        t = np.where(on, _gathered(s["t"], rms), s["t"])
        states, _ = _between(at.x, y, f, start + (end - start) * t)
        moved = np.concatenate([np.reshape(states.T, (y.size,)), *p])
        return {
            "t": t,
            "z": np.where(on, moved, z),
            "rms": rms,
            "failed": failed,
            "count": s["count"] + count,
            "on": on,
            "turn": k,
        }

    t = stop_gradient((mesh.x - mesh.x[0]) / (mesh.x[-1] - mesh.x[0]))
    begin = {"t": t, "z": z, "rms": 0.0 * t[1:], "failed": np.bool_(False), "count": np.int64(0)}
    begin |= {"on": np.bool_(True), "turn": np.int64(0)}
    found: dict[str, Any] = while_loop(lambda s: s["on"], turn, stop_gradient(begin))
    return {name: stop_gradient(x) for name, x in found.items()}


def _gathered(t: Any, rms: Any) -> Any:
    """Nodes between which the fourth roots of what is missed have equal sums, in part."""
    roots = np.sqrt(np.sqrt(rms))
    weights = roots / np.sum(roots) + 0.2 * np.diff(t)
    sums = np.concatenate([np.zeros(1), np.cumsum(weights)])
    return np.interp(np.linspace(0.0, 1.0, t.size), sums / sums[-1], t)


def _between(x: Any, y: Any, f: Any, t: Any) -> tuple[Any, Any]:
    """States and slopes at times ``t``."""
    h = np.diff(x)
    at = np.clip(np.searchsorted(stop_gradient(x), t, side="right") - 1, 0, h.size - 1)
    return cubic(y, f, h, (t - x[at]) / h[at], at)


def _solved(mesh: Mesh, z: Any) -> tuple[Any, Any, Any]:
    """Newton's method with halved steps: the solution, whether it is none, and the steps."""
    g = Closed(mesh.equations, z)
    frozen = tuple(stop_gradient(p) for p in g.parameters)

    def size(r: Any) -> Any:
        return np.sqrt(np.sum(r * r))

    def step(s: dict[str, Any]) -> dict[str, Any]:
        z, r = s["z"], s["r"]
        change = _by_pattern(lambda v: jvp(at, (z,), (v,))[1], -r)

        def halve(s: dict[str, Any]) -> dict[str, Any]:
            t = 0.5 * s["t"]
            new = at(z + t * change)
            ok = size(new) <= (1.0 - 1e-4 * t) * size(r)  # false of NaN, too
            return {"t": t, "r": new, "ok": ok, "k": s["k"] + 1}

        begin = {"t": np.float64(2.0), "r": r, "ok": np.bool_(False), "k": np.int64(0)}
        tried = while_loop(lambda s: np.logical_not(s["ok"]) & (s["k"] < HALVINGS), halve, begin)
        made = np.where(tried["ok"], tried["t"], 0.0) * change
        short = np.max(np.abs(made)) <= EXACT * (1.0 + np.max(np.abs(z)))
        return {
            "z": z + made,
            "r": np.where(tried["ok"], tried["r"], r),
            "on": tried["ok"] & ~short,
            "k": s["k"] + 1,
        }

    def at(z: Any) -> Any:
        return g(z, frozen)

    begin = {"z": z, "r": at(z), "on": np.bool_(True), "k": np.int64(0)}
    found = while_loop(lambda s: s["on"] & (s["k"] < STEPS), step, begin)
    exact = np.max(np.abs(found["r"])) <= EXACT * (1.0 + np.max(np.abs(found["z"])))
    return found["z"], np.logical_not(exact), found["k"]


def _by_pattern(product: Function, b: Any) -> Any:
    """The solution of a system of few elements, of which ``product(v)`` is the product with v."""
    unknowns = np.zeros(b.size)
    try:
        matrix = jacobian(product, sparse=True)(unknowns)
    except DifferentiationError:  # the program mixes its nodes
        return np.linalg.solve(scan(lambda _, v: (_, product(v)), 0.0, np.eye(b.size))[1].T, b)
    return follow(spsolve)(matrix, b)


def _derived(mesh: Mesh, z: Any, failed: Any) -> Any:
    def solve(product: Function, transposed: Function, b: Any) -> Any:
        return _by_pattern(product, b)

    z, flag = stop_gradient(z), np.where(failed, FAILED, 0)
    return root_of("solve_bvp", Closed(mesh.equations, z), z, flag, solve, ("collocation", z.size))


def _result(
    mesh: Mesh, y: Any, parameters: tuple[Any, ...], told: dict[str, Any]
) -> BoundaryResult:
    x, f = mesh.x, mesh.slopes(mesh.x, y, parameters)

    def sol(t: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        if nu not in (0, 1):
            raise ValueError(at_place(f"sol(x, nu={nu}): nu is 0 or 1."))
        t = traced(t) * 1.0
        flat = np.reshape(t, (t.size,))
        return np.reshape(_between(x, y, f, flat)[nu], (mesh.n, *t.shape))

    return BoundaryResult(
        sol=sol, x=x, y=y, yp=f, p=parameters[0] if parameters else None,
        rms_residuals=told["rms"], niter=told["niter"], status=told["status"],
        success=told["status"] == 0,
    )  # fmt: skip


class BoundaryResult(Result):
    """The fields of SciPy's result; they hold traced values."""

    def __init__(self, **fields: Any) -> None:
        said = "; ".join(f"{status}: {text}" for status, text in MESSAGES.items())
        vars(self).update(fields, message=f"status says which: {said}")


put(scipy.integrate.solve_bvp, _solve_bvp, CALLING)
always(scipy.integrate.solve_bvp)
