"""Lists of which a traced number says which one is meant, and loops over lists that get longer."""

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError, UnrecordableError

from .idioms import check

X = np.array([0.1, 2.0, 0.3, 1.9, 0.25, 2.2])


def spikes_of_neurons(x):
    spikes, v = [[] for _ in range(4)], np.zeros(4)
    for t in range(30):
        v = 0.9 * v + 0.3 * x[:4]
        fired = np.where(v >= 1.0)[0]
        for i in fired:
            spikes[i].append(t * v[i])
        v[fired] = 0.0
    return sum(np.sum(np.array(s)) for s in spikes) + len(spikes[1]) * x[0]


def means_of_groups(x):
    centres = np.array([x[0], x[1]])
    for _ in range(8):
        groups = [[] for _ in range(2)]
        for i, point in enumerate(x):
            nearest = np.argmin([abs(point - c) for c in centres])
            groups[nearest].append(i)
        before = centres
        centres = np.array([np.mean(x[group]) for group in groups])
        if np.all(before == centres):
            break
    return centres[0] + 3 * centres[1]


def what_was_appended_is_read(x):
    queues, y = [[x[0]], [x[1]], [x[2]]], x[3]
    for t in range(30):
        y = np.cos(y + 0.1 * t)
        k = int(y * 3) % 3
        queues[k].append(y * t)
        if len(queues[k]) > 3:
            y = y + 0.01 * queues[k][-2]
    return sum(q[-1] for q in queues) + y


def a_walk_on_a_graph(x):
    neighbours = {0: [1, 2], 1: [0, 3, 2], 2: [0], 3: [1]}
    node, total, y = 0, 0.0, x[0]
    for t in range(20):
        y = np.sin(y + t)
        near = neighbours[node]
        node = near[int(abs(y) * len(near)) % len(near)]
        for j in neighbours[node]:
            total += y * j * x[1]
    return total


def forces_between_pairs(x):
    forces = [[0.0, 0.0] for _ in range(6)]
    for i in range(6):
        for j in range(i + 1, 6):
            d = x[i] - x[j]
            if abs(d) < 1.72:
                forces[i][0] += d
                forces[j][0] -= d * x[0]
                forces[j][-1] = forces[i][1] + j * d
    return sum(f[0] ** 2 + f[1] for f in forces)


def items_of_other_kinds(x):
    rows, y = [[1, 2.0, x], [3, x[0], x], [5, 6, x], [7, 8.5, 2 * x], [9, x[2], x]], x[3]
    for t in range(12):
        y = np.cos(y + t)
        k = int(y * 5) % 5
        rows[k][0] = rows[k][0] + t
        rows[k][1] = y * t
        rows[k][2] = x * y
    return sum(r[0] * r[1] for r in rows) + rows[0][2][1] + np.sum(rows[4][2])


def a_list_of_other_length(x):
    rows, y = [[x[0], x[1]], [x[2]], [x[3], x[4], x[5]]], x[3]
    for t in range(9):
        y = np.cos(y + t)
        k = int(y * 3) % 3
        rows[k][len(rows[k]) - 1] = y
        rows[k][0] = rows[k][0] * y
    return sum(sum(r) for r in rows)


def a_grid_of_lists(x):
    grid, i, y = [[0.0] * 4 for _ in range(3)], 1, x[0]
    for t in range(25):
        y = np.sin(y + t)
        i = (i + (1 if y > 0 else -1)) % 3
        grid[i][int(abs(y) * 9.3) % 4] += y * x[1]
    return sum(sum(row[k] * k for k in range(4)) for row in grid)


def a_dict_by_a_traced_key(x):
    seen, y = {0: [], 1: []}, x[0]
    for t in range(25):
        y = np.sin(y + t)
        seen[1 if y > 0.2 else 0].append(y * x[1])
    return np.mean(seen[0]) + np.std(seen[1])


def arrays_of_rows(x):
    lists, y = [[] for _ in range(2)], x[0]
    for t in range(6):
        y = y + 0.1
        lists[int(y * 3) % 2].append(np.array([y, t * y]))
    return np.array(lists[0]).sum() + np.array(lists[1])[:, 1].sum()


def before_any_loop(x):
    lists = [[x[0]], [x[1], x[2]], [x[3]]]
    k = int(x[0] * 43) % 3
    lists[k].append(x[4])
    y = x[5]
    if len(lists[k]) > 2:
        y = y + lists[k][-2]
    return y * lists[k][0] + len(lists[1])


def by_a_name_of_its_own(x):
    lists = [[x[0], x[1]], [x[2], x[3]]]
    k = int(x[0] * 23) % 2
    one = lists[k]
    copy = list(one)
    one[0] = 7 * x[4]
    one += [x[5]]
    lists[1][1] = 3 * x[1]
    return sum(one) + lists[0][0] + 2 * lists[1][0] + 5 * copy[0] + 3 * len(one)


def by_a_function(x):
    def add(items, item):
        items.append(item)

    lists, y = [[x[0]], [x[1]]], x[2]
    for _ in range(6):
        y = y + 0.1
        add(lists[int(y * 3) % 2], y * x[3])
    return lists[0][-1] + 2 * sum(lists[1])


def items_added_up_and_tested(x):
    lists, total, y = [[x[0], x[1]], [x[2], x[3]]], 0.0, x[4]
    for _ in range(6):
        y = y + 0.1
        k = int(y * 3) % 2
        total = total + sum(lists[k]) * max(lists[k])
        lists[k] += [y, y * x[5]]
        if lists[1 - k]:
            total = total + np.mean(lists[1 - k])
    return total


PROGRAMS = [
    spikes_of_neurons,
    means_of_groups,
    what_was_appended_is_read,
    a_walk_on_a_graph,
    a_grid_of_lists,
    a_dict_by_a_traced_key,
    arrays_of_rows,
    before_any_loop,
    by_a_name_of_its_own,
    by_a_function,
    items_added_up_and_tested,
    forces_between_pairs,
    items_of_other_kinds,
    a_list_of_other_length,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_traced_number_says_which_list(program):
    check(program, X)


def test_an_array_that_is_written_into_later_is_no_item():
    def written(x):
        lists, u = [[] for _ in range(2)], x[:2].copy()
        for k in range(6):
            lists[int(x[0] * 30 + k) % 2].append(u)
            u += x[2:4]
        return np.array(lists[0]).sum()

    with pytest.raises(CkadError):
        ckad.grad(written)(X)


# --- loops over lists that get longer ------------------------------------------------------------


def where_a_condition_says_so(x):
    items = [x[0], x[1]]
    for item in items:
        if item < 3.0:
            items.append(item + 1.0)
    return sum(items)


def with_numbers(x):
    items = [x[0], x[1]]
    for k, item in enumerate(items):
        if item < 3.0:
            items.append(item + k)
    return sum(items)


def of_a_list_that_loops_have_made(x):
    items, y = [], x[0]
    for k in range(20):
        y = np.sin(y + k)
        if y > 0:
            items.append(y)
    for item in items:
        if item > 0.5:
            items.append(item - 0.5)
    return sum(items)


def of_one_of_several(x):
    lists = [[x[0], x[1]], [x[2]]]
    k = int(x[0] * 43) % 2
    for item in lists[k]:
        if item < 3.0:
            lists[k].append(item + 1.0)
    return sum(lists[0]) + sum(lists[1])


@pytest.mark.parametrize(
    "program",
    [where_a_condition_says_so, with_numbers, of_a_list_that_loops_have_made, of_one_of_several],
)
def test_a_list_that_gets_longer_while_a_loop_runs_over_it_is_refused(program):
    with pytest.raises(UnrecordableError, match="runs over a list that its steps make longer"):
        ckad.grad(program)(X)


def a_known_length(x):
    items = [x[0], x[1]]
    for item in items:
        if len(items) < 7:
            items.append(item * 1.5 + x[2])
    return sum(items)


def other_items_in_their_places(x):
    items = [x[0], x[1], x[2]]
    for k, item in enumerate(items):
        if item < 1.0:
            items[k] = item * x[3]
    return sum(items)


@pytest.mark.parametrize("program", [a_known_length, other_items_in_their_places])
def test_a_list_that_is_as_long_as_in_python_is_run_over(program):
    check(program, X)


def grids(p):
    """Lists of lists that each step makes anew, read at computed and at known places."""
    n = 9
    g = [[float(i * j % 4) * p[0] for j in range(n)] for i in range(n)]
    for _ in range(6):
        new = [row[:] for row in g]
        for i in range(1, n - 1):
            for j in range(n):
                around = g[i + 1][j] + g[i - 1][j] + g[i][(j + 1) % n] + g[i][j - 1]
                new[i][j] = g[i][j] + p[1] * (around - 4 * g[i][j]) + 0.01 * g[i][3] * g[-i][-1]
        g = new
    return sum(k * sum(row) for k, row in enumerate(g))


def past_the_end(p):
    g = [[p[0] * i] * 8 for i in range(8)]
    total = 0.0
    for i in range(8):
        total += g[i][i + 1]
    return total


def test_grids_of_lists():
    check(grids, np.array([1.0, 0.2]))
    explained = str(ckad.explain(grids, np.array([1.0, 0.2])))
    assert explained.count("recorded once") >= 3
    with pytest.raises(IndexError):
        ckad.grad(past_the_end, engine="vm")(np.ones(1))
