"""Restart states and residuals in one memory: published counts, recurrences."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest

from ckad.checkpoint.schedules import mixed_bytes as sized
from ckad.schedules import forward_steps, mixed, mixed_bytes
from tests.checkpoint.reports import checked

FAR = 10**15


@pytest.mark.parametrize(
    ("n", "s", "count"),
    [
        *((10, 3, 19), (100, 5, 352), (1_000, 10, 3_921), (1_000, 20, 2_823)),
        *((10**4, 10, 60_960), (10**4, 20, 39_335), (10**5, 25, 483_002), (10**6, 30, 5_719_211)),
    ],
)
def test_mixed_reaches_the_published_count(n, s, count):
    assert forward_steps("mixed", n, s) == count
    assert checked(mixed(n, s)).forward_steps == count


@pytest.mark.parametrize(("residual", "count"), [(1, 2823), (2, 3032), (4, 3442), (8, 3641)])
def test_mixed_bytes_reaches_the_published_count(residual, count):
    assert checked(mixed_bytes(1000, 20, 1, residual)).forward_steps == count


@cache
def mixed_counts(n_steps, n_slots):
    """p(n, s) = min(1 + p(n - 1, s - 1), min i + p(i, s) + p(n - i, s - 1)), as it is published."""
    p = np.full((n_steps + 1, n_slots + 1), FAR, np.int64)
    p[1, :] = 1
    for n in range(2, n_steps + 1):
        p[n, 1] = n * (n + 1) // 2 - 1
        for s in range(1 if n == 2 else 2, n_slots + 1):
            if n <= s + 1:
                p[n, s] = n
                continue
            i = np.arange(2, n)
            p[n, s] = min(1 + p[n - 1, s - 1], np.min(i + p[i, s] + p[n - i, s - 1]))
    return p


def agrees_with_mixed(lengths, most_slots):
    p = mixed_counts(300, 12)
    for n, s in product(lengths, range(1, most_slots + 1)):
        schedule = mixed(n, s)
        report = checked(schedule)
        assert report.forward_steps == forward_steps("mixed", n, s) == p[n, s]
        assert all(seen <= said for seen, said in zip(report.arena, schedule.arena, strict=True))


def test_mixed_is_optimal():
    agrees_with_mixed([*range(1, 30), 56, 57, 84, 120, 165, 211, 300], 12)


@pytest.mark.slow
def test_mixed_is_optimal_everywhere():
    agrees_with_mixed(range(1, 301), 12)


def test_closed_form_of_mixed_where_tables_are_long():
    """The increments as they are stated: r + 1, then k - 1 times r, as often as the phase says."""
    for s in (2, 3, 7, 16):
        count, n, expected = 1, 1, {1: 1}
        increments = (
            step
            for r in range(1, 40)
            for k in (range(s, 0, -1) if r > 1 else [s])
            for _ in range(comb(s - k + r - 2, r - 2) if r > 1 else 1)
            for step in ([r + 1] + [r] * (k - 1) if r > 1 else [1] * s)
        )
        for step in increments:
            n, count = n + 1, count + step
            expected[n] = count
            if n == 6000:
                break
        assert all(forward_steps("mixed", n, s) == count for n, count in expected.items())


def sized_counts(n_steps, nbytes, restart, residual):
    """The published recurrence, over what is left of the memory."""
    p = {}
    left = {
        nbytes - k * restart - m * residual
        for k in range(nbytes // restart + 1)
        for m in range((nbytes - k * restart) // residual + 1)
    }
    for u in sorted(left):
        p[u] = np.full(n_steps + 1, FAR)
        p[u][1] = 1
        for n in range(2, n_steps + 1):
            if u >= residual:
                p[u][n] = 1 + p[u - residual][n - 1]
            if u >= restart:
                i = np.arange(1, n)
                p[u][n] = min(p[u][n], np.min(i + p[u][i] + p[u - restart][n - i]))
    return p[nbytes]


@pytest.mark.parametrize(
    ("nbytes", "restart", "residual"),
    [(20, 4, 6), (21, 5, 3), (30, 7, 7), (26, 3, 11), (40, 9, 4), (9, 9, 1)],
)
def test_mixed_bytes_is_optimal(nbytes, restart, residual, monkeypatch):
    p = sized_counts(64, nbytes, restart, residual)
    for n in range(1, 65, 3):
        schedule = mixed_bytes(n, nbytes, restart, residual)
        report = checked(schedule)
        assert report.forward_steps == p[n]
        assert schedule.shared_bytes(restart, residual) <= nbytes + residual
        assert all(seen <= said for seen, said in zip(report.arena, schedule.arena, strict=True))
    monkeypatch.setattr(sized, "MOST_TRIED", 0)
    assert (
        p[64] <= checked(mixed_bytes(64, nbytes, restart, residual)).forward_steps <= p[64] * 1.02
    )


@pytest.mark.slow
def test_estimated_divisions_are_close(monkeypatch):
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(150):
        restart, residual = (int(x) for x in rng.integers(1, 60, 2))
        nbytes, n = int(rng.integers(restart, 14 * restart + 60)), int(rng.integers(2, 2000))
        monkeypatch.setattr(sized, "MOST_TRIED", 10**9)
        exact = mixed_bytes(n, nbytes, restart, residual).forward_steps
        monkeypatch.setattr(sized, "MOST_TRIED", 0)
        schedule = mixed_bytes(n, nbytes, restart, residual)
        ratios.append(checked(schedule).forward_steps / exact)
        assert schedule.shared_bytes(restart, residual) <= nbytes + residual
    assert min(ratios) >= 1
    assert max(ratios) < 1.03
    assert np.mean(ratios) < 1.003


def test_equal_sizes_are_mixed():
    for n, s in ((100, 5), (10**5, 25), (10**6, 30)):
        assert mixed_bytes(n, 8 * s, 8, 8).forward_steps == forward_steps("mixed", n, s)
