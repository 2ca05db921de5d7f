"""Calls that draw random numbers, and those that make a generator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ckad.errors import UnrecordableError
from ckad.trace.source.draws.distributions import draw_by_scipy
from ckad.trace.source.draws.generators import Generator, drawing
from ckad.trace.source.draws.noted import has_place, is_in_body, keep
from ckad.trace.source.draws.rules import drawn
from ckad.trace.source.draws.streams import check_unseen
from ckad.trace.source.libraries import is_in
from ckad.trace.source.names.frame import made
from ckad.trace.source.outside.draws import MAKERS
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.tracer import Tracer


def call(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a call draws or makes; NotImplemented for one that Python makes."""
    if is_in(callee, MAKERS):
        return _made(callee, args, options) if is_in_body() else NotImplemented
    found = drawing(callee)
    if found is None:
        by_scipy = draw_by_scipy(callee, args, options)
        if by_scipy is not NotImplemented:
            return by_scipy
        check_unseen([getattr(callee, "__self__", None), *args, *options.values()])
        return NotImplemented
    if has_place(found[0]) or _is_for_rules(found, args, options):
        return drawn(*found, args, options)
    keep(found[0])
    return NotImplemented


def _is_for_rules(
    found: tuple[Generator, str], args: Sequence[Any], options: dict[str, Any]
) -> bool:
    """Whether traced values are given to more than Python's choice among the items of a list."""
    given, (generator, name) = [*args, *options.values()], found
    if any(isinstance(x, Tracer) for x in given):
        return True
    by_python = isinstance(generator, random.Random) or name == "shuffle"
    return holds_tracer(given) and not by_python


def _made(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """A generator that each step makes anew from the same seed."""
    given = [x for x in (*args, *options.values()) if x is not None]
    if not given or holds_tracer(given):
        raise UnrecordableError.here(
            "a loop or branch makes a random generator without a seed, or with one that "
            "differs from step to step, and is recorded once for all its steps. Make the "
            "generator before the loop, and draw from it at each step."
        )
    return made(callee(*args, **options))
