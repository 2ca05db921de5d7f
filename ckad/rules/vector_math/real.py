"""Values of LLVM IR with Python's operators, so that a formula reads as one.

Each class serves one double or a vector of doubles with any number of lanes. No operation may be
reordered or contracted, so a lane's bits do not depend on how many lanes there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm

from ckad.rules import ir

SIGN = -(2**63)


@dataclass(frozen=True, eq=False)
class _Lanes:
    """An IR value and the builder at whose place operations on it are written."""

    b: Any
    value: Any

    def _of(self, other: Any) -> Any:
        """The IR value of an operand; a Python number is one in every lane."""
        return other.value if isinstance(other, _Lanes) else ir.constant(self.value, other)


class Mask(_Lanes):
    """A truth value per lane."""

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.b, self.b.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.b, self.b.or_(self.value, other.value))

    def __invert__(self) -> Mask:
        return Mask(self.b, self.b.not_(self.value))

    def is_anywhere(self) -> Any:
        """Whether it is true in a lane, one bit."""
        type = self.value.type
        if not isinstance(type, llvm.VectorType):
            return self.value
        word = llvm.IntType(type.count)
        return self.b.icmp_unsigned("!=", self.b.bitcast(self.value, word), llvm.Constant(word, 0))

    def or_else(self, value: Real, other: Callable[[], Real], rarely: bool = False) -> Real:
        """``value`` where it is true, else the other, which is skipped where no lane needs it."""
        b, lacks = self.b, (~self).is_anywhere()
        before, inside, after = b.block, *(b.append_basic_block(n) for n in ("other", "end"))
        branch = b.cbranch(lacks, inside, after)
        if rarely:
            branch.set_weights([1, 10_000])
        b.position_at_end(inside)
        chosen, last = where(self, value, other()), b.block
        b.branch(after)
        b.position_at_end(after)
        result = b.phi(value.value.type)
        result.add_incoming(value.value, before)
        result.add_incoming(chosen.value, last)
        return Real(b, result)


def _integer_operation(name: str) -> Callable[[Bits, Any], Bits]:
    return lambda x, y: Bits(x.b, getattr(x.b, name)(x.value, x._of(y)))


class Bits(_Lanes):
    """An int64 per lane; ``>>`` shifts in zeros."""

    __add__ = _integer_operation("add")
    __sub__ = _integer_operation("sub")
    __and__ = _integer_operation("and_")
    __or__ = _integer_operation("or_")
    __xor__ = _integer_operation("xor")
    __lshift__ = _integer_operation("shl")
    __rshift__ = _integer_operation("lshr")

    def is_nonzero(self) -> Mask:
        return Mask(self.b, self.b.icmp_signed("!=", self.value, self._of(0)))

    def real(self) -> Real:
        """The double with these bits."""
        return Real(self.b, self.b.bitcast(self.value, ir.floats_like(self.value)))


def _operation(name: str) -> Callable[[Real, Any], Real]:
    return lambda x, y: Real(x.b, getattr(x.b, name)(x.value, x._of(y)))


def _reflected(name: str) -> Callable[[Real, Any], Real]:
    return lambda x, y: Real(x.b, getattr(x.b, name)(x._of(y), x.value))


def _comparison(relation: str) -> Callable[[Real, Any], Mask]:
    return lambda x, y: Mask(x.b, x.b.fcmp_ordered(relation, x.value, x._of(y)))


class Real(_Lanes):
    """A double per lane. Comparisons with NaN are false."""

    __add__, __radd__ = _operation("fadd"), _reflected("fadd")
    __sub__, __rsub__ = _operation("fsub"), _reflected("fsub")
    __mul__, __rmul__ = _operation("fmul"), _reflected("fmul")
    __truediv__, __rtruediv__ = _operation("fdiv"), _reflected("fdiv")
    __lt__, __gt__ = _comparison("<"), _comparison(">")
    equals = _comparison("==")

    def __neg__(self) -> Real:
        return Real(self.b, self.b.fneg(self.value))

    def __abs__(self) -> Real:
        return Real(self.b, ir.intrinsic("llvm.fabs")(self.b, self.value))

    def bits(self) -> Bits:
        return Bits(self.b, self.b.bitcast(self.value, ir.integers_like(self.value)))

    def sign(self) -> Bits:
        """The sign bit alone, in its place."""
        return self.bits() & SIGN

    def flipped(self, sign: Bits) -> Real:
        """The number with its sign changed where ``sign`` holds a sign bit."""
        return (self.bits() ^ sign).real()


def fma(x: Real, y: Real | float, z: Real | float) -> Real:
    """x y + z, rounded once."""
    values = (x.value, x._of(y), x._of(z))
    return Real(x.b, ir.intrinsic("llvm.fma")(x.b, *values))


def where(mask: Mask, x: Real | float, y: Real | float) -> Real:
    """x where the mask is true, else y; one of them is a ``Real``."""
    like = y if isinstance(y, Real) else x
    assert isinstance(like, Real)
    return Real(mask.b, mask.b.select(mask.value, like._of(x), like._of(y)))


def at_most(x: Real, bound: float) -> Real:
    """The smaller one; NaN stays NaN."""
    return where(x > bound, bound, x)


def at_least(x: Real, bound: float) -> Real:
    """The larger one; NaN stays NaN."""
    return where(x < bound, bound, x)
