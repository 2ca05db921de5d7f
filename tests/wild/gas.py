"""Stars, magnetised gas and advected profiles: particles, staggered fields, five-point weights."""

import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import gamma

from .program import Wild


# A star of smoothed particles --------------------------------------------------------------------
def W(x, y, z, h):
    r = np.sqrt(x**2 + y**2 + z**2)
    return (1.0 / (h * np.sqrt(np.pi))) ** 3 * np.exp(-(r**2) / h**2)


def gradW(x, y, z, h):
    r = np.sqrt(x**2 + y**2 + z**2)
    n = -2 * np.exp(-(r**2) / h**2) / h**5 / (np.pi) ** (3 / 2)
    return n * x, n * y, n * z


def getPairwiseSeparations(ri, rj):
    M, N = ri.shape[0], rj.shape[0]
    rix = ri[:, 0].reshape((M, 1))
    riy = ri[:, 1].reshape((M, 1))
    riz = ri[:, 2].reshape((M, 1))
    rjx = rj[:, 0].reshape((N, 1))
    rjy = rj[:, 1].reshape((N, 1))
    rjz = rj[:, 2].reshape((N, 1))
    return rix - rjx.T, riy - rjy.T, riz - rjz.T


def getDensity(r, pos, m, h):
    M = r.shape[0]
    dx, dy, dz = getPairwiseSeparations(r, pos)
    return np.sum(m * W(dx, dy, dz, h), 1).reshape((M, 1))


def getAcc(pos, vel, m, h, k, n, lmbda, nu):
    N = pos.shape[0]
    rho = getDensity(pos, pos, m, h)
    P = k * rho ** (1 + 1 / n)
    dx, dy, dz = getPairwiseSeparations(pos, pos)
    dWx, dWy, dWz = gradW(dx, dy, dz, h)
    ax = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * dWx, 1).reshape((N, 1))
    ay = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * dWy, 1).reshape((N, 1))
    az = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * dWz, 1).reshape((N, 1))
    a = np.hstack((ax, ay, az))
    a -= lmbda * pos
    a -= nu * vel
    return a


def star_of_particles(M, R, N, Nt):
    """The constant of the star's attraction comes from a gamma function."""
    t, dt = 0, 0.04
    h, k, n, nu = 0.1, 0.1, 1, 1
    np.random.seed(42)
    lmbda = (
        2
        * k
        * (1 + n)
        * np.pi ** (-3 / (2 * n))
        * (M * gamma(5 / 2 + n) / R**3 / gamma(1 + n)) ** (1 / n)
        / R**2
    )
    m = M / N
    pos = np.random.randn(N, 3)
    vel = np.zeros(pos.shape)
    acc = getAcc(pos, vel, m, h, k, n, lmbda, nu)
    for i in range(Nt):
        vel += acc * dt / 2
        pos += vel * dt
        acc = getAcc(pos, vel, m, h, k, n, lmbda, nu)
        vel += acc * dt / 2
        t += dt
        rho = getDensity(pos, pos, m, h)
    return np.mean(rho) + np.sum(pos**2)


# A vortex in magnetised gas ----------------------------------------------------------------------
def curl(Az, dx):
    bx = (Az - np.roll(Az, 1, axis=1)) / dx
    by = -(Az - np.roll(Az, 1, axis=0)) / dx
    return bx, by


def getBavg(bx, by):
    return 0.5 * (bx + np.roll(bx, 1, axis=0)), 0.5 * (by + np.roll(by, 1, axis=1))


def slope(f, dx):
    f_dx = (np.roll(f, -1, axis=0) - np.roll(f, 1, axis=0)) / (2 * dx)
    f_dy = (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / (2 * dx)
    return f_dx, f_dy


def extrapolateInSpaceToFace(f, f_dx, f_dy, dx):
    f_XL = f - f_dx * dx / 2
    f_XL = np.roll(f_XL, -1, axis=0)
    f_XR = f + f_dx * dx / 2
    f_YL = f - f_dy * dx / 2
    f_YL = np.roll(f_YL, -1, axis=1)
    f_YR = f + f_dy * dx / 2
    return f_XL, f_XR, f_YL, f_YR


def magneticFlux(rL, rR, vxL, vxR, vyL, vyR, PL, PR, BxL, BxR, ByL, ByR, gam):
    enL = (PL - 0.5 * (BxL**2 + ByL**2)) / (gam - 1) + 0.5 * rL * (vxL**2 + vyL**2)
    enL += 0.5 * (BxL**2 + ByL**2)
    enR = (PR - 0.5 * (BxR**2 + ByR**2)) / (gam - 1) + 0.5 * rR * (vxR**2 + vyR**2)
    enR += 0.5 * (BxR**2 + ByR**2)
    r, mx, my = 0.5 * (rL + rR), 0.5 * (rL * vxL + rR * vxR), 0.5 * (rL * vyL + rR * vyR)
    en, Bx, By = 0.5 * (enL + enR), 0.5 * (BxL + BxR), 0.5 * (ByL + ByR)
    P = (gam - 1) * (en - 0.5 * (mx**2 + my**2) / r - 0.5 * (Bx**2 + By**2))
    P += 0.5 * (Bx**2 + By**2)
    fMass = mx
    fMx = mx**2 / r + P - Bx * Bx
    fMy = mx * my / r - Bx * By
    fEn = (en + P) * mx / r - Bx * (Bx * mx + By * my) / r
    fBy = (By * mx - Bx * my) / r
    c0L, caL = np.sqrt(gam * np.abs(PL) / rL), np.sqrt((BxL**2 + ByL**2) / rL)
    c0R, caR = np.sqrt(gam * np.abs(PR) / rR), np.sqrt((BxR**2 + ByR**2) / rR)
    cL, cR = np.sqrt(c0L**2 + caL**2), np.sqrt(c0R**2 + caR**2)
    C = np.maximum(cL + np.abs(vxL), cR + np.abs(vxR))
    fMass = fMass - C * 0.5 * (rL - rR)
    fMx -= C * 0.5 * (rL * vxL - rR * vxR)
    fMy -= C * 0.5 * (rL * vyL - rR * vyR)
    fEn -= C * 0.5 * (enL - enR)
    fBy -= C * 0.5 * (ByL - ByR)
    return fMass, fMx, fMy, fEn, fBy


def orszag_tang(strength, velocity, N, Nt):
    """Constrained transport: the field lives on the faces and stays free of divergence."""
    gam, courant = 5 / 3, 0.4
    dx = 1 / N
    vol = dx**2
    x = np.linspace(0.5 * dx, 1 - 0.5 * dx, N)
    Y, X = np.meshgrid(x, x)
    xn = np.linspace(dx, 1, N)
    Yn, Xn = np.meshgrid(xn, xn)
    rho = (gam**2 / (4 * np.pi)) * np.ones(X.shape)
    vx = -velocity * np.sin(2 * np.pi * Y)
    vy = velocity * np.sin(2 * np.pi * X)
    P = (gam / (4 * np.pi)) * np.ones(X.shape)
    Az = strength * np.cos(4 * np.pi * X) / (4 * np.pi) + np.cos(2 * np.pi * Y) / (2 * np.pi)
    bx, by = curl(Az / np.sqrt(4 * np.pi), dx)
    Bx, By = getBavg(bx, by)
    P = P + 0.5 * (Bx**2 + By**2)
    Mass, Momx, Momy = rho * vol, rho * vx * vol, rho * vy * vol
    Energy = (P - 0.5 * (Bx**2 + By**2)) / (gam - 1)
    Energy = (Energy + 0.5 * rho * (vx**2 + vy**2) + 0.5 * (Bx**2 + By**2)) * vol
    t = 0
    start = time.time()
    for step in range(Nt):
        Bx, By = getBavg(bx, by)
        rho = Mass / vol
        vx, vy = Momx / rho / vol, Momy / rho / vol
        P = (Energy / vol - 0.5 * rho * (vx**2 + vy**2) - 0.5 * (Bx**2 + By**2)) * (gam - 1)
        P += 0.5 * (Bx**2 + By**2)
        c0, ca = np.sqrt(gam * (P - 0.5 * (Bx**2 + By**2)) / rho), np.sqrt((Bx**2 + By**2) / rho)
        cf = np.sqrt(c0**2 + ca**2)
        dt = courant * np.min(dx / (cf + np.sqrt(vx**2 + vy**2)))
        fields = [rho, vx, vy, P, Bx, By]
        faces = [extrapolateInSpaceToFace(f, *slope(f, dx), dx) for f in fields]
        (r, u, v, p, a, b) = faces
        fx = magneticFlux(*r[:2], *u[:2], *v[:2], *p[:2], *a[:2], *b[:2], gam)
        fy = magneticFlux(*r[2:], *v[2:], *u[2:], *p[2:], *b[2:], *a[2:], gam)
        for Q, X_, Y_ in [(Mass, fx[0], fy[0]), (Momx, fx[1], fy[2]), (Momy, fx[2], fy[1])]:
            Q += -dt * dx * (X_ - np.roll(X_, 1, axis=0) + Y_ - np.roll(Y_, 1, axis=1))
        Energy += -dt * dx * (fx[3] - np.roll(fx[3], 1, axis=0))
        Energy += -dt * dx * (fy[3] - np.roll(fy[3], 1, axis=1))
        Ez = 0.25 * (-fx[4] - np.roll(fx[4], -1, axis=1) + fy[4] + np.roll(fy[4], -1, axis=0))
        dbx, dby = curl(-Ez, dx)
        bx += dt * dbx
        by += dt * dby
        t += dt
        if step % 100 == 0:
            print("step", step, "t =", t, "elapsed:", time.time() - start)
    return np.sum(rho * (bx**2 + by**2)) * vol


# Advection by five-point weights -----------------------------------------------------------------
def weno(order_eps, q):
    """One face, from five values; scalars, as the lecture writes it."""
    C = np.array([1.0, 6.0, 3.0]) / 10.0
    a = np.array([[11, -7, 2], [2, 5, -1], [-1, 5, 2]]) / 6.0
    beta = np.zeros(3)
    w = np.zeros_like(beta)
    alpha = np.zeros_like(beta)
    q_stencils = np.zeros(3)
    beta[0] = 13 / 12 * (q[2] - 2 * q[1] + q[0]) ** 2 + (3 * q[2] - 4 * q[1] + q[0]) ** 2 / 4
    beta[1] = 13 / 12 * (q[3] - 2 * q[2] + q[1]) ** 2 + (q[3] - q[1]) ** 2 / 4
    beta[2] = 13 / 12 * (q[4] - 2 * q[3] + q[2]) ** 2 + (3 * q[2] - 4 * q[3] + q[4]) ** 2 / 4
    for k in range(3):
        alpha[k] = C[2 - k] / (order_eps + beta[k] ** 2)
    w[:] = alpha / np.sum(alpha)
    q_stencils[0] = a[0, 0] * q[2] + a[0, 1] * q[1] + a[0, 2] * q[0]
    q_stencils[1] = a[1, 0] * q[2] + a[1, 1] * q[3] + a[1, 2] * q[1]
    q_stencils[2] = a[2, 0] * q[2] + a[2, 1] * q[3] + a[2, 2] * q[4]
    return np.dot(w, q_stencils[[0, 2, 1]]) / 1.0


def weno_advection(bump, speed, nx, nt):
    """Three-stage Runge-Kutta; the scalar weights at every face of every stage."""
    ng = 3
    x = (np.arange(nx + 2 * ng) - ng + 0.5) / nx
    q = np.exp(-bump * (x - 0.5) ** 2)
    dt = 0.4 / nx

    def rk_substep(q):
        q[:ng] = q[nx : nx + ng]
        q[nx + ng :] = q[ng : 2 * ng]
        face = np.zeros(nx + 2 * ng)
        for i in range(ng, nx + ng + 1):
            face[i] = speed * weno(1e-6, q[i - 3 : i + 2])
        rhs = np.zeros_like(q)
        rhs[ng : nx + ng] = (face[ng : nx + ng] - face[ng + 1 : nx + ng + 1]) * nx
        return rhs

    for _ in range(nt):
        q1 = q + dt * rk_substep(q)
        q2 = 0.75 * q + 0.25 * (q1 + dt * rk_substep(q1))
        q = q / 3 + 2 / 3 * (q2 + dt * rk_substep(q2))
    return np.sum(q[ng:-ng] ** 2)


def weno_by_windows(bump, speed, nx, nt):
    """The same weights on all faces at once, by sliding windows over the padded profile."""
    x = (np.arange(nx) + 0.5) / nx
    q = np.exp(-bump * (x - 0.5) ** 2)
    c = np.array([0.1, 0.6, 0.3])
    dt = 0.4 / nx

    def L(q):
        windows = sliding_window_view(np.pad(q, (2, 2), mode="wrap"), 5)
        a, b, m, d, e = windows.T
        p = [(2 * a - 7 * b + 11 * m) / 6, (-b + 5 * m + 2 * d) / 6, (2 * m + 5 * d - e) / 6]
        beta = [
            13 / 12 * (a - 2 * b + m) ** 2 + (a - 4 * b + 3 * m) ** 2 / 4,
            13 / 12 * (b - 2 * m + d) ** 2 + (b - d) ** 2 / 4,
            13 / 12 * (m - 2 * d + e) ** 2 + (3 * m - 4 * d + e) ** 2 / 4,
        ]
        alpha = [ck / (1e-6 + bk) ** 2 for ck, bk in zip(c, beta)]
        flux = speed * sum(ak * pk for ak, pk in zip(alpha, p)) / sum(alpha)
        return -(flux - np.roll(flux, 1)) * nx

    for n in range(nt):
        k1 = q + dt * L(q)
        k2 = 0.75 * q + 0.25 * (k1 + dt * L(k1))
        q = (q + 2 * (k2 + dt * L(k2))) / 3
    return np.sum(q**3)


# A dam breaks ------------------------------------------------------------------------------------
def dam_break(depth, friction, nx, nt):
    """Lax-Friedrichs; every fiftieth profile is kept for a film, the last one compared."""
    g = 9.81
    dx = 10.0 / nx
    x = np.linspace(0, 10, nx)
    h = np.where(x < 5, depth, 1.0)
    hu = np.zeros(nx)
    t = 0.0
    frames, times = [], []
    for k in range(nt):
        c = np.max(np.abs(hu / h) + np.sqrt(g * h))
        dt = 0.5 * dx / c
        f1 = hu
        f2 = hu**2 / h + 0.5 * g * h**2
        h_new, hu_new = h.copy(), hu.copy()
        h_new[1:-1] = 0.5 * (h[2:] + h[:-2]) - dt / (2 * dx) * (f1[2:] - f1[:-2])
        hu_new[1:-1] = 0.5 * (hu[2:] + hu[:-2]) - dt / (2 * dx) * (f2[2:] - f2[:-2])
        hu_new -= dt * friction * hu_new * np.abs(hu_new) / h_new
        h_new[0], h_new[-1] = h_new[1], h_new[-2]
        hu_new[0] = hu_new[-1] = 0
        h, hu = h_new, hu_new
        t += dt
        if k % 50 == 0:
            frames.append(h.copy())
            times.append(t)
            print(f"t = {t:.3f} s, wet volume {h.sum() * dx:.3f}")
    return np.sum((frames[-1] - frames[0]) ** 2) + times[-1]


GAS = (
    Wild(star_of_particles, lambda n, nt: (2.0, 0.75, n, nt), (6, 4), (60, 60)),
    Wild(orszag_tang, lambda n, nt: (1.0, 1.0, n, nt), (8, 3), (48, 20), step=1e-5),
    Wild(weno_advection, lambda n, nt: (40.0, 1.0, n, nt), (8, 2), (32, 10)),
    Wild(weno_by_windows, lambda n, nt: (40.0, 1.0, n, nt), (16, 3), (200, 60)),
    Wild(dam_break, lambda n, nt: (2.0, 0.05, n, nt), (20, 6), (200, 400), step=1e-5),
)
