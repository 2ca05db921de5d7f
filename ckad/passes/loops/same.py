"""Equal bodies of a tape as one object, so that what is made of them is made once."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain

from ckad.passes.rewrite import in_bodies
from ckad.passes.simplify import simplify
from ckad.tape.tape import Tape

#: Of fewer bodies few are equal.
FEW = 8


def one_each(tape: Tape) -> Tape:
    """``tape`` with one body for all that are equal, places in the program included."""
    return tape if _has_few(tape) else _Bodies().of(tape)


def simplified(tape: Tape) -> Tape:
    """`simplify`, of equal bodies once."""
    return simplify(one_each(tape))


def _has_few(tape: Tape) -> bool:
    """Whether few different objects are bodies of a tape, or of bodies of it."""
    seen, pending = set[int](), [*tape.bodies]
    while pending and len(seen) < FEW:
        body = pending.pop()
        if id(body) not in seen:
            seen.add(id(body))
            pending += body.bodies
    return len(seen) < FEW


class _Bodies:
    """Those met so far."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Tape, Tape]] = {}  # by the identity of what was given, held here
        self.alike: dict[Hashable, list[Tape]] = {}

    def of(self, tape: Tape) -> Tape:
        return in_bodies(tape, self._one)

    def _one(self, body: Tape) -> Tape:
        if id(body) not in self.made:
            self.made[id(body)] = body, self._first(self.of(body))
        return self.made[id(body)][1]

    def _first(self, body: Tape) -> Tape:
        """The first body that is equal to this one, whose own bodies are those first met."""
        outputs = tuple(body.outputs.tolist())
        key = len(body.rows), outputs, body.sources, tuple(map(id, body.bodies)), _constants(body)
        met = self.alike.setdefault(key, [])
        for other in met:
            if other.rows == body.rows:
                return other
        met.append(body)
        return body


def _constants(body: Tape) -> tuple[Hashable, ...]:
    """What tells constants apart, the signs of zeros included."""
    return tuple(chain.from_iterable((c.dtype.str, c.shape, c.tobytes()) for c in body.constants))
