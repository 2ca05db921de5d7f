"""Every public name has an example that tests/test_docs.py runs, and what it makes can be shown."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import ckad

MODULES = [ckad, ckad.schedules, ckad.testing, ckad.integrate, ckad.optimize]
NAMES = [f"{module.__name__}.{name}" for module in MODULES for name in module.__all__]


def found(name):
    module, _, last = name.rpartition(".")
    return getattr(next(m for m in MODULES if m.__name__ == module), last)


@pytest.mark.parametrize("name", [n for n in NAMES if not inspect.ismodule(found(n))])
def test_a_public_name_has_a_summary_line_and_an_example(name):
    text = inspect.getdoc(found(name))
    assert text.splitlines()[0].rstrip(":").endswith((".", "?"))
    assert ">>> " in text


def f(x):
    return x**2


MADE = {
    "adjoint": lambda x: ckad.adjoint(ckad.trace(f)(x)),
    "checkpoint": lambda x: ckad.checkpoint(f),
    "compiled": lambda x: ckad.grad(lambda x: np.sum(f(x))).compiled(x),
    "custom_jvp": lambda x: ckad.custom_jvp(f),
    "custom_vjp": lambda x: ckad.custom_vjp(f),
    "explain": lambda x: ckad.explain(lambda x: np.sum(f(x)), x),
    "grad": lambda x: ckad.grad(f),
    "hessian": lambda x: ckad.hessian(f),
    "jacobian": lambda x: ckad.jacobian(f),
    "jit": lambda x: ckad.jit(f),
    "linear_operator": lambda x: ckad.linear_operator(f, x),
    "linearize": lambda x: ckad.linearize(f, x)[1],
    "plan": lambda x: ckad.plan(lambda x: np.sum(f(x)), x),
    "primitive": lambda x: ckad.primitive(f),
    "sparsity": lambda x: ckad.sparsity(f),
    "stencil": lambda x: ckad.stencil(lambda a: a[1] - a[-1]),
    "trace": lambda x: ckad.trace(f),
    "value_and_grad": lambda x: ckad.value_and_grad(f),
    "vjp": lambda x: ckad.vjp(f, x)[1],
    "vmap": lambda x: ckad.vmap(f),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_says_what_it_is(name):
    shown = str(MADE[name](np.ones(3)))
    assert len(shown) > 5
    assert "<locals>" not in shown
