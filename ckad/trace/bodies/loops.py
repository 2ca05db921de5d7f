"""Loops inside a traced function: the body is recorded once and becomes one LOOP row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad import trees
from ckad.errors import CarryError, ConcreteValueError, LengthError
from ckad.tape.control import loop_attrs
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type
from ckad.trace import arrays
from ckad.trace.bodies.written import Around, until_known
from ckad.trace.dispatch import EVERY, put
from ckad.trace.memory.context import Trace, current, mark_place, open_trace
from ckad.trace.memory.storage import Storage
from ckad.trace.values.tracer import Tracer, fresh, lift, value

#: Step numbers are int64.
LONGEST = 2**63 - 1


def static_int(n: Any, what: str) -> int:
    """A loop bound as a Python int."""
    try:
        return operator.index(n)
    except ConcreteValueError as error:
        raise ConcreteValueError.here(
            f"{what} is a traced value; loops need their length as a Python int. Pass it to "
            "the function as a Python int, or run the most steps and mask with np.where."
        ) from error
    except TypeError:
        raise LengthError.here(
            f"{what}={n!r} is a {type(n).__name__}; pass a Python int."
        ) from None


def scan(
    step: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None
) -> tuple[Any, Any]:
    """``ckad.scan`` while tracing."""
    mark_place(current())
    x_leaves, x_tree = trees.flatten(xs)
    x_leaves = [lift(x) for x in x_leaves]
    length = _common_length(x_leaves, length)
    carry, carry_tree = trees.flatten(init)
    carry = [lift(c) for c in carry]

    def recorded(around: Around) -> tuple[Any, Any]:
        with open_trace(adopts=True) as body:
            body.builder.input(Type(DType.I64, ()))  # the number of the step
            body.index_range = 0, length
            c_in = [argument(body, c) for c in carry]
            kept = around.carried(body)
            x_in = [_element(body, x) for x in x_leaves]
            with around.found(body):
                out = step(trees.unflatten(carry_tree, c_in), trees.unflatten(x_tree, x_in))
            c_out, y_out = _split_output(out)
            c_rows = carry_rows(carry, carry_tree, c_out, "the loop's carry")
            ys, y_tree = trees.flatten(y_out)
            y_rows = [value(y) for y in ys]
            tape = body.tape([*c_rows, *(x.row for x in kept), *y_rows])
        before = [*(value(c) for c in carry), *around.operands]
        rows = _loop_row(body, tape, length, before, x_leaves)
        n = len(carry)
        around.end(rows[n : len(before)])
        results = [fresh(r, scalar=c.scalar) for r, c in zip(rows, carry, strict=False)]
        stacked = [fresh(r, scalar=False) for r in rows[len(before) :]]
        return trees.unflatten(carry_tree, results), trees.unflatten(y_tree, stacked)

    return until_known(recorded)


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """``ckad.fori_loop`` while tracing."""
    lower, upper = static_int(lower, "lower"), static_int(upper, "upper")

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        i = fresh(current().builder.inputs[0])
        return body(i + lower if lower else i, carry), None

    return scan(step, init, None, max(0, upper - lower))[0]


def _split_output(out: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        raise CarryError.here(
            f"the step of ckad.scan returned {trees.describe(trees.flatten(out)[1])}; it has "
            "to return (carry, y), with None for y if there is no output."
        )
    return out


def argument(trace: Trace, like: Tracer) -> Tracer:
    """What a body is given in the place of ``like``."""
    return Tracer(Storage(trace, trace.builder.input(like.type)), (), like.scalar)


def _element(trace: Trace, xs: Tracer) -> Tracer:
    type = xs.type.with_shape(xs.shape[1:])
    return Tracer(Storage(trace, trace.builder.input(type)), (), not type.shape)


def _common_length(xs: list[Tracer], length: int | None) -> int:
    if length is not None:
        length = static_int(length, "length")
        if length < 0:
            raise LengthError.here(f"length={length} is negative; pass 0 or more steps.")
    for x in xs:
        if not x.shape:
            raise LengthError.here(
                "xs holds a scalar, and scan runs over the first axis of its xs. "
                "Capture the scalar in the step instead."
            )
        if length is not None and x.shape[0] != length:
            raise LengthError.here(
                f"xs of length {x.shape[0]} in a loop of length {length}; give all xs the same "
                "first axis, and leave length= out."
            )
        length = x.shape[0]
    if length is not None and length > LONGEST:
        raise LengthError.here(f"a loop of {length} steps; the most are {LONGEST}.")
    if length is None:
        raise LengthError.here("scan without xs does not know its length; pass length=.")
    return length


def carry_rows(init: list[Tracer], tree: trees.Treedef, out: Any, what: str) -> list[int]:
    """What a body returns in place of ``init``, which is called ``what``."""
    leaves, out_tree = trees.flatten(out)
    if out_tree != tree:
        raise CarryError.here(
            f"{what} changes its structure: it starts as "
            f"{trees.describe(tree)} and the body returns {trees.describe(out_tree)}. "
            "Return what the body received, updated, in the same order."
        )
    rows = []
    for k, (c, new) in enumerate(zip(init, map(lift, leaves), strict=True)):
        if new.type != c.type:
            raise CarryError.here(
                f"item {k} of {what} changes from {c.type} to {new.type} in the "
                "body. Start the loop with an array of the shape and dtype that the body "
                "returns (0.0 instead of 0, np.float32(0) instead of 0.0), or convert with "
                ".astype."
            )
        rows.append(value(new))
    return rows


def _loop_row(body: Trace, tape: Any, length: int, carry: list[int], xs: list[Tracer]) -> list[int]:
    b = current().builder
    y_types = [t.with_shape((length, *t.shape)) for t in tape.output_types[len(carry) :]]
    if length == 0:
        return carry + [b.const(np.zeros(t.shape, t.numpy)) for t in y_types]
    operands = [*carry, *(value(x) for x in xs), *body.captured]
    attrs = loop_attrs(b.body(tape), length, len(carry), len(xs))
    return b.control(Op.LOOP, operands, attrs, [*tape.output_types[: len(carry)], *y_types])


put(arrays.fori_loop, fori_loop, EVERY)
