"""What is to be solved, checked, and the systems that its derivatives lead to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckad.errors import BatchError
from ckad.optimize.outside import numbers_of, with_numbers
from ckad.place import at_place
from ckad.trace.arrays import stopping, traced
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source import follow
from ckad.tracebacks import trimmed
from ckad.transforms import jacobian, jvp, scan, stop_gradient
from ckad.transforms.call import Call
from ckad.transforms.primitives.closed import Closed
from ckad.transforms.primitives.implicit import Solve, root_of
from ckad.transforms.primitives.linear import krylov

Function = Callable[[Any], Any]
#: Larger systems are solved by iteration, where nothing else is asked for.
DENSE = 500
#: So many columns of a Jacobian are computed side by side.
BESIDE = 32
#: Of the linear systems of a derivative that are solved by iteration.
RTOL = 1e-10
SOLVERS = ("auto", "dense", "gmres", "bicgstab", "cg")


@dataclass(frozen=True, eq=False)
class Problem:
    """A function of a vector, recorded once; what it reads from outside are parameters."""

    f: Closed
    x0: Any  # float64[n], without derivative
    shape: tuple[int, ...]
    frozen: tuple[Any, ...]  # the parameters, without derivatives

    def __call__(self, x: Any) -> Any:
        """For the iteration, no derivative of which is wanted."""
        return self.f(x, self.frozen)


@trimmed
def recorded(run: Callable[..., dict[str, Any]], x0: Any, args: Any) -> dict[str, Any]:
    """``run(x0, args)``, compiled where nothing else is being recorded."""
    args = args if isinstance(args, tuple) else (args,)
    if is_tracing():
        return run(x0, args)
    call = _opened(run, x0, args) or Call(run, (np.asarray(x0), args), {})
    found: dict[str, Any] = call.results(call.run(call.primal))
    return found


def _opened(run: Any, x0: Any, args: tuple[Any, ...]) -> Call | None:
    """A call with the numbers that ``run`` reads as arguments; None where one has to be known."""

    def opened(x0: Any, args: tuple[Any, ...], numbers: list[Any]) -> Any:
        return with_numbers(run, numbers)(x0, args)

    try:
        if numbers := numbers_of(run):
            return Call(opened, (np.asarray(x0), args, numbers), {})
    except Exception:  # of any class: what asks for it may be Python's
        pass
    return None


def problem(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...], size: str) -> Problem:
    """``fun`` as a function of a vector; it gives a vector as long, or a number.

    Raises TypeError and ValueError for what does not fit.
    """
    x0 = traced(x0)
    if x0.dtype.kind not in "fiu":
        raise TypeError(at_place(f"x0 is of {x0.dtype}; the unknowns are real numbers."))
    x0 = stop_gradient(x0.astype(np.float64))
    shape = x0.shape or (1,)
    followed, n = follow(fun, often=True), x0.size

    def of_vector(x: Any) -> Any:
        found = traced(followed(np.reshape(x, shape), *args))
        if found.dtype.kind not in "fiu":
            raise TypeError(at_place(f"fun returns {found.dtype}; it has to return real numbers."))
        if size != "residuals" and found.size != (n if size == "vector" else 1):
            wanted = f"{n} numbers, as x0 has" if size == "vector" else "one number"
            raise ValueError(at_place(f"fun returns shape {found.shape}; it has to give {wanted}."))
        found = found.astype(np.float64)
        return np.reshape(found, () if size == "number" else (found.size,))

    x0 = np.reshape(x0, (n,))
    return closed(of_vector, x0, shape)


def closed(function: Function, x0: Any, shape: tuple[int, ...]) -> Problem:
    f = Closed(function, x0)
    return Problem(f, x0, shape, tuple(stop_gradient(p) for p in f.parameters))


def settings(given: Mapping[str, Any] | None, known: dict[str, Any], method: str) -> dict[str, Any]:
    """``known`` with the options that are given in place of the defaults."""
    unknown = [name for name in given or {} if name not in known]
    if unknown:
        raise TypeError(
            at_place(f"{method} has no option {', '.join(unknown)}; it has {', '.join(known)}.")
        )
    found = known | dict(given or {})
    for name, value in found.items():
        if isinstance(value, (int, float)) and not value > 0:
            raise ValueError(at_place(f"{name}={value} of {method} must be positive."))
    return found


def check_solver(name: str) -> None:
    if name not in SOLVERS:
        raise ValueError(at_place(f"linear_solver={name!r} is not known. Take one of {SOLVERS}."))


def chosen(name: str, n: int, symmetric: bool) -> str:
    """What "auto" means for ``n`` unknowns."""
    if name != "auto":
        return name
    return "dense" if n <= DENSE else "cg" if symmetric else "gmres"


def norm(x: Any) -> Any:
    return np.sqrt(np.sum(x * x))


# --- linear systems ------------------------------------------------------------------------------


def matrix(product: Function, n: int) -> Any:
    """float64[n, n], of which ``product(v)`` is the product with v."""
    if n <= BESIDE:
        try:
            return jacobian(product, mode="fwd")(np.zeros(n))
        except BatchError:
            pass  # a part of it has no batched form: one after the other, then
    return scan(lambda none, unit: (none, product(unit)), 0.0, np.eye(n))[1].T


def jacobian_at(f: Function, x: Any) -> Any:
    """float64[n, n] of a function of a vector."""
    n = x.size
    if n <= BESIDE:
        try:
            return jacobian(f, mode="fwd")(x)
        except BatchError:
            pass
    return matrix(lambda v: jvp(f, (x,), (v,))[1], max(n, BESIDE + 1))[:, :n]


def solver(name: str, n: int, symmetric: bool, **options: Any) -> tuple[Solve, Hashable]:
    """What solves the systems of a problem with ``n`` unknowns, and its name."""
    name = chosen(name, n, symmetric)
    bounds = {"rtol": RTOL} | options

    def solve(product: Function, transposed: Function, b: Any) -> Any:
        if name == "dense":
            return np.linalg.solve(matrix(product, n), b)
        return krylov(name, product, b, **bounds)[0]

    return solve, (name, n, *bounds.items())


def implicit(name: str, g: Closed, x: Any, failed: Any, solve: tuple[Solve, Hashable]) -> Any:
    """``x`` derived as the root of g."""
    return root_of(name, g, stop_gradient(x), traced(failed).astype(np.int64), *solve)


def raising(x: Any, failed: Any) -> Any:
    """``x``; the program ends with an error at the user's line where it is no solution."""
    return stopping(x, failed, "UNCONVERGED")
