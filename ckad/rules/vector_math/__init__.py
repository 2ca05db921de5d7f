"""Elementary functions as LLVM IR that vectorises.

Each is an emitter (see ``ckad.rules.ir``) for float64, one double or a vector of any number of
lanes, without branches, tables or calls, except that arguments of sin, cos and tan beyond 2**30
go to the C library, and that small integer powers are a few products. The bits of a result do not
depend on the number of lanes. Engines evaluate float32 functions in float64 and round, which is at
most 0.51 ulp of float32 from the exact result; the native one by ``single.py``, where it has the
function. The bounds are in ``docs/mathematics.md`` and tested
in ``tests/test_vector_math.py``; the coefficients are minimax polynomials by Remez' algorithm in
200-bit arithmetic.
"""

from __future__ import annotations

from ckad.rules.vector_math.error_function import erf
from ckad.rules.vector_math.exponential import exp, exp2, expm1
from ckad.rules.vector_math.hyperbolic import cosh, sinh, tanh
from ckad.rules.vector_math.length import hypot
from ckad.rules.vector_math.logarithm import log, log1p, log2, log10
from ckad.rules.vector_math.power import pow
from ckad.rules.vector_math.trigonometric import cos, sin, tan

__all__ = [
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "pow",
    "sin",
    "sinh",
    "tan",
    "tanh",
]
