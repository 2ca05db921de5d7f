"""``ckad.primitive``: a function on arrays that ckad does not look into, as one op."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from secrets import token_hex
from typing import Any, overload

from ckad import locks, trees
from ckad.errors import TapeError
from ckad.tape.routines import Routine, define
from ckad.tape.types import Type
from ckad.trace.arguments import Arguments
from ckad.trace.memory.context import current, mark_place
from ckad.trace.memory.opened import is_tracing
from ckad.trace.source import follow
from ckad.trace.source.outside.purity import pure
from ckad.trace.source.outside.watch import watch
from ckad.trace.values.tracer import Tracer, fresh, lift, value
from ckad.transforms.primitives.bodies import Body, body_of
from ckad.transforms.primitives.custom import pair
from ckad.transforms.primitives.forms import (
    Leaf,
    converted,
    given,
    key_of,
    leaf_of,
)
from ckad.transforms.primitives.rules import Derivatives, with_examples

_lock = locks.lock()
#: Forms that a primitive remembers.
KEPT = 256


class Form:
    """A primitive for arguments of one form: a routine with derivatives."""

    def __init__(self, owner: Primitive, arguments: Arguments, leaves: tuple[Leaf, ...]) -> None:
        self.owner, self.leaves = owner, leaves
        self.arguments = with_examples(arguments, leaves)
        self.version = owner.version
        self.results = owner.body.results(self.arguments)
        self.derivatives = Derivatives(
            owner.name, self.arguments, leaves, self.results, self.results,
            owner.push, owner.pull, True,
        )  # fmt: skip
        compiled = owner.body.compiled(self.arguments, leaves, self.results)
        routine = Routine(
            f"{owner.name}#{token_hex(4)}",
            self._shape,
            owner.body.runner(self.arguments, leaves, self.results, compiled),
            self.derivatives.jvp,
            self.derivatives.vjp,
            compiled=compiled,
        )
        with _lock:
            self.number = define(routine).number

    @property
    def is_current(self) -> bool:
        return self.version == self.owner.version and self.derivatives.is_current

    def _shape(self, attrs: Sequence[int], *types: Type) -> Type:
        expected = tuple(leaf.cells for leaf in self.leaves)
        if attrs or types != expected:
            shown = ", ".join(map(str, types))
            raise TapeError(f"{self.owner.name} of {shown}, not {', '.join(map(str, expected))}")
        return self.results.packed

    def applied(self, arrays: Sequence[Any]) -> Any:
        """The result for these operands, as rows of the present recording."""
        mark_place(current())
        b = current().builder
        rows = [
            converted(b, value(lift(x)), leaf.cells)
            for x, leaf in zip(arrays, self.leaves, strict=True)
        ]
        packed = b.call(*rows, attrs=(self.number,))
        pieces = self.results.pieces(b, packed)
        found = [
            fresh(row, scalar=leaf.kind != "array")
            for row, leaf in zip(pieces, self.results.leaves, strict=True)
        ]
        return trees.unflatten(self.results.tree, found)


class Primitive:
    """A function on arrays as one op; `ckad.primitive` makes it."""

    def __init__(self, body: Body) -> None:
        self.body, self.name = body, body.name
        self.version = 0
        self._jvp: Callable[..., Any] | None = None
        self._vjp: Callable[..., Any] | None = None
        self._forms: dict[Hashable, Form] = {}
        self.__name__ = self.__qualname__ = body.name
        self.__doc__ = body.doc
        self.__wrapped__ = body.function
        pure(self)

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the derivative in a direction, as for `jax.custom_jvp`; a decorator.

        ``rule(primals, tangents)`` returns ``(out, out_tangent)``. Both arguments are tuples of the
        positional arguments; the tangent of one that is no float is None. The rule is written in
        NumPy and recorded: it is differentiated for second derivatives.

        >>> import numpy as np, ckad
        >>> @ckad.primitive
        ... def cube(x): return x**3
        >>> @cube.defjvp
        ... def _(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return cube(x), 3 * x**2 * t
        >>> print(ckad.grad(cube)(2.0))
        12.0
        """
        self._jvp = rule
        self.version += 1
        return rule

    def defvjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the pullback of a cotangent; a decorator.

        ``rule(ct, out, *args)`` returns a tuple with a cotangent for each positional argument, of
        its shape, or None where that is zero. ``ct`` and ``out`` have the structure of the result.
        The rule is written in NumPy and recorded: it is differentiated for second derivatives.

        >>> import numpy as np, ckad
        >>> @ckad.primitive
        ... def cube(x): return x**3
        >>> @cube.defvjp
        ... def _(ct, out, x): return 3 * x**2 * ct,
        >>> print(ckad.grad(cube)(2.0), ckad.jvp(cube, (2.0,), (1.0,))[1])
        12.0 12.0
        """
        self._vjp = rule
        self.version += 1
        return rule

    @property
    def push(self) -> Callable[..., Any] | None:
        rule = self._jvp
        if rule is None:
            return None

        def run(args: Any, kwargs: Any, tangents: Any) -> Any:
            found = follow(rule)(args, tangents, **kwargs)
            return pair(self.name, "JVP rule", "(out, out_tangent)", found)[1]

        return run

    @property
    def pull(self) -> Callable[..., Any] | None:
        rule = self._vjp
        if rule is None:
            return None
        return lambda ct, out, args, kwargs: follow(rule)(ct, out, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, or in a recording one row."""
        if not is_tracing():
            return self.body.plain(args, kwargs)
        args, kwargs = self.body.bound(args, kwargs)
        arguments = given(self.name, args, kwargs)
        if not any(isinstance(x, Tracer) for x in arguments.leaves):
            return self.body.plain(args, kwargs)
        return self._form(arguments).applied(arguments.arrays)

    def _form(self, arguments: Arguments) -> Form:
        leaves = tuple(map(leaf_of, arguments.arrays))
        key = key_of(self.name, arguments, leaves)
        form = self._forms.get(key)
        if form is None or not form.is_current:
            form = Form(self, arguments, leaves)
            with _lock:
                if len(self._forms) >= KEPT:
                    self._forms.clear()
                self._forms[key] = form
        watched = watch()
        if watched is not None:
            watched.guard.parts.append((form, "is_current", True))
        return form

    def __repr__(self) -> str:
        has = [n for n, rule in (("jvp", self._jvp), ("vjp", self._vjp)) if rule is not None]
        rules = f"def{' and def'.join(has)}" if has else "no derivative rule"
        return f"<ckad.primitive {self.name}: {self.body.kind}, {rules}>"


@overload
def primitive(function: None = None, declaration: str | None = None, *,
              shape: Callable[..., Any] | None = None, name: str | None = None
              ) -> Callable[[Any], Primitive]: ...  # fmt: skip
@overload
def primitive(function: Any, declaration: str | None = None, *,
              shape: Callable[..., Any] | None = None, name: str | None = None
              ) -> Primitive: ...  # fmt: skip
def primitive(
    function: Any = None,
    declaration: str | None = None,
    *,
    shape: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Make a function on arrays one op, which ckad calls and does not look into; a decorator.

    Args:
        function: a Python function, called with the GIL; one under ``@numba.njit``, called as
            machine code; or a C function, from ctypes or by its address.
        declaration: of a C function: its declaration in C, in which ``const`` arrays are arguments,
            other arrays are results, and the names of lengths tie them:
            ``"void smooth(const double x[n], double out[n], int64_t n)"``.
        shape: a function of the same arguments that returns the shape of the result, for float64;
            ``(shape, dtype)``; an array of that kind; or a list of these for several results.
            Only shapes and dtypes of the arrays that it gets mean anything. Without it the function
            is called once on ones (zeros for integers).
        name: by default that of the function.

    Returns:
        A `Primitive`: the same function outside of transformations. Its methods ``defjvp`` and
        ``defvjp`` take the derivative rules; the one that is missing is the other one transposed.

    The function is pure: what it returns follows from its arguments alone, and it changes none of
    them (arrays are read-only). Arguments may be arrays of float64, float32, int64 and bool,
    numbers, trees of these, and anything hashable, which is handed on as it is. The result is an
    array or number, or a tree of these, whose structure, shapes and dtypes follow from those of the
    arguments.

    Raises:
        TracedShapeError: a result is not as declared, when it is computed.
        DifferentiationError: there is no rule, or it does not fit, when a derivative is asked for.
        TraceError: arguments or results are of other kinds.

    What the function raises reaches the caller as it is, with a note of the place.

    >>> import numpy as np, ckad
    >>> @ckad.primitive
    ... def interp(x, xp, fp): return np.interp(x, xp, fp)
    >>> @interp.defvjp
    ... def _(ct, out, x, xp, fp):
    ...     k = np.clip(np.searchsorted(xp, x) - 1, 0, len(xp) - 2)
    ...     return ct * (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k]), None, None
    >>> xp = np.array([0.0, 1.0, 2.0])
    >>> print(ckad.grad(lambda x: np.sum(interp(x, xp, xp**2)))(np.array([0.5, 1.5])))
    [1. 3.]
    """
    if function is None:
        return lambda function: primitive(function, declaration, shape=shape, name=name)
    return Primitive(body_of(function, declaration, shape, name))
