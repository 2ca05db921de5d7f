"""Schedules as figures and as text."""

from __future__ import annotations

import numpy as np
import pytest

from ckad.checkpoint.picture import draw, timeline
from ckad.schedules import hrevolve, mixed, multistage, periodic_disk, revolve, store_all


def bars(ax, label):
    (lines,) = [c.get_segments() for c in ax.collections if c.get_label() == label] or [[]]
    return {tuple(map(tuple, line.astype(int).tolist())) for line in lines}


def test_what_is_kept_is_coloured_by_where(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    ax = draw(multistage(4, 1, 1))
    # step 0 on disk from the beginning, 1 or 2 in RAM; each until it is restored for the last time
    (disk,) = bars(ax, "state on disk")
    assert [step for _, step in disk] == [0, 0]
    assert disk[0][0] == 0
    assert all(begin[1] == end[1] > 0 for begin, end in bars(ax, "state in RAM"))
    assert not bars(draw(revolve(4, 2)), "state on disk")
    # the residuals of steps 0 … 4 wait from when they are taped until they are reversed
    assert bars(draw(store_all(5)), "residuals") == {((k + 1, k), (10 - k, k)) for k in range(5)}
    pyplot.close("all")


def test_colours_of_kinds_differ():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    ax = draw(hrevolve(200, 3, 3))
    colours = [tuple(c.get_color()[0]) for c in ax.collections]
    assert len(set(colours)) == len(colours) == 6
    assert "3 on disk" in ax.get_title()
    pyplot.close("all")


def test_a_long_tape_is_thinned():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    assert len(bars(draw(store_all(10**6)), "residuals")) <= 500
    pyplot.close("all")


@pytest.mark.parametrize(
    "schedule", [revolve(50, 3), mixed(60, 6), hrevolve(200, 2, 3), periodic_disk(40, "tape", 9)]
)
@pytest.mark.parametrize("size", [(76, 20), (10, 3), (200, 60)])
def test_the_timeline_has_every_part(schedule, size):
    width, height = size
    title, *rows, signs = timeline(schedule, width, height).split("\n")
    assert title.startswith(schedule.family)
    assert len(rows) == min(height, schedule.n_steps)
    margin = rows[0].index("|") + 1
    assert max(map(len, rows)) <= margin + width
    drawn = {sign for row in rows for sign in row[margin:]}
    assert {"/", "\\"} <= drawn
    if size == (200, 60):
        assert ("=" in drawn) == bool(schedule.n_disk_slots)
        assert ("-" in drawn) == bool(schedule.n_slots)
    assert signs.startswith("/ forward")
    # the sweep begins at the first step and is at the last step before anything is reversed
    assert rows[-1][margin] == "/"
    top = rows[0]
    assert "\\" in top
    reversed_at = [row.find("\\", margin) for row in rows]
    assert min(at for at in reversed_at if at > 0) == top.index("\\", margin)


def test_timelines_of_almost_nothing():
    assert timeline(store_all(0)).count("\n") == 2
    assert "/" in timeline(store_all(1), 2, 1)
    assert np.size(timeline(revolve(2, 1)).split("\n")) == 4


def test_too_many_actions_are_refused():
    for show in (draw, timeline):
        with pytest.raises(ValueError, match="more than 200,000 actions"):
            show(revolve(10**6, 10))
