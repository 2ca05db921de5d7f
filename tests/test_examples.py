"""The examples at reduced size: figures written, misfits fallen, known parameters found."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from ckad import cli, demo

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def lynx_hare(checkout: Path) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(checkout / "examples" / "lynx_hare.py")))


@pytest.mark.usefixtures("engine")
def test_lynx_hare_agrees_with_the_published_fit(lynx_hare: SimpleNamespace) -> None:
    # Posterior means in B. Carpenter's case study (2018); the misfit here has no prior.
    found = lynx_hare.fit(substeps=8)
    rates = found.alpha, found.beta, found.gamma, found.delta
    np.testing.assert_allclose(rates, (0.55, 0.028, 0.80, 0.024), rtol=0.05)
    assert found.history[-1] < 0.15 * found.history[0]
    assert np.all(np.diff(found.history) < 0)


def test_lynx_hare_gives_the_21_published_years(lynx_hare: SimpleNamespace) -> None:
    assert lynx_hare.PELTS.shape == (21, 2)
    np.testing.assert_allclose(lynx_hare.PELTS.mean(axis=0), (34.08, 20.17), atol=0.005)


def test_lynx_hare_draws(
    lynx_hare: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lynx_hare.png"
    lynx_hare.main(["--substeps", "8", "--output", str(path)])
    assert path.read_bytes().startswith(PNG)
    assert "alpha  0.5" in capsys.readouterr().out


@pytest.mark.usefixtures("engine")
def test_landscape_recovers_the_diffusivity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "landscape.png"
    result = demo.run(demo.SMALL, path, progress=False)
    assert path.read_bytes().startswith(PNG)
    assert result.misfits[-1] < 1.02 * demo.SURVEY_ERROR < 0.5 * result.misfits[0]
    assert result.mean_error < 0.04
    text = capsys.readouterr().out
    assert "forward steps" in text.lower().replace("_", " ")
    assert f"{len(result.misfits) - 1:9d}  {result.misfits[-1]:10.3f}" in text


def test_landscape_is_the_demo(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "landscape.png"
    options = ["--small", "--iterations", "2", "--output", str(path), "--no-progress"]
    monkeypatch.setattr("sys.argv", ["landscape.py", *options])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(checkout / "examples" / "landscape.py"), run_name="__main__")
    assert end.value.code == 0
    assert path.read_bytes().startswith(PNG)


def test_demo_shows_progress_and_keeps_to_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--small", "--iterations", "1", "--memory", "4 MiB"]
    assert cli.main([*arguments, "--output", str(tmp_path / "figure.png")]) == 0
    assert "step/s" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_run_gives_the_bits_of_one_that_was_not(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = SimpleNamespace(**runpy.run_path(str(checkout / "examples" / "killed_run.py")))
    assert example.main(["--steps", "3000", "--kills", "1", "--seconds", "2.5"])
    assert "the bits are the same" in capsys.readouterr().out
