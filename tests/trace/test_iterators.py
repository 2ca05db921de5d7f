"""What Python's builtins, itertools and functools make of traced values, as Python does."""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError, UnsupportedFunctionError

Function = Callable[[Any], Any]
AT = 0.83
X = np.array([0.3, -0.7, 1.2, 0.9, -0.1, 2.2, 0.05])


def sorted_key(s):
    xs = list(s * X)
    return sum(k * x for k, x in enumerate(sorted(xs, key=lambda x: -x)))


def sorted_abs_rev(s):
    xs = s * X
    return sum(k * x for k, x in enumerate(sorted(xs, key=abs, reverse=True)))


def sorted_pairs(s):
    pairs = [(x, k) for k, x in enumerate(s * X)]
    return sum(j * k * x for j, (x, k) in enumerate(sorted(pairs, key=lambda p: p[0])))


def sorted_known_key(s):
    ev = [(3.0, s), (1.0, 2 * s), (2.0, s * s)]
    return sum(k * e[1] for k, e in enumerate(sorted(ev, key=lambda e: e[0])))


def max_key(s):
    return max(s * X, key=lambda x: -x * x) + min(list(s * X), key=abs)


def max_key_index(s):
    xs = s * X
    return (
        max(range(7), key=lambda i: xs[i]) * s + xs[min(range(7), key=lambda i: abs(xs[i] - 0.2))]
    )


def max_key_tuple(s):
    pts = [(x, x * x) for x in s * X]
    return max(pts, key=lambda p: p[1])[0]


def products(s):
    t = 0.0
    for i, j in itertools.product(range(4), range(5)):
        t = 0.9 * t + s**2 * i * j
    return t


def product_items(s):
    t = 0.0
    for a, b in itertools.product(s * X, [1.0, 2.0, 3.0]):
        t = 0.9 * t + a * b
    return t


def product_repeat(s):
    t = 0.0
    for i, j, k in itertools.product(range(3), repeat=3):
        t = 0.9 * t + (s * X)[i] * j * k
    return t


def accumulated(s):
    xs = list(itertools.accumulate(s * X))
    ys = list(itertools.accumulate(s * X, lambda a, b: 0.5 * a + b))
    zs = list(itertools.accumulate(s * X, max))
    return xs[-1] * 2 + sum(xs) + ys[-1] + zs[4]


def accumulate_op(s):
    return sum(itertools.accumulate([s, 2.0, 3.0 * s], operator.mul)) + sum(
        itertools.accumulate([s, 2.0], initial=1.0)
    )


def pairs(s):
    t = 0.0
    for a, b in itertools.pairwise(s * X):
        t += (b - a) ** 2
    return t + sum((b - a) ** 2 for a, b in itertools.pairwise([s, 2 * s, s * s]))


def chained(s):
    t = 0.0
    for x in itertools.chain(s * X, [1.0, s], range(3)):
        t = 0.5 * t + x
    return t + sum(itertools.chain.from_iterable([[s, 1.0], [2 * s]]))


def count_up(s):
    x = 1.0
    for k in itertools.count():
        x = x * (1 + s) + 0 * k
        if x > 20:
            break
    return x * k


def count_step(s):
    x = 1.0
    for k in itertools.count(2, 3):
        x = x + s * k
        if x > 20:
            break
    return x * k


def count_zip(s):
    t = 0.0
    for k, x in zip(itertools.count(1), s * X):
        t += k * x
    return t


def cycled(s):
    t = 0.0
    for k, w in zip(range(11), itertools.cycle([1.0, s, -1.0])):
        t = 0.9 * t + w * k * s
    return t


def cycle_break(s):
    t = 1.0
    for w in itertools.cycle([1.0, s, 0.5]):
        t = t * 1.2 + w
        if t > 50:
            break
    return t


def reduce_(s):
    return (
        functools.reduce(lambda a, b: 0.5 * a + b, s * X)
        + functools.reduce(operator.mul, [s, 2.0, s], 1.0)
        + functools.reduce(np.maximum, [s * X, X])[0]
    )


def zip_strict(s):
    t = 0.0
    for a, b in zip(s * X, np.arange(7), strict=True):
        t = t * 0.9 + a * b
    return t


def enum_start(s):
    t = 0.0
    for k, x in enumerate(s * X, start=1):
        t = t * 0.9 + k * x
    for k, x in enumerate([s, 2.0, s], 5):
        t += k * x
    return t


def reversed_(s):
    t = 0.0
    for x in reversed(s * X):
        t = t * 0.9 + x
    for k, x in reversed(list(enumerate(s * X))):
        t = t * 0.9 + x * k
    for i in reversed(range(7)):
        t = t * 0.9 + (s * X)[i]
    return t


def map_(s):
    t = sum(x * x for x in s * X)
    for x in map(np.sin, s * X):
        t = t * 0.9 + x
    for x in map(lambda a, b: a * b, s * X, range(7)):
        t = t * 0.9 + x
    return t + max(map(abs, s * X)) + list(map(float, s * X))[2]


def filter_(s):
    t = sum(filter(lambda x: x > 0, s * X))
    return t + len(list(filter(lambda x: x > 0.5, s * X))) * s


def filter_known(s):
    return sum(s * k for k in filter(lambda k: k % 2, range(7))) + sum(filter(None, [0, s]))


def combos(s):
    t = 0.0
    x = s * X
    for i, j in itertools.combinations(range(7), 2):
        t += (x[i] - x[j]) ** 2
    for a, b in itertools.permutations([s, 1.0, 2.0], 2):
        t += a * b * b
    return t


def repeated(s):
    t = 0.0
    for x in itertools.repeat(s, 9):
        t = t * 0.8 + x
    return t


def starmap(s):
    return sum(map(lambda a, b: a * b, s * X, range(7)))


def takewhile(s):
    return sum(itertools.takewhile(lambda k: k < 4, (k for k in range(9)))) * s + sum(
        x for x in itertools.islice(s * X, 2, 5)
    )


def groupby(s):
    return sum(
        sum(s * v for v in g) * k for k, g in itertools.groupby([1, 1, 2, 3, 3], lambda x: x)
    )


def sort_method(s):
    xs = list(s * X)
    xs.sort()
    ys = list(s * X)
    ys.sort(key=lambda x: -x, reverse=True)
    return sum(k * x for k, x in enumerate(xs)) + ys[1]


def heap(s):
    i = np.argsort(s * X)
    return sum(k * x for k, x in enumerate((s * X)[i]))


PROGRAMS: list[Function] = [
    *(
        sorted_key,
        sorted_abs_rev,
        sorted_pairs,
        sorted_known_key,
    ),
    *(
        max_key,
        max_key_index,
        max_key_tuple,
        products,
    ),
    *(
        product_items,
        product_repeat,
        accumulated,
        accumulate_op,
    ),
    *(
        pairs,
        chained,
        count_up,
        count_step,
    ),
    *(
        count_zip,
        cycled,
        cycle_break,
        reduce_,
    ),
    *(
        zip_strict,
        enum_start,
        reversed_,
        map_,
    ),
    *(
        filter_,
        filter_known,
        combos,
        repeated,
    ),
    *(
        starmap,
        takewhile,
        groupby,
        sort_method,
    ),
    *(heap,),
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_derivatives(f: Function) -> None:
    value, gradient = ckad.value_and_grad(f, engine="vm")(AT)
    assert value == pytest.approx(f(AT), rel=1e-13)
    assert gradient == pytest.approx((f(AT + 1e-6) - f(AT - 1e-6)) / 2e-6, rel=1e-6)
    assert ckad.jvp(f, (AT,), (1.0,), engine="vm")[1] == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize("f", [count_up, count_step, count_zip, cycle_break])
def test_endless_iterators_are_loops_recorded_once(f: Function) -> None:
    assert len(ckad.trace(f)(AT)) < 20


def test_single_numbers_are_taken_of_count() -> None:
    def f(s):
        numbers = itertools.count(3)
        return next(numbers) * s + next(numbers) * s**2

    assert ckad.value_and_grad(f, engine="vm")(AT) == pytest.approx((f(AT), 3 + 8 * AT))


def by_pairs(s):
    return sorted(s * X, key=lambda x: (x, 1))[0]


def test_keys_may_be_tuples() -> None:
    assert ckad.value_and_grad(by_pairs)(AT)[0] == by_pairs(AT)


def test_extrema_of_nothing_are_their_default():
    def fun(x):
        return max([], default=x[0]) + min(x[:0], default=x[1]) * max((v for v in ()), default=2.0)

    x = np.array([0.3, 0.7])
    assert ckad.value_and_grad(fun)(x)[0] == fun(x)
    np.testing.assert_array_equal(ckad.grad(fun)(x), [1.0, 2.0])


@pytest.mark.parametrize("pairs", [zip, lambda x, y: [[a, b] for a, b in zip(x, y, strict=True)]])
def test_tuples_and_lists_with_traced_values_are_sorted(pairs):
    def program(x):
        (a, m), (b, n) = sorted(pairs(x, [1, 2]), reverse=True)
        return a * m + 3.0 * b * n

    for x in (np.array([0.3, 0.7]), np.array([0.7, 0.3])):
        assert ckad.value_and_grad(program)(x)[0] == program(x)


@pytest.mark.parametrize(
    ("program", "word"),
    [
        (lambda x: next(x.flat), "next(iter(x.flat))"),
        (lambda x: np.frombuffer(2.0 * x)[0], "frombuffer() looks at the bytes of an array"),
        (lambda x: memoryview(2.0 * x)[0], "memoryview() looks at the bytes of an array"),
        (lambda x: len(bytes(2.0 * x)) * x[0], "bytes() looks at the bytes of an array"),
    ],
)
def test_what_looks_at_memory_one_by_one_is_refused_by_name(program, word):
    with pytest.raises(UnsupportedFunctionError, match=re.escape(word)):
        ckad.grad(program)(np.arange(4.0))


def test_items_of_flat_one_by_one():
    gradient = ckad.grad(lambda x: next(iter(x.T.flat)) * sum(x.flat))(np.ones((2, 3)))
    assert gradient.tolist() == [[7.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


# --- iterators have their items once -------------------------------------------------------------


def first_of_pairs_and_the_others(s):
    pairs = zip(s * X, X[::-1], strict=True)
    x, y = next(pairs)
    total = x * y * y
    for a, b in pairs:
        total = 0.5 * total + a * b
    return total


def two_first_of_those_counted(s):
    counted = enumerate(s * X * X)
    (i, x), (j, y) = next(counted), next(counted)
    return i * x + j * y + sum(k * v for k, v in counted)


def last_and_the_others(s):
    backwards = reversed(s * X * X)
    last = next(backwards)
    return last * sum(backwards) + next(reversed([s, 2.0 * s]))


def more_than_there_are(s):
    pairs = zip([s], [s * s], strict=True)
    (x, y), z = next(pairs), next(pairs, s)
    return x + 2.0 * y + z


@pytest.mark.parametrize(
    "function",
    [
        *(first_of_pairs_and_the_others, two_first_of_those_counted, last_and_the_others),
        more_than_there_are,
    ],
)
def test_next_takes_the_first_item_of_what_is_made_of_sequences(function: Function) -> None:
    value, slope = ckad.value_and_grad(function)(AT)
    assert value == pytest.approx(function(AT), rel=1e-13)
    assert slope == pytest.approx((function(AT + 1e-6) - function(AT - 1e-6)) / 2e-6, rel=1e-6)


def _any_above(it: Any) -> float:
    return float(any(np.sum(v) > 0.2 for v in it))


_TAKEN = [
    *(lambda it: sum(np.sum(v) for v in it), lambda it: sum(1.0 * np.max(v) for v in it)),
    lambda it: float(len(list(it))),
]


@pytest.mark.parametrize(
    "iterator",
    [
        lambda x: x.flat,
        *(lambda x: filter(lambda v: v > 0.1, x), lambda x: (v for v in x if v > 0.1)),
    ],
)
@pytest.mark.parametrize("take", [*_TAKEN, _any_above])
def test_no_item_is_taken_twice(iterator: Function, take: Function) -> None:
    def program(s):
        it = iterator(s * X)
        return take(it) + take(it) + 0.0 * s

    with pytest.raises(CkadError, match=r"run over again|ends early|which items"):
        ckad.jit(program, engine="vm")(AT)


_OF_SEQUENCES = [
    *(lambda x: zip(x, x, strict=True), reversed, enumerate, lambda x: reversed(range(len(x)))),
    *(lambda x: iter([*x] * 9), lambda x: reversed([*x] * 9)),
    lambda x: iter([*np.outer(x, x)] * 9),
]


@pytest.mark.parametrize("iterator", _OF_SEQUENCES)
@pytest.mark.parametrize("take", _TAKEN)
def test_nothing_is_left_of_what_has_been_taken_whole(iterator: Function, take: Function) -> None:
    def program(s):
        it = iterator(s * X)
        total = take(it) + 10.0 * take(it)
        for v in it:
            total = total + np.sum(v)
        return total + 0.0 * s

    assert ckad.jit(program, engine="vm")(AT) == pytest.approx(program(AT), rel=1e-13)


@pytest.mark.parametrize("iterator", _OF_SEQUENCES)
def test_a_loop_takes_all_from_an_iterator(iterator: Function) -> None:
    def program(s):
        it, total = iterator(s * X), s
        for v in it:
            total = 0.5 * total + np.sum(v)
        for v in it:
            total = total + np.sum(v) ** 2
        for _ in range(6):
            for v in it:
                total = total + np.sum(v)
            total = 0.9 * total
        return total

    assert ckad.jit(program, engine="vm")(AT) == pytest.approx(program(AT), rel=1e-13)


def _until_above(it: Any) -> Any:
    total = 0.0
    for v in it:
        total = total + np.sum(v)
        if total > 1.0:
            break
    return total


def _first_of_pairs(it: Any) -> Any:
    return sum(np.sum(v) for v, _ in zip(it, X[:1], strict=False))


@pytest.mark.parametrize("iterator", [reversed, lambda x: zip(x, x, strict=True)])
@pytest.mark.parametrize("take", [_any_above, _until_above, _first_of_pairs])
def test_what_may_be_left_of_an_iterator_is_refused(iterator: Function, take: Function) -> None:
    def program(s):
        it = iterator(s * X)
        return take(it) + sum(np.sum(v) for v in it) + 0.0 * s

    with pytest.raises(CkadError, match=r"run over again|ends early|which items"):
        ckad.jit(program, engine="vm")(AT)


def test_one_iterator_beside_itself_is_refused() -> None:
    def program(s):
        it = (s * X).flat
        return sum(a * b * b for a, b in zip(it, it, strict=True))

    with pytest.raises(ckad.errors.UnrecordableError, match="flat is run over again"):
        ckad.jit(program, engine="vm")(AT)


def test_elements_of_flat_are_taken_where_it_is_written() -> None:
    def program(s):
        u, total = s * np.outer(X, X), 0.0
        for _ in range(6):
            u = 0.9 * u
            for v in u.flat:
                total = 0.5 * total + v
            it = u.flat
            total += it[3] + len(it) + sum(it) + max(u.flat)
        return total

    assert ckad.jit(program)(AT) == pytest.approx(program(AT), rel=1e-13)


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_a_cycle_keeps_the_items_of_its_first_round() -> None:
    def program(s):
        xs, total = [s, 2.0, 3.0 * s], 0.0
        for k, v in zip(range(9), itertools.cycle(xs), strict=False):
            if k == 1:
                xs[2] = 10.0 * v
            if k == 4:
                xs[0] = 7.0
            total = 0.7 * total + v
        return total

    assert ckad.jit(program, engine="vm")(AT) == pytest.approx(program(AT), rel=1e-13)


def test_a_list_that_is_run_over_again_and_again_is_not_changed() -> None:
    def program(s):
        xs, total, k = [s, 2.0, 3.0 * s], 0.0, 0
        for v in itertools.cycle(xs):
            xs[(k + 1) % 3] = 1.1 * v
            total, k = 0.7 * total + v, k + 1
            if k > 8:
                break
        return total

    with pytest.raises(ckad.errors.UnrecordableError, match="cycle changes the list"):
        ckad.jit(program, engine="vm")(AT)


# --- iterators that are taken from in the steps of loops, and beside themselves ------------------

_ITERATORS: dict[str, Function] = {
    "range": lambda x: iter(range(7)),
    "list": lambda x: iter([*x]),
    "long list": lambda x: iter([*x] * 9),
    "reversed": lambda x: reversed(range(7)),
    "map": lambda x: map(np.exp, x),
    "generator": lambda x: (v + 1.0 for v in x),
    "filtered": lambda x: (v for v in (1.0, 2.0, 3.0) if v > 1.5),
    "chain": lambda x: itertools.chain(x, [2.0]),
    "flat": lambda x: x.flat,
}
_TAKES: dict[str, Function] = {
    "sum": sum,
    "list": lambda it: sum(k * v for k, v in enumerate(list(it))),
    "sorted": lambda it: sum(k * v for k, v in enumerate(sorted(it))),
    "max": lambda it: max(it, default=0.0),
    "in": lambda it: float(3 in it),
    "star": lambda it: sum((*it,)),
    "kept": lambda it: sum([v for v in it if v != 2]),
    "pairs": lambda it: sum(0.5 * a * b for a, b in zip(it, it, strict=False)),
}


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
@pytest.mark.parametrize("name", _ITERATORS)
@pytest.mark.parametrize("take", _TAKES)
def test_steps_take_what_is_left_of_an_iterator(name: str, take: str) -> None:
    def program(s):
        it, total = _ITERATORS[name](s * X), s
        for _ in range(6):
            total = 0.9 * total + _TAKES[take](it)
        return total + 10.0 * _TAKES[take](it)

    if name == "flat" or (name == "reversed" and take in ("in", "pairs")):
        with pytest.raises(CkadError, match="run over again"):
            ckad.jit(program, engine="vm")(AT)
    else:
        assert ckad.jit(program, engine="vm")(AT) == pytest.approx(program(AT), rel=1e-13)
