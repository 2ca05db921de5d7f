"""Programs that call SciPy's own solvers: what they give while they are recorded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, sparse
from scipy.integrate import odeint, solve_ivp

import ckad
from ckad.errors import ConcreteValueError, SolverWarning, UnrecordableError

from ..trace.idioms import check_number

TIMES = np.linspace(0.0, 2.0, 9)


def swing(stiffness):
    """By a closure, by ``args``, at times asked for afterwards; and a solution of known numbers."""
    known = integrate.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0])

    def rates(t, y, drag=0.1):
        return [y[1], -stiffness * np.sin(y[0]) - drag * y[1]]

    def bottom(t, y):
        return y[0]

    bottom.terminal, bottom.direction = True, -1
    given = solve_ivp(rates, (0.0, 2.0), [1.0, 0.0], t_eval=TIMES, args=(0.2,))
    dense = solve_ivp(rates, [0, 2], [1.0, 0.0], method=integrate.RK23, dense_output=True)
    fall = solve_ivp(rates, (0.0, 9.0), [1.0, 0.0], events=bottom, max_step=0.1)
    shuffled = dense.sol(TIMES[::-1])
    at_once = dense.sol(0.3)[0]
    return given.y.sum() + shuffled[1, 2] + at_once + fall.t[-1] + known.y[0].mean()


def test_solve_ivp_is_scipys():
    """Value and derivative are the program's own, which chooses its steps."""
    value, gradient = ckad.value_and_grad(swing)(3.0)
    assert value == pytest.approx(swing(3.0), rel=1e-12)
    h = 1e-6
    assert gradient == pytest.approx((swing(3.0 + h) - swing(3.0 - h)) / (2 * h), rel=1e-6)


def test_odeint_is_solved_to_its_tolerances():
    def decay(y, t, rate):
        return -rate * y

    def end(rate):
        return odeint(decay, [1.0, 2.0], TIMES, args=(rate,))[-1].sum()

    with pytest.warns(SolverWarning, match="DOP853 in place of LSODA"):
        value, gradient = ckad.value_and_grad(end)(0.7)
    assert value == pytest.approx(3.0 * np.exp(-1.4), rel=1e-7)
    assert gradient == pytest.approx(-6.0 * np.exp(-1.4), rel=1e-6)


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
def test_odeint_tells_its_message_and_nothing_of_lsodas_steps():
    def end(rate, name="message"):
        y, said = odeint(lambda y, t: -rate * y, 1.0, TIMES, full_output=True)
        return y[-1, 0] if said[name].startswith("Integration success") else 0.0

    assert ckad.grad(end)(0.7) == pytest.approx(-2.0 * np.exp(-1.4), rel=1e-6)
    with pytest.raises(KeyError, match=r"no nst\. It has message;"):
        ckad.grad(end)(0.7, "nst")


def options(rate):
    """A state of two axes, a complex one, bands, what is asked of a result by name."""
    about = {"rtol": 1e-9, "atol": 1e-10}
    turning = solve_ivp(lambda t, y: np.vstack((y[1], -rate * y[0])), (0, 2), [1.0, 0.5],
                        vectorized=True, **about)  # fmt: skip
    phase = solve_ivp(lambda t, y: 1j * rate * y, (0, 2), [1.0 + 0.0j], **about)
    known = ("sol" in turning) + turning.get("slope", 2.0)
    return known * turning["y"][0, -1] + np.real(phase.y[0, -1])


def test_what_solve_ivp_takes_beside_a_function_and_a_span():
    check_number(options, 0.9, rel=1e-13)


def test_bands_of_lsoda():
    def end(rate):
        about = {"lband": 1, "uband": 0, "rtol": 1e-8, "atol": 1e-10}
        sol = solve_ivp(lambda t, y: [-rate * y[0], y[0] - rate * y[1]], (0, 2), [1.0, 0.0],
                        method="LSODA", **about)  # fmt: skip
        return sol.y[1, -1]

    with pytest.warns(SolverWarning, match="the steps of BDF"):
        value, gradient = ckad.value_and_grad(end, engine="vm")(0.9)
    exact = 2.0 * np.exp(-1.8)
    assert value == pytest.approx(exact, rel=1e-6)
    assert gradient == pytest.approx(-2.0 * exact, rel=1e-5)


def test_times_of_odeint_may_come_twice():
    def end(rate):
        found = odeint(lambda y, t: -rate * y, 1.0, [0.0, 0.0, 1.0, 1.0, 2.0])
        return found[1, 0] + found[2, 0] * found[3, 0]

    with pytest.warns(SolverWarning, match="DOP853"):
        value, gradient = ckad.value_and_grad(end, engine="vm")(0.7)
    assert value == pytest.approx(1.0 + np.exp(-1.4), rel=1e-7)
    assert gradient == pytest.approx(-2.0 * np.exp(-1.4), rel=1e-6)


def by_division(rate):
    return optimize.direct(lambda x: (x[0] - rate) ** 2, [(0, 3)]).x[0]


def by_evolution(rate):
    return optimize.differential_evolution(lambda x: (x[0] - rate) ** 2, [(0, 3)]).x[0]


@pytest.mark.parametrize(
    ("program", "error", "says"),
    [
        (by_division, ConcreteValueError, "ckad has no rule for"),
        (by_evolution, UnrecordableError, "Search outside, and begin"),
    ],
)
def test_what_compiled_code_makes_of_a_refusal_is_the_refusal(program, error, says):
    with pytest.raises(error, match=rf"test_scipys_calls\.py:\d+: .*{says}"):
        ckad.grad(program, engine="vm")(0.7)


class Halved(integrate.RK45):
    """A solver of the user's own."""


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"method": Halved}, "Halved is a class of its own"),
        ({"method": "LSODA", "min_step": 0.1}, "min_step= is not recorded"),
        ({"method": "LSODA", "lband": 0, "jac": lambda t, y: [[-1.0]]}, "of diagonals"),
    ],
)
def test_options_that_are_refused(about, message):
    with pytest.raises(UnrecordableError, match=message):
        ckad.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 1), [1.0], **about).y[0, -1])(0.7)


def by_ode(k):
    r = integrate.ode(lambda t, y: -k * y).set_integrator("dopri5")
    r.set_initial_value(1.0, 0.0)
    while r.successful() and r.t < 1.0:
        r.integrate(r.t + 0.1, step=True)  # which dopri5 takes no notice of
    return r.y[0]


def controlled(k):
    """Another parameter and a dose before each step; the states as a list."""
    r = integrate.ode(lambda t, y, u: [y[1], -k * y[0] + u])
    r.set_integrator("vode", method="bdf", rtol=1e-8, atol=1e-10).set_initial_value([1.0, 0.0])
    states = []
    for u in np.linspace(0.0, 1.0, 6):
        r.set_f_params(u * k)
        states.append(r.integrate(r.t + 0.2))
        r.set_initial_value(r.y + 0.1 * k, r.t)
    return np.sum(np.array(states))


def turning(k):
    r = integrate.complex_ode(lambda t, y: 1j * k * y).set_integrator("dop853")
    r.set_initial_value([1.0], 0.0)
    return r.integrate(2.0)[0].imag


def kept_by_lsoda(k):
    """SciPy's lsoda writes each state over the last one, and so does what is recorded."""
    r = integrate.ode(lambda t, y: -k * y).set_integrator("lsoda", rtol=1e-9, atol=1e-10)
    r.set_initial_value([1.0], 0.0)
    states = []
    while r.t < 0.9:
        r.integrate(r.t + 0.5)
        states.append(r.y)
    return np.sum(np.array(states)[:, 0])


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize("program", [by_ode, controlled, turning, kept_by_lsoda])
def test_ode_is_solved_from_where_it_stands_to_each_time(program):
    value, gradient = ckad.value_and_grad(program, engine="vm")(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-6)
    by_differences = (program(0.7 + 1e-4) - program(0.7 - 1e-4)) / 2e-4
    assert gradient == pytest.approx(by_differences, rel=2e-5)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda r: r.integrate(1.0, step=True), "times that are known"),
        (lambda r: r.set_solout(print), "events="),
        (lambda r: r._integrator.iwork, "Give options to set_integrator"),
    ],
)
@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
def test_what_ode_tells_of_its_own_steps_is_refused(use, message):
    def program(k):
        r = integrate.ode(lambda t, y: -k * y).set_integrator("vode").set_initial_value([1.0])
        return use(r)

    with pytest.raises(UnrecordableError, match=rf"{__file__}.*{message}"):
        ckad.grad(program)(0.7)


@pytest.mark.parametrize("kind", [integrate.RK45, integrate.DOP853, integrate.BDF])
def test_methods_take_scipys_steps_one_at_a_time(kind):
    def program(k):
        r = kind(lambda t, y: -k * y * y + np.sin(t), 0.0, np.array([1.0]), 2.0, rtol=1e-4)
        total = 0.0
        while r.status == "running":
            r.step()
            total = total + r.dense_output()(0.3 * r.t_old + 0.7 * r.t)[0] * r.step_size
            if r.y[0] < 0.6:
                break
        return total + r.nfev

    value, gradient = ckad.value_and_grad(program, engine="vm")(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-12)
    if kind is not integrate.BDF:  # whose iterations leave noise in differences
        by_differences = (program(0.7 + 1e-6) - program(0.7 - 1e-6)) / 2e-6
        assert gradient == pytest.approx(by_differences, rel=1e-5)


def test_a_method_takes_no_step_beyond_its_end():
    def program(k):
        r = integrate.RK45(lambda t, y: -k * y, 0.0, np.array([1.0]), 0.1)
        for _ in range(99):
            r.step()
        return r.y[0]

    with pytest.raises(ckad.errors.RaisedError, match="raises an error at step 1"):
        ckad.grad(program)(0.7)


@pytest.mark.parametrize(("kind", "own"), [("Radau", "Kvaerno5"), ("LSODA", "BDF")])
def test_objects_with_another_method_in_their_place(kind, own):
    def program(k):
        steps = getattr(integrate, kind)(
            lambda t, y: [-k * y[0], k * y[0] - y[1]], 0.0, [1.0, 0.0], 1.0, rtol=1e-8, atol=1e-10
        )
        while steps.status == "running":
            steps.step()
        return steps.y[1]

    def exact(k):
        return k * (np.exp(-k) - np.exp(-1.0)) / (1.0 - k)

    with pytest.warns(SolverWarning, match=f"{kind} is recorded with the steps of {own}"):
        value, gradient = ckad.value_and_grad(program, engine="vm")(3.0)
    assert value == pytest.approx(exact(3.0), rel=2e-6)
    assert gradient == pytest.approx((exact(3.0001) - exact(2.9999)) / 2e-4, rel=1e-5)


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
def test_objects_that_take_steps_may_be_made_where_none_is_taken():
    def program(k):
        made = integrate.ode(lambda t, y: -k * y).set_integrator("vode", nsteps=500)
        made.set_initial_value(1.0, 0.0)
        return k**2

    assert ckad.value_and_grad(program)(3.0) == (9.0, 6.0)


def test_solve_ivp_in_steps_is_what_ode_is():
    def program(k):
        t, y = 0.0, np.array([1.0])
        while t < 1.0:
            y = solve_ivp(lambda t, y: -k * y, (t, t + 0.1), y, "DOP853").y[:, -1]
            t = t + 0.1
        return y[0]

    value, gradient = ckad.value_and_grad(program)(0.7)
    assert value == pytest.approx(by_ode(0.7), rel=1e-6)
    h = 1e-4
    assert gradient == pytest.approx((by_ode(0.7 + h) - by_ode(0.7 - h)) / (2 * h), rel=1e-4)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"min_step": 1e-3}, "min_step="), ({"jac": lambda t, y: None, "foo": 1}, "jac=, foo=")],
)
def test_options_that_a_method_does_not_look_at(options, named):
    """SciPy warns of them, and goes on."""

    def end(rate):
        return solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], rtol=1e-8, **options).y[0, -1]

    with pytest.warns(UserWarning, match=f"RK45 of solve_ivp makes no use of {named}"):
        _, gradient = ckad.value_and_grad(end, engine="vm")(0.7)
    assert gradient == pytest.approx(-2.0 * np.exp(-1.4), rel=1e-5)


def test_lsoda_from_a_list_of_traced_numbers():
    def end(start):
        sol = solve_ivp(lambda t, y: [-y[0], y[0]], (0.0, 1.0), [start, 0.0], "LSODA", rtol=1e-8)
        return sol.y[1, -1]

    with pytest.warns(SolverWarning, match="the steps of BDF"):
        value, gradient = ckad.value_and_grad(end, engine="vm")(2.0)
    assert [value, gradient] == pytest.approx([2.0 - 2.0 / np.e, 1.0 - 1.0 / np.e], rel=1e-5)


@pytest.mark.parametrize("span", [(0.0, 2.0), (2.0, -1.0)])
def test_ends_of_a_dense_solution(span):
    def spread(stretch):
        about = {"dense_output": True, "rtol": 1e-6}
        sol = solve_ivp(lambda t, y: -y, (span[0], span[1] * stretch), [1.0], **about).sol
        return sol.t_max + 3.0 * sol.t_min + sol(sol.t_max)[0]

    check_number(spread, 1.1, rel=1e-7)


MATRIX = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(3, 3)).tocsr()
PAIR = np.array([1.0 + 1.0j, 2.0])
SHORT = np.array([1, 2], np.int32)
RECORD = np.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
#: What a function may be handed on, and a number made of that and a vector.
HANDED_ON = {
    "sparse": (MATRIX, lambda a, y: a @ y),
    "complex": (PAIR, lambda a, y: abs(a[0]) * y),
    "short integers": (SHORT, lambda a, y: a[1] * y),
    "fields": (RECORD, lambda a, y: a["b"][0] * y),
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_functions_are_handed_arguments_of_every_kind(name):
    handed, made = HANDED_ON[name]
    tight = {"rtol": 1e-9, "atol": 1e-11}

    def program(k):
        args = handed, k
        sol = solve_ivp(
            lambda t, y, a, k: k * made(a, y), (0.0, 1.0), np.ones(3), args=args, **tight
        )
        states = odeint(lambda y, t, a, k: k * made(a, y), np.ones(3), [0.0, 1.0], args, **tight)
        root = optimize.fsolve(lambda y, a, k: made(a, y) / 9 - k + y + y**3, np.ones(3), args)
        fit = optimize.least_squares(lambda y, a, k: made(a, y) - k, np.ones(3), args=args).x
        area = integrate.quad(lambda t, a, k: np.sum(made(a, t * k * np.ones(3))), 0, 1, args)[0]
        zero = optimize.brentq(lambda t, a, k: np.sum(made(a, t * np.ones(3))) - k, -9, 9, args)
        return sol.y[:, -1].sum() + states[-1].sum() + root.sum() + fit.sum() + area + zero

    with pytest.warns(SolverWarning):
        value, slope = ckad.value_and_grad(program, engine="vm")(0.7)
    assert value == pytest.approx(program(0.7), rel=1e-6)
    assert slope == pytest.approx((program(0.701) - program(0.699)) / 2e-3, rel=1e-4)


@pytest.mark.parametrize("name", ["jac", "jac_sparsity"])
def test_a_sparse_matrix_says_where_a_jacobian_is(name):
    options = {"method": "BDF", "rtol": 1e-7, "atol": 1e-9, name: MATRIX}

    def program(k):
        return (
            solve_ivp(lambda t, y: k * (MATRIX @ y), (0, 1), np.ones(3), **options).y[:, -1].sum()
        )

    value, slope = ckad.value_and_grad(program, engine="vm")(1.0)
    assert value == pytest.approx(program(1.0), rel=1e-5)
    assert slope == pytest.approx((program(1.01) - program(0.99)) / 2e-2, rel=1e-3)


def test_odeint_refuses_complex_states_as_scipy_does():
    with pytest.raises(TypeError, match="solve_ivp takes complex ones"):
        ckad.jit(lambda k: odeint(lambda y, t: k * y, PAIR, [0.0, 1.0]).real)(0.7)


class Decay:
    scale = 1.0

    def __init__(self, rate):
        self.rate = rate

    def gain(self, y):
        return self.scale * self.rate * y

    def slope(self, y, t):
        return -self.gain(y)

    @staticmethod
    def slope_of(y, t, model):
        return -model.gain(y)


OUTSIDE = Decay(0.7)


def of_a_method(x):
    return odeint(Decay(x).slope, [1.0], [0.0, 0.5, 1.0])[-1, 0]


def of_an_object(x):
    model = Decay(x)
    return odeint(model.slope_of, [1.0], [0.0, 0.5, 1.0], args=(model,))[-1, 0]


def of_an_object_from_outside(x):
    return odeint(OUTSIDE.slope, [x], [0.0, 0.5, 1.0])[-1, 0]


def by_scipy_itself(x):
    return x * integrate.quad(OUTSIDE.gain, 0, 1)[0]


@pytest.mark.filterwarnings("ignore::ckad.errors.SolverWarning")
@pytest.mark.parametrize(
    "program", [of_a_method, of_an_object, of_an_object_from_outside, by_scipy_itself]
)
def test_objects_are_handed_on_and_the_recording_is_kept(program, monkeypatch):
    run = ckad.jit(program)
    assert ckad.explain(program, 0.4).anew == ""
    assert run(0.4) == pytest.approx(program(0.4), rel=1e-6)
    monkeypatch.setattr(Decay, "gain", lambda self, y: 2 * self.rate * y)
    assert run(0.4) == pytest.approx(program(0.4), rel=1e-6)
    monkeypatch.setattr(OUTSIDE, "rate", 0.2)
    assert run(0.4) == pytest.approx(program(0.4), rel=1e-6)
