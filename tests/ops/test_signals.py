"""``scipy.signal`` inside of recorded functions, and the routines that filters are made of."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal as ss

import ckad
from ckad import trees
from ckad.errors import TapeError
from ckad.rules.evaluate import evaluate
from ckad.rules.routines import recurrence as r
from ckad.tape.builder import Builder
from ckad.tape.types import type_of

RNG = np.random.default_rng(2)
X = RNG.normal(size=(2, 30))
B, A = ss.butter(3, 0.3)
SOS = ss.butter(4, 0.2, output="sos")
K2 = RNG.normal(size=(4, 3))
CELLS = RNG.integers(-5, 7, (2, 30)) + 0.2
PLACES = RNG.uniform(-3, 5, (2, 7)) * np.array([[1.0], [8.0]])


def poles(x):
    """Coefficients of a stable filter."""
    return np.concatenate([2.0 + 0.1 * x[1, :1], 0.1 * x[1, 1:4]])


def traced_filter(x):
    b, a = x[0, :3], poles(x)
    return ss.lfilter(b, a, x, zi=ss.lfilter_zi(b, a) * x[:, :1])


CHEAP = {
    "fir": lambda x: ss.lfilter([1.0, 2.0, 3.0], [1.0], x, axis=0),
    "gain": lambda x: ss.lfilter([2.0], [4.0], x),
    "state": lambda x: ss.lfilter(B, A, x, zi=0.1 * x[:, :3]),
    "one state for all": lambda x: ss.lfilter(B, A, x.T, axis=0, zi=np.ones((3, 1)))[1],
    "traced": traced_filter,
    "lfiltic": lambda x: ss.lfiltic(B, A, x[0, :3], x[1, :2]),
    "filtfilt": lambda x: [ss.filtfilt(B, A, x.T, 0, p, 5) for p in ("odd", "even", "constant")],
    "sosfilt": lambda x: ss.sosfilt(SOS, x[0], zi=ss.sosfilt_zi(SOS) * x[1, 0]),
    "sosfiltfilt": lambda x: ss.sosfiltfilt(SOS, x, padtype="even"),
    "savgol": lambda x: [ss.savgol_filter(x, n, 3, deriv=1, delta=0.1) for n in (6, 7)],
    "savgol nearest": lambda x: ss.savgol_filter(x.T, 5, 2, axis=0, mode="nearest"),
    "detrend": lambda x: [ss.detrend(x, bp=[10, 20]), ss.detrend(x.T, 0, "constant")],
    "hilbert": lambda x: abs(ss.hilbert(x[:, :7])),
    "resample": lambda x: [ss.resample(x, n, axis=1) for n in (15, 16, 29, 40, 41)],
    "welch": lambda x: ss.welch(x, nperseg=15, noverlap=3, nfft=32, scaling="spectrum"),
    "linear welch": lambda x: ss.welch(x.T, 2.0, nperseg=16, detrend="linear", axis=0),
    "both sides": lambda x: ss.welch(x, nperseg=15, return_onesided=False),
    "periodogram": lambda x: [ss.periodogram(x, 3.0), ss.periodogram(x, nfft=20, window="hann")],
    "csd": lambda x: abs(ss.csd(x[0], x[1], nperseg=16)[1]),
    "spectrogram": lambda x: [ss.spectrogram(x.T, nperseg=9, axis=0), ss.spectrogram(x, nperseg=8)],
    "convolve": lambda x: [
        ss.convolve(x, K2[:2], m, way)
        for m, way in product(("full", "same", "valid"), ("direct", "fft"))
    ],
    "the smaller first": lambda x: [ss.convolve(x[0, :4], x[1], m) for m in ("same", "valid")],
    "over axes": lambda x: ss.fftconvolve(x, K2[:1], "same", axes=1),
    "overlap": lambda x: ss.oaconvolve(x[0], x[1, :5]),
    "correlate": lambda x: [ss.correlate(x, K2[:2], m) for m in ("full", "same", "valid")],
    "correlate2d": lambda x: [
        ss.correlate2d(x.reshape(6, 10), K2, m, b)
        for m, b in product(("full", "same", "valid"), ("fill", "wrap", "symm"))
    ],
    "valid either way": lambda x: ss.correlate2d(K2, x.reshape(6, 10), "valid"),
    "along a line": lambda x: [
        scipy.ndimage.gaussian_filter(x, (0, 3.0)),
        scipy.ndimage.convolve1d(x.T, np.arange(20.0), 0, mode="wrap"),
    ],
    "numpy's": lambda x: [np.convolve(x[0], x[1, :12], m) for m in ("full", "same", "valid")],
    "numpy's correlation": lambda x: np.correlate(x[0, :10], x[1], "full"),
    "other rates": lambda x: [
        ss.upfirdn([1.0, 2.0, 1.0], x, 3, 2),
        *(ss.resample_poly(x.T, up, down) for up, down in ((3, 2), (2, 6), (5, 5))),
        ss.decimate(x[:, :29], 2, ftype="fir"),
    ],
    "decimate": lambda x: ss.decimate(np.concatenate([x, x], 1), 3),
    "medfilt": lambda x: [ss.medfilt(x[0], 5), ss.medfilt(x, (1, 3))],
    "coherence": lambda x: ss.coherence(x[0], x[1], 2.0, nperseg=8)[1],
    "stft": lambda x: [
        abs(ss.stft(x, nperseg=9)[2]) ** 2,
        abs(ss.stft(x.T, 2.0, "hann", 8, 3, 10, boundary=None, axis=0, scaling="psd")[2]) ** 2,
        *(x[0, 0] + known for known in ss.stft(x, 2.0, nperseg=9, padded=False)[:2]),
    ],
    "images": lambda x: [
        scipy.ndimage.map_coordinates(x, PLACES, order=1, mode=m, cval=0.5)
        for m in ("constant", "nearest", "mirror", "reflect", "grid-wrap")
    ],
    "places": lambda x: scipy.ndimage.map_coordinates(
        K2, CELLS + 0.1 * np.tanh(x), order=1, mode="reflect"
    ),
    "shift": lambda x: scipy.ndimage.shift(x, (0.3, -4.7), order=1, mode="nearest"),
    "known numbers": lambda x: ss.lfilter(*ss.butter(2, 0.4), x) * ss.windows.hann(30),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEAP)
def test_values_are_scipys(name):
    function = CHEAP[name]
    mine = [trees.flatten(ckad.jit(function, engine=e)(X))[0] for e in ("vm", "native")]
    for own, same, theirs in zip(*mine, trees.flatten(function(X))[0], strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-10, atol=1e-12 * np.max(np.abs(theirs)))
        np.testing.assert_allclose(own, same, rtol=1e-12, atol=1e-13 * np.max(np.abs(theirs)))


@pytest.mark.parametrize("name", CHEAP)
def test_derivatives(name):
    ckad.testing.check_grads(lambda x: CHEAP[name](x), (X,), order=1)


SINGLE = {
    "lfilter": lambda x: ss.lfilter(B.astype("f"), A.astype("f"), x),
    "a filter in double": lambda x: ss.lfilter(B, A, x),
    "sosfilt": lambda x: ss.sosfilt(SOS.astype("f"), x),
    "savgol": lambda x: ss.savgol_filter(x, 5, 2),
    "resample": lambda x: [ss.resample(x, 20, axis=1), ss.resample_poly(x, 3, 2, axis=1)],
    "spectra": lambda x: [ss.welch(x, nperseg=8)[1], abs(ss.stft(x, nperseg=8)[2])],
    "hilbert": lambda x: abs(ss.hilbert(x)),
    "images": lambda x: [
        scipy.ndimage.gaussian_filter(x, 1.0),
        scipy.ndimage.shift(x, 0.3, order=1),
        ss.medfilt(x, (1, 3)),
    ],
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_is_that_of_scipy(name):
    x = X.astype(np.float32)
    mine = trees.flatten(ckad.jit(lambda x: SINGLE[name](x), engine="vm")(x))[0]
    for own, theirs in zip(mine, trees.flatten(SINGLE[name](x))[0], strict=True):
        assert own.dtype == theirs.dtype
        np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: ss.order_filter(x, np.ones((1, 3)), 1), "scipy.signal.order_filter"),
        (lambda x: scipy.ndimage.geometric_transform(x, lambda at: at), "geometric_transform"),
        (lambda x: scipy.ndimage.shift(x, 0.5, mode="grid-constant"), "mode 'grid-constant'"),
    ],
)
def test_what_has_no_rule_is_named(function, name):
    with pytest.raises(ckad.errors.CkadError, match=name):
        ckad.grad(lambda x: np.sum(function(x)))(X)


def test_large_kernels_are_transforms():
    w = RNG.normal(size=(40, 30))
    x = RNG.normal(size=(50, 45))
    got = ckad.jit(lambda x, w: ss.convolve2d(x, w, "same", "wrap"))(x, w)
    np.testing.assert_allclose(got, ss.convolve2d(x, w, "same", "wrap"), rtol=0, atol=1e-11)


def test_the_second_derivative_of_a_filter():
    def energy(c):
        return np.sum(ss.lfilter(c[:3], 1.0 + 0.1 * c[3:6], X)[:, ::3] ** 2)

    c, v = RNG.normal(size=(2, 6))
    ckad.testing.check_grads(energy, (c,), order=2)
    h = 1e-5
    want = (ckad.grad(energy)(c + h * v) - ckad.grad(energy)(c - h * v)) / (2 * h)
    np.testing.assert_allclose(ckad.hvp(energy, (c,), (v,)), want, rtol=1e-6, atol=1e-7)


def test_a_filter_in_a_loop_has_the_same_bits_under_budgets(engine):
    def loss(x, c):
        def step(i, s):
            y, end = ss.lfilter(c[:2], np.array([1.0, -0.4, 0.1]) + 0.01 * c[2], s[0], zi=s[1])
            return np.sin(y), 0.5 * end

        y, end = ckad.fori_loop(0, 40, step, (x, np.zeros(2, like=x)))
        return np.sum(y**2) + np.sum(end)

    c = np.array([0.7, 0.2, 0.3])
    want = ckad.value_and_grad(loss, (0, 1), engine=engine, schedule="store_all")(X[0], c)
    assert np.isfinite(want[0])
    for memory in ("22 KiB", "26 KiB"):
        got = ckad.value_and_grad(loss, (0, 1), engine=engine, memory=memory)(X[0], c)
        for a, b in zip(trees.flatten(want)[0], trees.flatten(got)[0], strict=True):
            np.testing.assert_array_equal(a, b)


# --- the routines ---------------------------------------------------------------------------------


def tape_of(routine, attrs, *types):
    b = Builder()
    xs = [b.input(t) for t in types]
    return b.tape([b.call(*xs, attrs=(routine.number, *attrs))])


FORMS = [
    (r.lagged, (r.SPREAD, 0), (3,), (2, 7)),
    (r.lagged, (r.SPREAD, 2), (4,), (1, 2)),
    (r.lagged, (r.GATHERED, 1), (3,), (2, 7)),
    (r.lagged, (r.COUNTED, 1), (2, 5), (2, 9)),
    (r.recurrence, (0,), (3,), (2, 9)),
    (r.recurrence, (1,), (3,), (2, 9)),
    (r.recurrence, (0,), (4,), (1, 5)),
    (r.recurrence, (1,), (1,), (1, 2)),
]


@pytest.mark.parametrize(("routine", "attrs", "first", "second"), FORMS)
def test_the_transpose_is_the_tangents(routine, attrs, first, second):
    xs = [0.4 * RNG.normal(size=first), RNG.normal(size=second)]
    tape = tape_of(routine, attrs, *map(type_of, xs))
    vs = [RNG.normal(size=x.shape) for x in xs]
    (out,), (moved,) = evaluate(tape, *xs), evaluate(ckad.tangent(tape), *xs, *vs)[-1:]
    w = RNG.normal(size=out.shape)
    cts = evaluate(ckad.adjoint(tape), *xs, w)[-2:]
    products = np.vdot(moved, w), sum(np.vdot(v, ct) for v, ct in zip(vs, cts, strict=True))
    np.testing.assert_allclose(*products, rtol=1e-10, atol=1e-12)
    h = 1e-6
    moves = [[x + s * h * v for x, v in zip(xs, vs, strict=True)] for s in (1, -1)]
    ends = [evaluate(tape, *move)[0] for move in moves]
    np.testing.assert_allclose(moved, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("routine", "attrs", "first", "second"),
    [
        (r.lagged, (3, 0), (3,), (2, 7)),
        (r.lagged, (0, 0), (2, 3), (2, 7)),
        (r.lagged, (1, 0), (8,), (2, 7)),
        (r.recurrence, (2,), (3,), (2, 7)),
        (r.recurrence, (0,), (7,), (2, 7)),
    ],
)
def test_what_does_not_fit_is_refused(routine, attrs, first, second):
    with pytest.raises(TapeError, match=routine.name):
        tape_of(routine, attrs, *(type_of(np.zeros(s)) for s in (first, second)))


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: ss.lfilter(B, A, x, zi=x[:, :2]), ValueError, "zi has shape .2, 2."),
        (lambda x: ss.lfilter([1.0], [0.0, 1.0], x), ValueError, "first coefficient of a is 0"),
        (lambda x: ss.filtfilt(B, A, x, padlen=30), ValueError, "greater than"),
        (lambda x: ss.sosfilt(np.ones((2, 5)), x), ValueError, "n_sections, 6"),
        (lambda x: ss.savgol_filter(x, 31, 2), ValueError, "window_length"),
        (lambda x: ss.welch(x, nperseg=8, noverlap=8), ValueError, "noverlap is 8"),
        (lambda x: abs(ss.stft(x, nperseg=8, nfft=4)[2]), ValueError, "nfft is 4"),
        (lambda x: ss.convolve(x, K2, "valid"), ValueError, "at least as large"),
        (lambda x: ss.lfilter(B, A, x + 1j), ckad.errors.UnsupportedFunctionError, "complex"),
    ],
)
def test_errors_name_the_users_line(function, error, words):
    with pytest.raises(error, match=words) as found:
        ckad.jit(function)(X)
    assert "test_signals.py" in str(found.value)


@pytest.mark.parametrize("k", [1, 3, 4, 9, 12, 14])
@pytest.mark.parametrize("n", [2, 3, 4, 13])
def test_lengths_about_the_blocks_in_which_products_are_summed(n, k):
    x, c, weights = (np.sin(1.0 + np.arange(float(m))) for m in (n, k, n + k - 1))

    def f(x, c):
        return np.dot(ss.correlate(x, c, method="direct"), weights)

    value, (by_x, by_c) = ckad.value_and_grad(f, (0, 1), engine="vm")(x, c)
    assert value == pytest.approx(f(x, c), rel=1e-13)
    np.testing.assert_allclose(by_x, [f(unit, c) for unit in np.eye(n)], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(by_c, [f(x, unit) for unit in np.eye(k)], rtol=1e-13, atol=1e-15)


def test_a_correlation_of_lines_is_not_padded():
    tape = ckad.trace(lambda x: ss.correlate(x, x, method="direct"))(np.arange(20.0))
    assert "lagged" in str(tape)
    assert "pad " not in str(tape)
