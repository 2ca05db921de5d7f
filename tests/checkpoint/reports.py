"""What a schedule does, compared with what it says of itself."""

from __future__ import annotations

from ckad.checkpoint.simulate import check_schedule


def checked(schedule):
    """The report of a schedule that says of itself what it is seen to do."""
    report = check_schedule(schedule)
    assert report.forward_steps == schedule.forward_steps
    assert report.peak_slots == schedule.n_slots
    assert report.peak_disk_slots == schedule.n_disk_slots
    assert report.peak_tape_slots == schedule.n_tape_slots
    seen = (report.writes, report.disk_writes, report.disk_reads)
    assert seen == (schedule.writes, schedule.disk_writes, schedule.disk_reads)
    return report
