"""The examples that invert fields, reduced: what was hidden is found, and drawn."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")


@pytest.fixture
def example(checkout: Path) -> Any:
    def load(name: str) -> SimpleNamespace:
        return SimpleNamespace(**runpy.run_path(str(checkout / "examples" / f"{name}.py")))

    return load


def is_drawn(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


def test_a_lens_is_seen_by_its_echoes(example: Any, tmp_path: Path) -> None:
    waveform = example("waveform")
    truth = waveform.ground(34, 48)
    start = np.where(truth == waveform.LENS, waveform.SLOW, truth)
    survey = waveform.survey(truth, n_shots=2, n_steps=220)
    image = waveform.invert(survey, start, n_iterations=20)
    assert image.misfits[-1] < 0.1 * image.misfits[0]
    lens = truth == waveform.LENS
    assert np.mean(image.velocity[lens]) > waveform.SLOW + 100.0
    path = tmp_path / "waveform.png"
    waveform.draw(image, truth, start, str(path))
    assert is_drawn(path)


def test_a_source_of_heat_is_found(example: Any, tmp_path: Path) -> None:
    heat = example("heat")
    source = heat.find(n=59, n_steps=120)
    assert np.linalg.norm(source.found - source.true) < 0.15 * np.linalg.norm(source.true)
    spread = np.sqrt(np.mean((source.fitted - source.recorded) ** 2))
    assert spread == pytest.approx(heat.ERROR, rel=0.1)
    path = tmp_path / "heat.png"
    heat.draw(source, str(path))
    assert is_drawn(path)


def test_an_analysis_is_better_than_its_background(example: Any, tmp_path: Path) -> None:
    burgers = example("burgers")
    analysis = burgers.assimilate(n=64, n_steps=200)
    (background, by_background), (found, by_found) = burgers.errors(analysis, 200).values()
    assert found < 0.25 * background
    assert by_found < 0.05 * by_background
    path = tmp_path / "burgers.png"
    burgers.draw_figure(analysis, str(path), 200)
    assert is_drawn(path)
