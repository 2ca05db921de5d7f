"""The simplest run of a tape: every taped loop keeps the residuals of all its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.engines.keep_all import run_growing
from ckad.engines.vm.assembly.assemble import assemble
from ckad.engines.vm.machine import Runner
from ckad.tape.tape import Tape


def run(tape: Tape, *inputs: Any) -> list[np.ndarray]:
    """Run a tape on arrays; one new array per output."""
    arrays = [np.asarray(x, t.numpy) for x, t in zip(inputs, tape.input_types, strict=True)]
    return run_growing(tape, lambda feeds, slots: Runner(assemble(tape, slots), feeds)(arrays))
