"""Layers of networks on float32, as NPBench writes them in NumPy; JAX has its own convolution.

The value is a loss of the network's results in all weights and images: a mean of squares, or the
cross entropy. No time steps: "per step" is the whole function, "per cell" an input's element.

Source: A. N. Ziogas et al., NPBench: a benchmarking suite for high-performance NumPy, ICS (2021):
softmax, mlp, conv2d_bias, lenet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.case import Case, Gradient, Inputs, Settings, Value
from benchmarks.peers import ckad_gradient, ckad_primal

#: Sums of float32 in another order differ in their last digits.
TOLERANCE = 1e-4


def batch(settings: Settings) -> int:
    return int(settings["batch"])


def random(*shapes: tuple[int, ...]) -> Inputs:
    """Arrays of float32; a matrix or a stack of filters is scaled by what is summed over."""
    generator = np.random.default_rng(42)
    scales = [1.0 / np.sqrt(np.prod(s[:-1])) if k and len(s) > 1 else 1.0
              for k, s in enumerate(shapes)]  # fmt: skip
    return tuple(
        (scale * generator.normal(size=s)).astype(np.float32)
        for s, scale in zip(shapes, scales, strict=True)
    )


# The functions, of a namespace like NumPy with a convolution and a pooling ----------------------


def softmax(xp: Any, x: Any) -> Any:
    """Along the last axis."""
    exponentials = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return exponentials / xp.sum(exponentials, axis=-1, keepdims=True)


def attention(xp: Any) -> Callable:
    return lambda x, weights: xp.mean((softmax(xp, x) * weights) ** 2)


def dense(xp: Any, x: Any, layers: Any) -> Any:
    """Layers of weights and biases, with relu between them."""
    for w, b in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        x = xp.maximum(x @ w + b, 0)
    return x @ layers[-2] + layers[-1]


def cross_entropy(xp: Any, scores: Any) -> Any:
    """Of the first class, as if every sample was of it."""
    return -xp.mean(xp.log(softmax(xp, scores)[:, 0] + 1e-6))


def mlp(xp: Any) -> Callable:
    return lambda x, *layers: cross_entropy(xp, dense(xp, x, layers))


def conv2d_bias(xp: Any) -> Callable:
    return lambda x, w, b: xp.mean((xp.conv2d(x, w) + b) ** 2)


def small_cnn(xp: Any) -> Callable:
    def value(x, w1, b1, w2, b2):
        x = xp.maxpool2d(xp.maximum(xp.conv2d(x, w1) + b1, 0))
        return cross_entropy(xp, dense(xp, x.reshape(x.shape[0], -1), (w2, b2)))

    return value


def lenet(xp: Any) -> Callable:
    def value(x, w1, b1, w2, b2, *layers):
        x = xp.maxpool2d(xp.maximum(xp.conv2d(x, w1) + b1, 0))
        x = xp.maxpool2d(xp.maximum(xp.conv2d(x, w2) + b2, 0))
        return cross_entropy(xp, dense(xp, x.reshape(x.shape[0], -1), layers))

    return value


# NumPy's convolution, three ways to write it, and its pooling --------------------------


def conv_by_pixels(x, w):
    """NPBench's: a loop over the places of the result."""
    k = w.shape[0]
    n, height, width = x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.empty((n, height, width, w.shape[3]), dtype=x.dtype)
    for i in range(height):
        for j in range(width):
            out[:, i, j, :] = np.sum(
                x[:, i : i + k, j : j + k, :, np.newaxis] * w[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return out


def conv_by_taps(x, w):
    """A loop over the filter's elements, each a product of shifted images with a matrix."""
    k = w.shape[0]
    height, width = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((x.shape[0], height, width, w.shape[3]), dtype=x.dtype)
    for i in range(k):
        for j in range(k):
            out += x[:, i : i + height, j : j + width, :] @ w[i, j]
    return out


def conv_by_windows(x, w):
    """All windows at once, contracted with the filters."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))
    return np.tensordot(windows, w, axes=((4, 5, 3), (0, 1, 2)))


def maxpool_by_pixels(x):
    """NPBench's: a loop over the places of the result."""
    out = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]), dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def maxpool_by_reshape(x):
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


class Space(SimpleNamespace):
    """A namespace in which a network is written."""


def numpy_space(conv2d: Callable, maxpool2d: Callable) -> Space:
    names = ("exp", "max", "sum", "mean", "log", "maximum")
    return Space(conv2d=conv2d, maxpool2d=maxpool2d, **{name: getattr(np, name) for name in names})


def jax_space() -> Space:
    import jax
    import jax.numpy as jnp

    def conv2d(x, w):
        kinds = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=kinds)

    names = ("exp", "max", "sum", "mean", "log", "maximum")
    functions = {name: getattr(jnp, name) for name in names}
    return Space(conv2d=conv2d, maxpool2d=maxpool_by_reshape, **functions)


WINDOWS = {
    "taps": (conv_by_taps, maxpool_by_reshape),
    "windows": (conv_by_windows, maxpool_by_reshape),
    "pixels": (conv_by_pixels, maxpool_by_pixels),
}


def build_ckad(
    settings: Settings, value: Callable, n: int, form: str = "taps", **options: Any
) -> Gradient:
    return ckad_gradient(value(numpy_space(*WINDOWS[form])), n, **options)


def build_primal(settings: Settings, value: Callable, **options: Any) -> Value:
    return ckad_primal(value(numpy_space(*WINDOWS["taps"])), **options)


def build_jax(settings: Settings, value: Callable, n: int) -> Gradient:
    import jax

    from benchmarks.peers import jax_gradient

    return jax_gradient(jax, value(jax_space()), n)


def case(
    name: str,
    value: Callable,
    inputs: Callable[[Settings], Inputs],
    n_batch: int,
    forms: tuple[str, ...] = ("taps",),
) -> Case:
    n = len(inputs({"batch": 1}))
    return Case(
        name=name,
        title=f"{name} on float32: the loss in all arrays",
        defaults={"batch": n_batch},
        tiny={"batch": 2},
        inputs=inputs,
        steps=lambda settings: 1,
        cells=lambda settings: inputs(settings)[0].size,
        forms={
            "ckad": {
                form if len(forms) > 1 else "auto": partial(build_ckad, value=value, n=n, form=form)
                for form in forms
            },
            "jax": {"jit": partial(build_jax, value=value, n=n)},
        },
        primal=partial(build_primal, value=value),
        tolerance=TOLERANCE,
    )


def scores(settings: Settings) -> Inputs:
    shape = (batch(settings), 16, 128, 128)
    return random(shape, (1, 1, 1, 128))


def perceptron(settings: Settings) -> Inputs:
    n = batch(settings)
    return random((n, 784), (784, 512), (512,), (512, 512), (512,), (512, 10), (10,))


def images(settings: Settings) -> Inputs:
    return random((batch(settings), 32, 32, 3), (3, 3, 3, 16), (16,))


def pictures(settings: Settings) -> Inputs:
    return random((batch(settings), 28, 28, 1), (5, 5, 1, 16), (16,), (2304, 10), (10,))


def digits(settings: Settings) -> Inputs:
    dense = (256, 120), (120,), (120, 84), (84,), (84, 10), (10,)
    filters = (5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,)
    return random((batch(settings), 28, 28, 1), *filters, *dense)


CASES = (
    case("softmax", attention, scores, 16),
    case("mlp", mlp, perceptron, 256),
    case("conv2d_bias", conv2d_bias, images, 16, ("taps", "windows", "pixels")),
    case("small_cnn", small_cnn, pictures, 32, ("taps", "windows", "pixels")),
    case("lenet", lenet, digits, 32, ("taps", "windows", "pixels")),
)
