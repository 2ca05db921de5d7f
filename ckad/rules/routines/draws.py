"""Random numbers as a function of a generator's state: NumPy and Python draw while a program runs.

draw(state, arrays ...; kind, n, call ...) -> [state after it, n words of numbers]. A state is words
of 32 bits as float64; an integer that is drawn is two of them, the upper one with its sign.
leave(before, after; kind, which) -> [0], and the generator itself is in the state ``after``.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckad.errors import TapeError
from ckad.tape.routines import Routine, define
from ckad.tape.types import DType, Type

_WORD = 1 << 32
#: Letters of a call in one attribute.
_LETTERS = 7


class Kind(NamedTuple):
    """A kind of generator: how many words its state is, how they are read, and put into one.

    ``read(generator, before, name)`` knows the words before the call of the method ``name``.
    """

    n_words: int
    make: Callable[[], Any]
    read: Callable[[Any, np.ndarray | None, str], np.ndarray]
    load: Callable[[Any, np.ndarray], None]


# --- PCG64: two numbers of 128 bits, and half a draw that is left ---------------------------------


def _read_pcg(generator: Any, before: Any = None, name: str = "") -> np.ndarray:
    held = generator.bit_generator.state
    state, inc = (held["state"][part].to_bytes(16, "little") for part in ("state", "inc"))
    rest = held["uinteger"] << 32 | held["has_uint32"]
    return np.frombuffer(state + inc + rest.to_bytes(8, "little"), "<u4").astype(np.float64)


def _load_pcg(generator: Any, words: np.ndarray) -> None:
    raw = words.astype("<u4").tobytes()
    state, inc = (int.from_bytes(raw[k : k + 16], "little") for k in (0, 16))
    bits = generator.bit_generator
    bits.state = {
        "bit_generator": type(bits).__name__,
        "state": {"state": state, "inc": inc},
        "has_uint32": int(words[8]),
        "uinteger": int(words[9]),
    }


def _pcg(maker: Any) -> Kind:
    return Kind(10, lambda: np.random.Generator(maker(0)), _read_pcg, _load_pcg)


# --- MT19937: 624 words and a place in them, and half a pair of normal numbers --------------------

_KEY = 624
#: Methods of RandomState that leave that half as it is.
_UNIFORM = frozenset(
    """random random_sample rand randint random_integers uniform choice permutation exponential
    standard_exponential tomaxint""".split()
)


def _memory(generator: np.random.RandomState) -> np.ndarray:
    """The words of a generator and the place in them, where they lie."""
    address: int = generator._bit_generator.ctypes.state_address
    return np.ctypeslib.as_array((ctypes.c_uint32 * (_KEY + 1)).from_address(address))


def _read_state(generator: Any, before: np.ndarray | None = None, name: str = "") -> np.ndarray:
    words = np.empty(_KEY + 3)
    if before is not None and name in _UNIFORM:
        words[: _KEY + 1], words[_KEY + 1 :] = _memory(generator), before[_KEY + 1 :]
        return words
    held = generator.get_state(legacy=False)
    words[:_KEY], words[_KEY] = held["state"]["key"], held["state"]["pos"]
    words[_KEY + 1 :] = held["has_gauss"], held["gauss"]
    return words


def _load_state(generator: Any, words: np.ndarray) -> None:
    key, (place, has_gauss, gauss) = words[:_KEY].astype(np.uint32), words[_KEY:]
    generator.set_state(("MT19937", key, int(place), int(has_gauss), float(gauss)))


def _read_python(generator: Any, before: Any = None, name: str = "") -> np.ndarray:
    _, internal, gauss = generator.getstate()
    rest = (0.0, 0.0) if gauss is None else (1.0, gauss)
    # words are made anew 624 at a time: four that are as before tell that all are
    if before is None or any(internal[k] != before[k] for k in (0, 1, 311, _KEY - 1)):
        return np.array((*internal, *rest))
    words: np.ndarray = before.copy()
    words[_KEY:] = internal[_KEY], *rest
    return words


def _normal(generator: Any, state: np.ndarray, args: Sequence[Any]) -> np.ndarray:
    """The state and the number after ``normal(*args)``, by RandomState's own formula.

    It keeps the second of a pair (the polar method of Marsaglia and Bray), which is slow to ask
    for. The generator itself does not know of it then.
    """
    mean, scale = (args[k] if k < len(args) else k for k in (0, 1))  # by default 0 and 1
    result, held = np.empty(_KEY + 4), (0.0, 0.0)
    if state[_KEY + 1]:
        found = state[_KEY + 2]
    else:
        square = 0.0
        while not 0.0 < square < 1.0:
            x, y = 2.0 * generator.random_sample() - 1.0, 2.0 * generator.random_sample() - 1.0
            square = x * x + y * y
        factor = math.sqrt(-2.0 * math.log(square) / square)
        held, found = (1.0, factor * x), factor * y
    result[: _KEY + 1] = _memory(generator)
    result[_KEY + 1 :] = *held, mean + scale * found
    return result


def _load_python(generator: Any, words: np.ndarray) -> None:
    internal = tuple(words[: _KEY + 1].astype(np.int64).tolist())
    generator.setstate((3, internal, float(words[-1]) if words[-2] else None))


KINDS: tuple[Kind, ...] = (
    _pcg(np.random.PCG64),
    _pcg(np.random.PCG64DXSM),
    Kind(_KEY + 3, lambda: np.random.RandomState(0), _read_state, _load_state),
    Kind(_KEY + 3, lambda: random.Random(0), _read_python, _load_python),
)
_OF_NUMPY: dict[Any, int] = {np.random.PCG64: 0, np.random.PCG64DXSM: 1}


def kind_of(generator: Any) -> int | None:
    """The place of a generator's kind in the table; None if its state is not known here."""
    if type(generator) is np.random.Generator:
        return _OF_NUMPY.get(type(generator.bit_generator))
    if type(generator) is np.random.RandomState:
        return 2 if type(generator._bit_generator) is np.random.MT19937 else None
    return 3 if type(generator) is random.Random else None


# --- calls as attributes --------------------------------------------------------------------------


def encoded(kind: int, n: int, name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The attributes of a call that gives ``n`` words, and the arrays among its arguments.

    What is neither a number, a text, an array nor made of these is a TypeError.
    """
    arrays: list[Any] = []
    text = json.dumps(
        [name, _tree([*args], arrays), _tree([*options.values()], arrays), [*options]]
    )
    raw = text.encode()
    raw += b" " * (-len(raw) % _LETTERS)
    letters = (raw[k : k + _LETTERS] for k in range(0, len(raw), _LETTERS))
    return (kind, n, *(int.from_bytes(part, "little") for part in letters)), arrays


def _tree(x: Any, arrays: list[Any]) -> Any:
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, [_tree(item, arrays) for item in x]]
    if isinstance(x, range):
        return ["range", [x.start, x.stop, x.step]]
    if isinstance(x, (np.dtype, type)):
        return ["dtype", np.dtype(x).str]
    if isinstance(x, np.generic):
        return x.item()
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    dtype = np.dtype(x.dtype)  # an array, or a value that is traced
    if dtype.kind not in "fiub":
        raise TypeError
    arrays.append(x)
    return ["array", [len(arrays) - 1, dtype.str, x.shape != ()]]


class _Call(NamedTuple):
    name: str
    args: Any
    options: Any
    names: list[str]

    @property
    def is_normal(self) -> bool:
        """Whether it draws a normal number of a known mean and scale."""
        most = {"randn": 0, "standard_normal": 0, "normal": 2}.get(self.name, -1)
        args = self.args[1]
        return not self.names and len(args) <= most and all(type(x) is float for x in args)

    def run(self, generator: Any, arrays: Sequence[np.ndarray]) -> Any:
        args, given = _value(self.args, arrays), _value(self.options, arrays)
        return getattr(generator, self.name)(*args, **dict(zip(self.names, given, strict=True)))


def _value(tree: Any, arrays: Sequence[np.ndarray]) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, held = tree
    if kind == "array":
        x = arrays[held[0]].astype(held[1])
        return x if held[2] else x.item()
    if kind == "range":
        return range(*held)
    if kind == "dtype":
        return np.dtype(held).type
    items = (_value(item, arrays) for item in held)
    return tuple(items) if kind == "tuple" else list(items)


@functools.lru_cache(1024)
def _call_of(letters: tuple[int, ...]) -> _Call:
    return _Call(*json.loads(b"".join(k.to_bytes(_LETTERS, "little") for k in letters)))


# --- the routine ----------------------------------------------------------------------------------


class _Live(threading.local):
    """A generator of each kind, the state in which it is, and whether it holds all of that."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, bytes, bool]] = {}


_live = _Live()


def _run(attrs: Sequence[int], state: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    number, n, *letters = attrs
    kind, call = KINDS[number], _call_of(tuple(letters))
    generator, at, is_whole = _live.known.pop(number, (None, b"", False))
    if generator is None:
        generator = kind.make()
    is_normal = kind.read is _read_state and n == 1 and call.is_normal
    is_enough = is_whole or is_normal or call.name in _UNIFORM
    if at != state.tobytes() or not is_enough:
        kind.load(generator, state)
        is_whole = True
    if is_normal:
        result, is_whole = _normal(generator, state, call.args[1]), False
    else:
        numbers = words_of(call.run(generator, arrays))
        result = np.empty(kind.n_words + n)
        result[: kind.n_words] = kind.read(generator, state, call.name)
        result[kind.n_words :] = numbers
    _live.known[number] = generator, result[: kind.n_words].tobytes(), is_whole
    return result


def words_of(drawn: Any) -> np.ndarray:
    """Numbers that are drawn as words, which follow the state."""
    x = np.asarray(drawn).reshape(-1)
    if x.dtype.kind == "f":
        return x.astype(np.float64)
    whole = x.astype(np.int64)
    if x.size == 1:
        one = int(whole[0])
        return np.array((one >> 32, one & (_WORD - 1)), np.float64)
    return np.stack([whole >> 32, whole & (_WORD - 1)]).reshape(-1).astype(np.float64)


def numbers_of(words: Any, shape: Sequence[int], dtype: np.dtype) -> Any:
    """The way back: arrays of any kind."""
    if dtype.kind != "f":
        upper, lower = words.reshape(2, -1).astype(np.int64)
        words = upper * _WORD + lower
    return words.astype(dtype).reshape(tuple(shape))


def _shape(attrs: Sequence[int], *types: Type) -> Type:
    if len(attrs) < 3 or not 0 <= attrs[0] < len(KINDS) or attrs[1] < 0 or not types:
        raise TapeError(f"draw with attributes {tuple(attrs)[:3]}, of {len(types)} operands")
    n_words = KINDS[attrs[0]].n_words
    if types[0] != Type(DType.F64, (n_words,)):
        raise TapeError(f"draw from a state {types[0]}; it has to be f64[{n_words}]")
    return types[0].with_shape((n_words + attrs[1],))


draw = define(Routine("draw", _shape, _run))


# --- where a program leaves a generator -----------------------------------------------------------

_MOST_LEFT = 4096
_left: dict[int, Any] = {}
_lock = threading.Lock()


def number_of(generator: Any) -> int:
    """The number by which the routine `leave` knows a generator, in this process."""
    with _lock:
        for number, known in _left.items():
            if known is generator:
                return number
        number = max(_left, default=-1) + 1
        _left[number] = generator
        _left.pop(number - _MOST_LEFT, None)
        return number


def _leave(attrs: Sequence[int], before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Put a generator that still is in the state ``before`` into ``after``; the number 0.

    So it is done once for each recording, however often its program runs.
    """
    number, which = attrs
    generator, kind = _left.get(which), KINDS[number]
    if generator is None:
        raise TapeError(
            f"a program draws from a random generator that is not known any more: {_MOST_LEFT:,} "
            "others have been drawn from since it was recorded, or it was loaded from a file. "
            "Record it again: ckad.clear_caches() before the call, or ckad.trace."
        )
    if np.array_equal(kind.read(generator, None, ""), before):
        kind.load(generator, after)
    return np.zeros(1)


def _leave_shape(attrs: Sequence[int], *types: Type) -> Type:
    if len(attrs) != 2 or not 0 <= attrs[0] < len(KINDS) or len(types) != 2:
        raise TapeError(f"leave with attributes {tuple(attrs)}, of {len(types)} operands")
    if any(type != Type(DType.F64, (KINDS[attrs[0]].n_words,)) for type in types):
        raise TapeError(f"leave of states {types[0]} and {types[1]}")
    return Type(DType.F64, (1,))


define(Routine("leave", _leave_shape, _leave))
