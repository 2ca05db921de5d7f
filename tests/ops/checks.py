"""What every op is held to: its value, and derivatives that agree with each other and with NumPy.

All derivatives are directional: along random tangents v, against random cotangents w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

from ckad.engines import native, vm
from ckad.passes.pipeline import adjoint_of_tape
from ckad.passes.tangent import tangent
from ckad.passes.untape import untape
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, type_of

from .case import F32, F64, Arrays, Case

Run = Callable[..., list[np.ndarray]]
ENGINES: dict[str, Run] = {"numpy": evaluate, "vm": vm.run, "native": native.run}

#: float32 results of NumPy's own float32 loops; the vm computes in float64 and rounds once.
SINGLE_ULP = {"numpy": 4.0, "vm": 1.0, "native": 1.0}
#: relative: to complex steps, to difference quotients; <Jv, w> to <v, J'w>; all of float32
COMPLEX_STEP, DIFFERENCES, DOT, SINGLE = 1e-11, 1e-8, 1e-12, 2e-5
Vectors = list[np.ndarray]


class Program:
    """A case with its tape and derivative tapes, each made when first asked for."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.wrt = case.active
        self._rng = np.random.default_rng(crc32(case.name.encode()))
        self.v, self.u = self._directions(), self._directions()
        self.w = [self._normal(t.shape, t.numpy) for t in self.float_types]

    def _normal(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        return np.asarray(self._rng.uniform(-1.0, 1.0, shape), dtype)

    def _directions(self) -> Vectors:
        return [
            self._normal(self.case.arrays[k].shape, self.case.arrays[k].dtype) for k in self.wrt
        ]

    @cached_property
    def tape(self) -> Tape:
        return self.case.tape()

    @property
    def n_outputs(self) -> int:
        return len(self.tape.outputs)

    @property
    def float_types(self) -> list[Any]:
        return [t for t in self.tape.output_types if t.is_float]

    @cached_property
    def tangent(self) -> Tape:
        return tangent(self.tape, self.wrt)

    @cached_property
    def adjoint(self) -> Tape:
        return adjoint_of_tape(self.wrt).run(self.tape)

    @cached_property
    def adjoint_of_tangent(self) -> Tape:
        n = len(self.tape.outputs)
        seeds = range(n, n + len(self.w))
        return adjoint_of_tape(self.wrt, seeds).run(self.tangent)

    @cached_property
    def tangent_of_adjoint(self) -> Tape:
        return tangent(untape(self.adjoint), self.wrt)

    @property
    def is_smooth(self) -> bool:
        return self.case.smooth and bool(self.wrt and self.float_types)

    def emit(self, b: Builder) -> list[int]:
        """Append the value, tangent and adjoint, on inputs of their own; of all the outputs."""
        xs = [b.input(type_of(a)) for a in self.case.arrays]
        if not self.is_smooth:
            return _copied(b, self.tape, xs)
        vs, ws = ([b.input(type_of(a)) for a in arrays] for arrays in (self.v, self.w))
        return [*_copied(b, self.tangent, [*xs, *vs]), *_copied(b, self.adjoint, [*xs, *ws])]

    @property
    def inputs(self) -> Vectors:
        """What `emit` takes."""
        return [*self.case.arrays, *((*self.v, *self.w) if self.is_smooth else ())]

    def results(self, outputs: Vectors) -> dict[int, Vectors]:
        """What `emit` gives, by the ids of the tapes that give the same."""
        if not self.is_smooth:
            return {id(self.tape): outputs}
        n = len(self.tangent.outputs)
        values = {id(self.tape): outputs[: self.n_outputs]}
        return {**values, id(self.tangent): outputs[:n], id(self.adjoint): outputs[n:]}

    @cached_property
    def is_single(self) -> bool:
        """Some of it is float32, so no derivative is better than that."""
        return any(t.dtype is DType.F32 for t in (*self.tape.input_types, *self.tape.output_types))

    @property
    def tolerance(self) -> float:
        return SINGLE if self.is_single else DOT

    def jvp(self, run: Run, v: Vectors) -> Vectors:
        return run(self.tangent, *self.case.arrays, *v)[len(self.tape.outputs) :]

    def vjp(self, run: Run, w: Vectors, arrays: Arrays | None = None) -> Vectors:
        return run(self.adjoint, *(self.case.arrays if arrays is None else arrays), *w)


def _copied(b: Builder, tape: Tape, inputs: Sequence[int]) -> list[int]:
    env = dict(zip(tape.inputs.tolist(), inputs, strict=True))
    for k in range(len(tape)):
        if k not in env:
            env[k] = b.copy_row(tape, k, env)
    return [env[k] for k in tape.outputs.tolist()]


def run_joined(run: Run, programs: Sequence[Program]) -> Run:
    """Runs the tapes of the programs at their inputs: the results of one run of them all.

    Thousands of small programs take minutes to compile one by one.
    """
    b = Builder()
    outputs = [each.emit(b) for each in programs]
    tape = b.tape(x for own in outputs for x in own)
    left = run(tape, *(x for each in programs for x in each.inputs))
    known: dict[int, Vectors] = {}
    for each, own in zip(programs, outputs, strict=True):
        known |= each.results(left[: len(own)])
        left = left[len(own) :]
    return lambda tape, *inputs: known[id(tape)]


# --- values ------------------------------------------------------------------------------------


def check_value(engine: str, program: Program, run: Run | None = None) -> None:
    """The results of the engine are NumPy's: exact, or within the ulps that the table allows."""
    case = program.case
    results = (run or ENGINES[engine])(program.tape, *case.arrays)
    for type, got, want in zip(program.tape.output_types, results, reference(case), strict=True):
        assert (got.dtype, got.shape) == (type.numpy, type.shape), case.name
        if type.is_float:
            ulp = case.ulp
            if type.numpy == F32:
                ulp = max(SINGLE_ULP[engine], case.ulp) if case.ulp else 0.0
            with np.errstate(over="ignore"):
                want = want.astype(type.numpy)
            assert_close_ulp(got, want, ulp, case)
        else:
            np.testing.assert_array_equal(got, want, case.name)


def reference(case: Case) -> Vectors:
    """NumPy's results; float32 inputs are computed in float64, so that one rounding remains."""
    arrays = [a.astype(F64) if a.dtype == F32 else a for a in case.arrays]
    with np.errstate(all="ignore"):
        return as_list(case.expected(*arrays))


def as_list(result: Any) -> Vectors:
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


def assert_close_ulp(got: np.ndarray, want: np.ndarray, ulp: float, case: Case) -> None:
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite], case.name)
    got, want = got[finite], want[finite]
    if case.signed_zeros and not case.floor:
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]), case.name)
    size = np.maximum(np.abs(want), want.dtype.type(case.floor))
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(F64) - want.astype(F64)) / np.spacing(size).astype(F64)
    worst = off.max(initial=0.0)
    assert worst <= ulp, f"{case.name}: {worst:g} ulp, allowed {ulp:g}"


#: from native to vm: of each element of a value, of the largest one of a derivative
ENGINE_ULP = 4.0


def engine_ulp(case: Case) -> float:
    """Long products are taken in another order."""
    return ENGINE_ULP * (case.arrays[0].size ** 0.5 if case.op is Op.PROD else 1.0)


def check_value_like_the_vm(run: Run, program: Program) -> None:
    case = program.case
    results, others = (r(program.tape, *case.arrays) for r in (run, ENGINES["vm"]))
    for got, want in zip(results, others, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), case.name
        if got.dtype.kind == "f":
            assert_close_ulp(got, want, engine_ulp(case), case)
        else:
            np.testing.assert_array_equal(got, want, case.name)


def check_derivatives_like_the_vm(run: Run, program: Program) -> None:
    other = run_joined(ENGINES["vm"], [program])
    for tape, first in ((program.tangent, program.n_outputs), (program.adjoint, 0)):
        for got, want in zip(run(tape)[first:], other(tape)[first:], strict=True):
            assert_same_size(got, want, program.case)


def assert_same_size(got: np.ndarray, want: np.ndarray, case: Case) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape), case.name
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite], case.name)
    got, want = got[finite].astype(F64), want[finite]
    if not want.size:
        return
    size = want.dtype.type(max(np.abs(want).max(), case.floor))
    worst = np.abs(got - want.astype(F64)).max() / float(np.spacing(size))
    assert worst <= engine_ulp(case), f"{case.name}: {worst:g} ulp from the vm"


# --- first derivatives -------------------------------------------------------------------------


def check_jvp(run: Run, program: Program) -> None:
    """The tangent is the derivative of the NumPy twin along v."""
    case = program.case
    got = program.jvp(run, program.v)
    want = complex_step(case, program) if case.complex else differences_of_values(case, program)
    tolerance = COMPLEX_STEP if case.complex else DIFFERENCES
    assert_close(got, want, max(tolerance, SINGLE if program.is_single else 0.0), case.name)


def complex_step(case: Case, program: Program, h: float = 1e-20) -> Vectors:
    arrays: list[np.ndarray] = [a.astype(F64) if a.dtype.kind == "f" else a for a in case.arrays]
    for k, v in zip(program.wrt, program.v, strict=True):
        arrays[k] = arrays[k] + 1j * h * v.astype(F64)
    with np.errstate(all="ignore"):
        return _floats(program, [r.imag / h for r in as_list(case.expected(*arrays))])


def differences_of_values(case: Case, program: Program) -> Vectors:
    arrays = tuple(a.astype(F64) if a.dtype.kind == "f" else a for a in case.arrays)

    def move(t: float) -> Vectors:
        with np.errstate(all="ignore"):
            moved = as_list(case.expected(*_moved(arrays, program.wrt, program.v, t)))
        return _floats(program, moved)

    return extrapolated(move)


def _floats(program: Program, results: Vectors) -> Vectors:
    return [r for r, t in zip(results, program.tape.output_types, strict=True) if t.is_float]


def _moved(arrays: Arrays, wrt: Sequence[int], v: Vectors, t: float) -> Arrays:
    step = dict(zip(wrt, v, strict=True))
    return tuple(a + t * step[k] if k in step else a for k, a in enumerate(arrays))


def extrapolated(move: Callable[[float], Vectors], h: float = 2e-3) -> Vectors:
    """The derivative of ``move`` at 0 by central differences, extrapolated twice (Richardson)."""

    def central(h: float) -> Vectors:
        return [(a - b) / (2 * h) for a, b in zip(move(h), move(-h), strict=True)]

    rows = [central(h), central(h / 2), central(h / 4)]
    for order in (4.0, 16.0):
        rows = [
            [b + (b - a) / (order - 1) for a, b in zip(coarse, fine, strict=True)]
            for coarse, fine in pairwise(rows)
        ]
    return rows[0]


def assert_close(got: Vectors, want: Vectors, tolerance: float, name: str) -> None:
    """Relative to the largest element; 1 where all are smaller."""
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape, f"{name}: shape {a.shape}, not {b.shape}"
        assert np.isfinite(a).all(), f"{name}: not finite"
        off = np.abs(a.astype(F64) - b).max(initial=0.0) / max(1.0, np.abs(b).max(initial=0.0))
        assert off <= tolerance, f"{name}: off by {off:.3g}, allowed {tolerance:g}"


def check_vjp(run: Run, program: Program) -> None:
    """<Jv, w> = <v, J'w>."""
    jv, jw = program.jvp(run, program.v), program.vjp(run, program.w)
    for ct, v in zip(jw, program.v, strict=True):
        assert (ct.dtype, ct.shape) == (v.dtype, v.shape), program.case.name
    assert_same_dot((jv, program.w), (program.v, jw), program.tolerance, program.case.name)


def assert_same_dot(
    left: tuple[Vectors, Vectors], right: tuple[Vectors, Vectors], tolerance: float, name: str
) -> None:
    (a, size_a), (b, size_b) = dot(*left), dot(*right)
    assert np.isfinite(a), f"{name}: not finite"
    assert np.isfinite(b), f"{name}: not finite"
    size = max(size_a, size_b)
    assert abs(a - b) <= tolerance * size, f"{name}: {a!r} is not {b!r} (terms of size {size:g})"


def dot(xs: Vectors, ys: Vectors) -> tuple[float, float]:
    """The product, and the sum of the sizes of its terms."""
    terms = [(x.astype(F64) * y.astype(F64)).ravel() for x, y in zip(xs, ys, strict=True)]
    joined = np.concatenate([np.zeros(1), *terms])
    return float(joined.sum()), float(np.abs(joined).sum())


def check_subsets(run: Run, program: Program) -> None:
    """Derivatives by one operand alone are the parts of those by all."""
    case, tape = program.case, program.tape
    whole = program.vjp(run, program.w)
    n = len(tape.outputs)
    for at, k in enumerate(program.wrt):
        name = f"{case.name} by operand {k}"
        (part,) = run(adjoint_of_tape([k]).run(tape), *case.arrays, *program.w)
        assert_close([part], [whole[at]], program.tolerance, name)
        only = [v if j == at else np.zeros_like(v) for j, v in enumerate(program.v)]
        alone = run(tangent(tape, [k]), *case.arrays, program.v[at])[n:]
        assert_close(alone, program.jvp(run, only), program.tolerance, name)


# --- second derivatives ------------------------------------------------------------------------


def check_second_order(run: Run, program: Program) -> None:
    """H = d(J'w) is the same both ways, symmetric, and what differences of J'w say."""
    case, w = program.case, program.w
    hv, hu = (run(program.adjoint_of_tangent, *case.arrays, *d, *w) for d in (program.v, program.u))
    tolerance = max(1e-11, program.tolerance)
    assert_same_dot((program.u, hv), (program.v, hu), tolerance, f"{case.name}: symmetry")
    if case.twice:
        other = run(program.tangent_of_adjoint, *case.arrays, *w, *program.v)[len(program.wrt) :]
        assert_close(other, hv, tolerance, f"{case.name}: forward over reverse")
    if not program.is_single:
        name = f"{case.name}: reverse over forward"
        assert_close(hv, differences_of_vjp(run, program), 10 * DIFFERENCES, name)


def differences_of_vjp(run: Run, program: Program) -> Vectors:
    arrays = program.case.arrays
    return extrapolated(
        lambda t: program.vjp(run, program.w, _moved(arrays, program.wrt, program.v, t))
    )
