"""Kernels that ``ckad.machine`` translates compute what Python does, to the bit."""

from __future__ import annotations

import cmath
import ctypes
import math
from typing import NamedTuple

import numpy as np
import pytest

from ckad.kernel import interpreted, kernel
from ckad.machine.compiler import Compiler
from ckad.machine.functions import translated
from ckad.machine.values import Unknown
from ckad.rules.routines.memory import doubles, integers
from ckad.tape.routines import ROUTINES

TABLE = np.array([[1.5, 2.5], [3.5, 4.5]])


class Pair(NamedTuple):
    first: int
    second: float


@kernel
def quotients(a, x, out):
    at = 0
    for i in range(6):
        for j in range(6):
            out[at] = a[i] // a[j] + 1000 * (a[i] % a[j])
            at += 1
    out[at] = a[0] / a[1]
    out[at + 1] = -7 // 2 + -7 % 3


@kernel
def widened(a, x, out):
    total, found = 0, a[2]
    for k in range(len(x) - 1, -1, -2):
        total += x[k]
        if x[k] > found:
            found = x[k]
    out[0], out[1] = total, found
    out[2] = out[3] = min(a[0], x[0])
    out[4] = max(a[0], a[1], 3)
    out[5] = k


@kernel
def put(x):
    x[6] = 100.0
    for k in range(2):
        x[6] += k
    return x[6]


@kernel
def parts(a, x, out):
    x[6] += put(x)
    out[6], out[7] = x[6], put(x)
    out[-1] = x[-2]
    y = x[2:]
    out[:3] = 7.0
    out[3] = len(y) + len(x[5:2]) + len(x[: a[0]]) + len(x[-3:])
    y[0] += y[-1]
    z = x[:4].reshape(2, 2)
    z[1, 0] = z[0, 1] * TABLE[a[4], 1]
    out[4], out[5] = z[1][0], len(z)


@kernel
def first_over(x, least):
    for k in range(len(x)):
        if x[k] < 0.0:
            continue
        if x[k] > least:
            return Pair(k, x[k])
    return Pair(-1, 0)


@kernel
def course(a, x, out):
    k = 0
    while True:
        k += 1
        if (k % 2 == 0 and k > a[4]) or k in (a[3], 9):
            break
    found = first_over(x, 0.5)
    out[0], out[1], out[2] = k, found.first, found.second
    out[3] = first_over(x, 1e9).first
    out[4] = 1.0 if not a[4] else 2.0
    steps = 0
    for i in range(0, 7, a[3]) if a[3] > 0 else range(2):
        steps = 10 * steps + i
    for weight, power in ((2, 0.5), (3, 2.0)):
        steps += weight * power
    out[5] = steps
    out[6] = (a[0] << 2) + (a[0] >> 1) + (a[0] & 3) - (a[0] ^ 5)
    out[7] = 1.0 < x[3] <= 3.0


@kernel
def functions(a, x, out):
    out[0], out[1] = math.sqrt(x[0]), abs(x[2])
    out[2], out[3] = abs(a[0]), int(x[1] * 10)
    out[4] = 2.0 ** -a[3]
    out[5], out[6] = np.ceil(x[0]), math.hypot(x[0], x[1])


@kernel
def written(out, at, z):
    out[at], out[at + 1] = z.real, z.imag
    return at + 2


@kernel
def complex_numbers(a, x, out):
    z = complex(x[0], x[1])
    at, total = 0, 1
    for w in (complex(x[2], x[3]), 1j * x[7], 2.0 - 3.0j, complex(x[0], a[3])):
        at = written(out, at, z * w - w / z + w / 3 + 2)
        at = written(out, at, -w.conjugate() * cmath.sinh(w))
        at = written(out, at, cmath.exp(np.conj(w) if w != 0 and w == w else 0j))
        total *= w
    at = written(out, at, cmath.exp(complex(-np.inf, x[1])))
    at = written(out, at, cmath.exp(complex(np.inf, 0.0)))
    z -= total
    out[at], out[at + 1] = abs(z), np.conj(x[1]) + x[1].imag


KERNELS = [quotients, widened, parts, course, functions, complex_numbers]


def run(source, *arrays):
    def body(words, arrays, work):
        source(integers(words, 8), doubles(arrays, 8), doubles(work, 64))
        return 3

    library = Compiler(_Nowhere()).library(b"test", lambda: translated(body, "routine"))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(library.address("routine"))
    assert function(*(x.ctypes.data for x in arrays)) == 3


class _Nowhere:
    """A cache that keeps nothing."""

    def directory(self, *facts):
        return None


@pytest.mark.parametrize("source", KERNELS, ids=lambda x: x.py_func.__name__)
@pytest.mark.parametrize("first", [-7, 5])
def test_the_bits_of_python(source, first):
    arrays = (
        np.array([first, 3, -2, 2, 1, 0, 4, -3]),
        np.array([0.25, 0.75, -1.5, 3.0, 1e-3, 2.5, -0.0, 8.0]),
        np.zeros(64),
    )
    wanted = tuple(x.copy() for x in arrays)
    with np.errstate(all="ignore"):
        interpreted(source)(*wanted)
    run(source, *arrays)
    for x, y in zip(arrays, wanted, strict=True):
        assert x.tobytes() == y.tobytes()


@kernel
def of_two_types(a, x, out):
    y = x
    y = 2.0
    out[0] = y


@kernel
def an_integer_or(a, x, out):
    out[0] = a[0] or a[1]


@kernel
def a_step(a, x, out):
    out[0] = len(x[::2])


@pytest.mark.parametrize("source", [of_two_types, an_integer_or, a_step])
def test_what_is_not_translated_is_left_to_numba(source):
    with pytest.raises(Unknown):
        run(source, np.zeros(8, np.int64), np.zeros(8), np.zeros(64))


def test_no_routine_is_compiled_by_numba():
    left = set()
    for routine in ROUTINES:
        is_users = "#" in routine.name  # a primitive that another test has made
        if routine.compiled is None or routine.name == "fourier" or is_users:
            continue
        address = routine.compiled.address.__wrapped__
        source = dict(zip(address.__code__.co_freevars, address.__closure__, strict=True))[
            "function"
        ]
        try:
            translated(source.cell_contents, "routine")
        except Unknown:
            left.add(routine.name)
    assert not left
