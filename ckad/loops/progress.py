"""How far a run is: for a bar, for functions of the user's, for other front ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ckad.loops.compiled import Compiled
from ckad.memory import format_bytes


class Progress(NamedTuple):
    """How far a gradient is; what `ckad.Front` objects are told.

    The forward sweep has ``forward`` steps. In the reverse sweep ``backward`` steps are reversed,
    and ``again`` are run again on the way, so that ``total`` is the sum of all three. ``memory`` is
    what the plan takes at its peak, ``on_disk`` what lies on disk at the moment, in bytes.

    >>> import ckad
    >>> print(ckad.Progress(60, 150, 50, 50, 50, memory=4096, on_disk=0, seconds=2.0))
    reverse sweep, 60 of 150 steps, 50 of them again, 4.0 KiB of memory, 3.0 s left
    """

    done: int
    total: int
    forward: int
    backward: int
    again: int
    memory: int
    on_disk: int
    seconds: float
    is_over: bool = False

    @property
    def sweep(self) -> str:
        """ "forward", or "reverse"."""
        return "forward" if self.done < self.forward else "reverse"

    @property
    def seconds_left(self) -> float | None:
        """About how long it goes on, if all steps take as long; None before the first is done."""
        if self.is_over:
            return 0.0
        return self.seconds * (self.total - self.done) / self.done if self.done else None

    def __str__(self) -> str:
        left = self.seconds_left
        parts = [
            f"{self.sweep} sweep, {self.done:,} of {self.total:,} steps",
            f"{self.again:,} of them again" if self.again else "none again",
            f"{format_bytes(self.memory)} of memory",
            f"{format_bytes(self.on_disk)} on disk" if self.on_disk else "",
            "" if left is None else f"{left:.1f} s left",
        ]
        return ", ".join(filter(None, parts))


@runtime_checkable
class Front(Protocol):
    """What can be given as ``progress=`` to show a run in another way: a window, a web page, a log.

    `show` is called some 20 times a second in the thread that runs the gradient, and once when it
    is over (``is_over``); it should return soon. What it raises ends the run.

    >>> import numpy as np, ckad
    >>> class Last:
    ...     def show(self, progress):
    ...         self.seen = progress
    >>> last = Last()
    >>> gradient = ckad.grad(lambda x: ckad.fori_loop(0, 50, lambda i, x: x * np.cos(x), x),
    ...                      progress=last)(1.0)
    >>> last.seen.done, last.seen.total, last.seen.sweep, last.seen.is_over
    (100, 100, 'reverse', True)
    """

    def show(self, progress: Progress) -> object: ...


#: Whether to show a bar, or what to call with the steps done and those of both sweeps, or a front.
Shown = bool | Callable[[int, int], object] | Front


def run(program: Compiled, inputs: Sequence[np.ndarray], shown: Shown) -> list[np.ndarray]:
    """Run a program, and show how far it is if that was asked for."""
    if not shown:
        return program.run(inputs)
    if isinstance(shown, Front):
        with _watched(program, shown.show) as tell:
            return program.run(inputs, tell)
    if callable(shown):
        told = shown
        with _watched(program, lambda now: told(now.done, now.total)) as tell:
            return program.run(inputs, tell)
    with _bar(program) as show, _watched(program, show) as tell:
        return program.run(inputs, tell)


@contextmanager
def _watched(
    program: Compiled, show: Callable[[Progress], object]
) -> Iterator[Callable[[int], None]]:
    """What is called with the steps done; at the end all are, however many there were."""
    began, done = perf_counter(), 0

    def tell(steps: int) -> None:
        nonlocal done
        done = steps
        show(_now(program, steps, perf_counter() - began))

    yield tell
    show(_now(program, done, perf_counter() - began, is_over=True))


def _now(program: Compiled, done: int, seconds: float, is_over: bool = False) -> Progress:
    """A loop may run longer than was thought, and shorter."""
    loops = [x for x in program.plan.loops if x.depth == 1]
    steps = sum(x.ran or x.n_steps for x in loops)
    again = sum(x.forward_steps for x in loops) - steps
    total = done if is_over else max(done, program.total_steps)
    bytes_now = program.plan.peak_bytes, program.on_disk
    return Progress(done, total, steps, steps, again, *bytes_now, seconds, is_over)


@contextmanager
def _bar(program: Compiled) -> Iterator[Callable[[Progress], None]]:
    from tqdm.auto import tqdm

    # a file gets a line now and then, a terminal a bar that moves
    pause = 0.1 if sys.stderr.isatty() else 10.0
    with tqdm(total=program.total_steps, unit="step", unit_scale=True, mininterval=pause) as bar:

        def show(now: Progress) -> None:
            bar.total = now.total
            held = format_bytes(now.memory)
            disk = f", {format_bytes(now.on_disk)} on disk" if now.on_disk else ""
            factor = 1 + now.again / max(1, now.forward)
            bar.set_description(now.sweep, refresh=False)
            bar.set_postfix_str(f"{held}{disk}, forward {factor:.2f} times", refresh=False)
            bar.update(now.done - bar.n)

        yield show
