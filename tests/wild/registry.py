"""Every program."""

from __future__ import annotations

from .agents import AGENTS
from .earth import EARTH
from .filters import FILTERS
from .fluids import FLUIDS
from .gas import GAS
from .life import LIFE
from .materials import MATERIALS
from .networks import NETWORKS
from .particles import PARTICLES
from .robots import ROBOTS
from .services import SERVICES
from .waves import WAVES

PROGRAMS = (
    *FLUIDS,
    *GAS,
    *WAVES,
    *PARTICLES,
    *NETWORKS,
    *FILTERS,
    *EARTH,
    *LIFE,
    *ROBOTS,
    *MATERIALS,
    *AGENTS,
    *SERVICES,
)
