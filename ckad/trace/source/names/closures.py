"""Functions that are run from their source: how they are called."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, MethodType
from typing import Any

from ckad.errors import CkadError, UnrecordableError
from ckad.place import at_place, running
from ckad.trace.memory.context import current, mark_place
from ckad.trace.memory.opened import is_tracing, stack
from ckad.trace.source.actions import returned_by, run_block
from ckad.trace.source.names.frame import Frame, enclosing, made, region
from ckad.trace.source.names.generated import Generated, GeneratorFrame
from ckad.trace.source.names.reader import Definition, definition_of, nothing, scope_of
from ckad.trace.source.outside.python import generated
from ckad.trace.source.outside.watch import watch

#: Calls of a function within so many of itself, on sides of as many conditions, and the most.
DEEP, MANY = 6, 1_000
#: The name by which methods know their class, as ``super()`` does.
OWN_CLASS = "__class__"


class ClassFrame(Frame):
    """The names that the body of a class binds. Functions in it do not see them."""

    __slots__ = ("around",)

    def __init__(self, frame: Frame, node: ast.ClassDef) -> None:
        own = frame.definition
        super().__init__(
            Definition(own.node, own.file, node.name, *scope_of(node.body)), frame.function, frame
        )
        self.around = Frame(nothing(OWN_CLASS), frame.function, frame)
        self.line = frame.line

    def lookup(self, name: str) -> Any:
        is_unbound = name in self.definition.locals and name not in self.names
        return self._from_outside(name) if is_unbound else super().lookup(name)

    def is_read_later(self, name: str) -> bool:
        return True

    def is_read_in(self, name: str, part: ast.stmt) -> bool:
        return True


class Closure:
    """A function that was defined in one that is run from its source.

    Its ``__dict__`` holds what a function's does, and only that: ``functools.wraps`` copies it.
    """

    __slots__ = (
        *("__dict__", "__weakref__"),
        *("defaults", "definition", "frame", "made_in", "named_defaults"),
    )

    def __init__(
        self,
        definition: Definition,
        frame: Frame,
        defaults: Sequence[Any],
        named_defaults: Mapping[str, Any],
    ) -> None:
        home = frame.around if isinstance(frame, ClassFrame) else frame
        self.definition, self.frame, self.made_in = definition, home, region()
        self.defaults, self.named_defaults = tuple(defaults), dict(named_defaults)
        self.__name__ = self.__qualname__ = definition.name
        self.__module__ = frame.function.__module__
        self.__doc__ = None
        if watched := watch():
            watched.adopt(self)

    @property
    def depth(self) -> int:
        """The depth of the body that has made it; 0 for straight code, or behind that body."""
        return next((inner.depth for inner in enclosing() if inner is self.made_in), 0)

    @property
    def __signature__(self) -> inspect.Signature:
        """As libraries look at it that count parameters."""
        wanted: ast.arguments = self.definition.node.args
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [a.arg for a in (*wanted.posonlyargs, *wanted.args)]
        found = [inspect.Parameter(name, kind) for name in names]
        if wanted.vararg is not None:
            found.append(inspect.Parameter(wanted.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
        return inspect.Signature(found)

    @property
    def code(self) -> CodeType | None:
        """As programs look at it that count parameters."""
        node, found = self.definition.node, [self.frame.function.__code__]
        for one in found:
            found += [x for x in one.co_consts if isinstance(x, CodeType)]
        lines = {node.lineno, *(x.lineno for x in getattr(node, "decorator_list", ()))}
        same = (x for x in found if x.co_name == self.__name__ and x.co_firstlineno in lines)
        return next(same, None)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args: Any, **options: Any) -> Any:
        kind = GeneratorFrame if self.definition.yields else Frame
        frame = kind(self.definition, self.frame.function, self.frame)
        bind_arguments(frame, args, options, self.defaults, self.named_defaults)
        return Generated(frame, None) if isinstance(frame, GeneratorFrame) else run(frame)

    def __repr__(self) -> str:
        return f"<function {self.definition.name} at line {self.definition.node.lineno}>"


def call_from_source(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function whose definition is known."""
    if type(function) is Closure:
        return function(*args, **options)
    definition = definition_of(function)
    assert definition is not None
    if watched := watch():
        watched.function(function)
    frame = (GeneratorFrame if definition.yields else Frame)(definition, function)
    bind_arguments(frame, args, options, function.__defaults__ or (), function.__kwdefaults__ or {})
    if isinstance(frame, GeneratorFrame):
        return Generated(frame, partial(_by_python, function, args, options))
    return run(frame)


def _by_python(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Iterator[Any]:
    """A generator that Python runs."""
    if watched := watch():
        generated(watched, function, (*args, *options.values()))
    found: Iterator[Any] = function(*args, **options)
    return found


def _check_recursion(frame: Frame, functions: Sequence[Any]) -> None:
    """A recursion that traced conditions end is written out on both sides of all of them: each
    level may double its calls. One within loops that are recorded multiplies them by the times that
    such a loop is, and the lengths of loops alone may end it."""
    inner = region()
    if inner is None or inner.depth < DEEP:
        return
    same = [x for x in functions if isinstance(x, Frame) and x.definition is frame.definition]
    outermost = stack()[0]
    is_endless = frame.definition in outermost.endless
    if len(same) < (2 if is_endless else DEEP):
        return
    outermost.recursions += 1
    in_loops = min(sum(bool(x.loops) for x in same), inner.depth)
    if outermost.recursions > MANY or in_loops > 2 * DEEP or is_endless:
        outermost.endless.add(frame.definition)
        raise _too_deep(frame)


def _too_deep(frame: Frame) -> UnrecordableError:
    return UnrecordableError.here(
        f"{frame.definition.name}() calls itself deeper than can be recorded. Calls are "
        "written out, on both sides of a condition that is traced. Write a loop.",
        frame.place,
    )


def run(frame: Frame) -> Any:
    """Run the body of a function; what it returns."""
    functions = running()
    _check_recursion(frame, functions)
    functions.append(frame)
    try:
        return returned_by(frame, run_block(frame, frame.definition.body))
    except CkadError:
        raise
    except RecursionError:  # from a frame that has room for a message
        raise _too_deep(frame) from None
    finally:
        functions.pop()
        if functions and is_tracing():
            mark_place(current())


def bind_arguments(
    frame: Frame,
    args: Sequence[Any],
    options: Mapping[str, Any],
    defaults: Sequence[Any],
    named_defaults: Mapping[str, Any],
) -> None:
    """Bind a function's parameters as Python does; TypeError if the arguments do not fit."""
    wanted: ast.arguments = frame.definition.node.args
    given, names = dict(options), frame.names
    positional = [a.arg for a in (*wanted.posonlyargs, *wanted.args)]
    for name, value in zip(positional, args, strict=False):
        if name in given and name not in {a.arg for a in wanted.posonlyargs}:
            raise _misfit(frame, f"got multiple values for argument {name!r}")
        names[name] = value
    if wanted.vararg is not None:
        names[wanted.vararg.arg] = tuple(args[len(positional) :])
    elif len(args) > len(positional):
        raise _misfit(frame, f"takes {len(positional)} positional arguments, {len(args)} given")
    first_default = len(positional) - len(defaults)
    for k, name in enumerate(positional):
        if name in names:
            continue
        if name in given and k >= len(wanted.posonlyargs):
            names[name] = given.pop(name)
        elif k >= first_default:
            names[name] = defaults[k - first_default]
        else:
            raise _misfit(frame, f"is missing the argument {name!r}")
    for parameter in wanted.kwonlyargs:
        name = parameter.arg
        if name in given:
            names[name] = given.pop(name)
        elif name in named_defaults:
            names[name] = named_defaults[name]
        else:
            raise _misfit(frame, f"is missing the keyword argument {name!r}")
    if wanted.kwarg is not None:
        names[wanted.kwarg.arg] = made(given)
    elif given:
        name = next(iter(given))
        hint = f". If it is meant for ckad: ckad.grad(f, {name}=...)(x)" if name in _OPTIONS else ""
        raise _misfit(frame, f"got an unexpected keyword argument {name!r}{hint}")


#: What transformations take where they are made.
_OPTIONS = frozenset(
    "argnums has_aux memory schedule engine threads progress check_finite resume returns".split()
)


def _misfit(frame: Frame, what: str) -> TypeError:
    return TypeError(at_place(f"{frame.definition.name}() {what}"))
