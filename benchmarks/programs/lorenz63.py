"""A user's program for `latency`: the gradient of 10,000 RK4 steps of Lorenz's equations.

Arguments: a number that makes the program a new one, and the engine.
"""

import json
import sys
import time

start = time.perf_counter()
import numpy as np  # noqa: E402  (the imports are timed)

import ckad  # noqa: E402

imported = time.perf_counter()
STEP = 1e-3 * (1 + 1e-9 * float(sys.argv[1]))


def velocity(u, p):
    return p[0] * (u[1] - u[0]), u[0] * (p[1] - u[2]) - u[1], u[0] * u[1] - p[2] * u[2]


def moved(u, h, k):
    return tuple(x + h * slope for x, slope in zip(u, k, strict=True))


def loss(start, p):
    def step(i, u):
        k1 = velocity(u, p)
        k2 = velocity(moved(u, STEP / 2, k1), p)
        k3 = velocity(moved(u, STEP / 2, k2), p)
        k4 = velocity(moved(u, STEP, k3), p)
        mean = tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        return moved(u, STEP / 6, mean)

    x, y, z = ckad.fori_loop(0, 10_000, step, (start[0], start[1], start[2]))
    return x * x + y * y + z * z


gradient = ckad.value_and_grad(loss, argnums=(0, 1), engine=sys.argv[2])
arguments = np.array([1.0, 1.0, 1.0]), np.array([10.0, 28.0, 8.0 / 3.0])
gradient(*arguments)
first = time.perf_counter()
finished = time.time()
gradient(*arguments)
second = time.perf_counter()
print(
    json.dumps(
        {
            "finished": finished,
            "import_seconds": imported - start,
            "first_seconds": first - imported,
            "second_seconds": second - first,
        }
    )
)
