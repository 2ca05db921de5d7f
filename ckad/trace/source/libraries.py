"""Which modules are libraries, whose functions are called as they are, and not read.

The names of their modules say so. Of what Numba has compiled the Python function is read.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Collection
from functools import lru_cache
from types import FunctionType
from typing import Any

_LIBRARIES = frozenset(
    """IPython PIL ckad cupy imageio jax jaxlib matplotlib mpl_toolkits numba numpy pandas rich
    scipy seaborn sklearn torch tqdm xarray""".split()
)
#: Modules of the package that are run from source like a user's.
_AS_OF_USERS = frozenset(
    {
        "ckad.demo",
        "ckad.integrate.called.stepping",
        "ckad.optimize.brackets",
        "ckad.optimize.hybrid",
        "ckad.trace.source.library.written.attributes",
        "ckad.trace.source.library.written.elements",
        "ckad.trace.source.library.written.iterations",
        "ckad.trace.source.library.written.orders",
        "ckad.trace.source.library.written.pools",
    }
)
_FILES = sysconfig.get_path("stdlib")


@lru_cache(maxsize=4096)
def is_library(module: str | None) -> bool:
    """Whether a module is one of Python's own, or of a package whose functions are known."""
    if module is None or module in _AS_OF_USERS:
        return False
    top = module.partition(".")[0]
    return top in _LIBRARIES or (top in sys.stdlib_module_names and not _is_namesake(module))


def is_of_library(function: FunctionType) -> bool:
    """Whether a library has written a function; one of the user's may be named after another that
    it wraps (``functools.wraps(np.asarray)``), and so are those of ckad's own examples."""
    if function.__code__.co_filename.startswith("<doctest "):
        return False
    return is_library(function.__module__) and is_library(function.__globals__.get("__name__"))


@lru_cache(maxsize=1024)
def _is_namesake(module: str) -> bool:
    """Whether a module of the user has the name of one of Python's own (``trace``, ``test``)."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return module == "__main__" or (file is not None and not file.startswith(_FILES))


def python_function(compiled: Any) -> FunctionType | None:
    """The Python function of one that Numba compiles; None for anything else."""
    if not type(compiled).__module__.startswith("numba."):
        return None
    function = getattr(compiled, "py_func", None)
    return function if type(function) is FunctionType else None


def scalar_function(ufunc: Any) -> FunctionType | None:
    """The Python function of a ``numba.vectorize``; None for anything else."""
    if not type(ufunc).__module__.startswith("numba.np.ufunc.dufunc"):
        return None
    function = getattr(ufunc, "__wrapped__", None)
    return function if type(function) is FunctionType else None


def generalized_function(gufunc: Any) -> FunctionType | None:
    """The Python function of a ``numba.guvectorize``; None for anything else."""
    if not type(gufunc).__module__.startswith("numba.np.ufunc.gufunc"):
        return None
    return python_function(gufunc.gufunc_builder)


@lru_cache(maxsize=256)
def plain_class(kind: Any) -> Any:
    """The class of which a ``numba.experimental.jitclass`` is made; ``kind`` itself otherwise.

    Fields that are integers there cut what is written into them.
    """
    if not type(kind).__module__.startswith("numba.experimental"):
        return kind
    written, fields = kind.__mro__[1], kind.class_type.struct
    whole = [x for x, t in fields.items() if hasattr(t, "bitwidth") and "int" in t.name]
    if not whole:
        return written
    own = {"__module__": written.__module__, **{x: _cut(f"_{x}") for x in whole}}
    return type(written.__name__, (written,), own)


def _cut(name: str) -> property:
    return property(lambda x: getattr(x, name), lambda x, value: setattr(x, name, int(value)))


def compiles(decorator: Any) -> bool:
    """Whether a decorator only compiles its function, as Numba's do."""
    module = getattr(decorator, "__module__", None) or ""
    return module.partition(".")[0] == "numba"


def is_hashable(callee: Any) -> bool:
    """Whether it may be looked for in a table."""
    try:
        hash(callee)
    except TypeError:
        return False
    return True


def is_in(callee: Any, functions: Collection[Any]) -> bool:
    """Whether it is one of some functions."""
    try:
        hash(callee)
    except TypeError:
        return False
    return callee in functions
