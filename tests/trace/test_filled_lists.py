"""Lists of numbers, and lists of such lists, that steps put items into at computed places."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

from .idioms import check_number

AT = 0.371
N = 40


def moved(x, a):
    return (x + 0.37 * a + 0.11) % 1.0


def counts_and_sums(a, n=N):
    sums, counts, x = [0.0] * n, [0] * n, a
    for _ in range(9):
        x = moved(x, a)
        i = int(x * n)
        sums[i] += x
        counts[i] += 1
        x = (x + 0.01 * sums[i - 1] * counts[-i - 1]) % 1.0
    return sum(sums) + a * sum(counts) + a * counts[7] // 2


def appended_to_as_well(a):
    xs, x = [0.0] * N, a
    for _ in range(9):
        x = moved(x, a)
        xs[int(x * N)] += x
        xs.append(x * a)
    return sum(xs) + xs[-1] + len(xs) * x


def one_end_to_the_other(a):
    xs, x, total = [0.0] * N, a, 0.0
    for _ in range(9):
        x = moved(x, a)
        xs[int(x * N)] += x
        xs.pop(0)
        xs.append(0.1 * x)
        total += xs[0] + xs[-1]
    return total + sum(xs)


def sorted_in_each_step(a):
    xs, x, total = [0.0] * N, a, 0.0
    for k in range(9):
        x = moved(x, a)
        xs[int(x * N)] += x
        total += sorted(xs)[-1] * a
        xs[k], xs[k + 1] = xs[k + 1], xs[k]
    return total + xs[2]


def integers_become_floats(a):
    xs, x = [0] * N, a
    for _ in range(9):
        x = moved(x, a)
        xs[int(x * N)] += x
    return sum(xs)


def shown_by_two_names(a):
    xs, x, total = [0.0] * N, a, 0.0
    ys = xs
    for _ in range(9):
        x = moved(x, a)
        i = int(x * N)
        xs[i] += x
        ys[i - 1] -= xs[i] * 0.5
        total += a * (xs is ys)
    return total + sum(ys)


def in_each_step_anew(a):
    x, total = a, 0.0
    for _ in range(4):
        xs = [0.0] * N
        for _ in range(5):
            x = moved(x, a)
            xs[int(x * N)] += x
        total += sum(v * v for v in xs)
        xs.sort()
        total += xs[-1] - xs.pop() + xs.pop(0)
    return total


def grid(a, n=7):
    rows, x = [[0.0] * n for _ in range(n)], a
    for _ in range(9):
        x = moved(x, a)
        i, j = int(x * n), int(x * 31) % n
        rows[i][j] += x
        rows[j][0] += 0.01 * rows[i][1]
        row = rows[i]
        row[2] -= 0.1
        x = (x + 0.01 * rows[j][i]) % 1.0
    return sum(v * (q + 1) * (w + 2) for q, r in enumerate(rows) for w, v in enumerate(r))


def grid_under_conditions(a):
    n = 6
    rows, x = [[0] * n for _ in range(n)], a
    for _ in range(9):
        x = moved(x, a)
        i, j = int(x * n * 1.1), int(x * 31) % n
        if 0 <= i < n:
            rows[i][j] += 1
            if i > 0 and rows[i - 1][j] > 0:
                rows[i - 1][j] = 0
                x = (x + 0.1 * a) % 1.0
    return x + a * sum(map(sum, rows)) + rows[2][1] // 2


def one_row_twice(a):
    row = [0.0] * 5
    rows, x = [row, row, [0.0] * 5, [0.0] * 5, [0.0] * 5], a
    for _ in range(9):
        x = moved(x, a)
        rows[int(x * 5)][int(x * 31) % 5] += x
    return sum(map(sum, rows)) + 3 * sum(row)


def a_new_grid_in_each_step(a):
    n = 3
    rows, x = [[0.0] * n for _ in range(n)], a
    for _ in range(6):
        x = moved(x, a)
        rows[int(x * n)][int(x * 31) % n] += x
        new = [[0.0] * n for _ in range(n)]
        for q in range(n):
            for w in range(n):
                new[q][w] = rows[q][w] * 0.5 + 0.1 * rows[(q + 1) % n][w]
        rows = new
    return sum(map(sum, rows)) + rows[2][1]


def warped(a, n=7):
    """Python's numbers and NumPy's in one list, of which minima are either."""
    x, y = a * np.linspace(0.0, 1.3, n), np.cos(np.arange(n) * a)
    cost = [[float("inf")] * (n + 1) for _ in range(n + 1)]
    cost[0][0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            apart = (x[i - 1] - y[j - 1]) ** 2
            cost[i][j] = apart + min(cost[i - 1][j], cost[i][j - 1], cost[i - 1][j - 1])
    return cost[n][n]


def aligned(a, n=6):
    """Integers, Python's floats and NumPy's."""
    score, letters = [[0] * (n + 1) for _ in range(n + 1)], np.sin(3.0 * a * np.arange(n))
    for i in range(n + 1):
        score[i][0] = score[0][i] = -a * i
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            both = score[i - 1][j - 1] + letters[i - 1] * letters[j - 1]
            score[i][j] = max(both, score[i - 1][j] - a, score[i][j - 1] - a)
    return score[n][n] + score[2][n]


def split_anywhere(a, n=7):
    sizes, least = [a + 0.3 * k for k in (4, 1, 3, 2, 6, 5, 2)], [[0] * n for _ in range(n)]
    for length in range(2, n):
        for i in range(1, n - length + 1):
            j = i + length - 1
            least[i][j] = 1e30
            for k in range(i, j):
                found = least[i][k] + least[k + 1][j] + sizes[i - 1] * sizes[k] * sizes[j]
                if found < least[i][j]:
                    least[i][j] = found
    return least[1][n - 1]


@pytest.mark.parametrize(
    "program",
    [
        *(counts_and_sums, appended_to_as_well, one_end_to_the_other, sorted_in_each_step),
        *(integers_become_floats, shown_by_two_names, in_each_step_anew, grid),
        *(grid_under_conditions, one_row_twice, a_new_grid_in_each_step),
        *(warped, aligned, split_anywhere),
    ],
)
def test_lists_that_are_filled(program):
    check_number(program, AT)


def _rows(tape):
    return len(tape) + sum(map(_rows, tape.bodies))


def _of_loops(program, n):
    tape = ckad.trace(lambda a: program(a, n))(AT)
    return sum(map(_rows, tape.bodies))


def test_a_step_is_as_long_for_any_list():
    assert _of_loops(counts_and_sums, 400) == _of_loops(counts_and_sums, N)


def test_a_step_is_as_long_as_a_grid_has_rows():
    short, long = _of_loops(grid, 8), _of_loops(grid, 24)
    assert long < 4 * short
    assert long < 24 * 24 * 3  # not by items, of which six are read and three written


@pytest.mark.parametrize("program", [warped, aligned])
def test_numbers_of_several_classes_make_steps_no_longer(program):
    short, long = _of_loops(program, 6), _of_loops(program, 18)
    assert long < 4 * short
