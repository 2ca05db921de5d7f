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


def test_the_rates_of_a_pattern_are_found(example: Any, tmp_path: Path) -> None:
    gray_scott = example("gray_scott")
    found = gray_scott.fit(n=32, n_steps=400)
    assert np.all(np.abs(found.rates - gray_scott.TRUE) < 5.0 * found.errors)
    assert np.all(found.errors < 2e-3)
    path = tmp_path / "gray_scott.png"
    gray_scott.draw(found, str(path))
    assert is_drawn(path)


@pytest.mark.slow
def test_the_optimal_disturbance_grows_more_than_others(example: Any, tmp_path: Path) -> None:
    navier_stokes = example("navier_stokes")
    growth = navier_stokes.grow(n=16, time=1.0, n_steps=20)
    assert growth.factor > 2.0 * np.max(growth.ordinary)
    # Its energy is what it was said to be, in the flow itself: a small one is followed.
    k = navier_stokes.waves(16)
    small = 1e-6 * growth.optimal
    ends = [navier_stokes.flow(w, 1.0, 20, k) for w in (growth.base, growth.base + small)]
    energy = np.sum(navier_stokes.to_energy(ends[1] - ends[0], k) ** 2)
    assert energy / np.sum(navier_stokes.to_energy(small, k) ** 2) == pytest.approx(
        growth.factor, rel=1e-4
    )
    path = tmp_path / "navier_stokes.png"
    navier_stokes.draw_figure(growth, str(path))
    assert is_drawn(path)


def test_the_bed_of_a_glacier_is_found(example: Any, tmp_path: Path) -> None:
    glacier = example("glacier")
    bed = glacier.invert(n=40, n_iterations=15)
    before, after = glacier.errors(bed)
    assert after < 0.3 * before
    path = tmp_path / "glacier.png"
    glacier.draw(bed, str(path))
    assert is_drawn(path)
