"""The modules whose rows make up the table of functions: those that `import ckad` loads, and those
that are loaded when a function of a package is met."""

from __future__ import annotations

from ckad.trace import dispatch
from ckad.trace.bodies import loops
from ckad.trace.numpy import (
    calculus,
    einsum,
    fourier,
    grids,
    info,
    linalg,
    order,
    picking,
    spectra,
    statistics,
    table,
    windows,
)
from ckad.trace.numpy import join as join_formulas
from ckad.trace.numpy import shape as shape_formulas
from ckad.trace.numpy.polynomials import objects
from ckad.trace.primitives import complex as complex_
from ckad.trace.primitives import (
    creation,
    elementwise,
    fields,
    index,
    join,
    layouts,
    methods,
    part,
    products,
    rearrange,
    reduce,
    scalars,
    select,
    shape,
    short,
    sparse,
    ufunc_methods,
)
from ckad.trace.source.control.sequences import iteration
from ckad.trace.values import apply

#: Their rows make up the table.
MODULES = (
    *(apply, loops, elementwise, ufunc_methods, index, shape, reduce, join, products, rearrange),
    *(creation, select, methods, scalars),
    *(calculus, einsum, grids, info, join_formulas, linalg, order, picking, shape_formulas),
    *(objects, spectra, statistics, table, windows),
    *layouts.MODULES,
    *part.MODULES,
    *complex_.MODULES,
    *fields.MODULES,
    *short.MODULES,
    sparse,
    *(fourier, iteration),
)
#: The modules of SciPy's packages, which take long to load.
_OF_SCIPY = {
    "fft": "fourier",
    "fftpack": "fourier",
    "integrate": "integrals",
    "interpolate": "interpolate splines",
    "linalg": "dense.matrices dense.factors dense.banded dense.functions dense.selected",
    "ndimage": "filters images.samples images.ranks images.edges images.morphology images.labels",
    "signal": "filters convolutions signals periodograms responses",
    "spatial": "distances rotations",
    "special._": "special orthogonal",  # its Python functions
    "stats": "stats.distributions stats.moments stats.densities",
    "stats._multivariate": "stats.multivariate",
}
dispatch.later("numpy.polynomial", "ckad.trace.numpy.polynomials.series")
for _package, _names in _OF_SCIPY.items():
    dispatch.later(f"scipy.{_package}", *(f"ckad.trace.numpy.scipy.{x}" for x in _names.split()))
dispatch.later(
    "scipy.special",
    "ckad.trace.primitives.special",
    "ckad.trace.primitives.complex.error_functions",
    "ckad.trace.numpy.scipy.special_ufuncs",
    "ckad.trace.numpy.scipy.orthogonal",
)
dispatch.later(
    "scipy.integrate",
    *(f"ckad.integrate.called.{x}" for x in ("solvers", "quadrature", "boundary")),
)
dispatch.later(
    *("scipy.optimize", "ckad.optimize.zeros", "ckad.optimize.minima", "ckad.optimize.fits"),
    "ckad.optimize.linear",
)
dispatch.later("scipy.linalg", "ckad.trace.source.library.riccati")
dispatch.later("statistics", "ckad.trace.source.library.samples")  # Python's own
dispatch.later("numpy.testing", "ckad.trace.source.library.asserted")
