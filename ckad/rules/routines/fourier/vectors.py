"""Vectors of eight numbers, each of another line: the butterflies of a transform, in LLVM's IR.

A complex vector is two of real numbers, which lie where addresses say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ckad.rules.ir import constant
from ckad.rules.ir import intrinsic as llvm_intrinsic

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_PLACES = ir.VectorType(ir.IntType(32), LANES)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)
_fused = llvm_intrinsic("llvm.fmuladd")

_Value = Any
_Complex = tuple[_Value, _Value]


class _Vectors:
    """What is computed with them, at an IR builder."""

    def __init__(self, b: ir.IRBuilder) -> None:
        self.b = b

    def at(self, address: _Value, k: int, step: _Value) -> _Value:
        far = self.b.add(address, self.b.mul(step, ir.Constant(address.type, k)))
        return self.b.inttoptr(far, _VECTOR.as_pointer())

    def load(self, address: _Value, k: int, step: _Value) -> _Value:
        return self.b.load(self.at(address, k, step), align=8)

    def store(self, x: _Value, address: _Value, k: int, step: _Value) -> None:
        self.b.store(x, self.at(address, k, step), align=8)

    def everywhere(self, x: _Value) -> _Value:
        one = self.b.insert_element(_UNDEFINED, x, ir.Constant(ir.IntType(32), 0))
        return self.b.shuffle_vector(one, _UNDEFINED, ir.Constant(_PLACES, [0] * LANES))

    def root(self, address: _Value, k: int) -> _Complex:
        """The ``k``-th complex number at an address, in all lanes."""
        b, pair = self.b, self.b.inttoptr(address, ir.DoubleType().as_pointer())
        parts = (b.gep(pair, [ir.Constant(ir.IntType(64), 2 * k + j)]) for j in (0, 1))
        re, im = (self.everywhere(b.load(part)) for part in parts)
        return re, im

    def add(self, x: _Complex, y: _Complex) -> _Complex:
        return self.b.fadd(x[0], y[0]), self.b.fadd(x[1], y[1])

    def sub(self, x: _Complex, y: _Complex) -> _Complex:
        return self.b.fsub(x[0], y[0]), self.b.fsub(x[1], y[1])

    def add_turned(self, x: _Complex, y: _Complex) -> _Complex:
        """x - i y: ``y`` is turned as far as a quarter of a period forward."""
        return self.b.fadd(x[0], y[1]), self.b.fsub(x[1], y[0])

    def sub_turned(self, x: _Complex, y: _Complex) -> _Complex:
        return self.b.fsub(x[0], y[1]), self.b.fadd(x[1], y[0])

    def scaled(self, x: _Complex, by: float) -> _Complex:
        return self.b.fmul(x[0], constant(x[0], by)), self.b.fmul(x[1], constant(x[1], by))

    def add_scaled(self, x: _Complex, y: _Complex, by: float) -> _Complex:
        factor = constant(x[0], by)
        return _fused(self.b, y[0], factor, x[0]), _fused(self.b, y[1], factor, x[1])

    def mul(self, x: _Complex, w: _Complex) -> _Complex:
        b = self.b
        re = _fused(b, x[0], w[0], b.fneg(b.fmul(x[1], w[1])))
        return re, _fused(b, x[0], w[1], b.fmul(x[1], w[0]))

    def conjugate(self, x: _Complex) -> _Complex:
        return x[0], self.b.fneg(x[1])

    def turned(self, rows: list[_Value]) -> list[_Value]:
        """The transpose of a matrix of eight rows."""
        half = LANES // 2
        while half:  # blocks beside the diagonal change places, then those in each of the four
            low = [k + (LANES - half if k & half else 0) for k in range(LANES)]
            high = [k + (LANES if k & half else half) for k in range(LANES)]
            for k in (k for k in range(LANES) if not k & half):
                pair = rows[k], rows[k + half]
                rows[k] = self.b.shuffle_vector(*pair, ir.Constant(_PLACES, low))
                rows[k + half] = self.b.shuffle_vector(*pair, ir.Constant(_PLACES, high))
            half //= 2
        return rows

    def transform(self, x: Sequence[_Complex]) -> list[_Complex]:
        """The sums of x[j] exp(-2 pi i j k / n), n = 2, 3, 4, 5 or 8."""
        match len(x):
            case 2:
                return [self.add(x[0], x[1]), self.sub(x[0], x[1])]
            case 3:
                return self._third(x)
            case 5:
                return self._fifth(x)
        even, odd = self.transform(x[::2]), self.transform(x[1::2])
        if len(x) == 4:
            (a, b), (c, d) = even, odd
            return [self.add(a, c), self.add_turned(b, d), self.sub(a, c), self.sub_turned(b, d)]
        return self._eighth(even, odd)

    def _third(self, x: Sequence[_Complex]) -> list[_Complex]:
        both = self.add(x[1], x[2])
        apart = self.scaled(self.sub(x[1], x[2]), math.sqrt(0.75))
        middle = self.add_scaled(x[0], both, -0.5)
        first = self.add(x[0], both)
        return [first, self.add_turned(middle, apart), self.sub_turned(middle, apart)]

    def _fifth(self, x: Sequence[_Complex]) -> list[_Complex]:
        c, s = ([f(2 * k * math.pi / 5) for k in (1, 2)] for f in (math.cos, math.sin))
        a, b = self.add(x[1], x[4]), self.add(x[2], x[3])
        u, v = self.sub(x[1], x[4]), self.sub(x[2], x[3])
        near = self.add_scaled(self.add_scaled(x[0], a, c[0]), b, c[1])
        far = self.add_scaled(self.add_scaled(x[0], a, c[1]), b, c[0])
        p = self.add_scaled(self.scaled(v, s[1]), u, s[0])
        q = self.add_scaled(self.scaled(v, -s[0]), u, s[1])
        ends = [self.sub_turned(far, q), self.sub_turned(near, p)]
        total = self.add(self.add(x[0], a), b)
        return [total, self.add_turned(near, p), self.add_turned(far, q), *ends]

    def _eighth(self, e: list[_Complex], o: list[_Complex]) -> list[_Complex]:
        b, h = self.b, math.sqrt(0.5)
        first = b.fadd(*o[1]), b.fsub(o[1][1], o[1][0])  # (1 - i) o[1]
        third = b.fsub(o[3][1], o[3][0]), b.fneg(b.fadd(*o[3]))  # (-1 - i) o[3]
        return [
            self.add(e[0], o[0]),
            self.add_scaled(e[1], first, h),
            self.add_turned(e[2], o[2]),
            self.add_scaled(e[3], third, h),
            self.sub(e[0], o[0]),
            self.add_scaled(e[1], first, -h),
            self.sub_turned(e[2], o[2]),
            self.add_scaled(e[3], third, -h),
        ]


def butterfly(radix: int, is_first: bool) -> Any:
    """``f(re, im, step, to_re, to_im, to_step, roots, by_re, by_im)``: a transform of ``radix``
    vectors, which are first multiplied by the two numbers, or later by roots of one."""

    def emitted(
        context: Any, re: Any, im: Any, step: Any, to_re: Any, to_im: Any, to_step: Any,
        roots: Any, by_re: Any, by_im: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
            re, im, step, to_re, to_im, to_step, roots, by_re, by_im = args
            v = _Vectors(b)
            x = [(v.load(re, k, step), v.load(im, k, step)) for k in range(radix)]
            if is_first:
                factors = v.everywhere(by_re), v.everywhere(by_im)
                x = [_times(v, y, factors) for y in x]
            else:
                x[1:] = [v.mul(y, v.root(roots, k)) for k, y in enumerate(x[1:])]
            for k, y in enumerate(v.transform(x)):
                v.store(y[0], to_re, k, to_step)
                v.store(y[1], to_im, k, to_step)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7, types.float64, types.float64), generate

    return intrinsic(emitted)


def _transposed(context: Any, at: Any, step: Any, to: Any, to_step: Any) -> Any:
    """A matrix of eight rows and columns, whose rows are so many bytes apart."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        at, step, to, to_step = args
        v = _Vectors(b)
        for k, row in enumerate(v.turned([v.load(at, k, step) for k in range(LANES)])):
            v.store(row, to, k, to_step)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


transposed = intrinsic(_transposed)


def _across(
    context: Any, re: Any, im: Any, step: Any, roots: Any, to_re: Any, to_im: Any, to_step: Any
) -> Any:
    """Out of eight vectors, whose lanes are parts of one line, eight numbers of each part of its
    transform; ``roots`` are so many vectors that they are multiplied by, in pairs."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        re, im, step, roots, to_re, to_im, to_step = args
        v = _Vectors(b)
        wide = ir.Constant(roots.type, 2 * 8 * LANES)
        imag = b.add(roots, ir.Constant(roots.type, 8 * LANES))
        x = []
        for k in range(LANES):
            root = v.load(roots, k, wide), v.load(imag, k, wide)
            x.append(v.mul((v.load(re, k, step), v.load(im, k, step)), root))
        turned = (v.turned([y[part] for y in x]) for part in (0, 1))
        for k, y in enumerate(v.transform(list(zip(*turned, strict=True)))):
            v.store(y[0], to_re, k, to_step)
            v.store(y[1], to_im, k, to_step)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), generate


across = intrinsic(_across)


def _opposite(meets: Any) -> Any:
    """``f(re, im, there, to_re, to_im, to_there, root, by_re, by_im)``: what ``meets`` makes of a
    number and of the one of opposite frequency, which lies ``there`` further."""

    def emitted(
        context: Any, re: Any, im: Any, there: Any, to_re: Any, to_im: Any, to_there: Any,
        root: Any, by_re: Any, by_im: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
            re, im, there, to_re, to_im, to_there, root, by_re, by_im = args
            v = _Vectors(b)
            factors = v.everywhere(by_re), v.everywhere(by_im)
            x, y = ((v.load(re, k, there), v.load(im, k, there)) for k in (0, 1))
            for k, pair in enumerate(meets(v, x, y, v.root(root, 0), factors)):
                v.store(pair[0], to_re, k, to_there)
                v.store(pair[1], to_im, k, to_there)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7, types.float64, types.float64), generate

    return intrinsic(emitted)


def _times(v: _Vectors, x: _Complex, factors: _Complex) -> _Complex:
    return v.b.fmul(x[0], factors[0]), v.b.fmul(x[1], factors[1])


def _apart(v: _Vectors, x: _Complex, y: _Complex, w: _Complex, by: _Complex) -> Any:
    y = v.conjugate(y)
    even, odd = v.add(x, y), v.mul(v.sub(x, y), w)  # twice each, and i times the odd ones
    low, high = v.add_turned(even, odd), v.sub_turned(even, odd)
    return _times(v, low, by), _times(v, v.conjugate(high), by)


def _together(v: _Vectors, x: _Complex, y: _Complex, w: _Complex, by: _Complex) -> Any:
    x, y = _times(v, x, by), v.conjugate(_times(v, y, by))
    even, odd = v.add(x, y), v.mul(v.sub(x, y), v.conjugate(w))
    return v.sub_turned(even, odd), v.conjugate(v.add_turned(even, odd))


#: Twice the spectrum of a real array out of that of pairs of its numbers, and the way back.
apart, together = _opposite(_apart), _opposite(_together)
