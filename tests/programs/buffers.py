"""Views, writes and buffers: each program is around one habit of NumPy's users."""

import numpy as np

DAMPING = 0.9


def closure_over_array(u, kappa, steps=5):
    """The inner function writes into what the outer one made."""
    flux = np.zeros(u.size + 1)

    def update():
        flux[1:-1] = kappa * (u[1:] - u[:-1])
        u[:] = u + flux[1:] - flux[:-1]

    for _ in range(steps):
        update()
    return u, flux


def writes_its_argument(u, n=6):
    """Returns nothing: the result is the argument."""
    for i in range(1, n):
        u[i] = u[i] + DAMPING * u[i - 1]
        u[i - 1] *= 0.5


def chained_assignment(x):
    a = np.zeros(4)
    b = np.zeros(4)
    for i in range(4):
        a[i] = b[3 - i] = s = x * (i + 1)
        x = s - a[i - 1] * 0.1
    return a * b


def single_precision(u, steps=5):
    buffer = np.zeros(u.shape, dtype=np.float32)
    for _ in range(steps):
        buffer[1:-1] = u[1:-1] + np.float32(0.25) * (u[2:] - 2 * u[1:-1] + u[:-2])
        buffer[0], buffer[-1] = u[0], u[-1]
        u[:] = buffer
    return u


def grid_of_gaussians(centre, width, steps=3):
    y, x = np.mgrid[0:4, 0:5]
    field = np.zeros((4, 5))
    for k in range(steps):
        field += np.exp(-((x - centre[0] - k) ** 2 + (y - centre[1]) ** 2) / width**2)
    return field


def meshgrid_rotation(angle, steps=3):
    x, y = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 3), indexing="ij")
    for _ in range(steps):
        x, y = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
    return x * np.abs(y)


def flat_and_ravel(A):
    B = np.zeros_like(A)
    for k in range(A.size):
        B.flat[k] = A.flat[k] * (k + 1)
    r = A.ravel()
    r[::2] *= 2.0
    return A + B


def output_arguments(a, b, steps=4):
    work = np.empty_like(a)
    for _ in range(steps):
        np.multiply(a, b, out=work)
        np.sin(work, out=work)
        np.add(a, work, out=a)
        np.subtract(b, 0.1, out=b, where=b > 0)
    return a, b


def views_of_views(A, steps=3):
    inner = A[1:-1, 1:-1]
    corner = inner[::2, ::-1]
    diagonal = np.diagonal(A)
    for _ in range(steps):
        corner *= 0.5
        inner += 0.1 * A[2:, 2:]
        A[0, :] = diagonal + corner.T[0, 0]
    return A


def transposed_writes(A):
    T = A.T
    for i in range(T.shape[0]):
        T[i, 1:] += T[i, :-1]
        T[i] /= 1 + i
    return A


def reversed_views(u):
    v = u[::-1]
    for i in range(len(u) - 1):
        v[i + 1] += 0.3 * v[i]
    return u


def masks_as_targets(u, steps=4):
    for _ in range(steps):
        u = u + 0.3 * np.sin(3 * u)
        u[u > 1] = 1 / u[u > 1]
        u[u < -0.7] *= 0.5
        u[np.abs(u) < 0.05] = 0.05
    return u


def index_arrays(u, order, steps=3):
    for _ in range(steps):
        u[order] = 0.5 * u + 0.5 * u[order[::-1]]
        u[order[:2]] += 1.0
    return u


def scalar_out_and_in(u):
    """A scalar is taken out, changed, put back elsewhere."""
    for i in range(len(u) - 1):
        s = u[i]
        s *= 1.1
        u[i + 1] = u[i + 1] - s
        u[i] = s * u[i]
    return u


def ring_buffer(x, delay=3):
    buffer = np.zeros(delay)
    out = np.zeros_like(x)
    for n in range(x.size):
        slot = n % delay
        out[n] = x[n] + 0.5 * buffer[slot]
        buffer[slot] = out[n]
    return out


def negative_indices(u):
    for i in range(-1, -len(u), -1):
        u[i - 1] += 0.5 * u[i]
    u[-1] = u[0]
    return u


def sorted_and_cumulative(x):
    total = 0.0
    for k in range(3):
        x = np.sort(x + 0.1 * np.cumsum(x))
        total += x[k] - x[-1 - k]
    return total
