"""The example of an orbit, reduced."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

pytest.importorskip("matplotlib")


def test_an_orbit_is_recovered(checkout, tmp_path):
    kepler = runpy.run_path(str(checkout / "examples" / "kepler.py"))
    orbit = kepler["fit"](n_steps=300)
    period = 2.0 * np.pi * np.sqrt(kepler["AXIS"] ** 3 / kepler["MU"])
    assert abs(orbit.period - period) < 2e-3
    assert orbit.scatter < 1.1e-3
    assert f"{orbit.period:.4f} years" in kepler["report"](orbit)
    path = tmp_path / "kepler.png"
    kepler["draw"](orbit, str(path), n_steps=300)
    assert path.read_bytes().startswith(b"\x89PNG")
