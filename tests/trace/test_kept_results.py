"""Methods under ``functools.lru_cache``, and traced values in what they are called with."""

from __future__ import annotations

import functools
import locale

import numpy as np
import pytest

import ckad

from .idioms import check_number


class Table:
    def __init__(self, p):
        self.p = p

    @functools.cache  # noqa: B019
    def weight(self, k, shift=None):
        return np.sin(self.p * k) if shift is None else shift

    @functools.lru_cache  # noqa: B019
    def at(self, place):
        return place[0] ** 2 + self.p * place[1]


def of_steps(p):
    table, total = Table(p), 0.0
    for k in range(20):
        total += table.weight(k, None) * k
    return total


def of_tuples(p):
    table, total = Table(2.0), 0.0
    for k in range(20):
        total += table.at((p * k, 1.0 + k)) + table.at((1, 2))
    return total


def kept_from_before(p):
    table = Table(3.0)
    first = table.at((1.0, 2.0))
    table.p = 5.0
    return p * (first + table.at((1.0, 2.0)) + table.at((1.0, 3.0)))


@pytest.mark.parametrize("program", [of_steps, of_tuples, kept_from_before])
def test_methods_that_keep_results(program):
    check_number(program, 0.9)


def at_each_step_alone(p):
    for _ in range(8):
        p = p * len(locale.setlocale(locale.LC_NUMERIC, None))
    return p


def test_calls_that_cannot_be_recorded_once_may_be_given_none():
    assert ckad.jit(at_each_step_alone)(0.9) == at_each_step_alone(0.9)


RATE = 2.0


@functools.cache
def table(n):
    return np.arange(n) * RATE


@functools.lru_cache
def total(n):
    return table(n).sum() + 1.0


def by_a_table(x):
    return x * total(3) + np.sum(x * table(4))


def by_a_new_table(x):
    table.cache_clear()
    return np.sum(x * table(4))


@pytest.mark.parametrize("program", [by_a_table, by_a_new_table])
def test_what_is_kept_stays_until_it_is_forgotten(program, monkeypatch):
    gradient = ckad.value_and_grad(program, engine="vm")
    for k in range(16):
        monkeypatch.setitem(globals(), "RATE", 1.0 + k)
        if k % 5 == 3:
            table(4)[1] += 0.5
        if k % 5 == 4:
            table.cache_clear()
        if k % 7 == 6:
            total.cache_clear()
        assert gradient(2.0)[0] == program(2.0)
    total.cache_clear()
    table.cache_clear()


def test_what_reads_traced_numbers_is_not_kept_by_python(monkeypatch):
    @functools.cache
    def scaled(n):
        return n * RATE

    def program(x):
        global RATE
        RATE = 2.0 * x
        return scaled(3)

    assert ckad.value_and_grad(program, engine="vm")(2.0) == (12.0, 6.0)
    assert scaled.cache_info().currsize == 0
