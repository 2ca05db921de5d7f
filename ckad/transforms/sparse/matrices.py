"""Sparse Jacobians and Hessians from a few products, and their patterns for users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ckad import patterns
from ckad.errors import DifferentiationError
from ckad.loops.driver import Options
from ckad.passes import pipeline
from ckad.patterns import Pattern
from ckad.trace.primitives import sparse as traced_sparse
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms.arguments.argnums import plain_numbers
from ckad.transforms.call import Call
from ckad.transforms.gradients import Gradient
from ckad.transforms.lanes import in_lanes
from ckad.transforms.layout import layout_of
from ckad.transforms.reuse import Titled
from ckad.transforms.sparse.colouring import (
    columns_coloured,
    n_colours,
    symmetric_coloured,
    turned,
)
from ckad.transforms.sparse.recipe import Recipe, Shapes, mirrored, pattern_of, recipe_of

#: How many characters wide a pattern is drawn at most.
WIDTH = 48


def sparse_jacobian(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argument: int, mode: str,
    given: Pattern | None, options: Options,
) -> Any:  # fmt: skip
    """The Jacobian of one array by the one array that ``argument`` is."""
    call = Call(fun, args, kwargs, options)
    call.assured()
    wrt = call.once(("sparse by", argument), lambda: _by(call, argument))
    shape = call.tape.output_types[0].size, call.tape.input_types[wrt[0]].size
    _check_shape(given, shape)
    recipe = recipe_of(call, wrt, mode, given)
    n_inputs = len(call.tape.inputs)
    if recipe.mode == "rev":
        return _matrix(call, recipe, pipeline.pullbacks, (wrt, n_inputs), call.tape.output_types[0])
    about = wrt, n_inputs, len(call.tape.outputs)
    return _matrix(call, recipe, pipeline.pushforwards, about, call.tape.input_types[wrt[0]])


def sparse_hessian(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argument: int,
    given: Pattern | None, options: Options,
) -> Any:  # fmt: skip
    """The Hessian of a scalar by the one array that ``argument`` is."""
    call, _, layout = Gradient(fun, argument, False, options).prepare(args, kwargs)
    call.assured()
    type = _single(call, layout.wrt, argument)
    _check_shape(given, (type.size, type.size))
    recipe = recipe_of(call, layout.wrt, "sym", given, second=True)
    about = layout.wrt, layout.wrt, len(call.tape.inputs)
    return _matrix(call, recipe, pipeline.hvps, about, type)


def _by(call: Call, argument: int) -> tuple[int, ...]:
    wrt = layout_of(call, (argument,), True).wrt
    _single(call, wrt, argument)
    types = call.tape.output_types
    if len(types) != 1 or not types[0].is_float:
        shown = ", ".join(map(str, types))
        raise DifferentiationError.here(
            f"{call.name} returned ({shown}); a sparse Jacobian is that of one real array. "
            "Return one array of floats, or join several with np.concatenate."
        )
    return wrt


def _single(call: Call, wrt: Sequence[int], argument: int) -> Any:
    if len(wrt) != 1:
        raise DifferentiationError.here(
            f"argument {argument} of {call.name} holds {len(wrt)} arrays (a complex one counts "
            "as two); a sparse derivative is by one real array. Join them with np.concatenate."
        )
    return call.tape.input_types[wrt[0]]


def _matrix(call: Call, recipe: Recipe, product: Any, about: Any, of: Any) -> Any:
    dtype = call.tape.output_types[0].numpy
    if not recipe.pattern.nnz:
        return recipe.pattern.csr(np.zeros(0, dtype))
    if recipe.mode == "terms":
        (found,) = call.run(call.made(pipeline.diagonals, about[0]))
    else:
        seeds = recipe.seeds.reshape(-1, *of.shape)
        (found,) = in_lanes(call, product, about, [seeds])
    elements = recipe.elements(found)
    if isinstance(elements, Tracer):
        return traced_sparse.matrix(recipe.pattern, elements)
    return recipe.pattern.csr(elements)


def given_pattern(sparsity: Any) -> Pattern:
    """A user's pattern: what is stored in a sparse matrix, or not 0 in a dense one."""
    from scipy import sparse

    if isinstance(sparsity, Sparsity):
        return sparsity.pattern
    matrix = sparsity if patterns.is_sparse(sparsity) else np.atleast_2d(np.asarray(sparsity))
    if len(matrix.shape) != 2 or getattr(matrix, "dtype", np.dtype(object)).kind not in "biuf":
        raise DifferentiationError.here(
            f"sparsity= is {type(sparsity).__name__} of shape {np.shape(sparsity)}; pass a "
            "matrix, dense or of scipy.sparse, that is not 0 where the derivative may be not."
        )
    found = sparse.csr_array(matrix)
    found.sum_duplicates()
    return Pattern(type(found), found.shape, found.indptr, found.indices)


def _check_shape(given: Pattern | None, shape: tuple[int, int]) -> None:
    if given is not None and given.shape != shape:
        raise DifferentiationError.here(
            f"sparsity= has shape {given.shape}; the derivative has shape {shape}."
        )


def sparsity(fun: Callable[..., Any], argnums: int = 0, *, order: int = 1) -> Callable[..., Any]:
    """Make a function that says which elements of the Jacobian of ``fun`` may differ from 0.

    The pattern is read off the recorded program: it holds for all numbers in the arguments that are
    floats, and may be too large where a routine, an index that is computed, or a long loop mixes
    elements, but not too small. ``order=2`` is about the Hessian of a scalar ``fun``. Nothing is
    run.

    Returns:
        A function of the arguments of ``fun`` that returns a `Sparsity`: its ``matrix`` is a
        ``scipy.sparse.csr_array`` of bools (rows: elements of the result, columns: of the argument,
        both in C order), ``colours`` says how many seeds `ckad.jacobian` with ``sparse=True``
        takes by columns and by rows, ``print`` shows it, ``plot()`` draws it.

    Raises:
        DifferentiationError: ``fun`` returns several arrays, or the argument holds several; or it
            is so dense that its elements are not told apart.
        TraceError: ``fun`` does something that ckad cannot record.

    >>> import numpy as np, ckad
    >>> print(ckad.sparsity(lambda x: x[1:] * x[:-1])(np.ones(5)))
    4 x 5, 8 elements (40 %), at most 2 in a row, 2 in a column
    2 seeds by columns, 2 by rows
    * * . . .
    . * * . .
    . . * * .
    . . . * *
    """
    argnums = plain_numbers(argnums)
    if order not in (1, 2):
        raise DifferentiationError.here(f"order={order!r}; use 1 (Jacobian) or 2 (Hessian).")

    @trimmed
    def found(*args: Any, **kwargs: Any) -> Sparsity:
        if order == 2:
            call, _, layout = Gradient(fun, argnums, False, Options()).prepare(args, kwargs)
            _single(call, layout.wrt, argnums)
            shape = call.tape.input_types[layout.wrt[0]].shape
            return Sparsity(pattern_of(call, layout.wrt, second=True), (shape, shape), True)
        call = Call(fun, args, kwargs)
        wrt = _by(call, argnums % max(len(args), 1))
        shapes = call.tape.output_types[0].shape, call.tape.input_types[wrt[0]].shape
        return Sparsity(pattern_of(call, wrt), shapes)

    again = partial(sparsity, fun, argnums, order=order)
    return Titled(found, "sparsity", fun, argnums, again)


@dataclass(frozen=True)
class Sparsity:
    """Which elements of a derivative may differ from 0; made by `sparsity`."""

    pattern: Pattern
    shapes: Shapes
    is_symmetric: bool = False  # that of a Hessian

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        return self.pattern.nnz

    @property
    def matrix(self) -> Any:
        """A csr_array of bools."""
        return self.pattern.csr(np.ones(self.nnz, bool))

    @cached_property
    def colours(self) -> tuple[int, int]:
        """How many seeds give all elements: by columns (forward), by rows (reverse); of a Hessian
        the products with it, twice."""
        if self.is_symmetric:
            n = n_colours(symmetric_coloured(mirrored(self.pattern)))
            return n, n
        by_columns = columns_coloured(self.pattern, self.shapes[1])
        by_rows = columns_coloured(turned(self.pattern), self.shapes[0])
        return n_colours(by_columns), n_colours(by_rows)

    def __repr__(self) -> str:
        return f"<Sparsity of {self.shape[0]} x {self.shape[1]}, {self.nnz} elements>"

    def __str__(self) -> str:
        m, n = self.shape
        share = 100 * self.nnz / max(m * n, 1)
        in_row = np.diff(self.pattern.indptr).max(initial=0)
        in_column = np.bincount(self.pattern.indices).max(initial=0)
        return "\n".join(
            [
                f"{m:,} x {n:,}, {self.nnz:,} elements ({share:.3g} %), at most {in_row:,} in a "
                f"row, {in_column:,} in a column",
                "{:,} seeds by columns, {:,} by rows".format(*self.colours),
                *self._drawn(),
            ]
        )

    def _drawn(self) -> list[str]:
        """A character per element, or per block of them."""
        block = max(-(-max(self.shape) // WIDTH), 1)
        m, n = (-(-d // block) for d in self.shape)
        marks = np.full((m, n), ".")
        marks[self.pattern.rows // block, self.pattern.indices // block] = "*"
        shown = [" ".join(row) for row in marks]
        return shown if block == 1 else [f"a character per {block} x {block} elements:", *shown]

    def plot(self, ax: Any = None) -> Any:
        """Draw the pattern with Matplotlib, on ``ax`` or a new figure; returns the axes."""
        from matplotlib import pyplot

        ax = pyplot.subplots()[1] if ax is None else ax
        ax.spy(self.matrix, markersize=max(0.2, min(6.0, 200 / max(self.shape))))
        ax.set_title(f"{self.nnz:,} elements, {min(self.colours)} seeds")
        return ax
