"""Names from outside that a function binds before it reads them: one recording serves whatever they
were bound to, and leaves them as recording anew does."""

from __future__ import annotations

import copy
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import ckad

START = "import numpy as np\nk = 5.0\nt = [1.0, 2.0]\n"


def module(text: str, file: Path) -> Any:
    file.write_text(START + text)
    made = types.ModuleType("user_module")
    exec(compile(START + text, str(file), "exec"), vars(made))
    return made


ONCE = {
    "a number": """
def f(x):
    global k
    k = 2.0
    return k * x""",
    "what is traced": """
def f(x):
    global k
    k = x * x
    return k * x""",
    "in a loop, too": """
def step():
    global k
    k = k + 0.5
def f(x):
    global k
    k = 1.0
    for _ in range(4):
        step()
    return k * x""",
    "a list by its items": """
def init():
    global t, u
    t = [0.0 for _ in range(4)]
    u = [[0.0] * 2 for _ in range(4)]
def f(x):
    global k
    init()
    k = 0.1
    for j in range(4):
        t[j] = x * j
        u[j][1] = t[j] * k
    while t[1] < 3.0:
        for j in range(4):
            t[j] = t[j] + k * u[j][1] + k
    return t[1] * t[2] * u[3][1]""",
    "a list of numbers": """
def f(x):
    global t, u
    t = [1.0, [2.0]]
    u = t[1]
    t[0] = 3.0
    return t[0] * u[0] * x""",
    "an array": """
def f(x):
    global t
    t = np.zeros(3)
    t[1] = 2.0
    return t[1] * x""",
    "a closure": """
def make():
    s = 5.0
    def f(x):
        nonlocal s
        s = 2.0
        return s * x
    return f
f = make()""",
}

OTHERS = {
    "as often as a number says": """
def s(v):
    global k
    k = 2.0
    return v
def f(x):
    y = [s(v) for v in range(int(x))]
    return k * x""",
    "read before": """
def f(x):
    global k
    y = k * x
    k = 5.0
    return y * k""",
    "read by a helper": """
def g(x): return k * x
def f(x):
    global k
    y = g(x)
    k = 2.0
    return y * g(x)""",
    "in a branch": """
def f(x):
    global k
    if x > 1.0: k = 2.0
    return k * x""",
    "after a return": """
def f(x):
    global k
    if x < 1.0: return x * k
    k = 2.0
    return x""",
    "in a loop": """
def f(x):
    global k
    while x > 1.2: x, k = x / 2, 3.0
    return k * x""",
    "a loop alone": """
def f(x):
    global k
    for i in range(3): k = 1.0 * i
    return k * x""",
    "tried": """
def f(x):
    global k
    try:
        k = 2.0
        raise ValueError
    except ValueError:
        k = k + 1.0
    return k * x""",
    "deleted": """
def f(x):
    global k
    k = 2.0
    y = k * x
    del k
    return y""",
    "counted before": """
def f(x):
    global n
    n += 1
    n = 0
    return x * x
n = 3""",
    "counted after": """
def f(x):
    global n
    n = 4
    n += 1
    return x * n
n = 3""",
    "one of two": """
def f(x):
    global k
    k = None
    if x > 1.0: k = x
    return 1.0 * x if k is None else k * k""",
    "by its name": """
def f(x):
    global k
    k = 2.0
    return globals()['k'] * x""",
    "a list of the user's": """
s = [1.0]
def f(x):
    global t
    t = s
    t2 = [s, 1.0]
    return t[0] * x""",
    "a function": """
def f(x):
    global k
    k = lambda y: 2.0 * y
    return k(x)""",
    "run by Python": """
def f(x):
    global k
    k = 2.0
    return sorted([1.0, 3.0], key=lambda y: k * y)[0] * x""",
    "what it was": """
def f(x):
    global k, t
    s = k
    k = 1.0
    y = k * x
    k = s
    return y""",
    "in a gradient": """
import ckad
def g(x):
    global k
    k = 2.0
    return k * x * x
def f(x):
    global k
    k = 3.0
    return ckad.grad(g)(x) * k""",
    "read after a gradient": """
import ckad
def g(x):
    global k
    k = 2.0
    return k * x * x
def f(x):
    return ckad.grad(g)(x) * k""",
}

CHANGES = {
    "nothing": lambda m: None,
    "run": lambda m: m.f(1.5),
    "number": lambda m: vars(m).update(k=7.0, n=9),
    "list": lambda m: vars(m).update(t=[4.0, 5.0], u=[6.0]),
    "items": lambda m: m.t.__setitem__(0, 8.0),
    "cell": lambda m: [setattr(c, "cell_contents", 9.0) for c in m.f.__closure__ or ()],
}


def state(m: Any) -> Any:
    found = {x: vars(m).get(x) for x in "ktnsu"}
    lists = [x for x in found.values() if isinstance(x, list)]
    plain = {x: v if not callable(v) else "function" for x, v in found.items()}
    one = [x is y or any(x is z for z in y) for x in lists for y in lists]
    return str(copy.deepcopy(plain)), one, [c.cell_contents for c in m.f.__closure__ or ()]


def told(f: Any, m: Any, x: float) -> Any:
    try:
        result = f(x)
    except (ckad.errors.CkadError, NameError) as error:
        result = type(error)
    return result, state(m)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [*ONCE, *OTHERS])
def test_a_recording_that_is_used_again_leaves_what_one_made_anew_does(name, tmp_path):
    text = (ONCE | OTHERS)[name]
    one, other = module(text, tmp_path / "a.py"), module(text, tmp_path / "b.py")
    g = ckad.value_and_grad(one.f)
    for change in ("nothing", "nothing", *CHANGES, *reversed(CHANGES), "number", "nothing"):
        for x in (1.5, 0.5):
            for m in (one, other):
                CHANGES[change](m)
            again = told(g, one, x)
            assert again == told(ckad.value_and_grad(lambda y: other.f(y)), other, x), (change, x)


@pytest.mark.parametrize("name", ONCE)
def test_names_that_are_bound_before_they_are_read_need_one_recording(name, recordings, tmp_path):
    m = module(ONCE[name], tmp_path / "a.py")
    g = ckad.value_and_grad(m.f)
    for change in CHANGES.values():
        change(m)
        value, slope = g(1.5)
        exact = (m.f(1.5 + 1e-6) - m.f(1.5 - 1e-6)) / 2e-6
        assert value == m.f(1.5)
        assert slope == pytest.approx(exact, rel=1e-7)
    assert len(recordings) == 1


NESTED = {
    "in straight code": """
def f(x):
    global k
    k = 3.0
    return ckad.grad(g)(x) * k""",
    "in a branch": """
def f(x):
    global k
    k = 3.0
    if x > 1.0:
        return ckad.grad(g)(x) + k * x
    return k * x""",
    "in a loop": """
def f(x):
    global k
    k, s = x, 0.0
    for i in range(40):
        s = s + ckad.grad(g)(x) * k
        k = k + 0.1 * x
    return s""",
    "to a traced value of around": """
c = 1.0
def h(y):
    global k
    k = c
    return k * y * y
def f(x):
    global k, c
    c, k, s = x, 1.0, 0.0
    for i in range(3):
        s = s + ckad.grad(h)(x) * k
        c = c + x
    return s""",
    "in a loop of traced length": """
def f(x):
    global k
    k = 3.0
    while x < 20.0:
        x = x + 0.1 * ckad.grad(g)(x) + k
    return x * k""",
}


@pytest.mark.parametrize("name", NESTED)
def test_what_a_function_within_binds_is_seen_around_it(name, tmp_path):
    text = "import ckad\ndef g(x):\n    global k\n    k = 2.0\n    return k * x * x\n"
    m = module(text + NESTED[name], tmp_path / "a.py")
    exact = (m.f(1.5 + 1e-6) - m.f(1.5 - 1e-6)) / 2e-6
    for _ in range(2):
        value, slope = ckad.value_and_grad(m.f)(1.5)
        assert value == pytest.approx(m.f(1.5), rel=1e-12)
        assert slope == pytest.approx(exact, rel=1e-7)
        assert isinstance(m.k, float)


def test_what_a_function_within_computes_is_not_read_around_it(tmp_path):
    text = """import ckad
c = 1.0
def g(y):
    global k
    k = [c, c * 2.0]
    return k[1] * y * y
def f(x):
    global k, c
    c, k = x, [1.0]
    return ckad.grad(g)(x) * k[0]
def again(x):
    global k, c
    c = x
    y = ckad.grad(g)(x)
    k = 2.0
    return y * k"""
    m = module(text, tmp_path / "a.py")
    with pytest.raises(ckad.errors.UnrecordableError, match="'k' is read"):
        ckad.grad(m.f)(1.5)
    assert m.k == 5.0
    assert ckad.grad(m.again)(1.5) == pytest.approx(24.0)


calls, factor, parts = 0, 5.0, [1.0]


def with_a_handler(x):
    global calls, factor, parts
    calls += 1
    parts = [3.0, 4.0]
    try:
        if x < 1.0:
            raise ValueError
        factor = 2.0
        parts = [7.0]
    except ValueError:
        pass
    return factor * x + len(parts)


@pytest.mark.filterwarnings("ignore::ckad.errors.AsRunWarning")
def test_a_call_that_begins_anew_begins_with_what_names_were_bound_to(monkeypatch):
    here = sys.modules[__name__]

    def state(function, x):
        for name, value in (("calls", 0), ("factor", 5.0), ("parts", [1.0])):
            monkeypatch.setattr(here, name, value)
        return function(x), calls, factor, parts

    gradient = ckad.value_and_grad(with_a_handler)
    for x in (0.5, 2.0, 0.5, 0.25, 3.0):
        (value, slope), *left = state(gradient, x)
        assert (value, *left) == state(with_a_handler, x)
        assert slope == (5.0 if x < 1.0 else 2.0)
