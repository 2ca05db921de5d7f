"""Rule blocks of special functions: those of the C library, and SciPy's own compiled ones."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.rules import ir, vector_math
from ckad.rules.numbers.block import elementwise, like
from ckad.rules.registry import Over, Partial
from ckad.rules.vector_math import single
from ckad.rules.vector_math.zeta import emit_hurwitz_zeta
from ckad.tape.builder import Builder
from ckad.tape.ops import Op

#: What emitters call ``ckad_`` and a name is SciPy's function of so many doubles.
COMPILED = {"psi": 1}


def address(name: str) -> int:
    """Where SciPy's compiled function of doubles lies; loading SciPy takes a while."""
    from scipy.special import cython_special

    arguments = ", ".join(["double"] * COMPILED[name])
    for key in (name, f"__pyx_fuse_0{name}", f"__pyx_fuse_1{name}"):
        capsule = cython_special.__pyx_capi__.get(key)
        signature = b"" if capsule is None else _capsule("Name", ctypes.c_char_p)(capsule)
        if signature.decode().startswith(f"double ({arguments}, int "):
            return int(_capsule("Pointer", ctypes.c_void_p, ctypes.c_char_p)(capsule, signature))
    raise ImportError(f"this version of SciPy has no compiled {name} of {arguments}")


def _capsule(what: str, result: Any, *more: Any) -> Any:
    function = getattr(ctypes.pythonapi, f"PyCapsule_Get{what}")
    function.restype, function.argtypes = result, [ctypes.py_object, *more]
    return function


def _evaluate(name: str) -> Callable[..., np.ndarray]:
    """A function of SciPy on float64, whatever the arrays hold, as the engines compute it.

    SciPy is loaded when it is first called.
    """

    def evaluate(*arrays: np.ndarray) -> np.ndarray:
        import scipy.special

        result: np.ndarray = getattr(scipy.special, name)(
            *(np.asarray(x, np.float64) for x in arrays)
        )
        return result

    return evaluate


def _scipy(op: int, name: str, partials: Sequence[Partial | float | None]) -> None:
    """The rule block of an op that is a function of SciPy's."""
    COMPILED[name] = len(partials)
    elementwise(op, _evaluate(name), ir.libm(f"ckad_{name}"), partials)


def _unknown(b: Builder, out: int, *operands: int) -> int:
    """The derivative by an order or a shape has no formula: a result that needs it is NaN."""
    return like(b, out, math.nan)


# --- error functions ---------------------------------------------------------------------------


def _gauss(b: Builder, x: int, factor: float) -> int:
    return b.mul(like(b, x, factor), b.exp(b.neg(b.mul(x, x))))


def _inverse_gauss(b: Builder, out: int, factor: float) -> int:
    return b.mul(like(b, out, factor), b.exp(b.mul(out, out)))


ROOT_OF_PI = math.sqrt(math.pi)
elementwise(
    Op.ERF,
    _evaluate("erf"),
    vector_math.erf,
    [lambda b, out, x: _gauss(b, x, 2.0 / ROOT_OF_PI)],
    single=single.single_erf,
)
elementwise(
    Op.ERFC,
    _evaluate("erfc"),
    ir.libm("erfc"),
    [lambda b, out, x: _gauss(b, x, -2.0 / ROOT_OF_PI)],
)
_scipy(
    Op.ERFCX,
    "erfcx",
    [
        lambda b, out, x: b.sub(
            b.mul(b.add(x, x), out),
            like(b, x, 2.0 / ROOT_OF_PI),
        )
    ],
)
_scipy(Op.ERFINV, "erfinv", [lambda b, out, x: _inverse_gauss(b, out, 0.5 * ROOT_OF_PI)])
_scipy(Op.ERFCINV, "erfcinv", [lambda b, out, x: _inverse_gauss(b, out, -0.5 * ROOT_OF_PI)])


def _inverse_mills(b: Builder, out: int, x: int) -> Over:
    """exp(-x**2 / 2) / sqrt(2 pi) / ndtr(x), where neither underflows."""
    scaled = b.erfcx(b.mul(x, like(b, x, -math.sqrt(0.5))))
    return Over(b.mul(scaled, like(b, x, math.sqrt(0.5 * math.pi))))


_scipy(Op.LOG_NDTR, "log_ndtr", [_inverse_mills])

# --- gamma functions ---------------------------------------------------------------------------


def _psi(b: Builder, x: int) -> int:
    return b.polygamma(like(b, x, 0.0), x)


@ir.scalar_only
def _emit_lgamma(b: Any, x: Any) -> Any:
    """That of the C library, which is inf where SciPy's is -inf: at -inf."""
    at_end = b.fcmp_ordered("==", x, ir.constant(x, -math.inf))
    return b.select(at_end, x, ir.libm("lgamma")(b, x))


elementwise(
    Op.LGAMMA,
    _evaluate("gammaln"),
    _emit_lgamma,
    [lambda b, out, x: _psi(b, x)],
)
_scipy(Op.GAMMA, "gamma", [lambda b, out, x: b.mul(out, _psi(b, x))])
_scipy(Op.RGAMMA, "rgamma", [lambda b, out, x: b.neg(b.mul(out, _psi(b, x)))])


@ir.scalar_only
def _emit_polygamma(b: Any, n: Any, x: Any) -> Any:
    # psi, and for n >= 1: (-1)**(n + 1) n! zeta(n + 1, x)   (DLMF 5.15.2)
    is_psi = b.fcmp_ordered("==", n, ir.constant(n, 0.0))
    # zeta(1, x) is not finite: where psi is wanted, any other order will do
    order = b.select(is_psi, ir.constant(n, 2.0), b.fadd(n, ir.constant(n, 1.0)))
    sign = ir.libm("pow")(b, ir.constant(n, -1.0), order)
    factorial = ir.libm("tgamma")(b, order)
    series = b.fmul(b.fmul(sign, factorial), emit_hurwitz_zeta(b, order, x))
    return b.select(is_psi, ir.libm("ckad_psi")(b, x), series)


elementwise(
    Op.POLYGAMMA,
    _evaluate("polygamma"),
    _emit_polygamma,
    [None, lambda b, out, n, x: b.polygamma(b.add(n, like(b, n, 1.0)), x)],
)
_scipy(
    Op.BETALN,
    "betaln",
    [
        lambda b, out, x, y: b.sub(_psi(b, x), _psi(b, b.add(x, y))),
        lambda b, out, x, y: b.sub(_psi(b, y), _psi(b, b.add(x, y))),
    ],
)


def _power(b: Builder, a: int, log: Callable[[int], int], x: int, safe: float) -> int:
    """(a - 1) log(x), and 0 where a is 1."""
    one = like(b, a, 1.0)
    is_one = b.eq(a, one)
    exponent = b.mul(b.sub(a, one), log(b.select(is_one, like(b, x, safe), x)))
    return b.select(is_one, like(b, x, 0.0), exponent)


def _gamma_density(b: Builder, a: int, x: int) -> int:
    """x**(a - 1) exp(-x) / Gamma(a)   (DLMF 8.8.13)"""
    return b.exp(b.sub(b.sub(_power(b, a, b.log, x, 1.0), x), b.lgamma(a)))


def _beta_density(b: Builder, out: int, p: int, q: int, x: int) -> int:
    """x**(p - 1) (1 - x)**(q - 1) / B(p, q)   (DLMF 8.17.1)"""
    left = _power(b, p, b.log, x, 1.0)
    right = _power(b, q, lambda y: b.log1p(b.neg(y)), x, 0.0)
    return b.exp(b.sub(b.add(left, right), b.betaln(p, q)))


_scipy(Op.GAMMAINC, "gammainc", [_unknown, lambda b, out, a, x: _gamma_density(b, a, x)])
_scipy(Op.GAMMAINCC, "gammaincc", [_unknown, lambda b, out, a, x: b.neg(_gamma_density(b, a, x))])
_scipy(Op.BETAINC, "betainc", [_unknown, _unknown, _beta_density])


def _student_density(b: Builder, df: int, t: int) -> int:
    """(1 + t**2 / df)**(-(df + 1) / 2) / (sqrt(df) B(df / 2, 1 / 2))"""
    half, one = like(b, t, 0.5), like(b, t, 1.0)
    scale = b.add(b.betaln(b.mul(half, df), half), b.mul(half, b.log(df)))
    falling = b.mul(b.mul(half, b.add(df, one)), b.log1p(b.div(b.mul(t, t), df)))
    return b.exp(b.neg(b.add(scale, falling)))


_scipy(Op.STDTR, "stdtr", [_unknown, lambda b, out, df, t: _student_density(b, df, t)])


def _over(density: Callable[..., int], sign: float = 1.0) -> Callable[..., int]:
    """The derivative of an inverse: of the function it is given at the result."""
    return lambda b, out, *shapes: b.div(like(b, out, sign), density(b, out, *shapes[:-1]))


_by_share = [_unknown, _over(lambda b, x, a: _gamma_density(b, a, x))]
_scipy(Op.GAMMAINCINV, "gammaincinv", _by_share)
_scipy(
    Op.GAMMAINCCINV,
    "gammainccinv",
    [_unknown, _over(lambda b, x, a: _gamma_density(b, a, x), -1.0)],
)
_scipy(
    Op.BETAINCINV,
    "betaincinv",
    [_unknown, _unknown, _over(lambda b, x, p, q: _beta_density(b, x, p, q, x))],
)
_scipy(Op.STDTRIT, "stdtrit", [_unknown, _over(lambda b, t, df: _student_density(b, df, t))])

# --- exponential integrals -----------------------------------------------------------------------


def _exponential(b: Builder, x: int) -> int:
    """exp(-x) / x"""
    return b.div(b.exp(b.neg(x)), x)


def _lower_order(b: Builder, out: int, n: int, x: int) -> int:
    """-E(n - 1, x), of the orders 0 and -1 as functions that need no routine   (DLMF 8.19.13)"""
    one = like(b, n, 1.0)
    first = _exponential(b, x)
    before = b.mul(first, b.div(b.add(one, x), x))
    lower = b.expn(b.maximum(b.sub(n, one), one), x)
    rest = b.select(b.lt(n, like(b, n, 2.0)), first, lower)
    return b.neg(b.select(b.lt(n, one), before, rest))


_scipy(Op.EXPI, "expi", [lambda b, out, x: b.div(b.exp(x), x)])
_scipy(Op.EXP1, "exp1", [lambda b, out, x: b.neg(_exponential(b, x))])
_scipy(Op.EXPN, "expn", [_unknown, _lower_order])

# --- elliptic integrals: m is the square of the modulus (DLMF 19.4) ------------------------------
# D(m) = (K(m) - E(m)) / m, by a routine, has no difference where m is small; its own derivative,
# and those of incomplete integrals by m, have one, and are NaN where m is 0.


def _evaluate_d(m: np.ndarray) -> np.ndarray:
    import scipy.special

    result: np.ndarray = scipy.special.elliprd(0.0, 1.0 - np.asarray(m, np.float64), 1.0) / 3.0
    return result


@ir.scalar_only
def _emit_d(b: Any, m: Any) -> Any:
    zero, one = ir.constant(m, 0.0), ir.constant(m, 1.0)
    integral = ir.libm("ckad_elliprd")(b, zero, b.fsub(one, m), one)
    return b.fdiv(integral, ir.constant(m, 3.0))


def _by_m(b: Builder, first: int, d: int, m: int) -> int:
    """(K - D) / (2 (1 - m)), the derivative of K(m)"""
    one = like(b, m, 1.0)
    return b.mul(like(b, m, 0.5), b.div(b.sub(first, d), b.sub(one, m)))


def _of_k(b: Builder, out: int, p: int) -> int:
    """By p = 1 - m."""
    m = b.sub(like(b, p, 1.0), p)
    return b.neg(_by_m(b, out, b.ellipd(m), m))


def _of_d(b: Builder, out: int, m: int) -> int:
    half = like(b, m, 0.5)
    k = b.ellipkm1(b.sub(like(b, m, 1.0), m))
    return b.div(b.sub(_by_m(b, k, out, m), b.mul(half, out)), m)


COMPILED["elliprd"] = 3
_scipy(Op.ELLIPKM1, "ellipkm1", [_of_k])
_scipy(Op.ELLIPE, "ellipe", [lambda b, out, m: b.mul(like(b, m, -0.5), b.ellipd(m))])
elementwise(Op.ELLIPD, _evaluate_d, _emit_d, [_of_d])


def _root(b: Builder, angle: int, m: int) -> int:
    """sqrt(1 - m sin(angle)**2)"""
    s = b.sin(angle)
    return b.sqrt(b.sub(like(b, m, 1.0), b.mul(m, b.mul(s, s))))


def _first_by_m(b: Builder, out: int, angle: int, m: int) -> int:
    """E / (2 m (1 - m)) - F / (2 m) - sin(2 angle) / (4 (1 - m) sqrt(...))   (DLMF 19.4.5)"""
    half, one = like(b, m, 0.5), like(b, m, 1.0)
    rest = b.sub(one, m)
    sides = b.div(b.mul(half, b.sin(b.add(angle, angle))), b.mul(rest, _root(b, angle, m)))
    whole = b.div(b.sub(b.div(b.ellipeinc(angle, m), rest), out), m)
    return b.mul(half, b.sub(whole, sides))


def _second_by_m(b: Builder, out: int, angle: int, m: int) -> int:
    """(E - F) / (2 m)"""
    return b.mul(like(b, m, 0.5), b.div(b.sub(out, b.ellipkinc(angle, m)), m))


_scipy(
    Op.ELLIPKINC,
    "ellipkinc",
    [lambda b, out, angle, m: b.div(like(b, m, 1.0), _root(b, angle, m)), _first_by_m],
)
_scipy(Op.ELLIPEINC, "ellipeinc", [lambda b, out, angle, m: _root(b, angle, m), _second_by_m])

# --- Bessel functions: derivatives by their neighbours (DLMF 10.6.1, 10.29.1) --------------------


def _neighbours(op: int, b: Builder, v: int, x: int) -> tuple[int, int]:
    one = like(b, v, 1.0)
    return b.emit(op, (b.sub(v, one), x)), b.emit(op, (b.add(v, one), x))


def _half(b: Builder, x: int) -> int:
    return b.mul(like(b, x, 0.5), x)


def _cylinder(op: int, name: str) -> None:
    def partial(b: Builder, out: int, v: int, x: int) -> int:
        return _half(b, b.sub(*_neighbours(op, b, v, x)))

    _scipy(op, name, [_unknown, partial])


def _modified(op: int, name: str, sign: int, scaling: Callable[[Builder, int], int] | None) -> None:
    """``sign`` of the neighbours; the logarithmic derivative of what a function is scaled by."""

    def partial(b: Builder, out: int, v: int, x: int) -> int:
        mean = _half(b, b.add(*_neighbours(op, b, v, x)))
        plain = mean if sign > 0 else b.neg(mean)
        return plain if scaling is None else b.add(plain, b.mul(scaling(b, x), out))

    _scipy(op, name, [_unknown, partial])


_cylinder(Op.BESSEL_J, "jv")
_cylinder(Op.BESSEL_Y, "yv")
_modified(Op.BESSEL_I, "iv", 1, None)
_modified(Op.BESSEL_IE, "ive", 1, lambda b, x: b.neg(b.sign(x)))
_modified(Op.BESSEL_K, "kv", -1, None)
_modified(Op.BESSEL_KE, "kve", -1, lambda b, x: like(b, x, 1.0))
