"""Tests of the tests: one that checks nothing fails, and who may check nothing is listed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import numpy as np
import pytest

from checks import agrees

def test_asserts():
    assert 1 + 1 == 2

def test_asserts_by_numpy():
    np.testing.assert_array_equal(1 + 1, 2)

def test_raises():
    with pytest.raises(ZeroDivisionError):
        1 / 0

def test_asserts_elsewhere():
    agrees(1 + 1, 2)

@pytest.mark.only_runs("an example")
def test_only_runs():
    1 + 1

@pytest.mark.xfail(strict=True)
def test_fails_as_expected():
    assert 1 + 1 == 3

def test_checks_nothing():
    1 + 1

@pytest.mark.parametrize("n", [0, 2])
def test_loops_over(n):
    for k in range(n):
        assert k < n

def test_returns_early():
    if 1 + 1 == 2:
        return
    assert False
"""
CHECKS = """
def agrees(x, y):
    assert x == y
"""
CONFTEST = """
import pytest

pytest.register_assert_rewrite("checks")
"""
FAIL = {"test_checks_nothing", "test_loops_over[0]", "test_returns_early"}
#: tests that are marked with only_runs
MARKED: set[str] = set()


def test_a_test_that_checks_nothing_fails(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "checks.py").write_text(CHECKS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]\nenable_assertion_pass_hook = true\nmarkers = only_runs")
    command = ["-m", "pytest", "-rA", "-p", "tests.vacuous", "-p", "no:cacheprovider", "-c", ini]
    done = subprocess.run(
        [sys.executable, *command, tmp_path], cwd=checkout, capture_output=True, text=True
    )
    found = re.findall(r"^(PASSED|FAILED|XFAIL|ERROR) \S*::(\S+)", done.stdout, re.MULTILINE)
    assert {name for outcome, name in found if outcome == "FAILED"} == FAIL, done.stdout
    assert sum(outcome == "PASSED" for outcome, _ in found) == 6
    # the summary at the end, which is not cut where CI is set, says each of them again
    tracebacks = done.stdout.partition("short test summary")[0]
    assert tracebacks.count("asserts nothing") == len(FAIL)


def test_few_tests_are_excused(checkout: Path) -> None:
    marked = re.compile(r"@pytest\.mark\.only_runs\(.*?\ndef (\w+)", re.DOTALL)
    files = set((checkout / "tests").rglob("test_*.py")) - {Path(__file__)}
    assert {name for path in files for name in marked.findall(path.read_text())} == MARKED
