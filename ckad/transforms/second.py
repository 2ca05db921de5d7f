"""Derivatives made of several sweeps: ``jacobian`` in both modes, ``hvp``, ``hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import DifferentiationError
from ckad.loops.asked import Choice
from ckad.loops.driver import Amount, Options
from ckad.loops.progress import Shown
from ckad.passes import pipeline
from ckad.passes.pipeline import Pipeline, Positions
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms.arguments.argnums import plain_numbers, positions
from ckad.transforms.attempts import met_by_handlers
from ckad.transforms.call import Call
from ckad.transforms.dense.blocks import hessian_blocks, jacobian_blocks
from ckad.transforms.forward import match_tangents, moving_inputs
from ckad.transforms.gradients import Gradient, GradientAlone
from ckad.transforms.lanes import in_lanes
from ckad.transforms.layout import layout_of
from ckad.transforms.reuse import Titled
from ckad.transforms.sparse import given_pattern, sparse_hessian, sparse_jacobian


def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    mode: str = "auto",
    *,
    sparse: bool = False,
    sparsity: Any = None,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of ``fun`` by one or several arguments.

    Of an array by an array it has the shape ``out.shape + argument.shape``. Where ``fun`` returns a
    pytree, each of its arrays is replaced by the Jacobian of that array; where the argument is one,
    or there are several ``argnums``, that is a pytree like it, or a tuple of these. ``mode`` is
    ``"fwd"`` (one tangent per input), ``"rev"`` (one cotangent per output), or ``"auto"`` (the
    fewer). Several of them go through one sweep side by side, whose steps run forward once for all.
    ``memory`` and ``schedule`` are those of `value_and_grad`, for each sweep.

    With ``sparse=True`` the result is a ``scipy.sparse.csr_array`` of shape
    ``(out.size, argument.size)``, both in C order. Its pattern is read off the recorded program
    (see `sparsity`), or is the argument ``sparsity``: a matrix, dense or of ``scipy.sparse``, that
    is not 0 where the Jacobian may be not. Columns that meet in no row share one tangent, or rows
    one cotangent: a tridiagonal Jacobian takes 3 of them, of any length. ``"auto"`` takes the
    fewer. Pattern and colours are found once per program, and kept.

    Raises:
        DifferentiationError: an argument or a result is complex, a sparse Jacobian is asked for of
            several arrays, ``sparsity`` has another shape, or the program says of too many elements
            that they may differ from 0.

    >>> import numpy as np, ckad
    >>> print(ckad.jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0])))
    [[3. 0. 1.]
     [0. 3. 2.]]
    >>> found = ckad.jacobian(lambda x: x[1:] - x[:-1], sparse=True)(np.ones(1000))
    >>> found.shape, found.nnz
    ((999, 1000), 1998)
    """
    if mode not in ("auto", "fwd", "rev"):
        raise DifferentiationError.here(f'mode={mode!r} is not known; use "auto", "fwd" or "rev".')

    options = Options(memory, schedule, engine, threads=threads)
    argnums = plain_numbers(argnums)
    pattern = None if sparsity is None else given_pattern(sparsity)

    @trimmed
    @met_by_handlers
    def compute(*args: Any, **kwargs: Any) -> Any:
        if sparse or pattern is not None:
            at = _position(argnums, len(args))
            return sparse_jacobian(fun, args, kwargs, at, mode, pattern, options)

        numbers = positions(argnums, len(args))
        single = isinstance(argnums, int)
        by = _gradient_by(fun, args, numbers[0]) if single else None
        if isinstance(fun, GradientAlone) and by is not None:
            at = numbers[0]
            given = [
                np.asarray(x) if n in (by, at) and not isinstance(x, Tracer) else x
                for n, x in enumerate(args)
            ]
            return _rows(fun.fun, given, kwargs, fun.told(options).options, by, at)

        call = Call(fun, _as_arrays(args, numbers), kwargs, options)
        call.assured()
        return jacobian_blocks(call, numbers, single, mode)

    about = {"sparse": sparse, "sparsity": sparsity, "memory": memory, "schedule": schedule}
    again = partial(jacobian, fun, argnums, mode, engine=engine, threads=threads, **about)
    return Titled(compute, "Jacobian", fun, argnums, again)


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """`jacobian` by tangents of the elements of the argument.

    >>> import numpy as np, ckad
    >>> print(ckad.jacfwd(lambda t: t * np.array([1.0, 2.0]))(3.0))
    [1. 2.]
    """
    return jacobian(fun, argnums, "fwd", engine=engine, threads=threads)


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """`jacobian` by cotangents of the elements of the result, each sweep within the budget.

    >>> import numpy as np, ckad
    >>> print(ckad.jacrev(lambda x: x[0] * x[1])(np.array([3.0, 4.0])))
    [4. 3.]
    """
    options = {"memory": memory, "schedule": schedule, "engine": engine, "threads": threads}
    return jacobian(fun, argnums, "rev", **options)  # type: ignore[arg-type]


def _rows(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: Options,
    by: int, at: int,
) -> Any:  # fmt: skip
    """The change with argument ``at`` of each element of the gradient by argument ``by``. It need
    not be symmetric: a user's rules may be the derivative of no function."""
    call, _, layout = Gradient(fun, by, False, options).prepare(args, kwargs)
    call.assured()
    wrt = layout_of(call, (at,), True).wrt
    about = wrt, layout.wrt, len(call.tape.inputs)
    return _together(call, pipeline.hvps, about, _units(args[by]), args[at])


def _gradient_by(fun: Any, args: Sequence[Any], at: int) -> int | None:
    """By which argument ``fun`` is a gradient whose change with argument ``at`` is a Hessian: it is
    derived as that, in one reverse sweep after one forward with tangents."""
    if not isinstance(fun, GradientAlone) or fun.has_aux or not isinstance(fun.argnums, int):
        return None
    if not -len(args) <= fun.argnums < len(args):
        return None
    by = fun.argnums % len(args)
    real = all(
        isinstance(x, (Tracer, np.ndarray, np.floating, float)) and not trees.is_complex(x)
        and not trees.is_record(x)
        for x in (args[by], args[at])
    )  # fmt: skip
    return by if real else None


def _position(argnums: Any, n_args: int) -> int:
    if not isinstance(argnums, int) or not -n_args <= argnums < n_args:
        raise DifferentiationError.here(
            f"argnums={argnums!r} names no argument of this call, which has {n_args}. "
            "Pass one int, and the argument by position."
        )
    return argnums % n_args


def _as_arrays(args: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """The arguments, those of ``numbers`` that are single numbers as arrays."""
    return [
        np.asarray(x) if n in numbers and isinstance(x, (np.number, float, int)) else x
        for n, x in enumerate(args)
    ]


def _units(x: Any) -> np.ndarray:
    """A one at each element, along a first axis."""
    return np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)


def _together(
    call: Call,
    product: Callable[..., Pipeline],
    about: Sequence[Positions | int],
    units: np.ndarray,
    of: Any,
) -> Any:
    """What ``product`` gives for each of the units: an array of their shape and that of ``of``."""
    shape = *units.shape[1:], *of.shape
    if not units.size:
        return np.zeros(shape)
    (found,) = in_lanes(call, product, about, [units])
    return np.reshape(found, shape)


@trimmed
@met_by_handlers
def hvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
    progress: Shown = False,
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
    call.assured()
    wrt, moving = layout.wrt, moving_inputs(call)
    directions = match_tangents(call, tuple(tangents), moving)
    products = call.run(call.made(pipeline.hvp, wrt, tuple(moving)), directions)
    return layout.structured(products)


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparse: bool = False,
    sparsity: Any = None,
    memory: Amount = None,
    schedule: Choice = "auto",
    engine: str = "auto",
    threads: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Hessian of a scalar ``fun`` by one or several arguments.

    It has the shape ``argument.shape + argument.shape``. By several ``argnums`` it is a tuple of
    tuples: ``h[i][j]`` has the shape of argument i and then that of j. By a pytree it has the
    structure of the gradient, each array replaced by what that array's Jacobian is. One product
    (see `hvp`) per element of the arguments, several of them side by side; the keyword arguments
    are those of `hvp`.

    ``sparse=True`` and ``sparsity`` are as for `jacobian`: the result is a ``csr_array``, by one
    argument, from one product per colour. Of two mirrored elements the one that can be told apart
    is taken for both.

    >>> import numpy as np, ckad
    >>> print(ckad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0])))
    [[4. 2.]
     [2. 0.]]
    >>> found = ckad.hessian(lambda x: np.sum((x[1:] - x[:-1]) ** 4), sparse=True)(np.ones(1000))
    >>> found.shape, found.nnz
    ((1000, 1000), 2998)
    """
    options = Options(memory, schedule, engine, threads=threads)
    argnums = plain_numbers(argnums)
    pattern = None if sparsity is None else given_pattern(sparsity)

    @trimmed
    @met_by_handlers
    def compute(*args: Any, **kwargs: Any) -> Any:
        if sparse or pattern is not None:
            at = _position(argnums, len(args))
            return sparse_hessian(fun, args, kwargs, at, pattern, options)

        numbers = positions(argnums, len(args))
        given = _as_arrays(args, numbers)
        return hessian_blocks(Gradient(fun, argnums, False, options), given, kwargs)

    about = {"sparse": sparse, "sparsity": sparsity, "memory": memory, "schedule": schedule}
    again = partial(hessian, fun, argnums, engine=engine, threads=threads, **about)
    return Titled(compute, "Hessian", fun, argnums, again)
