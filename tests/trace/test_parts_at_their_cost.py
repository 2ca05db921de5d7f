"""What is computed of slices with run-time bounds on long axes: the slices, and rightly so."""

from __future__ import annotations

import numpy as np
import pytest

import ckad
from ckad.engines.native.nests.boxes import fused
from ckad.engines.native.nests.fusion import Nest
from ckad.passes.fold import fold
from ckad.passes.loops import trial
from ckad.rules.evaluate import evaluate
from ckad.tape.builder import Builder
from ckad.tape.extents import Masks
from ckad.tape.ops import Op
from ckad.tape.tape import Tape
from ckad.tape.types import DType, Type

from ..programs.oracles import Plain
from ..programs.program import Program
from ..programs.test_programs import (
    Differentiated,
    check_derivatives,
    check_engines_agree,
    check_value,
    least_memory,
)
from .slice_programs import (
    LENGTHS,
    PROGRAMS,
    arguments,
    factors_by_elements,
    sparse,
    sparse_rows,
    sparse_rows_transposed,
    triangular_solve,
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_like_numpy_in_both_modes_engines_and_budgets(function, n):
    args = arguments(function, n)
    single = {"rtol": 1e-6, "ulp": 1e10} if any(x.dtype == np.float32 for x in args) else {}
    program = Program(function, lambda rng: args, difference=1e-6, step=1e-4, **single)
    plain = Plain(program)
    native, vm = (Differentiated(program, engine, plain) for engine in ("native", "vm"))
    for run in (native, vm):
        check_value(run)
        check_derivatives(run)
    check_engines_agree(vm, native)
    for x, y in zip(native.gradient_within(least_memory(native)), native.gradient, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("function", [triangular_solve, sparse_rows], ids=lambda f: f.__name__)
def test_second_order(function):
    args = arguments(function, LENGTHS[1])
    x, others = args[1], args[2:]

    def of_one(v):
        return function(args[0], v, *others)

    direction = np.cos(np.arange(x.size))
    products = [ckad.hvp(of_one, (x,), (direction,), engine=engine) for engine in ("native", "vm")]
    by_gradients = ckad.grad(lambda v: ckad.grad(of_one)(v) @ direction)(x)
    np.testing.assert_allclose(products[0], products[1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(products[0], by_gradients, rtol=1e-11, atol=1e-12)


@pytest.fixture
def loops_stay(monkeypatch):
    """Those that eliminate or substitute are no calls of routines."""
    ckad.clear_caches()
    monkeypatch.setattr(trial, "LEAST", 1 << 30)
    yield
    ckad.clear_caches()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (triangular_solve, arguments(triangular_solve, 150)),
        (sparse_rows, sparse(2000, 300)),
        (sparse_rows_transposed, sparse(2000, 300)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.usefixtures("loops_stay")
def test_no_pass_over_the_whole_axis_is_left_in_a_loop(function, args):
    floats = tuple(k for k, x in enumerate(args) if x.dtype.kind == "f")
    tape = ckad.value_and_grad(function, floats).compiled(*args).tape
    nests = [
        item for body in tape.bodies for item in fused(body)[0].items if isinstance(item, Nest)
    ]
    assert nests
    assert all(nest.spans for nest in nests)


@pytest.mark.usefixtures("loops_stay")
def test_an_element_that_is_written_twice_and_read_between_copies_no_array():
    (a,) = arguments(factors_by_elements, 72)
    for transform, outside in ((ckad.jit, 1), (ckad.value_and_grad, 2)):
        program = transform(factors_by_elements, engine="native", threads=1).compiled(a)
        calls = [x for x in program.llvm.splitlines() if "call void @llvm.memcpy" in x]
        assert len([x for x in calls if f"i64 {a.nbytes}" in x]) == outside  # of the loops


def eliminated(a):
    """One outer product per pivot."""
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(a * a)


@pytest.mark.usefixtures("loops_stay")
def test_the_cotangent_of_a_part_that_a_step_adds_to_is_left_where_it_is():
    a = np.random.default_rng(3).normal(size=(40, 40)) + 20 * np.eye(40)
    tape = ckad.grad(eliminated).compiled(a).tape
    loops = [row for row in tape.rows if row.op is Op.REVERSE_LOOP]
    rows = [row for row in tape.bodies[loops[0].attrs[2]].rows if row.type.shape == a.shape]
    assert not [row for row in rows if row.op is Op.SELECT and row.operands[1] == row.operands[2]]
    ckad.testing.check_grads(ckad.jit(eliminated), (a,))


def test_what_has_just_been_written_is_not_read_again():
    def scaled(x):
        y = np.zeros((5, 5))
        for i in range(5):
            y[i] = x * (i + 1.0)
            y[i, i] = 2.0 * y[i, i]
            y[:, i] += y[i]
        return np.sum(y * y)

    x = np.linspace(0.5, 1.5, 5)
    tape = ckad.trace(scaled)(x)
    assert ckad.jit(scaled)(x) == scaled(x)
    b = Builder()
    array, part = b.input(Type(DType.F64, (5, 3))), b.input(Type(DType.F64, (3,)))
    places = b.const(np.array(2)), b.const(np.array(3))
    for read in places:
        b.gather(b.scatter(array, places[0], part, attrs=(0, 1)), read, attrs=(0,))
    folded = fold(b.tape([len(b.rows) - 3, len(b.rows) - 1]))
    assert [folded.rows[k].op for k in folded.outputs] == [Op.INPUT, Op.GATHER]
    assert tape.outputs.size == 1
    ckad.testing.check_grads(ckad.jit(scaled), (x,))


def test_what_is_not_finite_outside_of_a_part_stays_there():
    """An infinity next to the part that is read is not met, in either mode."""

    def total(A, x):
        y = 0.0
        for i in range(1, 60, 7):
            y += np.sum(A[i : i + 4, :i] @ x[:i]) + A[i, :i] @ x[:i]
        return y

    A, x = np.ones((80, 80)), np.ones(80)
    A[:, 70:] = x[70:] = np.inf
    value, (by_A, by_x) = ckad.value_and_grad(total, (0, 1), engine="native")(A, x)
    assert value == total(A, x)
    assert np.all(by_A[:, 60:] == 0)
    assert np.all(by_x[60:] == 0)
    assert by_x[0] == 5 * 9


# --- masks ---------------------------------------------------------------------------------------


def _mask(rng: np.random.Generator, b: Builder, scalars: list[int], shape: tuple[int, int]) -> int:
    """Comparisons of places with scalars, joined by AND."""
    found = []
    for _ in range(rng.integers(1, 4)):
        axis = int(rng.integers(2))
        n = shape[axis]
        places = b.const(int(rng.integers(-3, 4)) + int(rng.choice([-1, 1])) * np.arange(n))
        scalar = b.broadcast_to(scalars[rng.integers(len(scalars))], (n,))
        pair = [places, scalar][:: int(rng.choice([-1, 1]))]
        compare = getattr(b, str(rng.choice(["lt", "le", "gt", "ge", "eq"])))
        side = b.reshape_to(compare(*pair), (n, 1) if axis == 0 else (1, n))
        found.append(b.broadcast_to(side, shape))
    mask = found[0]
    for other in found[1:]:
        mask = b.emit(Op.AND, (mask, other), (), b.type(mask))
    return mask


@pytest.mark.parametrize("seed", range(60))
def test_spans_are_where_a_mask_is_true(seed):
    rng = np.random.default_rng(seed)
    shape, b = (9, 70), Builder()
    scalars = [b.input(Type(DType.I64, ())) for _ in range(2)]
    mask = _mask(rng, b, scalars, shape)
    tape: Tape = b.tape([mask])
    masks = Masks(tape.rows, tape.constants)
    spans = masks.spans(int(tape.outputs[0]))
    assert spans is not None
    for numbers in rng.integers(-12, 80, (20, 2)).tolist() + [[2**63 - 1, -(2**63)]]:
        values = [np.int64(x) for x in numbers]
        (true,) = evaluate(tape, *values)
        given = dict(zip(tape.inputs.tolist(), numbers, strict=True))
        want = np.ones(shape, bool)
        for span in spans:
            places = np.arange(shape[span.axis])
            inside = np.ones(places.size, bool)
            for low in span.lows:
                inside &= places >= low.sign * given[low.row] + low.shift
            for high in span.highs:
                inside &= places < high.sign * given[high.row] + high.shift
            want &= inside[:, None] if span.axis == 0 else inside[None, :]
        np.testing.assert_array_equal(true, want)
