"""Habits of published programs: text of numbers, plots in branches, tables, sparse stencils."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.interpolate import interp1d, splev, splrep
from scipy.sparse.linalg import spsolve

import ckad
from ckad.errors import (
    ConcreteValueError,
    RaisedError,
    SkippedCallWarning,
    TracedIndexError,
    UnsupportedFunctionError,
)
from ckad.transforms.call import Call

X = np.array([1.0, -2.0, 3.0])
NODES = np.array([0.0, 2.0, 1.0, 3.0, 4.5])
VALUES = np.cos(NODES)
TABLE = interp1d(NODES, VALUES)


def check(program, x, **options):
    with np.errstate(all="raise"):
        value, gradient = ckad.value_and_grad(program, engine="vm", **options)(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-12)
    direction, h = np.cos(np.arange(np.size(x))).reshape(np.shape(x)), 1e-6
    slope = (program(x + h * direction) - program(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6)


def test_lists_of_a_log_that_a_loop_begins_and_ends():
    """``log["v"]`` is there from the first step on, of a loop that a traced number ends."""

    def discharged(r):
        log, charge = defaultdict(list), 1.0
        for k in range(600):
            charge -= 0.002
            log["v"].append(charge * r)
            log["t"].append(k + charge)
            if charge * r < 0.02013:
                break
        by_name = {"mean": np.mean(log["v"]), "last": r * log["t"][-1]}
        return min(by_name.values()) + sorted(by_name.values())[1] + sum(by_name.values())

    check(discharged, 0.05)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_text_of_traced_numbers_is_shown(capsys):
    def reported(x):
        for k in range(30):
            x = np.sin(x * 0.1 * k) + 0.5
            print("k={} x={:.3f}".format(k, x), format(x, ".2f"), ", ".join([str(x), "end"]))  # noqa: UP032
        return x

    check(reported, 1.5)
    assert len(ckad.trace(reported)(1.5).rows) < 20


@pytest.mark.parametrize(
    "compared",
    [lambda x: "{:.1f}".format(x) == "1.5", lambda x: ",".join([str(x)]) == "1.5"],  # noqa: UP032
)
def test_text_of_traced_numbers_decides_nothing(compared):
    with pytest.raises(ConcreteValueError, match="text that is made of traced values"):
        ckad.grad(lambda x: x**2 if compared(x) else x)(1.5)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_masked_arrays_are_shown_and_not_computed_with():
    def shown(x):
        for k in range(9):
            x = 0.9 * x
            if k % 3 == 0:
                print(np.ma.masked_where(x > 0.2, x).mean())
        return np.sum(x**2)

    def computed(x):
        return np.sum(x) + np.sum(np.ma.masked_where(x > 0.2, x).filled(0.0))

    check(shown, np.linspace(0.1, 1.0, 5))
    with pytest.raises(ConcreteValueError, match="computes with what numpy"):
        ckad.grad(computed)(np.linspace(0.1, 1.0, 5))


def periodic_poisson(x):
    n = len(x)
    e = np.ones(n)
    matrix = sp.lil_matrix(sp.spdiags(np.vstack((e, -2 * e, e)), [-1, 0, 1], n, n))
    matrix[0, n - 1] = 1
    matrix[n - 1, 0] = x[1]
    matrix[0, 0] = -2.5 - x[0] ** 2
    matrix[1, :2] = np.array([0.5, -3.0]) * x[2]
    matrix /= 0.3
    inverse = sp.csr_matrix(matrix)
    inverse *= 2.0
    return np.sum(spsolve(inverse, x) ** 2)


def test_elements_of_sparse_matrices_are_written():
    check(periodic_poisson, np.linspace(0.5, 1.2, 6))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kind": "nearest"},
        {"kind": "previous"},
        {"kind": "next"},
        {"fill_value": "extrapolate"},
        {"bounds_error": False, "fill_value": (1.0, 2.0)},
        {"kind": "cubic"},
        {"kind": 2},
        {"kind": "slinear"},
        {"kind": "cubic", "fill_value": "extrapolate"},
        {"kind": "quadratic", "bounds_error": False, "fill_value": 0.5},
    ],
    ids=str,
)
def test_tables_of_traced_values(options):
    known = interp1d(NODES, VALUES, **options)

    def looked_up(q):
        table = interp1d(NODES, VALUES * q[0], **options)
        return np.sum(table(q) ** 2) + table(q[1]) + known(q[1]) * np.sum(known(q))

    check(looked_up, np.array([0.3, 1.2, 5.9 if "fill_value" in options else 2.9]))


@pytest.mark.parametrize("kind", ["linear", "nearest", "previous"])
def test_nodes_that_are_traced_are_put_in_order(kind):
    def looked_up(q):
        falls = np.exp(-q[0] * NODES)
        table = interp1d(falls, VALUES * q[1], kind)
        return table(0.5 * falls[0]) + np.sum(table(falls[1:-1] + 1e-3) ** 2)

    check(looked_up, np.array([0.3, 1.2]))


@pytest.mark.parametrize("kind", ["linear", "nearest", "next"])
@pytest.mark.parametrize(("axis", "shape"), [(0, (7, 2)), (1, (2, 7, 3)), (-1, (2, 7))])
@pytest.mark.parametrize("fill", ["extrapolate", (0.5, 2.0)])
def test_tables_of_several_axes(kind, axis, shape, fill):
    nodes = np.linspace(0.0, 3.0, 7) ** 1.2
    values = np.sin(np.arange(float(np.prod(shape)))).reshape(shape)
    options = {"kind": kind, "axis": axis, "bounds_error": False, "fill_value": fill}
    known = interp1d(nodes, values, **options)

    def looked_up(q):
        found = interp1d(nodes, values * q[0], **options)(q)
        weights = np.cos(np.arange(float(found.size))).reshape(found.shape)
        at_one = np.sum(known(q[1])) + np.sum(known(q[:2, np.newaxis]) ** 2)
        return np.sum(weights * (found + known(q) * q[1])) + at_one

    check(looked_up, np.array([0.3, 1.2, 5.9]))


def test_tables_that_scipy_has_made():
    check(lambda q: np.sum(TABLE(q)), np.array([0.3, 1.2, 2.9]))
    with pytest.raises(TracedIndexError):
        ckad.grad(lambda q: np.sum(TABLE(q)), engine="vm")(np.array([0.3, 5.2]))


def test_splines_as_knots_and_coefficients():
    tck = splrep(np.linspace(0.0, 6.0, 7), np.sin(np.arange(7.0)))

    def looked_up(q):
        x = q[0]
        for _ in range(6):
            x = x + 0.1 * splev(x, tck)
        ends = sum(splev(3 * q, tck, ext=ext) for ext in (0, 1, 3))
        return x + splev(q[1], tck, der=1) + np.sum(ends) + np.sum(splev(q, tck, 2))

    check(looked_up, np.array([0.3, 1.2, 2.9]))


def test_what_splines_do_not_do_is_refused():
    zero = interp1d(NODES, VALUES, kind="zero")
    curve = splrep(np.arange(7.0), np.sin(np.arange(7.0)))
    with pytest.raises(UnsupportedFunctionError, match="kind 'zero'"):
        ckad.grad(lambda a: zero(a), engine="vm")(0.6)
    with pytest.raises(UnsupportedFunctionError, match="ext=2"):
        ckad.grad(lambda a: splev(a, curve, ext=2), engine="vm")(0.6)


def test_titles_are_parts_of_text():
    def program(x):
        for _ in range(10):
            x = 0.9 * x
            print(("v: " + str(x)[:4]).upper().strip(), f"{x[0]:.3f}".replace(".", ",")[1:])
        return np.sum(x**2)

    with pytest.warns(SkippedCallWarning, match="print"):
        check(program, X)
    with pytest.raises(ConcreteValueError, match="looks into text"):
        ckad.grad(lambda x: x if str(x)[0] == "1" else 2.0 * x)(1.5)


def test_items_of_dicts_at_traced_integers():
    costs = {3: 0.5, 1: -2.0, 7: 4.0}

    def program(x):
        total = 0.0
        for k in range(12):
            which = np.argmax(x * np.cos(k + x))
            total = total + costs[int(which) * 2 + 1] * x[which] if which < 2 else total + costs[7]
        return total

    check(program, np.array([0.4, 1.5, -0.3]))
    with pytest.raises(RaisedError):
        ckad.grad(lambda x: x * costs[int(np.floor(x))])(2.5)


def test_functions_that_a_step_makes_for_the_next_one_keep_their_values():
    def weighed(x):
        before, total = (lambda y: 0.0 * y), 0.0
        for k in range(8):
            a = x * k
            f = lambda y, a=a: a * y  # noqa: E731
            total += f(1.0) + before(2.0)
            before = f
        return total

    check(weighed, 0.83)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_a_directory_for_results_does_not_have_a_program_recorded_anew(tmp_path):
    def program(x, place):
        for k in range(6):
            x = 0.9 * x
            if k % 3 == 0:
                Path(place).mkdir(exist_ok=True)
                print(Path(place) / f"step{k}")
        return x

    place = str(tmp_path / "output")
    assert not Call(program, (1.5, place), {}).anew
    assert ckad.value_and_grad(program)(1.5, place)[0] == program(1.5, place)


def test_paths_of_computed_lengths_in_a_list_are_counted_and_thinned_out():
    def path(x):
        points = [x]
        for _ in range(30):
            if points[-1] > 5.0:
                break
            points.append(1.2 * points[-1] + 0.1)
        return np.array(points)

    def program(x):
        paths = [(path(x), "slow"), (path(2.0 * x), "fast")]
        step = max(1, len(paths) // 2)
        return sum(np.sum(p[::2] ** 2) + p[1::3][0] for p, _ in paths[::step]) * len(paths)

    check(program, 0.83)
