"""Parts of both representations, between bounds and under a mask: one function serves both."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError

_rng = np.random.default_rng(5)
X, Y = _rng.normal(size=(2, 6))
A, B = _rng.normal(size=(2, 6, 4))
K = np.array(3)

#: Two parts of one length of vectors, and two of matrices.
PARTS = {
    "prefix": lambda x, y, a, b, k: (x[:k], y[:k], a[:k], b[:k]),
    "middle": lambda x, y, a, b, k: (x[k - 2 : k + 1], y[k - 1 : k + 2], a[1:k], b[2 : k + 1]),
    "mask": lambda x, y, a, b, k: (x[x > 0.1], y[x > 0.1], a[x > 0.1], b[x > 0.1]),
    "mask of a matrix": lambda x, y, a, b, k: (a[a > 0], b[a > 0], a[x > 0], b[x > 0]),
}
#: What they are given to, by what it asks of them.
CALLS = {
    "elements": lambda v, w, m, n: (
        *(np.exp(v) * w, np.sqrt(np.abs(m)) / (n + 9), np.where(v > w, v, 1.0), np.clip(m, -1, n)),
        *(v + 1 / w, np.fix(3 * v), np.sinc(w), m * n[:, :1], v[:, None] + v[:, None] * w[:, None]),
    ),
    "reductions": lambda v, w, m, n: (
        *(np.sum(m, 0), np.prod(v), np.max(m, 1), np.min(v, initial=0.0), np.sum(m, keepdims=True)),
        *(np.any(v > 1, keepdims=True), np.all(m > 0, axis=1), np.mean(m, 0), np.std(v), v @ w),
        *(np.sum(v, where=v > 0), np.max(w, where=w > 0, initial=-1.0), np.linalg.norm(m, axis=1)),
    ),
    "order": lambda v, w, m, n: (
        *(np.argmax(v), np.argmin(m, axis=1), np.cumsum(m, 0), np.cumprod(v), np.sort(v)),
        *(
            np.diff(v),
            np.diff(m, axis=0),
            np.flip(v),
            np.flip(m),
            np.roll(m, 1, 0),
            np.trapezoid(v),
        ),
        *(v[0], v[-1], v[::-1] * 2.0, np.unwrap(4 * v), np.trapezoid(w, v), np.nanargmax(w)),
    ),
    "arrangement": lambda v, w, m, n: (
        *(
            m.T,
            np.swapaxes(m, 0, 1) * 2.0,
            v[None],
            np.moveaxis(m, 0, 1),
            v.reshape(1, -1),
            m[:, 1],
        ),
        *(np.full_like(v, 2.0), np.expand_dims(v, 1), np.rot90(m), np.atleast_2d(v), m[..., 0]),
    ),
    "joining": lambda v, w, m, n: (
        *(np.concatenate([v, w, [1.0]]), np.stack([v, w]), np.vstack([m, n]), np.append(v, 2.0)),
        *(np.concatenate([m, n], 1), np.hstack([v, w]), np.concatenate([v, w])[1:]),
    ),
    "products": lambda v, w, m, n: (
        *(
            np.outer(v, w),
            m.T @ n,
            m @ Y[:4],
            np.dot(v, w),
            np.inner(w, v),
            np.multiply.outer(v, X),
        ),
    ),
    "choice": lambda v, w, m, n: (v[v > 0], m[m > 0] * 2.0),
}


def _number(results):
    return sum(np.sum(r * np.sin(1.0 + i)) for i, r in enumerate(results))


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("part", PARTS)
def test_parts_like_numpy(part, calls):
    def function(x, y, a, b, k):
        return _number(CALLS[calls](*PARTS[part](x, y, a, b, k)))

    expected = function(X, Y, A, B, 3)
    value, gradients = ckad.value_and_grad(function, (0, 1, 2, 3))(X, Y, A, B, K)
    assert value == pytest.approx(expected, rel=1e-11)
    for k, gradient in enumerate(gradients):
        direction = np.cos(np.arange(gradient.size)).reshape(gradient.shape)
        step = 1e-6
        ends = []
        for sign in (1, -1):
            args = [X, Y, A, B]
            args[k] = args[k] + sign * step * direction
            ends.append(function(*args, 3))
        slope = (ends[0] - ends[1]) / (2 * step)
        assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-5, abs=1e-6)


def _rows_beside(x, a):
    m = x > 0.1
    return np.sum(a[:, m] * x[m]) + np.sum(a[:, m] * x[:6, None])


def test_an_operand_beside_the_axis_of_a_mask():
    a = A.T.copy()[:, :6]
    square = np.vstack([a, a[:2]])
    value = ckad.jit(_rows_beside)(X, square)
    assert value == pytest.approx(_rows_beside(X, square), rel=1e-12)


def _two_masks(x, a):
    return x[x > 0.1] * a[0][a[0] > 0.0] + x[:6][np.arange(6) < np.sum(x > 0.1)]


def _rows_and_elements(x, a):
    return np.sum(a[x > 0.1] * x[x > 0.1])


def _an_array_of_known_length(x, a):
    return np.sum(a[:, x > 0.1] * np.arange(4.0)[None])


def _a_slice_beside(x, a):
    return np.sum(x[x > 0.1] * x[: np.sum(x > 0.1)])


def _written_from_other_places(x, a):
    x[x > 0.1] = a[1, a[0] > 0.0] + np.arange(4.0)
    a[:, x < 0.5] = a[:, ::-1][:, x < 0.5]
    a[x > 10.0] = a[x > 20.0]
    return np.sum(x * np.arange(x.size)) + np.sum(a * a)


def _written_from_an_array(x, a):
    x[x > 0.1] = [1.0, a[0, 0], 3.0, 4.0]
    a[a > 0.35] = x[x > 0.1].sum()
    return np.sum(x * np.arange(x.size)) + np.sum(a)


OF_OTHER_PLACES = [
    *(_two_masks, _rows_and_elements, _an_array_of_known_length, _a_slice_beside),
    *(_written_from_other_places, _written_from_an_array),
]


@pytest.mark.parametrize("function", OF_OTHER_PLACES, ids=lambda f: f.__name__[1:])
def test_elements_of_other_places_meet_in_their_order(function):
    x = np.array([0.5, -0.2, 0.3, 0.9, 0.0, 0.7])
    a = np.random.default_rng(1).normal(size=(6, 6)) * 0.3
    a[0] = [0.3, -0.1, 0.2, 0.4, 0.6, -0.4]
    a = a[:, :6] if function is not _rows_and_elements else a[:, :4]

    def total(x, a):
        return np.sum(function(x.copy(), a.copy()))

    assert ckad.jit(total)(x, a) == pytest.approx(total(x, a), rel=1e-13)
    ckad.testing.check_grads(total, (x, a), order=1)


def test_as_many_elements_as_places_are_asked_for():
    def program(x, y):
        x[x > 0.1] = y[y > 0.1]
        return np.sum(x)

    x = np.array([0.5, -0.2, 0.3, 0.9])
    for y in (np.array([0.4, 0.2]), np.zeros(3), np.full(5, 0.3)):
        with pytest.raises(ValueError, match="assign"):
            program(x.copy(), y)
        with pytest.raises(CkadError, match=r"test_parts\.py"):
            ckad.jit(program)(x, y)
    one = np.array([0.0, 7.0])  # goes to all places
    assert ckad.jit(program)(x, one) == program(x.copy(), one)


def _a_slice_of_elements(x, a):
    v = x[x > 0.1]
    part = v[1:]
    part[0] = 5.0
    return np.sum(v)


def _an_element_written(x, a):
    v = x[x > 0.1]
    v[0] = 5.0
    return np.sum(v)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_a_slice_of_elements, "such an index"),
        (_an_element_written, "such an index"),
    ],
)
def test_what_would_mean_something_else_is_refused(function, message):
    with pytest.raises(CkadError, match=message):
        ckad.jit(function)(X, _rng.normal(size=(6, 6)))


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_numbers_of_elements_within_a_part(engine):
    def program(x, k):
        places = np.where(x > -0.5)[0]
        chosen = x[places] * 2.0
        best = places[np.where(chosen > 0.2)[0]]
        found = np.zeros(len(x))
        found[best] = x[best] ** 2
        first = x[: k + 1]
        low = np.flatnonzero(first < 0.3)
        none = np.nonzero(chosen > 100.0)[0]
        return np.sum(found) + np.sum(first[low] * low) + np.sum(chosen[none])

    value, slopes = ckad.value_and_grad(program, engine=engine)(X, K)
    assert value == pytest.approx(program(X, int(K)))
    steps = 1e-6 * np.eye(len(X))
    expected = [(program(X + h, int(K)) - program(X - h, int(K))) / 2e-6 for h in steps]
    np.testing.assert_allclose(slopes, expected, atol=1e-7)


def test_a_number_beyond_a_part_stops_the_program():
    def program(x):
        return np.sum(x[x > 0.1][np.where(x < 100.0)[0]])

    with pytest.raises(CkadError, match="out of range"):
        ckad.grad(program)(X)
