"""The state of a run: one array of int64 cells that compiled code and Python both see.

Its first cells are fixed; those of a program follow: addresses of inputs, constants and results,
and a control section for each taped loop.
"""

from __future__ import annotations

from enum import IntEnum, auto


class Cell(IntEnum):
    """The fixed cells."""

    ARENA = 0  # address of the memory that values lie in
    FUEL = auto()  # rough nanoseconds until Python is called
    HOOK = auto()  # the Python callable that is called then
    THREAD = auto()  # Python's thread state while it is released
    PLACE = auto()  # where in the user's program the run failed
    LOOP = auto()  # the number of the loop whose actions have run out
    STEPS = auto()  # steps of outermost loops done
    DETAIL = 7  # what a routine failed with
    STEP = 8  # the step at which the run failed, one cell per depth
    N_THREADS = 16
    FUNCTION = 17  # what the threads run, on which arguments, over how many indices
    ARGUMENTS = 18
    LENGTH = 19
    START = 20  # the first of these indices
    TICKET = 24  # parts that nobody has taken; a line of the cache of its own, as is the next
    DONE = 32  # parts that are done
    END = 40


#: Loops deeper than this share a cell for the step.
DEEPEST = 8


class Control(IntEnum):
    """The cells of a taped loop's control section."""

    CURSOR = 0  # the next row of the action table, and where its rows end
    FILLED = 1
    FIRST = 2
    REVERSE = 3  # the row at which the reverse phase begins
    ROWS = 4  # address of the rows of all tables
    TOKEN = 5  # address of the token of a loop whose token is not a residual
    RESIDUALS = 6  # bytes from the token to its residuals
    STRIDE = 7  # bytes of one step's residuals
    OFFSET = 8  # bytes from the residuals of the step around it to this loop's token
    LIMIT = 9  # the steps that the actions of an open loop are made for
    COUNT = 10  # how many steps a guarded loop runs, as far as that is known
    MOST = 11  # the most that it ran
    LEARNS = 12  # 1 if the actions of the reverse phase wait for COUNT, LEARNT if it is known now
    SIZE = 13


#: See Control.LEARNS.
LEARNT = 2


class Status(IntEnum):
    """What compiled code returns."""

    DONE = 0
    STOPPED = 1  # a Python exception is set
    INDEX = 2
    LENGTH = 3  # an open loop runs longer than its actions are made for
    CALL = 4  # a routine failed
