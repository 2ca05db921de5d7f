"""``taylor_test``: how fast the remainders of Taylor's formula vanish with the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import GradientCheckError
from ckad.testing.gradients import float_leaf, plain, random_like, size_of
from ckad.trace.source import follow
from ckad.transforms import hvp, value_and_grad

#: Remainders below so many units of eps * |fun| are rounding.
ROUNDING = 1e3
#: A rate is the slope over so many halvings: one alone may be far from it by chance.
SPAN = 2
NAMES = "fun(x + h v) - fun(x)", "- h <grad, v>", "- h^2/2 <v, H v>"


def taylor_test(
    fun: Callable[..., Any],
    args: Sequence[Any],
    direction: Sequence[Any] | None = None,
    *,
    order: int = 2,
    h: float = 1e-2,
    halvings: int = 14,
    tolerance: float = 0.1,
    seed: int = 0,
    verbose: bool = True,
    **options: Any,
) -> np.ndarray:
    """Check gradient and Hessian of a scalar ``fun`` by the remainders of Taylor's formula.

    With an exact gradient ``|fun(x + h v) - fun(x) - h <grad, v>|`` falls with h squared, with an
    exact Hessian the next remainder with h cubed; a derivative that is slightly wrong makes it fall
    more slowly as h gets small. Remainders that rounding makes up are left out.

    Args:
        fun: takes positional pytrees of floats, returns a float scalar; smooth around ``args``.
        args: the point, a sequence of the positional arguments.
        direction: like ``args``; a random one of the size of each argument by default.
        order: 1 looks at the gradient alone, 2 also at the product of the Hessian with ``v``.
        h: the first step, in units of ``direction``; ``halvings`` more follow, each half as long.
        tolerance: how far below 2 and 3 the rates may be.
        seed: of the random direction.
        verbose: whether to print the table of remainders and rates.
        options: ``memory=``, ``schedule=``, ``engine=`` as for `ckad.value_and_grad`.

    Returns:
        The rates of the remainders of order 0 to ``order``: 1, 2, 3 if all is well. ``inf`` where a
        remainder is nothing but rounding at every step, as those of a quadratic function are.

    Raises:
        GradientCheckError: a rate is too low; an AssertionError with the table.
        DifferentiationError: an argument holds something else than floats, or ``fun`` returns no
            scalar.

    P. E. Farrell, D. A. Ham, S. W. Funke, M. E. Rognes, SIAM Journal on Scientific Computing 35,
    2013, C369-C393, section 5.

    >>> import numpy as np, ckad
    >>> rates = ckad.testing.taylor_test(lambda x: np.sum(np.sin(x)), (np.ones(3),), verbose=False)
    >>> print(np.round(rates))
    [1. 2. 3.]
    """
    if order not in (1, 2):
        raise ValueError(f"order={order!r}; use 1 (gradient) or 2 (Hessian as well).")
    leaves, tree = trees.flatten(tuple(args))
    x = [float_leaf(leaf, k) for k, leaf in enumerate(leaves)]
    v = _direction(direction, x, tree, seed)
    steps = h * 0.5 ** np.arange(halvings + 1)
    terms = _terms(fun, trees.unflatten(tree, x), trees.unflatten(tree, v), order, options)
    values = _values(fun, x, v, tree, steps)
    remainders = _remainders(values - terms[0], steps, terms[1:])
    eps = max(float(np.finfo(a.dtype).eps) for a in x)
    noise = ROUNDING * eps * float(np.max(np.abs([*values, terms[0]]), initial=0.0))
    rates = np.array([_rate(r, noise) for r in remainders])
    table = _table(steps, remainders, rates)
    if verbose:
        print(table)
    low = [k for k in range(1, order + 1) if not rates[k] >= k + 1 - tolerance]
    if low:
        raise GradientCheckError(_verdict(low[0], rates, noise) + "\n" + table)
    return rates


def _direction(given: Any, x: Sequence[np.ndarray], tree: Any, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if given is None:
        return [size_of(a) * random_like(rng, a) for a in x]
    leaves, own = trees.flatten(tuple(given))
    shapes = [np.shape(leaf) for leaf in leaves]
    if own != tree or shapes != [a.shape for a in x]:
        raise ValueError("direction has other arrays or shapes than args; pass a tuple like it.")
    return [np.asarray(v, a.dtype) for v, a in zip(leaves, x, strict=True)]


def _terms(
    fun: Callable[..., Any], x: Any, v: Any, order: int, options: dict[str, Any]
) -> list[float]:
    """The value, <grad, v>, <v, H v>."""

    def of_one(xs: Any) -> Any:
        return follow(fun)(*xs)

    value, gradient = value_and_grad(of_one, **options)(x)
    terms = [float(value), _dot(gradient, v)]
    return [*terms, _dot(hvp(of_one, (x,), (v,), **options), v)] if order > 1 else terms


def _dot(x: Any, y: Any) -> float:
    pairs = zip(trees.flatten(x)[0], trees.flatten(y)[0], strict=True)
    return float(sum(np.sum(np.multiply(a, b, dtype=float)) for a, b in pairs))


def _values(
    fun: Callable[..., Any], x: Sequence[np.ndarray], v: Sequence[np.ndarray], tree: Any,
    steps: np.ndarray,
) -> np.ndarray:  # fmt: skip
    run = plain(fun, trees.unflatten(tree, list(x)))

    def at(h: float) -> float:
        moved = [(a + a.dtype.type(h) * b).astype(a.dtype) for a, b in zip(x, v, strict=True)]
        return float(run(*trees.unflatten(tree, moved)))

    return np.array([at(h) for h in steps.tolist()])


def _remainders(change: np.ndarray, steps: np.ndarray, terms: Sequence[float]) -> np.ndarray:
    found = [change]
    for k, term in enumerate(terms, 1):
        found.append(found[-1] - term * steps**k / k)  # 1/1, 1/2: of the first two orders
    return np.abs(found)


def _rate(remainders: np.ndarray, noise: float) -> float:
    """The slope at the smallest steps where a remainder is more than rounding."""
    if not np.all(np.isfinite(remainders)):
        return float("nan")
    below = np.flatnonzero(remainders <= noise)
    n = int(below[0]) if len(below) else len(remainders)
    if n < 2:
        return float("inf")
    span = min(SPAN, n - 1)
    return float(np.log2(remainders[n - 1 - span] / remainders[n - 1]) / span)


def _table(steps: np.ndarray, remainders: np.ndarray, rates: np.ndarray) -> str:
    names = NAMES[: len(remainders)]
    lines = ["         h  " + "".join(f"{name:>24}" for name in names)]
    for k, step in enumerate(steps):
        lines.append(f"{step:10.3e}  " + "".join(f"{r:24.6e}" for r in remainders[:, k]))
    return "\n".join([*lines, "rate        " + "".join(f"{r:24.3f}" for r in rates)])


def _verdict(k: int, rates: np.ndarray, noise: float) -> str:
    what = "gradient" if k == 1 else "Hessian"
    return (
        f"the remainder after the {what} falls with h^{rates[k]:.2f}, not h^{k + 1}: the {what} is "
        f"wrong, or fun is not smooth there (remainders below {noise:.1e} are taken for rounding)."
    )
