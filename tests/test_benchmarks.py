"""The benchmarks run, agree and report: tiny sizes, so no figure here means anything."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def compare(path: Path, cases: str, peers: str, *more: str) -> subprocess.CompletedProcess[str]:
    quick = ("--tiny", "--rounds", "2", "--turn", "0.001")
    return run("compare", "--cases", cases, "--peers", peers, "--json", str(path), *quick, *more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("benchmarks") / "out.json"
    return compare(path, "lorenz63,gray_scott", "ckad,numba", "--first-form"), path


def test_compare_succeeds(finished):
    process, _ = finished
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("case", ["lorenz63", "gray_scott"])
def test_json_holds_the_figures(finished, case):
    report = json.loads(finished[1].read_text())
    record = report["cases"][case]
    assert record["disagreement"]["relative"] <= report["relative_tolerance"] == 1e-8
    assert set(record["peers"]) == {"ckad", "numba"}
    for figures in record["peers"].values():
        assert 0 < figures["min_seconds"] <= figures["median_seconds"] <= figures["max_seconds"]
        assert figures["first_seconds"] > 0
        assert len(figures["turns"]) == 2
        per_step = figures["median_seconds"] / record["steps"] * 1e9
        assert figures["ns_per_step"] == pytest.approx(per_step)
        assert figures["ns_per_cell_step"] == pytest.approx(per_step / record["cells"])
    assert record["peers"]["ckad"]["ratio_to_ckad"] == 1.0


def test_json_holds_machine_and_versions(finished):
    report = json.loads(finished[1].read_text())
    assert report["machine"]["cpu"]
    assert report["machine"]["cores"] >= 1
    assert {"numpy", "numba", "llvmlite", "ckad"} <= set(report["versions"])
    assert str(ROOT) not in json.dumps(report)


def test_table_is_markdown(finished):
    text = run("table", str(finished[1])).stdout
    assert "| ckad " in text
    assert "**gray_scott** (size=12, n_steps=10)" in text


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
def test_jax_agrees_with_the_adjoint_by_hand(tmp_path):
    path = tmp_path / "out.json"
    process = compare(path, "lorenz63", "numba,jax", "--first-form")
    assert process.returncode == 0, process.stderr
    record = json.loads(path.read_text())["cases"]["lorenz63"]
    assert all("error" not in form for form in record["forms"]["jax"].values())
    assert record["peers"]["jax"]["ratio_to_ckad"] is None


def test_list_names_every_case():
    text = run("list").stdout
    assert "lorenz63" in text
    assert "gray_scott" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cases", "lorentz"), "no case is called 'lorentz'"),
        (("--peers", "torch7"), "no peer is called 'torch7'"),
        (("--set", "lorenz63.steps=3"), "there are lorenz63.n_steps"),
        (("--set", "lorenz63.n_steps=x"), "not a number"),
        (("--rounds", "0"), "at least 1"),
    ],
)
def test_a_wrong_argument_is_explained(arguments, message, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import main

    assert main(["compare", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_gradients_that_differ_are_not_timed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.compare import Probe, agrees, largest_disagreement

    right = Probe("numba", "a", gradient=(np.array([1.0, 2.0]),))
    wrong = Probe("ckad", "b", gradient=(np.array([1.0, 2.0 * (1 + 1e-7)]),))
    assert agrees(largest_disagreement([right, right]))
    assert not agrees(largest_disagreement([right, wrong]))
    not_a_number = Probe("ckad", "b", gradient=(np.array([1.0, np.nan]),))
    assert not agrees(largest_disagreement([right, not_a_number]))
