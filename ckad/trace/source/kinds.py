"""The classes that traced values have in Python: what ``type`` and ``isinstance`` say of them."""

from __future__ import annotations

import builtins
from types import FunctionType, UnionType
from typing import Any

import numpy as np

from ckad.trace import dispatch
from ckad.trace.source.choices import Choice, refuse
from ckad.trace.source.names import absence
from ckad.trace.source.names.absence import OrNone
from ckad.trace.source.names.closures import Closure
from ckad.trace.source.outside.clock import computed
from ckad.trace.source.text import TracedText
from ckad.trace.values.array import Array
from ckad.trace.values.complex import ComplexTracer
from ckad.trace.values.fields import Fields
from ckad.trace.values.part import Part
from ckad.trace.values.sparse import Sparse
from ckad.trace.values.tracer import Tracer

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
    if not getattr(one, "scalar", True):
        return np.ndarray
    if getattr(one, "weak", True):
        return _NUMBERS[np.dtype(x.dtype).kind]
    return np.dtype(x.dtype).type


def _type(*args: Any, **options: Any) -> Any:
    return class_of(*args) if len(args) == 1 else type(*args, **options)


def is_instance(x: Any, wanted: Any) -> bool:
    kind = class_of(x)
    if kind is type(x):
        return isinstance(x, wanted)
    if isinstance(wanted, (tuple, UnionType)):
        parts = wanted if isinstance(wanted, tuple) else wanted.__args__
        return any(is_instance(x, part) for part in parts)
    if isinstance(wanted, type) and issubclass(wanted, Array):
        return isinstance(x, wanted)  # who names our classes means them
    return issubclass(kind, wanted)


for _builtin, _function in {type: _type, builtins.isinstance: is_instance}.items():
    dispatch.put(_builtin, _function, (*dispatch.ANY, dispatch.SPARSE))
    dispatch.always(_builtin)
