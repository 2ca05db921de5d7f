"""What the rule blocks of elementwise ops share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules import ir
from ckad.rules.registry import Partial, from_partials, rule, same_shape
from ckad.tape.builder import Builder
from ckad.tape.types import Type


def elementwise(
    op: int,
    numpy: Callable[..., np.ndarray],
    emit: dict[str, ir.Emitter] | ir.Emitter,
    partials: Sequence[Partial | float | None],
    *,
    single: ir.Emitter | None = None,
    cheap: bool = False,
    shape: Any = same_shape,
) -> None:
    """The rule block of one op: its NumPy function, its IR, its partial derivatives."""
    if not isinstance(emit, dict):
        emit = {"f" * len(partials) + "->f": emit}

    def evaluate(type: Type, attrs: Any, *arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(numpy(*arrays), dtype=type.numpy)

    rule(op, shape=shape, evaluate=evaluate, emit=emit, cheap=cheap).single = single
    from_partials(op, partials)


def like(b: Builder, x: int, value: float) -> int:
    """``value`` everywhere in an array like ``x``."""
    return b.full_like(x, value)
