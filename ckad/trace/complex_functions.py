"""NumPy's functions on complex numbers: most act on both parts alike."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.errors import DtypeError
from ckad.place import at_place
from ckad.trace.complex_elementary import angle
from ckad.trace.complex_numbers import (
    HANDLERS,
    ComplexTracer,
    Handler,
    as_complex,
    check_plain,
    discarded,
    handles,
    part_type,
    settled,
)
from ckad.trace.complex_ufuncs import stored, truth
from ckad.trace.functions.reduce import safe_sqrt
from ckad.trace.functions.register import implements, reject
from ckad.trace.memory.context import current
from ckad.trace.tracer import FUNCTIONS, Part, Tracer, fresh, holds_complex, lift


def call(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """``function`` of arguments that hold complex numbers or ask for them."""
    name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
    reject(function not in HANDLERS, f"{name} of complex numbers")
    return HANDLERS[function](*args, **options)


# --- functions that act on both parts alike ----------------------------------------------------

#: Which arguments of the traced counterpart hold numbers that have parts.
BY_PARTS = {
    "a": """reshape ravel swapaxes moveaxis rollaxis expand_dims squeeze diagonal roll repeat take
        compress sum mean cumsum trace copy round around ascontiguousarray
        asarray asanyarray transpose permute_dims""",
    "arrays": "atleast_1d atleast_2d atleast_3d concatenate stack block",
    "array": "broadcast_to pad",
    "args": "broadcast_arrays",
    "ary": "array_split split hsplit vsplit dsplit ediff1d",
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


def _by_parts(function: Any, names: tuple[str, ...]) -> Handler:
    counterpart = FUNCTIONS[function]
    signature = inspect.signature(counterpart)
    names = (*names, "initial") if "initial" in signature.parameters else names

    def handler(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        given_ = bound.arguments
        out = given_.pop("out", None)
        _use_part_type(function, given_, names)
        halves = [(name, parts_of(given_[name])) for name in names if name in given_]
        results = []
        for k in (0, 1):
            given_.update((name, pair[k]) for name, pair in halves)
            partial = any(isinstance(pair[k], Part) for _, pair in halves)
            results.append((function if partial else counterpart)(*bound.args, **bound.kwargs))
        return stored(out, _paired(*results))

    return handler


def _use_part_type(function: Any, arguments: dict[str, Any], names: Sequence[str]) -> None:
    dtype = arguments.get("dtype")
    if dtype is None:
        return
    numbers = [arguments[name] for name in names if name in arguments]
    if np.dtype(dtype).kind != "c" and any(map(holds_complex, numbers)):
        raise DtypeError(
            at_place(
                f"np.{function.__name__} turns complex numbers into {np.dtype(dtype)}, which loses "
                "the imaginary part. Take the real part first: np.real(z)."
            )
        )
    arguments["dtype"] = part_type(dtype)


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
        HANDLERS[_function] = _by_parts(_function, tuple(_names.split()))
HANDLERS[np.linalg.matrix_transpose] = HANDLERS[np.matrix_transpose]


@handles(np.ones)
def ones(*args: Any, **options: Any) -> ComplexTracer:
    result = HANDLERS[np.zeros](*args, **options)
    result.parts[0][...] = 1.0
    return result


def _like(number: Any) -> Handler:
    def handler(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        return full_like(a, number, dtype, *args, **options)

    return handler


for _function, _number in ((np.zeros_like, 0), (np.empty_like, 0), (np.ones_like, 1)):
    HANDLERS[_function] = _like(_number)


@handles(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """In the dtype of ``a`` or the one asked for, which may be real for a complex ``a``."""
    like = as_complex(a).parts[0] if holds_complex(a) else lift(a)
    kind = (as_complex(a) if holds_complex(a) else like).dtype if dtype is None else np.dtype(dtype)
    part = part_type(kind)
    if kind.kind != "c":
        return FUNCTIONS[np.full_like](like, discarded(fill_value), part, *args, **options)
    halves = parts_of(fill_value)
    return ComplexTracer(
        *(FUNCTIONS[np.full_like](like, half, part, *args, **options) for half in halves)
    )


def _converted(function: Any) -> Handler:
    def handler(*args: Any, dtype: Any = complex, **options: Any) -> Any:
        reject(any(map(holds_complex, args)), f"np.{function.__name__} of complex numbers")
        return FUNCTIONS[function](*args, dtype=part_type(dtype), **options).astype(dtype)

    return handler


for _function in (np.arange, np.eye, np.identity, np.tri, np.indices):
    HANDLERS[_function] = _converted(_function)


# --- writing into arrays -----------------------------------------------------------------------


@handles(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, ComplexTracer):
        if casting != "unsafe":
            raise TypeError(at_place("Cannot cast array data from complex to real numbers"))
        return FUNCTIONS[np.copyto](dst, discarded(src), casting, where)
    for part, half in zip(dst.parts, map(settled, parts_of(src)), strict=True):
        FUNCTIONS[np.copyto](part, half, casting, where)
    return None


def _writing(function: Any) -> Handler:
    """Functions of (array, where, values, ...) that write into the array."""

    def handler(a: Any, *args: Any, **options: Any) -> None:
        *place, values = args[:2] if function is not np.fill_diagonal else args[:1]
        rest = args[len(place) + 1 :]
        if not isinstance(a, ComplexTracer):
            return FUNCTIONS[function](a, *place, discarded(values), *rest, **options)
        for part, half in zip(a.parts, map(settled, parts_of(values)), strict=True):
            FUNCTIONS[function](part, *place, half, *rest, **options)
        return None

    return handler


for _function in (np.fill_diagonal, np.putmask, np.put_along_axis):
    HANDLERS[_function] = _writing(_function)


# --- statistics and norms ----------------------------------------------------------------------


@handles(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **options: Any):
    """Of both parts together."""
    both = (np.var(part, axis, None, None, *args, **options) for part in as_complex(a).parts)
    return stored(out, operator.add(*both))


@handles(np.std)
def std(*args: Any, **options: Any) -> Any:
    return safe_sqrt(var(*args, **options))


@handles(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, **options: Any):
    reject(holds_complex(weights), "np.average with complex weights")
    pairs = [np.average(part, axis, weights, True, **options) for part in as_complex(a).parts]
    mean = ComplexTracer(pairs[0][0], pairs[1][0])
    return (mean, pairs[0][1]) if returned else mean


@handles(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    reject(axis is None and ord is not None and np.ndim(x) > 2, "np.linalg.norm")
    return np.linalg.norm(np.abs(as_complex(x)), ord, axis, keepdims)


@handles(np.linalg.vector_norm)
def vector_norm(x: Any, /, **options: Any) -> Any:
    return np.linalg.vector_norm(np.abs(as_complex(x)), **options)


# --- questions ---------------------------------------------------------------------------------


@handles(np.any)
def any_(a: Any, *args: Any, **options: Any) -> Any:
    return np.any(truth(as_complex(a)), *args, **options)


@handles(np.all)
def all_(a: Any, *args: Any, **options: Any) -> Any:
    return np.all(truth(as_complex(a)), *args, **options)


@handles(np.count_nonzero)
def count_nonzero(a: Any, *args: Any, **options: Any) -> Any:
    return np.count_nonzero(truth(as_complex(a)), *args, **options)


@handles(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    near = np.abs(np.subtract(a, b)) <= atol + rtol * np.abs(b)
    close = np.logical_or(np.logical_and(near, np.isfinite(b)), np.equal(a, b))
    both = np.logical_and(np.isnan(a), np.isnan(b)) if equal_nan else False
    return np.logical_or(close, both)


@handles(np.allclose)
def allclose(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    return np.all(isclose(a, b, *args, **options))


@handles(np.array_equal)
def array_equal(a1: Any, a2: Any) -> Any:
    return np.all(np.equal(a1, a2)) if np.shape(a1) == np.shape(a2) else False


for _function, _answer in (
    (np.shape, lambda a: a.shape),
    (np.ndim, lambda a: a.ndim),
    (np.size, lambda a, axis=None: a.size if axis is None else a.shape[axis]),
    (np.iscomplexobj, lambda x: True),
    (np.isrealobj, lambda x: False),
    (np.iscomplex, lambda x: np.not_equal(as_complex(x).parts[1], 0)),
    (np.isreal, lambda x: np.equal(as_complex(x).parts[1], 0)),
    (np.real, lambda val: as_complex(val).real),
    (np.imag, lambda val: as_complex(val).imag),
):
    HANDLERS[_function] = _answer


@handles(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    kinds = [x.dtype if isinstance(x, (Tracer, ComplexTracer)) else x for x in arrays_and_dtypes]
    return np.result_type(*kinds)


@handles(np.angle)
def angle_(z: Any, deg: bool = False) -> Tracer:
    found = angle(as_complex(z))
    return found * (180 / np.pi) if deg else np.positive(found)


@implements(np.angle)
def angle_of_real(z: Any, deg: bool = False) -> Tracer:
    return angle_(lift(z), deg)


@implements(np.isreal)
def isreal(x: Any) -> Tracer:
    return np.equal(as_complex(x).parts[1], 0)


@implements(np.iscomplex)
def iscomplex(x: Any) -> Tracer:
    return np.logical_not(isreal(x))
