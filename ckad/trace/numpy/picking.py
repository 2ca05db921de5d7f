"""Elements picked and places written by masks, numbers and conditions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.arrays import (
    Array,
    copied,
    flat_unless,
    flattened,
    is_traced,
    known,
    known_as_run,
    matched,
    own,
    promoted,
    repeated,
    reshaped,
    retyped,
    spread,
    stored,
    taken,
    traced,
    wrapped,
)
from ckad.trace.dispatch import implements, needs_numbers, reject

# --- results whose shape depends on numbers ----------------------------------------------------


def _of_known(function: Any) -> Callable[..., Any]:
    """The function on numbers that are known while recording."""
    refuse = needs_numbers(
        f"np.{function.__name__}", "Use np.where(condition, x, 0), or compute it outside."
    )

    def call(x: Any, *args: Any, **options: Any) -> Any:
        numbers = known(x)
        if numbers is None and function is np.unique and (run := known_as_run(x)) is not None:
            return _unique_at(x, run, *args, **options)
        if numbers is None or any(is_traced(v) for v in (*args, *options.values())):
            return refuse()
        result = function(numbers, *args, **options)
        return tuple(map(traced, result)) if isinstance(result, tuple) else traced(result)

    return call


def _unique_at(
    x: Any,
    numbers: np.ndarray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """``np.unique`` of an array whose numbers are those of the call: its items at known places."""
    unique: Any = np.unique  # whose stubs have no overload for options that are variables
    _, *found = unique(numbers, True, return_inverse, return_counts)
    items = reshaped(x, (x.size,))[found[0]]
    others = found if return_index else found[1:]
    return (items, *others) if others else items


for _function in (np.unique, np.trim_zeros):
    dispatch.put(_function, _of_known(_function))


# --- places that are written -------------------------------------------------------------------


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    _need_traced(a, v)
    index = traced(ind)
    index = reshaped(index, (index.size,))
    if mode == "wrap":
        index = index % a.size
    elif mode == "clip":
        index = np.clip(index, 0, a.size - 1)
    new = traced(v)
    numbers = known(index)
    places = index if numbers is None else numbers
    flattened(a)[places] = new if not new.shape else repeated(new, index.size)


def _need_traced(a: Any, values: Any) -> None:
    if not is_traced(a):
        np.copyto(a, values)  # says why a plain array cannot take it


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """A value for each place of the array, of which those under the mask are written."""
    _need_traced(a, values)
    new = traced(values)
    whole = new if new.size == 1 else reshaped(repeated(new, a.size), a.shape)
    np.copyto(a, reshaped(whole, ()) if new.size == 1 else whole, "unsafe", mask)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """A value for each place under the mask, one after the other."""
    _need_traced(arr, vals)
    new = traced(vals)
    new = reshaped(new, (new.size,))
    chosen = reshaped(retyped(mask, bool), (arr.size,))
    if not new.size:
        raise ValueError(at_place("Cannot insert from an empty array!"))
    turn = (np.cumsum(chosen) - 1) % new.size
    np.copyto(flattened(arr), taken(new, turn, 0), "unsafe", chosen)


# --- choices -----------------------------------------------------------------------------------


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    index, n = traced(a), len(choices)
    if mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = np.clip(index, 0, n - 1)
    else:
        index = wrapped(np.where(index < 0, n, index), n)  # a negative choice is none
    index, *xs = matched(index, *promoted(*choices))
    result = xs[0]
    for k, x in enumerate(xs[1:], 1):
        result = np.where(np.equal(index, k), x, result)
    return stored(own(result), out)


# --- longer and shorter arrays -----------------------------------------------------------------


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Array:
    given = (new_shape,) if np.ndim(new_shape) == 0 else new_shape
    shape = tuple(operator.index(n) for n in given)
    size = int(np.prod(shape))
    if not traced(a).size:
        return np.zeros(shape, traced(a).dtype, like=traced(a))
    return reshaped(repeated(a, size), shape)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Array:
    x, k = flat_unless(traced(arr), axis)
    places = known(obj) if not isinstance(obj, slice) else np.arange(x.shape[k])[obj]
    reject(places is None, "np.insert at traced places")
    assert places is not None
    new = retyped(values, x.dtype)
    new = reshaped(new, (*[1] * (x.ndim - new.ndim), *new.shape))
    if places.ndim == 0:
        new = np.moveaxis(new, 0, k)
    count = new.shape[k] if places.ndim == 0 else places.size
    new = spread(new, (*x.shape[:k], count, *x.shape[k + 1 :]))
    n = x.shape[k]
    order = np.insert(np.arange(n), places, np.arange(n, n + count))
    return taken(np.concatenate([x, new], k), order, k)


# --- counts ------------------------------------------------------------------------------------


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    numbers = known(x)
    length = minlength if numbers is None else max(minlength, int(numbers.max(initial=-1)) + 1)
    if numbers is None and not minlength:
        return needs_numbers("np.bincount", "Pass minlength=, which no number may reach.")()
    index = retyped(x, np.int64)
    checked = wrapped(np.where(index < 0, length, index), length)
    one = np.asarray(1) if weights is None else retyped(weights, np.float64)
    total = np.zeros(length, np.int64 if weights is None else float, like=checked)
    np.add.at(total, checked, spread(one, index.shape))
    return total


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, Array]:
    x = traced(a)
    edges = _edges(x, bins, range)
    x = reshaped(x, (x.size,))
    n = edges.size - 1
    bin: Array = np.searchsorted(edges, x, "right") - 1
    bin = np.where(np.equal(x, edges[-1]), n - 1, bin)
    inside = np.logical_and(x >= edges[0], x <= edges[-1])
    one = 1 if weights is None else reshaped(traced(weights), (x.size,))
    share = np.where(inside, one, np.zeros_like(one))
    total = np.zeros(n, share.dtype, like=x)
    np.add.at(total, np.clip(bin, 0, n - 1), share)
    if density:
        total = total / np.diff(edges) / np.sum(total)
    return total, edges


def _edges(a: Any, bins: Any, range: Any) -> Array:
    if np.ndim(bins):
        return traced(bins)
    numbers = known(a)
    if range is not None:
        low, high = range
    elif numbers is None:
        low, high = np.min(a), np.max(a)
    else:
        low, high = numbers.min(), numbers.max()
    dtype = np.result_type(np.float32, traced(a).dtype)
    flat = retyped(np.equal(low, high), dtype) * 0.5
    return retyped(np.linspace(low - flat, high + flat, bins + 1), dtype)


@implements(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Array:
    x, tests = traced(element), traced(test_elements)
    equal = np.equal(reshaped(x, (*x.shape, 1)), reshaped(tests, (tests.size,)))
    found = np.any(equal, -1)
    return copied(np.logical_not(found) if invert else found)


# --- places as one number ----------------------------------------------------------------------


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    reject(order != "C", f"np.unravel_index with order={order!r}")
    shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    rest, result = wrapped(indices, int(np.prod(shape))), []
    for n in reversed(shape):
        result.append(rest % n)
        rest = rest // n
    return tuple(reversed(result))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Array:
    reject(order != "C" or mode != "raise", "np.ravel_multi_index with mode= or order=")
    flat: Any = 0
    for i, n in zip(multi_index, dims, strict=True):
        flat = flat * n + wrapped(traced(i), n)
    return flat


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            at_place("condlist and choicelist must have the same length, at least one")
        )
    *choices, result = promoted(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        result = np.where(condition, choice, result)
    return result


@implements(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    reject(not copy, "np.nan_to_num with copy=False")
    x = traced(x)
    if x.dtype.kind != "f":
        return own(x)
    limits = np.finfo(x.dtype)
    kept = np.where(np.isnan(x), nan, x)
    kept = np.where(np.equal(x, np.inf), limits.max if posinf is None else posinf, kept)
    kept = np.where(np.equal(x, -np.inf), limits.min if neginf is None else neginf, kept)
    return own(kept)
