"""Reverse mode for users: ``value_and_grad``, ``grad``, ``vjp``, ``plan``."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from ckad import trees
from ckad.checkpoint.plan import Plan
from ckad.errors import DifferentiationError
from ckad.loops.asked import Choice
from ckad.loops.compiled import Compiled
from ckad.loops.driver import Amount, Options
from ckad.loops.progress import Shown
from ckad.passes import pipeline
from ckad.tape.tape import Tape
from ckad.tape.types import Type
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms import attempts
from ckad.transforms.arguments.argnums import plain_numbers, positions
from ckad.transforms.attempts import met_by_handlers
from ckad.transforms.call import Call, compiled
from ckad.transforms.layout import Layout, conjugated, layout_of
from ckad.transforms.repeated import ready
from ckad.transforms.repeated.calls import OTHER, Calls
from ckad.transforms.returns import returning
from ckad.transforms.reuse import Recorded, Transformed, shown_as


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    progress: Shown = False,
    check_finite: bool = False,
    resume: str | os.PathLike[str] | None = None,
    returns: int | Sequence[int] | None = None,
) -> Gradient:
    """Make a function that computes ``fun`` and its exact gradient.

    Args:
        fun: takes arrays, numbers and pytrees of them, written in NumPy; returns a scalar, or
            ``(scalar, aux)`` with ``has_aux``.
        argnums: the argument to differentiate by, or several of them.
        has_aux: whether ``fun`` returns something else beside the scalar.
        memory: bytes, or text such as ``"64 MiB"``: what a call may allocate at its peak, for
            checkpoints, residuals, work arrays and results. By default everything is kept where
            that fits a quarter of the free memory. The compiler takes some MB more on a first call.
            A `ckad.Budget` gives disk as well.
        schedule: ``"auto"``, ``"store_all"``, ``"revolve"``, ``"two_level"``, a schedule of
            ``ckad.schedules``, or a function from the number of steps to one. It is used for the
            outermost loops.
        engine: ``"vm"``, which interprets and starts at once, ``"native"``, which compiles the
            program to machine code first, or ``"auto"``: native where its speed is predicted to
            be worth that. ``plan`` says which it is.
        threads: how many threads share the work on large arrays. By default what
            ``CKAD_NUM_THREADS``, ``NUMBA_NUM_THREADS`` or ``OMP_NUM_THREADS`` say, else one per
            CPU. The result does not depend on it, bit by bit.
        progress: show a bar over the steps of both sweeps; or call this with those done and all,
            at the end with all of them; or tell this `ckad.Front` what is done, how often steps are
            run again, what lies in memory and on disk, and the time left.
        check_finite: raise if a step gives a NaN or an infinity, and name the first that does.
        returns: the position of an argument, or several, that ``fun`` writes into and that are to
            be returned; what ``fun`` itself returns, if anything, comes before: use ``has_aux``
            then. The caller's arrays stay as they are.
        resume: a directory. If a call is killed, or stopped by Ctrl-C or an error, the same call
            goes on from what it has left there, and returns the same bits.

    Returns:
        A function of the same arguments that returns ``(value, gradient)``, or
        ``((value, aux), gradient)``. The gradient has the structure and dtypes of the argument (a
        tuple for several ``argnums``); by a complex ``x + iy`` it is ``df/dx - i df/dy``. Its
        ``plan(*args)`` says what a call will cost, its ``compiled(*args)`` shows the program: text,
        machine code, operations and bytes per step.

    Raises:
        DifferentiationError: the result is not a float scalar, or an argument to differentiate by
            holds no floats.
        BudgetError: ``memory`` is below the minimum, which the message names.
        CheckpointError: a checkpoint on disk cannot be written or read, or the run that was left in
            ``resume`` is another one.
        TraceError: ``fun`` does something that ckad cannot record.

    The gradient is computed by reverse accumulation over a recorded tape (Griewank & Walther,
    Evaluating Derivatives, 2008, chapters 3 and 12).

    >>> import numpy as np, ckad
    >>> value, gradient = ckad.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0, 3.0]))
    >>> print(value, gradient)
    14.0 [2. 4. 6.]
    """
    options = Options(memory, schedule, engine, progress, check_finite, threads, resume)
    return Gradient(returning(fun, returns), argnums, has_aux, options)


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    progress: Shown = False,
    check_finite: bool = False,
    resume: str | os.PathLike[str] | None = None,
    returns: int | Sequence[int] | None = None,
) -> Callable[..., Any]:
    """Like `value_and_grad`, but the function returned gives the gradient alone.

    With ``has_aux`` it gives ``(gradient, aux)``. Arguments and errors are those of
    `value_and_grad`.

    >>> import numpy as np, ckad
    >>> print(ckad.grad(np.sin)(0.0))
    1.0
    """
    options = Options(memory, schedule, engine, progress, check_finite, threads, resume)
    return GradientAlone(returning(fun, returns), argnums, has_aux, options)


@dataclass(frozen=True)
class Gradient(Transformed):
    """A function with its gradient; made by `value_and_grad`."""

    WHAT: ClassVar[str] = "value and gradient"
    fun: Callable[..., Any]
    argnums: int | Sequence[int]
    has_aux: bool
    options: Options
    _positions: dict[int, tuple[int, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _calls: Calls = field(default_factory=Calls, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "argnums", plain_numbers(self.argnums))

    @property
    def asked(self) -> Hashable:
        return self.argnums, self.has_aux, self.options.key

    @trimmed
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._calls.again(args, kwargs)
        return self._called(args, kwargs) if found is OTHER else found

    @met_by_handlers
    def _called(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        call, tape, layout = self.prepare(args, kwargs)
        result = self.shown(call, layout, call.run(tape))
        kind = type(self), self.argnums, self.has_aux
        structures = call.recording.out_tree, *layout.own_trees
        outcome = ready.Outcome(kind, partial(self.shown, call.known, layout), structures)
        ready.note(self._calls, call, tape, (args, kwargs), outcome)
        return result

    def shown(self, call: Call | Recorded, layout: Layout, outputs: Sequence[Any]) -> Any:
        """What a user gets, from what the tape gives."""
        n = len(outputs) - len(layout.wrt)
        return call.results(outputs[:n]), layout.structured(outputs[n:])

    @trimmed
    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """What a call with these arguments will cost; a few steps are run to be timed, once."""
        call, tape, _ = self.prepare(args, kwargs)
        return call.timed(tape)

    @trimmed
    def compiled(self, *args: Any, **kwargs: Any) -> Compiled:
        """The program of a call with these arguments, to look inside; nothing is run."""
        call, tape, _ = self.prepare(args, kwargs)
        return compiled(tape, call.options)

    def __repr__(self) -> str:
        return f"<{self.WHAT} of {self.__name__} by argument {self.argnums}>"

    def told(self, options: Options) -> Self:
        """The same, with what was asked for of a derivative of it."""
        own, default = self.options, Options()
        asked = {
            field.name: getattr(options, field.name)
            for field in fields(options)
            if getattr(options, field.name) != getattr(default, field.name)
        }
        return replace(self, options=replace(own, **{"resume": None, "progress": False, **asked}))

    def prepare(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Call, Tape, Layout]:
        """The call, the tape of (outputs, gradients), where the gradients belong."""
        numbers = self.numbers(len(args))
        call = Call(self.fun, args, kwargs, self.options, may_vary=True)
        key = "gradient", numbers, self.single, self.has_aux, call.options.engine
        return call, *call.once(key, lambda: self._derive(call, numbers))

    def _derive(self, call: Call, numbers: Sequence[int]) -> tuple[Tape, Layout]:
        layout = layout_of(call, numbers, self.single)
        _check_scalar(call, self.has_aux)
        return call.made(pipeline.gradient, layout.wrt), layout

    @cached_property
    def single(self) -> bool:
        """Whether the gradient is by one argument, not a tuple."""
        return isinstance(self.argnums, int)

    def numbers(self, n_args: int) -> tuple[int, ...]:
        """The arguments that it is by."""
        if n_args not in self._positions:
            self._positions[n_args] = positions(self.argnums, n_args)
        return self._positions[n_args]


class GradientAlone(Gradient):
    """What `grad` returns."""

    WHAT = "gradient"

    def shown(self, call: Call | Recorded, layout: Layout, outputs: Sequence[Any]) -> Any:
        result, gradient = super().shown(call, layout, outputs)
        return (gradient, result[1]) if self.has_aux else gradient


def _check_scalar(call: Call, has_aux: bool) -> None:
    tree = call.recording.out_tree
    _check_real(call, tree, has_aux)
    if has_aux:
        children = tree.children()
        if tree.type is not tuple or len(children) != 2 or children[0].num_leaves != 1:
            raise DifferentiationError.here(
                f"with has_aux=True {call.name} has to return (scalar, aux); it returned "
                f"{trees.describe(tree)}."
            )
    elif tree.num_leaves != 1 or tree.num_nodes != 1:
        raise DifferentiationError.here(
            f"{call.name} returned {trees.describe(tree)}; a gradient needs one scalar. Return "
            "the scalar alone, or (scalar, aux) with has_aux=True."
        )
    first = call.tape.output_types[0]
    if first.shape or not first.is_float:
        raise DifferentiationError.here(
            f"{call.name} returned {first.numpy} of shape {first.shape}; a gradient needs a "
            "float scalar. Reduce the result, for example with np.sum, or use ckad.vjp or "
            "ckad.jacobian."
        )


def _check_real(call: Call, result: trees.Treedef, has_aux: bool) -> None:
    if has_aux and result.type is tuple:
        result = (*result.children(), result)[0]
    if result.type is trees.Complex:
        raise DifferentiationError.here(
            f"{call.name} returned a complex value; a gradient needs a real scalar. Return "
            "np.abs(z) ** 2, z.real or z.imag, or use ckad.vjp or ckad.jvp, which take "
            "complex results."
        )


@trimmed
@met_by_handlers
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    progress: Shown = False,
    check_finite: bool = False,
    resume: str | os.PathLike[str] | None = None,
    returns: int | Sequence[int] | None = None,
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Compute ``fun(*primals)`` and a pullback from cotangents of the result to those of primals.

    Every primal has to hold floats. ``pullback(ct)`` takes a pytree like the result and returns a
    tuple with one pytree per primal; it may be called again and again, and runs both sweeps each
    time: arrays of ``primals`` that have been written into by then are a DifferentiationError. For
    complex values ``Re(sum(ct * dout))`` is ``Re(sum(pulled * dprimal))``. The keyword
    arguments and errors are those of `value_and_grad`; ``resume`` goes on with a pullback of the
    same cotangent.

    >>> import numpy as np, ckad
    >>> out, pullback = ckad.vjp(lambda x: x**2, np.array([1.0, 3.0]))
    >>> print(out, pullback(np.array([1.0, 10.0]))[0])
    [1. 9.] [ 2. 60.]
    """
    options = Options(memory, schedule, engine, progress, check_finite, threads, resume)
    if isinstance(fun, GradientAlone) and returns is None:
        found = _of_gradient(fun.told(options), primals)
        if found is not None:
            return found
    begun = partial(Call, returning(fun, returns), primals, {}, options)
    call = begun()
    layout = layout_of(call, range(len(primals)), False)
    outputs = call.results(call.run(call.primal))
    call.kept()
    asked = attempts.later(call, begun)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        return asked(lambda call: pulled(call, cotangent))

    def pulled(call: Call, cotangent: Any) -> tuple[Any, ...]:
        leaves, tree = trees.flatten(cotangent)
        types = call.tape.output_types
        cts = _match(call.name, types, call.recording.out_tree, leaves, tree)
        seeds = [k for k, t in enumerate(types) if t.is_float]
        tape = call.made(pipeline.pullback, layout.wrt)
        return tuple(layout.structured(call.run(tape, [cts[k] for k in seeds], pullback=True)))

    return outputs, shown_as("pullback of {}", fun, pullback)


def _of_gradient(
    fun: GradientAlone, primals: Sequence[Any]
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]] | None:
    """`vjp` of a gradient, in one reverse sweep: the gradient by the primals of the tangent in the
    cotangent's direction. None if that is complex."""
    call, tape, by = fun.prepare(primals, {})
    layout = layout_of(call, range(len(primals)), False)
    if fun.has_aux or any(layout.imaginary):
        return None
    gradient = fun.shown(call, by, call.run(tape))
    like = trees.flatten(gradient)[1]
    types = [call.tape.input_types[k] for k in by.wrt]
    call.kept()

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        cts = _match(f"the gradient of {call.name}", types, like, *trees.flatten(cotangent))
        product = call.made(pipeline.hvp, layout.wrt, by.wrt)
        return tuple(layout.structured(call.run(product, cts, pullback=True)))

    return gradient, shown_as("pullback of the gradient of {}", fun, pullback)


def _match(
    name: str,
    types: Sequence[Type],
    out_tree: trees.Treedef,
    leaves: list[Any],
    tree: trees.Treedef,
) -> list[Any]:
    """Cotangents in the shapes and dtypes of the outputs, or an error that says what differs."""
    if trees.of_numbers(tree) != trees.of_numbers(out_tree):
        raise DifferentiationError.here(
            f"the cotangent has the structure {trees.describe(tree)}; pass one like the result "
            f"of {name}, {trees.describe(out_tree)}."
        )
    for leaf, type in zip(leaves, types, strict=True):
        shape = leaf.shape if isinstance(leaf, Tracer) else np.shape(leaf)
        if shape != type.shape:
            raise DifferentiationError.here(
                f"a cotangent has shape {shape}; the result of {name} has shape "
                f"{type.shape} there. Pass an array of that shape."
            )
    return conjugated(leaves, trees.imaginary(tree))


@trimmed
def plan(
    fun: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    returns: int | Sequence[int] | None = None,
) -> Plan:
    """Say what ``value_and_grad(fun, argnums, memory=memory)(*args)`` will cost, before it runs.

    Returns a `Plan` with ``n_steps``, ``n_slots``, ``forward_steps``, ``recompute_factor``,
    ``peak_bytes`` (everything the call allocates), ``seconds`` and the ``schedule``; ``print``
    shows it, ``plot()`` draws it. A few steps are run to be timed, the others left out: only where
    that can do no harm, and where no Python function of yours is called. Errors are those of
    `value_and_grad`.

    >>> import numpy as np, ckad
    >>> def decay(x):
    ...     return np.sum(ckad.fori_loop(0, 1000, lambda i, x: x * np.cos(x), x))
    >>> ckad.plan(decay, np.ones(100), memory="64 KiB").n_steps
    1000
    """
    options = Options(memory, schedule, engine, threads=threads)
    return Gradient(returning(fun, returns), argnums, has_aux, options).plan(*args)
