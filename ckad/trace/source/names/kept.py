"""Functions under ``functools.lru_cache``: what they have given once they give again.

Python itself calls those that compute from constants: what they gave before, or will give when they
are called the next time, is the program's. The others are run from their source, and the recording
keeps what they give: a function that computes from what changes meanwhile, or an array of which a
part is written, is in Python the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.trace.source.names.frame import ledger, region
from ckad.trace.source.outside.guard import IMMUTABLE, is_same
from ckad.trace.source.outside.python import constants_of, equated
from ckad.trace.source.outside.watch import watch
from ckad.trace.values.tracer import Tracer, known

#: Arguments that may be or hold numbers; the others are told by their identity.
_NUMBERS = (Tracer, tuple)


def kept(
    cached: Any, args: Sequence[Any], options: dict[str, Any], call: Callable[..., Any]
) -> Any:
    """``cached(*args, **options)``."""
    if _is_constant((*args, *options.values())) and _reads_constants(cached):
        return _by_python(cached, args, options)
    leaves = trees.flatten(tuple(x for x in (*args, *options.values()) if type(x) in _NUMBERS))[0]
    if any(isinstance(x, Tracer) and x.scalar for x in leaves):
        return _guarded(call(cached.__wrapped__, args, options))
    memory = ledger().kept
    if watched := watch():
        for x in (*args, *options.values()):
            equated(watched, x)
    key = (cached, tuple(args), tuple(options.items()))
    if key in memory:  # a TypeError where Python has one
        return memory[key]
    result = call(cached.__wrapped__, args, options)
    if region() is None:
        memory[key] = result
        return result
    _check_constant(cached, result)
    return _guarded(result)


def _is_constant(x: Any) -> bool:
    return all(map(_is_constant, x)) if type(x) is tuple else type(x) in IMMUTABLE


def _reads_constants(cached: Any) -> bool:
    memory, key = ledger().kept, (_reads_constants, cached)
    known = memory.get(key)
    if known is None or not known.holds():
        known = memory[key] = constants_of(cached.__wrapped__)
    return known is not None


def _by_python(cached: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What Python keeps, or computes now; a recording holds while it keeps that."""
    result = cached(*args, **options)
    memory, key = ledger().kept, (_by_python, cached, tuple(args), tuple(options.items()))
    is_known = key in memory and is_same(memory[key], result)
    memory[key] = result
    if (watched := watch()) and not is_known:
        watched.enter(result)
        again = partial(cached, *args, **options)
        watched.guard.answers.append((lambda: is_same(again(), result), True))
    return result


def forget(cached: Any) -> None:
    """``cached.cache_clear()``."""
    cached.cache_clear()
    if watched := watch():
        watched.give_up("it clears what functools.lru_cache keeps")
    memory = ledger().kept
    for key in [k for k in memory if k[0] is cached]:
        del memory[key]


def _check_constant(cached: Any, result: Any) -> None:
    """In a body, which is recorded once, each step would compute anew what the first one has."""
    for leaf in trees.flatten(result)[0]:
        if isinstance(leaf, Tracer) and known(leaf) is None:
            raise UnrecordableError.here(
                f"the body of a loop or branch calls {cached.__name__}, whose results "
                "functools.lru_cache keeps, for the first time. Call it before the loop with "
                "these arguments, or without lru_cache."
            )


def _guarded(result: Any) -> Any:
    """A result that is made anew, where Python has one that a write would change for all."""
    for leaf in trees.flatten(result)[0]:
        if isinstance(leaf, Tracer) and not leaf.scalar:
            leaf.storage.root.shared = "what functools.lru_cache keeps"
    return result
