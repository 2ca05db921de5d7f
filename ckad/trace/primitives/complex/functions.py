"""NumPy's functions on complex numbers: most act on both parts alike."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace import arrays
from ckad.trace.arrays import Array
from ckad.trace.dispatch import (
    COMPLEX,
    STATIC,
    Function,
    call,
    cell,
    holds_complex,
    implements,
    plain,
    put,
    reject,
)
from ckad.trace.memory.context import current
from ckad.trace.primitives.complex.elementary import angle
from ckad.trace.primitives.complex.ufuncs import stored, truth
from ckad.trace.values.complex import (
    ComplexTracer,
    as_complex,
    check_kept,
    check_plain,
    discarded,
    part_type,
    settled,
)
from ckad.trace.values.part import Part
from ckad.trace.values.tracer import Tracer, fresh, lift

# --- functions that act on both parts alike ----------------------------------------------------

#: Which arguments of the traced counterpart hold numbers that have parts.
BY_PARTS = {
    "a": """reshape ravel rollaxis expand_dims squeeze diagonal roll repeat take
        compress sum mean cumsum trace copy round around ascontiguousarray
        asarray asanyarray transpose permute_dims""",
    "arrays": "atleast_1d atleast_2d atleast_3d concatenate stack block",
    "array": "broadcast_to",
    "args": "broadcast_arrays",
    "ary": "array_split split hsplit vsplit dsplit",
    "ary to_end to_begin": "ediff1d",
    "m": "flip flipud fliplr rot90 tril triu",
    "x": """unstack matrix_transpose nan_to_num linalg.diagonal linalg.trace
        lib.stride_tricks.sliding_window_view""",
    "v": "diag diagflat",
    "f": "gradient",
    "y": "trapezoid",
    "A": "tile",
    "tup": "hstack vstack dstack column_stack",
    "arr": "take_along_axis delete",
    "arr values": "append insert",
    "a prepend append": "diff",
    "x y": "where",
    "choicelist default": "select",
    "object": "array",
    "fill_value": "full",
    "": "zeros empty",
    "start stop": "linspace",
    "xi": "meshgrid",
}


@cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(plain(function))


def _by_parts(function: Any, names: tuple[str, ...]) -> Function:
    def handler(*args: Any, **options: Any) -> Any:
        signature = _signature(function)
        numbers = (*names, "initial") if "initial" in signature.parameters else names
        bound = signature.bind(*args, **options)
        given_ = bound.arguments
        out = given_.pop("out", None)
        _use_part_type(function, given_, numbers)
        halves = [(name, parts_of(given_[name])) for name in numbers if name in given_]
        results = []
        for k in (0, 1):
            given_.update((name, pair[k]) for name, pair in halves)
            results.append(call(function, bound.args, bound.kwargs))
        return stored(out, _paired(*results))

    return handler


def _use_part_type(function: Any, arguments: dict[str, Any], names: Sequence[str]) -> None:
    dtype = arguments.get("dtype")
    if dtype is None:
        return
    numbers = {name: arguments[name] for name in names if name in arguments}
    if any(map(holds_complex, numbers.values())):
        check_kept(function, dtype)
    arguments["dtype"] = part_type(dtype)
    own = {k: np.copy(x) for k, x in numbers.items() if isinstance(x, (Tracer, Part))}
    arguments.update(own)  # real ones: what is made of them shares no memory with them


def parts_of(x: Any) -> tuple[Any, Any]:
    """Both parts of an argument: a number, an array, or lists of them."""
    if isinstance(x, (list, tuple)):
        pairs = [parts_of(item) for item in x]
        return type(x)(a for a, _ in pairs), type(x)(b for _, b in pairs)
    if isinstance(x, ComplexTracer):
        return x.parts
    if isinstance(x, Tracer):
        return x, fresh(current().builder.full(x.type, 0), scalar=x.scalar)
    if isinstance(x, Part):
        return x, np.zeros_like(x)
    if x is None or x is np._NoValue:
        return x, x
    if holds_complex(x):
        check_plain(x)
        return np.array(x.real)[()], np.array(x.imag)[()]
    return x, np.zeros_like(x) if isinstance(x, (np.ndarray, np.generic)) else type(x)(0)


def _paired(real: Any, imag: Any) -> Any:
    if isinstance(real, (Tracer, Part)):
        return ComplexTracer(real, imag)
    if isinstance(real, (list, tuple)):
        pairs = [_paired(a, b) for a, b in zip(real, imag, strict=True)]
        return type(real)(pairs)
    return real


for _names, _functions in BY_PARTS.items():
    for _name in _functions.split():
        _function = operator.attrgetter(_name)(np)
        put(_function, _by_parts(_function, tuple(_names.split())), COMPLEX)
put(np.linalg.matrix_transpose, np.matrix_transpose, COMPLEX)


def _one_of_each(function: Any) -> Function:
    """Of several arrays one result each, which is real where its array is."""
    by_parts = cell(function, COMPLEX)
    assert by_parts is not None

    def handler(*xs: Any, **options: Any) -> Any:
        found = by_parts(*xs, **options)
        if len(xs) < 2:
            return found
        whole = zip(xs, found, strict=True)
        return type(found)(z if holds_complex(x) else as_complex(z).parts[0] for x, z in whole)

    return handler


for _function in (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays, np.meshgrid):
    put(_function, _one_of_each(_function), COMPLEX)


@implements(np.pad, kind=COMPLEX)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> ComplexTracer:
    reject(not holds_complex(array), "np.pad of real numbers with complex ones")
    halves = {name: parts_of(x) for name, x in options.items() if name == "constant_values"}

    def padded(k: int, part: Any) -> Any:
        own = {name: pair[k] for name, pair in halves.items()}
        return call(np.pad, (part, pad_width, mode), {**options, **own})

    return ComplexTracer(*(padded(k, x) for k, x in enumerate(as_complex(array).parts)))


@implements(np.ones, kind=COMPLEX)
def ones(*args: Any, **options: Any) -> ComplexTracer:
    zeros = cell(np.zeros, COMPLEX)
    assert zeros is not None
    result: ComplexTracer = zeros(*args, **options)
    result.parts[0][...] = 1.0
    return result


def _like(number: Any) -> Function:
    def handler(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        return full_like(a, number, dtype, *args, **options)

    return handler


for _function, _number in ((np.zeros_like, 0), (np.empty_like, 0), (np.ones_like, 1)):
    put(_function, _like(_number), COMPLEX)


@implements(np.full_like, kind=COMPLEX)
def full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """In the dtype of ``a`` or the one asked for, which may be real for a complex ``a``."""
    like = as_complex(a).parts[0] if holds_complex(a) else lift(a)
    kind = (as_complex(a) if holds_complex(a) else like).dtype if dtype is None else np.dtype(dtype)
    part = part_type(kind)
    if kind.kind != "c":
        return plain(np.full_like)(like, discarded(fill_value), part, *args, **options)
    halves = parts_of(fill_value)
    return ComplexTracer(
        *(plain(np.full_like)(like, half, part, *args, **options) for half in halves)
    )


def _converted(function: Any) -> Function:
    def handler(*args: Any, dtype: Any = complex, **options: Any) -> Any:
        reject(any(map(holds_complex, args)), f"np.{function.__name__} of complex numbers")
        return plain(function)(*args, dtype=part_type(dtype), **options).astype(dtype)

    return handler


for _function in (np.arange, np.eye, np.identity, np.tri, np.indices):
    put(_function, _converted(_function), COMPLEX)


def _retyped(x: Any, dtype: Any) -> Any:
    return truth(as_complex(x)) if np.dtype(dtype) == bool else as_complex(x).astype(dtype)


def _promoted(*xs: Any) -> list[ComplexTracer]:
    part = part_type(np.result_type(*[x.dtype for x in map(as_complex, xs)]))
    return [as_complex(x, part) for x in xs]


put(arrays.retyped, _retyped, COMPLEX)
put(arrays.promoted, _promoted, COMPLEX)
put(arrays.reshaped, lambda x, shape: np.reshape(as_complex(x), shape).copy(), COMPLEX)
put(arrays.spread, lambda x, shape: np.broadcast_to(as_complex(x), shape).copy(), COMPLEX)
put(arrays.copied, lambda x: as_complex(x).copy(), COMPLEX)


# --- writing into arrays -----------------------------------------------------------------------


@implements(np.copyto, kind=COMPLEX)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, ComplexTracer):
        if casting != "unsafe":
            raise TypeError(at_place("Cannot cast array data from complex to real numbers"))
        plain(np.copyto)(dst, discarded(src), casting, where)
        return
    for part, half in zip(dst.parts, map(settled, parts_of(src)), strict=True):
        plain(np.copyto)(part, half, casting, where)


def _writing(function: Any) -> Function:
    """Functions of (array, where, values, ...) that write into the array."""

    def handler(a: Any, *args: Any, **options: Any) -> None:
        *place, values = args[:2] if function is not np.fill_diagonal else args[:1]
        rest = args[len(place) + 1 :]
        if not isinstance(a, ComplexTracer):
            plain(function)(a, *place, discarded(values), *rest, **options)
            return
        for part, half in zip(a.parts, map(settled, parts_of(values)), strict=True):
            plain(function)(part, *place, half, *rest, **options)

    return handler


for _function in (np.fill_diagonal, np.putmask, np.put_along_axis):
    put(_function, _writing(_function), COMPLEX)


# --- statistics --------------------------------------------------------------------------------


@implements(np.average, kind=COMPLEX)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, **options: Any
) -> Any:
    reject(holds_complex(weights), "np.average with complex weights")
    mean_of: Function = np.average  # its stubs want every option by its name
    pairs = [mean_of(part, axis, weights, True, **options) for part in as_complex(a).parts]
    mean = ComplexTracer(pairs[0][0], pairs[1][0])
    return (mean, pairs[0][1]) if returned else mean


# --- questions ---------------------------------------------------------------------------------


def _of_truth(function: Any) -> Function:
    return lambda a, *args, **options: function(truth(as_complex(a)), *args, **options)


for _function in (np.any, np.all):
    implements(_function, kind=COMPLEX)(_of_truth(_function))
put(np.real, lambda val: as_complex(val).real, COMPLEX)
put(np.imag, lambda val: as_complex(val).imag, COMPLEX)


@implements(np.angle, kind=STATIC)
def angle_(z: Any, deg: bool = False) -> Array:
    whole = not holds_complex(z) and lift(z).dtype == bool
    found = angle(as_complex(z, np.float64 if whole else None))
    return found * (180 / np.pi) if deg else np.positive(found)


implements(np.isreal, kind=STATIC)(lambda x: np.equal(as_complex(x).parts[1], 0))
implements(np.iscomplex, kind=STATIC)(lambda x: np.logical_not(np.isreal(x)))


# --- the order of NumPy: by the real part, then by the imaginary one ----------------------------


def _extremum(function: Any, name: Any, outside: float) -> None:
    @implements(function, name, kind=COMPLEX)
    def extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        x = as_complex(a)
        top = function(x.real, axis, keepdims=True)
        among = np.where(np.equal(x.real, top), x.imag, outside)
        rest = function(among, axis, keepdims=True)
        lost = np.any(np.isnan(x), axis, keepdims=True)
        found = ComplexTracer(*(np.where(lost, np.nan, part) for part in (top, rest)))
        axes = tuple(range(x.ndim)) if axis is None else axis
        return stored(out, found if keepdims else np.squeeze(found, axes)[()])


_extremum(np.max, np.amax, -np.inf)
_extremum(np.min, np.amin, np.inf)
