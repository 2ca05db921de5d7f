"""The simplest run of a tape: every taped loop keeps the residuals of all its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckad.engines.vm.assemble import assemble
from ckad.engines.vm.lower_taped import END, REVERSE, TAPE
from ckad.engines.vm.machine import Feed, execute
from ckad.engines.vm.measure import taped_loops
from ckad.engines.vm.program import Slots
from ckad.tape.tape import Tape


def feeds_and_slots(tape: Tape) -> tuple[dict[int, Feed], dict[int, Slots]]:
    loops = {name: loop.n_steps for name, loop in taped_loops(tape).items()}
    feeds = {name: Feed(lambda n=n: _once(n), 3, 1) for name, n in loops.items()}
    return feeds, {name: Slots(0, n) for name, n in loops.items()}


def _once(n: int) -> Iterator[np.ndarray]:
    yield np.array([(TAPE, 0, n, 0), (REVERSE, 0, n, 0), (END, 0, 0, -1)], np.int64)


def run(tape: Tape, *inputs: Any) -> list[np.ndarray]:
    """Run a tape on arrays; one new array per output."""
    feeds, slots = feeds_and_slots(tape)
    arrays = [np.asarray(x, t.numpy) for x, t in zip(inputs, tape.input_types, strict=True)]
    return execute(assemble(tape, slots), arrays, feeds)
