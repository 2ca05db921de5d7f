"""Small programs, each around one construct of Python or NumPy inside of a loop."""

from collections import namedtuple

import numpy as np

Body = namedtuple("Body", "position velocity")


def over_enumerate(x):
    total = 0.0
    for i, value in enumerate(x, start=1):
        total += i * np.sin(value)
    return total


def over_zip(x, y):
    out = np.zeros(len(x))
    for k, (a, b) in enumerate(zip(x, y, strict=True)):
        out[k] = a * b + (out[k - 1] if k > 0 else 0.0)
    return out


def over_reversed(coefficients, x):
    """Horner's rule."""
    result = 0.0
    for c in reversed(coefficients):
        result = result * x + c
    return result


def backwards(u):
    for i in range(len(u) - 2, -1, -2):
        u[i] += 0.5 * u[i + 1] ** 2
    return u


def over_rows(A, b):
    for row in A:
        row *= b
        b = b + row.sum()
    return A, b


def triangle(A):
    total = 0.0
    n = A.shape[0]
    for k in range(n):
        for i in range(k + 1):
            for j in range(i, n):
                total += A[k, i] * A[i, j]
    return total


def chained_comparisons(x):
    total = 0.0
    for i in range(x.shape[0]):
        if -0.5 < x[i] <= 0.5:
            total += x[i] ** 2
        elif not (x[i] < 0 or i == 0):
            total += 2 * x[i]
        elif x[i] < -0.5 and i % 2 == 1:
            total -= x[i]
    return total


def conditional_expressions(x, slope):
    out = np.empty(len(x))
    for i in range(len(x)):
        y = x[i] if x[i] > 0 else slope * x[i]
        out[i] = y * y if abs(y) < 0.5 else abs(y) - 0.25
    return out


def skipping(x):
    """continue, in two places."""
    total = 1.0
    for i in range(len(x)):
        if i % 3 == 0:
            continue
        if x[i] < 0:
            total *= 1.1
            continue
        total += x[i] * total
    return total


def for_else(x, limit):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2
        if s > limit:
            s = s * (i + 1)
            break
    else:
        s = -s
    return s


def while_else(x):
    n = 0
    y = x
    while y < 10:
        y = y * 1.5 + 0.1
        n += 1
        if n == 20:
            break
    else:
        y = y / (n + 1)
    return y


def nested_break(A, limit):
    """The inner loop ends, the outer one goes on until a flag says otherwise."""
    total = 0.0
    for i in range(A.shape[0]):
        done = False
        for j in range(A.shape[1]):
            if A[i, j] < -0.8:
                break
            total += A[i, j] ** 2
            if total > limit:
                done = True
                break
        if done:
            break
    return total


def nonlocal_accumulator(x, rate):
    energy = 0.0

    def step(state):
        nonlocal energy
        new = state - rate * np.sin(state)
        energy += np.sum((new - state) ** 2)
        return new

    for _ in range(8):
        x = step(x)
    return np.sum(x**2) + energy


def dictionary_state(x0, v0, stiffness):
    state = {"x": x0, "v": v0}
    for _ in range(20):
        a = -stiffness * state["x"]
        state["v"] += 0.05 * a
        state["x"] += 0.05 * state["v"]
    return state


def namedtuple_state(position, velocity):
    body = Body(position, velocity)
    for _ in range(10):
        v = body.velocity - 0.1 * np.tanh(body.position)
        body = body._replace(position=body.position + 0.1 * v, velocity=v)
    return body.position, body.velocity


def list_of_arrays(layers, x):
    """The index picks from a list: the arrays need not have one shape."""
    for i in range(len(layers)):
        x = np.tanh(layers[i] @ x)
    return x


def appended(x, steps=6):
    history = [x]
    for _ in range(steps):
        history.append(0.5 * history[-1] + 0.1 * np.sin(history[-1]))
    return np.array(history)


def stack_of_comprehension(x):
    rows = [np.sin(k * x) for k in range(1, 4)]
    return np.vstack(rows).T @ np.array([sum(row) for row in rows])


def unpacked(points):
    area = 0.0
    n = len(points)
    for i in range(n):
        (x1, y1), (x2, y2) = points[i], points[(i + 1) % n]
        area += x1 * y2 - x2 * y1
    return 0.5 * area


def python_floats(x):
    """A float that becomes an array's element in the first step."""
    best = 0.0
    where = 0
    count = 0
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
            where = i
            count += 1
    return best * (where + 1) + count


def last_value(x):
    """A name first bound inside, read after the loop; so is the loop's index."""
    for i in range(len(x)):
        y = np.exp(x[i]) * (i + 1)
    return y * i


def walrus(x):
    n = 0
    while (y := np.cos(x)) < x - 0.1:
        x = 0.5 * (x + y)
        n += 1
    return x * n + y


def power_by_squaring(x, n=13):
    result = 1.0
    while n > 0:
        if n & 1:
            result *= x
        x *= x
        n >>= 1
    return result


def guarded(x, strength):
    assert x.ndim == 1, "one axis"
    with np.errstate(divide="ignore"):
        for i in range(x.size):
            x[i] = np.log1p(x[i] ** 2) if strength > 0 else 0.0
            if i == 2:
                pass
    return x


def default_and_keyword(x, *, gain=1.5, offsets=(0.1, 0.2, 0.3)):
    def amplify(v, gain=gain, *offsets, scale=1.0):
        for o in offsets:
            v = gain * v + o * scale
        return v

    for scale in (1.0, 0.5):
        x = amplify(x, gain, *offsets, scale=scale)
    return x


def recursive_sum(x):
    """Pairwise, by recursion on halves."""
    if x.size <= 2:
        return np.sum(x * x)
    half = x.size // 2
    return recursive_sum(x[:half]) + recursive_sum(x[half:]) ** 2


def maximum_of_loop(A):
    """The largest row sum, by hand, then the builtin."""
    best = -np.inf
    for i in range(A.shape[0]):
        s = 0.0
        for j in range(A.shape[1]):
            s += abs(A[i, j])
        if s > best:
            best = s
    return best + max(A[0, 0], A[1, 1]) + sum(A[0])
