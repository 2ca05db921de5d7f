"""The error function: odd near 0, one minus its complement further out."""

from __future__ import annotations

from ckad.rules.vector_math.definition import function
from ckad.rules.vector_math.double_double import two_product
from ckad.rules.vector_math.exponential import beyond_linear, reduced
from ckad.rules.vector_math.polynomial import polynomial
from ckad.rules.vector_math.real import Real, at_most, fma, where
from ckad.rules.vector_math.scaling import power_of_two

#: where one form takes over from the other: both have about the same error there
_BORDER = 0.96
#: erf(x) / x - 1 at z = x**2 up to 0.92: minimax, 2**-56.1 relative to erf(x)
_NEAR = (
    0.12837916709551256,
    -0.3761263890318333,
    0.11283791670936033,
    -0.026866170641729952,
    0.005223977594102395,
    -0.0008548325319160061,
    0.00012055274248411578,
    -1.492431883901403e-05,
    1.6441983477509776e-06,
    -1.6164468123285756e-07,
    1.3518682822094437e-08,
    -7.397730399094206e-10,
)
#: erfc(x) exp(x**2) at u = (x - 5/2) / (x + 3), x from 0.9 to 6: minimax, 2**-57.3 exp(x**2)
_FAR = (
    0.2108063640611433,
    -0.40891040734385536,
    0.34546400452836856,
    -0.2314226895403269,
    0.11792238649592711,
    -0.04105645611421863,
    0.006200447324786357,
    0.002113487358670662,
    -0.0012209428196521112,
    -3.493054912755918e-05,
    0.00018159967001874668,
    6.45058070185746e-06,
    -1.644911727100744e-05,
)


def _far(x: Real) -> Real:
    """erf(x) for x >= 0.96."""
    x = at_most(x, 6.0)  # where erf rounds to 1
    u = (x - 2.5) / (x + 3.0)
    square, lost = two_product(x, x)
    n, r, low = reduced(-square, -lost)
    gaussian = power_of_two(n) * (1.0 + (r + beyond_linear(r, low)))
    return fma(-gaussian, polynomial(u, _FAR), 1.0)


@function
def erf(x: Real) -> Real:
    """At most 1.25 ulp."""
    is_near = abs(x) < _BORDER
    inner = where(is_near, x, 0.0)  # the polynomial of a large x would overflow
    near = fma(inner, polynomial(inner * inner, _NEAR), inner)
    return where(is_near, near, _far(abs(x)).flipped(x.sign()))
