"""How a block ends: it runs on, leaves or continues its loop, or returns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ckad.trace.source.values import truth
from ckad.trace.values.tracer import Tracer


class Flow:
    """The ways in which a block may end; ``signal`` is the number of the one taken.

    ``None`` in place of a flow says that the block runs on.
    """

    NEXT: ClassVar[int] = 0
    BREAK: ClassVar[int] = 1
    CONTINUE: ClassVar[int] = 2
    RETURN: ClassVar[int] = 3
    RAISE: ClassVar[int] = 4  # the program stops, so that what follows is of no account
    LEFT: ClassVar[int] = 5  # from here on: left for a block that returns, by its number

    def __init__(self, kinds: frozenset[int], signal: Any) -> None:
        self.kinds, self.signal = kinds, signal

    @property
    def is_definite(self) -> bool:
        return len(self.kinds) == 1

    def always(self, kind: int) -> bool:
        return self.kinds == {kind}

    def goes(self, *kinds: int) -> bool | Tracer:
        """Whether one of ``kinds`` was taken."""
        found = self.kinds.intersection(kinds)
        if not found:
            return False
        if found == self.kinds:
            return True
        verdict: Any = False
        for kind in sorted(found):
            verdict = np.logical_or(verdict, np.equal(self.signal, kind))
        return truth(verdict)


def definite(kind: int) -> Flow:
    return Flow(frozenset({kind}), kind)


#: How a step ends that does not leave the function.
OF_LOOPS = frozenset({Flow.NEXT, Flow.CONTINUE, Flow.BREAK})
