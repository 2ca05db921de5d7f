"""What ckad does not take today, and what it says. Who mends one takes it out of its table."""

from __future__ import annotations

from typing import NamedTuple

from ckad.errors import (
    AliasError,
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


LIST = "the body of a loop or branch changes a list that was made outside of it"
PLAIN = "a traced value is turned into a plain NumPy array"
CLOSURE = "'Closure' object has no attribute '__code__'"

#: At any size.
REFUSED = {
    "fluids.kelvin_helmholtz": Outcome(
        UnrecordableError, "the body of a loop or branch calls matplotlib.pyplot.cla"
    ),
    "waves.turbulence_spectral": Outcome(AttributeError, CLOSURE),
    "particles.nbody": Outcome(ConcreteValueError, PLAIN),
    "particles.lennard_jones_lists": Outcome(UnrecordableError, LIST),
    "particles.rain": Outcome(DtypeError, "the result would have dtype [('position', '<f8', (2,))"),
    "particles.hanging_rope": Outcome(AliasError, "a Node is changed here that may be the one"),
    "networks.leaky_spikes": Outcome(UnrecordableError, LIST),
    "networks.echo_state": Outcome(
        UnsupportedFunctionError, "ckad has no rule for numpy.linalg.eigvals"
    ),
    "filters.tracked_by_objects": Outcome(DtypeError, "dtype object is not supported"),
    "earth.climate_with_states": Outcome(
        CarryError, "the variable 'state' is <Surface.ICE: 'ice'> on one side of a branch"
    ),
    "life.epidemic_with_events": Outcome(
        UnrecordableError, "the body of a loop or branch changes a dict that was made outside of it"
    ),
    "life.gray_scott_structured": Outcome(
        DtypeError, "the result would have dtype [('U', '<f8'), ('V', '<f8')]"
    ),
    "life.turing_frames": Outcome(ConcreteValueError, PLAIN),
    "life.doses": Outcome(
        TraceError, "which items a comprehension keeps depends on a traced value"
    ),
    "life.ages": Outcome(AttributeError, CLOSURE),
    "robots.pure_pursuit": Outcome(UnrecordableError, LIST),
    "materials.dendrite": Outcome(ConcreteValueError, PLAIN),
    "materials.truss": Outcome(UnsupportedFunctionError, "ckad has no rule for numpy.setdiff1d"),
    "materials.newton_with_care": Outcome(
        UnrecordableError, "the body of a loop or branch binds 'STEPS_DONE'"
    ),
}

CALLS = "the body of a loop or branch calls"
#: At their full size alone: short loops are written out, these are too long for it.
REFUSED_LONG = {
    "waves.kuramoto_sivashinsky": Outcome(UnrecordableError, LIST),
    "filters.extended_localization": Outcome(
        UnrecordableError, f"{CALLS} numpy.random.RandomState.randn"
    ),
    "filters.moving_window": Outcome(UnrecordableError, f"{CALLS} deque.append"),
    "earth.stream_power": Outcome(
        UnrecordableError, "the body of a loop or branch changes a function that was made outside"
    ),
}
