"""What the tests of recordings that are used again share."""

from __future__ import annotations

from typing import Any

import pytest

from ckad.transforms import reuse
from ckad.transforms.repeated import recording


@pytest.fixture
def recordings(monkeypatch) -> list[Any]:
    """The functions recorded so far."""
    record, functions = recording.record, []

    def counting(function: Any, *args: Any, **options: Any) -> Any:
        functions.append(function)
        return record(function, *args, **options)

    monkeypatch.setattr(recording, "record", counting)
    monkeypatch.setattr(reuse, "_kept", type(reuse._kept)())
    return functions
