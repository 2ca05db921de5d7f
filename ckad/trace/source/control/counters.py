"""Numbers outside of the function that a recording counts up and does not look at.

``Vehicle.count += 1`` changes what it reads, but no number of the program depends on it: it is done
again each time that the recording is used.
"""

from __future__ import annotations

import abc
import ast
from types import FunctionType
from typing import Any

from ckad.trace.source.libraries import is_library
from ckad.trace.source.names.frame import Frame, outside_of, region
from ckad.trace.source.names.region import check_changeable
from ckad.trace.source.outside.guard import Counter
from ckad.trace.source.outside.watch import watch


def name_counted(frame: Frame, name: str, node: ast.AugAssign) -> bool:
    """``name += 1`` of a name from outside, done as for a counter; False if it is none."""
    if name in frame.definition.locals or region() is not None:
        return False
    names = outside_of(frame, name)
    if names is None or name in names.names:
        return False
    return _counted(Counter(names.names.cell or names.names.owner, name), node)


def attribute_counted(owner: Any, name: str, node: ast.AugAssign) -> bool:
    """The same of ``owner.name += 1`` of a class or a function."""
    if type(owner) in (type, abc.ABCMeta):
        found = Counter(owner, name)
        if found.is_number and not is_library(owner.__module__):
            check_changeable(owner)
            return _counted(found, node)
    if type(owner) is FunctionType and region() is None and not is_library(owner.__module__):
        return _counted(Counter(vars(owner), name), node)
    return False


def _counted(counter: Counter, node: ast.AugAssign) -> bool:
    watched, by = watch(), _step(node)
    if watched is None or by is None or not counter.is_number:
        return False
    if watched.is_own(counter.owner) or watched.is_noted(counter.owner, counter.key):
        return False
    known = watched.guard.counters.setdefault((id(counter.owner), counter.key), counter)
    known.by += by
    counter.count(by)
    return True


def _step(node: ast.AugAssign) -> int | None:
    """What a statement adds, if that is a number that stands there."""
    match node:
        case ast.AugAssign(op=ast.Add(), value=ast.Constant(int(by))) if type(by) is int:
            return by
        case ast.AugAssign(op=ast.Sub(), value=ast.Constant(int(by))) if type(by) is int:
            return -by
    return None
