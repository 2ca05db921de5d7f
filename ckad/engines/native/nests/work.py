"""What ops cost where a nest computes them."""

from __future__ import annotations

from ckad.tape.ops import Op, is_elementwise

_DEAR = {Op.DIV: 6, Op.SAFEDIV: 6, Op.SQRT: 6, Op.FLOORDIV: 20, Op.MOD: 20}
_CHEAP = """NEG ABS SIGN FLOOR CEIL TRUNC RINT STOP NOT ISNAN ISINF CONVERT ADD SUB MUL COPYSIGN
MAXIMUM MINIMUM EQ NE LT LE GT GE AND OR XOR SELECT FMA""".split()
_WORK = dict.fromkeys((Op[name] for name in _CHEAP), 1) | _DEAR
_FUNCTION = 20


def work_of(op: Op) -> int:
    """What an op on one element costs, in additions."""
    return _WORK.get(op, _FUNCTION) if is_elementwise(op) else 0
