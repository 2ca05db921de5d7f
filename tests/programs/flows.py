"""Fluids on grids: cavity and channel, advection with limiters, Burgers."""

import numpy as np

from .numerics import minmod


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1
        / dt
        * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )


def pressure_poisson(nit, p, dx, dy, b):
    pn = np.empty_like(p)
    pn = p.copy()
    for _q in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]

        p[:, -1] = p[:, -2]  # dp/dx = 0 at x = 2
        p[0, :] = p[1, :]  # dp/dy = 0 at y = 0
        p[:, 0] = p[:, 1]  # dp/dx = 0 at x = 0
        p[-1, :] = 0  # p = 0 at y = 2


def momentum(u, v, un, vn, p, dt, dx, dy, rho, nu):
    u[1:-1, 1:-1] = (
        un[1:-1, 1:-1]
        - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
        - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
        - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
        + nu
        * (
            dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
        )
    )
    v[1:-1, 1:-1] = (
        vn[1:-1, 1:-1]
        - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
        - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
        - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
        + nu
        * (
            dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
            + dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])
        )
    )


def cavity_flow(u, v, p, rho, nu, nt=5, nit=6, dt=0.01):
    ny, nx = u.shape
    dx = 2 / (nx - 1)
    dy = 2 / (ny - 1)
    un = np.empty_like(u)
    vn = np.empty_like(v)
    b = np.zeros((ny, nx))
    for _n in range(nt):
        un = u.copy()
        vn = v.copy()
        build_up_b(b, rho, dt, u, v, dx, dy)
        pressure_poisson(nit, p, dx, dy, b)
        momentum(u, v, un, vn, p, dt, dx, dy, rho, nu)
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1  # the lid
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


def cavity_until_converged(lid, nu, n=6, nt=3, dt=0.01, rho=1.0):
    """As `cavity_flow`, but the pressure is iterated until it no longer changes."""
    dx = dy = 2 / (n - 1)
    u = np.zeros((n, n))
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    b = np.zeros((n, n))

    def solve_pressure(p, b):
        change = 1.0
        while change > 1e-11:
            pn = p.copy()
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
            ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
            change = np.sqrt(np.sum((p - pn) ** 2))
        return p

    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        build_up_b(b, rho, dt, u, v, dx, dy)
        p = solve_pressure(p, b)
        momentum(u, v, un, vn, p, dt, dx, dy, rho, nu)
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = lid
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p


def channel_flow(u, force, nu, tolerance=1e-3, dt=0.05):
    """Periodic in x, driven by a body force until the mean speed hardly changes."""
    ny = u.shape[0]
    dy = 2.0 / (ny - 1)
    udiff = 1.0
    stepcount = 0
    while udiff > tolerance:
        un = u.copy()
        u[1:-1, :] = (
            un[1:-1, :]
            - dt * 0.1 * un[1:-1, :] * (un[1:-1, :] - np.roll(un, 1, axis=1)[1:-1, :])
            + nu * dt / dy**2 * (un[2:, :] - 2 * un[1:-1, :] + un[:-2, :])
            + force * dt
        )
        u[0, :] = 0
        u[-1, :] = 0
        udiff = (np.sum(u) - np.sum(un)) / np.sum(u)
        stepcount += 1
    return u, stepcount


def advection_minmod(q, courant=0.4, steps=6):
    n = len(q)
    for _ in range(steps):
        slope = np.zeros(n)
        for i in range(n):
            slope[i] = minmod(q[i] - q[i - 1], q[(i + 1) % n] - q[i])
        flux = np.zeros(n)
        for i in range(n):
            flux[i] = courant * (q[i] + 0.5 * (1 - courant) * slope[i])
        for i in range(n):
            q[i] = q[i] - (flux[i] - flux[i - 1])
    return q


def advection_superbee(q, courant=0.4, steps=6):
    for _ in range(steps):
        jump = q - np.roll(q, 1)
        ratio = np.roll(jump, 1) / np.where(np.abs(jump) > 1e-12, jump, 1e-12)
        phi = np.maximum(0, np.maximum(np.minimum(2 * ratio, 1), np.minimum(ratio, 2)))
        flux = courant * np.roll(q, 1) + 0.5 * courant * (1 - courant) * phi * jump
        q = q - (np.roll(flux, -1) - flux)
    return q


def advection_limited_ifs(q, velocity, dt=0.3, steps=4):
    """Upwind by the sign of the velocity, superbee by branches."""
    n = q.shape[0]
    for _ in range(steps):
        flux = np.zeros(n + 1)
        for i in range(2, n - 1):
            delta = q[i] - q[i - 1]
            if velocity[i] >= 0:
                upwind, behind = q[i - 1], q[i - 1] - q[i - 2]
            else:
                upwind, behind = q[i], q[i + 1] - q[i]
            r = behind / delta if abs(delta) > 1e-10 else 0.0
            if r <= 0:
                phi = 0.0
            elif r <= 0.5:
                phi = 2 * r
            elif r <= 1:
                phi = 1.0
            elif 1 < r < 2:
                phi = r
            else:
                phi = 2.0
            speed = abs(velocity[i])
            flux[i] = velocity[i] * upwind + 0.5 * speed * (1 - speed * dt) * phi * delta
        q = q - dt * (flux[1:] - flux[:-1])
    return q


def burgers_1d(u, nu, dx=0.1, dt=0.01, nt=10):
    nx = u.size
    for _n in range(nt):
        un = u.copy()
        for i in range(1, nx - 1):
            u[i] = (
                un[i]
                - un[i] * dt / dx * (un[i] - un[i - 1])
                + nu * dt / dx**2 * (un[i + 1] - 2 * un[i] + un[i - 1])
            )
        u[0] = (
            un[0]
            - un[0] * dt / dx * (un[0] - un[-2])
            + nu * dt / dx**2 * (un[1] - 2 * un[0] + un[-2])
        )
        u[-1] = u[0]
    return u


def burgers_2d(u, v, nu, dx=0.2, dy=0.2, dt=0.01, nt=5):
    for _n in range(nt + 1):
        un = u.copy()
        vn = v.copy()
        momentum(u, v, un, vn, np.zeros_like(u), dt, dx, dy, 1.0, nu)
        u[0, :] = 1
        u[-1, :] = 1
        u[:, 0] = 1
        u[:, -1] = 1
        v[0, :] = v[-1, :] = 1
        v[:, 0] = v[:, -1] = 1
    return u, v


def lax_wendroff(u, a, dt=0.4, steps=8):
    n = u.size
    un = np.empty(n)
    for _ in range(steps):
        for i in range(n):
            ip = i + 1 if i < n - 1 else 0
            im = i - 1 if i > 0 else n - 1
            un[i] = (
                u[i]
                - 0.5 * a * dt * (u[ip] - u[im])
                + 0.5 * (a * dt) ** 2 * (u[ip] - 2 * u[i] + u[im])
            )
        u[:] = un
    return u


def poisson_2d(b, nit=15, dx=0.25, dy=0.2):
    p = np.zeros_like(b)
    for _ in range(nit):
        pd = p.copy()
        p[1:-1, 1:-1] = (
            (pd[1:-1, 2:] + pd[1:-1, :-2]) * dy**2
            + (pd[2:, 1:-1] + pd[:-2, 1:-1]) * dx**2
            - b[1:-1, 1:-1] * dx**2 * dy**2
        ) / (2 * (dx**2 + dy**2))
        p[0, :] = 0
        p[-1, :] = 0
        p[:, 0] = 0
        p[:, -1] = p[:, -2]
    return p


def laplace_until(top, tolerance=1e-9):
    """A square with one warm side; the relative change decides when it is done."""
    p = np.zeros((5, top.size))
    p[-1, :] = top
    norm = 1.0
    while norm > tolerance:
        pn = np.copy(p)
        p[1:-1, 1:-1] = 0.25 * (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1])
        norm = np.sum(np.abs(p[:]) - np.abs(pn[:])) / np.sum(np.abs(pn[:]))
    return p


def godunov_traffic(rho, dt=0.4, steps=6):
    """Lighthill–Whitham: demand and supply at every edge."""

    def flow(r):
        return r * (1.0 - r)

    for _ in range(steps):
        demand = np.where(rho < 0.5, flow(rho), 0.25)
        supply = np.where(rho > 0.5, flow(rho), 0.25)
        edge = np.minimum(demand[:-1], supply[1:])
        rho[1:-1] -= dt * (edge[1:] - edge[:-1])
    return rho
