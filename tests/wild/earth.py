"""Earth: soil, heat, ice, climate, groundwater, hillslopes, catchments."""

import enum
import functools
import logging
import math

import numpy as np

from .program import Wild

logger = logging.getLogger(__name__)


def soil_moisture(Ks, exponent, days):
    """A bucket by the day, all numbers; branches for rain, drainage, stress; lists of results."""
    n, zr, sh, sw, sfc, smax = 0.45, 500.0, 0.1, 0.2, 0.6, 1.0
    rain = [max(0.0, 12 * math.sin(0.7 * d) * math.sin(1.9 * d)) for d in range(days)]
    pet = [3.0 + 2.0 * math.sin(2 * math.pi * d / 365) for d in range(days)]
    s = 0.62
    s_list, et_list, leak_list = [s], [], []
    for d in range(days):
        if s < sh:
            et = 0.0
        elif s < sw:
            et = 0.15 * pet[d] * (s - sh) / (sw - sh)
        elif s < sfc:
            et = 0.15 * pet[d] + 0.85 * pet[d] * (s - sw) / (sfc - sw)
        else:
            et = pet[d]
        leak = Ks * s**exponent if s > sfc else 0.0
        s = s + (rain[d] - et - leak) / (n * zr)
        if s > smax:
            runoff = (s - smax) * n * zr
            s = smax
        else:
            runoff = 0
        s_list.append(s)
        et_list.append(et)
        leak_list.append(leak + runoff)
    return sum(s_list) / len(s_list) + sum(et_list) / days + 0.1 * np.mean(leak_list)


def generate_matrix(N, sigma):
    d = np.diag(np.ones(N) * (2.0 + 1.0 / sigma))
    d[-1, -1] = 1.0 + 1.0 / sigma
    ud = np.diag(np.ones(N - 1) * -1, 1)
    ld = np.diag(np.ones(N - 1) * -1, -1)
    return d + ud + ld


def implicit_heat(alpha, flux, nx, nt):
    """The matrix is built by np.diag, and solved anew at each step."""
    L = 1.0
    dx = L / (nx - 1)
    dt = 0.5 * dx**2 / 1e-2
    sigma = alpha * dt / dx**2
    T = np.zeros(nx)
    T[0] = 100.0
    A = generate_matrix(nx - 2, sigma)
    for n in range(nt):
        Tn = T.copy()
        b = np.zeros(nx - 2)
        b[:] = Tn[1:-1] / sigma
        b[0] += Tn[0]
        b[-1] += flux * dx
        T_interior = np.linalg.solve(A, b)
        T[1:-1] = T_interior
        T[-1] = T[-2] + flux * dx
    return np.mean(T)


def thomas(a, b, c, d):
    n = len(d)
    cp, dp, x = np.zeros(n), np.zeros(n), np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def flame(heat, activation, nx, nt):
    """Temperature and fuel: diffusion implicit by Thomas' algorithm, the reaction explicit."""
    dx, dt = 1.0 / nx, 2e-4
    x = np.linspace(0, 1, nx)
    T = np.where(x < 0.3, 1.0, 0.2) + 0.0
    Y = np.where(x < 0.3, 0.0, 1.0)
    r = 0.05 * dt / dx**2
    a = np.full(nx, -r)
    b = np.full(nx, 1 + 2 * r)
    c = np.full(nx, -r)
    b[0] = b[-1] = 1 + r
    positions = []
    for k in range(nt):
        rate = 2e3 * Y * np.exp(-activation / np.maximum(T, 0.05))
        T = thomas(a, b, c, T + dt * heat * rate)
        Y = thomas(a, b, c, Y - dt * rate)
        Y[Y < 0] = 0.0
        positions.append(np.sum(T > 0.6) * dx)
        if k > 0 and k % 100 == 0:
            logger.info("flame at %g, speed %g", positions[-1], positions[-1] - positions[-2])
    return np.sum(T**2) * dx + np.sum(Y) * dx


def glacier(softness, climb, n, years):
    """Shallow ice on a slope, the time step from the diffusivity, mass balance by height."""
    rho, g, nexp = 910.0, 9.81, 3
    Gamma = 2.0 * softness * 1e-17 * (rho * g) ** nexp / (nexp + 2)
    x = np.linspace(0, 20e3, n)
    dx = x[1] - x[0]
    bed = 3000.0 - 0.05 * x
    ice = 50.0 * np.exp(-((x / 5e3) ** 2))
    t, t_end, steps = 0.0, float(years), 0
    while t < t_end:
        s = bed + ice
        grad = np.zeros(n)
        grad[:-1] = (s[1:] - s[:-1]) / dx
        h_mid = np.zeros(n)
        h_mid[:-1] = 0.5 * (ice[1:] + ice[:-1])
        diffusivity = Gamma * h_mid ** (nexp + 2) * np.abs(grad) ** (nexp - 1)
        try:
            dt = min(0.2 * dx**2 / diffusivity.max(), 1.0)
        except ZeroDivisionError:
            dt = 1.0
        dt = min(dt, t_end - t)
        flux = diffusivity * grad
        balance = np.minimum(climb * (s - 2700.0), 2.0)
        ice[1:] += dt * ((flux[1:] - flux[:-1]) / dx + balance[1:])
        ice[0] = ice[1]
        ice[ice < 0] = 0.0
        t += dt
        steps += 1
    return np.mean(ice) + 0.01 * np.max(ice)


class Surface(enum.Enum):
    OCEAN = "ocean"
    ICE = "ice"


def climate_with_states(solar, transport, bands, years):
    """An energy balance by latitude; every band is in a state, and its albedo follows from it."""
    lat = (np.arange(bands) + 0.5) / bands
    insolation = 1.24 * (1 - 0.48 * 0.5 * (3 * lat**2 - 1))
    T = 30.0 - 60.0 * lat**2
    state = Surface.OCEAN
    history = []
    for year in range(years):
        if np.mean(T) < -5.0:
            state = Surface.ICE
        elif np.mean(T) > 5.0:
            state = Surface.OCEAN
        ground = 0.5 if state is Surface.ICE else 0.3
        albedo = np.where(T < -10.0, 0.62, ground)
        absorbed = solar / 4 * insolation * (1 - albedo)
        emitted = 210.0 + 2.0 * T
        T = T + 0.05 * (absorbed - emitted - transport * (T - T.mean()))
        history.append((state.value, T.mean()))
    warm = sum(m for name, m in history if name == "ocean") / years
    return history[-1][1] + warm + 0.1 * (T.max() - T.min())  # transport changes no mean


def groundwater(recharge, K, n, sweeps):
    """Successive over-relaxation by elements until nothing changes, or for so many sweeps."""
    dx = 1000.0 / n
    h = np.full((n, n), 10.0)
    omega, tolerance = 1.6, 1e-9
    for sweep in range(sweeps):
        largest = 0.0
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                if i == n // 2 and j == n // 2:
                    pumping = 0.002
                else:
                    pumping = 0.0
                new = 0.25 * (
                    h[i - 1, j]
                    + h[i + 1, j]
                    + h[i, j - 1]
                    + h[i, j + 1]
                    + dx * dx * (recharge - pumping) / K
                )
                change = omega * (new - h[i, j])
                h[i, j] += change
                largest = max(largest, abs(change))
        if largest < tolerance:
            break
    return np.mean(h) + h[n // 2, n // 2]


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        result = fn(*args, **kwargs)
        return result

    wrapper.calls = 0
    return wrapper


@timed
def route_downstream(flow, order, receiver):
    area = flow.copy()
    for cell in order:
        if receiver[cell] != cell:
            area[receiver[cell]] += area[cell]
    return area


def stream_power(K, uplift, n, nt):
    """Cells in the order of their height (of the first relief), from which rivers flow."""
    rng = np.random.RandomState(11)
    relief = np.cumsum(rng.rand(n))
    receiver = np.maximum(np.arange(n) - 1 - (rng.rand(n) > 0.7), 0)
    order = sorted(range(n), key=lambda cell: -relief[cell])
    z = 0.1 * relief.copy()
    for step in range(nt):
        area = route_downstream(np.ones(n), order, receiver)
        drop = z - z[receiver]
        erosion = K * np.sqrt(area) * np.maximum(drop, 0)
        z += 0.1 * (uplift - erosion)
        z[0] = 0.0
    return np.mean(z)


def catchment(beta, k1, days):
    """Stores in a dictionary: snow, soil, two reservoirs; the parameters in another."""
    par = {"beta": beta, "k1": k1, "k2": 0.02, "fc": 200.0, "tt": 0.0, "cfmax": 3.0, "perc": 1.0}
    store = {"snow": 0.0, "soil": 100.0, "upper": 10.0, "lower": 30.0}
    discharge = []
    for day in range(days):
        temp = 8.0 * math.sin(2 * math.pi * (day - 10) / 365) + 3.0
        rain = 6.0 if day % 5 == 0 else 0.5
        if temp < par["tt"]:
            store["snow"] += rain
            water = 0.0
        else:
            melt = min(store["snow"], par["cfmax"] * (temp - par["tt"]))
            store["snow"] -= melt
            water = rain + melt
        recharge = water * (store["soil"] / par["fc"]) ** par["beta"]
        store["soil"] += water - recharge
        et = max(0.0, 0.3 * temp) * min(1.0, store["soil"] / (0.7 * par["fc"]))
        store["soil"] = max(store["soil"] - et, 0.1)
        store["upper"] += recharge
        perc = min(par["perc"], store["upper"])
        store["upper"] -= perc
        q1 = par["k1"] * store["upper"]
        store["upper"] -= q1
        store["lower"] += perc
        q2 = par["k2"] * store["lower"]
        store["lower"] -= q2
        discharge.append(q1 + q2)
    q = np.array(discharge)
    return np.mean(np.sqrt(q)) + 0.01 * sum(store.values())


EARTH = (
    Wild(soil_moisture, lambda n: (20.0, 4.0, n), (20,), (3650,), step=1e-5),
    Wild(implicit_heat, lambda n, nt: (1.2e-2, 5.0, n, nt), (8, 6), (51, 500)),
    Wild(flame, lambda n, nt: (1.0, 2.0, n, nt), (10, 5), (80, 60), step=1e-5),
    Wild(
        glacier,
        lambda n, y: (2.0, 0.005, n, y),
        (12, 15),
        (100, 400),
        step=1e-5,
        difference=1e-4,  # by the climb it is small
    ),
    Wild(climate_with_states, lambda n, nt: (1361.0, 3.8, n, nt), (6, 8), (90, 1000), step=1e-6),
    Wild(groundwater, lambda n, nt: (1e-4, 20.0, n, nt), (6, 4), (24, 40)),
    Wild(stream_power, lambda n, nt: (0.05, 0.1, n, nt), (9, 6), (60, 300), step=1e-5),
    Wild(catchment, lambda n: (2.0, 0.1, n), (15,), (3650,), step=1e-5),
)
