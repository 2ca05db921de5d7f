"""Products of large matrices, by BLAS."""

from __future__ import annotations

from llvmlite import ir

from ckad.engines.vm.kernels.arrays import Array
from ckad.engines.vm.kernels.writing import DOUBLE, Cells, Number


class _Given:
    """What is handed to BLAS by address: letters, lengths and factors."""

    def __init__(self, w: Array) -> None:
        self.w = w
        self.cells = Cells(w.b, w.room(8))
        self.used = 0

    def at(self, value: Number | int) -> Number:
        """The address of a cell that holds the number."""
        self.cells[self.used] = value
        self.used += 1
        return self.cells.address(self.used - 1)


def product(w: Array) -> None:
    """As Numba calls BLAS: by columns, so that the transposed result is computed."""
    dst, x, y, batch, m, inner, n, tx, ty = w.first(9)
    for page in w.loop(0, batch):
        to, left, right = dst + page * m * n, x + page * m * inner, y + page * inner * n
        out, a, b = (w.i.address(place) for place in (to, left, right))
        with w.either(n.equals(1)) as (column, columns):
            with column, w.either(m.equals(1)) as (one, several):
                with one:
                    w.f[to] = _dot(w, inner, a, b)
                with several:
                    _by_vector(w, tx, m, inner, a, b, out)
            with columns, w.either(m.equals(1)) as (one, several):
                with one:
                    _by_vector(w, ty.equals(0).chosen(1, w.number(0)), n, inner, b, a, out)
                with several:
                    _matrices(w, (m, inner, n), (tx, ty), (a, b, out))


def _dot(w: Array, n: Number, x: Number, y: Number) -> Number:
    given = _Given(w)
    length, one = given.at(n), given.at(1)
    return _blas(w, "ddot", DOUBLE, length, x, one, y, one)


def _by_vector(
    w: Array, by_columns: Number, rows: Number, inner: Number, a: Number, x: Number, out: Number
) -> None:
    """``out`` = a matrix of (rows, inner), as it lies or by columns, by a vector."""
    given, flat = _Given(w), by_columns.equals(0)
    letter = flat.chosen(ord("t"), w.number(ord("n")))
    first, second = flat.chosen(inner, rows), flat.chosen(rows, inner)
    length, one = given.at(first), given.at(1)
    numbers = given.at(letter), length, given.at(second)
    alpha, beta = given.at(_ONE), given.at(0)
    _blas(w, "dgemv", None, *numbers, alpha, a, length, x, one, beta, out, one)


def _matrices(
    w: Array,
    lengths: tuple[Number, Number, Number],
    transposed: tuple[Number, Number],
    places: tuple[Number, Number, Number],
) -> None:
    (m, inner, n), (tx, ty), (a, b, out) = lengths, transposed, places
    given = _Given(w)
    letters = [given.at(t.equals(0).chosen(ord("n"), w.number(ord("t")))) for t in (ty, tx)]
    rows, columns, depth = given.at(n), given.at(m), given.at(inner)
    of_b, of_a = ty.equals(0).chosen(n, inner), tx.equals(0).chosen(inner, m)
    steps = given.at(of_b), given.at(of_a)
    one = _Given(w)
    alpha, beta = one.at(_ONE), one.at(0)
    numbers = rows, columns, depth, alpha
    _blas(w, "dgemm", None, *letters, *numbers, b, steps[0], a, steps[1], beta, out, rows)


#: The bits of 1.0.
_ONE = 0x3FF0000000000000


def _blas(w: Array, name: str, returns: object, *addresses: Number) -> Number:
    name, pointer = f"ckad_{name}", ir.IntType(8).as_pointer()
    type = ir.FunctionType(returns or ir.VoidType(), [pointer] * len(addresses))
    function = w.module.globals.get(name) or ir.Function(w.module, type, name)
    given = [w.b.inttoptr(x.value, pointer) for x in addresses]
    return Number(w.b, w.b.call(function, given))
