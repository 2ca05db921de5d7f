"""What names, attributes and methods mean is what Python says at that moment, or an error says so.

Value and gradient of the programs of `name_programs`, and what they leave behind: plain values as
in Python, attributes of objects from outside as they were, and never anything of the recording.
"""

from __future__ import annotations

import linecache
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ckad
from ckad.errors import CkadError
from ckad.trace.source.outside import is_recorded

from . import name_programs, other_module
from .name_programs import EXPRESSIONS, REFUSED, RIGHT, TEXT, Program

pytestmark = pytest.mark.filterwarnings("ignore::ckad.errors.UnrolledLoopWarning")

X = np.array([0.31, 0.2, 0.45])
STEP = 1e-4
KEPT = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__"})
Names = dict[str, Any]


def owners() -> list[Any]:
    """The classes, objects, functions and modules whose attributes the programs change."""
    found = [x for x in vars(name_programs).values() if _is_own(x)]
    objects = [x for x in vars(name_programs).values() if type(x) in found]
    return [other_module, *found, *objects]


def _is_own(x: Any) -> bool:
    kind = isinstance(x, (type, types.FunctionType))
    return kind and x.__module__ == name_programs.__name__


def names_of(owner: Any) -> Names:
    if type(owner) is name_programs.Slots:
        return {name: getattr(owner, name) for name in ("u", "v") if hasattr(owner, name)}
    return {k: v for k, v in vars(owner).items() if k not in KEPT}


class State:
    """What the programs may change, as it is now."""

    def __init__(self) -> None:
        self.names = [(owner, names_of(owner)) for owner in owners()]
        self.classes = [(x, type(x)) for x, _ in self.names if type(x).__module__ == __package__]
        self.total = name_programs.TOTAL
        self.bases = name_programs.Sub.__bases__
        self.shared = dict(name_programs.Borg.shared)
        function = name_programs.scaled_by
        self.defaults = function.__defaults__, function.__kwdefaults__

    def restore(self) -> None:
        name_programs.SHARED.__class__ = name_programs.Base
        name_programs.TOTAL, name_programs.Sub.__bases__ = self.total, self.bases
        name_programs.Borg.shared.clear()
        name_programs.Borg.shared.update(self.shared)
        function = name_programs.scaled_by
        function.__defaults__, function.__kwdefaults__ = self.defaults
        for owner, names in self.names:
            for name in names_of(owner).keys() - names.keys():
                delattr(owner, name)
            for name, value in names.items():
                if names_of(owner).get(name) is not value:
                    setattr(owner, name, value)


@pytest.fixture(autouse=True)
def state() -> Iterator[State]:
    found = State()
    yield found
    found.restore()


def differences(program: Program, state: State) -> np.ndarray:
    """The gradient in Python, to fourth order."""
    gradient = np.zeros(X.shape)
    for k in range(X.size):
        for weight, shift in ((8.0, 1), (-8.0, -1), (-1.0, 2), (1.0, -2)):
            state.restore()
            moved = X.copy()
            moved[k] += shift * STEP
            gradient[k] += weight * program(moved)
    state.restore()
    return gradient / (12.0 * STEP)


def check(program: Program, state: State) -> None:
    expected = differences(program, state)
    want = program(X.copy())
    left = [(owner, names_of(owner)) for owner in owners()]
    state.restore()
    value, gradient = ckad.value_and_grad(program)(X)
    check_left(state, left)
    np.testing.assert_allclose(value, want, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7)


def check_left(state: State, left: list[tuple[Any, Names]]) -> None:
    before = {id(owner): names for owner, names in state.names}
    assert not is_recorded(name_programs.TOTAL)
    assert not is_recorded(name_programs.Borg.shared)
    for owner, names in left:
        now, first = names_of(owner), before[id(owner)]
        assert not [name for name, value in now.items() if is_recorded(value)]
        if not isinstance(owner, (type, types.FunctionType, types.ModuleType)):
            assert now == first
            continue
        for name in now.keys() | names.keys():
            known = [x.get(name) for x in (names, first)]
            assert any(now.get(name) is x or _equal(now.get(name), x) for x in known), name
    assert type(name_programs.SHARED) is name_programs.Base


def _equal(x: Any, y: Any) -> bool:
    plain = (int, float, str, dict)
    return isinstance(x, plain) and isinstance(y, plain) and x == y


def of(programs: list[Program]) -> Any:
    return pytest.mark.parametrize("program", programs, ids=[p.__name__ for p in programs])


@of(RIGHT)
@pytest.mark.usefixtures("engine")
def test_it_is_what_python_gives(program: Program, state: State) -> None:
    check(program, state)


@of(REFUSED)
def test_it_is_refused(program: Program, state: State) -> None:
    with pytest.raises(CkadError, match=r"name_programs\.py:\d+: "):
        ckad.value_and_grad(program)(X)
    check_left(state, state.names)


@pytest.mark.parametrize("expression", EXPRESSIONS.replace("\n", " ").split(";"))
def test_methods_that_python_calls_by_itself(expression: str, state: State) -> None:
    expression = expression.strip()
    text, file = TEXT.format(expression), f"observed_{abs(hash(expression))}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = dict(vars(name_programs))
    exec(compile(text, file, "exec"), names)
    program = names["observed"]
    np.testing.assert_allclose(ckad.jit(program)(X), program(X))


def test_attributes_of_arguments_are_results() -> None:
    def scaled(p: Any) -> Any:
        p.u, p.v = 2 * p.u, p.v + 1
        return p

    given = name_programs.Slotted(X, 2.0)
    result = ckad.jit(scaled)(given)
    np.testing.assert_array_equal(result.u, 2 * X)
    assert result.v == 3.0
    np.testing.assert_array_equal(given.u, X)

    def in_place(p: Any) -> None:
        p.u = 2 * p.u

    after, _ = ckad.vjp(in_place, name_programs.Slotted(X, 2.0), returns=0)
    np.testing.assert_array_equal(after.u, 2 * X)


def test_a_refused_program_leaves_everything_as_it_was() -> None:
    def program(x: Any) -> Any:
        name_programs.Base.count += 1
        other_module.SCALE = 9.0
        name_programs.SHARED.u = x[0]
        return eval("x[0]")

    with pytest.raises(CkadError, match="eval"):
        ckad.jit(program)(X)
    assert name_programs.Base.count == 0
    assert other_module.SCALE == 2.0
    assert name_programs.SHARED.u == 0.0
