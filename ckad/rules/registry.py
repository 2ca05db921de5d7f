"""Where the rule blocks of the ops meet: one Rule per op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ckad.tape.builder import Builder
from ckad.tape.ops import SHAPE_RULES, ShapeRule
from ckad.tape.types import Type

#: The tangents of an op's operands, None for one that is zero.
Tangents = Sequence[int | None]
#: What a VJP rule returns per operand: nothing, a value to be added, or a function that adds the
#: contribution to the cotangent gathered so far (``None`` if there is none yet).
Contribution = int | None | Callable[[Builder, int | None], int]


class Over(NamedTuple):
    """A partial derivative given as the reciprocal of a value: multiply by it is to divide."""

    value: int


class Pole(NamedTuple):
    """The same where the partial derivative may be infinite: a cotangent of zero stays zero there.

    What no result depends on, such as the root of a zero on a diagonal that is masked out, is left
    without a NaN. It is a division by SAFEDIV, whose own derivatives know that a zero may move.
    """

    value: int


class Share(NamedTuple):
    """The same of one that gives way to another: all, half or nothing, as two conditions say.

    What has given way gets nothing, also of a cotangent that is not finite.
    """

    wins: int
    ties: int


Partial = Callable[..., Any]


class Lanes(NamedTuple):
    """A row whose operands are batched, or some of them: what its batching rule is given.

    A batched value has a first axis of ``n`` elements in addition, one for each member.
    """

    n: int
    type: Type
    """The row's own type, without the axis."""
    attrs: Sequence[int]
    batched: Sequence[bool]
    """Which operands have the axis; one of them at the least."""

    @property
    def out(self) -> Type:
        """The type of the result."""
        return self.type.with_shape((self.n, *self.type.shape))

    def all(self, b: Builder, operands: Sequence[int]) -> list[int]:
        """The operands, each with the axis."""
        return [
            x if has_axis else b.broadcast_to(x, (self.n, *b.type(x).shape))
            for x, has_axis in zip(operands, self.batched, strict=True)
        ]


@dataclass
class Rule:
    """Everything about one op.

    ``evaluate(type, attrs, *arrays)`` is the meaning in NumPy. ``emit`` maps a signature of cells
    (``"ff->f"``, f: float64, i: int64 or bool) to a function that writes the LLVM IR for one
    element; ``single`` does that for float32, in doubles that are rounded afterwards, where
    ``emit`` takes longer than this needs. ``jvp(b, tangents, out, *operands, attrs=)`` and
    ``vjp(b, ct, out, *operands, attrs=)`` emit rows. ``batch(b, lanes, *operands)`` emits the row
    for all members of a batch at once; an op without it takes one after the other, an elementwise
    one needs none.
    """

    op: int
    evaluate: Callable[..., np.ndarray] | None = None
    emit: dict[str, Callable[..., Any]] = field(default_factory=dict)
    single: Callable[..., Any] | None = None
    jvp: Callable[..., int | None] | None = None  # None: the derivative is zero
    vjp: Callable[..., Sequence[Contribution]] | None = None
    batch: Callable[..., int] | None = None
    cheap: bool = False  # cheaper to compute again than to keep


RULES: dict[int, Rule] = {}


def rule(
    op: int,
    *,
    shape: ShapeRule | None = None,
    evaluate: Callable[..., np.ndarray] | None = None,
    emit: dict[str, Callable[..., Any]] | None = None,
    cheap: bool = False,
) -> Rule:
    """Open the rule block of ``op``."""
    if shape is not None:
        SHAPE_RULES[op] = shape
    RULES[op] = Rule(op, evaluate, emit or {}, cheap=cheap)
    return RULES[op]


def jvp(op: int) -> Callable[[Any], Any]:
    """Decorator: the JVP rule of ``op``."""

    def register(function: Any) -> Any:
        RULES[op].jvp = function
        return function

    return register


def vjp(op: int) -> Callable[[Any], Any]:
    """Decorator: the VJP rule of ``op``."""

    def register(function: Any) -> Any:
        RULES[op].vjp = function
        return function

    return register


def batch(op: int) -> Callable[[Any], Any]:
    """Decorator: the batching rule of ``op``."""

    def register(function: Any) -> Any:
        RULES[op].batch = function
        return function

    return register


def along_next_axis(op: int, n_axes: int | None = None) -> None:
    """The batching rule of an op that treats each member alike: its axes are one further.

    The first ``n_axes`` of its attributes are axes, or all of them.
    """

    @batch(op)
    def _(b: Builder, lanes: Lanes, *operands: int) -> int:
        n = len(lanes.attrs) if n_axes is None else n_axes
        attrs = (*(axis + 1 for axis in lanes.attrs[:n]), *lanes.attrs[n:])
        return b.emit(op, lanes.all(b, operands), attrs, lanes.out)


def scale(b: Builder, ct: int, factor: Any) -> int:
    """``ct`` times a partial derivative."""
    if isinstance(factor, Over):
        return b.div(ct, factor.value)
    if isinstance(factor, Pole):
        return b.safediv(ct, factor.value)
    if isinstance(factor, Share):
        rest = b.select(factor.wins, ct, b.full_like(ct, 0.0))
        return b.select(factor.ties, b.mul(ct, b.full_like(ct, 0.5)), rest)
    return b.mul(ct, factor)


def from_partials(op: int, partials: Sequence[Partial | float | None]) -> None:
    """Give ``op`` both derivative rules from its partial derivatives, one per operand.

    A partial is a function ``(b, out, *operands)`` that emits the derivative, 1.0, -1.0, or None
    where the derivative is zero.
    """

    def term(b: Builder, d: int, k: int, out: int, operands: Sequence[int]) -> int:
        p = partials[k]
        if p == 1.0:
            return d
        if p == -1.0:
            return b.neg(d)
        assert callable(p)
        return scale(b, d, p(b, out, *operands))

    def push(
        b: Builder, tangents: Tangents, out: int, *operands: int, attrs: Any = ()
    ) -> int | None:
        total = None
        for k, t in enumerate(tangents):
            if t is not None and partials[k] is not None:
                d = term(b, t, k, out, operands)
                total = d if total is None else b.add(total, d)
        return total

    def pull(
        b: Builder, ct: int, out: int, *operands: int, attrs: Any = ()
    ) -> tuple[Contribution, ...]:
        return tuple(
            None
            if partials[k] is None or not b.type(operands[k]).is_float
            else term(b, ct, k, out, operands)
            for k in range(len(operands))
        )

    if any(p is not None for p in partials):
        RULES[op].jvp, RULES[op].vjp = push, pull


def linear(op: int) -> None:
    """The JVP of an op that is linear in its first operand: the op itself, on the tangent."""

    @jvp(op)
    def _(
        b: Builder, tangents: Tangents, out: int, x: int, *rest: int, attrs: Any = ()
    ) -> int | None:
        if tangents[0] is None:
            return None
        return b.emit(op, (tangents[0], *rest), attrs, b.type(out))


def same_shape(*types: Type, attrs: Any = ()) -> Type:
    """Shape rule of elementwise ops: the type of the operands."""
    return types[0]
