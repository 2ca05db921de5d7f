"""Complex arguments, results and loops; programs as NumPy users write them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import ckad
from ckad.errors import CarryError, DifferentiationError

from .complex_cases import U, W, Z, differences

# --- conventions -------------------------------------------------------------------------------


def test_the_gradient_is_df_dx_minus_i_df_dy():
    value, gradient = ckad.value_and_grad(lambda z: z.real**2 + 3 * z.imag)(1 + 2j)
    assert (value, gradient) == (7.0, 2 - 3j)
    assert type(gradient) is np.complex128
    np.testing.assert_allclose(ckad.grad(lambda z: np.sum(np.abs(z) ** 2))(Z), 2 * Z.conj())
    np.testing.assert_allclose(ckad.grad(lambda z: np.sum(z**3).real)(Z), 3 * Z**2)


def test_dtypes_of_gradients():
    f = lambda z: np.sum(np.abs(z))  # noqa: E731
    assert ckad.grad(f)(Z.astype(np.complex64)).dtype == np.complex64
    assert type(ckad.grad(abs)(np.complex64(1j))) is np.complex64
    assert ckad.grad(abs)(np.array(1j)).shape == ()


def test_tangents_and_cotangents():
    out, tangent = ckad.jvp(lambda z: z**2, (Z,), (W,))
    np.testing.assert_allclose(out, Z**2)
    np.testing.assert_allclose(tangent, 2 * Z * W)
    out, pullback = ckad.vjp(lambda z, u: z * u, Z, U)
    by_z, by_u = pullback(W)
    np.testing.assert_allclose(by_z, W * U)
    np.testing.assert_allclose(by_u, (W * Z).real)
    # the pairing without a conjugate: Re(ct * Jv) = Re(gradient * v)
    _, pushed = ckad.jvp(lambda z: np.abs(z) * z.conj(), (Z,), (W,))
    _, pullback = ckad.vjp(lambda z: np.abs(z) * z.conj(), Z)
    ct = Z[::-1] + 1j
    np.testing.assert_allclose(np.sum(ct * pushed).real, np.sum(pullback(ct)[0] * W).real)


def test_the_gradient_checker_takes_complex_arguments():
    ckad.testing.check_grads(lambda z: np.abs(z) * z * U, (Z,), order=2)
    ckad.testing.check_grads(lambda z, u: np.sum(np.abs(z * u) ** 2), (Z, U), order=2)


def test_products_with_the_hessian():
    f = lambda z: np.sum(np.abs(z) ** 4)  # noqa: E731
    t = 1e-6
    slope = (ckad.grad(f)(Z + t * W) - ckad.grad(f)(Z - t * W)) / (2 * t)
    np.testing.assert_allclose(ckad.hvp(f, (Z,), (W,)), slope, rtol=1e-6)


@dataclasses.dataclass
class State:
    psi: np.ndarray
    energy: float


def test_structures():
    def f(state, pair):
        a, b = pair["a"]
        out = State(state.psi * a, state.energy)
        return np.sum(np.abs(out.psi) ** 2) * out.energy, {"psi": out, "b": b * 1j}

    args = State(Z, 2.0), {"a": (1 + 1j, U)}
    (value, aux), (by_state, by_pair) = ckad.value_and_grad(f, argnums=(0, 1), has_aux=True)(*args)
    np.testing.assert_allclose(value, 4 * np.sum(np.abs(Z) ** 2))
    np.testing.assert_allclose(by_state.psi, 8 * Z.conj())
    assert by_pair["a"][0].dtype == complex
    np.testing.assert_allclose(aux["psi"].psi, Z * (1 + 1j))
    np.testing.assert_allclose(aux["b"], 1j * U)


def test_nested_transformations():
    inner = ckad.grad(lambda z, k: np.sum(np.abs(z * k) ** 2))
    outer = ckad.grad(lambda z: np.sum(np.abs(inner(z, 2.0)) ** 2))
    np.testing.assert_allclose(outer(Z), 2 * 64 * Z.conj())


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda: ckad.grad(lambda z: z * 2)(1j), "complex value; a gradient needs a real scalar"),
        (lambda: ckad.grad(lambda z: z * 2)(Z), "complex value"),
        (lambda: ckad.grad(lambda z: (z.sum(), z), has_aux=True)(Z), "complex value"),
        (lambda: ckad.jacobian(lambda z: z * 2)(Z), "argument 0 is complex"),
        (lambda: ckad.jacobian(lambda u: u * 2j)(U), "the result is complex"),
        (lambda: ckad.hessian(lambda z: np.sum(np.abs(z)))(Z), "argument 0 is complex"),
        (lambda: ckad.jvp(lambda z: z, (1j,), (1.0,)), "complex array"),
    ],
)
def test_named_errors(f, message):
    with pytest.raises(DifferentiationError, match=message):
        f()


def test_a_recording_is_used_again():
    gradient = ckad.grad(lambda z: np.sum(np.abs(z * 1j) ** 2))
    np.testing.assert_allclose(gradient(Z), 2 * Z.conj())
    np.testing.assert_allclose(gradient(W), 2 * W.conj())
    np.testing.assert_allclose(gradient(Z.astype(np.complex64)), 2 * Z.conj(), rtol=1e-6)
    np.testing.assert_allclose(gradient(U), 2 * U)


# --- loops -------------------------------------------------------------------------------------


def test_explicit_loops_and_branches():
    def f(z):
        def body(i, carry):
            z, s = carry
            z = z.copy()
            z[i % 3] *= 1j
            z = np.where(np.abs(z) < 2, z * z * 0.3 + 0.1j, z)
            return z, s + z[i % 3, 0]

        z, s = ckad.fori_loop(0, 6, body, (z, 0j))
        c, ys = ckad.scan(lambda c, x: (c * x + 1j, c), s, z[:, 0])
        return ckad.cond(np.abs(c) > 0.1, lambda c, y: (c * y).sum(), lambda c, y: c, c, ys)

    def plain(z):
        s = 0j
        for i in range(6):
            z = z.copy()
            z[i % 3] *= 1j
            z = np.where(np.abs(z) < 2, z * z * 0.3 + 0.1j, z)
            s = s + z[i % 3, 0]
        c, ys = s, []
        for x in z[:, 0]:
            ys.append(c)
            c = c * x + 1j
        return (c * np.array(ys)).sum() if np.abs(c) > 0.1 else c

    for engine in ("vm", "native"):
        np.testing.assert_allclose(ckad.jit(f, engine=engine)(Z), plain(Z), rtol=1e-12)
        gradient = ckad.grad(lambda z: np.abs(f(z)) ** 2, engine=engine)(Z)
        slope = differences(lambda z: np.abs(plain(z)) ** 2, Z)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-8)


def test_a_carry_that_becomes_complex_is_named():
    with pytest.raises(CarryError, match="array and the body returns complex array"):
        ckad.jit(lambda u: ckad.fori_loop(0, 3, lambda i, u: u * 1j, u))(U)


# --- programs ----------------------------------------------------------------------------------


def escape(c, steps):
    z = np.zeros(c.shape, dtype=complex)
    count = np.zeros(c.shape)
    for _ in range(steps):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        count += inside
    return np.sum(np.log1p(np.abs(z)) / (1 + count))


def escape_where(c, steps):
    z = np.zeros_like(c)
    for _ in range(steps):
        z = np.where(np.abs(z) < 2, z * z + c, z)
    return np.sum(np.log1p(np.abs(z)))


def escape_of_one(c, steps):
    z = 0j
    for _ in range(steps):
        z = z * z + c.sum() / 7
        if abs(z) > 2:
            break
    return abs(z) + z.imag


def split_step(psi, potential, wave_numbers, steps, dt=0.05):
    """The Schroedinger equation, half a step in the potential and a whole one in momentum."""
    half = np.exp(-0.5j * dt * potential)
    kinetic = np.exp(-0.5j * dt * wave_numbers**2)
    psi = psi.copy()
    for _ in range(steps):
        psi *= half
        psi = np.fft.ifft(kinetic * np.fft.fft(psi))
        psi *= half
    return np.sum(np.abs(psi[: len(psi) // 3]) ** 2)


def leapfrog(psi, potential, steps, dt=0.01):
    """Three levels in buffers that take turns; boundaries stay zero."""
    old, now, new = psi.copy(), psi * np.exp(-1j * dt * potential), np.zeros_like(psi)
    for _ in range(steps):
        curvature = now[2:] - 2 * now[1:-1] + now[:-2]
        new[1:-1] = old[1:-1] + 2j * dt * (curvature - potential[1:-1] * now[1:-1])
        old, now, new = now, new, old
    return np.sum(np.abs(now) ** 2 * np.arange(len(psi)))


def jacobi(source, steps):
    """Helmholtz's equation with damping, relaxed in place."""
    u = np.zeros(len(source), dtype=complex)
    for _ in range(steps):
        for i in range(1, len(source) - 1):
            u[i] = (u[i - 1] + u[i + 1] + source[i]) / (2 + 0.3j)
    return np.linalg.norm(u)


def rotations(z, steps):
    total = 0.0
    for k in range(steps):
        total += np.exp(1j * k * z.real) @ z
    return total.real + total.imag**2


def triangular(b, a):
    """Forward substitution; slices whose length depends on the index."""
    x = np.zeros(len(b), dtype=complex)
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return np.sum(np.abs(x) ** 2)


def windows(z):
    s = 0j
    for k in range(1, 12):
        s += z[:k].sum() * z[k - 1] + np.abs(z[k:]).sum()
        z[:k] *= 0.9j
        z[:k] += z[11 - k]
    return s.real * s.imag


def masks(z):
    for _ in range(12):
        right = z.real > 0
        chosen = z[right]
        z[right] = chosen * 0.5j + 0.1
        z[~right] += np.exp(1j * z[~right].real) * 0.1
    return np.sum(np.abs(z[z.imag > 0]) ** 2)


def pairs(z):
    n = len(z)
    out = np.zeros((n, n), dtype=np.complex128)
    for i in range(n):
        for j in range(n):
            if i != j:
                out[i, j] = 1 / (z[i] - z[j]) + z[i].conjugate()
            else:
                out[i, j] = 2j
    return np.abs(out).sum()


def numbers(z):
    """Python's numbers that become complex, and a condition on them."""
    p, t, s = 1, 0, 0.0
    for i in range(12):
        p = p * z[i]
        s = s * 0.5 + z[i].real * np.exp(1j * z[i].imag)
        t += p.real / (i + 1)
    while abs(p) > 1e-3:
        p = p / 2
        t = t + p.imag
    return t + abs(s)


N = 24
X = np.linspace(-4, 4, N, endpoint=False)
PSI = np.exp(-(X**2) + 2j * X)
K = 2 * np.pi * np.fft.fftfreq(N, X[1] - X[0])
C = np.array([0.3 + 0.6j, -1.2 + 0.1j, 0.1j, 0.4 - 0.3j, -0.5 + 0.9j, 1 + 1j])
Z12 = np.random.default_rng(3).normal(size=(14, 24)) @ np.kron(np.eye(12), [[1], [1j]])
PROGRAMS = {
    "escape": (escape, (C, 12)),
    "escape where": (escape_where, (C, 12)),
    "escape of one": (escape_of_one, (C, 20)),
    "split step": (split_step, (PSI, 0.5 * X**2, K, 12)),
    "leapfrog": (leapfrog, (PSI, 0.5 * X**2, 9)),
    "jacobi": (jacobi, (C, 8)),
    "rotations": (rotations, (C, 7)),
    "triangular": (triangular, (Z12[0], Z12[2:] + 5 * np.eye(12))),
    "windows": (windows, (Z12[0],)),
    "masks": (masks, (Z12[0],)),
    "pairs": (pairs, (Z12[1],)),
    "numbers": (numbers, (Z12[1],)),
}


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, engine):
    f, args = PROGRAMS[name]
    value, gradient = ckad.value_and_grad(f, engine=engine)(*args)
    np.testing.assert_allclose(value, f(args[0].copy(), *args[1:]), rtol=1e-12)
    slope = differences(lambda z: f(z, *args[1:]), args[0])
    scale = np.max(np.abs(slope))
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-7 * scale)


@pytest.mark.parametrize("name", ["split step", "leapfrog"])
def test_programs_by_a_real_argument(name):
    f, (psi, potential, *rest) = PROGRAMS[name]
    gradient = ckad.grad(f, argnums=1, memory="1 MiB")(psi, potential, *rest)
    slope = differences(lambda v: f(psi, v, *rest), potential)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6 * np.max(np.abs(slope)))
    _, tangent = ckad.jvp(lambda v: f(psi, v, *rest), (potential,), (X,))
    np.testing.assert_allclose(tangent, gradient @ X, rtol=1e-10)


def test_a_loop_is_one_row():
    long, short = (len(ckad.trace(leapfrog)(PSI, X, n)) for n in (1000, 40))
    assert long == short


def test_the_complex_step():
    """The derivative without differences, of a program that is then differentiated itself."""

    def program(x):
        for _ in range(5):
            x = x * np.exp(-0.1 * x) + 0.1 * np.sin(x)
        return np.sum(x**2)

    def by_complex_step(x):
        step = 1e-100
        return program(x + 1j * step).imag / step

    x = np.array([0.5, 1.0, 2.0])
    _, tangent = ckad.jvp(program, (x,), (np.ones(3),))
    np.testing.assert_allclose(ckad.jit(by_complex_step)(x), tangent, rtol=1e-12)
    second = ckad.hvp(program, (x,), (np.ones(3),))
    np.testing.assert_allclose(ckad.grad(by_complex_step)(x), second, rtol=1e-10)


# --- memory with two names ----------------------------------------------------------------------


def part_of_the_first(z, n):
    z = z.copy()
    imag = z.imag
    for _ in range(n):
        z = z * 1j
        imag += 0.1
    return np.sum(np.abs(z) ** 2) + np.sum(imag**3)


def part_written_beside(z, n):
    z = z.copy()
    imag = z.imag
    for _ in range(n):
        z *= 0.5 + 1j
        imag[:] += 0.1 * z.real
    return np.sum(np.abs(z) ** 2) + np.sum(imag**3)


def swapped_parts(z, n):
    u, v = z.copy(), z * 2
    for _ in range(n):
        v.real[...] = u.imag * 0.3
        v.imag[1:] += u.real[:-1]
        u, v = v, u
    return np.sum(np.abs(u) ** 2) + np.sum(v.imag**3)


def swapped_beside_a_part(z, n):
    u, v = z.copy(), z * 2
    real = u.real
    for _ in range(n):
        v.real[...] = u.imag * 0.3
        v.imag[1:] += u.real[:-1]
        u, v = v, u
    return np.sum(np.abs(u) ** 2) + np.sum(real**3) + np.sum(v.imag)


def swapped_beside_a_name(z, n):
    u, v = z.copy(), np.zeros_like(z)
    shown = u
    for _ in range(n):
        v[:] = u * 1j
        u, v = v, u
    return np.sum(np.abs(shown + 2 * u) ** 2)


def turned(z, n):
    u = np.stack([z[:3], z[1:4], z[2:5]])
    for _ in range(n):
        t = u
        u = u.T
        u[0] *= 1j
        t[1] += 0.1
    return np.sum(np.abs(u) ** 3)


def branches(z, n):
    z = z.copy()
    for _ in range(n):
        if z[0].real > 0.2:
            z[0] *= 0.9j
            z.imag[1] = z.real[0]
        elif z[1].imag < 0:
            z = z + 0.1j
        else:
            z = -z
    return np.sum(np.abs(z) ** 3)


ALIASED = [
    *(part_of_the_first, part_written_beside, swapped_parts, swapped_beside_a_part),
    *(swapped_beside_a_name, turned, branches),
]


@pytest.mark.parametrize("steps", [1, 2, 12, 13])
@pytest.mark.parametrize("program", ALIASED)
def test_memory_with_two_names(program, steps):
    value, gradient = ckad.value_and_grad(program)(C, steps)
    np.testing.assert_allclose(value, program(C, steps), rtol=1e-12)
    slope = differences(lambda z: program(z, steps), C)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6 * np.max(np.abs(slope)))
