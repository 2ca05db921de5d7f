"""Sums of products of elements as matrix products: which are, and that they stay what they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ckad
from ckad.passes.simplify import simplify
from ckad.passes.vectorise.products import products
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.verify import verify

RANDOM = np.random.default_rng(3)
X, W = RANDOM.normal(size=(12, 9)), RANDOM.normal(size=(9, 11))
IMAGES, FILTERS = RANDOM.normal(size=(2, 7, 8, 3)), RANDOM.normal(size=(3, 2, 3, 5))


def convolved(x, w):
    out = np.empty((2, 5, 7, 5))
    for i in range(5):
        for j in range(7):
            out[:, i, j, :] = np.sum(
                x[:, i : i + 3, j : j + 2, :, np.newaxis] * w[np.newaxis], axis=(1, 2, 3)
            )
    return out


def in_a_branch(x, w):
    if np.sum(x) > 100:
        return np.sum(x[:, :, None] * w, axis=1)
    return np.sum(x[:, :, None] * (2 * w), axis=1) + 1


def while_with_break(x, w):
    n, y = 0, x
    while n < 9:
        y = np.tanh(np.sum(y[:, :, None] * (w @ w.T), axis=1))
        n += 1
        if np.sum(y * y) < 1.0:
            break
    return y


def twice(x, w):
    total = np.zeros((12, 11))
    for k in range(4):
        total += np.sum(x[:, :, None] * w, axis=1) * k
        total -= np.sum((x + k)[:, :, None] * np.sin(w), axis=1)
    return total


CONTRACTED: dict[str, tuple[Callable, np.ndarray, np.ndarray]] = {
    "rows by columns": (lambda x, w: np.sum(x[:, :, None] * w[None], axis=1), X, W),
    "without None": (lambda x, w: (x[:, :, None] * w).sum(axis=1), X, W),
    "keepdims": (lambda x, w: np.sum(x[:, :, None] * w, axis=1, keepdims=True), X, W),
    "columns first": (lambda x, w: np.sum(w.T[:, None, :] * x[None], axis=2), X, W),
    "summed first": (lambda x, w: np.sum(x.T[:, :, None] * w[:, None, :], axis=0), X, W),
    "summed last": (lambda x, w: np.sum(x[:, None, :] * w.T[None], axis=-1), X, W),
    "mean": (lambda x, w: np.mean(x[:, :, None] * w, axis=1), X, W),
    "a stack": (
        lambda x, w: np.sum(x[:, :, :, None] * w[:, :, None, :], axis=1),
        RANDOM.normal(size=(12, 9, 4)),
        RANDOM.normal(size=(12, 9, 7)),
    ),
    "two axes summed": (
        lambda x, w: np.sum(x[:, None] * w[None], axis=(2, 3)),
        RANDOM.normal(size=(6, 4, 5)),
        RANDOM.normal(size=(7, 4, 5)),
    ),
    "rows around columns": (
        lambda x, w: np.sum(x[:, :, None, :] * w[None, :, :, None], axis=1),
        RANDOM.normal(size=(6, 9, 5)),
        RANDOM.normal(size=(9, 7)),
    ),
    "a window": (
        lambda x, w: np.sum(x[:, :3, 2:4, :, None] * w[None], axis=(1, 2, 3)),
        np.concatenate([IMAGES] * 4),
        np.concatenate([FILTERS] * 2, axis=-1),
    ),
    "a convolution": (convolved, IMAGES, FILTERS),
    "a branch": (in_a_branch, X, W),
    "while with break": (while_with_break, X, W),
    "twice in a loop": (twice, X, W),
}
#: Nothing is summed that both have, or nothing is left of one of them.
OTHERS: dict[str, tuple[Callable, np.ndarray, np.ndarray]] = {
    "all is summed": (lambda x, w: np.sum(x * w), X, X),
    "a row each": (lambda x, w: np.sum(x * w, axis=1), np.tile(X, (9, 1)), np.tile(X, (9, 1))),
    "an axis of one": (lambda x, w: np.sum(x[:, :, None] * w, axis=2), X, W),
    "integers": (
        lambda x, w: np.sum(x[:, :, None] * w, axis=1),
        (X * 9).astype(int),
        W.astype(int),
    ),
    "few": (lambda x, w: np.sum(x[:, :, None] * w, axis=1), X[:2, :3], W[:3, :4]),
}


def ops(tape: Tape) -> Iterator[Op]:
    yield from (row.op for row in tape.rows)
    for body in tape.bodies:
        yield from ops(body)


@pytest.mark.parametrize("name", CONTRACTED)
def test_a_sum_of_products_is_a_matrix_product(name: str) -> None:
    f, x, w = CONTRACTED[name]
    tape = ckad.trace(f)(x, w)
    verify(products(tape))
    assert Op.MATMUL in set(ops(tape))
    for engine in ("vm", "native"):
        np.testing.assert_allclose(
            ckad.jit(f, engine=engine)(x, w), f(x, w), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("name", CONTRACTED)
def test_its_derivatives_are_right(name: str) -> None:
    f, x, w = CONTRACTED[name]
    ckad.testing.check_grads(lambda x, w: np.sum(np.sin(f(x, w))), (x, w), modes=("fwd", "rev"))


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_stay(name: str) -> None:
    f, x, w = OTHERS[name]
    assert Op.MATMUL not in set(ops(ckad.trace(f)(x, w)))
    np.testing.assert_allclose(ckad.jit(f)(x, w), f(x, w), rtol=1e-12)


def test_bits_stay_under_a_budget() -> None:
    def f(x, w):
        for _ in range(60):
            x = np.cos(np.sum(x[:, :, None] * (w @ w.T)[None], axis=1))
        return np.sum(x)

    plain = ckad.value_and_grad(f, (0, 1))(X, W)
    tight = ckad.value_and_grad(f, (0, 1), memory="40 KB")(X, W)
    for a, b in zip(plain[1], tight[1], strict=True):
        assert a.tobytes() == b.tobytes()


def reflected(a, s):
    for k in range(a.shape[1] - 1):
        v = a[k:, k] / np.sqrt(a[k:, k] @ a[k:, k])
        a[k:, k:] -= s * np.outer(v, v @ a[k:, k:])
    return np.sum(a**3)


def eliminated(a, s):
    for k in range(a.shape[1] - 1):
        a[k + 1 :, k:] -= np.outer(a[k + 1 :, k], a[k, k:]) * 0.1 / s
    return np.sum(a**3)


def rows_alone(a, s):
    for k in range(1, a.shape[0]):
        a[:k] -= 0.1 * np.outer(np.sin(a[:k, 0]) * s, a[k])
    return np.sum(a**3)


@pytest.mark.parametrize("fun", [reflected, eliminated, rows_alone])
def test_a_number_beside_an_outer_product_leaves_the_part_of_a_matrix_one(fun) -> None:
    a, s = RANDOM.normal(size=(41, 33)) / 6, np.array(1.3)
    tape = ckad.grad(fun, (0, 1)).compiled(a, s).tape
    reverse = tape.bodies[-1]
    whole = {k for k, row in enumerate(reverse.rows) if row.type.size >= a.size}
    summed = [row for row in reverse.rows if row.op is Op.SUM and whole & set(row.operands)]
    assert [row for row in summed if row.type.shape] == []
    assert sum(row.op is Op.MATMUL for row in reverse.rows) >= 2
    gradients = [ckad.grad(fun, (0, 1), engine=engine)(a, s) for engine in ("vm", "native")]
    for x, y in zip(*gradients, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    ckad.testing.check_grads(fun, (a, s), order=1)


ELEMENTWISE = (Op.MUL, Op.DIV, Op.NEG)
LARGE = np.random.default_rng(5).normal(size=(90, 70))
SIDES = {"rows": np.linspace(0.5, 1.0, 70), "columns": np.linspace(0.5, 1.0, 90)}
OF_VECTORS = {
    "along rows": ("rows", lambda m, v: np.sum(m * v, axis=1)),
    "along columns": ("columns", lambda m, v: np.sum(m * v[:, None], axis=0)),
    "negated": ("columns", lambda m, v: -np.sum(v[:, None] * m, axis=0)),
    "scaled": ("rows", lambda m, v: 1.5 * m @ v),
    "divided": ("columns", lambda m, v: v @ (m / 3.0)),
    "scaled by an element": ("rows", lambda m, v: (m * v[0]) @ v),
    "scaled columns": ("columns", lambda m, v: (2.0 * m).T @ np.stack([v, v * v], axis=1)),
}


@pytest.mark.parametrize("name", OF_VECTORS)
def test_a_large_matrix_by_a_vector_is_read_as_it_lies(name):
    side, function = OF_VECTORS[name]
    args = LARGE, SIDES[side]
    rows = simplify(ckad.trace(function)(*args)).rows
    assert Op.MATMUL in [row.op for row in rows]
    assert [row for row in rows if row.type.size == LARGE.size and row.op in ELEMENTWISE] == []
    found = [ckad.jit(function, engine=e)(*args) for e in ("vm", "native")]
    for each in found:
        np.testing.assert_allclose(each, function(*args), rtol=1e-12, atol=1e-12)
    ckad.testing.check_grads(function, args, order=2, engine="vm")


def test_a_scaled_matrix_that_is_read_elsewhere_is_laid_out():
    def both(m, v):
        scaled = 2.0 * m
        return scaled @ v + np.sum(scaled, axis=1)

    rows = simplify(ckad.trace(both)(LARGE, SIDES["rows"])).rows
    assert [row.op for row in rows if row.type.size == LARGE.size].count(Op.MUL) == 1
    np.testing.assert_allclose(
        ckad.jit(both)(LARGE, SIDES["rows"]), both(LARGE, SIDES["rows"]), rtol=1e-12
    )


@pytest.mark.parametrize("shape", [(90, 8), (30, 30)])
def test_small_or_narrow_matrices_stay_sums(shape):
    m, v = np.ones(shape), np.ones(shape[1])
    rows = ckad.trace(lambda m, v: np.sum(m * v, axis=1))(m, v).rows
    assert Op.MATMUL not in [row.op for row in rows]
