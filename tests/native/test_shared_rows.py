"""Arrays that are made of the same rows are computed together, however heavy these are."""

import numpy as np
import pytest

import ckad


def seven(u, x):
    x = u / (1.5 + x)
    x = u / (1.6 + x)
    x = u / (1.7 + x)
    x = u / (1.8 + x)
    x = u / (1.9 + x)
    x = u / (2.0 + x)
    return u / (2.1 + x)


def fluxes(count):
    """``count`` fields that each step makes of one long chain of quotients."""

    def f(x):
        fields = [x * (k + 1.0) for k in range(count)]
        for _ in range(6):
            u = fields[-1]
            common = seven(u, seven(u, seven(u, seven(u, fields[0]))))
            fields = [0.9 * u + 0.01 * (k + 1.0) * common for k, u in enumerate(fields)]
        return sum(np.sum(u**2) for u in fields)

    return f


X = np.linspace(0.1, 0.9, 100)


def size(count):
    run = ckad.jit(fluxes(count), engine="native")
    assert run(X) == pytest.approx(fluxes(count)(X.copy()), rel=1e-13)
    return len(run.compiled(X).llvm)


def test_what_they_share_is_written_once():
    one = size(1)
    assert (size(6) - one) / 5 < one / 2  # of a further field, which has its own copy of no more


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((600, 301), 1),
        ((31, 5, 700), 2),
        ((31, 5, 700), 1),
        ((40, 9, 11, 30), (2, 3)),
        ((3, 70_001), 1),
    ],
    ids=str,
)
def test_reductions_are_shared(shape, axes, dtype):
    """A place of the first axis has the bits that it has in a smaller array, whoever reduces it."""
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)

    def fun(x):
        return np.sum(x * x, axis=axes), np.max(x + x, axis=axes)

    found = [ckad.jit(fun, engine="native", threads=n)(x) for n in (1, 3)]
    program = ckad.jit(fun, engine="native", threads=3).compiled(x)
    assert "ckad_pages(SUM)" in program.llvm
    for k in range(0, len(x) - 1, 7):
        pair = slice(k, k + 2)
        fewer = ckad.jit(fun, engine="native", threads=1)(x[pair])
        for one, several in zip(fewer, zip(*found, strict=True), strict=True):
            assert {one.tobytes()} == {whole[pair].tobytes() for whole in several}
    for got, want in zip(found[0], fun(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6 if dtype is np.float32 else 1e-13)
