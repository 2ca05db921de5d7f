"""Particles, prices, events, graphs, filters, maps and constructs, with their arguments."""

from __future__ import annotations

import numpy as np

from . import (
    buffers,
    events,
    finance,
    graphs,
    idioms,
    language,
    maps,
    networks,
    particles,
    physics,
    signals,
)
from .arguments import EDGES, KALMAN, S, chances, distances, drawn, normal, numbers, signed, then
from .program import Program

P = Program
PARTICLES = (
    P(particles.nbody, then(drawn((4, 1)), normal((4, 3), (4, 3))), ulp=1e5),
    P(
        particles.nbody_loops,
        then(drawn((3,)), normal((3, 3), (3, 3))),
        returns=(1, 2),
        step=1e-2,
        budgets=True,
    ),
    P(
        particles.nbody_pairs,
        then(drawn((4,)), normal((4,), (4,), (4,), (4,))),
        complex_step=True,
    ),
    P(particles.lennard_jones, lambda rng: (np.arange(5) * 1.1, rng.uniform(0.0, 1.0, 5))),
    P(particles.velocity_verlet, then(signed((6,), (6,)), numbers(2.0))),
    P(particles.double_pendulum, numbers([1.0, 0.5, 0.1, -0.2], [1.0, 0.7])),
    P(
        particles.particles_in_cells,
        lambda rng: (*drawn((7,), high=5.8)(rng), rng.normal(size=7), 0.3),
    ),
    P(particles.flock, signed((5, 2), (5, 2)), step=1e-4),
)

FINANCE = (
    P(
        finance.european_call,
        then(numbers(100.0, 102.0, 0.03, 0.2, 1.0), normal((5, 8))),
        step=1e-4,
    ),
    P(finance.asian_paths, then(numbers(100.0, 101.0, 0.03, 0.2), normal((4, 5))), step=1e-4),
    P(
        finance.barrier_paths,
        then(numbers(100.0, 98.0, 115.0, 0.2), normal((6, 6))),
        argnums=(0, 1, 3, 4),
        step=1e-4,
    ),
    P(finance.american_put_tree, numbers(100.0, 103.0, 0.04, 0.3, 1.0), step=1e-4),
    P(finance.american_put_grid, numbers(0.3, 0.05, 10.0), step=1e-4),
    P(
        finance.heston_paths,
        then(numbers(1.0, 0.04, 1.5, 0.05, 0.3), normal((5, 4), (5, 4))),
        step=1e-5,
        difference=1e-7,
    ),
    P(finance.implied_volatility, numbers(9.0, 100.0, 102.0, 0.7), rtol=1e-11),
)

EVENTS = (
    P(events.bouncing_ball, numbers(1.0, 0.8), step=1e-4, budgets=True),
    P(events.bouncing_ball_exact, numbers(1.0, 0.8), step=1e-4),
    P(events.thermostat, numbers(18.0, 0.3, 8.0), step=1e-5, difference=1e-7),
    P(events.integrate_and_fire, then(drawn((20,), high=2.0), numbers(0.4)), step=1e-4),
    P(events.first_passage, then(numbers(1.7), signed((30,))), step=1e-4),
    P(events.rk23_adaptive, numbers(1.2, 2.0), step=1e-5, difference=1e-7),
    P(events.rk45_system, numbers([1.5, 0.3], 2.0), step=1e-5, difference=1e-7),
    P(events.two_tanks, numbers([0.5, 0.5], 0.1), step=1e-5, difference=1e-7),
)

GRAPHS = (
    P(graphs.floyd_warshall, distances(5), returns=0, step=1e-4),
    P(graphs.floyd_warshall_loops, distances(5), step=1e-4),
    P(graphs.bellman_ford, then(numbers(EDGES), drawn((6,), low=1.0, high=3.0)), step=1e-4),
    P(graphs.pagerank, then(drawn((4, 4)), numbers(0.8))),
    P(
        graphs.message_passing,
        then(normal((4, 2)), numbers([0, 1, 2, 2, 3], [1, 2, 0, 3, 1]), normal((5,))),
        complex_step=True,
    ),
    P(
        graphs.epidemic,
        then(drawn((4, 4)), drawn((4,), high=0.4), numbers(0.5, 0.2)),
        complex_step=True,
    ),
    P(graphs.flow_accumulation, drawn((7,), (7,)), argnums=(1,), step=1e-4),
)

SIGNALS = (
    P(signals.deriche, then(numbers(0.25), signed((5, 6))), complex_step=True),
    P(signals.deriche_rows_loops, then(numbers(0.25), signed((3, 6)))),
    P(signals.biquad, then(signed((12,)), numbers([0.2, 0.4, 0.2], [-0.5, 0.3])), budgets=True),
    P(signals.exponential_average, then(signed((12,)), numbers(0.3))),
    P(signals.drawdown, drawn((15,), low=-0.1, high=0.1), complex_step=True),
    P(signals.fir_loops, signed((9,), (4,))),
    P(signals.conv2d_loops, signed((5, 6), (3, 3)), step=1e-4),
    P(
        signals.kalman,
        lambda rng: (*normal((6, 1))(rng), *KALMAN(rng), *normal((2,))(rng)),
        rtol=1e-11,
    ),
    P(signals.kalman_scalar, then(signed((9,)), numbers(0.1, 0.5))),
    P(signals.hmm_forward, then(chances((3,), (3, 3), (3, 4)), numbers([0, 3, 1, 1, 2, 0]))),
    P(signals.hmm_forward_loops, then(chances((3,), (3, 3), (3, 4)), numbers([0, 3, 1, 1, 2]))),
    P(signals.lstm, signed((4, 3), (3, 8), (2, 8), (8,)), budgets=True),
    P(signals.rnn, signed((5, 3), (4, 3), (4, 4))),
    P(signals.attention, signed((4, 3), (4, 3), (4, 2))),
    P(signals.attention_loops, signed((4, 3), (4, 3), (4, 2))),
    P(signals.soft_dtw, signed((5,), (4,)), rtol=1e-11),
    P(signals.haar_lifting, signed((16,)), complex_step=True),
    P(signals.moments, drawn((9,))),
    P(signals.dft_loops, signed((6,))),
)

MAPS = (
    P(maps.logistic, numbers(2.8, 0.3), budgets=True),
    P(maps.lyapunov, numbers(2.9), difference=1e-7),
    P(maps.mandelbrot, lambda rng: (rng.uniform(-1.5, 0.4, (3, 4)), rng.uniform(-1, 1, (3, 4)))),
    P(
        maps.escape_time,
        numbers([-0.5, 0.4, -1.7, 0.3, 1.0], [0.2, 0.5, 0.4, -0.6, 1.0]),
        step=1e-5,
    ),
    P(maps.henon, numbers([0.1, 0.2], 1.4, 0.3)),
    P(maps.tent, numbers(0.37, 1.9), step=1e-6, difference=1e-7),
    P(maps.ikeda, numbers(0.5, 0.4, 0.9), complex_step=True),
    P(maps.lorenz, numbers([1.0, 2.0, 20.0], 10.0, 28.0, 8 / 3), budgets=True),
    P(maps.arithmetic_geometric_mean, numbers(1.0, 0.6)),
    P(maps.collatz_weights, numbers([0.6, 0.2])),
)

LANGUAGE = (
    P(language.over_enumerate, signed((5,)), complex_step=True),
    P(language.over_zip, signed((5,), (5,))),
    P(language.over_reversed, then(signed((5,)), numbers(0.7)), complex_step=True),
    P(language.backwards, signed((8,)), complex_step=True),
    P(language.over_rows, signed((4, 3), S), complex_step=True),
    P(language.triangle, signed((4, 4)), complex_step=True),
    P(language.chained_comparisons, signed((9,)), step=1e-4),
    P(language.conditional_expressions, then(signed((8,)), numbers(0.2)), step=1e-4),
    P(language.skipping, signed((10,)), step=1e-4),
    P(language.for_else, then(signed((8,)), numbers(1.0)), argnums=(0,), step=1e-4),
    P(language.while_else, numbers(0.8), step=1e-5),
    P(language.nested_break, then(signed((5, 4)), numbers(2.0)), argnums=(0,), step=1e-4),
    P(language.nonlocal_accumulator, then(signed((4,)), numbers(0.3)), complex_step=True),
    P(buffers.closure_over_array, then(signed((6,)), numbers(0.2))),
    P(buffers.writes_its_argument, signed((6,)), returns=0, complex_step=True),
    P(buffers.chained_assignment, numbers(0.8)),
    P(buffers.single_precision, normal((8,), dtype=np.float32), rtol=1e-6, difference=1e-3),
    P(buffers.grid_of_gaussians, numbers([1.2, 2.1], 1.5)),
    P(buffers.meshgrid_rotation, numbers(0.4)),
    P(buffers.flat_and_ravel, signed((3, 4)), complex_step=True),
    P(buffers.output_arguments, then(signed((6,)), numbers([0.35, -0.3, 0.9, 0.77, -1.0, 0.12]))),
    P(buffers.views_of_views, signed((6, 6)), complex_step=True),
    P(buffers.transposed_writes, signed((4, 3)), complex_step=True),
    P(buffers.reversed_views, signed((6,)), complex_step=True),
    P(buffers.masks_as_targets, signed((12,)), step=1e-5, difference=1e-7),
    P(buffers.index_arrays, then(signed((5,)), numbers([3, 0, 4, 1, 2])), complex_step=True),
    P(language.dictionary_state, numbers(1.0, 0.2, 3.0), complex_step=True),
    P(language.namedtuple_state, signed((3,), (3,)), complex_step=True),
    P(language.list_of_arrays, lambda rng: (list(normal((4, 3), (2, 4))(rng)), rng.normal(size=3))),
    P(language.appended, numbers(0.8), complex_step=True),
    P(language.stack_of_comprehension, signed((4,)), complex_step=True),
    P(language.unpacked, signed((5, 2)), complex_step=True),
    P(buffers.scalar_out_and_in, signed((6,)), complex_step=True),
    P(language.python_floats, signed((8,)), step=1e-4),
    P(language.last_value, signed((5,)), complex_step=True),
    P(language.walrus, numbers(3.1)),
    P(language.power_by_squaring, numbers(1.1), complex_step=True),
    P(language.guarded, then(signed((5,)), numbers(1.0)), argnums=(0,)),
    P(language.default_and_keyword, signed((3,)), complex_step=True),
    P(language.recursive_sum, signed((7,)), complex_step=True),
    P(buffers.ring_buffer, signed((10,))),
    P(buffers.negative_indices, signed((6,)), complex_step=True),
    P(buffers.sorted_and_cumulative, signed((6,)), step=1e-4),
    P(language.maximum_of_loop, signed((4, 3)), step=1e-4),
)

IDIOMS = (
    P(idioms.object_with_state, then(signed((6,)), numbers(0.7))),
    P(idioms.functions_of_math, signed((5,))),
    P(idioms.generator_of_terms, numbers(0.8), complex_step=True),
    P(idioms.tools_for_iteration, signed((5,)), complex_step=True),
    P(idioms.indices_of_arrays, signed((3, 3)), complex_step=True),
    P(idioms.results_by_name, signed((4,)), complex_step=True),
    P(idioms.buffers_in_a_list, signed((5,)), complex_step=True),
    P(idioms.slices_with_names, signed((7,)), complex_step=True),
    P(idioms.recursion_on_values, numbers(0.9), step=1e-5),
    P(idioms.closures_in_a_list, signed((4,)), complex_step=True),
    P(idioms.largest_first, signed((5,)), step=1e-5),
    P(idioms.index_from_a_value, then(drawn((6,)), signed((7,))), step=1e-5),
    P(idioms.work_list, signed((5,)), complex_step=True),
    P(idioms.asks_for_types, then(signed((3,)), numbers(0.4))),
    P(idioms.time_until, numbers(0.8, 2.0), complex_step=True),
)

NETWORKS = (
    P(networks.conv2d, signed((2, 4, 5, 2), (2, 2, 2, 3), (3,))),
    P(networks.maxpool, signed((2, 4, 4, 2)), step=1e-5),
    P(networks.small_lenet, signed((1, 5, 5, 1), (2, 2, 1, 2), (2,), (8, 3)), step=1e-5),
    P(
        networks.residual_layers,
        lambda rng: (*signed((4, 3))(rng), list(signed((2, 3, 3))(rng)[0])),
    ),
    P(networks.trained_perceptron, signed((3, 2), (3,), (4, 2), (4,)), budgets=True),
    P(networks.adam, signed((5,), (5,))),
    P(networks.mixture_em, then(normal((7,)), numbers([-1.0, 0.8]))),
)

PHYSICS = (
    P(physics.go_fast, signed((5, 5)), complex_step=True),
    P(physics.arc_distance, drawn((4,), (4,), (4,), (4,))),
    P(physics.azimuthal_integration, signed((30,), (30,)), argnums=(0,)),
    P(physics.mandelbrot_complex, numbers([-1.5, -0.7, 0.1, 0.4], [-0.9, 0.2, 0.6])),
    P(physics.schroedinger, then(drawn((8,)), numbers(0.4, 5.0))),
    P(physics.ladder_impedance, drawn((3,), (3,), (3,), (4,))),
    P(physics.spectrum_by_loops, signed((5,))),
    P(
        physics.self_energies,
        then(numbers([[1, 2], [2, 0], [0, 1]]), signed((3, 2, 2, 2), (3, 2, 2))),
    ),
    P(physics.planck_by_layers, drawn((4,), (4,), (5,))),
    P(physics.ising_mean_field, then(signed((4,)), drawn((4, 4), high=0.3), numbers(0.7))),
)
