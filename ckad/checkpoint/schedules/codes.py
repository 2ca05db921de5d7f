"""The numbers of the actions as plain integers, which kernels read."""

from __future__ import annotations

from ckad.checkpoint.schedules.schedule import Action

ADVANCE = int(Action.ADVANCE)
STORE = int(Action.STORE)
RESTORE = int(Action.RESTORE)
DROP = int(Action.DROP)
TAPE = int(Action.TAPE)
REVERSE = int(Action.REVERSE)
END = int(Action.END)
#: The next action of a generator when END has been written.
FINISHED = END + 1
