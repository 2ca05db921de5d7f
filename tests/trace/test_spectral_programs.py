"""Programs in Fourier space, and the names of SciPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack

import ckad
from ckad.errors import BudgetError
from ckad.testing import check_grads

from .complex_cases import check

RNG = np.random.default_rng(3)
N = 12
K = np.fft.fftfreq(N, 1.0 / N)
KX, KY = np.meshgrid(K, K, indexing="ij")
K2 = KX**2 + KY**2
KEPT = (np.abs(KX) < N / 3) & (np.abs(KY) < N / 3)
X = 2 * np.pi * np.arange(N) / N


def vorticity(amplitude, nu):
    """Navier-Stokes in two dimensions: pseudo-spectral, dealiased, RK4."""
    x, y = np.meshgrid(X, X, indexing="ij")
    w = np.fft.fft2(amplitude * (np.cos(2 * x) * np.sin(y) + 0.3 * np.sin(3 * x + y)))

    def rhs(w):
        psi = w / np.where(K2 == 0, 1.0, K2)
        u, v = np.real(np.fft.ifft2(1j * KY * psi)), -np.real(np.fft.ifft2(1j * KX * psi))
        wx, wy = np.fft.ifft2(1j * KX * w).real, np.fft.ifft2(1j * KY * w).real
        return -(KEPT * np.fft.fft2(u * wx + v * wy)) - nu * K2 * w

    dt = 0.02
    for _ in range(6):
        a = rhs(w)
        b = rhs(w + 0.5 * dt * a)
        c = rhs(w + 0.5 * dt * b)
        w = w + dt / 6 * (a + 2 * b + 2 * c + rhs(w + dt * c))
    return np.sum(np.fft.ifft2(w).real ** 2)


def halves(amplitude, nu):
    """The same kind by transforms of real arrays, stepped while it is large."""
    kx, ky, k2 = KX[:, : N // 2 + 1], np.abs(KY[:, : N // 2 + 1]), K2[:, : N // 2 + 1]
    u = amplitude * np.sin(X)[:, None] * np.cos(X)
    steps = 0
    while np.max(np.abs(u)) > 0.2:
        hat = np.fft.rfft2(u)
        ux, uy = np.fft.irfft2(1j * kx * hat, s=u.shape), np.fft.irfft2(1j * ky * hat, s=u.shape)
        u = np.fft.irfft2(hat / (1 + 5 * nu * k2), s=u.shape) - 0.02 * u * (ux + uy)
        steps += 1
        if steps == 9:
            break
    return np.sum(u**2)


def split_step(width, strength):
    """The Schroedinger equation, kicked where the wave is wide."""
    psi = np.exp(-((X - np.pi) ** 2) / width**2) + 0j
    for n in range(8):
        psi = np.fft.ifft(np.exp(-0.01j * K**2) * np.fft.fft(psi))
        if np.sum(np.abs(psi) ** 2 * (X - np.pi) ** 2) > 0.5:
            psi = np.fft.ifft(np.fft.fft(psi) * np.exp(-0.1 * np.abs(K)))
        psi = psi * np.exp(-0.02j * strength * np.abs(psi) ** 2 * (n + 1))
    return np.sum(np.abs(psi) ** 4 * np.cos(X)) + psi.real[3]


def korteweg(height, speed):
    """Korteweg-de Vries with an integrating factor."""
    v = scipy.fft.fft(height / np.cosh(X - 3.0) ** 2)
    factor = np.exp(1j * K**3 * 1e-3 * speed)
    for _ in range(10):
        v = factor * (v - 1.5e-3j * K * scipy.fft.fft(np.real(scipy.fft.ifft(v)) ** 2))
    return np.sum(np.real(scipy.fft.ifft(v)) ** 3)


class Poisson:
    """Particles in a box: their charge is spread, and the field comes from a spectral solve."""

    def __init__(self):
        self.green = np.where(K2 == 0, 0.0, 1 / np.where(K2 == 0, 1.0, K2))

    def potential(self, rho):
        return np.fft.ifftn(np.fft.fftn(rho) * self.green).real

    def __call__(self, charge, dt):
        rho = charge * np.exp(-((X[:, None] - 3) ** 2) - (X - 2) ** 2)
        for _ in range(5):
            for _ in range(2):
                rho = rho + dt * (np.roll(rho, 1, 0) - rho)
            rho = rho - dt * self.potential(rho) * rho
        return np.sum(rho * self.potential(rho))


def cosines(scale, rate):
    """Diffusion between insulated walls, by cosines; and between cold ones, by sines."""
    u = scale * np.exp(-((X - 2.0) ** 2))
    for _ in range(4):
        u = scipy.fft.idct(scipy.fft.dct(u) * np.exp(-rate * np.arange(N) ** 2 * 0.01)) + 0.1 * u**2
        u = scipy.fft.idst(scipy.fft.dst(u, 1) * np.exp(-rate * np.arange(1, N + 1) * 0.01), 1)
    return np.sum(u**2)


PROGRAMS = [vorticity, halves, split_step, korteweg, Poisson(), cosines]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: getattr(f, "__name__", "poisson"))
def test_programs(f, engine):
    args = 1.3, 0.4
    np.testing.assert_allclose(ckad.jit(f, engine=engine)(*args), f(*args), rtol=1e-11)
    check_grads(f, args, engine=engine)


@pytest.mark.parametrize("f", [vorticity, split_step, Poisson()])
def test_a_budget_changes_no_bit(f):
    args = 1.3, 0.4
    want = ckad.value_and_grad(f, (0, 1))(*args)
    with pytest.raises(BudgetError) as caught:
        ckad.value_and_grad(f, (0, 1), memory="9kB")(*args)
    least = int(re.search(r"at least ([\d,]+)", str(caught.value))[1].replace(",", ""))
    for memory in (least, least + 2000):
        assert ckad.value_and_grad(f, (0, 1), memory=memory)(*args) == want


def test_the_second_derivative():
    g = ckad.grad(ckad.grad(korteweg))
    h = 1e-4
    first = ckad.grad(korteweg)
    slope = (first(1.3 + h, 0.4) - first(1.3 - h, 0.4)) / (2 * h)
    np.testing.assert_allclose(g(1.3, 0.4), slope, rtol=1e-6)


def test_what_is_real_stays_real():
    """No transform of a whole complex array, forward or back."""
    f = ckad.value_and_grad(vorticity, (0, 1))
    calls = [line for line in str(f.compiled(1.3, 0.4).tape).splitlines() if " call " in line]
    kinds = {line.split("(fourier, ")[1].split(",")[0] for line in calls}
    assert kinds == {"1", "2"}


@pytest.mark.parametrize("inverse", ["", "i"])
@pytest.mark.parametrize("name", ["dct", "dst", "dctn", "dstn"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_cosines_and_sines(name, inverse, norm):
    function = getattr(scipy.fft, inverse + name)
    for type in (1, 2, 3, 4):
        for shape in ((4, 6), (3, 35), (2, 37), (2, 36)):
            x = RNG.normal(size=shape)
            f = lambda x, type=type: function(x, type, norm=norm)  # noqa: E731
            np.testing.assert_allclose(ckad.jit(f)(x), f(x), rtol=1e-11, atol=1e-12)
    check_grads(lambda x: function(x, 2, norm=norm), (x,))
    check(lambda x: function(x, 3, norm=norm, orthogonalize=True), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: scipy.fft.fft(z, 7, overwrite_x=True, workers=2),
        lambda z: scipy.fft.ifftn(z, s=(5,), axes=(0,), norm="ortho"),
        lambda z: scipy.fft.irfft2(scipy.fft.rfft2(z.real, norm="forward"), s=z.shape),
        lambda z: scipy.fft.hfftn(z),
        lambda z: scipy.fft.ihfft2(z.imag),
        lambda z: scipy.fft.fftshift(z, axes=0) * scipy.fft.fftfreq(z.shape[1]),
        lambda z: scipy.fft.fft(z, scipy.fft.next_fast_len(11)),
        lambda z: np.fft.fftn(z, axes=(0, 1, 0)),
        lambda z: scipy.fftpack.ifft2(scipy.fftpack.fftn(z) ** 2),
        lambda z: scipy.fftpack.idct(scipy.fftpack.dst(z.real, 3, norm="ortho"), 1),
    ],
)
def test_names_of_scipy(f):
    check(f, RNG.normal(size=(4, 5)) + 1j * RNG.normal(size=(4, 5)))


def test_short_and_uneven_lines_are_multiplied_by_a_matrix():
    for n, is_matrix in ((16, True), (36, False), (53, True), (211, False)):
        text = str(ckad.trace(lambda x: scipy.fft.dctn(x))(np.ones((3, n))))
        assert ("matmul" in text, "fourier" in text) == (True, not is_matrix)  # 3 is short


def test_single_precision_of_cosines():
    x = RNG.normal(size=8).astype(np.float32)
    got = ckad.jit(scipy.fft.dct)(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, scipy.fft.dct(x), rtol=1e-5, atol=1e-5)


def test_errors():
    with pytest.raises(ValueError, match="Invalid type"):
        ckad.jit(lambda x: scipy.fft.dct(x, 5))(np.ones(4))
    with pytest.raises(ValueError, match="DCT-I"):
        ckad.jit(lambda x: scipy.fft.dct(x, 1))(np.ones(1))
    with pytest.raises(TypeError, match="real arrays"):
        ckad.jit(scipy.fft.dst)(np.ones(4, complex))
