"""What a call knows of a value that is not finite: its sweep, the argument it came from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.engines.origin import first_not_finite
from ckad.errors import NonFiniteError
from ckad.loops.watch import is_finite
from ckad.passes.activity import dependent
from ckad.passes.liveness import needed
from ckad.tape.tape import Tape
from ckad.trace.arguments import Arguments


def explained(
    error: NonFiniteError,
    fun: Callable[..., Any],
    primal: Tape,
    tape: Tape,
    pullback: bool,
    arguments: Arguments,
    inputs: Sequence[np.ndarray],
) -> NonFiniteError:
    """``error`` of a run of ``tape``, which is made from ``primal``, with what the call knows."""
    words = [str(error)]
    if error.reverse or (error.row >= 0 and _is_reverse(error.row, primal, tape, pullback)):
        words.append("This is in the reverse sweep.")
    for k, x in enumerate(inputs):
        if not is_finite(x):
            words.append(f"{_named(fun, arguments, k)} holds {first_not_finite(x)}.")
    return NonFiniteError(" ".join(words), error.row, error.reverse)


def _is_reverse(row: int, primal: Tape, tape: Tape, pullback: bool) -> bool:
    """Whether a row of no loop is there for a gradient alone.

    A gradient follows the values; a pullback starts from inputs after the arguments.
    """
    n_inputs, n_values = len(primal.inputs), len(primal.outputs)
    if pullback:
        return dependent(tape, [k >= n_inputs for k in range(len(tape.inputs))])[row]
    values_alone = needed(tape, tape.outputs.tolist()[:n_values])
    return len(tape.inputs) == n_inputs and not values_alone[row]


def _named(fun: Callable[..., Any], arguments: Arguments, k: int) -> str:
    """The argument that input k of the tape belongs to."""
    if k >= len(arguments.traced):
        return "A tangent or cotangent"
    leaf = arguments.traced[k]
    number = next(n for n, span in enumerate(arguments.spans) if leaf in span)
    name = _parameter(fun, number)
    return f"Argument {number}{f' ({name})' if name else ''} itself"


def _parameter(fun: Callable[..., Any], number: int) -> str:
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):  # NumPy's own functions
        return ""
    return names[number] if number < len(names) else ""
