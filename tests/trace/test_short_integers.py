"""Integers of 8 to 32 bits: dtypes, numbers that wrap around, arrays that are written into."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ckad
from ckad.errors import DtypeError, RaisedError, UnsupportedFunctionError

from .idioms import check

U = np.array([0.1, 0.6, 0.95])
IMAGE = np.array([250, 3, 128], np.uint8)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():  # NumPy's, where its scalars wrap around
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def life(u):
    cells = np.zeros((7, 7), dtype=np.uint8)
    cells[2:5, 3] = 1
    cells[4, 2] = cells[3, 1] = 1
    total = 0.0
    for _ in range(8):
        near = (
            cells[:-2, :-2] + cells[:-2, 1:-1] + cells[:-2, 2:] + cells[1:-1, :-2]
            + cells[1:-1, 2:] + cells[2:, :-2] + cells[2:, 1:-1] + cells[2:, 2:]
        )  # fmt: skip
        birth = (near == 3) & (cells[1:-1, 1:-1] == 0)
        stays = ((near == 2) | (near == 3)) & (cells[1:-1, 1:-1] == 1)
        cells[...] = 0
        cells[1:-1, 1:-1][birth | stays] = 1
        total = total + u * cells.sum()
    return np.sum(total)


def ising(u):
    rng = np.random.default_rng(0)
    spins = np.where(rng.random((5, 5)) < 0.5, 1, -1).astype(np.int8)
    for _ in range(20):
        i, j = rng.integers(0, 5, 2)
        near = spins[(i + 1) % 5, j] + spins[i - 1, j] + spins[i, (j + 1) % 5] + spins[i, j - 1]
        if rng.random() < np.exp(-u[0] * (2 * spins[i, j] * near)):
            spins[i, j] *= -1
    return np.sum(u) * spins.mean()


def masked(u):
    mask = (u > 0.5).astype(np.uint8)
    for _ in range(10):
        u = u * (1 + 0.1 * mask)
        mask = (u > 0.8).astype("uint8")
    return np.sum(u * mask) + np.sum(u)


def wrapping(u):
    a = np.zeros(3, np.uint8)
    for _ in range(20):
        a += np.uint8(40)
        a = np.where(u > 0.5, a, a // 2)
        a[0] -= 1
    return np.sum(a * u)


def signed(u):
    a = (u > 0.5).astype(np.int8) * 100
    b = a + a
    c = -(b - 1) * 3
    whole = np.sum(b * u) + np.sum(c * u) + np.abs(c).sum() * u[0] + (a @ b) * u[1]
    return whole + np.sum(c.astype(np.uint16) * u) + np.sum((c >> 1) * u) + (b**3).max() * u[2]


def pixels(u):
    image = (u * 251.3).astype(np.uint8)
    gap = image - image[::-1]
    bits = (image << 2).sum() * u[0] + np.sum(~image * u) + np.sum((image ^ np.uint8(255)) * u)
    return np.sum(gap * u) + gap.max() * u[0] + gap.mean() * u[1] + gap.std() * u[2] + bits


def swapped(u):
    a = np.ones(3, np.uint8)
    b = np.zeros_like(a)
    for _ in range(30):
        b[:] = a * 3 + np.roll(a, 1)
        a, b = b, a
        u = u * (1 + 0.001 * (a > 100))
    return np.sum(u) + a[0] * u[0]


def branched(u):
    a = np.zeros(3, dtype="uint8")
    for _ in range(12):
        if u.sum() > 1.0:
            a[1:] += 200
            u = u * 0.97
        else:
            a = a - np.uint8(3)
            u = u * 1.1
        if a[1]:
            u = u + 0.001
    return np.sum(a / 255 * u)


def counted(u):
    a = np.zeros(3, np.int8)
    while u.sum() > 0.5:
        a += np.int8(90)
        u = u * 0.8
    return np.sum(a * u)


def joined(u):
    mask = (u > 0.5).astype(np.uint8)
    several = [mask, mask * 2, mask + 254]
    rows, long = np.stack(several), np.concatenate(several)
    return np.sum(rows.sum(axis=0) * u) + long.sum() * u[0] + len(long) * u[1] + np.sum(rows.T @ u)


def looked_up(u):
    table = np.array([1, 255, 7], np.uint8)
    k = (u * 2.9).astype(np.int64)
    ids = np.arange(3, dtype=np.int8)
    total = np.sum((table[k] + np.take(table, k)) * u)
    for n in range(6):
        total += np.sum(u[ids < n]) + u[ids[n % 3]]
    return total


def of_globals(u):
    one = np.where(u > 0.2, IMAGE, np.uint8(7))
    return np.sum((one + IMAGE) * u) + np.sum(IMAGE / 255 * u)


def beyond(u):
    a, s = np.arange(3, dtype=np.uint8), np.zeros(3, np.int8)
    for n in range(5):
        s = np.where(a > 1, s, n * 100)
    return np.sum(np.where(a > 0, a, -1) * u[:3]) + np.sum(np.where(a > 1, s, 300) * u[::-1])


def numbers_as_arrays(u):
    a, n = np.arange(3, dtype=np.int8) + np.int8(60), 100
    made = np.dot(a, 100), np.outer(a, n), np.kron(n, a), np.inner(a, 100), np.tensordot(a, n, 0)
    made += (np.stack([a[0], 300]), np.hstack([a, n]), np.where(a > 60, a, 1))
    return sum(np.sum(x) * u[0] for x in made) + u[1] * sum(x.dtype.itemsize for x in made)


def arrays_of_scalars(u):
    a = np.arange(3, dtype=np.int8)[1] + np.int8(2)
    one, two, three = np.array(a), np.asarray(a), np.array(a, dtype=np.int16)
    one[...], two[()] = 1, 2
    three += 300
    return (one + a * 2 + two * 3 + three) * u[0]


PROGRAMS = [
    beyond,
    numbers_as_arrays,
    arrays_of_scalars,
    life,
    ising,
    masked,
    wrapping,
    signed,
    pixels,
    swapped,
    branched,
    counted,
    joined,
]
PROGRAMS += [looked_up, of_globals]


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not pixels])
def test_programs(program):
    check(program, U)


def test_pixels_between_their_steps():
    slope = ckad.grad(pixels, engine="vm")(U)
    for k, direction in enumerate(1e-7 * np.eye(3)):
        difference = (pixels(U + direction) - pixels(U - direction)) / 2e-7
        assert slope[k] == pytest.approx(difference, rel=1e-6)
        assert ckad.jvp(pixels, (U,), (direction * 1e7,))[1] == pytest.approx(slope[k], rel=1e-14)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_engines_agree(program):
    vm, native = (ckad.value_and_grad(program, engine=e)(U.copy()) for e in ("vm", "native"))
    assert vm[0] == pytest.approx(program(U.copy()), rel=1e-14)
    assert native[0] == pytest.approx(vm[0], rel=1e-14)
    np.testing.assert_allclose(native[1], vm[1], rtol=1e-12)


def results(u, image):
    mask = (u > 0.5).astype(np.uint8)
    spins = mask.astype(np.int8) * 127
    word = mask.astype("uint16") * 60000
    row = np.array([1, 2, 300 % 256], np.uint32) * 4_000_000_000
    image[1:] += np.uint8(254)
    return {
        "add": mask + 255, "by one": image + image, "float": mask + 1.0, "sum": mask.sum(),
        "signed": spins + spins, "of both": mask - spins, "total": spins.sum(), "max": image.max(),
        "word": word + word, "long": row - mask, "item": image[0],
        "where": np.where(u > 0, mask, 9),
        "inverse": ~image, "less": image < 200, "power": image**3, "low": np.minimum(spins, mask),
        "shift": image << 3, "rest": -image % 7, "whole": image // np.uint8(3), "ones":
        np.ones_like(image), "clip": np.clip(image, 2, 100), "cumsum": np.cumsum(spins),
        "written": _written(u), "in 8 bits": np.sum(image, dtype=np.uint8), "divided": mask / image,
        "copy": image[::-1].copy(), "flat": np.ravel(image),
        "of several": np.atleast_2d(u, image)[1], "divmod": divmod(image, np.uint8(9)),
    }  # fmt: skip


def _written(u):
    a = np.zeros((2, 3), np.int8)
    a[0] = np.arange(250, 253) + (u > 0.5)
    a[1] = u * 100
    a[0, 1] = -7
    return a


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_dtypes_and_numbers_are_those_of_numpy(engine):
    got = ckad.jit(results, engine=engine)(U, IMAGE.copy())
    want = results(U, IMAGE.copy())
    assert got.keys() == want.keys()
    for name, x in want.items():
        np.testing.assert_array_equal(got[name], x, err_msg=name, strict=True)


def test_parts_of_short_integers_are_put_in_order():
    def program(u):
        return np.partition(u, 1), np.argpartition(u, 1)

    u = np.array([3, -1, 2], np.int8)
    for found, expected in zip(ckad.jit(program)(u), program(u), strict=True):
        assert found.tolist() == expected.tolist()
        assert found.dtype == expected.dtype


def test_an_argument_of_short_integers_wraps_around():
    def twice(u, image):
        return np.sum((image + image) * u)

    value, slope = ckad.value_and_grad(twice, engine="vm")(U, IMAGE)
    assert value == twice(U, IMAGE)
    np.testing.assert_array_equal(slope, IMAGE + IMAGE)
    assert ckad.value_and_grad(twice, engine="vm")(U, IMAGE.astype(int))[0] != value


def test_what_is_asked_of_the_class_and_the_dtype():
    def asks(u):
        mask = (u > 0.5).astype(np.uint8)
        is_one = isinstance(mask, np.ndarray) and type(mask[0]) is np.uint8
        is_short = mask.dtype == np.uint8 and mask.itemsize == 1
        return np.sum(mask * u), is_one and is_short, mask.nbytes

    got = ckad.jit(asks, engine="vm")(U)
    assert [float(x) for x in got] == [np.sum((U > 0.5) * U), 1.0, 3.0]


def long_sum(u):
    return ((u > 0.5).astype(np.uint8).sum() - 5) * u[0]


def step_added(u):
    a = np.zeros(3, np.uint8)
    for k in range(300):
        a = a + k
        u = u * 0.99
    return np.sum(a * u)


def test_what_may_leave_a_range_is_named():
    with pytest.raises(DtypeError, match=r"test_short_integers.py:\d+: .*uint64"):
        ckad.jit(long_sum, engine="vm")(U)


@pytest.mark.parametrize("engine", ["vm", "native"])
def test_a_step_whose_number_is_out_of_range_stops_the_program(engine):
    fact = r"test_short_integers.py:\d+: a Python integer is out of .* at step 256"
    with pytest.raises(RaisedError, match=fact):
        ckad.jit(step_added, engine=engine)(U)


def test_a_number_of_python_out_of_range_is_refused_as_by_numpy():
    with pytest.raises(OverflowError, match="300 out of bounds"):
        ckad.jit(lambda u: np.sum(((u > 0.5).astype(np.uint8) + 300) * u), engine="vm")(U)


def test_a_function_without_a_rule_is_named():
    with pytest.raises(UnsupportedFunctionError, match="sum of integers this short"):
        ckad.jit(lambda u: np.sum((u > 0.5).astype(np.uint8), where=u > 0), engine="vm")(U)


@pytest.mark.parametrize("dtype", [">i2", ">u2", ">i4", "<u1", ">i8"])
def test_integers_in_another_order_of_bytes_wrap_around_alike(dtype):
    numbers = np.array([250, 3, 30_000 if dtype[2] != "1" else 7], dtype)

    def argument(u, m):
        return m + m, m * m * m, m * u, m.astype(np.float32) * np.float32(2.0)

    def captured(u, k):
        return numbers * k, numbers * u, (numbers + numbers) * u

    for engine in ("vm", "native"):
        for fun, second in ((argument, numbers), (captured, np.array([7, 2, 3], np.int16))):
            for got, want in zip(
                ckad.jit(fun, engine=engine)(U, second), fun(U, second), strict=True
            ):
                assert got.dtype == want.dtype.newbyteorder("=")
                np.testing.assert_array_equal(got, want)


def test_a_dtype_may_be_named_by_its_letter():
    def picked(u):
        places = np.zeros(3, "i")
        for k in range(3):
            places[k] = 2 - k
        return np.sum(u[places] * np.arange(3.0))

    np.testing.assert_array_equal(ckad.grad(picked, engine="vm")(np.ones(3)), [2.0, 1.0, 0.0])


@pytest.mark.parametrize("engine", ["vm", "native"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64])
def test_powers_wrap_around_whatever_the_exponent(engine, dtype):
    base = np.array([3, 7, 2, 0, 1, 113, 6, 5], dtype)
    exponent = np.array([241, 128, 200, 255, 254, 127, 64, 0], np.uint8).astype(dtype)
    found = ckad.jit(lambda x, n: (x**n, x**200, 3**n), engine=engine)(base, exponent)
    for power, wanted in zip(found, (base**exponent, base**200, 3**exponent), strict=True):
        np.testing.assert_array_equal(power, wanted)
        assert power.dtype == wanted.dtype


def test_a_bound_may_be_a_truth_value():
    x = np.array([0, 5, 200], np.uint8)
    np.testing.assert_array_equal(ckad.jit(lambda x: np.clip(x, True, 10))(x), [1, 5, 10])


def test_the_imaginary_part_has_the_dtype():
    found = ckad.jit(lambda a: (np.imag(a), a.imag, a[0].imag), engine="vm")(np.ones(2, np.int16))
    assert [x.dtype.name for x in found] == 3 * ["int16"]
    assert not np.any(np.concatenate([np.ravel(x) for x in found]))
