"""Layers of networks with loops over windows, and training loops."""

import numpy as np

from .numerics import softmax


def relu(x):
    return np.maximum(x, 0)


def batchnorm(x, eps=1e-5):
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def conv2d(images, weights, bias):
    k = weights.shape[0]
    n, h, w, c_out = images.shape[0], images.shape[1], images.shape[2], weights.shape[3]
    h_out, w_out = h - k + 1, w - k + 1
    output = np.empty((n, h_out, w_out, c_out))
    for i in range(h_out):
        for j in range(w_out):
            output[:, i, j, :] = np.sum(
                images[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return output + bias


def maxpool(x):
    output = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


def small_lenet(images, conv, bias, dense):
    x = maxpool(relu(conv2d(images, conv, bias)))
    x = np.reshape(x, (x.shape[0], -1)) @ dense
    return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


def residual_layers(x, weights):
    for w in weights:
        x = x + relu(batchnorm(x @ w))
    return x


def trained_perceptron(w1, w2, x, y, rate=0.1, epochs=4):
    """The derivative through training: weights after some epochs by what they were before."""
    for _ in range(epochs):
        for k in range(x.shape[0]):
            hidden = np.tanh(w1 @ x[k])
            error = w2 @ hidden - y[k]
            back = error * w2 * (1 - hidden**2)
            w2 -= rate * error * hidden
            w1 -= rate * np.outer(back, x[k])
    return w1, w2


def adam(x, target, rate=0.1, b1=0.9, b2=0.99, steps=8):
    m = np.zeros_like(x)
    v = np.zeros_like(x)
    for t in range(1, steps + 1):
        g = 2 * (x - target) * np.exp(-((x - target) ** 2))
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        x = x - rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)
    return x


def mixture_em(data, means, rounds=4):
    """Expectation and maximisation for components of unit width."""
    weights = np.ones(means.size) / means.size
    for _ in range(rounds):
        responsibility = np.empty((data.size, means.size))
        for i in range(data.size):
            responsibility[i] = softmax(np.log(weights) - 0.5 * (data[i] - means) ** 2)
        total = responsibility.sum(axis=0)
        means = responsibility.T @ data / total
        weights = total / data.size
    return means, weights
