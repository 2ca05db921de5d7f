"""`ckad.Budget`: what is given is read, and what cannot be is refused with the line."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import ckad
from ckad.errors import BudgetError


def test_amounts_are_read():
    budget = ckad.Budget(memory="2 GiB", disk=10**9, directory="/scratch", codec="zstd")
    assert (budget.memory_bytes, budget.disk_bytes) == (2**31, 10**9)
    assert (ckad.Budget().memory_bytes, ckad.Budget().disk_bytes) == (None, None)
    assert hash(budget) == hash(ckad.Budget("2 GiB", 10**9, "/scratch", codec="zstd"))


def test_it_is_printed():
    assert str(ckad.Budget()) == "memory as it is free"
    assert str(ckad.Budget("64 MiB")) == "64.0 MiB of memory"
    text = str(ckad.Budget("2 GiB", "50 GiB", "/tmp", "resume", "zstd"))
    assert text.startswith("2.0 GiB of memory; 50.0 GiB of disk in /tmp (")
    assert text.endswith(" free), zstd, to be resumed")
    text = str(ckad.Budget(disk="1 MiB", directory="/not/there"))
    assert text == "memory as it is free; 1.0 MiB of disk in /not/there, for this run"
    assert tempfile.gettempdir() in str(ckad.Budget(disk="1 MiB"))


def test_a_directory_is_where_it_was_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = ckad.Budget(disk=1, directory="here")
    monkeypatch.chdir("/")
    assert budget.directory == str(tmp_path / "here")
    assert ckad.Budget(disk=1, directory="~/x").directory == os.path.expanduser("~/x")
    assert ckad.Budget(disk=1, directory=Path("/a")) == ckad.Budget(disk=1, directory="/a")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"memory": "much"}, "memory='much' is not an amount of memory"),
        ({"memory": 0}, "memory=0 leaves no memory"),
        ({"disk": "much"}, "disk='much' is not an amount of disk"),
        ({"disk": "0 B"}, "disk='0 B' leaves no disk"),
        ({"disk": 1.5}, "disk=1.5 is a float"),
        ({"directory": "/tmp"}, 'add disk="50 GiB"'),
        ({"disk": 1, "directory": 3}, "directory=3 is no path"),
        ({"disk": 1, "directory": b"/tmp"}, "is no path"),
        ({"disk": 1, "directory": ""}, "directory='' is no path"),
        ({"disk": 1, "directory": "a\0b"}, "is no path"),
        ({"disk": 1, "durability": "forever"}, "pass 'scratch' or 'resume'"),
        ({"disk": 1, "durability": "resume"}, "needs directory="),
        ({"disk": 1, "codec": "gzip"}, "one of None, 'float32', 'zstd'"),
    ],
)
def test_what_is_refused(arguments, said):
    with pytest.raises(BudgetError) as error:
        ckad.Budget(**arguments)
    assert said in str(error.value)
    assert "test_budget.py" in str(error.value)
