"""What ckad does not take today, and what it says. Who mends one takes it out of its table."""

from __future__ import annotations

from typing import NamedTuple

from ckad.errors import (
    CarryError,
    ConcreteValueError,
    DtypeError,
    TraceError,
    UnrecordableError,
    UnsupportedFunctionError,
)


class Outcome(NamedTuple):
    """An error: a refusal, if it is one of ckad's, else a crash."""

    error: type[Exception]
    says: str  # how its first sentence begins, without the place


PLAIN = "a traced value is turned into a plain NumPy array"
CLOSURE = "'Closure' object has no attribute '__code__'"

#: At any size.
REFUSED = {
    "fluids.kelvin_helmholtz": Outcome(
        UnrecordableError, "the body of a loop or branch calls matplotlib.pyplot.cla"
    ),
    "waves.plate_with_views": Outcome(ConcreteValueError, PLAIN),
    "waves.turbulence_spectral": Outcome(AttributeError, CLOSURE),
    "particles.nbody": Outcome(ConcreteValueError, PLAIN),
    "particles.rain": Outcome(DtypeError, "the result would have dtype [('position', '<f8', (2,))"),
    "networks.izhikevich": Outcome(
        ConcreteValueError, "the shape of np.where(condition) with one argument depends on numbers"
    ),
    "networks.leaky_spikes": Outcome(
        CarryError, "the variable 'last' is array on one side of a branch and None on the other"
    ),
    "networks.echo_state": Outcome(
        UnsupportedFunctionError, "ckad has no rule for numpy.linalg.eigvals"
    ),
    "earth.climate_with_states": Outcome(
        CarryError, "the variable 'state' is <Surface.ICE: 'ice'> on one side of a branch"
    ),
    "life.gray_scott_structured": Outcome(
        DtypeError, "the result would have dtype [('U', '<f8'), ('V', '<f8')]"
    ),
    "life.turing_frames": Outcome(ConcreteValueError, PLAIN),
    "life.doses": Outcome(
        TraceError, "which items a comprehension keeps depends on a traced value"
    ),
    "life.ages": Outcome(AttributeError, CLOSURE),
    "robots.pure_pursuit": Outcome(
        UnrecordableError, "which items a list has depends on a traced condition"
    ),
    "materials.dendrite": Outcome(ConcreteValueError, PLAIN),
    "materials.xy_relaxation": Outcome(
        UnsupportedFunctionError, "ckad has no rule for the method .strides of a traced array"
    ),
    "materials.oven": Outcome(AttributeError, "property 'shape' of 'Tracer' object has no setter"),
    "materials.truss": Outcome(UnsupportedFunctionError, "ckad has no rule for numpy.setdiff1d"),
    "materials.newton_with_care": Outcome(
        UnrecordableError, "the body of a loop or branch binds 'STEPS_DONE'"
    ),
    "materials.extracted_cells": Outcome(
        ConcreteValueError, "the shape of np.where(condition) with one argument depends on numbers"
    ),
}
