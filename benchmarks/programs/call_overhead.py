"""A program for `latency`: seconds of one call of the gradient of a scalar function of 3 variables.

Arguments: the engine, the number of timings, the calls in each.
"""

import json
import sys
import time
from statistics import median

import numpy as np

import ckad

engine, rounds, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
gradient = ckad.value_and_grad(lambda x, y, z: x * y + np.sin(z), argnums=(0, 1, 2), engine=engine)


def seconds():
    start = time.perf_counter()
    for _ in range(calls):
        gradient(0.3, 0.7, 1.1)
    return (time.perf_counter() - start) / calls


seconds()
turns = [seconds() for _ in range(rounds)]
print(json.dumps({"seconds": median(turns), "turns": turns}))
