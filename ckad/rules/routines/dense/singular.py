"""Singular values and vectors, real or complex, on stacks in C order.

Formulas of derivatives: J. Townsend, "Differentiating the singular value decomposition", 2016.
Where singular values are equal, ``gaps`` says what becomes of the derivatives of their vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.gaps import Divisor, divided
from ckad.rules.routines.dense.lapack import (
    BLOCK,
    NO_CONVERGENCE,
    A,
    S,
    set_sizes,
    turned,
    turned_into_parts,
    turned_parts,
)
from ckad.rules.routines.dense.matrices import (
    Matrix,
    eye,
    matrices,
    matrix,
    need,
    part,
    placed,
    stacks,
)
from ckad.rules.routines.memory import (
    HEAD,
    compiled,
    copy,
    doubles,
    external,
    from_code,
    integers,
    letters,
)
from ckad.tape.builder import Builder
from ckad.tape.routines import Attributes, Failure, Routine, define
from ckad.tape.types import Type, type_of

_dgesdd = external("dgesdd", 14)
_zgesdd = external("zgesdd", 15)
#: NumPy's words.
NO_SINGULAR_VALUES: Failure = (np.linalg.LinAlgError, "SVD did not converge")

# --- singular values ------------------------------------------------------------------------------

# svd(A [b, m, n]; full, complex) -> [b, 1, size], k = min(m, n): U [m, k], then V^H [k, n], then
# the singular values; U [m, m] and V^H [n, n] if ``full``. The tangent of the result holds what all
# three are derived of: U^H dA V [k, k], and below it dA V if m > n, or dA^H U if n > m.


class _Sizes:
    """Where the factors of an [m, n] matrix are."""

    def __init__(self, m: int, n: int, full: int) -> None:
        self.k = min(m, n)
        self.u = (m, m if full else self.k)
        self.v = (n if full else self.k, n)
        self.of_v = self.u[0] * self.u[1]
        self.of_s = self.of_v + self.v[0] * self.v[1]
        self.size = self.of_s + self.k


def _svd_shape(attrs: Attributes, a: Type) -> Type:
    stacks("svd", attrs, 2, a)
    batch, m, n = a.shape
    return a.with_shape((batch, 1, _Sizes(m, n, attrs[0]).size))


def _svd(words: int, arrays: int, work: int) -> int:
    full, is_complex, planes, m, n = integers(words, 5)
    out, a = integers(arrays, 2)
    batch, width, k = planes >> is_complex, 1 + is_complex, min(m, n)
    columns, rows = (m, n) if full else (k, k)
    size = m * columns + rows * n + k
    text, sizes = letters(work + 48, 1), set_sizes(work, m, m)
    text[0] = A if full else S
    sizes[3], sizes[4], sizes[5] = n, max(rows, 1), _length_in_code(m, n, is_complex)
    z = work + HEAD
    u = z + 8 * width * m * n
    v = u + 8 * width * m * columns
    values = v + 8 * width * rows * n
    space = values + 8 * k
    more = space + 8 * width * _length_in_code(m, n, is_complex)
    reals = more + 32 * k
    for number in range(batch):
        at, im = a + 8 * number * m * n, a + 8 * (batch + number) * m * n
        to, to_im = out + 8 * number * size, out + 8 * (batch + number) * size
        of_v, of_s = 8 * m * columns, 8 * (m * columns + rows * n)
        if k == 0:
            _ones(to, m, columns)
            _ones(to + of_v, rows, n)
        elif is_complex:
            turned_parts(z, at, im, m, n)
            _zgesdd(work + 48, work, work + 12, z, work + 4, values, u, work + 4, v, work + 16,
                    space, work + 20, reals, more, work + 8)  # fmt: skip
            turned_into_parts(to, to_im, u, columns, m)
            turned_into_parts(to + of_v, to_im + of_v, v, n, rows)
        else:
            turned(z, at, m, n)
            _dgesdd(work + 48, work, work + 12, z, work + 4, values, u, work + 4, v, work + 16,
                    space, work + 20, more, work + 8)  # fmt: skip
            turned(to, u, columns, m)
            turned(to + of_v, v, n, rows)
        if sizes[2]:
            return NO_CONVERGENCE
        copy(doubles(to + of_s, k), doubles(values, k))
        if is_complex:
            doubles(to_im + of_s, k)[:] = 0.0
    return 0


@kernel
def _ones(to: int, rows: int, columns: int) -> None:
    """A part of the identity matrix, which an empty matrix has as its factors."""
    target = doubles(to, rows * columns)
    for i in range(rows):
        for j in range(columns):
            target[i * columns + j] = 1.0 if i == j else 0.0


def _length(m: int, n: int, is_complex: int) -> int:
    """The numbers that LAPACK wants as its workspace."""
    k = min(m, n)
    return (1 if is_complex else 4) * k * k + 7 * k + (BLOCK + 1) * (m + n + 1)


_length_in_code = kernel(_length)


def _svd_workspace(attrs: Attributes, a: Type) -> int:
    full, is_complex = attrs
    _, m, n = a.shape
    sizes, k, more = _Sizes(m, n, full), min(m, n), max(m, n)
    reals = is_complex * max(5 * k * k + 5 * k, 2 * more * k + 2 * k * k + k)
    numbers = m * n + sizes.size + _length(m, n, is_complex)
    return int(8 * ((1 + is_complex) * numbers + 5 * k + reals))


_SVD = compiled(_svd, _svd_workspace, {NO_CONVERGENCE: NO_SINGULAR_VALUES})


def _svd_jvp(b: Builder, tangents: Tangents, out: int, a: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    f, change = _factors_of(b, out, a, attrs), matrix(b, tangents[0], attrs[1])
    (m, n), along = f.shape, change @ f.v
    return f.held(f.u.H @ along, along if m > n else change.H @ f.u if n > m else None)


def _svd_vjp(b: Builder, ct: int, out: int, a: int, attrs: Attributes) -> tuple[int]:
    """ct_A = (U K + P) V^H, or U (V K^H + Q)^H"""
    f = _factors_of(b, out, a, attrs)
    (m, n), (inner, beyond) = f.shape, f.parts(ct)
    x, y, k = (f.v, f.u, inner.H) if n > m else (f.u, f.v, inner)
    found = (x @ k if beyond is None else x @ k + beyond) @ y.H
    return ((found.H if n > m else found).stacked(attrs[1]),)


def _factors_of(b: Builder, factors: int, a: int, attrs: Attributes) -> _Factors:
    return _Factors(b, factors, (_U, *b.type(a).shape[1:], *attrs))


svd = from_code(
    "svd",
    _svd_shape,
    _SVD,
    _svd_jvp,
    _svd_vjp,
    lambda attrs, a: 20.0 * a.size * min(a.shape[1:]),
)

# singular(svd(A); which, m, n, full, complex) -> one of the factors: U (0), the singular values
# (1) as [b, 1, k], V^H (2)
_U, _S, _V = range(3)


def _singular_shape(attrs: Attributes, factors: Type) -> Type:
    fits = len(attrs) == 5 and attrs[0] in (_U, _S, _V) and min(attrs[1:3]) >= 0
    need(fits, f"singular with attributes {tuple(attrs)}")
    matrices("singular", factors)
    which, m, n, full, is_complex = attrs
    sizes = _Sizes(m, n, full)
    need(factors.shape[2] == sizes.size, f"singular of {factors} and attributes {tuple(attrs)}")
    planes = factors.shape[0]
    if which == _S:
        return factors.with_shape((planes >> is_complex, 1, sizes.k))
    return factors.with_shape((planes, *(sizes.u if which == _U else sizes.v)))


def _singular(attrs: Attributes, factors: np.ndarray) -> np.ndarray:
    shape, (which, m, n, full, _) = _singular_shape(attrs, type_of(factors)).shape, attrs
    start = (0, _Sizes(m, n, full).of_s, _Sizes(m, n, full).of_v)[which]
    chosen = factors[: shape[0], 0, start : start + shape[1] * shape[2]]
    return chosen.reshape(shape).copy()


class _Factors:
    """U, S and V of the thin form, what completes U and V, and how derivatives reach A."""

    def __init__(self, b: Builder, factors: int, attrs: Attributes) -> None:
        _, m, n, full, self.is_complex = attrs
        self.b, self.factors, self.shape, self.rest = b, factors, (m, n), tuple(attrs[1:])
        self.k = k = min(m, n)
        u, v = self._factor(_U), self._factor(_V).H
        self.u, self.v = u.block((0, 0), (m, k)), v.block((0, 0), (n, k))
        self.more_u = u.block((0, k), (m, m - k)) if full and m > k else None
        self.more_v = v.block((0, k), (n, n - k)) if full and n > k else None
        self.s = self._factor(_S)

    def _factor(self, which: int) -> Matrix:
        call = self.b.call(self.factors, attrs=(singular.number, which, *self.rest))
        return matrix(self.b, call, self.is_complex if which != _S else 0)

    def by_gaps(self, x: Matrix, raises: bool) -> Matrix:
        return divided(x, self.s, Divisor.SQUARES, raises)

    def by_values(self, x: Matrix, raises: bool) -> Matrix:
        return divided(x, self.s, Divisor.VALUES, raises)

    def held(self, inner: Matrix, beyond: Matrix | None) -> int:
        """A tangent or cotangent of the factors."""
        b, shape = self.b, self.b.type(self.factors).shape
        whole = inner
        if beyond is not None:
            total = (self.k + max(self.shape), self.k)
            whole = inner.within((0, 0), total) + beyond.within((self.k, 0), total)
        flat = (shape[0], 1, whole.shape[1] * self.k)
        return placed(b, b.reshape_to(whole.stacked(self.is_complex), flat), (0, 0, 0), shape)

    def parts(self, x: int) -> tuple[Matrix, Matrix | None]:
        """The way back."""
        b, batch, k = self.b, self.b.type(x).shape[0], self.k
        beyond = max(self.shape) if self.shape[0] != self.shape[1] else 0
        flat = part(b, x, (0, 0, 0), (batch, 1, (k + beyond) * k))
        whole = matrix(b, b.reshape_to(flat, (batch, k + beyond, k)), self.is_complex)
        inner = whole.block((0, 0), (k, k))
        return inner, whole.block((k, 0), (beyond, k)) if beyond else None

    def adjoint(self) -> _Factors:
        """Those of A^H: the formulas of V are those of U there."""
        other = object.__new__(_Factors)
        other.__dict__.update(self.__dict__)
        other.u, other.v, other.more_u, other.more_v = self.v, self.u, self.more_v, self.more_u
        return other

    def push_u(self, inner: Matrix, beyond: Matrix | None, phase: bool) -> Matrix:
        """dU = U (F * (dP S + S dP^H)) + (1 - U U^H) dA V S^-1 with dP = U^H dA V

        The phases of complex vectors are those of V kept, if ``phase``.
        """
        u, s, columns = self.u, self.s, self.s.T.plain()
        both = self.by_gaps(inner * s + inner.H * columns, False)
        if phase and self.is_complex:
            both = both + self.by_values(_on_diagonal(inner), False).times_i()
        found, m = u @ both, u.shape[1]
        if m > self.k and beyond is not None:
            found = found + self.by_values(beyond - u @ inner, False)
        if self.more_u is None:
            return found
        more = -(u @ (found.H @ self.more_u))
        return found.within((0, 0), (m, m)) + more.within((0, self.k), (m, m))

    def pull_u(self, ct: Matrix, phase: bool) -> tuple[Matrix, Matrix | None]:
        """The transpose of that."""
        u, s = self.u, self.s
        m = u.shape[1]
        if self.more_u is not None:
            extra = ct.block((0, self.k), (m, m - self.k))
            ct = ct.block((0, 0), (m, self.k)) - self.more_u @ (extra.H @ u)
        inner = u.H @ ct
        half = self.by_gaps(inner, True)
        middle = (half + half.H) * s
        if phase and self.is_complex:
            middle = middle + self.by_values(_on_diagonal(inner), True).times_i()
        return middle, self.by_values(ct - u @ inner, True) if m > self.k else None


def _on_diagonal(inner: Matrix) -> Matrix:
    """The imaginary part there."""
    return inner.weighted(np.eye(inner.shape[1])).imaginary()


def _singular_jvp(b: Builder, tangents: Tangents, out: int, factors: int, attrs: Attributes) -> int:
    assert tangents[0] is not None
    which, f = attrs[0], _Factors(b, factors, attrs)
    inner, beyond = f.parts(tangents[0])
    if which == _S:
        return inner.diagonal().re
    if which == _U:
        return f.push_u(inner, beyond, True).stacked(f.is_complex)
    return f.adjoint().push_u(inner.H, beyond, False).H.stacked(f.is_complex)


def _singular_vjp(b: Builder, ct: int, out: int, factors: int, attrs: Attributes) -> tuple[int]:
    which, f = attrs[0], _Factors(b, factors, attrs)
    if which == _S:
        batch, _, k = b.type(ct).shape
        return (f.held(eye(b, batch, k) * Matrix(b, ct), None),)
    z = matrix(b, ct, f.is_complex)
    if which == _U:
        return (f.held(*f.pull_u(z, True)),)
    inner, beyond = f.adjoint().pull_u(z.H, False)
    return (f.held(inner.H, beyond),)


def _singular_rows(b: Builder, operands: Sequence[int], attrs: Attributes) -> int:
    (factors,), (which, m, n, full, _) = operands, attrs
    shape = _singular_shape(attrs, b.type(factors)).shape
    start = (0, _Sizes(m, n, full).of_s, _Sizes(m, n, full).of_v)[which]
    chosen = part(b, factors, (0, 0, start), (shape[0], 1, shape[1] * shape[2]))
    return b.reshape_to(chosen, shape)


singular = define(
    Routine(
        "singular",
        _singular_shape,
        _singular,
        _singular_jvp,
        _singular_vjp,
        rows=_singular_rows,
    )
)
