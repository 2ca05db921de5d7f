"""``cfunc``: gradients that the user's own compiled code calls, without the GIL."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import overload, typeof_impl

from ckad.engines.actions import Bare
from ckad.errors import DifferentiationError, EngineError
from ckad.passes import pipeline
from ckad.rules.routines.memory import integers
from ckad.tape.types import Type
from ckad.trace.values.tracer import Tracer
from ckad.tracebacks import trimmed
from ckad.transforms import attempts
from ckad.transforms.call import Call, compiled
from ckad.transforms.forward import Jitted
from ckad.transforms.gradients import Gradient, GradientAlone

#: What the address of a `CFunction` points to.
SIGNATURE = types.int32(types.int64, types.int64, types.int64)
_C = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)
#: Machine code elsewhere may hold their addresses: they stay as long as the process.
_alive: list[object] = []
#: Bytes in a line of the cache, at which memory begins.
LINE = 64
_njit: Callable[[Any], Any] = numba.njit(nogil=True)


@trimmed
def cfunc(fun: Any, *example: Any) -> CFunction:
    """Make a function for ``@numba.njit`` code, and for C, that needs neither Python nor the GIL.

    Args:
        fun: what `value_and_grad`, `grad` or `jit` made, with its budget and schedule. It is
            compiled by the native engine for one thread.
        example: real arrays and floats of the shapes and dtypes of later calls; their numbers do
            not matter.

    Returns:
        A `CFunction`. In ``@njit`` code ``status, *results = made(*args)``: arguments are arrays in
        C order of the example's shapes and dtypes, or floats; the results are new arrays, value
        and gradients one after the other, scalars as arrays without axes. ``made.address`` is that
        of ``int32_t f(const void *const *inputs, void *const *results, void *work)`` for C, where
        ``work`` is NULL or ``made.workspace`` bytes that no other call uses meanwhile. Any number
        of threads may call it at once.

    The status is 0; or 1: something else, 2: an index is out of range or a check of the program has
    failed, 3: a `while` runs longer than its memory was made for
    (64 steps where it has no bound), 4: a routine has failed (a singular matrix); -1, from
    Numba alone: an argument has another shape. Results are then not to be used. BLAS is not kept to
    one thread, as it is in other calls.

    Raises:
        EngineError: the program needs Python: a routine in Python, checkpoints on disk, a loop
            without a bound that is differentiated.
        TraceError: ``fun`` does something that ckad cannot record.

    >>> import numba, numpy as np, ckad
    >>> energy = ckad.value_and_grad(lambda x: np.sum(x**2))
    >>> made = ckad.cfunc(energy, np.zeros(3))
    >>> @numba.njit(nogil=True)
    ... def descend(x):
    ...     for _ in range(50):
    ...         status, value, gradient = made(x)
    ...         x = x - 0.2 * gradient
    ...     return x
    >>> bool(np.all(np.abs(descend(np.ones(3))) < 1e-9))
    True
    """
    with attempts.for_all_numbers():
        call, tape, name = _prepared(fun, example)
    if len(example) != len(tape.inputs) or len(call.arguments.leaves) != len(tape.inputs):
        raise DifferentiationError.here(
            f"ckad.cfunc: {name} has {len(example)} arguments, of which {len(tape.inputs)} are "
            "arrays or floats, counted in lists and tuples too (a complex one as two). Pass "
            "each real array by itself, and bind what is a constant: lambda x: fun(x, 3)."
        )
    try:
        made = compiled(tape, call.options).bare()
    except EngineError as error:
        raise EngineError(f"ckad.cfunc: {name} needs Python: {error}") from None
    return CFunction(name, made, tape.input_types, tape.output_types)


def _prepared(fun: Any, example: Sequence[Any]) -> tuple[Call, Any, str]:
    options = getattr(fun, "options", None)
    if not isinstance(fun, (Gradient, Jitted)) or options is None:
        raise DifferentiationError.here(
            f"ckad.cfunc takes what value_and_grad, grad or jit made, not {fun!r}. Pass "
            "ckad.value_and_grad(fun), or ckad.jit(fun)."
        )
    alone = replace(options, engine="native", threads=1)
    if isinstance(fun, Gradient):
        call, tape, layout = replace(fun, options=alone).prepare(example, {})
        if isinstance(fun, GradientAlone):  # without the value
            rows = tape.outputs.tolist()
            n = len(rows) - len(layout.wrt)
            tape = pipeline.with_outputs(tape, [*rows[n:], *rows[1:n]])
    else:
        call = Call(fun.fun, example, {}, alone)
        tape = call.primal
    call.check_for_all()
    return call, tape, call.name


class CFunction:
    """A compiled function that runs without Python; made by `cfunc`."""

    def __init__(
        self, name: str, bare: Bare, inputs: Sequence[Type], outputs: Sequence[Type]
    ) -> None:
        self.name, self.input_types, self.output_types = name, tuple(inputs), tuple(outputs)
        self.workspace = 8 * len(bare.cells) + bare.nbytes + 2 * LINE
        entered = _entered(bare, self.workspace)
        self._callback = numba.cfunc(SIGNATURE)(_callable(entered))
        self._dispatcher = _dispatcher(entered, self.input_types, self.output_types)
        _alive.append((bare, entered, self._callback))

    @property
    def address(self) -> int:
        """That of ``int32_t f(const void *const *inputs, void *const *results, void *work)``."""
        return int(self._callback.address)

    @property
    def ctypes(self) -> Any:
        """The same as a function of ctypes, which is called without the GIL."""
        return _C(self.address)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Status and results, as in compiled code."""
        if any(isinstance(x, Tracer) for x in args):
            raise DifferentiationError.here(
                f"the C function of {self.name} takes numbers, and is called while a function "
                "is being recorded. Call there what it was made of."
            )
        found: tuple[Any, ...] = self._dispatcher(*args)
        return found

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, ts)) for ts in (self.input_types, self.output_types))
        return f"<C function {self.name}: ({ins}) -> (status, {outs})>"


def _typeof(function: CFunction, context: Any) -> Any:
    return types.Dispatcher(function._dispatcher)


typeof_impl.register(CFunction)(_typeof)


def _entered(bare: Bare, workspace: int) -> Any:
    """``(inputs, results, work) -> status``, all addresses."""
    entry, template = _ENTRY(bare.entry), bare.cells
    n_cells, own = len(bare.cells), -(-8 * len(bare.cells) // LINE) * LINE
    ins, outs = np.array(bare.inputs, np.int64), np.array(bare.outputs, np.int64)
    tokens = np.array(bare.tokens, np.int64).reshape(-1, 2)
    memory_cell = int(bare.memory)

    @_njit
    def entered(inputs: int, results: int, work: int) -> int:
        memory = np.empty(workspace if work == 0 else 0, np.uint8)
        start = memory.ctypes.data if work == 0 else work
        start = (start + LINE - 1) // LINE * LINE
        cells = integers(start, n_cells)
        for k in range(n_cells):
            cells[k] = template[k]
        cells[memory_cell] = start + own
        for k in range(len(tokens)):
            cells[tokens[k, 0]] = start + own + tokens[k, 1]
        given, wanted = integers(inputs, len(ins)), integers(results, len(outs))
        for k in range(len(ins)):
            cells[ins[k]] = given[k]
        for k in range(len(outs)):
            cells[outs[k]] = wanted[k]
        status = entry(start)
        return status if memory.size >= 0 else -1  # the memory lives until here

    return entered


def _callable(entered: Any) -> Callable[[int, int, int], Any]:
    def run(inputs: int, results: int, work: int) -> Any:
        return entered(inputs, results, work)

    return run


# --- for Numba -----------------------------------------------------------------------------------


def _dispatcher(entered: Any, inputs: Sequence[Type], outputs: Sequence[Type]) -> Any:
    """``(*args) -> (status, *results)``."""
    n, n_out = len(inputs), len(outputs)
    place, allocate, point = _placing(inputs, 0), _allocating(outputs), _pointing(n_out, 0)

    @_njit
    def run(*args: Any) -> Any:
        addresses, numbers = np.zeros(max(n, 1), np.int64), np.zeros(max(n, 1))
        results, pointers = allocate(), np.zeros(max(n_out, 1), np.int64)
        point(pointers, results)
        fits = place(addresses, numbers, args)
        status = entered(addresses.ctypes.data, pointers.ctypes.data, 0) if fits else -1
        return _finished(status, results, (args, numbers, addresses, pointers))

    return run


@_njit
def _finished(status: int, results: Any, read: Any) -> Any:
    """Nothing that compiled code has read goes before it has run."""
    return (status, *results)


def _placing(inputs: Sequence[Type], k: int) -> Any:
    """Write the addresses of arguments; whether they have the right shapes."""
    if not inputs:

        @_njit
        def nothing(addresses: Any, numbers: Any, args: Any) -> bool:
            _none_left(args)
            return True

        return nothing
    rest, shape, dtype = _placing(inputs[1:], k + 1), inputs[0].shape, inputs[0].numpy

    @_njit
    def placed(addresses: Any, numbers: Any, args: Any) -> bool:
        fits = _placed(addresses, numbers, args[0], k, shape, dtype)
        return rest(addresses, numbers, args[1:]) and fits

    return placed


def _placed(addresses: Any, numbers: Any, x: Any, k: int, shape: Any, dtype: Any) -> bool:
    """Write the address of one argument; for Numba alone."""
    raise NotImplementedError


def _place_one(addresses: Any, numbers: Any, x: Any, k: Any, shape: Any, dtype: Any) -> Any:
    wanted, rank = dtype.dtype, len(shape)

    def by_address(addresses: Any, numbers: Any, x: Any, k: Any, shape: Any, dtype: Any) -> Any:
        addresses[k] = x.ctypes.data
        return x.shape == shape

    def by_value(addresses: Any, numbers: Any, x: Any, k: Any, shape: Any, dtype: Any) -> Any:
        numbers[k] = x
        addresses[k] = numbers.ctypes.data + 8 * k
        return True

    if isinstance(x, types.Array) and (x.dtype, x.ndim, x.layout) == (wanted, rank, "C"):
        return by_address
    if isinstance(x, (types.Float, types.Integer)) and rank == 0 and wanted == types.float64:
        return by_value
    raise TypingError(f"an argument is {x}; pass {wanted} with {rank} axes, arrays in C order")


def _none_left(args: Any) -> None:
    """That all arguments have been taken; for Numba alone."""
    raise NotImplementedError


def _check_none(args: Any) -> Any:
    if len(args):
        raise TypingError(f"{len(args)} arguments too many")

    def nothing(args: Any) -> None:
        pass

    return nothing


overload(_placed)(_place_one)
overload(_none_left)(_check_none)


def _allocating(outputs: Sequence[Type]) -> Any:
    """New arrays for the results."""
    if not outputs:

        @_njit
        def nothing() -> Any:
            return ()

        return nothing
    rest, shape, dtype = _allocating(outputs[1:]), outputs[0].shape, outputs[0].numpy

    @_njit
    def allocated() -> Any:
        return (np.empty(shape, dtype), *rest())

    return allocated


def _pointing(n: int, k: int) -> Any:
    """Write the addresses of the results."""
    if k == n:

        @_njit
        def nothing(pointers: Any, results: Any) -> None:
            pass

        return nothing
    rest = _pointing(n, k + 1)

    @_njit
    def pointed(pointers: Any, results: Any) -> None:
        pointers[k] = results[0].ctypes.data
        rest(pointers, results[1:])

    return pointed
