"""The table of cases. A new case is one file here and one row in CASES."""

from benchmarks.cases import (
    adaptive,
    black_scholes,
    burgers,
    factors,
    fastad,
    gray_scott,
    heat1d,
    heat2d,
    implicit,
    lorenz63,
    lorenz96,
    n_body,
    networks,
    neural_ode,
    products,
    shallow_water,
    slices,
    spectral,
    spmv,
    stiff,
    van_der_pol,
    wave2d,
)

CASES = {
    case.name: case
    for case in (
        lorenz63.CASE,
        adaptive.CASE,
        lorenz96.CASE,
        van_der_pol.CASE,
        n_body.CASE,
        gray_scott.CASE,
        burgers.CASE,
        heat1d.CASE,
        heat2d.CASE,
        implicit.CASE,
        wave2d.CASE,
        shallow_water.CASE,
        neural_ode.CASE,
        black_scholes.CASE,
        *fastad.CASES,
        *products.CASES,
        *networks.CASES,
        *factors.CASES,
        *spectral.CASES,
        *spmv.CASES,
        *slices.CASES,
        *stiff.CASES,
    )
}
