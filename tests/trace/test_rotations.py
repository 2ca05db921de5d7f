"""SciPy's Rotation of traced angles, vectors, quaternions and matrices."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import ckad

from .idioms import check

KNOWN = Rotation.from_euler("xyz", [0.1, 0.2, 0.3])


def by_euler(seq):
    def turned(angles):
        found = Rotation.from_euler(seq, angles)
        again = (found * KNOWN).as_euler(seq[::-1], degrees=True)
        return np.sum(found.as_quat()[..., 3]) + np.sum(np.sin(0.01 * again)) + again.ravel()[0]

    return turned


def by_vectors(v):
    found = KNOWN * Rotation.from_rotvec(v) * KNOWN.inv()
    small = Rotation.from_rotvec(1e-4 * v)
    return (
        np.sum(found.as_rotvec() ** 3)
        + np.sum(small.as_rotvec(degrees=True))
        + np.sum(found.inv().apply(v, inverse=True) * v[::-1])
        + np.sum(KNOWN.apply(v)[0])
        + np.sum(found.magnitude())
        + len(found) * found[1].as_matrix()[0, 1]
    )


def by_quaternions_and_matrices(q, m):
    first = Rotation.from_quat(q, scalar_first=True).as_quat(canonical=True)
    second = Rotation.from_matrix(m).as_quat(scalar_first=True)
    return np.sum(first @ second.T) + Rotation.from_matrix(m).as_matrix()[0, 1, 2]


def an_attitude(rate):
    attitude, seen = Rotation.identity(), 0.0
    for _ in range(12):
        attitude = attitude * Rotation.from_rotvec(0.1 * rate)
        seen += attitude.apply([1.0, 0.0, 0.0])[1]
    return seen + attitude.as_euler("ZYX")[0]


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "zxz", "YXY", "xz", "Y"])
def test_angles(seq):
    angles = np.random.default_rng(1).uniform(-1.0, 1.0, size=(2, len(seq)))
    if len(seq) < 3:
        x = ckad.jit(lambda a: Rotation.from_euler(seq, a).as_quat())(angles)
        np.testing.assert_allclose(x, Rotation.from_euler(seq, angles).as_quat(), atol=1e-15)
    else:
        check(by_euler(seq), angles)


def test_vectors_quaternions_and_matrices():
    rng = np.random.default_rng(0)
    check(by_vectors, rng.normal(size=(3, 3)))
    matrices = Rotation.from_rotvec(3.0 * rng.normal(size=(5, 3))).as_matrix()
    check(by_quaternions_and_matrices, rng.normal(size=(4, 4)), matrices)


def test_an_attitude_is_carried():
    check(an_attitude, np.array([0.3, -0.2, 0.5]))


def test_what_rotations_are_not_asked():
    with pytest.raises(ckad.errors.UnsupportedFunctionError, match="'mean' of a Rotation"):
        ckad.grad(lambda v: Rotation.from_rotvec(v).mean().magnitude())(np.ones((2, 3)))
