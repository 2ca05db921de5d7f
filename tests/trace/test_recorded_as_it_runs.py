"""Programs whose course the numbers decide: recorded as they run for the numbers of a call."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np
import pytest
from scipy import interpolate, ndimage, signal, spatial

import ckad
from ckad.errors import AsRunWarning, CarryError, CkadError, UnrecordableError
from ckad.trace.memory.context import Most
from ckad.transforms import attempts
from ckad.transforms.repeated import recording

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")


def simpson(f, a, b, eps, whole, fa, fb, fm):
    """Adaptive, by recursion that only the error estimates end."""
    m = (a + b) / 2.0
    fl, fr = f((a + m) / 2.0), f((m + b) / 2.0)
    left, right = (m - a) / 6.0 * (fa + 4.0 * fl + fm), (b - m) / 6.0 * (fm + 4.0 * fr + fb)
    if abs(left + right - whole) <= 15.0 * eps:
        return left + right + (left + right - whole) / 15.0
    return simpson(f, a, m, eps / 2.0, left, fa, fm, fl) + simpson(
        f, m, b, eps / 2.0, right, fm, fb, fr
    )


def quadrature(p):
    def f(x):
        return math.exp(-p[0] * x) * math.sin(5.0 * p[1] * x)

    ends = f(0.0), f(2.0), f(1.0)
    return simpson(f, 0.0, 2.0, 1e-5, (ends[0] + ends[1] + 4.0 * ends[2]) / 3.0, *ends)


def bounded(p):
    """The same with a bound: of 2,047 calls, all of which are on sides of conditions, few run."""

    def area(a, b, depth):
        m = (a + b) / 2.0
        rough = (b - a) * math.sin(p[0] * m)
        fine = (b - a) / 2.0 * (math.sin(p[0] * (a + m) / 2.0) + math.sin(p[0] * (m + b) / 2.0))
        if depth > 9 or abs(fine - rough) < 1e-3 * p[1]:
            return (4.0 * fine - rough) / 3.0
        return area(a, m, depth + 1) + area(m, b, depth + 1)

    return area(0.0, 1.5, 0)


def merged(p):
    def ordered(xs):
        if len(xs) < 2:
            return xs
        a, b, out = ordered(xs[: len(xs) // 2]), ordered(xs[len(xs) // 2 :]), []
        i = j = 0
        while i < len(a) and j < len(b):
            if a[i] <= b[j]:
                out.append(a[i])
                i += 1
            else:
                out.append(b[j])
                j += 1
        return out + a[i:] + b[j:]

    return sum((k + 1) * x for k, x in enumerate(ordered([math.sin(k * p[0]) for k in range(7)])))


def quick(p):
    def ordered(xs):
        if len(xs) < 2:
            return xs
        first = xs[0]
        less, more = [x for x in xs[1:] if x < first], [x for x in xs[1:] if x >= first]
        return ordered(less) + [first] + ordered(more)

    return sum((k + 1) * x for k, x in enumerate(ordered([math.cos(k * p[1]) for k in range(7)])))


class Node:
    def __init__(self, low, size):
        self.low, self.size = low, size
        self.mass, self.centre, self.kids, self.body = 0.0, 0.0, None, None

    def insert(self, x, m):
        if self.kids is None and self.body is None:
            self.body = (x, m)
        else:
            if self.kids is None:
                half = self.size / 2.0
                self.kids = [Node(self.low, half), Node(self.low + half, half)]
                self.put(*self.body)
            self.put(x, m)
        self.centre = (self.centre * self.mass + x * m) / (self.mass + m)
        self.mass += m

    def put(self, x, m):
        self.kids[1 if x >= self.low + self.size / 2.0 else 0].insert(x, m)

    def pull(self, x):
        d = self.centre - x
        if self.mass == 0.0:
            return 0.0
        if self.kids is None or self.size < 0.5 * abs(d):
            return self.mass * d / (d * d + 0.01)
        return sum(kid.pull(x) for kid in self.kids)


def tree(p):
    root = Node(0.0, 1.0)
    places = [0.13 * p[0], 0.41, 0.47 * p[0], 0.86, 0.9]
    for x in places:
        root.insert(x, p[1])
    return sum(root.pull(x) ** 2 for x in places)


class Agent:
    def __init__(self, x, energy):
        self.x, self.energy = x, energy


def agents(p):
    rng = random.Random(4)
    some = [Agent(rng.random() * p[0], 0.4 + 0.1 * k) for k in range(6)]
    history = {}
    for _ in range(12):
        for a in some:
            a.x += 0.1 * rng.gauss(0.0, 1.0)
            a.energy += 0.1 * p[1] * math.cos(a.x) - 0.06
        best = max(some, key=lambda a: a.energy)
        if best.energy > 0.95:
            best.energy /= 2.0
            some.append(Agent(best.x + 0.01, best.energy))
        some = [a for a in some if a.energy > 0.3]
        history.setdefault(len(some), []).append(sum(a.energy for a in some))
    return sum(n * sum(found) for n, found in history.items())


def spikes(p):
    """Which cells have fired is a list, and which cells it holds is asked."""
    v, found, weights = [0.1 * k for k in range(4)], [], [p[1]] * 4
    for t in range(40):
        fired = [k for k in range(4) if v[k] > 1.0]
        for k in fired:
            v[k] = 0.0
            found.append((t, k))
        for k in range(4):
            v[k] += 0.05 * (p[0] * (2 + k) / 2.0 - v[k])
            if (k + 1) % 4 in fired:
                v[k] += 0.1 * weights[k]
                weights[k] *= 0.9
    return sum(v) + sum(weights) + 0.01 * sum(t * k for t, k in found)


PROGRAMS = (quadrature, bounded, merged, quick, tree, agents, spikes)
P = np.array([0.9, 1.3])


@pytest.mark.parametrize("f", PROGRAMS)
def test_value_and_gradient(f):
    value, gradient = ckad.value_and_grad(f)(P)
    assert value == pytest.approx(f(P), rel=1e-14)
    for k in range(2):
        h = 1e-6 * np.eye(2)[k]
        assert gradient[k] == pytest.approx((f(P + h) - f(P - h)) / 2e-6, rel=1e-6, abs=1e-8)
    v = np.array([0.3, -0.7])
    assert ckad.jvp(f, (P,), (v,))[1] == pytest.approx(gradient @ v, rel=1e-12)
    for options in ({"engine": "vm"}, {"engine": "native"}, {"memory": "1 MB"}):
        again = ckad.value_and_grad(f, **options)(P)
        assert again[0] == pytest.approx(value, rel=1e-14)
        assert np.allclose(again[1], gradient, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("f", PROGRAMS)
def test_other_numbers_are_recorded_anew(f):
    gradient = ckad.value_and_grad(f)
    for p in (P, 1.1 * P, P, np.array([0.7, 1.0])):
        value, by_p = gradient(p)
        assert value == pytest.approx(f(p), rel=1e-14)
        h = np.array([1e-7, 0.0])
        assert by_p[0] == pytest.approx((f(p + h) - f(p - h)) / 2e-7, rel=1e-5, abs=1e-7)


def test_one_of_two_arguments_with_another_number_is_recorded_anew():
    def walk(a, b):
        def onward(x, y):
            return x * y if x + y > 3.0 else onward(x + 0.5 * a, 1.5 * y + 0.1) + x

        return onward(a, b)

    function = ckad.jit(walk, engine="vm")
    for pair in ((0.3, 0.2), (0.3, 1.9), (1.9, 0.2), (2.9, 1.9)):
        assert function(*pair) == pytest.approx(walk(*pair), rel=1e-14)


def test_the_same_numbers_use_one_recording(monkeypatch):
    levels = []

    def noted(*args, **options):
        levels.append(options["decides"])
        return record(*args, **options)

    record = recording.record
    monkeypatch.setattr(recording, "record", noted)
    gradient = ckad.grad(lambda p: merged(p))
    gradient(P)
    n = len(levels)
    gradient(P.copy())
    assert len(levels) == n
    gradient(0.2 * P)  # what could not be recorded for all numbers is not tried again
    assert len(levels) == n + 1


def test_a_warning_says_why():
    with pytest.warns(AsRunWarning, match=r"as it runs for the numbers of this call") as caught:
        ckad.grad(lambda p: quick(p))(P)
    assert "which items a comprehension keeps" in str(caught[0].message)
    gradient = ckad.grad(lambda p: spikes(p))
    with pytest.warns(AsRunWarning):
        gradient(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient(1.01 * P)  # it is said once


def test_where_warnings_are_errors_the_program_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AsRunWarning)
        with pytest.raises(UnrecordableError, match="which items a list has"):
            ckad.grad(lambda p: merged(p))(P)


def test_explain_says_that_it_is_recorded_anew():
    anew = ckad.explain(quick, P).anew
    assert anew.startswith("it is recorded as it runs for numbers that decide otherwise (")
    assert "which items a comprehension keeps" in anew


def test_second_derivatives():
    v, h = np.array([1.0, 0.5]), 1e-5
    product = ckad.hvp(quadrature, (P,), (v,))
    difference = (ckad.grad(quadrature)(P + h * v) - ckad.grad(quadrature)(P - h * v)) / (2.0 * h)
    assert np.allclose(product, difference, rtol=1e-6)


def test_what_holds_for_other_numbers_is_refused():
    with pytest.raises(CkadError, match="depends on a traced"):
        ckad.vmap(merged)(np.stack([P, 2.0 * P]))
    with pytest.raises(CkadError, match="depends on a traced"):
        ckad.cfunc(ckad.value_and_grad(merged), P)


def test_a_pullback_holds_for_its_own_numbers():
    value, pull = ckad.vjp(merged, P)
    other, pull_other = ckad.vjp(merged, 1.7 * P)
    assert (value, other) == (pytest.approx(merged(P)), pytest.approx(merged(1.7 * P)))
    assert pull(1.0)[0] == pytest.approx(ckad.grad(merged)(P))
    assert pull_other(1.0)[0] == pytest.approx(ckad.grad(merged)(1.7 * P))


def test_errors_of_the_program_are_its_own():
    def f(p):
        xs = [x for x in (p[0], p[1]) if x > 2.0]
        return [*xs, p[0]].pop(3)

    with pytest.raises(IndexError):
        ckad.grad(f)(P)


def test_a_program_that_is_too_long_is_refused_by_its_first_error(monkeypatch):
    ways = [(decides, Most(400)) for decides, _ in attempts._WAYS]
    monkeypatch.setattr(attempts, "_WAYS", ways)

    def f(p):
        xs = [p[0]]
        for k in range(1_000):
            xs.append(math.sin(xs[-1] + k))
            if xs[-1] > p[1]:
                xs = [x for x in xs if x < 0.5] + [p[1]]
        return sum(xs)

    with pytest.raises((CarryError, UnrecordableError), match="more than 400 operations"):
        ckad.grad(f)(P)


# --- functions without a rule ---------------------------------------------------------------------

POINTS = np.random.default_rng(0).random((15, 2))


def neighbours(p):
    x = POINTS * p[0]
    tree = spatial.cKDTree(x)
    energy = sum(1.0 / np.linalg.norm(x[i] - x[j]) for i, j in tree.query_pairs(0.3))
    for k, near in enumerate(tree.query_ball_point(x, 0.3)):
        energy = energy + p[1] * len(near) * x[k, 0]
    distances, places = tree.query(x * 1.01, k=3)
    return energy + np.sum(distances) + np.sum(tree.data[places[:, 1]]) + tree.n


def triangles(p):
    x = POINTS * p
    area = 0.0
    for a, b, c in spatial.Delaunay(x).simplices:
        (one, two), (three, four) = x[b] - x[a], x[c] - x[a]
        area += (one * four - two * three) ** 2
    corners = x[spatial.ConvexHull(x).vertices]
    return 100.0 * area + np.sum(corners[:, 0] * np.roll(corners[:, 1], 1))


def peaks(p):
    t = np.linspace(0.0, 10.0, 100)
    y = np.sin(2.0 * p[0] * t) * np.exp(-0.1 * p[1] * t)
    at, about = signal.find_peaks(y, height=0.05)
    return np.sum(y[at] ** 2) + len(about["peak_heights"])


def clusters(p):
    from scipy.cluster.hierarchy import fcluster, linkage

    x = POINTS * p
    labels = fcluster(linkage(x), 0.2, criterion="distance")
    return sum(np.sum(x[labels == k].mean(axis=0) ** 2) for k in set(labels.tolist()))


def unique(p):
    x = np.sin(np.arange(12.0) % 5.0 * p[0])
    items, counts = np.unique(x, return_counts=True)
    return np.sum(items * counts * np.arange(len(items))) * p[1]


KNOWN = spatial.KDTree(POINTS)


def known_points(p):
    """Of a tree that is there already, at traced places."""
    distances, _ = KNOWN.query(POINTS[:5] * p)
    return distances @ np.arange(5.0) + p[0] * sum(
        map(len, KNOWN.query_ball_point(POINTS * p, 0.2))
    )


def estimated(p):
    neighbors = pytest.importorskip("sklearn.neighbors")
    cluster = pytest.importorskip("sklearn.cluster")
    x = POINTS * p
    labels = cluster.KMeans(3, n_init=1, random_state=0).fit_predict(x)
    near = neighbors.NearestNeighbors(n_neighbors=2).fit(x).kneighbors(x)[1][:, 1]
    return sum(np.sum(x[labels == k].mean(axis=0) ** 2) for k in range(3)) + np.sum(x[near] * x)


FOUND = [neighbours, triangles, peaks, clusters, unique, known_points, estimated]


@pytest.mark.parametrize("f", FOUND)
def test_integers_of_functions_without_a_rule(f):
    value, gradient = ckad.value_and_grad(f, engine="vm")(P)
    assert value == pytest.approx(f(P), rel=1e-13)
    for k in range(2):
        h = 1e-6 * np.eye(2)[k]
        assert gradient[k] == pytest.approx((f(P + h) - f(P - h)) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda p: spatial.ConvexHull(POINTS * p).volume * 2.0,
        lambda p: np.sum(
            signal.find_peaks(np.sin(9.0 * POINTS[:, 0] * p[0]), height=-2)[1]["peak_heights"]
        ),
        lambda p: float(spatial.KDTree(POINTS * p).query(POINTS, p=1.0)[0][0]),
        lambda p: spatial.KDTree(POINTS * p).maxes.sum(),
        lambda p: np.sum(np.asarray(spatial.ConvexHull(POINTS * p).equations)),
        lambda p: interpolate.Rbf(POINTS[:, 0] * p[0], POINTS[:, 1])(0.3),
        lambda p: (spatial.ConvexHull(POINTS * p).equations @ np.ones(3)).sum(),
    ],
)
def test_floats_of_functions_without_a_rule_are_refused(f):
    with pytest.raises(CkadError, match="computes in floats is used here"):
        ckad.grad(f)(P)


def test_arrays_that_a_function_without_a_rule_writes_into_are_no_constants():
    def f(p):
        lost = np.zeros(15)
        ndimage.generic_filter(POINTS[:, 0] * p[0], np.max, size=3, output=lost)
        return np.sum(lost)

    with pytest.raises(CkadError, match="writes into an array that it is given"):
        ckad.grad(f)(P)


def test_what_an_estimator_was_fitted_to_before_is_not_read():
    cluster = pytest.importorskip("sklearn.cluster")
    fitted = cluster.KMeans(3, n_init=1, random_state=0).fit(POINTS)

    def f(p):
        fitted.fit(POINTS * p)
        return np.sum(fitted.cluster_centers_)

    with pytest.raises(CkadError):
        ckad.grad(f)(P)


def test_a_query_of_the_points_themselves():
    """Each is its own nearest neighbour, at a distance whose derivative is 0 and not NaN."""
    g = ckad.grad(lambda p: np.sum(spatial.KDTree(POINTS * p).query(POINTS * p, k=2)[0]))(P)
    assert np.all(np.isfinite(g))


def counted_by_name(x):
    bins = {}
    for v in x:
        bins[f"bin {int(v)}"] = bins.get(f"bin {int(v)}", 0.0) + v
        bins[str(int(2 * v))] = v
    return sum(v * v for v in bins.values())


def test_names_of_traced_integers_are_keys():
    f = ckad.grad(counted_by_name)
    for x in (np.array([1.2, 3.4, 1.9, 3.1]), np.array([1.25, 3.3, 1.85, 3.2]), np.arange(1.1, 5)):
        h = 1e-6 * np.eye(len(x))
        slopes = [(counted_by_name(x + d) - counted_by_name(x - d)) / 2e-6 for d in h]
        np.testing.assert_allclose(f(x), slopes, rtol=1e-6)
