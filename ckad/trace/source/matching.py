"""``match``: each case is a test, and what follows is the other side of it.

A pattern gives a condition and the names that it binds; a traced one makes a branch of the case.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ckad.errors import UnrecordableError
from ckad.trace.dispatch import Traced
from ckad.trace.source.actions import evaluate, run_block, tested
from ckad.trace.source.choices import Choice
from ckad.trace.source.control import branches
from ckad.trace.source.control.flow import Flow
from ckad.trace.source.kinds import is_instance
from ckad.trace.source.memory import objects
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.frame import Frame, made
from ckad.trace.source.operators import compared
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.values import truth
from ckad.trace.values.tracer import Tracer


def match(frame: Frame, node: ast.Match) -> Flow | None:
    subject = evaluate(frame, node.subject)
    return _first(frame, subject, node.cases, node)


def _first(frame: Frame, subject: Any, cases: Sequence[ast.match_case], node: Any) -> Flow | None:
    """Run the first case that fits."""
    if not cases:
        return None
    case, *others = cases
    frame.line = case.pattern.lineno
    verdict = _fits(frame, subject, case.pattern)
    if verdict is not False and case.guard is not None:
        guard = case.guard
        verdict = _and(verdict, lambda: tested(frame, guard), case)
    run: Callable[[], Flow | None] = partial(run_block, frame, case.body)
    rest: Callable[[], Flow | None] = partial(_first, frame, subject, others, node)
    if isinstance(verdict, bool):
        return run() if verdict else rest()
    flow = branches.branch(verdict, run, rest, ("case", case.pattern))
    frame.statement = node
    return flow


def _and(first: Any, second: Callable[[], Any], place: Any) -> Any:
    if isinstance(first, bool):
        return second() if first else False
    return truth(branches.logical(True, first, first, second, ("case", place)))


# --- patterns ------------------------------------------------------------------------------------


def _fits(frame: Frame, x: Any, pattern: ast.pattern) -> bool | Tracer:
    """Whether a value is as a pattern says; what that names is bound."""
    rule: Callable[[Frame, Any, Any], Any] = _TABLE.get(type(pattern), _refuse)
    found: bool | Tracer = rule(frame, x, pattern)
    return found


def _value(frame: Frame, x: Any, pattern: ast.MatchValue) -> Any:
    if type(x) is OrNone:
        return _and(truth(x.present), lambda: _value(frame, x.value, pattern), pattern)
    return truth(compared(ast.Eq(), x, evaluate(frame, pattern.value)))


def _singleton(frame: Frame, x: Any, pattern: ast.MatchSingleton) -> Any:
    if type(x) is OrNone and pattern.value is not None:
        return _refuse(frame, x, pattern)
    return truth(compared(ast.Is(), x, pattern.value))


def _either(frame: Frame, x: Any, pattern: ast.MatchOr) -> Any:
    found: Any = False
    for part in pattern.patterns:
        one = _fits(frame, x, part)
        if one is True:
            return True
        found = one if found is False else found if one is False else np.logical_or(found, one)
    return found


def _capture(frame: Frame, x: Any, pattern: ast.MatchAs) -> Any:
    found = True if pattern.pattern is None else _fits(frame, x, pattern.pattern)
    if pattern.name is not None and found is not False:
        frame.bind(pattern.name, x)
    return found


def _sequence(frame: Frame, x: Any, pattern: ast.MatchSequence) -> Any:
    if type(x) in (Choice, OrNone):
        return _refuse(frame, x, pattern)
    if isinstance(x, (str, bytes, bytearray)) or not isinstance(x, Sequence):
        return False
    parts, items, more = pattern.patterns, list(x), len(x) - len(pattern.patterns)
    at = next((k for k, p in enumerate(parts) if isinstance(p, ast.MatchStar)), None)
    if more != 0 if at is None else more < -1:
        return False
    if at is not None:  # what the star takes is one item
        items[at : at + more + 1] = [made(items[at : at + more + 1])]
    return _all(frame, zip(items, parts, strict=True), pattern)


def _star(frame: Frame, x: Any, pattern: ast.MatchStar) -> bool:
    if pattern.name is not None:
        frame.bind(pattern.name, x)
    return True


def _mapping(frame: Frame, x: Any, pattern: ast.MatchMapping) -> Any:
    if type(x) in (Choice, OrNone):
        return _refuse(frame, x, pattern)
    if not isinstance(x, Mapping):
        return False
    keys = [evaluate(frame, key) for key in pattern.keys]
    if any(isinstance(key, Traced) for key in keys):
        return _refuse(frame, x, pattern)
    if not all(key in x for key in keys):
        return False
    found = _all(frame, zip([x[key] for key in keys], pattern.patterns, strict=True), pattern)
    if pattern.rest is not None and found is not False:
        frame.bind(pattern.rest, made({key: x[key] for key in x if key not in keys}))
    return found


def _all(frame: Frame, pairs: Any, pattern: ast.pattern) -> Any:
    found: Any = True
    for item, part in pairs:
        found = _and(found, partial(_fits, frame, item, part), part)
        if found is False:
            return False
    return found


def _class(frame: Frame, x: Any, pattern: ast.MatchClass) -> Any:
    kind = evaluate(frame, pattern.cls)
    if watched := watch():
        watched.give_up("a class in a pattern, into which Python looks")
    if type(x) is OrNone:
        return _refuse(frame, x, pattern)
    if not is_instance(x, kind):
        return False
    if pattern.patterns and not hasattr(kind, "__match_args__"):
        own = zip([x], pattern.patterns, strict=True)  # int(n), float(x): the value itself
        return _all(frame, own, pattern)
    names = [*getattr(kind, "__match_args__", ())[: len(pattern.patterns)], *pattern.kwd_attrs]
    parts = [*pattern.patterns, *pattern.kwd_patterns]
    if type(x) is Choice or not all(hasattr(x, name) for name in names):
        return _refuse(frame, x, pattern) if type(x) is Choice and names else not names
    return _all(frame, zip([_read(x, n) for n in names], parts, strict=True), pattern)


def _read(x: Any, name: str) -> Any:
    return objects.attribute(x, name)


def _refuse(frame: Frame, x: Any, pattern: ast.pattern) -> NoReturn:
    raise UnrecordableError.here(
        f"the pattern {ast.unparse(pattern)} of a match statement is not followed. Write if "
        "and elif."
    )


_TABLE: dict[type, Callable[[Frame, Any, Any], Any]] = {
    ast.MatchValue: _value,
    ast.MatchSingleton: _singleton,
    ast.MatchOr: _either,
    ast.MatchAs: _capture,
    ast.MatchSequence: _sequence,
    ast.MatchStar: _star,
    ast.MatchMapping: _mapping,
    ast.MatchClass: _class,
}
