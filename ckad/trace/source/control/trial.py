"""What is found out before a loop is recorded: a step is tried, and whatever it does is undone.

The answer says whether the loop computes with arrays at all, and which arrays and lists its steps
make longer; `repetition` decides by it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NoReturn

from ckad.errors import CarryError, CkadError
from ckad.tape.builder import Builder
from ckad.trace.memory.context import current, open_trace
from ckad.trace.memory.storage import Written
from ckad.trace.source.actions import evaluate
from ckad.trace.source.control.checks import Stops, not_caught_outside
from ckad.trace.source.memory.appends import Appended
from ckad.trace.source.memory.contents import Stacked, Whole
from ckad.trace.source.memory.growing import Growing, Outgrown
from ckad.trace.source.names.frame import Frame, Unclear, open_region
from ckad.trace.source.outside import free
from ckad.trace.values.tracer import Tracer


class _Recorded(BaseException):
    """A step appended a row. (No Exception: code of the user's between must not catch it.)"""


def records(step: Callable[[], Any]) -> bool:
    """Whether a step appends rows, or does what cannot be tried; whatever it does is undone."""
    builder = current().builder
    if not _tried(builder, step):
        return False
    if builder.refuse is not None:
        raise _Recorded  # a loop around this one is tried, too, and has its answer
    return True


def _tried(builder: Builder, step: Callable[[], Any]) -> bool:
    n_read = free.mark()
    with _refusing_rows(builder), open_region() as region:
        region.is_trial = True
        try:
            with not_caught_outside():
                step()
        except (_Recorded, Stops, Appended, Growing, Outgrown, Stacked, Whole):
            return True
        except CkadError:
            return True
        finally:
            free.forget(n_read)
    return False


@contextmanager
def _refusing_rows(builder: Builder) -> Iterator[None]:
    outer, n_constants = builder.refuse, len(builder.constants)
    builder.refuse = _refuse
    try:
        yield
    finally:
        builder.refuse = outer
        del builder.constants[n_constants:]


def _refuse() -> NoReturn:
    raise _Recorded


#: What leaves the body of a loop.
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)


#: Functions that put arrays behind each other.
_JOINING = frozenset({"append", "concatenate", "hstack", "vstack", "row_stack", "column_stack"})


@lru_cache(maxsize=1024)
def lengthened(loop: ast.For) -> set[str]:
    """The names that some steps of a loop alone bind to longer arrays: ``x = np.vstack((x, y))`` in
    a branch, or anywhere if a branch leaves the body."""
    body = loop.body
    branches = [x for part in body for x in ast.walk(part) if isinstance(x, ast.If)]
    found = set(_made_of_themselves(branches))
    if any(isinstance(x, _LEAVES) for branch in branches for x in ast.walk(branch)):
        found.update(_made_of_themselves(body, _JOINING))
    return found


def _made_of_themselves(nodes: Iterable[ast.AST], by: Collection[str] = ()) -> Iterator[str]:
    """Names that are bound to what a call gives for them, of a function named ``by``."""
    for statement in (x for node in nodes for x in ast.walk(node)):
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(args=args) as call):
                parts = (x for arg in args for x in ast.walk(arg))
                called = ast.unparse(call.func).rpartition(".")[-1]
                if (not by or called in by) and any(
                    isinstance(x, ast.Name) and x.id == name for x in parts
                ):
                    yield name


def needs_room(frame: Frame, names: set[str], steps: Callable[[], Any]) -> bool:
    """Whether the steps of a loop, one after the other, leave it open how long an array is that one
    of ``names`` is bound to; whatever they do is undone."""
    if current().builder.refuse is not None:
        return False
    with open_trace(adopts=True), open_region():
        try:
            steps()
        except CarryError:
            return True
        except (Exception, Written, Stops, Appended, Growing, Outgrown, Stacked, Whole):
            return False
        return any(type(frame.names.get(name)) is Unclear for name in names)


@lru_cache(maxsize=1024)
def depth_in(loop: ast.For) -> int:
    """How many loops stand in each other in the body of one."""
    return _depth(loop.body)


def _depth(parts: Iterable[ast.AST]) -> int:
    inner = ((_depth(ast.iter_child_nodes(x)), x) for x in parts)
    return max((n + isinstance(x, (ast.For, ast.While)) for n, x in inner), default=0)


def _appends_to_item(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Subscript(ast.Name()), "append"))):
            return True
    return False


def make_items(frame: Frame, body: list[ast.stmt]) -> None:
    """Make the lists that the first step of a loop makes by ``d["key"].append(x)`` of a
    ``defaultdict(list)``: a list that is there before a loop can grow in it."""
    if not any(map(_appends_to_item, body)):
        return
    for statement in body:
        if any(isinstance(x, _LEAVES) for x in ast.walk(statement)):
            return
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Subscript(ast.Name(name)) as item, "append"))):
                owner = frame.names.get(name)
                empty = type(owner) is defaultdict and owner.default_factory is list
                if empty and isinstance(item.slice, ast.Constant) and not _binds(body, name):
                    evaluate(frame, item)


def _binds(body: list[ast.stmt], name: str) -> bool:
    parts = (x for statement in body for x in ast.walk(statement))
    return any(
        isinstance(x, ast.Name) and x.id == name and isinstance(x.ctx, ast.Store) for x in parts
    )


def is_view(x: Any, y: Any) -> bool:
    """Whether two values are one, or show the same part of an array."""
    if type(x) is Tracer and type(y) is Tracer:
        return x.storage is y.storage and x.path == y.path
    return x is y
