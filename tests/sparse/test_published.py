"""Published kinds of programs: values, both modes, both engines, budgets, second order."""

import numpy as np
import pytest

import ckad
from ckad import errors
from tests.sparse.published import PUBLISHED, n

pytestmark = [
    pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of np.matrix
]
X = np.random.default_rng(3).uniform(0.5, 1.5, n)
QUICK = {
    "finite_elements_by_lil",
    "diffusion_assembled_each_step",
    "schroedinger",
    "rows_by_hand",
    "dirichlet_rows_of_a_matrix",
    "densities_filtered_by_a_matrix_of_sums",
    "charges_weighted_by_a_matrix",
}
PROGRAMS = [
    pytest.param(f, id=f.__name__, marks=[] if f.__name__ in QUICK else [pytest.mark.slow])
    for f in PUBLISHED
]


def _by_differences(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("program", PROGRAMS)
def test_value_modes_engines_and_budgets(program):
    expected, by_x = program(X), _by_differences(program, X)
    for engine in ("native", "vm"):
        value, gradient = ckad.value_and_grad(program, engine=engine)(X)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
        np.testing.assert_allclose(gradient, by_x, rtol=1e-4, atol=1e-5 * np.abs(by_x).max())
    _, tangent = ckad.jvp(program, (X,), (X**2,), engine="vm")
    np.testing.assert_allclose(tangent, gradient @ X**2, rtol=1e-9)
    for memory in ("5 KB", "1 MB"):
        try:
            found = ckad.value_and_grad(program, memory=memory, engine="vm")(X)
        except errors.BudgetError:
            assert memory != "1 MB"
            continue
        assert found[0] == value
        assert found[1].tobytes() == gradient.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("program", PUBLISHED, ids=lambda f: f.__name__)
def test_second_order(program):
    gradient = ckad.grad(program, engine="vm")
    by_x = _by_differences(gradient, X, 1e-5)
    found = ckad.hessian(program, engine="vm")(X)
    np.testing.assert_allclose(found, by_x, rtol=1e-4, atol=1e-5 * np.abs(by_x).max())
