"""What a solution is returned as."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from numpy.lib.mixins import NDArrayOperatorsMixin

from ckad import trees
from ckad.errors import UnrecordableError
from ckad.trace.arrays import Deferred, made_whole
from ckad.trace.results import Result


class _Told:
    """A field that tells whether a solution has come to its end: ``ask`` is called before."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, result: OdeResult, value: Any) -> None:
        vars(result)[self._name] = value

    def __get__(self, result: OdeResult | None, owner: type) -> Any:
        if result is None:
            return self
        if (ask := getattr(result, "_ask", None)) is not None:
            result._ask = None
            ask(result)
        return vars(result)[self._name]


class OdeResult(Result):
    """The fields of SciPy's result; inside of a recording they hold traced values.

    Attributes:
        t: float64[m], times.
        y: float64[n, m], the states at these times.
        sol: a function of time with ``dense_output=True``, else None.
        t_events, y_events: per event a float64[k] and a float64[k, n]; None without events.
        nfev, njev, nlu: how often ``fun``, its Jacobian and an LU decomposition were computed.
        status: 0 at the end of ``t_span``, 1 after a terminal event, -1 where a step failed.
        message, success: the status in words, and whether it is at least 0.

    >>> import ckad
    >>> result = ckad.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0])
    >>> result.y.shape == (1, len(result.t)), result.status, result.success
    (True, 0, True)
    """

    __slots__ = ("_ask",)  # no field
    _ask: Callable[[OdeResult], None] | None
    status, message, success = _Told(), _Told(), _Told()

    def __init__(self, t: Any, y: Any, status: Any, message: str, **found: Any) -> None:
        self.t, self.y = t, y
        self.status, self.message = status, message
        self.success = found.get("success", True)
        self.sol = found.get("sol")
        self.t_events, self.y_events = found.get("t_events"), found.get("y_events")
        self.nfev, self.njev, self.nlu = (found.get(n, 0) for n in ("nfev", "njev", "nlu"))

    def asking(self, ask: Callable[[OdeResult], None]) -> OdeResult:
        """The same, that asks when its end is asked for."""
        self._ask = ask
        return self

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name) if name in vars(self) else super().__getitem__(name)


class Ends(Deferred, NDArrayOperatorsMixin):
    """States or times of all steps, of which a recording knows the first and the last at once.

    How many steps an adaptive method makes is known when the program has run. What asks for more
    than the ends gets ``whole()``, an array whose length is computed.
    """

    def __init__(self, first: Any, last: Any, whole: Callable[[], Any]) -> None:
        self._first, self._last, self.whole = first, last, whole

    @property
    def ndim(self) -> int:
        return int(self._last.ndim) + 1

    def __getitem__(self, key: Any) -> Any:
        if self._last.ndim and not isinstance(key, tuple):  # of states: components
            whole = self.whole
            return Ends(self._first[key], self._last[key], lambda: whole()[key])
        *rows, column = key if isinstance(key, tuple) else (key,)
        if not isinstance(column, int) or column not in (0, -1) or len(rows) != self._last.ndim:
            return self.whole()[key]
        end = self._last if column == -1 else self._first
        return end[rows[0]] if rows else end

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.whole(), name)

    def __repr__(self) -> str:
        return f"<of the first and of the last step: {self._first}, {self._last}>"

    def __len__(self) -> int:
        return len(self._last) if self._last.ndim else self._refuse("len()")

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __array__(self, *_: Any, **__: Any) -> Any:
        self._refuse("an array that Python computes with")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(made_whole, inputs), **options)

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        return function(*map(made_whole, args), **options)

    def _refuse(self, use: str) -> NoReturn:
        raise UnrecordableError.here(
            f"how many steps an adaptive method makes is not known while it is recorded: {use} "
            "needs it. Give t_eval=, or read the last state by sol.y[:, -1] and its time by "
            "sol.t[-1] (the first by 0)."
        )


def _ends(x: Ends) -> tuple[tuple[Any, Any], None]:
    return (x._first, x._last), None


def _elsewhere(_: None, ends: Any) -> Ends:
    """The ends behind a loop or a branch, where its steps cannot be made again."""
    first, last = ends
    return Ends(first, last, _not_made_again)


def _not_made_again() -> NoReturn:
    raise UnrecordableError.here(
        "behind a loop or a branch only the first and the last state are known of a solution "
        "that is made in it (sol.y[:, -1], sol.t[-1]). Give t_eval=, or read the others in it."
    )


trees.register(Ends, _ends, _elsewhere)
