"""The best of all families within bytes in RAM and on disk."""

from __future__ import annotations

import pytest

from ckad.checkpoint.cheapest import cheapest

from .reports import checked

# n, bytes of a restart state and of residuals, memory, disk, seconds: step, reversal, write, read
GIVEN = [
    (1000, 100, 300, 2300, 0, 1.0, 1.0, 0.0, 0.0),
    (3000, 100, 300, 2300, 10**5, 1e-3, 2e-3, 1e-3, 1e-3),
    (3000, 300, 100, 5000, 10**4, 1e-3, 2e-3, 1e-2, 3e-2),
    (500, 8, 8, 16, 100, 1.0, 1.0, 5.0, 1.0),
    (400, 8, 8, 3200, 800, 1.0, 0.0, 0.0, 0.0),
    (2, 8, 8, 16, 0, 1.0, 1.0, 1.0, 1.0),
]


@pytest.mark.parametrize("given", GIVEN)
def test_candidates_fit_and_are_what_they_say(given):
    n, restart, _, memory, disk, step, reverse, write, read = given
    found = cheapest(*given)
    assert found
    assert [c.seconds for c in found] == sorted(c.seconds for c in found)
    for candidate in found:
        schedule = candidate.schedule
        report = checked(schedule)
        assert candidate.memory <= memory
        assert schedule.n_disk_slots * restart <= candidate.disk <= disk
        seen = (report.forward_steps, report.disk_writes, report.disk_reads)
        assert seen == (candidate.forward_steps, candidate.disk_writes, candidate.disk_reads)
        seconds = seen[0] * step + n * reverse + seen[1] * write + seen[2] * read
        assert candidate.seconds == pytest.approx(seconds)


def test_what_fits_is_kept_and_what_does_not_is_nothing():
    assert cheapest(100, 8, 8, 800)[0].name == "store_all"
    assert cheapest(100, 8, 8, 7) == []
    assert [c.name for c in cheapest(1, 8, 8, 8)] == ["store_all"]


def test_a_disk_is_used_where_it_is_worth_it():
    given = (2000, 100, 300, 2300, 10**6, 1e-3, 1e-3)
    fast, slow = cheapest(*given, 1e-4, 1e-4), cheapest(*given, 10.0, 10.0)
    assert fast[0].disk_writes > 0
    assert slow[0].disk_writes == 0
    hidden = cheapest(*given, 1e-2, 1e-2, hidden=1.0)[0]
    assert hidden.seconds == pytest.approx(max(hidden.run_seconds, hidden.io_seconds))
