"""What a case says about itself: its work, its inputs and the forms in which each peer does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Settings = Mapping[str, float]
Inputs = tuple[np.ndarray, ...]
Gradient = Callable[[Inputs], tuple[float, Inputs]]
"""Takes the case's inputs; returns the value and one float64 cotangent per input."""


@dataclass(frozen=True)
class Case:
    """One gradient that every peer computes.

    Parameters
    ----------
    name : str
        The name on the command line; also the name of the file.
    title : str
        One line for `list`.
    defaults, tiny : mapping
        The settings of a measurement and of a test; both name the same keys.
    inputs : callable
        Settings to the tuple of float64 arrays that the value is differentiated in.
    steps, cells : callable
        Settings to the counts that times are divided by.
    forms : mapping
        Peer to form name to a builder `settings -> Gradient`. Where a peer has several forms, all
        are run and the fastest is compared. A builder imports its peer itself, so that a peer
        that is not installed costs the others nothing.
    """

    name: str
    title: str
    defaults: Settings
    tiny: Settings
    inputs: Callable[[Settings], Inputs]
    steps: Callable[[Settings], int]
    cells: Callable[[Settings], int]
    forms: Mapping[str, Mapping[str, Callable[[Settings], Gradient]]]
