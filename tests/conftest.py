"""What every test file may use."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckad


def pytest_report_header() -> str:
    return f"ckad: {Path(ckad.__file__).parent}"


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The source tree, for tests that read files which the wheel does not carry."""
    return Path(__file__).parents[1]
