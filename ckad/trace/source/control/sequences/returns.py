"""Returns out of a loop of what holds lists: the loop is left first, and the block that returns is
run behind it.

What names are bound to is the same there, and what a step would have to carry, an object or a list
that grows until then, is made once. `after` says what else a loop's end means for that block.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ckad import trees
from ckad.trace.source.actions import run_block
from ckad.trace.source.control import branches
from ckad.trace.source.control.flow import OF_LOOPS, Flow, definite
from ckad.trace.source.libraries import is_library
from ckad.trace.source.names.frame import Frame
from ckad.trace.source.names.liveness import ends_by_return
from ckad.trace.source.outside.kinds import CONTAINERS

Loop = TypeVar("Loop", ast.For, ast.While)
#: Displays of containers, and what makes one.
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


#: By loops: the same without blocks that return, and these.
_left: dict[ast.stmt, tuple[Any, list[list[ast.stmt]]]] = {}
_blocks: dict[ast.stmt, list[list[ast.stmt]]] = {}
_flows: dict[ast.Break, Flow] = {}  # of those that stand for such blocks


def left_by(node: ast.Break) -> Flow | None:
    """How a block that returns ends, where it stands for one."""
    return _flows.get(node)


def behind(frame: Frame, loop: Loop) -> Loop:
    """A loop that is left where it returns what holds lists; itself if it returns no such thing."""
    if loop not in _left:
        blocks: list[list[ast.stmt]] = []
        body = _without(loop.body, blocks)
        shorter = copy.copy(loop)
        shorter.body = body
        _left[loop] = shorter, blocks
        _blocks[shorter] = blocks
    new: Loop
    new, blocks = _left[loop]
    if frame.definition.yields or not any(_gives_containers(frame, x[-1]) for x in blocks):
        return loop
    return new


def _without(block: Sequence[ast.stmt], found: list[list[ast.stmt]]) -> list[ast.stmt]:
    return [_left_by(x, found) if isinstance(x, ast.If) else x for x in block]


def _left_by(node: ast.If, found: list[list[ast.stmt]]) -> ast.If:
    new = copy.copy(node)
    new.body, new.orelse = _side(node.body, found), _side(node.orelse, found)
    return new


def _side(block: list[ast.stmt], found: list[list[ast.stmt]]) -> list[ast.stmt]:
    if not ends_by_return(block):
        return _without(block, found)
    found.append(block)
    node = ast.copy_location(ast.Break(), block[0])
    _flows[node] = definite(Flow.LEFT + len(found) - 1)
    return [node]


def _gives_containers(frame: Frame, node: ast.stmt) -> bool:
    """Whether a list or dict, or an object of a user's class, is in what is returned."""
    return any(_is_container(frame, x) for x in ast.walk(node))


def _is_container(frame: Frame, node: ast.AST) -> bool:
    if isinstance(node, _DISPLAYS):
        return True
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        held: Any = getattr(_bound(frame, node.value.id), "__dict__", {}).get(node.attr)
    elif isinstance(node, ast.Name):
        held = _bound(frame, node.id)
    else:
        return False
    if isinstance(held, type):
        return not is_library(held.__module__)
    return type(held) in CONTAINERS or trees.is_dataclass(held)


def _bound(frame: Frame, name: str) -> Any:
    if name in frame.names:
        return frame.names[name]
    return getattr(frame.function, "__globals__", {}).get(name)


def returned(frame: Frame, loop: ast.stmt, flow: Flow | None) -> Flow | None:
    """How a loop ends whose steps have ended with ``flow``, with the blocks that return run."""
    for k, block in enumerate(_blocks.get(loop, ())):
        if flow is None or Flow.LEFT + k not in flow.kinds:
            continue
        goes, kinds = flow.goes(Flow.LEFT + k), flow.kinds - {Flow.LEFT + k}
        run = partial(run_block, frame, block)
        if isinstance(goes, bool):
            flow = run()
            continue
        rest = Flow(kinds, flow.signal) if len(kinds) > 1 else definite(min(kinds))
        flow = branches.branch(goes, run, partial(branches.ended, rest), ("returns", block[0]))
    return flow


def after(frame: Frame, node: ast.For | ast.While, flow: Flow | None) -> Flow | None:
    """What a loop's end means for the block it stands in; its ``else`` runs unless it was left."""
    if flow is None:
        return run_block(frame, node.orelse) if node.orelse else None
    if not node.orelse:
        return _out(flow)
    goes = flow.goes(Flow.NEXT)
    if goes is True:
        flow = run_block(frame, node.orelse)
        return flow
    left = _out(Flow(flow.kinds - {Flow.NEXT}, flow.signal))
    if goes is False:
        return left
    return branches.branch(
        goes, lambda: run_block(frame, node.orelse), lambda: left, ("else", node)
    )


def _out(flow: Flow) -> Flow | None:
    """A flow out of a loop: to have left it is to run on after it."""
    over = flow.kinds - OF_LOOPS
    if not over or flow.kinds == over:
        return flow if over else None
    signal = np.where(flow.goes(*over), flow.signal, Flow.NEXT)
    return Flow(over | {Flow.NEXT}, signal)
