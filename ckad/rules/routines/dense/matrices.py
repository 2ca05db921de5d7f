"""Stacks of matrices on the tape, real or complex: the words in which derivatives are written.

A routine takes and returns a stack of complex matrices as one real array, all real parts before
all imaginary ones. Its first attribute says whether that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ckad.errors import TapeError
from ckad.tape.builder import Builder
from ckad.tape.types import DType, Type


def need(condition: bool, message: str) -> None:
    if not condition:
        raise TapeError(message)


def matrices(name: str, *stacks: Type) -> None:
    """TapeError unless these are stacks of float64 matrices, as many in each."""
    shown = ", ".join(map(str, stacks))
    fits = all(t.dtype is DType.F64 and len(t.shape) == 3 for t in stacks)
    need(fits, f"{name} of {shown}; it needs float64 in three axes")
    need(len({t.shape[0] for t in stacks}) == 1, f"{name} of {shown}: stacks of different lengths")


def square(name: str, a: Type) -> None:
    need(a.shape[1] == a.shape[2], f"{name} of {a}; the matrices have to be square")


def flags(name: str, attrs: Sequence[int], n: int) -> None:
    """TapeError unless there are ``n`` attributes, each 0 or 1."""
    fits = len(attrs) == n and all(k in (0, 1) for k in attrs)
    need(fits, f"{name} with attributes {tuple(attrs)}")


def stacks(name: str, attrs: Sequence[int], n: int, *operands: Type) -> None:
    """TapeError unless these are stacks of matrices, with ``n`` flags."""
    flags(name, attrs, n)
    matrices(name, *operands)


def square_stack(name: str, attrs: Sequence[int], n: int, a: Type) -> None:
    stacks(name, attrs, n, a)
    square(name, a)


# --- complex matrices in Python ------------------------------------------------------------------


def joined(x: np.ndarray, is_complex: int) -> np.ndarray:
    """The matrices of a routine's operand."""
    if not is_complex:
        return x
    half = len(x) // 2
    z = np.empty((half, *x.shape[1:]), np.complex128)
    z.real, z.imag = x[:half], x[half:]
    return z


def parted(z: np.ndarray, is_complex: int) -> np.ndarray:
    """The way back."""
    return np.concatenate([z.real, z.imag]) if is_complex else z


# --- on the tape ---------------------------------------------------------------------------------


def add(b: Builder, terms: Sequence[int]) -> int | None:
    """The sum of what there is."""
    total: int | None = None
    for term in terms:
        total = term if total is None else b.add(total, term)
    return total


def by_either(
    b: Builder,
    tangents: Sequence[int | None],
    operands: tuple[int, int],
    form: Callable[[int, int], int],
) -> int | None:
    """The tangent of ``form`` of two operands, which is linear in each of them."""
    (by_first, by_second), (first, second) = tangents, operands
    terms = [] if by_first is None else [form(by_first, second)]
    terms += [] if by_second is None else [form(first, by_second)]
    return add(b, terms)


def bilinear(form: Callable[..., int]) -> Callable[..., int | None]:
    """The jvp of a routine that is linear in each of its first two operands; ``form(b, first,
    second, others, attrs)`` calls it."""

    def jvp(
        b: Builder, tangents: Sequence[int | None], out: int, first: int, second: int,
        *others: int, attrs: Sequence[int],
    ) -> int | None:  # fmt: skip
        return by_either(
            b, tangents[:2], (first, second), lambda x, y: form(b, x, y, others, attrs)
        )

    return jvp


def swapped(b: Builder, x: int) -> int:
    """The transpose of every matrix of a stack."""
    return b.transpose(x, attrs=(0, 2, 1))


def part(b: Builder, x: int, starts: Sequence[int], shape: Sequence[int]) -> int:
    """Elements of ``x`` from ``starts`` on."""
    if b.type(x).shape == tuple(shape):
        return x
    ones = (1,) * len(shape)
    return b.slice(x, attrs=(*starts, *ones), type=b.type(x).with_shape(tuple(shape)))


def placed(b: Builder, x: int, starts: Sequence[int], shape: Sequence[int]) -> int:
    """Zeros of ``shape`` with ``x`` from ``starts`` on."""
    if b.type(x).shape == tuple(shape):
        return x
    ones = (1,) * len(shape)
    return b.pad(x, attrs=(*starts, *ones), type=b.type(x).with_shape(tuple(shape)))


@dataclass(frozen=True)
class Matrix:
    """A stack of matrices: two values of the tape, or one if it is real."""

    b: Builder
    re: int
    im: int | None = None
    turned: bool = False  # the values hold the transposes

    @property
    def shape(self) -> tuple[int, int, int]:
        batch, rows, columns = self.b.type(self.re).shape
        return (batch, columns, rows) if self.turned else (batch, rows, columns)

    @property
    def T(self) -> Matrix:
        return replace(self, turned=not self.turned)

    @property
    def conj(self) -> Matrix:
        return self if self.im is None else replace(self, im=self.b.neg(self.im))

    @property
    def H(self) -> Matrix:
        return self.conj.T

    @property
    def real(self) -> Matrix:
        return replace(self, im=None)

    def mapped(self, change: Callable[[int], int]) -> Matrix:
        """Real and imaginary parts changed alike."""
        return replace(self, re=change(self.re), im=None if self.im is None else change(self.im))

    def plain(self) -> Matrix:
        """The same with values that are not transposed."""
        if not self.turned:
            return self
        return replace(self.mapped(partial(swapped, self.b)), turned=False)

    def __matmul__(self, other: Matrix) -> Matrix:
        if self.shape[2] == 1:
            # element by element, which is computed where it is added up
            return self._in_line(1) * other._in_line(0)
        b, turned = self.b, (self.turned, other.turned)

        def product(x: int, y: int) -> int:
            return b.matmul(x, y, attrs=turned)

        x, y, u, v = self.re, self.im, other.re, other.im
        if y is None or v is None:
            if y is not None:
                return Matrix(b, product(x, u), product(y, u))
            return Matrix(b, product(x, u), None if v is None else product(x, v))
        re = b.sub(product(x, u), product(y, v))
        return Matrix(b, re, b.add(product(x, v), product(y, u)))

    def _in_line(self, is_column: int) -> Matrix:
        """One column, or one row, whose transpose is the same numbers in line."""
        batch, n = self.shape[0], self.shape[1] * self.shape[2]
        shape = (batch, n, 1) if is_column else (batch, 1, n)
        return replace(self.mapped(lambda v: self.b.reshape_to(v, shape)), turned=False)

    def __add__(self, other: Matrix) -> Matrix:
        x, y = self.plain(), other.plain()
        if x.im is None or y.im is None:
            return Matrix(x.b, x.b.add(x.re, y.re), y.im if x.im is None else x.im)
        return Matrix(x.b, x.b.add(x.re, y.re), x.b.add(x.im, y.im))

    def __neg__(self) -> Matrix:
        return self.mapped(self.b.neg)

    def __sub__(self, other: Matrix) -> Matrix:
        return self + -other

    def __mul__(self, factor: Matrix) -> Matrix:
        """Element by element; what has one row or column is repeated, as in NumPy."""
        x, y = self.plain(), factor.plain()
        if y.im is None:
            im = None if x.im is None else _mul(x.b, x.im, y.re)
            return Matrix(x.b, _mul(x.b, x.re, y.re), im)
        if x.im is None:
            return y * x
        re = x.b.sub(_mul(x.b, x.re, y.re), _mul(x.b, x.im, y.im))
        return Matrix(x.b, re, x.b.add(_mul(x.b, x.re, y.im), _mul(x.b, x.im, y.re)))

    def over(self, divisor: Matrix) -> Matrix:
        """Divided by real numbers, 0 where the dividend is 0 whatever the divisor is."""
        x, y = self.plain(), divisor.plain()
        below = x.b.broadcast_to(y.re, x.shape)
        im = None if x.im is None else x.b.safediv(x.im, below)
        return Matrix(x.b, x.b.safediv(x.re, below), im)

    def off_diagonal(self) -> Matrix:
        return self.weighted(1.0 - np.eye(self.shape[-1]))

    def weighted(self, weights: np.ndarray) -> Matrix:
        """Times the same numbers in each matrix; where these are 0, the result is 0."""
        b, x = self.b, self.plain()
        if np.all((weights == 0) | (weights == 1)):
            kept = b.broadcast_to(b.const((weights == 1)[None]), x.shape)
            return x.mapped(lambda v: b.select(kept, v, b.full_like(v, 0.0)))
        factor = b.broadcast_to(b.const(weights[None].astype(float)), x.shape)
        return x.mapped(lambda v: b.mul(v, factor))

    def lower(self, diagonal: float = 1.0, imaginary: float | None = None) -> Matrix:
        """The lower triangle, its diagonal times ``diagonal``; that of imaginary parts likewise."""
        n = self.shape[-1]
        strict, eye = np.tril(np.ones((n, n)), -1), np.eye(n)
        found = self.real.weighted(strict + diagonal * eye)
        if self.im is None:
            return found
        of_imaginary = diagonal if imaginary is None else imaginary
        im = replace(self, re=self.im, im=None).weighted(strict + of_imaginary * eye)
        return replace(found, im=im.re)

    def diagonal(self) -> Matrix:
        """[b, 1, n]"""
        x = self.weighted(np.eye(self.shape[-1]))
        return x.sum(1)

    def sum(self, axis: int) -> Matrix:
        """Over the rows (1) or the columns (2), which stay as one."""
        b, x = self.b, self.plain()
        shape = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
        return x.mapped(lambda v: b.reshape_to(b.sum(v, attrs=(axis,)), shape))

    def imaginary(self) -> Matrix:
        """The imaginary part, as a real matrix."""
        assert self.im is not None
        return replace(self, re=self.im, im=None)

    def times_i(self) -> Matrix:
        """i times a real matrix."""
        return replace(self, re=self.b.full_like(self.re, 0.0), im=self.re)

    def block(self, starts: tuple[int, int], shape: tuple[int, int]) -> Matrix:
        x = self.plain()
        whole = (x.shape[0], *shape)
        return x.mapped(lambda v: part(x.b, v, (0, *starts), whole))

    def within(self, starts: tuple[int, int], shape: tuple[int, int]) -> Matrix:
        """Zeros of ``shape`` but for these matrices."""
        x = self.plain()
        whole = (x.shape[0], *shape)
        return x.mapped(lambda v: placed(x.b, v, (0, *starts), whole))

    def stacked(self, is_complex: int) -> int:
        """As routines take it; the imaginary part is left out if they take real matrices."""
        x = self.plain()
        if not is_complex:
            return x.re
        im = self.b.full_like(x.re, 0.0) if x.im is None else x.im
        return self.b.concat(x.re, im, attrs=(0,))


def _mul(b: Builder, x: int, y: int) -> int:
    shape = np.broadcast_shapes(b.type(x).shape, b.type(y).shape)
    return b.mul(b.broadcast_to(x, shape), b.broadcast_to(y, shape))


def matrix(b: Builder, x: int, is_complex: int) -> Matrix:
    """What a routine is given, or returns."""
    if not is_complex:
        return Matrix(b, x)
    batch, *shape = b.type(x).shape
    half = batch // 2
    re, im = (part(b, x, (k, 0, 0), (half, *shape)) for k in (0, half))
    return Matrix(b, re, im)


def eye(b: Builder, batch: int, n: int) -> Matrix:
    return Matrix(b, b.broadcast_to(b.const(np.eye(n)[None]), (batch, n, n)))


def above_square(b: Builder, x: int, is_complex: int) -> tuple[Matrix, Matrix]:
    """A stack of matrices upon square ones, as both."""
    both = matrix(b, x, is_complex)
    _, rows, n = both.shape
    return both.block((0, 0), (rows - n, n)), both.block((rows - n, 0), (n, n))
