"""What all traced values have in common: Python's operators and the methods of NumPy's arrays.

Each is a call by the table of ``dispatch``: the classes do not know what is done. A method that is
a function of NumPy is called by that one, any other by what it is in ``np.ndarray``.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ckad.trace.dispatch import Traced, call, call_function, call_ufunc

Method = Callable[..., Any]


def _method(key: Any) -> Method:
    def method(self: Array, *args: Any, **options: Any) -> Any:
        return call(key, (self, *args), options)

    method.__name__ = key.__name__
    return method


def _attribute(key: Any) -> property:
    return property(lambda self: call(key, (self,), {}))


#: Operators that take Python's truth values as the integers 0 and 1, as no ufunc does.
_OF_INTEGERS = frozenset(
    {np.add, np.subtract, np.multiply, np.floor_divide, np.remainder, np.power, np.divmod}
    | {np.left_shift, np.right_shift, np.negative, np.positive, np.invert}
)


def is_truth(x: Any) -> bool:
    """Whether it is a bool of Python's, which a weak scalar stands for: it computes as 0 or 1."""
    return type(x) is bool or (isinstance(x, Array) and x.scalar and x.weak and x.dtype == bool)


def _unary(ufunc: Any) -> Method:
    def method(self: Array) -> Any:
        is_integer = ufunc in _OF_INTEGERS and is_truth(self)
        return call(ufunc, (call(int, (self,), {}) if is_integer else self,), {})

    return method


def _two(ufunc: Any, x: Any, y: Any) -> tuple[Any, Any]:
    is_integer = ufunc in _OF_INTEGERS and is_truth(x) and is_truth(y)
    return (call(int, (x,), {}), call(int, (y,), {})) if is_integer else (x, y)


def _binary(ufunc: Any) -> Method:
    return lambda self, other: call(ufunc, _two(ufunc, self, other), {})


def _turned(ufunc: Any) -> Method:
    return lambda self, other: call(ufunc, _two(ufunc, other, self), {})


def _in_place(ufunc: Any) -> Method:
    # NumPy scalars are immutable: x += 1 binds the name to a new one.
    def method(self: Array, other: Any) -> Any:
        return call(ufunc, _two(ufunc, self, other), {} if self.scalar else {"out": self})

    return method


def _three(ufunc: Any) -> tuple[Method, Method, Method]:
    return _binary(ufunc), _turned(ufunc), _in_place(ufunc)


class Array(Traced):
    """A value that is recorded, of any kind."""

    __slots__ = ()
    __array_priority__ = 1000
    scalar: Any = False  # whether it is a NumPy scalar rather than an array
    weak: bool = False  # whether it stands for a Python number

    if TYPE_CHECKING:  # every class has its own

        @property
        @abstractmethod
        def dtype(self) -> np.dtype: ...

    # --- NumPy's protocols ---------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)

    # --- elements ------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        return call(operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(value) is str:  # u[mask] = "nan"
            value = np.asarray(value).astype(self.dtype)
        call(operator.setitem, (self, index, value), {})

    # --- operators -----------------------------------------------------------------------------

    __add__, __radd__, __iadd__ = _three(np.add)
    __sub__, __rsub__, __isub__ = _three(np.subtract)
    __mul__, __rmul__, __imul__ = _three(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _three(np.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _three(np.floor_divide)
    __mod__, __rmod__, __imod__ = _three(np.remainder)
    __pow__, __rpow__, __ipow__ = _three(np.power)
    __matmul__, __rmatmul__, __imatmul__ = _three(np.matmul)
    __and__, __rand__, __iand__ = _three(np.bitwise_and)
    __or__, __ror__, __ior__ = _three(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _three(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _three(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _three(np.right_shift)
    __divmod__, __rdivmod__ = _binary(np.divmod), _turned(np.divmod)
    __eq__ = _binary(np.equal)
    __ne__ = _binary(np.not_equal)
    __lt__ = _binary(np.less)
    __le__ = _binary(np.less_equal)
    __gt__ = _binary(np.greater)
    __ge__ = _binary(np.greater_equal)
    __neg__ = _unary(np.negative)
    __pos__ = _unary(np.positive)
    __abs__ = _unary(np.absolute)
    __invert__ = _unary(np.invert)
    __trunc__ = _unary(int)

    def __round__(self, digits: Any = None) -> Any:
        return call(round, (self, digits), {})

    def __floor__(self) -> Any:
        return call(int, (call(np.floor, (self,), {}),), {})

    def __ceil__(self) -> Any:
        return -(-self).__floor__()

    # --- methods that are functions ------------------------------------------------------------

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return call(np.compress, (condition, self, axis, out), {})

    all, any = _method(np.all), _method(np.any)
    argmax, argmin = _method(np.argmax), _method(np.argmin)
    argpartition, argsort = _method(np.argpartition), _method(np.argsort)
    choose, clip = _method(np.choose), _method(np.clip)
    cumprod, cumsum = _method(np.cumprod), _method(np.cumsum)
    diagonal, dot = _method(np.diagonal), _method(np.dot)
    max, min, mean = _method(np.max), _method(np.min), _method(np.mean)
    nonzero, prod, put = _method(np.nonzero), _method(np.prod), _method(np.put)
    ravel, repeat, round = _method(np.ravel), _method(np.repeat), _method(np.round)
    searchsorted, squeeze = _method(np.searchsorted), _method(np.squeeze)
    std, sum, var = _method(np.std), _method(np.sum), _method(np.var)
    swapaxes, take, trace = _method(np.swapaxes), _method(np.take), _method(np.trace)

    # --- other methods and attributes ----------------------------------------------------------

    astype, copy = _method(np.ndarray.astype), _method(np.ndarray.copy)
    conj, conjugate = _method(np.ndarray.conj), _method(np.ndarray.conjugate)
    fill, flatten = _method(np.ndarray.fill), _method(np.ndarray.flatten)
    item, tolist = _method(np.ndarray.item), _method(np.ndarray.tolist)
    partition, sort = _method(np.ndarray.partition), _method(np.ndarray.sort)
    reshape, transpose = _method(np.ndarray.reshape), _method(np.ndarray.transpose)
    view = _method(np.ndarray.view)
    __copy__, __deepcopy__ = _method(np.ndarray.__copy__), _method(np.ndarray.__deepcopy__)
    T, mT = _attribute(np.ndarray.T), _attribute(np.ndarray.mT)
    real, imag = _attribute(np.ndarray.real), _attribute(np.ndarray.imag)

    @property
    def flat(self) -> Any:
        return call(np.ndarray.flat, (self,), {})

    @flat.setter
    def flat(self, value: Any) -> None:
        call(np.ndarray.flat, (self, value), {})

    # --- what no traced array has --------------------------------------------------------------

    byteswap, dump, dumps = map(_method, (np.ndarray.byteswap, np.ndarray.dump, np.ndarray.dumps))
    getfield, setfield = _method(np.ndarray.getfield), _method(np.ndarray.setfield)
    resize, setflags = _method(np.ndarray.resize), _method(np.ndarray.setflags)
    tobytes, tofile = _method(np.ndarray.tobytes), _method(np.ndarray.tofile)
    base: Any = _attribute(np.ndarray.base)  # a part has another one,
    data: Any = _attribute(np.ndarray.data)  # and what is under a mask, too
    ctypes, strides = _attribute(np.ndarray.ctypes), _attribute(np.ndarray.strides)
    flags: Any = _attribute(np.ndarray.flags)


class Shaped(Array):
    """One whose shape is known while it is recorded."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def shape(self) -> tuple[int, ...]: ...

        @property
        @abstractmethod
        def size(self) -> int: ...

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))
