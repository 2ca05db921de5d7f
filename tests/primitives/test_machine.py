"""`ckad.primitive` of machine code: functions under Numba, functions in C."""

from __future__ import annotations

import ctypes

import numba
import numpy as np
import pytest

import ckad
from ckad.engines.native.running import program
from ckad.errors import RaisedError, TracedShapeError, TraceError
from ckad.tape.routines import ROUTINES
from tests.primitives.test_primitive import ENGINES, X, raised


@numba.njit
def _waves(x, y):
    out = np.empty_like(x)
    for i in range(x.size):
        if x[i] > 50:
            raise ValueError("x is too large")
        out[i] = np.sin(x[i]) * y
    return out, out.sum()


waves = ckad.primitive(_waves)


@waves.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    moved = np.cos(x) * y * dx + np.sin(x) * dy
    return waves(x, y), (moved, np.sum(moved))


def looped(x, y):
    for _ in range(30):
        z, total = waves(x, y)
        x = x * 0.9 + 0.1 * z * total
    return np.sum(x)


@pytest.mark.parametrize("engine", ENGINES)
def test_numba_agrees_with_differences(engine):
    ckad.testing.check_grads(looped, (X, 1.3), engine=engine)


def test_engines_and_budgets_call_the_same_code():
    # not inside of a loop: the engines differ in the roundings of what is around
    calls = [ckad.jit(lambda x: waves(x, 1.3)[0], engine=e)(X) for e in ENGINES]
    assert calls[0].tobytes() == calls[1].tobytes()
    for engine in ENGINES:
        _, kept = ckad.value_and_grad(looped, (0, 1), engine=engine)(X, 1.3)
        memory = "25 KB"
        _, again = ckad.value_and_grad(looped, (0, 1), engine=engine, memory=memory)(X, 1.3)
        assert [g.tobytes() for g in again] == [g.tobytes() for g in kept]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_machine_code_raises_is_the_users_own(engine):
    def run(x):
        for _ in range(9):
            x = waves(x, 1.0)[0] + 8 * x
        return x

    with pytest.raises(ValueError, match="x is too large") as found:
        ckad.jit(run, engine=engine)(X)
    assert "step" in found.value.__notes__[0]
    assert "waves(x, 1.0)" in found.value.__notes__[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_another_shape_than_declared_is_named(engine):
    @numba.njit
    def part(x):
        return x[: 3 if x[0] < 1 else 2] * 1.0

    f = ckad.primitive(part, shape=lambda x: x.shape)
    np.testing.assert_array_equal(ckad.jit(f, engine=engine)(X), X)
    said = raised(TracedShapeError, ckad.jit(f, engine=engine), X + 1)
    assert "shape (2,)" in said
    assert "shape (3,)" in said


@pytest.mark.parametrize("engine", ENGINES)
def test_another_dtype_than_declared_is_named(engine):
    f = ckad.primitive(numba.njit(lambda x: x > 0.5), shape=lambda x: x.shape, name="f")
    assert "bool" in raised(TracedShapeError, ckad.jit(f, engine=engine), X)


@pytest.mark.parametrize("engine", ENGINES)
def test_code_that_writes_into_its_argument_gets_a_copy(engine):
    @numba.njit
    def scratch(x):
        x[0] = 9.0
        return x

    f = ckad.primitive(scratch, shape=lambda x: x.shape)
    found = ckad.jit(lambda x: (f(x), x + 0.0), engine=engine)(X)
    np.testing.assert_array_equal(found[0], [9.0, *X[1:]])
    np.testing.assert_array_equal(found[1], X)


@pytest.mark.parametrize("engine", ENGINES)
def test_numba_on_other_kinds(engine):
    @numba.njit
    def f(x, keep, k, n, pair):
        return np.where(keep, x * k[0, 0], np.float32(n)) * np.float32(pair[0]), x.sum() > 0

    g = ckad.primitive(f)
    x, keep = X.astype(np.float32), np.array([True, False, True])
    k = np.array([[4, 5]])
    found, positive = ckad.jit(lambda x: g(x * 1, keep, k, 3, (2, "up")), engine=engine)(x)
    np.testing.assert_array_equal(found, np.where(keep, x * 4, np.float32(3)) * 2)
    assert found.dtype == np.float32
    assert bool(positive) is True


def test_numba_scalars_and_empty_arrays():
    @numba.njit
    def f(a, x):
        return a * x.size

    g = ckad.primitive(f)
    g.defvjp(lambda ct, out, a, x: (ct * x.size, None))
    for engine in ENGINES:
        assert ckad.value_and_grad(g, engine=engine)(2.0, np.ones((2, 0))) == (0.0, 0.0)
        assert ckad.value_and_grad(g, engine=engine)(2.0, X) == (6.0, 3.0)


def test_trees_that_machine_code_does_not_take_are_handed_on_by_python():
    @numba.njit
    def f(x):
        return x * 2

    tree = ckad.primitive(lambda t: f(t["x"]), name="tree")
    np.testing.assert_array_equal(ckad.jit(lambda x: tree({"x": x}))(X), 2 * X)


def test_what_numba_does_not_compile_is_named():
    @numba.njit
    def f(x, how):
        return x if how == "a" else how

    g = ckad.primitive(f, shape=lambda x, how: x.shape)
    assert "does not compile f" in raised(TraceError, ckad.jit(lambda x: g(x, "b")), X)


# --- C --------------------------------------------------------------------------------------------

SMOOTH = "void smooth(const double x[n], double out[n], int64_t n, double a)"


@pytest.fixture
def smooth(lib):
    made = ckad.primitive(lib.smooth, SMOOTH)
    made.defvjp(lambda ct, out, x, a: (smooth_of(made, ct, a), np.sum(ct * x)))
    return made


def smooth_of(made, x, a):
    return made(x, a)


def test_a_function_in_c(smooth):
    plain = 0.5 * X + 0.25 * (np.roll(X, 1) + np.roll(X, -1))
    np.testing.assert_allclose(smooth(X, 0.5), plain, rtol=1e-15)
    np.testing.assert_allclose(smooth(a=0.5, x=X), plain, rtol=1e-15)

    def run(x, a):
        for _ in range(25):
            x = smooth(x, a) + 0.1 * x**2
        return np.sum(x)

    for engine in ENGINES:
        ckad.testing.check_grads(run, (0.1 * X, 0.4), engine=engine)
        kept = ckad.value_and_grad(run, (0, 1), engine=engine)(0.1 * X, 0.4)
        again = ckad.value_and_grad(run, (0, 1), engine=engine, memory="25 KB")(0.1 * X, 0.4)
        assert str(kept) == str(again)
    ckad.testing.check_grads(run, (0.1 * X, 0.4), order=2)


def test_an_address_a_cfunc_and_a_capsule(lib, smooth):
    address = ctypes.cast(lib.smooth, ctypes.c_void_p).value
    assert ckad.primitive(address, SMOOTH)(X, 0.5).tobytes() == smooth(X, 0.5).tobytes()
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    capsule = new(address, b"void (double)", None)
    assert ckad.primitive(capsule, SMOOTH)(X, 0.5).tobytes() == smooth(X, 0.5).tobytes()

    @numba.cfunc("void(CPointer(float64), CPointer(float64), int64)")
    def double(x, out, n):
        for i in range(n):
            out[i] = 2 * x[i]

    f = ckad.primitive(double, "void double_(const double x[n], double out[n], int64_t n)")
    np.testing.assert_array_equal(ckad.jit(lambda x: f(x) + 1)(X), 2 * X + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_all_types_of_c(lib, engine):
    f = ckad.primitive(
        lib.mixed,
        "void mixed(const float x[n], const bool keep[n], const int64_t k[n],"
        " float out[n], int64_t count[1], int n)",
    )
    x, keep, k = X.astype(np.float32), np.array([True, False, True]), np.array([1, 2, 3])
    out, count = ckad.jit(lambda x: f(x * 1, keep, k), engine=engine)(x)
    np.testing.assert_array_equal(out, np.where(keep, x * k.astype(np.float32), 0))
    assert out.dtype == np.float32
    assert count.dtype == np.int64
    assert count.tolist() == [2]
    assert f(x, keep, k)[1].tolist() == [2]


def test_lengths_that_follow_from_others(lib):
    f = ckad.primitive(
        lib.differences,
        "void differences(const double a[n][m], double out[n - 1][m], int64_t n, int64_t m)",
    )
    a = np.arange(12.0).reshape(4, 3) ** 2
    np.testing.assert_array_equal(ckad.jit(lambda a: f(a) * 1)(a), np.diff(a, axis=0))
    np.testing.assert_array_equal(f(a.T), np.diff(a.T, axis=0))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_status_is_an_error(lib, engine):
    f = ckad.primitive(lib.refuses, "int refuses(const double x[n], double out[n], int64_t n)")

    def run(x):
        for _ in range(9):
            x = f(x) + 1
        return x

    said = raised(RaisedError, ckad.jit(run, engine=engine), X)
    assert "refuses returned 7" in said
    assert "step 5" in said
    assert "x = f(x) + 1" in said
    with pytest.raises(RaisedError, match="returned 7"):
        f(X + 9)


def test_arguments_that_do_not_fit_the_declaration(lib):
    two = ckad.primitive(
        ctypes.cast(lib.smooth, ctypes.c_void_p).value,
        "void f(const double x[n], const double y[n], double out[n], int64_t n)",
    )
    assert "n = 3" in raised(TracedShapeError, ckad.jit(lambda x: two(x, x[:2])), X)
    f = ckad.primitive(lib.smooth, "void smooth(const float x[n], float out[n], int n, float a)")
    assert "declared as float" in raised(TraceError, ckad.jit(lambda x: f(x, 0.5)), X)
    assert "of 1 axes" in raised(TraceError, f, np.ones((2, 2), np.float32), np.float32(0.5))
    with pytest.raises(TypeError, match="missing"):
        f(X)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("smooth(x, out)", "void f"),
        ("void f(const double x[n], int64_t n)", "no array is a result"),
        ("void f(const double x[n], double out[m], int64_t n)", "length m"),
        ("void f(const long x[n], double out[n])", "types double"),
        ("void f(const double *x, double out[n])", "is not 'double a'"),
        ("void f(const double x[n], double x[n])", "one name"),
        ("void f(const double x[n*2], double out[n])", "not a length"),
    ],
)
def test_declarations_that_are_none(lib, text, why):
    assert why in raised(TraceError, ckad.primitive, lib.smooth, text)


def test_what_is_no_function(lib):
    assert "declaration" in raised(TraceError, ckad.primitive, lib.smooth)
    assert "no function" in raised(TraceError, ckad.primitive, "text")
    assert "in C" in raised(TraceError, ckad.primitive, np.sin, SMOOTH)


# --- the cache ----------------------------------------------------------------------------------


def test_code_of_another_way_of_calling_is_not_reused(smooth):
    """In another process the same number may be a routine that is called in another way."""
    by_number = ckad.trace(lambda x: smooth(x, 0.5))(X)
    places = list(program._places(by_number))
    routine = next(r for r in ROUTINES if r.name in str(by_number))
    compiled, routine.compiled = routine.compiled, None
    try:
        assert list(program._places(by_number)) != places
    finally:
        routine.compiled = compiled
