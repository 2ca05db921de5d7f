"""Solutions of A x = b by an iteration, where A is a function: derived as those of the system.

dx = A⁻¹ (db - dA x); the cotangent of b is w = A⁻ᵀ ct, that of A is -w xᵀ: one system with the
transpose, solved by the same iteration to the same tolerances. ``cg`` has a symmetric one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import DifferentiationError
from ckad.tape.tape import Tape
from ckad.trace import dispatch
from ckad.trace.arrays import known, solution, stopping
from ckad.trace.memory import assumed
from ckad.trace.record import inline
from ckad.trace.source import follow
from ckad.trace.source.library.written import iterations, operators
from ckad.trace.values.tracer import Tracer, lift, value
from ckad.transforms.forward import jvp
from ckad.transforms.gradients import vjp
from ckad.transforms.primitives.closed import Closed, floats, replaced
from ckad.transforms.primitives.implicit import defined

Product = Callable[[Any], Any]


def krylov(method: str, product: Product, b: Any, M: Product | None = None, **options: Any) -> Any:
    """(x, info) of one of SciPy's iterations, recorded."""
    shape = (b.size, b.size)
    A = operators.LinearOperator(shape, product)
    of_residuals = None if M is None else operators.LinearOperator(shape, M)
    return follow(getattr(iterations, method))(A, b, M=of_residuals, **options)


def _solution(
    method: str, product: Product, b: Any, x: Any, info: Any, M: Product | None, bounds: Any
) -> Any:
    """``x``, derived as the solution of ``product(x) = b``, or by the steps to it."""
    if not isinstance(x, Tracer) or assumed.by_steps():
        return x
    options = _options(method, bounds)
    a, m = Closed(product, x), None if M is None else Closed(M, x)
    n, preconditioner = len(a.parameters), () if m is None else m.parameters
    turned = None if m is None else _turned(method, m)

    def solved(rows: Any, b: Any, transposed: bool) -> Any:
        p, q = rows[2 : 2 + n], rows[2 + n :]
        symmetric = not transposed or method == "cg"
        own = (lambda v: a(v, p)) if symmetric else _transpose(a, p)
        of_residuals: Product | None = None
        if m is not None and symmetric:
            of_residuals = lambda v: m(v, q)  # noqa: E731
        elif turned is not None:
            of_residuals = lambda v: _applied(turned, v, q)  # noqa: E731
        found, info = krylov(method, own, b, of_residuals, **options)
        wrong = (info != 0) | ((rows[1] != 0) & np.any(b != 0.0))
        return stopping(found, wrong, "UNSOLVED")

    def push(x: Any, rows: Sequence[Any], tangents: Sequence[Any]) -> Any:
        p, at = rows[2 : 2 + n], floats(rows[2 : 2 + n])
        right = tangents[0]
        if at:
            moving = tuple(p[k] for k in at), tuple(tangents[2 + k] for k in at)
            right = right - jvp(lambda *q: a(x, replaced(p, q)), *moving)[1]
        return solved(rows, right, False)

    def pull(x: Any, rows: Sequence[Any], ct: Any) -> Sequence[Any]:
        p, at = rows[2 : 2 + n], floats(rows[2 : 2 + n])
        w = solved(rows, ct, True)
        pulled = vjp(lambda *q: a(x, replaced(p, q)), *(p[k] for k in at))[1](-w) if at else ()
        found = dict(zip(at, pulled, strict=True))
        others = [None] * len(preconditioner)
        return [w, None, *(found.get(k) for k in range(n)), *others]

    tapes = a.tape.identity, None if m is None else m.tape.identity
    operands = b, lift(info).astype(np.int64), *a.parameters, *preconditioner
    return defined(method, (tapes, bounds), x, operands, push, pull)


def _options(method: str, bounds: Sequence[Any]) -> dict[str, Any]:
    names = ("rtol", "atol", "maxiter", "restart")
    found = {}
    for name, x in zip(names, bounds, strict=True):
        if x is not None:
            numbers = known(x)
            if numbers is None:
                raise DifferentiationError.here(
                    f"{name} of {method} is computed by the program. Pass a known number."
                )
            found[name] = numbers.item()
    return found


def _transpose(a: Closed, parameters: Sequence[Any]) -> Product:
    tape = a.transposed()
    if tape is None:
        raise DifferentiationError.here(
            "the function of a LinearOperator is not linear in the vector it gets, so that it "
            "has no transpose."
        )
    return lambda v: _applied(tape, v, parameters)


def _turned(method: str, m: Closed) -> Tape | None:
    """The transpose of a preconditioner; any will do, also none if it is not linear."""
    return None if method == "cg" else m.transposed()


def _applied(tape: Tape, v: Any, parameters: Sequence[Any]) -> Any:
    return inline(tape, [value(lift(x)) for x in (v, *parameters)])[0]


dispatch.put(solution, _solution)
