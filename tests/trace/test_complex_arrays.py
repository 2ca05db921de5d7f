"""NumPy's functions, views, writes and methods on complex arrays."""

from __future__ import annotations

import cmath

import numpy as np
import pytest

import ckad
from ckad.errors import (
    AliasError,
    AsRunWarning,
    ConcreteValueError,
    DtypeError,
    UnsupportedFunctionError,
)

from .complex_cases import M, U, W, Z, check

FUNCTIONS = {
    "sum": lambda z: np.sum(z, axis=0),
    "sum of all": lambda z: z.sum(),
    "pad with a number": lambda z: (
        np.pad(z, 1, constant_values=z[0, 0]) + np.pad(z, 1, constant_values=2.5)
    ),
    "pad with several": lambda z: np.pad(z, 1, constant_values=((1, 2j), (3.0, 4))),
    "ediff1d between": lambda z: np.ediff1d(z[0], to_end=[2.0, 1j], to_begin=z[1, 1]),
    "sum where": lambda z: np.sum(z, where=U > 0, initial=1j),
    "mean": lambda z: z.mean(1, keepdims=True),
    "prod": lambda z: z.prod(0),
    "prod of all": lambda z: np.prod(z),
    "max": lambda z: np.max(z),
    "method max": lambda z: z.max(),
    "min along an axis": lambda z: z.min(axis=1),
    "max of equal real parts": lambda z: np.amax(np.round(z.real) + 1j * z.imag, 0, keepdims=True),
    "dot": lambda z: z.dot(M),
    "matmul": lambda z: z @ M,
    "matmul with reals": lambda z: z @ M.real,
    "reals matmul": lambda z: M.real @ z,
    "vdot": lambda z: np.vdot(z, W),
    "vdot second": lambda z: np.vdot(W, z),
    "vecdot": lambda z: np.vecdot(z, W),
    "inner": lambda z: np.inner(z, W),
    "outer": lambda z: np.outer(z[0], z[1]),
    "tensordot": lambda z: np.tensordot(z, M, 1),
    "kron": lambda z: np.kron(z, M),
    "cross": lambda z: np.cross(z[:, :3], W[:, :3]),
    "convolve": lambda z: np.convolve(z[0], z[1]),
    "correlate": lambda z: np.correlate(z[0], z[1], "full"),
    "einsum": lambda z: np.einsum("ij,jk->ki", z, M),
    "einsum of one": lambda z: np.einsum("ij->j", z),
    "einsum of three": lambda z: np.einsum("ij,jk,kl->il", z, M, z),
    "einsum with reals": lambda z: np.einsum(z, [0, 1], U, [0, 1], [0]),
    "multi_dot": lambda z: np.linalg.multi_dot([z, M, z]),
    "polyval": lambda z: np.polyval([1j, 2, z[0, 0]], z),
    "where": lambda z: np.where(U > 0, z, 1j),
    "where of itself": lambda z: np.where(z.real > 0, z, 0),
    "select": lambda z: np.select([U > 0.5, U > 0], [z, W], 1j),
    "concatenate": lambda z: np.concatenate([z, U], 1),
    "stack": lambda z: np.stack([z, W]),
    "stack of numbers": lambda z: np.stack([z[0, 0], 1j, 2.0, z[1, 1] * z[0, 0]]),
    "transpose": lambda z: z.T * 1j,
    "reshape": lambda z: z.reshape(-1) * 1j,
    "ravel": lambda z: z.ravel(),
    "row": lambda z: z[1],
    "gather": lambda z: z[[0, 2], 1:],
    "element": lambda z: z[0, 1],
    "plain mask": lambda z: z[U > 0],
    "newaxis": lambda z: z[:, None, ::-1],
    "take": lambda z: np.take(z, [0, 1], axis=1),
    "roll": lambda z: np.roll(z, 1, 0),
    "diff": lambda z: np.diff(z),
    "gradient": lambda z: np.gradient(z, axis=0),
    "trapezoid": lambda z: np.trapezoid(z, dx=0.5),
    "cumsum": lambda z: np.cumsum(z, 1),
    "trace": lambda z: np.trace(z),
    "diag": lambda z: np.diag(z[0]),
    "tril": lambda z: np.tril(z),
    "tile": lambda z: np.tile(z, (2, 2)),
    "repeat": lambda z: np.repeat(z, 2, axis=0),
    "pad": lambda z: np.pad(z, 1),
    "flip": lambda z: np.flip(z),
    "swapaxes": lambda z: z.swapaxes(0, 1),
    "broadcast_to": lambda z: np.broadcast_to(z[0], (2, 4)) * z[:2],
    "split": lambda z: np.split(z, 2, axis=1)[1],
    "meshgrid": lambda z: np.meshgrid(z[0], U[0])[0],
    "linspace": lambda z: np.linspace(z[0, 0], 1j, 5),
    "var": lambda z: np.var(z),
    "std": lambda z: z.std(0),
    "average": lambda z: np.average(z, axis=0, weights=[1.0, 2.0, 3.0]),
    "norm": lambda z: np.linalg.norm(z),
    "1-norm": lambda z: np.linalg.norm(z, 1, axis=1),
    "angle": lambda z: np.angle(z, deg=True),
    "zeros_like": lambda z: np.zeros_like(z) + z,
    "ones_like": lambda z: np.ones_like(z) * z,
    "full_like": lambda z: np.full_like(z, 1j) * z,
    "astype": lambda z: z.real.astype(complex) * z,
    "copy": lambda z: np.copy(z).conj() * z,
    "dtype of a sum": lambda z: np.sum(z.real, dtype=complex) + z,
    "real and imag": lambda z: np.real(z) * np.imag(z),
    "imaginary unit": lambda z: z.imag * 1j,
    "array of numbers": lambda z: np.array([z[0, 0], 1j, 2]),
    "array of rows": lambda z: np.array([z[0], z[1] * 2j]),
    "array of reals": lambda z: np.array(z.real, dtype=complex) * 1j,
    "eye": lambda z: z[:, :3] + np.eye(3, dtype=complex) * 1j,
    "arange": lambda z: z * np.arange(4, dtype=complex),
    "text as dtype": lambda z: np.zeros(4, dtype="complex128") + z,
    "cumprod": lambda z: np.cumprod(z),
    "insert": lambda z: np.insert(z, 1, 1j, axis=0),
    "windows": lambda z: np.lib.stride_tricks.sliding_window_view(z[0], 2),
    "polymul": lambda z: np.polymul(z[0], z[1]),
    "polyadd": lambda z: np.polyadd(z[0], [1.0, 2.0]),
    "polysub": lambda z: np.polysub([2.0, 1.0], z[0]),
    "polyder": lambda z: np.polyder(z[0], 2),
    "polyint": lambda z: np.polyint(z[0], k=2j),
    "vander": lambda z: np.vander(z[0], 3),
    "nansum": lambda z: np.nansum(z * np.where(U > 1, np.nan, 1.0), 0),
    "nanprod": lambda z: np.nanprod(z, 0),
    "nancumsum": lambda z: np.nancumsum(z, 1),
    "nancumprod": lambda z: np.nancumprod(z[0]),
    "matrix_norm": lambda z: np.linalg.matrix_norm(z),
    "vector_norm": lambda z: np.linalg.vector_norm(z, ord=3),
    "std into out": lambda z: np.std(z, 0, out=np.zeros_like(z.real[0])),
    "allclose": lambda z: z * np.allclose(z, z + 1e-12) * np.array_equiv(z, z[0, 0]),
    "solve": lambda z: np.linalg.solve(z[:, :3], z[:, 3]),
    "solve of reals": lambda z: np.linalg.solve(U[:, :3], z),
    "inv": lambda z: np.linalg.inv(z[:, 1:]),
    "matrix_power": lambda z: np.linalg.matrix_power(z[:, :3], -3),
    "questions": lambda z: z * np.size(z) * z.ndim * len(z) * np.iscomplexobj(z),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], Z)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: np.any(z),
        lambda z: np.all(z, axis=0),
        lambda z: np.count_nonzero(z),
        lambda z: np.isclose(z, z + 1e-12),
        lambda z: np.isreal(z.real + 0j),
        lambda z: np.iscomplex(z),
        lambda z: z.astype(np.complex64),
        lambda z: z != 0,
    ],
)
def test_questions(f):
    check(f, Z, derivative=False)


# --- memory ------------------------------------------------------------------------------------


def writes(z):
    z = z.copy()
    z += 1j
    z *= z
    z[1:] -= z[:-1]
    z[0, 1] = 3 + 2j
    z[2] = z[1].real
    z.real[0] = 5.0
    z.imag += z.real
    z /= 2
    odd = z.reshape(-1)[::2]
    odd *= 1j
    z[:, 1] **= 2
    z[1:] = z[:-1]
    z.T[0] = z.T[1]
    z[z.real > 0] = 1j
    return z


def test_views_and_writes():
    check(writes, Z)


def test_parts_are_views():
    def f(z):
        z = z.copy()
        real, imag = z.real, np.imag(z)
        z *= 2j
        real[0] += imag[0]
        imag[1] = 0
        z.real = z.real * 3
        z[2:3].imag[...] = real[:1]
        return z + real * imag

    check(f, Z)


def test_the_parts_of_a_number_are_its_own():
    def f(z):
        number = z[0, 0]
        other = number
        number += 1
        return number * other.real

    check(f, Z)
    with pytest.raises(AttributeError, match="not writable"):
        ckad.jit(lambda z: setattr(z[0, 0], "real", 1.0))(Z)


def test_a_value_is_read_before_it_is_written():
    def f(z):
        z = z.copy()
        z[1:] = z[:-1] * z[1:].conj()
        z[:] = z[::-1]
        z[:, 1:] = z[:, :-1]
        z += z[0]
        return z

    check(f, Z)


def test_real_values_in_complex_arrays():
    def f(u):
        z = np.zeros_like(u, dtype=complex)
        z[:] = u
        z[0] = 2.0
        z[1, 1] = u[0, 0]
        z.imag[2] = u[2]
        return z * z

    check(f, U)


def test_arrays_like_others():
    def f(z, u):
        count = np.zeros_like(z, dtype=float)
        count += np.ones_like(z, dtype=np.float64) * u
        whole = np.ones_like(u, dtype=complex) * count + np.full_like(z, 2j)
        whole += (
            np.full(4, 1 + 1j) + np.zeros_like(z, shape=(4,)) + np.full_like(u, 3, dtype=complex)
        )
        return whole * z + np.empty_like(z) * 0 + u.dot(np.ones((4, 4), complex))

    check(f, Z, U)
    counts = lambda z: np.zeros_like(z, dtype=int) + (z.real > 0)  # noqa: E731
    check(counts, Z, derivative=False)
    with pytest.raises(TypeError, match="complex"):
        ckad.jit(lambda u: np.full_like(u, 1j))(U)


def test_traced_indices():
    def f(z, k):
        z = z.copy()
        row = ckad.fori_loop(0, 3, lambda i, s: s + z[i] * z[i, k[i]], np.zeros(4, complex))
        return row

    def plain(z, k):
        return sum(z[i] * z[i, k[i]] for i in range(3))

    k = np.array([2, 0, 3])
    np.testing.assert_allclose(ckad.jit(f)(Z, k), plain(Z, k))


@pytest.mark.parametrize("turn", [1j, 1 + 1e-14j, 1 + 1e-9j])
def test_numbers_decide_whether_they_are_nearly_real(turn):
    def f(u):
        z = np.real_if_close(u * turn)
        return np.sum(np.abs(z) ** 3 if np.iscomplexobj(z) else z**3)

    with pytest.warns(AsRunWarning, match="real_if_close"):
        value, slope = ckad.value_and_grad(f, engine="vm")(U)
    assert value == pytest.approx(f(U), rel=1e-13)
    size = np.abs(U) if abs(turn.imag) > 1e-12 else U
    np.testing.assert_allclose(slope, 3 * size * U, rtol=1e-12)


def test_casting_to_real_warns_as_numpy_does():
    def f(u, z):
        u = u.copy()
        u[:] = z
        return u

    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part") as found:
        got = ckad.jit(f)(U, Z)
    assert found[0].filename == __file__
    np.testing.assert_array_equal(got, Z.real)
    with pytest.warns(np.exceptions.ComplexWarning):
        ckad.jit(lambda z: z.astype(float))(Z)
    with pytest.raises(TypeError, match="complex"):
        ckad.jit(lambda u: u.copy().fill(1j))(U)
    with pytest.raises(TypeError, match="complex"):
        ckad.jit(lambda u, z: np.copyto(u.copy(), z))(U, Z)


def test_python_numbers():
    def f(z):
        a = complex(z[0, 0].real, 2.0) + complex(z[0, 1]) * cmath.exp(z[1, 0])
        b = np.complex128(z[1, 1].imag) * cmath.rect(abs(z[0, 2]), cmath.phase(z[0, 3]))
        return a * b if z.sum() else a

    check(f, Z)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (float, ConcreteValueError),
        (complex, TypeError),
        (lambda z: np.zeros(3)[z[0, 0]], TypeError),
        (lambda z: np.multiply(z.real, 1j, out=z.real), DtypeError),
        (lambda z: np.max(z, initial=1j), UnsupportedFunctionError),
        (lambda z: np.clip(z, 0, 1), UnsupportedFunctionError),
        (lambda z: z.sort(), UnsupportedFunctionError),
        (lambda z: np.sum(z, dtype=float), DtypeError),
        (lambda z: z // 2, TypeError),
        (lambda z: z % 2, TypeError),
    ],
)
def test_errors(f, error):
    with pytest.raises(error):
        ckad.jit(f)(Z)


def test_longer_complex_numbers_are_refused():
    with pytest.raises(DtypeError):
        ckad.jit(lambda z: z)(Z.astype(np.clongdouble))
    with pytest.raises(DtypeError):
        ckad.jit(lambda u: u * np.clongdouble(1j))(U)


# --- arguments that share memory ---------------------------------------------------------------


def test_arguments_that_share_memory():
    def f(a, b):
        a[0] = 1.0
        return np.sum(np.abs(a * b))

    for pair in ((Z, Z), (Z[:2], Z[1:]), (Z, Z.real), (Z.imag, Z)):
        with pytest.raises(AliasError, match="another argument"):
            ckad.jit(f)(*pair)


def test_the_parts_of_one_array_do_not_share_memory():
    def f(a, b):
        a[0] = 1.0
        return np.sum(a * b)

    np.testing.assert_allclose(ckad.jit(f)(Z.real, Z.imag), f(Z.real.copy(), Z.imag))


def test_the_arguments_stay_as_they_are():
    def f(z):
        z *= 2
        view = z.reshape(2, 6)
        view[0] = 1j
        return np.sum(np.abs(z))

    before = Z.copy()
    np.testing.assert_allclose(ckad.jit(f)(Z), f(Z.copy()))
    np.testing.assert_array_equal(Z, before)
    check(lambda z: f(z.copy()), Z)


def test_memory_layout_of_arguments():
    """A reshape is a view exactly where it is one in NumPy."""

    def f(z):
        flat = z.reshape(-1)
        flat[0] = 10j
        return z * 1

    check(f, Z, derivative=False)
    with pytest.raises(AliasError):
        ckad.jit(f)(Z.T)


@pytest.mark.parametrize("worst", [np.nan, 1 + np.nan * 1j, np.inf, -np.inf + 2j])
def test_extrema_of_what_is_not_finite(worst):
    z = np.array([2 + 1j, worst, 2 + 3j])
    for function in (np.max, np.min):
        got, want = ckad.jit(function)(z), function(z)
        assert np.isnan(got) if np.isnan(want) else got == want


def truths(z):
    return 1.0 * bool(z[0, 0].imag * 1j) + (2.0 if 1j * z[0, 0].real else 3.0)


#: As numbers of Python, and what these do among numbers of 32 bits.
AS_PYTHON = {
    "item": lambda z: z[0, 1].item() + z.item(2) + z.reshape(-1, 1).item(1, 0),
    "tolist": lambda z: z.tolist()[1][2] * sum(z[0].tolist()),
    "items of steps": lambda z: sum((w.item() * 0.5j**k for k, w in enumerate(z[0])), 0j),
    "single": lambda z: z[0, 1].item().conjugate() * np.ones(2, np.complex64),
    "real": lambda z: z[0, 1].item().real * np.ones(2, np.float32),
    "complex": lambda z: complex(z[0, 1]).imag * np.ones(2, np.float32),
    "truth": truths,
}


@pytest.mark.parametrize("name", AS_PYTHON)
def test_complex_numbers_of_python(name):
    program = AS_PYTHON[name]
    found, expected = ckad.jit(program, engine="vm")(Z), program(Z)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if "32" in str(expected) else 1e-13)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
