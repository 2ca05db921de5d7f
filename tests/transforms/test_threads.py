"""What threads share: each finds what it asked for, whatever the others do meanwhile."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import ckad
from ckad.engines import routines
from ckad.engines.native import engine
from ckad.loops.compiled import Compiled
from ckad.trace.numbers_outside import Place
from ckad.trace.source.control.recalled import guesses
from ckad.transforms import reuse
from ckad.transforms.repeated import calls
from ckad.transforms.repeated.changing import TIMES, Changing


def test_what_changes_is_counted_for_all():
    moves, owners = Changing(), [{"x": 1.0}, {"x": 2.0}]
    other = threading.Thread(target=lambda: moves._count([Place(owners[1], "x")], TIMES))

    class Times(int):
        """Another thread comes while it is looked at."""

        def __ge__(self, least):
            if other.ident is None:
                other.start()
                other.join(0.1)
            return int(self) >= least

        def __radd__(self, times):
            return Times(times + int(self))

    moves._count([Place(owners[0], "x")], Times(TIMES))
    other.join()
    assert {place.key for place in moves.places} == {(id(owner), "x") for owner in owners}


def test_a_program_is_that_of_the_slots_asked_for():
    loaded = object.__new__(engine.Loaded)
    every = SimpleNamespace(keeps_all=True)
    loaded.tape, loaded.keeps_all = None, True

    class Program(SimpleNamespace):
        @property
        def keeps_all(self):
            loaded.program = every  # another thread has asked for the other one
            return False

    loaded.program = own = Program()
    assert loaded._program_for({1: SimpleNamespace(n_slots=3)}) is own


def test_a_run_begins_as_it_was_when_another_thread_plans_anew():
    class Planned(Compiled):
        def __init__(self):
            self.looks = [lambda inputs: inputs]

        @property
        def _direct(self):
            return self.looks.pop() if self.looks else None

    assert Planned().run([1.0]) == [1.0]


def test_calls_that_come_while_others_are_forgotten_are_at_hand():
    last = calls.Calls()

    class Loud(calls.Calls):
        @property
        def ready(self):
            return ()

        @ready.setter
        def ready(self, found):
            last.keep(SimpleNamespace(take=object()))

    loud = Loud()
    calls.forget()
    assert not last.ready
    calls._all.add(loud)
    calls.forget()
    assert len(last.ready) == 1
    assert list(calls._all) == [last]
    calls.forget()
    assert not last.ready


def test_a_routine_is_at_one_place_for_all(monkeypatch):
    made, body = [], routines._BODY

    def slowly(function):
        if not made:  # another thread needs it meanwhile
            made.append(None)
            made.append(routines.address(number))
        return body(function)

    number = next(k for k, routine in enumerate(routines.ROUTINES) if routine.compiled is None)
    monkeypatch.setattr(routines, "_callbacks", {})
    monkeypatch.setattr(routines, "_BODY", slowly)
    first = routines.address(number)
    assert made == [None, first]


def test_what_is_known_of_a_loop_may_be_forgotten_while_it_is_recorded(monkeypatch):
    class Forgotten(dict):
        """Another thread forgets what was just found."""

        def __contains__(self, place):
            return self.pop(place, self) is not self

    def f(x):
        for _ in range(5):
            x = x + 0.5 * x
        return x

    def noted(*args):
        begun.append(args[0])
        remember(*args)
        ended.append(args[0])

    remember, begun, ended = guesses.remember, [], []
    monkeypatch.setattr(guesses, "remember", noted)
    monkeypatch.setattr(guesses, "_guesses", Forgotten())
    for k in range(3):
        reuse.clear()
        assert ckad.jit(f, engine="vm")(1.0) == 1.5**5
        assert len(begun) == len(ended) == k + 1
