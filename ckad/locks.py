"""Locks that a forked child never finds held by a thread that it does not have."""

from __future__ import annotations

import os
import threading


def lock() -> threading.RLock:
    """A lock that forks wait for: none happens while another thread holds it."""
    made = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=made.acquire, after_in_parent=made.release, after_in_child=made.release
        )
    return made
