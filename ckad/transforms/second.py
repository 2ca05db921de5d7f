"""Derivatives made of several sweeps: ``jacobian``, ``hvp``, ``hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.transforms.forward import jvp
from ckad.transforms.gradients import grad, vjp


def jacobian(fun: Callable[..., Any], argnums: int = 0, mode: str = "auto") -> Callable[..., Any]:
    """Make a function that computes the Jacobian of ``fun`` by one array argument.

    ``fun`` returns one array. The result has the shape ``out.shape + argument.shape``. ``mode`` is
    ``"fwd"`` (one sweep per input), ``"rev"`` (one per output), or ``"auto"`` (the fewer).

    >>> import numpy as np, ckad
    >>> print(ckad.jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0])))
    [[3. 0. 1.]
     [0. 3. 2.]]
    """
    if mode not in ("auto", "fwd", "rev"):
        raise ValueError(f'mode={mode!r} is not known; use "auto", "fwd" or "rev".')

    def compute(*args: Any) -> np.ndarray:
        def partial_of(x: Any) -> Any:
            return fun(*args[:argnums], x, *args[argnums + 1 :])

        x = np.asarray(args[argnums], dtype=float) if np.isscalar(args[argnums]) else args[argnums]
        out, pullback = vjp(partial_of, x)
        out = np.asarray(out)
        reverse = mode == "rev" or (mode == "auto" and out.size < x.size)
        if reverse:
            rows = [pullback(d)[0] for d in _units(out)]
            return np.array(rows).reshape(*out.shape, *x.shape)
        columns = [jvp(partial_of, (x,), (d,))[1] for d in _units(x)]
        return np.moveaxis(
            np.array(columns).reshape(*x.shape, *out.shape), range(x.ndim), range(-x.ndim, 0)
        )

    return compute


def _units(x: np.ndarray) -> list[np.ndarray]:
    return list(np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape))


def hvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of a scalar ``fun`` by its first argument with a direction.

    Forward over reverse: the tangent of the gradient (Griewank & Walther 2008, section 5.4).

    >>> import numpy as np, ckad
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> print(ckad.hvp(lambda x: np.sum(x**3), (x,), (v,)))
    [6. 0.]
    """
    return jvp(grad(fun), primals, tangents)[1]


def hessian(fun: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Make a function that computes the Hessian of a scalar ``fun`` by its first argument.

    >>> import numpy as np, ckad
    >>> print(ckad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0])))
    [[4. 2.]
     [2. 0.]]
    """

    def compute(x: Any, *args: Any) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        rows = [hvp(lambda x: fun(x, *args), (x,), (d,)) for d in _units(x)]
        return np.array(rows).reshape(*x.shape, *x.shape)

    return compute
