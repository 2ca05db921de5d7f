"""Pictures of what is not known while recording: what a call of them lacks leaves it out."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.path import Path

import ckad
from ckad.errors import ConcreteValueError, SkippedCallWarning

from .idioms import check_number

picture = None
pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")


@pytest.fixture(autouse=True)
def _without_figures():
    yield
    plt.close("all")


def spread(x, steps=12):
    u = np.linspace(0.0, x, 9)
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2]) - 0.01 * u[1:-1] ** 2
    return u


def test_colours_of_an_image_that_is_left_out():
    def program(x):
        u = spread(x)
        plt.figure()
        plt.imshow(np.outer(u, u))
        plt.colorbar(label="u")
        return np.sum(u**2)

    check_number(program, 1.3)
    ckad.clear_caches()
    with pytest.warns(SkippedCallWarning, match="imshow.*colorbar"):
        ckad.grad(program)(1.3)


def test_curve_of_a_list_that_branches_fill():
    def program(x):
        times, energies = [], []
        for k in range(30):
            x = 0.9 * x + 0.01
            if k % 10 == 0:
                times.append(k)
                energies.append(x**2)
        plt.plot(times, energies)
        return x + sum(energies)

    check_number(program, 1.3)


def test_collection_of_shapes_that_are_left_out():
    class Markers:
        def __init__(self, n, size):
            self.vertices = np.tile(np.array([(-1.0, 0.0), (0.0, size), (1.0, 0.0)]), (n, 1))
            self.collection = PathCollection([Path(vertices=self.vertices)])

    def program(x):
        markers = Markers(3, x)
        _, ax = plt.subplots()
        ax.add_collection(markers.collection)
        return np.sum(markers.vertices**2)

    check_number(program, 1.3)


def test_a_number_that_is_only_drawn():
    """How many frames there are is known when the program runs."""

    def program(x):
        frames, u = 0, x
        for k in range(40):
            u = 0.9 * u
            if k % 5 == 0:
                frames += 1
                if u < 0.3:
                    break
        plt.plot(np.arange(frames), marker="o")
        return u

    check_number(program, 1.3)


def test_an_argument_that_changes_the_program_is_not_left_out():
    def program(x):
        seen = []

        def length():
            seen.append(x)
            return np.arange(int(x))

        plt.plot(length())
        return x * len(seen)

    _check_made(program)


def _check_made(program):
    """What its pictures are given is made: of known numbers, or an error says that it is not."""
    check_number(program, 1.3)
    with pytest.raises(ConcreteValueError):
        ckad.grad(lambda x: ckad.grad(program)(x))(1.3)


def _counted(x):
    n, s = 0, 0.0
    while s < 2 * x:
        s += x
        n += 1
    return n


def an_iterator_is_read(x):
    rest = iter([1.0, 2.0, 3.0])
    plt.plot(np.arange(_counted(x)), list(rest)[:2])
    return x * next(rest, 7.0)


def an_iterator_is_run_over(x):
    rest = iter([1.0, 2.0, 3.0])
    plt.plot(np.arange(_counted(x)), [2 * v for v in rest][:2])
    return x * next(rest, 7.0)


def a_generator_is_read(x):
    rest = (v for v in [1.0, 2.0] if v > 0)
    plt.plot(sum(rest), np.arange(_counted(x))[:1])
    return x * sum(rest, 7.0)


def numbers_are_drawn(x):
    rng = np.random.default_rng(0)
    plt.plot(np.arange(_counted(x)), rng.normal(size=2))
    return x * rng.normal()


def numbers_are_drawn_from_the_global_generator(x):
    np.random.seed(0)
    plt.plot(np.arange(_counted(x)), np.random.normal(size=2))
    return x * np.random.normal()


def an_array_is_written_by_name(x):
    u = np.ones(2) * x
    plt.plot(np.arange(_counted(x)), np.multiply(u, 2.0, out=u))
    return np.sum(u)


def an_array_is_written_by_place(x):
    u = np.ones(2) * x
    plt.plot(np.arange(_counted(x)), np.clip(u, 0.0, 0.5 * x, u))
    return np.sum(u)


def an_array_is_copied_into(x):
    u = np.ones(2) * x
    plt.plot(np.arange(_counted(x)), [np.copyto(u, 3.0), 1, 2][1:])
    return np.sum(u) * x


def a_function_is_called_by_key(x):
    seen = []
    plt.plot(np.arange(_counted(x)), [max([1, 2], key=lambda v: seen.append(v) or v)] * 2)
    return x * len(seen)


@pytest.mark.parametrize(
    "program",
    [
        *(an_iterator_is_read, an_iterator_is_run_over, a_generator_is_read, numbers_are_drawn),
        *(numbers_are_drawn_from_the_global_generator, an_array_is_written_by_name),
        *(an_array_is_written_by_place, an_array_is_copied_into, a_function_is_called_by_key),
    ],
    ids=lambda f: f.__name__,
)
def test_an_argument_of_a_picture_that_does_more_than_give_a_value_is_made(program):
    _check_made(program)


def test_what_a_picture_would_give_is_written_nowhere():
    def program(x):
        u = np.ones(10) * x
        np.multiply(plt.hist(u)[0], 2.0, out=u)
        return np.sum(u)

    with pytest.raises(ConcreteValueError, match="is left out"):
        ckad.grad(program)(1.3)


def test_an_error_of_what_is_drawn_of_known_numbers_stays():
    def program(x):
        plt.plot([1, 2], [1, 2, 3])
        return x**2

    with pytest.raises(ValueError, match="same first dimension"):
        ckad.grad(program)(1.3)


def test_a_global_bound_to_a_picture_that_is_left_out_stays_as_it_was():
    def program(x):
        global picture
        u = spread(x)
        picture = plt.imshow(np.outer(u, u))
        picture.set_clim(0, 1)
        return np.sum(u**2)

    check_number(program, 1.3)
    assert type(picture).__module__ == "matplotlib.image"  # of the program itself
    before = picture
    assert ckad.explain(program, 1.3).anew == ""
    assert picture is before
