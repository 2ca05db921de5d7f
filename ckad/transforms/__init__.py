"""The transformations: what users call."""

from ckad.transforms.call import clear_caches
from ckad.transforms.debug import debug
from ckad.transforms.explain import explain
from ckad.transforms.forward import adjoint, jit, jvp, tangent, trace
from ckad.transforms.gradients import Gradient, grad, plan, value_and_grad, vjp
from ckad.transforms.second import hessian, hvp, jacobian
from ckad.transforms.structured import cond, fori_loop, scan, while_loop

__all__ = [
    "Gradient",
    "adjoint",
    "clear_caches",
    "cond",
    "debug",
    "explain",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "plan",
    "scan",
    "tangent",
    "trace",
    "value_and_grad",
    "vjp",
    "while_loop",
]
