"""Functions that ckad does not look into, and derivatives that the user gives.

primitive   `primitive`: a function on arrays as one op.
custom      `custom_vjp`, `custom_jvp`: a recorded function with derivatives of its own.
implicit    Values that an equation defines; `linear` solutions of systems by iteration,
            `closed` the functions that both are about.
rules       The derivative rules of both: recorded, turned into each other, appended.
forms       Arguments of one form, and what is computed of them, as arrays of a routine.
bodies      What computes a primitive: Python, Numba's machine code, a C function.
declaration How a C function is declared.
"""

from ckad.transforms.primitives import linear as linear  # its row of the table
from ckad.transforms.primitives.custom import checkpoint, custom_jvp, custom_vjp
from ckad.transforms.primitives.primitive import primitive

__all__ = ["checkpoint", "custom_jvp", "custom_vjp", "primitive"]
