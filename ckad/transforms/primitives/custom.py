"""``ckad.custom_vjp`` and ``ckad.custom_jvp``: recorded functions with derivatives of their own.

The function's rows stay where they are. What it returns goes through a row that is its first
operand and has the rule as its derivative; passes read it, and it is gone before anything is
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from secrets import token_hex
from typing import Any

from ckad import locks, trees
from ckad.errors import DifferentiationError, TraceError
from ckad.tape.routines import first_type, mark
from ckad.trace.arguments import Arguments
from ckad.trace.dispatch import Traced
from ckad.trace.memory.context import Trace, current, mark_place, open_trace
from ckad.trace.memory.opened import is_tracing
from ckad.trace.record import inline
from ckad.trace.source import follow
from ckad.trace.source.outside.purity import pure
from ckad.trace.source.outside.watch import watch
from ckad.trace.values.tracer import Tracer, fresh, lift, value
from ckad.transforms.primitives.forms import (
    Leaf,
    Results,
    given,
    key_of,
    leaf_of,
    results_of,
    signature_of,
)
from ckad.transforms.primitives.rules import Derivatives, known_result, tracer_of, with_examples

_lock = locks.lock()
#: Forms that a function remembers.
KEPT = 256


class Custom:
    """A function whose derivative is given; `ckad.custom_vjp` and `ckad.custom_jvp` make it."""

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self.function, self.fixed = fun, tuple(sorted(numbers))
        self.name = getattr(fun, "__name__", type(fun).__name__)
        self.version = 0
        self._marks: dict[Hashable, _Mark] = {}
        self._signature = signature_of(fun)
        self.__name__ = self.__qualname__ = self.name
        self.__doc__, self.__wrapped__ = fun.__doc__, fun
        pure(self)

    def rules(self, fixed: tuple[Any, ...]) -> tuple[Any, Any]:
        """The JVP and the VJP rule for these arguments that are not differentiated."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return self.function(*args, **kwargs)
        if self._signature is not None:
            found = self._signature.bind(*args, **kwargs)
            found.apply_defaults()
            args, kwargs = found.args, found.kwargs
        fixed = tuple(args[k] for k in self.fixed)
        if any(isinstance(x, Traced) for x in trees.flatten(fixed)[0]):
            raise DifferentiationError.here(
                f"{self.name} gets a traced value as an argument of nondiff_argnums. These are "
                "known numbers, texts and functions; pass arrays as other arguments."
            )
        moving = tuple(x for k, x in enumerate(args) if k not in self.fixed)
        arguments = given(self.name, moving, kwargs)
        if not any(isinstance(x, Tracer) for x in arguments.leaves):
            return follow(self.function)(*args, **kwargs)
        return self._applied(arguments, fixed)

    def _applied(self, arguments: Arguments, fixed: tuple[Any, ...]) -> Any:
        leaves = tuple(map(leaf_of, arguments.arrays))
        operands = [value(lift(x)) for x in arguments.arrays]
        result = known_result((self, *fixed), operands)
        if result is not None:
            return result
        with open_trace() as trace:
            whole, rows = self._run(trace, arguments, leaves, fixed)
            tape, captured = trace.tape(rows), list(trace.captured)
        outputs = [value(x) for x in inline(tape, [*operands, *captured])]
        floats = [k for k, leaf in enumerate(whole.leaves) if leaf.type.is_float]
        if floats:
            marked = Results(whole.tree, tuple(whole.leaves[k] for k in floats))
            mark = self._mark(arguments, leaves, fixed, whole, marked, len(captured))
            mark_place(current())
            b = current().builder
            joined = marked.joined(b, [outputs[k] for k in floats])
            row = b.call(joined, *operands, *captured, attrs=(mark.number,))
            for k, piece in zip(floats, marked.pieces(b, row), strict=True):
                outputs[k] = piece
        pairs = zip(outputs, whole.leaves, strict=True)
        found = [fresh(row, scalar=leaf.kind != "array") for row, leaf in pairs]
        return trees.unflatten(whole.tree, found)

    def _run(
        self, trace: Trace, arguments: Arguments, leaves: Sequence[Leaf], fixed: tuple[Any, ...]
    ) -> tuple[Results, list[int]]:
        """The form of what the function gives, and its rows."""
        args, kwargs = arguments.rebuild([tracer_of(trace, leaf) for leaf in leaves])
        result = follow(self.function)(*self.together(fixed, args), **kwargs)
        found, tree = trees.flatten(result)
        if any(isinstance(x, Traced) and not isinstance(x, Tracer) for x in found):
            raise TraceError.here(f"{self.name} returns an array whose size is not known.")
        if any(trees.imaginary(tree)) or not any(isinstance(x, Tracer) for x in found):
            results_of(self.name, trees.unflatten(tree, [0.0 for _ in found]))
        forms = tuple(leaf_of(lift(x)) for x in found)
        return Results(tree, forms), [value(lift(x)) for x in found]

    def together(self, fixed: Sequence[Any], moving: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments in their places."""
        args = list(moving)
        for k, x in zip(self.fixed, fixed, strict=True):
            args.insert(k, x)
        return tuple(args)

    def _mark(
        self, arguments: Arguments, leaves: tuple[Leaf, ...], fixed: tuple[Any, ...],
        whole: Results, marked: Results, n_captured: int,
    ) -> _Mark:  # fmt: skip
        static = key_of(self.name, given(self.name, fixed, {})._replace(traced=[]), ())
        form = whole.tree, whole.leaves, n_captured
        key = key_of(self.name, arguments, leaves), static, form
        mark = self._marks.get(key)
        if mark is None or not mark.is_current:
            mark = _Mark(self, arguments, leaves, fixed, whole, marked)
            with _lock:
                if len(self._marks) >= KEPT:
                    self._marks.clear()
                self._marks[key] = mark
        watched = watch()
        if watched is not None:
            watched.guard.parts.append((mark, "is_current", True))
        return mark

    def __repr__(self) -> str:
        return f"<ckad.{type(self).__name__} {self.name}>"


class _Mark:
    """The row at the end of a function's rows, for arguments of one form."""

    def __init__(
        self, owner: Custom, arguments: Arguments, leaves: tuple[Leaf, ...],
        fixed: tuple[Any, ...], whole: Results, marked: Results,
    ) -> None:  # fmt: skip
        self.owner, self.version = owner, owner.version
        push, pull = owner.rules(fixed)
        own = with_examples(arguments, leaves)
        self.derivatives = Derivatives(
            owner.name, own, leaves, marked, whole, push, pull,
            len(marked.leaves) == len(whole.leaves), 1, (owner, *fixed),
        )  # fmt: skip
        rules = self.derivatives.jvp, self.derivatives.vjp
        with _lock:
            self.number = mark(f"{owner.name}#{token_hex(4)}", first_type, *rules).number

    @property
    def is_current(self) -> bool:
        return self.version == self.owner.version and self.derivatives.is_current


class custom_jvp(Custom):
    """Give a function a derivative of its own, in forward mode, as `jax.custom_jvp` does.

    ``f.defjvp(rule)``: ``rule(*nondiff, primals, tangents)`` returns ``(out, out_tangent)``, where
    ``nondiff`` are the arguments of ``nondiff_argnums``. ``out`` is not used: the value is that of
    the function. Reverse mode takes the rule transposed, so it has to be linear in the tangents;
    the rule is recorded, and differentiated for second derivatives.

    >>> import numpy as np, ckad
    >>> @ckad.custom_jvp
    ... def softplus(x): return np.log1p(np.exp(x))
    >>> @softplus.defjvp
    ... def _(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return softplus(x), t / (1 + np.exp(-x))
    >>> print(ckad.grad(softplus)(0.0))
    0.5
    """

    rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule; a decorator."""
        self.rule = rule
        self.version += 1
        return rule

    def rules(self, fixed: tuple[Any, ...]) -> tuple[Any, Any]:
        rule = self.rule
        if rule is None:
            return None, None

        def push(args: Any, kwargs: Any, tangents: Any) -> Any:
            found = follow(rule)(*fixed, args, tangents, **kwargs)
            return pair(self.name, "JVP rule", "(out, out_tangent)", found)[1]

        return push, None


class custom_vjp(Custom):
    """Give a function a derivative of its own, in reverse mode, as `jax.custom_vjp` does.

    ``f.defvjp(fwd, bwd)``: ``fwd(*args)`` returns ``(out, residuals)``, and
    ``bwd(*nondiff, residuals, ct)`` a tuple with a cotangent for each argument that is not in
    ``nondiff_argnums``, None where it is zero. The value is that of the function, ``out`` is not
    used. Both are recorded, and differentiated for second derivatives. Forward mode, which JAX
    refuses here, takes ``bwd`` transposed.

    >>> import numpy as np, ckad
    >>> @ckad.custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda res, ct: (np.clip(ct, -1, 1),))
    >>> print(ckad.grad(lambda x: 5 * clipped(x))(2.0))
    1.0
    """

    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give both rules."""
        self.forward, self.backward = fwd, bwd
        self.version += 1

    def rules(self, fixed: tuple[Any, ...]) -> tuple[Any, Any]:
        forward, backward = self.forward, self.backward
        if forward is None or backward is None:
            return None, None

        def pull(ct: Any, out: Any, args: Any, kwargs: Any) -> Any:
            found = follow(forward)(*self.together(fixed, args), **kwargs)
            residuals = pair(self.name, "fwd", "(out, residuals)", found)[1]
            return follow(backward)(*fixed, residuals, ct)

        return None, pull


def pair(name: str, which: str, what: str, found: Any) -> Any:
    """What a rule returns, which is a pair; TraceError if it is not."""
    if type(found) not in (tuple, list) or len(found) != 2:
        raise TraceError.here(
            f"the {which} of {name} returns {type(found).__name__}; return {what}."
        )
    return found


def checkpoint(fun: Callable[..., Any] | None = None, **hints: Any) -> Any:
    """``fun`` itself, for programs written for JAX.

    What is kept and what is computed again ckad's planner decides, by ``memory=`` and ``schedule=``
    of the whole program; ``hints`` (``policy``, ``prevent_cse``) change nothing.

    >>> import ckad
    >>> print(ckad.grad(ckad.checkpoint(lambda x: x**2))(3.0))
    6.0
    """
    return checkpoint if fun is None else fun


pure(checkpoint)
