"""Mantissas, exponents and neighbours of numbers to the bit; statistics without NaN; roots."""

import math

import numpy as np
import pytest

import ckad
from ckad.errors import RaisedError, UnsupportedFunctionError

ENGINES = pytest.mark.parametrize("engine", ["native", "vm"])


def points(dtype):
    """Numbers of all sizes, powers of two and their neighbours, what is no ordinary number."""
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    powers = np.exp2(exponents.astype(float)).astype(dtype)
    random = np.random.default_rng(0)
    some = (random.normal(size=500) * 2.0 ** random.choice(exponents, 500)).astype(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny]
    near = [np.nextafter(powers, dtype(d)) for d in (0.0, np.inf)]
    return np.concatenate([powers, -powers, *near, some, np.array(special, dtype)])


def the_same(found, expected):
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@ENGINES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_parts_and_neighbours_have_numpys_bits(engine, dtype):
    x = points(dtype)
    y = np.random.default_rng(1).permutation(x)
    with np.errstate(all="ignore"):
        mantissa, exponent = ckad.jit(lambda x: np.frexp(x), engine=engine)(x)
        expected = np.frexp(x)
        the_same(mantissa, expected[0])
        np.testing.assert_array_equal(exponent, expected[1])
        assert exponent.dtype == expected[1].dtype
        the_same(ckad.jit(lambda x: np.spacing(x), engine=engine)(x), np.spacing(x))
        after = ckad.jit(lambda x, y: np.nextafter(x, y), engine=engine)(x, y)
        the_same(after, np.nextafter(x, y))
        assert mantissa.dtype == after.dtype == dtype


def test_their_derivatives():
    assert ckad.grad(lambda x: np.frexp(x)[0])(-3.0) == 0.25
    assert ckad.grad(lambda x: np.spacing(x))(3.0) == 0.0
    by_x, by_y = ckad.grad(lambda x, y: np.nextafter(x, y) ** 2, (0, 1))(-3.0, 5.0)
    assert (by_x, by_y) == (2 * np.nextafter(-3.0, 5.0), 0.0)


def test_those_of_math():
    def both(x):
        mantissa, exponent = math.frexp(x)
        return mantissa, exponent, math.nextafter(x, 9.0)

    assert ckad.jit(both)(3.3) == both(3.3)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_statistics_without_nan(axis):
    random = np.random.default_rng(2)
    a = random.normal(size=(4, 5, 6))
    a[random.random(a.shape) < 0.3] = np.nan

    def statistics(a):
        part = np.nanmedian(a, axis), np.nanpercentile(a, 37, axis)
        return *part, np.nanquantile(a, [0.1, 0.5, 0.93], axis, keepdims=True)

    for found, expected in zip(ckad.jit(statistics)(a), statistics(a), strict=True):
        np.testing.assert_array_equal(found, expected)

    def total(a):
        return sum(np.sum(x**2) for x in statistics(a))

    there, v = ~np.isnan(a), random.normal(size=a.shape)
    gradient = ckad.grad(total)(a)
    difference = (total(a + 1e-6 * v) - total(a - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(np.sum((gradient * v)[there]), difference, rtol=1e-7)
    assert not np.any(gradient[~there])


def test_of_a_row_of_nan_there_is_no_median():
    a = np.array([[1.0, 3.0], [np.nan, np.nan]])
    found = ckad.jit(lambda a: np.nanmedian(a, 1))(a)
    np.testing.assert_array_equal(found, [2.0, np.nan])


@ENGINES
def test_roots(engine):
    p = np.array([2.0, -11.0, 17.0, -6.0])
    roots = np.roots(p)
    found = ckad.jit(lambda p: np.roots(p), engine=engine)(p)
    np.testing.assert_allclose(found, roots, rtol=1e-14)
    by_p = ckad.jacobian(lambda p: np.real(np.roots(p)), engine=engine)(p)
    # p(r) = 0 gives dr/dp_k = -r^(n-k) / p'(r)
    expected = -np.vander(roots, 4) / np.polyval(np.polyder(p), roots)[:, None]
    np.testing.assert_allclose(by_p, expected, rtol=1e-12)
    pair = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(
        ckad.jit(lambda p: np.roots(p), engine=engine)(pair), np.roots(pair), rtol=1e-14
    )
    assert ckad.jit(lambda p: np.roots(p), engine=engine)(np.array([3.0])).shape == (0,)


@pytest.mark.parametrize("p", [[0.0, 1.0, 2.0], [1.0, 2.0, 0.0]])
def test_roots_of_coefficients_that_numpy_leaves_out_are_refused(p):
    with pytest.raises(RaisedError, match=r"test_floating.py:\d+: the first or the last coeff"):
        ckad.jit(lambda p: np.roots(p))(np.array(p))


def test_a_double_root_has_no_derivative():
    with pytest.raises(np.linalg.LinAlgError, match="have no derivative"):
        ckad.jacobian(lambda p: np.real(np.roots(p)))(np.array([1.0, -2.0, 1.0]))


def test_neighbours_of_parts_whose_length_is_computed():
    def of_some(x, n):
        return np.sum(np.spacing(x[: np.int64(n)])) + np.sum(np.nextafter(x[: np.int64(n)], 0.0))

    x = np.linspace(1.0, 9.0, 8)
    assert ckad.jit(of_some)(x, 5) == of_some(x, 5)


@ENGINES
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_which_of_zeros_with_signs_counts_is_as_for_numpys_numbers(engine, ufunc):
    def both(x, y):
        return ufunc(x, y), ufunc(x, 0.0), ufunc(-0.0, y), ufunc(x * np.ones(1), y)[0]

    compiled = ckad.jit(both, engine=engine)
    for x in (0.0, -0.0):
        for y in (0.0, -0.0):
            the_same(compiled(x, y), both(np.float64(x), np.float64(y)))


@ENGINES
def test_what_equals_a_bound_keeps_its_sign(engine):
    def clipped(x):
        return (
            np.clip(x, 0.0, 1.0),
            np.clip(x, -1.0, -0.0),
            np.clip(x, x[::-1], 2.0),
            max(x[0], 0.0),
        )

    x = np.array([0.0, -0.0, -0.0, 0.0, -0.0])
    for given in (x, -x):
        for found, expected in zip(
            ckad.jit(clipped, engine=engine)(given), clipped(given), strict=True
        ):
            the_same(found, expected)


def of_polynomials(c):
    p = np.poly1d(c)
    made = [p.deriv(), p.integ(2, k=[1.0, c[0]]), 2 * p - p / 3 + 1, (1 - p) ** 2, p(p), -p * p]
    total = sum(q(0.3) * len(q) for q in made) + p[1] * p[5] + p.coeffs[0] + sum(p)
    for k in range(20):
        total += p(0.1 * k) + p.order
        p = p * 0.9 + np.poly1d([0.1, c[0]])
    return total + np.poly1d(c, True)(0.2) + np.sum(np.abs(p.r) ** 2)


def of_chosen_elements(c):
    x = c[0] * np.linspace(0.0, 1.0, 8) ** 2
    total = np.compress(x > 0.3, x).sum() + np.compress(x[:4] > 0.1, x**3).mean()
    return total + x.compress(x < 0.4).max() + (x * x).compress([True, False, True]).sum()


@pytest.mark.parametrize("program", [of_polynomials, of_chosen_elements])
def test_polynomials_as_objects_and_elements_chosen_by_compress(program):
    c = np.array([0.8, 0.3, -1.1])
    np.testing.assert_allclose(ckad.jit(program)(c), program(c), rtol=1e-13)
    ckad.testing.check_grads(program, (c,))


LEADING = {
    "order": lambda c: np.poly1d(c).order * c[1],
    "coefficients": lambda c: np.poly1d(c).coeffs[0] * c[1],
    "length": lambda c: len(p := np.poly1d(c)) * p(c[1]),
    "items": lambda c: sum(k * a for k, a in enumerate(np.poly1d(c))),
    "product": lambda c: np.polymul(c, c[1:])[0],
}


@pytest.mark.parametrize("program", LEADING.values(), ids=LEADING)
def test_a_first_coefficient_of_0_is_left_out_where_known_and_stops_what_depends_on_it(program):
    function = ckad.jit(program, engine="vm")
    c = np.array([2.0, 3.0, 4.0])
    np.testing.assert_allclose(function(c), program(c), rtol=1e-14)
    with pytest.raises(RaisedError, match="the first coefficient of a polynomial is 0"):
        function(np.array([0.0, 3.0, 4.0]))


def test_values_of_a_polynomial_do_not_depend_on_zeros_before_its_first_coefficient():
    c = np.array([0.0, 3.0, 4.0])
    ckad.testing.check_grads(lambda c: np.poly1d(c)(0.3) + np.poly1d(c).deriv()(c[1]), (c,))

    def known(x):
        p = np.poly1d([0.0, x, 4.0])
        return p.order * p.coeffs[0] + len(p) * x + np.polymul([0, x, 1.0], [x, 2.0])[0]

    assert ckad.jit(known, engine="vm")(3.0) == known(3.0)


def test_polynomials_of_traced_values_are_not_compared():
    with pytest.raises(UnsupportedFunctionError, match="poly1d"):
        ckad.jit(lambda x: x if np.poly1d([x, 1.0]) == np.poly1d([x, 1.0]) else 0.0)(0.5)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("running", [np.cumsum, np.cumprod])
def test_running_sums_and_products_of_zeros_keep_their_signs(engine, running):
    pairs = np.array([[-0.0, 3.0], [0.0, -0.0], [-2.0, -0.0]])
    for x in (np.array([-0.0, -0.0, 0.0, -0.0]), pairs):
        for along in (lambda x: running(x, 0), lambda x: running(x, -1)):
            found = ckad.jit(along, engine=engine)(x)
            np.testing.assert_array_equal(found, along(x))
            np.testing.assert_array_equal(np.signbit(found), np.signbit(along(x)))
