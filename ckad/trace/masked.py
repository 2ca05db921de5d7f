"""The elements where a traced mask is true: ``a[a > 0]``, ``a[mask] *= b[mask]``.

How many there are is only known when the program runs. They are kept at their places in the whole
array, together with the mask: elementwise functions run on the whole array, reductions leave out
what the mask excludes, and an assignment under the same mask goes back to the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ckad.errors import ConcreteValueError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.trace.apply import apply, astype, broadcast_to, reshape_value, tape_dtype
from ckad.trace.extent_elements import FILLINGS, REDUCTIONS, TAME, is_array
from ckad.trace.extents import as_python_int, filled
from ckad.trace.functions.axes import axes_of
from ckad.trace.functions.reduce import safe_sqrt
from ckad.trace.functions.register import given
from ckad.trace.memory.context import current, mark_place
from ckad.trace.tracer import (
    FUNCTIONS,
    UFUNCS,
    Part,
    Tracer,
    assign,
    fresh,
    holds_complex,
    lift,
    value,
)

#: Operations that are followed to see whether two masks are one.
DEEPEST = 40


class Masked(NDArrayOperatorsMixin, Part):
    """``data[mask]``, a copy as in NumPy; the mask stands for the first axes of ``data``.

    ``before`` of the axes that follow stand before those of the mask in the user's array.
    """

    __slots__ = ("before", "data", "mask")

    def __init__(self, data: Tracer, mask: Tracer, before: int = 0) -> None:
        self.data, self.mask, self.before = data, mask, before

    @property
    def rest(self) -> tuple[int, ...]:
        """The lengths of the axes that the mask does not cover."""
        return self.data.shape[self.mask.ndim :]

    @property
    def count(self) -> Any:
        """How many places of the mask are true."""
        return as_python_int(np.sum(self.mask))

    @property
    def shape(self) -> tuple[Any, ...]:
        return *self.rest[: self.before], self.count, *self.rest[self.before :]

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return 1 + len(self.rest)

    @property
    def size(self) -> Any:
        return self.count * int(np.prod(self.rest))

    def __len__(self) -> int:
        raise ConcreteValueError(
            at_place(
                "len() of an array under a traced mask: how many elements it has is only known "
                "when the program runs. Use np.sum(mask) or x.shape[0], which are traced integers."
            )
        )

    def __iter__(self) -> Iterator[Any]:
        unsupported("iteration")

    def __repr__(self) -> str:
        return f"<traced {self.data.type} under a mask>"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        unsupported("this use")

    def __bool__(self) -> NoReturn:
        bool(self.data)
        raise AssertionError

    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        mark_place(current())
        if any(map(holds_complex, (*inputs, options.get("out")))):
            from ckad.trace import complex_ufuncs

            return complex_ufuncs.call(ufunc, method, inputs, options.pop("out", None), options)
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(map(holds_complex, args)) or any(map(holds_complex, kwargs.values())):
            from ckad.trace import complex_functions

            return complex_functions.call(function, args, kwargs)
        if function not in MASKED_FUNCTIONS:
            unsupported(f"np.{function.__name__}")
        mark_place(current())
        return MASKED_FUNCTIONS[function](*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        mark_place(current())
        entries = index if isinstance(index, tuple) else (index,)
        if not self.before and isinstance(entries[0], slice) and entries[0] == slice(None):
            lead = (slice(None),) * self.mask.ndim
            return Masked(self.data[(*lead, *entries[1:])], self.mask)
        return unsupported("an index")

    def __setitem__(self, index: Any, new: Any) -> None:
        mark_place(current())
        if isinstance(index, slice) and index == slice(None):
            return self._store(new)
        return unsupported("an index")

    def _store(self, new: Any) -> None:
        """Change the elements of this array, which is a copy."""
        write(self.data, self.mask, new, self.before)


def unsupported(what: str) -> NoReturn:
    raise UnsupportedFunctionError(
        at_place(
            f"{what} is not supported for the elements under a traced mask, x[mask], whose number "
            "is only known when the program runs. They can be combined element by element with "
            "elements under the same mask, reduced, and assigned where the same mask is true. Use "
            "np.where(mask, ..., ...) on the whole array."
        )
    )


# --- reading and writing -----------------------------------------------------------------------


def read(x: Tracer, mask: Tracer, before: int = 0) -> Masked:
    """``x[mask]``; ``before`` axes that follow the mask's stood before them."""
    _check_mask(x, mask)
    return Masked(fresh(value(x), scalar=False), fresh(value(mask), scalar=False), before)


def write(x: Tracer, mask: Tracer, new: Any, before: int = 0) -> None:
    """``x[mask] = new`` for a number, what broadcasts, or elements under the same mask."""
    _check_mask(x, mask)
    data = _beside(new, mask, x.ndim - mask.ndim, before)
    fitted = broadcast_to(astype(data, x.dtype), x.shape)
    chosen = _spread(mask, x.shape)
    assign(x, value(apply(Op.SELECT, chosen, fitted, x)))


def _check_mask(x: Tracer, mask: Tracer) -> None:
    if x.shape[: mask.ndim] != mask.shape:
        raise IndexError(
            at_place(f"a mask of shape {mask.shape} does not fit an array of shape {x.shape}")
        )


def _spread(mask: Tracer, shape: Sequence[int]) -> Tracer:
    ones = [1] * (len(shape) - mask.ndim)
    return broadcast_to(reshape_value(mask, (*mask.shape, *ones)), shape)


def _beside(x: Any, mask: Tracer, n_rest: int, before: int) -> Tracer:
    """An operand in the shape of the whole array, or one that broadcasts to it."""
    if isinstance(x, Masked):
        if x.before != before or not same_rows(current().builder, value(x.mask), value(mask)):
            unsupported("another mask than the one of the other elements")
        return x.data
    if isinstance(x, Part):
        unsupported("a slice with computed bounds")
    array = lift(x)
    if array.ndim <= n_rest - before or not array.ndim:
        return array
    if array.ndim == n_rest + 1 and array.shape[0] == 1:
        return reshape_value(array, (*[1] * mask.ndim, *array.shape[1:]))
    return unsupported(f"an array of shape {array.shape} beside")


def same_rows(b: Builder, one: int, other: int, depth: int = 0) -> bool:
    """Whether two rows are the same operations on the same values."""
    if one == other:
        return True
    x, y = b.rows[one], b.rows[other]
    if depth > DEEPEST or x.op is Op.INPUT or len(x.operands) != len(y.operands) or not x.operands:
        return False
    alike = x.op is y.op and x.attrs == y.attrs and x.type == y.type
    pairs = zip(x.operands, y.operands, strict=True)
    return alike and all(same_rows(b, i, k, depth + 1) for i, k in pairs)


# --- element by element ------------------------------------------------------------------------


def elementwise(function: Callable[..., Any], xs: Sequence[Any], tame: bool, filling: Any) -> Any:
    first = next(x for x in xs if isinstance(x, Masked))
    n_rest = max(x.ndim - 1 for x in xs if isinstance(x, Masked))
    before = first.before
    arrays = {k: _beside(x, first.mask, n_rest, before) for k, x in enumerate(xs) if is_array(x)}
    shape = np.broadcast_shapes(*(x.shape for x in arrays.values()))
    chosen = _spread(first.mask, shape)
    for k, x in arrays.items():
        if isinstance(xs[k], Masked) or not tame:
            arrays[k] = filled(broadcast_to(x, shape), chosen, filling if x.type.is_float else None)
    return Masked(function(*(arrays.get(k, x) for k, x in enumerate(xs))), first.mask, before)


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """NumPy's call of a ufunc, or of one of its methods, on elements under a mask."""
    out = options.pop("out", None)
    target = out[0] if isinstance(out, tuple) else out
    if method == "reduce" and ufunc in REDUCTIONS and target is None:
        options.setdefault("axis", 0)
        return MASKED_FUNCTIONS[REDUCTIONS[ufunc]](*inputs, **options)
    if ufunc is np.matmul:
        return _dot(*inputs)
    if method != "__call__" or ufunc.nout != 1 or ufunc not in UFUNCS or "where" in options:
        unsupported(f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
    tame = ufunc in TAME and "dtype" not in options
    result = elementwise(
        lambda *xs: UFUNCS[ufunc](*xs, **options), inputs, tame, FILLINGS.get(ufunc)
    )
    if target is None:
        return result
    if not isinstance(target, Masked):
        unsupported("out=")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise TypeError(at_place(f"cannot write {result.dtype} into an array of {target.dtype}"))
    target._store(result)
    return target


# --- functions ---------------------------------------------------------------------------------

#: numpy function -> function of the same arguments, one of which at least is under a mask
MASKED_FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def _implements(*functions: Any) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        for f in functions:
            MASKED_FUNCTIONS[f] = function
        return function

    return register


for _function in (np.where, np.clip, np.round, np.nan_to_num, np.isclose):

    def _by_elements(*xs: Any, f: Any = _function, **options: Any) -> Any:
        return elementwise(lambda *ys: FUNCTIONS[f](*ys, **options), xs, True, None)

    MASKED_FUNCTIONS[_function] = _by_elements


def _reduce(function: Any, x: Masked, outside: Any, axis: Any, keepdims: Any, options: Any) -> Any:
    """``function`` of the whole array, ``outside`` where the mask is false."""
    axes = axes_of(axis, x.ndim)
    if given(keepdims) and keepdims:
        unsupported("keepdims=")
    data = filled(x.data, _spread(x.mask, x.data.shape), outside)
    own = [x.mask.ndim + k - (k > x.before) for k in axes if k != x.before]
    covered = list(range(x.mask.ndim)) if x.before in axes else []
    result = FUNCTIONS[function](data, axis=(*covered, *own), **options)
    before = x.before - sum(k < x.before for k in axes)
    return result if covered else Masked(result, x.mask, before)


def _reduction(function: Any, outside: Callable[[np.dtype], Any], needs_one: bool = False) -> None:
    @_implements(function)
    def reduction(a: Masked, axis: Any = None, dtype: Any = None, out: Any = None,
                  keepdims: Any = False, **options: Any) -> Any:  # fmt: skip
        if out is not None or options.keys() - {"initial"}:
            unsupported(f"np.{function.__name__} with an option")
        if dtype is not None:
            options["dtype"] = dtype
        if needs_one and "initial" not in options and a.before in axes_of(axis, a.ndim):
            a = _not_empty(a)
        return _reduce(function, a, outside(a.dtype), axis, keepdims, options)


def _not_empty(x: Masked) -> Masked:
    """``x``; the program stops where the mask is false everywhere."""
    empty = np.where(np.any(x.mask), 0, 1)[()]
    place = apply(Op.WRAP, lift(empty), attrs=(1,))
    flat = reshape_value(x.mask, (1, x.mask.size))
    kept = apply(Op.GATHER, flat, place, attrs=(0,))
    return Masked(x.data, reshape_value(kept, x.mask.shape), x.before)


_reduction(np.sum, lambda dtype: 0)
_reduction(np.prod, lambda dtype: 1)
_reduction(np.any, lambda dtype: False)
_reduction(np.all, lambda dtype: True)
_reduction(np.count_nonzero, lambda dtype: 0)


def _extreme(dtype: np.dtype, sign: int) -> Any:
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind == "f":
        return sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


_reduction(np.max, lambda dtype: _extreme(dtype, -1), needs_one=True)
_reduction(np.min, lambda dtype: _extreme(dtype, 1), needs_one=True)


def _number_of(x: Masked, axis: Any, dtype: Any) -> Any:
    axes = axes_of(axis, x.ndim)
    lengths = x.shape
    total: Any = 1
    for k in axes:
        total = total * lengths[k]
    return astype(total, dtype) if isinstance(total, Tracer) else total


@_implements(np.mean)
def mean(a: Masked, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    kind = dtype or (a.dtype if a.dtype.kind == "f" else np.dtype(np.float64))
    total = MASKED_FUNCTIONS[np.sum](a, axis, kind)
    return total / _number_of(a, axis, kind)


@_implements(np.var)
def var(a: Masked, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Any:
    if axes_of(axis, a.ndim) != tuple(range(a.ndim)):
        unsupported("np.var with axis=")
    centred = a - mean(a, None, dtype)
    freedom = np.maximum(_number_of(a, None, centred.dtype) - ddof, 0)
    return MASKED_FUNCTIONS[np.sum](centred * centred) / freedom


@_implements(np.std)
def std(a: Masked, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0) -> Any:
    return safe_sqrt(var(a, axis, dtype, None, ddof))


@_implements(np.linalg.norm)
def norm(x: Masked, ord: Any = None) -> Any:
    if ord not in (None, 2) or x.ndim > 1:
        unsupported("np.linalg.norm with ord=, or of a matrix")
    return safe_sqrt(MASKED_FUNCTIONS[np.sum](x * x))


@_implements(np.dot, np.inner, np.vdot)
def _dot(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    if getattr(a, "ndim", 0) != 1 or getattr(b, "ndim", 0) != 1:
        unsupported("the product of matrices")
    return MASKED_FUNCTIONS[np.sum](a * b)


@_implements(np.copy, np.array, np.asarray)
def copy(a: Masked, dtype: Any = None, **options: Any) -> Masked:
    data = fresh(value(a.data), scalar=False)
    return Masked(data if dtype is None else astype(data, tape_dtype(dtype)), a.mask, a.before)


for _function in (np.zeros_like, np.ones_like, np.empty_like):
    MASKED_FUNCTIONS[_function] = lambda a, f=_function, **options: Masked(
        FUNCTIONS[f](a.data, **options), a.mask, a.before
    )
MASKED_FUNCTIONS[np.shape] = lambda a: a.shape
MASKED_FUNCTIONS[np.ndim] = lambda a: a.ndim
MASKED_FUNCTIONS[np.size] = lambda a: a.size


def _method(function: Any) -> Callable[..., Any]:
    return lambda self, *args, **options: MASKED_FUNCTIONS[function](self, *args, **options)


for _name in "sum prod mean var std max min any all dot clip round copy".split():
    setattr(Masked, _name, _method(getattr(np, _name)))
Masked.astype = lambda self, dtype, **options: copy(self, dtype)
