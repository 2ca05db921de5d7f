"""Filters, scans and recurrent cells."""

import numpy as np

from .numerics import softmax


def deriche(alpha, image):
    """Recursive smoothing, forwards and backwards, along rows and then along columns."""
    decay = np.exp(-alpha)
    gain = (1.0 - decay) ** 2 / (1.0 + 2.0 * alpha * decay - decay * decay)
    b1, b2 = 2.0 ** (-alpha), -decay * decay

    def smooth(x):
        there = np.empty_like(x)
        there[:, 0] = gain * x[:, 0]
        there[:, 1] = gain * (x[:, 1] + decay * (alpha - 1) * x[:, 0]) + b1 * there[:, 0]
        for j in range(2, x.shape[1]):
            there[:, j] = gain * (x[:, j] + decay * (alpha - 1) * x[:, j - 1])
            there[:, j] += b1 * there[:, j - 1] + b2 * there[:, j - 2]
        back = np.empty_like(x)
        back[:, -1] = 0.0
        back[:, -2] = gain * decay * (alpha + 1) * x[:, -1]
        for j in range(x.shape[1] - 3, -1, -1):
            back[:, j] = gain * decay * ((alpha + 1) * x[:, j + 1] - decay * x[:, j + 2])
            back[:, j] += b1 * back[:, j + 1] + b2 * back[:, j + 2]
        return there + back

    return smooth(smooth(image).T).T


def deriche_rows_loops(alpha, img):
    w, h = img.shape
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(-2.0 * alpha))
    b1, b2 = 2.0 ** (-alpha), -np.exp(-2.0 * alpha)
    out = np.zeros((w, h))
    for i in range(w):
        ym1 = 0.0
        ym2 = 0.0
        xm1 = 0.0
        for j in range(h):
            y = k * img[i, j] + k * np.exp(-alpha) * (alpha - 1.0) * xm1 + b1 * ym1 + b2 * ym2
            out[i, j] = y
            xm1 = img[i, j]
            ym2 = ym1
            ym1 = y
        yp1 = yp2 = xp1 = xp2 = 0.0
        for j in range(h - 1, -1, -1):
            y = k * np.exp(-alpha) * (alpha + 1.0) * xp1 - k * np.exp(-2.0 * alpha) * xp2
            y += b1 * yp1 + b2 * yp2
            out[i, j] += y
            xp2, xp1 = xp1, img[i, j]
            yp2, yp1 = yp1, y
    return out


def biquad(x, b, a):
    """Direct form, state in scalars."""
    y = np.zeros(len(x))
    x1 = x2 = y1 = y2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + b[1] * x1 + b[2] * x2 - a[0] * y1 - a[1] * y2
        x2, x1 = x1, x[n]
        y2, y1 = y1, y[n]
    return y


def exponential_average(x, alpha):
    y = np.empty_like(x)
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
    return y


def drawdown(returns):
    """Running product, running maximum, the worst loss from it."""
    wealth = peak = 1.0
    worst = 0.0
    for r in returns:
        wealth *= 1 + r
        peak = max(peak, wealth)
        worst = min(worst, wealth / peak - 1)
    return wealth, worst


def fir_loops(x, h):
    n, taps = x.size, h.size
    y = np.zeros(n)
    for i in range(n):
        for k in range(min(i + 1, taps)):
            y[i] += h[k] * x[i - k]
    return y


def conv2d_loops(image, kernel):
    n, m = image.shape
    k = kernel.shape[0]
    out = np.zeros((n - k + 1, m - k + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(image[i : i + k, j : j + k] * kernel)
    return np.maximum(out, 0)


def kalman(z, A, H, Q, R, x0):
    x = x0
    P = np.eye(len(x0))
    loglik = 0.0
    for t in range(z.shape[0]):
        x = A @ x
        P = A @ P @ A.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        innovation = z[t] - H @ x
        x = x + K @ innovation
        P = (np.eye(len(x)) - K @ H) @ P
        loglik -= 0.5 * (innovation @ np.linalg.solve(S, innovation) + np.log(np.linalg.det(S)))
    return loglik, x


def kalman_scalar(z, q, r):
    x, p = z[0], 1.0
    filtered = np.zeros_like(z)
    for k, measurement in enumerate(z):
        p = p + q
        gain = p / (p + r)
        x = x + gain * (measurement - x)
        p = (1 - gain) * p
        filtered[k] = x
    return filtered


def hmm_forward(initial, transition, emission, observations):
    """Scaled forward algorithm: the log-likelihood."""
    alpha = initial * emission[:, observations[0]]
    scale = alpha.sum()
    alpha = alpha / scale
    loglik = np.log(scale)
    for t in range(1, len(observations)):
        alpha = (alpha @ transition) * emission[:, observations[t]]
        scale = alpha.sum()
        alpha /= scale
        loglik += np.log(scale)
    return loglik


def hmm_forward_loops(initial, transition, emission, observations):
    n, T = initial.size, observations.size
    alpha = np.zeros((T, n))
    for i in range(n):
        alpha[0, i] = initial[i] * emission[i, observations[0]]
    for t in range(1, T):
        for j in range(n):
            s = 0.0
            for i in range(n):
                s += alpha[t - 1, i] * transition[i, j]
            alpha[t, j] = s * emission[j, observations[t]]
    return np.log(np.sum(alpha[T - 1]))


def lstm(x, Wx, Wh, b):
    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    hidden = Wh.shape[0]
    h = np.zeros(hidden)
    c = np.zeros(hidden)
    outputs = []
    for t in range(x.shape[0]):
        gates = x[t] @ Wx + h @ Wh + b
        i, f, o, g = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


def rnn(inputs, Wx, Wh):
    h = np.zeros(Wh.shape[0])
    hs = np.zeros((len(inputs), len(h)))
    for t, x in enumerate(inputs):
        h = np.tanh(Wx @ x + Wh @ h)
        hs[t] = h
    return hs[::-1].sum(axis=0)


def attention(q, k, v):
    """Causal, row by row."""
    n, d = q.shape
    out = np.empty_like(v)
    for i in range(n):
        scores = k[: i + 1] @ q[i] / np.sqrt(d)
        out[i] = softmax(scores) @ v[: i + 1]
    return out


def attention_loops(q, k, v):
    """Streaming softmax: the running maximum rescales what was summed."""
    n, d = q.shape
    out = np.zeros((n, v.shape[1]))
    for i in range(n):
        m = -1e30
        z = 0.0
        acc = np.zeros(v.shape[1])
        for j in range(n):
            s = 0.0
            for e in range(d):
                s += q[i, e] * k[j, e]
            new = max(m, s)
            z = z * np.exp(m - new) + np.exp(s - new)
            acc = acc * np.exp(m - new) + v[j] * np.exp(s - new)
            m = new
        out[i, :] = acc / z
    return out


def soft_dtw(x, y, gamma=0.5):
    """Dynamic time warping with a soft minimum."""
    n, m = len(x), len(y)
    R = np.full((n + 1, m + 1), 1e3)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]
            low = min(a, b, c)
            total = np.exp((low - a) / gamma) + np.exp((low - b) / gamma)
            total += np.exp((low - c) / gamma)
            R[i, j] = (x[i - 1] - y[j - 1]) ** 2 + low - gamma * np.log(total)
    return R[n, m]


def haar_lifting(x, levels=3):
    """In place, with strided views of the same array."""
    n = x.size
    for level in range(levels):
        stride = 2**level
        even = x[0 : n : 2 * stride]
        odd = x[stride : n : 2 * stride]
        odd -= even
        even += 0.5 * odd
    return x


def moments(x, window=4):
    """Statistics of windows that slide."""
    n = x.size - window + 1
    out = np.zeros((n, 3))
    for i in range(n):
        part = x[i : i + window]
        out[i, 0] = part.mean()
        out[i, 1] = part.std()
        out[i, 2] = np.prod(part)
    return out


def dft_loops(x):
    n = x.shape[0]
    re = np.zeros(n)
    im = np.zeros(n)
    for k in range(n):
        for t in range(n):
            angle = 2 * np.pi * k * t / n
            re[k] += x[t] * np.cos(angle)
            im[k] -= x[t] * np.sin(angle)
    return re**2 + im**2
