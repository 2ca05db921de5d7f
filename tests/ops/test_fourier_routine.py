"""The routine of Fourier transforms: its kinds, its transposes, and what stands in for it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import ckad
from ckad.errors import TapeError
from ckad.passes.pipeline import adjoint_of_tape
from ckad.rules.evaluate import evaluate
from ckad.rules.routines.fourier import pocketfft, transforms
from ckad.rules.routines.fourier.body import Kind, Norm
from ckad.rules.routines.fourier.transforms import Transform
from ckad.tape.builder import Builder
from ckad.tape.types import type_of

RNG = np.random.default_rng(5)
REAL, HALF = (Kind.REAL_TO_COMPLEX, Kind.REAL_TO_HALF), (Kind.REAL_TO_HALF, Kind.HALF_TO_REAL)
#: shape of the real or whole array, axes
ARRAYS = [
    ((1,), (0,)),
    ((2,), (0,)),
    ((7,), (0,)),
    ((513,), (0,)),
    ((5, 6), (0, 1)),
    ((40, 5, 3), (1,)),
    ((4, 3, 6), (0, 2)),
    ((4, 3, 5), (0, 1, 2)),
    ((20, 300), (0, 1)),
    ((300, 20), (0,)),
    ((2, 3, 4, 5), (0, 2, 3)),
    ((9, 64, 1, 1), (0, 1)),
    ((70, 130), (0, 1)),  # rows that are kept apart
    ((3, 5, 66), (0, 1, 2)),
    ((2, 4, 3, 129), (1, 3)),
    ((3, 1030), (1,)),
    # eight lines at a time: whole blocks and some that are not, every radix, first and last
    ((16, 64), (0, 1)),
    ((48, 40, 9), (0, 1)),
    ((11, 54), (1,)),
    ((90, 17), (0,)),
    ((25, 3, 8), (0, 2)),
    ((6, 4, 50), (0, 1, 2)),
    ((3, 2048), (1,)),
    ((9, 4096), (1,)),
    # single lines as eight: complex ones, of half as many pairs, rows longer than lanes take
    ((64,), (0,)),
    ((128,), (0,)),
    ((2, 960), (1,)),
    ((4096,), (0,)),
    ((2, 1, 7680), (2,)),
]


def operands(t, shape):
    given = t.half_shape(shape) if t.kind is Kind.HALF_TO_REAL else shape
    return [RNG.normal(size=given) for _ in range(1 if t.kind in REAL else 2)]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
@pytest.mark.parametrize(("shape", "axes"), ARRAYS)
def test_the_loops_compute_what_numpy_does(kind, shape, axes):
    assert pocketfft.loops() is not None  # else NumPy would be compared with itself
    for sign, norm, weighted in product((-1, 1), Norm, (0, 1) if kind in HALF else (0,)):
        t = Transform(kind, sign, norm, weighted, shape[axes[-1]], axes)
        xs = operands(t, shape)
        got = transforms.transformed(t.attrs(len(shape)), *xs)
        want = transforms.by_numpy(t.attrs(len(shape)), *xs)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * max(1.0, np.max(np.abs(want))))


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
@pytest.mark.parametrize(("shape", "axes"), ARRAYS)
def test_the_rule_gives_the_transpose(kind, shape, axes):
    for sign, weighted in product((-1, 1), (0, 1) if kind in HALF else (0,)):
        t = Transform(kind, sign, Norm.ROOT, weighted, shape[axes[-1]], axes)
        xs = operands(t, shape)
        b = Builder()
        rows = [b.input(type_of(x)) for x in xs]
        tape = b.tape([b.call(*rows, attrs=(transforms.fourier.number, *t.attrs(len(shape))))])
        (value,) = evaluate(tape, *xs)
        ct = RNG.normal(size=value.shape)
        found = evaluate(adjoint_of_tape().run(tape), *xs, ct)
        there = np.sum(value * ct)
        back = sum(np.sum(x * y) for x, y in zip(xs, found, strict=True))
        np.testing.assert_allclose(back, there, rtol=1e-10, atol=1e-10)


def spectral_step(u):
    k = np.fft.fftfreq(80)[:, None] ** 2 + np.fft.rfftfreq(160) ** 2
    return np.fft.irfft2(np.exp(-k) * np.fft.rfft2(np.sin(u)), (80, 160))


def test_threads_share_the_axes_and_change_no_bit():
    def loss(u):
        z = np.fft.fft2(ckad.fori_loop(0, 20, lambda i, u: spectral_step(u), u))
        return np.sum(z.real**2 + z.imag * u)

    u = RNG.normal(size=(80, 160))
    gradients = [
        ckad.value_and_grad(loss, engine=engine, threads=threads, memory=memory)
        for engine, threads, memory in (
            ("native", 1, None),
            ("native", 2, None),
            ("native", 3, "2 MiB"),
        )
    ]
    assert "ckad_stage" in gradients[0].compiled(u).llvm
    want = gradients[0](u)
    for gradient in gradients[1:]:
        for own, other in zip(gradient(u), want, strict=True):
            np.testing.assert_array_equal(own, other)
    ones = [ckad.jit(spectral_step, engine=engine, threads=2)(u) for engine in ("vm", "native")]
    np.testing.assert_allclose(*ones, rtol=0, atol=1e-14)
    np.testing.assert_allclose(ones[0], spectral_step(u), rtol=0, atol=1e-14)
    found = [ckad.jit(np.fft.fft2, engine=engine)(u) for engine in ("vm", "native")]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
@pytest.mark.parametrize("axis", [0, 1])
def test_what_a_line_becomes_depends_on_no_other_line(kind, axis):
    shape = (96, 11) if axis == 0 else (11, 96)
    t = Transform(kind, -1, Norm.FULL, 0, 96, (axis,))
    xs = [np.moveaxis(x, axis, 0) for x in operands(t, shape)]

    def transformed(*lines):
        given = [np.ascontiguousarray(np.moveaxis(x, 0, axis)) for x in lines]
        found = transforms.transformed(t.attrs(2), *given)
        return np.moveaxis(found, axis - 2, -2)

    whole = transformed(*xs)
    np.testing.assert_array_equal(transformed(*(x[:, 3:8] for x in xs)), whole[..., 3:8])
    xs[0][:, 2], xs[0][5, 9] = np.nan, np.inf
    np.testing.assert_array_equal(transformed(*xs)[..., 3:9], whole[..., 3:9])


def test_programs_compute_the_same_without_the_loops(monkeypatch):
    z = RNG.normal(size=(6, 5)) + 1j * RNG.normal(size=(6, 5))
    monkeypatch.setattr(transforms, "_AVAILABLE", False)
    np.testing.assert_allclose(ckad.jit(np.fft.fft2, engine="vm")(z), np.fft.fft2(z), rtol=1e-12)


def test_other_operands_are_refused():
    t = Transform(Kind.REAL_TO_HALF, -1, Norm.NONE, 0, 6, (0,))
    for shape, changed in (((5,), {}), ((6,), {"axes": (1,)}), ((6,), {"sign": 2})):
        b = Builder()
        x = b.input(type_of(np.zeros(shape)))
        with pytest.raises(TapeError, match="fourier of"):
            b.call(x, attrs=(transforms.fourier.number, *t._replace(**changed).attrs(1)))
