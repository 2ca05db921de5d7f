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
    CALL = auto()
    CONTROL = auto()


class OpRow(NamedTuple):
    group: Group
    arity: int
    has_attrs: bool = False


class Op(IntEnum):
    """An op and its row; as a number it is its code, so the order is that of the codes."""

    row: OpRow

    def __new__(cls, group: Group, arity: int, has_attrs: bool = False) -> Op:
        op = int.__new__(cls, len(cls.__members__))
        op._value_ = int(op)
        op.row = OpRow(group, arity, has_attrs)
        return op

    # leaves: an input by position, a constant of the pool, one result of a control row
    INPUT = Group.LEAF, 0, True
    CONST = Group.LEAF, 0, True
    RESULT = Group.LEAF, 1, True
    # elementwise: operands and result have one shape
    NEG = Group.ELEMENTWISE, 1
    ABS = Group.ELEMENTWISE, 1
    SIGN = Group.ELEMENTWISE, 1
    SQRT = Group.ELEMENTWISE, 1
    CBRT = Group.ELEMENTWISE, 1
    EXP = Group.ELEMENTWISE, 1
    EXPM1 = Group.ELEMENTWISE, 1
    EXP2 = Group.ELEMENTWISE, 1
    LOG = Group.ELEMENTWISE, 1
    LOG1P = Group.ELEMENTWISE, 1
    LOG2 = Group.ELEMENTWISE, 1
    LOG10 = Group.ELEMENTWISE, 1
    SIN = Group.ELEMENTWISE, 1
    COS = Group.ELEMENTWISE, 1
    TAN = Group.ELEMENTWISE, 1
    ASIN = Group.ELEMENTWISE, 1
    ACOS = Group.ELEMENTWISE, 1
    ATAN = Group.ELEMENTWISE, 1
    SINH = Group.ELEMENTWISE, 1
    COSH = Group.ELEMENTWISE, 1
    TANH = Group.ELEMENTWISE, 1
    ASINH = Group.ELEMENTWISE, 1
    ACOSH = Group.ELEMENTWISE, 1
    ATANH = Group.ELEMENTWISE, 1
    ERF = Group.ELEMENTWISE, 1
    ERFC = Group.ELEMENTWISE, 1
    ERFCX = Group.ELEMENTWISE, 1
    ERFINV = Group.ELEMENTWISE, 1
    ERFCINV = Group.ELEMENTWISE, 1
    LOG_NDTR = Group.ELEMENTWISE, 1
    LGAMMA = Group.ELEMENTWISE, 1
    GAMMA = Group.ELEMENTWISE, 1
    RGAMMA = Group.ELEMENTWISE, 1
    ELLIPKM1 = Group.ELEMENTWISE, 1
    ELLIPE = Group.ELEMENTWISE, 1
    ELLIPD = Group.ELEMENTWISE, 1
    EXPI = Group.ELEMENTWISE, 1
    EXP1 = Group.ELEMENTWISE, 1
    FLOOR = Group.ELEMENTWISE, 1
    CEIL = Group.ELEMENTWISE, 1
    TRUNC = Group.ELEMENTWISE, 1
    RINT = Group.ELEMENTWISE, 1
    NOT = Group.ELEMENTWISE, 1
    ISNAN = Group.ELEMENTWISE, 1
    ISINF = Group.ELEMENTWISE, 1
    STOP = Group.ELEMENTWISE, 1  # the operand itself, as a constant to derivatives
    CONVERT = Group.ELEMENTWISE, 1
    ADD = Group.ELEMENTWISE, 2
    SUB = Group.ELEMENTWISE, 2
    MUL = Group.ELEMENTWISE, 2
    DIV = Group.ELEMENTWISE, 2
    SAFEDIV = Group.ELEMENTWISE, 2
    FLOORDIV = Group.ELEMENTWISE, 2
    MOD = Group.ELEMENTWISE, 2
    POW = Group.ELEMENTWISE, 2
    ATAN2 = Group.ELEMENTWISE, 2
    HYPOT = Group.ELEMENTWISE, 2
    COPYSIGN = Group.ELEMENTWISE, 2
    POLYGAMMA = Group.ELEMENTWISE, 2
    BETALN = Group.ELEMENTWISE, 2
    GAMMAINC = Group.ELEMENTWISE, 2
    GAMMAINCC = Group.ELEMENTWISE, 2
    STDTR = Group.ELEMENTWISE, 2
    STDTRIT = Group.ELEMENTWISE, 2
    GAMMAINCINV = Group.ELEMENTWISE, 2
    GAMMAINCCINV = Group.ELEMENTWISE, 2
    ELLIPKINC = Group.ELEMENTWISE, 2
    ELLIPEINC = Group.ELEMENTWISE, 2
    EXPN = Group.ELEMENTWISE, 2
    BESSEL_J = Group.ELEMENTWISE, 2
    BESSEL_Y = Group.ELEMENTWISE, 2
    BESSEL_I = Group.ELEMENTWISE, 2
    BESSEL_IE = Group.ELEMENTWISE, 2
    BESSEL_K = Group.ELEMENTWISE, 2
    BESSEL_KE = Group.ELEMENTWISE, 2
    MAXIMUM = Group.ELEMENTWISE, 2
    MINIMUM = Group.ELEMENTWISE, 2
    EQ = Group.ELEMENTWISE, 2
    NE = Group.ELEMENTWISE, 2
    LT = Group.ELEMENTWISE, 2
    LE = Group.ELEMENTWISE, 2
    GT = Group.ELEMENTWISE, 2
    GE = Group.ELEMENTWISE, 2
    AND = Group.ELEMENTWISE, 2
    OR = Group.ELEMENTWISE, 2
    XOR = Group.ELEMENTWISE, 2
    BETAINC = Group.ELEMENTWISE, 3
    BETAINCINV = Group.ELEMENTWISE, 3
    SELECT = Group.ELEMENTWISE, 3
    FMA = Group.ELEMENTWISE, 3
    # an index brought into [0, attr): negative ones wrap, others out of range stop the program
    WRAP = Group.ELEMENTWISE, 1, True
    # shape: attrs of the slice family are starts then steps, one per axis
    RESHAPE = Group.SHAPE, 1
    BROADCAST = Group.SHAPE, 1
    TRANSPOSE = Group.SHAPE, 1, True
    SLICE = Group.SHAPE, 1, True
    PAD = Group.SHAPE, 1, True
    UPDATE = Group.SHAPE, 2, True
    SLICE_ADD = Group.SHAPE, 2, True
    CONCAT = Group.SHAPE, -1, True
    ROLL = Group.SHAPE, 1, True
    # index: attr is the axis; indices are int64 and in range
    GATHER = Group.INDEX, 2, True
    SCATTER = Group.INDEX, 3, True
    SCATTER_ADD = Group.INDEX, 3, True
    # reduce: attrs are the axes; CUMSUM and RECURRENCE take axis and direction
    SUM = Group.REDUCE, 1, True
    PROD = Group.REDUCE, 1, True
    REDUCE_MAX = Group.REDUCE, 1, True
    REDUCE_MIN = Group.REDUCE, 1, True
    ARGMAX = Group.REDUCE, 1, True
    ARGMIN = Group.REDUCE, 1, True
    CUMSUM = Group.REDUCE, 1, True
    RECURRENCE = Group.REDUCE, 2, True
    # linalg: batched [b, m, k] @ [b, k, n]; attrs say which operands are transposed
    MATMUL = Group.LINALG, 2, True
    # a routine on whole arrays: its number, then its own attributes
    CALL = Group.CALL, -1, True
    # control: rows that hold body tapes; their results are taken out by RESULT rows
    LOOP = Group.CONTROL, -1, True
    TAPED_LOOP = Group.CONTROL, -1, True
    REVERSE_LOOP = Group.CONTROL, -1, True
    COND = Group.CONTROL, -1, True


#: The ops by their code; much faster than calling the enumeration.
BY_CODE = tuple(Op)
OPS: dict[int, OpRow] = {op: op.row for op in BY_CODE}

ShapeRule = Callable[..., Type]
#: op -> function(operand types..., attrs=...) -> Type; filled by the rule blocks.
SHAPE_RULES: dict[int, ShapeRule] = {}


def is_elementwise(op: int) -> bool:
    return OPS[op].group is Group.ELEMENTWISE
