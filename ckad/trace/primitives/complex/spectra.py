"""Complex arrays that are real where NumPy gives real ones, as eigenvalues are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckad.trace import arrays
from ckad.trace.dispatch import COMPLEX, put
from ckad.trace.memory.assumed import asked_real_spectra
from ckad.trace.values.complex import as_complex
from ckad.trace.values.tracer import known, known_as_run


def _as_spectrum(values: Any, *vectors: Any) -> tuple[Any, ...]:
    """What is assumed of them stops the program where it does not hold."""
    found = values, *vectors
    imaginary = as_complex(values).imag
    numbers = known(imaginary)
    if numbers is None:
        numbers = known_as_run(imaginary)
    if numbers is not None:
        return found if np.any(numbers) else tuple(x.real.copy() for x in found)
    if not asked_real_spectra():
        return found
    left = np.any(np.not_equal(imaginary, 0.0))
    return tuple(arrays.stopping(x.real, left, "SPECTRUM") for x in found)


put(arrays.as_spectrum, _as_spectrum, COMPLEX)
