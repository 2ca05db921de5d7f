"""Products and triangular systems of sparse matrices in CSR form.

A matrix is its numbers, ``data``, and two arrays of int32 that say where they are, ``indptr`` and
``indices``, each as int64 with two in one. The pattern is known and never differentiated. The three
products are closed under derivatives: each is linear in each of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckad.kernel import kernel
from ckad.rules.registry import Tangents
from ckad.rules.routines.dense.matrices import add, bilinear, by_either, need
from ckad.rules.routines.memory import compiled, doubles, from_code, integers, naturals
from ckad.tape.builder import Builder
from ckad.tape.types import DType, Type

#: Places as unsigned numbers: Numba then looks for no negative ones.
_U = np.uint64

Contributions = Sequence[int | None]


def packed(index: np.ndarray) -> np.ndarray:
    """Indices as routines read them: int32, two in each int64."""
    short = np.zeros(-(-len(index) // 2) * 2, np.int32)
    short[: len(index)] = index
    return short.view(np.int64)


def unpacked(words: np.ndarray, n: int) -> np.ndarray:
    """The way back."""
    return words.view(np.int32)[:n]


def check(name: str, floats: Sequence[Type], *indices: Type) -> None:
    shown = ", ".join(map(str, (*floats, *indices)))
    fits = all(t.dtype is DType.F64 for t in floats) and all(t.dtype is DType.I64 for t in indices)
    need(fits and all(len(t.shape) == 1 for t in indices), f"{name} of {shown}")


def check_pattern(name: str, m: int, nnz: int, indptr: Type, indices: Type) -> None:
    need(indptr.size == (m + 2) // 2, f"{name}: indptr {indptr} of {m} rows")
    need(indices.size == (nnz + 1) // 2, f"{name}: indices {indices} of {nnz} elements")


# --- A X, and A^T X ------------------------------------------------------------------------------

# sparse_dot(data [nnz], X [n, k], indptr, indices; transposed, m, n) -> [m, k]; X [m, k] -> [n, k]


def _dot_shape(attrs: Sequence[int], data: Type, x: Type, indptr: Type, indices: Type) -> Type:
    check("sparse_dot", (data, x), indptr, indices)
    need(len(attrs) == 3, f"sparse_dot with attributes {tuple(attrs)}")
    transposed, m, n = attrs
    check_pattern("sparse_dot", m, data.size, indptr, indices)
    rows, length = (n, m) if transposed else (m, n)
    fits = len(data.shape) == 1 and len(x.shape) == 2 and x.shape[0] == length
    need(fits, f"sparse_dot of {data} and {x}: {length} rows are needed")
    return x.with_shape((rows, x.shape[1]))


def _dot(words: int, arrays: int, work: int) -> int:
    transposed, m, n, nnz, length, k = integers(words, 6)
    out, at_data, at_x, at_indptr, at_indices = integers(arrays, 5)
    data, x = doubles(at_data, nnz), doubles(at_x, length * k)
    indptr, indices = naturals(at_indptr, m + 1), naturals(at_indices, nnz)
    y = doubles(out, (n if transposed else m) * k)
    if k == 1 and not transposed:
        times(y, x, data, indptr, indices)
    elif k == 1:
        times_transposed(y, x, data, indptr, indices)
    else:
        _times_many(y, x, data, indptr, indices, transposed, m, k)
    return 0


@kernel
def times(
    y: np.ndarray, x: np.ndarray, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray
) -> None:
    """y <- A x"""
    for i in range(len(y)):
        total = 0.0
        for p in range(_U(indptr[i]), _U(indptr[i + 1])):
            total += data[p] * x[_U(indices[p])]
        y[i] = total


@kernel
def times_transposed(
    y: np.ndarray, x: np.ndarray, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray
) -> None:
    """y <- A^T x"""
    y[:] = 0.0
    for i in range(len(x)):
        factor = x[i]
        for p in range(_U(indptr[i]), _U(indptr[i + 1])):
            y[_U(indices[p])] += data[p] * factor


@kernel
def _times_many(
    y: np.ndarray, x: np.ndarray, data: np.ndarray, indptr: np.ndarray, indices: np.ndarray,
    transposed: int, m: int, k: int,
) -> None:  # fmt: skip
    y[:] = 0.0
    width = _U(k)
    for i in range(m):
        row = _U(i) * width
        for p in range(_U(indptr[i]), _U(indptr[i + 1])):
            element, column = data[p], _U(indices[p]) * width
            to, at = (column, row) if transposed else (row, column)
            for c in range(width):
                y[to + c] += element * x[at + c]


_DOT = compiled(_dot, lambda attrs, *types: 0, calls_blas=False)


def product(b: Builder, data: int, x: int, where: Sequence[int], attrs: Sequence[int]) -> int:
    return b.call(data, x, *where, attrs=(dot.number, *attrs))


def samples(b: Builder, u: int, v: int, where: Sequence[int], attrs: Sequence[int]) -> int:
    return b.call(u, v, *where, attrs=(sampled.number, *attrs))


def turned(attrs: Sequence[int]) -> tuple[int, ...]:
    return (1 - attrs[0], *attrs[1:])


def _dot_vjp(
    b: Builder, ct: int, out: int, data: int, x: int, *where: int, attrs: Sequence[int]
) -> Contributions:
    if b.type(x).shape[1] == 1:
        both = b.call(data, x, ct, *where, attrs=(pulled.number, *attrs))
        return *_pulled_parts(b, both, b.type(data).size), None, None
    pair = (x, ct) if attrs[0] else (ct, x)
    of_data = samples(b, *pair, where, (*attrs[1:], b.type(data).size))
    return of_data, product(b, data, ct, where, turned(attrs)), None, None


def _dot_flops(attrs: Sequence[int], data: Type, x: Type, *where: Type) -> float:
    return 2.0 * data.size * x.shape[1]


dot = from_code(
    "sparse_dot",
    _dot_shape,
    _DOT,
    jvp=bilinear(product),
    vjp=_dot_vjp,
    flops=_dot_flops,
)

# --- elements of U V^T ---------------------------------------------------------------------------

# sparse_sampled(U [m, k], V [n, k], indptr, indices; m, n, nnz) -> [nnz]: products of their rows


def _sampled_shape(attrs: Sequence[int], u: Type, v: Type, indptr: Type, indices: Type) -> Type:
    check("sparse_sampled", (u, v), indptr, indices)
    need(len(attrs) == 3 and len(u.shape) == len(v.shape) == 2, f"sparse_sampled of {u} and {v}")
    m, n, nnz = attrs
    fits = u.shape[0] == m and v.shape[0] == n and u.shape[1] == v.shape[1]
    need(fits, f"sparse_sampled of {u} and {v} with {m} rows and {n} columns")
    check_pattern("sparse_sampled", m, nnz, indptr, indices)
    return u.with_shape((nnz,))


def _sample(words: int, arrays: int, work: int) -> int:
    m, n, nnz, _, k = integers(words, 5)
    out, at_u, at_v, at_indptr, at_indices = integers(arrays, 5)
    u, v, y = doubles(at_u, m * k), doubles(at_v, n * k), doubles(out, nnz)
    indptr, indices = naturals(at_indptr, m + 1), naturals(at_indices, nnz)
    width = _U(k)
    for i in range(m):
        if k == 1:
            for p in range(_U(indptr[i]), _U(indptr[i + 1])):
                y[p] = u[i] * v[_U(indices[p])]
        else:
            row = _U(i) * width
            for p in range(_U(indptr[i]), _U(indptr[i + 1])):
                column, total = _U(indices[p]) * width, 0.0
                for c in range(width):
                    total += u[row + c] * v[column + c]
                y[p] = total
    return 0


_SAMPLED = compiled(_sample, lambda attrs, *types: 0, calls_blas=False)


def _sampled_vjp(
    b: Builder, ct: int, out: int, u: int, v: int, *where: int, attrs: Sequence[int]
) -> Contributions:
    m, n, _ = attrs
    return product(b, ct, v, where, (0, m, n)), product(b, ct, u, where, (1, m, n)), None, None


sampled = from_code(
    "sparse_sampled",
    _sampled_shape,
    _SAMPLED,
    jvp=bilinear(samples),
    vjp=_sampled_vjp,
    flops=lambda attrs, u, v, *where: 2.0 * attrs[2] * u.shape[1],
)

# --- both cotangents of A x in one pass ----------------------------------------------------------

# sparse_pulled(data [nnz], x [n, 1], ct [m, 1], indptr, indices; transposed, m, n) -> [nnz + n]:
# the elements of ct x^T, and A^T ct; with A^T in place of A if transposed


def _pulled_shape(
    attrs: Sequence[int], data: Type, x: Type, ct: Type, indptr: Type, indices: Type
) -> Type:
    made = _dot_shape(attrs, data, x, indptr, indices)
    need(made == ct and ct.shape[1] == 1, f"sparse_pulled of {x} and {ct}")
    return data.with_shape((data.size + x.size,))


def _pull(words: int, arrays: int, work: int) -> int:
    transposed, m, n, nnz = integers(words, 4)
    out, at_data, at_x, at_ct, at_indptr, at_indices = integers(arrays, 6)
    length, height = (m, n) if transposed else (n, m)
    data, x, ct = doubles(at_data, nnz), doubles(at_x, length), doubles(at_ct, height)
    indptr, indices = naturals(at_indptr, m + 1), naturals(at_indices, nnz)
    of_data, of_x = doubles(out, nnz), doubles(out + 8 * nnz, length)
    if not transposed:
        of_x[:] = 0.0
    for i in range(m):
        first, last = _U(indptr[i]), _U(indptr[i + 1])
        if transposed:
            factor, total = x[i], 0.0
            for p in range(first, last):
                change = ct[_U(indices[p])]
                of_data[p] = factor * change
                total += data[p] * change
            of_x[i] = total
        else:
            factor = ct[i]
            for p in range(first, last):
                j = _U(indices[p])
                of_data[p] = factor * x[j]
                of_x[j] += data[p] * factor
    return 0


_PULLED = compiled(_pull, lambda attrs, *types: 0, calls_blas=False)


def _pulled_parts(b: Builder, both: int, nnz: int) -> tuple[int, int]:
    type = b.type(both)
    length = type.size - nnz
    first = b.slice(both, attrs=(0, 1), type=type.with_shape((nnz,)))
    second = b.slice(both, attrs=(nnz, 1), type=type.with_shape((length,)))
    return first, b.reshape_to(second, (length, 1))


def _pulled_elements(b: Builder, x: int, ct: int, where: Sequence[int], attrs: Sequence[int],
                     nnz: int) -> int:  # fmt: skip
    pair = (x, ct) if attrs[0] else (ct, x)
    return samples(b, *pair, where, (*attrs[1:], nnz))


def _pulled_jvp(
    b: Builder, tangents: Tangents, out: int, data: int, x: int, ct: int, *where: int,
    attrs: Sequence[int],
) -> int | None:  # fmt: skip
    by_data, by_x, by_ct = tangents[:3]
    nnz, length = b.type(data).size, b.type(x).size

    def elements(x: int, ct: int) -> int:
        return _pulled_elements(b, x, ct, where, attrs, nnz)

    def vector(data: int, ct: int) -> int:
        return product(b, data, ct, where, turned(attrs))

    first = by_either(b, (by_x, by_ct), (x, ct), elements)
    second = by_either(b, (by_data, by_ct), (data, ct), vector)
    if first is None and second is None:
        return None
    first = b.full_like(data, 0.0) if first is None else first
    second = b.full_like(x, 0.0) if second is None else second
    return b.concat(first, b.reshape_to(second, (length,)), attrs=(0,))


def _pulled_vjp(
    b: Builder, change: int, out: int, data: int, x: int, ct: int, *where: int,
    attrs: Sequence[int],
) -> Contributions:  # fmt: skip
    nnz = b.type(data).size
    elements, vector = _pulled_parts(b, change, nnz)
    of_x = product(b, elements, ct, where, turned(attrs))
    of_ct = add(b, [product(b, elements, x, where, attrs), product(b, data, vector, where, attrs)])
    return _pulled_elements(b, vector, ct, where, attrs, nnz), of_x, of_ct, None, None


def _pulled_alone(
    b: Builder, operands: Sequence[int], attrs: Sequence[int], part: Sequence[int]
) -> int | None:
    """What one of them is alone; a slice of both begins where the second does, or at 0."""
    data, x, ct, *where = operands
    nnz = b.type(data).size
    if nnz == 0:
        return None
    if part[0] == 0:
        return _pulled_elements(b, x, ct, where, attrs, nnz)
    return b.reshape_to(product(b, data, ct, where, turned(attrs)), (b.type(x).size,))


pulled = from_code(
    "sparse_pulled",
    _pulled_shape,
    _PULLED,
    jvp=_pulled_jvp,
    vjp=_pulled_vjp,
    flops=lambda attrs, data, *types: 3.0 * data.size,
    alone=_pulled_alone,
)
