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

    with pytest.raises(ConcreteValueError):
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
