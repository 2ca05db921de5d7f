"""Calls of a form that was there before look nothing up; what they read is still what it is now."""

import pickle
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import ckad
from ckad.engines import arena
from ckad.transforms.repeated.calls import OTHER

FACTOR = 2.0
TABLE, NOTHING = np.ones(3), np.zeros(1)
CHOICES = {"power": 2, "weights": [1.0, 2.0]}
ENGINES = pytest.mark.parametrize("engine", ["vm", "native"])


def hot(fun, *args, **options):
    """A gradient that has been called until calls like these are at hand."""
    gradient = ckad.value_and_grad(fun, engine="vm", **options)
    for _ in range(15):
        gradient(*args)
    assert is_at_hand(gradient, *args)
    return gradient


def is_at_hand(gradient, *args, **options):
    return gradient._calls.again(args, options) is not OTHER


def scaled(x):
    return FACTOR * np.sum(TABLE * x ** CHOICES["power"]) + CHOICES["weights"][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setitem(globals(), "FACTOR", 3.0),
        lambda _: TABLE.__setitem__(1, 5.0),
        lambda patch: patch.setitem(globals(), "TABLE", np.array([1.0, 3.0, 0.5])),
        lambda patch: patch.setitem(CHOICES, "power", 3),
        lambda _: CHOICES["weights"].__setitem__(0, 7.0),
        lambda patch: patch.setattr(scaled, "__code__", (lambda x: np.sum(x) * 11.0).__code__),
        lambda patch: patch.setattr(np, "sum", np.prod),
    ],
)
def test_what_a_function_reads_is_read_anew(change, monkeypatch):
    x = np.array([1.0, 2.0, 3.0])
    gradient = hot(scaled, x)
    change(monkeypatch)
    value, by_x = gradient(x)
    fresh = ckad.value_and_grad(scaled, engine="vm")
    ckad.clear_caches()
    expected, by = fresh(x)
    assert value == expected == scaled(x)
    np.testing.assert_array_equal(by_x, by)
    monkeypatch.undo()
    TABLE[:], CHOICES["weights"][:] = 1.0, [1.0, 2.0]
    assert gradient(x)[0] == scaled(x) == 29.0


def test_variables_of_closures_are_read_anew():
    power = 2

    def raised(x):
        return np.sum(x**power)

    def put(n):
        nonlocal power
        power = n

    x = np.array([1.0, 2.0])
    gradient = hot(raised, x)
    put(3)
    assert gradient(x)[0] == 9.0
    put(2)
    assert gradient(x)[0] == 5.0


class Pair(NamedTuple):
    a: object
    b: object


@dataclass
class Box:
    a: object
    b: object


def twice(x):
    return 2 * x


def thrice(x):
    return 3 * x


x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
FORMS = {
    "arrays": ((x, y), lambda x, y: np.sum(x * y**2)),
    "a scalar": ((x, 3.0), lambda x, y: np.sum(x * y**2)),
    "a NumPy scalar": ((np.float64(2.0), y), lambda x, y: np.sum(x * y**2)),
    "an integer": ((x, 3), lambda x, y: np.sum(x**y)),
    "a bool": ((x, True), lambda x, y: np.sum(x * 2 if y else x)),
    "nothing": ((x, None), lambda x, y: np.sum(x**2 if y is None else x)),
    "text": ((x, "twice"), lambda x, y: np.sum(x * 2 if y == "twice" else x)),
    "a function": ((x, twice), lambda x, y: np.sum(y(x))),
    "a list": (([x, [y]],), lambda z: np.sum(z[0] * z[1][0] ** 2)),
    "a dict": (({"b": x, "a": y}, 2), lambda z, n: np.sum(z["b"] * z["a"] ** n)),
    "a namedtuple": ((Pair(x, (y, 2.0)),), lambda z: np.sum(z.a * z.b[0] ** z.b[1])),
    "a dataclass": ((Box(x, {"y": y}),), lambda z: np.sum(z.a * z.b["y"] ** 2)),
    "views": ((y[::-1], np.arange(6.0)[::3]), lambda x, y: np.sum(x * y**2)),
    "single precision": ((x.astype(np.float32), y), lambda x, y: np.sum(x * y**2)),
    "complex": ((x + 1j * y, [2.0 - 3.0j]), lambda x, y: np.sum(np.abs(x * y[0]) ** 2)),
    "complex views": (((x + 1j * y)[::-1], y), lambda x, y: np.sum(np.abs(x) ** 2 * y)),
    "half as precise": ((np.complex64(x + 1j * y), y), lambda x, y: np.sum(np.abs(x) * y)),
    "parts of one": ((np.arange(4.0)[:2], np.arange(4.0)[2:]), lambda x, y: np.sum(x * y**2)),
}


@ENGINES
@pytest.mark.parametrize("form", FORMS)
def test_results_are_those_of_a_first_call(form, engine):
    args, fun = FORMS[form]
    gradient = ckad.value_and_grad(fun, engine=engine)
    expected = gradient(*args)
    kept = pickle.dumps(args) if form != "a function" else b""
    for _ in range(15):
        found = gradient(*args)
    assert is_at_hand(gradient, *args)
    assert pickle.dumps(found) == pickle.dumps(expected)
    assert not kept or pickle.dumps(args) == kept


@pytest.mark.parametrize(
    ("form", "others"),
    [
        ("arrays", [(x, y + 1), (x[:1], y), (x, y[:, None]), (2.0, y), (x, 3.0), (x, x)]),
        ("arrays", [(x, y[::-1]), (x.astype(np.float32), y), (x.reshape(1, 2), y)]),
        ("an integer", [(x, 2), (x, 3.0), (x, np.int64(3)), (x, True)]),
        ("a bool", [(x, False), (x, 1), (x, 0)]),
        ("text", [(x, "once")]),
        ("a function", [(x, thrice)]),
        ("a list", [([x, [y + 1]],), ([x, (y,)],), ([x, [y, y]],), ((x, [y]),)]),
        ("a dict", [({"a": y, "b": x}, 2), ({"b": x, "a": y}, 3)]),
        ("a namedtuple", [(Pair(y, (x, 2.0)),), (Box(x, (y, 2.0)),), (Pair(x, [y, 2.0]),)]),
        ("a dataclass", [(Box(y, {"y": x}),), (Pair(x, {"y": y}),)]),
        ("complex", [(x, [2.0]), (x - 1j * y, [1j]), (y + 1j * x, [2.0 - 3.0j])]),
        ("complex", [(np.complex64(x + 1j * y), [2.0 - 3.0j]), (x + 1j * y, [np.complex64(1j)])]),
        ("views", [(y, np.arange(6.0)[::3]), (y[::-1], np.arange(2.0))]),
    ],
)
def test_other_arguments_are_told_apart(form, others):
    args, fun = FORMS[form]
    gradient = hot(fun, *args)
    for other in [*others, args, *others]:
        ckad.clear_caches()
        expected = ckad.value_and_grad(fun, engine="vm")(*other)
        for _ in range(15):
            gradient(*args)
        assert pickle.dumps(gradient(*other)) == pickle.dumps(expected)


def test_objects_among_the_options_are_told_apart():
    first, second = Box(2.0, None), Box(5.0, None)
    gradient = ckad.grad(lambda x, box: np.sum(box.a * x), engine="vm")
    for box in 5 * [first] + 5 * [second] + [first, Box(2.0, None)]:
        assert gradient(x, box=box).tolist() == 2 * [box.a]


@dataclass
class Stepper:
    rate: float
    step: float = field(init=False, default=1.0)


def test_fields_that_are_set_later_are_arguments():
    gradient = ckad.value_and_grad(lambda x, s: np.sum(x) * s.rate * s.step, (0, 1), engine="vm")
    for k in range(8):
        stepper = Stepper(2.0)
        stepper.step = 1.0 + k
        value, (by_x, by_stepper) = gradient(x, stepper)
        assert value == np.sum(x) * 2.0 * (1.0 + k)
        assert by_x.tolist() == 2 * [2.0 * (1.0 + k)]
        assert by_stepper.step == np.sum(x) * 2.0


def test_what_options_hold_is_read_anew():
    box = Box(2.0, 1)
    gradient = ckad.grad(lambda x, box: np.sum(box.a * x * box.b), engine="vm")
    for k in range(10):
        box.a, box.b = 2.0 + k // 3, k // 5
        assert gradient(x, box=box).tolist() == 2 * [box.a * box.b]


def test_arguments_that_share_memory_are_told_apart():
    def written(x, y):
        x[0] = 2 * y[0]
        return np.sum(x * y)

    shared, apart = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0])
    gradient = hot(written, apart, np.array([3.0, 4.0]))
    with pytest.raises(ckad.errors.AliasError):
        gradient(shared[:2], shared[1:])
    assert gradient(shared[:1], shared[1:2])[0] == 8.0


def test_a_function_that_prints_or_counts_does_so_at_each_call(capsys):
    calls = 0

    def told(x):
        nonlocal calls
        calls += 1
        print("called")
        return x**2

    gradient = ckad.value_and_grad(told, engine="vm")
    for _ in range(7):
        assert gradient(3.0) == (9.0, 6.0)
    assert calls == 7
    assert capsys.readouterr().out == "called\n" * 7


def test_constants_are_computed_as_errors_are_handled_now():
    with np.errstate(divide="ignore"):
        gradient = hot(lambda x: x * (1.0 / NOTHING)[0], 1.0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        gradient(1.0)


def test_within_other_transformations_calls_are_recorded():
    gradient = hot(lambda x: np.sum(x**3), x)
    np.testing.assert_array_equal(ckad.jacobian(gradient.fun)(x), 3 * x**2)
    second = ckad.jacobian(ckad.grad(gradient.fun))
    np.testing.assert_allclose(second(x), np.diag(6 * x))
    value = ckad.jit(lambda x: gradient(x)[1] * 2.0)
    for _ in range(15):
        np.testing.assert_array_equal(value(x), 6 * x**2)
    copy = pickle.loads(pickle.dumps(ckad.grad(scaled)))
    np.testing.assert_array_equal(copy(np.ones(3)), ckad.grad(scaled)(np.ones(3)))


@ENGINES
def test_several_threads_call_one_gradient(engine):
    def drift(x, k):
        for _ in range(50):
            x = x + k * np.sin(x)
        return np.sum(x)

    gradient = ckad.value_and_grad(drift, (0, 1), engine=engine)
    starts = [np.linspace(n, n + 1, 20) for n in range(4)]
    expected = [gradient(start, 0.1) for start in starts]
    found = [[] for _ in starts]

    def calls(n):
        for k in range(60):
            found[n].append(gradient(starts[n], 0.1))
            if n == 0 and k % 20 == 0:
                ckad.clear_caches()

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(len(starts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own, right in zip(found, expected, strict=True):
        assert len(own) == 60
        assert {pickle.dumps(x) for x in own} == {pickle.dumps(right)}


def test_errors_name_the_users_line_and_leave_later_calls_as_they_are():
    def picked(x, n):
        return np.sum(x[n] ** 2)

    u, places = np.arange(4.0), np.array([1, 2])
    gradient = hot(picked, u, places)
    with pytest.raises(IndexError, match=r"test_repeated\.py:\d+"):
        gradient(u, np.array([1, 9]))
    assert gradient(u, places)[0] == 5.0


def test_results_are_the_callers_own():
    gradient = hot(lambda x: np.sum(x**2), x)
    first, second = gradient(x)[1], gradient(x)[1]
    first[...] = 0
    np.testing.assert_array_equal(second, 2 * x)
    step = ckad.jit(lambda x: (x, x + 1), engine="vm")
    for _ in range(15):
        same, _ = step(x)
    assert not np.shares_memory(same, x)


def test_nothing_is_at_hand_of_what_is_forgotten():
    gradient = hot(lambda x: np.sum(x**2), x)
    ckad.clear_caches()
    assert not gradient._calls.ready
    gradient(x)


def test_runs_that_are_watched_find_small_arrays_at_their_own_places():
    def grown(u, k):
        for _ in range(30):
            u = u + k * u
        return np.sum(u**2)

    u, told = np.array([1.0, 2.0, 3.0]), []
    plain = ckad.value_and_grad(grown, (0, 1), engine="native")
    shown = ckad.value_and_grad(grown, (0, 1), engine="native", progress=lambda *x: told.append(x))
    checked = ckad.value_and_grad(grown, (0, 1), engine="native", check_finite=True)
    expected = pickle.dumps(plain(u, 0.1))
    for k in range(12):
        other = np.arange(3.0) + k
        plain(other, 0.5)  # the same program, which goes through its gate
        assert pickle.dumps(shown(u, 0.1)) == expected
        plain(other, 0.5)
        assert pickle.dumps(checked(u, 0.1)) == expected
        plain(other, 0.5)
        assert pickle.dumps(plain(np.array([1.0, 0, 2.0, 0, 3.0])[::2], 0.1)) == expected
    assert told


@pytest.mark.parametrize("make", [np.float64, np.array, float])
def test_numbers_come_as_they_are(make):
    gradient = ckad.value_and_grad(lambda x, k: np.sum(x * k**2), (0, 1), engine="native")
    for k in range(8):
        value, (by_x, by_k) = gradient(np.ones(2), make(float(k)))
        assert value == 2.0 * k**2
        assert by_x.tolist() == [k**2] * 2
        assert by_k == 4.0 * k
        assert type(by_k) is (np.ndarray if make is np.array else np.float64)


def test_arrays_between_words_and_in_other_orders():
    gradient = ckad.value_and_grad(lambda x: np.sum(x[0] * x[1] ** 2), engine="native")
    expected = pickle.dumps(gradient(np.arange(6.0).reshape(2, 3)))
    between = np.zeros(49, np.uint8)[1:].view(np.float64).reshape(2, 3)
    between[...] = np.arange(6.0).reshape(2, 3)
    for x in 6 * [between, np.asfortranarray(between), np.arange(6.0).reshape(2, 3)]:
        assert pickle.dumps(gradient(x)) == expected


RESULTS = {
    "scalars and arrays": lambda x: (np.sum(x), (x[0], x * 2, np.max(x))),
    "dicts": lambda x: (np.sum(x), {"b": x, "a": [x[0], {"c": (x,)}], 3: None}),
    "nothing": lambda x: (np.sum(x), ()),
    "a namedtuple": lambda x: (np.sum(x), Pair(x, Pair(x[0], (x,)))),
    "a dataclass": lambda x: (np.sum(x), Box(x, [x[1]])),
    "complex numbers": lambda x: (np.sum(x), (x * 1j, {"a": x[0] * 1j, "b": -x})),
}


@ENGINES
@pytest.mark.parametrize("form", RESULTS)
def test_results_keep_their_form(form, engine):
    for made in (
        ckad.value_and_grad(RESULTS[form], has_aux=True, engine=engine),
        ckad.grad(RESULTS[form], has_aux=True, engine=engine),
        ckad.jit(RESULTS[form], engine=engine),
    ):
        expected = made(x)
        for _ in range(15):
            found = made(x)
        assert is_at_hand(made, x)
        assert pickle.dumps(found) == pickle.dumps(expected)


def test_a_plan_that_is_made_anew_holds_for_later_calls():
    def grown(u):
        for _ in range(2000):
            u = u + 0.001 * np.sin(u)
        return np.sum(u)

    u = np.linspace(0.0, 1.0, 10)
    gradient = ckad.value_and_grad(grown, memory="20 KB", engine="native")
    expected = pickle.dumps(gradient(u))
    for _ in range(20):
        assert pickle.dumps(gradient(u)) == expected
    assert gradient.plan(u).seconds > 0
    for _ in range(20):
        assert pickle.dumps(gradient(u)) == expected


def test_arguments_that_lie_in_what_is_read_from_outside_are_told_apart():
    table = np.ones(3)

    def written(u):
        u[0] = 3 * u[1]
        return np.sum(u * table)

    gradient = hot(written, np.array([1.0, 2.0, 3.0]))
    with pytest.raises(ckad.errors.AliasError):
        gradient(table)
    assert gradient(np.array([1.0, 2.0, 3.0]))[0] == 11.0


def test_options_are_told_apart():
    def powered(x, n=2, factor=1.0, name=None, **more):
        return factor * np.sum(x**n) + sum(more.values(), 0.0) + (name == "more")

    gradient = ckad.value_and_grad(powered, engine="vm")
    known = [{}, {"n": 3}, {"factor": 2.5}, {"n": 3, "factor": 2.5}, {"name": "more"}]
    for options in known:
        for _ in range(15):
            gradient(x, **options)
        assert is_at_hand(gradient, x, **options)
    others = [{"n": 3.0}, {"n": True}, {"factor": 2.0}, {"factor": 0.0}, {"factor": -0.0}]
    others += [{"name": "less"}, {"a": 1.0, "b": 1e16}, {"b": 1e16, "a": 1.0}]
    for options in [*known, *others, *known, *others]:
        found = [pickle.dumps(gradient(x, **options)) for _ in range(15)]
        expected = pickle.dumps(ckad.value_and_grad(powered, engine="vm")(x, **options))
        assert set(found) == {expected}


def test_values_that_are_made_anew_each_time_are_compared():
    u = np.array([1.0, 2.0, 3.0])
    gradient = hot(scaled, u)
    for _ in range(8):
        globals()["FACTOR"] = float("2.0")  # another object
        assert gradient(u)[0] == 29.0
    assert is_at_hand(gradient, u)
    assert len(gradient._calls.ready) == 1


def test_runs_in_memory_of_the_arena_find_it_where_it_is_now():
    def heated(u, k):
        for _ in range(100):
            u[1:-1] += k[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        return np.sum(u**2)

    def programs():
        return {n: ckad.value_and_grad(heated, (0, 1), engine="native") for n in (100, 150, 3000)}

    def given(n):
        return np.cos(np.arange(float(n))), np.full(n, 0.1)

    gradients = programs()
    expected = {n: pickle.dumps(gradients[n](*given(n))) for n in gradients}
    for turn in range(30):
        for n, gradient in gradients.items():
            for _ in range(1 + turn % 3):
                assert pickle.dumps(gradient(*given(n))) == expected[n]
        if turn % 7 == 3:
            arena.clear()
        if turn == 20:
            ckad.clear_caches()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of the system")
@ENGINES
def test_a_signal_ends_a_run_and_leaves_later_ones_as_they_are(engine):
    def drift(u, n):
        for _ in range(n):
            u = u + 1e-7 * np.sin(u)
        return np.sum(u)

    def stop(*_):
        raise TimeoutError

    u, run = np.linspace(0.0, 1.0, 4), ckad.jit(drift, engine=engine)
    n, seconds = 20_000, 0.0
    while seconds < 0.2:  # enough for a signal in its midst, on any machine
        n *= 4
        for _ in range(15):
            began = time.perf_counter()
            expected = run(u, n)
            seconds = time.perf_counter() - began
    assert is_at_hand(run, u, n)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(TimeoutError):
                run(u, n)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert run(u, n) == expected
