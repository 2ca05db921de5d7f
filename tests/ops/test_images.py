"""Samples of images, filters that order what windows hold: SciPy's values, and derivatives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import ckad
from ckad import trees
from ckad.errors import UnsupportedFunctionError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 9))
#: Some within the image, some beside it, some far away.
PLACES = np.concatenate([RNG.uniform(-3, 11, (2, 20)), RNG.uniform(-40, 50, (2, 8))], 1)
MODES = ("constant", "nearest", "wrap", "grid-wrap", "mirror", "reflect")
MATRIX = [[0.9, 0.2], [-0.1, 1.1]]


def sampled(order, mode):
    options = {"order": order, "mode": mode, "cval": 0.7}

    def function(x):
        found = [
            scipy.ndimage.map_coordinates(x, PLACES, **options),
            scipy.ndimage.map_coordinates(x, PLACES, prefilter=False, **options),
            scipy.ndimage.shift(x, (0.3, -4.7), **options),
            scipy.ndimage.rotate(x, 33.0, **options),
            scipy.ndimage.affine_transform(x, MATRIX, (0.31, -0.4), **options),
            scipy.ndimage.zoom(x, (1.7, 0.6), **options),
        ]
        if order > 1:
            found.append(scipy.ndimage.spline_filter(x, order, mode=mode))
        return found

    return function


def by_windows(x):
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    return [
        *(scipy.ndimage.median_filter(x, (2, 5), mode=m, cval=0.2, origin=(0, 1)) for m in MODES),
        scipy.ndimage.median_filter(x, footprint=cross),
        scipy.ndimage.rank_filter(x, -2, 3),
        scipy.ndimage.percentile_filter(x, 30, 3),
        scipy.ndimage.percentile_filter(x, -20, 3),
        scipy.ndimage.minimum_filter(x, (2, 3)),
        scipy.ndimage.maximum_filter(x, 3, mode="nearest"),
        scipy.signal.medfilt(x, 3),
        scipy.signal.wiener(x),
        scipy.signal.wiener(x, (3, 5), 0.3),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_places_of_pixels_and_between_two(mode):
    row = X[0]
    for order, half in product(range(3), (*range(-36, 37, 3), -34, -16, 16, 17, 34)):

        def function(x, order=order, half=half):
            return scipy.ndimage.shift(x, half / 2, order=order, mode=mode, cval=0.7)

        got = ckad.jit(function, engine="vm")(row)
        np.testing.assert_allclose(got, function(row), rtol=1e-9, atol=1e-12, err_msg=str(half))


def shapes(x):
    image = np.stack([x, 2 * x, x * x])
    return [
        scipy.ndimage.rotate(image, 20.0, axes=(0, 2), mode="mirror"),
        scipy.ndimage.rotate(x, 90.0),
        scipy.ndimage.rotate(x, -70.0, reshape=False, cval=0.3),
        scipy.ndimage.affine_transform(x, [0.9, 1.2], 0.1, output_shape=(5, 6)),
        scipy.ndimage.affine_transform(x, np.column_stack([MATRIX, [0.3, -0.4]])),
        scipy.ndimage.zoom(x, 2.0, mode="grid-constant", cval=0.4, grid_mode=True),
        scipy.ndimage.spline_filter1d(x, 3, 0),
        scipy.ndimage.map_coordinates(x[:1], PLACES),
    ]


def windows_back(x):
    def there_and_back(n, **options):
        spectra = scipy.signal.stft(x, nperseg=n, **options)[2]
        return scipy.signal.istft(spectra * (1.0 + 0.1 * spectra.real), nperseg=n, **options)[1]

    columns = scipy.signal.stft(x.T, 2.0, nperseg=6, axis=0, scaling="psd")[2]
    whole = scipy.signal.stft(x, nperseg=6, return_onesided=False)[2]
    return [
        there_and_back(6),
        there_and_back(7),
        there_and_back(6, noverlap=4, nfft=8),
        scipy.signal.istft(columns, 2.0, nperseg=6, scaling="psd", freq_axis=0)[1],
        scipy.signal.istft(np.moveaxis(whole, -1, 0), nperseg=6, input_onesided=False,
                           time_axis=0, freq_axis=-1)[1].real,
    ]  # fmt: skip


PAIRS = [*product(MODES, (1, 3)), *product(("nearest", "reflect"), (0, 2, 5)), ("wrap", 4)]
SAMPLED = {f"{mode} {order}": sampled(order, mode) for mode, order in PAIRS}
FUNCTIONS = {**SAMPLED, "windows": by_windows, "shapes": shapes, "istft": windows_back}
#: Derivatives are the same rows for all modes, and all odd or even degrees.
DERIVED = ["nearest 3", "reflect 2", "grid-wrap 1", "windows", "istft"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_scipys(name):
    function = FUNCTIONS[name]
    engines = ("vm", "native") if name in DERIVED else ("vm",)
    mine = [trees.flatten(ckad.jit(function, engine=e)(X))[0] for e in engines]
    for theirs, *own in zip(trees.flatten(function(X))[0], *mine, strict=True):
        for found in own:
            np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-12 * np.max(np.abs(theirs)))


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives(name):
    ckad.testing.check_grads(lambda x: FUNCTIONS[name](x), (X,), order=1)


def test_by_places_and_by_the_angle():
    def at(places, angle, image):
        turned = scipy.ndimage.rotate(image, angle, reshape=False, mode="reflect")
        return scipy.ndimage.map_coordinates(turned, places, mode="mirror")

    ckad.testing.check_grads(at, (PLACES[:, :10], 31.0, X), order=1)


def test_types():
    single = X.astype(np.float32)
    for function in (lambda x: scipy.ndimage.rotate(x, 33.0), lambda x: scipy.ndimage.zoom(x, 3.0)):
        mine, theirs = ckad.jit(function)(single), function(single)
        assert mine.dtype == theirs.dtype == np.float32
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5)
    double = ckad.jit(lambda x: scipy.ndimage.spline_filter(x))(single)
    assert double.dtype == np.float64


def test_what_a_traced_number_cannot_say():
    with pytest.raises(UnsupportedFunctionError, match="reshape=True"):
        ckad.jit(lambda angle: scipy.ndimage.rotate(X, angle))(30.0)
    with pytest.raises(UnsupportedFunctionError, match="traced factor"):
        ckad.jit(lambda factor: scipy.ndimage.zoom(X, factor))(2.0)
    with pytest.raises(UnsupportedFunctionError, match="grid-constant"):
        ckad.jit(lambda x: scipy.ndimage.shift(x, 0.5, mode="grid-constant"))(X)
    with pytest.raises(RuntimeError, match="not within filter footprint"):
        ckad.jit(lambda x: scipy.ndimage.rank_filter(x, 9, 3))(X)


LABELS = np.array([[1, 1, 0], [2, 2, 3]])
OF_REGIONS = "sum mean variance standard_deviation minimum maximum".split()


@pytest.mark.parametrize("name", OF_REGIONS)
def test_measurements_have_scipys_dtype(name):
    x = np.random.default_rng(3).random((2, 3)).astype(np.float32)
    measure = getattr(scipy.ndimage, name)
    for labels, index in ((None, None), (LABELS, None), (LABELS, 2), (LABELS, [1, 2, 9])):
        found = ckad.jit(lambda x, a=labels, b=index: measure(x, a, b), engine="vm")(x)
        with np.errstate(invalid="ignore"):
            expected = np.asarray(measure(x, labels, index))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
