"""Flows, as lecture codes and notebooks solve them: cavities, shocks, gas, cylinders."""

import matplotlib.pyplot as plt
import numpy as np

from .program import Wild


# A cavity whose lid moves ------------------------------------------------------------------------
def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1
        / dt
        * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )
    return b


def pressure_poisson(p, dx, dy, b, nit):
    pn = np.empty_like(p)
    pn = p.copy()
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


def cavity(lid, nu, n, nt):
    """The script of a notebook: what was at the level of the module is in the function."""
    nx = ny = n
    nit = 20
    dx, dy = 2 / (nx - 1), 2 / (ny - 1)
    rho, dt = 1, 0.001
    u = np.zeros((ny, nx))
    v = np.zeros((ny, nx))
    p = np.zeros((ny, nx))
    b = np.zeros((ny, nx))
    un = np.empty_like(u)
    vn = np.empty_like(v)
    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        b = build_up_b(b, rho, dt, u, v, dx, dy)
        p = pressure_poisson(p, dx, dy, b, nit)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = lid  # the lid
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0
    return np.sum(u**2 + v**2) + p[1, 1]


def convection_by_elements(c, speed, nx, nt):
    """Step 5 of twelve, before the lesson on array operations."""
    ny = nx
    dx = dy = 2 / (nx - 1)
    dt = 0.2 * dx
    u = np.ones((ny, nx))
    un = np.ones((ny, nx))
    u[int(0.5 / dy) : int(1 / dy + 1), int(0.5 / dx) : int(1 / dx + 1)] = speed
    for n in range(nt + 1):
        un = u.copy()
        row, col = u.shape
        for j in range(1, row):
            for i in range(1, col):
                u[j, i] = (
                    un[j, i]
                    - (c * dt / dx * (un[j, i] - un[j, i - 1]))
                    - (c * dt / dy * (un[j, i] - un[j - 1, i]))
                )
                u[0, :] = 1
                u[-1, :] = 1
                u[:, 0] = 1
                u[:, -1] = 1
    return np.sum(u**2)


# Burgers' equation by Godunov's method -----------------------------------------------------------
class Grid1d:
    def __init__(self, nx, ng, xmin=0.0, xmax=1.0, bc="outflow"):
        self.nx, self.ng, self.bc = nx, ng, bc
        self.ilo = ng
        self.ihi = ng + nx - 1
        self.dx = (xmax - xmin) / nx
        self.x = xmin + (np.arange(nx + 2 * ng) - ng + 0.5) * self.dx
        self.u = np.zeros((nx + 2 * ng), dtype=np.float64)

    def scratch_array(self):
        return np.zeros((self.nx + 2 * self.ng), dtype=np.float64)

    def fill_BCs(self):
        if self.bc == "periodic":
            self.u[0 : self.ilo] = self.u[self.ihi - self.ng + 1 : self.ihi + 1]
            self.u[self.ihi + 1 :] = self.u[self.ilo : self.ilo + self.ng]
        elif self.bc == "outflow":
            self.u[0 : self.ilo] = self.u[self.ilo]
            self.u[self.ihi + 1 :] = self.u[self.ihi]
        else:
            raise NotImplementedError("invalid BC")


class Simulation:
    def __init__(self, grid):
        self.grid = grid
        self.t = 0.0

    def timestep(self, C):
        return C * self.grid.dx / max(abs(self.grid.u[self.grid.ilo : self.grid.ihi + 1]))

    def states(self, dt):
        g = self.grid
        ib, ie = g.ilo - 1, g.ihi + 1
        u = g.u
        dc = g.scratch_array()
        dl = g.scratch_array()
        dr = g.scratch_array()
        dc[ib : ie + 1] = 0.5 * (u[ib + 1 : ie + 2] - u[ib - 1 : ie])
        dl[ib : ie + 1] = u[ib + 1 : ie + 2] - u[ib : ie + 1]
        dr[ib : ie + 1] = u[ib : ie + 1] - u[ib - 1 : ie]
        # the minmod limiter
        d1 = 2.0 * np.where(np.fabs(dl) < np.fabs(dr), dl, dr)
        d2 = np.where(np.fabs(dc) < np.fabs(d1), dc, d1)
        ldeltau = np.where(dl * dr > 0.0, d2, 0.0)
        ul = g.scratch_array()
        ur = g.scratch_array()
        ur[ib : ie + 2] = (
            u[ib : ie + 2] - 0.5 * (1.0 + u[ib : ie + 2] * dt / g.dx) * ldeltau[ib : ie + 2]
        )
        ul[ib + 1 : ie + 2] = (
            u[ib : ie + 1] + 0.5 * (1.0 - u[ib : ie + 1] * dt / g.dx) * ldeltau[ib : ie + 1]
        )
        return ul, ur

    def riemann(self, ul, ur):
        S = 0.5 * (ul + ur)
        ushock = np.where(S > 0.0, ul, ur)
        ushock = np.where(S == 0.0, 0.0, ushock)
        urare = np.where(ur <= 0.0, ur, 0.0)
        urare = np.where(ul >= 0.0, ul, urare)
        us = np.where(ul > ur, ushock, urare)
        return 0.5 * us * us

    def update(self, dt, flux):
        g = self.grid
        unew = g.scratch_array()
        unew[g.ilo : g.ihi + 1] = g.u[g.ilo : g.ihi + 1] + dt / g.dx * (
            flux[g.ilo : g.ihi + 1] - flux[g.ilo + 1 : g.ihi + 2]
        )
        return unew

    def evolve(self, C, tmax):
        self.t = 0.0
        g = self.grid
        while self.t < tmax:
            g.fill_BCs()
            dt = self.timestep(C)
            if self.t + dt > tmax:
                dt = tmax - self.t
            ul, ur = self.states(dt)
            flux = self.riemann(ul, ur)
            unew = self.update(dt, flux)
            self.grid.u[:] = unew[:]
            self.t += dt


def burgers_riemann(amplitude, nx, percent):
    g = Grid1d(nx, 2, bc="periodic")
    s = Simulation(g)
    index = np.logical_and(g.x >= 0.333, g.x <= 0.666)
    g.u[:] = 1.0
    g.u[index] += amplitude * np.sin(2.0 * np.pi * (g.x[index] - 0.333) / 0.333)
    s.evolve(0.8, percent / 100)
    return np.sum(g.u[g.ilo : g.ihi + 1] ** 2) * g.dx


# Compressible gas in a periodic box --------------------------------------------------------------
def getConserved(rho, vx, vy, P, gamma, vol):
    return (
        rho * vol,
        rho * vx * vol,
        rho * vy * vol,
        (P / (gamma - 1) + 0.5 * rho * (vx**2 + vy**2)) * vol,
    )


def getPrimitive(Mass, Momx, Momy, Energy, gamma, vol):
    rho = Mass / vol
    vx = Momx / rho / vol
    vy = Momy / rho / vol
    P = (Energy / vol - 0.5 * rho * (vx**2 + vy**2)) * (gamma - 1)
    return rho, vx, vy, P


def getGradient(f, dx):
    R, L = -1, 1  # directions of np.roll
    return (
        (np.roll(f, R, axis=0) - np.roll(f, L, axis=0)) / (2 * dx),
        (np.roll(f, R, axis=1) - np.roll(f, L, axis=1)) / (2 * dx),
    )


def getFlux(rho_L, rho_R, vx_L, vx_R, vy_L, vy_R, P_L, P_R, gamma):
    en_L = P_L / (gamma - 1) + 0.5 * rho_L * (vx_L**2 + vy_L**2)
    en_R = P_R / (gamma - 1) + 0.5 * rho_R * (vx_R**2 + vy_R**2)
    rho_star = 0.5 * (rho_L + rho_R)
    momx_star = 0.5 * (rho_L * vx_L + rho_R * vx_R)
    momy_star = 0.5 * (rho_L * vy_L + rho_R * vy_R)
    en_star = 0.5 * (en_L + en_R)
    P_star = (gamma - 1) * (en_star - 0.5 * (momx_star**2 + momy_star**2) / rho_star)
    flux_Mass = momx_star
    flux_Momx = momx_star**2 / rho_star + P_star
    flux_Momy = momx_star * momy_star / rho_star
    flux_Energy = (en_star + P_star) * momx_star / rho_star
    C = np.maximum(
        np.sqrt(gamma * P_L / rho_L) + np.abs(vx_L), np.sqrt(gamma * P_R / rho_R) + np.abs(vx_R)
    )
    flux_Mass -= C * 0.5 * (rho_L - rho_R)
    flux_Momx -= C * 0.5 * (rho_L * vx_L - rho_R * vx_R)
    flux_Momy -= C * 0.5 * (rho_L * vy_L - rho_R * vy_R)
    flux_Energy -= C * 0.5 * (en_L - en_R)
    return flux_Mass, flux_Momx, flux_Momy, flux_Energy


def applyFluxes(F, flux_F_X, flux_F_Y, dx, dt):
    F += -dt * dx * flux_F_X
    F += dt * dx * np.roll(flux_F_X, 1, axis=0)
    F += -dt * dx * flux_F_Y
    F += dt * dx * np.roll(flux_F_Y, 1, axis=1)
    return F


def kelvin_helmholtz(w0, sigma, N, thousandths):
    boxsize, gamma, courant_fac = 1.0, 5 / 3, 0.4
    t, tEnd, tOut = 0, thousandths / 1000, 0.02
    plotRealTime = False
    dx = boxsize / N
    vol = dx**2
    xlin = np.linspace(0.5 * dx, boxsize - 0.5 * dx, N)
    Y, X = np.meshgrid(xlin, xlin)
    rho = 1.0 + (np.abs(Y - 0.5) < 0.25)
    vx = -0.5 + (np.abs(Y - 0.5) < 0.25)
    vy = (
        w0
        * np.sin(4 * np.pi * X)
        * (
            np.exp(-((Y - 0.25) ** 2) / (2 * sigma**2))
            + np.exp(-((Y - 0.75) ** 2) / (2 * sigma**2))
        )
    )
    P = 2.5 * np.ones(X.shape)
    Mass, Momx, Momy, Energy = getConserved(rho, vx, vy, P, gamma, vol)
    outputCount = 1
    while t < tEnd:
        rho, vx, vy, P = getPrimitive(Mass, Momx, Momy, Energy, gamma, vol)
        dt = courant_fac * np.min(dx / (np.sqrt(gamma * P / rho) + np.sqrt(vx**2 + vy**2)))
        plotThisTurn = False
        if t + dt > outputCount * tOut:
            dt = outputCount * tOut - t
            plotThisTurn = True
        rho_dx, rho_dy = getGradient(rho, dx)
        vx_dx, vx_dy = getGradient(vx, dx)
        vy_dx, vy_dy = getGradient(vy, dx)
        P_dx, P_dy = getGradient(P, dx)
        rho_prime = rho - 0.5 * dt * (vx * rho_dx + rho * vx_dx + vy * rho_dy + rho * vy_dy)
        vx_prime = vx - 0.5 * dt * (vx * vx_dx + vy * vx_dy + (1 / rho) * P_dx)
        vy_prime = vy - 0.5 * dt * (vx * vy_dx + vy * vy_dy + (1 / rho) * P_dy)
        P_prime = P - 0.5 * dt * (gamma * P * (vx_dx + vy_dy) + vx * P_dx + vy * P_dy)
        faces = []
        for f, f_dx, f_dy in [
            (rho_prime, rho_dx, rho_dy),
            (vx_prime, vx_dx, vx_dy),
            (vy_prime, vy_dx, vy_dy),
            (P_prime, P_dx, P_dy),
        ]:
            f_XL = np.roll(f - f_dx * dx / 2, -1, axis=0)
            f_YL = np.roll(f - f_dy * dx / 2, -1, axis=1)
            faces.append((f_XL, f + f_dx * dx / 2, f_YL, f + f_dy * dx / 2))
        (r, u, v, p) = faces
        fluxX = getFlux(r[0], r[1], u[0], u[1], v[0], v[1], p[0], p[1], gamma)
        fluxY = getFlux(r[2], r[3], v[2], v[3], u[2], u[3], p[2], p[3], gamma)
        Mass = applyFluxes(Mass, fluxX[0], fluxY[0], dx, dt)
        Momx = applyFluxes(Momx, fluxX[1], fluxY[2], dx, dt)
        Momy = applyFluxes(Momy, fluxX[2], fluxY[1], dx, dt)
        Energy = applyFluxes(Energy, fluxX[3], fluxY[3], dx, dt)
        t += dt
        if (plotRealTime and plotThisTurn) or (t >= tEnd and plotRealTime):
            plt.cla()
            plt.imshow(rho.T)
            plt.clim(0.8, 2.2)
            plt.pause(0.001)
            outputCount += 1
        elif plotThisTurn:
            outputCount += 1
    return np.sum(rho**2 * vy**2) * vol


def lattice_boltzmann(strength, tau, Nx, Nt):
    """Flow past a cylinder; the cells within it by a mask."""
    Ny = Nx // 4
    rho0 = 100
    NL = 9
    idxs = np.arange(NL)
    cxs = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cys = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    F = np.ones((Ny, Nx, NL))
    np.random.seed(42)
    F += 0.01 * np.random.randn(Ny, Nx, NL)
    X, Y = np.meshgrid(range(Nx), range(Ny))
    F[:, :, 3] += strength * (1 + 0.2 * np.cos(2 * np.pi * X / Nx * 4))
    rho = np.sum(F, 2)
    for i in idxs:
        F[:, :, i] *= rho0 / rho
    cylinder = (X - Nx / 4) ** 2 + (Y - Ny / 2) ** 2 < (Ny / 4) ** 2
    for it in range(Nt):
        if it % 10 == 0:
            print(it)
        for i, cx, cy in zip(idxs, cxs, cys):
            F[:, :, i] = np.roll(F[:, :, i], cx, axis=1)
            F[:, :, i] = np.roll(F[:, :, i], cy, axis=0)
        bndryF = F[cylinder, :]
        bndryF = bndryF[:, [0, 5, 6, 7, 8, 1, 2, 3, 4]]
        rho = np.sum(F, 2)
        ux = np.sum(F * cxs, 2) / rho
        uy = np.sum(F * cys, 2) / rho
        Feq = np.zeros(F.shape)
        for i, cx, cy, w in zip(idxs, cxs, cys, weights):
            Feq[:, :, i] = (
                rho
                * w
                * (
                    1
                    + 3 * (cx * ux + cy * uy)
                    + 9 * (cx * ux + cy * uy) ** 2 / 2
                    - 3 * (ux**2 + uy**2) / 2
                )
            )
        F += -(1.0 / tau) * (F - Feq)
        F[cylinder, :] = bndryF
    ux[cylinder] = 0
    uy[cylinder] = 0
    vorticity = (np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0)) - (
        np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1)
    )
    vorticity[cylinder] = np.nan
    return np.nansum(vorticity**2)


FLUIDS = (
    Wild(cavity, lambda n, nt: (1.0, 0.1, n, nt), (9, 6), (41, 30)),
    Wild(convection_by_elements, lambda n, nt: (1.0, 2.0, n, nt), (8, 5), (21, 15)),
    Wild(burgers_riemann, lambda n, t: (0.5, n, t), (16, 10), (256, 20), step=1e-5),
    Wild(kelvin_helmholtz, lambda n, t: (0.1, 0.05, n, t), (8, 60), (64, 60), step=1e-5),
    Wild(lattice_boltzmann, lambda n, nt: (2.0, 0.6, n, nt), (24, 5), (100, 15)),
)
