"""The classes that traced values have in Python: what ``type`` and ``isinstance`` say of them.

A traced scalar may be a Python number or one of NumPy's, or either by a condition: then the answer
is a condition, too, or an error that says so.
"""

from __future__ import annotations

from collections.abc import Collection
from types import FunctionType, UnionType
from typing import Any, NoReturn

import numpy as np

from ckad.errors import ConcreteValueError
from ckad.place import at_place
from ckad.tape.reasons import Reason
from ckad.trace import arrays, dispatch
from ckad.trace.memory.assumed import Spectra, asked_spectra
from ckad.trace.source.choices import Choice, refuse
from ckad.trace.source.control.checks import note_raise
from ckad.trace.source.names import absence
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.names.frame import ledger, made
from ckad.trace.source.outside.clock import computed
from ckad.trace.source.text import TracedText
from ckad.trace.values.array import Array
from ckad.trace.values.complex import ComplexTracer, as_complex
from ckad.trace.values.fields import Fields
from ckad.trace.values.part import Part
from ckad.trace.values.short import Short
from ckad.trace.values.sparse import Sparse
from ckad.trace.values.tracer import Tracer, known, known_as_run


def check_items(x: Any, what: str, method: str) -> None:
    """Python's numbers have no items, and NumPy's none that can be bound."""
    if type(x) is Tracer and x.scalar and not x.classes and not hasattr(class_of(x), method):
        raise TypeError(at_place(f"{class_of(x).__name__!r} object is not {what}"))


_NUMBERS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def class_of(x: Any) -> type:
    """``type(x)`` in Python."""
    if isinstance(x, (Tracer, ComplexTracer)):
        return _class_of_array(x)
    x = computed(x)
    if type(x) is Choice:
        classes = {type(known) for known in x.objects}
        return classes.pop() if len(classes) == 1 else refuse()
    if type(x) is OrNone:
        absence.refuse("its class is asked for")
    if type(x) is Short:
        return x.dtype.type if x.scalar else np.ndarray
    if isinstance(x, Part):
        return np.ndarray
    if isinstance(x, Sparse):
        return x.pattern.cls
    if isinstance(x, Fields):
        one, many = (np.record, np.recarray) if x.record.has_attributes else (np.void, np.ndarray)
        return one if x.record.is_item else many
    if type(x) is Closure:
        return FunctionType
    return str if type(x) is TracedText else type(x)


def _class_of_array(x: Tracer | ComplexTracer) -> type:
    one = x if isinstance(x, Tracer) else x.parts[0]
    if isinstance(one, Tracer) and one.classes:
        (kind,) = one.classes if len(one.classes) == 1 else _refuse(one.classes)
        return kind
    if not getattr(one, "scalar", True):
        return np.ndarray
    if getattr(one, "weak", True):
        return _NUMBERS[np.dtype(x.dtype).kind]
    return np.dtype(x.dtype).type


# --- eigenvalues ---------------------------------------------------------------------------------

#: What takes or orders real numbers, beside the functions of ``math``.
_OF_REALS: tuple[Any, ...] = (
    *(float, int, max, min, sorted, np.argmax, np.argmin, np.argsort, np.max, np.min),
    *(np.arctan2, np.hypot, np.degrees, np.rad2deg, np.maximum, np.minimum, np.isnan),
)


def _as_spectrum(values: Any, *vectors: Any) -> tuple[Any, ...]:
    """What is assumed of them stops the program where it does not hold, whether they are used or
    only asked for their dtype or an imaginary part."""
    found = values, *vectors
    imaginary = as_complex(values).imag
    numbers = known(imaginary)
    if numbers is None:
        numbers = known_as_run(imaginary)
    if numbers is not None:
        return found if np.any(numbers) else tuple(x.real.copy() for x in found)
    spectra = asked_spectra()
    if spectra is Spectra.ANY:
        return found
    left = np.any(np.not_equal(imaginary, 0.0))
    if spectra is Spectra.NOT_REAL:
        note_raise(np.logical_not(left), Reason.SPECTRUM)
        return found
    note_raise(left, Reason.SPECTRUM)
    return tuple(arrays.stopping(x.real, left, "SPECTRUM") for x in found)


dispatch.put(arrays.as_spectrum, _as_spectrum, dispatch.COMPLEX)


def real_of_spectra(callee: Any, args: list[Any]) -> list[Any]:
    """The operands of a function of real numbers where eigenvalues are among them.

    NumPy's ``eig`` gives real numbers where no imaginary part is left; here they are complex, and
    the program stops where one is left, as Python does with a TypeError.
    """
    module = str(getattr(callee, "__module__", ""))
    if module.startswith(("numpy.linalg", "scipy.linalg")):
        ledger().has_spectra |= callee.__name__ in ("eig", "eigvals")
    if not ledger().has_spectra:
        return args
    if module != "math" and not any(callee is f for f in _OF_REALS):
        return args
    return [_real(x) if isinstance(x, (ComplexTracer, list)) else x for x in args]


def _real(x: Any) -> Any:
    if type(x) is list:
        return made([_real(item) for item in x]) if any(map(_is_complex, x)) else x
    if not _is_complex(x):
        return x
    note_raise(np.any(np.not_equal(np.imag(x), 0.0)))
    return np.real(x).copy() if np.ndim(x) else np.real(x)


def _is_complex(x: Any) -> bool:
    return type(x) is ComplexTracer


def _type(*args: Any, **options: Any) -> Any:
    return class_of(*args) if len(args) == 1 else type(*args, **options)


def _refuse(classes: Collection[type]) -> NoReturn:
    names = sorted(kind.__name__ for kind in classes)
    raise ConcreteValueError.here(
        f"the class of a value is asked for that is {' or '.join(names)}, and which of these "
        "depends on a traced condition, or on the number of the step. Start with a value of "
        "the class that it has later: 0.0 in place of 0, or float(x)."
    )


def is_instance(x: Any, wanted: Any) -> bool:
    if type(x) is Tracer and x.classes:
        found = {issubclass(kind, wanted) for kind in x.classes}
        return found.pop() if len(found) == 1 else _refuse(x.classes)
    kind = class_of(x)
    if kind is type(x):
        return isinstance(x, wanted)
    if isinstance(wanted, (tuple, UnionType)):
        parts = wanted if isinstance(wanted, tuple) else wanted.__args__
        return any(is_instance(x, part) for part in parts)
    if isinstance(wanted, type) and issubclass(wanted, Array):
        return isinstance(x, wanted)  # who names our classes means them
    return issubclass(kind, wanted)


def _has_attribute(x: Any, name: str) -> bool:
    """``hasattr(x, name)``: a traced array or number has what those of NumPy or Python have."""
    if not isinstance(x, (Tracer, ComplexTracer, Short)):
        return hasattr(x, name)
    return any(name in base.__dict__ for base in class_of(x).__mro__)


def _is_scalar(x: Any) -> bool:
    return np.isscalar(x) or is_instance(x, (np.generic, int, float, complex))


_OF_CLASSES: dict[Any, Any] = {type: _type, isinstance: is_instance, hasattr: _has_attribute}
for _builtin, _function in _OF_CLASSES.items():
    dispatch.put(_builtin, _function, (*dispatch.ANY, dispatch.SPARSE, dispatch.SHORT))
    dispatch.always(_builtin)
dispatch.put(np.isscalar, _is_scalar, dispatch.EVERY)
