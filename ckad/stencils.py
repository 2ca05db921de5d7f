"""``stencil``: a formula of an element's neighbours, applied to whole arrays as slices of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ckad.place import at_place
from ckad.trace.source.outside.purity import pure
from ckad.trace.source.outside.python import run_by_python
from ckad.trace.source.outside.watch import watch

#: SciPy's names (``scipy.ndimage``) of what lies beyond an edge, and those of ``np.pad``.
PADDED: dict[str, Any] = {"nearest": "edge", "reflect": "symmetric", "mirror": "reflect"}
MODES = ("constant", "wrap", *PADDED)
Offsets = tuple[int, ...]
Bounds = Sequence[tuple[int, int]]


@overload
def stencil(
    kernel: Callable[..., Any],
    mode: str = "constant",
    *,
    cval: float = 0.0,
    neighborhood: Bounds | None = None,
    standard_indexing: Sequence[str] = (),
) -> Stencil: ...
@overload
def stencil(
    kernel: str | None = None,
    mode: str = "constant",
    *,
    cval: float = 0.0,
    neighborhood: Bounds | None = None,
    standard_indexing: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Stencil]: ...
def stencil(
    kernel: Any = None,
    mode: str = "constant",
    *,
    cval: float = 0.0,
    neighborhood: Bounds | None = None,
    standard_indexing: Sequence[str] = (),
) -> Any:
    """Make a function on arrays of a formula in relative indices, as ``numba.stencil`` does.

    Args:
        kernel: takes arrays and numbers; ``a[1, -1]`` is the neighbour one row below and one
            column to the left, with an integer for each axis. It is run once, on whole slices:
            ``np.where`` chooses, not ``if``. A mode may stand here in a decorator with arguments.
        mode: what lies beyond the edges. "constant": nothing, and the result is ``cval`` wherever
            the formula would read there (Numba's mode). "wrap": the other side. As in
            ``scipy.ndimage`` "nearest" is the last element (a a | a b c | c c), "reflect" the array
            mirrored at its edge (b a | a b c | c b), "mirror" at the middle of its last element
            (c b | a b c | b a).
        cval: of mode "constant".
        neighborhood: the least and the greatest offset of each axis. By default they are found by
            running the kernel on ones.
        standard_indexing: names of arguments that are indexed from 0, as usual.

    Returns:
        A function of as many arguments; all arrays that are indexed by offsets have one shape,
        which is that of the result. Its ``out=`` is an array to write into.

    Raises:
        ValueError: shapes, offsets or the mode do not fit.

    It makes the rows that slices written by hand make, and has their speed.

    >>> import numpy as np, ckad
    >>> @ckad.stencil("wrap")
    ... def smooth(u, a): return u[0] + a * (u[-1] - 2 * u[0] + u[1])
    >>> print(smooth(np.array([0.0, 4.0, 0.0, 0.0]), 0.25))
    [1. 2. 1. 0.]
    >>> print(ckad.grad(lambda a: np.sum(smooth(np.array([0.0, 4.0, 0.0, 0.0]), a) ** 2))(0.25))
    -16.0
    """
    if isinstance(kernel, str):
        kernel, mode = None, kernel
    if mode not in MODES:
        raise ValueError(at_place(f"mode={mode!r} is not known. Take one of {', '.join(MODES)}."))
    bounds = None if neighborhood is None else tuple((int(a), int(b)) for a, b in neighborhood)
    if kernel is None:
        return lambda kernel: Stencil(kernel, mode, cval, bounds, tuple(standard_indexing))
    return Stencil(kernel, mode, cval, bounds, tuple(standard_indexing))


class Stencil:
    """A formula of neighbours; `stencil` makes it."""

    def __init__(
        self,
        kernel: Callable[..., Any],
        mode: str,
        cval: float,
        neighborhood: Bounds | None,
        standard: tuple[str, ...],
    ) -> None:
        kernel = getattr(kernel, "py_func", kernel)
        self.kernel, self.mode, self.cval = kernel, mode, cval
        self.neighborhood = neighborhood
        self._names = _arguments(kernel)
        unknown = [name for name in standard if name not in self._names]
        if unknown:
            raise ValueError(at_place(f"standard_indexing names {unknown}, which are no arguments"))
        self._standard = {self._names.index(name) for name in standard}
        self.__name__ = self.__qualname__ = getattr(kernel, "__name__", "kernel")
        self.__doc__, self.__wrapped__ = kernel.__doc__, kernel
        pure(self)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        watched = watch()
        if watched is not None:
            run_by_python(watched, self.kernel)
        args = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in args)
        at = [k for k, x in enumerate(args) if getattr(x, "ndim", 0) and k not in self._standard]
        shapes = {args[k].shape for k in at}
        if len(shapes) != 1:
            shown = ", ".join(f"{self._names[k]} {args[k].shape}" for k in at) or "none"
            raise ValueError(
                at_place(f"{self.__name__} gets arrays of different shapes, or none: {shown}.")
            )
        (shape,) = shapes
        bounds = self._bounds(args, at, len(shape))
        if self.mode == "constant":
            return self._inside(args, at, bounds, shape, out)
        value = self._applied(args, at, lambda x: _shown(x, self.mode, bounds))
        found = np.broadcast_to(value, shape) if np.shape(value) != shape else value
        return _written(out, (Ellipsis,), found)

    def _applied(self, args: Sequence[Any], at: Sequence[int], of: Callable[[Any], Any]) -> Any:
        given = list(args)
        for k in at:
            given[k] = Neighbours(self._names[k], args[k].ndim, self.neighborhood, of(args[k]))
        return self.kernel(*given)

    def _bounds(self, args: Sequence[Any], at: Sequence[int], n: int) -> Bounds:
        """The least and the greatest offset of each axis, 0 among them."""
        if self.neighborhood is not None:
            if len(self.neighborhood) != n:
                found = len(self.neighborhood)
                raise ValueError(at_place(f"neighborhood has {found} pairs, the arrays {n} axes."))
            return [(min(a, 0), max(b, 0)) for a, b in self.neighborhood]
        seen: list[Offsets] = [(0,) * n]

        def note(x: Any) -> Callable[[Offsets], Any]:
            one = np.ones((), x.dtype)[()]

            def noted(offsets: Offsets) -> Any:
                seen.append(offsets)
                return one

            return noted

        with np.errstate(all="ignore"):
            self._applied(args, at, note)
        return [(min(axis), max(axis)) for axis in zip(*seen, strict=True)]

    def _inside(
        self, args: Sequence[Any], at: Sequence[int], bounds: Bounds,
        shape: tuple[int, ...], out: Any,
    ) -> Any:  # fmt: skip
        inside = tuple(slice(-a, n - b) for n, (a, b) in zip(shape, bounds, strict=True))
        is_empty = any(x.stop <= x.start for x in inside)

        def part(x: Any) -> Callable[[Offsets], Any]:
            if is_empty:
                return lambda offsets: np.ones((), x.dtype)[()]
            return lambda offsets: x[_moved(inside, offsets)]

        value = self._applied(args, at, part)
        if out is None:
            out = np.full_like(value, self.cval, shape=shape)
        return out if is_empty else _written(out, inside, value)

    def __repr__(self) -> str:
        return f"<ckad.stencil {self.__name__}: {self.mode}>"


def _arguments(kernel: Callable[..., Any]) -> list[str]:
    try:
        return [*inspect.signature(kernel).parameters]
    except (TypeError, ValueError):  # of a recorded function that makes its kernel itself
        return [f"argument {k}" for k in range(64)]


class Neighbours:
    """An array in a kernel, indexed by offsets from the present element."""

    def __init__(
        self, name: str, ndim: int, bounds: Bounds | None, at: Callable[[Offsets], Any]
    ) -> None:
        self.name, self.ndim, self.bounds, self._at = name, ndim, bounds, at

    def __getitem__(self, key: Any) -> Any:
        offsets = key if isinstance(key, tuple) else (key,)
        if len(offsets) != self.ndim or not all(isinstance(k, (int, np.integer)) for k in offsets):
            raise ValueError(
                at_place(
                    f"{self.name}[{key!r}] in a stencil: an integer for each of its {self.ndim} "
                    "axes is needed, the offset from the present element."
                )
            )
        found = tuple(map(int, offsets))
        bounds = self.bounds or [(k, k) for k in found]
        if not all(a <= k <= b for k, (a, b) in zip(found, bounds, strict=True)):
            raise ValueError(
                at_place(f"{self.name}: {found} is outside of the neighborhood {bounds}.")
            )
        return self._at(found)


def _moved(inside: tuple[slice, ...], offsets: Offsets) -> tuple[slice, ...]:
    pairs = zip(inside, offsets, strict=True)
    return tuple(slice(x.start + k, x.stop + k) for x, k in pairs)


def _shown(x: Any, mode: str, bounds: Bounds) -> Callable[[Offsets], Any]:
    """The array moved by offsets, what is beyond its edges included."""
    if mode == "wrap":
        axes = tuple(range(x.ndim))
        return lambda offsets: np.roll(x, [-k for k in offsets], axes) if any(offsets) else x
    wide = np.pad(x, [(-a, b) for a, b in bounds], PADDED[mode])
    inside = tuple(slice(-a, n - a) for n, (a, _) in zip(x.shape, bounds, strict=True))
    return lambda offsets: wide[_moved(inside, offsets)]


def _written(out: Any, where: Any, value: Any) -> Any:
    if out is None:
        return value
    out[where] = value
    return out
