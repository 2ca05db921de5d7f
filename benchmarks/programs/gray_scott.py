"""A user's program for `latency`: the gradient of 100 steps of Gray and Scott's reaction.

Arguments: a number that makes the program a new one, and the engine.
"""

import json
import sys
import time

start = time.perf_counter()
import numpy as np  # noqa: E402  (the imports are timed)

import ckad  # noqa: E402

imported = time.perf_counter()
DIFFUSION = 0.16 * (1 + 1e-9 * float(sys.argv[1]))


def laplacian(w):
    return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4 * w


def loss(u, v, feed, kill):
    def step(i, state):
        u, v = state
        reaction = u * v * v
        return (
            u + DIFFUSION * laplacian(u) - reaction + feed * (1 - u),
            v + DIFFUSION / 2 * laplacian(v) + reaction - (feed + kill) * v,
        )

    u, v = ckad.fori_loop(0, 100, step, (u, v))
    return np.sum((v - 0.2) ** 2)


noise = np.random.default_rng(0).uniform(size=(2, 128, 128))
gradient = ckad.value_and_grad(loss, argnums=(0, 1, 2, 3), engine=sys.argv[2])
arguments = 1 - 0.5 * noise[0], 0.25 * noise[1], 0.04, 0.06
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
