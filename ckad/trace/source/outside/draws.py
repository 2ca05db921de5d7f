"""Random numbers drawn by Python: may a recording that draws them be used again?

It may where it seeds the stream itself, since then each call draws the same ones. The streams that
all functions share are watched for that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ckad.trace.source.outside.kinds import is_distribution
from ckad.trace.source.outside.watch import Watch


class SharedStream(NamedTuple):
    """A stream of random numbers that all functions of a module share."""

    owner: Any
    state: Callable[[], Any]
    set_state: Callable[[Any], None]


#: NumPy's functions, and those of Python.
STREAMS = (
    SharedStream(np.random.mtrand._rand, np.random.get_state, np.random.set_state),
    SharedStream(random.random.__self__, random.getstate, random.setstate),  # type: ignore[attr-defined]
)
_SEEDS = (np.random.seed, random.seed)
#: What makes a generator from a seed.
MAKERS: tuple[Any, ...] = (
    *(np.random.default_rng, np.random.RandomState, random.Random),
    *(np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox),
    *(np.random.SFC64, np.random.SeedSequence),
)


def draws(watch: Watch, callee: Any, args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether a call seeds a stream by a number, makes one of it, or draws from a seeded one, or
    looks at its state, or puts it back.

    Afterwards a shared stream is where the program has left it, also at calls that use the
    recording again.
    """
    seed_of = next(iter((*args, *options.values())), None)
    seeded = isinstance(seed_of, (int, np.integer))
    if any(callee is x for x in (*MAKERS, np.random.Generator)):
        return seeded or watch.is_own(seed_of)
    for stream, seed in zip(STREAMS, _SEEDS, strict=True):
        if callee is seed:
            if seeded and stream.owner not in watch.streams:
                watch.streams.append(stream.owner)
                watch.at_end.append(partial(_leave, watch, stream))
            return seeded
        if is_shared_by(callee, options, stream):
            return stream.owner in watch.streams
        if getattr(callee, "__self__", None) is stream.owner:
            return stream.owner in watch.streams
    return False


def is_shared_by(callee: Any, options: Mapping[str, Any], stream: SharedStream) -> bool:
    """Whether it is ``rvs`` of one of SciPy's distributions, which draws from NumPy's stream."""
    if getattr(callee, "__name__", "") != "rvs" or stream.owner is not STREAMS[0].owner:
        return False
    owner: Any = getattr(callee, "__self__", None)
    is_given = options.get("random_state") is not None
    return not is_given and is_distribution(owner) and owner.random_state in _OF_NUMPY


_OF_NUMPY = (np.random, np.random.mtrand._rand)


def _leave(watch: Watch, stream: SharedStream) -> None:
    watch.guard.shown.append(partial(stream.set_state, stream.state()))
