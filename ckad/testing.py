"""Checks that users can run on their own functions and schedules."""

from __future__ import annotations

from ckad.checkpoint.simulate import check_schedule

__all__ = ["check_schedule"]
