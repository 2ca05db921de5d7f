"""Functions of a program that are alike, compiled once.

Loops that do the same, as those of a solver that is called at several places, give functions which
differ in the cells of the state and in the places of the arena that they use, and in the functions
of their own inner loops. Of a long program one function is compiled for all of them, which is given
a table of these; each of them is left as a call of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

#: Lines of a program, and of a function, from which on it is worth it.
PROGRAM, FUNCTION = 8_000, 150

_DEFINE = re.compile(r'^define internal ([^@\n]*)@"([^"]+)"(\(.*?^\}\n)', re.M | re.S)
_NAME = re.compile(r'@"([^"]+)"')
#: How functions begin that run steps: see `Unit`.
_ARGUMENTS = 'i8* %".1", i64 %".2", i64 %".3", i64 %".4"'
_STEPS = f"({_ARGUMENTS}) noinline\n{{\nentry:\n"
_TYPE = "i32 (i8*, i64, i64, i64)*"
#: What functions that are alike may differ in: a distance from an address, a number that is put
#: somewhere, a function that is called.
_HOLE = re.compile(
    r'^  (%"[^"]+" = getelementptr i8, i8\* %"[^"]+", i64 )(?P<by>-?\d+)()$'
    r"|^  (store i64 )(?P<put>-?\d+)(, .*)$"
    r'|^  (%"[^"]+" = call i32 )@"(?P<callee>[^"]+)"(\(.*)$',
    re.M,
)


class Function(NamedTuple):
    """A function of the module alone."""

    result: str
    name: str
    rest: str  # from its arguments on

    @property
    def text(self) -> str:
        return f'define internal {self.result}@"{self.name}"{self.rest}'


class Hole(NamedTuple):
    """A line of which a part may differ."""

    kind: str  # by, put or callee
    before: str
    part: str
    after: str


def shared(text: str) -> str:
    """The text of a module; if it is long, with one function for those that are alike."""
    if text.count("\n") < PROGRAM:
        return text
    functions, others = _taken_apart(text)
    functions = _distinct(functions)
    steps = {f.name for f in functions if f.rest.startswith(_STEPS)}
    groups: dict[str, list[Function]] = {}
    for f in functions:
        if f.name in steps and f.rest.count("\n") > FUNCTION:
            groups.setdefault(_outline(f.rest, steps), []).append(f)
    written = {f.name: f.text for f in functions}
    for at, alike in enumerate(group for group in groups.values() if len(group) > 1):
        written |= _as_one(f"alike_{at}", alike, steps)
    return "".join([*others, *written.values()])


def _taken_apart(text: str) -> tuple[list[Function], list[str]]:
    """The functions of the module alone, and what stands between them."""
    functions, others, at = list[Function](), list[str](), 0
    for found in _DEFINE.finditer(text):
        functions.append(Function(*found.groups()))
        others.append(text[at : found.start()])
        at = found.end()
    return functions, [*others, text[at:]]


def _distinct(functions: list[Function]) -> list[Function]:
    """One of those that are the same but for their names; nests of alike loops are."""
    first: dict[tuple[str, str], str] = {}
    same: dict[str, str] = {}
    for f in functions:
        kept = first.setdefault((f.result, f.rest), f.name)
        if kept != f.name and _is_nest(f):
            same[f.name] = kept
    if not same:
        return functions

    def renamed(found: re.Match[str]) -> str:
        return f'@"{same.get(found[1], found[1])}"'

    left = [f for f in functions if f.name not in same]
    return [f._replace(rest=_NAME.sub(renamed, f.rest)) for f in left]


def _is_nest(f: Function) -> bool:
    """Others may be called from outside of the functions that are the module's alone."""
    return f.rest.startswith('(i8** %".1", i64 %".2", i64 %".3")')


def _hole(found: re.Match[str]) -> Hole:
    (kind,) = (name for name, part in found.groupdict().items() if part is not None)
    before, part, after = (x for x in found.groups() if x is not None)
    return Hole(kind, before, part, after)


def _holes(rest: str, steps: Container[str]) -> Iterator[tuple[re.Match[str], Hole]]:
    for found in _HOLE.finditer(rest):
        hole = _hole(found)
        if hole.kind != "callee" or hole.part in steps:
            yield found, hole


def _outline(rest: str, steps: Container[str]) -> str:
    """The text of a function without what alike ones may differ in."""
    return "".join(_filled(rest, steps, lambda _, hole: f"  {hole.before}?{hole.after}"))


def _filled(rest: str, steps: Container[str], line: Callable[[int, Hole], str]) -> Iterator[str]:
    """The text of a function with other lines for its holes, by their number."""
    at = 0
    for k, (found, hole) in enumerate(_holes(rest, steps)):
        yield rest[at : found.start()]
        yield line(k, hole)
        at = found.end()
    yield rest[at:]


def _as_one(name: str, alike: Sequence[Function], steps: Container[str]) -> dict[str, str]:
    """One function for all, and each of them as a call of it; what stands for them by its name."""
    parts = [[hole.part for _, hole in _holes(f.rest, steps)] for f in alike]
    differ = [len(set(each)) > 1 for each in zip(*parts, strict=True)]
    columns: dict[tuple[str, ...], int] = {}  # of the tables: what differs, and its place

    def line(k: int, hole: Hole) -> str:
        if not differ[k]:
            return f"  {hole.before}{_named(hole)}{hole.after}"
        own = [each[k] for each in parts]
        if hole.kind == "callee":
            at = _column(columns, [f'ptrtoint ({_TYPE} @"{x}" to i64)' for x in own])
            return f'  {hole.before}%"function.{at}"{hole.after}'
        if hole.kind == "put":
            return f'  {hole.before}%"part.{_column(columns, own)}"{hole.after}'
        # those that are as far apart keep known distances between them
        at = _column(columns, [str(int(x) - int(own[0])) for x in own])
        to, _, place = hole.before.partition(" = ")
        moved = f'{to[:-1]}.moved"'
        base = place.removeprefix("getelementptr i8, i8* ").removesuffix(", i64 ")
        return (
            f'  {moved} = getelementptr i8, i8* {base}, i64 %"part.{at}"\n'
            f"  {to} = getelementptr i8, i8* {moved}, i64 {own[0]}"
        )

    body = "".join(_filled(alike[0].rest.removeprefix(_STEPS), steps, line))
    head = f'define internal i32 @"{name}"({_ARGUMENTS}, i64* %"table") noinline noduplicate\n'
    written = {name: f"{head}{{\nentry:\n{_loads(columns)}{body}"}
    for at, f in enumerate(alike):
        table, n = f"{name}_of_{f.name}", len(columns)
        entries = ", ".join(f"i64 {column[at]}" for column in columns)
        call = f'call i32 @"{name}"({_ARGUMENTS}, i64* @"{table}")'
        written[table] = f'@"{table}" = internal global [{n} x i64] [{entries}]\n'
        written[f.name] = f._replace(
            rest=f'{_STEPS}  %"status" = {call}\n  ret i32 %"status"\n}}\n'
        ).text
    return written


def _named(hole: Hole) -> str:
    return f'@"{hole.part}"' if hole.kind == "callee" else hole.part


def _column(columns: dict[tuple[str, ...], int], entries: Sequence[str]) -> int:
    return columns.setdefault(tuple(entries), len(columns))


def _loads(columns: dict[tuple[str, ...], int]) -> str:
    """Reads the table; what it holds of functions as functions."""
    lines = list[str]()
    for entries, at in columns.items():
        lines += [
            f'  %"place.{at}" = getelementptr i64, i64* %"table", i64 {at}',
            f'  %"part.{at}" = load i64, i64* %"place.{at}"',
        ]
        if entries[0].startswith("ptrtoint"):
            lines.append(f'  %"function.{at}" = inttoptr i64 %"part.{at}" to {_TYPE}')
    return "".join(f"{line}\n" for line in lines)
