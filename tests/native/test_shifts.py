"""Parts that lie at other places than what they meet: copies and sums of what lies together."""

import numpy as np
import pytest

import ckad
from ckad.engines import native
from ckad.engines.native.nests.shifts import shifts
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.types import DType, Type

N = 203


def convolved(x, y):
    """Parts of either array against parts at the other end."""
    total = 0.0
    for k in range(1, N):
        total += np.sin(x[:k] @ y[N - k :]) + 0.1 * np.sum(x[k:] * y[: N - k] ** 2)
    return total


def levinson(x, y):
    """Reversed parts, of an array that is changed meanwhile."""
    y = 0.1 * y
    for k in range(1, N):
        y[:k] += 0.01 * np.flip(y[:k]) * (np.flip(x[:k]) @ y[:k])
        y[k:] -= 0.02 * y[: N - k]
    return np.sum(y * y)


def rows_moved(x, y):
    """Rows of a matrix; the matrix has fewer places than it is moved by."""
    a, b = x[:200].reshape(20, 10), y[:200].reshape(20, 10)
    total = 0.0
    for k in range(1, 20):
        total += np.sum(a[:k] * b[20 - k :] ** 2) + np.sum(a[k:, 0] * b[: 20 - k, 1])
    return total


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("program", [convolved, levinson, rows_moved], ids=lambda f: f.__name__)
def test_values_and_gradients(program, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=N).astype(dtype) for _ in range(2))
    exact = dtype is np.float64
    tolerance = 1e-11 if exact else 2e-3
    found = {}
    for engine in ("vm", "native"):
        value, gradients = ckad.value_and_grad(program, (0, 1), engine=engine)(x, y)
        assert np.isclose(value, program(x, y), rtol=tolerance)
        found[engine] = gradients
    for one, other in zip(*found.values(), strict=True):
        assert np.allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(one).max())
    if exact:
        direction = rng.normal(size=N)
        ends = (program(x, y + s * 1e-6 * direction) for s in (1, -1))
        slope = np.subtract(*ends) / 2e-6
        assert np.isclose(found["native"][1] @ direction, slope, rtol=1e-6)


@pytest.mark.parametrize("schedule", ["revolve", "two_level"])
def test_bits_do_not_depend_on_the_schedule(schedule):
    x, y = np.random.default_rng(1).normal(size=(2, N))
    first = ckad.grad(levinson, (0, 1), engine="native", schedule="store_all")(x, y)
    second = ckad.grad(levinson, (0, 1), engine="native", schedule=schedule)(x, y)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("op", [Op.GATHER, Op.SCATTER_ADD])
@pytest.mark.parametrize(
    ("n", "m", "inner"), [(150, 150, 1), (90, 201, 1), (201, 90, 1), (99, 150, 1), (80, 141, 5)]
)
def test_indices_beyond_either_end_are_clipped(op, n, m, inner):
    b = Builder()
    large, part = (Type(DType.F64, (k, inner)[: 1 + (inner > 1)]) for k in (n, m))
    x, s = b.input(large), b.input(Type(DType.I64, ()))
    y = b.input(part)
    places = b.const(np.arange(m))
    moved = b.sub(places, b.broadcast_to(s, (m,)))
    index = b.minimum(b.full_like(places, n - 1), b.maximum(b.full_like(places, 0), moved))
    if op is Op.GATHER:
        tape = b.tape([b.gather(x, index, attrs=(0,)), b.add(y, y)])
    else:
        tape = b.tape([b.scatter_add(x, index, y, attrs=(0,))])
    assert len(shifts(tape)) == 1
    rng = np.random.default_rng(2)
    for shift in (0, 1, -1, 7, -13, m, -n, 10 * m, -(2**62), 2**62):
        given = rng.normal(size=large.shape), np.int64(shift), rng.normal(size=part.shape)
        (found, *_), (expected, *_) = native.run(tape, *given), evaluate(tape, *given)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("last", [N - 1, N - 3])
def test_indices_that_the_user_clips(last):
    x, y = np.random.default_rng(4).uniform(size=(2, N))

    def f(x, y, k):
        for _ in range(5):
            x = 0.5 * x + y * x[np.clip(np.arange(N) + k, 0, last)]
            k = (7 * k + 3) % (2 * N) - N
        return np.sum(x)

    value, gradient = ckad.value_and_grad(f, engine="native")(x, y, 150)
    assert np.isclose(value, f(x, y, 150), rtol=1e-13)
    assert np.allclose(gradient, ckad.grad(f, engine="vm")(x, y, 150), rtol=1e-12)


def test_reversed_rows():
    x = np.random.default_rng(3).normal(size=(5, 77))

    def f(x):
        y = x[:, ::-1] * np.linspace(0, 1, 77)
        y[:, 70::-1] += x[:, 3:74]
        return np.sum(y**3) + np.sum(np.flip(x[0]) * x[1] ** 2)

    value, gradient = ckad.value_and_grad(f, engine="native")(x)
    assert np.isclose(value, f(x), rtol=1e-13)
    assert np.allclose(gradient, ckad.grad(f, engine="vm")(x), rtol=1e-12, atol=1e-13)
