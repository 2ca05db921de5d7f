"""What an iteration has found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ckad.trace.arrays import is_traced
from ckad.trace.results import Result

_OF_HESSIANS = "np.linalg.inv(ckad.hessian(fun)(x)) is exact where SciPy's is made up of its steps."


class OptimizeResult(Result):
    """The fields of SciPy's result; inside of a recording they hold traced values.

    Attributes:
        x: the solution, of the shape of ``x0``.
        success: whether the iteration converged.
        status: why it ended, as a number; 1 is success for `root`, 0 for `minimize`.
        message: the status in words; inside of a recording all that it may mean.
        fun: the function at ``x``.
        jac: of `minimize`: the gradient at ``x``, without derivative.
        nfev, njev, nit: evaluations of the function and of its derivative, iterations.

    >>> import numpy as np, ckad
    >>> result = ckad.optimize.root(lambda x: x**2 - 2.0, np.array([1.0]))
    >>> result.success, result.status, result.message
    (True, 1, 'The solution converged.')
    """

    remedies: ClassVar[Mapping[str, str]] = {"hess_inv": _OF_HESSIANS}

    def __init__(self, messages: Mapping[int, str], **found: Any) -> None:
        self.x, self.success, self.status = found["x"], found["success"], found["status"]
        if is_traced(self.status):
            said = "; ".join(f"{status}: {text}" for status, text in messages.items())
            self.message = f"status says which: {said}"
        else:
            self.success, self.status = bool(self.success), int(self.status)
            self.message = messages[self.status]
        self.fun = found["fun"]
        if "jac" in found:
            self.jac = found["jac"]
        counts = (found.get(name, 0) for name in ("nfev", "njev", "nit"))
        self.nfev, self.njev, self.nit = (x if is_traced(x) else int(x) for x in counts)


class Found(Result):
    """The fields of another result of SciPy's."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)
