"""Routines: functions on whole arrays in memory, each a block of facts, which CALL rows run.

A CALL row's first attribute is the number of its routine, the others are the routine's own. What a
routine computes is of one array; several results are parts of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ckad.errors import TapeError
from ckad.tape.row import Row
from ckad.tape.types import DType, Type

Attributes = Sequence[int]
#: The type of an exception, or what makes it, and what it says.
Failure = tuple[Callable[[str], BaseException], str]


@dataclass(eq=False)
class Routine:
    """Everything about one routine.

    Operands and results are float64 or int64. ``shape(attrs, *types)`` is the type of the result,
    or a TapeError. ``run(attrs, *arrays)`` computes it in Python. ``jvp`` and ``vjp`` emit rows, as
    those of ops do; None if the derivative is zero. ``flops(attrs, *types)`` is about how many
    operations it takes. ``alone(b, operands, attrs, part)`` emits what is read of it if that is one
    SLICE with the attributes ``part``, or gives None where that is no less work. One that ``marks``
    is its first operand as it is, of any type, and says how that is derived. ``rows(b, operands,
    attrs)`` emits what the routine is where a few rows say it. Engines meet neither of the two.
    One whose ``run`` ``calls_blas`` does so on one thread.
    """

    name: str
    shape: Callable[..., Type]
    run: Callable[..., np.ndarray]
    jvp: Callable[..., int | None] | None = None
    vjp: Callable[..., Any] | None = None
    flops: Callable[..., float] = lambda attrs, *types: float(sum(t.size for t in types))
    alone: Callable[..., int | None] | None = None
    compiled: Compiled | None = None
    calls_blas: bool = False
    marks: bool = False
    rows: Callable[..., int] | None = None
    number: int = field(default=-1, init=False)


@dataclass(frozen=True, eq=False)
class Compiled:
    """The same as machine code: ``i32 body(words, arrays, work)``, three addresses.

    ``words`` are int64: the attributes, then the lengths of the operands' axes. ``arrays`` are the
    addresses of the result and of the operands, ``work`` is that of ``workspace(attrs, *types)``
    bytes. It returns 0, or what it failed with, a key of ``errors``.

    What threads may share is also ``part(words, arrays, work, stage, first, last)``, which does
    not fail: ``stages(attrs, *types)`` says how many units each stage has, one after the other,
    and how many additions and loads they are. There are none of what is too small to be shared.
    """

    address: Callable[[], int]
    workspace: Callable[..., int]
    errors: Mapping[int, Failure]
    calls_blas: bool = False  # BLAS or LAPACK, which are kept to one thread then
    stages: Callable[..., Sequence[tuple[int, int]]] = lambda attrs, *types: ()
    part: Callable[[], int] | None = None


#: All routines by their numbers; those of the package come first, in one order in every process.
ROUTINES: list[Routine] = []
_NUMBERS: dict[str, int] = {}


def define(routine: Routine) -> Routine:
    """Give a routine its number; its name gets a suffix if another has it."""
    name, n = routine.name, 2
    while routine.name in _NUMBERS:
        routine.name, n = f"{name}.{n}", n + 1
    routine.number = _NUMBERS[routine.name] = len(ROUTINES)
    ROUTINES.append(routine)
    return routine


def first_type(attrs: Attributes, x: Type, *others: Type) -> Type:
    return x


def mark(
    name: str, shape: Callable[..., Type], jvp: Callable[..., int | None], vjp: Callable[..., Any]
) -> Routine:
    """A routine that is its first operand as it is, and says how that is derived."""

    def first(attrs: Attributes, x: np.ndarray, *others: np.ndarray) -> np.ndarray:
        return x

    return define(Routine(name, shape, first, jvp, vjp, lambda attrs, *types: 0.0, marks=True))


def named(name: str) -> Routine:
    """The routine of a name; ValueError if there is none."""
    if name not in _NUMBERS:
        raise ValueError(
            f"no routine is called {name[:80]}; a primitive of a program is known to the process "
            "alone that has recorded the tape"
        )
    return ROUTINES[_NUMBERS[name]]


def routine_of(row: Row) -> Routine:
    return ROUTINES[row.attrs[0]]


def result_type(*types: Type, attrs: Attributes = ()) -> Type:
    """The type of a CALL row; TapeError if its routine does not take such operands."""
    if not attrs or not 0 <= attrs[0] < len(ROUTINES):
        raise TapeError(f"attributes {tuple(attrs)}; the first of them is the number of a routine")
    return ROUTINES[attrs[0]].shape(attrs[1:], *types)


def words_of(attrs: Attributes, types: Sequence[Type]) -> list[int]:
    """What a compiled routine is told: its attributes, and the lengths of its operands' axes."""
    return [*attrs, *(n for t in types for n in t.shape)]


def description(attrs: Attributes, types: Sequence[Type]) -> list[int]:
    """What the caller of a routine in Python is told: ``read_description`` is the way back."""
    words = [w for t in types for w in (t.dtype, len(t.shape), *t.shape)]
    return [3 + len(words) + len(attrs), len(types), len(attrs), *words, *attrs]


def read_description(words: Sequence[int]) -> tuple[list[int], list[Type]]:
    """Attributes, and the types of the result and of the operands."""
    at, types = 3, []
    for _ in range(words[1]):
        rank = words[at + 1]
        types.append(Type(DType(words[at]), tuple(words[at + 2 : at + 2 + rank])))
        at += 2 + rank
    return list(words[at : at + words[2]]), types
