"""Why a WRAP row stops a program: its second attribute, an index out of range if there is none."""

from __future__ import annotations

from enum import IntEnum

from ckad.tape.row import Row


class Reason(IntEnum):
    """What is wrong where a number is not in the range that a WRAP row allows."""

    INDEX = 0
    UNBOUND = 1
    RAISED = 2
    LENGTH = 3
    OVERFLOW = 4
    ZERO = 5
    NONE = 6
    SINGULAR = 7
    NOT_POSITIVE = 8
    SPACE = 9
    UNCONVERGED = 10
    STEP = 11
    TIMES = 12
    PATTERN = 13
    TOUCHED = 14
    EVENTS = 15
    STEPS = 16
    UNCLEAR = 17
    GIVEN = 18
    WEIGHTS = 19
    ROOTS = 20
    STATE = 21
    BOUNDS = 22
    RANGE = 23
    WHOLE = 24
    CAUGHT = 25
    ORDER = 26
    SPECTRUM = 27
    DEGREE = 28
    UNSOLVED = 29


def reason_of(row: Row) -> Reason:
    return Reason(row.attrs[1]) if len(row.attrs) > 1 else Reason.INDEX
