"""From a tape to a native program: its code, and what Python has to know to run it.

Writes the IR of all its functions, or finds the object code on disk, with its `Facts` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from llvmlite import ir

from ckad.engines.actions import Slots
from ckad.engines.blas import calls_blas
from ckad.engines.native.ir.alike import shared
from ckad.engines.native.ir.element import Array
from ckad.engines.native.ir.hooks import write_bare_entry, write_entry
from ckad.engines.native.ir.unit import Buffer, Unit
from ckad.engines.native.kernels.blas import GEMM
from ckad.engines.native.kernels.gram import SYRK
from ckad.engines.native.loops.table import WITH_BODIES
from ckad.engines.native.nests.threads import write_end, write_worker
from ckad.engines.native.rows.code import TapeCode
from ckad.engines.native.rows.writer import TapedFacts, Writer
from ckad.engines.native.running.compiler import compile_module
from ckad.engines.native.running.describe import program_text
from ckad.engines.native.values.held import Held, taken
from ckad.engines.native.values.layout import LINE, rounded_up
from ckad.engines.native.values.registers import is_small
from ckad.engines.work import nanoseconds
from ckad.machine.compiler import Library
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.row import Row
from ckad.tape.tape import Tape
from ckad.tape.types import Type

#: Predicted nanoseconds of a run for which threads are started.
WORTH_THREADS = 4e5


@dataclass(frozen=True)
class Facts:
    """What Python has to know of a program's code; kept beside it as JSON."""

    arena_bytes: int
    n_cells: int
    inputs: list[int]  # cells for addresses
    constants: list[tuple[int, list[int]]]  # cell, path to the constant: bodies, then its number
    outputs: list[int]
    loops: dict[str, TapedFacts]
    places: list[tuple[str, str, int]]  # source, op, how many loops are around it
    shares: bool  # whether there is work to share that is worth the start of threads
    calls_blas: bool

    @staticmethod
    def parse(text: str) -> Facts:
        raw = json.loads(text)
        raw["loops"] = {k: TapedFacts(**v) for k, v in raw["loops"].items()}
        return Facts(**raw)


@dataclass(frozen=True, eq=False)
class Program:
    """Compiled code of a tape."""

    tape: Tape
    keeps_all: bool
    library: Library
    facts: Facts

    @cached_property
    def constants(self) -> list[tuple[int, np.ndarray]]:
        """Cells and the arrays whose addresses they hold."""
        return [(cell, _constant_at(self.tape, path)) for cell, path in self.facts.constants]

    @cached_property
    def taped(self) -> dict[int, TapedFacts]:
        return {int(name): facts for name, facts in self.facts.loops.items()}

    @property
    def kept_bytes(self) -> int:
        """Bytes that the program holds between runs: constants; its code lies outside of Python."""
        return sum(array.nbytes for _, array in self.constants)

    @property
    def text(self) -> str:
        """What the code computes, readable: the rows and nests of each of its functions."""
        writer = _writer(self.keeps_all)  # written again, since few ever ask
        _write(writer, self.tape)
        return program_text(self.tape, writer)

    def token_bytes(self, name: int, slots: Mapping[int, Slots]) -> int:
        """Bytes of a loop's token."""
        return self.taped[name].head_bytes + self.slot_bytes(name, slots)

    def slot_bytes(self, name: int, slots: Mapping[int, Slots]) -> int:
        """Bytes of its restart states and residuals; these end where it ends."""
        return slots[name].nbytes(self.taped[name].carry_bytes, self.stride(name, slots))

    def stride(self, name: int, slots: Mapping[int, Slots]) -> int:
        """Bytes of the residuals of one step."""
        facts = self.taped[name]
        inner = sum(rounded_up(self.token_bytes(x, slots), LINE) for x in facts.inner)
        return facts.residual_bytes + inner

    def homes(self, slots: Mapping[int, Slots]) -> dict[int, int]:
        """Offsets of the tokens that lie behind the arena, and -1: the bytes of all memory."""
        at = rounded_up(self.facts.arena_bytes, LINE)
        found: dict[int, int] = {}
        for name, facts in self.taped.items():
            if not facts.is_residual:
                found[name] = at
                at += rounded_up(self.token_bytes(name, slots), LINE)
        return found | {-1: at}


def prepare(tape: Tape, keeps_all: bool) -> Program:
    """The program of a tape, compiled or from the cache.

    One that ``keeps_all`` has no code to run steps again, less than half of what there is to
    compile: it is for schedules without restart states.
    """
    places = repr((keeps_all, list(_places(tape)))).encode()
    key = blake2b(tape.digest + places, digest_size=16).digest()
    library = compile_module(key, lambda: _build(tape, keeps_all))
    return Program(tape, keeps_all, library, Facts.parse(library.facts))


def _places(tape: Tape) -> Iterator[str]:
    """Where in the user's program a run may fail: errors name these, so that they are facts too.

    Of routines also how they are called: a number may be another routine's in another process.
    """
    for k, row in enumerate(tape.rows):
        if row.op in (Op.WRAP, Op.CALL):
            yield str(tape.source_of(k))
        if row.op is Op.CALL:
            yield _convention(tape, row)
    for body in tape.bodies:
        yield from _places(body)


def _convention(tape: Tape, row: Row) -> str:
    body = routine_of(row).compiled
    if body is None:
        return "Python"
    types = [tape.rows[x].type for x in row.operands]
    attrs = row.attrs[1:]
    return f"{body.workspace(attrs, *types)} bytes, {body.stages(attrs, *types)}"


def _writer(keeps_all: bool) -> Writer:
    return Writer(ir.Module("ckad"), WITH_BODIES, keeps_all)


def _build(tape: Tape, keeps_all: bool) -> tuple[str, str]:
    writer = _writer(keeps_all)
    facts = _write(writer, tape)
    return shared(str(writer.module)), json.dumps(asdict(facts))


def _write(writer: Writer, tape: Tape) -> Facts:
    module = writer.module
    unit = Unit(module, "body")
    inputs = [writer.cells(1) for _ in tape.inputs]
    outputs = [writer.cells(1) for _ in tape.outputs]
    values = [_given(unit, cell, t) for cell, t in zip(inputs, tape.input_types, strict=True)]
    code = TapeCode(writer, unit, tape, values, _wanted(unit, tape, outputs))
    results = code.run()
    for cell, type, value in zip(outputs, tape.output_types, results, strict=True):
        if type.size:
            code.put(Array(unit.address(cell), type), value)
    unit.finish()
    write_entry(module, unit.function)
    write_bare_entry(module, unit.function)
    shares = writer.shares and nanoseconds(tape, "native") > WORTH_THREADS
    if shares:
        write_worker(module)
        write_end(module)
    paths = dict(_constants(tape, []))
    return Facts(
        8 * writer.heap.peak,
        writer.n_cells,
        inputs,
        [(writer.constants[id(a)], paths[id(a)]) for a in writer.arrays],
        outputs,
        {str(name): loop for name, loop in writer.loops.items()},
        writer.places,
        shares,
        any(name in module.globals for name in (*GEMM.values(), *SYRK.values()))
        or calls_blas(tape),
    )


def _given(unit: Unit, cell: int, type: Type) -> Held:
    """An input: read where the user's array lies."""
    return taken(unit.b, Array(unit.address(cell), type))


def _wanted(unit: Unit, tape: Tape, cells: list[int]) -> dict[int, Buffer]:
    """Large results are computed where they are returned."""
    found: dict[int, Buffer] = {}
    outputs = tape.outputs.tolist()
    for row, cell in zip(outputs, cells, strict=True):
        if is_small(tape.rows[row].type):
            continue
        place = Buffer(unit.address(cell), tape.rows[row].type.nbytes)
        for k in _names(tape, row, outputs):
            if k not in found and tape.rows[k].op not in (Op.INPUT, Op.CONST):
                found[k] = place
    return found


def _names(tape: Tape, row: int, outputs: list[int]) -> list[int]:
    """An output, and what it is under another shape if that is computed for it alone."""
    source = tape.rows[row].operands[0] if tape.rows[row].op is Op.RESHAPE else row
    return [row] if source in outputs else [row, source]


def _constants(tape: Tape, path: list[int]) -> Iterator[tuple[int, list[int]]]:
    """The id of each constant array, and the way to it."""
    for k, array in enumerate(tape.constants):
        yield id(array), [*path, k]
    for k, body in enumerate(tape.bodies):
        yield from _constants(body, [*path, k])


def _constant_at(tape: Tape, path: list[int]) -> np.ndarray:
    for k in path[:-1]:
        tape = tape.bodies[k]
    return tape.constants[path[-1]]
