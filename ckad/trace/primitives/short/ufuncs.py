"""Ufuncs of short integers, their operators, and what is written into arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from ckad.errors import DtypeError, UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace import constants, dispatch
from ckad.trace.dispatch import PLAIN, SHORT, call, reject
from ckad.trace.primitives.short.ranges import cast, fitting, marked, wrapped
from ckad.trace.values.apply import _loop_type, _resolve
from ckad.trace.values.short import UINT64, Short, constant, holds_traced, is_plain_short, is_short
from ckad.trace.values.short import refuse_dtype as refuse
from ckad.trace.values.tracer import Tracer

#: Their results are in the range of their operands, also of integers that cannot wrap around.
_IN_RANGE = frozenset(
    {np.minimum, np.maximum, np.fmin, np.fmax, np.bitwise_and, np.bitwise_or, np.bitwise_xor}
    | {np.positive, np.remainder, np.fmod, np.floor, np.ceil, np.trunc, np.conjugate}
)
#: The last bits of their results are those that NumPy computes.
_WRAPPING = frozenset(
    {np.add, np.subtract, np.multiply, np.floor_divide, np.negative, np.absolute, np.square}
    | {np.invert, np.left_shift, np.right_shift, np.sign, np.matmul}
)
_COMPARISONS = frozenset(
    {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
    | {np.logical_and, np.logical_or, np.logical_xor, np.logical_not}
)


def gathered(x: Any) -> Any:
    """Lists as arrays, plain short integers as constants."""
    if is_plain_short(x):
        return constant(x)
    if isinstance(x, (list, tuple)):
        return call(np.asarray, (x,), {}) if holds_traced(x) else np.asarray(x)
    return x


def kind_in_loop(x: Any) -> Any:
    """What decides of an operand which loop NumPy takes."""
    if isinstance(x, Short):
        return x.dtype
    if isinstance(x, Tracer) or type(x) in (int, float, bool):
        return _loop_type(x)
    if isinstance(x, dispatch.Traced):
        return getattr(x, "dtype", None)
    return type(x) if type(x) is complex else np.asarray(x).dtype


def is_number_of_python(x: Any) -> bool:
    return type(x) is int or (isinstance(x, Tracer) and x.weak and x.dtype.kind == "i")


def entering(x: Any, dtype: np.dtype, compares: bool = False) -> Any:
    """An operand as the tape's loop for ``dtype`` takes it."""
    if dtype.kind in "iu" and is_short(dtype) and not compares and is_number_of_python(x):
        return fitting(x, dtype)
    if isinstance(x, Short):
        return x.numbers if dtype.kind in "iub" else x.numbers.astype(_real(dtype))
    plain = isinstance(x, (np.ndarray, np.generic))
    return np.asarray(x).astype(np.int64) if plain and is_short(x.dtype) else x


def _real(dtype: np.dtype) -> Any:
    return {"complex128": np.float64, "complex64": np.float32}.get(dtype.name, dtype)


def _called(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    name = f"np.{ufunc.__name__}"
    if method != "__call__":
        return by_numbers(
            (ufunc, method), inputs, {**options, **({} if out is None else {"out": out})}
        )
    reject(options or isinstance(out, tuple), f"{name} of integers this short with options")
    xs = [gathered(x) for x in inputs]
    loop = _resolve(ufunc, tuple(kind_in_loop(x) for x in xs))
    dtype = loop[ufunc.nin]
    result = _computed(ufunc, xs, loop, dtype)
    if out is None:
        return result
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise DtypeError.here(f"cannot write {dtype} into an array of {out.dtype}")
    _check_fits(result, out)
    out[...] = result
    return out


def _check_fits(result: Any, out: Any) -> None:
    shape, own = np.shape(result), out.shape
    if holds_traced((shape, own)):
        return  # lengths of parts are compared where they are written
    if shape != own and np.broadcast_shapes(shape, own) != own:
        raise ValueError(at_place(f"shape {shape} does not fit into {own}"))


def _computed(ufunc: Any, xs: Sequence[Any], loop: Sequence[np.dtype], dtype: np.dtype) -> Any:
    compares = ufunc in _COMPARISONS
    ins = [entering(x, d, compares) for x, d in zip(xs, loop, strict=False)]
    if not is_short(dtype) or dtype.kind not in "iu":
        return call(ufunc, ins, {})
    if ufunc is np.power:
        reject(dtype == UINT64, "np.power of uint64")
        return wrapped(call(ufunc, ins, {}), dtype)
    if ufunc is np.divmod:
        return tuple(call(f, xs, {}) for f in (np.floor_divide, np.remainder))
    if ufunc in _IN_RANGE or (ufunc is np.floor_divide and dtype.kind == "u"):
        return marked(call(ufunc, ins, {}), dtype)
    if ufunc not in _WRAPPING or dtype == UINT64:
        refuse(f"np.{ufunc.__name__} would have a result of dtype {dtype}")
    return wrapped(call(ufunc, ins, {}), dtype)


def by_numbers(key: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What has no rule of its own: NumPy's own if all numbers are known, or its formula.

    Plain arrays of short integers are taken as the tape's where they meet longer numbers.
    """
    given = (args, tuple(options.values()))
    if not _holds_short(given) and not _all_truths(given):
        return _by_kind(key, map(_longer, args), {name: _longer(x) for name, x in options.items()})
    found = constants.called(key, args, options, lambda x: isinstance(x, dispatch.Traced))
    if found is not NotImplemented:
        return found
    home = getattr(dispatch.cell(key), "__module__", "")
    if home.startswith("ckad.trace.numpy.") and not home.startswith(_SCIPY):
        return dispatch.plain(key)(*args, **options)  # a formula in NumPy's functions
    if dispatch.name_of(key).startswith(_IN_FLOATS):
        return _by_kind(key, map(_longer, args), {name: _longer(x) for name, x in options.items()})
    return _refuse(dispatch.name_of(key))


_SCIPY = "ckad.trace.numpy.scipy"
#: What computes with floats, whatever the integers are that it gets.
_IN_FLOATS = tuple(
    "math. cmath. statistics. scipy.fft. scipy.stats. scipy.special. scipy.integrate. "
    "scipy.interpolate. scipy.optimize. scipy.spatial. scipy.linalg._decomp scipy.linalg._basic. "
    "scipy.linalg._matfuncs. scipy.linalg._misc.".split()
)


def _by_kind(key: Any, args: Iterable[Any], options: dict[str, Any]) -> Any:
    """The function for the greatest other kind."""
    xs = tuple(args)
    kinds = [kind for x in (*xs, *options.values()) if (kind := dispatch.kind_of(x)) != SHORT]
    function = dispatch.cell(key, max(kinds, default=PLAIN))
    return _refuse(dispatch.name_of(key)) if function is None else function(*xs, **options)


def _all_truths(x: Any) -> bool:
    """Whether all that is traced are truth values, which are promoted to short integers."""
    found = list(dispatch.tracers(x))
    return bool(found) and all(one.dtype == bool and not one.weak for one in found)


def _holds_short(x: Any) -> bool:
    return any(map(_holds_short, x)) if isinstance(x, (list, tuple)) else isinstance(x, Short)


def _longer(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(map(_longer, x))
    if isinstance(x, Short):
        return x.numbers
    return x.astype(np.int64) if is_plain_short(x) else x


def _derived(key: Any) -> Callable[..., Any] | None:
    of_ufunc = dispatch.ufunc_cell(_called)(key)
    if of_ufunc is None and not dispatch.knows(key):
        return None  # called as it is
    return of_ufunc or (lambda *args, **options: by_numbers(key, args, options))


def _refuse(name: str) -> NoReturn:
    raise UnsupportedFunctionError.here(
        f"ckad has no rule for {name.replace('numpy', 'np', 1)} of integers this short. "
        "Convert them before, with .astype(np.int64)."
    )


dispatch.refuses(SHORT, _refuse)
dispatch.derives(SHORT, _derived)


def stored(x: Any, new: Any) -> Any:
    """What an array that is written into takes: as its own integers, or as the tape's."""
    new = gathered(new)
    if isinstance(x, Short):
        return cast(new, x.dtype).numbers
    return new.numbers if isinstance(new, Short) else new
