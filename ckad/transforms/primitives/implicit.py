"""Values that are derived by the equation that defines them, whatever has computed them.

Of x with g(x, p) = 0 the tangent is -J⁻¹ (dg/dp) dp with J = dg/dx, and the cotangents of p are
-(dg/dp)ᵀ J⁻ᵀ ct: one linear solve in either direction (Griewank & Walther 2008, chapter 15). The
rules are recorded as those of `ckad.custom_vjp`, so that second derivatives are derivatives of the
rules. What the iteration computes on its way is no part of a derivative.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

import numpy as np

from ckad import locks, trees
from ckad.place import Source, user_place
from ckad.tape.routines import first_type, mark
from ckad.tape.tape import Tape
from ckad.trace.arrays import stopping
from ckad.trace.memory.context import current, mark_place
from ckad.trace.values.tracer import Tracer, fresh, lift, value
from ckad.transforms.forward import jvp
from ckad.transforms.gradients import vjp
from ckad.transforms.primitives.closed import Closed, floats, replaced
from ckad.transforms.primitives.forms import Leaf, Results, given, leaf_of
from ckad.transforms.primitives.rules import Derivatives, Rule, known_result, with_examples
from ckad.transforms.structured import stop_gradient

#: (value, operands, tangents of the operands) -> the tangent of the value
Push = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
#: (value, operands, cotangent of the value) -> cotangents of the operands
Pull = Callable[[Any, Sequence[Any], Any], Sequence[Any]]
#: (v -> J v, its transpose, b) -> x with J x = b
Solve = Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]

_lock = locks.lock()
_known: OrderedDict[Hashable, Definition] = OrderedDict()
#: What a flag says of a value that has no derivative: no solution, or one that moves to one side.
FAILED, UNCLEAR = 1, 2
#: Rules that are remembered; a program that is recorded again finds its own.
KEPT = 256


def defined(
    name: str, key: Hashable, out: Tracer, operands: Sequence[Any], push: Push, pull: Pull
) -> Tracer:
    """``out``, which is derived by ``operands`` as the rules say.

    ``key`` stands for all that the rules depend on beside their arguments.
    """
    xs = tuple(map(lift, operands))
    leaves = tuple(map(leaf_of, xs))
    place = user_place()
    whole = name, key, leaves, leaf_of(out), place
    with _lock:
        found = _known.get(whole)
    if found is None:
        found = Definition(name, leaves, leaf_of(out), xs, push, pull, place)
        with _lock:
            _known[whole] = found
            if len(_known) > KEPT:
                _known.popitem(last=False)
    mark_place(current())
    b = current().builder
    row = b.call(value(out), *(value(x) for x in xs), attrs=(found.number,))
    return fresh(row, scalar=out.scalar)


class Definition:
    """The mark behind such values, for operands of one form."""

    def __init__(
        self, name: str, leaves: tuple[Leaf, ...], out: Leaf, xs: tuple[Tracer, ...],
        push: Push, pull: Pull, place: Source,
    ) -> None:  # fmt: skip
        def pushed(args: Any, kwargs: Any, tangents: Any) -> Any:
            rows = [value(x) for x in args]
            return push(known_result((self,), rows), args, tangents)

        def pulled(ct: Any, out: Any, args: Any, kwargs: Any) -> Any:
            return tuple(pull(out, args, ct))

        results = Results(trees.flatten(0.0)[1], (out,))
        arguments = with_examples(given(name, xs, {}), leaves)
        both = name, arguments, leaves, results, results, pushed, pulled, True, 1, (self,)
        derivatives = _AtOnePlace(*both)
        derivatives.place = place
        with _lock:
            self.number = mark(
                f"{name}#{token_hex(4)}", first_type, derivatives.jvp, derivatives.vjp
            ).number


class _AtOnePlace(Derivatives):
    """Rules that are ours: what goes wrong in them is told at the line of the user's call."""

    place: Source

    def _recorded(self, which: str) -> Rule:
        rule = super()._recorded(which)
        return rule._replace(tape=_placed(rule.tape, user_place(), self.place))


def _placed(tape: Tape, here: Source, place: Source) -> Tape:
    sources = tuple(place if x == here else x for x in tape.sources)
    bodies = tuple(_placed(body, here, place) for body in tape.bodies)
    return replace(tape, sources=sources, bodies=bodies)


def _pushed(g: Closed, x: Any, p: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """(dg/dp) dp, or None if no parameter is a float."""
    at = floats(p)
    if not at:
        return None
    moving = tuple(p[k] for k in at), tuple(tangents[k] for k in at)
    return jvp(lambda *q: g(x, replaced(p, q)), *moving)[1]


def _pulled(g: Closed, x: Any, p: Sequence[Any], ct: Any) -> dict[int, Any]:
    """(dg/dp)ᵀ ct, by the number of the parameter."""
    at = floats(p)
    found = vjp(lambda *q: g(x, replaced(p, q)), *(p[k] for k in at))[1](ct)
    return dict(zip(at, found, strict=True))


def root_of(
    name: str, g: Closed, x: Tracer, failed: Any, solve: Solve, options: Hashable
) -> Tracer:
    """``x``, float64[n], as the root of g(x, p), where p are what ``g`` reads from outside.

    A derivative that is not zero stops the program where the flag ``failed`` is not zero.
    """

    def checked(v: Any, failed: Any) -> Any:
        moves = np.any(v != 0.0)
        v = stopping(v, (failed == FAILED) & moves, "UNCONVERGED")
        return stopping(v, (failed == UNCLEAR) & moves, "UNCLEAR")

    def linear(x: Any, rows: Sequence[Any], b: Any, transposed: bool) -> Any:
        """Where there is no root b is zero, and J may be anything: a one in its place."""
        *p, failed = rows

        def product(v: Any) -> Any:
            return np.where(failed != 0, v, jvp(lambda x: g(x, p), (x,), (v,))[1])

        def of_transpose(v: Any) -> Any:
            return np.where(failed != 0, v, vjp(lambda x: g(x, p), x)[1](v)[0])

        return solve(of_transpose, product, b) if transposed else solve(product, of_transpose, b)

    def push(x: Any, rows: Sequence[Any], tangents: Sequence[Any]) -> Any:
        *p, failed = rows
        change = _pushed(g, x, p, tangents)
        if change is None:
            return np.zeros(x.shape)
        return linear(x, rows, -checked(change, failed), False)

    def pull(x: Any, rows: Sequence[Any], ct: Any) -> Sequence[Any]:
        *p, failed = rows
        if not floats(p):
            return [None] * len(rows)
        pulled = _pulled(g, x, p, linear(x, rows, -checked(ct, failed), True))
        found = {k: np.where(failed != 0, 0.0, ct) for k, ct in pulled.items()}
        return [found.get(k) for k in range(len(rows))]

    key = g.tape.identity, options
    return defined(name, key, x, (*g.parameters, failed), push, pull)


def root_by(name: str, g: Closed, x: Tracer, inverse: Closed) -> Tracer:
    """``x``, float64[n], as the root of g(x, p), where ``inverse`` solves systems with dg/dx there.

    ``inverse`` itself is not differentiated: what it gives is the root of J v - b, which is derived
    as ``x`` is when a further derivative is asked for. So a first derivative is one solve.
    """
    n = len(g.parameters)

    def linear(x: Any, rows: Sequence[Any], b: Any, transposed: bool) -> Any:
        p, constants = rows[:n], stop_gradient(tuple(rows[n:]))

        def product(v: Any) -> Any:
            if transposed:
                return vjp(lambda x: g(x, p), x)[1](v)[0]
            return jvp(lambda x: g(x, p), (x,), (v,))[1]

        def solve(b: Any) -> Any:
            if transposed:
                return vjp(lambda b: inverse(b, constants), b)[1](b)[0]
            return inverse(b, constants)

        found = stop_gradient(solve(b))
        return root_by(name, Closed(lambda v: product(v) - b, b), found, Closed(solve, b))

    def push(x: Any, rows: Sequence[Any], tangents: Sequence[Any]) -> Any:
        change = _pushed(g, x, rows[:n], tangents)
        return np.zeros(x.shape) if change is None else linear(x, rows, -change, False)

    def pull(x: Any, rows: Sequence[Any], ct: Any) -> Sequence[Any]:
        p = rows[:n]
        if not floats(p):
            return [None] * len(rows)
        found = _pulled(g, x, p, linear(x, rows, -ct, True))
        return [found.get(k) for k in range(len(rows))]

    key = g.tape.identity, inverse.tape.identity
    return defined(name, key, x, (*g.parameters, *inverse.parameters), push, pull)
