"""Agents: neurons that fire, points in clusters, simplices, cars in a queue, trackers, walkers."""

import copy

import numpy as np

from .program import Wild


# Neurons that write down when they fire ----------------------------------------------------------
class Layer:
    def __init__(self, n, tau=20.0, threshold=-50.0, rest=-65.0):
        self.n, self.tau, self.threshold, self.rest = n, tau, threshold, rest
        self.v = np.ones(n) * rest
        self.t_last = -np.inf * np.ones(n)
        self.spikes = [[] for _ in range(n)]

    def update(self, current, t, dt):
        active = (t - self.t_last) > 2.0
        dv = (self.rest - self.v + current) / self.tau
        self.v = np.where(active, self.v + dv * dt, self.rest)
        fired = np.where(self.v >= self.threshold)[0]
        out = np.zeros(self.n)
        for i in fired:
            self.spikes[i].append(t)
            out[i] = 1
        self.v[fired] = self.rest
        self.t_last[fired] = t
        return out


def spike_trains(drive, weight, n, steps):
    rng = np.random.default_rng(0)
    W = weight * rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    layer, synapse, dt = Layer(n), np.zeros(n), 0.5
    total = 0.0
    for k in range(steps):
        synapse *= np.exp(-dt / 5.0)
        fired = layer.update(drive + synapse + np.linspace(-2, 2, n), k * dt, dt)
        synapse += W @ fired
        total += layer.v.mean()
    print("rates", [len(s) / (steps * dt) for s in layer.spikes][:3])
    return total / steps + synapse.sum() + 0.01 * sum(sum(s) for s in layer.spikes)


# Clusters as lists of the numbers of points ------------------------------------------------------
class Clusters:
    def __init__(self, k, max_iters):
        self.k, self.max_iters = k, max_iters

    def closest(self, point, centers):
        return np.argmin([np.sqrt(np.sum((point - c) ** 2)) for c in centers])

    def fit(self, X):
        centers = np.array([X[i * (len(X) // self.k)] for i in range(self.k)])
        for _ in range(self.max_iters):
            members = [[] for _ in range(self.k)]
            for index, point in enumerate(X):
                members[self.closest(point, centers)].append(index)
            previous = centers
            centers = np.zeros_like(previous)
            for i, cluster in enumerate(members):
                centers[i] = np.mean(X[cluster], axis=0)
            if np.sum(np.abs(centers - previous)) == 0:
                break
        self.centers = centers
        return self


def clusters(spread, distance, n, iterations):
    np.random.seed(42)
    places = ([0, 0], [4, 4], [0, 5])
    X = np.vstack([spread * np.random.randn(n, 2) + distance * np.array(p) for p in places])
    model = Clusters(3, iterations).fit(X)
    return np.sum(model.centers**2) + model.centers[0, 1]


# A simplex that contracts ------------------------------------------------------------------------
def minimize_simplex(f, start, step=0.1, max_iter=20):
    best = f(start)
    simplex = [[start, best]]
    for i in range(len(start)):
        x = copy.copy(start)
        x[i] = x[i] + step
        simplex.append([x, f(x)])
    iters = 0
    while 1:
        simplex.sort(key=lambda p: p[1])
        if iters >= max_iter:
            return simplex[0]
        iters += 1
        center = [0.0] * len(start)
        for point in simplex[:-1]:
            for i, c in enumerate(point[0]):
                center[i] += c / (len(simplex) - 1)
        reflected = center + 1.0 * (center - simplex[-1][0])
        score = f(reflected)
        if simplex[0][1] <= score < simplex[-2][1]:
            del simplex[-1]
            simplex.append([reflected, score])
            continue
        if score < simplex[0][1]:
            expanded = center + 2.0 * (center - simplex[-1][0])
            escore = f(expanded)
            del simplex[-1]
            if escore < score:
                simplex.append([expanded, escore])
            else:
                simplex.append([reflected, score])
            continue
        contracted = center - 0.5 * (center - simplex[-1][0])
        cscore = f(contracted)
        if cscore < simplex[-1][1]:
            del simplex[-1]
            simplex.append([contracted, cscore])
            continue
        smaller = []
        for point in simplex:
            moved = simplex[0][0] + 0.5 * (point[0] - simplex[0][0])
            smaller.append([moved, f(moved)])
        simplex = smaller


def simplex(a, b, iterations):
    def valley(x):
        return (a - x[0]) ** 2 + b * (x[1] - x[0] ** 2) ** 2

    best = minimize_simplex(valley, np.array([0.0, 0.0]), max_iter=iterations)
    return best[1] + 0.1 * best[0].sum()


# Cars that count themselves ----------------------------------------------------------------------
class Car:
    count = 0

    def __init__(self, x, v, lead=None, **options):
        self.x, self.v, self.a, self.lead = x, v, 0.0, lead
        self.headway = options.get("headway", 1.5)
        self.kind = options.get("kind", "sedan")
        self.length = 4.0 if self.kind.lower() != "truck" else 9.0
        Car.count += 1

    def update(self, dt, v_max):
        if self.v + self.a * dt < 0:
            self.x -= 0.5 * self.v * self.v / self.a
            self.v = 0
        else:
            self.v += self.a * dt
            self.x += self.v * dt + self.a * dt * dt / 2
        crowding = 0
        if self.lead:
            gap = self.lead.x - self.x - self.lead.length
            closing = self.v - self.lead.v
            crowding = (2.0 + max(0, self.headway * self.v + closing * self.v / 5.08)) / gap
        self.a = 1.4 * (1 - (self.v / v_max) ** 4 - crowding**2)


def queue_of_cars(headway, v_max, n, steps):
    cars = []
    for i in range(n):
        lead = cars[-1] if cars else None
        kind = "Truck" if i % 3 == 1 else "Sedan"
        cars.append(Car(-i * 25.0, 10.0, lead, headway=headway, kind=kind))
    for _ in range(steps):
        for car in cars:
            car.update(0.05, v_max)
    return sum(car.v for car in cars) / n + cars[-1].x / 100


# A tracker whose measurement is not there yet ----------------------------------------------------
class Tracker:
    def __init__(self, dim):
        self.x, self.P = np.zeros((dim, 1)), np.eye(dim)
        self.z = np.array([[None] * 1]).T
        self.history = []

    def predict(self, F, Q):
        self.x, self.P = F @ self.x, F @ self.P @ F.T + Q

    def update(self, z, H, R):
        if z is None:
            self.z = np.array([[None] * 1]).T
            return
        y = z - H @ self.x
        S = H @ self.P @ H.T + R
        K = self.P @ H.T @ np.linalg.inv(S)
        self.x, self.P = self.x + K @ y, (np.eye(len(self.x)) - K @ H) @ self.P
        self.z = np.array([[z]])
        self.history.append(self.x.copy())


def tracker(noise, drift, steps):
    rng = np.random.default_rng(1)
    measured = [None if k % 7 == 3 else z for k, z in enumerate(np.cumsum(rng.normal(size=steps)))]
    one, H = Tracker(2), np.array([[1.0, 0.0]])
    for z in measured:
        one.predict(np.array([[1.0, 1.0], [0.0, 1.0]]), drift * np.eye(2))
        one.update(z, H, noise)
    return np.array(one.history)[:, 0, 0].mean() + one.x[1, 0]


# A walker on a network of places -----------------------------------------------------------------
def walker(rate, pull, steps):
    roads = {0: [1, 2], 1: [0, 3, 2], 2: [0, 4], 3: [1, 4], 4: [2, 3, 0]}
    visits = {place: [] for place in roads}
    place, mood = 0, 0.4
    for t in range(steps):
        mood = np.sin(rate * mood + 1.7 * t)
        near = roads[place]
        place = near[int(abs(mood) * len(near)) % len(near)]
        visits[place].append(pull * mood)
        if len(visits[place]) > 2:
            mood = mood + 0.1 * visits[place][-2]
    total = mood
    for place in roads:
        if len(visits[place]) > 0:
            total += np.mean(visits[place])
    return total


def _pair(a, b):
    return lambda *size: (a, b, *size)


AGENTS = (
    Wild(spike_trains, _pair(18.0, 0.5), (4, 60), (40, 300), step=1e-5),
    Wild(clusters, _pair(1.0, 1.0), (6, 5), (40, 10), step=1e-5),
    Wild(simplex, _pair(1.0, 10.0), (8,), (25,), step=1e-5),
    Wild(queue_of_cars, _pair(1.5, 16.6), (3, 30), (6, 400), step=1e-5),
    Wild(tracker, _pair(5.0, 0.1), (15,), (200,)),
    Wild(walker, _pair(0.9, 0.5), (30,), (400,), step=1e-6),
)
