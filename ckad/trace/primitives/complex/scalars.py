"""``complex(x, y)``, ``np.complex128(x)`` and the module ``cmath`` on traced values."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

from ckad.place import at_place
from ckad.trace.dispatch import COMPLEX, STATIC, call, put, reject
from ckad.trace.primitives.complex.ufuncs import multiply
from ckad.trace.values.complex import ComplexTracer, as_complex
from ckad.trace.values.tracer import Tracer


def _traced(*xs: Any) -> bool:
    return any(isinstance(x, (Tracer, ComplexTracer)) for x in xs)


def _single(x: Any) -> ComplexTracer:
    """The only element of ``x`` as a scalar."""
    z = as_complex(x)
    if z.size != 1:
        raise TypeError(at_place(f"one number is needed, and the array has {z.size}; index it"))
    scalar: ComplexTracer = z.reshape(())[()]
    return scalar


def complex_number(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """``complex(real, imag)``, that is ``real + 1j * imag``."""
    if not _traced(real, imag):
        return complex(real, imag)
    turned = multiply(as_complex(1j), _single(imag)) if _traced(imag) else imag * 1j
    return _of_python(np.add(_single(real), turned))


def _of_python(z: Any) -> ComplexTracer:
    """A scalar that promotes as Python's complex numbers do."""
    return ComplexTracer(*(call(float, (part,), {}) for part in z.parts))


def _item(z: ComplexTracer, *index: Any) -> Any:
    """The element as a Python number; it stays traced."""
    return ComplexTracer(*(part.item(*index) for part in z.parts))


def _tolist(z: ComplexTracer) -> Any:
    return [x.tolist() for x in z] if z.shape else _item(z)


put(bool, lambda z: call(bool, (np.not_equal(_single(z), 0),), {}), COMPLEX)
put(np.ndarray.item, _item, COMPLEX)
put(np.ndarray.tolist, _tolist, COMPLEX)


def _constructor(kind: Any) -> Callable[[Any], Any]:
    def construct(x: Any = 0) -> Any:
        return as_complex(x).astype(kind) if _traced(x) else kind(x)

    return construct


put(complex, complex_number, STATIC)
for _kind in (np.complex128, np.complex64):
    put(_kind, _constructor(_kind), STATIC)


# --- the module cmath --------------------------------------------------------------------------


def _elementary(original: Any, ufunc: Any) -> Callable[..., Any]:
    def function(z: Any, *args: Any) -> Any:
        if not _traced(z, *args):
            return original(z, *args)
        reject(args, f"cmath.{original.__name__} with two arguments")
        return ufunc(_single(z))

    return function


_NAMES = """exp log log10 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh
    isnan isinf isfinite"""
for _name in _NAMES.split():
    _original = getattr(cmath, _name)
    put(_original, _elementary(_original, getattr(np, _name)), STATIC)
put(cmath.phase, _elementary(cmath.phase, np.angle), STATIC)
put(cmath.polar, _elementary(cmath.polar, lambda z: (np.abs(z), np.angle(z))), STATIC)


def _rect(r: Any, phi: Any) -> Any:
    if not _traced(r, phi):
        return cmath.rect(r, phi)
    if any(isinstance(x, (complex, ComplexTracer)) for x in (r, phi)):
        raise TypeError(at_place("cmath.rect() takes two real numbers: x.real, abs(x)."))
    return complex_number(r * np.cos(phi), r * np.sin(phi))


put(cmath.rect, _rect, STATIC)
