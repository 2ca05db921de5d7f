"""Values and derivatives of programs with sparse matrices; what is refused, by name."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import ckad
from ckad import errors
from ckad.loops import driver
from ckad.loops.driver import compile_tape
from ckad.transforms import call
from tests.sparse.programs import PROGRAMS, T, n

pytestmark = pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
X = np.random.default_rng(3).uniform(0.5, 1.5, n)
ENGINES = ("vm", "native")


def _by_differences(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_both_modes(program):
    expected, by_x = program(X), _by_differences(program, X)
    for engine in ENGINES:
        value, gradient = ckad.value_and_grad(program, engine=engine)(X)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
        np.testing.assert_allclose(gradient, by_x, rtol=1e-4, atol=1e-5 * np.abs(by_x).max())
    _, tangent = ckad.jvp(program, (X,), (X**2,))
    np.testing.assert_allclose(tangent, gradient @ X**2, rtol=1e-9)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_bits_within_budgets(program):
    value, gradient = ckad.value_and_grad(program, engine="vm")(X)
    for memory in ("3 KB", "20 KB", "1 MB"):
        try:
            found = ckad.value_and_grad(program, memory=memory, engine="vm")(X)
        except errors.BudgetError:
            assert memory != "1 MB"
            continue
        assert found[0] == value
        assert found[1].tobytes() == gradient.tobytes()


def test_second_order():
    def program(k):
        a = (T + sp.diags(k)).tocsc()
        return np.sum(sla.spsolve(a, a @ (a.T @ k)) ** 2)

    by_x = np.array(
        [
            (ckad.grad(program)(X + 1e-6 * e) - ckad.grad(program)(X - 1e-6 * e)) / 2e-6
            for e in np.eye(n)
        ]
    )
    np.testing.assert_allclose(ckad.hessian(program)(X), by_x, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "lil"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_matrices_as_arguments(format, kind):
    a = getattr(sp, f"{format}_{kind}")(T)

    def program(a, x):
        return np.sum((a @ x) ** 3) + np.sum((x @ a) ** 2)

    value, (by_a, by_x) = ckad.value_and_grad(program, (0, 1))(a, X)
    dense = T.toarray()
    np.testing.assert_allclose(value, program(dense, X))
    whole = ckad.grad(program)(dense, X)
    assert type(by_a) is type(a)
    assert by_a.shape == a.shape
    there = by_a.toarray() != 0
    assert there[dense != 0].all()
    np.testing.assert_allclose(by_a.toarray()[there], whole[there])
    np.testing.assert_allclose(by_x, ckad.grad(program, 1)(dense, X))


def test_elements_given_twice_are_added():
    rows, columns = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 1])

    def program(v):
        made = [f((v, (rows, columns)), shape=(2, 2)) for f in (sp.csr_matrix, sp.coo_matrix)]
        return sum(np.sum((m @ np.array([2.0, 3.0])) ** 2) for m in made)

    v = np.array([1.0, 2.0, 3.0, 4.0])
    value, gradient = ckad.value_and_grad(program)(v)
    assert value == program(v)
    np.testing.assert_allclose(gradient, _by_differences(program, v), rtol=1e-6)


def test_a_matrix_outside_that_changes_is_read_again():
    a = T.copy()
    f = ckad.value_and_grad(lambda x: np.sum(a @ x))
    first = f(X)[1]
    a.data *= 2
    np.testing.assert_allclose(f(X)[1], 2 * first)


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("strict", [False, True])
def test_singular_matrices(k, strict):
    """With few diagonals and with many: SciPy's NaN, or its error at the user's line."""

    def program(x):
        a = sp.diags(x - x[0]).tocsc()
        if k:
            a = (a + sp.csr_matrix((x[:1], ([11], [0])), shape=(n, n))).tocsc()
        return np.sum(sla.splu(a).solve(x) if strict else sla.spsolve(a, x))

    for engine in ENGINES:
        run = ckad.jit(program, engine=engine)
        if strict:
            with pytest.raises(RuntimeError, match="exactly singular") as error:
                run(X)
            assert "test_programs.py" in error.value.__notes__[0]
        elif k:
            with pytest.warns(sla.MatrixRankWarning):
                assert np.isnan(run(X))
        else:
            assert np.isnan(run(X))


def test_an_iteration_that_has_not_converged_says_so():
    def program(x):
        found, info = sla.cg(T + sp.diags(x), x, maxiter=2)
        return np.sum(found) + 100.0 * info

    assert ckad.jit(program)(X) == pytest.approx(program(X))
    assert program(X) > 200


def _places(k):
    large = sp.csc_matrix((k, (np.argsort(k), np.arange(n))), (501, 501))
    return np.sum(sla.spsolve(large, np.ones(501)))


def _places_of_no_shape(k):
    return np.sum(sp.csr_matrix((k, (np.argsort(k), np.arange(n)))) @ k)


def _element(k):
    a = T.copy()
    a[0, 0] = k[0]
    return np.sum(a @ k)


def _data(k):
    a = sp.csr_matrix((k, (np.arange(n), np.arange(n))), shape=(n, n))
    a.data[:] = k**2
    return np.sum(a @ k)


def _shared(k):
    v = k * 1.0
    a = sp.csr_matrix((v, np.arange(n), np.arange(n + 1)), shape=(n, n))
    v[0] = 3.0
    return np.sum(a @ k)


def _complex(k):
    return np.sum(np.abs(sla.cg((sp.eye(n) + 1j * sp.diags(k)).tocsc(), k)[0]))


def _in_a_branch(k):
    a = T + sp.diags(k)
    if k[0] > 1.0:
        a[1, 1] = k[2]
    return np.sum(a @ k)


def _eigenvalues(k):
    return np.sum(sla.eigs(T + sp.diags(k), k=2)[0].real)


def _repeated(k):
    a = sp.csr_matrix((k, np.zeros(n, int), np.arange(n + 1)), shape=(n, n))
    b = sp.csr_matrix((k, np.zeros(n, int), np.array([0] + [n] * n)), shape=(n, n))
    return a.nnz * k[0] + b.nnz


def _of_an_array(k):
    return k[0] * sp.csr_matrix(np.outer(k, k)).nnz


def _compared(k):
    return k[0] * ((T + sp.diags(k)) > 0).sum()


@pytest.mark.parametrize(
    ("program", "error", "said"),
    [
        (_places, errors.ConcreteValueError, "A.toarray"),
        (_places_of_no_shape, errors.ConcreteValueError, "which elements there are"),
        (_element, errors.UnsupportedFunctionError, "tolil"),
        (_data, errors.AliasError, "data of a sparse matrix"),
        (_shared, errors.AliasError, "made of an array that is written into"),
        (_complex, errors.UnsupportedFunctionError, "cg of a complex matrix"),
        (_in_a_branch, errors.UnsupportedFunctionError, "A = A.tolil"),
        (_eigenvalues, errors.UnsupportedFunctionError, r"np.linalg.eig\("),
        (_repeated, errors.UnsupportedFunctionError, "given several times"),
        (_of_an_array, errors.UnsupportedFunctionError, "leaves out what is 0"),
        (_compared, errors.UnsupportedFunctionError, "np.greater"),
    ],
)
def test_what_is_refused(program, error, said):
    with pytest.raises(error, match=said) as raised:
        ckad.grad(program)(X)
    assert "test_programs.py:" in str(raised.value)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("factor", [-1.0, 1.0])
def test_elements_outside_of_the_shape_stop_the_program(axis, factor):
    def program(k):
        far = np.floor(factor * np.array([3.0, 1.0]) * k[0])
        places = (far, np.zeros(2, int)) if axis == 0 else (np.zeros(2, int), far)
        return np.sum(sp.coo_matrix((k[:2], places), shape=(3, 3)).toarray())

    with pytest.raises(ValueError, match="axis"):
        program(np.full(n, 1.5))
    with pytest.raises(IndexError, match=r"test_programs\.py"):
        ckad.jit(program)(np.full(n, 1.5))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_, np.float32])
def test_numbers_of_other_kinds(dtype):
    graph = sp.csr_matrix((np.arange(24).reshape(3, 8) % 5).astype(dtype))
    whole = sp.csr_matrix(np.diag(np.arange(1, 9)) + np.eye(8, k=3)).astype(dtype)
    steps = np.arange(8)

    def program(x):
        found = np.sum((graph @ x) ** 2) + np.sum((x[:3] @ graph) ** 2)
        found = found + np.sum((graph.T @ (graph @ x)) ** 2) + np.sum((whole.T @ whole) @ x)
        found = found + np.sum(sla.spsolve(whole.tocsc(), x) ** 2)
        found = found + np.sum(sla.spsolve(whole + sp.diags(x), steps) ** 2)
        return found + np.sum(sla.gmres(whole + sp.diags(x), steps, rtol=1e-12)[0])

    x = np.linspace(1, 2, 8)
    value, gradient = ckad.value_and_grad(program)(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-6)
    by_x = _by_differences(program, x, 1e-5)
    np.testing.assert_allclose(gradient, by_x, rtol=1e-3, atol=1e-4 * np.abs(by_x).max())
    np.testing.assert_array_equal(ckad.jit(lambda k: graph @ k)(steps), graph @ steps, strict=True)


@pytest.mark.parametrize("steps", [2, 50])
def test_pullbacks_and_pushforwards_of_unsolved_systems_are_those_of_the_steps(steps):
    matrix = np.diag([2.0, 3.0, 5.0, 7.0]) + 0.5

    def solved(p):
        return np.sum(sla.cg(matrix + np.diag(p), p, maxiter=steps)[0] ** 2)

    p = np.linspace(0.1, 1.0, 4)
    slope = ckad.grad(solved, engine="vm")(p)
    _, pullback = ckad.vjp(solved, p, engine="vm")
    _, pushforward = ckad.linearize(solved, p, engine="vm")
    for scale in (1.0, 2.0):
        assert np.allclose(pullback(scale)[0], scale * slope, rtol=1e-12)
        assert np.isclose(pushforward(scale * np.ones(4)), scale * np.sum(slope), rtol=1e-8)


def test_what_has_not_converged_is_found_out_before_it_is_compiled(monkeypatch):
    made = []

    def noted(tape, options):
        made.append(options.engine)
        return compile_tape(tape, options)

    def solved(p):
        return np.sum(sla.cg(np.diag([2.0, 3.0, 5.0, 7.0]) + np.diag(p), p, maxiter=2)[0] ** 2)

    p = np.linspace(0.1, 1.0, 4)
    monkeypatch.setattr(driver, "LONG", 0.0)
    monkeypatch.setattr(driver, "SMALL_PART", 100.0)
    monkeypatch.setattr(call, "compile_tape", noted)
    by_p = ckad.grad(solved, engine="native")(p)
    assert made == ["native"]
    assert np.allclose(by_p, ckad.grad(solved, engine="vm")(p), rtol=1e-12)
