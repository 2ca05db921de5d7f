"""Which arguments are differentiated by: ``argnums``, as one integer or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckad.errors import DifferentiationError


def plain_numbers(argnums: Any) -> Any:
    """``argnums`` with Python's ints for NumPy's, and several of them in a tuple, which cannot
    change; what is none of these is refused when there are arguments."""
    if isinstance(argnums, np.integer):
        return int(argnums)
    if isinstance(argnums, (list, tuple, range)):
        return tuple(plain_numbers(n) for n in argnums)
    return argnums


def positions(argnums: int | Sequence[int], n_args: int) -> tuple[int, ...]:
    """The arguments to differentiate by, counted from the first."""
    numbers = [argnums] if isinstance(argnums, int) else argnums
    if not isinstance(numbers, Sequence) or not all(isinstance(n, int) for n in numbers):
        raise DifferentiationError.here(f"argnums={argnums!r}; pass an int, or several in a tuple.")
    for n in numbers:
        if not -n_args <= n < n_args:
            raise DifferentiationError.here(
                f"argnums={argnums} names argument {n}, but the call has {n_args} "
                "positional arguments. Pass the arguments to differentiate by position."
            )
    return tuple(n % n_args for n in numbers)
