"""Programs that can be recorded for all numbers, recorded as they run: the same derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ckad
from ckad.trace.record import Given, Recording, record
from ckad.transforms.repeated import recording

from .program import Program
from .registry import PROGRAMS
from .test_programs import Differentiated, assert_near, plain

LEVELS = [Given.DECISIONS, Given.STEPS]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("decides", LEVELS, ids=lambda x: x.name.lower())
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_derivative_is_the_same(
    program: Program, decides: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_run(fun: Any, arguments: Any, kwargs: Any, **_: Any) -> Recording:
        return record(fun, arguments, kwargs, decides=decides)

    usual = Differentiated(program, "vm", plain(program))
    want = usual.gradient
    monkeypatch.setattr(recording, "record", as_run)
    ckad.clear_caches()
    got = Differentiated(program, "vm", plain(program)).gradient
    ckad.clear_caches()
    # written out, sums are added in another order
    assert_near(got, want, 1e3 * program.ulp * float(np.finfo(float).eps), program.name)
