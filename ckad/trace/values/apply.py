"""Appending ops to the current trace: promotion, broadcasting, conversion, result."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ckad.errors import ConcreteValueError, DtypeError
from ckad.place import at_place
from ckad.tape.ops import SHAPE_RULES, Op
from ckad.tape.types import NUMPY_DTYPES, DType, Type, dtype_of
from ckad.trace import arrays
from ckad.trace.arrays import Casting
from ckad.trace.axes import common_shape
from ckad.trace.dispatch import Function, put
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.layout import plain_layout
from ckad.trace.memory.storage import Storage
from ckad.trace.memory.views import ReshapeView
from ckad.trace.values.tracer import (
    Tracer,
    assign,
    concrete,
    fresh,
    known,
    known_as_run,
    lift,
    localise,
    value,
)
from ckad.trees import SHORT


def apply(op: int, *xs: Any, attrs: Sequence[int] = (), type: Type | None = None) -> Tracer:
    """Append ``op`` on operands that already have the shapes and dtypes it wants."""
    return fresh(current().builder.emit(op, [value(x) for x in xs], attrs, type))


def astype(x: Any, dtype: Any) -> Tracer:
    """``x`` as another element type; ``x`` itself if it is that already."""
    array = lift(x)
    code = tape_dtype(dtype)
    if code == array.type.dtype:
        return array
    row = current().builder.convert(value(array), type=array.type.with_dtype(code))
    return fresh(row, scalar=array.scalar)


def tape_dtype(dtype: Any) -> Any:
    """The tape's code of a NumPy dtype, DtypeError where ckad has none."""
    dtype = np.dtype(dtype)
    try:
        return dtype_of(dtype)
    except KeyError:
        raise DtypeError.here(
            f"the result would have dtype {dtype}, which ckad does not compute with. "
            "Convert the operands with .astype(np.float64) or .astype(np.int64)."
        ) from None


def broadcast_to(x: Any, shape: Sequence[int]) -> Tracer:
    """``x`` repeated to ``shape`` by NumPy's rule (a new value, not a view)."""
    array = lift(x)
    own, shape = array.shape, tuple(shape)
    if own == shape:
        return array
    if common_shape(own, shape) != shape:
        raise ValueError(at_place(f"an array of shape {own} does not fit into shape {shape}"))
    return fresh(current().builder.broadcast_to(value(array), shape), scalar=False)


def reshape_value(x: Any, shape: Sequence[int]) -> Tracer:
    """A new value with the elements of ``x`` in another shape."""
    return fresh(current().builder.reshape_to(value(x), tuple(shape)))


def without_lists(xs: Sequence[Any]) -> tuple[Any, ...]:
    """The operands with arrays in place of lists, which may hold traced values."""
    for x in xs:
        if isinstance(x, (list, tuple)):
            return tuple(lift(x) if isinstance(x, (list, tuple)) else x for x in xs)
    return tuple(xs)


def promote(*xs: Any) -> list[Tracer]:
    """All operands in their common dtype (Python scalars are weak, as in NumPy 2)."""
    xs = without_lists(xs)
    dtype = np.result_type(*[_weak_type(x) for x in xs])
    return [astype(x, dtype) for x in xs]


def broadcast(*xs: Any) -> list[Tracer]:
    """All operands in their common shape."""
    xs = without_lists(xs)
    shapes = [x.shape if isinstance(x, Tracer) else np.shape(x) for x in xs]
    if shapes.count(shapes[0]) == len(shapes):
        return [lift(x) for x in xs]
    shape = common_shape(*shapes)
    return [broadcast_to(x, shape) for x in xs]


def _weak_type(x: Any) -> Any:
    if isinstance(x, Tracer):
        return _PYTHON[x.dtype.kind]() if x.weak else x.dtype
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return x
    return concrete(x).dtype


#: Kinds of dtypes, and the Python numbers of the kind.
_PYTHON: dict[str, type] = {"f": float, "i": int, "b": bool}


@lru_cache(maxsize=4096)
def _resolve(
    ufunc: Any,
    dtypes: tuple[Any, ...],
    result: np.dtype | None = None,
    casting: Casting = "same_kind",
) -> tuple[np.dtype, ...]:
    if all(type(t) is type for t in dtypes):  # Python's numbers alone
        dtypes = tuple(np.dtype(t) for t in dtypes)
    options: dict[str, Any] = {}
    if result is not None:
        signature = (*[None] * ufunc.nin, *[result] * ufunc.nout)
        options = {"signature": signature, "casting": casting}
    found: tuple[np.dtype, ...] = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout), **options)
    return found


def resolve(
    ufunc: Any, xs: Sequence[Any], dtype: Any = None, casting: Casting = "same_kind"
) -> tuple[np.dtype, ...]:
    """The dtypes that NumPy's loop for ``ufunc`` takes and gives; ``dtype`` is that of results."""
    kinds = tuple([_loop_type(x) for x in xs])
    return _resolve(ufunc, kinds, None if dtype is None else np.dtype(dtype), casting)


def _loop_type(x: Any) -> Any:
    kind = type(x)
    if isinstance(x, Tracer):
        return _PYTHON[x.dtype.kind] if x.weak and x.dtype != bool else x.dtype
    if kind in (int, float):
        return kind
    return np.dtype(bool) if kind is bool else concrete(x).dtype


# --- the same without tracers of what is converted and broadcast ---------------------------------

_I64, _F64, _WEAK = int(DType.I64), int(DType.F64), 8
#: What decides of operands which loop NumPy takes: a dtype's code, or that of a weak number.
_LOOP_TYPES: dict[int, Any] = {
    **{int(code): dtype for code, dtype in NUMPY_DTYPES.items()},
    **{_WEAK | code: _PYTHON[dtype.kind] for code, dtype in NUMPY_DTYPES.items()},
    _WEAK | DType.BOOL: np.dtype(bool),
}
_NUMBERS: dict[type, int] = {int: _WEAK | _I64, float: _WEAK | _F64, bool: int(DType.BOOL)}


@lru_cache(maxsize=4096)
def _codes(ufunc: Any, kinds: tuple[int, ...]) -> tuple[DType, ...]:
    dtypes = _resolve(ufunc, tuple([_LOOP_TYPES[kind] for kind in kinds]))
    return tuple([tape_dtype(dtype) for dtype in dtypes[: ufunc.nin]])


def _number(x: int | float, dtype: DType) -> int:
    try:
        return current().builder.number(x, dtype)
    except OverflowError:
        raise DtypeError.here(
            "a Python integer does not fit into the 64 bits that ckad computes with. Write it "
            "as a float: 2.0**64 in place of 2**64."
        ) from None


def check_short(ufunc: Any, xs: Sequence[Any]) -> None:
    """Refuse what NumPy computes in integers that no tape has."""
    if any(isinstance(x, (np.ndarray, np.generic)) and x.dtype in SHORT for x in xs):
        kinds = [x.dtype if isinstance(x, (np.ndarray, np.generic)) else _loop_type(x) for x in xs]
        found = _resolve(ufunc, tuple(kinds))[ufunc.nin]
        if found.kind in "iu":
            tape_dtype(found)


def operand_rows(ufunc: Any, xs: Sequence[Any]) -> list[int]:
    """The rows of ``operands``: converted first, then broadcast, then read through their views."""
    b, kinds, arrays, types = current().builder, list[int](), list[Any](), list[Type | None]()
    for x in xs:
        kind, own = _NUMBERS.get(type(x)), None
        if kind is None:
            if not isinstance(x, Tracer):
                check_short(ufunc, xs)
                x = lift(x) if isinstance(x, (list, tuple)) else concrete(x)
            if isinstance(x, Tracer):
                own = x.type
                kind = int(own.dtype)
                kind = kind | _WEAK if x.weak else kind
            else:
                kind = int(dtype_of(x.dtype))
        arrays.append(x)
        kinds.append(kind)
        types.append(own)
    rows: list[int | None] = []
    shapes: list[tuple[int, ...]] = []
    for x, own, code in zip(arrays, types, _codes(ufunc, tuple(kinds)), strict=True):
        if own is not None:
            shapes.append(own.shape)
            same = own.dtype is code
            rows.append(None if same else b.convert(value(x), type=Type(code, own.shape)))
        elif type(x) in _NUMBERS:
            shapes.append(())
            rows.append(_number(x, code))
        else:
            shapes.append(x.shape)
            rows.append(b.constant_as(x, code))
    shape = shapes[0]
    if shapes.count(shape) != len(shapes):
        shape = common_shape(*shapes)
        for k, own_shape in enumerate(shapes):
            if own_shape != shape:
                row = rows[k]
                rows[k] = b.broadcast_to(value(arrays[k]) if row is None else row, shape)
    return [value(x) if row is None else row for x, row in zip(arrays, rows, strict=True)]


def of_floats(op: Op, x: Any, y: Any) -> Tracer | None:
    """The row of an op on float64 arrays of one shape, or on one and a number, which NumPy computes
    in float64: what most rows are, made the short way. None for all else."""
    one, other = _float_type(x), _float_type(y)
    if one is None or other is None:
        return None
    trace = current()
    shape, own = one.shape, other.shape
    first = second = -1
    if shape != own:
        if shape and own:
            return None
        if shape:
            second = trace.builder.broadcast_to(_row_of(y), shape)
        else:
            first = trace.builder.broadcast_to(_row_of(x), own)
    elif type(x) is not Tracer:
        first = _row_of(x)
    elif type(y) is not Tracer:
        second = _row_of(y)
    rows = _row_of(x) if first < 0 else first, _row_of(y) if second < 0 else second
    return of_rows((x, y), op, rows, trace)


def of_float(op: Op, x: Any) -> Tracer | None:
    """The same of a function of one array."""
    if type(x) is not Tracer or x.storage.type.dtype is not DType.F64:
        return None
    return of_rows((x,), op, (value(x),), current())


def of_rows(xs: Sequence[Any], op: Op, operands: tuple[int, ...], trace: Trace) -> Tracer:
    """The row computed from rows that are converted and broadcast, in NumPy's memory layout."""
    b = trace.builder
    rows = b.rows
    type = SHAPE_RULES[op](*[rows[x].type for x in operands], attrs=())
    row = b.append(op, operands, (), type)
    result = Tracer(Storage(trace, row), (), not type.shape)
    return plain_layout(xs, result) if len(type.shape) > 1 else result


_NUMBER = Type(DType.F64, ())


def _float_type(x: Any) -> Type | None:
    """The type of a float64 array or of a float; None of all else."""
    if type(x) is Tracer:
        storage = x.storage
        type_ = x.type if x.path else storage.trace.builder.rows[storage.row].type
        return type_ if type_.dtype is DType.F64 else None
    return _NUMBER if type(x) is float else None


def _row_of(x: Any) -> int:
    return value(x) if type(x) is Tracer else current().builder.number(x, DType.F64)


def operands(
    ufunc: Any, xs: Sequence[Any], dtype: Any = None, casting: Casting = "same_kind"
) -> list[Tracer]:
    """The operands of an elementwise ufunc, converted and broadcast as NumPy would."""
    xs = without_lists(xs)
    check_short(ufunc, xs)
    dtypes = resolve(ufunc, xs, dtype, casting)
    return broadcast(*[_converted(x, d) for x, d in zip(xs, dtypes, strict=False)])


def _converted(x: Any, dtype: np.dtype) -> Tracer:
    if isinstance(x, Tracer):
        return astype(x, dtype)
    array = concrete(x)
    return lift(array if array.dtype == dtype else array.astype(dtype)[()])


# --- out= --------------------------------------------------------------------------------------


def store(out: Any, result: Tracer, casting: Casting = "same_kind") -> Tracer:
    """Write ``result`` into ``out`` by NumPy's rule ``casting`` and return ``out``."""
    if not isinstance(out, Tracer):
        raise ConcreteValueError.here(
            "a traced value is written into a plain NumPy array. Make the array inside the "
            "function with np.zeros_like(x) or np.zeros(n, like=x)."
        )
    check_cast(result, out, casting)
    if np.broadcast_shapes(result.shape, out.shape) != out.shape:
        raise ValueError(
            at_place(f"shape {result.shape} does not fit into out of shape {out.shape}")
        )
    (fitted,) = [astype(result, out.dtype)]
    assign(out, current().builder.broadcast_to(value(fitted), out.shape))
    return out


def check_cast(result: Tracer, out: Tracer, casting: Casting) -> None:
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise DtypeError.here(
            f"cannot write {result.dtype} into an array of {out.dtype}: numbers would be lost. "
            "Convert with .astype, or make the array a float array."
        )


def finish(result: Tracer, out: Any) -> Tracer:
    """``result``, or ``out`` after ``result`` was written into it; their shapes must agree."""
    if out is None:
        return result
    if isinstance(out, Tracer) and out.shape != result.shape:
        raise ValueError(at_place(f"the result has shape {result.shape}, but out {out.shape}"))
    return store(out, result)


def _flattened(x: Tracer) -> Tracer:
    x = localise(x)
    return Tracer(x.storage, (*x.path, ReshapeView((x.size,))))


# --- the words of ``arrays`` -------------------------------------------------------------------

_WORDS: dict[Any, Function] = {
    arrays.traced: lift,
    arrays.retyped: astype,
    arrays.reshaped: reshape_value,
    arrays.spread: broadcast_to,
    arrays.promoted: lambda *xs: promote(*xs),
    arrays.matched: lambda *xs: broadcast(*xs),
    arrays.own: lambda x: fresh(value(x)),
    arrays.stored: finish,
    arrays.known: known,
    arrays.known_as_run: known_as_run,
    arrays.in_order: lambda x: x,
    arrays.padded: lambda x, attrs, shape: apply(
        Op.PAD, x, attrs=attrs, type=x.type.with_shape(tuple(shape))
    ),
    arrays.flattened: _flattened,
    arrays.by_elements: lambda function, x: function(x),
}
for _word, _function in _WORDS.items():
    put(_word, _function)


def dims_of(shape: Any) -> tuple[int, ...]:
    """A shape as NumPy's functions take it: an integer, or several, also as an array."""
    several = isinstance(shape, (tuple, list)) or np.ndim(shape) == 1
    return tuple(map(operator.index, shape if several else [shape]))
