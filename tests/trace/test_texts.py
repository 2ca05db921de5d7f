"""Texts that are one of several, or made of traced numbers in some branches; texts as numbers."""

import numpy as np
import pytest

import ckad
from ckad.errors import ConcreteValueError

from .idioms import check, check_number


@pytest.mark.parametrize("at", [2.0, 0.5])
def test_words_are_joined(at):
    def program(x):
        name = "a" if x > 1 else "b"
        other = "x" if x > 0.7 else "y"
        name = "<" + name + other
        name += ">"
        print(name, f"{name} {x}", name + str(x))
        return x**2 if name == "<ax>" else x**3

    check_number(program, at)


def test_a_report_that_begins_with_one_of_two_words():
    def program(x):
        report = ""
        for _ in range(60):
            x = 0.9 * x
            if x < 0.1:
                break
        else:
            report += "not converged\n"
        report += "x = {:2.2f}\n".format(x)  # noqa: UP032
        if x < 0.097:
            report += f"small {x}\n"
        print(report)
        return x

    check_number(program, 2.0)


def test_a_log_that_branches_of_steps_make_longer():
    def program(x):
        log = "begin"
        for k in range(30):
            x = 0.9 * x
            if x < 1.0:
                log += f" {k}: {x}"
        print(log)
        return x

    check_number(program, 2.0)


@pytest.mark.parametrize("asked", [lambda s: s == "", lambda s: len(s) == 0, lambda s: not s])
def test_a_text_that_may_be_of_traced_numbers_decides_nothing(asked):
    def program(x):
        text = ""
        if x > 1:
            text = f"{x}"
        return x if asked(text) else 3 * x

    with pytest.raises(ConcreteValueError, match="text that is made of traced values"):
        ckad.grad(program)(2.0)


@pytest.mark.parametrize("at", [2.0, 0.5])
def test_a_text_of_traced_numbers_or_none(at):
    def program(x):
        text = None
        if x > 1:
            text = f"{x}"
        return x if text is None else 3 * x

    check_number(program, at)


def test_texts_that_stand_for_numbers_are_stored():
    def program(x):
        u, n = np.zeros((4, 3)) + x, np.ones(3, int)
        u[1] = "nan"
        u[2, 1] = "1.5"
        n[0] = "7"
        for k in range(30):
            if k % 7 == 3:
                u[0, 2] = "0.25"
        return np.nansum(u**2) * np.sum(n)

    check_number(program, 0.7)
    with pytest.raises(ValueError, match="could not convert string to float"):
        ckad.grad(lambda x: np.sum(_stored(x)))(np.ones(3))


def _stored(x):
    y = 2 * x
    y[0] = "three"
    return y


def test_lengths_that_steps_count():
    """How often steps did something is known where it depends on their number alone."""

    def program(x):
        rows, n = np.zeros((7, 2)), 0
        for k in range(1, 13):
            try:
                x = 0.9 * x
            except FloatingPointError:
                return -1.0
            if k % 2 == 0:
                n += 1
                rows[n] = x
        means = np.cumsum(rows, 0) / np.arange(1, n + 2)[:, None]
        return np.sum(means) + np.sum(np.full(n, x[0]) * np.arange(n) * np.ones(6))

    check(program, np.array([0.7, 1.1]))


class Filter:
    def __init__(self, **options):
        self.gain, self.frame = options.get("gain", 0.1), options.get("frame", "NED")
        self.mode = options.pop("mode", "fast")
        if self.frame.upper() not in ("NED", "ENU"):
            raise ValueError(self.frame)

    def step(self, x):
        return self.gain * x if self.mode.startswith("fast") else x


def test_a_word_that_stands_beside_traced_numbers_is_known():
    def by_options(x):
        return Filter(gain=x, mode="faster").step(x) + Filter(gain=x, frame="enu").step(x)

    def by_a_list(x):
        parts = [x, "sin", x * x, "cos"]
        name = parts.pop()
        return getattr(np, name)(x) + getattr(np, parts.pop(1))(parts[-1])

    check_number(by_options, 0.7)
    check_number(by_a_list, 0.7)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_words_and_what_may_be_none_have_formats():
    def table(x):
        best = None
        for k in range(12):
            v = x * np.sin(k)
            if best is None or v > best:
                best = v
            word = "up" if v > 0.5 else "down"
            print(f"{k:3d} {best:.4f} {word:>8s}|{'*' if v > 0.9 else '':>3}", format(word, "^9"))
        return best

    check_number(table, 1.3)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_arrays_and_numbers_as_texts_of_numpy():
    def report(x):
        for _ in range(12):
            x = 0.9 * x
            both = np.array([x, 1.0])
            print("x = " + np.array2string(both, precision=2))
            print(np.array_str(both), np.array_repr(both))
            print(np.format_float_scientific(x, precision=2), np.format_float_positional(x, 3))
        return x

    check_number(report, 1.3)
    with pytest.raises(ConcreteValueError, match="text that is made of traced values"):
        ckad.grad(lambda x: x if np.array2string(x * np.ones(2)) == "[1. 1.]" else 2 * x)(1.0)


class Numbered:
    n = 0

    def __format__(self, spec):
        self.n += 1
        return f"{self.n:{spec}}"


@pytest.mark.parametrize("text", [lambda x: f"{x:3}", lambda x: format(x, "3"), "{:3}".format])
def test_numbers_read_from_texts_that_a_method_makes(text):
    def read(x):
        numbered, total = Numbered(), 0.0
        for k in range(40):
            total = total + x * float(text(numbered)) + float(f"{k}")
        return total

    check_number(read, 1.3)
    with pytest.raises(ConcreteValueError, match="text that is made of traced values"):
        ckad.grad(lambda x: x * float(f"{x:.3f}"))(1.0)
