"""SciPy's BLAS kept to one thread while programs call it, from as many threads as they have.

Which thread computes what would else depend on how many BLAS has, and with it the last bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from ckad import locks
from ckad.tape.ops import Op
from ckad.tape.routines import routine_of
from ckad.tape.tape import Tape


def calls_blas(tape: Tape) -> bool:
    """Whether a routine of the tape calls BLAS or LAPACK."""
    called = (routine_of(row) for row in tape.rows if row.op is Op.CALL)
    own = any((routine.compiled or routine).calls_blas for routine in called)
    return own or any(map(calls_blas, tape.bodies))


_NAMES = ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads", "openblas_{}_num_threads64_")
_lock = locks.lock()
_running, _before = 0, 1


class one_thread:
    """Within, SciPy's BLAS has one thread; a BLAS other than OpenBLAS stays as it is."""

    def __enter__(self) -> None:
        global _running, _before
        get, put = _threads()
        with _lock:
            if _running == 0:
                _before = get()
                put(1)
            _running += 1

    def __exit__(self, *raised: object) -> None:
        global _running
        _, put = _threads()
        with _lock:
            _running -= 1
            if _running == 0:
                put(_before)


@cache
def _threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    """How many threads SciPy's OpenBLAS has, and what sets that."""
    for name in _NAMES:
        with suppress(AttributeError, OSError):
            return getattr(_library(), name.format("get")), getattr(_library(), name.format("set"))
    return lambda: 1, lambda n: None


@cache
def _library() -> ctypes.CDLL:
    from scipy.linalg import cython_blas  # takes long, and few programs need it

    return ctypes.CDLL(cython_blas.__file__)  # its symbols are those of what it needs, too


def made_for() -> str:
    """The processor whose kernels SciPy's OpenBLAS has chosen; empty if it does not say."""
    for name in ("scipy_openblas_get_corename", "openblas_get_corename"):
        with suppress(AttributeError, OSError):
            found = getattr(_library(), name)
            found.restype = ctypes.c_char_p
            return str(found().decode())
    return ""
