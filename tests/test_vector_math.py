"""The vector mathematics: errors against mpmath in ulp, special values, and bits per lane count.

One ulp is the distance of the two doubles around the exact result.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from llvmlite import ir

import ckad
from ckad.engines import flags
from ckad.rules import vector_math
from ckad.rules.vector_math import single

DOUBLE, I64 = ir.DoubleType(), ir.IntType(64)
LANES = 8
INF, NAN = np.inf, np.nan
MAX, TINY, SUBNORMAL = 1.7976931348623157e308, 2.2250738585072014e-308, 5e-324


class Function(NamedTuple):
    """A row of the table: the exact function, the stated bound in ulp, where points are dense."""

    exact: Callable[..., Any]
    ulp: float
    ranges: tuple[tuple[float, float], ...]
    near: tuple[float, ...]  # points around which the bits are walked


def _log_to(base: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.log(x) / mpmath.log(base)


def _power_of_two(x: Any) -> Any:
    return mpmath.mpf(2) ** x


_HALF_PIS = tuple(float(n * mpmath.pi / 2) for n in (1, 2, 3, 7, 355, 101_921, 2**29))
_LOGARITHM = ((0.5, 2.0), (0.0, 100.0))
_CIRCLE = ((-7.0, 7.0), (-1e5, 1e5), (-(2.0**30), 2.0**30), (-1e10, 1e10))
FUNCTIONS = {
    "exp": Function(mpmath.exp, 1.0, ((-746, 710), (-1, 1)), (709.78, -708.4, -745.13)),
    "expm1": Function(mpmath.expm1, 1.0, ((-40, 710), (-1, 1)), (709.78, 0.3466, -37.0)),
    "exp2": Function(
        lambda x: mpmath.mpf(2) ** x, 1.0, ((-1076, 1024), (-1, 1)), (1024.0, -1074.0)
    ),
    "log": Function(mpmath.log, 1.0, _LOGARITHM, (1.0, 2.0**0.5, TINY)),
    "log1p": Function(mpmath.log1p, 1.0, ((-1, 2), (0, 1e18)), (2.0**0.5 - 1, -0.293, -1.0)),
    "log2": Function(_log_to(2), 1.0, _LOGARITHM, (1.0, 2.0**0.5, 2.0**-1030)),
    "log10": Function(_log_to(10), 1.0, _LOGARITHM, (1.0, 2.0**0.5, 1000.0)),
    "sin": Function(mpmath.sin, 1.0, _CIRCLE, _HALF_PIS),
    "cos": Function(mpmath.cos, 1.0, _CIRCLE, _HALF_PIS),
    "tan": Function(mpmath.tan, 1.0, _CIRCLE, _HALF_PIS),
    "sinh": Function(mpmath.sinh, 1.0, ((-711, 711), (-3, 3), (15, 25)), (710.475, 0.3466)),
    "cosh": Function(mpmath.cosh, 1.0, ((-711, 711), (-3, 3), (15, 25)), (710.475, 0.3466)),
    "tanh": Function(mpmath.tanh, 1.0, ((-20, 20), (-1, 1)), (0.1733, 18.7, 22.0)),
    "erf": Function(mpmath.erf, 1.25, ((-6, 6), (-1, 1)), (0.96, 1.0, 5.9)),
    "pow": Function(mpmath.power, 1.5, (), ()),
    "hypot": Function(mpmath.hypot, 1.0, (), ()),
}
TWO_OPERANDS = ("pow", "hypot")
ONE_OPERAND = [name for name in FUNCTIONS if name not in TWO_OPERANDS]
NEEDS_POSITIVE = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0}

# --- machine code ------------------------------------------------------------------------------


def _loop(module: ir.Module, name: str, emit: Any, n_operands: int, lanes: int) -> None:
    """A function (n, result, operands): ``emit`` applied to ``lanes`` elements at a time."""
    pointer = DOUBLE.as_pointer()
    type = ir.FunctionType(ir.VoidType(), [I64, pointer, *[pointer] * n_operands])
    function = ir.Function(module, type, name)
    n, result, *operands = function.args
    entry, head, body, done = (function.append_basic_block() for _ in range(4))
    ir.IRBuilder(entry).branch(head)
    b = ir.IRBuilder(head)
    at = b.phi(I64)
    at.add_incoming(ir.Constant(I64, 0), entry)
    b.cbranch(b.icmp_signed("<", at, n), body, done)
    b.position_at_end(body)
    several = ir.VectorType(DOUBLE, lanes) if lanes > 1 else DOUBLE
    places = [b.bitcast(b.gep(p, [at]), several.as_pointer()) for p in (result, *operands)]
    b.store(emit(b, *(b.load(p, align=8) for p in places[1:])), places[0], align=8)
    at.add_incoming(b.add(at, ir.Constant(I64, lanes)), b.block)
    b.branch(head)
    ir.IRBuilder(done).ret_void()


@functools.cache
def compiled(name: str, lanes: int) -> Callable[..., np.ndarray]:
    """A function of the package on float64 arrays, ``lanes`` elements at a time."""
    n_operands = 2 if name.removeprefix("single_") in TWO_OPERANDS else 1
    module = ir.Module()
    emitter = getattr(single if name.startswith("single") else vector_math, name)
    _loop(module, "run", emitter, n_operands, lanes)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    code = llvm.parse_assembly(str(module))
    code.verify()
    # no vectorisation of the scalar loop: it is to be what it says
    tuning = llvm.create_pipeline_tuning_options(3)
    tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(code, builder)
    engine = llvm.create_mcjit_compiler(code, machine)
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (n_operands + 1))
    run = signature(engine.get_function_address("run"))

    def call(*operands: Any) -> np.ndarray:
        n = np.size(operands[0])
        whole = -(-n // lanes) * lanes
        padded = [np.append(np.asarray(x, float), np.ones(whole - n)) for x in operands]
        result = np.empty(whole)
        run(whole, result.ctypes.data, *(x.ctypes.data for x in padded))
        return result[:n]

    call.engine = engine  # type: ignore[attr-defined]  # which owns the machine code
    return call


# --- points and errors -------------------------------------------------------------------------


def random_bits(rng: np.random.Generator, n: int) -> np.ndarray:
    """Doubles with all bit patterns alike, so with all exponents alike; no NaN."""
    x = rng.integers(-(2**63), 2**63 - 1, n, dtype=np.int64).view(np.float64)
    return x[~np.isnan(x)]


def points(name: str, n: int) -> np.ndarray:
    """About n points of each kind."""
    f, rng = FUNCTIONS[name], np.random.default_rng(crc32(name.encode()))
    steps = np.unique(np.concatenate([np.arange(8), 2 ** np.arange(3, 45)]))
    around = [np.int64(np.float64(x).view(np.int64)) + s for x in f.near for s in (steps, -steps)]
    parts = [
        random_bits(rng, n),
        rng.integers(0, 2**52, n // 4).view(np.float64),  # subnormal
        np.exp(rng.uniform(-45.0, 7.0, n)) * rng.choice([-1.0, 1.0], n),
        1.0 + rng.choice([-1.0, 1.0], n // 4) * 2.0 ** rng.uniform(-52.0, -1.0, n // 4),
        *(rng.uniform(low, high, n) for low, high in f.ranges),
        *(a.astype(np.int64).view(np.float64) for a in around),
    ]
    x = np.concatenate(parts)
    return x[x > NEEDS_POSITIVE.get(name, -INF)]


def power_points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents whose powers are all over the range of float64."""
    rng = np.random.default_rng(0)
    exponent = rng.uniform(-746.0, 710.0, n)
    bases = [
        np.exp(rng.uniform(-745.0, 709.0, n)),
        rng.uniform(0.5, 2.0, n),
        1.0 + rng.choice([-1.0, 1.0], n) * 2.0 ** rng.uniform(-52.0, -1.0, n),
        rng.integers(1, 2**52, n).view(np.float64),
    ]
    pairs = [(x, exponent / np.log(x)) for x in bases]
    anywhere = np.abs(random_bits(rng, n))
    pairs.append((anywhere, rng.uniform(-3.0, 3.0, anywhere.size)))
    pairs.append((-rng.integers(1, 60, n).astype(float), rng.integers(-70, 70, n).astype(float)))
    x, y = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    kept = np.isfinite(x) & np.isfinite(y)
    return x[kept], y[kept]


def ulp_error(got: float, exact: Any) -> float:
    """The error in ulp of the exact result; infinity stands for 2**1024."""
    if np.isnan(got):
        return INF
    exponent = mpmath.frexp(exact)[1] if exact else -1074
    ulp = mpmath.ldexp(1, min(max(exponent - 53, -1074), 971))
    limit = mpmath.ldexp(1, 1024)
    if abs(exact) >= limit:
        exact = mpmath.sign(exact) * limit
    value = mpmath.mpf(float(got)) if np.isfinite(got) else np.sign(got) * limit
    return float(abs(value - exact) / ulp)


def largest_error(name: str, operands: tuple[np.ndarray, ...]) -> tuple[float, tuple[float, ...]]:
    """The largest error in ulp over the finite points, and where it is."""
    results, worst = compiled(name, LANES)(*operands), (0.0, ())
    with mpmath.workprec(120):
        for got, *at in zip(results, *operands, strict=True):
            if np.all(np.isfinite(at)):
                exact = FUNCTIONS[name].exact(*(mpmath.mpf(float(x)) for x in at))
                worst = max(worst, (ulp_error(got, exact), tuple(map(float, at))))
    return worst


def sides(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all sizes, beside others and beside such as are nearly as large."""
    rng = np.random.default_rng(3)
    x = np.concatenate([random_bits(rng, n), rng.integers(0, 2**52, n).view(np.float64)])
    with np.errstate(over="ignore"):
        near = [x * 2.0 ** rng.uniform(-55.0, 2.0, x.size), x * rng.uniform(0.5, 2.0, x.size)]
    return np.concatenate([x, x, x]), np.concatenate([rng.permutation(x), *near])


def operands_of(name: str, n: int) -> tuple[np.ndarray, ...]:
    if name in TWO_OPERANDS:
        return power_points(n) if name == "pow" else sides(n)
    return (points(name, n),)


# --- tests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name):
    error, at = largest_error(name, operands_of(name, 1500))
    assert error <= FUNCTIONS[name].ulp, at


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, 5.0, 6.0])
def test_small_powers_are_rounded_once(exponent):
    x = random_bits(np.random.default_rng(2), 2000)
    root = 2.0 ** (1024 / exponent)
    x = np.append(x, np.linspace(-2.0, 2.0, 500) * root)
    assert largest_error("pow", (x, np.full_like(x, exponent)))[0] <= 1.5
    x = x[np.abs(x) > 1e-290 ** (1 / exponent)]  # below, what rounding loses is lost itself
    error, at = largest_error("pow", (x, np.full_like(x, exponent)))
    assert error <= 0.5001, at


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_at_many_points(name):
    error, at = largest_error(name, operands_of(name, 25_000))
    print(f"{name}: {error:.3f} ulp at {at}")
    assert error <= FUNCTIONS[name].ulp, at


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_the_number_of_lanes(name):
    operands = operands_of(name, 2000)
    special = SPECIAL if name not in TWO_OPERANDS else BASES_AND_EXPONENTS
    operands = tuple(np.append(x, s) for x, s in zip(operands, special, strict=True))
    one = compiled(name, 1)(*operands).view(np.int64)
    for lanes in (2, 3, LANES) if name in ("sin", "pow") else (LANES,):
        np.testing.assert_array_equal(compiled(name, lanes)(*operands).view(np.int64), one)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_through_float64(name):
    """Engines evaluate a float32 in float64 and round: at most 1 ulp of float32."""
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**31), 2**31 - 1, 300, dtype=np.int32).view(np.float32)
    x = np.append(x[np.isfinite(x)], rng.uniform(-9.0, 9.0, 300).astype(np.float32))
    x = x[x > NEEDS_POSITIVE.get(name, 0.0 if name == "pow" else -INF)]
    both = (x, rng.uniform(-9, 9, x.size).astype(np.float32))
    operands = both if name in TWO_OPERANDS else (x,)
    with np.errstate(over="ignore", under="ignore"):
        results = compiled(name, LANES)(*operands).astype(np.float32)
    with mpmath.workprec(120):
        for got, *at in zip(results, *operands, strict=True):
            exact = FUNCTIONS[name].exact(*(mpmath.mpf(float(v)) for v in at))
            if abs(exact) < 3.4e38:
                exponent = mpmath.frexp(exact)[1] if exact else -149
                ulp = mpmath.ldexp(1, max(exponent - 24, -149))
                assert abs(mpmath.mpf(float(got)) - exact) <= ulp, at
            else:
                assert abs(got) >= np.float32(3.4e38), at


# --- those of float32 ---------------------------------------------------------------------------

SINGLES = ["exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf"]


def singles_of(name: str, n: int) -> np.ndarray:
    """Numbers of float32 of all sizes, and n near those where the results are neither 0 nor 1."""
    rng = np.random.default_rng(crc32(name.encode()))
    x = rng.integers(-(2**31), 2**31 - 1, n, dtype=np.int32).view(np.float32)
    near = [rng.uniform(low, high, n) for low, high in ((-9.0, 9.0), (-104.0, 89.0), (-0.5, 0.5))]
    edges = [88.72283, 88.72284, -103.97208, -103.97209, -0.99999994, 2.0**-149, 2.0**-126]
    half_pis = np.arange(1, 2000) * (np.pi / 2)  # and their neighbours
    edges = [*edges, *np.nextafter(np.float32(half_pis), np.float32(0)), *half_pis, 2.0**30]
    x = np.concatenate([x[np.isfinite(x)], *near, edges]).astype(np.float32)
    return x[x > NEEDS_POSITIVE.get(name, -INF)].astype(float)


def single_errors(name: str, x: np.ndarray, results: np.ndarray) -> list[float]:
    """The errors in ulp of float32; infinity stands for 2**128."""
    found = []
    with mpmath.workprec(120):
        for at, got in zip(x, results, strict=True):
            exact = FUNCTIONS[name].exact(mpmath.mpf(float(at)))
            exponent = mpmath.frexp(exact)[1] if exact else -149
            ulp = mpmath.ldexp(1, min(max(exponent - 24, -149), 104))
            value = mpmath.mpf(float(got)) if np.isfinite(got) else mpmath.ldexp(1, 128)
            found.append(float(abs(value - min(exact, mpmath.ldexp(1, 128))) / ulp))
    return found


@pytest.mark.parametrize("name", SINGLES)
def test_functions_of_float32(name):
    x = singles_of(name, 1500)
    with np.errstate(over="ignore", under="ignore"):
        results = compiled(f"single_{name}", LANES)(x).astype(np.float32)
        one = compiled(f"single_{name}", 1)(x).astype(np.float32)
    np.testing.assert_array_equal(one.view(np.int32), results.view(np.int32))
    errors = single_errors(name, x, results)
    assert max(errors) <= 0.51, x[int(np.argmax(errors))]


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("name", SINGLES)
def test_limits_of_float32(name, lanes):
    with np.errstate(over="ignore"):
        got = compiled(f"single_{name}", lanes)(np.array([0.0, -0.0, INF, -INF, NAN]))
        assert_same(got.astype(np.float32), np.array(LIMITS[name]))
    if name in NEEDS_POSITIVE:
        below = compiled(f"single_{name}", lanes)(np.array([NEEDS_POSITIVE[name], -1.5]))
        assert_same(below, np.array([-INF, NAN]))


@pytest.mark.skipif(not flags.AVAILABLE, reason="the processor's flags are not known here")
@pytest.mark.parametrize("name", SINGLES)
def test_what_is_finite_in_float32_raises_no_flag(name):
    f = compiled(f"single_{name}", LANES)
    for at in singles_of(name, 30):
        with flags.watching() as watch:
            flags.begin()
            (result,) = f([at])
            flags.note()
        assert watch.seen == (not np.isfinite(result)), (at, result)


@pytest.mark.parametrize("exponent", [2, 3, 4, 5])
def test_small_powers_of_float32(exponent):
    """By one number, as programs have them: a product, and the engines agree."""
    x = singles_of("exp", 200).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), exponent).astype(np.float32)
        for engine in ("native", "vm"):
            got = ckad.jit(lambda x: x**exponent, engine=engine)(x)
            np.testing.assert_array_max_ulp(got, exact, 1)
            assert np.mean(got != exact) < 0.01


# --- special values ----------------------------------------------------------------------------

SPECIAL = [[0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, SUBNORMAL, -SUBNORMAL, MAX, -MAX, -2.0]]
#: the results at 0, -0, inf, -inf, nan (C23, annex F.10)
LIMITS = {
    "exp": (1.0, 1.0, INF, 0.0, NAN),
    "expm1": (0.0, -0.0, INF, -1.0, NAN),
    "exp2": (1.0, 1.0, INF, 0.0, NAN),
    "log": (-INF, -INF, INF, NAN, NAN),
    "log1p": (0.0, -0.0, INF, NAN, NAN),
    "log2": (-INF, -INF, INF, NAN, NAN),
    "log10": (-INF, -INF, INF, NAN, NAN),
    "sin": (0.0, -0.0, NAN, NAN, NAN),
    "cos": (1.0, 1.0, NAN, NAN, NAN),
    "tan": (0.0, -0.0, NAN, NAN, NAN),
    "sinh": (0.0, -0.0, INF, -INF, NAN),
    "cosh": (1.0, 1.0, INF, INF, NAN),
    "tanh": (0.0, -0.0, 1.0, -1.0, NAN),
    "erf": (0.0, -0.0, 1.0, -1.0, NAN),
}


def assert_same(got: np.ndarray, expected: Any) -> None:
    """Equal, the sign of zeros included; any NaN for a NaN."""
    np.testing.assert_array_equal(got, expected)
    real = ~np.isnan(got)
    np.testing.assert_array_equal(np.signbit(got)[real], np.signbit(expected)[real])


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("name", ONE_OPERAND)
def test_limits(name, lanes):
    got = compiled(name, lanes)(np.array([0.0, -0.0, INF, -INF, NAN]))
    assert_same(got, np.array(LIMITS[name]))


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("name", ["expm1", "log1p", "sin", "tan", "sinh", "tanh"])
def test_tiny_arguments_come_back(name, lanes):
    x = np.array([SUBNORMAL, -SUBNORMAL, 3e-320, TINY, -1e-300, 1e-30])
    assert_same(compiled(name, lanes)(x), x)


def test_below_the_domain():
    for name in ("log", "log2", "log10"):
        assert np.all(np.isnan(compiled(name, LANES)(np.array([-SUBNORMAL, -1.0, -MAX]))))
    assert_same(compiled("log1p", LANES)(np.array([-1.0, -1.5])), np.array([-INF, NAN]))


def test_exact_results():
    n = np.arange(-1074.0, 1024.0)
    assert_same(compiled("exp2", LANES)(n), np.ldexp(1.0, n.astype(int)))
    assert_same(compiled("log2", LANES)(np.ldexp(1.0, n.astype(int))), n)
    n = np.arange(23.0)
    assert_same(compiled("log10", LANES)(10.0**n), n)
    bases, exponents = (a.ravel() for a in np.meshgrid(np.arange(-9.0, 10.0), np.arange(17.0)))
    exact = np.array([float(int(x) ** int(y)) for x, y in zip(bases, exponents, strict=True)])
    odd_zero = (bases == 0) & (exponents % 2 == 1)
    assert_same(compiled("pow", LANES)(bases, exponents)[~odd_zero], exact[~odd_zero])


def test_overflow_and_underflow():
    assert_same(compiled("exp", LANES)([709.782712893384, 709.7827128933841])[1:], np.array([INF]))
    assert compiled("exp", LANES)([709.782712893384])[0] < INF
    assert_same(compiled("exp", LANES)([-745.1, -745.2]), np.array([SUBNORMAL, 0.0]))
    assert_same(compiled("sinh", LANES)([MAX, -MAX, 710.5]), np.array([INF, -INF, INF]))
    assert_same(compiled("expm1", LANES)([MAX, -MAX, 709.8]), np.array([INF, -1.0, INF]))


_NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -2.5, INF, -INF, NAN]
_NUMBERS += [SUBNORMAL, -SUBNORMAL, MAX, -MAX, 2.0**53, 2.0**53 - 1, -(2.0**53) + 1, 1.0 - 2.0**-53]
BASES_AND_EXPONENTS = [a.ravel() for a in np.meshgrid(_NUMBERS, _NUMBERS)]


@pytest.mark.parametrize("lanes", [1, LANES])
def test_special_powers_are_those_of_c(lanes):
    x, y = BASES_AND_EXPONENTS
    with np.errstate(all="ignore"):
        expected = np.power(x, y)  # NumPy calls C's
    got = compiled("pow", lanes)(x, y)
    close = np.isclose(got, expected, rtol=4e-16, atol=0.0, equal_nan=True)
    np.testing.assert_array_equal(close, True)
    exact = (expected == 0.0) | np.isinf(expected) | (np.abs(expected) == 1.0)
    assert_same(got[exact], expected[exact])
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[~nan]), np.signbit(expected[~nan]))


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("name", ["hypot", "single_hypot"])
def test_special_lengths_are_those_of_c(name, lanes):
    x, y = BASES_AND_EXPONENTS
    if name == "single_hypot":
        x, y = (
            np.where(np.isinf(a), a, np.clip(a, -3e38, 3e38)).astype(np.float32).astype(float)
            for a in (x, y)
        )
    with np.errstate(all="ignore"):
        expected = np.hypot(x, y)
    np.testing.assert_allclose(compiled(name, lanes)(x, y), expected, rtol=3e-16, atol=0.0)


def test_huge_angles_in_one_lane_leave_the_others_alone():
    x = np.linspace(-3.0, 3.0, LANES)
    for name in ("sin", "cos", "tan"):
        among_huge = x.copy()
        among_huge[3] = 1e300
        f = compiled(name, LANES)
        assert_same(np.delete(f(among_huge), 3), np.delete(f(x), 3))


@pytest.mark.skipif(not flags.AVAILABLE, reason="the processor's flags are not known here")
@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_processor_notes_what_is_not_finite_and_nothing_else(name, lanes):
    f = compiled(name, lanes)
    special = np.array([*_NUMBERS, 709.7, 709.8, -750.0, 1e300, -1e300, 1e-200, 1e50, 1e17, -0.999])
    special = special[np.isfinite(special)]
    if name in TWO_OPERANDS:
        operands = tuple(a.ravel() for a in np.meshgrid(special, special))
    else:
        operands = (np.append(special, points(name, 30)),)
    for at in zip(*operands, strict=True):
        if np.all(np.isfinite(at)):
            with flags.watching() as watch:
                flags.begin()
                (result,) = f(*([x] for x in at))
                flags.note()
            assert watch.seen == (not np.isfinite(result)), (at, result)


def test_the_test_sees_a_wrong_result():
    assert ulp_error(1.0 + 2.0**-51, mpmath.mpf(1)) == 2.0
    assert ulp_error(INF, mpmath.ldexp(1, 1024)) == 0.0
    assert ulp_error(2 * SUBNORMAL, mpmath.mpf(SUBNORMAL)) == 1.0
    assert ulp_error(NAN, mpmath.mpf(1)) == INF


def test_one_definition_per_module_and_lane_count():
    module = ir.Module()
    for k in range(2):
        _loop(module, f"scalar{k}", vector_math.exp, 1, 1)
        _loop(module, f"vector{k}", vector_math.exp, 1, LANES)
    names = [f.name for f in module.functions if f.name.startswith("ckad_")]
    assert names == ["ckad_exp_v1", "ckad_exp_v8"]
