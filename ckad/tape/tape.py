"""The tape: a program as a frozen structure of arrays, one row per op (a Wengert list)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import accumulate, chain
from operator import itemgetter
from os import PathLike
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ckad.errors import TapeError
from ckad.place import Source
from ckad.tape.ops import BY_CODE, Op
from ckad.tape.row import Row
from ckad.tape.text import to_text
from ckad.tape.types import Type

FilePath = str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Tape:
    """A program in single-assignment form: row k writes value k, once.

    ``operand[operand_offset[k]:operand_offset[k + 1]]`` are the values that row k reads, all
    smaller than k; ``attr`` likewise holds its integer attributes. Control rows name body tapes
    by their index in ``bodies``. ``print(tape)`` shows it; ``save`` and ``load`` keep it in a file.

    A tape made of rows has its arrays and types from the first time that they are asked for: most
    tapes are only on the way from one pass to the next.

    >>> import numpy as np, ckad
    >>> tape = ckad.trace(lambda x: np.sin(x) * x)(1.0)
    >>> tape, len(tape), tape.output_types[0].shape
    (<Tape of 3 rows: (f64[]) -> (f64[])>, 3, ())
    """

    opcode: np.ndarray  # int16[n], an Op
    operand_offset: np.ndarray  # int64[n + 1]
    operand: np.ndarray  # int32[m]
    attr_offset: np.ndarray  # int64[n + 1]
    attr: np.ndarray  # int64[k]
    type: np.ndarray  # int32[n], index into types
    source: np.ndarray  # int32[n], index into sources
    inputs: np.ndarray  # int32: the INPUT rows by position
    outputs: np.ndarray  # int32: the values returned
    types: tuple[Type, ...]
    sources: tuple[Source, ...]
    constants: tuple[np.ndarray, ...]
    bodies: tuple[Tape, ...] = field(default=())

    @staticmethod
    def of_rows(
        rows: Iterable[Row],
        inputs: Sequence[int],
        outputs: Sequence[int],
        sources: tuple[Source, ...],
        constants: tuple[np.ndarray, ...],
        bodies: tuple[Tape, ...],
    ) -> Tape:
        """A tape of rows that fit together, as a Builder makes them."""
        tape = object.__new__(Tape)
        tape.__dict__.update(
            rows=tuple(rows),
            inputs=_array(np.int32, inputs),
            outputs=_array(np.int32, outputs),
            sources=sources,
            constants=constants,
            bodies=bodies,
        )
        return tape

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_ROWS or "rows" not in self.__dict__:
            raise AttributeError(name)
        self.__dict__.update(_arrays_of(self.rows))
        return self.__dict__[name]

    def __len__(self) -> int:
        # the rows of a damaged tape cannot be read
        return len(self.rows if "rows" in self.__dict__ else self.opcode)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        operands, attrs = self.operand.tolist(), self.attr.tolist()
        o, a = self.operand_offset.tolist(), self.attr_offset.tolist()
        return tuple(
            Row(
                BY_CODE[op],
                tuple(operands[o[k] : o[k + 1]]),
                tuple(attrs[a[k] : a[k + 1]]),
                self.types[t],
                s,
            )
            for k, (op, t, s) in enumerate(
                zip(self.opcode.tolist(), self.type.tolist(), self.source.tolist(), strict=True)
            )
        )

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The op of each row: whether there is one is soon asked."""
        return tuple(map(_OP, self.rows))

    @cached_property
    def input_types(self) -> tuple[Type, ...]:
        return tuple(self.rows[k].type for k in self.inputs.tolist())

    @cached_property
    def input_dtypes(self) -> tuple[np.dtype, ...]:
        return tuple(t.numpy for t in self.input_types)

    def fitted(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """Arrays as inputs, which have these shapes, in the inputs' dtypes."""
        fitted = [np.asarray(x, dtype) for x, dtype in zip(arrays, self.input_dtypes, strict=False)]
        found, wanted = [np.shape(x) for x in arrays], [t.shape for t in self.input_types]
        if found != wanted:
            raise TapeError.here(f"the program takes arrays of shapes {wanted}, and gets {found}.")
        return fitted

    @cached_property
    def output_types(self) -> tuple[Type, ...]:
        return tuple(self.rows[k].type for k in self.outputs.tolist())

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the arrays and the constants, bodies included; what they share counts once."""
        tapes: dict[int, Tape] = {}
        self._note(tapes)
        constants = {id(c): c.nbytes for tape in tapes.values() for c in tape.constants}
        return sum(map(_bytes_of, tapes.values())) + sum(constants.values())

    def _note(self, tapes: dict[int, Tape]) -> None:
        """Note this tape and its bodies, each once."""
        tapes[id(self)] = self
        for body in self.bodies:
            if id(body) not in tapes:
                body._note(tapes)

    @cached_property
    def digest(self) -> bytes:
        """Hash of the program: equal for equal rows and constants; sources do not count."""
        h = blake2b(digest_size=16)
        for a in (self.opcode, self.operand_offset, self.operand, self.attr_offset, self.attr):
            h.update(a.tobytes())
        for a in (self.type, self.inputs, self.outputs):
            h.update(a.tobytes())
        h.update(_text_of(self.types).encode())
        for c in self.constants:
            h.update(f"{_name(c.dtype)}{c.shape}".encode())
            h.update(np.ascontiguousarray(c).data)  # not tobytes: constants may be large
        for body in self.bodies:
            h.update(body.digest)
        return h.digest()

    @cached_property
    def identity(self) -> bytes:
        """Hash of contents and places: what an error of a program names has to be this one's."""
        h = blake2b(self.digest, digest_size=16)
        h.update(repr(self.sources).encode())
        h.update(self.source.tobytes())
        for body in self.bodies:
            h.update(body.identity)
        return h.digest()

    @cached_property
    def contents(self) -> Contents:
        """The same as a key of what was made of the tape in this process."""
        return Contents(self)

    def source_of(self, row: int) -> Source:
        return self.sources[self.rows[row].source]

    def save(self, path: FilePath) -> None:
        """Write the tape to ``path`` (NumPy's npz, no pickle)."""
        FORMATS["npz"].save(self, path)

    @staticmethod
    def load(path: FilePath) -> Tape:
        """Read a tape that ``save`` wrote; TapeError if the file does not hold a valid one."""
        return FORMATS["npz"].load(path)

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        ins = ", ".join(map(str, self.input_types))
        outs = ", ".join(map(str, self.output_types))
        return f"<Tape of {len(self)} rows: ({ins}) -> ({outs})>"


class Contents:
    """All that a tape is, as a key: equal for equal rows, constants and places.

    It is sooner made than ``Tape.identity``, and holds the rows.
    """

    __slots__ = ("_hash", "_parts")

    def __init__(self, tape: Tape) -> None:
        ends = tuple(tape.inputs.tolist()), tuple(tape.outputs.tolist())
        constants = tuple((c.dtype.str, c.shape, contents_of(c)) for c in tape.constants)
        bodies = tuple(body.contents for body in tape.bodies)
        self._parts = tape.rows, ends, tape.sources, constants, bodies
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Contents) or self._hash != other._hash:
            return False
        return self._parts == other._parts


class Format(NamedTuple):
    """How tapes are kept in files."""

    save: Callable[[Tape, FilePath], None]
    load: Callable[[FilePath], Tape]


#: The formats by their names. What checks a tape before it is written and after it is read knows
#: tapes, so it stands above this module, and puts itself here when the package is imported.
FORMATS: dict[str, Format] = {}

#: What a tape of rows is without until it is asked for.
_OF_ROWS = (
    "opcode", "operand_offset", "operand", "attr_offset", "attr", "type", "source", "types",
)  # fmt: skip


#: The hashes of constants, by the identity of the array.
_hashes: dict[int, tuple[ref[np.ndarray], bytes]] = {}


def contents_of(array: np.ndarray) -> bytes:
    """What tells constants of one type apart: their bytes, or if those are many, a hash of them."""
    if array.nbytes <= 64:
        return array.tobytes()
    key = id(array)
    known = _hashes.get(key)
    if known is not None and known[0]() is array:
        return known[1]
    digest = blake2b(np.ascontiguousarray(array).data).digest()
    if not array.flags.writeable:
        _hashes[key] = ref(array, lambda _: _hashes.pop(key, None)), digest
    return digest


def _text_of(types: Sequence[Type]) -> str:
    """``repr`` of a tuple of types, of which there are few."""
    texts = map(_repr, types)
    return f"({', '.join(texts)}{',' * (len(types) == 1)})"


_repr, _name = lru_cache(maxsize=4096)(repr), lru_cache(maxsize=64)(str)


_OP, _OPERANDS, _ATTRS = map(itemgetter, range(3))


def _bytes_of(tape: Tape) -> int:
    """Bytes of the arrays that rows have, which need not be made for that."""
    rows, n = tape.rows, len(tape.rows)
    listed = 4 * sum(map(len, map(_OPERANDS, rows))) + 8 * sum(map(len, map(_ATTRS, rows)))
    return listed + n * (2 + 4 + 4) + 2 * 8 * (n + 1)


def _arrays_of(rows: Sequence[Row]) -> dict[str, Any]:
    columns: Any = zip(*rows, strict=True) if rows else ((),) * 5
    ops, operands, attrs, types, sources = columns
    numbers = {t: k for k, t in enumerate(dict.fromkeys(types))}
    return {
        "opcode": _array(np.int16, ops),
        "operand_offset": _offsets(operands),
        "operand": _array(np.int32, [*chain.from_iterable(operands)]),
        "attr_offset": _offsets(attrs),
        "attr": _array(np.int64, [*chain.from_iterable(attrs)]),
        "type": _array(np.int32, [*map(numbers.__getitem__, types)]),
        "source": _array(np.int32, sources),
        "types": tuple(numbers),
    }


def _array(dtype: type, values: Sequence[int]) -> np.ndarray:
    array: np.ndarray = np.fromiter(values, dtype, len(values))
    array.flags.writeable = False
    return array


def _offsets(parts: Sequence[Sequence[int]]) -> np.ndarray:
    """Where each part of what is laid out one after the other begins, and the last ends."""
    return _array(np.int64, [*accumulate(map(len, parts), initial=0)])


__all__ = ["FORMATS", "Contents", "Format", "Row", "Source", "Tape", "contents_of"]
