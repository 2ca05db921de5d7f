"""A pytest plugin: the modules that autograd's tests import, made of NumPy, SciPy and ckad.

Differentiation is ckad's, functions are NumPy's and SciPy's own. What belongs to autograd alone
(primitives with rules of their own, vector spaces, its graphs) raises NotOurs when it is called.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import sys
from types import ModuleType

import numpy as np
import optree

import ckad


class NotOurs(Exception):
    """The test asks for something that is autograd's own."""


def not_ours(name):
    def missing(*args, **options):
        raise NotOurs(f"{name} is autograd's own")

    return missing


# --- derivatives: operators on one argument, or on a tuple of several --------------------------


def of_arguments(operator):
    """``operator(function of x, x)`` as autograd calls it: ``operator(f, argnum)(*args)``."""

    def outer(fun, argnum=0, *settings, **named):
        def inner(*args, **options):
            def one(x):
                filled = list(args)
                for k, value in zip(numbers, x if several else (x,), strict=True):
                    filled[k] = value
                return fun(*filled, **options)

            several = not isinstance(argnum, int)
            numbers = argnum if several else (argnum,)
            x = tuple(args[k] for k in numbers) if several else args[argnum]
            return operator(one, x, *settings, **named)

        return inner

    return outer


def _scalar(fun):
    """``fun`` with a result of one element as a number."""

    def number(x):
        return np.reshape(fun(x), ())

    return number


@of_arguments
def grad(fun, x):
    return ckad.grad(_scalar(fun))(x)


@of_arguments
def value_and_grad(fun, x):
    return ckad.value_and_grad(_scalar(fun))(x)


@of_arguments
def grad_and_aux(fun, x):
    (_, aux), gradient = ckad.value_and_grad(fun, has_aux=True)(x)
    return gradient, aux


@of_arguments
def elementwise_grad(fun, x):
    return ckad.grad(lambda y: np.sum(fun(y)))(x)


@of_arguments
def deriv(fun, x):
    return ckad.jvp(fun, (x,), (np.ones_like(x),))[1]


@of_arguments
def holomorphic_grad(fun, x):
    return ckad.grad(lambda z: np.real(fun(z)))(x)


@of_arguments
def jacobian(fun, x):
    return ckad.jacobian(fun)(x)


@of_arguments
def hessian(fun, x):
    return ckad.hessian(fun)(x)


def pullback_and_value(fun, x):
    value, pullback = ckad.vjp(fun, x)
    return lambda ct: pullback(ct)[0], value


make_vjp = of_arguments(pullback_and_value)


@of_arguments
def make_jvp(fun, x):
    return lambda v: ckad.jvp(fun, (x,), (v,))


@of_arguments
def make_hvp(fun, x):
    return (lambda v: ckad.hvp(fun, (x,), (v,))), ckad.grad(fun)(x)


def hessian_tensor_product(fun, argnum=0):
    gradient = grad(fun, argnum)

    def contracted(*args):
        return np.tensordot(gradient(*args[:-1]), args[-1], np.ndim(args[-1]))

    return grad(contracted, argnum)


def tensor_jacobian_product(fun, argnum=0):
    def contracted(*args):
        return np.tensordot(args[-1], fun(*args[:-1]), np.ndim(args[-1]))

    return jacobian(contracted, argnum)


def _half_square(x):
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f, g=_half_square):
    def at(x):
        def product(v):
            y, forward = ckad.jvp(f, (x,), (v,))
            back = ckad.vjp(f, x)[1]
            return back(ckad.hvp(g, (y,), (forward,)))

        return product

    return at


# --- checks ------------------------------------------------------------------------------------


def _flat(tree):
    leaves = [np.ravel(np.asarray(x)) for x in optree.tree_leaves(tree)]
    return np.concatenate([np.zeros(0), *leaves])


def scalar_close(a, b):
    return builtins.bool(np.isclose(a, b, rtol=1e-6, atol=1e-6))


def check_equivalent(x, y):
    one, other = _flat(x), _flat(y)
    assert one.shape == other.shape, f"{one.shape} and {other.shape}"
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def check_grads(fun, argnum=0, modes=("fwd", "rev"), order=2):
    return _checked(fun, argnum, modes, order)


@of_arguments
def _checked(fun, x, modes, order):
    """Derivatives against differences over a short step: the tests go near kinks."""
    x = _floats(x)
    rng = np.random.default_rng(0)
    v = _random(rng, x)
    slope = _map(lambda a, b: (a - b) / STEP, fun(_moved(x, v, 0.5)), fun(_moved(x, v, -0.5)))
    w = _random(rng, slope)

    def pushed(y):
        return ckad.jvp(fun, (y,), (v,))[1]

    def pulled(y):
        return ckad.vjp(fun, y)[1](w)[0]

    if "fwd" in modes:
        check_equivalent(ckad.jit(fun)(x), fun(x))
        _check(_dot(w, pushed(x)), _dot(w, slope))
    if "rev" in modes:
        _check(_dot(v, pulled(x)), _dot(w, slope))
    for mode, derived in (("fwd", pushed), ("rev", pulled)):
        if order > 1 and mode in modes:
            _checked(derived, 0, modes, order - 1)(x)


STEP = 1e-6


def _check(found, differences):
    assert abs(found - differences) <= 2e-6 * (1 + abs(found)), f"{found}, not {differences}"


def _floats(x):
    """Arguments that are differentiated are floats: ckad does not cast them."""
    return _map(lambda leaf: np.asarray(leaf, np.result_type(leaf, np.float32))[()], x)


def _map(function, tree, *others):
    return optree.tree_map(function, tree, *others)


def _random(rng, tree):
    def direction(x):
        v = rng.standard_normal(np.shape(x))
        return (v + 1j * rng.standard_normal(np.shape(x)) if np.iscomplexobj(x) else v)[()]

    return _map(direction, tree)


def _moved(x, v, by):
    return _map(lambda a, b: a + by * STEP * b, x, v)


def _dot(a, b):
    """The pairing that cotangents of complex numbers are defined by: no part is conjugated."""
    pairs = zip(optree.tree_leaves(a), optree.tree_leaves(b), strict=True)
    return sum(float(np.sum(np.real(x * y))) for x, y in pairs)


def combo_check(fun, *settings, **named):
    """`check_grads` for every combination of arguments and options."""

    def check(*args, **options):
        for chosen in itertools.product(*args):
            for values in itertools.product(*options.values()):
                check_grads(fun, *settings, **named)(
                    *chosen, **dict(zip(options, values, strict=True))
                )

    return check


# --- pytrees -----------------------------------------------------------------------------------


def flatten(tree):
    """All numbers of a nest of containers in one array, and what puts them back."""
    leaves, structure = optree.tree_flatten(tree)
    shapes = [np.shape(x) for x in leaves]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def unflatten(flat):
        parts = [
            np.reshape(flat[a:b], shape)
            for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
        ]
        return optree.tree_unflatten(structure, parts)

    return np.concatenate([np.zeros(0), *map(np.ravel, leaves)]), unflatten


def make_diagonal(d, axis1=-1, axis2=-2):
    """A stack of diagonal matrices; ``np.make_diagonal`` is autograd's own function."""
    assert {axis1, axis2} == {-1, -2}
    return d[..., None] * np.eye(d.shape[-1])


# --- modules -----------------------------------------------------------------------------------


def _module(name, **names):
    module = ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)


def _install():
    own = {
        name: not_ours(name)
        for name in "primitive primitive_vjps defvjp vspace const_graph".split()
    }
    containers = {"dict": dict, "list": list, "tuple": tuple, "isinstance": isinstance}
    operators = {
        name: globals()[name]
        for name in """grad value_and_grad grad_and_aux elementwise_grad deriv
        holomorphic_grad jacobian hessian make_vjp make_jvp make_hvp
        hessian_tensor_product tensor_jacobian_product
        make_ggnvp""".split()
    }
    _module("autograd", **operators, **containers, checkpoint=lambda fun: fun)
    _module("autograd.numpy", **vars(np), make_diagonal=make_diagonal)
    for name in ("random", "linalg", "fft"):
        sys.modules[f"autograd.numpy.{name}"] = getattr(np, name)
    _module("autograd.builtins", **containers)
    _module("autograd.core", make_vjp=pullback_and_value, **own)
    _module("autograd.extend", **own)
    _module("autograd.tracer", primitive=own["primitive"], isbox=lambda x: False)
    _module("autograd.wrap_util", unary_to_nary=of_arguments)
    _module("autograd.misc", flatten=flatten, const_graph=own["const_graph"])
    _module(
        "autograd.test_util",
        check_grads=check_grads,
        check_equivalent=check_equivalent,
        combo_check=combo_check,
        scalar_close=scalar_close,
    )
    _module("autograd.scipy")
    for name in ("special", "stats", "signal", "linalg", "integrate"):
        library = importlib.import_module(f"scipy.{name}")
        _module(f"autograd.scipy.{name}", **vars(library))
    mvn = sys.modules["autograd.scipy.stats"].multivariate_normal
    sys.modules["autograd.scipy.stats.multivariate_normal"] = mvn


_install()
