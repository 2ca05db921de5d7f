"""A tape in a file: NumPy's npz without pickle.

The file holds ``format`` and, per tape, the nine index arrays, its constants, and a text of types
and sources; the arrays of body k are prefixed ``bodies/k/``. Ops, routines and types are stored by
name: their numbers may change from one version of ckad to the next.

Reading trusts nothing. Members are not compressed, so they are no larger than the file; headers
are matched, not evaluated; what comes out is verified.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from secrets import token_hex
from typing import Any

import numpy as np

from ckad.errors import TapeError
from ckad.place import Source
from ckad.tape.ops import Op
from ckad.tape.routines import named, routine_of
from ckad.tape.tape import FORMATS, Format, Tape
from ckad.tape.types import NUMPY_DTYPES, Type, parse_type
from ckad.tape.verify import INDEX_ARRAYS, MAX_DEPTH, verify

FORMAT = 2


def save(tape: Tape, path: str | os.PathLike[str]) -> None:
    """Write ``tape`` to the file ``path``, in one piece: a reader sees the old file or the new one.

    The name is taken as it is; nothing is appended to it.

    Raises
    ------
    TapeError
        If ``tape`` breaks a rule of tapes.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from ckad.tape.builder import Builder
    >>> from ckad.tape.types import parse_type
    >>> b = Builder()
    >>> x = b.input(parse_type("f64[3]"))
    >>> tape = b.tape([b.emit(Op.SIN, [x], (), b.type(x))])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(tape, f"{directory}/sine.tape")
    ...     print(load(f"{directory}/sine.tape"))
    inputs %0
    outputs %1
    %0 = input (0) : f64[3]
    %1 = sin %0 : f64[3]
    """
    arrays = dict(_arrays(verify(tape), ""))
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise FileExistsError(f"{target} is no regular file; name another path for the tape")
    draft = f"{target}.{token_hex(6)}.tmp"
    try:
        with open(draft, "xb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise


def load(path: str | os.PathLike[str]) -> Tape:
    """Read the tape that ``save`` wrote to ``path``; nothing in the file is executed.

    Raises
    ------
    TapeError
        If the file does not hold a valid tape of this format.
    OSError
        If there is no such file, or it cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            return verify(_read(_members(file)))
        except Exception as error:  # whatever a damaged or hostile file leads to
            raise TapeError(f"{os.fspath(path)} does not hold a tape: {error}") from error


# --- writing -----------------------------------------------------------------------------------


def _arrays(tape: Tape, prefix: str) -> Iterator[tuple[str, np.ndarray]]:
    if not prefix:
        yield "format", np.array(FORMAT)
        yield "ops", _text([op.name for op in Op])
    for name in INDEX_ARRAYS:
        yield prefix + name, getattr(tape, name)
    counts: dict[str, Any] = {"constants": len(tape.constants), "bodies": len(tape.bodies)}
    called = {k: routine_of(r).name for k, r in enumerate(tape.rows) if r.op is Op.CALL}
    counts |= {"routines": called} if called else {}
    tables = {"types": [str(t) for t in tape.types], "sources": [list(s) for s in tape.sources]}
    yield prefix + "tables", _text(tables | counts)
    for k, constant in enumerate(tape.constants):
        yield f"{prefix}constants/{k}", constant
    for k, body in enumerate(tape.bodies):
        yield from _arrays(body, f"{prefix}bodies/{k}/")


def _text(content: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


# --- reading -----------------------------------------------------------------------------------

Members = dict[str, np.ndarray]
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z][1248])', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n"
)
_INDICES: list[Any] = [np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.uint8)]
_DTYPES = {dtype.str: dtype for dtype in [*_INDICES, *NUMPY_DTYPES.values()]}


def _members(file: Any) -> Members:
    """Every array of the file by its name."""
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if any(i.compress_type != zipfile.ZIP_STORED for i in infos):
            raise TapeError("it is compressed")
        if sum(i.file_size for i in infos) > size:
            raise TapeError("its members are larger than itself")
        members = {i.filename.removesuffix(".npy"): _array(archive.read(i)) for i in infos}
    if len(members) != len(infos):
        raise TapeError("two members have the same name")
    return members


def _array(data: bytes) -> np.ndarray:
    """An array in the npy format, version 1.0, whose header is as NumPy writes it."""
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data, 10, start)
    if data[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise TapeError("a member is no array")
    dtype = _DTYPES[header[1].decode()]
    shape = tuple(int(d) for d in header[2].decode().split(",") if d.strip())
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise TapeError(f"{len(data) - start} bytes for an array of {dtype} and shape {shape}")
    # A copy: the data of a file need not lie on the boundaries that a kernel expects.
    array: np.ndarray = np.frombuffer(data, dtype, offset=start).reshape(shape).copy()
    if dtype == np.bool_ and np.any(array.view(np.uint8) > 1):
        raise TapeError("a boolean that is neither 0 nor 1")
    array.flags.writeable = False
    return array


def _take(members: Members, name: str) -> np.ndarray:
    if name not in members:
        raise TapeError(f"{name} is missing")
    return members.pop(name)


def _read(members: Members) -> Tape:
    version = _take(members, "format")
    if version.shape or version != FORMAT:
        raise TapeError(f"it has format {version}; this version of ckad reads {FORMAT}")
    names = _content(_take(members, "ops"))
    codes = np.array([Op.__members__.get(name, -1) for name in names], np.int16)
    tape = _tape(members, "", codes, 0)
    if members:
        raise TapeError(f"it holds more than a tape: {sorted(members)[:3]}")
    return tape


def _content(array: np.ndarray) -> Any:
    return json.loads(array.tobytes())


def _tape(members: Members, prefix: str, codes: np.ndarray, depth: int) -> Tape:
    if depth > MAX_DEPTH:
        raise TapeError(f"more than {MAX_DEPTH} bodies inside of each other")
    arrays = {name: _take(members, prefix + name) for name in INDEX_ARRAYS}
    arrays["opcode"] = _current_codes(arrays["opcode"], codes)
    tables = _content(_take(members, prefix + "tables"))
    _renumber(arrays, tables.get("routines", {}))
    constants = range(tables["constants"])
    bodies = range(tables["bodies"])
    return Tape(
        **arrays,
        types=tuple(_type(text) for text in tables["types"]),
        sources=tuple(Source(file, line) for file, line in tables["sources"]),
        constants=tuple(_take(members, f"{prefix}constants/{k}") for k in constants),
        bodies=tuple(_tape(members, f"{prefix}bodies/{k}/", codes, depth + 1) for k in bodies),
    )


def _current_codes(stored: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The op codes of this version; -1, which ``verify`` refuses, for an op it does not have."""
    if stored.dtype != np.int16:
        raise TapeError("opcode has to be an array of int16")
    known = (stored >= 0) & (stored < len(codes))
    current = np.append(codes, np.int16(-1))[np.where(known, stored, -1)]
    current.flags.writeable = False
    return current


def _renumber(arrays: Members, called: dict[str, str]) -> None:
    """Routines have the numbers of this process; a row that names none has none."""
    attrs, offset = arrays["attr"].copy(), arrays["attr_offset"]
    calls = np.flatnonzero(arrays["opcode"] == Op.CALL).tolist()
    if calls and (attrs.ndim != 1 or offset.shape != (len(arrays["opcode"]) + 1,)):
        raise TapeError("the attributes of its rows are no list")
    for row in calls:
        at = int(offset[row])
        if not 0 <= at < len(attrs):
            raise TapeError(f"row {row} calls no routine")
        attrs[at] = named(str(called.get(str(row), ""))).number
    attrs.flags.writeable = False
    arrays["attr"] = attrs


def _type(text: str) -> Type:
    type = parse_type(text)
    if str(type) != text:
        raise TapeError(f"{text} is no type")
    return type


FORMATS["npz"] = Format(save, load)
