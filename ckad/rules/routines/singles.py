"""Single random numbers by machine code, where a generator's state is a variable of a program.

single(state, a, b; kind, law) -> [state after it, number], on the words that `draw` takes and
gives, to the same bits. What is not of these kinds and laws is drawn by NumPy and Python, which
takes twenty times as long.

M. Matsumoto and T. Nishimura, Mersenne Twister (ACM TOMACS 8, 1998), figure 1; M. O'Neill, PCG
(2014), 6.3.4, XSL RR; D. Lemire, Fast random integer generation in an interval (2019), algorithm 5;
G. Marsaglia and T. A. Bray, A convenient method for generating normal variables (1964).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ckad.errors import TapeError
from ckad.kernel import kernel
from ckad.rules.routines.memory import compiled, copy, doubles, from_code, integers
from ckad.tape.types import DType, Type

#: Laws: in [0, 1), between bounds, one of ``b`` integers from ``a`` on, of a mean and a scale.
UNIT, BETWEEN, INTEGER, NORMAL, EXPONENTIAL, BY_RATE, CIRCULAR = range(7)
#: Kinds of generators, by their places in ``draws.KINDS``, and how many words a state has.
PCG, NUMPY, PYTHON = 0, 2, 3
N_WORDS = {PCG: 10, NUMPY: 627, PYTHON: 627}
#: Integers are told apart by one word.
_MOST = (1 << 32) - 2

# --- which calls they are -------------------------------------------------------------------------

_Bounds = Callable[..., "tuple[Any, Any]"]


def _none() -> tuple[Any, Any]:
    return 0.0, 1.0


def _up_to(low: Any, high: Any = None) -> tuple[Any, Any]:
    return (0, low) if high is None else (low, high - low)


def _including(low: Any, high: Any) -> tuple[Any, Any]:
    return low, high - low + 1


def _among(items: Any) -> tuple[Any, Any]:
    if isinstance(items, range):
        return items.start, len(items) if items.step == 1 else 0
    return 0, items


def _two(a: Any = 0.0, b: Any = 1.0) -> tuple[Any, Any]:
    return a, b


def _scale(scale: Any = 1.0) -> tuple[Any, Any]:
    return 0.0, scale


_OF_NUMPY: dict[str, tuple[int, _Bounds]] = {
    **dict.fromkeys(("random_sample", "random", "rand"), (UNIT, _none)),
    "uniform": (BETWEEN, _two),
    "randint": (INTEGER, _up_to),
    "choice": (INTEGER, _among),
    **dict.fromkeys(("randn", "standard_normal"), (NORMAL, _none)),
    "normal": (NORMAL, _two),
    "exponential": (EXPONENTIAL, _scale),
    "standard_exponential": (EXPONENTIAL, _none),
}
_LAWS: dict[int, dict[str, tuple[int, _Bounds]]] = {
    NUMPY: _OF_NUMPY,
    PCG: {
        "random": (UNIT, _none),
        "uniform": (BETWEEN, _two),
        "integers": (INTEGER, _up_to),
    },
    PYTHON: {
        "random": (UNIT, _none),
        "uniform": (BETWEEN, lambda a, b: (a, b)),
        "randint": (INTEGER, _including),
        "randrange": (INTEGER, _up_to),
        "choice": (INTEGER, _among),
        "gauss": (CIRCULAR, _two),
        "expovariate": (BY_RATE, _scale),
    },
}


def law_of(
    kind: int, name: str, args: Sequence[Any], options: dict[str, Any]
) -> tuple[int, Any, Any] | None:
    """The law of a call that gives one number, and its two parameters; None of another call."""
    found = _LAWS.get(kind, {}).get(name)
    if found is None:
        return None
    law, bounds = found
    try:
        a, b = bounds(*args, **options)
    except TypeError:
        return None
    wanted = int if law == INTEGER else (int, float)
    if any(isinstance(x, bool) or not isinstance(x, wanted) for x in (a, b)):
        return None
    if law == INTEGER and not (0 < b <= _MOST and -(1 << 52) < a < 1 << 52):
        return None
    if law in (NORMAL, EXPONENTIAL, BY_RATE) and not b > 0:
        return None
    return law, float(a), float(b)


#: Where a call of NumPy's has the shape of what it draws, if not by name; None if all its arguments
#: are the shape.
_PLACE_OF_SIZE: dict[str, int | None] = {
    **dict.fromkeys(("rand", "randn"), None),
    **dict.fromkeys(("random", "random_sample", "standard_normal", "standard_exponential"), 0),
    "exponential": 1,
    **dict.fromkeys(("uniform", "normal", "randint", "integers"), 2),
}


def of_one(
    kind: int, name: str, args: Sequence[Any], options: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a call that gives the first of the numbers that this one gives: NumPy draws
    the others as such calls would, one after the other."""
    if kind == PYTHON or name not in _PLACE_OF_SIZE:
        return args, options
    at = _PLACE_OF_SIZE[name]
    kept = () if at is None else args[:at]
    return kept, {key: x for key, x in options.items() if key != "size"}


# --- words of 32 bits -----------------------------------------------------------------------------

_KEY = 624
_HIGHEST, _LOWER = 1 << 31, (1 << 31) - 1


@kernel
def _twist(state: np.ndarray) -> None:
    """The next 624 words."""
    for k in range(_KEY):
        y = (int(state[k]) & _HIGHEST) | (int(state[(k + 1) % _KEY]) & _LOWER)
        odd = (y & 1) * 0x9908B0DF
        state[k] = int(state[(k + 397) % _KEY]) ^ (y >> 1) ^ odd


@kernel
def _twisted(state: np.ndarray) -> int:
    """The next word of a Mersenne Twister."""
    place = int(state[_KEY])
    if place >= _KEY:
        _twist(state)
        place = 0
    y = int(state[place])
    state[_KEY] = place + 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)


_HALF = np.uint64((1 << 32) - 1)
_SHIFT = np.uint64(32)
_UPPER, _UNDER = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)


@kernel
def _number(state: np.ndarray, k: int) -> np.uint64:
    """Two words as one number."""
    return np.uint64(int(state[k])) | (np.uint64(int(state[k + 1])) << _SHIFT)


@kernel
def _put(state: np.ndarray, k: int, x: np.uint64) -> None:
    state[k], state[k + 1] = float(x & _HALF), float(x >> _SHIFT)


@kernel
def _carried(x: np.uint64, y: np.uint64) -> np.uint64:
    """The upper half of a product of 64 by 64 bits."""
    x0, x1, y0, y1 = x & _HALF, x >> _SHIFT, y & _HALF, y >> _SHIFT
    middle = x1 * y0 + ((x0 * y0) >> _SHIFT)
    rest = (middle & _HALF) + x0 * y1
    return x1 * y1 + (middle >> _SHIFT) + (rest >> _SHIFT)


@kernel
def _permuted(state: np.ndarray) -> np.uint64:
    """The next 64 bits of PCG64."""
    under, upper = _number(state, 0), _number(state, 2)
    upper = _carried(under, _UNDER) + under * _UPPER + upper * _UNDER
    under = under * _UNDER
    added = under + _number(state, 4)
    upper = upper + _number(state, 6) + np.uint64(added < under)
    _put(state, 0, added)
    _put(state, 2, upper)
    turn = upper >> np.uint64(58)
    mixed = upper ^ added
    back = (np.uint64(64) - turn) & np.uint64(63)
    return (mixed >> turn) | (mixed << back)


@kernel
def _half(state: np.ndarray) -> np.uint64:
    """The next 32 bits of PCG64: the upper half of a number waits for the next call."""
    if state[8] != 0.0:
        state[8] = 0.0
        return np.uint64(int(state[9]))
    whole = _permuted(state)
    state[8], state[9] = 1.0, float(whole >> _SHIFT)
    return whole & _HALF


# --- numbers --------------------------------------------------------------------------------------


@kernel
def _unit(state: np.ndarray, kind: int) -> float:
    """A number in [0, 1) of 53 bits."""
    if kind == PCG:
        return float(_permuted(state) >> np.uint64(11)) * 2.0**-53
    upper, under = _twisted(state) >> 5, _twisted(state) >> 6
    return (upper * 67108864.0 + under) / 9007199254740992.0


@kernel
def _integer(state: np.ndarray, kind: int, n: int) -> int:
    """One of ``n`` integers from 0 on."""
    if kind != PYTHON and n == 1:
        return 0
    if kind == PCG:
        many, least = np.uint64(n), np.uint64(((1 << 32) - n) % n)
        product = _half(state) * many
        while (product & _HALF) < least:
            product = _half(state) * many
        return int(product >> _SHIFT)
    most, width = n if kind == PYTHON else n - 1, 0
    while most >> width:
        width += 1
    found = n
    while found >= n:
        word = _twisted(state)
        found = word >> (32 - width) if kind == PYTHON else word & ((1 << width) - 1)
    return found


@kernel
def _in_circle(state: np.ndarray) -> tuple[float, float]:
    """Two normal numbers, as NumPy's older generators make them: a point within a circle."""
    x = y = square = 0.0
    while square >= 1.0 or square == 0.0:
        x = 2.0 * _unit(state, NUMPY) - 1.0
        y = 2.0 * _unit(state, NUMPY) - 1.0
        square = x * x + y * y
    factor = math.sqrt(-2.0 * math.log(square) / square)
    return factor * y, factor * x


@kernel
def _on_circle(state: np.ndarray) -> tuple[float, float]:
    """The same as Python makes them."""
    turn = _unit(state, PYTHON) * (2.0 * math.pi)
    radius = math.sqrt(-2.0 * math.log(1.0 - _unit(state, PYTHON)))
    return math.cos(turn) * radius, math.sin(turn) * radius


@kernel
def _normal(state: np.ndarray, law: int) -> float:
    """A normal number; the other of a pair waits in the state."""
    if state[_KEY + 1] != 0.0:
        found = float(state[_KEY + 2])
        state[_KEY + 1] = state[_KEY + 2] = 0.0
        return found
    found, other = _in_circle(state) if law == NORMAL else _on_circle(state)
    state[_KEY + 1], state[_KEY + 2] = 1.0, other
    return found


def _single(words: int, arrays: int, work: int) -> int:
    kind, law, n = integers(words, 3)
    out, before, first, second = integers(arrays, 4)
    state = doubles(out, n + 1)
    copy(state[:n], doubles(before, n))
    a, b = doubles(first, 1)[0], doubles(second, 1)[0]
    if law == UNIT:
        state[n] = _unit(state, kind)
    elif law == BETWEEN:
        state[n] = a + (b - a) * _unit(state, kind)
    elif law == INTEGER:
        state[n] = a + _integer(state, kind, int(b))
    elif law in (NORMAL, CIRCULAR):
        state[n] = a + b * _normal(state, law)
    elif law == EXPONENTIAL:
        state[n] = b * -math.log(1.0 - _unit(state, kind))
    else:
        state[n] = -math.log(1.0 - _unit(state, kind)) / b
    return 0


def _shape(attrs: Sequence[int], *types: Type) -> Type:
    scalar = Type(DType.F64, ())
    if len(attrs) != 2 or attrs[0] not in N_WORDS or attrs[1] not in range(7):
        raise TapeError(f"single with attributes {tuple(attrs)}")
    state = Type(DType.F64, (N_WORDS[attrs[0]],))
    if types != (state, scalar, scalar):
        raise TapeError(f"single of {', '.join(map(str, types))}; it takes {state} and two f64[]")
    return state.with_shape((N_WORDS[attrs[0]] + 1,))


_COMPILED = compiled(_single, lambda attrs, *types: 0, calls_blas=False)


single = from_code("single", _shape, _COMPILED)
