"""The simplest run of a tape: every taped loop keeps the residuals of all its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.engines.keep_all import run_growing
from ckad.engines.native.running.machine import Runner
from ckad.engines.native.running.program import prepare
from ckad.tape.tape import Tape


def run(tape: Tape, *inputs: Any) -> list[np.ndarray]:
    """Run a tape on arrays; one new array per output."""
    arrays = [np.asarray(x, t.numpy) for x, t in zip(inputs, tape.input_types, strict=True)]
    program = prepare(tape, keeps_all=True)
    return run_growing(tape, lambda feeds, slots: Runner(program, feeds, slots)(arrays))
