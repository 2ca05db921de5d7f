"""Programs that use NumPy as its users do: value, both derivatives, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import ckad

RNG = np.random.default_rng(0)
PROGRAMS = {}


def program(*args):
    def register(function):
        PROGRAMS[function.__name__] = (function, args)
        return function

    return register


@program(RNG.random((4, 3)))
def flat_elements(x):
    n = x.size
    y = np.zeros_like(x)
    for i in range(n):
        y.flat[i] = x.flat[n - 1 - i] * (i + 1)
    s = 0.0
    for v in x.flat:
        s += v * v
    for k, v in enumerate(y.flat):
        s += k * v
    for v, w in zip(x.T.flat, y[:, ::-1].flat, strict=True):
        s = 0.9 * s + v * w
    for v in y[:, 1:].flat:
        s = 0.9 * s + np.sin(v)
    for (i, j), v in np.ndenumerate(x):
        s += i * v - j
    for i, j in np.ndindex(x.shape):
        s += x[i, j] * y[i, j]
    return s + x.item(2) + x[1].tolist()[2] + x.ravel()[3:5].sum()


@program(RNG.random(8))
def integer_state(x):
    count = 0
    pos = 0
    hist = np.zeros(4, dtype=int)
    out = np.zeros(4)
    for i in range(8):
        k = int(x[i] * 4)
        hist[k] += 1
        out[k] += x[i]
        if x[i] > 0.5:
            count += 1
            pos = (pos + 3) % 8
        else:
            pos = pos >> 1
        out[pos & 3] += 0.1 * x[pos]
    return (out / np.maximum(hist, 1)).sum() + count * x[0] + 2**count * x[1] + (-1) ** pos * x[2]


@program(RNG.random(9), RNG.random(9))
def masks(a, b):
    m = a > b
    d = np.empty_like(a)
    d[m] = a[m]
    d[~m] = b[~m]
    e = np.zeros(9)
    e[m] = 1.0
    e[~m & (a > 0.3)] += 2.0 * a[~m & (a > 0.3)]
    f = np.divide(a, b, out=np.zeros_like(a), where=b > 0.2)
    g = np.select([a < 0.3, a < 0.6], [a, a * b], default=b)
    h = a.copy()
    h[np.isnan(h)] = 0
    h[h > 0.8] -= 0.1
    h[(h > 0.2) & (h < 0.4)] *= 3
    return d @ np.arange(9.0) + e.sum() + f.sum() + g @ g + h.sum() + a[m].sum() + b[m].mean()


@program(RNG.random((4, 4)))
def ufuncs_into_views(A):
    out = np.empty((2,) + A.shape)
    np.exp(A, out=out[0])
    np.log1p(A, out=out[1])
    np.add(out[0], out[1], out=out[0])
    out[1] /= out[0]
    out[:, 0] **= 2
    out[..., -1] *= 0.3
    r = np.add.reduce(out, axis=(0, 2))
    q = np.multiply.accumulate(A, axis=1)
    z = np.maximum.reduce(A, axis=0)
    u, v = np.divmod(A, 2), np.modf(A)
    np.clip(A, 0.2, 0.8, out=A)
    A.clip(max=0.7, out=A)
    return (
        r.sum()
        + q.sum()
        + z @ z
        + u[1].sum()
        + v[0].sum()
        + A.sum()
        + np.hypot(A, 2).sum()
        + np.ptp(A, axis=1).sum()
    )


@program(RNG.random(6), RNG.random((6, 6)))
def element_types(x, M):
    i = np.arange(6, dtype=np.int32)
    f = np.zeros(6, dtype="f4")
    b = np.ones(6, dtype=bool)
    f[:] = 1.5
    b[::2] = False
    k = (i * 2) % 5
    idx = k.astype(np.intp)
    y = x[idx] * b + np.where(b, x, 0) * f
    s = np.sum(x, where=b) + x[i[-1]] + (i // 2 * x).sum() + np.float64(i.sum()) * x[0]
    Z = np.zeros((6, 6), dtype=M.dtype)
    Z[np.arange(6), k] = x
    Z[[0, 1]] = Z[[1, 0]]
    Z[:, 2] = Z[2, :] = 1
    Z[np.ix_([0, 3], [1, 4])] += M[np.ix_([1, 2], [3, 5])]
    return y @ x + s + (Z * M).sum() + np.count_nonzero(x > 0.5) * x[0] + float(np.argmax(x)) * x[1]


@program(RNG.random((3, 4)), RNG.random(4))
def in_place(A, b):
    A[0] += b
    A[:, 1] *= 2.0
    A[1:, ::2] -= A[:-1, ::2]
    A[A < 0.1] = 0.1
    np.sqrt(A, out=A)
    np.maximum(A, 0.3, out=A)
    B = A.reshape(2, 6)
    B[0, :] = B[1, ::-1]
    C = A.T.copy()
    C.sort(axis=0)
    D = np.where(C.mean() < C, C, -C)
    D.flat[::3] = 0.5
    w = A.view()
    w[0, 0] = b @ b
    D -= D.mean(axis=0, keepdims=True)
    D /= D.std(axis=0) + 1e-3
    np.add.at(b, [0, 0, 2], [1.0, 2.0, 3.0])
    np.multiply(b, b, out=b, where=b > 0.5)
    s, q = 0.0, 1
    for row in D:
        s += float(row @ row[::-1])
        q *= 2
    for i, (u, v) in enumerate(zip(A.ravel(), D.ravel(), strict=True)):
        s += u * v * (i % 2)
    return s + A.sum() + b.sum() * q + np.vdot(A, A)


@program(RNG.random(5))
def cumulative(x):
    a = np.cumsum(x[::-1])[::-1]
    b = np.cumprod(1 + x)
    c = np.maximum.accumulate(x)
    d = np.add.outer(x, x)
    e = np.subtract.outer(a, b)
    f = np.tri(5) @ x
    g = np.outer(x, a)[np.triu_indices(5, 1)]
    h = np.diff(b) / np.diff(a)
    t = np.fromfunction(lambda i, j: 1.0 / (i + j + 1), (5, 5))
    return c.sum() + (d * e).sum() + f @ x + g.sum() + h.sum() + x @ t @ x + np.ediff1d(x).prod()


@program(RNG.random(10))
def median_filter(x):
    y = np.zeros_like(x)
    xp = np.pad(x, 1, mode="edge")
    for i in range(len(x)):
        y[i] = np.median(xp[i : i + 3])
    s = np.sort(y)
    trimmed = s[2:-2]
    return trimmed.mean() + np.percentile(x, 75) - np.percentile(x, [10, 20]).sum()


@program(RNG.random((12, 12)))
def linear_systems(A):
    n = A.shape[0]
    M = A + n * np.eye(n)
    b = np.linspace(0, 1, n)
    x = np.linalg.solve(M, b)
    Minv = np.linalg.inv(M)
    L = np.linalg.cholesky(M @ M.T)
    s, ld = np.linalg.slogdet(M)
    return np.linalg.norm(x) + np.trace(Minv) + s * ld + L.sum() * 1e-3


@program(RNG.random((4, 6)))
def moving_windows(X):
    out = np.zeros(4)
    for i in range(4):
        lo, hi = max(0, i - 1), min(4, i + 2)
        w = X[lo:hi, 1:-1]
        out[i] = w.mean() + w.std() + np.sum(w, axis=0).max() + w.var(axis=1, ddof=1).sum()
    W = np.lib.stride_tricks.sliding_window_view(X, (2, 2))
    return out.sum() + W.max(axis=(2, 3)).sum() + np.einsum("ijkl,kl->ij", W, np.eye(2)).sum()


@program(RNG.random(10))
def lists_of_arrays(x):
    hist = []
    v = x
    for _ in range(4):
        v = np.roll(v, 1) * 0.5 + x
        hist.append(v)
    traj = np.array(hist)
    stats = {"mean": traj.mean(axis=0), "max": traj.max(), "q": np.quantile(traj, 0.3)}
    parts = [np.sum(h[i:]) for i, h in enumerate(hist)]
    m = np.stack(parts)
    return (
        stats["mean"].sum()
        + stats["max"]
        + stats["q"]
        + np.prod(m) ** 0.1
        + sum(parts) / len(parts)
    )


@program(RNG.random(5), RNG.random((2, 3)))
def repeated_places(x, y):
    idx = np.array([0, 2, 2, 4])
    acc = np.zeros(5)
    np.add.at(acc, idx, x[idx] * 2)
    acc[idx[:2]] += y[0, :2]
    z = np.concatenate([x, acc, y.ravel()])[::-1]
    z[[0, -1]] = z[[-1, 0]]
    order = np.argsort(x)
    ranked = x[order]
    u, inv = np.unique(np.array([3, 1, 3]), return_inverse=True)
    return z @ np.arange(z.size) + ranked @ np.arange(5.0) + y[:, inv % 2].sum() + x[u].sum()


@program(RNG.random(9))
def filtered_signal(x):
    win = np.hanning(5)
    s = np.convolve(x, win, mode="same")
    t = np.interp(np.linspace(0, 8, 17), np.arange(9), s)
    env = np.maximum.accumulate(np.abs(t))
    d = np.diff(t, n=2, prepend=0)
    c = np.clip(d, -0.5, 0.5)
    c[c < -0.4] = -0.4
    c[::3] += 1
    sw = np.lib.stride_tricks.sliding_window_view(x, 3).mean(axis=-1)
    return (
        env.sum()
        + c @ c
        + np.ptp(t)
        + np.cumsum(sw)[-1]
        + np.polyval(x[:3], 0.7)
        + np.sort(x)[::-1][:3].sum()
    )


@program(RNG.random(8), RNG.random(8))
def particle_grid(x, q):
    n = 5
    rho = np.zeros(n)
    v = np.zeros_like(x)
    for _ in range(3):
        rho[:] = 0
        for p in range(len(x)):
            c = x[p] * (n - 1)
            i = int(c)
            f = c - i
            rho[i] += q[p] * (1 - f)
            rho[(i + 1) % n] += q[p] * f
        E = -np.gradient(rho) * 0.05
        i = np.floor(x * (n - 1)).astype(int)
        f = x * (n - 1) - i
        v += E[i] * (1 - f) + E[np.minimum(i + 1, n - 1)] * f
        x = (x + 0.05 * v) % 1.0
    return np.sum(v**2) + rho.max()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_derivatives(name):
    function, args = PROGRAMS[name]

    def of_copies(*arrays):
        return function(*[a.copy() for a in arrays])

    for engine in ("vm", "native"):
        value = ckad.value_and_grad(function, engine=engine)(*args)[0]
        np.testing.assert_allclose(value, of_copies(*args), rtol=1e-11)
    ckad.testing.check_grads(of_copies, args, order=1)
