"""Derivatives as linear maps: ``linear_operator`` for SciPy, products of Gauss and Newton."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import DifferentiationError
from ckad.loops.asked import Choice
from ckad.loops.driver import Amount, Options
from ckad.passes import pipeline
from ckad.tape.tape import Tape
from ckad.tape.types import Type
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms.call import Call
from ckad.transforms.forward import match_tangents, moving_inputs
from ckad.transforms.gradients import Gradient, GradientAlone
from ckad.transforms.lanes import in_lanes
from ckad.transforms.layout import layout_of


@trimmed
def linear_operator(
    fun: Callable[..., Any],
    x: Any,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Any:
    """The Jacobian of ``fun`` at ``x`` as a ``scipy.sparse.linalg.LinearOperator``.

    Its shape is ``(out.size, x.size)``, both in C order. ``matvec`` is `jvp`, ``rmatvec`` is `vjp`,
    ``matmat`` and ``rmatmat`` put several columns through one sweep. No matrix is formed; SciPy's
    ``lsqr``, ``lsmr``, ``cg``, ``gmres``, ``eigsh`` and ``svds`` take it as it is.

    Of ``ckad.grad(f)`` it is the Hessian of ``f``, whose products are those of `hvp`. A budget that
    is not given here is that of ``grad``.

    Args:
        fun: takes one float array, returns one.
        x: the point, which is copied.
        memory, schedule, engine, threads: those of `value_and_grad`, for each product.

    Raises:
        DifferentiationError: ``fun`` takes or returns something else than one real array.
        TraceError: ``fun`` does something that ckad cannot record, or ``x`` is being recorded.

    >>> import numpy as np, ckad
    >>> from scipy.sparse.linalg import lsqr
    >>> J = ckad.linear_operator(lambda x: np.cumsum(x**2), np.array([1.0, 2.0]))
    >>> print(J @ np.array([1.0, 1.0]), J.T @ np.array([0.0, 1.0]))
    [2. 6.] [2. 4.]
    >>> print(np.round(lsqr(J, np.array([2.0, 6.0]))[0], 6))
    [1. 1.]
    """
    from scipy.sparse.linalg import LinearOperator

    if isinstance(x, Tracer):
        raise DifferentiationError.here(
            "linear_operator is for SciPy, which takes plain numbers, and its point is being "
            "recorded. Use ckad.jvp and ckad.vjp, or make the operator outside."
        )
    x = np.array(x)
    options = Options(memory, schedule, engine, threads=threads)
    made = _second(fun.told(options), x) if isinstance(fun, GradientAlone) else None
    if made is None:
        made = _first(fun, x, options)
    forward, reverse = made
    return LinearOperator(
        (reverse.rows.size, forward.rows.size),
        matvec=forward.vector,
        rmatvec=reverse.vector,
        matmat=forward.matrix,
        rmatmat=reverse.matrix,
        dtype=np.result_type(forward.rows.numpy, reverse.rows.numpy),
    )


class _Product(NamedTuple):
    """The product of a linear map with vectors, or with the columns of a matrix."""

    call: Call
    several: Any  # what makes the tape of several of them at once
    about: Any
    rows: Type  # what the map takes

    def vector(self, v: Any) -> Any:
        found: np.ndarray = self.matrix(np.reshape(v, (-1, 1)))
        return found[:, 0]

    def matrix(self, columns: Any) -> Any:
        given = _real(columns)
        rows = np.ascontiguousarray(given.T, self.rows.numpy).reshape(-1, *self.rows.shape)
        some = rows if len(rows) else np.zeros((1, *self.rows.shape), self.rows.numpy)
        (found,) = in_lanes(self.call, self.several, self.about, [some])
        return found.reshape(len(some), -1)[: len(rows)].T


def _real(columns: Any) -> np.ndarray:
    given = np.asarray(columns)
    if given.dtype.kind == "c":
        raise DifferentiationError.here(
            "an operator of ckad.linear_operator is real; multiply real and imaginary parts."
        )
    return given


def _first(fun: Callable[..., Any], x: np.ndarray, options: Options) -> tuple[_Product, _Product]:
    call = Call(fun, (x,), {}, options)
    wrt = layout_of(call, (0,), True).wrt
    types = call.tape.output_types
    if len(wrt) != 1 or len(types) != 1 or not types[0].is_float:
        shown = ", ".join(map(str, types))
        raise DifferentiationError.here(
            f"{call.name} takes {len(wrt)} arrays and returns ({shown}); an operator is of one "
            "real array and gives one. Join several with np.concatenate."
        )
    n = len(call.tape.inputs)
    forward = _Product(call, pipeline.pushforwards, (wrt, n, 1), call.tape.input_types[wrt[0]])
    return forward, _Product(call, pipeline.pullbacks, (wrt, n), types[0])


def _second(gradient: Gradient, x: np.ndarray) -> tuple[_Product, _Product] | None:
    """The Hessian of what a gradient is of, where it is symmetric."""
    call, _, layout = gradient.prepare((x,), {})
    if len(layout.wrt) != 1 or gradient.has_aux or call.has_given_rules:
        return None
    about = layout.wrt, layout.wrt, len(call.tape.inputs)
    made = _Product(call, pipeline.hvps, about, call.tape.input_types[layout.wrt[0]])
    return made, made


@trimmed
def gauss_newton(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    loss: Callable[[Any], Any] | None = None,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Any:
    """The product of the Gauss-Newton matrix of ``loss(fun(x))`` with one direction.

    That is ``J^T H J v``: J is the Jacobian of ``fun``, H the Hessian of ``loss`` at the result. It
    is the Hessian without the second derivatives of ``fun``, positive semidefinite for a convex
    loss. The direction goes forward with the values, then one reverse sweep follows, within the
    budget.

    Args:
        fun: takes the primals, returns an array or a pytree of them.
        primals, tangents: as for `jvp`; one tangent per primal.
        loss: takes what ``fun`` returns, gives a scalar; by default half the sum of squares, whose
            H is the identity.
        memory, schedule, engine, threads: those of `value_and_grad`.

    Returns:
        A pytree like the first primal if there is one alone, else a tuple of one per primal.

    Raises:
        DifferentiationError: primals and tangents do not match, a primal holds something else than
            floats, or ``loss`` gives no scalar.
        BudgetError: ``memory`` is below the minimum.

    N. N. Schraudolph, Neural Computation 14, 2002, 1723-1738.

    >>> import numpy as np, ckad
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> print(ckad.gauss_newton(lambda x: x**2, (x,), (v,)))
    [4. 0.]
    """
    call = Call(fun, tuple(primals), {}, Options(memory, schedule, engine, threads=threads))
    layout = layout_of(call, range(len(primals)), len(primals) == 1)
    directions = match_tangents(call, tuple(tangents), list(layout.wrt))
    types = call.tape.output_types
    if not any(t.is_float for t in types):
        raise DifferentiationError.here(
            f"{call.name} returns no floats, so there is nothing to differentiate."
        )
    second = None if loss is None else _loss(call, loss)
    tape = call.made(pipeline.gauss_newton, layout.wrt, len(types), second)
    return layout.structured(call.run(tape, directions))


def _loss(call: Call, loss: Callable[[Any], Any]) -> Tape:
    """From (results, their tangents) to the product of the Hessian of a loss with these."""
    types = call.tape.output_types
    example = call.results([np.zeros(t.shape, t.numpy) for t in types])
    of, _, layout = Gradient(loss, 0, False, Options()).prepare((example,), {})
    fits = len(of.tape.inputs) == len(types) and all(t.is_float for t in types)
    if not fits or of.recording.captured:
        raise DifferentiationError.here(
            f"the loss {of.name} takes {len(of.tape.inputs)} arrays; {call.name} returns "
            f"{len(types)}, which all have to be floats. Bind what else it needs as constants."
        )
    moving = tuple(moving_inputs(of))

    def inlined() -> Tape:
        return pipeline.inlined().run(of.made(pipeline.hvp, layout.wrt, moving))

    return of.once("inlined hvp", inlined)
