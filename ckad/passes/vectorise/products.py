"""Sums of products of elements become matrix products.

``np.sum(x[:, :, None] * w, axis=1)``, as convolutions and projections are written, multiplies every
row of ``x`` by every column of ``w``: a MATMUL, which never lays the products out in memory. Nor
are those of a large matrix by a vector, or the matrix that a number scales (``2 * A @ x``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ckad.passes.cse import Sharing
from ckad.passes.rewrite import in_bodies, rebuild
from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Tape

#: Products of fewer elements stay in registers.
LEAST = 512
#: Elements of a matrix, and rows and columns of it, whose products with a vector are a routine's.
LARGE, SHORT = 4096, 16


class _Factor(NamedTuple):
    """A row, and the axes of the product along which its elements differ."""

    row: int
    axes: tuple[int, ...]


def products(tape: Tape) -> Tape:
    """``tape`` with sums over what two factors have in common as matrix products."""
    scaled = _scaled_matrices(tape)
    if not scaled and not any(_may_be_product(tape, row) for row in tape.rows):
        return in_bodies(tape, products)

    def product(b: Builder, row: Row, env: list[int]) -> int | None:
        if row.op is Op.MATMUL:
            return _scaled_before(b, row, env, [x in scaled for x in row.operands])
        return _product(b, row, env)

    return rebuild(tape, product, products, Sharing())


def _scaled_matrices(tape: Tape) -> set[int]:
    """Large matrices times a number, and what shapes them anew, that products alone read."""
    if Op.MATMUL not in tape.ops:
        return set()
    read_otherwise = set(tape.outputs.tolist())
    found = set[int]()
    for k in range(len(tape) - 1, -1, -1):
        op, operands, _, type, _ = tape.rows[k]
        passes = op is Op.RESHAPE and k not in read_otherwise
        if op is not Op.MATMUL and not passes:
            read_otherwise.update(operands)
        if op in (Op.MUL, Op.DIV, Op.RESHAPE) and type.is_float and type.size >= LARGE:
            found.add(k)
    return found - read_otherwise


def _scaled_before(b: Builder, row: Row, env: Sequence[int], scaled: Sequence[bool]) -> int | None:
    """A product with a vector, which the number that scales the matrix multiplies instead: the
    scaled matrix is laid out nowhere."""
    x, y = (env[k] for k in row.operands)
    for given, other, which in ((x, y, 0), (y, x, 1)):
        if scaled[which] and 4 * b.type(other).size <= b.type(given).size:
            found = _without_number(b, given, other)
            if found is not None:
                pair = found if which == 0 else found[::-1]
                return b.matmul(*pair, attrs=row.attrs)
    return None


def _without_number(b: Builder, matrix: int, vector: int) -> tuple[int, int] | None:
    """A matrix without a number that multiplies it, and the vector with that."""
    shape, k = b.type(matrix).shape, matrix
    while b.rows[k].op is Op.RESHAPE:
        (k,) = b.rows[k].operands
    row = b.rows[k]
    if row.op not in (Op.MUL, Op.DIV):
        return None
    ways = (row.operands, row.operands[::-1]) if row.op is Op.MUL else (row.operands,)
    for rest, of in ways:
        number = _number(b, of)
        if number is not None:
            spread = b.broadcast_to(number, b.type(vector).shape)
            turned = b.mul(vector, spread) if row.op is Op.MUL else b.div(vector, spread)
            return b.reshape_to(rest, shape), turned
    return None


def _may_be_product(tape: Tape, row: Row) -> bool:
    """Whether a row sums many products, which is all that can be a matrix product."""
    if row.op is not Op.SUM:
        return False
    inner = tape.rows[row.operands[0]]
    if inner.op is Op.NEG:
        inner = tape.rows[inner.operands[0]]
    return inner.op is Op.MUL and inner.type.size >= LEAST


def products_of(tape: Tape, chosen: Sequence[bool]) -> Tape:
    """The same of the rows that are ``chosen``, not in bodies.

    Vectors by parts of matrices are products, too: these are read between their bounds.
    """
    sums = zip(tape.rows, chosen, strict=True)
    if not any(yes and _may_be_product(tape, row) for row, yes in sums):
        return tape

    def product(b: Builder, row: Row, env: list[int]) -> int | None:
        return _product(b, row, env, True) if chosen[len(env)] else None

    return rebuild(tape, product, lambda body: body, Sharing())


def _product(b: Builder, row: Row, env: list[int], parts: bool = False) -> int | None:
    if row.op is not Op.SUM or not row.type.is_float or not row.attrs:
        return None
    inner = b.rows[env[row.operands[0]]]
    if inner.op is Op.NEG:
        made = _sum_of_products(b, row, b.rows[inner.operands[0]], parts)
        return None if made is None else b.neg(made)
    return _sum_of_products(b, row, inner, parts)


def _sum_of_products(b: Builder, row: Row, inner: Row, parts: bool) -> int | None:
    if inner.op is not Op.MUL or inner.type.size < LEAST:
        return None
    shape = inner.type.shape
    x, y = (_factor(b, v, shape) for v in inner.operands)
    if parts:
        x, y = _scaled_apart(b, x, y)
    wide = [a for a, n in enumerate(shape) if n != 1]
    summed = [a for a in wide if a in row.attrs]
    kept = [a for a in wide if a not in row.attrs]
    if not all(a in x.axes and a in y.axes for a in summed) or not summed:
        return None
    if not all(a in x.axes or a in y.axes for a in kept):
        return None
    batch = [a for a in kept if a in x.axes and a in y.axes]
    rows, columns = ([a for a in kept if a not in v.axes] for v in (y, x))
    if not (rows and columns):
        matrix = x if rows else y
        is_pass = not batch and _is_laid_out(b, matrix, summed, shape)
        if not (parts and _is_part(b, matrix)) and not is_pass:
            return None
        if not batch and rows and rows[0] > summed[-1]:  # a row by the matrix as it lies
            x, y, rows, columns = y, x, columns, rows
    if rows and columns and kept.index(columns[0]) < kept.index(rows[0]):
        x, y, rows, columns = y, x, columns, rows
    left = _matrices(b, x, (batch, rows, summed), shape)
    right = _matrices(b, y, (batch, summed, columns), shape)
    made = b.matmul(left, right, attrs=(0, 0))
    order = [*batch, *rows, *columns]
    made = b.reshape_to(made, [shape[a] for a in order])
    if order != kept:
        made = b.transpose(made, attrs=[order.index(a) for a in kept])
    return b.reshape_to(made, row.type.shape)


def _is_laid_out(b: Builder, x: _Factor, summed: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether a factor is one large matrix, of which the product with a vector is a single pass: a
    sum along one of its axes would read products that are laid out beside it."""
    if len(x.axes) != 2 or len(summed) != 1 or b.rows[x.row].op is Op.SELECT:
        return False
    return min(shape[a] for a in x.axes) >= SHORT and math.prod(shape[a] for a in x.axes) >= LARGE


def _is_part(b: Builder, x: _Factor) -> bool:
    """Whether a matrix is a part between bounds, with zeros around."""
    op, operands, *_ = b.rows[x.row]
    if op is not Op.SELECT or len(x.axes) != 2:
        return False
    masks = Masks(b.rows, b.constants)
    mask, _, rest = operands
    return masks.is_zero(rest) and masks.is_exact(mask)


def _scaled_apart(b: Builder, x: _Factor, y: _Factor) -> tuple[_Factor, _Factor]:
    """A number that multiplies a matrix multiplies the vector: so the matrix may be a part."""
    if len(x.axes) < len(y.axes):
        y, x = _scaled_apart(b, y, x)
        return x, y
    row = b.rows[x.row]
    if row.op not in (Op.MUL, Op.DIV) or len(x.axes) == len(y.axes):
        return x, y
    ways = (row.operands, row.operands[::-1]) if row.op is Op.MUL else (row.operands,)
    for rest, of in ways:
        scale = _number(b, of)
        if scale is not None:
            spread = b.broadcast_to(scale, b.type(y.row).shape)
            scaled = b.mul(y.row, spread) if row.op is Op.MUL else b.div(y.row, spread)
            return x._replace(row=rest), y._replace(row=scaled)
    return x, y


def _number(b: Builder, k: int) -> int | None:
    """The number that row k repeats."""
    if b.type(k).size == 1:
        return b.reshape_to(k, ())
    row = b.rows[k]
    if row.op not in (Op.BROADCAST, Op.RESHAPE, Op.NEG):
        return None
    scale = _number(b, row.operands[0])
    return b.neg(scale) if scale is not None and row.op is Op.NEG else scale


def _factor(b: Builder, x: int, shape: Sequence[int]) -> _Factor:
    """What is repeated in ``x``, without the axes along which it is."""
    row = b.rows[x]
    if row.op is Op.BROADCAST:
        (x,) = row.operands
    elif row.op is Op.NEG and b.rows[row.operands[0]].op is Op.BROADCAST:
        x = b.neg(b.rows[row.operands[0]].operands[0])
    own = (1,) * (len(shape) - len(b.type(x).shape)) + b.type(x).shape
    axes = tuple(a for a, n in enumerate(own) if n != 1)
    return _Factor(b.reshape_to(x, [own[a] for a in axes]), axes)


def _matrices(b: Builder, x: _Factor, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> int:
    """A factor as a stack of matrices, whose axes are groups of the product's."""
    order = [a for group in groups for a in group]
    turned = x.row
    if order != list(x.axes):
        turned = b.transpose(turned, attrs=[x.axes.index(a) for a in order])
    return b.reshape_to(turned, [math.prod(shape[a] for a in group) for group in groups])
