"""Python's numbers, ``math``, scalar types, grids and created arrays in a recorded function."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ckad
from ckad.errors import TracedIndexError, UnsupportedFunctionError

from .numpy_traced import assert_same, record_and_evaluate, run_numpy

X = np.array([1.3, 2.5, -0.7])


def builtins_of_python(x):
    a, b, c = x
    return (
        (max(a, b, 1.0), min(x), max([a, c]), min(c, 2), sum(x), sum([a, b], 3.0), abs(c)),
        (float(a), int(c), int(b), bool(a), round(b), round(a, 1), pow(a, 2), divmod(b, a)),
        (any([a > 1, b > 7]), all([a > 1, b > 7]), *sorted(x), *sorted([a, c], reverse=True)),
    )


def functions_of_math(x):
    a, b, c = x
    return (
        (math.sqrt(a), math.exp(c), math.log(b), math.log(b, 3), math.log2(a), math.log10(b)),
        (math.sin(a), math.cos(a), math.tan(c), math.atan2(a, c), math.asin(c), math.acos(c)),
        (math.hypot(a, b), math.hypot(a, b, c), math.dist([a, b], [c, 1.0]), math.pi * a),
        (math.floor(c), math.ceil(c), math.trunc(c), math.fabs(c), math.fmod(b, a)),
        (math.gamma(c), math.gamma(b), math.lgamma(b), math.erf(c), math.erfc(a), math.pow(a, b)),
        (math.degrees(a), math.radians(b), math.copysign(a, c), math.fsum([a, b, c])),
        (math.prod([a, b]), math.remainder(b, a), math.ldexp(a, 3), *math.modf(c)),
        (math.remainder(c, -a), math.remainder(-b, c)),
        (math.isnan(a), math.isfinite(b), math.isclose(a, a + 1e-12), math.tanh(a), math.cbrt(c)),
    )


@pytest.mark.parametrize("function", [builtins_of_python, functions_of_math])
def test_numbers_as_python_computes_them(function):
    got, expected = record_and_evaluate(function, X), run_numpy(function, X)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-13, atol=1e-13)
        assert mine.array.dtype == theirs.array.dtype


@pytest.mark.parametrize("function", [builtins_of_python, functions_of_math])
def test_their_derivatives(function):
    def total(x):
        return sum(sum(v * 1.0 for v in row if not isinstance(v, tuple)) for row in function(x))

    ckad.testing.check_grads(total, (np.array([1.31, 2.47, -0.72]),), order=1)


@pytest.mark.parametrize("y", [1.0, -2.0, 0.7, 1e-5, 1e300, math.inf])
def test_remainders_and_fractions_are_exact(y):
    rest, parts = ckad.jit(math.remainder), ckad.jit(math.modf)
    for x in (0.0, -0.0, 1.0, -3.0, 2.5, -2.5, 3.5, 1e20, 1e6 * math.pi, 5e-324, -7.3):
        assert str(float(rest(x, y))) == str(math.remainder(x, y))
        assert [str(float(part)) for part in parts(y * x)] == [str(v) for v in math.modf(y * x)]
    for x in (-math.inf, math.inf):
        assert [str(v) for v in ckad.jit(np.modf)(x)] == [str(v) for v in np.modf(x)]


def test_max_of_equal_numbers_is_the_first():
    assert ckad.grad(lambda x: max(x[0], x[1]))(np.ones(2)).tolist() == [1.0, 0.0]


def test_plain_numbers_stay_plain():
    def f(x):
        n = int(math.sqrt(16.0)) + max(1, 2) + math.floor(2.7)
        return x[:n].sum() * math.pi

    assert_same(f, np.arange(12.0))


def test_what_math_cannot_do():
    with pytest.raises(UnsupportedFunctionError, match=r"math\.ulp"):
        ckad.jit(lambda x: math.ulp(x[0]))(X)


def scalar_types(x):
    a, b, c = x
    n = np.zeros(3, np.int32)
    floats = np.float32(a), np.float64(b), np.float32(x)
    return floats, np.int64(c), np.bool_(a), n.sum(), np.int32(b)


def test_scalar_types():
    got = [leaf.array.dtype for leaf in record_and_evaluate(scalar_types, X)]
    kinds = [np.float32, np.float64, np.float32, np.int64, np.bool_, np.int64, np.int64]
    assert got == [np.dtype(k) for k in kinds]


CREATED = {
    "zeros": lambda x: np.zeros((2, 3), "f8"),
    "empty like": lambda x: np.empty_like(x) * 0,
    "full": lambda x: np.full(3, x[1]),
    "full of plain": lambda x: np.full((2, 2), 7, dtype=np.float32),
    "arange": lambda x: np.arange(1, 7, 2),
    "linspace": lambda x: np.linspace(0, 1, 5),
    "linspace of traced": lambda x: np.linspace(x[0], 1, 5),
    "logspace": lambda x: np.logspace(0, 2, 4),
    "geomspace": lambda x: np.geomspace(1, x[1], 4),
    "eye": lambda x: np.eye(3, 4, k=1),
    "array": lambda x: np.array([[1, 2], [3, 4.5]]),
    "array of traced": lambda x: np.array([[x[0], 2], [3, x[1]]]),
    "array of rows": lambda x: np.array([x, x * 2]),
    "asarray": lambda x: np.asarray([1, 2], dtype=float),
    "fromfunction": lambda x: np.fromfunction(lambda i, j: i * 3 + j * x[0], (2, 3)),
    "ndarray": lambda x: np.ndarray((2, 2), np.float64) * 0,
    "indices": lambda x: np.indices((2, 3)),
    "meshgrid": lambda x: np.meshgrid(x, [1.0, 2.0], indexing="ij"),
    "tile": lambda x: np.tile([1.0, 2.0], 2),
    "stacked": lambda x: np.hstack([np.zeros(2), 1.0, [3.0]]),
    "mgrid": lambda x: np.mgrid[0:3, 0:2],
    "mgrid of points": lambda x: np.mgrid[0 : x[1] : 4j, 0:1:3j],
    "ogrid": lambda x: np.ogrid[0:3, 0.5:2],
    "r_": lambda x: np.r_[x, 0, 1:3],
    "r_ of points": lambda x: np.r_[0:1:4j, x[0]],
    "c_": lambda x: np.c_[x, x * 2, np.ones(3)],
    "ix_": lambda x: np.outer(x, x)[np.ix_([0, 2], [1, 2])],
    "known mask": lambda x: x[np.array([True, False, True])],
    "known places": lambda x: np.repeat(x, np.array([1, 2, 0])),
    "nonzero of known": lambda x: x[np.nonzero(np.arange(3) > 0)[0]],
    "polyfit": lambda x: np.polyfit([0.0, 1.0, 3.0], x, 1),
    "vectorize": lambda x: np.vectorize(lambda t: t * t + 1)(x),
    "ndenumerate": lambda x: [v * (i[0] + 1) for i, v in np.ndenumerate(x)],
}


@pytest.mark.parametrize("name", CREATED)
def test_created_arrays(name):
    got, expected = record_and_evaluate(CREATED[name], X), run_numpy(CREATED[name], X)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-13, atol=1e-13)
        assert mine.array.dtype == theirs.array.dtype


def test_created_arrays_can_be_written():
    def f(x):
        grid, steps = np.mgrid[0:3, 0:2], np.arange(3.0)
        a, b = np.zeros((3, 3)), np.ones_like(x)
        a[1] = x
        b[::2] = x[0] * b[::2]
        steps[-1] = x[2]
        return a.sum(0) @ b + steps.sum() * grid.sum()

    ckad.testing.check_grads(f, (X,))


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_reciprocals_of_integers_are_integers(engine):
    whole = np.array([3, -1, 1, -2])
    got = ckad.jit(np.reciprocal, engine=engine)(whole)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, [0, -1, 1, 0])
    assert ckad.jit(np.reciprocal, engine=engine)(np.array([0]))[0] == np.iinfo(np.int64).min


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("shift", [np.left_shift, np.right_shift])
def test_shifts_by_negative_numbers_do_not_count_from_an_end(shift, engine):
    whole = np.array([3, -3, 1])
    compiled = ckad.jit(lambda n, k: shift(n, k), engine=engine)
    np.testing.assert_array_equal(compiled(whole, whole * whole), shift(whole, whole * whole))
    with pytest.raises(TracedIndexError):
        compiled(whole, np.array([1, -7, 2]))
    with pytest.raises(TracedIndexError):
        ckad.jit(lambda x: x * shift(64, int(x)), engine=engine)(-3.5)
