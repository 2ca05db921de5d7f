"""A tape as text, one row per line; `parse` is the way back.

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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np

from ckad.place import NOWHERE, Source
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.row import Row

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
#: The names of the attributes of control rows.
NAMES = {op: (*(role.replace(" ", "_") for role in ROLES[op]), *_COUNTS[op]) for op in ROLES}


class Written(Protocol):
    """What a `Tape` has that is written; it prints itself, and so stands above this module."""

    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def inputs(self) -> np.ndarray: ...
    @property
    def outputs(self) -> np.ndarray: ...
    @property
    def constants(self) -> Sequence[np.ndarray]: ...
    @property
    def bodies(self) -> Sequence[Written]: ...
    def source_of(self, row: int) -> Source: ...


def to_text(tape: Written, full: bool = False) -> str:
    """The rows of ``tape``, one per line.

    ``full`` writes every element of the constants and the whole paths of the sources, so that
    ``parse.from_text`` can read the text; else large constants are cut, only file names shown, and
    rows stand below the source line that they come from.

    Examples
    --------
    >>> from ckad.tape.builder import Builder
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


def _tape_lines(tape: Written, full: bool) -> Iterator[str]:
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


def _row_line(tape: Written, k: int, row: Row, full: bool, shown: set[tuple[str, int]]) -> str:
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
    if row.op is Op.CALL:
        return ", ".join([routine_of(row).name, *map(str, row.attrs[1:])])
    if row.op in NAMES:
        return ", ".join(f"{n}={a}" for n, a in zip(NAMES[row.op], row.attrs, strict=True))
    return ", ".join(map(str, row.attrs))


def _comment(tape: Written, k: int, full: bool) -> str:
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
