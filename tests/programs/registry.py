"""Every program."""

from __future__ import annotations

from .kernels import FLOWS, LINEAR_ALGEBRA, SOLVERS, STENCILS, WAVES
from .models import (
    EVENTS,
    FINANCE,
    GRAPHS,
    IDIOMS,
    LANGUAGE,
    MAPS,
    NETWORKS,
    PARTICLES,
    PHYSICS,
    SIGNALS,
)

PROGRAMS = (
    *STENCILS,
    *SOLVERS,
    *LINEAR_ALGEBRA,
    *WAVES,
    *FLOWS,
    *PARTICLES,
    *FINANCE,
    *EVENTS,
    *GRAPHS,
    *SIGNALS,
    *MAPS,
    *LANGUAGE,
    *IDIOMS,
    *NETWORKS,
    *PHYSICS,
)
