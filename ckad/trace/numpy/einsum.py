"""``np.einsum``: operands are contracted two at a time, each pair as one batched matrix product;
powers of matrices, systems of equations between tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.arrays import (
    Array,
    batched,
    copied,
    diagonal_view,
    own,
    promoted,
    reshaped,
    retyped,
    spread,
    stored,
    traced,
)
from ckad.trace.dispatch import REAL, STATIC, implements, reject
from ckad.trace.numpy.linalg import floats, inv, matrices, solve

Labels = tuple[str, ...]


@implements(np.einsum)
def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Array:
    reject(order not in ("K", "C", "A"), f"np.einsum with order={order!r}")
    subscripts, arrays = _read(operands)
    xs = promoted(*map(traced, arrays))
    xs = [retyped(x, dtype) for x in xs] if dtype is not None else xs
    terms, output = _labels(subscripts, xs)
    lengths = _lengths(terms, xs)
    if len(xs) == 1 and set(terms[0]) == set(output):
        return stored(_rearranged(xs[0], terms[0], output, writable=True), out)
    pairs = [_prepared(x, term) for x, term in zip(xs, terms, strict=True)]
    result = _contracted(pairs, output, lengths)
    if len(result.shape) > 1:
        result.storage.plain = False  # NumPy orders the axes as its iterator finds best
    return stored(result, out)


# --- reading the subscripts --------------------------------------------------------------------


def _read(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts as text, and the arrays; lists of axis numbers become letters."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    arrays, lists = list(operands[0::2]), list(operands[1::2])
    output = None
    if len(arrays) > len(lists):
        output = _letters(arrays.pop())
    text = ",".join(_letters(axes) for axes in lists)
    return text if output is None else f"{text}->{output}", arrays


def _letters(axes: Sequence[Any]) -> str:
    return "".join("..." if k is Ellipsis else ascii_letters[k] for k in axes)


def _labels(subscripts: str, xs: Sequence[Array]) -> tuple[list[Labels], Labels]:
    """One label per axis of each operand and of the result; ``...`` gives labels "0", "1", ..."""
    left, arrow, right = subscripts.partition("->")
    texts = left.split(",")
    if len(texts) != len(xs):
        raise ValueError(
            at_place(f"einsum {subscripts!r} names {len(texts)} operands, {len(xs)} given")
        )
    terms = [_expanded(text, x.ndim) for text, x in zip(texts, xs, strict=True)]
    extra = max((tuple(s for s in term if s.isdigit()) for term in terms), key=len)
    dots = tuple(sorted(extra, key=int, reverse=True))
    if arrow:
        return terms, _with_dots(right, dots)
    seen = [s for term in terms for s in term if not s.isdigit()]
    return terms, (*dots, *sorted(s for s in set(seen) if seen.count(s) == 1))


def _expanded(text: str, rank: int) -> Labels:
    # the axes of ... are numbered from the last one, so that they broadcast
    count = rank - len(text.replace("...", ""))
    if count < 0 or (count and "..." not in text):
        raise ValueError(
            at_place(f"einsum subscript {text!r} does not fit an array of {rank} axes")
        )
    return _with_dots(text, tuple(str(k) for k in range(count)[::-1]))


def _with_dots(text: str, dots: Labels) -> Labels:
    before, found, after = text.partition("...")
    return (*before, *(dots if found else ()), *after)


def _lengths(terms: Sequence[Labels], xs: Sequence[Array]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        if len(set(term)) < len(set(zip(term, x.shape, strict=True))):
            raise ValueError(at_place(f"einsum needs equal lengths in {term}, got {x.shape}"))
        for s, n in zip(term, x.shape, strict=True):
            known = lengths.get(s, 1)
            if 1 not in (n, known) and n != known:
                raise ValueError(
                    at_place(f"einsum subscript {s!r} stands for lengths {known} and {n}")
                )
            lengths[s] = n if known == 1 else known
    return lengths


# --- one operand -------------------------------------------------------------------------------


def _prepared(x: Array, term: Labels) -> tuple[Array, Labels]:
    """Each label once: diagonals taken."""
    once = tuple(dict.fromkeys(term))
    return _rearranged(x, term, once, writable=False), once


def _rearranged(x: Array, term: Labels, order: Labels, *, writable: bool) -> Array:
    """A view of ``x`` with repeated labels as diagonals, its axes in ``order``."""
    labels = list(term)
    while len(set(labels)) < len(labels):
        s = next(s for s in labels if labels.count(s) > 1)
        i = labels.index(s)
        j = labels.index(s, i + 1)
        x = diagonal_view(x, 0, i, j, writable)
        labels = [t for k, t in enumerate(labels) if k not in (i, j)] + [s]
    return np.transpose(x, [labels.index(s) for s in order])


# --- contraction -------------------------------------------------------------------------------


def _contracted(
    pairs: list[tuple[Array, Labels]], output: Labels, lengths: dict[str, int]
) -> Array:
    for group in _path(pairs, output):
        taken = [pairs.pop(k) for k in sorted(group, reverse=True)]
        x, term = taken.pop()
        while taken:
            y, other = taken.pop()
            needed = _needed([*pairs, *taken], output)
            left = _summed(x, term, needed | set(other))
            right = _summed(y, other, needed | set(term))
            x, term = _pair(left, right, needed, lengths)
        pairs.append(_summed(x, term, _needed(pairs, output)))
    x, term = pairs[0]
    turned = np.transpose(x, [term.index(s) for s in output])
    return own(spread(turned, tuple(lengths[s] for s in output)))


def _path(pairs: Sequence[tuple[Array, Labels]], output: Labels) -> list[tuple[int, ...]]:
    """Which operands to contract after each other."""
    if len(pairs) <= 2:
        return [tuple(range(len(pairs)))]
    letters = dict(
        zip(dict.fromkeys(s for _, term in pairs for s in term), ascii_letters, strict=False)
    )
    text = ",".join("".join(letters[s] for s in term) for _, term in pairs)
    shapes = [np.broadcast_to(0.0, x.shape) for x, _ in pairs]
    path, _ = np.einsum_path(
        f"{text}->{''.join(letters[s] for s in output)}", *shapes, optimize="greedy"
    )
    return path[1:]


def _needed(pairs: Sequence[tuple[Array, Labels]], output: Labels) -> set[str]:
    return {s for _, term in pairs for s in term} | set(output)


def _summed(x: Array, term: Labels, needed: set[str]) -> tuple[Array, Labels]:
    """Sum over the labels that nothing else has."""
    gone = tuple(k for k, s in enumerate(term) if s not in needed)
    if not gone:
        return x, term
    total = np.sum(x, gone)
    return retyped(total, x.dtype), tuple(s for s in term if s in needed)


def _pair(
    left: tuple[Array, Labels],
    right: tuple[Array, Labels],
    needed: set[str],
    lengths: dict[str, int],
) -> tuple[Array, Labels]:
    (x, a), (y, b) = left, right
    shared = [s for s in a if s in b]
    batch = [s for s in shared if s in needed]
    summed = [s for s in shared if s not in needed]
    rows, columns = [s for s in a if s not in shared], [s for s in b if s not in shared]
    if not summed or not (rows or columns):
        return _elementwise(x, a, y, b, [*batch, *rows, *columns], summed)
    # every axis but the free ones must have its full length on both sides
    own = dict(zip((*a, *b), (*x.shape, *y.shape), strict=True))
    sizes = own | {s: lengths[s] for s in shared}
    m, n, k = (math.prod(sizes[s] for s in part) for part in (rows, columns, summed))
    count = math.prod(sizes[s] for s in batch)
    lhs = reshaped(_ordered(x, a, [*batch, *rows, *summed], sizes), (count, m, k))
    rhs = reshaped(_ordered(y, b, [*batch, *summed, *columns], sizes), (count, k, n))
    labels = (*batch, *rows, *columns)
    return reshaped(batched(lhs, rhs), [sizes[s] for s in labels]), labels


def _ordered(x: Array, term: Labels, order: Sequence[str], sizes: dict[str, int]) -> Array:
    turned = np.transpose(x, [term.index(s) for s in order])
    return spread(turned, tuple(sizes[s] for s in order))


def _elementwise(
    x: Array, a: Labels, y: Array, b: Labels, kept: Sequence[str], summed: Sequence[str]
) -> tuple[Array, Labels]:
    """The product over all labels, summed over those not kept."""
    order = [*kept, *summed]
    product = np.multiply(_spread(x, a, order), _spread(y, b, order))
    if summed:
        total = np.sum(product, tuple(range(len(kept), len(order))))
        product = retyped(total, product.dtype)
    return product, tuple(kept)


def _spread(x: Array, term: Labels, order: Sequence[str]) -> Array:
    """``x`` with its axes in ``order``, one of length 1 where it has no such label."""
    turned = np.transpose(x, [term.index(s) for s in order if s in term])
    lengths = dict(zip(term, x.shape, strict=True))
    return reshaped(turned, [lengths.get(s, 1) for s in order])


# --- systems of equations between tensors --------------------------------------------------------


@implements(np.linalg.tensorsolve, kind=STATIC)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    x, right = floats(a), floats(b)
    if axes is not None:
        moved = [k % x.ndim for k in axes]
        x = np.transpose(x, [k for k in range(x.ndim) if k not in moved] + moved)
    unknown = x.shape[right.ndim :]
    n = math.prod(unknown)
    if x.size != n * n:
        raise np.linalg.LinAlgError(at_place(f"{x.shape} is no square matrix for b {right.shape}"))
    return reshaped(solve(reshaped(x, (n, n)), reshaped(right, (n,))), unknown)


@implements(np.linalg.tensorinv, kind=STATIC)
def tensorinv(a: Any, ind: int = 2) -> Array:
    x = floats(a)
    if ind <= 0:
        raise ValueError(at_place("ind has to be positive"))
    n = math.prod(x.shape[ind:])
    return reshaped(inv(reshaped(x, (x.size // max(n, 1), n))), (*x.shape[ind:], *x.shape[:ind]))


# --- ``np.linalg``: products -------------------------------------------------------------------


@implements(np.linalg.matrix_power, kind=STATIC)
def matrix_power(a: Any, n: int) -> Array:
    x = traced(a)
    n_rows = matrices(x).shape[-1]
    if n < 0:
        x, n = inv(x), -n
    result: Any = None
    while n:
        if n & 1:
            result = x if result is None else np.matmul(result, x)
        n >>= 1
        x = np.matmul(x, x) if n else x
    if result is None:
        result = spread(np.eye(n_rows, dtype=x.dtype), x.shape)
    return copied(result)


@implements(np.linalg.outer, kind=REAL)
def outer_of_vectors(x1: Any, x2: Any, /) -> Array:
    if traced(x1).ndim != 1 or traced(x2).ndim != 1:
        raise ValueError(at_place("np.linalg.outer takes one-dimensional arrays"))
    return np.outer(x1, x2)


implements(np.linalg.vecdot, kind=REAL)(
    # NumPy's stubs know no axis of np.vecdot
    lambda x1, x2, /, *, axis=-1: np.vecdot(x1, x2, axis=axis)  # type: ignore[call-overload]
)
implements(np.linalg.diagonal)(lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1))
implements(np.linalg.trace)(
    lambda x, /, *, offset=0, dtype=None: np.trace(x, offset, -2, -1, dtype)
)
