"""Residuals that the reverse reads between bounds: those parts alone are kept, and looked at."""

import numpy as np
import pytest

import ckad
from ckad.engines import arena
from ckad.passes.adjoint import pair
from ckad.passes.adjoint.bounded import LEAST
from ckad.tape.extents import PART
from ckad.tape.ops import Op

N = 36
assert N * N >= LEAST


def orthonormal(a):
    a = a.copy()
    r = np.zeros((N, N))
    for k in range(N):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q = a[:, k] / r[k, k]
        r[k, k + 1 :] = q @ a[:, k + 1 :]
        a[:, k + 1 :] -= np.outer(q, r[k, k + 1 :])
    return np.sum(r**3)


def reflected(a):
    a = a.copy()
    for k in range(N):
        v = a[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        a[k:, k:] -= 2.0 * np.outer(v, v @ a[k:, k:])
    return np.sum(a**3)


def read_elsewhere_too(a):
    """The whole array is needed: it is kept as it is."""
    a = a.copy()
    total = 0.0
    for k in range(N):
        total += np.sum(a**3)
        a[:, k + 1 :] -= 0.01 * np.outer(a[:, k], a[:, k] @ a[:, k + 1 :])
    return total


def two_bounds(a):
    """Parts of one array with other bounds than each other."""
    a = a.copy()
    for k in range(1, N):
        a[:, k:] += 0.01 * np.outer(a[:, 0], a[:, 0] @ a[:, k:])
        a[:, :k] += 0.01 * np.outer(a[:, 1], a[:, 1] @ a[:, :k])
    return np.sum(a**3)


PROGRAMS = [orthonormal, reflected, read_elsewhere_too, two_bounds]


@pytest.fixture
def spoilt(monkeypatch):
    """Memory of runs holds NaNs before it is written."""

    def take(nbytes):
        memory = fresh(nbytes)
        memory[: nbytes // 8 * 8].view(np.float64)[:] = np.nan
        return memory

    fresh = arena.aligned
    monkeypatch.setattr(arena, "take", take)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_have_the_same_bits_under_all_schedules(program, spoilt):
    a = np.eye(N) + 0.1 * np.random.default_rng(0).normal(size=(N, N))
    value, expected = ckad.value_and_grad(program, engine="vm")(a)
    assert np.isclose(value, program(a), rtol=1e-12)
    found = {
        ckad.value_and_grad(program, engine="native", schedule=schedule)(a)[1].tobytes()
        for schedule in ("store_all", "revolve", "two_level")
    }
    assert len(found) == 1
    gradient = np.frombuffer(found.pop()).reshape(N, N)
    assert np.allclose(gradient, expected, rtol=1e-9, atol=1e-11)
    direction = np.random.default_rng(1).normal(size=a.shape)
    step = 1e-6 * direction
    slope = (program(a + step) - program(a - step)) / 2e-6
    assert np.isclose(np.sum(gradient * direction), slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("program", "parts"),
    [(orthonormal, 1), (reflected, 1), (read_elsewhere_too, 0)],
)
def test_which_are_kept_in_part(program, parts, monkeypatch):
    split, kept = pair.bounded, []

    def bounded(joint, *others):
        tape, residuals = split(joint, *others)
        kept.extend(tape.rows[k] for k in residuals)
        return tape, residuals

    monkeypatch.setattr(pair, "bounded", bounded)
    a = np.eye(N)
    ckad.clear_caches()
    ckad.value_and_grad(program, engine="vm").compiled(a)
    assert sum(row.op is Op.SELECT and PART in row.attrs for row in kept) == parts
