"""What a case says about itself: its work, its inputs and the forms in which each peer does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

Settings = Mapping[str, float]
Inputs = tuple[np.ndarray, ...]
Gradient = Callable[[Inputs], tuple[float, Inputs]]
"""Takes the case's inputs; returns the value and one float64 cotangent per input."""
Value = Callable[[Inputs], float]
"""Takes the case's inputs; returns the value alone."""
PRIMAL = "primal"
"""Beside a case's forms: the one that computes the value alone."""


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
        that is not installed costs the others nothing. The first form of ckad takes the options
        of ``ckad.value_and_grad`` (``memory=``, ``schedule=``, ``engine=``) as keywords too.
    primal : callable, optional
        A builder `settings -> Value`: the value alone by ckad (``ckad.jit``), which the gradient's
        time is divided by in `ratio`.
    bases : mapping
        Name to a builder `settings -> Value`: the value as other libraries compute it,
        which times are divided by in `spectra`.
    cache_settings : mapping
        Changes of the defaults for `ratio`, to a size at which keeping everything fits the cache.
    shorter : mapping
        Peer to upper limits of single settings, for a peer that would run for minutes. It is timed
        at that size, its gradient is checked at that size, and times are compared per cell and
        step. Only settings in which time is linear belong here, which are the numbers of steps.
    also : tuple of str
        Forms of ckad that are timed in turn with the peers even where another form is faster; each
        is a row of its own, "ckad, 1 MiB".
    tolerance : float
        How far two gradients may be apart, relative to an array's largest entry.
    """

    name: str
    title: str
    defaults: Settings
    tiny: Settings
    inputs: Callable[[Settings], Inputs]
    steps: Callable[[Settings], int]
    cells: Callable[[Settings], int]
    forms: Mapping[str, Mapping[str, Callable[[Settings], Gradient]]]
    primal: Callable[[Settings], Value] | None = None
    bases: Mapping[str, Callable[..., Value]] = field(default_factory=dict)
    cache_settings: Settings = field(default_factory=dict)
    shorter: Mapping[str, Settings] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    tolerance: float = 1e-8

    def settings_of(self, peer: str, settings: Settings) -> Settings:
        """The settings at which `peer` is timed: those given, but never above its limits."""
        limits = self.shorter.get(peer, {})
        return {key: min(value, limits.get(key, value)) for key, value in settings.items()}

    def builder(self, peer: str, form: str) -> Callable[..., Gradient | Value]:
        """What makes the form; `PRIMAL` and the bases are forms of ckad too."""
        if form in self.bases:
            return self.bases[form]
        if form != PRIMAL:
            return self.forms[peer][form]
        if self.primal is None:
            raise ValueError(f"{self.name} has no primal.")
        return self.primal

    def first_form(self, peer: str) -> str:
        return next(iter(self.forms[peer]))
