"""Responses of filters, waves and discrete systems; some eigenvalues of bands."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.signal as ss

import ckad
from ckad import trees
from ckad.errors import UnsupportedFunctionError

RNG = np.random.default_rng(4)
X = RNG.uniform(0.5, 1.5, (4, 5))
T = np.linspace(-0.4, 7.9, 13)


def size(found):
    w, h = found
    return w, np.real(h), np.imag(h)


def system(x):
    return x[:, :4], x[:, 4:], x[:1, :4], np.array([[0.3]])


FUNCTIONS = {
    "freqz": lambda x: [
        size(ss.freqz(x[0])),
        size(ss.freqz(x[0], x[1] + np.eye(5)[0] * 5, worN=9, whole=True)),
        size(ss.freqz(x[0], x[1, 0], 8, fs=10.0, include_nyquist=True)),
        size(ss.freqz(x[0], [1.0, 0.2], worN=x[1], fs=7.0)),
    ],
    "freqs": lambda x: size(ss.freqs(x[0], x[1], worN=x[2])),
    "waves": lambda x: [
        ss.sawtooth(T * x[0, 0]),
        ss.sawtooth(T, x[0, 1] * 0.4),
        T * x[0, 2] * ss.square(T * x[0, 0]),
        ss.square(T, duty=0.3) * x[0, 0],
        ss.chirp(T, x[0, 0], 2.0, x[0, 1]),
        ss.chirp(T, x[0, 0], 2.0, x[0, 1], method="quadratic", phi=30.0),
        ss.chirp(T, x[0, 0], 2.0, x[0, 1], method="quadratic", vertex_zero=False),
    ],
    "systems": lambda x: [
        ss.cont2discrete(system(x), 0.1 * x[3, 3], method=m)[:4]
        for m in ("zoh", "bilinear", "euler", "backward_diff")
    ],
    "tridiagonal": lambda x: [
        sl.eigvalsh_tridiagonal(x[0], x[1, :4]),
        sl.eigh_tridiagonal(x[0], x[1, :4], select="i", select_range=(1, 2))[0],
        sl.eigh_tridiagonal(x[0], x[1, :4], select="i", select_range=(0, 0))[1] ** 2,
        sl.eigvalsh_tridiagonal(x[0], x[1, :4], select="i", select_range=(3, 4)),
    ],
    "banded": lambda x: [
        sl.eig_banded(x[:3], lower=True)[0],
        sl.eig_banded(x[:2])[1] ** 2,
        sl.eigvals_banded(x[:3], select="i", select_range=(0, 1)),
    ],
    "subset": lambda x: [
        sl.eigh(x @ x.T, subset_by_index=(1, 2))[0],
        sl.eigvalsh(x @ x.T, x[:, :4] @ x[:, :4].T + np.eye(4), subset_by_index=(0, 1)),
    ],
    "columns": lambda x: [
        *sl.orthogonal_procrustes(x[:, :3] + np.eye(4)[:, :3], x[:, 1:4]),
        sl.subspace_angles(x[:, :2], x[:, 2:3]),
        sl.subspace_angles(x[:, :1] + np.eye(4)[:, :1], x[:, 2:4] - np.eye(4)[:, 1:3]),
    ],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivatives(name):
    function = FUNCTIONS[name]
    engines = ("vm", "native") if name in ("freqz", "banded") else ("vm",)
    theirs = trees.flatten(function(X))[0]
    for engine in engines:
        mine = trees.flatten(ckad.jit(lambda x: function(x), engine=engine)(X))[0]
        for found, wanted in zip(mine, theirs, strict=True):
            assert np.shape(found) == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    ckad.testing.check_grads(lambda x: function(x), (X,), order=1)


def test_second_derivatives():
    def f(x):
        ground = sl.eigh_tridiagonal(x[0], x[1, :4], select="i", select_range=(0, 1))
        discrete = ss.cont2discrete(system(x), 0.1)
        return np.sum(ground[1] ** 4) + ground[0][0] + np.sum(discrete[0] @ discrete[1])

    ckad.testing.check_grads(f, (X,), order=2)


def test_what_has_no_rule():
    for refused in (
        lambda x: sl.eigh_tridiagonal(x[0], x[1, :4], select="v", select_range=(0.0, 1.0)),
        lambda x: ss.cont2discrete((x[0], x[1]), 0.1),
        lambda x: ss.freqs(x[0], x[1]),
        lambda x: ss.chirp(T, x[0, 0], 2.0, x[0, 1], method="hyperbolic"),
    ):
        with pytest.raises(UnsupportedFunctionError, match="has no rule for"):
            ckad.jit(refused)(X)
