"""Files that a function reads and writes, and what it asks about them.

A recording is used again while files that it has read have not been written since, by the time and
the size that the system notes of them, and while the same is said of paths. Files that it has
opened to write are opened again, so that they are made, and empty, as Python would leave them; what
is written into one by a call that is not left out ends that.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

from ckad.trace.source.libraries import is_in
from ckad.trace.source.outside.guard import IMMUTABLE
from ckad.trace.source.outside.watch import Watch

#: What asks about a path and changes nothing.
_QUESTIONS = frozenset(
    {
        *(os.path.abspath, os.path.exists, os.path.expanduser, os.path.isdir, os.path.isfile),
        *(os.path.realpath, os.getcwd),
    }
)
#: What reads a file of numbers, by its path or opened; an open file only.
_READERS = frozenset({np.fromfile, np.genfromtxt, np.load, np.loadtxt})
_OF_OPENED = _READERS | {json.load}
_OF_OPEN = frozenset("mode encoding newline errors buffering".split())
#: The same of methods of paths.
_QUESTIONS_OF_PATHS = frozenset("absolute exists expanduser is_dir is_file resolve".split())
_READERS_OF_PATHS = frozenset({"read_bytes", "read_text"})
_WRITE = frozenset("truncate write writelines".split())
#: A file that is younger, in seconds, may be written again at the same time, as that is noted.
_YOUNG = 2.0


def are_of_files(
    watch: Watch, callee: Any, args: Sequence[Any], options: Mapping[str, Any]
) -> bool:
    """Note what a call reads from files, or asks about them; whether it is such a call."""
    owner = getattr(callee, "__self__", None)
    if isinstance(owner, io.IOBase):
        if callee.__name__ in _WRITE or (callee.__name__ == "seek" and owner.writable()):
            watch.give_up(f"{callee.__name__} of a file")
        return watch.is_own(owner)
    if isinstance(owner, PurePath):
        _asks_path(watch, callee, owner, args, options)
        return True
    if is_in(callee, _QUESTIONS) and all(type(x) is str for x in args) and not options:
        watch.guard.answers.append((partial(callee, *args), callee(*args)))
        return True
    if not all(map(_is_plain, (*args[1:], *options.values()))):
        return False  # as of functions that convert what is read
    if not args or not isinstance(args[0], (str, PurePath)):
        opened = bool(args) and isinstance(args[0], io.IOBase) and watch.is_own(args[0])
        return opened and not options and is_in(callee, _OF_OPENED)
    if callee is open and _OF_OPEN.issuperset(options):
        mode = args[1] if len(args) > 1 else options.get("mode", "r")
        if "r" not in mode:
            watch.guard.shown.append(partial(_open, args[0], mode))
            return True
        return "+" not in mode and _reads(watch, args[0])
    is_mapped = callee is np.load and (len(args) > 1 or "mmap_mode" in options)
    return is_in(callee, _READERS) and not is_mapped and _reads(watch, args[0])


def _asks_path(
    watch: Watch, callee: Any, path: PurePath, args: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """Note what a method of a path reads, or asks the system."""
    name = callee.__name__
    if name in vars(PurePath):
        return  # it computes from what the path is
    if name in _QUESTIONS_OF_PATHS and not args and not options:
        watch.guard.answers.append((callee, callee()))
    elif name == "open" and are_of_files(watch, open, (path, *args), options):
        return
    elif name not in _READERS_OF_PATHS or not _reads(watch, path):
        watch.give_up(f"{name} of a path")


def _is_plain(x: Any) -> bool:
    """Whether an option is a number, a text or the like, which reads nothing by itself."""
    if type(x) in (tuple, list):
        return all(map(_is_plain, x))
    return type(x) in IMMUTABLE or x is float or x is int or type(x) is type(np.dtype(float))


def _reads(watch: Watch, path: str | PurePath) -> bool:
    """Note that a file is read; whether it is one that is known to be the same later on."""
    stamp = _stamp(path)
    if stamp is None or time.time() - stamp[0] / 1e9 < _YOUNG:
        return False
    watch.guard.answers.append((partial(_stamp, path), stamp))
    return True


def _stamp(path: str | PurePath) -> tuple[int, ...] | None:
    """When a file was written last, how long it is and which it is; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _open(path: str | PurePath, mode: str) -> None:
    with open(path, mode):
        pass
