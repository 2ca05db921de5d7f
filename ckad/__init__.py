"""Exact gradients of long time-stepping programs, fast, inside a memory budget in bytes.

>>> import numpy as np, ckad
>>> def energy(u):
...     for _ in range(50):
...         u = u + 0.1 * np.roll(u, 1)
...     return np.sum(u**2)
>>> value, gradient = ckad.value_and_grad(energy, memory="64 KiB")(np.ones(8))
"""

import importlib
from typing import Any

from ckad.collection import kept_for_good

with kept_for_good():
    from ckad import errors, schedules, testing
    from ckad.checkpoint.budget import Budget
    from ckad.checkpoint.plan import Plan
    from ckad.errors import CkadError
    from ckad.loops.progress import Front, Progress
    from ckad.stencils import stencil
    from ckad.tape.tape import Tape
    from ckad.transforms import (
        adjoint,
        cfunc,
        checkpoint,
        clear_caches,
        cond,
        custom_jvp,
        custom_vjp,
        debug,
        explain,
        fori_loop,
        gauss_newton,
        grad,
        hessian,
        hvp,
        jacfwd,
        jacobian,
        jacrev,
        jit,
        jvp,
        linear_operator,
        linearize,
        plan,
        primitive,
        scan,
        sparsity,
        stop_gradient,
        tangent,
        trace,
        value_and_grad,
        vjp,
        vmap,
        while_loop,
    )

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The solvers, which take SciPy with them, are loaded when they are first asked for."""
    if name in ("integrate", "optimize"):
        return importlib.import_module(f"ckad.{name}")
    raise AttributeError(f"module 'ckad' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone: layers are reached by importing them."""
    return __all__


__all__ = [
    "Budget",
    "CkadError",
    "Front",
    "Plan",
    "Progress",
    "Tape",
    "adjoint",
    "cfunc",
    "checkpoint",
    "clear_caches",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "errors",
    "explain",
    "fori_loop",
    "gauss_newton",
    "grad",
    "hessian",
    "hvp",
    "integrate",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_operator",
    "linearize",
    "optimize",
    "plan",
    "primitive",
    "scan",
    "schedules",
    "sparsity",
    "stencil",
    "stop_gradient",
    "tangent",
    "testing",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
