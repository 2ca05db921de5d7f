"""Values in functions that are run from source: which are traced, true, or Python's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import CkadError, ConcreteValueError, DtypeError, UnrecordableError
from ckad.place import at_place
from ckad.tape.types import DType, Type
from ckad.trace import dispatch
from ckad.trace.integers.affine import is_counted
from ckad.trace.memory.context import Trace, current
from ckad.trace.memory.storage import Storage
from ckad.trace.source.actions import truth_of
from ckad.trace.source.choices import Choice
from ckad.trace.source.libraries import is_hashable, is_library
from ckad.trace.source.names import classes
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.bindings import MISSING
from ckad.trace.source.names.generated import Filtered
from ckad.trace.source.names.instances import flatten as flatten
from ckad.trace.values.apply import astype, broadcast_to, reshape_value
from ckad.trace.values.array import Array
from ckad.trace.values.complex import ComplexTracer, as_complex
from ckad.trace.values.fields import Fields
from ckad.trace.values.filled import Zero, is_filled, of_function
from ckad.trace.values.short import Short, constant
from ckad.trace.values.sparse import Dense
from ckad.trace.values.tracer import Tracer, fresh, known, lift, value
from ckad.trees import SHORT


def holds_tracer(x: Any) -> bool:
    """Whether ``x`` is traced, or a slice or nested container of what is."""
    if isinstance(x, Array) or type(x) in (Choice, OrNone):
        return True
    if isinstance(x, (tuple, list)):
        return any(holds_tracer(item) for item in x)
    if isinstance(x, slice):
        return any(isinstance(b, Tracer) for b in (x.start, x.stop, x.step))
    if isinstance(x, dict):
        return any(holds_tracer(item) for item in x.values())
    return False


def asks_traced(items: Sequence[Any]) -> bool:
    """Whether comparing items asks for traced values, or methods of the user's."""
    nested = all(isinstance(x, (tuple, list)) for x in items)
    for column in zip(*items, strict=False) if nested else [items]:
        own = any(type(x) is Choice or not is_library(type(x).__module__) for x in column)
        if own or holds_tracer(column):
            return True
        if all(map(is_hashable, column)) and len(set(column)) == len(column):
            return False  # what comes behind is not asked
    return False


def untranslated(function: Callable[..., Any], args: Sequence[Any], options: Any) -> Any:
    """What a library's function gives; a ConcreteValueError in it, whatever it has made of that."""
    ConcreteValueError.told.clear()
    try:
        return function(*args, **options)
    except CkadError as error:
        if type(function) is FunctionType and not is_library(function.__module__):
            error.add_note(
                f"{function.__name__}() is run by Python itself, not from its source: it awaits, "
                "sends values to a generator, or is not in a file. Move that out of the function."
            )
        raise
    except Exception as error:
        unbound = isinstance(function, MethodDescriptorType | WrapperDescriptorType)
        if unbound and args and isinstance(args[0], Array):
            said = f"of a traced value. Call it as a method: x.{function.__name__}(...)."
            raise UnrecordableError.here(f"{function.__qualname__} {said}") from error
        if not ConcreteValueError.told:
            raise
        raise ConcreteValueError(ConcreteValueError.told[0]) from error


def is_weak(x: Any) -> bool:
    """Whether ``x`` is a Python number, or stands for one."""
    if type(x) is Tracer:
        return x.weak
    if type(x) is ComplexTracer:
        return all(map(is_weak, x.parts))
    return type(x) in (int, float, bool, complex)


def classes_of(x: Any) -> frozenset[type]:
    """The classes that a number or array may be of in Python."""
    if isinstance(x, (Short, ComplexTracer)):
        one = complex if is_weak(x) else x.dtype.type
        return frozenset({one if np.ndim(x) == 0 else np.ndarray})
    if type(x) is not Tracer:
        return frozenset({type(x)})
    return x.classes or Slot(x.type, x.scalar, x.weak).classes_in_python


def of_classes(result: Any, function: Callable[..., Any], *given: Any) -> Any:
    """A scalar ``function(*given)`` that has the classes which that gives in Python."""
    if not [x for x in given if type(x) is Tracer and x.classes is not None]:
        return result  # most end here
    if any(map(is_filled, given)):
        return of_function(function, given, result)
    decided = any(type(x) is Tracer and x.classes for x in given)
    if decided and type(result) is Tracer:
        check_width(function, given)
    if decided and type(result) is Tracer and result.scalar:
        found = (_class_of_one(function, one) for one in product(*map(classes_of, given)))
        classes = frozenset(kind for kind in found if kind is not None)
        if result.dtype == bool and not classes <= _TRUTHS:
            undecided_truth()
        _note_classes(result, classes)
    return result


def check_width(function: Callable[..., Any], given: Sequence[Any]) -> None:
    """ConcreteValueError where the classes of operands decide how many bits the result has."""
    samples = [[_sample_of(x, kind) for kind in classes_of(x)] for x in given]
    _check_one_width({_dtype_of_one(function, one) for one in product(*samples)} - {None})


def check_widths(given: Iterable[Any]) -> None:
    """The same for what reads numbers as arrays, in lists and tuples too."""
    for x in given:
        if type(x) in (list, tuple):
            check_widths(x)
        elif type(x) is Tracer and x.classes and not is_filled(x):
            _check_one_width({np.asarray(_sample_of(x, kind)).dtype for kind in x.classes})


def _check_one_width(found: set[Any]) -> None:
    if len(found) > len({dtype.kind for dtype in found if dtype}):
        names = " or ".join(sorted(map(str, found)))
        raise ConcreteValueError.here(
            f"a value is computed in {names}, and which of these depends on a traced condition:"
            " Python's numbers take the dtype of what they meet, NumPy's do not. Convert the "
            "operand by float(x) or np.float64(x) before."
        )


def _sample_of(x: Any, kind: type) -> Any:
    return np.ones((1,), x.dtype) if kind is np.ndarray else kind(1)


def _dtype_of_one(function: Callable[..., Any], operands: Sequence[Any]) -> np.dtype | None:
    """The dtype of what a function of NumPy's numbers gives; None for one of Python's."""
    try:
        found = function(*operands)
    except (TypeError, OverflowError):
        return None
    return found.dtype if isinstance(found, (np.generic, np.ndarray)) else None


_TRUTHS = frozenset({bool, np.bool_})


def undecided_truth() -> NoReturn:
    """Python's True is the integer 1 where it is computed with, NumPy's is not."""
    raise ConcreteValueError.here(
        "a truth value is computed with, or compared by `is`, that is Python's or NumPy's, "
        "and which of these depends on a traced condition, or on the number of the step: "
        "True + True is 2 or True, ~True is -2 or False. Start with a value of the class that "
        "it has later: np.float64(x) in place of x; or write int(c), not c."
    )


def one_of_classes(result: Any, items: Iterable[Any]) -> Any:
    """A scalar that is one of ``items``, each of them a number."""
    if type(result) is Tracer and result.scalar:
        items = [*items]
        items = [x for x in items if type(x) is Tracer and value(x) == value(result)] or items
        _note_classes(result, frozenset[type]().union(*map(classes_of, items)))
    return result


def of_builtin(callee: Any, args: Sequence[Any], result: Tracer) -> Any:
    """What a builtin gives, which may be of several classes if its operands are."""
    if callee in (max, min):
        items = args[0] if len(args) == 1 else args
        numbers = isinstance(items, (list, tuple)) and all(np.ndim(x) == 0 for x in items)
        return one_of_classes(result, items) if numbers else result
    return of_classes(result, callee, *args) if callee in (abs, round, pow) else result


def _note_classes(x: Tracer, classes: frozenset[type]) -> None:
    x.classes = Slot(x.type, x.scalar, x.weak).of_classes(classes).classes


def _class_of_one(function: Callable[..., Any], classes: Sequence[type]) -> type | None:
    """The class of what a function of numbers of these gives; None if it takes none."""
    try:
        return type(function(*(np.ones(()) if c is np.ndarray else c(1) for c in classes)))
    except TypeError:
        return None


def weakened(x: Any) -> Any:
    """A traced scalar as one that stands for a Python number."""
    if type(x) is ComplexTracer:
        return ComplexTracer(*map(weakened, x.parts))
    return Tracer(x.storage, x.path, True, True) if type(x) is Tracer else x


def as_bound(x: Any) -> Any:
    """What a slice or a range takes its bound for: of a short integer, Python's."""
    if type(x) is not int and (own := classes.invoke(x, "__index__")) is not MISSING:
        x = own
    return weakened(x.numbers) if type(x) is Short and x.scalar else x


def lifted(x: Any) -> Any:
    """A new plain array as a tracer, so that traced values can be written into it later."""
    if type(x) is np.ndarray and x.ndim and x.dtype in SHORT:
        return constant(x)
    if type(x) is np.ndarray and x.ndim and x.dtype.kind in "fiub":
        return lift(x)
    if isinstance(x, np.ndarray) and trees.is_record(x):
        return dispatch.call(np.asarray, (x,), {})
    return as_complex(x) if type(x) is np.ndarray and x.ndim and x.dtype.kind == "c" else x


def arrays_of(x: Any) -> tuple[Tracer, ...]:
    """The traced arrays that ``x`` is: one, the two parts of a complex one, fields, or none."""
    if type(x) is OrNone:
        return tuple(array for leaf in flatten(x)[0] for array in arrays_of(leaf))
    if type(x) is Fields:
        return tuple(array for field in x.fields for array in arrays_of(field))
    if type(x) is ComplexTracer:
        return tuple(part for part in x.parts if type(part) is Tracer)
    if type(x) is Short:
        return arrays_of(x.numbers)
    return (x,) if type(x) is Tracer else ()


def truth(x: Any) -> bool | Tracer:
    """What a condition makes of ``x``: a bool, or a traced scalar of dtype bool."""
    if type(x) is ComplexTracer:
        x = np.not_equal(x, 0)
    if type(x) in (Short, Dense):
        x = x.numbers
    if isinstance(x, Filtered):
        x = np.greater(x.count, 0)
    if type(x) is OrNone:
        inner = truth(x.value)
        return astype(x.present if inner is True else np.logical_and(x.present, inner), bool)
    if type(x) is Choice:
        x = truth_of(x)
    if not isinstance(x, Tracer):
        verdict = classes.verdict(x)
        return bool(x) if verdict is None else truth(verdict)
    if x.size != 1:
        raise ValueError(
            at_place(
                f"the truth value of an array of shape {x.shape} is ambiguous. Use np.any(x) or "
                "np.all(x), or np.where for a choice per element."
            )
        )
    numbers = known(x)
    if numbers is not None:
        return bool(numbers)
    return astype(reshape_value(x, ()) if x.shape else x, bool)


# --- leaves of what is carried or chosen ---------------------------------------------------------


class Slot(NamedTuple):
    """The kind of one traced leaf: its type, whether it is a scalar, and a Python number."""

    type: Type
    scalar: bool
    weak: bool
    classes: frozenset[Any] | None = None  # that it may be of in Python, if these are several

    @property
    def classes_in_python(self) -> frozenset[Any]:
        if self.classes:
            return self.classes
        if not self.scalar:
            return frozenset({np.ndarray})
        return frozenset({_NUMBERS[self.type.dtype] if self.weak else self.type.numpy.type})

    def of_classes(self, classes: frozenset[Any]) -> Slot:
        """The same for values that are of one of these classes."""
        plain = self._replace(classes=None)
        return plain if classes == plain.classes_in_python else self._replace(classes=classes)

    def enter(self, trace: Trace, first: Any = 0) -> Tracer:
        """A new input of ``trace`` of this kind, which is ``first`` at first."""
        row = trace.builder.input(self.type)
        if self.weak and self.type.dtype == DType.I64 and not is_counted(first):
            trace.large.add(row)
        return Tracer(Storage(trace, row), (), self.scalar, self.weak, self.classes)

    def show(self, row: int) -> Tracer:
        """The tracer of a result of this kind."""
        shown = fresh(row, scalar=self.scalar)
        shown.weak, shown.classes = self.weak, self.classes
        return shown

    def row(self, x: Any) -> int:
        """``x`` converted to this kind, as a row of the current trace."""
        return value(broadcast_to(astype(x, self.type.numpy), self.type.shape))

    def undefined(self) -> int:
        """A row for a value that nothing may use."""
        number = np.nan if self.type.is_float else 0
        return current().builder.full(self.type, number)


_WEAK = {bool: DType.BOOL, int: DType.I64, float: DType.F64}
_NUMBERS: dict[DType, type] = {dtype: kind for kind, dtype in _WEAK.items()}


def slot_of(x: Any) -> Slot | None:
    """The kind of a leaf; None for one that is not a number or array."""
    if type(x) is Tracer:
        return Slot(x.type, x.scalar, x.weak, x.classes)
    if type(x) in _WEAK:
        return Slot(Type(_WEAK[type(x)], ()), True, True)
    if isinstance(x, (np.ndarray, np.number, np.bool_)):
        if x.dtype in SHORT:
            raise DtypeError.here(
                f"a loop or branch changes {x.dtype} numbers, which may wrap around, and ckad "
                "has none such. Convert them with .astype(np.int64) before."
            )
        try:
            lead = lift(x)
        except CkadError:
            return None
        return Slot(lead.type, lead.scalar, False)
    return None


def join(a: Slot, b: Slot, broadcasts: bool = False) -> Slot | None:
    """The kind that holds values of both; None where their shapes differ.

    With ``broadcasts`` a Python number may become an array.
    """
    classes = a.classes_in_python | b.classes_in_python
    if a.type.shape != b.type.shape:
        if broadcasts and a.weak and not a.type.shape:
            a = Slot(a.type.with_shape(b.type.shape), False, True)
        else:
            return None
    dtype = np.result_type(_sample(a), _sample(b))
    type = Type(_code(dtype), a.type.shape)
    is_weak = a.weak and b.weak and a.scalar
    return Slot(type, a.scalar and b.scalar, is_weak).of_classes(classes)


def join_values(x: Any, y: Any) -> Slot | None:
    """The kind that holds two traced values or numbers; a Python number may become an array."""
    a, b = slot_of(x), slot_of(y)
    if a is None or b is None:
        return None
    joined = join(a, b, broadcasts=True)
    if joined and joined.type.shape and type(x) in (int, float) and not x:
        return joined.of_classes(joined.classes_in_python | {Zero})
    return joined


def is_kept(slot: Slot, joined: Slot) -> bool:
    """Whether a value of one kind computes as the same value of the wider kind does.

    Python's numbers take any; integers give the numbers that floats give.
    """
    one, other = slot.type.dtype, joined.type.dtype
    return one == other or slot.weak or (one == DType.I64 and other == DType.F64)


def is_same_array(slot: Slot, other: Slot) -> bool:
    """Whether what is written into both becomes the same numbers there."""
    return slot.scalar or slot.weak or slot.type.dtype == other.type.dtype


def _sample(slot: Slot) -> Any:
    if slot.weak and slot.type.dtype != DType.BOOL:
        return 0.0 if slot.type.is_float else 0
    return slot.type.numpy


def _code(dtype: np.dtype) -> DType:
    return lift(np.zeros((), dtype)).type.dtype


def are_numbers(keys: Sequence[Any]) -> bool:
    slots = [slot_of(x) for x in keys]
    return all(slot is not None and not slot.type.shape for slot in slots)
