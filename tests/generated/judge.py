"""Whether ckad does a program right: NumPy, both modes, both engines, budgets, threads agree."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import ckad
from ckad.engines import arena
from ckad.engines.native.running.compiler import COMPILER
from ckad.errors import BudgetError
from ckad.machine import compiler
from ckad.trace.source.control import repetition

from .program import Program, forgotten, loaded
from .reference import Plain
from .refusals import refused

RIGHT, REFUSED, FAILED = "right", "refused", "failed"
#: Near a tie, so judged without NumPy's derivative; too long to be compiled, so judged by the vm;
#: not a program that NumPy runs.
LOOSE, LONG, INVALID = "ill-conditioned", "long", "invalid"
#: Relative to the sizes of what is summed: of values, derivatives, engines, <Jv, w> = <v, J'w>.
VALUE, DERIVATIVE, ENGINES, DOT = 1e-11, 1e-9, 1e-9, 1e-11
#: Numbers compared that are nearer to each other than this may compare otherwise; relative.
TIE = 1e-8
#: Derivatives that change so much over a billionth of the arguments are not compared; relative.
UNSTEADY = 1e-4
#: Seconds that a program may take.
SECONDS = 60
#: Rows of a gradient's tape above which it is not compiled: that takes half a second per thousand.
LONGEST = 3000


_aligned = arena.aligned


class Verdict(NamedTuple):
    """What was found; of a failure, by which oracle."""

    outcome: str
    oracle: str = ""  # of a failure, or the kind of a refusal
    message: str = ""
    stage: str = ""  # in which it was found


class Failure(Exception):
    """An oracle's word against a program."""

    def __init__(self, oracle: str, message: str) -> None:
        super().__init__(message)
        self.oracle = oracle


class Refused(Exception):
    """A refusal of ckad's, by kind."""


class TooLong(BaseException):
    """The time is up."""


def judge(program: Program, last_stage: str = "", seconds: float = SECONDS) -> Verdict:
    """All oracles, one after the other; the first that objects decides.

    None is asked that comes after ``last_stage``.
    """
    try:
        with _limited(seconds), _surroundings(program), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _judged(program, last_stage)
    except TooLong:
        return Verdict(FAILED, "time", f"not done after {seconds} s")
    finally:
        ckad.clear_caches()
        forgotten(program)


@cache
def warm_up() -> None:
    """Have the vm's kernels compiled, which is none of a program's time."""
    ckad.grad(lambda x: x * x, engine="vm")(1.0)


def _judged(program: Program, last_stage: str) -> Verdict:
    try:
        facts = Facts(program)
    except Exception as error:
        return Verdict(INVALID, type(error).__name__, str(error))
    trial = Trial(program, facts)
    try:
        trial.run(last_stage)
    except Refused as refusal:
        return Verdict(REFUSED, str(refusal), str(refusal.__cause__), trial.stage)
    except Failure as failure:
        return Verdict(FAILED, failure.oracle, str(failure), trial.stage)
    return Verdict(trial.outcome)


class Facts:
    """What NumPy says of a program."""

    def __init__(self, program: Program) -> None:
        plain = Plain(program)
        self.directions = program.directions()
        with np.errstate(all="ignore"):
            self.value = plain.value()
            self.other_value = plain.value(draw=1)
            self.derivative, margin = plain.derivative(self.directions)
            moved, other = plain.derivative(self.directions, 1e-9)
        change = abs(moved - self.derivative) / max(abs(self.derivative), 1.0)
        self.is_steady = min(margin, other) > TIE and change < UNSTEADY
        if not np.isfinite([self.value, self.derivative]).all():
            raise FloatingPointError(f"value {self.value}, derivative {self.derivative}")


# --- the surroundings ----------------------------------------------------------------------------


@contextmanager
def _surroundings(program: Program) -> Iterator[None]:
    """How loops are recorded and how much is optimised; nothing is kept on disk.

    What is compiled is kept for all budgets, also where a run under one of them was refused.
    """
    before = repetition.SHORT, compiler.OPT, COMPILER.entry, arena.aligned, COMPILER.libraries
    _set(program.short, program.level, lambda key: None, _full_of_nan, {})
    try:
        yield
    finally:
        _set(*before)


def _full_of_nan(nbytes: int) -> np.ndarray:
    """Memory in which nothing can be read that was not written."""
    memory = _aligned(nbytes)
    memory.fill(0xFF)
    return memory


def _set(short: int, level: int, entry: Any, aligned: Any, libraries: Any) -> None:
    repetition.SHORT, arena.aligned = short, aligned
    COMPILER.entry, COMPILER.libraries = entry, libraries
    if level != compiler.OPT:
        compiler.OPT = level
        compiler._machine.cache_clear()


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """A limit of the processor's time, where signals reach: in the main thread.

    It is said again every second, since what a destructor raises is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- the oracles ---------------------------------------------------------------------------------


class Result(NamedTuple):
    value: float
    gradient: tuple[Any, ...]

    @property
    def bits(self) -> list[bytes]:
        return [np.asarray(x).tobytes() for x in (self.value, *self.gradient)]


class Trial:
    """One program under ckad."""

    def __init__(self, program: Program, facts: Facts) -> None:
        self.program, self.facts = program, facts
        self.function = loaded(program)
        self.arguments = program.arguments()
        self.stage, self.outcome = "", RIGHT if facts.is_steady else LOOSE

    def run(self, last_stage: str) -> None:
        for stage, check in STAGES.items():
            self.stage = stage
            check(self)
            if stage == last_stage or self.outcome == LONG:
                return

    def check_vm(self) -> None:
        self.vm = self.check_engine("vm")

    def check_native(self) -> None:
        self.native = self.check_engine("native")
        self.check_agreement(self.vm, self.native)

    def check_rest(self) -> None:
        """What a share of the programs is asked, since it takes long."""
        if self.program.seed % 4 == 0:
            self.check_budgets("vm", self.vm, schedules=False)
        if self.program.seed % 3 == 0:
            self.check_single("vm", self.vm)
        if self.program.seed % 12 == 1:
            self.check_single("native", self.native)

    def gradient(self, engine: str, oracle: str, draw: int = 0, **options: Any) -> Result:
        arguments = self.program.arguments(draw) if draw else self.arguments
        options = {"argnums": self.program.argnums, "threads": 1, **options}
        return Result(*self.called(oracle, ckad.value_and_grad, engine, options, arguments))

    def called(
        self, oracle: str, make: Any, engine: str, options: dict[str, Any], arguments: list[Any]
    ) -> Any:
        """A call whose errors are refusals or failures."""
        try:
            return make(self.function, engine=engine, **options)(*arguments)
        except BudgetError:
            raise
        except Exception as error:
            raise self.judged(error, oracle) from error

    def judged(self, error: Exception, oracle: str) -> Exception:
        kind = refused(error, self.program.file)
        if kind is not None:
            return Refused(kind)
        return Failure(f"error, {oracle}", f"{type(error).__name__}: {error}")

    # --- values and derivatives ---

    def check_engine(self, engine: str) -> Result:
        """The value is NumPy's, and no argument is written into."""
        result = self.gradient(engine, f"{engine} gradient")
        untouched = zip(self.arguments, self.program.arguments(), strict=True)
        if any(not np.array_equal(x, y) for x, y in untouched):
            raise Failure(f"arguments, {engine}", "an argument was written into")
        self.check_shapes(engine, result)
        if self.facts.is_steady:
            scale = self.scale(result.gradient)
            self.close(f"value, {engine}", result.value, self.facts.value, VALUE * scale)
        return result

    def check_shapes(self, engine: str, result: Result) -> None:
        for x, shape in zip(result.gradient, self.program.shapes, strict=True):
            if np.shape(x) != (shape or ()):
                raise Failure(f"shape, {engine}", f"{np.shape(x)} instead of {shape}")

    def scale(self, gradient: tuple[Any, ...]) -> float:
        """How large the terms are that make up a value or a derivative."""
        sizes = (
            np.sum(np.abs(x) * (1 + np.abs(d)))
            for x, d in zip(gradient, self.facts.directions, strict=True)
        )
        return max(1.0, abs(self.facts.value), float(sum(sizes)))

    def close(self, oracle: str, got: float, want: float, tolerance: float) -> None:
        if not abs(got - want) <= tolerance:
            raise Failure(oracle, f"{got!r} instead of {want!r}, off by {abs(got - want):.3g}")

    def check_forward(self) -> None:
        """Forward mode is NumPy's derivative, and reverse mode its transpose."""
        vm, (value, tangent) = self.vm, self.pushed("vm")
        scale = self.scale(vm.gradient)
        reverse = _dot(self.facts.directions, vm.gradient)
        if self.facts.is_steady:
            self.close("forward", tangent, self.facts.derivative, DERIVATIVE * scale)
        self.close("transpose, vm", reverse, tangent, DOT * scale)
        self.close("value of jvp, vm", value, vm.value, VALUE * scale)
        if self.length() > LONGEST:
            self.outcome = LONG

    def length(self) -> int:
        """Rows of the gradient's tape, those of bodies included."""
        gradient = ckad.value_and_grad(self.function, self.program.argnums, engine="vm", threads=1)
        return _n_rows(gradient.prepare(self.arguments, {})[1])

    def pushed(self, engine: str) -> tuple[float, float]:
        try:
            directions = self.facts.directions
            made = ckad.jvp(self.function, self.arguments, directions, engine=engine, threads=1)
            return made  # type: ignore[no-any-return]
        except Exception as error:
            raise self.judged(error, f"{engine} jvp") from error

    def check_agreement(self, vm: Result, native: Result) -> None:
        """Engines round differently, no more; a program near a tie may do another thing."""
        if not self.facts.is_steady:
            return
        for k, (x, y) in enumerate(zip(vm.gradient, native.gradient, strict=True)):
            off, largest = np.max(np.abs(x - y)), max(np.max(np.abs(z)) for z in vm.gradient)
            if not off <= ENGINES * max(largest, 1e-3 * self.scale(vm.gradient)):
                raise Failure("engines", f"gradient {k}: off by {off:.3g} of {largest:.3g}")

    # --- what must not change a bit ---

    def same(self, oracle: str, result: Result, expected: Result) -> None:
        if result.bits != expected.bits:
            pairs = zip([result.value, *result.gradient], [expected.value, *expected.gradient],
                        strict=True)  # fmt: skip
            off = max(float(np.max(np.abs(np.asarray(x) - y))) for x, y in pairs)
            raise Failure(oracle, f"other bits, off by {off:.3g}")

    def check_repeated(self) -> None:
        """Again, with other numbers, and with the first ones."""
        native = self.native
        self.same("second call", self.gradient("native", "second call"), native)
        other = self.gradient("native", "other numbers", draw=1)
        scale = self.scale(other.gradient)
        if self.facts.is_steady and scale < 1e4:
            tolerance = 1e-6 * scale  # how near these come to a tie is not known
            self.close("other numbers", other.value, self.facts.other_value, tolerance)
        self.same("first numbers again", self.gradient("native", "first numbers"), native)

    def check_threads(self) -> None:
        self.same("threads", self.gradient("native", "threads", threads=2), self.native)

    def check_native_budgets(self) -> None:
        self.check_budgets("native", self.native, schedules=True)

    def check_budgets(self, engine: str, expected: Result, schedules: bool) -> None:
        least = self.least(engine)
        peak = (
            ckad.value_and_grad(self.function, self.program.argnums, engine=engine, threads=1)
            .plan(*self.arguments)
            .peak_bytes
        )
        between = [least + (peak - least) * k // 5 for k in (1, 3)] if schedules else []
        for memory in sorted({least, *between, peak} if peak > least else {least, 2 * least}):
            result = self.gradient(engine, "budget", memory=memory)
            self.same(f"budget, {engine}", result, expected)
        for schedule in ("store_all", "revolve", "two_level") if schedules else ():
            try:
                result = self.gradient(engine, "schedule", schedule=schedule)
            except ckad.errors.ScheduleError:
                continue
            self.same(f"schedule, {engine}", result, expected)

    def least(self, engine: str) -> int:
        """The least budget, which the error of a smaller one names."""
        memory = 1
        for _ in range(3):
            try:
                self.gradient(engine, "budget", memory=memory)
            except BudgetError as error:
                memory = int(re.findall(r"at least ([\d,]+)", str(error))[-1].replace(",", ""))
            else:
                return memory
        raise Failure(f"least budget, {engine}", f"{memory} is not enough either")

    # --- one argument alone ---

    def check_single(self, engine: str, every: Result) -> None:
        """The gradient by one argument is that part of the gradient by all."""
        k = self.program.seed // 12 % len(self.program.shapes)
        options = {"argnums": k, "threads": 1}
        what = f"single argument, {engine}"
        _, alone = self.called(what, ckad.value_and_grad, engine, options, self.arguments)
        off = np.max(np.abs(alone - every.gradient[k]))
        scale = max(np.max(np.abs(x)) for x in every.gradient)
        if not off <= ENGINES * max(scale, 1e-3 * self.scale(every.gradient)):
            raise Failure(what, f"argument {k}: off by {off:.3g} of {scale:.3g}")


def _n_rows(tape: Any) -> int:
    return len(tape) + sum(map(_n_rows, tape.bodies))


def _dot(xs: Any, ys: Any) -> float:
    return float(sum(np.sum(np.asarray(x) * y) for x, y in zip(xs, ys, strict=True)))


STAGES: dict[str, Callable[[Trial], None]] = {
    "vm": Trial.check_vm,
    "forward": Trial.check_forward,
    "native": Trial.check_native,
    "repeated": Trial.check_repeated,
    "budgets": Trial.check_native_budgets,
    "threads": Trial.check_threads,
    "rest": Trial.check_rest,
}
