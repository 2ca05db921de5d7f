"""``check_grads``: derivatives against differences, and in both modes against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, DifferentiationError, GradientCheckError
from ckad.testing.differences import Leaves, is_float, largest, norm, ridders
from ckad.trace.given import given, whole
from ckad.trace.source import follow
from ckad.transforms import grad, jit, jvp, vjp
from ckad.transforms.layout import conjugated

#: Rounding errors of a difference quotient, in units of eps * |fun| / step.
ROUNDING = 64
#: Elements that are looked at one by one when a gradient is found wrong.
LOOKED_AT = 64
#: Options that only a reverse sweep has.
REVERSE_ONLY = ("memory", "schedule")

Function = Callable[..., Any]


class Bounds(NamedTuple):
    """``rtol`` for differences, ``dot`` for the dot-product identity and symmetry."""

    rtol: float
    dot: float
    eps: float


F64 = Bounds(1e-6, 1e-12, float(np.finfo(np.float64).eps))
F32 = Bounds(5e-3, 1e-4, float(np.finfo(np.float32).eps))


def check_grads(
    fun: Callable[..., Any],
    args: Sequence[Any],
    modes: Sequence[str] = ("fwd", "rev"),
    order: int = 1,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    **options: Any,
) -> None:
    """Check the derivatives that ckad computes for ``fun`` at ``args``, in a random direction.

    Args:
        fun: takes positional pytrees of floats, returns a pytree of floats.
        args: the point, a sequence of the positional arguments; it is not changed.
        modes: ``"fwd"`` checks `ckad.jvp` against differences; ``"rev"`` checks `ckad.vjp` against
            `ckad.jvp` by the dot-product identity <Jv, w> = <v, J'w>, and against differences.
        order: 2 checks the derivatives of the derivatives too, and that the Hessian of <w, fun>
            is symmetric; 3 goes on in the same way.
        rtol: bound on ``|jvp - differences|`` relative to the largest element of the result's
            leaf: 1e-6, or 5e-3 if anything is float32.
        atol: absolute bound, added to that: 0 by default. The rounding error of the differences,
            64 eps ``|fun|`` / step, is always added.
        seed: of the random directions.
        options: ``memory=``, ``schedule=``, ``engine=``, ``check_finite=`` as for `ckad.vjp`.

    The identity and the symmetry have to hold to 1e-12 of ``|Jv| |w| + |v| |J'w|`` (1e-4 if
    anything is float32). The differences call ``fun`` on plain arrays, so they are independent of
    how ckad records it (`ckad.jit` of it where it indexes a plain array by a loop's index):
    central, extrapolated to step zero, with the step that gives the least error estimate (Ridders,
    Advances in Engineering Software 4, 1982, pages 75-76). ``fun`` has to be smooth around
    ``args``; at a kink the differences do not converge.

    Raises:
        GradientCheckError: a derivative is out of bounds; an AssertionError with the numbers and
            the worst element.
        DifferentiationError: an argument holds something else than floats, or no result is float.

    >>> import numpy as np, ckad
    >>> ckad.testing.check_grads(lambda x, y: np.sin(x) * y, (np.ones(3), 2.0), order=2)
    """
    _check_options(args, modes, order)
    check = _Check(fun, tuple(args), np.random.default_rng(seed), options)
    bounds = check.bounds._replace(**({} if rtol is None else {"rtol": rtol}))
    check.compare_values(bounds, atol or 0.0)
    if "fwd" in modes:
        check.forward(bounds, atol or 0.0)
    if "rev" in modes:
        check.reverse(bounds, atol or 0.0)
    if order > 1:
        if "rev" in modes:
            check.symmetry(bounds)
        for derived in check.derivatives(modes):
            check_grads(
                derived, args, modes, order - 1, rtol=rtol, atol=atol, seed=seed + 1, **options
            )


def _check_options(args: Any, modes: Sequence[str], order: int) -> None:
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args={args!r}; pass the arguments of fun in a tuple, (x,) for one.")
    if isinstance(modes, str) or not modes or not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f'modes={modes!r} is not known; use ("fwd", "rev") or one of them.')
    if order < 1:
        raise ValueError(f"order={order}; derivatives have an order of 1 or more.")


class _Check:
    """A function at a point, with the random directions ``v`` (arguments) and ``w`` (results)."""

    def __init__(
        self,
        fun: Function,
        args: tuple[Any, ...],
        rng: np.random.Generator,
        options: dict[str, Any],
    ) -> None:
        self.fun, self.options, self.rng = fun, options, rng
        self.forward_options = {k: o for k, o in options.items() if k not in REVERSE_ONLY}
        leaves, self.tree = trees.flatten(given(args))
        self.x = [float_leaf(leaf, k) for k, leaf in enumerate(leaves)]
        self.v = self._direction()
        self.plain = plain(fun, self.tree_of(self.x))
        self.out = self.at(0.0)
        if not any(is_float(y) for y in self.out):
            raise DifferentiationError(
                f"{self.name} returns no floats, so there is no derivative to check."
            )
        self.w = [random_like(rng, y) if is_float(y) else np.zeros_like(y) for y in self.out]
        self.differences = ridders(self.at)
        self.tangent = self._jvp(self.v)

    @property
    def name(self) -> str:
        return getattr(self.fun, "__name__", type(self.fun).__name__)

    @property
    def bounds(self) -> Bounds:
        return F32 if any(x.dtype == np.float32 for x in (*self.x, *self.out)) else F64

    def _direction(self) -> Leaves:
        """A random direction, of the size of the arguments."""
        return [(random_like(self.rng, x) * size_of(x)).astype(x.dtype) for x in self.x]

    def tree_of(self, leaves: Leaves) -> Any:
        """Arguments with these leaves, in fresh arrays that ``fun`` may write into."""
        fresh = [x.copy()[()] if not x.ndim else x.copy() for x in leaves]
        return whole(trees.unflatten(self.tree, fresh))

    def at(self, h: float) -> Leaves:
        """The results of ``fun``, run by NumPy, at x + h v."""
        moved = [(x + h * v).astype(x.dtype) for x, v in zip(self.x, self.v, strict=True)]
        with np.errstate(all="ignore"):
            out = self.plain(*self.tree_of(moved))
        self.out_tree = trees.flatten(out)[1]
        return self._leaves(out)

    def _jvp(self, v: Leaves) -> Leaves:
        out, tangent = jvp(self.fun, self.tree_of(self.x), self.tree_of(v), **self.forward_options)
        self.primal = self._leaves(out)
        return self._leaves(tangent)

    def _vjp(self) -> Leaves:
        _, pullback = vjp(self.fun, *self.tree_of(self.x), **self.options)
        w = conjugated(self.w, trees.imaginary(self.out_tree))
        return self._transposed(pullback(trees.unflatten(self.out_tree, w)))

    def _transposed(self, gradient: Any) -> Leaves:
        """The leaves of a gradient, by real and imaginary parts as if they were arguments."""
        return conjugated(self._leaves(gradient), trees.imaginary(self.tree))

    def _leaves(self, tree: Any) -> Leaves:
        return [np.asarray(x) for x in trees.flatten(tree)[0]]

    # --- the checks ----------------------------------------------------------------------------

    def compare_values(self, bounds: Bounds, atol: float) -> None:
        for k, (got, plain) in enumerate(zip(self.primal, self.out, strict=True)):
            bound = np.full(plain.shape, bounds.rtol * largest(plain) + atol)
            _compare(f"result {k} of {self.name}", got, "NumPy gives", plain, bound)

    def forward(self, bounds: Bounds, atol: float) -> None:
        for k, (got, plain) in enumerate(zip(self.tangent, self.differences.value, strict=True)):
            if is_float(self.out[k]):
                bound = np.full(plain.shape, self._bound(k, bounds, atol))
                what = f"jvp of {self.name}, result {k}"
                _compare(what, got, "differences give", plain, bound, self._hint())

    def reverse(self, bounds: Bounds, atol: float) -> None:
        gradient = self._vjp()
        across, back = _dot(self.tangent, self.w), _dot(self.v, gradient)
        scale = norm(self.tangent) * norm(self.w) + norm(self.v) * norm(gradient)
        if not abs(across - back) <= bounds.dot * scale:
            raise GradientCheckError(
                f"vjp of {self.name} disagrees with its jvp: <Jv, w> = {across!r}, "
                f"<v, J'w> = {back!r}, which differ by {abs(across - back) / scale:.1e} of their "
                f"scale (bound {bounds.dot:.1e}). {self._worst_of(gradient)}"
            )
        plain = _dot(self.differences.value, self.w)
        bound = sum(self._bound(k, bounds, atol) * np.abs(w).sum() for k, w in enumerate(self.w))
        what = f"<v, vjp of {self.name}>"
        _compare(
            what, np.array(back), "differences give", np.array(plain), np.array(bound), self._hint()
        )

    def symmetry(self, bounds: Bounds) -> None:
        """<u, H v> = <v, H u> for the Hessian H of <w, fun>."""
        u = self._direction()
        hv, hu = self._hessian_times(self.v), self._hessian_times(u)
        one, other = _dot(u, hv), _dot(self.v, hu)
        scale = norm(u) * norm(hv) + norm(self.v) * norm(hu)
        if not abs(one - other) <= bounds.dot * scale:
            raise GradientCheckError(
                f"the Hessian of {self.name} is not symmetric: <u, Hv> = {one!r}, <v, Hu> = "
                f"{other!r}, which differ by {abs(one - other) / scale:.1e} of their scale "
                f"(bound {bounds.dot:.1e})."
            )

    def _hessian_times(self, v: Leaves) -> Leaves:
        primals, tangents = self.tree_of(self.x), self.tree_of(v)
        return self._transposed(jvp(self._pulled(), primals, tangents, **self.forward_options)[1])

    def derivatives(self, modes: Sequence[str]) -> Iterator[Function]:
        """First derivatives as functions of the arguments, to be checked in their turn."""
        if "fwd" in modes:
            yield _named(
                lambda *args: jvp(self.fun, args, self.tree_of(self.v))[1],
                f"the jvp of {self.name}",
            )
        if "rev" in modes:
            yield self._pulled()

    def _pulled(self) -> Function:
        """x -> J(x)'w."""

        def weighted(*args: Any) -> Any:
            leaves = trees.flatten(follow(self.fun)(*args))[0]
            return sum(np.sum(y * w) for y, w in zip(leaves, self.w, strict=True) if is_float(w))

        argnums = tuple(range(self.tree.num_children))
        return _named(grad(weighted, argnums, **self.options), f"the gradient of <w, {self.name}>")

    # --- what the messages say -----------------------------------------------------------------

    def _bound(self, k: int, bounds: Bounds, atol: float) -> float:
        noise = ROUNDING * bounds.eps * largest(self.out[k]) / self.differences.step
        return float(bounds.rtol * largest(self.differences.value[k]) + noise + atol)

    def _hint(self) -> str:
        return (
            f"The differences, with steps from {self.differences.step:.1e}, agree with each other "
            f"to {self.differences.error:.1e}; where that is not small, or {self.name} has a kink, "
            "there is nothing to compare with: move the point."
        )

    def _worst_of(self, gradient: Leaves) -> str:
        """The element of the gradient that is furthest from <w, J e>, among the largest ones."""
        worst, text = -1.0, ""
        for k, at in self._largest_places(gradient):
            unit = [np.zeros_like(x) for x in self.x]
            unit[k][at] = 1.0
            right, got = _dot(self._jvp(unit), self.w), float(gradient[k][at])
            if not abs(right - got) <= worst:
                worst = abs(right - got)
                text = (
                    f"Worst element: {_place(at)} of argument leaf {k}, where vjp gives {got!r} "
                    f"and jvp {right!r}."
                )
        return text

    def _largest_places(self, gradient: Leaves) -> list[tuple[int, tuple[int, ...]]]:
        parts = [np.abs(g * v) for g, v in zip(gradient, self.v, strict=True)]
        places = [(k, at) for k, part in enumerate(parts) for at in np.ndindex(part.shape)]
        size = {p: np.nan_to_num(parts[p[0]][p[1]], nan=np.inf) for p in places}
        return sorted(places, key=lambda p: -size[p])[:LOOKED_AT]


# --- differences -------------------------------------------------------------------------------


def _compare(
    what: str, got: np.ndarray, who: str, right: np.ndarray, bound: np.ndarray, hint: str = ""
) -> None:
    """Every element of ``got`` within ``bound`` of ``right``; NaNs and infinities alike."""
    if got.shape != right.shape:
        raise GradientCheckError(f"{what} has shape {got.shape}; {who} {right.shape}.")
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(float) - right.astype(float))
    alike = (got == right) | (np.isnan(got) & np.isnan(right)) | (off <= bound)
    if np.all(alike):
        return
    excess = np.where(alike, -1.0, np.nan_to_num(off, nan=np.inf))
    at = np.unravel_index(np.argmax(excess), got.shape)
    raise GradientCheckError(
        f"{what} is {got[at].item()!r} at {_place(at)}; {who} {right[at].item()!r}, "
        f"{off[at]:.1e} off (bound {bound[at]:.1e}). {np.sum(~alike)} of {got.size} elements are "
        f"out of bounds. {hint}".rstrip()
    )


def float_leaf(leaf: Any, k: int) -> np.ndarray:
    if not is_float(np.asarray(leaf)):
        raise DifferentiationError(
            f"leaf {k} of the arguments holds {np.asarray(leaf).dtype}; only floats are checked. "
            "Bind the others first: lambda x: fun(x, n), (x,)."
        )
    return np.asarray(leaf)


def plain(fun: Function, args: tuple[Any, ...]) -> Function:
    """``fun`` for plain arrays; recorded where only recorded arrays take a loop's index."""
    try:
        with np.errstate(all="ignore"):
            fun(*args)
    except ConcreteValueError:
        return jit(fun)
    return fun


def random_like(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return np.asarray(rng.standard_normal(x.shape)).astype(x.dtype)


def size_of(x: np.ndarray) -> float:
    """The root mean square of an argument, 1 if it is zero: the scale of steps."""
    size = float(np.sqrt(np.mean(np.square(x, dtype=float)))) if x.size else 1.0
    return size if np.isfinite(size) and size > 0 else 1.0


def _dot(xs: Leaves, ys: Leaves) -> float:
    return float(sum(np.sum(x.astype(float) * y) for x, y in zip(xs, ys, strict=True)))


def _place(at: tuple[Any, ...]) -> str:
    return f"[{', '.join(str(int(k)) for k in at)}]" if at else "the scalar"


def _named(function: Function, name: str) -> Function:
    def call(*args: Any) -> Any:
        return function(*args)

    call.__name__ = name
    return call
