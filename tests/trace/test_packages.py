"""Habits of published packages: functions that others call, and what is asked of values."""

import functools
import re
import sys
import warnings

import numba
import numpy as np
import pytest
from scipy import special

import ckad
from ckad.errors import (
    ConcreteValueError,
    RaisedError,
    TraceError,
    UnrecordableError,
    UnsupportedFunctionError,
)

from .idioms import check

X = np.array([1.0, -2.0, 3.0])


def test_frames_of_pandas_are_known():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": np.arange(5.0), "y": np.cos(np.arange(5.0))})

    def misfit(a):
        total = np.sum((frame["y"].values - a * frame.t.to_numpy()) ** 2)
        for _, row in frame.iterrows():
            total += row["y"] * a
        return total + np.mean(frame["y"]) * a + frame.groupby(frame.t > 2.0).y.mean().iloc[0] * a

    value, slope = ckad.value_and_grad(misfit)(0.3)
    assert value == pytest.approx(misfit(0.3), rel=1e-14)
    assert slope == pytest.approx((misfit(0.4) - misfit(0.2)) / 0.2, rel=1e-10)
    with pytest.raises(ConcreteValueError, match=f"{re.escape(__file__)}:"):
        ckad.grad(lambda a: pandas.Series(a * np.ones(3)).sum())(0.3)


@numba.vectorize
def rectified(x, slope):
    if x > 0:
        return slope * x
    return 0


LIMIT = 0.5


@numba.vectorize
def limited(x):
    return rectified(x, 2.0) + rectified(LIMIT, 1.0)


def test_ufuncs_that_numba_makes_are_run_as_their_functions():
    def program(x):
        total = np.sum(limited(x) ** 2) + rectified(x[0], 3.0)
        for _ in range(30):
            total = total + 0.1 * limited(x[2]) + rectified(LIMIT, x[0])
        return total

    check(program, X)
    assert ckad.explain(program, X).anew == ""


@numba.vectorize(["int64(float64)"])
def cut(x):
    return x * 1.7


@numba.vectorize(["float64(float64)"])
def of_floats(x):
    return x // 2 + x


@numba.vectorize(["int64(int64)", "float32(float32)", "float64(float64)"])
def of_some(x):
    return x * x // 2


def test_ufuncs_that_numba_makes_compute_with_the_types_of_their_signatures():
    whole = np.array([3, -3, 5])

    def program(x):
        total = np.sum(cut(x) * x) + np.sum(of_floats(whole) * x) + cut(2.9) * x[0]
        return (
            total
            + np.sum(of_some(whole) * x)
            + of_some(x[1] * 1.3) * x[2]
            + np.sum(of_some(1.1 * x))
        )

    check(program, X)
    single = X.astype(np.float32)
    assert ckad.jit(of_some)(single).dtype == of_some(single).dtype


class System:
    def __init__(self, matrices):
        self.A, self.B = list(map(self.matrix, matrices))

    def matrix(self, x):
        return np.atleast_2d(np.asarray(x, dtype="float"))


def test_methods_partials_and_compiled_functions_that_map_calls():
    def program(x):
        system = System(([[x[0]]], x))
        doubled = map(functools.partial(lambda k, v: k * v, 2.0), x)
        squares = map(numba.njit(lambda v: v * v), x)
        return system.A[0, 0] * sum(doubled) + np.sum(system.B) + sum(squares)

    check(program, X)


def test_a_name_that_an_array_cannot_have():
    def program(x):
        y = x * 2
        try:
            y.name = "doubled"
        except AttributeError:
            y = y + 1
        return np.sum(y)

    check(program, X)
    with pytest.raises(AttributeError, match="has no attribute 'name'"):
        ckad.grad(lambda x: setattr(np.sin(x), "name", "s"))(X)


def test_comparisons_of_numbers_with_none():
    def program(x):
        before, now = None, x[0]
        for _ in range(30):
            step = now**2 - x[2]
            if before == now or now == None:  # noqa: E711
                break
            before, now = now, now - step / (2 * now)
        return now + np.sum(np.where(x != None, x, 0.0))  # noqa: E711

    check(program, X)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_warnings_in_loops_are_skipped():
    def program(x):
        s = x[0]
        for k in range(30):
            if s > 0.5:
                warnings.warn("large", stacklevel=2)
            s = 0.9 * s + 0.01 * k * x[1]
        return s

    value, gradient = ckad.value_and_grad(program)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert value == program(X)
    assert gradient[0] == pytest.approx(0.9**30)


def test_constants_of_the_interpreter_and_seeded_streams_are_read_once():
    def program(x):
        stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7)))
        return np.sum(x) * stream.random() + sys.float_info.min

    check(program, X)
    assert ckad.explain(program, X).anew == ""


def test_functions_whose_results_are_complex_outside_of_a_domain():
    def program(x):
        z = x[0] + 0.2j
        total = np.emath.arcsin(z) + np.emath.sqrt(z) + np.emath.log(z) + np.emath.power(x[1], 3)
        return np.real(total) + np.imag(np.emath.sqrt(x[1])) + np.real(np.emath.logn(2, x[2]))

    check(program, X)


@pytest.mark.parametrize(
    ("branch", "x"),
    [(0, [-0.367, -0.3, -0.2, 0.0, 0.1, 0.3, 1.0, 30.0, 1e6]), (-1, [-0.367, -0.2, -0.1, -1e-6])],
)
def test_the_real_branches_of_lamberts_function(branch, x):
    def program(x):
        return np.sum(special.lambertw(x, branch).real * (1 + np.arange(len(x))))

    x = np.array(x)
    value, gradient = ckad.value_and_grad(program, engine="vm")(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-14)
    w = special.lambertw(x, branch).real
    slope = (1 + np.arange(len(x))) / (np.exp(w) * (1 + w))
    np.testing.assert_allclose(gradient, slope, rtol=1e-11)
    outside = ckad.jit(lambda x: special.lambertw(x, branch))(np.array([-0.5, -0.1]))
    for part in (outside.real, outside.imag):
        np.testing.assert_array_equal(np.isnan(part), [True, False])
    with pytest.raises(UnsupportedFunctionError, match="other branches"):
        ckad.grad(lambda x: np.sum(special.lambertw(x, 2).real))(x)


def test_arrays_that_are_made_longer_and_shorter_themselves():
    def program(x):
        a, b, z = np.array([x[0] * 2]), x * 1, x * 1j
        a.resize(3, refcheck=False)
        a[1] = x[1]
        b.resize((2, 1))
        z.resize(4, refcheck=False)
        return np.sum(a * np.arange(1, 4)) + np.sum(b**2) + np.sum(z.imag) + len(z)

    check(program, X)
    with pytest.raises(ValueError, match="does not own its data"):
        ckad.grad(lambda x: np.sum((x * 2)[1:].resize(3)))(X)


def test_none_in_an_array_is_nan_until_a_number_replaces_it():
    def program(x):
        states = np.zeros((3, 3), like=x)
        states[0] = None
        states[1, 0] = None
        states[0] = x
        return np.sum(states[0] ** 2) + np.isnan(states[1, 0])

    value = ckad.value_and_grad(program, engine="vm")(X)[0]
    assert value == np.sum(X**2) + 1


PLAIN = np.ma.asarray([0.5, 1.5, 2.5])
MASKED = np.ma.masked_greater(PLAIN, 2.0)


def test_masked_arrays_that_mask_nothing_are_arrays():
    def program(x):
        return np.sum((PLAIN - x) ** 2 * PLAIN) + np.dot(PLAIN, x) + np.sum(np.sin(x + PLAIN))

    check(program, X)
    with pytest.raises(TraceError, match="MaskedArray"):
        ckad.grad(lambda x: np.sum(MASKED - x))(X)


def test_a_traced_number_has_no_length():
    def program(x):
        m = x[0] - 0.01j
        n = len(m) if hasattr(m, "__len__") else len(x) if hasattr(x, "__len__") else 7
        return abs(m) * n + hasattr(x, "storage") + hasattr(x[0], "mro")

    check(program, X)


class Quaternion(np.ndarray):
    def __new__(cls, q):
        if not isinstance(q, np.ndarray):
            raise TypeError("no array")
        return np.asarray(q).view(cls)


def test_a_class_of_arrays_is_named():
    with pytest.raises(UnsupportedFunctionError, match="Quaternion is a class of arrays"):
        ckad.grad(lambda x: np.sum(Quaternion(x)))(X)


def test_names_that_are_asked_for_by_their_scope():
    def program(x):
        slope = 2.0
        known = "LIMIT" in globals() and "UNKNOWN" not in globals() and "slope" in locals()
        return x[0] * globals()["LIMIT"] + locals()["slope"] * x[1] + known + eval("1 + 2")

    check(program, X)
    with pytest.raises(UnrecordableError, match=r"exec\(\) of a text that binds y"):
        ckad.grad(lambda x: exec("y = 1") or x[0])(X)
    with pytest.raises(UnrecordableError, match=r"eval\(\) of a text with 'lambda: x'"):
        ckad.grad(lambda x: eval("(lambda: x)()")[0])(X)


def test_texts_that_are_run_in_the_names_of_a_function():
    def program(x):
        table = {"ext": {}, "bus": np.outer(x, x), "area": x * 2.0}
        for field in ["bus", "area"]:
            exec('table["ext"]["%s"] = table["%s"].copy()' % (field, field))  # noqa: UP031
        table["bus"][0] = 0.0
        exec("table['area'] += x[-1]")
        return eval("np.sum(table['ext']['bus']) * x[1]") + np.sum(table["bus"] + table["area"])

    check(program, X)
    with pytest.raises(UnrecordableError, match=r"with names \(x\) in a loop or branch"):
        ckad.grad(lambda x: eval("x[1]") if x[0] > 0.0 else x[0])(X)


def test_an_array_of_elements_under_one_mask():
    def program(x):
        p = x[x > 0]
        return np.sum(np.array([p, np.log(p)]) ** 2)

    check(program, X)


class Density:
    """Attributes of two underscores, bound by Python and read from source."""

    __scale = 2.0

    def __init__(self):
        self.__shift = 0.5

    def value(self, x):
        self.__last = self.__scale * x[0] + self.__shift
        return self.__squared() + sum(self.__last * y for y in x)

    def __squared(self):
        return sum(__ for __, ___ in [(self.__last**2, 1.0)])  # names that are no one's


DENSITY = Density()


def test_attributes_that_are_private_to_a_class():
    check(lambda x: Density().value(x) * DENSITY.value(x), X)
    check(DENSITY.value, X)


def positive(x):
    if x > 0:
        return True
    return not x <= 0


def a_truth_of_a_branch(x):
    known = None
    if x[0] > 0:
        known = bool(x[1] > 0)
    if known is False:
        return x[0] ** 2
    return 3 * x[1] if known is True else x[2] * x[1]


def a_truth_that_a_loop_carries(x):
    reached, y = False, 0.0
    for _ in range(8):
        if y > 2.5:
            reached = True
        if reached is not True:
            y = y + abs(x[0]) * x[2]
    return y * x[1]


def truths_of_every_kind(x):
    y = x[0] * (2 if bool(x[1] > 0) is True else 3)
    y = y + x[1] * (2 if (x[1] > 0) is True else 3)  # one of NumPy's is not Python's
    y = y + x[2] * (2 if (not x[1] > 0) is False else 3)
    y = y + x[0] ** 2 * (2 if any(v > 2.5 for v in x) is not True else 3)
    y = y + x[1] ** 2 * (2 if (round(float(x[0])) in [1, 4]) is not False else 3)
    return y + x[2] ** 2 * (2 if positive(x[0]) is positive(x[1]) else 3)


@pytest.mark.parametrize(
    "program", [a_truth_of_a_branch, a_truth_that_a_loop_carries, truths_of_every_kind]
)
def test_what_is_true_itself(program):
    for signs in ([1, 1, 1], [-1, 1, 1], [1, -1, 1], [1, -1, -1]):
        check(program, X * signs)


def test_arguments_as_packages_ask_for_them():
    def program(x):
        none = np.atleast_2d(np.asarray(None, dtype="float"))
        rows = np.asarray([[1.0, None], [2.0, 3.0]], float)
        y = np.require(x, dtype=np.float64, requirements=["W", "C"])
        z = np.require(x[::-1], requirements="OWNDATA F".split())
        z[0] = 2 * y[1]
        y[2] = z[0] * z[1]
        return np.sum(x * z) + np.nansum(none) + np.nansum(rows) + np.require([1, x[0]], int)[0]

    check(lambda x: program(x.copy()), X)


def test_conditions_that_options_decide():
    def solve(x, tries=False, checks=True):
        y = x[0]
        for k in range(20):
            if y > 3 and tries:
                for factor in [0.5, 0.7, 0.9]:
                    y = np.sin(y * factor)
            if y < 0 and checks and y < -5_000:
                raise ValueError("it runs away")
            if y > 2 or checks:
                y = y + 0.1 * x[1]
            if not (y > 2 or not tries) or (x[2] > 0 and None):
                y = y - x[2] * k
        return y * x[2]

    check(solve, X)
    check(lambda x: solve(x, tries=True), 2.9 * X)
    check(lambda x: solve(x, checks=False), X)
    assert "if y > 3" not in str(ckad.explain(solve, X))


def test_names_that_are_found_in_texts():
    def program(x):
        powers = [int(k) for k in re.findall(r"x(\d)", "x1 + x3") + re.split("-", "2-4")]
        return sum(np.sum(x**k) for k in powers) * len(re.sub("a", "", "banana"))

    check(program, X)
    assert ckad.explain(program, X).anew == ""


def test_a_text_that_only_some_calls_show_is_asked_for_by_the_names_of_the_module():
    def program(x):
        total = 0.0
        for k in range(40):
            if "told_of_it" not in globals():
                global told_of_it
                told_of_it = True
                total = total + x[0]
            total = total + x[1] * k * globals()["LIMIT"]
        return total

    compiled = ckad.value_and_grad(program)
    expected = X[0] + X[1] * 780 * LIMIT
    assert compiled(X)[0] == pytest.approx(expected)
    assert ckad.explain(program, X).anew == ""
    assert "told_of_it" not in globals()


def test_finite_arrays_are_checked_when_the_program_runs():
    def program(x):
        return np.sum(np.asarray_chkfinite(np.log(x) * 2.0))

    check(program, np.array([1.0, 2.0, 3.0]))
    with pytest.raises(RaisedError):
        ckad.grad(program)(np.array([1.0, 0.0, 3.0]))
