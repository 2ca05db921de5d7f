"""Services: machines that wait for their next repair, players that are ranked, walkers that move
in two halves, a grid behind the functions of a backend."""

import functools
import heapq

import numpy as np

from .program import Wild


# Machines and the queue of what happens to them --------------------------------------------------
class Repair:
    def __init__(self, time, machine, name):
        self.time, self.machine, self.name = time, machine, name

    def __lt__(self, other):
        return self.time < other.time

    def __repr__(self):
        return f"<repair of {self.name} at {self.time}>"


def repairs(wear, speed, n, events):
    health = [1.0 - 0.05 * k for k in range(n)]
    agenda = [Repair(health[k] / (wear * (1 + 0.3 * k)), k, f"machine {k}") for k in range(n)]
    heapq.heapify(agenda)
    print("first:", agenda[0])
    now, cost = 0.0, 0.0
    for _ in range(events):
        due = heapq.heappop(agenda)
        waited = due.time - now
        now = due.time
        k = due.machine
        health[k] = 0.3 + 0.7 * np.exp(-speed * waited)
        cost += (1.0 - health[k]) ** 2 + 0.01 * waited
        due.time = now + health[k] / (wear * (1 + 0.3 * k))
        heapq.heappush(agenda, due)
    return cost + 0.1 * now


# Players, ranked after each round ----------------------------------------------------------------
class Player:
    """Told by the name, ordered by a cautious guess."""

    def __init__(self, name, mean, spread):
        self.name, self.mean, self.spread = name, mean, spread
        self.games = []

    @property
    def guess(self):
        return self.mean - 2.0 * self.spread

    def __eq__(self, other):
        return isinstance(other, Player) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


def league(mean, beta, n, rounds):
    players = [Player(f"p{k}", mean + 0.7 * np.sin(2.0 * k), 2.0 - 0.1 * k) for k in range(n)]
    for r in range(rounds):
        table = sorted(players, key=lambda p: p.guess, reverse=True)
        best, last = table[0], table[-1]
        c = np.sqrt(2 * beta**2 + best.spread**2 + last.spread**2)
        won = 1.0 / (1.0 + np.exp((last.mean - best.mean) / c))
        share = 1.0 if r % 3 else 0.0
        best.mean += best.spread**2 / c * (share - won)
        last.mean -= last.spread**2 / c * (share - won)
        for p in (best, last):
            p.spread *= 1.0 - 0.1 * p.spread**2 / c**2
        if best == Player("p0", 0.0, 0.0):
            best.mean -= 0.05
    champion = max(players, key=lambda p: p.guess)
    print(champion.name)
    return champion.guess + 0.1 * sum(p.mean for p in players)


# Walkers that move in two halves, each by the places of the other --------------------------------
class Ensemble:
    def __init__(self, log_prob, n, dim, seed=42):
        self.log_prob, self.rng = log_prob, np.random.RandomState(seed)
        self.coords = self.rng.rand(n, dim)
        self.lp = np.array([log_prob(x) for x in self.coords])
        self.chain = []

    def step(self, a=2.0):
        n, dim = self.coords.shape
        groups = np.arange(n) % 2
        for split in range(2):
            first = groups == split
            s, c = self.coords[first], self.coords[~first]
            z = ((a - 1.0) * self.rng.rand(len(s)) + 1) ** 2.0 / a
            partner = self.rng.randint(len(c), size=len(s))
            q = c[partner] - (c[partner] - s) * z[:, None]
            lp = np.array([self.log_prob(x) for x in q])
            gain = (dim - 1.0) * np.log(z) + lp - self.lp[first]
            accepted = gain > np.log(self.rng.rand(len(s)))
            moved = first.copy()
            moved[first] = accepted
            self.coords[moved] = q[accepted]
            self.lp[moved] = lp[accepted]
        self.chain.append(self.lp.mean())


def ensemble(mean, scale, n, steps):
    center, weights = mean * np.ones(2), np.array([1.0, 2.0]) / scale
    sampler = Ensemble(lambda x: -0.5 * np.sum(weights * (x - center) ** 2), n, 2)
    for _ in range(steps):
        sampler.step()
    return np.mean(sampler.chain) + 0.1 * np.sum(sampler.coords)


# A grid behind the functions of a backend --------------------------------------------------------
def _as_floats(func):
    @functools.wraps(func)
    def wrapped(self, *args, **kwargs):
        result = func(*args, **kwargs)
        if result.dtype in (np.float64, np.int64):
            result = np.asarray(result, dtype=self.float)
        return result

    return wrapped


class Backend:
    float = np.float64
    array = _as_floats(np.array)
    ones = _as_floats(np.ones)
    zeros = _as_floats(np.zeros)
    exp = staticmethod(np.exp)


bd = Backend()


class Wave:
    def __init__(self, shape, courant, permittivity):
        self.courant = courant
        self.E, self.H = bd.zeros(shape), bd.zeros((2, *shape))
        self.inverse = bd.ones(shape) / permittivity
        self.passed = 0

    def update(self):
        self.H[0, :, :-1] -= self.courant * (self.E[:, 1:] - self.E[:, :-1])
        self.H[1, :-1, :] += self.courant * (self.E[1:, :] - self.E[:-1, :])
        curl = bd.zeros(self.E.shape)
        curl[1:-1, 1:-1] += self.H[1, 1:-1, 1:-1] - self.H[1, :-2, 1:-1]
        curl[1:-1, 1:-1] -= self.H[0, 1:-1, 1:-1] - self.H[0, 1:-1, :-2]
        self.E += self.courant * self.inverse * curl
        self.E[4, 3:6] += 1e-1 * bd.exp(-((self.passed - 12.0) ** 2) / 20.0)
        self.passed += 1


def slab(permittivity, courant, n, steps):
    wave = Wave((n, n), courant, bd.array([1.0]))
    wave.inverse[n // 2 : n // 2 + 3, :] = 1.0 / permittivity
    seen = []
    for _ in range(steps):
        wave.update()
        seen.append(wave.E[-4, n // 2])
    return 100.0 * np.sum(bd.array(seen) ** 2) + np.sum(wave.E**2)


def _pair(a, b):
    return lambda *size: (a, b, *size)


SERVICES = (
    Wild(repairs, _pair(0.83, 0.6), (4, 12), (6, 60), step=1e-5),
    Wild(league, _pair(25.0, 1.3), (4, 6), (8, 40), step=1e-5),
    Wild(ensemble, _pair(0.3, 1.5), (6, 4), (12, 12), step=1e-6),
    Wild(slab, _pair(2.5, 0.6), (14, 40), (60, 300), step=1e-4),
)
