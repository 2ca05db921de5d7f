"""Discrete Fourier transforms against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import ckad

from .complex_cases import U, Z, check

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 31, 37, 64, 100, 127, 131, 243, 331, 512, 1000, 1018])
@pytest.mark.parametrize("transform", [np.fft.fft, np.fft.ifft])
def test_every_kind_of_length(n, transform):
    z = RNG.normal(size=n) + 1j * RNG.normal(size=n)
    want = transform(z)
    size = np.max(np.abs(want))
    np.testing.assert_allclose(
        ckad.jit(transform)(z), want, rtol=0, atol=4e-15 * size * np.log2(n + 1)
    )


@pytest.mark.parametrize(
    "f",
    [
        np.fft.fft,
        lambda z: np.fft.ifft(z, axis=0),
        lambda z: np.fft.fft(z, 7, norm="ortho"),
        lambda z: np.fft.fft(z, 3, axis=1, norm="forward"),
        np.fft.fft2,
        np.fft.ifft2,
        lambda z: np.fft.fftn(z, (2, 5), (0, 1)),
        lambda z: np.fft.ifftn(z, axes=(1,), norm="ortho"),
        lambda z: np.fft.rfft(z.real),
        lambda z: np.fft.rfft(z.imag, 5, 0),
        np.fft.irfft,
        lambda z: np.fft.irfft(z, 5, norm="ortho"),
        lambda z: np.fft.irfft(z, 4, axis=0),
        lambda z: np.fft.rfft2(z.real),
        lambda z: np.fft.rfft2(z.real, (4, 3), norm="ortho"),
        lambda z: np.fft.rfftn(z.real, (5,), (0,)),
        lambda z: np.fft.rfftn(z.real, axes=(1, 0), norm="forward"),
        lambda z: np.fft.fftn(z, (2, 5, 3), (1, 0, 1)),
        lambda z: np.fft.rfftn(z.real, axes=(1, 1)),
        lambda z: np.fft.rfftn(z.real, (3, 4, 2), (0, 1, 0)),
        lambda z: np.fft.irfftn(z, (3, 4, 5), (1, 0, 1), norm="ortho"),
        lambda z: np.fft.irfftn(z, axes=(0, 0)),
        np.fft.irfft2,
        lambda z: np.fft.irfft2(z, (5, 3), (1, 0)),
        np.fft.irfftn,
        lambda z: np.fft.irfftn(z, axes=(0,), norm="forward"),
        np.fft.hfft,
        lambda z: np.fft.hfft(z, 5, 0, "ortho"),
        lambda z: np.fft.ihfft(z.real),
        lambda z: np.fft.ihfft(z.real, 5, 0, "forward"),
        np.fft.fftshift,
        lambda z: np.fft.ifftshift(z, axes=1),
    ],
)
def test_forms(f):
    check(f, Z)


def test_real_arrays():
    check(np.fft.fft, U)
    check(np.fft.rfft, U)
    check(lambda u: np.fft.irfft(np.fft.rfft(u) * 1j), U)
    check(np.fft.fftshift, U)


def test_single_precision():
    for f, x in (
        (np.fft.fft, Z.astype(np.complex64)),
        (np.fft.rfft, U.astype(np.float32)),
        (np.fft.irfft, Z.astype(np.complex64)),
    ):
        want, got = f(x), ckad.jit(f)(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_transforms_of_several_axes_in_both_modes(engine):
    x = RNG.normal(size=(3, 4, 5))
    for f in (
        lambda x: np.fft.irfftn(np.fft.rfftn(x) ** 2),
        lambda x: np.fft.hfft(np.fft.ihfft(x, axis=0) ** 2, axis=1),
    ):
        ckad.testing.check_grads(f, (x,), order=2, engine=engine)


def test_parseval():
    f = lambda z: np.sum(np.abs(np.fft.fft(z, norm="ortho")) ** 2)  # noqa: E731
    z = RNG.normal(size=60) + 1j * RNG.normal(size=60)
    np.testing.assert_allclose(ckad.grad(f)(z), 2 * z.conj(), rtol=1e-12)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_the_derivative_of_a_function_by_its_spectrum(engine):
    n = 48
    x = 2 * np.pi * np.arange(n) / n
    k = np.fft.fftfreq(n, 1 / n)

    def slope(a):
        u = np.exp(np.sin(x) * a)
        return np.fft.ifft(1j * k * np.fft.fft(u)).real

    np.testing.assert_allclose(
        ckad.jit(slope, engine=engine)(0.5), 0.5 * np.cos(x) * np.exp(0.5 * np.sin(x)), atol=1e-12
    )
    _, tangent = ckad.jvp(slope, (0.5,), (1.0,), engine=engine)
    exact = np.cos(x) * np.exp(0.5 * np.sin(x)) * (1 + 0.5 * np.sin(x))
    np.testing.assert_allclose(tangent, exact, atol=1e-12)


def test_errors():
    with pytest.raises(TypeError, match="rfft takes real arrays"):
        ckad.jit(np.fft.rfft)(Z)
    with pytest.raises(ValueError, match="Invalid norm"):
        ckad.jit(lambda z: np.fft.fft(z, norm="none"))(Z)
    with pytest.raises(ValueError, match="2 lengths for 1 axes"):
        ckad.jit(lambda z: np.fft.irfftn(z, (2, 3), (1,)))(Z)
    with pytest.raises(ValueError, match="data points"):
        ckad.jit(lambda z: np.fft.fft(z, 0))(Z)


def test_scipy_takes_no_axis_twice():
    for f in (scipy.fft.fftn, scipy.fft.irfft2):
        with pytest.raises(ValueError, match="all axes must be unique"):
            ckad.jit(lambda z, f=f: f(z, axes=(1, -1)))(Z)


def test_lists_of_numbers_are_transformed():
    def program(x):
        half = [x**k for k in range(1, 4)]
        return np.sum(np.fft.fft([1.0, *half, 0, *reversed(half)]).real[:3] ** 2)

    assert ckad.value_and_grad(program)(0.7)[0] == pytest.approx(program(0.7))
    assert ckad.explain(program, 0.7).anew == ""
