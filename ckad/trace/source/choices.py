"""Names that are one of some known objects: words, members of an `enum.Enum`, objects, functions.

Where a branch binds a name to one of them on one side and to another on the other, the name becomes
a number: which of all objects of this kind it is. What is asked of it is looked up among those that
it may be. Words are told by their value; objects of the user's classes, dicts and functions by
their identity, so they have to be there before the body that chooses.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Container
from dataclasses import is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import CarryError, ConcreteValueError
from ckad.trace.primitives.short.ranges import shortened
from ckad.trace.source.libraries import is_library
from ckad.trace.source.names import instances
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import outermost_ledger
from ckad.trace.source.names.instances import Instance
from ckad.trace.source.skipped import ShownText
from ckad.trace.values.tracer import Tracer, lift

_objects: list[Any] = []
_numbers: dict[tuple[type, Any], int] = {}
_lock = threading.Lock()
#: Of an enumeration with so many members, any may be met where one is.
_FEW = 32
_COMPARED = 4  # among so many it is found one by one
_MOST = 256  # so many objects a branch may choose from
_ARRAYS = frozenset({Tracer, np.ndarray, float, int})
#: The numbers of objects of one recording begin here.
_MET = 1 << 24


class Choice:
    """One of the known objects: the number of which it is, an integer that may be traced.

    ``options`` are the numbers of all that it may be.
    """

    __slots__ = ("number", "options")

    def __init__(self, number: Any, options: frozenset[int]) -> None:
        self.number, self.options = number, options

    def __repr__(self) -> str:
        return "<traced: one of several objects>"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        refuse()

    def _refuse(self, *_: Any) -> Any:
        refuse()

    __bool__ = __hash__ = __len__ = __iter__ = __contains__ = _refuse
    __getitem__ = __setitem__ = __delitem__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __call__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _refuse
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = _refuse
    __neg__ = __pos__ = __invert__ = __abs__ = __round__ = __trunc__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = _refuse

    @property
    def objects(self) -> list[Any]:
        """All that it may be."""
        return [_object(k) for k in sorted(self.options)]

    def where(self, test: Callable[[Any], Any]) -> Any:
        """Whether it is one of the objects for which ``test`` is true: a flag."""
        passed = [k for k in sorted(self.options) if test(_object(k))]
        if len(passed) in (0, len(self.options)):
            return bool(passed)
        found: Any = False
        for k in passed:
            found = np.logical_or(found, np.equal(self.number, k))
        return found

    def looked_up(self, values: list[Any]) -> Any:
        """The number among ``values``, one for each of the objects, that belongs to it."""
        if len(values) > _COMPARED:  # a row of all is a shorter program than a choice for each
            place: Any = np.sum(np.less_equal(np.array(sorted(self.options)[1:]), self.number))
            return np.stack([lift(x) for x in values])[place]
        found = values[-1]
        for k, x in list(zip(sorted(self.options), values, strict=True))[-2::-1]:
            found = np.where(np.equal(self.number, k), x, found)[()]
        return found


def refuse() -> NoReturn:
    raise ConcreteValueError.here(
        "which of several objects this is depends on a traced value, and what is asked of it "
        "here is not looked up in each of them. Choose by if state is ...: and elif, and "
        "compute in each branch."
    )


def is_word(x: Any) -> bool:
    """Whether ``x`` is a known object that is told by its type and value."""
    return x is None or type(x) is str or isinstance(x, enum.Enum)


def is_met(x: Any) -> bool:
    """Whether ``x`` is an object that is told by its identity, and made of no parts otherwise."""
    kind: Any = type(x)
    if kind in (FunctionType, Closure, np.ufunc):
        return True
    if kind is BuiltinFunctionType:
        return bool(x.__module__ == "math")
    plain = not isinstance(x, (type, dict, list, tuple, set, np.ndarray)) and not is_dataclass(x)
    return plain and not is_library(kind.__module__)


def can_be_chosen(x: Any) -> bool:
    """Whether ``x`` is, or becomes, a number where a branch chooses it or another one."""
    return type(x) is Choice or is_word(x) or (is_met(x) and not instances.is_passing(x))


def _is_value(x: Any) -> bool:
    """Whether an object of an extension has no attributes and is equal to others like it: the
    structure of a tree, which every step makes anew."""
    kind: Any = type(x)
    own = is_met(x) and kind.__eq__ is not object.__eq__ and kind.__hash__ is not None
    return own and not kind.__dictoffset__ and not any("__slots__" in vars(k) for k in kind.__mro__)


def _is_object(x: Any) -> bool:
    return is_word(x) or is_met(x)


def _object(number: int) -> Any:
    return _objects[number] if number < _MET else outermost_ledger().met[number - _MET]


def number_of(x: Any) -> int:
    if not is_word(x):
        ledger = outermost_ledger()
        key = (type(x), x) if _is_value(x) else id(x)
        place = ledger.numbers.setdefault(key, len(ledger.met))
        if place == len(ledger.met):
            ledger.met.append(x)
        return _MET + place
    with _lock:
        key = type(x), x
        if key not in _numbers:
            _numbers[key] = len(_objects)
            _objects.append(x)
        return _numbers[key]


def as_choice(x: Any) -> Any:
    if not _is_object(x) and type(x) is not dict:
        return x
    members = list(type(x)) if isinstance(x, enum.Enum) else []
    found = [x, *members] if len(members) <= _FEW else [x]
    return Choice(number_of(x), frozenset(map(number_of, found)))


def picked(number: Any, options: frozenset[int]) -> Any:
    """What a number of some objects stands for: if there is but one, told by its value, itself."""
    only = _object(min(options))
    return only if len(options) == 1 and _is_value(only) else Choice(number, options)


def one_of(objects: list[Any], pick: Callable[[list[Any]], Any]) -> Choice:
    """The one of some objects, or of what may be one of several, whose number ``pick`` finds among
    theirs."""
    known = [
        x if type(x) is Choice else Choice(number_of(x), frozenset({number_of(x)})) for x in objects
    ]
    return Choice(pick([x.number for x in known]), frozenset().union(*(x.options for x in known)))


def unified(
    x: Any, y: Any, made: Container[int] = (), changed: Container[int] = ()
) -> tuple[Any, Any]:
    """Two values of a name, as choices if they are different objects that can be chosen.

    The same in tuples. ``made`` are the objects, by identity, that the body has made which chooses,
    and what it has ``changed`` of others is not to be seen any more. Objects that bodies make are
    told by what they hold.
    """
    if isinstance(x, tuple) and type(x) is type(y) and len(x) == len(y):
        return _unified_items(x, y, made, changed)
    if trees.is_short(x) is not trees.is_short(y):
        return shortened(x, y)
    if (held := _unified_held(x, y, made, changed)) is not None:
        return held
    if isinstance(x, ShownText) or isinstance(y, ShownText):
        return _unified_texts(x, y)
    one, other = type(x) is Choice, type(y) is Choice
    both = _is_object(x) and _is_object(y) and not _is_one(x, y)
    if not (one or other or both or _is_dict_or_none(x, y, made)):
        return x, y
    x, y = as_choice(x), as_choice(y)
    for known in (x, y):
        _check_lasting(known, made)
    if type(x) is Choice and type(y) is Choice:
        options = x.options | y.options
        _check_few(options)
        return Choice(x.number, options), Choice(y.number, options)
    return x, y


def _unified_held(
    x: Any, y: Any, made: Container[int], changed: Container[int]
) -> tuple[Any, Any] | None:
    """Objects that bodies make, by what they hold, also in lists and dicts; None for all else."""
    if x is not y and (pair := instances.paired(x, y, changed)) is not None:
        one, other = pair
        xs, ys = _unified_items(tuple(one.held.values()), tuple(other.held.values()), made, changed)
        return one.holding(xs), other.holding(ys)
    alike = type(x) is type(y) and type(x) in (list, dict) and len(x) == len(y)
    if not alike or not instances.among(x, y):
        return None
    if type(x) is list:
        xs, ys = _unified_items(tuple(x), tuple(y), made, changed)
        return list(xs), list(ys)
    if x.keys() != y.keys():
        return None
    xs, ys = _unified_items(tuple(x.values()), tuple(y[key] for key in x), made, changed)
    return dict(zip(x, xs, strict=True)), dict(zip(x, ys, strict=True))


def _unified_texts(x: Any, y: Any) -> tuple[Any, Any]:
    """A text that is not known is one whatever other text it may be, too."""
    text, other = (x, y) if isinstance(x, ShownText) else (y, x)
    is_text = isinstance(other, str) or (
        type(other) is Choice and all(type(one) is str for one in other.objects)
    )
    return (text, text) if is_text else (x, y)


def _check_few(options: frozenset[int]) -> None:
    """What is asked of one of many objects is a long program."""
    if len(options) > _MOST:
        raise CarryError.here(
            f"a name may show one of more than {_MOST} objects, and which depends on a traced "
            "condition. Keep their numbers in arrays, and choose an index by np.argmin."
        )


def _is_one(x: Any, y: Any) -> bool:
    return x is y or (is_word(x) and type(x) is type(y) and bool(x == y))


def _is_dict_or_none(x: Any, y: Any, made: Container[int]) -> bool:
    held = y if x is None else x
    return (x is None or y is None) and type(held) is dict and id(held) not in made


def _unified_items(
    x: tuple[Any, ...], y: tuple[Any, ...], made: Container[int], changed: Container[int]
) -> tuple[Any, Any]:
    pairs = [unified(*pair, made, changed) for pair in zip(x, y, strict=True)]
    xs, ys = [one for one, _ in pairs], [other for _, other in pairs]
    new = any(a is not b for a, b in zip((*xs, *ys), (*x, *y), strict=True))
    return (trees.with_items(x, xs), trees.with_items(y, ys)) if new else (x, y)


def _check_lasting(x: Any, made: Container[int]) -> None:
    """An object that a body makes is another one in every step."""
    options = x.objects if type(x) is Choice else ()
    found = next((one for one in options if not is_word(one) and id(one) in made), None)
    if found is not None:
        kind = type(found).__name__
        raise CarryError.here(
            f"a {kind} that is made in the body of a loop or branch is one of those that a "
            "name may show after it. Make the objects before the loop, or make their class "
            "a @dataclass, whose fields are followed one by one."
        )


def joined(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``x op y`` of which one at least is one of some texts: one of the texts that it gives."""
    pairs = [(one, other) for one in _texts(x) for other in _texts(y)]
    if not pairs:
        return NotImplemented
    numbers = [number_of(function(*pair)) for pair in pairs]
    _check_few(frozenset(numbers))
    found: Any = numbers[-1]
    for (one, other), k in zip(pairs, numbers, strict=True):
        both = np.logical_and(*(_is_text(z, text) for z, text in ((x, one), (y, other))))
        found = np.where(both, k, found)[()]
    return Choice(found, frozenset(numbers))


def _texts(x: Any) -> list[Any]:
    """The texts that ``x`` may be; none if it may be anything else."""
    found = x.objects if type(x) is Choice else [x]
    return found if all(type(text) is str for text in found) else []


def _is_text(x: Any, text: str) -> Any:
    return x.where(lambda known: known == text) if type(x) is Choice else True


def holds_choice(x: Any) -> bool:
    parts: Any = x if isinstance(x, tuple) else x.held.values() if type(x) is Instance else ()
    return type(x) is Choice or any(map(holds_choice, parts))


def fitted(x: Any, tree: trees.Treedef) -> Any:
    """``x`` with choices where ``tree`` is the structure of one: among all that either may be."""
    if isinstance(x, tuple) and tree.type is type(x) and tree.num_children == len(x):
        items = [fitted(item, child) for item, child in zip(x, tree.children(), strict=True)]
        new = any(one is not other for one, other in zip(items, x, strict=True))
        return trees.with_items(x, items) if new else x
    if tree.type in (list, dict) and type(x) is tree.type and tree.num_children == len(x):
        return _fitted_items(x, tree)
    if tree.type is Instance and type(one := instances.fitted(x, tree)) is Instance:
        parts = zip(one.held.values(), tree.children(), strict=True)
        return one.holding(fitted(part, child) for part, child in parts)
    if tree.type is not Choice:
        return x
    one = as_choice(x)
    known: Choice = trees.unflatten(tree, [None])
    return Choice(one.number, one.options | known.options) if type(one) is Choice else x


def _fitted_items(x: Any, tree: trees.Treedef) -> Any:
    keys = tree.entries()
    if type(x) is dict and x.keys() != {*keys}:
        return x
    items = {key: fitted(x[key], child) for key, child in zip(keys, tree.children(), strict=True)}
    if all(x[key] is item for key, item in items.items()):
        return x
    return list(items.values()) if type(x) is list else {key: items[key] for key in x}


def equal(x: Any, y: Any) -> Any:
    """Whether two values are equal, of which at least one is a choice."""
    one, other = (x, y) if type(x) is Choice else (y, x)
    if type(other) is Choice:
        return np.equal(one.number, other.number)
    return one.where(
        lambda known: known == other if is_word(known) or _is_value(known) else known is other
    )


def identical(x: Any, y: Any) -> Any:
    """The same of ``is``."""
    one, other = (x, y) if type(x) is Choice else (y, x)
    if any(map(_is_value, one.objects)):
        refuse()
    return equal(one, other) if type(other) is Choice else one.where(lambda known: known is other)


def _as_arrays(objects: list[Any]) -> list[Any]:
    shapes = {np.shape(one) for one in objects if type(one) in _ARRAYS}
    nothing = np.full(shapes.pop(), np.nan)[()]
    if shapes or not all(type(x) in _ARRAYS or callable(x) for x in objects):
        refuse()
    return [x if type(x) in _ARRAYS else nothing for x in objects]


def is_number(x: Any) -> bool:
    """Whether a value is one of some members of an `enum.IntEnum`."""
    return type(x) is Choice and all(isinstance(known, int) for known in x.objects)


def numbered(x: Any) -> Any:
    """``x``, of members of an `enum.IntEnum` the integer, of arrays among functions the array or
    NaN; the same in a tuple."""
    if type(x) is tuple:
        return tuple(map(numbered, x))
    if type(x) is Choice and not _ARRAYS.isdisjoint(map(type, x.objects)):
        return x.looked_up(_as_arrays(x.objects))
    return x.looked_up([lift(int(known)) for known in x.objects]) if is_number(x) else x


def _rebuilt(options: frozenset[int], children: Any) -> Any:
    (number,) = children
    known = not isinstance(number, Tracer) and isinstance(number, (int, np.integer, np.ndarray))
    return _object(int(number)) if known else Choice(number, options)


trees.register(Choice, lambda x: ((x.number,), x.options, ("number",)), _rebuilt)
