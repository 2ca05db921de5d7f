"""The native engine's programs: compiled, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable

from ckad import cache
from ckad.cache import Cache
from ckad.engines.compiler import Compiler, Library, Source
from ckad.engines.native.ir.alike import shared

# What a program's machine code follows from, besides its key: all that lowering imports.
PROGRAMS = Cache(
    cache.PROGRAMS,
    (
        "cache.py",
        "tape/*.py",
        "rules/**/*.py",
        "passes/*.py",
        "engines/*.py",
        "engines/native/**/*.py",
    ),
)
MOST_FILES, MOST_BYTES = 4096, 256 * 2**20
COMPILER = Compiler(PROGRAMS, (MOST_FILES, MOST_BYTES))


def compile_module(key: bytes, build: Callable[[], Source]) -> Library:
    """The library of the program that ``key`` names; of functions that are alike it has one."""

    def source() -> Source:
        made = build()
        text, facts = made if isinstance(made, tuple) else (made, "")
        return shared(str(text)), facts

    return COMPILER.library(key, source)
