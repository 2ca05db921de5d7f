"""Operators on values that may be traced: of Python numbers they give Python numbers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from ckad.errors import CkadError, UnrecordableError
from ckad.tape.ops import Op
from ckad.trace import dispatch
from ckad.trace.dispatch import Traced
from ckad.trace.handling import handling
from ckad.trace.memory.context import current, mark_place
from ckad.trace.memory.opened import making_text
from ckad.trace.primitives.methods import Flat
from ckad.trace.primitives.scalars import root_of_number
from ckad.trace.source.choices import Choice, equal, identical, joined, numbered
from ckad.trace.source.control import chosen
from ckad.trace.source.control.checks import divided, may_be_caught, negated, note_raise, whole
from ckad.trace.source.libraries import is_library
from ckad.trace.source.library import sparse
from ckad.trace.source.library.written import iterations, orders
from ckad.trace.source.memory import object_arrays, objects
from ckad.trace.source.memory.asked.by_python import (
    compares_traced,
    contained,
    done,
    noting_changes,
)
from ckad.trace.source.memory.asked.numbers import are_one_item, are_one_object
from ckad.trace.source.memory.contents import new
from ckad.trace.source.memory.twins import check_key, is_one, is_told_by_identity
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import OrNone, check_operands, given, needed
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.names.frame import MISSING, region
from ckad.trace.source.outside.clock import TimeText, numbers_in, shows_time
from ckad.trace.source.outside.guard import ABSENT
from ckad.trace.source.outside.judge import hand_over
from ckad.trace.source.outside.kinds import CONTAINERS, is_written, users
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.text import TracedText, known_now, shown
from ckad.trace.source.values import (
    holds_tracer,
    is_weak,
    lifted,
    of_classes,
    truth,
    undecided_truth,
    weakened,
)
from ckad.trace.values.apply import astype, of_floats
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.tracer import Tracer, concrete, known, lift

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
IN_PLACE: dict[type, Callable[[Any, Any], Any]] = {
    node: getattr(operator, f"i{function.__name__.rstrip('_')}")
    for node, function in BINARY.items()
}
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: The same where they are compared one item after the other.
_BY_ITEMS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: orders.equal,
    ast.NotEq: orders.differ,
    ast.Lt: orders.less,
    ast.LtE: orders.at_most,
    ast.Gt: orders.more,
    ast.GtE: orders.at_least,
}


#: What Python's operators are of traced values.
_UFUNCS: dict[Callable[[Any, Any], Any], Any] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
    operator.floordiv: np.floor_divide,
    operator.mod: np.remainder,
    operator.pow: np.power,
    operator.matmul: np.matmul,
}
#: The same as rows of float64.
_OPS = {operator.add: Op.ADD, operator.sub: Op.SUB, operator.mul: Op.MUL, operator.truediv: Op.DIV}
_POWERS = (operator.pow, operator.ipow)
_REPEATING = (operator.mul, operator.imul)
_BITWISE = frozenset(
    {operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor}
)
_ARITHMETIC = frozenset({Tracer, int, float})
#: What may hold containers.
_HOLDING = (tuple, *CONTAINERS)


def combine(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``x op y``; of two Python numbers it is one, also where they are traced."""
    op = _OPS.get(function)
    if op is not None and (type(x) is Tracer or type(y) is Tracer) and "raise" not in handling():
        mark_place(current())
        if (found := of_floats(op, x, y)) is not None:
            return _weak_of_weak(function, x, y, found)
    if type(y) is int and y < 0 and function in _POWERS and type(x) is Tracer and x.weak:
        x = weakened(astype(x, np.float64))  # Python's integers have inverses, NumPy's do not
    if function not in _BITWISE and _is_truth(x) and _is_truth(y) and Tracer in (type(x), type(y)):
        x = weakened(astype(lift(x), np.int64))  # Python's True is computed with as the integer 1
    if function in _POWERS and type(y) is float and y == 0.5 and _is_float(x):
        return _weak_of_weak(function, x, y, root_of_number(x))
    if type(x) in _ARITHMETIC and type(y) in _ARITHMETIC and function in _UFUNCS:
        return _computed(function, x, y)
    check_operands(x, y)
    for array in (x, y):
        if type(array) is np.ndarray:
            current().note_known(array)
    x, y = sparse.operands(_number(x), _number(y), function in _UFUNCS)
    if isinstance(x, np.ma.MaskedArray) and isinstance(y, Traced):
        x = concrete(x)  # its own operators do not know traced arrays
    result = classes.operated(function, x, y)
    if result is not MISSING:
        return result
    if type(x) is Choice or type(y) is Choice:
        if type(x) is TracedText or type(y) is TracedText:
            return TracedText(f"{x}{y}")
        if (text := joined(function, x, y)) is not NotImplemented:
            return text
    if type(x) in (str, TracedText) and function is operator.mod:
        y = known_now(y)
        if watched := watch():
            hand_over(watched, y)
        if holds_tracer(y):
            return shown(x, y)
        if shows_time(y):
            return TimeText(x % numbers_in(y))
    if isinstance(x, _HOLDING) or isinstance(y, _HOLDING):
        object_arrays.operands(x, y)
    for items, n in ((x, y), (y, x)):
        if function in _REPEATING and isinstance(items, (list, tuple, str)) and _is_count(n):
            return _repeated(function, items, n)
    if isinstance(x, str) and function is operator.mod:
        with making_text() as traced, noting_changes(y):
            return shown(function(x, y), [y, *traced])
    result = done(function, x, y)
    if type(result) in CONTAINERS:
        return new(result, (x, y))
    if type(result) in (Tracer, ComplexTracer):
        return _weak_of_weak(function, x, y, result)
    return shown(result, (x, y)) if type(result) is str else lifted(result)


def _is_float(x: Any) -> bool:
    return type(x) is Tracer and x.scalar and x.type.is_float


def _quotient_and_rest(x: Any, y: Any) -> tuple[Any, Any]:
    """``divmod(x, y)``, of the classes that the operators give."""
    return combine(operator.floordiv, x, y), combine(operator.mod, x, y)


for _kind in dispatch.REAL:
    dispatch.put(divmod, _quotient_and_rest, _kind)


def _is_count(x: Any) -> bool:
    return type(x) is Tracer and x.scalar and x.dtype.kind == "i"


def _repeated(function: Callable[[Any, Any], Any], items: Any, n: Tracer) -> Any:
    """``items * n``: as many as is only known when the program runs."""
    if known(n) is None and isinstance(items, str):
        return TracedText(items)
    if known(n) is None and type(items) is list and function is operator.mul:
        return call_from_source(iterations.repeated, (items, n), {})
    result = function(items, n.__index__())  # says why this cannot be, unless it is known
    return new(result, (items,)) if type(result) is list else result


def _computed(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """The same of real numbers and arrays; only of what is traced there is a row."""
    if type(x) is not Tracer and type(y) is not Tracer:
        return function(x, y)
    return _weak_of_weak(function, x, y, dispatch.call(_UFUNCS[function], (x, y), {}))


def _weak_of_weak(function: Callable[[Any, Any], Any], x: Any, y: Any, result: Any) -> Any:
    if not (result.scalar and is_weak(x) and is_weak(y)):
        return of_classes(result, function, x, y)
    own = of_classes(weakened(result), function, x, y)
    return divided(function, x, y, whole(function, x, y, own)) if type(own) is Tracer else own


def changed(function: Callable[[Any], Any], x: Any) -> Any:
    """``op x``; of a Python number it is one, also where that is traced."""
    x = _number(needed(x))
    result = classes.operated_on(function, x)
    if result is not MISSING:
        return result
    if type(x) is Tracer and x.weak and x.dtype == bool:
        x = weakened(astype(x, np.int64))  # Python's True is the integer 1
    object_arrays.refuse("an operator", x)
    result = function(x)
    if not (is_weak(x) and isinstance(result, (Tracer, ComplexTracer))):
        return lifted(of_classes(result, function, x))
    result = of_classes(weakened(result), function, x)
    return negated(x, result) if type(result) is Tracer and function is operator.neg else result


def _number(x: Any) -> Any:
    """An operand that may be None, or one of several members of an enumeration of integers."""
    x = given(x)
    return weakened(numbered(x)) if type(x) is Choice else x


_IN = (ast.In, ast.NotIn)
_SAME = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)


def compared(op: ast.cmpop, x: Any, y: Any) -> Any:
    found = _of_choices(op, x, y)
    found = _of_optional(op, x, y) if found is MISSING else found
    return _compared(op, x, y) if found is MISSING else found


def _of_choices(op: ast.cmpop, x: Any, y: Any) -> Any:
    """What a comparison gives where one of several objects is meant; MISSING for all else."""
    if type(x) is Choice and _by_methods(x, op):
        return chosen.asked(x, lambda known: compared(op, known, y))
    if type(y) is Choice and _by_methods(y, op):
        return chosen.asked(y, lambda known: compared(op, x, known))
    if (type(x) is Choice or type(y) is Choice) and isinstance(op, _SAME):
        same = identical if isinstance(op, (ast.Is, ast.IsNot)) else equal
        verdict = weakened(lift(same(x, y)))
        return verdict if isinstance(op, (ast.Is, ast.Eq)) else weakened(np.logical_not(verdict))
    return MISSING


def _of_optional(op: ast.cmpop, x: Any, y: Any) -> Any:
    """The same where a value may be None."""
    for one, other in ((x, y), (y, x)):
        if type(one) is not OrNone or one.is_there or not isinstance(op, _SAME):
            continue
        if other is None:
            return weakened(one.absent if isinstance(op, (ast.Is, ast.Eq)) else lift(one.present))
        alike = isinstance(op, (ast.Is, ast.IsNot))
        if type(other) is not OrNone and (_is_truth(other) or not alike):
            same = compared(ast.Is() if alike else ast.Eq(), one.value, other)
            verdict = np.logical_and(one.present, same)
            told = isinstance(op, (ast.Is, ast.Eq))
            return weakened(verdict if told else lift(np.logical_not(verdict)))
    return MISSING


def _compared(op: ast.cmpop, x: Any, y: Any) -> Any:
    if not isinstance(op, _IN):
        x, y = _number(x), _number(y)
    if type(op) in _BY_ITEMS and (pair := _items_of_both(type(op), x, y)) is not None:
        return call_from_source(orders.by_items, (_BY_ITEMS[type(op)], are_one_item, *pair), {})
    if isinstance(op, ast.Is | ast.IsNot):
        for one, other in ((x, y), (y, x)):
            if type(one) is bool and type(other) is Tracer and other.classes:
                undecided_truth()
        if _is_truth(x) and _is_truth(y):  # there is one True, and one False
            return weakened(_COMPARE[ast.Eq if isinstance(op, ast.Is) else ast.NotEq](x, y))
        return _told(are_one_object(x, y), isinstance(op, ast.Is))
    if isinstance(op, _IN):
        return weakened(_contained(x, y, isinstance(op, ast.In)))
    if not isinstance(op, _SAME):
        check_operands(x, y)
    elif odd := [z for z in (x, y) if z is None or type(z) is str]:
        array: Any = y if odd[0] is x else x
        if isinstance(x, Traced) or isinstance(y, Traced):  # no element is None, or a text
            differs = isinstance(op, ast.NotEq)
            return np.full_like(array, differs, dtype=bool) if np.ndim(array) else differs
    if isinstance(op, ast.NotEq) and classes.inverts_equality(x):
        verdict = truth(compared(ast.Eq(), x, y))
        return not verdict if isinstance(verdict, bool) else weakened(np.logical_not(verdict))
    result = classes.operated(_COMPARE[type(op)], x, y)
    if result is not MISSING:
        return result
    if isinstance(op, _SAME) and is_told_by_identity(x) and is_told_by_identity(y):
        return _told(is_one(x, y), isinstance(op, ast.Eq))
    object_arrays.operands(x, y)
    chosen.refuse_held(x)
    chosen.refuse_held(y)
    try:
        result = done(_COMPARE[type(op)], x, y)
    except TypeError as error:
        if isinstance(error, CkadError) or region() is None or may_be_caught(TypeError):
            raise
        note_raise()  # if the program comes here
        return False
    if type(result) is Tracer and is_weak(x) and is_weak(y):
        result = weakened(result)
    return of_classes(lifted(result), _COMPARE[type(op)], x, y)


def _told(same: Any, wanted: bool) -> Any:
    """Whether a truth value is the one that is wanted."""
    verdict = truth(same)
    if isinstance(verdict, bool):
        return verdict is wanted
    return weakened(verdict if wanted else np.logical_not(verdict))


def _by_methods(choice: Choice, op: ast.cmpop) -> bool:
    """Whether each of the objects of which one is meant is compared by itself: texts that are
    ordered, and what classes of the user compare."""
    kinds = set(map(type, choice.objects))
    if type(op) not in _BY_ITEMS:
        return False
    if kinds == {str}:
        return not isinstance(op, _SAME)
    names = {ast.Eq: ["eq"], ast.NotEq: ["eq", "ne"]}.get(type(op), ["lt", "le", "gt", "ge"])
    return any(users(kind, f"__{name}__") is not ABSENT for kind in kinds for name in names)


def _items_of_both(op: type, x: Any, y: Any) -> tuple[Any, Any] | None:
    """Two tuples or lists that hold traced values or objects of the user's; what the fields hold
    of two objects that Python compares by them; None for all else."""
    for kind in (tuple, list):
        if isinstance(x, kind) and isinstance(y, kind):
            object_arrays.operands(x, y)
            own = any(not is_library(type(item).__module__) for item in (*x, *y))
            return (x, y) if own or holds_tracer(x) or holds_tracer(y) else None
    if type(x) is not type(y) or not is_dataclass(x):
        return None
    name = "eq" if op is ast.NotEq else _COMPARE[op].__name__
    by_fields = users(type(x), f"__{name}__")
    if by_fields is ABSENT or not is_written(by_fields):
        return None
    names = [field.name for field in fields(x) if field.compare]
    one, other = (tuple(objects.attribute(z, name) for name in names) for z in (x, y))
    return one, other


def _is_truth(x: Any) -> bool:
    """Whether it is a bool of Python's, which a weak scalar stands for."""
    return type(x) is bool or (type(x) is Tracer and x.dtype.kind == "b" and is_weak(x))


def _contained(x: Any, y: Any, wanted: bool) -> Any:
    if type(x) is Choice:
        among = np.any(np.stack([lift(compared(ast.Eq(), x, item)) for item in y] or [lift(False)]))
        return among if wanted else np.logical_not(among)
    said = classes.invoke(y, "__contains__", x)
    if said is not MISSING:
        return _told(said, wanted)
    check_key((x, *y) if type(y) in (list, tuple) and is_told_by_identity(x) else x)
    if type(y) in (list, tuple) and any(map(compares_traced, (x, *y))):
        verdict = call_from_source(orders.is_among, (are_one_item, x, y), {})
        return _told(verdict, wanted)
    y = list(y) if isinstance(y, dict) else y.all_items() if type(y) is Flat else y
    if not (holds_tracer(x) or holds_tracer(y)):
        return contained(y, x) is wanted
    if isinstance(y, Iterator):
        raise UnrecordableError.here(
            "`in` takes items of an iterator up to the one that is equal, and which that is "
            "depends on a traced value. Make a list of its items before: xs = list(...)."
        )
    if isinstance(y, Tracer):
        return _told(np.any(np.equal(y, x)), wanted)
    each = (np.all(compared(ast.Eq(), item, x)) for item in y)
    return _told(reduce(np.logical_or, each, False), wanted)


for _function in BINARY.values():
    dispatch.put(_function, partial(combine, _function), dispatch.ANY)
for _operator in UNARY.values():
    dispatch.put(_operator, partial(changed, _operator), dispatch.ANY)
