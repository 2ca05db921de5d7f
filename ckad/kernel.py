"""The one way ckad compiles its own functions: no GIL, NumPy's error model, cached on disk.

Numba's own cache misses edits of a callee in another file, stops at a truncated file, and can hand
one signature the code of another when two processes fill it at once. Here one entry is one file,
written in one piece, under a directory named after everything that the machine code depends on; a
fault of the cache costs a compilation, never an error or a wrong number.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
PREFIX = "kernels-"
KEPT = 16  # directories; each edit of the sources makes a new one
VERSIONS = ("numba", "llvmlite", "numpy", "scipy")
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


class CacheWarning(UserWarning):
    """The kernel cache could not be used; ckad compiles instead, which only takes longer."""


class CacheStatus(NamedTuple):
    """What the kernel cache holds, for all versions of ckad together."""

    n_files: int
    n_bytes: int


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
    return dispatcher  # type: ignore[no-any-return]


def cache_dir() -> Path:
    """The directory that holds compiled kernels: ``CKAD_CACHE_DIR``, else the user's cache folder.

    It need not exist. ``cache_fault()`` says why it is not used, if it is not.
    """
    named = os.environ.get("CKAD_CACHE_DIR") or AppDirs("ckad", appauthor=False).user_cache_dir
    return Path(named).expanduser().absolute()


def cache_status() -> CacheStatus:
    """Count the files of the kernel cache and their bytes."""
    sizes = [_size(path) for path in cache_dir().glob(f"{PREFIX}*/*")]
    return CacheStatus(len(sizes), sum(sizes))


def cache_fault() -> str | None:
    """Say why the kernel cache cannot be used, or return None if it can. Creates the directory."""
    try:
        _make_private(cache_dir())
    except OSError as error:
        return str(error)
    return None


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

    def _load(self, sig: Any, target_context: Any) -> CompileResult | None:
        directory = _directory(cache_dir(), target_context.codegen().magic_tuple())
        if directory is None:
            return None
        try:
            key, path = self._entry(sig, directory)
            stored, reduced = _read(path)
            return CompileResult._rebuild(target_context, *reduced) if stored == key else None
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file does to unpickling
            self._warn("was not read from", directory, error)
            return None

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        directory = _directory(cache_dir(), data.library.codegen.magic_tuple())
        # An edit since the import would file old code under new sources, or the reverse.
        if directory is None or _source_digest() != SOURCES:
            return
        try:
            if data.lifted or data.library.has_dynamic_globals:
                raise ValueError("it holds addresses of this process")
            key, path = self._entry(sig, directory)
            _write(path, dumps((key, data._reduce())))
        except Exception as error:  # a full disk, a read-only one, a closure that does not pickle
            self._warn("was not written to", directory, error)

    def _entry(self, sig: Any, directory: Path) -> tuple[Hashable, Path]:
        key = (sig, _identity(self._function))
        name = re.sub(r"\W+", "_", self._function.__qualname__)[-60:]
        return key, directory / f"{name}-{_digest(repr(key).encode())[:32]}"

    def _warn(self, fault: str, directory: Path, error: Exception) -> None:
        name = self._function.__qualname__
        _warn_once(
            fault, f"kernel {name} {fault} the cache {directory}, so it is compiled again: {error}"
        )

    def enable(self) -> None:
        """Part of Numba's protocol; this cache is always on."""

    def disable(self) -> None:
        """Part of Numba's protocol; this cache is always on."""

    def flush(self) -> None:
        """Part of Numba's protocol; an entry is replaced when it is written again."""


def _identity(value: Any) -> Hashable:
    """What tells apart two functions, or two values in their closures, in every process alike."""
    match value:
        case Dispatcher():
            return _identity(value.py_func)
        case _Intrinsic():
            return _identity(value._defn)
        case tuple():
            return tuple(_identity(item) for item in value)
        case FunctionType():
            cells = tuple(_identity(cell.cell_contents) for cell in value.__closure__ or ())
            code = value.__code__
            return value.__module__, value.__qualname__, _digest(code.co_code), _file(code), cells
    return _digest(dumps(value))


def _file(code: Any) -> str:
    # The package's own sources already name the directory; this covers kernels outside of it.
    with suppress(OSError):
        return _file_digest(code.co_filename)
    return repr(code.co_consts)


@functools.cache
def _file_digest(path: str) -> str:
    return _digest(Path(path).read_bytes())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# The layers whose code can reach machine code; the ones above them only call kernels.
KERNEL_SOURCES = ("kernel.py", "tape/*.py", "rules/*.py", "checkpoint/**/*.py", "engines/**/*.py")


def _source_digest() -> str:
    total = hashlib.sha256()
    for path in sorted(path for pattern in KERNEL_SOURCES for path in PACKAGE.glob(pattern)):
        with suppress(FileNotFoundError):  # an editor's file that was there a moment ago
            total.update(f"{path.relative_to(PACKAGE)}\0{_digest(path.read_bytes())}\n".encode())
    return total.hexdigest()


# Taken at import, so that it describes the code that runs and not a later edit of it.
SOURCES = _source_digest()


@functools.cache
def _directory(base: Path, cpu: tuple[Any, ...]) -> Path | None:
    """The directory for this package, these versions and this CPU, or None if it is not safe."""
    flags = [(name, str(getattr(numba.config, name, None))) for name in FLAGS]
    facts = (SOURCES, sys.version, [(name, version(name)) for name in VERSIONS], flags, cpu)
    directory = base / f"{PREFIX}{_digest(repr(facts).encode())[:32]}"
    try:
        _make_private(base)
        _make_private(directory)
    except OSError as error:
        _warn_once(
            "directory",
            f"the kernel cache {base} is not used, so every process compiles anew: {error}",
        )
        return None
    with suppress(OSError):
        os.utime(directory)
        _remove_unused(base)
    return directory


def _make_private(directory: Path) -> None:
    """Create ``directory`` for the user alone; reading another's pickle would run their code."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name != "posix":
        return
    found = directory.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(
            f"{directory} belongs to user {found.st_uid}; name a directory of "
            f"your own in CKAD_CACHE_DIR"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        raise PermissionError(
            f"{directory} can be written by others (mode {mode}); `chmod 700` it "
            f"if it is ckad's alone, else name another in CKAD_CACHE_DIR"
        )


def _remove_unused(base: Path) -> None:
    used = sorted(base.glob(f"{PREFIX}*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for directory in used[KEPT:]:
        shutil.rmtree(directory, ignore_errors=True)


def _read(path: Path) -> Any:
    data = path.read_bytes()
    checksum, payload = data[:64], data[64:]
    if checksum != _digest(payload).encode():
        raise ValueError(f"its {len(data)} bytes do not match their checksum")
    return pickle.loads(payload)


def _write(path: Path, payload: bytes) -> None:
    """Write in one piece: another process sees no file, the old one or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(_digest(payload).encode() + payload)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


_warned: set[str] = set()


def _warn_once(kind: str, message: str) -> None:
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(f"ckad: {message}", CacheWarning, stacklevel=2)


@functools.cache
def _announce() -> None:
    if not os.environ.get("CKAD_QUIET"):
        print("ckad: compiling its kernels, once after install (about 20 s) ...", file=sys.stderr)
