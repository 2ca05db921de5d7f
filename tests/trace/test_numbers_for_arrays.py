"""Names that are a number or an array by turns: an array filled with the number stands for both,
and who would tell them apart is told, not misled."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.errors import CarryError, ConcreteValueError, RaisedError

AT = np.array([0.31, 0.62, 0.95, -0.44])
ARRAY, NUMBER = AT + 1.0, AT  # what the programs below decide by


def chosen(x):
    return 2.0 * x if x[0] > 1.0 else 3.0


def summed(x):
    return np.sum(chosen(x))


def its_size(x):
    return np.size(chosen(x)) * x[0]


def a_product(x):
    return np.sum(np.dot(chosen(x), x))


def after_operators_and_ufuncs(x):
    return np.exp(-chosen(x) + 1).sum()


def chosen_again(x):
    p = chosen(x)
    if x[1] > 0.7:
        p = p + 1.0
    return np.prod(p)


def an_item(x):
    return chosen(x)[1]


def in_an_array(x):
    p = chosen(x)
    return np.sum(np.array([p, 2.0 * p]) * np.stack([p, x]))


def run_over(x):
    total = 0.0
    for v in chosen(x):
        total += v * v
    return total


def after_a_loop_that_may_not_start(x):
    p, k = 3.0, 0
    while k < 20.0 * (x[0] - 1.0):
        p = p * 0.5 + k * x
        k += 1
    return np.sum(p)


def of_a_loop(x, ask):
    p, k = 3.0, 0
    while k < 20.0 * (x[0] - 1.0):
        p = p * 0.5 + k * x
        k += 1
    return ask(2.0 * p) * x[0]


def as_floats(x):
    return of_a_loop(x, lambda p: p.astype(float)[0])


def its_own_sum(x):
    return of_a_loop(x, lambda p: p.sum() + len(p))


def its_dimensions(x):
    return of_a_loop(x, lambda p: p.ndim)


def copied_first(x):
    return of_a_loop(x, lambda p: np.array(p).size)


def taken_apart(x):
    return of_a_loop(x, lambda p: max([*p]))


TELLING = [
    *(as_floats, its_own_sum, its_dimensions, copied_first, taken_apart),
    *(summed, its_size, a_product, after_operators_and_ufuncs, chosen_again, an_item, run_over),
    *(after_a_loop_that_may_not_start, in_an_array),
]


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("function", TELLING)
def test_the_program_stops_where_the_number_is_taken_for_an_array(function, engine):
    value, gradient = ckad.value_and_grad(function, engine=engine)(ARRAY)
    assert value == pytest.approx(function(ARRAY), rel=1e-13)
    steps = 1e-6 * np.eye(4)
    differences = [(function(ARRAY + d) - function(ARRAY - d)) / 2e-6 for d in steps]
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-8)
    with pytest.raises(RaisedError):
        ckad.jit(function, engine=engine)(NUMBER)


def by_elements(x):
    p = chosen(x)
    u = np.zeros(4)
    u[:] = p
    u += np.where(x > 0.5, p, 0.1) * np.clip(p, 0.0, 2.5)
    return np.sum(u * x) + np.max(p) + np.mean(np.sqrt(p * p))


def kept_in_a_list(x):
    kept = []
    kept.append(chosen(x))
    kept.append(2.0 * kept[0])
    return np.max(kept[0] * x) + np.max(kept[1])


def changed_where_it_is_held(x):
    held, kept = Held(), [chosen(x)]
    held.p = chosen(x)
    held.p *= 2.0
    kept[0] *= 3.0
    return np.max(held.p * x) + np.max(kept[0] * x)


def with_an_array_as_large(x):
    p = chosen(x)
    p += x
    return np.sum(p) * p.shape[0]


def nothing_yet(x):
    p = 2 * x if x[0] > 1.0 else 0
    return np.sum(p) + np.linalg.norm(3.0 * p**2)


def nothing_in_some_steps(x):
    total = 0.0
    for k in range(7):
        if k * x[0] > 5.0:
            total = total + k * x
    return np.sum(total)


SAME = [
    *(by_elements, kept_in_a_list, with_an_array_as_large, nothing_yet, nothing_in_some_steps),
    changed_where_it_is_held,
]


@pytest.mark.parametrize("at", [NUMBER, ARRAY])
@pytest.mark.parametrize("function", SAME)
def test_what_is_the_same_of_both_is_computed(function, at):
    value, gradient = ckad.value_and_grad(function)(at)
    assert value == pytest.approx(function(at), rel=1e-13)
    differences = [(function(at + d) - function(at - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-8)


def shown_by_another_name(x):
    p = q = chosen(x)
    p *= 2.0
    return np.sum(p * x + q * x)


def shown_by_a_list(x):
    p = chosen(x)
    kept = [p]
    p += x
    return np.sum(p * x + kept[0] * x)


def shown_by_the_caller(x):
    def doubled(v):
        v *= 2.0
        return v

    p = chosen(x)
    return np.sum(doubled(p) * x + p * x)


class Held: ...


def an_attribute(x):
    held = Held()
    held.p = chosen(x)
    q = held.p
    held.p *= 2.0
    return np.sum(q * x)


def an_item_of_a_list(x):
    held = [1.0, chosen(x)]
    q = held[1]
    held[-1] += x
    return np.sum(q * x)


def an_item_shown_by_another(x):
    held = {"p": chosen(x)}
    held["q"] = held["p"]
    held["p"] *= 2.0
    return np.sum(held["q"] * x)


SHARED = [
    *(shown_by_another_name, shown_by_a_list, shown_by_the_caller),
    *(an_attribute, an_item_of_a_list, an_item_shown_by_another),
]


@pytest.mark.parametrize("function", SHARED)
def test_what_two_names_show_is_not_changed_in_place(function):
    with pytest.raises(CarryError, match="is changed in place, and is an array or a number"):
        ckad.grad(function)(NUMBER)


def test_where_it_is_not_known_when_it_is_a_number_it_is_refused():
    def program(x):
        p = 0.5
        for k in range(7):
            if k * x[0] > 5.0:
                p = p + x
        return np.sum(p)

    with pytest.raises(CarryError, match=r"np\.sum.*Start with an array"):
        ckad.grad(program)(AT)
    with pytest.raises(ConcreteValueError, match="float or ndarray"):
        ckad.grad(lambda x: 1.0 * isinstance(chosen(x), float) * x[0])(AT)
