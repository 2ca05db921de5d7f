"""Loops that write an array twice in each step, and whether that may be two loops."""

import numpy as np
import pytest

import ckad
from ckad.tape.ops import Op

N = 24
RNG = np.random.default_rng(8)
A, C = RNG.normal(size=(N, N)), RNG.normal(size=(N, N))


def row_and_column(a, c):
    for i in range(N):
        c[i, i:] = a[i, i:] * 2.0
        c[i:, i] = a[i, i:] * 3.0
    return c


def chained(a, c):
    for i in range(N):
        c[i + 1 :, i] = c[i, i + 1 :] = a[i, i] * a[i + 1 :, i]
    return c


def three(a, c):
    for i in range(N):
        c[i, i:] = np.exp(a[i, i:])
        c[i:, i] = a[i, i:]
        c[i, :i] = 7.0 * a[i, :i]
    return c


def backwards(a, c):
    for i in range(N - 1, -1, -1):
        c[i, : i + 1] = a[i, : i + 1]
        c[: i + 1, i] = 5.0 * a[i, : i + 1]
    return c


def others_are_added_to(a, c):
    total = np.zeros(N)
    for i in range(N):
        c[i, i:] = c[i:, i] = a[i, i:]
        total += a[i] * a[0]
    return c + total


def whole_lines(a, c):
    """Rows are written over columns of before."""
    for i in range(N):
        c[i] = a[i]
        c[:, i] = 2.0 * a[i]
    return c


def later_rows_cover(a, c):
    for i in range(N):
        c[i, : i + 1] = a[i, : i + 1]
        c[i:, i] = 2.0 * a[i, i:]
    return c


def the_same_line(a, c):
    for i in range(N - 1):
        c[i + 1, : i + 2] = a[i, : i + 2]
        c[i, i:] = 4.0 * a[i, i:]
        c[i + 1, i:] = 3.0 * a[i, i:]
    return c


def what_is_written_is_read(a, c):
    for i in range(1, N):
        c[i, i:] = a[i, i:]
        c[i:, i] = c[i - 1, i:] + a[i, i:]
    return c


def it_is_read_by_others(a, c):
    total = np.zeros(N)
    for i in range(N):
        c[i, i:] = a[i, i:]
        total += c[:, 3]
        c[i:, i] = 2.0 * a[i, i:]
    return c + total


PARTED = [row_and_column, chained, three, backwards, others_are_added_to]
KEPT = [whole_lines, later_rows_cover, the_same_line, what_is_written_is_read, it_is_read_by_others]


@pytest.mark.parametrize("program", [*PARTED, *KEPT])
@pytest.mark.parametrize("engine", ["vm", "native"])
def test_two_writes(program, engine):
    compiled = ckad.jit(program, engine=engine)
    np.testing.assert_allclose(compiled(A, C), program(A, C.copy()), rtol=1e-13)
    is_loop = any(row.op is Op.LOOP for row in compiled.compiled(A, C).tape.rows)
    assert is_loop == (program in KEPT)


@pytest.mark.parametrize("program", [*PARTED, *KEPT])
def test_their_derivatives(program):
    def squares(a, c):
        return np.sum(np.sin(program(a, c)))

    ckad.testing.check_grads(squares, (A, C), order=1)
