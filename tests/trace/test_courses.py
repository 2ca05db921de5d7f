"""Programs recorded as they run: a recording is used for all numbers that lead along its course."""

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import AliasError, AsRunWarning, RaisedError
from ckad.rules.evaluate import evaluate
from ckad.transforms.repeated import recording

P = np.array([0.83, 1.3, 0.44])


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AsRunWarning)
        yield


def quick(p):
    def ordered(xs):
        if len(xs) < 2:
            return xs
        first, *rest = xs
        return [
            *ordered([x for x in rest if x < first]),
            first,
            *ordered([x for x in rest if x >= first]),
        ]

    return sum((k + 1) * x * x for k, x in enumerate(ordered(list(p))))


def counted(p):
    """How often it is halved, and what is found there, are numbers of the call."""
    found, x = {}, p[0]
    while x > 0.1:
        found[int(4.0 * x)] = x * p[1]
        x = x / 2.0
    kept = [v for k, v in found.items() if k != 1]
    return sum(kept) + len(found) * p[2]


def rounded(p):
    """A float itself is asked for its number."""
    xs = [x for x in p if x > 0.5]
    return {float(xs[0]): 2.0}.get(float(p[0]), 1.0) * xs[0] * p[1]


def chosen(p):
    kept = p[p > 0.5]
    return np.sum(kept**2) * len(np.unique(np.floor(kept)))


def solved(p):
    """Factors of matrices are numbers of the call, and decide nothing."""
    line = np.polyfit(np.arange(3.0), p, 1)
    return quick(p) * np.linalg.inv(np.diag(p) + p[1])[0, 2] + line[0] * line[1]


def rooted(p):
    """Whether there is a root decides."""
    try:
        root = np.linalg.cholesky(np.array([[1.0, p[0]], [p[0], 1.0]]))
    except np.linalg.LinAlgError:
        return 2.0 * quick(p)
    return quick(p) * root[1, 1]


@pytest.fixture
def recordings(monkeypatch):
    made = []

    def noted(*args, **options):
        made.append(options["decides"])
        return record(*args, **options)

    record = recording.record
    monkeypatch.setattr(recording, "record", noted)
    return made


def check(fun, gradient, p):
    value, slopes = gradient(p)
    assert value == pytest.approx(fun(p), rel=1e-13)
    for k in range(len(p)):
        step = 1e-6 * np.eye(len(p))[k]
        difference = (fun(p + step) - fun(p - step)) / 2e-6
        assert slopes[k] == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("program", [quick, counted, chosen, solved])
def test_numbers_that_decide_alike_use_one_recording(program, engine, recordings):
    def fun(p):
        return program(p)

    gradient = ckad.value_and_grad(fun, engine=engine)
    check(program, gradient, P)
    n = len(recordings)
    check(program, gradient, P * 1.01)
    check(program, gradient, P + np.array([0.02, -0.01, 0.01]))
    assert len(recordings) == n
    other = P[::-1].copy()
    check(program, gradient, other)  # which decides otherwise
    assert len(recordings) == n + 1
    for p in (P * 1.02, other * 1.01, P):  # both courses are known now
        check(program, gradient, p)
    assert len(recordings) == n + 1


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_what_a_handler_meets_decides(engine):
    gradient = ckad.value_and_grad(rooted, engine=engine)
    for scale in (1.0, 1.3, 1.01, 1.31):
        check(rooted, gradient, scale * P)


def test_all_transformations_ask():
    def fun(p):
        return quick(p)

    slopes = ckad.grad(fun, engine="vm")
    slopes(P)
    for p in (P * 1.01, P[::-1].copy()):
        expected = [(quick(p + h) - quick(p - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(slopes(p), expected, rtol=1e-7)
        value, pull = ckad.vjp(fun, p)
        assert value == pytest.approx(quick(p), rel=1e-14)
        np.testing.assert_allclose(pull(1.0)[0], expected, rtol=1e-7)
        products = [ckad.jvp(fun, (p,), (v,))[1] for v in np.eye(3)]
        np.testing.assert_allclose(products, expected, rtol=1e-7)


def test_a_number_that_is_asked_for_decides():
    gradient = ckad.value_and_grad(rounded, engine="vm")
    for p in (P, P * 1.01, np.array([0.3, 1.3, 0.4])):
        check(rounded, gradient, p)


def test_a_tape_stops_where_numbers_lead_elsewhere():
    tape = ckad.trace(quick)(P)
    run = ckad.jit(quick, engine="vm")
    assert run(P) == pytest.approx(quick(P), rel=1e-14)
    assert evaluate(tape, P * 1.1)[0] == pytest.approx(quick(P * 1.1), rel=1e-14)
    with pytest.raises((RaisedError, IndexError)):
        evaluate(tape, P[::-1].copy())


def test_what_stops_on_another_course_is_recorded_anew():
    def program(p):
        xs = [x for x in p if x > 0.5]
        return p[int(np.floor(p[0]))] * len(xs) if p[1] > 1.0 else p[2] * len(xs)

    gradient = ckad.value_and_grad(program, engine="vm")
    check(program, gradient, P)
    check(program, gradient, np.array([7.5, 0.2, 0.4]))


AROUND = np.array([0.84, 1.3, 0.44])


def test_arrays_from_outside_that_are_written_into_are_found_on_a_known_course():
    def program(p):
        p[0] = p[0] * 2.0
        return sum(x for x in p if x > 0.5) * AROUND[0] + len([x for x in p if x > 0.5])

    gradient = ckad.value_and_grad(program, engine="vm")
    assert gradient(P.copy())[0] == pytest.approx(program(P.copy()))
    with pytest.raises(AliasError, match="reads from outside"):
        gradient(AROUND)
