"""Programs that once gave a wrong number, or an error that said nothing."""

import re

import numpy as np
import pytest

import ckad
from ckad import schedules
from ckad.engines.arena import aligned
from ckad.errors import AliasError, BudgetError, LengthError, TraceError

pytestmark = pytest.mark.usefixtures("engine")


def counted_inside(x):
    """An inner loop carries the outer step number, and changes it."""

    def outer(i, c):
        return ckad.fori_loop(0, 2, lambda _, s: (s[0] * x + s[1], s[1] * 0 + 7), (c, i))[0]

    return ckad.fori_loop(0, 3, outer, x)


def written_over(x):
    """The step number is written over through a view of it."""

    def step(i, c):
        number = np.atleast_1d(i)
        number[0] = 5
        return c * x + number[0]

    return ckad.fori_loop(0, 3, step, x)


def plainly_counted(x):
    c = x
    for i in range(3):
        c = (c * x + i) * x + 7
    return c


def plainly_written(x):
    c = x
    for _ in range(3):
        c = c * x + 5
    return c


@pytest.mark.parametrize(
    ("loop", "plain"), [(counted_inside, plainly_counted), (written_over, plainly_written)]
)
def test_a_step_cannot_change_the_number_of_its_own_loop(loop, plain):
    value, slope = plain(1.25), ckad.grad(plain)(1.25)
    assert ckad.jit(loop)(1.25) == value
    for schedule in ("store_all", "two_level", lambda n: schedules.revolve(n, 1)):
        assert ckad.value_and_grad(loop, schedule=schedule)(1.25) == (value, slope)


def double_first(c):
    c[0] = 2 * c[0]
    return c


def same(c):
    return c


@pytest.mark.parametrize("traced", [False, True])
def test_a_branch_changes_nothing_of_its_caller(traced):
    def misfit(x):
        y = x * 1.0
        z = ckad.cond(x[0] > 0 if traced else True, double_first, same, y)
        kept = ckad.cond(x[0] > 0 if traced else True, same, same, y)
        kept[1] = 0.0
        return np.sum(y * z)

    value, gradient = ckad.value_and_grad(misfit)(np.array([1.0, 3.0]))
    assert value == 11.0
    np.testing.assert_array_equal(gradient, [4.0, 6.0])


def test_a_branch_run_outside_changes_nothing_of_its_caller():
    x = np.array([1.0, 3.0])
    np.testing.assert_array_equal(ckad.cond(True, double_first, same, x), [2.0, 3.0])
    assert ckad.cond(False, double_first, same, x) is not x
    np.testing.assert_array_equal(x, [1.0, 3.0])


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
MATRIX = np.array([[1.0, 2.0]]).view(np.matrix)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ckad.grad(np.sum)(MASKED),
        lambda: ckad.grad(np.sum)(MATRIX),
        lambda: ckad.jit(lambda y: np.sum(y + MASKED))(1.0),
    ],
    ids=["masked", "matrix", "masked from outside"],
)
def test_arrays_with_rules_of_their_own_are_refused(call):
    with pytest.raises(TraceError, match=r"test_regressions.*np\.asarray\(x\).*filled"):
        call()


def test_a_matrix_from_outside_is_taken():
    assert ckad.jit(lambda y: np.sum(y + MATRIX))(1.0) == 5.0


def test_budgets_are_integers_of_any_kind_and_size():
    for memory in (np.int64(10**6), 10**40, "9" * 400):
        assert ckad.grad(np.sin, memory=memory)(0.0) == 1.0


def test_more_steps_than_can_be_counted():
    with pytest.raises(LengthError, match=f"{2**63} steps; the most are {2**63 - 1}"):
        ckad.plan(lambda x: ckad.fori_loop(0, 2**63, lambda i, c: c * x, x), 1.0)


def test_forty_axes():
    x = np.arange(4.0).reshape((1,) * 39 + (4,))
    np.testing.assert_array_equal(ckad.grad(lambda x: np.sum(x.T**2))(x), 2 * x)


def test_stacks_of_matrices_that_do_not_fit_name_the_line():
    with pytest.raises(ValueError, match=r"test_regressions.*\(3,\) \(2,\)"):
        ckad.jit(np.matmul)(np.ones((3, 2, 2)), np.ones((2, 2, 2)))


@pytest.mark.parametrize("cells", [2**50, 2**62])
def test_more_memory_than_there_is(cells):
    with pytest.raises(MemoryError, match=r"at once, more than there are.*memory="):
        aligned(cells)


def test_an_array_too_large_to_be_indexed():
    with pytest.raises(MemoryError, match="more than there are"):
        ckad.jit(lambda x: np.sum(np.zeros((2**40, 2**40), like=x)) + x)(1.0)


def test_fmod_is_exact():
    x = np.array([5.0, -5.0, 1.0, -0.0, 1e17, -7.5, 1e308])
    y = np.array([0.1, 0.1, np.inf, 2.0, -3.1, 2.0, 0.3])
    found = ckad.jit(np.fmod)(x, y)
    np.testing.assert_array_equal(found, np.fmod(x, y))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    assert ckad.grad(np.fmod, argnums=(0, 1))(-7.5, 2.0) == (1.0, 3.0)
    assert ckad.grad(np.fmod)(0.0, 2.0) == 1.0


def test_a_small_argument_inside_a_large_one_shares_its_memory():
    def write(whole, first, second):
        second[0] = 5.0
        return np.sum(whole) + np.sum(first)

    x = np.arange(9.0)
    with pytest.raises(AliasError):
        ckad.grad(write)(x, x[1:3], x[5:7])


def least_budget(fun, *args, **options):
    with pytest.raises(BudgetError) as error:
        ckad.plan(fun, *args, memory=1, **options)
    return int(re.search(r"at least ([\d,]+)", str(error.value))[1].replace(",", ""))


def test_the_least_budget_that_an_error_names_is_enough(engine):
    """How many actions there are at a time decides which schedule takes the least; each size is
    a program of its own, which the native engine compiles twice."""

    def misfit(n, x, beside):
        def step(_, c):
            return np.concatenate([np.sin(c[:n]), c[n:]])

        return np.sum(ckad.fori_loop(0, 17, step, x)) + np.sum(np.sin(beside))

    for n in range(8, 40, 1 if engine == "vm" else 5):
        arguments = n, np.linspace(0.0, 1.0, 50), np.ones(8000)
        least = least_budget(misfit, *arguments, argnums=1)
        assert ckad.plan(misfit, *arguments, argnums=1, memory=least).peak_bytes <= least


def test_the_least_budget_of_a_schedule_by_name_is_enough():
    def misfit(x):
        y = ckad.fori_loop(0, 5, lambda i, c: np.sin(c), x)
        return np.sum(ckad.fori_loop(0, 3, lambda i, c: np.cos(c[::-1]) * c, y))

    for size in (1, 40, 600):
        x = np.linspace(0.0, 1.0, size)
        least = least_budget(misfit, x, schedule="revolve")
        assert ckad.plan(misfit, x, schedule="revolve", memory=least).peak_bytes <= least
        more = ckad.plan(misfit, x, schedule="revolve", memory=10 * least)
        assert [loop.schedule.n_slots for loop in more.loops] == [4, 2]


SLOWLY_COMPILED = [(100, 2), (3, 70, 2), (70, 3, 2)]


@pytest.mark.parametrize(
    "shape", [(2, 50, 1, 7), *(pytest.param(s, marks=pytest.mark.slow) for s in SLOWLY_COMPILED)]
)
def test_elements_apart_in_memory_are_read_one_by_one(shape):
    """A slice of one column has its elements a row apart; vectors were loaded side by side."""
    u = np.random.default_rng(0).normal(size=shape)
    for axis in range(u.ndim):
        last = shape[axis] - 1
        for at in sorted({0, min(1, last), min(2, last), last // 2, last}):
            index = (*[slice(None)] * axis, at)

            def column(u, index=index):
                return np.sin(u[index]) + 2.0 * u[index]

            np.testing.assert_allclose(ckad.jit(column)(u), column(u), rtol=1e-14)
            gradient = ckad.grad(lambda u, f=column: np.sum(f(u)))(u)
            expected = np.zeros(shape)
            expected[index] = np.cos(u[index]) + 2.0
            np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def test_many_borders_along_many_axes_are_not_written_out_one_by_one():
    u = np.random.default_rng(1).normal(size=(3, 4, 3, 4, 3))

    def padded(u):
        return np.sum(np.pad(u, 1, mode="edge") ** 2)

    np.testing.assert_allclose(ckad.jit(padded)(u), padded(u), rtol=1e-12)
    ckad.testing.check_grads(padded, (u,), modes=("rev",))


def test_a_long_chain_on_a_large_array_is_a_few_passes():
    def chain(u):
        for k in range(300):
            u = u * 1.001 + 0.001 * k
        return np.sum(u)

    u = np.linspace(0.0, 1.0, 1000)
    np.testing.assert_allclose(ckad.grad(chain)(u), np.full(1000, 1.001**300), rtol=1e-12)


def test_a_state_that_is_kept_twice_and_changes_names():
    """Carried arrays lie in the records of the steps, where they are residuals themselves."""

    def misfit(p, q, c):
        def step(i, state):
            older, newer = state
            return newer, 2.0 * newer - older + c * np.sin(newer) * np.roll(older, 1) * older

        p, q = ckad.fori_loop(0, 12, step, (p, q))
        return np.sum(p * q)

    rng = np.random.default_rng(2)
    p, q, c = 0.1 * rng.random((3, 300))
    arguments = p, q, c
    results = [
        ckad.value_and_grad(misfit, argnums=(0, 1, 2), schedule=schedule)(*arguments)
        for schedule in ("store_all", "two_level", "revolve", lambda n: schedules.two_level(n, 5))
    ]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        for a, b in zip(gradient, results[0][1], strict=True):
            np.testing.assert_array_equal(a, b)
    ckad.testing.check_grads(misfit, arguments, modes=("fwd", "rev"))


def reads_beyond(x):
    return ckad.fori_loop(0, 9, lambda i, c: c + np.asarray(x, like=i)[i + 2], 0.0)


def reads_beyond_elsewhere(x):
    return ckad.fori_loop(0, 9, lambda i, c: c + np.asarray(x, like=i)[i + 2], 0.0)


@pytest.mark.parametrize("fun", [reads_beyond, reads_beyond_elsewhere])
def test_equal_programs_in_two_places_fail_in_their_own(fun):
    """Compiled code is found by the program's contents, and its errors name a line."""
    line = fun.__code__.co_firstlineno + 1
    for transformed in (ckad.jit(fun), ckad.grad(fun)):
        with pytest.raises(IndexError, match=rf"test_regressions.py:{line}: .* at step 3"):
            transformed(np.ones(5))
