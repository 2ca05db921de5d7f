"""Many cotangents, tangents or directions of one call, several of them in one run of the program.

They lie side by side: the steps of a loop run forward once for all of them, and what depends on
one alone carries an axis of lanes (see `ckad.passes.batched`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import BatchError, BudgetError
from ckad.passes.pipeline import Pipeline, Positions
from ckad.tape.tape import Tape
from ckad.transforms.call import Call

#: How many run at once: from here on a step of a few numbers costs as much for each.
LANES = 16
#: Fewer lanes are tried where a step of so many runs more often than this.
ENOUGH = 4.0


def in_lanes(
    call: Call,
    product: Callable[..., Pipeline],
    about: Sequence[Positions | int],
    extra: Sequence[np.ndarray],
) -> list[Any]:
    """Run ``product(*about, n)``, which takes ``n`` rows of each array of ``extra`` at a time.

    Returns each result for all rows, along a first axis. Where a budget does not hold so many rows
    at a time, or so few states beside them that steps run again and again, there are fewer.
    """
    most = min(LANES, len(extra[0]))
    key = "lanes held", product.__name__, *about, most, call.options.key
    # to find that a budget is too small takes a while
    held = call.once(key, lambda: [_cheapest(call, product, about, most)])
    while True:
        try:
            return _run(call, product, about, extra, held[0])
        except (BatchError, BudgetError):
            if held[0] == 1:
                raise
        held[0] = max(1, held[0] // 4)


def _cheapest(
    call: Call, product: Callable[..., Pipeline], about: Sequence[Positions | int], most: int
) -> int:
    """How many rows at a time take the least, counted in steps: the budget is for states, too."""
    found, lanes = [], most
    while True:
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                plan = call.planned(_made(call, product, about, lanes))
        except (BatchError, BudgetError):
            again = np.inf
        else:
            again = 1.0 if plan is None else plan.recompute_factor
            found.append((-(-most // lanes) * (again + lanes), lanes, told))
        if again <= ENOUGH or lanes == 1:
            break
        lanes = max(1, lanes // 4)
    if not found:
        return most  # the run says why
    _, lanes, told = min(found, key=lambda x: x[0])
    for w in told:
        warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return lanes


def _run(
    call: Call,
    product: Callable[..., Pipeline],
    about: Sequence[Positions | int],
    extra: Sequence[np.ndarray],
    lanes: int,
) -> list[Any]:
    n_rows = len(extra[0])
    tape = _made(call, product, about, lanes)
    parts = []
    for first in range(0, n_rows, lanes):
        rows = [_filled(x[first : first + lanes], lanes) for x in extra]
        found = call.run(tape, rows, pullback=True)
        parts.append([x[: n_rows - first] for x in found])
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _made(
    call: Call, product: Callable[..., Pipeline], about: Sequence[Positions | int], lanes: int
) -> Tape:
    """The tape of so many lanes; that there is none is remembered as well."""

    def tried() -> Tape | BatchError:
        try:
            return call.made(product, *about, lanes)
        except BatchError as error:
            return error

    found = call.once(("lanes", product.__name__, *about, lanes, call.contracts), tried)
    if isinstance(found, BatchError):
        raise found
    return found


def _filled(rows: np.ndarray, lanes: int) -> np.ndarray:
    """``rows``, and zeros for the lanes that are left."""
    missing = lanes - len(rows)
    return (
        np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
        if missing
        else rows
    )
