"""Checkpointing schedules: pure numbers, counts and slots, never tapes or arrays of state.

A family lives in one file, which ends in its `Family` row; adding one touches that file and the
table below.
"""

from __future__ import annotations

from ckad.checkpoint.schedules import (
    disk_revolve,
    hrevolve,
    mixed,
    mixed_bytes,
    multistage,
    online,
    periodic,
    periodic_disk,
    revolve,
    store_all,
    two_level,
)
from ckad.checkpoint.schedules.schedule import Family

SCHEDULES: dict[str, Family] = {
    family.name: family
    for family in (
        *(store_all.FAMILY, two_level.FAMILY, periodic.FAMILY, revolve.FAMILY, online.FAMILY),
        *(mixed.FAMILY, mixed_bytes.FAMILY),
        *(multistage.FAMILY, hrevolve.FAMILY, disk_revolve.FAMILY, periodic_disk.FAMILY),
    )
}
