"""The op table: every primitive a tape may hold, one row each.

A row says how many operands the op takes (``-1``: any number), whether it carries integer
attributes, and to which group it belongs. What an op *means* (shape rule, evaluation, derivatives)
stands in its rule block under ``ckad/rules``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from ckad.tape.types import Type


class Group(Enum):
    LEAF = auto()
    ELEMENTWISE = auto()
    SHAPE = auto()
    INDEX = auto()
    REDUCE = auto()
    LINALG = auto()
    CONTROL = auto()


class OpRow(NamedTuple):
    group: Group
    arity: int
    has_attrs: bool = False


_TABLE: dict[str, OpRow] = {
    # leaves: an input by position, a constant of the pool, one result of a control row
    "INPUT": OpRow(Group.LEAF, 0, True),
    "CONST": OpRow(Group.LEAF, 0, True),
    "RESULT": OpRow(Group.LEAF, 1, True),
    # elementwise: operands and result have one shape
    **dict.fromkeys(
        """NEG ABS SIGN SQRT CBRT EXP EXPM1 EXP2 LOG LOG1P LOG2 LOG10
        SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH ERF LGAMMA
        FLOOR CEIL TRUNC RINT NOT ISNAN ISINF CONVERT""".split(),
        OpRow(Group.ELEMENTWISE, 1),
    ),
    **dict.fromkeys(
        """ADD SUB MUL DIV SAFEDIV FLOORDIV MOD POW ATAN2 HYPOT COPYSIGN POLYGAMMA MAXIMUM
        MINIMUM EQ NE LT LE GT GE AND OR XOR""".split(),
        OpRow(Group.ELEMENTWISE, 2),
    ),
    "SELECT": OpRow(Group.ELEMENTWISE, 3),
    "FMA": OpRow(Group.ELEMENTWISE, 3),
    # an index brought into [0, attr): negative ones wrap, others out of range stop the program
    "WRAP": OpRow(Group.ELEMENTWISE, 1, True),
    # shape: attrs of the slice family are starts then steps, one per axis
    "RESHAPE": OpRow(Group.SHAPE, 1),
    "BROADCAST": OpRow(Group.SHAPE, 1),
    "TRANSPOSE": OpRow(Group.SHAPE, 1, True),
    "SLICE": OpRow(Group.SHAPE, 1, True),
    "PAD": OpRow(Group.SHAPE, 1, True),
    "UPDATE": OpRow(Group.SHAPE, 2, True),
    "SLICE_ADD": OpRow(Group.SHAPE, 2, True),
    "CONCAT": OpRow(Group.SHAPE, -1, True),
    "ROLL": OpRow(Group.SHAPE, 1, True),
    # index: attr is the axis; indices are int64 and in range
    "GATHER": OpRow(Group.INDEX, 2, True),
    "SCATTER": OpRow(Group.INDEX, 3, True),
    "SCATTER_ADD": OpRow(Group.INDEX, 3, True),
    # reduce: attrs are the axes; CUMSUM and RECURRENCE take axis and direction
    "SUM": OpRow(Group.REDUCE, 1, True),
    "PROD": OpRow(Group.REDUCE, 1, True),
    "REDUCE_MAX": OpRow(Group.REDUCE, 1, True),
    "REDUCE_MIN": OpRow(Group.REDUCE, 1, True),
    "ARGMAX": OpRow(Group.REDUCE, 1, True),
    "ARGMIN": OpRow(Group.REDUCE, 1, True),
    "CUMSUM": OpRow(Group.REDUCE, 1, True),
    "RECURRENCE": OpRow(Group.REDUCE, 2, True),
    # linalg: batched [b, m, k] @ [b, k, n]; attrs say which operands are transposed
    "MATMUL": OpRow(Group.LINALG, 2, True),
    # control: rows that hold body tapes; their results are taken out by RESULT rows
    "LOOP": OpRow(Group.CONTROL, -1, True),
    "TAPED_LOOP": OpRow(Group.CONTROL, -1, True),
    "REVERSE_LOOP": OpRow(Group.CONTROL, -1, True),
    "COND": OpRow(Group.CONTROL, -1, True),
}

Op = IntEnum("Op", list(_TABLE), start=0)  # type: ignore[misc]
#: The ops by their code; much faster than calling the enumeration.
BY_CODE = tuple(Op)
OPS: dict[int, OpRow] = {Op[name]: row for name, row in _TABLE.items()}

ShapeRule = Callable[..., Type]
#: op -> function(operand types..., attrs=...) -> Type; filled by the rule blocks.
SHAPE_RULES: dict[int, ShapeRule] = {}


def is_elementwise(op: int) -> bool:
    return OPS[op].group is Group.ELEMENTWISE
