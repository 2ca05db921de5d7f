"""Arrays with named fields while tracing: one traced array per field.

Each field has memory of its own, and ``Z["U"]`` is a view of it. An element of the array, ``Z[i]``,
is the same with fields that have no axes of the array: as in NumPy, what is written into it is
written into the array.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import ConcreteValueError, UnrecordableError
from ckad.trace import dispatch
from ckad.trace.dispatch import Traced
from ckad.trace.values.array import Shaped


class Fields(Shaped):
    """An array with named fields being recorded, or an element of one.

    ``fields`` are traced values, which have the axes of the array and then those of the field.
    """

    __slots__ = ("fields", "record")
    kind = dispatch.FIELDS
    __array_priority__ = 3000

    record: trees.RecordType
    fields: tuple[Any, ...]

    def __init__(self, record: trees.RecordType, fields: tuple[Any, ...]) -> None:
        object.__setattr__(self, "record", record)
        object.__setattr__(self, "fields", fields)

    # --- what it is ----------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return self.record.dtype.names or ()

    @property
    def dtype(self) -> np.dtype:
        return self.record.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.record.lead(self.fields[0].shape)

    @property
    def size(self) -> Any:
        return prod(self.shape)

    def inner(self, name: str) -> int:
        """How many axes of its own a field has."""
        return self.dtype[name].ndim

    def __len__(self) -> int:
        if self.record.is_item:
            return len(self.names)
        if not self.shape:
            raise TypeError("len() of unsized object")
        return len(self.fields[0])

    def __iter__(self) -> Iterator[Any]:
        if self.record.is_item:
            return (self[name] for name in self.names)
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<traced array of shape {self.shape} with the fields {', '.join(self.names)}>"

    # --- fields as attributes ------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if self.record.has_attributes and name in self.names:
            return self[name]
        raise AttributeError(f"an array with the fields {self.names} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not (self.record.has_attributes and name in self.names):
            raise UnrecordableError.here(
                f"the attribute {name!r} of a traced array cannot be set. Make a new one."
            )
        self[name] = value

    # --- numbers are not known -----------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ConcreteValueError.here(
            "a traced array with named fields is turned into a plain one, or written into one. "
            "Make the array inside of the function, with np.zeros(n, dtype=...)."
        )

    def __bool__(self) -> NoReturn:
        raise ConcreteValueError.here(
            "a condition depends on an array with named fields. Compare its fields."
        )

    __hash__ = object.__hash__


trees.register_record(Fields, Traced)
