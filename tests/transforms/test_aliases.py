"""Arguments that share memory in NumPy, or lie in an unusual order."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError

pytestmark = pytest.mark.usefixtures("engine")

X = np.array([2.0, 3.0, 5.0, 7.0])


def writes(a, b):
    a[0] = 1.0
    return np.sum(a * b)


@pytest.mark.parametrize("pair", [(X, X), (X[:3], X[1:]), (X[::2], X[1::2]), (X, X[::-1])])
def test_a_write_to_arguments_that_share_memory_is_refused(pair):
    with pytest.raises(AliasError, match=r"test_aliases.py:\d+: .*another argument.*\.copy\(\)"):
        ckad.grad(writes)(*pair)


def test_arguments_that_share_memory_can_be_read():
    value, (ga, gb) = ckad.value_and_grad(lambda a, b: np.sum(a * b), argnums=(0, 1))(X, X)
    assert value == np.sum(X * X)
    np.testing.assert_array_equal(ga, X)
    np.testing.assert_array_equal(gb, X)


def counted(p, q):
    n = len(range(int(p[1])))
    q[0] = 0
    return n + 10 * int(p[0]) + 100 * p[-1]


VIEWS = {
    "the same": lambda x: (x, x),
    "a part": lambda x: (x, x[:3]),
    "backwards": lambda x: (x, x[::-1]),
    "a chain": lambda x: (x[:2], x[1:]),
    "columns": lambda x: (x.reshape(2, 2)[:, 0], x.reshape(2, 2).T[0]),
    "in one buffer": lambda x: (np.frombuffer(x.data, x.dtype), np.frombuffer(x.data, x.dtype)),
}


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("dtype", [np.int64, bool, np.int32, np.uint8])
def test_integers_that_share_memory_show_what_is_written_into_one(views, dtype):
    for k in range(3):
        x = np.array([2 + k, 3, 1, 5], dtype)
        p, q = VIEWS[views](x)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = ckad.jit(counted)(p, q)
        except ckad.CkadError:
            assert dtype in (np.int32, np.uint8)  # which are put together anew
            continue
        assert found == counted(p, q)


def test_short_integers_that_share_memory_are_not_written_into():
    def f(x, p, q):
        q[0] = 0
        return x[0] * p[0]

    p = np.array([2, 3, 1], np.int32)
    for q in (p, p[:2]):
        with pytest.raises(AliasError, match="another argument"):
            ckad.grad(f)(X, p, q)
    assert ckad.jit(f)(X, p, p.copy()) == 4.0
    assert ckad.jit(lambda p, q: np.sum(p[:2] * q))(p, p[1:]) == 9


def test_neighbours_in_memory_do_not_share_it():
    assert ckad.jit(writes)(X[:2], X[2:]) == writes(X[:2].copy(), X[2:])


def test_a_reshape_of_an_argument_in_fortran_order_is_no_view():
    def flat_write(m):
        flat = m.reshape(-1)
        flat[1] = 10.0
        return np.sum(m**2)

    m = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    with pytest.raises(AliasError, match="may share memory"):
        ckad.jit(flat_write)(m)
    c = np.ascontiguousarray(m)
    assert ckad.jit(flat_write)(c) == flat_write(c.copy())


def test_a_write_to_an_argument_that_is_read_from_outside_too_is_refused():
    weights = np.arange(1.0, 5.0)

    def f(a):
        a[0] = 2.0 * a[1]
        return np.sum(a * weights)

    g = ckad.value_and_grad(f)
    for _ in range(2):
        value, gradient = g(X)
        assert value == f(X.copy())
        np.testing.assert_array_equal(gradient, [0.0, 4.0, 3.0, 4.0])
        for same in (weights, weights[::-1]):
            with pytest.raises(AliasError, match=r"test_aliases.py:\d+: .*from outside.*copy"):
                g(same)


def test_an_argument_that_is_read_from_outside_too():
    weights = np.arange(1.0, 5.0)
    gradient = ckad.grad(lambda a: np.sum(a * weights))(weights)
    np.testing.assert_array_equal(gradient, weights)


def total(xs):
    return sum(x for x in xs)


@pytest.mark.parametrize(
    "read",
    [
        lambda xs: xs[0],
        lambda xs: xs[1:] * 2.0,
        lambda xs: np.sum(xs),
        lambda xs: xs.copy(),
        lambda xs: xs + xs,
        total,
        lambda xs: max(xs.tolist()),
    ],
)
def test_every_way_to_read_it(read):
    xs = np.arange(1.0, 5.0)

    def f(a):
        a[0] = 2.0 * a[1]
        return np.sum(a) * np.sum(read(xs))

    with pytest.raises(AliasError, match="from outside"):
        ckad.jit(f)(xs)
    np.testing.assert_allclose(ckad.jit(f)(X), f(X.copy()), rtol=1e-15)


def test_what_lies_beside_it_or_tells_its_shape_is_free():
    both = [np.arange(1.0, 5.0), np.arange(2.0, 6.0)]
    xs = both[0]

    def f(a):
        a[0] = 2.0 * a[1]
        return np.sum(a * both[1]) * len(xs) + np.sum(np.ones_like(xs) * xs.shape[0])

    g = ckad.grad(f)
    assert ckad.jit(f)(xs) == f(xs.copy())
    for _ in range(2):
        np.testing.assert_array_equal(g(xs), [0.0, 28.0, 16.0, 20.0])
        np.testing.assert_array_equal(g(X), [0.0, 28.0, 16.0, 20.0])


def test_the_error_names_the_line_that_reads_it_and_no_warning_comes_before(recwarn):
    weights = np.arange(1.0, 5.0)

    def f(a):
        a[0] = 2.0 * a[1]
        total = np.sum(a * weights)
        return total * a[2]

    warnings.simplefilter("always")
    line = f.__code__.co_firstlineno + 2
    with pytest.raises(AliasError, match=rf"test_aliases.py:{line}: .*from outside, here"):
        ckad.grad(f)(weights)
    assert not recwarn.list
