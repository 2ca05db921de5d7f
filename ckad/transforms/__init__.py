"""The transformations: what users call."""

from ckad.transforms.batches import vmap
from ckad.transforms.call import clear_caches
from ckad.transforms.cfunc import CFunction, cfunc
from ckad.transforms.forward import adjoint, jit, jvp, linearize, tangent, trace
from ckad.transforms.gradients import Gradient, grad, plan, value_and_grad, vjp
from ckad.transforms.operators import gauss_newton, linear_operator
from ckad.transforms.primitives import checkpoint, custom_jvp, custom_vjp, primitive
from ckad.transforms.second import hessian, hvp, jacfwd, jacobian, jacrev
from ckad.transforms.seen.debug import debug
from ckad.transforms.seen.explain import explain
from ckad.transforms.sparse import Sparsity, sparsity
from ckad.transforms.structured import cond, fori_loop, scan, stop_gradient, while_loop

__all__ = [
    "CFunction",
    "Gradient",
    "Sparsity",
    "adjoint",
    "cfunc",
    "checkpoint",
    "clear_caches",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "explain",
    "fori_loop",
    "gauss_newton",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_operator",
    "linearize",
    "plan",
    "primitive",
    "scan",
    "sparsity",
    "stop_gradient",
    "tangent",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
