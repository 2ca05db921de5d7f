"""What NumPy makes of a program: its value, its derivative, and how near it comes to a tie.

The derivative is that of a complex step: NumPy runs the program on numbers with a tiny imaginary
part. Comparisons look at real parts; how far apart these are is noted, since what decides by
rounding errors has no derivative to compare with.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from .program import NAME, Program, executed

STEP = 1e-30


class Plain:
    """A program under NumPy, at its arguments."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = compile(program.text, program.file, "exec")

    def value(self, draw: int = 0) -> float:
        return self.at(self.program.arguments(draw))

    def at(self, arguments: list[Any]) -> float:
        """Of the function itself; the arguments may be written into."""
        module = executed(self.code, self.program.file)
        module.__dict__["ckad"] = Loops
        return float(getattr(module, NAME)(*arguments))

    @cached_property
    def _watched(self) -> Any:
        tree = _Watched().visit(ast.parse(self.program.text))
        code = compile(ast.fix_missing_locations(tree), self.program.file, "exec")
        return executed(code, self.program.file)

    def derivative(self, directions: list[Any], relative: float = 0.0) -> tuple[float, float]:
        """Along ``directions``, at arguments moved by a part of them; and the nearest tie."""
        module, nearest = self._watched, Nearest()
        module.__dict__.update(
            np=ComplexNumPy(nearest),
            math=ComplexMath(),
            ckad=ComplexLoops,
            abs=ComplexNumPy(nearest).abs,
            max=ComplexNumPy(nearest).maximum,
            min=ComplexNumPy(nearest).minimum,
            compared=nearest.compared,
        )
        moved = [
            _complex(x) * (1.0 + relative * (-1) ** k) + STEP * 1j * d
            for k, (x, d) in enumerate(zip(self.program.arguments(), directions, strict=True))
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            return float(np.imag(getattr(module, NAME)(*moved))) / STEP, nearest.margin


def _complex(x: Any) -> Any:
    return x.astype(complex) if isinstance(x, np.ndarray) else np.complex128(x)


class _Watched(ast.NodeTransformer):
    """Comparisons become calls of ``compared``."""

    def __init__(self) -> None:
        self.n_names = 0

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        left, parts = node.left, []
        for op, right in zip(node.ops[:-1], node.comparators[:-1], strict=True):
            name = self._new_name()  # the operand between two comparisons is evaluated once
            parts.append(_compared(op, left, ast.NamedExpr(ast.Name(name, ast.Store()), right)))
            left = ast.Name(name, ast.Load())
        parts.append(_compared(node.ops[-1], left, node.comparators[-1]))
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def _new_name(self) -> str:
        self.n_names += 1
        return f"between_{self.n_names}"


def _compared(op: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.expr:
    name, function = ast.Constant(type(op).__name__), ast.Name("compared", ast.Load())
    return ast.Call(function, [name, left, right], [])


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
}


class Nearest:
    """The smallest relative distance between two numbers that were compared."""

    def __init__(self) -> None:
        self.margin = 1.0

    def note(self, left: Any, right: Any) -> None:
        left, right = np.real(left), np.real(right)
        if np.size(left) and np.size(right):
            apart = np.min(np.abs(left - right) / np.maximum(1e-3, np.abs(left) + np.abs(right)))
            self.margin = min(self.margin, float(apart)) if apart == apart else 0.0

    def note_unless_equal(self, left: Any, right: Any) -> None:
        """Of two equal numbers with equal derivatives it does not matter which is taken."""
        left, right = np.broadcast_arrays(left, right)
        differ = left != right
        self.note(left[differ], right[differ])

    def compared(self, op: str, left: Any, right: Any) -> Any:
        if _is_float(left) or _is_float(right):
            self.note(left, right)
        return _COMPARE[op](np.real(left), np.real(right))


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


class ComplexMath:
    """Python's ``math``, which raises an error where it gives no number, on complex numbers."""

    def __getattr__(self, name: str) -> Any:
        of_reals, of_complex = getattr(math, name), getattr(np, name, None)
        if not callable(of_reals):
            return of_reals

        def function(*args: Any) -> Any:
            found = of_reals(*(float(np.real(x)) for x in args))
            return of_complex(*args) if any(map(np.iscomplexobj, args)) else found

        return function


class ComplexNumPy:
    """NumPy, with functions that act on real numbers continued to their neighbours."""

    def __init__(self, nearest: Nearest) -> None:
        self._nearest = nearest
        self.linalg = _ComplexLinalg

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def abs(self, x: Any) -> Any:
        self._nearest.note(x, -np.asarray(x))
        return np.where(np.real(x) < 0, -x, x)[()]

    def maximum(self, x: Any, y: Any) -> Any:
        self._nearest.note_unless_equal(x, y)
        return np.where(np.real(x) >= np.real(y), x, y)[()]

    def minimum(self, x: Any, y: Any) -> Any:
        self._nearest.note_unless_equal(x, y)
        return np.where(np.real(x) <= np.real(y), x, y)[()]

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.minimum(self.maximum(x, low), high)

    def max(self, x: Any, axis: int | None = None) -> Any:
        x, axis = (np.ravel(x), 0) if axis is None else (np.asarray(x), axis)
        order = np.argsort(np.real(x), axis=axis)
        largest = np.take_along_axis(x, order, axis).take(-1, axis)
        if x.shape[axis] > 1:
            second = np.take_along_axis(x, order, axis).take(-2, axis)
            self._nearest.note_unless_equal(largest, second)
        return largest

    def min(self, x: Any, axis: int | None = None) -> Any:
        return -self.max(-np.asarray(x), axis)

    def argmax(self, x: Any) -> Any:
        self.max(x)
        if len(set(np.ravel(np.real(x)).tolist())) < np.size(x):
            self._nearest.margin = 0.0
        return np.argmax(np.real(x))

    def array(self, x: Any) -> Any:
        made = np.array(x)
        return made.astype(complex) if made.dtype.kind == "f" else made

    def stack(self, x: Any) -> Any:
        return self.array(x)

    def full(self, shape: Any, x: Any) -> Any:
        return np.full(shape, x, complex)

    def vdot(self, x: Any, y: Any) -> Any:
        return np.dot(x, y)

    def linspace(self, *args: Any) -> Any:
        return np.linspace(*args).astype(complex)


class _ComplexLinalg:
    @staticmethod
    def norm(x: Any) -> Any:
        return np.sqrt(np.sum(np.asarray(x) ** 2))


def _value(x: Any) -> Any:
    """A carry is a value: what is written into it is seen nowhere else."""
    if isinstance(x, tuple):
        return tuple(map(_value, x))
    return x.copy() if isinstance(x, np.ndarray) else x


class Loops:
    """ckad's loops as Python runs them."""

    @staticmethod
    def scan(step: Callable[..., Any], init: Any, xs: Any) -> Any:
        carry, ys = _value(init), []
        for x in _value(xs):
            carry, y = step(_value(carry), x)
            ys.append(y)
        return _value(carry), np.stack(ys)

    @staticmethod
    def fori_loop(lower: int, upper: int, body: Callable[..., Any], init: Any) -> Any:
        carry = _value(init)
        for i in range(lower, upper):
            carry = body(i, _value(carry))
        return _value(carry)

    @staticmethod
    def while_loop(test: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
        carry = _value(init)
        while test(carry):
            carry = body(_value(carry))
        return carry

    @staticmethod
    def cond(test: Any, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any) -> Any:
        return (yes if test else no)(*map(_value, operands))


class ComplexLoops(Loops):
    """The same where what a program writes into may have to hold a derivative."""

    @staticmethod
    def scan(step: Callable[..., Any], init: Any, xs: Any) -> Any:
        carry, ys = Loops.scan(step, init, xs)
        return carry, ys.astype(complex) if _is_float(ys) else ys
