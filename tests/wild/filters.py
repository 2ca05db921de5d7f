"""Filters and smoothers: ordinary, unscented, extended, ensembles; each carries its history."""

import math
from collections import deque

import numpy as np
from scipy.linalg import cholesky

from .program import Wild


# Objects with properties -------------------------------------------------------------------------
class KalmanFilter:
    """predict() and update(z) change x and P; what was seen last stays in attributes."""

    def __init__(self, dim_x, dim_z):
        self.x = np.zeros((dim_x, 1))
        self.P = np.eye(dim_x)
        self.Q = np.eye(dim_x)
        self.F = np.eye(dim_x)
        self.H = np.zeros((dim_z, dim_x))
        self.R = np.eye(dim_z)
        self._alpha_sq = 1.0
        self.z = np.array([[None] * dim_z]).T
        self.K = np.zeros((dim_x, dim_z))
        self.y = np.zeros((dim_z, 1))
        self._I = np.eye(dim_x)
        self.x_prior = self.x.copy()
        self.P_prior = self.P.copy()
        self._log_likelihood = 0.0

    @property
    def alpha(self):
        return self._alpha_sq**0.5

    @alpha.setter
    def alpha(self, value):
        if not np.isscalar(value) or value < 1:
            raise ValueError("alpha must be a float greater than 1")
        self._alpha_sq = value**2

    @property
    def log_likelihood(self):
        return self._log_likelihood

    def predict(self, u=None, B=None):
        if B is not None and u is not None:
            self.x = np.dot(self.F, self.x) + np.dot(B, u)
        else:
            self.x = np.dot(self.F, self.x)
        self.P = self._alpha_sq * np.dot(np.dot(self.F, self.P), self.F.T) + self.Q
        self.x_prior = self.x.copy()
        self.P_prior = self.P.copy()

    def update(self, z):
        if z is None:
            self.y = np.zeros((1, 1))
            return
        self.y = z - np.dot(self.H, self.x)
        PHT = np.dot(self.P, self.H.T)
        self.S = np.dot(self.H, PHT) + self.R
        self.SI = np.linalg.inv(self.S)
        self.K = np.dot(PHT, self.SI)
        self.x = self.x + np.dot(self.K, self.y)
        I_KH = self._I - np.dot(self.K, self.H)
        self.P = np.dot(np.dot(I_KH, self.P), I_KH.T) + np.dot(np.dot(self.K, self.R), self.K.T)
        self.z = z
        self._log_likelihood += -0.5 * (
            np.log(2 * np.pi * self.S[0, 0]) + self.y[0, 0] ** 2 / self.S[0, 0]
        )


def tracked_by_objects(process, noise, nt):
    f = KalmanFilter(dim_x=2, dim_z=1)
    f.F = np.array([[1.0, 0.1], [0.0, 1.0]])
    f.H = np.array([[1.0, 0.0]])
    f.P *= 10.0
    f.R *= noise**2
    f.Q = process * np.array([[0.1**4 / 4, 0.1**3 / 2], [0.1**3 / 2, 0.1**2]])
    f.alpha = 1.02
    zs = np.sin(0.05 * np.arange(nt)) + 0.2 * np.random.RandomState(3).randn(nt)
    xs, cov = [], []
    for z in zs:
        f.predict()
        f.update(z)
        xs.append(f.x)
        cov.append(f.P)
    xs, cov = np.array(xs), np.array(cov)
    return np.mean((xs[:, 0, 0] - zs) ** 2) + np.mean(cov[:, 1, 1]) - f.log_likelihood / nt


class MerweSigmaPoints:
    def __init__(self, n, alpha, beta, kappa):
        self.n, self.alpha, self.beta, self.kappa = n, alpha, beta, kappa
        lambda_ = alpha**2 * (n + kappa) - n
        c = 0.5 / (n + lambda_)
        self.Wc = np.full(2 * n + 1, c)
        self.Wm = np.full(2 * n + 1, c)
        self.Wc[0] = lambda_ / (n + lambda_) + (1 - alpha**2 + beta)
        self.Wm[0] = lambda_ / (n + lambda_)

    def num_sigmas(self):
        return 2 * self.n + 1

    def sigma_points(self, x, P):
        n = self.n
        lambda_ = self.alpha**2 * (n + self.kappa) - n
        U = cholesky((lambda_ + n) * P)
        sigmas = np.zeros((2 * n + 1, n))
        sigmas[0] = x
        for k in range(n):
            sigmas[k + 1] = np.subtract(x, -U[k])
            sigmas[n + k + 1] = np.subtract(x, U[k])
        return sigmas


def unscented_transform(sigmas, Wm, Wc, noise_cov=None):
    x = np.dot(Wm, sigmas)
    y = sigmas - x[np.newaxis, :]
    P = np.dot(y.T, np.dot(np.diag(Wc), y))
    if noise_cov is not None:
        P += noise_cov
    return x, P


def unscented(process, noise, nt):
    """A falling body seen by a radar: sigma points through nonlinear functions, one by one."""
    dt = 0.1
    points = MerweSigmaPoints(n=3, alpha=0.5, beta=2.0, kappa=0.0)

    def fx(x, dt):
        F = np.array([[1.0, dt, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        return np.dot(F, x)

    def hx(x):
        return np.array([(x[0] ** 2 + x[2] ** 2) ** 0.5])

    x, P = np.array([0.0, 90.0, 1100.0]), np.diag([300.0**2, 30.0**2, 150.0**2]) * 1e-2
    Q = process * np.eye(3)
    R = np.array([[noise**2]])
    truth = np.hypot(100.0 * dt * np.arange(nt), 1000.0)
    zs = truth + 5 * np.random.default_rng(8).standard_normal(nt)
    xs = []
    for z in zs:
        sigmas = points.sigma_points(x, P)
        sigmas_f = np.zeros((points.num_sigmas(), 3))
        for i, s in enumerate(sigmas):
            sigmas_f[i] = fx(s, dt)
        x, P = unscented_transform(sigmas_f, points.Wm, points.Wc, Q)
        sigmas_f = points.sigma_points(x, P)
        sigmas_h = []
        for s in sigmas_f:
            sigmas_h.append(hx(s))
        sigmas_h = np.atleast_2d(sigmas_h)
        zp, S = unscented_transform(sigmas_h, points.Wm, points.Wc, R)
        Pxz = np.zeros((3, 1))
        for i in range(points.num_sigmas()):
            Pxz += points.Wc[i] * np.outer(sigmas_f[i] - x, sigmas_h[i] - zp)
        K = np.dot(Pxz, np.linalg.inv(S))
        x = x + np.dot(K, z - zp)
        P = P - np.dot(K, np.dot(S, K.T))
        xs.append(x.copy())
    return np.mean(np.array(xs)[:, 0]) * 1e-2 + xs[-1][2] * 1e-3


# Ensembles ---------------------------------------------------------------------------------------
def lorenz96(x, F):
    return (np.roll(x, -1, -1) - np.roll(x, 2, -1)) * np.roll(x, 1, -1) - x + F


def rk4(x, F, dt):
    k1 = lorenz96(x, F)
    k2 = lorenz96(x + dt / 2 * k1, F)
    k3 = lorenz96(x + dt / 2 * k2, F)
    k4 = lorenz96(x + dt * k3, F)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def ensemble_kalman(forcing, inflation, members, nt):
    """Perturbed observations are drawn when they are needed, from one generator."""
    N, dt, sigma = 12, 0.05, 0.5
    rng = np.random.default_rng(2024)
    truth = forcing + 0.1 * rng.standard_normal(N)
    ensemble = truth + rng.standard_normal((members, N))
    H = np.eye(N)[::2]
    R = sigma**2 * np.eye(len(H))
    errors = {"prior": [], "posterior": []}
    for k in range(nt):
        truth = rk4(truth, forcing, dt)
        ensemble = rk4(ensemble, forcing, dt)
        errors["prior"].append(np.sqrt(np.mean((ensemble.mean(0) - truth) ** 2)))
        if k % 2 == 1:
            y = H @ truth + sigma * rng.standard_normal(len(H))
            mean = ensemble.mean(axis=0)
            A = inflation * (ensemble - mean)
            ensemble = mean + A
            Pf = A.T @ A / (members - 1)
            K = Pf @ H.T @ np.linalg.inv(H @ Pf @ H.T + R)
            D = y + sigma * rng.standard_normal((members, len(H)))
            ensemble = ensemble + (D - ensemble @ H.T) @ K.T
        errors["posterior"].append(np.sqrt(np.mean((ensemble.mean(0) - truth) ** 2)))
    return np.mean(errors["prior"]) + np.mean(errors["posterior"])


# A robot that is not sure where it is ------------------------------------------------------------
def motion_model(x, u, DT):
    F = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 0]])
    B = np.array(
        [
            [DT * math.cos(x[2, 0]), 0],
            [DT * math.sin(x[2, 0]), 0],
            [0.0, DT],
            [1.0, 0.0],
        ]
    )
    return F @ x + B @ u


def jacob_f(x, u, DT):
    yaw, v = x[2, 0], u[0, 0]
    return np.array(
        [
            [1.0, 0.0, -DT * v * math.sin(yaw), DT * math.cos(yaw)],
            [0.0, 1.0, DT * v * math.cos(yaw), DT * math.sin(yaw)],
            [0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def extended_localization(yawrate, noise, nt):
    """The history grows by hstack; the sensors' noise is drawn in the loop."""
    np.random.seed(1)
    DT, time = 0.1, 0.0
    Q = np.diag([0.1, 0.1, np.deg2rad(1.0), 1.0]) ** 2
    R = np.diag([1.0, 1.0]) ** 2
    GPS = np.diag([0.5, 0.5]) ** 2
    xEst, xTrue, xDR = np.zeros((4, 1)), np.zeros((4, 1)), np.zeros((4, 1))
    PEst = np.eye(4)
    hxEst, hxTrue, hz = xEst, xTrue, np.zeros((2, 1))
    H = np.array([[1, 0, 0, 0], [0, 1, 0, 0]])
    show_animation = False
    while DT * nt > time + 1e-9:
        time += DT
        u = np.array([[1.0], [yawrate]])
        xTrue = motion_model(xTrue, u, DT)
        z = xTrue[:2] + noise * GPS @ np.random.randn(2, 1)
        ud = u + noise * np.diag([1.0, np.deg2rad(30.0)]) ** 2 @ np.random.randn(2, 1)
        xDR = motion_model(xDR, ud, DT)
        xPred = motion_model(xEst, ud, DT)
        jF = jacob_f(xEst, ud, DT)
        PPred = jF @ PEst @ jF.T + Q
        S = H @ PPred @ H.T + R
        K = PPred @ H.T @ np.linalg.inv(S)
        xEst = xPred + K @ (z - H @ xPred)
        PEst = (np.eye(len(xEst)) - K @ H) @ PPred
        hxEst = np.hstack((hxEst, xEst))
        hxTrue = np.hstack((hxTrue, xTrue))
        hz = np.hstack((hz, z))
        if show_animation:
            import matplotlib.pyplot as plt

            plt.cla()
            plt.plot(hz[0, :], hz[1, :], ".g")
            plt.pause(0.001)
    return np.mean((hxEst - hxTrue) ** 2)


def moving_window(gain, threshold, width, nt):
    """A deque of fixed length: means of a window, outliers replaced, everything printed."""
    signal = np.sin(0.1 * np.arange(nt)) + 0.3 * np.cos(2.1 * np.arange(nt))
    window = deque(maxlen=width)
    estimate, cleaned = 0.0, []
    for k, s in enumerate(signal):
        window.append(s)
        mean = sum(window) / len(window)
        spread = math.sqrt(sum((w - mean) ** 2 for w in window) / len(window)) + 1e-3
        value = s if abs(s - mean) < threshold * spread else mean
        estimate += gain * (value - estimate)
        cleaned.append(estimate)
        if k % 1000 == 0:
            print("sample", k, "estimate", estimate)
    return sum(c * c for c in cleaned) / nt


FILTERS = (
    Wild(tracked_by_objects, lambda nt: (0.5, 0.2, nt), (9,), (500,)),
    Wild(unscented, lambda nt: (0.3, 5.0, nt), (6,), (200,), step=1e-4),
    Wild(ensemble_kalman, lambda n, nt: (8.0, 1.05, n, nt), (5, 6), (40, 200), step=1e-5),
    Wild(extended_localization, lambda nt: (0.1, 1.0, nt), (8,), (400,)),
    Wild(moving_window, lambda n, nt: (0.2, 1.2, n, nt), (4, 12), (15, 2000), step=1e-6),
)
