"""The elements where a traced mask is true: ``a[a > 0]``, ``a[mask] *= b[mask]``.

How many there are is only known when the program runs. They are kept at their places in the whole
array, together with the mask: elementwise functions run on the whole array, reductions leave out
what the mask excludes, and an assignment under the same mask goes back to the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.rules.facts import neutral
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.trace import arrays
from ckad.trace.axes import axes_of
from ckad.trace.dispatch import MASK, cell, derives, given, implements, plain, put
from ckad.trace.memory.context import current
from ckad.trace.primitives.part.elements import REDUCTIONS, is_array, outside_of, ufunc_cell
from ckad.trace.primitives.part.extents import filled
from ckad.trace.values.apply import apply, astype, broadcast_to, reshape_value, tape_dtype
from ckad.trace.values.part import Masked, Part
from ckad.trace.values.part import unsupported_under_mask as unsupported
from ckad.trace.values.tracer import Tracer, assign, fresh, lift, value

#: Operations that are followed to see whether two masks are one.
DEEPEST = 40


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
    target = options.pop("out", None)
    if method == "reduce" and ufunc in REDUCTIONS and target is None:
        options.setdefault("axis", 0)
        return REDUCTIONS[ufunc](*inputs, **options)
    if ufunc is np.matmul:
        return _dot(*inputs)
    run = cell(ufunc)
    if method != "__call__" or ufunc.nout != 1 or run is None or "where" in options:
        unsupported(f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
    tame, filling = outside_of(ufunc, options)
    result = elementwise(lambda *xs: run(*xs, **options), inputs, tame, filling)
    if target is None:
        return result
    if not isinstance(target, Masked):
        unsupported("out=")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise TypeError(at_place(f"cannot write {result.dtype} into an array of {target.dtype}"))
    write(target.data, target.mask, result, target.before)
    return target


derives(MASK, ufunc_cell(call_ufunc))


# --- functions ---------------------------------------------------------------------------------

_function: Callable[..., Any]
for _function in (
    *(np.where, np.clip, np.round, np.around, np.fix),
    *(np.nan_to_num, np.isclose, np.real, np.sinc),
):

    @implements(_function, kind=MASK)
    def _by_elements(*xs: Any, f: Any = _function, **options: Any) -> Any:
        run = plain(f)
        return elementwise(lambda *ys: run(*ys, **options), xs, True, None)


def _reduce(function: Any, x: Masked, outside: Any, axis: Any, keepdims: Any, options: Any) -> Any:
    """``function`` of the whole array, ``outside`` where the mask is false."""
    axes = axes_of(axis, x.ndim)
    data = filled(x.data, _spread(x.mask, x.data.shape), outside)
    own = [x.mask.ndim + k - (k > x.before) for k in axes if k != x.before]
    covered = list(range(x.mask.ndim)) if x.before in axes else []
    result = function(data, axis=(*covered, *own), **options)
    if given(keepdims) and keepdims:
        rest = [1 if x.mask.ndim + k in own else n for k, n in enumerate(x.rest)]
        if covered:
            return reshape_value(result, (*rest[: x.before], 1, *rest[x.before :]))
        return Masked(reshape_value(result, (*x.mask.shape, *rest)), x.mask, x.before)
    before = x.before - sum(k < x.before for k in axes)
    return result if covered else Masked(result, x.mask, before)


def _reduction(function: Any, op: Op, needs_one: bool = False) -> Callable[..., Any]:
    @implements(function, kind=MASK)
    def reduction(a: Masked, axis: Any = None, dtype: Any = None, out: Any = None,
                  keepdims: Any = False, where: Any = True, **options: Any) -> Any:  # fmt: skip
        masked = where is not True and where is not np._NoValue
        if out is not None or masked or options.keys() - {"initial"}:
            unsupported(f"np.{function.__name__} with an option")
        if dtype is not None:
            options["dtype"] = dtype
        if needs_one and "initial" not in options and a.before in axes_of(axis, a.ndim):
            a = _not_empty(a)
        return _reduce(function, a, neutral(op, a.dtype), axis, keepdims, options)

    return reduction


def _not_empty(x: Masked) -> Masked:
    """``x``; the program stops where the mask is false everywhere."""
    empty = np.where(np.any(x.mask), 0, 1)[()]
    place = apply(Op.WRAP, lift(empty), attrs=(1,))
    flat = reshape_value(x.mask, (1, x.mask.size))
    kept = apply(Op.GATHER, flat, place, attrs=(0,))
    return Masked(x.data, reshape_value(kept, x.mask.shape), x.before)


_reduction(np.sum, Op.SUM)
_reduction(np.prod, Op.PROD)
_reduction(np.any, Op.OR)
_reduction(np.all, Op.AND)
put(np.amax, _reduction(np.max, Op.REDUCE_MAX, needs_one=True), MASK)
put(np.amin, _reduction(np.min, Op.REDUCE_MIN, needs_one=True), MASK)


@implements(np.dot, np.inner, np.vdot, kind=MASK)
def _dot(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    if getattr(a, "ndim", 0) != 1 or getattr(b, "ndim", 0) != 1:
        unsupported("the product of matrices")
    return np.sum(a * b)


@implements(np.copy, np.array, np.asarray, np.asanyarray, np.ascontiguousarray, kind=MASK)
def copy(a: Masked, dtype: Any = None, **options: Any) -> Masked:
    data = fresh(value(a.data), scalar=False)
    return Masked(data if dtype is None else astype(data, tape_dtype(dtype)), a.mask, a.before)


for _function in (np.zeros_like, np.ones_like, np.empty_like):
    put(
        _function,
        lambda a, f=_function, **options: Masked(f(a.data, **options), a.mask, a.before),
        MASK,
    )


@implements(np.ravel, kind=MASK)
def ravel(a: Masked, order: str = "C") -> Masked:
    return a if a.ndim == 1 else unsupported("np.ravel of rows")


def _retyped(x: Masked, dtype: Any) -> Masked:
    data = astype(x.data, dtype)
    return x if data is x.data else Masked(data, x.mask, x.before)


put(arrays.retyped, _retyped, MASK)
put(arrays.own, lambda x: Masked(fresh(value(x.data), scalar=False), x.mask, x.before), MASK)
put(arrays.copied, copy, MASK)
put(arrays.stored, lambda result, out: unsupported("out="), MASK)
put(arrays.by_elements, lambda function, x: elementwise(function, [x], False, None), MASK)
put(np.ndarray.copy, copy, MASK)
put(np.ndarray.flatten, lambda a, order="C": copy(ravel(a)), MASK)
put(np.ndarray.astype, lambda a, dtype, **options: copy(a, dtype), MASK)
for _key in (np.ndarray.real, np.ndarray.conj, np.ndarray.conjugate):
    put(_key, lambda a: a, MASK)
