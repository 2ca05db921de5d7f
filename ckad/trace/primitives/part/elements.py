"""NumPy's elementwise functions on parts.

Each is the function of whole arrays, on bases brought to the same places. What lies outside of the
parts is made harmless first where the function, or its derivative, is not finite everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import DtypeError
from ckad.rules import facts
from ckad.trace import arrays
from ckad.trace.dispatch import PART, cell, derives, implements, put, ufunc_cell
from ckad.trace.primitives.elementwise import OPS
from ckad.trace.primitives.part.access import write_part
from ckad.trace.primitives.part.alignment import aligned
from ckad.trace.primitives.part.extents import filled, inside, only
from ckad.trace.primitives.part.found import nonzero_of_part
from ckad.trace.values.apply import broadcast_to
from ckad.trace.values.part import Mask, Part, unsupported
from ckad.trace.values.tracer import Tracer, lift


def as_array(x: Any) -> Any:
    return x if isinstance(x, (Part, Tracer)) else lift(x)


# --- element by element ------------------------------------------------------------------------


def elementwise(
    function: Callable[..., Any], xs: Sequence[Any], tame: bool = True, filling: Any = None
) -> Part:
    """``function`` of operands at the same places; Python numbers go in as they are."""
    found = {k: _tamed(x) if tame else x for k, x in enumerate(xs) if is_array(x)}
    bases, where = aligned(list(found.values()))
    if not tame:
        shape = np.broadcast_shapes(*(x.shape for x in bases))
        mask = inside(where, shape)
        bases = [
            filled(broadcast_to(x, shape), mask, None if x.dtype.kind != "f" else filling)
            for x in bases
        ]
    arrays = dict(zip(found, bases, strict=True))
    result = function(*(arrays.get(k, x) for k, x in enumerate(xs)))
    # under a mask it is filled again where it is read, which keeps products and sums apart
    return Part(result, where, tame=not isinstance(where, Mask))


def is_array(x: Any) -> bool:
    return isinstance(x, (Part, Tracer, np.ndarray, np.generic, list, tuple))


def _tamed(x: Any) -> Any:
    return Part(only(x), x.where, tame=True) if isinstance(x, Part) else x


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc, or one of its methods, on parts."""
    out = options.pop("out", None)
    if method == "outer":
        x, y = (as_array(v) for v in inputs)
        inputs = (x[(..., *[None] * y.ndim)], y)
    run = cell(ufunc)
    if options.pop("where", True) is not True or run is None:
        unsupported(f"np.{ufunc.__name__} with where=")
    tame, filling = outside_of(ufunc, options)
    result = elementwise(lambda *xs: run(*xs, **options), inputs, tame=tame, filling=filling)
    return written(result, out)


def outside_of(ufunc: Any, options: dict[str, Any]) -> tuple[bool, float | None]:
    """Whether a ufunc may compute with what lies outside of a part; with what it may if not."""
    ops = OPS.get(ufunc)
    tame = ops is not None and facts.TAME.issuperset(ops) and "dtype" not in options
    return tame, facts.harmless(*ops or ())


def _cell(key: Any) -> Callable[..., Any] | None:
    """None for what is not done element by element, and for ufuncs of several results."""
    ufunc, method = key if isinstance(key, tuple) else (key, "__call__")
    made = _cell_of_ufunc(key)
    if made is None or method not in ("__call__", "outer") or cell(ufunc) is None:
        return None
    return made if ufunc.signature is None and ufunc.nout == 1 else None


_cell_of_ufunc = ufunc_cell(call_ufunc)
derives(PART, _cell)


def written(result: Any, out: Any) -> Any:
    if out is None:
        return result
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DtypeError.here(
            f"cannot write {result.dtype} into an array of {out.dtype}: numbers would be lost. "
            "Convert with .astype, or make the array a float array."
        )
    write_part(out, result)
    return out


def _by_elements(function: Any, tame: bool = True) -> None:
    @implements(function, kind=PART)
    def by_elements(*xs: Any, out: Any = None, **options: Any) -> Any:
        run = cell(function)
        assert run is not None
        return written(elementwise(lambda *ys: run(*ys, **options), xs, tame=tame), out)


for _function in (np.clip, np.round, np.around, np.nan_to_num, np.isclose):
    _by_elements(_function)
_by_elements(np.fix, tame=False)


@implements(np.where, kind=PART)
def _where(condition: Any, *ins: Any) -> Any:
    if not ins:
        return nonzero_of_part(condition)
    return elementwise(np.where, (condition, *ins))


_by_elements(np.sinc, tame=False)
_by_elements(np.i0)


put(arrays.by_elements, lambda function, x: elementwise(function, [x], tame=False), PART)
put(arrays.stored, written, PART)


# --- at ----------------------------------------------------------------------------------------


def _at(ufunc: np.ufunc) -> Callable[..., None]:
    """Sums at repeated places: outside of the part, zeros are added to the first element."""

    def at(x: Any, index: Any, values: Any) -> None:
        run = cell((ufunc, "at"))
        if run is None or not isinstance(x, Tracer) or not is_array(index) or index.dtype == bool:
            unsupported(f"np.{ufunc.__name__}.at with such an array or index")
        if np.ndim(index) != 1 or np.ndim(values) > 1:
            unsupported(f"np.{ufunc.__name__}.at with an index or values of several axes")
        (places, given), where = aligned([index, as_array(values)])
        mask = inside(where, places.shape)
        added = filled(broadcast_to(given, places.shape), mask, 0)
        run(x, filled(places, mask, 0), added)

    return at


put((np.add, "at"), _at(np.add), PART)
put((np.subtract, "at"), _at(np.subtract), PART)
