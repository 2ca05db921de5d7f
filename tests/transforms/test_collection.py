"""Garbage collection while much is made that is kept."""

import gc

import pytest

from ckad.collection import SELDOM, kept_for_good


@pytest.fixture(params=[False, True], ids=["plain", "frozen"])
def frozen(request):
    """Objects that a program has frozen, or none; pytest has some."""
    before = gc.get_freeze_count()
    gc.unfreeze()
    if request.param:
        gc.freeze()
    yield gc.get_freeze_count()
    gc.unfreeze()
    if before:
        gc.freeze()


def test_what_is_made_for_good_is_old_at_once(frozen):
    before = gc.get_threshold()
    with kept_for_good():
        assert gc.get_threshold()[0] == SELDOM
        made = [[k] for k in range(1000)]
        young = {id(x) for x in gc.get_objects(generation=0)}
        assert all(id(x) in young for x in made)
    assert gc.get_threshold() == before
    assert bool(gc.get_freeze_count()) is bool(frozen)
    oldest = {id(x) for x in gc.get_objects(generation=2)}
    assert all((id(x) in oldest) is not bool(frozen) for x in made)
