"""SciPy's special functions on tracers; loaded when the first one of them is called."""

from __future__ import annotations

import numpy as np
import scipy.special

from ckad.tape.ops import Op
from ckad.trace.primitives.elementwise import by_op, constant_like, register
from ckad.trace.values.apply import apply

register(scipy.special.erf, by_op(Op.ERF))
register(scipy.special.gammaln, by_op(Op.LGAMMA))
register(scipy.special.erfc, lambda x: 1.0 - apply(Op.ERF, x))
register(scipy.special.expit, lambda x: 1.0 / (1.0 + np.exp(-x)))
register(scipy.special.digamma, lambda x: apply(Op.POLYGAMMA, constant_like(x, 0.0), x))
register(
    scipy.special.xlogy,
    lambda x, y: np.where(np.equal(x, 0), 0.0, x * np.log(np.where(np.equal(x, 0), 1.0, y))),
)
