"""The schedules that a loop may be given, from much memory to little, and which are worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ckad.checkpoint.schedules.online import unknown
from ckad.checkpoint.schedules.periodic import even_period
from ckad.checkpoint.schedules.revolve import revolve
from ckad.checkpoint.schedules.schedule import Schedule
from ckad.checkpoint.schedules.store_all import store_all
from ckad.checkpoint.schedules.two_level import two_level
from ckad.engines.measure import TapedLoop


def binomial(x: TapedLoop) -> Callable[[int, int], Schedule]:
    """The schedules that restore states again and again: made on the way if a loop is open.

    An inner loop's actions are made once for all its runs.
    """
    return unknown if x.is_open and x.depth == 1 else revolve


def ladder(x: TapedLoop) -> list[Schedule]:
    """Schedules from much memory to little, each number of slots about 1.4 times the last."""
    n_steps = x.n_steps
    counts = [k for k in _growing(n_steps) if k < n_steps]
    make = binomial(x)
    taped = [two_level(n_steps, even_period(n_steps, k)) for k in counts]
    return [store_all(n_steps), *taped, *(make(n_steps, k) for k in reversed(counts or [1]))]


def _growing(limit: int) -> Iterator[int]:
    k = 1
    while k < min(limit, 1 << 20):
        yield k
        k = max(k + 1, k * 7 // 5)


class Offer(NamedTuple):
    """A schedule for one loop: bytes that it takes, work that it leaves to be done."""

    size: int
    work: int
    schedule: Schedule


def saving(a: Offer, b: Offer) -> float:
    """Work saved per byte by taking b for a."""
    return (a.work - b.work) / max(1, b.size - a.size)


def worthwhile(offers: list[Offer]) -> list[Offer]:
    """Those on the convex hull, by size: each saves less per byte than the one before."""
    hull: list[Offer] = []
    for offer in sorted(offers, key=lambda x: (x.size, x.work)):
        if hull and offer.work >= hull[-1].work:
            continue
        while len(hull) > 1 and saving(hull[-2], hull[-1]) <= saving(hull[-1], offer):
            hull.pop()
        hull.append(offer)
    return hull
