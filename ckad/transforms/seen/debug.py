"""Stop at a line of a program and show the values there."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from ckad.engines.origin import Origin, steps_text
from ckad.engines.stops import Seen, Stops
from ckad.errors import PlaceError
from ckad.loops.driver import Options, run_to
from ckad.passes.liveness import needed
from ckad.tape.tape import Source, Tape
from ckad.tracebacks import trimmed
from ckad.transforms.call import Call
from ckad.transforms.gradients import Gradient

#: Elements of a value that are printed.
FIRST = 4
#: Lines that an error lists.
MOST_LINES = 12


class Stop(Sequence[Seen]):
    """The values at a line of a program, in the order of their computation; prints as a table.

    Each item has ``value`` (an array), ``steps`` (of the loops around it, the outermost first) and
    ``origin`` with its ``op`` and ``source`` (file and line).
    """

    def __init__(self, seen: Sequence[Seen], reverse: bool) -> None:
        self._seen, self.reverse = list(seen), reverse

    def __getitem__(self, k: Any) -> Any:
        return self._seen[k]

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[Seen]:
        return iter(self._seen)

    def __repr__(self) -> str:
        return f"<{len(self)} values at {self._seen[0].origin.source}>"

    def __str__(self) -> str:
        lines: list[str] = []
        above = None
        for seen in self._seen:
            head = _head(seen, self.reverse)
            if head != above:
                text = linecache.getline(*seen.origin.source).strip()
                lines += [head, f"    {text}"] if text else [head]
                above = head
            lines.append(_line(seen))
        return "\n".join(lines)


@trimmed
def debug(
    fun: Callable[..., Any],
    *args: Any,
    at: int | str,
    step: int | Sequence[int] | None = None,
    reverse: bool = False,
    argnums: int | Sequence[int] = 0,
) -> Stop:
    """Run ``fun(*args)`` up to a line and show what each op of that line computes.

    Args:
        fun: the function, of which the value is computed.
        args: its arguments.
        at: a line of the file that ``fun`` is written in, or "file.py:17" for another file.
        step: which step of the loop around that line, counted from 0; a tuple for loops in loops,
            the outermost first. Without it, or for loops that it does not name, the step that is
            run first.
        reverse: show the reverse sweep of the gradient: what the line adds to cotangents. Its
            first step is the last one of the loop.
        argnums: the arguments that the gradient is taken by.

    The program runs on the vm, as a debugger would run it, and not further than needed. Values that
    no result depends on are not computed, and so not shown.

    Raises:
        PlaceError: no op comes from that line, or the step was never run.

    >>> import ckad
    >>> def decay(x):
    ...     def step(i, x):
    ...         return x - 0.5 * x**2
    ...     return ckad.fori_loop(0, 10, step, x)
    >>> print(ckad.debug(decay, 1.0, at=3, step=1))  # doctest: +ELLIPSIS
    <doctest ...>:3 at step 1 of the loop at line 4
        return x - 0.5 * x**2
      mul       f64[]           0.25
      mul       f64[]           0.125
      sub       f64[]           0.375
    """
    place = _place(fun, at)
    steps = (step,) if isinstance(step, int) else tuple(step or ())
    if reverse:
        call, tape, layout = Gradient(fun, argnums, False, Options(engine="vm")).prepare(args, {})
        values = needed(tape, tape.outputs.tolist()[: len(tape.outputs) - len(layout.wrt)])
    else:
        call = Call(fun, args, {}, Options(engine="vm"))
        tape, values = call.recording.tape, []

    depths: set[int] = set()

    def wanted(origin: Origin) -> bool:
        in_sweep = not reverse or origin.reverse or not (origin.loops or values[origin.row])
        if not (in_sweep and _matches(origin.source, place)):
            return False
        depths.add(len(origin.loops))
        return len(origin.loops) >= len(steps)

    stops = Stops(wanted, steps)
    inputs = [
        np.asarray(x, t.numpy) for x, t in zip(call.arguments.arrays, tape.input_types, strict=True)
    ]
    run_to(tape, stops, inputs)
    if not stops.seen:
        raise PlaceError.here(_nothing(tape, place, steps, depths, reverse))
    return Stop(list(stops.seen.values()), reverse)


def _place(fun: Callable[..., Any], at: int | str) -> tuple[str, int]:
    if isinstance(at, int):
        code = getattr(inspect.unwrap(fun), "__code__", None)
        return (code.co_filename if code else ""), at
    file, _, line = at.rpartition(":")
    if not file or not line.isdigit():
        raise PlaceError.here(f'at={at!r}; pass the number of a line, or "file.py:17".')
    return file, int(line)


def _matches(source: Source, place: tuple[str, int]) -> bool:
    """Whether it is the line, of a file whose path ends as was said."""
    wanted = PurePath(place[0]).parts
    return source.line == place[1] and PurePath(source.file).parts[-len(wanted) :] == wanted


def _nothing(
    tape: Tape, place: tuple[str, int], steps: Sequence[int], depths: set[int], reverse: bool
) -> str:
    """Why nothing was seen."""
    name = f"{PurePath(place[0]).name}:{place[1]}"
    sweep = " of the reverse sweep" if reverse else ""
    if depths and max(depths) < len(steps):
        return (
            f"the ops{sweep} of {name} are inside of {max(depths)} loops of the tape, and step= "
            f"names steps of {len(steps)}. A loop whose iterations do not depend on each other is "
            "recorded as operations on whole arrays; leave its step out."
        )
    if depths:
        at = f" at step {', inner step '.join(map(str, steps))}" if steps else ""
        return f"the ops{sweep} of {name} were not run{at}. Pass a step that is run."
    found = sorted({s for s in _sources(tape) if s.line})
    files = {PurePath(s.file).name for s in found if s.line == place[1]}
    if files:
        return f"no op{sweep} comes from {name}, but from that line of {', '.join(sorted(files))}."
    shown = ", ".join(f"{PurePath(s.file).name}:{s.line}" for s in found[:MOST_LINES])
    more = " and more" if len(found) > MOST_LINES else ""
    return f"no op{sweep} comes from {name}. The program has ops from {shown}{more}."


def _sources(tape: Tape) -> Iterator[Source]:
    yield from (tape.source_of(k) for k in range(len(tape)))
    for body in tape.bodies:
        yield from _sources(body)


def _head(seen: Seen, reverse: bool) -> str:
    sweep = ", reverse sweep" if reverse else ""
    return f"{seen.origin.source}{steps_text(seen.origin, seen.steps)}{sweep}"


def _line(seen: Seen) -> str:
    x = seen.value
    kind = f"{x.dtype.kind}{8 * x.dtype.itemsize}" if x.dtype.kind != "b" else "bool"
    first = ", ".join(f"{v:.6g}" if x.dtype.kind == "f" else str(v) for v in x.ravel()[:FIRST])
    if x.ndim:
        first = f"[{first}, ...]" if x.size > FIRST else f"[{first}]"
    extents = ",".join(map(str, x.shape))
    shape = f"{kind}[{extents}]"
    extent = f"  from {x.min():.6g} to {x.max():.6g}" if x.size > 1 else ""
    return f"  {seen.origin.op:<9} {shape:<15} {first}{extent}"
