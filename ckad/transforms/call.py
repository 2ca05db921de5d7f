"""One call of a transformed function: arguments apart, function recorded, tape compiled and run.

The function is recorded at every call, so a value it reads from outside (a closure, a global) is
always the present one. Compiled tapes are kept and found again by the tape's contents.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ckad import trees
from ckad.errors import BudgetError, ScheduleError
from ckad.loops.driver import Compiled, Options, compile_tape, fits_still
from ckad.passes import simplify
from ckad.passes.untape import untape
from ckad.tape.tape import Tape
from ckad.trace.tracer import Tracer, value
from ckad.trace.tracing import Arguments, Recording, inline, named, record, take_apart
from ckad.trace.where import at_place

T = TypeVar("T")
#: Compiled programs that are remembered.
KEPT = 32
#: Older programs go when all together hold more than this, in bytes.
KEPT_BYTES = 2**26
_cache: OrderedDict[Any, Compiled] = OrderedDict()
_tapes: OrderedDict[Any, Tape] = OrderedDict()
_lock = threading.Lock()


class Call:
    """A function with the arguments of one call."""

    def __init__(
        self, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.fun = fun
        self.arguments: Arguments = take_apart(args)
        self.recording: Recording = record(fun, self.arguments, kwargs)
        raw = self.recording.tape
        self.tape = remember(_tapes, (identity(raw), "simplified"), lambda: simplify(raw))

    @property
    def name(self) -> str:
        return named(self.fun)

    @property
    def is_nested(self) -> bool:
        """Whether this call is itself being recorded by an enclosing transformation."""
        traced = any(isinstance(x, Tracer) for x in self.arguments.arrays)
        return traced or bool(self.recording.captured)

    def derived(self, key: Any, derive: Callable[[Tape], Tape]) -> Tape:
        """``derive(self.tape)``, remembered by the contents of the tape."""
        return remember(_tapes, (identity(self.tape), key), lambda: derive(self.tape))

    def run(self, tape: Tape, options: Options, extra: Sequence[Any] = ()) -> list[Any]:
        """Run a tape derived from this call's, on its arguments and ``extra``.

        Inside another recording the tape's rows are appended to that instead.
        """
        arrays = self.arguments.arrays
        if self.is_nested or any(isinstance(x, Tracer) for x in extra):
            captured = self.recording.captured
            operands = [*(value(x) for x in arrays), *captured, *(value(x) for x in extra)]
            return list(inline(simplify(untape(tape)), operands))
        inputs = [
            np.asarray(x, t.numpy) for x, t in zip([*arrays, *extra], tape.input_types, strict=True)
        ]
        return run(compiled(tape, options), inputs, options)

    def results(self, leaves: Sequence[Any]) -> Any:
        """The function's result from the tape's outputs: its structure, scalars as scalars."""
        shown = [finish(x, s) for x, s in zip(leaves, self.recording.out_scalars, strict=True)]
        return trees.unflatten(self.recording.out_tree, shown)


def finish(x: Any, scalar: bool) -> Any:
    """A result as NumPy would give it: a scalar, or an array."""
    return x[()] if scalar and not isinstance(x, Tracer) else x


def identity(tape: Tape) -> tuple[Any, ...]:
    """Contents and places: what an error in a compiled program names has to be this program's."""
    places = tape.sources, tape.source.tobytes()
    return tape.digest, *places, *(identity(body) for body in tape.bodies)


def compiled(tape: Tape, options: Options) -> Compiled:
    """``compile_tape``, remembered by the contents of the tape and the options."""
    key = identity(tape), options.key
    program = remember(_cache, key, lambda: _compile(tape, options))
    if not fits_still(program.plan):
        with _lock:
            _cache.pop(key, None)
        program = remember(_cache, key, lambda: _compile(tape, options))
    return program


def _compile(tape: Tape, options: Options) -> Compiled:
    """``compile_tape``, with the user's place in its errors."""
    try:
        return compile_tape(tape, options)
    except (BudgetError, ScheduleError) as error:
        raise type(error)(at_place(str(error))) from None


def remember(cache: OrderedDict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """``cache[key]``, made if it is not there; the least recently used entries go."""
    with _lock:
        if key in cache:
            cache.move_to_end(key)
            return cache[key]
    made = make()
    with _lock:
        cache[key] = made
        while len(cache) > 1 and (len(cache) > KEPT or _bytes_of(cache) > KEPT_BYTES):
            cache.popitem(last=False)
    return made


def _bytes_of(cache: OrderedDict[Any, Any]) -> int:
    """Constants are most of what a tape or a program holds."""
    return sum(entry.nbytes for entry in cache.values())


def run(program: Compiled, inputs: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
    """Run, with a progress bar over the steps of both sweeps if that was asked for."""
    if not options.progress:
        return program(inputs)
    from tqdm.auto import tqdm

    # a file gets a line now and then, a terminal a bar that moves
    pause = 0.1 if sys.stderr.isatty() else 10.0
    bar = tqdm(total=program.total_steps, unit="step", unit_scale=True, mininterval=pause)
    with bar:
        return program(inputs, lambda done: bar.update(done - bar.n) and None)
