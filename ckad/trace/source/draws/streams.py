"""Generators from which a traced value decides what is drawn: their states are variables.

Such a state is words, from which each draw makes numbers and the next state while the program runs
(`rules/routines/draws.py`). Loops and branches carry it like any other variable. Afterwards the
generator is left where the program has left it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ckad.errors import CkadError, UnrecordableError
from ckad.rules.routines.draws import (
    KINDS,
    encoded,
    kind_of,
    number_of,
    numbers_of,
    words_of,
)
from ckad.rules.routines.singles import law_of, of_one
from ckad.trace import arrays
from ckad.trace.source.draws.events import Draw, StepNumber
from ckad.trace.source.draws.generators import Generator, restoring
from ckad.trace.source.names.frame import Apart, ledger, ledgers, region
from ckad.trace.source.outside.watch import watch
from ckad.trace.values.tracer import concrete, fresh, lift

STATE = "state"
#: The most numbers of one call that are drawn one by one by machine code.
_FEW = 8


class Stream(Apart):
    """The state of one generator, as the name of a frame."""

    __slots__ = ("generator", "kind")

    def __init__(self, generator: Generator, kind: int) -> None:
        super().__init__(STATE)
        self.generator, self.kind = generator, kind
        self.names[STATE] = self.held()

    def held(self) -> np.ndarray:
        """The state in which the generator itself is."""
        return KINDS[self.kind].read(self.generator, None, "")


def begin(generators: Sequence[Generator], error: CkadError) -> None:
    """Let the states of these be variables from here on, in straight code; or raise ``error``."""
    kinds = [kind_of(generator) for generator in generators]
    if region() is not None or len(ledgers()) > 1 or None in kinds or not generators:
        raise error
    for generator, kind in zip(generators, kinds, strict=True):
        assert kind is not None
        ledger().streams[id(generator)] = Stream(generator, kind)


def stream_of(generator: Generator) -> Stream | None:
    """The stream of a generator whose state is a variable."""
    outermost, *inner = ledgers()
    found = outermost.streams.get(id(generator))
    if found is not None and inner:
        raise UnrecordableError.here(
            "random numbers are drawn in a function within the function that is recorded, from "
            "a generator whose state depends on a traced value. Draw them outside of the inner "
            "function, and pass them to it."
        )
    assert found is None or isinstance(found, Stream)
    return found


def check_unseen(given: Sequence[Any]) -> None:
    """Python must not be given a generator whose state it cannot know."""
    if ledger().streams and any(id(x) in ledger().streams for x in given):
        raise UnrecordableError.here(
            "a function that draws by itself is given a random generator whose state depends "
            "on a traced value, since that has decided what was drawn before. Give it a "
            "generator of its own."
        )


def streamed(stream: Stream, draw: Draw, one: Any) -> Any:
    """An array of what a call draws, which is of the kind of ``one``; None of one that seeds."""
    if one is None:
        stream.bind(STATE, _seeded(stream, draw))
        return None
    sample = concrete(np.asarray(one))
    n_words = KINDS[stream.kind].n_words
    law = law_of(stream.kind, draw.name, *of_one(stream.kind, draw.name, draw.args, draw.options))
    few = 0 < sample.size <= _FEW
    if law is not None and few and sample.dtype in (np.float64, np.int64):
        numbers = [_single(stream, law, sample.dtype) for _ in range(sample.size)]
        return np.reshape(np.stack(numbers), sample.shape) if sample.shape else numbers[0]
    args = [_operand(x) for x in draw.args]
    options = {name: _operand(x) for name, x in draw.options.items()}
    n = len(words_of(sample))
    attrs, operands = encoded(stream.kind, n, draw.name, args, options)
    found = arrays.routine("draw", lift(stream.lookup(STATE)), *operands, attrs=attrs)
    stream.bind(STATE, found[:n_words])
    return numbers_of(found[n_words:], sample.shape, sample.dtype)


def _single(stream: Stream, law: tuple[int, Any, Any], dtype: np.dtype) -> Any:
    number, *parameters = law
    n_words = KINDS[stream.kind].n_words
    state = lift(stream.lookup(STATE))
    after = arrays.routine("single", state, *parameters, attrs=(stream.kind, number))
    stream.bind(STATE, after[:n_words])
    return after[n_words].astype(dtype)


def _operand(x: Any) -> Any:
    return fresh(x.row) if isinstance(x, StepNumber) else x


def leave() -> Iterator[Any]:
    """Let the generators be left where the program leaves them; numbers 0 of this being done."""
    for stream in ledger().streams.values():
        assert isinstance(stream, Stream)
        if (watched := watch()) and watched.is_own(stream.generator):
            continue  # who could see it
        attrs = stream.kind, number_of(stream.generator)
        end = lift(stream.lookup(STATE))
        yield arrays.routine("leave", stream.held(), end, attrs=attrs)[0].astype(np.int64)


def _seeded(stream: Stream, draw: Draw) -> np.ndarray:
    put_back = restoring(stream.generator)
    getattr(stream.generator, draw.name)(*draw.args, **draw.options)
    try:
        return stream.held()
    finally:
        put_back()
