"""A program: its text, the arguments it is called with, and how it is to be recorded."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from math import prod
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .scope import Shape

NAME = "program"


class Program(NamedTuple):
    """Everything that a failure depends on."""

    text: str  # of a module with a function ``program``
    shapes: tuple[Shape | None, ...]  # of its arguments; None for a float
    seed: int  # of the numbers in them
    short: int = 4  # loops of at most so many steps are written out
    level: int = 0  # how much LLVM optimises

    @property
    def file(self) -> str:
        return f"generated_{self.seed}.py"

    @property
    def argnums(self) -> tuple[int, ...]:
        return tuple(range(len(self.shapes)))

    def arguments(self, draw: int = 0) -> list[Any]:
        """Numbers from -1.2 to 1.2; for each ``draw`` others."""
        return [numbers(1000 * self.seed + 10 * draw + k, s) for k, s in enumerate(self.shapes)]

    def directions(self) -> list[Any]:
        return self.arguments(draw=9)

    @property
    def n_lines(self) -> int:
        return sum(1 for line in self.text.splitlines() if line.strip())


def numbers(seed: int, shape: Shape | None) -> Any:
    draw = random.Random(seed).random
    if shape is None:
        return 2.4 * draw() - 1.2
    return np.array([2.4 * draw() - 1.2 for _ in range(prod(shape))]).reshape(shape)


def executed(code: CodeType, file: str) -> ModuleType:
    module = ModuleType(file.removesuffix(".py"))
    module.__file__ = file
    exec(code, module.__dict__)
    return module


def loaded(program: Program) -> Callable[..., Any]:
    """The program's function, its source known to ``linecache`` as that of a file would be."""
    lines = program.text.splitlines(keepends=True)
    linecache.cache[program.file] = (len(program.text), None, lines, program.file)
    module = executed(compile(program.text, program.file, "exec"), program.file)
    return getattr(module, NAME)  # type: ignore[no-any-return]


def forgotten(program: Program) -> None:
    linecache.cache.pop(program.file, None)


def runnable(program: Program, comment: str = "") -> str:
    """The program as a script of its own, with its arguments."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    given = ", ".join(
        f"numbers({1000 * program.seed + k}, {s})" for k, s in enumerate(program.shapes)
    )
    settings = "" if program.short == 4 else f"repetition.SHORT = {program.short}\n    "
    return f"{head}{_SCRIPT.format(program.text.strip(), given, settings, program.argnums)}"


_SCRIPT = """\
{0}


if __name__ == "__main__":
    import random

    import ckad
    from ckad.trace.source.control import repetition

    def numbers(seed, shape):
        draw = random.Random(seed).random
        if shape is None:
            return 2.4 * draw() - 1.2
        n = int(np.prod(shape))
        return np.array([2.4 * draw() - 1.2 for _ in range(n)]).reshape(shape)

    {2}arguments = [{1}]
    for engine in ("vm", "native"):
        print(engine, *ckad.value_and_grad(program, {3}, engine=engine)(*arguments))
"""
