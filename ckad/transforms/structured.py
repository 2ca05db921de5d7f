"""Loops and branches for users: recorded inside a transformed function, else compiled and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckad import trees
from ckad.tape.ops import Op
from ckad.trace import dispatch
from ckad.trace.bodies import branches, loops, while_loops
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source import follow
from ckad.trace.source.outside.purity import pure
from ckad.trace.values.apply import apply
from ckad.trace.values.tracer import Tracer
from ckad.transforms.forward import jit


@pure
def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Run ``carry, y = step(carry, x)`` over the first axis of ``xs``.

    Args:
        step: takes the carry and one element of ``xs`` (``None`` without ``xs``), returns both
            the next carry and an output.
        init: the first carry, a pytree of arrays; its shapes and dtypes stay the same.
        xs: a pytree of arrays with a common first axis, or None.
        length: the number of steps; needed without ``xs``.
        reverse: begin at the end of ``xs``; the output of a step has the place of its element.
        unroll: changes nothing, and is taken for programs that were written for JAX.

    Returns:
        The last carry, and the outputs of all steps stacked along a new first axis.

    Raises:
        CarryError: the carry changes its structure, shape or dtype.

    Outside of a transformed function the loop is compiled and run all the same; ``step`` never gets
    plain arrays. A plain array is read at each step by passing it in ``xs``. Under a budget ``xs``
    and the stacked outputs count.

    >>> import numpy as np, ckad
    >>> total, sums = ckad.scan(lambda c, x: (c + x, c + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> print(total, sums)
    6.0 [1. 3. 6.]
    """
    xs = _reversed(xs) if reverse else xs
    if is_tracing():
        carry, ys = loops.scan(follow(step), init, xs, length)
    else:
        carry, ys = jit(lambda init, xs: loops.scan(follow(step), init, xs, length))(init, xs)
    return carry, _reversed(ys) if reverse else ys


def _reversed(xs: Any) -> Any:
    leaves, tree = trees.flatten(xs)
    return trees.unflatten(tree, [np.flip(x, 0) if np.ndim(x) else x for x in leaves])


@pure
def stop_gradient(x: Any) -> Any:
    """``x``, a pytree of arrays, as a constant to all derivatives.

    >>> import ckad
    >>> print(ckad.grad(lambda x: x * ckad.stop_gradient(x))(3.0))
    3.0
    """
    if not is_tracing():
        return x
    leaves, tree = trees.flatten(x)
    return trees.unflatten(tree, [dispatch.call(_stopped, [x], {}) for x in leaves])


def _stopped(x: Any) -> Any:
    return apply(Op.STOP, x) if isinstance(x, Tracer) and x.type.is_float else x


dispatch.put(_stopped, _stopped)


@pure
def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Run ``carry = body(i, carry)`` for ``i`` in ``range(lower, upper)``; returns the last carry.

    ``body`` may write into the arrays it gets through the carry; ``init`` itself is not changed.
    Within a function that is recorded it may write into arrays from around the loop, too.
    The bounds are Python ints. Raises CarryError if the carry changes structure, shape or dtype.
    Outside of a transformed function the loop is compiled and run all the same; ``i`` is traced in
    either case, never a Python int: ``u[i]`` reads a traced array, ``np.asarray(a, like=i)[i]`` a
    plain one.

    >>> import ckad
    >>> print(ckad.fori_loop(0, 10, lambda i, x: x + i, 0.0))
    45.0
    """
    if is_tracing():
        return loops.fori_loop(lower, upper, follow(body), init)
    return jit(lambda init: loops.fori_loop(lower, upper, follow(body), init))(init)


@pure
def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Run ``state = body(state)`` while ``cond(state)`` holds; returns the last state.

    ``init`` is a pytree of arrays; its shapes and dtypes stay the same, else a CarryError is
    raised. ``cond`` returns a scalar. The number of steps need not be known nor bounded: the
    gradient of the loop is found within the budget however long it runs. Outside of a transformed
    function the loop is compiled and run all the same.

    >>> import ckad
    >>> def root(a):
    ...     newton = lambda x: 0.5 * (x + a / x)
    ...     return ckad.while_loop(lambda x: abs(x * x - a) > 1e-12, newton, a)
    >>> value, gradient = ckad.value_and_grad(root)(9.0)
    >>> print(round(value, 9), round(gradient, 9))
    3.0 0.166666667
    """
    if is_tracing():
        return while_loops.while_loop(follow(cond), follow(body), init)
    return jit(lambda init: while_loops.while_loop(follow(cond), follow(body), init))(init)


@pure
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Run ``true_fun(*operands)`` or ``false_fun(*operands)``, whichever ``pred`` asks for.

    Only the branch that is taken runs. Both return the same structure, shapes and dtypes, else a
    CarryError is raised. The derivative is that of the branch taken. A branch may write into its
    operands; those of the caller are not changed.

    >>> import numpy as np, ckad
    >>> f = lambda x: ckad.cond(x > 1.0, lambda x: x**2, np.cos, x)
    >>> print(ckad.grad(f)(3.0), ckad.grad(f)(0.0))
    6.0 -0.0
    """
    if is_tracing():
        return branches.cond(pred, follow(true_fun), follow(false_fun), *operands)
    return branches.run_side(true_fun if pred else false_fun, operands)
