"""SciPy's sparse matrices where they meet traced values: as traced ones."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ckad import trees
from ckad.patterns import is_sparse, is_superlu
from ckad.trace.dispatch import call, reject
from ckad.trace.memory import assumed
from ckad.trace.source.library.written import iterations, operators
from ckad.trace.source.outside.kinds import is_operator
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.array import Array
from ckad.trace.values.complex import ComplexTracer, as_complex
from ckad.trace.values.sparse import Dense, Sparse
from ckad.trace.values.tracer import Tracer, lift

#: What is no matrix of its own.
_ARRAYS = (Tracer, ComplexTracer, np.ndarray)
#: What gives a matrix that may be written later, and what writes.
_EDITABLE, _WRITING = ("tolil", "todok"), ("setdiag", "resize")


def _traced(x: Any, *others: Any) -> Any:
    """A known matrix as a traced one, whose integers do not wrap around."""
    short = [y for y in others if trees.is_short(y) or getattr(y, "dtype", None) == np.bool_]
    reject(
        x.dtype in trees.SHORT and short,
        f"a sparse matrix of {x.dtype} with integers this short (A.astype(np.int64))",
    )
    numbers, pattern = trees.matrix_of(x)
    return Sparse(pattern, as_complex(numbers) if trees.is_complex(numbers) else lift(numbers))


def operands(x: Any, y: Any, made: bool) -> tuple[Any, Any]:
    """The operands of an operator: SciPy does not know what is traced, and an array is a matrix
    beside one, unless the operator writes into it."""
    if isinstance(y, Array) and is_sparse(x):
        x = _traced(x, y)
    elif isinstance(x, Array) and is_sparse(y):
        y = _traced(y, x)
    elif isinstance(y, Array) and (A := _matrix_of(x)) is not None:
        x = _as_traced(A, y)
    elif isinstance(x, Array) and isinstance(y, np.matrix):
        y = call(np.asmatrix, (lift(np.asarray(y)),), {})
    elif isinstance(y, Array) and isinstance(x, np.matrix):
        x = call(np.asmatrix, (lift(np.asarray(x)),), {})
    if made and isinstance(y, Dense) and isinstance(x, _ARRAYS) and np.ndim(x) > 0:
        x = call(np.asmatrix, (lift(x) if isinstance(x, np.ndarray) else x,), {})
    return x, y


def check_stored(owner: Any) -> None:
    """UnsupportedFunctionError for traced numbers on their way into one of SciPy's matrices."""
    reject(
        is_sparse(owner),
        "writing traced numbers into a sparse matrix of known ones (A = A.tolil() before, "
        "A.tocsr() afterwards)",
    )


def method(callee: Any, given: tuple[Any, ...]) -> Any:
    """What is called in place of a method of SciPy's matrices or factors on traced values."""
    owner = getattr(callee, "__self__", None)
    if owner is not None and is_sparse(owner) and callee.__name__ in _EDITABLE:
        return getattr(_traced(owner), callee.__name__)
    if owner is None or not holds_tracer(list(given)):
        return callee
    if is_sparse(owner) and callee.__name__ in _WRITING:
        reject(True, f"A.{callee.__name__} of traced numbers in a matrix of known ones "
               "(A = A.tolil() before, A.tocsr() afterwards)")  # fmt: skip
    if is_sparse(owner):
        return getattr(_traced(owner, *given), callee.__name__)
    if is_superlu(owner) and callee.__name__ == "solve":
        return _Solutions(owner)
    if callee.__name__ in _PRODUCTS and (A := _matrix_of(owner)) is not None:
        return _Products(A, callee.__name__.startswith("r"))
    return callee


_PRODUCTS = frozenset("matvec rmatvec matmat rmatmat dot".split())


def _matrix_of(owner: Any) -> Any:
    """That of one of SciPy's operators that hold a matrix, as ``aslinearoperator`` gives them."""
    if is_operator(owner):
        return owner.A
    kind = type(owner)
    if kind.__name__ not in _TURNED:
        return None
    A = _matrix_of(owner.A)
    return None if A is None else A.T.conj() if "Adjoint" in kind.__name__ else A.T


_TURNED = ("_TransposedLinearOperator", "_AdjointLinearOperator")


def _as_traced(A: Any, x: Any) -> Any:
    return _traced(A, x) if is_sparse(A) else lift(np.asarray(A))


class _Products:
    """``matvec`` and its like of an operator that holds a matrix, of traced values."""

    def __init__(self, A: Any, of_adjoint: bool) -> None:
        self.A = A.T.conj() if of_adjoint else A

    def __call__(self, x: Any) -> Any:
        return _as_traced(self.A, x) @ x


_SOLVERS = ("cg", "bicgstab", "gmres")


def replaced(callee: Any, args: Any, options: Any) -> Any:
    """What is run from source in place of a function of SciPy's: an operator is a function."""
    module = sys.modules.get("scipy.sparse.linalg")
    if module is None or not _package_of(callee).startswith("scipy.sparse"):
        return callee
    if callee is module.aslinearoperator and isinstance(args[0], Array):
        return operators.MatrixOperator
    if callee is module.LinearOperator and _is_of_functions(args, options):
        return operators.LinearOperator
    given = (*args[:1], options.get("A"), options.get("M"))
    if assumed.by_steps() or any(isinstance(x, operators.LinearOperator) for x in given):
        for name in _SOLVERS:
            if callee is getattr(module, name):
                return getattr(iterations, name)
        reject(
            _package_of(callee).startswith("scipy.sparse.linalg")
            and any(isinstance(x, operators.LinearOperator) for x in given),
            f"scipy.sparse.linalg.{getattr(callee, '__name__', callee)} of a LinearOperator "
            "(cg, bicgstab and gmres take one)",
        )
    return callee


def _package_of(callee: Any) -> str:
    return getattr(callee, "__module__", None) or ""


def _is_of_functions(args: Any, options: Any) -> bool:
    """Whether one is made of a shape and a function, not of a class that derives from it."""
    return len(args) > 1 or "matvec" in options


class _Solutions:
    """``solve`` of SciPy's factors, of traced right sides."""

    def __init__(self, factors: Any) -> None:
        self.factors = factors

    def __call__(self, *args: Any, **options: Any) -> Any:
        return call(type(self.factors).solve, (self.factors, *args), options)
