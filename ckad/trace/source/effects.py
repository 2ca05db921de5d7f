"""Calls that change no number of a program: they plot, print, log, write files or read a clock.

In a loop or branch, which is recorded once for all its steps, and with traced values, there is
nothing yet that they could show. They are left out, and one warning names them. What they would
give is a `Skipped`: it can be handed to other calls of this kind, and decides nothing.
"""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ckad.errors import CkadError, ConcreteValueError
from ckad.place import Source, user_place
from ckad.trace import dispatch
from ckad.trace.memory.opened import making_text
from ckad.trace.source.actions import evaluate, unread
from ckad.trace.source.libraries import is_library
from ckad.trace.source.memory.asked.by_python import put_all
from ckad.trace.source.memory.contents import holds_buffers
from ckad.trace.source.names.frame import ledger, region
from ckad.trace.source.names.generated import Lazy
from ckad.trace.source.outside.kinds import DISPLAYS
from ckad.trace.source.skipped import Skipped, warn_of_skipped
from ckad.trace.source.text import TracedText, shown
from ckad.trace.source.values import holds_tracer

#: What a call is given by place and by name.
CallArguments = tuple[list[Any], dict[str, Any]]
#: Packages of which every call is one: functions, and methods of their objects.
PACKAGES = DISPLAYS | {"_warnings", "imageio", "time"}
#: Those of them whose calls depend on what was drawn before.
_DRAWING = frozenset("IPython PIL imageio matplotlib mpl_toolkits seaborn".split())
#: Expressions that do more than give a value.
_DOING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)
#: Functions that take three arguments of which none is written into.
_OF_THREE = (range, np.arange, np.linspace, np.where, np.clip, np.interp)
#: NumPy's functions that write into an argument, or change what others do.
_WRITING = frozenset(
    """copyto fill_diagonal nan_to_num place put put_along_axis putmask save savetxt savez
    seterr setbufsize set_printoptions""".split()
)
#: What need not be done again where a recording is used again.
ONCE = frozenset("gc.collect numpy.set_printoptions numpy.seterr time.sleep".split())
#: Functions and methods of other modules, and methods of open files.
FUNCTIONS = frozenset(
    """builtins.print datetime.now datetime.today datetime.utcnow gc.collect json.dump numpy.save
    numpy.savetxt numpy.savez numpy.savez_compressed numpy.set_printoptions numpy.seterr
    os.makedirs os.mkdir pathlib.mkdir _pickle.dump pickle.dump""".split()
)
#: What makes a text of anything.
_TEXTS = (print, str, repr, ascii, format)
#: Masked arrays, which are not computed with: of traced values they can be shown.
_MASKED = "numpy.ma"
_OF_FILES = frozenset("flush write writelines".split())
#: What may be opened in a loop: files to write.
_MODES = frozenset("w wb wt a ab at x xb xt w+ wb+ w+b a+ ab+ a+b".split())


def name_of(callee: Any, args: Sequence[Any] = ()) -> str | None:
    """The name of a call that changes no number; None for any other."""
    owner = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", type(callee).__name__)
    if isinstance(owner, io.IOBase):
        return f"file.{name}" if name in _OF_FILES else None
    module = _module(callee, owner)
    if module.partition(".")[0] in PACKAGES or module.startswith(_MASKED):
        return f"{module}.{name}"
    if callee is open and len(args) > 1 and args[1] in _MODES:
        return "open"
    full = f"{module}.{name}"
    return full.removeprefix("builtins.") if full in FUNCTIONS else None


def _module(callee: Any, owner: Any) -> str:
    """The module of a function, or of the class whose method it is."""
    if owner is not None and not hasattr(owner, "__spec__"):
        kind: type = owner if isinstance(owner, type) else type(owner)
        return kind.__module__ or ""
    own = getattr(callee, "__module__", None)
    return own if isinstance(own, str) else type(callee).__module__


def shown_by(
    library: Callable[..., Any], callee: Any, args: Sequence[Any], options: dict[str, Any]
) -> Any:
    """What ``library`` gives for a call; if it makes a text, methods of the user's objects may."""
    of_text = isinstance(getattr(callee, "__self__", None), str) or any(callee is x for x in _TEXTS)
    name = name_of(callee, args)
    if not of_text and name is None:
        return library(callee, args, options)
    try:
        with making_text() as traced:
            result = library(callee, args, options)
    except Exception as error:
        if name is None or not _lacks_what_is_left_out(name, error):
            raise
        return _left_out(name)
    return shown(result, traced) if type(result) is str else result


def _lacks_what_is_left_out(name: str, error: Exception) -> bool:
    """Whether a picture cannot be drawn since traced values, or others of its calls, are not."""
    if region() is not None or not _draws(name):
        return False
    return isinstance(error, CkadError) or any(map(_draws, ledger().skipped))


def _draws(name: str) -> bool:
    return name.partition(".")[0] in _DRAWING


def _left_out(name: str) -> Skipped:
    ledger().skipped.setdefault(name, user_place())
    return Skipped(name)


def arguments(
    frame: Any, node: ast.Call, callee: Any, by_place: Callable[[], Iterator[Any]]
) -> CallArguments:
    """What a call is given; one that draws need not be given what is not known yet."""
    try:
        args, options = list(by_place()), dict[str, Any]()
        for keyword in node.keywords:
            if keyword.arg is not None:
                options[keyword.arg] = unread(frame, keyword.value)
            elif type(given := evaluate(frame, keyword.value)) is not Skipped:
                put_all(options, given)
            elif name_of(callee, args) is None:  # np.seterr(**before) is left out, as before is
                given.keys()
        return args, options
    except ConcreteValueError:
        name = callee.name if isinstance(callee, Skipped) else name_of(callee)
        if name is None or not _draws(name) or not _computes_only(frame, node):
            raise
        return [Skipped(name)], {}


def _computes_only(frame: Any, node: ast.Call) -> bool:
    """Whether the arguments of a call are made of names and functions of libraries alone, which
    write into nothing and move no iterator or random generator on."""
    parts = [part for x in [*node.args, *node.keywords] for part in ast.walk(x)]
    if any(isinstance(part, _DOING) for part in parts):
        return False
    own = {x.id for x in parts if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    names = [x for x in parts if isinstance(x, ast.Name) and x.id not in own]
    try:
        moved = any(isinstance(evaluate(frame, x), Iterator | Lazy) for x in names)
        calls = [(evaluate(frame, x.func), x) for x in parts if isinstance(x, ast.Call)]
    except NameError:  # of a variable of a comprehension or of a lambda
        return False
    return not moved and all(_gives_only(callee) and _fits(callee, x) for callee, x in calls)


def _fits(callee: Any, node: ast.Call) -> bool:
    """Whether a call of a function that gives something has no array to write that into."""
    if any(x.arg is None or x.arg in ("out", "key") for x in node.keywords):
        return False
    if any(isinstance(x, ast.Starred) for x in node.args):
        return False
    most = callee.nin if isinstance(callee, np.ufunc) else 3 if callee in _OF_THREE else 2
    return len(node.args) <= most


def skipped(callee: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a call of a library gives that is left out; NotImplemented if it has to be made."""
    if isinstance(callee, Skipped):
        return callee
    given = (*args, *options.values())
    owner = getattr(callee, "__self__", None)
    if (isinstance(owner, str) or callee is format) and _is_unknown(_items(given), False):
        return TracedText(owner if isinstance(owner, str) else repr(args[0]))
    written = "out" in options or (isinstance(callee, np.ufunc) and len(args) > callee.nin)
    if any(type(x) is Skipped for x in given) and _gives_only(callee) and not written:
        return Skipped(next(x.name for x in given if type(x) is Skipped))
    name = name_of(callee, args)
    if name is None:
        return NotImplemented
    if name.startswith("tqdm.") and (isinstance(callee, type) or name.endswith(".trange")):
        return Progress(name, args, options)
    is_shown = callee is print and options.get("file") in (None, sys.stdout, sys.stderr)
    if region() is None and not _is_unknown(given, is_shown):
        return NotImplemented
    if callee is print:
        _made_texts(args)
    return _left_out(name)


def _made_texts(args: Sequence[Any]) -> None:
    """Have objects of the user's make their texts, which may do more than that."""
    for x in args:
        if not is_library(type(x).__module__):
            with suppress(Exception):
                str(x)


def _items(given: Sequence[Any]) -> list[Any]:
    """What a method of text gets, and what is in lists among it: ``", ".join(words)``."""
    return [x for g in given for x in ([g, *g] if isinstance(g, (list, tuple)) else [g])]


def _is_unknown(given: Sequence[Any], is_shown: bool) -> bool:
    """Whether some of what a call gets is not known yet; a traced value can be printed, but to no
    file."""
    if is_shown:
        return False
    is_text = any(type(x) in (TracedText, Skipped) for x in given)
    return is_text or holds_tracer(list(given)) or any(map(holds_buffers, given))


def _gives_only(callee: Any) -> bool:
    """Whether a call computes from what it is given, and changes nothing."""
    module = getattr(callee, "__module__", None) or ""
    if module.startswith("numpy.random") or getattr(callee, "__name__", "") in _WRITING:
        return False
    numbers = module.startswith(("numpy", "math")) or isinstance(callee, np.ufunc)
    return numbers or callee in (abs, float, int, len, list, max, min, range, repr, round, str, sum)


def warn(names: dict[str, Source]) -> None:
    """Name what a recording has left out."""
    if names:
        warn_of_skipped(
            names,
            "these calls change no number of the program and are left out, because they are in "
            "loops or branches that are recorded once, or get traced values",
        )


def is_left_out(owner: Any) -> bool:
    """Whether attributes of an object are not bound in a body, since calls of it are left out."""
    if region() is None:
        return False
    module = type(owner).__module__
    return isinstance(owner, Skipped) or (
        is_library(module) and module.partition(".")[0] in PACKAGES
    )


class Progress(Skipped):
    """A progress bar: it is not shown, and runs over what it would run over."""

    __slots__ = ("iterable",)
    iterable: Any

    def __init__(self, name: str, args: Sequence[Any], options: dict[str, Any]) -> None:
        super().__init__(name)
        over = args[0] if args else options.get("iterable")
        if name.endswith("trange"):
            over = dispatch.cell(range)(*args)  # type: ignore[misc]
        object.__setattr__(self, "iterable", over)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)
