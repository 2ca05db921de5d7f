"""Lists whose length the program decides: items put between others, and iterators over them."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, UnrecordableError


def put_first(x: Any) -> Any:
    found: list[Any] = []
    while x < 2.0:
        found.insert(0, x)
        x = x * 1.1
    return sum((k + 1) * v for k, v in enumerate(found)) + found[2]


def put_second(x: Any) -> Any:
    found = [0.0, 10.0]
    while x < 3.0:
        found.insert(1, x)
        x = x * 1.3
    return sum(k * v for k, v in enumerate(found))


def put_in_order(x: Any) -> Any:
    found: list[Any] = []
    for k in range(12):
        new = np.sin(k * x)
        i = 0
        while i < len(found) and found[i] < new:
            i += 1
        found.insert(i, new)
    return sum((k + 1) * v for k, v in enumerate(found))


def put_and_taken(x: Any) -> Any:
    """As many as before: the buffers are a ring."""
    found = [x * k for k in range(20)]
    t = 0.0
    while len(found) > 3:
        t = 0.5 * t + 0.1 * found.pop(1) * found[0] + found.pop(len(found) // 2)
        if t > 20 * x:
            found.insert(-1, t * 0.1)
    return t + sum(k * v for k, v in enumerate(found))


class Event(NamedTuple):
    time: Any
    size: Any


def events(x: Any) -> Any:
    queue = [Event(0.0, x), Event(0.5, 2 * x)]
    t, s = 0.0, 0.0
    while len(queue) > 0 and t < 4.0:
        t, size = queue.pop(0)
        s = s + size * t
        new = Event(t + 0.3 + 0.2 * size, size * 0.9)
        i = 0
        while i < len(queue) and queue[i].time < new.time:
            i += 1
        queue.insert(i, new)
        if size > 0.8 * x:
            queue.insert(0, Event(t + 0.1, 0.1 * x))
    return s + len(queue)


def item_of_records(x: Any) -> Any:
    events, i = [Event(0.0, x), Event(0.5, 2 * x), Event(3.0, x)], 0
    while events[i].time < x:
        i += 1
    return events[i - 1].size


def deleted(x: Any) -> Any:
    found = [x, 2 * x, 3 * x, 4 * x]
    while x > 0.2:
        if x > 0.5:
            del found[1]
            found.insert(2, x * x)
        x = x * 0.8
    return found[0] * found[1] - found[2] * found[3]


def beyond_the_ends(x: Any) -> Any:
    found = [x, 2 * x, 3 * x]
    if x > 0.5:
        found.append(7.0)
    found.insert(-1, x)
    found.insert(100, 2.0)
    found.insert(-100, 3.0)
    return sum((k + 1) * v for k, v in enumerate(found))


def of_arrays(x: Any) -> Any:
    found = [x * np.ones(2), 2 * x * np.ones(2), 3 * x * np.arange(2.0)]
    s = 0.0
    while x < 3.0:
        item = found[1]
        found.insert(0, item * 0.5)
        s = s + item[0] * item[1]
        x = x * 1.2
    return s + sum(v[1] * k for k, v in enumerate(found))


def recorded(x: Any) -> list[Any]:
    found = [(0.0, np.ones(2))]
    t, y = 0.0, np.ones(2)
    while t < 1.0:
        if x > 0.5:
            t += 0.1 + 0.1 * x
            y = y * x
            found.append((t, y.copy()))
        else:
            x = x + 0.1
    return found


def backwards(x: Any) -> Any:
    s = 0.0
    for t, y in reversed(recorded(x)):
        s = s * 0.5 + t * y[0]
    return s


def transposed(x: Any) -> Any:
    ts, ys = zip(*recorded(x), strict=False)
    return np.trapezoid(np.array(ys)[:, 1], np.array(ts)) + sum(ts)


def transposed_in_python(x: Any) -> Any:
    ts, ys = zip(*[(k * x, x**k) for k in range(3)])  # noqa: B905
    return sum(ts) + ys[2]


def windows(x: Any) -> tuple[Any, Any]:
    a, b = deque[Any](maxlen=3), deque[Any](maxlen=3)
    for k in range(8):
        if x * k > 1.0:
            a.append(x * k)
            b.append(np.ones(2) * x)
    return a, b


def zipped(x: Any) -> Any:
    a, b = windows(x)
    s, found = 0.0, []
    for u, v in zip(reversed(a), reversed(b), strict=False):
        s = s * 0.5 + u * v[0]
        found.append(s)
    for u, v, w in zip(a, b, reversed(found), strict=False):
        s = s + u * v[0] * w
    return s


def zipped_with_others(x: Any) -> Any:
    """A list that Python holds, and one that is shorter than the window."""
    a, _ = windows(x)
    s = 0.0
    for u, v in zip(a, [1.0, 2.0, 4.0, 8.0], strict=False):
        s = s * 0.5 + u * v
    for u, v in zip(reversed([3.0, 5.0]), a, strict=False):
        s = s + u * v
    for k, (u, v) in enumerate(zip(a, range(10), strict=False)):
        s = s + u * v * k
    return s


def numbered(x: Any) -> Any:
    s = 0.0
    for k, u in enumerate(windows(x)[0], start=1):
        s = s * 0.5 + u * k
    return s


def pairs_of_steps(x: Any) -> Any:
    """Two-loop recursion of a quasi-Newton method: its windows fill while it runs."""
    ss, ys = deque[Any](maxlen=3), deque[Any](maxlen=3)
    z, g = np.array([1.0, 2.0]) * x, np.array([2.0, 16.0]) * x
    for _ in range(6):
        if g @ g < 1e-9:
            break
        q, kept = g.copy(), []
        for s, y in zip(reversed(ss), reversed(ys), strict=False):
            a = s @ q / (y @ s)
            kept.append(a)
            q -= a * y
        q *= 0.1
        for s, y, a in zip(ss, ys, reversed(kept), strict=False):
            q += s * (a - y @ q / (y @ s))
        new = z - q
        g_new = np.array([2.0, 8.0]) * new + new**3 * 0.1
        s, y = new - z, g_new - g
        if y @ s > 1e-10:
            ss.append(s)
            ys.append(y)
        z, g = new, g_new
    return (z @ np.array([1.0, 3.0])) * 1e3 + len(ss)


def kept_if_it_is_there(x: Any) -> Any:
    log, h, t = [], 0.4 * x, 0.0
    while t < 2.0:
        h = 0.9 * h + 0.1
        best = next((v for v in (h, 0.9 * h) if v > 0.6), None)
        if best is not None:
            log.append((t, best))
        t += 0.1
    ts, hs = zip(*log, strict=False)
    return np.trapezoid(np.array(hs), np.array(ts)) + hs[-1]


def kept_in_a_window(x: Any) -> Any:
    log, h = deque[Any](maxlen=3), 0.4 * x
    for _ in range(20):
        h = 0.9 * h + 0.1
        best = h if h > 0.6 else None
        if best is not None:
            log.append(best)
    return sum(log) + log[-1]


def beside_a_generator(x: Any) -> Any:
    def steps() -> Any:
        for k in range(3):
            yield k * x

    s = x
    for u, v in zip(steps(), x * np.zeros(0), strict=False):
        s = s + u * v
    for u, v in zip(steps(), [1.0, x], strict=False):
        s = s + u * v
    return s


PROGRAMS = [
    beside_a_generator,
    *(kept_if_it_is_there, kept_in_a_window),
    *(
        put_first,
        put_second,
        put_in_order,
        put_and_taken,
        events,
        item_of_records,
        deleted,
        beyond_the_ends,
    ),
    *(of_arrays, backwards, transposed, transposed_in_python, zipped, zipped_with_others),
    *(numbered, pairs_of_steps),
]


@pytest.mark.parametrize("engine", ["native", "vm"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_value_and_gradient_are_those_of_python(program, engine):
    x, h = 1.2, 1e-6
    value, gradient = ckad.value_and_grad(program, engine=engine)(x)
    assert value == pytest.approx(program(x), rel=1e-12)
    assert gradient == pytest.approx((program(x + h) - program(x - h)) / (2 * h), rel=1e-5)


def names_an_item(x: Any) -> Any:
    found, s = [x * np.ones(2), 2 * x * np.ones(2)], 0.0
    while x < 3.0:
        item = found[1]
        found.insert(1, np.ones(2) * x)
        item += 0.1
        s = s + item[0]
        x = x * 1.2
    return s


def changes_before_it_runs(x: Any) -> Any:
    a, _ = windows(x)
    pairs = enumerate(a)
    a.append(5.0 * x)
    return sum(k * u for k, u in pairs)


def goes_twice(x: Any) -> Any:
    numbers = enumerate(windows(x)[0])
    s = 0.0
    for one, two in zip(numbers, numbers, strict=False):
        s = s + one[1] * two[1]
    return s


def strictly(x: Any) -> Any:
    a, b = windows(x)
    s = 0.0
    for u, v in zip(a, b, strict=True):
        s = s + u * v[0]
    return s


@pytest.mark.parametrize(
    ("program", "error", "said"),
    [
        (names_an_item, AliasError, "copy"),
        (changes_before_it_runs, UnrecordableError, "has been changed between"),
        (goes_twice, UnrecordableError, "run over again"),
        (strictly, UnrecordableError, "strict=True"),
    ],
)
def test_what_is_not_recorded_is_named(program, error, said):
    with pytest.raises(error, match=said):
        ckad.value_and_grad(program)(1.2)
