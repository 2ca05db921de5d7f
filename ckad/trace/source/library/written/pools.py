"""Pools of processes and threads, run from source: their calls are made one after the other, in the
order in which they are given, as Python's own do where there is one worker."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Result:
    """What a call that was handed to a pool gives: ``Future`` and ``AsyncResult``."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self, timeout: Any = None) -> Any:
        return self.value

    def done(self) -> bool:
        return True

    def wait(self, timeout: Any = None) -> None:
        return None

    result = get
    ready = successful = done


class Pool:
    """What is done with each of them."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def handed(self, x: Any) -> Any:
        """An argument as the function sees it."""
        return x


class Threads(Pool):
    """``multiprocessing.pool.ThreadPool``."""

    def __init__(
        self, processes: Any = None, initializer: Any = None, initargs: Any = (), *rest: Any
    ) -> None:
        if initializer is not None:
            initializer(*initargs)

    def apply(self, func: Any, args: Any = (), kwds: Any = None) -> Any:
        return func(*self.handed(args), **self.handed(kwds or {}))

    def apply_async(
        self, func: Any, args: Any = (), kwds: Any = None, callback: Any = None, *rest: Any
    ) -> Result:
        return _told(self.apply(func, args, kwds), callback)

    def map(self, func: Any, iterable: Iterable[Any], chunksize: Any = None) -> Any:
        return [func(self.handed(x)) for x in iterable]

    def starmap(self, func: Any, iterable: Iterable[Any], chunksize: Any = None) -> Any:
        return [func(*self.handed(x)) for x in iterable]

    def imap(self, func: Any, iterable: Iterable[Any], chunksize: Any = None) -> Any:
        return iter(self.map(func, iterable))

    imap_unordered = imap

    def map_async(
        self, func: Any, iterable: Iterable[Any], chunksize: Any = None, callback: Any = None
    ) -> Result:
        return _told(self.map(func, iterable), callback)

    def starmap_async(self, func: Any, iterable: Iterable[Any], chunksize: Any = None) -> Result:
        return Result(self.starmap(func, iterable))

    def close(self) -> None:
        return None

    terminate = join = close


def _told(value: Any, callback: Any) -> Result:
    if callback is not None:
        callback(value)
    return Result(value)


class Processes(Threads):
    """``multiprocessing.Pool``: a function gets copies, as what it writes into them stays there."""

    def handed(self, x: Any) -> Any:
        return copy.deepcopy(x)


class ThreadExecutor(Pool):
    """``concurrent.futures.ThreadPoolExecutor``."""

    def __init__(
        self,
        max_workers: Any = None,
        names: Any = None,
        initializer: Any = None,
        initargs: Any = (),
        **options: Any,
    ) -> None:
        if initializer is not None:
            initializer(*initargs)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Result:
        return Result(fn(*self.handed(args), **self.handed(kwargs)))

    def map(self, fn: Any, *iterables: Any, timeout: Any = None, chunksize: Any = 1) -> Any:
        return iter([fn(*self.handed(x)) for x in zip(*iterables, strict=False)])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        return None


class ProcessExecutor(ThreadExecutor):
    """``concurrent.futures.ProcessPoolExecutor``."""

    def handed(self, x: Any) -> Any:
        return copy.deepcopy(x)


class Parallel(Pool):
    """``joblib.Parallel``, of calls that ``joblib.delayed`` has put off."""

    def __init__(self, *args: Any, **options: Any) -> None:
        return None

    def __call__(self, calls: Iterable[Any]) -> Any:
        return [function(*args, **options) for function, args, options in calls]


def delayed(function: Callable[..., Any], *rest: Any) -> Any:
    """``joblib.delayed``."""

    def put_off(*args: Any, **options: Any) -> Any:
        return function, args, options

    return put_off


def as_completed(results: Iterable[Any], timeout: Any = None) -> Iterator[Any]:
    """``concurrent.futures.as_completed``: in the order in which they were handed over."""
    return iter(list(results))


#: What stands for what, by module and name.
STANDING_FOR: dict[tuple[str, str], Any] = {
    ("multiprocessing.context", "BaseContext.Pool"): Processes,
    ("multiprocessing.pool", "Pool"): Processes,
    ("multiprocessing.pool", "ThreadPool"): Threads,
    ("multiprocessing.dummy", "Pool"): Threads,
    ("concurrent.futures.thread", "ThreadPoolExecutor"): ThreadExecutor,
    ("concurrent.futures.process", "ProcessPoolExecutor"): ProcessExecutor,
    ("concurrent.futures._base", "as_completed"): as_completed,
    ("joblib.parallel", "Parallel"): Parallel,
    ("joblib.parallel", "delayed"): delayed,
}
_MODULES = frozenset(module for module, _ in STANDING_FOR)


def stand_in(callee: Any) -> Any:
    """What is run for a pool, or for a method of one that is there already; None for anything
    else."""
    module = getattr(callee, "__module__", None)
    if module not in _MODULES:
        return None
    found = STANDING_FOR.get((module, callee.__qualname__))
    owner = getattr(callee, "__self__", None)
    if found is not None or owner is None:
        return found
    kind = type(owner)
    own = STANDING_FOR.get((kind.__module__, kind.__qualname__))
    return None if own is None else getattr(own(), callee.__name__, None)
