"""A tape as text, one row per line, and the way back.

    inputs %0
    outputs %4
    %0 = input (0) : f64[]
    %1 = const (0) 0.5 : f64[]
    %2 = loop %0, %1 (body=0, length=10, n_carry=1, n_xs=0) : tuple    # model.py:7
        body 0:
            inputs %0, %1, %2
            outputs %3
            ...
    %3 = result %2 (0) : f64[]    # model.py:7
    %4 = sin %3 : f64[]    # model.py:9

Attributes stand in parentheses, those of control rows with their names. A constant's attribute
is its number in the pool, and its elements follow in C order; a body follows the first row that
holds it. For reading, rows of one line of the user's program stand below it, where it is found:

    # model.py:9: return np.sin(y)
    %4 = sin %3 : f64[]
"""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from ckad.errors import TapeError
from ckad.tape.builder import BODY_COUNT, NOWHERE, Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Row, Source, Tape
from ckad.tape.types import DType, Type, parse_type
from ckad.tape.verify import MAX_DEPTH, verify

T = TypeVar("T")
INDENT = "    "
#: Constants of up to so many elements are shown whole.
SHOWN = 8
ROLES = {
    Op.LOOP: ("body",),
    Op.TAPED_LOOP: ("body", "taping"),
    Op.REVERSE_LOOP: ("advance", "taping", "reverse"),
    Op.COND: ("if true", "if false"),
}
_COUNTS = {
    Op.LOOP: ("length", "n_carry", "n_xs", "guard"),
    Op.TAPED_LOOP: ("length", "n_carry", "n_xs", "name", "guard"),
    Op.REVERSE_LOOP: (
        *("length", "n_carry", "name"),
        *("n_xs", "n_captured", "n_ct_carry", "n_ct_ys", "n_sums", "guard"),
    ),
    Op.COND: (),
}
_NAMES = {op: (*(role.replace(" ", "_") for role in ROLES[op]), *_COUNTS[op]) for op in BODY_COUNT}


# --- writing -----------------------------------------------------------------------------------


def to_text(tape: Tape, full: bool = False) -> str:
    """The rows of ``tape``, one per line.

    ``full`` writes every element of the constants and the whole paths of the sources, so that
    ``from_text`` can read the text; else large constants are cut, only file names shown, and rows
    stand below the source line that they come from.

    Examples
    --------
    >>> from ckad.tape.types import parse_type
    >>> b = Builder()
    >>> x = b.input(parse_type("f64[3]"))
    >>> print(to_text(b.tape([b.emit(Op.SIN, [x], (), b.type(x))])))
    inputs %0
    outputs %1
    %0 = input (0) : f64[3]
    %1 = sin %0 : f64[3]
    """
    return "\n".join(_tape_lines(tape, full))


def _tape_lines(tape: Tape, full: bool) -> Iterator[str]:
    yield f"inputs {_values(tape.inputs.tolist())}".rstrip()
    yield f"outputs {_values(tape.outputs.tolist())}".rstrip()
    shown: set[tuple[str, int]] = set()
    above = ""
    for k, row in enumerate(tape.rows):
        line = "" if full else _source_line(tape.source_of(k))
        if line and line != above:
            yield line
            above = line
        yield _row_line(tape, k, row, full, shown) + ("" if line else _comment(tape, k, full))
        for role, at in zip(ROLES.get(row.op, ()), row.attrs, strict=False):
            if ("body", at) not in shown:
                shown.add(("body", at))
                yield f"{INDENT}{role} {at}:"
                yield from (2 * INDENT + line for line in _tape_lines(tape.bodies[at], full))


def _row_line(tape: Tape, k: int, row: Row, full: bool, shown: set[tuple[str, int]]) -> str:
    words = [f"%{k} = {row.op.name.lower()}"]
    if row.operands:
        words.append(_values(row.operands))
    if row.attrs:
        words.append(f"({_attributes(row)})")
    if row.op is Op.CONST and ("const", row.attrs[0]) not in shown:
        shown.add(("const", row.attrs[0]))
        words.append(constant_text(tape.constants[row.attrs[0]], full))
    return " ".join([*words, ":", str(row.type)])


def _source_line(source: Source) -> str:
    """A comment with the text of a source line; empty where that is not found."""
    text = linecache.getline(source.file, source.line).strip()
    return f"# {_quoted(source, full=False)}: {text}" if text.isprintable() and text else ""


def _values(rows: Iterable[int]) -> str:
    return ", ".join(f"%{k}" for k in rows)


def _attributes(row: Row) -> str:
    if row.op in _NAMES:
        return ", ".join(f"{n}={a}" for n, a in zip(_NAMES[row.op], row.attrs, strict=True))
    return ", ".join(map(str, row.attrs))


def _comment(tape: Tape, k: int, full: bool) -> str:
    source = tape.source_of(k)
    return "" if source == NOWHERE else f"    # {_quoted(source, full)}"


def _quoted(source: Source, full: bool) -> str:
    """The place, as in a JSON string, so that no character of a file's name can end the line."""
    file = source.file if full else PurePath(source.file).name
    quoted = json.dumps(file, ensure_ascii=full or not file.isprintable())
    return f"{quoted[1:-1]}:{source.line}"


def constant_text(array: np.ndarray, full: bool = False) -> str:
    """The elements of an array, those of a large one cut unless ``full``."""
    flat = array.ravel()
    if not array.shape:
        return _element(flat[0], full)
    if full or flat.size <= SHOWN:
        return f"[{', '.join(_element(x, full) for x in flat)}]"
    head = ", ".join(_element(x, full) for x in flat[: SHOWN // 2])
    return f"[{head}, ..., {_element(flat[-1], full)}]"


def _element(x: Any, full: bool) -> str:
    if full and x.dtype.kind == "f" and np.isnan(x) and x.tobytes() != _nan(x.dtype).tobytes():
        return f"nan@{int(x.view(f'u{x.itemsize}')):x}"
    # The shortest text of a float32 reads back as a float32 alone; as a float64 it is exact.
    return repr(x.item()) if full else str(x)


def _nan(dtype: np.dtype) -> Any:
    return np.array(np.nan, dtype)[()]


# --- reading -----------------------------------------------------------------------------------

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
    if op in _NAMES:
        names = [word.partition("=")[0] for word in words]
        if names != list(_NAMES[op]):
            raise ValueError(f"attributes {', '.join(names)}, not {', '.join(_NAMES[op])}")
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
