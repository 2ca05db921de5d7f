"""The source of a function as a syntax tree, if it is certainly the source of what would run."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType
from typing import cast

FunctionNode = ast.FunctionDef | ast.Lambda
#: Statements and expressions that are left to Python: their functions are not read.
_LEFT = (
    ast.AsyncFunctionDef,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.Await,
    ast.TryStar,
)
_YIELDS = (ast.Yield, ast.YieldFrom)
#: The variable that holds the items of ``yield from``.
ITEM = "an item of yield from"


@dataclass(frozen=True, eq=False)
class Definition:
    """A function as it is written: its tree, and what can be told from it."""

    node: FunctionNode
    file: str
    name: str
    locals: frozenset[str]
    globals: frozenset[str]
    #: lines on which a name is read, by name
    reads: dict[str, list[int]] = field(default_factory=dict)
    #: names that functions inside of it read, whenever they are called
    inner_reads: frozenset[str] = frozenset()
    #: whether it is a generator, and has a ``return``
    yields: bool = False
    returns: bool = False

    @property
    def body(self) -> list[ast.stmt]:
        if isinstance(self.node, ast.FunctionDef):
            return self.node.body
        value = ast.copy_location(ast.Return(self.node.body), self.node.body)
        return [value]


#: Nodes that say of others what they are, and are as many as these.
_MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def _children(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [x for x in value if isinstance(x, ast.AST) and not isinstance(x, _MARKS)]
        elif isinstance(value, ast.AST) and not isinstance(value, _MARKS):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """The nodes of a tree, as ``ast.walk`` gives them."""
    found = [node]
    for inner in found:
        found += _children(inner)
    return found


def define(node: FunctionNode, file: str, parts: list[ast.AST] | None = None) -> Definition:
    """The definition of a function from its tree, of which ``parts`` are the nodes."""
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
    own = [inner for part in body for inner in own_nodes(part)]
    yields = any(isinstance(inner, _YIELDS) for inner in own)
    returns = any(isinstance(inner, ast.Return) for inner in own)
    local, global_names = _scope(own, _parameters(node.args))
    parts = walk(node) if parts is None else parts
    reads: dict[str, list[int]] = {}
    for read, line in names_read(parts):
        reads.setdefault(read, []).append(line)
    if yields:
        local |= {ITEM}
        reads[ITEM] = [node.lineno]
    return Definition(
        node,
        file,
        name,
        local,
        global_names,
        reads,
        _inner_reads(body) if any(isinstance(x, _FUNCTIONS) for x in parts[1:]) else frozenset(),
        yields,
        returns,
    )


Names = frozenset[str]


def scope_of(body: Iterable[ast.AST]) -> tuple[Names, Names]:
    """The names that a scope binds, and those it says are global."""
    return _scope([inner for part in body for inner in own_nodes(part)])


def _scope(own: Iterable[ast.AST], bound: Iterable[str] = ()) -> tuple[Names, Names]:
    known, nonlocals, global_names = set(bound), set(), set()
    for inner in own:
        if isinstance(inner, ast.Nonlocal):
            nonlocals.update(inner.names)
        elif isinstance(inner, ast.Global):
            global_names.update(inner.names)
        else:
            known.update(_bound(inner))
    return frozenset(known - nonlocals - global_names), frozenset(global_names)


def _inner_reads(body: Sequence[ast.AST]) -> frozenset[str]:
    functions = (
        inner for part in body for inner in ast.walk(part) if isinstance(inner, _FUNCTIONS)
    )
    return frozenset(name for function in functions for name, _ in names_read(walk(function)))


def names_read(parts: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Names that parts of the source read, or delete, with their lines."""
    for inner in parts:
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store):
            yield inner.id, inner.lineno
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id, inner.lineno


def _parameters(args: ast.arguments) -> Iterator[str]:
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            yield arg.arg


_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_CLOSED = (*_FUNCTIONS, ast.ClassDef)
_SCOPES = (*_CLOSED, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that belong to the scope it stands in."""
    left = [node]
    while left:
        inner = left.pop()
        yield inner
        if not isinstance(inner, _SCOPES):
            left.extend(reversed(_children(inner)))
        elif not isinstance(inner, _CLOSED):
            # a name that ``:=`` binds in a comprehension is outside of it
            yield from (x for x in ast.walk(inner) if isinstance(x, ast.NamedExpr))


_NAMING = (ast.FunctionDef, ast.ClassDef)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id
    elif isinstance(node, (*_NAMING, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        if node.name:
            yield node.name
    elif isinstance(node, ast.MatchMapping):
        if node.rest:
            yield node.rest
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]


_NO_FUNCTION = cast(ast.Lambda, ast.parse("lambda: 0", mode="eval").body)


def nothing(*names: str) -> Definition:
    """The definition of a frame that belongs to no function."""
    return Definition(_NO_FUNCTION, "", "", frozenset(names), frozenset())


def bound_by(*targets: ast.expr) -> frozenset[str]:
    """The names that an assignment to targets binds."""
    return frozenset(
        node.id
        for target in targets
        for node in walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


# --- from a function to its tree -----------------------------------------------------------------


def definition_of(function: FunctionType) -> Definition | None:
    """The definition of a function; None if its source is not known, or Python has to run it."""
    return _definition(function.__code__)


@lru_cache(maxsize=4096)
def _definition(code: CodeType) -> Definition | None:
    lines = linecache.getlines(code.co_filename)
    for tree in _trees(code, lines):
        for node in _candidates(tree, code):
            if _compiles_to(tree, code):
                parts = walk(node)
                if any(isinstance(inner, _LEFT) for inner in parts) or _sends(parts):
                    return None
                return define(node, code.co_filename, parts)
    return None


def _sends(parts: list[ast.AST]) -> bool:
    """Whether generators in a function are asked for single items, or handed values."""
    if not any(isinstance(part, _YIELDS) for part in parts):
        return False
    made = {inner for part in parts if isinstance(part, ast.Expr) for inner in [part.value]}
    if any(isinstance(part, _YIELDS) and part not in made for part in parts):
        return True
    return any(
        (isinstance(part, ast.Name) and part.id == "next")
        or (isinstance(part, ast.Attribute) and part.attr in ("send", "throw", "__next__"))
        for part in parts
    )


def _trees(code: CodeType, lines: list[str]) -> Iterator[ast.Module]:
    """The file as a whole; the function's lines alone, for code that stands in a document."""
    whole = _parsed("".join(lines), code.co_filename)
    if whole is not None:
        yield whole
    elif lines:
        part = _part(code, lines)
        if part is not None:
            yield part


@lru_cache(maxsize=256)
def _parsed(text: str, file: str) -> ast.Module | None:
    try:
        tree = ast.parse(text, file)
    except (SyntaxError, ValueError):
        return None
    if "class " in text and "__" in text:
        _make_private(tree)
    return tree


_PRIVATE = re.compile(r"__(?!.*__$|_?$)")  # (neither __x__ nor __ itself)


#: Where such a name stands. (That of a function inside of a method stays: it is looked for by it.
#: Python itself leaves keywords in calls as they are.)
_NAMED: dict[type[ast.AST], str] = {ast.Attribute: "attr", ast.Name: "id", ast.arg: "arg"}


def _make_private(tree: ast.Module) -> None:
    """Names ``__x`` become ``_Owner__x``; compiled, the tree gives the same code as before."""
    functions = {x.name for x in walk(tree) if isinstance(x, ast.FunctionDef)}
    left: list[tuple[ast.AST, str]] = [(tree, "")]
    while left:
        node, owner = left.pop()
        if isinstance(node, ast.ClassDef):
            owner = node.name.lstrip("_")
        elif owner and (field := _NAMED.get(type(node))):
            name = getattr(node, field) or ""
            if _PRIVATE.match(name) and (field == "attr" or name not in functions):
                setattr(node, field, f"_{owner}{name}")
        left += [(inner, owner) for inner in _children(node)]


def _part(code: CodeType, lines: list[str]) -> ast.Module | None:
    first = code.co_firstlineno - 1
    prompts = (">>> ", "... ")
    rest = [line.lstrip() for line in lines[first:]]
    if rest and rest[0].startswith(prompts):
        ended = next((k for k, x in enumerate(rest) if not x.startswith("...") and k), len(rest))
        block = [line[4:] or "\n" for line in rest[:ended]]
    else:
        try:
            block = inspect.getblock(lines[first:])
        except (IndentationError, SyntaxError):
            return None
    text = textwrap.dedent("".join(block))
    names = list(code.co_freevars)
    if names:  # the function closes over names of one around it
        given = ", ".join(f"{name}=None" for name in names)
        text = f"def _({given}):\n" + textwrap.indent(text, "    ")
    tree = _parsed(text, code.co_filename)
    if tree is not None:
        tree = ast.parse(text)  # a tree of its own, since its lines are moved
        ast.increment_lineno(tree, first - (1 if names else 0))
    return tree


def _candidates(tree: ast.Module, code: CodeType) -> Iterator[FunctionNode]:
    for node in _functions_by_name(tree).get(code.co_name, ()):
        if isinstance(node, ast.Lambda):
            if _spans(node, code):
                yield node
        elif code.co_firstlineno == min([node.lineno, *(d.lineno for d in node.decorator_list)]):
            yield node


@lru_cache(maxsize=256)
def _functions_by_name(tree: ast.Module) -> dict[str, list[FunctionNode]]:
    found: dict[str, list[FunctionNode]] = {}
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault("<lambda>", []).append(node)
    return found


def _spans(node: ast.Lambda, code: CodeType) -> bool:
    """Whether the instructions of ``code`` stand inside of the lambda, and begin its body."""
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None]
    body = node.body
    first = (body.lineno, body.col_offset)
    last = (body.end_lineno or 0, body.end_col_offset or 0)
    inside = [(p[0], p[2]) for p in places if (p[0], p[2]) >= (node.lineno, node.col_offset + 1)]
    return bool(inside) and min(inside) == first and max(inside) <= last


def _compiles_to(tree: ast.Module, code: CodeType) -> bool:
    """Whether the tree gives this very code: a file may have been edited after its import."""
    return any(_same(code, other) for other in _codes(tree, code.co_filename))


_compiled: dict[int, tuple[ast.Module, list[CodeType]]] = {}


def _codes(tree: ast.Module, file: str) -> list[CodeType]:
    if id(tree) not in _compiled:
        try:
            code = compile(tree, file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return []
        _compiled[id(tree)] = tree, list(_nested(code))
    return _compiled[id(tree)][1]


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _same(one: CodeType, other: CodeType) -> bool:
    if one.co_name != other.co_name or one.co_firstlineno != other.co_firstlineno:
        return False
    if one == other:  # soon told, where it is so
        return True
    return _contents(one) == _contents(other)


def _contents(code: CodeType) -> tuple[object, ...]:
    constants = [
        _contents(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts
    ]
    return (
        _instructions(code),
        code.co_names,
        code.co_varnames,
        sorted(code.co_freevars),
        constants,
    )


#: What depends on whether the compiler saw that a name is an imported module.
_CALLING = frozenset({"CACHE", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})


def _instructions(code: CodeType) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for row in dis.get_instructions(code):
        if row.opname not in _CALLING:
            name = "LOAD_ATTR" if row.opname == "LOAD_METHOD" else row.opname
            jumps = row.opcode in dis.hasjrel or row.opcode in dis.hasjabs
            known = jumps or isinstance(row.argval, CodeType)
            found.append((name, None if known else repr(row.argval)))
    return found
