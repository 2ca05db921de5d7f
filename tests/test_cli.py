"""The ``ckad`` command: what it prints, and one line with status 2 on bad input."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import ckad
from ckad import cli, kernel

PLAN = ["plan", "--steps", "1000", "--state-bytes", "1 MB", "--memory"]


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """The package's kernels are there: to compile them is said on stderr, once."""
    ckad.grad(lambda x: x * x, engine="vm")(1.0)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled at first is not announced among what the commands say."""
    monkeypatch.setenv("CKAD_QUIET", "1")


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The single line on stderr of a command that ends with status 2."""
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.endswith("\n")
    return message


def row(text: str, name: str) -> str:
    found = re.search(rf"^{name}\s\s+(.*)$", text, re.MULTILINE)
    assert found, text
    return found[1]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"ckad {cli.installed('ckad')}\n"


@pytest.mark.parametrize("command", [[], ["demo"], ["plan"], ["doctor"]])
def test_help_names_what_it_does(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*command, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ckad")


@pytest.mark.parametrize(
    ("memory", "slots", "forward_steps"),
    [("10 MB", 10, 4_636), ("20 MB", 20, 3_747), ("20000000", 20, 3_747)],
)
def test_plan(
    memory: str, slots: int, forward_steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, *PLAN, memory)
    assert row(text, "slots") == str(slots)
    assert row(text, "forward steps") == f"{forward_steps:,}"
    assert row(text, "recompute factor") == f"{forward_steps / 1000:.3f}"
    assert row(text, "checkpoints") == f"{slots}.0 MB of the {slots}.0 MB given"
    assert row(text, "trajectory").startswith("1.0 GB")


def test_plan_needs_no_more_slots_than_steps(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "plan", "--steps", "7", "--state-bytes", "8", "--memory", "1 GiB")
    assert row(text, "slots") == "7"
    assert row(text, "checkpoints").startswith("56 B of")


def test_plan_has_no_limit_on_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "plan", "--steps", "1" + 15 * "0", "--state-bytes", "8",
                   "--memory", "1 kB")  # fmt: skip
    assert row(text, "slots") == "125"


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ([], "required"),
        (["fly"], "fly"),
        (["plan", "--steps", "10"], "--state-bytes, --memory"),
        ([*PLAN, "many"], "many"),
        ([*PLAN, "-5"], "-5|expected one argument"),
        ([*PLAN, "0"], "0"),
        ([*PLAN, "999999"], "at least --memory 1000000"),
        (["plan", "--steps", "0", "--state-bytes", "8", "--memory", "64"], "at least 1"),
        (["plan", "--steps", "ten", "--state-bytes", "8", "--memory", "64"], "ten"),
        (["plan", "--steps", "9", "--state-bytes", "0", "--memory", "64"], "state-bytes"),
        (["demo", "--iterations", "0"], "at least 1"),
        (["demo", "--output", "no/such/directory/figure.png"], "no/such/directory"),
        (["demo", "--output", "figure.docx"], ".png"),
        (["doctor", "--all"], "--all"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], fact: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = complaint(capsys, *arguments)
    assert message.startswith("ckad")
    assert re.search(fact, message)


def test_demo_without_matplotlib_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "ckad.demo", raising=False)
    monkeypatch.delattr("ckad.demo", raising=False)
    monkeypatch.delitem(sys.modules, "matplotlib.cbook", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'ckad[demo]'" in complaint(capsys, "demo")


def test_demo_within_too_little_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figure.png"
    arguments = ["demo", "--small", "--memory", "100 kB", "--output", str(path), "--no-progress"]
    assert "memory" in complaint(capsys, *arguments)
    assert not path.exists()


def test_demo_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ckad.demo.run", interrupt)
    assert cli.main(["demo", "--output", str(tmp_path / "figure.png")]) == 130
    assert capsys.readouterr().err == "ckad demo: interrupted\n"


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "doctor")
    assert row(text, "numpy") == np.__version__
    assert int(row(text, "threads")) >= 1
    assert row(text, "cache") == str(kernel.cache_dir())
    for kind in ("kernels", "programs"):
        assert re.fullmatch(r"\d+ files, [\d.]+ .?B", row(text, kind))
    assert re.fullmatch(r"works, compiled a function in \d+ ms", row(text, "native"))


@pytest.mark.parametrize(
    ("found", "wide", "said"),
    [
        ("Haswell", True, "SkylakeX"),
        ("Haswell", False, "Haswell$"),
        ("SkylakeX", True, "X$"),
        ("", True, "unknown"),
    ],
)
def test_doctor_says_whose_kernels_blas_runs(
    found: str, wide: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.search(r"for \w+$|unknown|SkylakeX", cli.blas_kernels({}))
    monkeypatch.setattr(cli.blas, "made_for", lambda: found)
    assert re.search(said, cli.blas_kernels({"avx512f": wide}))
    assert ("AVX-512" in cli.blas_kernels({"avx512f": wide})) == (found == "Haswell" and wide)


def test_doctor_reports_a_compiler_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> float:
        raise RuntimeError("no target")

    monkeypatch.setattr("ckad.machine.compiler.try_out", fail)
    assert cli.main(["doctor"]) == 1
    assert "not usable: the native engine" in capsys.readouterr().out


def test_doctor_reports_an_unusable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CKAD_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert cli.main(["doctor"]) == 1
    assert "not usable: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_109_056_000, "1.1 GB")]
)
def test_readable(n_bytes: int, text: str) -> None:
    assert cli.readable(n_bytes) == text
