"""Programs that draw: their value, derivatives and where they leave the shared generators."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad

from .idioms import check_number

AT = 0.7


def states() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()
    return (kind, keys.tobytes(), *rest), random.getstate()


def states_after(run: Callable[[float], Any]) -> tuple[Any, ...]:
    random.seed(99)
    np.random.seed(99)
    run(AT)
    return states()


def check_draws(f: Callable[[float], Any]) -> None:
    assert states_after(ckad.value_and_grad(f, engine="vm")) == states_after(f)
    slope = check_number(f, AT, abs=1e-7)
    assert ckad.jvp(f, (AT,), (1.0,), engine="vm")[1] == pytest.approx(slope, rel=1e-12)
