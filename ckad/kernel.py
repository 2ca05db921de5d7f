"""The one way ckad compiles its own functions: no GIL, NumPy's error model, cached on disk.

Numba's own cache misses edits of a callee in another file, stops at a truncated file, and can hand
one signature the code of another when two processes fill it at once. So kernels are kept as
``ckad.cache`` keeps its entries.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CellType, FrameType, FunctionType
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
from numba.core.caching import _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.serialize import dumps
from numba.core.types.misc import unliteral

from ckad import cache
from ckad.cache import Cache, cache_dir, digest, warn_once

F = TypeVar("F", bound=Callable[..., Any])

FLAGS = (
    "BOUNDSCHECK",
    "CPU_FEATURES",
    "CPU_NAME",
    "DEBUGINFO_DEFAULT",
    "DISABLE_INTEL_SVML",
    "ENABLE_AVX",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
)


# The layers whose code can reach machine code; the ones above them only call kernels.
KERNELS = Cache(
    cache.KERNELS,
    (
        "kernel.py",
        "machine/*.py",
        "tape/*.py",
        "rules/**/*.py",
        "checkpoint/*.py",
        "checkpoint/schedules/**/*.py",
        "checkpoint/store/format/checksum.py",  # all that is compiled there
        "engines/symbols.py",
        "engines/vm/**/*.py",
    ),
)


def kernel(function: F) -> F:
    """Compile ``function`` with Numba on its first call, and keep the machine code on disk.

    For functions of this package: what they read from globals has to follow from the package's
    sources, the versions and the CPU alone, since those name the cache entry. Closures may hold
    constants, functions, intrinsics and other kernels.
    """
    if numba.config.DISABLE_JIT:
        return function
    compiled = numba.njit(nogil=True, error_model="numpy", boundscheck=False, fastmath=False)
    dispatcher = compiled(function)
    dispatcher._cache = KernelCache(function)
    dispatcher.compile = _one_process_at_a_time(dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def interpreted(value: Any) -> Any:
    """A kernel as plain Python, with all the kernels that it calls; anything else as it is.

    What runs for milliseconds is not worth a second of compilation.
    """
    return _interpreted(value) if isinstance(value, Dispatcher) else value


@functools.cache
def _interpreted(dispatcher: Dispatcher) -> Callable[..., Any]:
    function = dispatcher.py_func
    code, names = function.__code__, function.__globals__
    own = {name: interpreted(names[name]) for name in code.co_names if name in names}
    cells = [CellType(interpreted(cell.cell_contents)) for cell in function.__closure__ or ()]
    return FunctionType(code, own, function.__name__, function.__defaults__, tuple(cells))


def _one_process_at_a_time(dispatcher: Any) -> Callable[[Any], Any]:
    """The dispatcher's ``compile``, which waits for other processes if there is no entry yet."""
    compiled = dispatcher.compile

    @functools.wraps(compiled)
    def alone(sig: Any) -> Any:
        if _whole.wanted:
            return _as_part(dispatcher, sig)
        args = tuple(getattr(sig, "args", sig))
        if args in dispatcher.overloads:
            _forget_part(dispatcher, args)
        if sig in dispatcher.overloads:
            return compiled(sig)
        entry = dispatcher._cache.missing(sig, dispatcher.targetctx)
        if entry is None:
            return compiled(sig)
        # Numba's own lock first, everywhere: else two threads could wait for each other
        with _interruptible(), global_compiler_lock, cache.exclusive_entry(entry):
            return compiled(sig)

    return alone


# --- many kernels as one ------------------------------------------------------------------------


class _Whole(threading.local):
    """Whether this thread compiles what will be part of a kernel."""

    wanted = False


_whole = _Whole()


def compile_whole(dispatcher: Any, signature: Any) -> CompileResult:
    """Compile a kernel, and the kernels that it calls as parts of it alone.

    Numba optimises and assembles each kernel with all that it calls, so that what lies under ten
    others is done ten times.
    """

    def typed(args: Any, return_type: Any) -> Any:
        _whole.wanted = True
        try:
            return compiled(args, return_type)
        finally:
            _whole.wanted = False

    compiler = dispatcher._compiler
    compiled, compiler.compile = compiler.compile, typed
    try:
        dispatcher.compile(signature)
    finally:
        compiler.compile = compiled
    return dispatcher.overloads[signature.args]


def _as_part(dispatcher: Any, sig: Any) -> Any:
    """What Numba finds the part by."""
    args = tuple(map(unliteral, sig))  # LLVM sees the numbers where it puts the part
    if args not in dispatcher.overloads:
        flags, target, compiler = Flags(), dispatcher.targetctx, dispatcher._compiler
        compiler.targetdescr.options.parse_as_flags(flags, dispatcher.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        library = _Part(target.codegen(), dispatcher.py_func.__qualname__)
        with global_compiler_lock, dispatcher._compiling_counter:
            found = compile_extra(
                dispatcher.typingctx, target, dispatcher.py_func, args, None, flags, {}, library,
                compiler.pipeline_class,
            )  # fmt: skip
            found = found._replace(entry_point=object())
            target.insert_user_function(found.entry_point, found.fndesc, [library])
            dispatcher.overloads[args] = found
    return dispatcher.overloads[args].entry_point


def _forget_part(dispatcher: Any, args: Any) -> None:
    """A part has no machine code of its own, which is asked for now."""
    with global_compiler_lock:  # while nothing is compiled that found the part
        found = dispatcher.overloads.get(args)
        if found is not None and isinstance(found.library, _Part):
            del dispatcher.overloads[args]


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that is only linked to others, and optimised there."""

    _shared_module: Any

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """With all parts that it calls, each once."""
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in _parts(self)[1:]:
                module.link_in(library._final_module, preserve=True)
            for library in _wholes(self):
                module.link_in(library._get_module_for_linking(), preserve=True)
            for function in module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = module
        return self._shared_module


def _parts(library: _Part) -> list[_Part]:
    found = {library: None}
    left = [library]
    while left:
        for other in left.pop()._linking_libraries:
            if isinstance(other, _Part) and other not in found:
                found[other] = None
                left.append(other)
    return list(found)


def _wholes(library: _Part) -> dict[Any, None]:
    """The other libraries that the parts call."""
    every = (other for part in _parts(library) for other in part._linking_libraries)
    return {other: None for other in every if not isinstance(other, _Part)}


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C is raised again when it was lost: finalizers and callbacks, of which Numba and LLVM
    have many, swallow what is raised in them."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    seen = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    except BaseException:
        if seen:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if seen:
        raise KeyboardInterrupt


class KernelCache(_Cache):  # type: ignore[misc]
    """The cache of one kernel, as Numba's dispatcher calls it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        return str(cache_dir())

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        target_context.refresh()
        result = self._load(sig, target_context)
        if result is None:
            _announce()
        return result

    def missing(self, sig: Any, target_context: Any) -> Path | None:
        """Where the entry for ``sig`` will be, if there is none yet."""
        directory = _directory(target_context.codegen())
        if directory is None:
            return None
        with suppress(Exception):  # a closure that does not pickle
            path = self._entry(sig, directory)[1]
            return None if path.exists() else path
        return None

    def _load(self, sig: Any, target_context: Any) -> CompileResult | None:
        directory = _directory(target_context.codegen())
        if directory is None:
            return None
        try:
            key, path = self._entry(sig, directory)
            stored, reduced = pickle.loads(cache.read(path))
            return CompileResult._rebuild(target_context, *reduced) if stored == key else None
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file does to unpickling
            self._warn("was not read from", directory, error)
            return None

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        directory = _directory(data.library.codegen)
        # An edit since the import would file old code under new sources, or the reverse.
        if directory is None or KERNELS.edited():
            return
        try:
            if data.lifted or data.library.has_dynamic_globals:
                raise ValueError("it holds addresses of this process")
            key, path = self._entry(sig, directory)
            cache.write(path, dumps((key, data._reduce())))
        except Exception as error:  # a full disk, a read-only one, a closure that does not pickle
            self._warn("was not written to", directory, error)

    def _entry(self, sig: Any, directory: Path) -> tuple[Hashable, Path]:
        key = (sig, identity(self._function))
        name = re.sub(r"\W+", "_", self._function.__qualname__)[-60:]
        return key, directory / f"{name}-{digest(repr(key).encode())[:32]}"

    def _warn(self, fault: str, directory: Path, error: Exception) -> None:
        name = self._function.__qualname__
        warn_once(
            fault, f"kernel {name} {fault} the cache {directory}, so it is compiled again: {error}"
        )

    def enable(self) -> None:
        """Part of Numba's protocol; this cache is always on."""

    def disable(self) -> None:
        """Part of Numba's protocol; this cache is always on."""

    def flush(self) -> None:
        """Part of Numba's protocol; an entry is replaced when it is written again."""


def _directory(codegen: Any) -> Path | None:
    flags = tuple((name, str(getattr(numba.config, name, None))) for name in FLAGS)
    return KERNELS.directory(flags, codegen.magic_tuple())


def identity(value: Any) -> Hashable:
    """What tells apart two functions, or two values in their closures, in every process alike."""
    match value:
        case Dispatcher():
            return identity(value.py_func)
        case _Intrinsic():
            return identity(value._defn)
        case tuple():
            return tuple(identity(item) for item in value)
        case FunctionType():
            cells = tuple(identity(cell.cell_contents) for cell in value.__closure__ or ())
            code = value.__code__
            return value.__module__, value.__qualname__, digest(code.co_code), _file(code), cells
    return digest(dumps(value))


def _file(code: Any) -> str:
    # The package's own sources already name the directory; this covers kernels outside of it.
    with suppress(OSError):
        return _file_digest(code.co_filename)
    return repr(code.co_consts)


@functools.cache
def _file_digest(path: str) -> str:
    return digest(Path(path).read_bytes())


@functools.cache
def _announce() -> None:
    if not os.environ.get("CKAD_QUIET"):
        said = "ckad: compiling its kernels, each once after install ..."
        print(said, file=sys.stderr)
