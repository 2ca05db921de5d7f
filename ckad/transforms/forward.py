"""Forward mode, plain runs and tapes for users: ``jvp``, ``linearize``, ``jit``, ``trace``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import DifferentiationError, TapeError
from ckad.loops.compiled import Compiled
from ckad.loops.driver import Options
from ckad.loops.progress import Shown
from ckad.passes import pipeline
from ckad.tape.tape import Tape
from ckad.trace.given import given
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms import attempts
from ckad.transforms.attempts import met_by_handlers
from ckad.transforms.call import Call, compiled
from ckad.transforms.gradients import Gradient
from ckad.transforms.layout import Layout, check_given
from ckad.transforms.repeated import ready
from ckad.transforms.repeated.calls import OTHER, Calls
from ckad.transforms.returns import returning, write_back
from ckad.transforms.reuse import Transformed, shown_as


@trimmed
@met_by_handlers
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    engine: str = "auto",
    threads: int | None = None,
    progress: Shown = False,
    check_finite: bool = False,
    returns: int | Sequence[int] | None = None,
) -> tuple[Any, Any]:
    """Compute ``fun(*primals)`` and its derivative in the direction ``tangents``.

    ``tangents`` is a sequence like ``primals``, with an array of the same shape for each float
    array, complex for a complex one. Returns ``(out, out_tangent)``; results that are not floats
    have a zero tangent. Of ``ckad.grad(f)`` the tangent is the product of the Hessian, as in `hvp`,
    from the one sweep that gives the gradient, and within the budget that ``grad`` was given.

    Raises:
        DifferentiationError: primals and tangents do not match.
        TraceError: ``fun`` does something that ckad cannot record.

    >>> import numpy as np, ckad
    >>> print(*ckad.jvp(np.exp, (0.0,), (2.0,)))
    1.0 2.0
    """
    options = Options(None, "auto", engine, progress, check_finite, threads)
    _check_sequence("primals", primals)
    _check_sequence("tangents", tangents)
    if isinstance(fun, Gradient) and returns is None and not fun.has_aux:
        told = fun.told(options)
        call, _, layout = told.prepare(tuple(primals), {})
        if not call.has_given_rules:
            return _pushed_gradient(told, call, layout, tuple(tangents))
    return _pushed(Call(returning(fun, returns), tuple(primals), {}, options), tuple(tangents))


@trimmed
@met_by_handlers
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    engine: str = "auto",
    threads: int | None = None,
) -> tuple[Any, Callable[..., Any]]:
    """Compute ``fun(*primals)`` and a pushforward from tangents of the primals to that of it.

    ``pushforward(*tangents)`` may be called again and again, and runs the program each time. Errors
    are those of `jvp`.

    >>> import numpy as np, ckad
    >>> out, pushforward = ckad.linearize(np.exp, 0.0)
    >>> print(out, pushforward(2.0), pushforward(3.0))
    1.0 2.0 3.0
    """
    options = Options(engine=engine, threads=threads)
    begun = partial(Call, fun, primals, {}, options)
    call = begun()
    out = call.results(call.run(call.primal))
    call.kept()
    asked = attempts.later(call, begun)

    def pushforward(*tangents: Any) -> Any:
        return asked(lambda call: _pushed(call, tangents)[1])

    return out, shown_as("pushforward of {}", fun, pushforward)


def _pushed(call: Call, tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The result of a call and its tangent."""
    wrt = moving_inputs(call)
    directions = match_tangents(call, tangents, wrt)
    leaves = call.run(call.made(pipeline.pushforward, tuple(wrt)), directions)
    n = len(call.tape.outputs)
    moving = iter(leaves[n:])
    types = call.tape.output_types
    out_tangents = [next(moving) if t.is_float else np.zeros(t.shape) for t in types]
    return call.results(leaves[:n]), call.results(out_tangents)


def _pushed_gradient(
    fun: Gradient, call: Call, layout: Layout, tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Value and gradient, and the tangents of both."""
    moving = tuple(moving_inputs(call))
    directions = match_tangents(call, tangents, list(moving))
    about = layout.wrt, moving, len(call.tape.inputs)
    value, change, *both = call.run(call.made(pipeline.gradient_and_hvp, *about), directions)
    n = len(layout.wrt)
    return fun.shown(call, layout, [value, *both[:n]]), fun.shown(call, layout, [change, *both[n:]])


def _check_sequence(what: str, arguments: Any) -> None:
    if not isinstance(arguments, (tuple, list)):
        raise DifferentiationError.here(
            f"{what} is a {type(arguments).__name__}; pass a tuple with one item per argument, "
            f"({what[:-1]},) for a single one."
        )


def moving_inputs(call: Call) -> list[int]:
    """The inputs of a call's tape that are float arguments."""
    types = call.tape.input_types[: len(call.arguments.traced)]
    return [k for k, t in enumerate(types) if t.is_float]


def match_tangents(call: Call, tangents: tuple[Any, ...], wrt: list[int]) -> list[Any]:
    """The tangents of the inputs ``wrt``; DifferentiationError if they do not match the primals."""
    for k, span in enumerate(call.arguments.spans):
        if any(call.arguments.traced[j] in span for j in wrt):
            check_given(call, k)
    leaves, tree = trees.flatten(given(tangents, compare=False))
    if trees.of_numbers(tree) != trees.of_numbers(call.arguments.treedef):
        raise DifferentiationError.here(
            f"the tangents have the structure {trees.describe(tree)}; pass a tuple like the "
            f"primals of {call.name}, {trees.describe(call.arguments.treedef)}."
        )
    _check_moving(call, leaves, wrt)
    directions = [leaves[call.arguments.traced[k]] for k in wrt]
    for k, direction in zip(wrt, directions, strict=True):
        shape = direction.shape if isinstance(direction, Tracer) else np.shape(direction)
        if shape != call.tape.input_types[k].shape:
            raise DifferentiationError.here(
                f"a tangent has shape {shape}; its primal has shape "
                f"{call.tape.input_types[k].shape}. Pass an array of that shape."
            )
    return directions


def _check_moving(call: Call, tangents: list[Any], wrt: list[int]) -> None:
    """What is not a float cannot move: its tangent has to be zero."""
    floats = {call.arguments.traced[k] for k in wrt}
    for k, (primal, tangent) in enumerate(zip(call.arguments.leaves, tangents, strict=True)):
        if k not in floats and (isinstance(tangent, Tracer) or _moves(tangent)):
            kind = primal.dtype if isinstance(primal, np.ndarray) else type(primal).__name__
            raise DifferentiationError.here(
                f"primal {k} of {call.name} holds {kind}, which cannot be differentiated by, "
                "but its tangent is not zero. Pass floats (2.0 instead of 2, or "
                ".astype(np.float64)), or a zero tangent."
            )


def _moves(tangent: Any) -> bool:
    return isinstance(tangent, (int, float, np.ndarray, np.generic)) and bool(np.any(tangent != 0))


def jit(
    fun: Callable[..., Any],
    *,
    engine: str = "auto",
    threads: int | None = None,
    progress: Shown = False,
    check_finite: bool = False,
    returns: int | Sequence[int] | None = None,
    in_place: bool = False,
) -> Jitted:
    """Make a function that computes ``fun`` with the compiled engine, without derivatives.

    ``returns`` names arguments, by position, that ``fun`` writes into and that are its result. The
    caller's arrays are not written to, unless ``in_place`` asks for it: then the arguments in
    ``returns`` are the caller's own arrays with what was written. Its ``compiled(*args)`` shows the
    program, as that of `ckad.value_and_grad` does, whose errors it shares.

    >>> import numpy as np, ckad
    >>> def grown(n, x):
    ...     for _ in range(n):
    ...         x = x * 1.5
    ...     return x
    >>> print(ckad.jit(grown)(2, 4.0))
    9.0
    """
    options = Options(None, "auto", engine, progress, check_finite, threads)

    return Jitted(returning(fun, returns), options, returns if in_place else None)


class Jitted(Transformed):
    """A function compiled without derivatives; made by `jit`."""

    def __init__(
        self,
        fun: Callable[..., Any],
        options: Options,
        written: int | Sequence[int] | None = None,
    ) -> None:
        self.fun, self.options, self.written = fun, options, written
        self.__doc__ = fun.__doc__
        self._calls = Calls()

    @property
    def asked(self) -> Hashable:
        return self.written, self.options.key

    @trimmed
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._calls.again(args, kwargs)
        result = self._called(args, kwargs) if found is OTHER else found
        return result if self.written is None else write_back(self.written, args, result)

    @met_by_handlers
    def _called(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        call = Call(self.fun, args, kwargs, self.options, may_vary=True)
        result = call.results(call.run(call.primal))
        outcome = ready.Outcome(Jitted, call.known.results, [call.recording.out_tree])
        ready.note(self._calls, call, call.primal, (args, kwargs), outcome)
        return result

    @trimmed
    def compiled(self, *args: Any, **kwargs: Any) -> Compiled:
        """The program of a call with these arguments, to look inside; nothing is run."""
        call = Call(self.fun, args, kwargs, self.options, may_vary=True)
        return compiled(call.primal, call.options)

    def __repr__(self) -> str:
        return f"<compiled {self.__name__}>"


def trace(fun: Callable[..., Any]) -> Callable[..., Tape]:
    """Make a function that records ``fun`` and returns its `Tape`.

    ``print(tape)`` shows the Wengert list with the user's lines; ``tape.save(path)`` and
    ``Tape.load(path)`` keep it.

    >>> import numpy as np, ckad
    >>> len(ckad.trace(np.sin)(1.0))
    2
    """

    @trimmed
    def recorded(*args: Any, **kwargs: Any) -> Tape:
        return Call(fun, args, kwargs).shown

    return shown_as("recording of {}", fun, recorded)


def adjoint(tape: Tape) -> Tape:
    """The adjoint of a tape: from (inputs, cotangents of float outputs) to those of float inputs.

    >>> import numpy as np, ckad
    >>> ckad.adjoint(ckad.trace(np.sin)(1.0))
    <Tape of 4 rows: (f64[], f64[]) -> (f64[])>
    """
    return pipeline.adjoint_of_tape().run(_tape(tape, "adjoint"))


def tangent(tape: Tape) -> Tape:
    """The tangent of a tape: from (inputs, tangents of float inputs) to (outputs, their tangents).

    >>> import numpy as np, ckad
    >>> ckad.tangent(ckad.trace(np.sin)(1.0))
    <Tape of 5 rows: (f64[], f64[]) -> (f64[], f64[])>
    """
    return pipeline.tangent_of_tape().run(_tape(tape, "tangent"))


def _tape(tape: Any, name: str) -> Tape:
    if not isinstance(tape, Tape):
        raise TapeError.here(
            f"ckad.{name} takes a Tape, not a {type(tape).__name__}. "
            f"Make one with ckad.trace(fun)(*args), or use ckad.vjp and ckad.jvp on functions."
        )
    return tape
