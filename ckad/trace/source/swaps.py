"""Names that only change their arrays among them, as buffers that take turns do.

A step is a permutation of their arrays, so where each of them is after the loop is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckad import trees
from ckad.trace.source.carrying import Carried, Findings
from ckad.trace.source.frame import Key
from ckad.trace.source.values import arrays_of
from ckad.trace.values.tracer import Tracer

Places = dict[Key, tuple[Tracer, ...]]
Inputs = Mapping[Key, list[Tracer]]


def places_after(loop: Findings, inputs: Inputs) -> Places:
    """Where the arrays are, after the loop, of names that take turns with others.

    ``inputs`` are the tracers that the names start a step with. Nothing is to be found if no step
    writes into one of them.
    """
    count = loop.steps.count
    firsts = _first_arrays(loop.carried)
    written = any(x.storage.writes for key in firsts for x in inputs[key])
    if not written or not isinstance(count, int) or loop.guard:
        return {}
    return _turns(inputs, firsts, count)


def _first_arrays(carried: Mapping[Key, Carried]) -> Places:
    """The carried names that are one array each, with their first values."""
    found = {}
    for key, x in carried.items():
        if len(x.leaves) == 1 or x.tree.type is trees.Complex:
            arrays = tuple(leaf for leaf in x.leaves if type(leaf) is Tracer and not leaf.scalar)
            if arrays:
                found[key] = arrays
    return found


def _turns(inputs: Inputs, firsts: Places, count: int) -> Places:
    """Where the arrays of names that only change their arrays among them are after the loop.

    A step is a permutation of these, and after n steps it has been applied n times.
    """
    owner = {id(inputs[key][0].storage): key for key in firsts}
    following: dict[Key, Key] = {}
    for key, first in firsts.items():
        frame, name = key
        end = arrays_of(frame.names.get(name))
        whole = len(end) == len(first) and not any(x.path for x in (*end, *first))
        if whole and id(end[0].storage) in owner:
            source = owner[id(end[0].storage)]
            if [x.storage for x in end] == [x.storage for x in inputs[source]]:
                following[key] = source
    while True:
        closed = {k: v for k, v in following.items() if v in following}
        if len(closed) == len(following):
            break
        following = closed
    if len(set(following.values())) != len(following):
        return {}
    return {key: firsts[_after(following, key, count)] for key in following}


def _after(following: dict[Key, Key], key: Key, count: int) -> Key:
    cycle = [key]
    while following[cycle[-1]] != key:
        cycle.append(following[cycle[-1]])
    return cycle[count % len(cycle)]
