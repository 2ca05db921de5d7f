"""The native engine's programs: `ckad.machine.compiler` compiles them, and keeps them on disk."""

from __future__ import annotations

from ckad import cache
from ckad.cache import Cache
from ckad.engines.symbols import address
from ckad.machine.compiler import Compiler

# What a program's machine code follows from, besides its key: all that lowering imports.
PROGRAMS = Cache(
    cache.PROGRAMS,
    (
        "cache.py",
        "tape/*.py",
        "rules/**/*.py",
        "passes/*.py",
        "engines/*.py",
        "machine/*.py",
        "engines/native/**/*.py",
    ),
)
MOST_FILES, MOST_BYTES = 4096, 256 * 2**20
COMPILER = Compiler(PROGRAMS, (MOST_FILES, MOST_BYTES), symbols=address)
compile_module = COMPILER.library
