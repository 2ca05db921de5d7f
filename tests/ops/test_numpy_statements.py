"""Statements that write into arrays: what they leave in all arrays is what NumPy leaves."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

from .numpy_traced import assert_same
from .test_numpy_semantics import DTYPES, numbers

SHAPES = [(5,), (4, 4), (2, 3, 4), (0,)]

STATEMENTS = """
y = np.zeros_like(x); np.add(x, 1, out=y, where=x > 0)
y = np.zeros_like(x); np.divide(x, 2, out=y[...], casting="unsafe")
y = np.ones_like(x, dtype=float); np.sqrt(x * 1.0, out=y, where=x > 0)
y = np.ones_like(x, dtype=float); np.log(abs(x) * 1.0, out=y, where=x != 0)
y = np.add(x, 1, dtype=np.float32)
y = np.add(x[1:], x[:-1], out=x[1:])
x[1:] = x[:-1]
x[:-1] = x[1:]
x[:] = x[::-1]
x[::-1] = x
x[...] = x.T
x[1:] += x[:-1]
np.copyto(x[1:], x[:-1])
np.subtract(x[::-1], x, out=x)
x += 1; x[1:] -= 2; x *= x
x **= 2
x //= 2
x %= 3
x /= 2
x += 0.5
x @= np.ones((x.shape[-1], x.shape[-1]), x.dtype)
y = np.ones_like(x); q, r = np.divmod(x, 2, out=(y, None))
q, r = x.copy(), x.copy(); np.modf(x, out=(q, r))
np.multiply.at(x, [0, 1, 0], 2)
np.maximum.at(x, np.array([0, 1, 0]), x[0])
np.negative.at(x, [0, 1, 0])
np.add.at(x, [0, 1, 0], 2)
np.add.at(x, [0, 0, 1], -0.6); np.subtract.at(x, [0, 1, 1], 0.3)
np.subtract.at(x, [0, 1, 0], True)
x.flat = 2; x.flat = [1, 2, 3]
np.maximum(x, 1, out=x); np.clip(x, 0, 2, out=x)
np.add.reduce(x, out=x[0, ...])
np.cumsum(x, axis=0, out=x)
x.flat[2] = 7; x.flat[-1] = 3
x.flat[...] = 2
x.flat = np.arange(x.size)
x.T.flat[::2] = [1, 2]
x.T.flat = 4
y = x.flat[::-1]; y[:] = 0
x.sort()
x.sort(axis=0)
y = x.view(); y[...] = 1
x.fill(3)
y = x.copy(); y.T[0] = 1; z = y.T.T
y = x.ravel(); y[:2] = 9
y = x.reshape(-1, 1); y[1:] = 8
x[x > 1] = 0
x[x < 0] *= 2
x[..., 0] = x[..., 1] = 4
y = z = x; y[0] = 5
y = x; x = x + 1; y[0] = 5
y = x[1:]; x = y[::-1]; x[0] = 7
np.put(x, [0, 2, -1], [1, 2]); x.put([1], 5)
np.put(x, [7, 9], 3, mode="wrap"); np.put(x, [70, -9], 3, mode="clip")
np.putmask(x, x > 1, [1, 2, 3]); np.putmask(x, x > 0, 0)
np.place(x, x > 0, [1, 2, 3])
np.fill_diagonal(x, 5)
np.put_along_axis(x, np.argmax(x, 0, keepdims=True), 9, 0)
y = np.zeros(x.shape[0]); y[:] = 3; y[0] += 1
y = np.zeros(x.shape[0], np.float32); y[:] = 0.1; z = y + 1.0; w = y * np.float64(2)
y = np.lib.stride_tricks.sliding_window_view(x, 2, axis=0); x[1:] += 1
y = np.partition(x, 2, axis=-1)[..., 2]
y = np.choose(x.astype(int), [x, x + 1], mode="clip")
""".strip().splitlines()

ON_INTEGERS = """
y = x << 2; z = x >> 1; w = 2 ** abs(x); v = x ** abs(x); t = 1 << abs(x)
y = x & 3; z = x | 4; w = x ^ 7; v = ~x; u = (-1) ** abs(x)
x <<= 1; x |= 1; x //= 3; x %= 4
y = x // 2; z = x % -3; w = divmod(x, 2); v = np.bitwise_or.reduce(x); u = x / 2
""".strip().splitlines()


def function_of(statements: str):
    lines = [f"    {line}" for line in statements.split("; ")]
    scope: dict = {"np": np}
    exec("\n".join(["def f(x):", *lines, "    return locals()"]), scope)
    return lambda x: dict(scope["f"](x))


@pytest.mark.parametrize("statements", STATEMENTS)
def test_statements_leave_what_numpy_leaves(statements):
    for dtype in DTYPES.values():
        for shape in SHAPES:
            assert_same(function_of(statements), numbers(shape, dtype))


@pytest.mark.parametrize("statements", ON_INTEGERS)
def test_statements_on_integers(statements):
    for shape in SHAPES:
        assert_same(function_of(statements), numbers(shape, np.int64))


@pytest.mark.parametrize("statements", STATEMENTS)
def test_statements_on_views(statements):
    def on_part(x):
        part = x[..., 1:]
        kept = function_of(statements)(part)
        return kept, x

    for shape in [(6,), (4, 5), (2, 3, 4)]:
        assert_same(on_part, numbers(shape, np.float64))


def test_what_is_not_computed_has_no_derivative():
    """Where ``where=`` is false an infinite derivative must not spoil the others."""

    def f(x):
        ratio = np.divide(1.0, x, out=np.zeros_like(x), where=x != 0)
        return np.sum(ratio + np.sqrt(x, out=np.ones_like(x), where=x > 0))

    x = np.array([0.0, 2.0, 4.0])
    np.testing.assert_allclose(ckad.grad(f)(x), [0.0, -0.25 + 0.5**1.5, -0.0625 + 0.25], rtol=1e-14)
