"""Kernels of the vm on whole arrays: copies with strides, reductions, indexing, matrix products.

``f`` and ``i`` are the cells as float64 and as int64. Reductions fix their order by the shape
alone: a row of n elements is summed strip by strip, each strip in eight lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.engines.vm.isa import INTEGERS, STRIP, Reduce
from ckad.engines.vm.kernels.intrinsics import copy_long, copy_short, sum_cells
from ckad.kernel import kernel

_SUM, _PROD, _MAX, _MIN = int(Reduce.SUM), int(Reduce.PROD), int(Reduce.MAX), int(Reduce.MIN)
_ARGMAX = int(Reduce.ARGMAX)
_INTEGERS = INTEGERS
#: From this many cells on the C library copies faster than a loop.
LONG = 4096
#: Below this many multiplications the plain loops beat the call into BLAS.
SMALL_PRODUCT = 4096


@kernel
def copy(base: np.int64, dst: int, src: int, n: int) -> None:
    if n < LONG:
        copy_short(base, dst, src, n)
    else:
        copy_long(base, dst, src, n)


@kernel
def copy_nd(code: np.ndarray, pc: int, base: np.int64, f: np.ndarray) -> None:
    """COPY_ND: an odometer over the outer axes, the innermost axis in one go.

    ``f`` are the cells as numbers of the kind that is added; a plain copy takes either.
    """
    add, dst, src, rank = code[pc + 1], code[pc + 2], code[pc + 3], code[pc + 4]
    dims = code[pc + 5 : pc + 5 + rank]
    to = code[pc + 5 + rank : pc + 5 + 2 * rank]
    by = code[pc + 5 + 2 * rank : pc + 5 + 3 * rank]
    inner, to_step, by_step = dims[rank - 1], to[rank - 1], by[rank - 1]
    outer = 1
    for a in range(rank - 1):
        outer *= dims[a]
    for row in range(outer):
        d, s, left = dst, src, row
        for a in range(rank - 2, -1, -1):
            at = left % dims[a]
            left //= dims[a]
            d += at * to[a]
            s += at * by[a]
        copy_row(add, base, f, d, to_step, s, by_step, inner)


@kernel
def copy_row(
    add: int, base: np.int64, f: np.ndarray, d: int, to_step: int, s: int, by_step: int, n: int
) -> None:
    if add:
        for k in range(n):
            f[d + k * to_step] += f[s + k * by_step]
    elif to_step == 1 and by_step == 1:
        copy(base, d, s, n)
    else:
        for k in range(n):
            f[d + k * to_step] = f[s + k * by_step]


@kernel
def sum_row(base: np.int64, src: int, n: int) -> float:
    """Strip by strip, as a chain does it."""
    total = 0.0
    for at in range(0, n, STRIP):
        total += sum_cells(base, src + at, min(STRIP, n - at))
    return total


@kernel
def reduce(
    base: np.int64,
    f: np.ndarray,
    i: np.ndarray,
    kind: int,
    dst: int,
    src: int,
    outer: int,
    n: int,
    inner: int,
) -> None:
    """Reduce the middle axis of (outer, n, inner)."""
    if kind == _SUM and inner == 1:
        for o in range(outer):
            f[dst + o] = sum_row(base, src + o * n, n)
        return
    for o in range(outer):
        for c in range(inner):
            first = src + o * n * inner + c
            to = dst + o * inner + c
            if kind == _SUM:
                f[to] = _sum_strided(f, first, n, inner)
            elif kind == _SUM + _INTEGERS:
                i[to] = _fold_sum(i, first, n, inner)
            elif kind == _PROD:
                f[to] = _product(f, first, n, inner)
            elif kind == _PROD + _INTEGERS:
                i[to] = _product(i, first, n, inner)
            elif kind in (_MAX, _MIN):
                f[to] = f[first + inner * _extreme(f, first, n, inner, kind == _MAX)]
            elif kind in (_MAX + _INTEGERS, _MIN + _INTEGERS):
                i[to] = i[first + inner * _extreme(i, first, n, inner, kind == _MAX + _INTEGERS)]
            elif kind >= _INTEGERS:
                i[to] = _extreme(i, first, n, inner, kind == _ARGMAX + _INTEGERS)
            else:
                i[to] = _extreme(f, first, n, inner, kind == _ARGMAX)


@kernel
def _sum_strided(f: np.ndarray, first: int, n: int, step: int) -> float:
    total = 0.0
    for k in range(n):
        total += f[first + k * step]
    return total


@kernel
def _fold_sum(x: np.ndarray, first: int, n: int, step: int) -> int:
    total = 0
    for k in range(n):
        total += x[first + k * step]
    return total


@kernel
def _product(x: np.ndarray, first: int, n: int, step: int) -> Any:
    total = x[first] if n else x.dtype.type(1)
    for k in range(1, n):
        total *= x[first + k * step]
    return total


@kernel
def _extreme(x: np.ndarray, first: int, n: int, step: int, largest: bool) -> int:
    """Position of the first extreme element; the first NaN counts as extreme."""
    best = 0
    for k in range(n):
        a, b = x[first + k * step], x[first + best * step]
        if a != a:
            return k
        if (a > b) if largest else (a < b):
            best = k
    return best


@kernel
def cumsum(
    f: np.ndarray,
    i: np.ndarray,
    dst: int,
    src: int,
    outer: int,
    n: int,
    inner: int,
    backward: int,
    integers: int,
) -> None:
    for o in range(outer):
        for c in range(inner):
            at = o * n * inner + c
            total, count = 0.0, 0
            for k in range(n):
                place = at + (n - 1 - k if backward else k) * inner
                if integers:
                    count += i[src + place]
                    i[dst + place] = count
                else:
                    total += f[src + place]
                    f[dst + place] = total


@kernel
def recurrence(
    f: np.ndarray, dst: int, a: int, x: int, outer: int, n: int, inner: int, backward: int
) -> None:
    for o in range(outer):
        for c in range(inner):
            at = o * n * inner + c
            s = f.dtype.type(0)
            for k in range(n):
                place = at + (n - 1 - k if backward else k) * inner
                s = f[x + place] + f[a + place] * s
                f[dst + place] = s


@kernel
def gather(
    base: np.int64,
    i: np.ndarray,
    dst: int,
    src: int,
    idx: int,
    outer: int,
    n: int,
    n_idx: int,
    inner: int,
) -> None:
    for o in range(outer):
        for k in range(n_idx):
            copy(base, dst + (o * n_idx + k) * inner, src + (o * n + i[idx + k]) * inner, inner)


@kernel
def scatter(
    base: np.int64,
    f: np.ndarray,
    i: np.ndarray,
    add: int,
    dst: int,
    idx: int,
    src: int,
    outer: int,
    n: int,
    n_idx: int,
    inner: int,
) -> None:
    for o in range(outer):
        for k in range(n_idx):
            to, source = dst + (o * n + i[idx + k]) * inner, src + (o * n_idx + k) * inner
            if add == 1:
                for c in range(inner):
                    f[to + c] += f[source + c]
            elif add == 2:
                for c in range(inner):
                    i[to + c] += i[source + c]
            else:
                copy(base, to, source, inner)


@kernel
def wrap(i: np.ndarray, n: int, dst: int, src: int, size: int) -> bool:
    """Bring indices into [0, size); False if one is out of range."""
    for k in range(n):
        at = i[src + k]
        if at < 0:
            at += size
        if at < 0 or at >= size:
            return False
        i[dst + k] = at
    return True


@kernel
def all_finite(f: np.ndarray, src: int, n: int) -> bool:
    for k in range(n):  # noqa: SIM110  (a generator would be a closure to compile)
        if not np.isfinite(f[src + k]):
            return False
    return True


@kernel
def matmul(
    f: np.ndarray, dst: int, x: int, y: int, batch: int, m: int, k: int, n: int, tx: int, ty: int
) -> None:
    for b in range(batch):
        to, left, right = _pages(f, b, dst, x, y, m, k, n)
        if m * k * n < SMALL_PRODUCT:
            _small_product(to, left, right, m, k, n, tx, ty)
        else:
            _blas_product(to, left, right, m, k, n, tx, ty)


@kernel
def matmul_integers(
    i: np.ndarray, dst: int, x: int, y: int, batch: int, m: int, k: int, n: int, tx: int, ty: int
) -> None:
    for b in range(batch):
        to, left, right = _pages(i, b, dst, x, y, m, k, n)
        _small_product(to, left, right, m, k, n, tx, ty)


@kernel
def _pages(
    f: np.ndarray, b: int, dst: int, x: int, y: int, m: int, k: int, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrices of one batch entry: result, left and right factor."""
    to = f[dst + b * m * n : dst + (b + 1) * m * n]
    left = f[x + b * m * k : x + (b + 1) * m * k]
    return to, left, f[y + b * k * n : y + (b + 1) * k * n]


@kernel
def _small_product(
    to: np.ndarray, x: np.ndarray, y: np.ndarray, m: int, k: int, n: int, tx: int, ty: int
) -> None:
    for r in range(m):
        for c in range(n):
            total = to.dtype.type(0)
            for q in range(k):
                a = x[q * m + r] if tx else x[r * k + q]
                total += a * (y[c * k + q] if ty else y[q * n + c])
            to[r * n + c] = total


@kernel
def _blas_product(
    to: np.ndarray, x: np.ndarray, y: np.ndarray, m: int, k: int, n: int, tx: int, ty: int
) -> None:
    out = to.reshape(m, n)
    if tx and ty:
        np.dot(x.reshape(k, m).T, y.reshape(n, k).T, out)
    elif tx:
        np.dot(x.reshape(k, m).T, y.reshape(k, n), out)
    elif ty:
        np.dot(x.reshape(m, k), y.reshape(n, k).T, out)
    else:
        np.dot(x.reshape(m, k), y.reshape(k, n), out)
