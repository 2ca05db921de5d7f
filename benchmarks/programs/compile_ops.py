"""A program for `latency`: seconds to compile straight-line tapes of scalar ops.

Arguments: the sizes in a JSON list, the engine, the number of tapes per size, a number that makes
the tapes new ones. Compiling is what a first call takes longer than `ckad.trace`, which records and
simplifies a function like it and does not compile.
"""

import json
import sys
import time
from statistics import median

import numpy as np

import ckad

sizes, engine = json.loads(sys.argv[1]), sys.argv[2]
rounds, seed = int(sys.argv[3]), float(sys.argv[4])


def chain(n_ops, constant):
    """Four ops in each round, none of which can be left out or shared."""

    def function(x, y):
        for k in range(n_ops // 4):
            x, y = y, np.sin(x) * constant + y * (0.5 + 1e-6 * k)
        return x + y

    return function


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def first_and_record_seconds(n_ops, constant):
    """The second function has another constant, so that nothing can be known of it."""
    run = ckad.jit(chain(n_ops, constant), engine=engine)
    record = ckad.trace(chain(n_ops, constant + 1e-4))
    return seconds(lambda: run(0.3, 0.7)), seconds(lambda: record(0.3, 0.7))


first_and_record_seconds(8, 0.1 + 1e-12 * seed)
points = []
for n_ops in sizes:
    constants = [0.2 + 1e-3 * k + 1e-12 * seed for k in range(rounds)]
    pairs = [first_and_record_seconds(n_ops, constant) for constant in constants]
    points.append(
        {
            "n_ops": n_ops // 4 * 4 + 1,
            "seconds": median(first - record for first, record in pairs),
            "record_seconds": median(record for _, record in pairs),
        }
    )
print(json.dumps({"points": points}))
