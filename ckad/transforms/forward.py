"""Forward mode and plain runs for users: ``jvp``, ``jit``, ``trace``, ``adjoint``, ``tangent``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad import passes, trees
from ckad.errors import DifferentiationError
from ckad.loops.driver import Options
from ckad.passes.adjoint import adjoint as adjoint_pass
from ckad.passes.tangent import tangent as tangent_pass
from ckad.tape.tape import Tape
from ckad.trace.tracer import Tracer
from ckad.transforms.call import Call, float_inputs


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    engine: str = "auto",
    progress: bool = False,
    check_finite: bool = False,
) -> tuple[Any, Any]:
    """Compute ``fun(*primals)`` and its derivative in the direction ``tangents``.

    ``tangents`` is a sequence like ``primals``, with an array of the same shape for each float
    array. Returns ``(out, out_tangent)``; results that are not floats have a zero tangent.

    Raises:
        DifferentiationError: primals and tangents do not match.
        TraceError: ``fun`` does something that ckad cannot record.

    >>> import numpy as np, ckad
    >>> print(*ckad.jvp(np.exp, (0.0,), (2.0,)))
    1.0 2.0
    """
    options = Options(engine=engine, progress=progress, check_finite=check_finite)
    call = Call(fun, tuple(primals), {})
    wrt = float_inputs(call.tape)[: len(call.arguments.traced)]
    wrt = [k for k in wrt if k < len(call.arguments.traced)]
    directions = _directions(call, tuple(tangents), wrt)
    tape = call.derived(("tangent", tuple(wrt)), lambda t: passes.simplify(tangent_pass(t, wrt)))
    leaves = call.run(tape, options, directions)
    n = len(call.tape.outputs)
    moving = iter(leaves[n:])
    types = call.tape.output_types
    out_tangents = [next(moving) if t.is_float else np.zeros(t.shape) for t in types]
    return call.results(leaves[:n]), call.results(out_tangents)


def _directions(call: Call, tangents: tuple[Any, ...], wrt: list[int]) -> list[Any]:
    leaves, tree = trees.flatten(tangents)
    if tree != call.arguments.treedef:
        raise DifferentiationError(
            f"the tangents have the structure {tree}; the primals of {call.name} have {call.arguments.treedef}."
        )
    directions = [leaves[call.arguments.traced[k]] for k in wrt]
    for k, direction in zip(wrt, directions, strict=True):
        shape = direction.shape if isinstance(direction, Tracer) else np.shape(direction)
        if shape != call.tape.input_types[k].shape:
            raise DifferentiationError(
                f"a tangent has shape {shape}; its primal has shape {call.tape.input_types[k].shape}."
            )
    return directions


def jit(
    fun: Callable[..., Any],
    *,
    engine: str = "auto",
    progress: bool = False,
    check_finite: bool = False,
) -> Callable[..., Any]:
    """Make a function that computes ``fun`` with the compiled engine, without derivatives.

    Its arguments are never written to. Errors are those of `ckad.value_and_grad`.

    >>> import numpy as np, ckad
    >>> print(ckad.jit(lambda n, x: ckad.fori_loop(0, n, lambda i, x: x * 1.5, x))(2, 4.0))
    9.0
    """
    options = Options(engine=engine, progress=progress, check_finite=check_finite)

    def run(*args: Any, **kwargs: Any) -> Any:
        call = Call(fun, args, kwargs)
        return call.results(call.run(call.tape, options))

    run.__name__ = getattr(fun, "__name__", "run")
    run.__doc__ = fun.__doc__
    return run


def trace(fun: Callable[..., Any]) -> Callable[..., Tape]:
    """Make a function that records ``fun`` and returns its `Tape`.

    ``print(tape)`` shows the Wengert list with the user's lines; ``tape.save(path)`` and
    ``Tape.load(path)`` keep it.

    >>> import numpy as np, ckad
    >>> len(ckad.trace(np.sin)(1.0))
    2
    """

    def recorded(*args: Any, **kwargs: Any) -> Tape:
        return Call(fun, args, kwargs).tape

    return recorded


def adjoint(tape: Tape) -> Tape:
    """The adjoint of a tape: from (inputs, cotangents of float outputs) to those of float inputs.

    >>> import numpy as np, ckad
    >>> ckad.adjoint(ckad.trace(np.sin)(1.0))
    <Tape of 4 rows: (f64[], f64[]) -> (f64[])>
    """
    return adjoint_pass(tape)


def tangent(tape: Tape) -> Tape:
    """The tangent of a tape: from (inputs, tangents of float inputs) to (outputs, their tangents).

    >>> import numpy as np, ckad
    >>> ckad.tangent(ckad.trace(np.sin)(1.0))
    <Tape of 5 rows: (f64[], f64[]) -> (f64[], f64[])>
    """
    return passes.simplify(tangent_pass(tape))
