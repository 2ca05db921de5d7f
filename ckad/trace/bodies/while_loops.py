"""``while_loop`` inside a traced function: a LOOP row that ends on a flag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckad import trees
from ckad.errors import ConcreteValueError
from ckad.tape.control import UNBOUNDED, WHILE, loop_attrs
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type
from ckad.trace.bodies.loops import argument, carry_rows
from ckad.trace.bodies.written import Around, until_known
from ckad.trace.memory.context import current, mark_place, open_trace
from ckad.trace.values.apply import astype
from ckad.trace.values.tracer import Tracer, fresh, lift, value

FLAG = Type(DType.BOOL, ())


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """``ckad.while_loop`` while tracing: the carry is (flag, \\*state)."""
    mark_place(current())
    leaves, tree = trees.flatten(init)
    state = [lift(x) for x in leaves]
    first = _flag(cond(trees.unflatten(tree, [_own(x) for x in state])))

    def recorded(around: Around) -> Any:
        with open_trace(adopts=True) as inner:
            inner.builder.input(Type(DType.I64, ()))
            inner.builder.input(FLAG)
            given = [argument(inner, x) for x in state]
            kept = around.carried(inner)
            with around.found(inner):
                after = body(trees.unflatten(tree, given))
                rows = carry_rows(state, tree, after, "the state of ckad.while_loop")
                made = [fresh(r, scalar=x.scalar) for r, x in zip(rows, state, strict=True)]
                flag = _flag(cond(trees.unflatten(tree, made)))
            tape = inner.tape([flag, *rows, *(x.row for x in kept)])
        b, n = current().builder, 1 + len(state)
        before = [first, *(value(x) for x in state), *around.operands]
        attrs = loop_attrs(b.body(tape), UNBOUNDED, len(before), 0, WHILE)
        results = b.control(Op.LOOP, [*before, *inner.captured], attrs, tape.output_types)
        around.end(results[n:])
        shown = [fresh(r, scalar=x.scalar) for r, x in zip(results[1:n], state, strict=True)]
        return trees.unflatten(tree, shown)

    return until_known(recorded)


def _own(x: Tracer) -> Tracer:
    """The same value in a storage of its own: what ``cond`` writes reaches nobody."""
    return fresh(value(x), scalar=x.scalar)


def _flag(condition: Any) -> int:
    flag = lift(condition)
    if flag.shape:
        raise ConcreteValueError.here(
            f"the condition of ckad.while_loop has shape {flag.shape}; return a scalar, for "
            "example np.any(x > tol)."
        )
    return value(astype(flag, bool))
