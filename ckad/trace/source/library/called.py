"""Objects of libraries that are called: what is called in their place on traced values."""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import BuiltinFunctionType, MethodType
from typing import Any

import numpy as np

from ckad.errors import UnsupportedFunctionError
from ckad.trace import dispatch
from ckad.trace.arrays import traced
from ckad.trace.source.actions import stop
from ckad.trace.source.libraries import generalized_function, plain_class, scalar_function
from ckad.trace.source.library.written import (
    attributes,
    elements,
    iterations,
    orders,
    pools,
    signatures,
)
from ckad.trace.source.memory import object_arrays
from ckad.trace.source.memory.contents import stack_of
from ckad.trace.source.names.closures import call_from_source
from ckad.trace.source.outside.kinds import is_distribution
from ckad.trace.source.outside.watch import watch
from ckad.trace.source.values import asks_traced, holds_tracer
from ckad.trace.values.apply import astype, resolve
from ckad.trace.values.array import Array
from ckad.trace.values.part import Part, unsupported
from ckad.trace.values.sparse import Dense

#: Modules of functions that compare the items of a list.
_COMPARING = ("_heapq", "heapq", "_bisect", "bisect")
#: What looks into the object that it is called with.
GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
#: Distributions of SciPy with their parameters.
_FROZEN = ("rv_continuous_frozen", "rv_discrete_frozen")

#: What NumPy's own methods do not know traced values as arguments of.
_PLAIN = (np.ndarray, np.generic)
#: Methods that change the array, which one from outside is kept from.
_WRITING = frozenset({"fill", "partition", "put", "resize", "setfield", "sort"})


#: Packages whose objects, made of known numbers, may be called on traced ones.
_OF_OBJECTS = ("scipy.interpolate", "numpy.polynomial", "scipy.stats._kde")


def called(
    callee: Any, args: Sequence[Any], options: dict[str, Any], is_traced: bool
) -> Callable[..., Any] | None:
    """The counterpart of calling an object on traced values, or of what makes arrays of objects;
    None if there is none."""
    if (maker := object_arrays.maker(callee, args, options)) is not None:
        return maker
    if not is_traced:
        return None
    if callee is np.asarray_chkfinite:
        return _finite
    if callee is np.multiply and Dense in map(type, args) and not options:
        return partial(_of_matrices, callee)  # which * of an array and a matrix is not
    if type(callee) is np.vectorize:
        return partial(_vectorized, callee)
    scalar = scalar_function(callee)
    if scalar is not None:
        return partial(_by_elements, callee, scalar)
    general = generalized_function(callee)
    if general is not None:
        return partial(_generalized, callee, general)
    owner, function = callee, type(callee).__call__
    if type(callee) is MethodType:
        owner, function = callee.__self__, callee.__func__
    if not type(owner).__module__.startswith(_OF_OBJECTS):
        return None
    counterpart = dispatch.cell(function)
    return None if counterpart is None else partial(counterpart, owner)


def method(callee: Any, given: tuple[Any, ...]) -> Any:
    """What is called in place of a method of a plain array on traced values."""
    owner, name = getattr(callee, "__self__", None), getattr(callee, "__name__", "")
    plain = type(callee) is BuiltinFunctionType and isinstance(owner, _PLAIN)
    if plain and name not in _WRITING and hasattr(Array, name) and holds_tracer(list(given)):
        return getattr(traced(owner), name)
    return callee


def thawed(callee: Any, args: Any, options: Any) -> Any:
    """A method of a distribution with parameters as a call of the distribution itself; what makes
    such a one of traced parameters as ``Frozen``; ``dataclasses.replace`` as a new object; pools as
    calls one after the other; classes that Numba compiles as those they are made of; an array of an
    iterator's items as one of their list; what is done with heaps and sorted lists whose items
    Python cannot compare."""
    if getattr(callee, "__module__", None) in _COMPARING and args:
        own = getattr(orders, callee.__name__, callee)
        return own if own is callee or _compares(own, args) else callee, args, options
    if type(callee) in GETTERS and len(args) == 1 and not options:
        return attributes.GETTERS[type(callee)], (args[0], *_given_to(callee)), {}
    if callee is np.fromiter:
        return iterations.from_iterator, args, options
    if (pooled := pools.stand_in(callee)) is not None:
        return pooled, args, options
    if (iterated := elements.stand_in(callee, args, options)) is not None:
        return iterated, args, options
    if callee is dataclasses.replace and args and dataclasses.is_dataclass(args[0]):
        kept = [x.name for x in dataclasses.fields(args[0]) if x.init and x.name not in options]
        return iterations.replaced, (args[0], kept, options), {}
    if isinstance(callee, type):
        return plain_class(callee), args, options
    if is_distribution(callee) and holds_tracer([*args, *options.values()]):
        return iterations.Frozen, (callee, tuple(args), dict(options)), {}
    owner: Any = getattr(callee, "__self__", None)
    if type(owner).__module__.startswith("scipy.spatial.transform") and holds_tracer([*args]):
        made_of = dispatch.cell(getattr(type(owner), "from_quat", None))
        if made_of is not None:
            return getattr(made_of(owner.as_quat()), callee.__name__), args, options
    if type(owner).__module__.startswith("numba.experimental") and holds_tracer([*args]):
        raise UnsupportedFunctionError.here(
            f"{callee.__name__} is a method of an object that Numba's class has made outside "
            "of the function, and is given traced values. Make the object in the function."
        )
    if type(owner).__name__ not in _FROZEN or not holds_tracer([*args, *options.values()]):
        return callee, args, options
    dist = vars(sys.modules["scipy.stats"]).get(owner.dist.name)
    if not is_distribution(dist) or not hasattr(dist, callee.__name__):
        return callee, args, options
    return getattr(dist, callee.__name__), (*args, *owner.args), {**owner.kwds, **options}


def _given_to(getter: Any) -> tuple[Any, Any]:
    """What ``operator.attrgetter`` and its like were made with."""
    made, args = getter.__reduce__()
    options = {}
    if isinstance(made, partial):  # of a method that is called with arguments by name
        args, options = (*made.args, *args), made.keywords
    if watched := watch():
        watched.enter((*args, *options.values()))
    return args, options


def _compares(own: Any, args: Any) -> bool:
    """Whether what such a function compares is traced, or an object of the user's."""
    items = args[1] if own in (orders.nsmallest, orders.nlargest) else args[0]
    if stack_of(items) is not None or isinstance(items, Array):
        return True
    return type(items) in (list, tuple) and asks_traced([*items, *args[1:]])


def _by_elements(callee: Any, scalar: Any, *args: Any) -> Any:
    """A ``numba.vectorize``: of numbers of the types of its signature, if it has got some."""
    if not callee._frozen:
        return _run(iterations.elementwise, scalar, args)
    *taken, given = resolve(callee.ufunc, args)
    dispatch.reject(any(dtype.kind not in "fiub" for dtype in (*taken, given)), callee.__name__)
    found = _run(iterations.elementwise, scalar, tuple(map(astype, args, taken)))
    return astype(found, given)


def _generalized(callee: Any, function: Any, *args: Any, **options: Any) -> Any:
    """A ``numba.guvectorize``: a function that writes into its last arguments."""
    about = callee.gufunc_builder
    dispatch.reject(len(about._sigs) > 1, "numba.guvectorize of several signatures")
    dispatch.reject(bool(options.keys() - {"out"}), "numba.guvectorize with more options than out=")
    dims, n = [*about.sin, *about.sout], len(about.sin)
    kinds = about._sigs[0].args if about._sigs else map(traced, args)
    dtypes, arrayed = [], []
    for x in kinds:
        given = getattr(x, "dtype", x)
        dtypes.append(given if isinstance(given, np.dtype) else np.dtype(str(given)))
        arrayed.append(hasattr(x, "layout"))
    found = options.get("out", args[n:])
    outs = found if isinstance(found, tuple) else (found,)
    return _run(iterations.generalized, function, dims, n, dtypes, arrayed, args[:n], outs)


def _finite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """An array of which no number may be infinite or NaN: the program stops there if one is."""
    x = dispatch.call(np.asarray, (a,), {"dtype": dtype, "order": order})
    if x.dtype.kind in "fc":
        stop(np.logical_not(np.all(np.isfinite(x))))
    return x


def _of_matrices(function: Any, *xs: Any) -> Any:
    """A function of elements where an ``np.matrix`` is among them."""
    return dispatch.call(f"np.{function.__name__}(matrix, x)", xs, {})


def _vectorized(callee: np.vectorize, *args: Any, **options: Any) -> Any:
    """What it gives for arrays; ``vectorized`` is run from source, and the function with it."""
    if any(isinstance(x, Part) for x in (*args, *options.values())):
        unsupported("np.vectorize")
    several = [name for name, x in options.items() if np.ndim(x) and name not in callee.excluded]
    dispatch.reject(bool(several), "np.vectorize of arrays given by their names")
    otypes, excluded = callee.otypes or "", frozenset(callee.excluded)
    if callee.signature is None:
        return _run(iterations.vectorized, callee.pyfunc, otypes, excluded, args, options)
    taken, returned = vars(callee)["_in_and_out_core_dims"]
    dims = [*taken, *returned]
    given = callee.pyfunc, dims, len(taken), otypes, excluded, args, options
    return _run(signatures.by_signature, *given)


def _run(function: Any, *given: Any) -> Any:
    return call_from_source(function, given, {})


@dispatch.implements(np.apply_along_axis, kind=(dispatch.PLAIN, dispatch.COMPLEX))
def _along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    return _run(iterations.along_axis, func1d, axis, arr, args, kwargs)


@dispatch.implements(list, kind=dispatch.PART)
def _list(items: Any = ()) -> Any:
    return _run(iterations.listed, items)


@dispatch.implements(np.ndarray.tolist, kind=dispatch.PART)
def _tolist(self: Any) -> Any:
    dispatch.reject(self.ndim != 1, "tolist of more than one axis, of a length that is computed")
    return _run(iterations.listed, self)


def writable(owner: Any, index: Any) -> Any:
    """``np.mgrid[index]`` and its like; None for any other owner."""
    try:
        grid = dispatch.cell(owner) if type(owner).__module__.startswith("numpy") else None
    except TypeError:
        return None
    return None if grid is None else grid(index)
