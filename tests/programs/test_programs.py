"""Programs as their users write them, checked three ways.

Values are NumPy's and derivatives those of complex steps or differences; <Jv, w> = <v, J'w>; both
engines agree. Arguments stay as they are, and a budget changes no bit of a gradient.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np
import optree
import pytest

import ckad
from ckad.errors import BudgetError, CkadError
from ckad.trace.source.control import repetition

from .oracles import Arrays, Plain, copied, floats, scale
from .program import Program
from .refused import REFUSED
from .registry import PROGRAMS

ENGINES = ("vm", "native")
#: <Jv, w> to <v, J'w>, relative to |Jv| |w| + |v| |J'w|; of float32 results
DOT, SINGLE_DOT = 1e-12, 1e-5

every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
long_programs = pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.budgets], ids=lambda p: p.name
)


class Differentiated:
    """A program under ckad, by one engine."""

    def __init__(self, program: Program, engine: str, plain: Plain) -> None:
        self.plain, self.engine = plain, engine
        self.options: dict[str, Any] = {"engine": engine}
        if program.returns is not None:
            self.options["returns"] = program.returns
        self.cotangents = [
            np.random.default_rng(7).uniform(-1, 1, r.shape).astype(r.dtype)
            for r in self.plain.results
        ]

    @cached_property
    def given(self) -> tuple[Any, ...]:
        """The arguments of this engine, to see that they are not written."""
        return tuple(copied(a) for a in self.plain.arguments)

    @cached_property
    def value(self) -> Any:
        return ckad.jit(self.plain.program.function, **self.options)(*self.given)

    @cached_property
    def gradient(self) -> Arrays:
        return self.gradient_within(None)

    def gradient_within(self, memory: int | None) -> Arrays:
        """Of the product of the result with the cotangents."""
        fun, primals, options = self.of_floats
        out, pullback = ckad.vjp(fun, *primals, memory=memory, **options)
        return floats(pullback(like(out, self.cotangents)))

    def pushforward(self, direction: Arrays) -> Arrays:
        fun, primals, options = self.of_floats
        steps = [
            x.dtype.type(scale(x)) * d for x, d in zip(self.plain.leaves, direction, strict=True)
        ]
        tangents = optree.tree_unflatten(self.plain.tree, [s if s.ndim else s[()] for s in steps])
        out, moves = ckad.jvp(fun, primals, tangents, **options)
        leaves = zip(optree.tree_leaves(out), optree.tree_leaves(moves), strict=True)
        return [np.asarray(t) for x, t in leaves if np.asarray(x).dtype.kind == "f"]

    @cached_property
    def of_floats(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """The program as a function of what is differentiated alone, if it is not already."""
        function, argnums, given = self.plain.program.function, self.plain.argnums, self.given
        if len(argnums) == len(given):
            return function, given, self.options

        def of_floats(*primals: Any) -> Any:
            arguments = list(given)
            for k, x in zip(argnums, primals, strict=True):
                arguments[k] = x
            return function(*arguments)

        return of_floats, tuple(given[k] for k in argnums), self._moved_options

    @property
    def _moved_options(self) -> dict[str, Any]:
        """``returns`` counts the arguments of ``of_floats``."""
        returns, argnums = self.plain.program.returns, self.plain.argnums
        if returns is None:
            return self.options
        if isinstance(returns, int):
            return {**self.options, "returns": argnums.index(returns)}
        return {**self.options, "returns": tuple(argnums.index(k) for k in returns)}

    def __repr__(self) -> str:
        return f"{self.plain.program.name} by {self.engine}"


@cache
def plain(program: Program) -> Plain:
    return Plain(program)


def like(result: Any, cotangents: Arrays) -> Any:
    """Cotangents in the structure of the result, zero for what is not a float."""
    leaves, tree = optree.tree_flatten(result)
    left = iter(cotangents)
    return optree.tree_unflatten(
        tree, [next(left) if np.asarray(x).dtype.kind == "f" else np.zeros_like(x) for x in leaves]
    )


def dot(xs: Arrays, ys: Arrays) -> float:
    return sum(float(np.vdot(x.astype(float), y)) for x, y in zip(xs, ys, strict=True))


def size(xs: Arrays) -> float:
    return max((float(np.max(np.abs(x), initial=0.0)) for x in xs), default=0.0)


def assert_near(got: Arrays, want: Arrays, tolerance: float, what: str) -> None:
    """Relative to the largest element of each array, or a millionth of the largest of all."""
    assert [g.shape for g in got] == [w.shape for w in want], what
    floor = 1e-6 * size(want)
    for g, w in zip(got, want, strict=True):
        off = size([np.asarray(g, float) - w]) / max(size([w]), floor, 1e-300)
        assert off <= tolerance, f"{what}: off by {off:.2g} of the largest element"


# --- checks ------------------------------------------------------------------------------------


@pytest.fixture
def recorded_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loops are recorded as loops, however short they are."""
    ckad.clear_caches()
    monkeypatch.setattr(repetition, "SHORT", 0)
    yield
    ckad.clear_caches()


@pytest.mark.sampled(3)
@every_program
@pytest.mark.usefixtures("recorded_loops")
def test_program(program: Program) -> None:
    vm, native = (Differentiated(program, engine, plain(program)) for engine in ENGINES)
    check_value(vm)
    check_derivatives(vm)
    check_value(native)
    check_engines_agree(vm, native)
    for run in (vm, native):
        check_arguments(run)


@pytest.mark.sampled(3)
@every_program
def test_short_loops_are_written_out(program: Program) -> None:
    """As users meet them: a loop of a few steps becomes so many copies of its body."""
    run = Differentiated(program, "vm", plain(program))
    check_value(run)
    check_derivatives(run)


def check_value(run: Differentiated, rtol: float | None = None) -> None:
    leaves, tree = optree.tree_flatten(run.value)
    want, want_tree = optree.tree_flatten(run.plain.value)
    assert tree == want_tree
    for x, y in zip(leaves, want, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
    arrays = [np.asarray(x) for x in leaves]
    tolerance = run.plain.program.rtol if rtol is None else rtol
    assert_near(arrays, [np.asarray(y) for y in want], tolerance, f"{run}: value")


def check_derivatives(run: Differentiated) -> None:
    """Forward mode gives the derivative of NumPy's program, and reverse mode its transpose."""
    single = any(x.dtype == np.float32 for x in (*run.plain.leaves, *run.plain.results))
    for direction in run.plain.directions:
        tangent, want = run.pushforward(direction), run.plain.derivative(direction)
        assert_near(tangent, want, run.plain.program.difference, f"{run}: tangent")
        assert_dots(run, direction, tangent, SINGLE_DOT if single else DOT)


def assert_dots(run: Differentiated, direction: Arrays, tangent: Arrays, tolerance: float) -> None:
    """<Jv, w> = <v, J'w>."""
    steps = [scale(x) * d for x, d in zip(run.plain.leaves, direction, strict=True)]
    forward, reverse = dot(tangent, run.cotangents), dot(steps, run.gradient)
    bound = sum(
        float(np.linalg.norm(np.ravel(x)) * np.linalg.norm(np.ravel(y)))
        for xs, ys in ((tangent, run.cotangents), (steps, run.gradient))
        for x, y in zip(xs, ys, strict=True)
    )
    off = abs(forward - reverse) / max(bound, 1e-300)
    assert off <= tolerance, f"<Jv, w> = {forward}, <v, J'w> = {reverse}: {off:.2g}"


def check_arguments(run: Differentiated) -> None:
    """What was passed to both modes is as it was."""
    given, arguments = (optree.tree_leaves(list(a)) for a in (run.given, run.plain.arguments))
    for x, y in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(x, y)


def check_engines_agree(vm: Differentiated, native: Differentiated) -> None:
    for what, got, want in (
        ("value", native.value, vm.value),
        ("gradient", native.gradient, vm.gradient),
    ):
        largest = size(floats(want))
        for x, y in zip(floats(got), floats(want), strict=True):
            ulp = float(np.spacing(np.asarray(max(size([y]), 1e-3 * largest, 1e-300), y.dtype)))
            off = size([x.astype(float) - y]) / ulp
            assert off <= native.plain.program.ulp, f"{native}: {what} is {off:.0f} ulp from the vm"


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@long_programs
@pytest.mark.usefixtures("recorded_loops")
def test_budgets_change_no_bit(program: Program, engine: str) -> None:
    run = Differentiated(program, engine, plain(program))
    least = least_memory(run)
    for memory in (least, 2 * least):
        gradient = run.gradient_within(memory)
        for x, y in zip(gradient, run.gradient, strict=True):
            np.testing.assert_array_equal(x, y)


def least_memory(run: Differentiated) -> int:
    """What the error of a budget that is too small asks for: the value first, then the gradient."""
    memory = 1
    for _ in range(3):
        try:
            run.gradient_within(memory)
        except BudgetError as error:
            (least,) = re.findall(r"at least ([\d,]+)", str(error))
            memory = int(least.replace(",", ""))
        else:
            break
    return memory


# --- outside of the language ---------------------------------------------------------------------


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_cannot_be_recorded_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(CkadError, match=r"refused\.py:\d+") as caught:
        ckad.value_and_grad(function)(np.array([0.9, -0.4, 1.3, 0.7]))
    assert caught.type is REFUSED[function]
