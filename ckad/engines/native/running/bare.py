"""Programs for threads that Python does not know: what a run needs, but nothing that asks it.

`ckad.cfunc` hands their address to compiled code; all actions are in the table beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ckad.engines import arena
from ckad.engines.actions import Bare, Feed, Slots
from ckad.engines.native.ir.state import Cell, Control
from ckad.engines.native.running.machine import Runner, Workspace
from ckad.engines.native.running.program import Program
from ckad.errors import EngineError
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape

#: So many predicted nanoseconds are never used up.
ENDLESS = 2**62
#: Actions that are kept in memory for all runs.
MOST_ACTIONS = 2**22


def bare(program: Program, feeds: Mapping[int, Feed], slots: Mapping[int, Slots]) -> Bare:
    """A program with all its actions; EngineError where it cannot run without Python."""
    _check_routines(program.tape)
    space = Workspace(Runner(program, {k: _whole(f) for k, f in feeds.items()}, slots))
    memory = space.begin(None, ())
    if memory is not None:
        arena.give(memory)
    cells = space.state.copy()
    cells[Cell.FUEL], cells[Cell.N_THREADS] = ENDLESS, 1
    homes = space.runner.homes
    tokens = [
        (program.taped[name].control + Control.TOKEN, home + program.taped[name].head_bytes)
        for name, home in homes.items()
        if name in program.taped
    ]
    entry, facts = program.library.address("bare"), program.facts
    kept = program, space.rows
    places = facts.inputs, facts.outputs, Cell.ARENA, tokens
    return Bare(entry, cells, *places, homes[-1], kept)


def _whole(feed: Feed) -> Feed:
    """The same actions in one piece."""
    if feed.begin is not None:
        raise EngineError("its checkpoints go to disk, which Python does. Pass memory= alone.")
    if feed.after is not None:
        raise EngineError(
            "it has a loop of which is not known how long it runs at the most, so that its "
            "checkpoints are placed by Python. Use a for loop with a bound."
        )
    pieces, n = [], 0
    for piece in feed.pieces():
        pieces.append(piece.copy())
        n += len(piece)
        if n > MOST_ACTIONS:
            raise EngineError(
                f"its schedule has more than {MOST_ACTIONS:,} actions. Raise memory=."
            )
    rows = np.concatenate(pieces)
    return feed._replace(pieces=lambda: iter([rows]), n_rows=n)


def _check_routines(tape: Tape) -> None:
    for k, row in enumerate(tape.rows):
        if row.op is Op.CALL and routine_of(row).compiled is None:
            raise EngineError(f"{tape.source_of(k)}: {routine_of(row).name} runs in Python.")
    for body in tape.bodies:
        _check_routines(body)
