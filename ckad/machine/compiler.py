"""From LLVM IR to machine code that can be called, kept on disk.

Object code is loaded by LLVM's own linker, one library of it per program, and leaves memory with
the last reference to the ``Library``.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import time
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from llvmlite.binding.newpassmanagers import NewPassManager
from numba.core.codegen import get_host_cpu_features

from ckad import cache, locks
from ckad.cache import Cache

WRITES_BETWEEN_TRIMS = 32
OPT = 2  # of the code generator, and of the passes unless the code is long
LONG = 4000  # lines of one block; what OPT 2 adds takes more than linear time there
# Instructions of one block from which on it is selected in one pass, as it stands. Everything else
# that the code generator does takes the square of a block's length: 29 s for 26,000, 4 s with this.
VERY_LONG = 8000
# The scheduler compares each access to memory with HUGE others of its block. LLVM's 1000 is ten
# times slower on straight-line code, for the same code. An option that LLVM lacks ends the process.
HUGE = 100
SCHEDULER_OPTION_IN = range(15, 23)  # versions of LLVM
# LLVM's newer linker lays code and constants side by side, as the small code model wants them;
# llvmlite does not have it on Windows.
JIT_LINK = os.name != "nt"


# The IR of a program, with or without facts that are to be kept beside its code.
Source: TypeAlias = ir.Module | str | tuple[ir.Module | str, str]
# Where functions lie that code calls; asked when a program that needs them is loaded.
Symbols: TypeAlias = Callable[[str], int | None]


class Code(NamedTuple):
    """What an entry of the cache holds."""

    object: bytes
    functions: tuple[str, ...]  # that it defines and exports
    symbols: tuple[str, ...]  # that it expects from elsewhere
    text: bytes  # the IR it was made from, compressed
    facts: str  # what its maker wants to know of it, in every process


@dataclass(frozen=True, eq=False)
class Library:
    """A program in memory; its addresses hold as long as the library does."""

    seconds: float  # spent on building and compiling it, 0.0 if it came from the cache
    cached: bool
    facts: str  # as ``build`` gave them
    _text: bytes
    _loaded: Any  # a resource tracker; its end frees the code

    def address(self, name: str) -> int:
        """The entry point of a function of the module; KeyError if it defines none of the name."""
        return int(self._loaded[name])

    @property
    def llvm(self) -> str:
        """The optimised IR."""
        with _optimised(zlib.decompress(self._text).decode()) as module:
            return str(module)

    @property
    def asm(self) -> str:
        """The assembly."""
        with _optimised(zlib.decompress(self._text).decode()) as module:
            return str(_machine().emit_assembly(module))


def in_process(name: str) -> int | None:
    """The address of a function of the C library, or of what the linker was told."""
    found: int | None = llvm.address_of_symbol(name)
    return found


class Compiler:
    """Compiles programs of one kind, each once, and keeps them in the ``kept`` cache: all of them,
    or those used last, as many as ``most`` files and bytes."""

    def __init__(
        self, kept: Cache, most: tuple[int, int] | None = None, vectorises: bool = False,
        symbols: Symbols = in_process,
    ) -> None:  # fmt: skip
        self.kept, self.most, self.vectorises, self.symbols = kept, most, vectorises, symbols
        self.lock = locks.lock()  # held while a program is compiled, so that none is compiled twice
        self.libraries: weakref.WeakValueDictionary[bytes, Library] = weakref.WeakValueDictionary()
        self.writes = itertools.count()

    def library(self, key: bytes, build: Callable[[], Source]) -> Library:
        """The library of the program that ``key`` names.

        Only if neither this process nor the disk has its machine code, ``build`` is called for its
        IR.
        """
        with self.lock:
            library = self.libraries.get(key)
            if library is None:
                library = self._from_disk(key) or self._compiled_once(key, build)
                self.libraries[key] = library
            return library

    def entry(self, key: bytes) -> Path | None:
        directory = self.kept.directory(*_cpu(), OPT)
        return None if directory is None else directory / cache.digest(key)[:32]

    def _compiled_once(self, key: bytes, build: Callable[[], Source]) -> Library:
        """Of processes that need the same program one compiles it; the others wait and find it."""
        with cache.exclusive_entry(self.entry(key)):
            return self._from_disk(key) or self._compile(key, build)

    def _compile(self, key: bytes, build: Callable[[], Source]) -> Library:
        start = time.perf_counter()
        source = build()
        source, facts = source if isinstance(source, tuple) else (source, "")
        code = _code(str(source), facts, self.vectorises)
        library = _load(code, time.perf_counter() - start, False, self.symbols)
        self._to_disk(key, code)
        return library

    def _from_disk(self, key: bytes) -> Library | None:
        path = self.entry(key)
        if path is None:
            return None
        try:
            code = _decode(key, cache.read(path))
            library = None if code is None else _load(code, 0.0, True, self.symbols)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file does
            _warn("was not read from", path, error)
            return None
        with suppress(OSError):
            os.utime(path)  # entries used least recently go first
        return library

    def _to_disk(self, key: bytes, code: Code) -> None:
        path = self.entry(key)
        # An edit since the import would file old code under new sources, or the reverse.
        if path is None or self.kept.edited():
            return
        try:
            cache.write(path, _encode(key, code))
            if self.most is not None and next(self.writes) % WRITES_BETWEEN_TRIMS == 0:
                self.kept.trim(*self.most)
        except Exception as error:  # a full disk, a read-only one
            _warn("was not written to", path, error)


def try_out() -> float:
    """Compile a small program and run it; the seconds that took. Nothing is kept on disk."""
    start = time.perf_counter()
    module = ir.Module("trial")
    function = ir.Function(module, ir.FunctionType(ir.IntType(64), []), "answer")
    ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(ir.IntType(64), 42))
    library = _load(_code(str(module), ""), 0.0, False, in_process)
    answer = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))()
    if answer != 42:
        raise RuntimeError(f"a compiled program returned {answer} instead of 42")
    return time.perf_counter() - start


def _code(text: str, facts: str, vectorises: bool = False) -> Code:
    with _optimised(text, vectorises) as module:
        functions = list(module.functions)
        return Code(
            _machine().emit_object(module),
            tuple(f.name for f in functions if not f.is_declaration and _is_exported(f)),
            tuple(x.name for x in (*functions, *module.global_variables) if x.is_declaration),
            zlib.compress(text.encode(), 1),
            facts,
        )


def _is_exported(function: Any) -> bool:
    return function.linkage not in (llvm.Linkage.internal, llvm.Linkage.private)


@contextmanager
def _optimised(text: str, vectorises: bool = False) -> Iterator[Any]:
    """The module in a context of its own, which is freed with all its types and constants."""
    machine = _machine()
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        is_long = _is_long(text)
        options = llvm.create_pipeline_tuning_options(speed_level=1 if is_long else OPT)
        # Programs come in vectors. Looking for more takes nine tenths of the time and finds little.
        options.slp_vectorization, options.loop_vectorization = False, vectorises
        builder = llvm.create_pass_builder(machine, options)
        if is_long:
            _select_quickly(module, builder)
        _run_passes(builder.getModulePassManager(), module, builder)
        if is_long:  # what was inlined may have made others so
            _select_quickly(module, builder)
        yield module


def _run_passes(passes: Any, over: Any, builder: Any) -> None:
    try:
        passes.run(over, builder)
    finally:
        # The class of llvmlite's object inherits an empty _dispose before the one that frees what
        # the passes keep, some 200 kB.
        if type(passes)._dispose is not NewPassManager._dispose:
            NewPassManager._dispose(passes)
            passes.detach()


def _is_long(text: str) -> bool:
    labels = [k for k, line in enumerate(text.splitlines()) if line.endswith((":", "}"))]
    return any(stop - start > LONG for start, stop in itertools.pairwise([0, *labels]))


def _select_quickly(module: Any, builder: Any) -> None:
    """The functions with blocks so long that good code for them takes longer than they run.

    Three passes do for them what is worth it: what else there is takes a hundred times as long.
    """
    for function in module.functions:
        if any(sum(1 for _ in block.instructions) > VERY_LONG for block in function.blocks):
            passes = llvm.create_new_function_pass_manager()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            _run_passes(passes, function, builder)
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")


def _load(code: Code, seconds: float, cached: bool, symbols: Symbols) -> Library:
    _machine()  # sets LLVM up
    # One linker that serves all would keep some 9 kB of each library that is gone.
    linker = llvm.create_lljit_compiler(use_jit_link=JIT_LINK, suppress_errors=True)
    builder = llvm.JITLibraryBuilder().add_object_img(code.object).add_current_process()
    for name in code.symbols:
        if found := symbols(name):
            builder.import_symbol(name, found)
    for name in code.functions:
        builder.export_symbol(name)
    loaded = builder.link(linker, "program")
    return Library(seconds, cached, code.facts, code.text, loaded)


@functools.cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if llvm.llvm_version_info[0] in SCHEDULER_OPTION_IN:
        llvm.set_option("ckad", f"-dag-maps-huge-region={HUGE}")
    triple, name, features = _cpu()
    # Without the attribute min-legal-vector-width, eight doubles are one register where there are
    # registers of 512 bits, also on CPUs that prefer shorter ones.
    return llvm.Target.from_triple(triple).create_target_machine(
        name, features, OPT, reloc="pic", codemodel="small" if JIT_LINK else "large"
    )


@functools.cache
def _cpu() -> tuple[str, str, str]:
    """Triple, name and features of the CPU, or those that NUMBA_CPU_NAME and the like ask for."""
    config = numba.config
    name = llvm.get_host_cpu_name() if config.CPU_NAME is None else config.CPU_NAME
    features = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return llvm.get_process_triple(), name, features


def _encode(key: bytes, code: Code) -> bytes:
    """A line that says what follows, the object code, the text."""
    head = {"key": key.hex(), "object": len(code.object)}
    head |= {"functions": code.functions, "symbols": code.symbols, "facts": code.facts}
    return json.dumps(head).encode() + b"\n" + code.object + code.text


def _decode(key: bytes, payload: bytes) -> Code | None:
    line, rest = payload.split(b"\n", 1)
    head = json.loads(line)
    if head["key"] != key.hex():
        return None
    size = head["object"]
    functions, symbols = tuple(head["functions"]), tuple(head["symbols"])
    return Code(rest[:size], functions, symbols, rest[size:], head["facts"])


def _warn(fault: str, path: Path, error: Exception) -> None:
    cache.warn_once(
        fault, f"a program {fault} the cache {path.parent}, so it is compiled again: {error}"
    )
