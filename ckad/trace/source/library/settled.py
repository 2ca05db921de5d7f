"""What functions of SciPy and scikit-learn without a rule give where a program is recorded as it
runs: they are called on the numbers of the call, and only their integers go on into the program.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from ckad import trees
from ckad.errors import UnsupportedFunctionError
from ckad.place import at_place
from ckad.trace import dispatch
from ckad.trace.arrays import traced
from ckad.trace.memory.context import Given, current
from ckad.trace.source.libraries import is_hashable
from ckad.trace.source.values import holds_tracer
from ckad.trace.values.tracer import Tracer, known_as_run

#: What has no derivative.
_PLAIN = (bool, int, str, bytes, type(None), np.integer, np.bool_)
#: Classes of SciPy that search among points, by the names of what they give of these.
_POINTS = {"KDTree": "data", "cKDTree": "data", "Delaunay": "points", "ConvexHull": "points"}
#: Those whose methods leave them as they are.
_SEARCHED = frozenset({"KDTree", "cKDTree", "Delaunay"})
#: What is asked of a copy of an estimator that has not been fitted: what was, may be read later.
_FITTING = frozenset({"fit", "fit_predict"})


class Settled:
    """Floats, or an object, that a function without a rule has made: its integers are known, and
    such functions take it. All else is refused."""

    def __init__(self, inner: Any, name: str, given: tuple[Any, ...] = ()) -> None:
        self.__dict__.update(_inner=inner, _name=name, _given=given)

    def __repr__(self) -> str:
        return f"<what {self._name} gives>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):  # NumPy asks for the numbers, which `__array__` refuses
            raise AttributeError(name)
        kind = type(self._inner).__name__
        if name == _POINTS.get(kind):
            return self._given[0]
        if name == "query" and kind in ("KDTree", "cKDTree"):
            return partial(_query, self)
        found = getattr(self._inner, name)
        title = f"{self._name}.{name}"
        if not callable(found):
            return _settled(found, title)
        return partial(self._of_array if kind == "ndarray" else _run, found, title)

    def _of_array(self, method: Any, title: str, *args: Any, **options: Any) -> Any:
        """What a method of an array of floats gives: places, and nothing else."""
        result = _run(method, title, *args, **options)
        return self._refuse() if isinstance(result, Settled) else result

    def __len__(self) -> int:
        return len(self._inner)

    def __getitem__(self, index: Any) -> Any:
        return _settled(self._inner[_numbers(index)], self._name)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedFunctionError.here(
            f"what {self._name} computes in floats is used here, and ckad has no rule for it; "
            "only integers come out of such a function. Write it with functions that "
            "docs/numpy.md lists."
        )

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        if not callable(self._inner):
            raise TypeError(at_place(f"'{type(self._inner).__name__}' object is not callable"))
        self._refuse()

    __bool__ = __iter__ = __float__ = __int__ = __array__ = __array_ufunc__ = _refuse
    __array_function__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = __matmul__ = __rmatmul__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def called(callee: Any, args: Any, options: Any) -> Any:
    """What a function without a rule gives for the numbers of the call; NotImplemented where it is
    to be called otherwise."""
    if current().decides < Given.DECISIONS or not _is_given(args, options):
        return NotImplemented
    module = getattr(callee, "__module__", None) or ""
    if module.partition(".")[0] not in ("scipy", "sklearn"):
        return NotImplemented
    if not is_hashable(callee) or dispatch.knows(callee) or not hasattr(callee, "__name__"):
        return NotImplemented
    title = f"{module}.{callee.__name__}"
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        return _run(callee, title, *args, **options)
    if type(owner).__name__ in _SEARCHED:  # of points that are known
        points = getattr(owner, _POINTS[type(owner).__name__])
        return getattr(Settled(owner, title, (points,)), callee.__name__)(*args, **options)
    if callee.__name__ in _FITTING and not any(name.endswith("_") for name in vars(owner)):
        return _run(getattr(copy.deepcopy(owner), callee.__name__), title, *args, **options)
    return NotImplemented  # it may change what is read later, as it was


def _is_given(args: Any, options: Any) -> bool:
    both = [*args, *options.values()]
    return holds_tracer(both) or any(isinstance(x, Settled) for x in both)


def _run(function: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
    given = [_numbers(args), _numbers(options)]
    before = _bytes_of(given)
    found = function(*given[0], **given[1])
    if _bytes_of(given) != before:
        raise UnsupportedFunctionError.here(
            f"{name} writes into an array that it is given, and ckad has no rule for it. Write "
            "it with functions that docs/numpy.md lists."
        )
    return _settled(found, name, args)


def _bytes_of(given: Any) -> list[bytes]:
    return [x.tobytes() for x in trees.flatten(given)[0] if type(x) is np.ndarray]


def _numbers(x: Any) -> Any:
    """What a function is called with: the numbers of the call in place of traced values."""
    if isinstance(x, Tracer):
        found = known_as_run(x)
        if found is None:
            raise UnsupportedFunctionError.here(
                "a function that ckad has no rule for is given what steps of a loop change."
            )
        return found.copy()[()]  # it may be written into
    if isinstance(x, Settled):
        return x._inner
    if type(x) is np.ndarray:
        return x.copy()
    if isinstance(x, dict):
        return {key: _numbers(item) for key, item in x.items()}
    if type(x) in (list, tuple):
        return type(x)(map(_numbers, x))
    return x


def _settled(x: Any, name: str, given: tuple[Any, ...] = ()) -> Any:
    if isinstance(x, _PLAIN):
        return x
    if isinstance(x, np.ndarray) and x.dtype.kind in "iubSU":
        return x
    if isinstance(x, np.ndarray) and x.dtype.kind == "O":
        return [_settled(item, name) for item in x]
    if type(x) in (list, tuple, set, frozenset):
        return type(x)([_settled(item, name) for item in x])
    if type(x) is dict:
        return {key: _settled(item, name) for key, item in x.items()}
    return Settled(x, name, given)


# --- what has a derivative nonetheless ------------------------------------------------------------


def _query(
    tree: Settled, x: Any, k: Any = 1, eps: float = 0.0, p: float = 2.0, *rest: Any, **options: Any
) -> Any:
    """Neighbours, whose distances are those of points of which it is known which they are."""
    given = _numbers(x), _numbers(k), eps, p, *rest
    distances, places = tree._inner.query(*given, **options)
    if p != 2.0 or not np.all(np.isfinite(distances)):
        return Settled(distances, tree._name), places
    at = traced(x)[..., None, :] if np.ndim(places) == np.ndim(x) else x
    squared = np.sum((at - tree._given[0][places]) ** 2, axis=-1)
    there = np.asarray(distances) > 0.0
    return np.where(there, np.sqrt(np.where(there, squared, 1.0)), 0.0), places
