"""What libraries do with functions, written with NumPy and run from source as a user's code.

Of SciPy's iterations for an operator that is a function, each makes SciPy's steps. What it gives is
differentiated as the solution of the system, to the accuracy that the tolerances ask for: the steps
are no part of a derivative.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ckad.trace.arrays import solution

EPS = float(np.finfo(np.float64).eps)


def added(x: Any, y: Any) -> Any:
    """``x + y`` of objects whose operators are the user's."""
    return x + y


def replaced(old: Any, kept: Any, changes: Any) -> Any:
    """``dataclasses.replace``"""
    return type(old)(**{name: getattr(old, name) for name in kept}, **changes)


def from_iterator(iterable: Any, dtype: Any, count: Any = -1) -> Any:
    """``np.fromiter``"""
    items = list(iterable) if count < 0 else list(itertools.islice(iterable, count))
    if (n := len(items)) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {n} items.")
    return np.array(items, dtype=dtype)


def _begun(A: Any, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any) -> Any:
    """Right side and first solution, vectors that nobody else has; least residual, most steps."""
    n = A.shape[0]
    b = np.reshape(b, n) + 0.0
    x = np.zeros(n) if x0 is None else np.reshape(x0, n) + 0.0
    enough = np.maximum(atol, rtol * np.linalg.norm(b))
    return b, x, enough, 10 * n if maxiter is None else maxiter


def _solved(method: str, A: Any, b: Any, x: Any, info: Any, M: Any, bounds: Any) -> Any:
    """``x`` as the solution of the system."""
    preconditioner = None if M is None else (lambda v: M @ v)
    return solution(method, lambda v: A @ v, b, x, info, preconditioner, bounds)


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    """Conjugate gradients (Barrett et al. 1994, Templates, fig. 2.5)."""
    b, x, enough, steps = _begun(A, b, x0, rtol, atol, maxiter)
    r = b - A @ x
    p = np.zeros(len(b))
    before = 1.0
    info = steps
    for k in range(steps):
        if np.linalg.norm(r) <= enough:
            info = 0
            break
        z = r if M is None else M @ r
        rho = np.dot(r, z)
        p = z + (rho / before) * p if k > 0 else z + 0.0
        q = A @ p
        alpha = rho / np.dot(p, q)
        x = x + alpha * p
        r = r - alpha * q
        before = rho
        if callback is not None:
            callback(x)
    return _solved("cg", A, b, x, info, M, (rtol, atol, maxiter, None)), info


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    """Biconjugate gradients, stabilised (Barrett et al. 1994, Templates, fig. 2.10)."""
    b, x, enough, steps = _begun(A, b, x0, rtol, atol, maxiter)
    r = b - A @ x
    first = r + 0.0
    p = r + 0.0
    v = np.zeros(len(b))
    before = 1.0
    alpha = 1.0
    omega = 1.0
    info = steps
    for k in range(steps):
        if np.linalg.norm(r) <= enough:
            info = 0
            break
        rho = np.dot(first, r)
        if np.abs(rho) < EPS**2:
            info = -10
            break
        if k > 0:
            p = r + (rho / before) * (alpha / omega) * (p - omega * v)
        towards = p if M is None else M @ p
        v = A @ towards
        alpha = rho / np.dot(first, v)
        r = r - alpha * v
        x = x + alpha * towards
        if np.linalg.norm(r) <= enough:
            info = 0
            break
        s = r if M is None else M @ r
        t = A @ s
        omega = np.dot(t, r) / np.dot(t, t)
        x = x + omega * s
        r = r - omega * t
        before = rho
        if callback is not None:
            callback(x)
    return _solved("bicgstab", A, b, x, info, M, (rtol, atol, maxiter, None)), info


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    restart: Any = None,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
    callback_type: Any = None,
) -> Any:
    """Generalised minimal residuals, restarted (Saad and Schultz 1986), M from the left."""
    if callback is not None:
        raise NotImplementedError("gmres of an operator with callback=")
    b, x, enough, steps = _begun(A, b, x0, rtol, atol, maxiter)
    n, size = len(b), np.linalg.norm(b)
    inner = min(20 if restart is None else restart, n)
    shown = b if M is None else M @ b
    small = np.linalg.norm(shown) * np.minimum(1.0, enough / np.maximum(size, 1e-300))
    factor = 1.0
    r = b - A @ x
    left = np.linalg.norm(r)
    for _ in range(steps):
        if left <= enough:
            break
        z = r if M is None else M @ r
        v = np.zeros((inner + 1, n))
        h = np.zeros((inner, inner + 1))
        s = np.zeros(inner + 1)
        cosines, sines = np.zeros(inner), np.zeros(inner)
        s[0] = np.linalg.norm(z)
        v[0] = z / s[0]
        last = 0
        now = s[0]
        broken = False
        for k in range(inner):
            last = k
            broken = _extended(A, M, v, h, k)
            _rotated(h, s, cosines, sines, k)
            now = np.abs(s[k + 1])
            if now <= small or broken:
                break
        for j in range(inner - 1, -1, -1):
            if j <= last:
                y = s[j] / h[j, j]
                s[:j] -= y * h[j, :j]
                x = x + y * v[j]
        r = b - A @ x
        left = np.linalg.norm(r)
        if broken:
            break
        factor = np.maximum(EPS, 0.25 * factor) if now <= small else np.minimum(1.0, 1.5 * factor)
        small = now * np.minimum(factor, enough / np.maximum(left, 1e-300))
    info = 0 if left <= enough else steps
    return _solved("gmres", A, b, x, info, M, (rtol, atol, maxiter, restart)), info


def _extended(A: Any, M: Any, v: Any, h: Any, k: int) -> Any:
    """Row k of the Hessenberg matrix, and the next vector of the basis; whether there is none."""
    w = A @ v[k]
    if M is not None:
        w = M @ w
    whole = np.linalg.norm(w)
    for j in range(k + 1):
        h[k, j] = np.dot(v[j], w)
        w = w - h[k, j] * v[j]
    rest = np.linalg.norm(w)
    broken = rest <= EPS * whole
    if broken:
        h[k, k + 1] = 0.0
    else:
        h[k, k + 1] = rest
        v[k + 1] = w / rest
    return broken


def _rotated(h: Any, s: Any, cosines: Any, sines: Any, k: int) -> None:
    """Row k made triangular by Givens rotations, and the right side with it."""
    for j in range(k):
        one, other = h[k, j], h[k, j + 1]
        h[k, j] = cosines[j] * one + sines[j] * other
        h[k, j + 1] = cosines[j] * other - sines[j] * one
    length = np.sqrt(h[k, k] ** 2 + h[k, k + 1] ** 2)
    cosines[k] = h[k, k] / length
    sines[k] = h[k, k + 1] / length
    h[k, k] = length
    s[k + 1] = -sines[k] * s[k]
    s[k] = cosines[k] * s[k]


def listed(items: Any) -> Any:
    """A list of the elements of an array, however many there are."""
    found: list[Any] = []
    for one in items:
        found.append(one)
    return found


def repeated(items: Any, n: Any) -> Any:
    """``items * n`` of a list."""
    found: list[Any] = []
    for _ in range(n):
        for one in items:
            found.append(one)
    return found


# --- functions of elements and of rows -----------------------------------------------------------


def vectorized(function: Any, otypes: str, excluded: Any, args: Any, options: Any) -> Any:
    """What ``np.vectorize(function)`` gives, as a loop over the elements."""
    whole = [k in excluded for k in range(len(args))]
    varied = [x for k, x in enumerate(args) if k not in excluded]
    shape = np.broadcast_shapes(*[np.shape(x) for x in varied])
    flat = [
        x if one else np.broadcast_to(x, shape).ravel() for one, x in zip(whole, args, strict=True)
    ]
    several = len(otypes) > 1
    if not otypes:  # NumPy asks the first element for the kind of all
        first = function(
            *[x if one else x[0] for one, x in zip(whole, flat, strict=True)], **options
        )
        several = isinstance(first, tuple)
    columns: list[list[Any]] = [[] for _ in (otypes if otypes else first if several else (0,))]
    for k in range(int(np.prod(shape))):
        found = function(
            *[x if one else x[k] for one, x in zip(whole, flat, strict=True)], **options
        )
        for column, x in zip(columns, found if several else (found,), strict=True):
            column.append(x)
    results = [np.array(x).reshape(shape) for x in columns]
    results = [x.astype(t) for x, t in zip(results, otypes, strict=True)] if otypes else results
    return tuple(results) if several else results[0]


def elementwise(function: Any, args: Any) -> Any:
    """What a function of numbers gives for arrays, element by element: ``numba.vectorize``."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    if shape == ():
        return function(*args)
    flat = [np.broadcast_to(x, shape).ravel() for x in args]
    found = []
    for k in range(int(np.prod(shape))):
        found.append(function(*[x[k] for x in flat]))
    return np.array(found).reshape(shape)


def generalized(
    function: Any, dims: Any, n: int, dtypes: Any, arrayed: Any, args: Any, outs: Any
) -> Any:
    """What a function that writes into its last arguments gives: ``numba.guvectorize``.

    ``dims`` names the axes of each argument of one call; the first ``n`` are read.
    """
    inputs = [np.asarray(x).astype(t) for x, t in zip(args, dtypes[:n], strict=True)]
    kept = [x.ndim - len(own) for x, own in zip(inputs, dims, strict=False)]
    sizes: dict[str, int] = {}
    for x, own, k in zip(inputs, dims, kept, strict=False):
        sizes.update(zip(own, x.shape[k:], strict=True))
    loops = np.broadcast_shapes(*[x.shape[:k] for x, k in zip(inputs, kept, strict=True)])
    count = int(np.prod(loops))
    cores = [tuple(sizes[d] for d in own) for own in dims]
    rows = [x or k >= n for k, x in enumerate(arrayed)]  # what one call gets as an array of one
    cores = [core or ((1,) if row else ()) for core, row in zip(cores, rows, strict=True)]
    flat = []
    for x, core, k in zip(inputs, cores, kept, strict=False):
        whole = np.broadcast_to(np.reshape(x, (*x.shape[:k], *core)), (*loops, *core))
        flat.append(np.reshape(whole, (count, *core)))
    if outs:
        found = [np.reshape(np.array(x), (count, *c)) for x, c in zip(outs, cores[n:], strict=True)]
    else:
        found = [np.empty((count, *c), t) for c, t in zip(cores[n:], dtypes[n:], strict=True)]
    for k in range(count):
        function(*[x[k] for x in flat], *[x[k] for x in found])
    shapes = [(*loops, *[sizes[d] for d in own]) for own in dims[n:]]
    results = [np.reshape(x, shape) for x, shape in zip(found, shapes, strict=True)]
    for out, x in zip(outs, results, strict=False):
        out[...] = x
    results = list(outs) if outs else results
    return tuple(results) if len(results) > 1 else results[0]


def along_axis(function: Any, axis: int, x: Any, args: Any, options: Any) -> Any:
    """``np.apply_along_axis(function, axis, x, *args, **options)``, as a loop."""
    axis = axis % np.ndim(x)
    moved = np.moveaxis(x, axis, -1)
    count = int(np.prod(moved.shape[:-1]))
    if not count:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows, found = np.reshape(moved, (count, moved.shape[-1])), []
    for k in range(rows.shape[0]):
        found.append(function(rows[k], *args, **options))
    together = np.array(found)
    own, n = together.shape[1:], len(moved.shape) - 1
    together = np.reshape(together, (*moved.shape[:-1], *own))
    places = range(len(own))
    return np.moveaxis(together, [n + k for k in places], [axis + k for k in places])


def _of_frozen(name: str) -> Any:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self.dist, name)(*args, *self.args, **options, **self.kwds)

    return method


class Frozen:
    """A distribution with its parameters: what ``scipy.stats.norm(mean, deviation)`` gives."""

    def __init__(self, dist: Any, args: Any, kwds: Any) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    pdf, logpdf = _of_frozen("pdf"), _of_frozen("logpdf")
    pmf, logpmf = _of_frozen("pmf"), _of_frozen("logpmf")
    cdf, logcdf = _of_frozen("cdf"), _of_frozen("logcdf")
    sf, logsf = _of_frozen("sf"), _of_frozen("logsf")
    ppf, isf = _of_frozen("ppf"), _of_frozen("isf")
    mean, var, std = _of_frozen("mean"), _of_frozen("var"), _of_frozen("std")

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        return self.dist.rvs(*self.args, **self.kwds, size=size, random_state=random_state)
