"""Python's own habits around arrays: objects, generators, tools for iteration, recursion."""

import functools
import itertools
import math

import numpy as np


class Rod:
    """A heated rod that keeps its own state."""

    def __init__(self, u, conductivity):
        self.u = u.copy()
        self.conductivity = conductivity
        self.time = 0.0
        self.heat = 0.0

    def flux(self):
        return self.conductivity * np.diff(self.u)

    def step(self, dt):
        q = self.flux()
        self.u[1:-1] += dt * (q[1:] - q[:-1])
        self.time += dt
        self.heat = self.heat + self.time * np.sum(self.u**2)


def object_with_state(u, conductivity, steps=8):
    rod = Rod(u, conductivity)
    for _ in range(steps):
        rod.step(0.1)
    return rod.u, rod.heat


def functions_of_math(x):
    total = 0.0
    for i in range(len(x)):
        total += math.sin(x[i]) * math.exp(-(x[i] ** 2)) + math.hypot(x[i], 1.0)
        total += math.atan2(x[i], 2.0) * math.pi
    return total


def generator_of_terms(x):
    def terms():
        power = 1.0
        for k in range(6):
            yield power / math.factorial(k)
            power = power * x

    return sum(terms())


def tools_for_iteration(x):
    total = 0.0
    for i, j in itertools.product(range(len(x)), range(3)):
        total += x[i] * x[j] * (i - j)
    for a, b in itertools.pairwise(x):
        total += (b - a) ** 2
    for partial in itertools.accumulate(x):
        total += 0.1 * partial
    return total + functools.reduce(lambda a, b: 0.5 * a + b * b, x)


def indices_of_arrays(A):
    total = 0.0
    for i, j in np.ndindex(A.shape):
        if i < j:
            total += A[i, j] * A[j, i]
    for (i, j), value in np.ndenumerate(A):
        total += (i + 2 * j) * value**2
    for value in A.flat:
        total += np.sin(value)
    return total


def results_by_name(x):
    results = {}
    for name in ("sin", "cos", "tanh"):
        results[name] = getattr(np, name)(x)
    for k in range(3):
        results[k] = x * k
    return sum(np.sum(v) * (1 + len(str(key))) for key, v in results.items())


def buffers_in_a_list(x, steps=5):
    buffers = [x.copy(), np.zeros_like(x)]
    for i in range(steps):
        source, target = buffers[i % 2], buffers[1 - i % 2]
        target[:] = 0.5 * source + 0.1 * np.roll(source, 1) ** 2
    return buffers


def slices_with_names(u, steps=6):
    core, left, right = slice(1, -1), np.s_[:-2], np.s_[2:]
    for _ in range(steps):
        u[core] = 0.5 * u[core] + 0.1 * u[right] * u[left]
    first, *middle, last = u
    return first * last + sum(middle)


def recursion_on_values(x, depth=4):
    """Which way it goes is decided by the numbers, how deep by Python."""
    if depth == 0:
        return x
    if x > 0:
        return recursion_on_values(x * x - 0.4, depth - 1)
    return recursion_on_values(0.3 - x, depth - 1)


def closures_in_a_list(x):
    early = [lambda v, k=k: k * v for k in range(4)]
    late = [lambda v: k * v for k in range(4)]  # noqa: B023 (all see the last k)
    return sum(f(x[i]) ** 2 for i, f in enumerate(early)) + sum(f(x[0]) for f in late)


def largest_first(x, steps=5):
    """Relaxes whichever residual is largest."""
    for _ in range(steps):
        k = np.argmax(np.abs(x))
        x[k] *= 0.3
        x[k - 1] += 0.1 * x[k]
    return x


def index_from_a_value(x, table):
    total = 0.0
    for i in range(len(x)):
        place = x[i] * (len(table) - 1)
        cell = min(int(place), len(table) - 2)
        weight = place - cell
        total += (1 - weight) * table[cell] + weight * table[cell + 1]
    return total


def work_list(x):
    """Which elements are worked on is known without the numbers."""
    todo = [0, 3]
    total = 0.0
    while todo:
        k = todo.pop()
        total += x[k] ** 2 * (1 + len(todo))
        if k < 2:
            todo.append(k + 1)
    return total


def asks_for_types(x, scale):
    if isinstance(scale, (int, float)):
        scale = np.full(3, scale)
    if not isinstance(x, np.ndarray):
        raise TypeError("an array, please")
    total = 0.0
    for i in range(3):
        value = x[i]
        if np.isscalar(value) and isinstance(value, float):
            total += value * scale[i]
    return total


def time_until(x, rate):
    """Steps of a float that is not traced: their number is known."""
    t = 0.0
    while t < 1.0:
        x = x + 0.05 * np.sin(rate * t) * x
        t += 0.05
    for s in np.linspace(0, 1, 5):
        x = x + 0.1 * s * np.cos(s * x)
    return x * t
