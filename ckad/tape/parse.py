"""A tape read from the text that `text.to_text` wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ckad.errors import TapeError
from ckad.place import NOWHERE, Source
from ckad.tape.builder import BODY_COUNT, Builder
from ckad.tape.ops import Op
from ckad.tape.routines import named
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.tape.text import INDENT, NAMES
from ckad.tape.types import DType, Type, parse_type
from ckad.tape.verify import MAX_DEPTH, verify

T = TypeVar("T")
_ROW = re.compile(
    r"%(?P<row>\d+) = (?P<op>[a-z0-9_]+)"
    r"(?: (?P<operands>%\d+(?:, %\d+)*))?"
    r"(?: \((?P<attrs>[^()]*)\))?"
    r"(?: (?P<value>[^:#]*[^:# ]))?"
    r" : (?P<type>[a-z0-9]+(?:\[[0-9,]*\])?)"
    r"(?: +# (?P<file>.*):(?P<line>-?\d+))?",
    re.ASCII,
)
_INTEGER = re.compile(r"-?\d+", re.ASCII)


class _Lines:
    """The lines that are left: (number, depth, text)."""

    def __init__(self, text: str) -> None:
        self.left = []
        for number, line in enumerate(text.split("\n"), 1):
            content = line.lstrip(" ")
            if content.strip() and not content.startswith("#"):
                depth, rest = divmod(len(line) - len(content), len(INDENT))
                if rest:
                    raise TapeError(f"line {number}: indented by no multiple of {len(INDENT)}")
                self.left.append((number, depth, content.rstrip()))
        self.left.reverse()

    @property
    def number(self) -> int:
        return self.left[-1][0] if self.left else 0

    def peek(self, depth: int) -> str | None:
        return self.left[-1][2] if self.left and self.left[-1][1] == depth else None

    def take(self) -> str:
        return self.left.pop()[2]


def from_text(text: str) -> Tape:
    """The tape that ``to_text(tape, full=True)`` wrote, equal to it in every bit.

    Raises
    ------
    TapeError
        Names the line that cannot be read, or the row that breaks a rule of tapes.

    Examples
    --------
    >>> text = "inputs %0\\noutputs %1\\n%0 = input (0) : f64[3]\\n%1 = sin %0 : f64[3]"
    >>> from_text(text)
    <Tape of 2 rows: (f64[3]) -> (f64[3])>
    """
    lines = _Lines(text)
    tape = _tape(lines, 0)
    if lines.left:
        raise TapeError(f"line {lines.number}: not at the depth of a row: {lines.take()[:80]}")
    return verify(tape)


def _tape(lines: _Lines, depth: int) -> Tape:
    if depth > 2 * MAX_DEPTH:
        raise TapeError(f"line {lines.number}: more than {MAX_DEPTH} bodies inside of each other")
    b, constants, bodies = Builder(), dict[int, np.ndarray](), dict[int, Tape]()
    first = lines.number
    b.inputs = _header(lines, depth, "inputs")
    outputs = _header(lines, depth, "outputs")
    while lines.peek(depth) is not None:
        number = lines.number
        row = _located(number, _read_row, lines.take(), b, constants)
        for at in row.attrs[: BODY_COUNT.get(row.op, 0)]:
            if at not in bodies:
                _body_header(lines, depth + 1, at)
                bodies[at] = _tape(lines, depth + 2)
    b.constants = _located(first, _numbered, constants, "constants")
    b.bodies = _located(first, _numbered, bodies, "bodies")
    tape = _located(first, b.tape, outputs)
    _located(first, getattr, tape, "opcode")  # fails if a number is too large for the arrays
    return tape


def _located(number: int, read: Callable[..., T], *args: Any) -> T:
    """``read(*args)``, its errors with the line they are about."""
    try:
        return read(*args)
    except (ValueError, OverflowError, TypeError) as error:
        raise TapeError(f"line {number}: {error}") from None


def _header(lines: _Lines, depth: int, word: str) -> list[int]:
    number, line = lines.number, lines.peek(depth) or ""
    values = re.fullmatch(rf"{word}((?: %\d+(?:, %\d+)*)?)", line, re.ASCII)
    if values is None:
        raise TapeError(f"line {number}: expected '{word}' and values: {line[:80]}")
    lines.take()
    return _located(number, _read_values, values[1].strip())


def _body_header(lines: _Lines, depth: int, at: int) -> None:
    line = lines.peek(depth) or ""
    if not re.fullmatch(rf"[a-z ]+ {at}:", line):
        raise TapeError(f"line {lines.number}: expected body {at} of the row before: {line[:80]}")
    lines.take()


def _numbered(items: dict[int, Any], name: str) -> list[Any]:
    if set(items) != set(range(len(items))):
        raise ValueError(f"the {name} of this tape are {sorted(items)}, not numbered from 0")
    return [items[k] for k in range(len(items))]


def _read_row(line: str, b: Builder, constants: dict[int, np.ndarray]) -> Row:
    found = _ROW.fullmatch(line)
    if found is None:
        raise ValueError(f"not a row: {line[:80]}")
    if int(found["row"]) != len(b.rows):
        raise ValueError(f"row %{found['row']} where %{len(b.rows)} comes next")
    if found["op"].upper() not in Op.__members__:
        raise ValueError(f"no op is called {found['op']}")
    op, type = Op[found["op"].upper()], _read_type(found["type"])
    attrs = _read_attributes(op, found["attrs"])
    if found["value"] is not None:
        _store_constant(op, attrs, type, found["value"], constants)
    b.where = _read_source(found["file"], found["line"])
    b.emit(op, _read_values(found["operands"] or ""), attrs, type)
    return b.rows[-1]


def _read_values(text: str) -> list[int]:
    return [int(word[1:]) for word in text.split(", ")] if text else []


def _read_type(text: str) -> Type:
    try:
        type = parse_type(text)
    except StopIteration:
        raise ValueError(f"no type is called {text}") from None
    if str(type) != text:
        raise ValueError(f"{text} is no type")
    return type


def _read_attributes(op: Op, text: str | None) -> list[int]:
    if text is None:
        return []
    words = text.split(", ")
    if op is Op.CALL:
        words[0] = str(named(words[0]).number)
    if op in NAMES:
        names = [word.partition("=")[0] for word in words]
        if names != list(NAMES[op]):
            raise ValueError(f"attributes {', '.join(names)}, not {', '.join(NAMES[op])}")
        words = [word.partition("=")[2] for word in words]
    if not all(_INTEGER.fullmatch(word) for word in words):
        raise ValueError(f"({text[:80]}) are not integers")
    return [int(word) for word in words]


def _read_source(file: str | None, line: str) -> Source:
    if file is None:
        return NOWHERE
    return Source(json.loads(f'"{file}"'), int(line))


def _store_constant(
    op: Op, attrs: list[int], type: Type, text: str, constants: dict[int, np.ndarray]
) -> None:
    if op is not Op.CONST or len(attrs) != 1 or not type.is_array:
        raise ValueError("only a constant of an array type has a value")
    if attrs[0] in constants:
        raise ValueError(f"constant {attrs[0]} has a value already")
    array = _read_array(text, type)
    array.flags.writeable = False
    constants[attrs[0]] = array


def _read_array(text: str, type: Type) -> np.ndarray:
    if "..." in text:
        raise ValueError("the constant is cut; write it with to_text(tape, full=True)")
    if type.shape:
        if not (text.startswith("[") and text.endswith("]")):
            raise ValueError(f"{text[:80]} is no list of elements")
        text = text[1:-1]
    words = text.split(", ") if text else []
    if len(words) != type.size:
        raise ValueError(f"{len(words)} elements for {type}")
    return _READERS[type.dtype](words, type.numpy).reshape(type.shape)


def _read_floats(words: list[str], dtype: np.dtype) -> np.ndarray:
    array = np.array([0.0 if "@" in w else float(w) for w in words], dtype)
    bits = array.view(f"u{dtype.itemsize}")
    for k, word in enumerate(words):
        if word.startswith("nan@"):
            bits[k] = int(word[4:], 16)
        elif "@" in word:
            raise ValueError(f"{word[:80]} is no number")
    return array


def _read_integers(words: list[str], dtype: np.dtype) -> np.ndarray:
    return np.array([int(w) for w in words], dtype)


def _read_booleans(words: list[str], dtype: np.dtype) -> np.ndarray:
    if not {"True", "False"}.issuperset(words):
        raise ValueError("elements that are neither True nor False")
    return np.array([w == "True" for w in words], dtype)


_READERS = {
    DType.F64: _read_floats,
    DType.F32: _read_floats,
    DType.I64: _read_integers,
    DType.BOOL: _read_booleans,
}
