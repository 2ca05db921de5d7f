"""Motions with events, and steps of a size that the solution decides."""

import numba
import numpy as np

from .numerics import GRAVITY


def bouncing_ball(height, restitution, dt=0.01, steps=120):
    y, v = height, 0.0
    bounces = 0
    for _ in range(steps):
        v -= GRAVITY * dt
        y += v * dt
        if y < 0 and v < 0:
            y = -restitution * y
            v = -restitution * v
            bounces += 1
    return y, v


def bouncing_ball_exact(height, restitution, end=2.0):
    """From impact to impact: the time of each one is solved for."""
    t = 0.0
    y = height
    v = 0.0
    while True:
        fall = (v + np.sqrt(v * v + 2 * GRAVITY * y)) / GRAVITY
        if t + fall > end:
            rest = end - t
            return y + v * rest - 0.5 * GRAVITY * rest**2
        t += fall
        v = restitution * (GRAVITY * fall - v)
        y = 0.0


def thermostat(start, loss, power, dt=0.1, steps=60):
    """Hysteresis: the heater is a state of the program, not of the physics."""
    temperature = start
    heating = False
    record = np.zeros(steps)
    for k in range(steps):
        if temperature < 19.0:
            heating = True
        elif temperature > 21.0:
            heating = False
        temperature += dt * (-loss * (temperature - 10.0) + (power if heating else 0.0))
        record[k] = temperature
    return record


@numba.jit(nopython=True)
def integrate_and_fire(current, leak, threshold=1.0):
    v = 0.0
    spikes = 0
    trace = np.empty(current.shape)
    for i in range(len(current)):
        v = v + 0.2 * (current[i] - leak * v)
        if v >= threshold:
            v = v - threshold
            spikes += 1
        trace[i] = v
    return trace


def first_passage(rate, noise, level=1.5):
    """Returns from inside the loop when the level is reached."""
    x = 0.2
    for k in range(noise.shape[0]):
        x = x + 0.1 * rate * x + 0.02 * noise[k]
        if x > level:
            return x * (k + 1)
    return x


def rk23_adaptive(y0, rate, T=2.0, rtol=1e-5):
    """Bogacki–Shampine; the step sizes are constants of the derivative only if they are floats."""

    def f(t, y):
        return -rate * y + np.sin(t)

    t, y, h = 0.0, y0, 0.1
    k1 = f(t, y)
    while t < T:
        if t + h > T:
            h = T - t
        k2 = f(t + 0.5 * h, y + 0.5 * h * k1)
        k3 = f(t + 0.75 * h, y + 0.75 * h * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = f(t + h, new)
        error = h * abs(-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
        scale = rtol * (1 + abs(y))
        if error <= scale:
            t = t + h
            y = new
            k1 = k4
        h = h * min(5.0, max(0.2, 0.9 * (scale / (error + 1e-16)) ** (1 / 3)))
    return y


def rk45_system(state, mu, T=1.0, tolerance=1e-6):
    """Van der Pol with step doubling: one big step against two small ones."""

    def rhs(y):
        return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(y, h):
        a = rhs(y)
        b = rhs(y + 0.5 * h * a)
        c = rhs(y + 0.5 * h * b)
        d = rhs(y + h * c)
        return y + h / 6 * (a + 2 * b + 2 * c + d)

    t = 0.0
    h = 0.2
    y = state.copy()
    rejected = 0
    while t < T - 1e-12:
        h = min(h, T - t)
        big = step(y, h)
        small = step(step(y, h / 2), h / 2)
        error = np.max(np.abs(big - small)) / 15
        if error > tolerance:
            h *= 0.5
            rejected += 1
            continue
        y = small + (small - big) / 15
        t += h
        if error < tolerance / 32:
            h *= 2
    return y


def two_tanks(levels, valve, dt=0.05, steps=40):
    """Torricelli with a pump that switches on and off by the lower level."""
    a, b = levels[0], levels[1]
    pump = 0.0
    for k in range(steps):
        flow = valve * np.sqrt(2 * GRAVITY * a) if a > 0.01 else 0.0
        drain = 0.1 * np.sqrt(2 * GRAVITY * b) if b > 0.01 else 0.0
        if b > 0.8 and pump == 0.0:
            pump = 0.5
        elif b < 0.6:
            pump = 0.0
        a, b = a + dt * (pump - flow), b + dt * (flow - drain - pump)
        if k % 10 == 9:
            a += 0.05
    return np.array([a, b])
