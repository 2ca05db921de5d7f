"""Jacobi, heat, Gauss–Seidel, FDTD, ADI and weather stencils."""

import numba
import numpy as np
from numba import njit, prange

from .numerics import laplacian


def jacobi_1d(A, B, TSTEPS=9):
    for _t in range(1, TSTEPS):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def jacobi_1d_loops(u, steps=6):
    n = u.shape[0]
    new = np.empty(n)
    for _ in range(steps):
        new[0] = u[0]
        new[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            new[i] = (u[i - 1] + u[i] + u[i + 1]) / 3.0
        u, new = new.copy(), u
    return u


def jacobi_2d(A, B, TSTEPS=6):
    for _t in range(1, TSTEPS):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


def jacobi_2d_loops(A, B, tsteps=4):
    n = A.shape[0]
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, 1 + j] + A[1 + i, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, 1 + j] + B[1 + i, j] + B[i - 1, j])


@numba.njit
def jacobi_2d_numba(u, f, steps=5):
    n, m = u.shape
    old = u.copy()
    new = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = old[i, j] + 0.25 * (laplacian(old, i, j) - f[i, j])
        old, new = new, old
    return old


def jacobi_3d(u, steps=4):
    for _ in range(steps):
        u[1:-1, 1:-1, 1:-1] = (
            u[2:, 1:-1, 1:-1]
            + u[:-2, 1:-1, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:]
            + u[1:-1, 1:-1, :-2]
        ) / 6
    return u


def heat_1d(u0, kappa, steps=30):
    u = u0.copy()
    for _ in range(steps):
        u[1:-1] += kappa[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def heat_3d(A, B, TSTEPS=4):
    for _t in range(1, TSTEPS):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, 0:-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, 0:-2])
            + B[1:-1, 1:-1, 1:-1]
        )


def heat_3d_loops(u, kappa, steps=3):
    nx, ny, nz = u.shape
    for _ in range(steps):
        un = u.copy()
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                for k in range(1, nz - 1):
                    u[i, j, k] = un[i, j, k] + kappa * (
                        un[i + 1, j, k]
                        + un[i - 1, j, k]
                        + un[i, j + 1, k]
                        + un[i, j - 1, k]
                        + un[i, j, k + 1]
                        + un[i, j, k - 1]
                        - 6 * un[i, j, k]
                    )
    return u


def seidel_2d(A, TSTEPS=3):
    N = A.shape[0]
    for _t in range(TSTEPS):
        for i in range(1, N - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2]
                + A[i - 1, 1:-1]
                + A[i - 1, 2:]
                + A[i, 2:]
                + A[i + 1, :-2]
                + A[i + 1, 1:-1]
                + A[i + 1, 2:]
            )
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


def seidel_2d_loops(A, tsteps=3):
    n = A.shape[0]
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0
    return A


def fdtd_2d(ex, ey, hz, _fict_):
    for t in range(_fict_.shape[0]):
        ey[0, :] = _fict_[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def fdtd_2d_loops(ex, ey, hz, fict, tmax=3):
    nx, ny = ex.shape
    for t in range(tmax):
        for j in range(ny):
            ey[0, j] = fict[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def adi(u, steps=3):
    """Alternating directions: implicit along columns, then along rows, by transposed views."""
    n = u.shape[0]
    v = np.empty_like(u)
    p = np.empty_like(u)
    q = np.empty_like(u)

    def sweep(source, target, ahead, across):
        target[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = target[0, 1:-1]
        for j in range(1, n - 1):
            pivot = 1.0 - 2.0 * ahead + ahead * p[1:-1, j - 1]
            right = (1.0 + 2.0 * across) * source[j, 1:-1]
            right -= across * (source[j, :-2] + source[j, 2:])
            p[1:-1, j] = -ahead / pivot
            q[1:-1, j] = (right - ahead * q[1:-1, j - 1]) / pivot
        target[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            target[j, 1:-1] = p[1:-1, j] * target[j + 1, 1:-1] + q[1:-1, j]

    for _ in range(steps):
        sweep(u, v, -n * n / steps, -0.5 * n * n / steps)
        sweep(v.T, u.T, -0.5 * n * n / steps, -n * n / steps)


def sor_red_black(u, f, omega=1.5, sweeps=4):
    for _ in range(sweeps):
        for i0, j0 in ((1, 1), (2, 2), (1, 2), (2, 1)):
            centre = u[i0:-1:2, j0:-1:2]
            north = u[i0 - 1 : -2 : 2, j0:-1:2]
            south = u[i0 + 1 :: 2, j0:-1:2]
            west = u[i0:-1:2, j0 - 1 : -2 : 2]
            east = u[i0:-1:2, j0 + 1 :: 2]
            centre += omega * (0.25 * (north + south + west + east - f[i0:-1:2, j0:-1:2]) - centre)
    return u


def sor_red_black_loops(u, f, omega=1.3, sweeps=3):
    n, m = u.shape
    for _ in range(sweeps):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    residual = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
                    u[i, j] += omega * 0.25 * (residual - f[i, j])
    return u


def horizontal_diffusion(field, out, coefficient):
    """Of the fourth order; a flux that goes up the gradient is cut off."""
    lap = 4.0 * field[1:-1, 1:-1] - (
        field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2]
    )
    flux_x = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux_x = np.where(flux_x * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, flux_x)
    flux_y = lap[1:-1, 1:] - lap[1:-1, :-1]
    flux_y = np.where(flux_y * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, flux_y)
    divergence = flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1]
    out[...] = field[2:-2, 2:-2] - coefficient * divergence


def vertical_advection(tendency, wind, vertical, position, rate=0.15):
    """Implicit in the vertical: a tridiagonal system per column, swept up, then down."""
    nx, ny, nz = tendency.shape
    upper = np.ndarray((nx, ny, nz), dtype=tendency.dtype)
    right = np.ndarray((nx, ny, nz), dtype=tendency.dtype)
    last = np.ndarray((nx, ny), dtype=tendency.dtype)
    for k in range(nz):
        below = above = np.zeros((nx, ny))
        right[:, :, k] = rate * position[:, :, k] + tendency[:, :, k]
        if k > 0:
            below = -0.125 * (vertical[1:, :, k] + vertical[:-1, :, k])
            right[:, :, k] -= below * (wind[:, :, k - 1] - wind[:, :, k])
        if k < nz - 1:
            above = 0.125 * (vertical[1:, :, k + 1] + vertical[:-1, :, k + 1])
            right[:, :, k] -= above * (wind[:, :, k + 1] - wind[:, :, k])
        pivot = rate - below - above
        if k > 0:
            pivot = pivot - upper[:, :, k - 1] * below
            right[:, :, k] -= right[:, :, k - 1] * below
        upper[:, :, k] = above / pivot
        right[:, :, k] /= pivot
    last[:] = right[:, :, nz - 1]
    tendency[:, :, nz - 1] = rate * (last - position[:, :, nz - 1])
    for k in range(nz - 2, -1, -1):
        last[:] = right[:, :, k] - upper[:, :, k] * last
        tendency[:, :, k] = rate * (last - position[:, :, k])


def smooth_life(cells, steps=4):
    for _ in range(steps):
        neighbours = np.zeros(cells.shape)
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx == 0 and dy == 0:
                    continue
                neighbours += np.roll(cells, (dx, dy), axis=(0, 1))
        birth = 1 / (1 + np.exp(-(neighbours - 3.0)))
        death = 1 / (1 + np.exp(-(neighbours - 6.0)))
        cells = birth * (1 - death) * (0.5 + 0.5 * cells)
    return cells


@njit(nogil=True, error_model="numpy")
def heat_2d_numba(u, kappa, steps=4):
    n, m = u.shape
    total = 0.0
    for _ in range(steps):
        new = np.zeros_like(u)
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = u[i, j] + kappa[i, j] * laplacian(u, i, j)
        u = new
        total += u.sum()
    return u, total


def moving_source(u, speed, power, dt=0.1, steps=15):
    x = np.linspace(0.0, 1.0, u.size)
    for n in range(steps):
        centre = 0.1 + speed * n * dt
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2]) + dt * power * np.exp(
            -50 * (x[1:-1] - centre) ** 2
        )
        u[0] = u[1]
        u[-1] = u[-2]
    return u


def gray_scott(U, V, F=0.035, k=0.06, steps=6):
    def lap(Z):
        return (
            np.roll(Z, 1, axis=0)
            + np.roll(Z, -1, axis=0)
            + np.roll(Z, 1, axis=1)
            + np.roll(Z, -1, axis=1)
            - 4 * Z
        )

    for _ in range(steps):
        uvv = U * V * V
        U += 0.16 * lap(U) - uvv + F * (1 - U)
        V += 0.08 * lap(V) + uvv - (F + k) * V
    return U, V


def shift_register(u, inflow):
    seen = np.zeros(inflow.shape)
    for t in range(inflow.shape[0]):
        seen[t] = u[-1]
        u[1:] = u[:-1]
        u[0] = inflow[t] + 0.5 * u[-1]
    return u, seen


def anisotropic_diffusion(image, kappa=0.3, steps=4):
    for _ in range(steps):
        padded = np.pad(image, 1, mode="edge")
        total = np.zeros_like(image)
        for di, dj in [(-1, 0), (1, 0), (0, -1), (0, 1)]:
            n, m = image.shape
            difference = padded[1 + di : 1 + di + n, 1 + dj : 1 + dj + m] - image
            total += difference * np.exp(-((difference / kappa) ** 2))
        image = image + 0.2 * total
    return image
