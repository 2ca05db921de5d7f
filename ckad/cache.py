"""Machine code kept on disk, in a private directory, one file per entry.

An entry is written in one piece, under a directory named after everything that the machine code
depends on. A fault of the cache costs a compilation, never an error or a wrong number.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from numba.misc.appdirs import AppDirs

from ckad import locks

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PACKAGE = Path(__file__).parent
PREFIXES = KERNELS, PROGRAMS = "kernels-", "programs-"  # of the directories, one per kind of entry
KEPT = 16  # directories of a kind; each edit of the sources makes a new one
VERSIONS = ("numba", "llvmlite", "numpy", "scipy")
CHECKSUM = 64  # bytes, at the start of an entry
LOCKS = ".locks"  # beside the directories
LONGEST_WAIT, PAUSE = 120.0, 0.05  # seconds, for another process that compiles


class CacheWarning(UserWarning):
    """The cache could not be used; ckad compiles instead, which only takes longer."""


class CacheStatus(NamedTuple):
    """What the cache holds of one or both kinds, for all versions of ckad together."""

    n_files: int
    n_bytes: int


def cache_dir() -> Path:
    """The directory that holds compiled code: ``CKAD_CACHE_DIR``, else the user's cache folder.

    It need not exist. ``cache_fault()`` says why it is not used, if it is not. A user who has no
    home gets a temporary directory, for this process alone.
    """
    named = os.environ.get("CKAD_CACHE_DIR") or AppDirs("ckad", appauthor=False).user_cache_dir
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        return _temporary()


@functools.cache
def _temporary() -> Path:
    folder, owner = tempfile.mkdtemp(prefix="ckad-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not a child that was forked
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    warn_once(
        "home",
        "this user has no home directory, so compiled code is kept for this process alone; name a "
        "directory in CKAD_CACHE_DIR to keep it",
    )
    return Path(folder)


def cache_status(prefixes: Sequence[str] = PREFIXES) -> CacheStatus:
    """Count the files of the cache and their bytes, of all kinds or of some."""
    sizes = [size for prefix in prefixes for _, size, _ in _files(prefix)]
    return CacheStatus(len(sizes), sum(sizes))


def cache_fault() -> str | None:
    """Say why the cache cannot be used, or return None if it can. Creates the directory."""
    try:
        _make_private(cache_dir())
    except OSError as error:
        return str(error)
    return None


class Cache:
    """Entries of one kind, which stem from the package's files that match ``patterns``."""

    def __init__(self, prefix: str, patterns: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.patterns = patterns
        # Taken at import, so that it describes the code that runs and not a later edit of it.
        self._watched = _watched(patterns)
        self._marks = _marks(self._watched)  # before what they stand for
        self.sources = source_digest(patterns)

    def directory(self, *facts: Hashable) -> Path | None:
        """Where the entries for ``facts`` (the CPU, flags) lie, or None if it is not safe."""
        return _directory(cache_dir(), self.prefix, self.sources, facts)

    def edited(self) -> bool:
        """Whether the sources changed since the import, so that they no longer name the code."""
        if (marks := _marks(self._watched)) == self._marks:
            return False
        if source_digest(self.patterns) != self.sources:
            return True
        self._marks = marks  # written again as they were
        return False

    def trim(self, n_files: int, n_bytes: int) -> None:
        """Remove the entries used least recently, until at most so many are left."""
        newest_first = sorted(_files(self.prefix), key=lambda file: file[2], reverse=True)
        total = 0
        for k, (path, size, _) in enumerate(newest_first):
            total += size
            if k >= n_files or total > n_bytes:
                with suppress(OSError):
                    os.unlink(path)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _marks(files: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """What an edit changes, without reading what is edited."""
    marks: dict[str, tuple[int, ...]] = {}
    for path in files:
        with suppress(OSError):
            found = os.stat(path)
            marks[path] = found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return marks


def _sources(patterns: tuple[str, ...]) -> set[Path]:
    return {path for pattern in patterns for path in PACKAGE.glob(pattern)}


def _watched(patterns: tuple[str, ...]) -> list[str]:
    """The sources, and the folders in which more may come to lie."""
    files = _sources(patterns)
    folders = {parent for file in files for parent in file.relative_to(PACKAGE).parents}
    return [os.fspath(path) for path in (*files, *(PACKAGE / folder for folder in folders))]


def source_digest(patterns: tuple[str, ...]) -> str:
    total = hashlib.sha256()
    for path in sorted(_sources(patterns)):
        with suppress(FileNotFoundError):  # an editor's file that was there a moment ago
            total.update(f"{path.relative_to(PACKAGE)}\0{digest(path.read_bytes())}\n".encode())
    return total.hexdigest()


def read(path: Path) -> bytes:
    """The payload of an entry.

    Raises:
        ValueError: the file is not what was written.
        OSError: it cannot be read, or others could have written it; FileNotFoundError if there is
            none.
    """
    with open(path, "rb", opener=_open_itself) as file:
        # of what was opened: under its name another file may lie by now
        _check_private(os.fstat(file.fileno()), str(path), "remove it")
        data = file.read()
    payload = data[CHECKSUM:]
    if data[:CHECKSUM] != digest(payload).encode():
        raise ValueError(f"its {len(data)} bytes do not match their checksum")
    return payload


def _open_itself(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def write(path: Path, payload: bytes) -> None:
    """Write in one piece: another process sees no file, the old one or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(digest(payload).encode() + payload)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


@functools.cache
def _directory(base: Path, prefix: str, sources: str, facts: tuple[Hashable, ...]) -> Path | None:
    everything = (sources, sys.version, _versions(), facts)
    directory = base / f"{prefix}{digest(repr(everything).encode())[:32]}"
    try:
        _make_private(base)
        _make_private(directory)
    except OSError as error:
        warn_once(
            "directory",
            f"the cache {base} is not used, so every process compiles anew: {error}",
        )
        return None
    with suppress(OSError):
        os.utime(directory)
        _remove_unused(base, prefix)
    return directory


@functools.cache
def _versions() -> list[tuple[str, str]]:
    return [(name, version(name)) for name in VERSIONS]


def _make_private(directory: Path) -> None:
    """Create ``directory`` for the user alone; loading another's entry would run their code."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(
        directory.stat(), str(directory), "`chmod 700` it if it is ckad's alone", _ELSEWHERE
    )
    for parent in {*directory.parents, *directory.resolve().parents}:
        _check_parent(parent)


_ELSEWHERE = "name a directory of your own in CKAD_CACHE_DIR"


def _check_private(found: os.stat_result, path: str, remedy: str, other: str = "") -> None:
    if os.name != "posix":
        return
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to user {found.st_uid}; {other or remedy}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        instead = f", else {other}" if other else ""
        raise PermissionError(f"{path} can be written by others (mode {mode}); {remedy}{instead}")


def _check_parent(parent: Path) -> None:
    """Who can write into it could put another directory in place of the cache, unless it is sticky.

    A group of one's own may: many systems give each user one.
    """
    found = parent.stat()
    others = found.st_mode & stat.S_IWOTH
    group = found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid()
    if os.name == "posix" and (others or group) and not found.st_mode & stat.S_ISVTX:
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        raise PermissionError(
            f"its parent {parent} can be written by others (mode {mode}); {_ELSEWHERE}"
        )


@contextmanager
def exclusive_entry(entry: Path | None) -> Iterator[None]:
    """One process at a time: the others wait, and then find what the first has compiled.

    Entries of other names are compiled meanwhile, also while this process waits for those that its
    own needs. A wait has an end, and where files cannot be locked there is none: all compile then.
    The caller keeps other threads out.
    """
    if fcntl is None or entry is None:
        yield
        return
    path, byte = entry.parent.parent / LOCKS, int(digest(entry.name.encode())[:7], 16)
    opened = _opened_for(path, byte)
    try:
        if opened is not None:
            _wait_for(opened, byte)
        yield
    finally:
        if opened is not None:
            _let_go(path, opened, byte)


class _Opened(NamedTuple):
    """A file whose bytes are locks, opened once: closing it gives up all that a process has."""

    number: int
    bytes: list[int]  # those that are locked, or waited for


_opened: dict[Path, _Opened] = {}
_opening = locks.lock()


def _opened_for(path: Path, byte: int) -> _Opened | None:
    with _opening, suppress(OSError):
        if path not in _opened:
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            _opened[path] = _Opened(number, [])
        _opened[path].bytes.append(byte)
        return _opened[path]
    return None


def _let_go(path: Path, opened: _Opened, byte: int) -> None:
    with _opening:
        if _opened.get(path) is not opened:  # this is a child, and it is closed
            return
        opened.bytes.remove(byte)
        if not opened.bytes:
            del _opened[path]
            os.close(opened.number)
        elif byte not in opened.bytes:
            with suppress(OSError):
                fcntl.lockf(opened.number, fcntl.LOCK_UN, 1, byte)


def _forked() -> None:
    """A child has its parent's files, but none of the locks."""
    for opened in _opened.values():
        os.close(opened.number)
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _wait_for(opened: _Opened, byte: int) -> None:
    end = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < end:
        try:
            fcntl.lockf(opened.number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # of a file system without locks
            return
        else:
            return


def _remove_unused(base: Path, prefix: str) -> None:
    used = sorted(base.glob(f"{prefix}*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for directory in used[KEPT:]:
        shutil.rmtree(directory, ignore_errors=True)


def _files(prefix: str) -> Iterator[tuple[str, int, int]]:
    """Path, bytes and time of last use of the files under directories of a kind."""
    for directory in cache_dir().glob(f"{prefix}*"):
        with suppress(OSError), os.scandir(directory) as files:
            for file in files:
                with suppress(OSError):  # another process may have removed it
                    found = file.stat()
                    yield file.path, found.st_size, found.st_mtime_ns


_warned: set[str] = set()


def warn_once(kind: str, message: str) -> None:
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(f"ckad: {message}", CacheWarning, stacklevel=2)
