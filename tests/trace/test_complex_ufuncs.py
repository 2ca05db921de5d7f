"""Every ufunc that NumPy has for complex numbers and ckad has a rule for."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import DtypeError, UnsupportedFunctionError
from ckad.trace.primitives.complex.products import PRODUCTS
from ckad.trace.primitives.complex.ufuncs import LOWERINGS

from .complex_cases import U, W, Z, check, differences

FLAT = {np.rint, np.isnan, np.isinf, np.isfinite, np.logical_not}
FLAT |= {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
FLAT |= {np.logical_and, np.logical_or, np.logical_xor}
ONE = [u for u in LOWERINGS if u.nin == 1]
TWO = [u for u in LOWERINGS if u.nin == 2]


def name(ufunc):
    return ufunc.__name__


def test_the_table_holds_all_that_the_documentation_names():
    known = """add subtract multiply divide power float_power negative positive reciprocal square
        conjugate absolute sign rint arcsin arccos arctan arcsinh arccosh arctanh
        sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh
        tanh equal not_equal less less_equal greater greater_equal logical_and logical_or
        logical_xor logical_not isnan isinf isfinite"""
    assert {name(u) for u in LOWERINGS} == set(known.split())
    assert not PRODUCTS.keys() & LOWERINGS.keys()


@pytest.mark.parametrize("ufunc", ONE, ids=name)
def test_one_operand(ufunc):
    check(ufunc, Z, derivative=ufunc not in FLAT)
    check(ufunc, Z[0, 0], derivative=False)


@pytest.mark.parametrize("ufunc", TWO, ids=name)
def test_two_operands(ufunc):
    smooth = ufunc not in FLAT
    check(ufunc, Z, W, derivative=smooth)
    check(ufunc, Z, U, derivative=smooth)
    check(ufunc, U, Z, derivative=smooth)
    check(ufunc, Z, W[0], derivative=False)
    check(lambda z: ufunc(z, 0.3 - 1j), Z, derivative=smooth)
    check(lambda u: ufunc(u, 0.3 - 1j), U, derivative=smooth)
    check(lambda z: ufunc(2.0, z), Z, derivative=smooth)
    check(lambda u: ufunc(W, u), U, derivative=smooth)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, -1, -2, 0.5, 1.5, -0.5, 2 + 1j, np.int64(4)])
def test_powers(exponent):
    check(lambda z: z**exponent, Z)
    if exponent:
        check(lambda z: exponent**z, Z)


def test_the_principal_value_of_a_traced_exponent():
    check(lambda u, z: z**u, U, Z)
    check(lambda u: np.power(-2.0 + 0j, u), U)
    powers = ckad.jit(lambda z, w: z**w)(np.array([0j, 0j, 0j]), np.array([0j, 2 + 0j, -1 + 0j]))
    np.testing.assert_array_equal(powers[:2], [1, 0])
    assert np.isnan(powers[2])


HERE = [complex(a, b) for a in (0.0, -0.0, 1.0, -4.0, 1e-300, 30.0) for b in (0.0, -0.0, 2.0, -3.0)]


@pytest.mark.parametrize("ufunc", [u for u in ONE if u is not np.rint], ids=name)
def test_branch_cuts_and_signs_of_zero(ufunc):
    points = np.array(HERE)
    with np.errstate(all="ignore"):
        want, got = ufunc(points), ckad.jit(ufunc)(points)
    finite = np.isfinite(want) & (points != 0)
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-13, atol=1e-15)
    if want.dtype == complex:
        at_cut = finite & (want.imag != 0)
        np.testing.assert_array_equal(np.signbit(got.imag)[at_cut], np.signbit(want.imag)[at_cut])


@pytest.mark.parametrize("point", [-1 + 0j, -1 - 0j, 1 + 0j, 2j, -2j, -0.0 + 0.5j])
@pytest.mark.parametrize(
    "ufunc",
    [np.sqrt, np.log, np.tanh, np.tan, np.reciprocal, np.power, np.arcsinh, np.arccosh, np.arctan],
)
def test_derivatives_on_the_axes(ufunc, point):
    """Where the formulas choose between their forms."""
    slope = {
        np.sqrt: lambda z: 0.5 / np.sqrt(z),
        np.log: lambda z: 1 / z,
        np.tanh: lambda z: 1 - np.tanh(z) ** 2,
        np.tan: lambda z: 1 + np.tan(z) ** 2,
        np.reciprocal: lambda z: -1 / z**2,
        np.power: lambda z: 1.5 * np.sqrt(z),
        np.arcsinh: lambda z: 1 / np.sqrt(z**2 + 1),
        np.arccosh: lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)),
        np.arctan: lambda z: 1 / (1 + z**2),
    }[ufunc]
    if ufunc is np.arccosh and abs(point) == 1:
        point = 2 * point
    function = (lambda z: z**1.5) if ufunc is np.power else ufunc
    for direction in (1.0, 1j):
        _, tangent = ckad.jvp(function, (point,), (direction + 0j,))
        np.testing.assert_allclose(tangent, direction * slope(point), rtol=1e-13, atol=1e-15)


def test_derivatives_where_there_is_none():
    assert ckad.grad(np.abs)(0j) == 0
    with np.errstate(all="ignore"):
        assert not np.isfinite(ckad.grad(lambda z: np.sqrt(z).real)(0j))


def test_a_quotient_does_not_overflow_early():
    big = np.array([1e200 + 1e200j, 3e-200 + 4e-200j])
    np.testing.assert_allclose(ckad.jit(lambda z: z / z)(big), [1, 1])
    check(lambda z: 1 / z, np.array([1 + 1j, 1 - 1j, -2j, 3 + 0j]))


@pytest.mark.parametrize(
    ("f", "dtype"),
    [
        (lambda z, u: z * 1j, np.complex64),
        (lambda z, u: z * np.float32(2), np.complex64),
        (lambda z, u: z + 2.0, np.complex64),
        (lambda z, u: u * 1j, np.complex64),
        (lambda z, u: z * np.complex128(1j), np.complex128),
        (lambda z, u: z * np.arange(4), np.complex128),
        (lambda z, u: abs(z), np.float32),
        (lambda z, u: z**2, np.complex64),
        (lambda z, u: z.astype(complex), np.complex128),
        (lambda z, u: np.exp(1j * u), np.complex64),
    ],
)
def test_promotion(f, dtype):
    z, u = Z.astype(np.complex64), U.astype(np.float32)
    assert f(z, u).dtype == dtype
    result = ckad.jit(f)(z, u)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, f(z, u), rtol=1e-5)
    gradient = ckad.grad(lambda z, u: np.sum(np.abs(f(z, u))))(z, u)
    assert gradient.dtype == np.complex64


def test_out_where_and_methods():
    def f(z):
        o, r = np.zeros_like(z), np.zeros_like(z.real)
        np.multiply(z, 1j, out=o)
        np.exp(o, out=o)
        np.abs(z, out=r)
        np.add(z, r, out=o, where=r > 1)
        np.add.at(o, ([0, 0], [1, 1]), z[0, :2])
        np.subtract.at(o, 1, 1j)
        return o + np.multiply.outer(z[0], z[1])[:3] + np.add.reduce(z) + np.multiply.reduce(z, 0)

    check(f, Z)


def test_lexicographic_order():
    z = np.array([1 + 1j, 1 + 2j, 0 + 5j, 1 + 1j])
    for f in (lambda z: z < 1 + 2j, lambda z: z >= z[::-1], lambda z: z > 1):
        check(f, z, derivative=False)


@pytest.mark.parametrize("function", [np.floor_divide, np.arctan2, np.hypot, np.remainder])
def test_ufuncs_without_complex_numbers_raise_as_in_numpy(function):
    with pytest.raises(TypeError, match=rf"np.{function.__name__} of complex numbers"):
        ckad.jit(lambda z: function(z, 2.0))(Z)


def test_ufuncs_without_a_rule_are_named():
    with pytest.raises(UnsupportedFunctionError, match=r"np\.maximum of complex numbers"):
        ckad.jit(lambda z: np.maximum(z, 1))(Z)


def test_complex_results_do_not_fit_real_arrays():
    def f(u):
        u = u.copy()
        u += 1j
        return u

    with pytest.raises(DtypeError, match="imaginary part"):
        ckad.jit(f)(U)


def test_special_forms_of_the_gradient():
    """A function of the absolute value and the angle."""
    f = lambda z: np.sum(np.abs(z) ** 3 * np.cos(np.angle(z)))  # noqa: E731
    np.testing.assert_allclose(ckad.grad(f)(Z), differences(f, Z), rtol=1e-6)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_powers_keep_the_precision_and_zero_has_numpys(engine):
    z = np.array([1 + 2j, 0, 0.5j], np.complex64)
    w = np.array([2.5 - 1j, 0.3 + 2j, -0.5], np.complex64)

    def powers(z, w):
        return [z**w, z**2.5, 2.0**w, z ** (1 + 1j), z[0] ** w, np.float32(1.5) ** w]

    for got, want in zip(ckad.jit(powers, engine=engine)(z, w), powers(z, w), strict=True):
        assert got.dtype == want.dtype == np.complex64
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    nothing = np.zeros(4, complex)
    powers_of_it = np.array([1 + 1j, 0.001 - 5j, 0.5, 0])
    got = ckad.jit(lambda z, w: np.float_power(z, w), engine=engine)(nothing, powers_of_it)
    np.testing.assert_array_equal(got, [0, 0, 0, 1])


@pytest.mark.parametrize(
    "several",
    [
        lambda z, x: np.broadcast_arrays(z, x, 2.0),
        lambda z, x: np.atleast_2d(x[0], z[0], 1j),
        lambda z, x: np.meshgrid(x[0], z[0]),
    ],
    ids=["broadcast_arrays", "atleast_2d", "meshgrid"],
)
def test_of_several_arrays_the_real_ones_stay_real(several):
    found, wanted = ckad.jit(several)(W, U), several(W, U)
    assert [x.dtype for x in found] == [x.dtype for x in wanted]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("product", [np.prod, np.cumprod, np.sum])
def test_sums_and_products_do_not_lose_imaginary_parts(product):
    with pytest.raises(DtypeError, match=f"{product.__name__} turns complex"):
        ckad.jit(lambda z: product(z, dtype=float))(Z)
