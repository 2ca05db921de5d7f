"""Python's own modules: which of their functions compute from their arguments alone.

Lists of names, which `judge` and `kinds` look into.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import inspect
import re
import sys
import types
from typing import Any, ClassVar, Literal, Optional, TypeVar

#: Modules whose functions and classes do, but for those named below.
_COMPUTING = frozenset(
    """_bisect _csv _datetime _decimal _hashlib _heapq _json _md5 _operator _sha1 _sha2 _sha256
    _statistics _struct argparse ast base64 binascii bisect calendar colorsys csv datetime decimal
    difflib fnmatch fractions heapq json json.decoder json.encoder keyword math ntpath numbers
    posixpath re shlex statistics string struct textwrap traceback types unicodedata zlib""".split()
)
#: Those that read or change more than their arguments.
_REACHING = frozenset(
    """abspath dump exists expanduser expandvars fromtimestamp getatime getcontext getcwd getctime
    getmtime getsize isdir isfile islink ismount lexists load localcontext now parse_intermixed_args
    print_exc print_exception print_stack print_tb realpath relpath samefile setcontext today
    utcnow""".split()
)
#: Those that change a list that they are given.
_CHANGING = frozenset(
    """heapify heappop heappush heappushpop heapreplace insort insort_left insort_right
    pack_into""".split()
)
#: Those that read the words of the command line where they are given none.
_OF_COMMANDS = frozenset("parse_args parse_known_args".split())
#: Objects that never change.
CONSTANT = frozenset(
    {
        *(re.Pattern, re.Match, fractions.Fraction, decimal.Decimal, datetime.date, datetime.time),
        *(datetime.datetime, datetime.timedelta, datetime.timezone),
        *(type(sys.float_info), type(sys.version_info), dataclasses.Field),
        *(types.UnionType, types.GenericAlias, TypeVar, type(ClassVar[int]), type(Literal[1])),
        *(type(Optional[int]), inspect.Signature, inspect.Parameter),  # noqa: UP045
    }
)


def is_computed(callee: Any, args: Any, is_own: Any) -> bool:
    """Whether a call of one of these modules depends on its arguments alone."""
    owner = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", "")
    if name in _REACHING:
        return False
    if type(owner) in CONSTANT:
        return True
    if isinstance(owner, type):
        return owner.__module__ in _COMPUTING
    if owner is not None and not isinstance(owner, types.ModuleType):
        return is_standard(owner) and is_own(owner)
    if (getattr(callee, "__module__", None) or "") not in _COMPUTING:
        return False
    return name not in _CHANGING or is_own(args[0])


def reads_commands(callee: Any, args: Any, options: Any) -> bool:
    """Whether ``sys.argv`` is what a call parses."""
    name = getattr(callee, "__name__", "")
    given = args[0] if args else options.get("args")
    return name in _OF_COMMANDS and given is None and is_standard(callee.__self__)


def is_standard(value: Any) -> bool:
    """Whether an object is one of a class of these modules, or of a class derived from it."""
    return any(base.__module__ in _COMPUTING for base in type(value).__mro__)
