"""Derivatives made of several sweeps: ``jacobian`` in both modes, ``hvp``, ``hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import DifferentiationError
from ckad.loops.asked import Choice
from ckad.loops.driver import Amount, Options, Progress
from ckad.passes import pipeline
from ckad.place import at_place
from ckad.trace.source import follow
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms.call import positions
from ckad.transforms.forward import jvp, match_tangents, moving_inputs
from ckad.transforms.gradients import Gradient, vjp


def jacobian(
    fun: Callable[..., Any],
    argnums: int = 0,
    mode: str = "auto",
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of ``fun`` by one array argument.

    ``fun`` returns one array. The result has the shape ``out.shape + argument.shape``. ``mode`` is
    ``"fwd"`` (one sweep per input), ``"rev"`` (one per output), or ``"auto"`` (the fewer).
    ``memory`` and ``schedule`` are those of `value_and_grad`, for each reverse sweep.

    >>> import numpy as np, ckad
    >>> print(ckad.jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0])))
    [[3. 0. 1.]
     [0. 3. 2.]]
    """
    if mode not in ("auto", "fwd", "rev"):
        raise DifferentiationError(
            at_place(f'mode={mode!r} is not known; use "auto", "fwd" or "rev".')
        )

    @trimmed
    def compute(*args: Any, **kwargs: Any) -> Any:
        at = _position(argnums, len(args))

        @wraps(fun)
        def partial_of(x: Any) -> Any:
            return follow(fun)(*args[:at], x, *args[at + 1 :], **kwargs)

        x = _array(args[at], f"argument {at}")
        out, pullback = vjp(
            partial_of, x, memory=memory, schedule=schedule, engine=engine, threads=threads
        )
        out = _array(out, "the result")
        if mode == "rev" or (mode == "auto" and out.size < x.size):
            return _stacked([pullback(d)[0] for d in _units(out)], out, x)
        push = partial(jvp, engine=engine, threads=threads)
        columns = _stacked([push(partial_of, (x,), (d,))[1] for d in _units(x)], x, out)
        return np.moveaxis(columns, range(x.ndim), range(-x.ndim, 0)) if x.ndim else columns

    return compute


def jacfwd(
    fun: Callable[..., Any],
    argnums: int = 0,
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """`jacobian` by one forward sweep per element of the argument.

    >>> import numpy as np, ckad
    >>> print(ckad.jacfwd(lambda t: t * np.array([1.0, 2.0]))(3.0))
    [1. 2.]
    """
    return jacobian(fun, argnums, "fwd", engine=engine, threads=threads)


def jacrev(
    fun: Callable[..., Any],
    argnums: int = 0,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """`jacobian` by one reverse sweep per element of the result, each within the budget.

    >>> import numpy as np, ckad
    >>> print(ckad.jacrev(lambda x: x[0] * x[1])(np.array([3.0, 4.0])))
    [4. 3.]
    """
    options = {"memory": memory, "schedule": schedule, "engine": engine, "threads": threads}
    return jacobian(fun, argnums, "rev", **options)  # type: ignore[arg-type]


def _position(argnums: int, n_args: int) -> int:
    if not isinstance(argnums, int) or not -n_args <= argnums < n_args:
        raise DifferentiationError(
            at_place(
                f"argnums={argnums!r} names no argument of this call, which has {n_args}. "
                "Pass one int, and the argument by position."
            )
        )
    return argnums % n_args


def _array(x: Any, what: str) -> Any:
    if trees.is_complex(x):
        raise DifferentiationError(
            at_place(
                f"{what} is complex; jacobian and hessian take and return real arrays. Take or "
                "return the real and the imaginary part, or use ckad.vjp and ckad.jvp."
            )
        )
    if trees.is_record(x):
        raise DifferentiationError(
            at_place(
                f"{what} has named fields; jacobian and hessian take and return one array of "
                "numbers. Pass a field, or use ckad.vjp and ckad.jvp."
            )
        )
    if isinstance(x, (Tracer, np.ndarray)):
        return x
    if not isinstance(x, (np.generic, float, int)):
        raise DifferentiationError(
            at_place(
                f"{what} is a {type(x).__name__}; jacobian and hessian take and return one array. "
                "Use ckad.vjp or ckad.jvp for several, or join them with np.concatenate."
            )
        )
    return np.asarray(x)


def _units(x: Any) -> list[np.ndarray]:
    return list(np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape))


def _stacked(parts: list[Any], outer: Any, inner: Any) -> Any:
    if not parts:
        return np.zeros((*outer.shape, *inner.shape))
    return np.stack(parts).reshape((*outer.shape, *inner.shape))


@trimmed
def hvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    progress: Progress = False,
    check_finite: bool = False,
) -> Any:
    """The derivative of the gradient of a scalar ``fun`` by its first argument, in one direction.

    With one argument this is the product of the Hessian with ``tangents``. Reverse over forward:
    the adjoint of the tangent (Griewank & Walther 2008, section 5.4), so a budget and a schedule
    work as in `value_and_grad`.

    >>> import numpy as np, ckad
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> print(ckad.hvp(lambda x: np.sum(x**3), (x,), (v,)))
    [6. 0.]
    """
    options = Options(memory, schedule, engine, progress, check_finite, threads)
    first = Gradient(fun, 0, False, options)
    call, _, layout = first.prepare(tuple(primals), {})
    wrt, moving = layout.wrt, moving_inputs(call)
    directions = match_tangents(call, tuple(tangents), moving)
    products = call.run(call.made(pipeline.hvp, wrt, tuple(moving)), directions)
    return layout.structured(products)


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Hessian of a scalar ``fun`` by one array argument.

    It has the shape ``argument.shape + argument.shape``. By several ``argnums`` it is a tuple of
    tuples: ``h[i][j]`` has the shape of argument i and then that of j. One product (see `hvp`) per
    element of an argument; the keyword arguments are those of `hvp`.

    >>> import numpy as np, ckad
    >>> print(ckad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0])))
    [[4. 2.]
     [2. 0.]]
    """
    product = partial(hvp, memory=memory, schedule=schedule, engine=engine, threads=threads)

    @trimmed
    def compute(*args: Any, **kwargs: Any) -> Any:
        def of(*numbers: int) -> Callable[..., Any]:
            @wraps(fun)
            def partial_of(*moving: Any) -> Any:
                return follow(fun)(*_replaced(args, numbers, moving), **kwargs)

            return partial_of

        numbers = positions(argnums, len(args))
        xs = {n: _array(args[n], f"argument {n}") for n in numbers}
        rows = tuple(tuple(_second(product, of, xs, i, j) for j in numbers) for i in numbers)
        return rows[0][0] if isinstance(argnums, int) else rows

    return compute


def _replaced(args: Sequence[Any], numbers: Sequence[int], moving: Sequence[Any]) -> list[Any]:
    others = dict(zip(numbers, moving, strict=True))
    return [others.get(n, x) for n, x in enumerate(args)]


def _second(
    product: Callable[..., Any], of: Callable[..., Any], xs: dict[int, Any], i: int, j: int
) -> Any:
    """What the gradient by argument i changes with each element of argument j."""
    x, y = xs[i], xs[j]
    if i == j:
        return _stacked([product(of(i), (x,), (d,)) for d in _units(x)], x, x)
    still = np.zeros(x.shape, x.dtype)
    columns = _stacked([product(of(i, j), (x, y), (still, d)) for d in _units(y)], y, x)
    return np.moveaxis(columns, range(y.ndim), range(-y.ndim, 0)) if y.ndim else columns
