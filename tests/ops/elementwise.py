"""The elementwise rows of the case table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple
from zlib import crc32

import numpy as np
import scipy.special

from ckad.tape.ops import Op
from ckad.tape.types import Type

from .case import BOOL, F32, F64, I64, LETTERS, SHORT, Arrays, Case, code, one_row, shape_word

SHAPES = ((), (1,), (0,), (5,), (3, 4), (1300,), (37, 41))
Sampler = Callable[[np.random.Generator, Sequence[int]], Arrays]


def box(*intervals: tuple[float, float]) -> Sampler:
    """Each operand uniform in its interval."""
    return lambda rng, shape: tuple(np.asarray(rng.uniform(a, b, shape)) for a, b in intervals)


def off_zero(*intervals: tuple[float, float]) -> Sampler:
    """The same, with random signs."""

    def sample(rng: np.random.Generator, shape: Sequence[int]) -> Arrays:
        sizes = box(*intervals)(rng, shape)
        return tuple(x * rng.choice([-1.0, 1.0], shape) for x in sizes)

    return sample


def off_integers(rng: np.random.Generator, shape: Sequence[int]) -> Arrays:
    """Away from the jumps of floor, ceil, trunc and rint."""
    (off,) = off_zero((0.1, 0.4))(rng, shape)
    return (rng.integers(-3, 4, shape) + off,)


def no_ties(rng: np.random.Generator, shape: Sequence[int]) -> Arrays:
    return 0.2 * rng.integers(-9, 10, shape), 0.2 * rng.integers(-9, 10, shape) + 0.1


def quotients(rng: np.random.Generator, shape: Sequence[int]) -> Arrays:
    """x, y with x / y away from the integers, all four pairs of signs."""
    y = off_zero((0.7, 2.0))(rng, shape)[0]
    return y * off_integers(rng, shape)[0], y


def orders(rng: np.random.Generator, shape: Sequence[int]) -> Arrays:
    return np.asarray(rng.integers(0, 4, shape), F64), np.asarray(rng.uniform(0.6, 4.0, shape))


def shapes(*intervals: tuple[float, float]) -> Sampler:
    """Each operand in its interval; the shapes of a distribution, too, are at times 1."""

    def sample(rng: np.random.Generator, shape: Sequence[int]) -> Arrays:
        *first, x = box(*intervals)(rng, shape)
        return *(np.where(rng.random(shape) < 0.3, 1.0, a) for a in first), x

    return sample


class Function(NamedTuple):
    """``kinds``: letters of the element types it takes; ``ulp`` of float64 results."""

    numpy: Callable[..., np.ndarray]
    sample: Sampler
    ulp: float = 0.0
    kinds: str = "f"
    complex: bool = True
    floor: float = 0.0
    wrt: tuple[int, ...] | None = None


REAL, PAIR = box((-2.0, 2.0)), off_zero((0.3, 2.0), (0.3, 2.0))
ELEMENTWISE: dict[str, Function] = {
    "NEG": Function(np.negative, REAL, kinds="fi"),
    "ABS": Function(np.abs, off_zero((0.3, 2.0)), kinds="fi", complex=False),
    "SIGN": Function(np.sign, off_zero((0.3, 2.0)), kinds="fi", complex=False),
    "SQRT": Function(np.sqrt, box((0.2, 3.0))),
    "CBRT": Function(np.cbrt, off_zero((0.3, 3.0)), 2, complex=False),
    "EXP": Function(np.exp, REAL, 2),
    "EXPM1": Function(np.expm1, REAL, 2),
    "EXP2": Function(np.exp2, REAL, 2),
    "LOG": Function(np.log, box((0.2, 3.0)), 2),
    "LOG1P": Function(np.log1p, box((-0.6, 2.0)), 2),
    "LOG2": Function(np.log2, box((0.2, 3.0)), 2),
    "LOG10": Function(np.log10, box((0.2, 3.0)), 2),
    "SIN": Function(np.sin, box((-3.0, 3.0)), 2),
    "COS": Function(np.cos, box((-3.0, 3.0)), 2),
    "TAN": Function(np.tan, box((-1.2, 1.2)), 2),
    "ASIN": Function(np.arcsin, box((-0.8, 0.8)), 2),
    "ACOS": Function(np.arccos, box((-0.8, 0.8)), 2),
    "ATAN": Function(np.arctan, REAL, 2),
    "SINH": Function(np.sinh, REAL, 3),
    "COSH": Function(np.cosh, REAL, 3),
    "TANH": Function(np.tanh, REAL, 3),
    "ASINH": Function(np.arcsinh, REAL, 3),
    "ACOSH": Function(np.arccosh, box((1.4, 4.0)), 3),
    "ATANH": Function(np.arctanh, box((-0.8, 0.8)), 3),
    "ERF": Function(scipy.special.erf, REAL, 4),
    "ERFC": Function(scipy.special.erfc, REAL, 8, complex=False),
    "ERFCX": Function(scipy.special.erfcx, REAL, complex=False),
    "ERFINV": Function(scipy.special.erfinv, box((-0.9, 0.9)), complex=False),
    "ERFCINV": Function(scipy.special.erfcinv, box((0.1, 1.9)), complex=False),
    "LOG_NDTR": Function(scipy.special.log_ndtr, REAL, complex=False),
    "GAMMA": Function(scipy.special.gamma, box((0.4, 4.0)), complex=False),
    "RGAMMA": Function(scipy.special.rgamma, box((0.4, 4.0)), complex=False),
    "LGAMMA": Function(scipy.special.gammaln, box((0.4, 4.0)), 4, complex=False, floor=1.0),
    "ELLIPKM1": Function(scipy.special.ellipkm1, box((0.1, 0.9)), 8, complex=False),
    "ELLIPE": Function(scipy.special.ellipe, box((-2.0, 0.9)), 8, complex=False),
    "ELLIPD": Function(
        lambda m: scipy.special.elliprd(0.0, 1.0 - m, 1.0) / 3.0, box((0.2, 0.9)), 8, complex=False
    ),
    "EXPI": Function(scipy.special.expi, box((-3.0, 3.0)), 8, complex=False),
    "EXP1": Function(scipy.special.exp1, box((0.1, 4.0)), 8, complex=False),
    "FLOOR": Function(np.floor, off_integers, complex=False),
    "CEIL": Function(np.ceil, off_integers, complex=False),
    "TRUNC": Function(np.trunc, off_integers, complex=False),
    "RINT": Function(np.rint, off_integers, complex=False),
    "STOP": Function(lambda x: x, REAL, wrt=()),
    "NOT": Function(np.logical_not, REAL, kinds="b"),
    "ISNAN": Function(np.isnan, REAL),
    "ISINF": Function(np.isinf, REAL),
    "ADD": Function(np.add, PAIR, kinds="fi"),
    "SUB": Function(np.subtract, PAIR, kinds="fi"),
    "MUL": Function(np.multiply, PAIR, kinds="fi"),
    "DIV": Function(np.divide, PAIR),
    "SAFEDIV": Function(lambda x, y: x / np.where(x == 0, np.ones_like(y), y), PAIR),
    "FLOORDIV": Function(np.floor_divide, quotients, kinds="fi", complex=False),
    "MOD": Function(np.mod, quotients, kinds="fi", complex=False),
    "POW": Function(np.power, box((0.3, 2.0), (-2.0, 2.0)), 2),
    "ATAN2": Function(np.arctan2, PAIR, 2, complex=False),
    "HYPOT": Function(np.hypot, PAIR, 2, complex=False),
    "COPYSIGN": Function(np.copysign, PAIR, complex=False),
    "POLYGAMMA": Function(scipy.special.polygamma, orders, 64, complex=False, floor=1.0, wrt=(1,)),
    "BETALN": Function(scipy.special.betaln, box((0.4, 4.0), (0.4, 4.0)), complex=False),
    **{
        name: Function(f, sample, complex=False, wrt=(1,))
        for name, f, sample in (
            ("GAMMAINC", scipy.special.gammainc, shapes((0.6, 4.0), (0.3, 5.0))),
            ("GAMMAINCC", scipy.special.gammaincc, shapes((0.6, 4.0), (0.3, 5.0))),
            ("EXPN", scipy.special.expn, orders),
            ("GAMMAINCINV", scipy.special.gammaincinv, shapes((0.6, 4.0), (0.1, 0.9))),
            ("GAMMAINCCINV", scipy.special.gammainccinv, shapes((0.6, 4.0), (0.1, 0.9))),
            ("STDTRIT", scipy.special.stdtrit, shapes((0.6, 9.0), (0.1, 0.9))),
            ("STDTR", scipy.special.stdtr, shapes((0.6, 9.0), (-3.0, 3.0))),
            ("BESSEL_J", scipy.special.jv, orders),
            ("BESSEL_Y", scipy.special.yv, orders),
            ("BESSEL_I", scipy.special.iv, orders),
            ("BESSEL_IE", scipy.special.ive, orders),
            ("BESSEL_K", scipy.special.kv, orders),
            ("BESSEL_KE", scipy.special.kve, orders),
        )
    },
    "BETAINC": Function(
        scipy.special.betainc,
        shapes((0.6, 4.0), (0.6, 4.0), (0.1, 0.9)),
        complex=False,
        wrt=(2,),
    ),
    "BETAINCINV": Function(
        scipy.special.betaincinv,
        shapes((0.6, 4.0), (0.6, 4.0), (0.1, 0.9)),
        complex=False,
        wrt=(2,),
    ),
    "ELLIPKINC": Function(scipy.special.ellipkinc, box((0.2, 3.0), (0.2, 0.8)), complex=False),
    "ELLIPEINC": Function(scipy.special.ellipeinc, box((0.2, 3.0), (0.2, 0.8)), complex=False),
    "MAXIMUM": Function(np.maximum, no_ties, kinds="fi", complex=False),
    "MINIMUM": Function(np.minimum, no_ties, kinds="fi", complex=False),
    **{
        name: Function(f, no_ties, kinds="fib")
        for name, f in (
            ("EQ", np.equal),
            ("NE", np.not_equal),
            ("LT", np.less),
            ("LE", np.less_equal),
            ("GT", np.greater),
            ("GE", np.greater_equal),
        )
    },
    "AND": Function(np.bitwise_and, PAIR, kinds="ib"),
    "OR": Function(np.bitwise_or, PAIR, kinds="ib"),
    "XOR": Function(np.bitwise_xor, PAIR, kinds="ib"),
    # positive operands: a fused product must not be compared where the sum cancels
    "FMA": Function(lambda x, y, z: x * y + z, box((0.5, 2.0), (0.5, 2.0), (0.5, 2.0)), 2),
}


def rng_of(name: str) -> np.random.Generator:
    return np.random.default_rng(crc32(name.encode()))


def elementwise_cases() -> Iterator[Case]:
    for word, f in ELEMENTWISE.items():
        for letter in f.kinds:
            for dtype, shape in product(LETTERS[letter], SHAPES):
                name = f"{word}-{SHORT[dtype]}-{shape_word(shape)}"
                rng = rng_of(name)
                arrays = f.sample(rng, shape)
                if dtype not in (F64, F32):
                    arrays = tuple(_integers(rng, shape, dtype) for _ in arrays)
                yield _case(word, f, name, tuple(np.asarray(a, dtype) for a in arrays))


def _integers(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    numbers = rng.integers(-9, 10, shape)
    return np.asarray(numbers % 2 == 0) if dtype == BOOL else np.asarray(numbers)


def _case(word: str, f: Function, name: str, arrays: Arrays, **changes: bool) -> Case:
    op = Op[word]
    fields = {"ulp": f.ulp, "floor": f.floor, "wrt": f.wrt, "complex": f.complex} | changes
    return Case(name, op, arrays, one_row(op), f.numpy, **fields)


# --- special values: only the result itself is compared ----------------------------------------

INF, NAN = np.inf, np.nan
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-20, 1e20]
EXTREME = {F64: [5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308], F32: [1e-45, -1e-40, 3e38, -3e38]}
SPECIAL_INTEGERS = [0, 1, -1, 2, -2, 7, -7, 2**62, -(2**63), 2**63 - 1]
#: inputs at which SciPy and the C library do not agree, or results have no use
LEFT_OUT = {"LGAMMA": [-INF, 5e-324, -5e-324, 1e-310]}
ZEROS_OF_ANY_SIGN = {"MAXIMUM", "MINIMUM"}


def special_cases() -> Iterator[Case]:
    for word, f in ELEMENTWISE.items():
        if word in ("POLYGAMMA", "FMA", "BETALN") or (f.wrt and f.wrt != (0,)):
            continue
        n = len(f.sample(np.random.default_rng(0), ()))
        for letter in f.kinds.replace("b", ""):
            for dtype in LETTERS[letter]:
                numbers = SPECIAL_INTEGERS if dtype == I64 else [*SPECIAL, *EXTREME[dtype]]
                left_out = LEFT_OUT.get(word, [])
                kept = np.array([x for x in numbers if x not in left_out], dtype)
                arrays = tuple(a.ravel() for a in np.meshgrid(*[kept] * n))
                name, zeros = f"{word}-{SHORT[dtype]}-special", word not in ZEROS_OF_ANY_SIGN
                yield _case(word, f, name, arrays, smooth=False, signed_zeros=zeros)


def negative_lgamma() -> Iterator[Case]:
    x = np.array([-0.3, -1.6, -2.4, -5.5])
    yield _case("LGAMMA", ELEMENTWISE["LGAMMA"], "LGAMMA-f64-negative", (x,))


def negative_bases() -> Iterator[Case]:
    x, y = np.array([-1.5, -2.0, -0.5, -1.0]), np.array([2.0, 3.0, -2.0, 1.0])
    f = ELEMENTWISE["POW"]._replace(wrt=(0,), complex=False)
    yield _case("POW", f, "POW-f64-negative-base", (x, y))


# --- choice, conversion, indices ---------------------------------------------------------------


def select_cases() -> Iterator[Case]:
    for dtype, shape in product((F64, F32, I64, BOOL), SHAPES):
        name = f"SELECT-{SHORT[dtype]}-{shape_word(shape)}"
        rng = rng_of(name)
        condition = np.asarray(rng.random(shape) < 0.5)
        pair = PAIR(rng, shape)
        if dtype in (I64, BOOL):
            pair = tuple(_integers(rng, shape, dtype) for _ in pair)
        arrays = (condition, *(np.asarray(a, dtype) for a in pair))
        yield Case(name, Op.SELECT, arrays, one_row(Op.SELECT), np.where)
    special = np.array([NAN, -0.0, INF, 0.0])
    arrays = (np.array([True, False, True, False]), special, special[::-1].copy())
    yield Case("SELECT-f64-special", Op.SELECT, arrays, one_row(Op.SELECT), np.where, smooth=False)


CONVERTED = {
    F64: np.array([0.0, -0.0, 0.1, -2.7, 2.7, 1e10, 1e-30, 16777217.0, -5.5]),
    F32: np.array([0.0, -0.0, 0.1, -2.7, 2.7, 1e10, 1e-30, 16777216.0, -5.5], F32),
    I64: np.array([0, 1, -1, 7, -8, 2**40 + 1, 2**53 + 1, 3, 16777217]),
    BOOL: np.array([True, False, False, True, True, False, True, False, True]),
}
#: to float32: overflow, underflow, the halfway cases of rounding
ROUNDED = np.array([NAN, INF, -INF, 1e300, -1e39, 1e-60, 1e-40, 1.0 + 2.0**-24, 1.0 + 3 * 2.0**-24])


def convert_cases() -> Iterator[Case]:
    for source, target in product(CONVERTED, repeat=2):
        name = f"CONVERT-{SHORT[source]}-to-{SHORT[target]}"
        yield _conversion(name, CONVERTED[source], target, smooth=False)
        floats = {source, target} <= {F64, F32}
        x = rng_of(name).uniform(-2, 2, 1300).astype(source)
        yield _conversion(f"{name}-long", x, target, smooth=floats)
        if floats:
            with np.errstate(over="ignore"):
                special = ROUNDED.astype(source)
            yield _conversion(f"{name}-special", special, target, smooth=False)
    yield _conversion("CONVERT-nan-to-bool", np.array([NAN, -0.0, 5e-324]), BOOL, smooth=False)


def _conversion(name: str, x: np.ndarray, target: np.dtype, smooth: bool) -> Case:
    build = one_row(Op.CONVERT, (), Type(code(target), x.shape))

    def expected(x: np.ndarray) -> np.ndarray:
        return x if x.dtype.kind == "c" else x.astype(target)

    return Case(name, Op.CONVERT, (x,), build, expected, smooth=smooth)


def wrap_cases() -> Iterator[Case]:
    for shape in SHAPES:
        x = rng_of(f"wrap{shape}").integers(-7, 7, shape)
        yield Case(
            f"WRAP-{shape_word(shape)}",
            Op.WRAP,
            (np.asarray(x),),
            one_row(Op.WRAP, (7,)),
            lambda x: np.where(x < 0, x + 7, x),
        )


def all_elementwise() -> Iterator[Case]:
    for family in (
        elementwise_cases,
        special_cases,
        negative_lgamma,
        negative_bases,
        select_cases,
        convert_cases,
        wrap_cases,
    ):
        yield from family()
