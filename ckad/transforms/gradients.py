"""Reverse mode for users: ``value_and_grad``, ``grad``, ``vjp``, ``plan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.checkpoint.plan import Plan
from ckad.errors import DifferentiationError
from ckad.loops.choose import Choice
from ckad.loops.driver import Options
from ckad.passes import simplify
from ckad.passes.adjoint import adjoint
from ckad.passes.bind import bind
from ckad.tape.tape import Tape
from ckad.trace.tracer import Tracer
from ckad.trace.where import at_place
from ckad.transforms.call import Call, compiled, finish


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    memory: int | str | None = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    progress: bool = False,
    check_finite: bool = False,
) -> Gradient:
    """Make a function that computes ``fun`` and its exact gradient.

    Args:
        fun: takes arrays, numbers and pytrees of them, written in NumPy; returns a scalar, or
            ``(scalar, aux)`` with ``has_aux``.
        argnums: the argument to differentiate by, or several of them.
        has_aux: whether ``fun`` returns something else beside the scalar.
        memory: bytes, or text such as ``"64 MiB"``: what a call may allocate at its peak, for
            checkpoints, residuals, work arrays and results. By default everything is kept where
            that fits a quarter of the free memory.
        schedule: ``"auto"``, ``"store_all"``, ``"revolve"``, ``"two_level"``, a schedule of
            ``ckad.schedules``, or a function from the number of steps to one. It is used for the
            outermost loops.
        engine: ``"auto"`` or ``"vm"``.
        progress: show a bar over the steps of both sweeps.
        check_finite: stop at the first row that gives a NaN or an infinity, and name it.

    Returns:
        A function of the same arguments that returns ``(value, gradient)``, or
        ``((value, aux), gradient)``. The gradient has the structure and dtypes of the argument (a
        tuple for several ``argnums``). Its ``plan(*args)`` says what a call will cost.

    Raises:
        DifferentiationError: the result is not a float scalar, or an argument to differentiate by
            holds no floats.
        BudgetError: ``memory`` is below the minimum, which the message names.
        TraceError: ``fun`` does something that ckad cannot record.

    The gradient is computed by reverse accumulation over a recorded tape (Griewank & Walther,
    Evaluating Derivatives, 2008, chapters 3 and 12).

    >>> import numpy as np, ckad
    >>> value, gradient = ckad.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0, 3.0]))
    >>> print(value, gradient)
    14.0 [2. 4. 6.]
    """
    options = Options(memory, schedule, engine, progress, check_finite)
    return Gradient(fun, argnums, has_aux, options)


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    memory: int | str | None = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    progress: bool = False,
    check_finite: bool = False,
) -> Callable[..., Any]:
    """Like `value_and_grad`, but the function returned gives the gradient alone.

    With ``has_aux`` it gives ``(gradient, aux)``. Arguments and errors are those of
    `value_and_grad`.

    >>> import numpy as np, ckad
    >>> print(ckad.grad(np.sin)(0.0))
    1.0
    """
    options = Options(memory, schedule, engine, progress, check_finite)
    return _GradientAlone(fun, argnums, has_aux, options)


@dataclass(frozen=True)
class Gradient:
    """A function with its gradient; made by `value_and_grad`."""

    fun: Callable[..., Any]
    argnums: int | Sequence[int]
    has_aux: bool
    options: Options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call, tape, wrt = self.prepare(args, kwargs)
        outputs = call.run(tape, self.options)
        n = len(outputs) - len(wrt)
        result = call.results(outputs[:n])
        return result, self.structured(call, outputs[n:], wrt)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """What a call with these arguments will cost; nothing is run."""
        _, tape, _ = self.prepare(args, kwargs)
        return compiled(tape, self.options).plan

    def __repr__(self) -> str:
        name = getattr(self.fun, "__name__", repr(self.fun))
        return f"<value and gradient of {name} by argument {self.argnums}>"

    def prepare(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Call, Tape, list[int]]:
        """The call, the tape of (outputs, gradients), the inputs differentiated by."""
        numbers = self._numbers(len(args))
        call = Call(self.fun, args, kwargs)
        wrt = [k for n in numbers for k in _differentiable(call, n)]
        _check_scalar(call, self.has_aux)
        derive = partial(_gradient_tape, wrt=tuple(wrt))
        return call, call.derived(("gradient", tuple(wrt)), derive), wrt

    def _numbers(self, n_args: int) -> list[int]:
        numbers = [self.argnums] if isinstance(self.argnums, int) else self.argnums
        if not isinstance(numbers, Sequence) or not all(isinstance(n, int) for n in numbers):
            raise DifferentiationError(
                at_place(f"argnums={self.argnums!r}; pass an int, or several in a tuple.")
            )
        for n in numbers:
            if not -n_args <= n < n_args:
                raise DifferentiationError(
                    at_place(
                        f"argnums={self.argnums} names argument {n}, but the call has {n_args} "
                        "positional arguments. Pass the arguments to differentiate by position."
                    )
                )
        return [n % n_args for n in numbers]

    def structured(self, call: Call, gradients: Sequence[Any], wrt: Sequence[int]) -> Any:
        """Gradients by the inputs ``wrt`` as pytrees like the arguments."""
        arrays = call.arguments.arrays
        out, left = (
            [],
            [finish(g, _is_scalar(arrays[k])) for g, k in zip(gradients, wrt, strict=True)],
        )
        for n in self._numbers(len(call.arguments.spans)):
            own = call.arguments.own_trees[n]
            size = len(call.arguments.spans[n])
            out.append(trees.unflatten(own, left[:size]))
            left = left[size:]
        return out[0] if isinstance(self.argnums, int) else tuple(out)


class _GradientAlone(Gradient):
    """What `grad` returns."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result, gradient = super().__call__(*args, **kwargs)
        return (gradient, result[1]) if self.has_aux else gradient


def _is_scalar(x: Any) -> bool:
    return x.scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray)


def _differentiable(call: Call, argument: int) -> list[int]:
    """The tape inputs of one argument; an error if a leaf of it is not a float."""
    inputs = call.arguments.inputs_of(argument)
    types = call.tape.input_types
    for k, leaf in zip(inputs, call.arguments.spans[argument], strict=True):
        if k < 0 or not types[k].is_float:
            found = call.arguments.leaves[leaf]
            kind = f"dtype {types[k].numpy}" if k >= 0 else type(found).__name__
            raise DifferentiationError(
                at_place(
                    f"argument {argument} of {call.name} holds {kind}, which cannot be "
                    "differentiated by. Pass floats (2.0 instead of 2, or .astype(np.float64)), or "
                    "leave the argument out of argnums."
                )
            )
    if not inputs:
        raise DifferentiationError(
            at_place(
                f"argument {argument} of {call.name} holds no arrays, so there is nothing to "
                "differentiate by. Pass an array, or leave the argument out of argnums."
            )
        )
    return inputs


def _check_scalar(call: Call, has_aux: bool) -> None:
    tree = call.recording.out_tree
    if has_aux:
        children = tree.children()
        if tree.type is not tuple or len(children) != 2 or children[0].num_leaves != 1:
            raise DifferentiationError(
                at_place(
                    f"with has_aux=True {call.name} has to return (scalar, aux); it returned "
                    f"{trees.describe(tree)}."
                )
            )
    elif tree.num_leaves != 1 or tree.num_nodes != 1:
        raise DifferentiationError(
            at_place(
                f"{call.name} returned {trees.describe(tree)}; a gradient needs one scalar. Return "
                "the scalar alone, or (scalar, aux) with has_aux=True."
            )
        )
    first = call.tape.output_types[0]
    if first.shape or not first.is_float:
        raise DifferentiationError(
            at_place(
                f"{call.name} returned {first.numpy} of shape {first.shape}; a gradient needs a "
                "float scalar. Reduce the result, for example with np.sum, or use ckad.vjp or "
                "ckad.jacobian."
            )
        )


def _gradient_tape(tape: Tape, wrt: tuple[int, ...]) -> Tape:
    """From the inputs to (outputs, gradients): the adjoint with its seed fixed to one."""
    joint = adjoint(tape, wrt, seeds=[0], keep_outputs=True)
    one = np.ones((), tape.output_types[0].numpy)
    return simplify(bind(joint, {len(tape.inputs): one}))


def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    memory: int | str | None = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    progress: bool = False,
    check_finite: bool = False,
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Compute ``fun(*primals)`` and a pullback from cotangents of the result to those of primals.

    Every primal has to hold floats. ``pullback(ct)`` takes a pytree like the result and returns a
    tuple with one pytree per primal; it may be called again and again, and runs both sweeps each
    time. The keyword arguments and errors are those of `value_and_grad`.

    >>> import numpy as np, ckad
    >>> out, pullback = ckad.vjp(lambda x: x**2, np.array([1.0, 3.0]))
    >>> print(out, pullback(np.array([1.0, 10.0]))[0])
    [1. 9.] [ 2. 60.]
    """
    options = Options(memory, schedule, engine, progress, check_finite)
    call = Call(fun, primals, {})
    wrt = [k for n in range(len(primals)) for k in _differentiable(call, n)]
    outputs = call.results(call.run(call.tape, options))

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        leaves, tree = trees.flatten(cotangent)
        cts = _match(call, leaves, tree)
        seeds = [k for k, t in enumerate(call.tape.output_types) if t.is_float]
        tape = call.derived("pullback", lambda t: adjoint(t, wrt, seeds))
        gradients = call.run(tape, options, [cts[k] for k in seeds])
        every = Gradient(fun, range(len(primals)), False, options)
        return tuple(every.structured(call, gradients, wrt))

    return outputs, pullback


def _match(call: Call, leaves: list[Any], tree: trees.Treedef) -> list[Any]:
    """Cotangents in the shapes and dtypes of the outputs, or an error that says what differs."""
    types = call.tape.output_types
    if tree != call.recording.out_tree:
        raise DifferentiationError(
            at_place(
                f"the cotangent has the structure {trees.describe(tree)}; pass one like the result "
                f"of {call.name}, {trees.describe(call.recording.out_tree)}."
            )
        )
    for leaf, type in zip(leaves, types, strict=True):
        shape = leaf.shape if isinstance(leaf, Tracer) else np.shape(leaf)
        if shape != type.shape:
            raise DifferentiationError(
                at_place(
                    f"a cotangent has shape {shape}; the result of {call.name} has shape "
                    f"{type.shape} there. Pass an array of that shape."
                )
            )
    return leaves


def plan(
    fun: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    memory: int | str | None = None,
    schedule: Choice = "auto",
    engine: str = "auto",
) -> Plan:
    """Say what ``value_and_grad(fun, argnums, memory=memory)(*args)`` will cost, before it runs.

    Returns a `Plan` with ``n_steps``, ``n_slots``, ``forward_steps``, ``recompute_factor``,
    ``peak_bytes`` (everything the call allocates) and the ``schedule``; ``print`` shows it,
    ``plot()`` draws it. Errors are those of `value_and_grad`.

    >>> import numpy as np, ckad
    >>> def decay(x):
    ...     return np.sum(ckad.fori_loop(0, 1000, lambda i, x: x * np.cos(x), x))
    >>> ckad.plan(decay, np.ones(100), memory="64 KiB").n_steps
    1000
    """
    options = Options(memory, schedule, engine)
    return Gradient(fun, argnums, has_aux, options).plan(*args)


__all__ = ["Gradient", "grad", "plan", "value_and_grad", "vjp"]
