"""What the reverse of a loop keeps: a minimum cut, found without a search where it is plain."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

import ckad
from ckad.passes.adjoint.cut import UNLIMITED, Network
from ckad.passes.adjoint.residuals import Joint
from ckad.passes.pipeline import adjoint_of_tape
from ckad.tape.builder import Builder
from ckad.tape.control import read_reverse_loop
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import parse_type

LARGE = 1 << 20  # stands for no limit where flows have 32 bits


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_that_of_scipy(seed: int) -> None:
    rng = random.Random(seed)
    n, edges = drawn_network(rng)
    while unlimited_path(edges, n):
        n, edges = drawn_network(rng)
    network = Network(n)
    for (a, b), capacity in edges.items():
        network.connect(a, b, UNLIMITED if capacity == LARGE else capacity)
    side = network.source_side(0, n - 1)
    cut = sum(c for (a, b), c in edges.items() if side[a] and not side[b])
    starts, stops = zip(*edges, strict=True)
    graph = coo_array((np.array(list(edges.values()), np.int32), (starts, stops)), shape=(n, n))
    assert side[0]
    assert not side[n - 1]
    assert cut == maximum_flow(graph.tocsr(), 0, n - 1).flow_value


def drawn_network(rng: random.Random) -> tuple[int, dict[tuple[int, int], int]]:
    n = rng.choice([5, 20, 60])
    edges = {}
    for _ in range(4 * n):
        a, b = rng.sample(range(n), 2)
        edges[a, b] = rng.choice([1, 3, 8, 40, LARGE])
    return n, edges


def unlimited_path(edges: dict[tuple[int, int], int], n: int) -> bool:
    reached, before = {0}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {b for (a, b), c in edges.items() if a in reached and c == LARGE}
    return n - 1 in reached


def joint(rng: random.Random, n_rows: int) -> tuple[Tape, int, int]:
    """A random body with its adjoint, the number of its inputs and that of its carry."""
    b, n_carry = Builder(), 6
    b.input(parse_type("i64[]"))
    values = [b.input(parse_type("f64[]")) for _ in range(n_carry + 3)]
    ct, n_primal = b.input(parse_type("f64[]")), len(b.inputs)
    exp, read = rng.choice([0, 0.05, 0.3]), rng.choice([0.05, 0.1, 0.4])
    for _ in range(n_rows):
        x, y = rng.choice(values[-12:]), rng.choice(values[-12:])
        values.append(b.exp(x) if rng.random() < exp else b.mul(x, y))
    for x in values:
        if rng.random() < read:
            ct = b.mul(ct, x)
    return b.tape([*values[-n_carry:], ct]), n_primal - 1, n_carry


@pytest.mark.parametrize("seed", range(40))
def test_what_is_kept_suffices_and_no_fewer_values_do(seed: int) -> None:
    rng = random.Random(seed)
    tape, n_primal, n_carry = joint(rng, rng.choice([5, 20, 60]))
    kept = Joint(tape, n_primal, n_carry).split(tape.outputs.tolist()[-1:]).residuals
    assert kept == sorted(kept)
    assert is_enough(tape, n_primal, n_carry, kept)
    assert len(kept) == minimum(tape, n_primal, n_carry)


def needs(tape: Tape, n_primal: int) -> set[int]:
    dual = {tape.inputs.tolist()[n_primal]}
    read = set()
    for k, row in enumerate(tape.rows):
        if dual.intersection(row.operands):
            dual.add(k)
            read.update(set(row.operands) - dual)
    return read


def is_enough(tape: Tape, n_primal: int, n_carry: int, kept: list[int]) -> bool:
    """Whether all that the reverse reads is kept, given, or follows by cheap rows."""
    there = set(kept) | set(tape.inputs.tolist()[1 + n_carry :])
    for k, row in enumerate(tape.rows):
        if row.op is Op.MUL and there.issuperset(row.operands):
            there.add(k)
    return there.issuperset(needs(tape, n_primal))


def minimum(tape: Tape, n_primal: int, n_carry: int) -> int:
    """The size of a minimum cut of the whole network, by scipy."""
    n, read = len(tape), needs(tape, n_primal)
    carry = set(tape.inputs.tolist()[1 : 1 + n_carry])
    edges = []
    for k, row in enumerate(tape.rows):
        edges.append((2 * k, 2 * k + 1, 1))
        if k in carry or row.op is Op.EXP:
            edges.append((2 * n, 2 * k, LARGE))
        else:
            edges += [(2 * x + 1, 2 * k, LARGE) for x in set(row.operands)]
        if k in read:
            edges.append((2 * k + 1, 2 * n + 1, LARGE))
    starts, stops, capacities = zip(*edges, strict=True)
    values = np.array(capacities, np.int32)
    graph = coo_array((values, (starts, stops)), shape=(2 * n + 2, 2 * n + 2)).tocsr()
    return int(maximum_flow(graph, 2 * n, 2 * n + 1).flow_value)


def test_a_lorenz_step_keeps_its_state() -> None:
    def step(i: Any, u: Any) -> Any:
        x, y, z = u
        for _ in range(4):
            x, y, z = x + 0.01 * (y - x), y + 0.01 * (x * (28 - z) - y), z + 0.01 * (x * y - z)
        return x, y, z

    def fun(x: Any, y: Any, z: Any) -> Any:
        return sum(ckad.fori_loop(0, 9, step, (x, y, z)))

    tape = adjoint_of_tape().run(ckad.trace(fun)(1.0, 2.0, 3.0))
    row = next(row for row in tape.rows if row.op is Op.REVERSE_LOOP)
    assert read_reverse_loop(tape, row).n_residuals == 3


def test_a_gradient_does_not_load_sparse_matrices() -> None:
    """That takes as long as to derive the gradient of a thousand rows."""
    program = (
        "import sys, numpy as np, ckad\n"
        "ckad.plan(lambda x: ckad.fori_loop(0, 9, lambda i, x: np.sin(x) * x, x), 1.0)\n"
        "assert 'scipy.sparse' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_solvers_and_filters_do_not_load_scipys_signals(tmp_path) -> None:
    """These load statistics, too, which takes longer than to record what calls the solvers."""
    program = """
import sys, numpy as np, ckad
from scipy.integrate import simpson, solve_ivp
from scipy.ndimage import gaussian_filter1d

t = np.linspace(0.0, 1.0, 5)

def fun(x):
    states = solve_ivp(lambda t, y: -x * y, (0.0, 1.0), [1.0], t_eval=t).y[0]
    return simpson(gaussian_filter1d(states, 1.0), x=t)

ckad.trace(fun)(1.0)
assert not {"scipy.signal", "scipy.stats"} & set(sys.modules)
"""
    (tmp_path / "program.py").write_text(program)
    assert subprocess.run([sys.executable, str(tmp_path / "program.py")]).returncode == 0
