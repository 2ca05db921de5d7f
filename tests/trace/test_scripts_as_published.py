"""Habits of published scripts: numbers read as texts, files written meanwhile, state in globals."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

import ckad

figure = axes = None


@pytest.fixture
def record(tmp_path):
    """A file that was written some time ago."""

    def written(name, text):
        path = tmp_path / name
        path.write_text(text)
        os.utime(path, (time.time() - 60,) * 2)
        return str(path)

    return written


def anew(program, *args):
    return ckad.explain(program, *args, engine="vm").anew


def test_numbers_may_be_texts():
    written = ["0.5", "1.25", "-2e-1"]

    def read(x):
        record = np.array(written, dtype="float32")
        table = np.array([line.split(",") for line in ("1,2,3", "4,5,6")], float)
        return np.sum(record * x) + np.sum(table @ x)

    x = np.array([1.0, 2.0, 3.0])
    value, gradient = ckad.value_and_grad(read, engine="vm")(x)
    assert value == read(x)
    np.testing.assert_allclose(gradient, np.array(written, float) + [5.0, 7.0, 9.0], rtol=1e-7)
    with pytest.raises(ValueError, match="could not convert"):
        ckad.jit(lambda x: np.array(["one"], float) * x)(x)


def test_ranges_of_short_floats_are_numpys():
    """Where an argument decides the length, which NumPy fills in float32, too."""

    def times(lengths):
        n = int(lengths.min())
        return np.arange(-0.1, 0.001 * n - 0.1, 0.001, dtype=np.float32)

    lengths = np.array([133.0, 140.0])
    np.testing.assert_array_equal(ckad.jit(times)(lengths), times(lengths))


def test_files_that_were_not_written_since_are_not_read_again(record):
    path, table = record("record.txt", "0.5\n1.5\n"), record("table.txt", "1 2\n3 4\n")
    config = record("config.json", '{"rate": 2.0}')

    def read(x):
        assert not os.path.isdir(os.path.abspath(path))
        with open(path) as opened:
            rows = [float(line) for line in opened]
        opened = open(config, "r")  # noqa: SIM115, UP015
        rate = json.load(opened)["rate"]
        opened.close()
        return rate * rows[0] * x + np.loadtxt(table)[1, 0]

    slope = ckad.value_and_grad(read, engine="vm")
    assert anew(lambda x: np.loadtxt(table, skiprows=1).sum() * x, 2.0) == ""
    assert "loadtxt" in anew(lambda x: np.loadtxt(table, converters=lambda s: 2.0).sum() * x, 2.0)
    assert slope(2.0) == (5.0, 1.0)
    record("record.txt", "2.5\n1.5\n")
    assert slope(2.0) == (13.0, 5.0)
    os.remove(path)
    with pytest.raises(FileNotFoundError):
        slope(2.0)


def test_a_file_that_was_just_written_is_read_at_each_call(tmp_path):
    path = str(tmp_path / "new.txt")
    np.savetxt(path, [1.0])
    assert anew(lambda x: np.loadtxt(path) * x, 2.0) == "calls numpy.loadtxt"


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_files_that_are_opened_to_write_are_made_each_time(tmp_path):
    path = str(tmp_path / "out.txt")

    def logged(x):
        with open(path, "w"):
            pass
        for k in range(40):
            x = np.sin(x) + 0.1 * k
            with open(path, "a+") as log:
                log.write(f"{k} {x}\n")
        return x

    slope = ckad.value_and_grad(logged, engine="vm")
    first = slope(0.3)
    with open(path, "w") as other:
        other.write("of another")
    assert slope(0.3) == first
    assert os.path.getsize(path) == 0
    assert anew(logged, 0.3) == ""

    def noted(x):
        with open(path, "w") as log:
            log.write("begun")
        return x * x

    assert "write" in anew(noted, 0.3)


@pytest.mark.filterwarnings("ignore::ckad.errors.SkippedCallWarning")
def test_pictures_in_globals_are_those_that_were_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def drawn(x):
        global figure, axes
        figure, axes = pyplot.subplots()
        for _ in range(40):
            x = np.sin(x)
            axes.plot([x, 0.0])
        return x

    slope = ckad.value_and_grad(drawn, engine="vm")
    first = slope(0.5)
    kept = figure, axes
    assert slope(0.5) == first
    assert (figure, axes) == kept
    assert anew(drawn, 0.5) == ""
    pyplot.close("all")


class Speed:
    def __init__(self, x):
        self.x = x

    def __sub__(self, other):
        return Speed(self.x - other.x)

    def __mul__(self, by):
        return Speed(self.x * by)


def test_operators_of_one_of_several_objects():
    """``speeds[i] * k``, which Python's operator was left with, and an error of it."""

    def moved(k):
        speeds = [Speed(0.1 * i) for i in range(7)]
        for i in range(40):
            speeds[i % 7] = speeds[i % 7] * k - speeds[(i + 1) % 7] * 0.1
        return sum(speed.x for speed in speeds)

    value, slope = ckad.value_and_grad(moved, engine="vm")(0.9)
    assert value == pytest.approx(moved(0.9), rel=1e-12)
    assert slope == pytest.approx((moved(0.9 + 1e-6) - moved(0.9 - 1e-6)) / 2e-6, rel=1e-7)


def test_states_of_seeded_streams_are_put_back():
    def noisy(x):
        np.random.seed(3)
        before = np.random.get_state()
        np.random.seed(4)
        start = np.random.randn(3)
        np.random.set_state(before)
        return np.sum(start * x) + x * np.random.rand()

    expected, after = noisy(1.5), np.random.rand()
    slope = ckad.value_and_grad(noisy, engine="vm")
    for _ in range(2):
        assert slope(1.5)[0] == pytest.approx(expected, rel=1e-14)
        assert np.random.rand() == after
    assert anew(noisy, 1.5) == ""


def test_lists_that_loops_on_constants_fill_are_known():
    """Places of supports, which shapes of what is left depend on."""

    def bent(stiffness):
        fixed = np.zeros((40, 1))
        fixed[:3], fixed[-1] = 1.0, 1.0
        held, free = [], []
        for i in range(40):
            if fixed[i, 0] == 1:
                held.append(i)
            else:
                free.append(i)
        matrix = np.diag(np.arange(1.0, 41.0)) * stiffness + np.ones((40, 40))
        left = np.delete(np.delete(matrix, held, 0), held, 1)
        return (
            np.linalg.inv(left).sum()
            + matrix[np.ix_(free, held)].sum()
            + matrix[held][:, free].sum()
        )

    value, slope = ckad.value_and_grad(bent, engine="vm")(2.0)
    assert value == pytest.approx(bent(2.0), rel=1e-12)
    assert slope == pytest.approx((bent(2.0 + 1e-6) - bent(2.0 - 1e-6)) / 2e-6, rel=1e-6)
    assert anew(bent, 2.0) == ""


def test_keys_may_be_texts_of_known_numbers():
    def kept(x):
        found = {}
        for year, t in zip(np.arange(20), np.linspace(0.0, 1.0, 20), strict=True):
            for _ in np.arange(3):
                x = np.sin(x) + t
                found[f"{year}"] = found[str(t)] = found["%d %.1f" % (year, t)] = x  # noqa: UP031
        return found["19"] + found["0.0"] * found["19 1.0"]

    value, slope = ckad.value_and_grad(kept, engine="vm")(2.0)
    assert value == pytest.approx(kept(2.0), rel=1e-14)
    assert slope == pytest.approx((kept(2.0 + 1e-6) - kept(2.0 - 1e-6)) / 2e-6, rel=1e-6)


def _opened(path):
    with path.open() as file:
        return float(file.read())


@pytest.mark.parametrize(
    ("read", "is_kept"),
    [
        (lambda path: float(path.read_text()), True),
        (lambda path: float(path.read_bytes()), True),
        (_opened, True),
        (lambda path: 1.0 + path.exists() + 2.0 * path.is_file(), True),
        (lambda path: float(path.stat().st_size), False),
    ],
)
def test_what_methods_of_paths_read_is_read_each_time(record, read, is_kept):
    path = record("number.txt", "1.5")

    def scaled(x):
        return x * read(Path(path))

    value = ckad.jit(scaled, engine="vm")
    for text in ("1.5", "1.5", "20.25", "1.5"):
        record("number.txt", text)
        assert value(2.0) == 2.0 * read(Path(path))
    assert (not anew(scaled, 2.0)) == is_kept


def test_whether_there_is_a_file_is_asked_each_time(tmp_path):
    value = ckad.jit(lambda x: x * (1.0 + Path(tmp_path / "flag").exists()), engine="vm")
    assert value(2.0) == value(2.0) == value(2.0) == value(2.0) == value(2.0) == 2.0
    (tmp_path / "flag").touch()
    assert value(2.0) == 4.0
    (tmp_path / "flag").unlink()
    assert value(2.0) == 2.0
