"""The table of what is called: formulas are written once, whatever they are given."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ckad
from ckad.trace import dispatch
from ckad.trace.dispatch import COMPLEX, EVERY, PART, PLAIN

from .. import kinds

#: How cells are made from the function of whole arrays: element by element, by both halves alike.
DERIVED = ("_by_elements", "_by_parts", "_product", "_writing", "ufunc_cell")
#: Formulas that have another one for a kind, since that has fewer rows or keeps more digits.
WRITTEN_AGAIN = {
    (np.sort, PART),
    # by real and then by imaginary parts
    *((function, COMPLEX) for function in (np.sort, np.argsort)),
    # least squares of the elements under a mask: each equation has its weight, 0 or 1
    *((function, PART) for function in (np.vander, np.linalg.lstsq, np.polyfit)),
    (np.average, COMPLEX),
    (np.einsum, COMPLEX),
    (np.meshgrid, COMPLEX),
}


def _is_formula(function):
    return function.__module__.startswith("ckad.trace.numpy.")


def _is_derived(function):
    return not isinstance(function, type(_is_derived)) or function.__qualname__.startswith(DERIVED)


def test_formulas_are_written_once():
    found = set()
    for key in dispatch.rows():
        plain = dispatch.plain(key)
        for kind in (PART, COMPLEX) if _is_formula(plain) else ():
            own = dispatch.cell(key, kind)
            if own is not None and own is not plain and not _is_derived(own):
                found.add((key, kind))
    assert found == WRITTEN_AGAIN


@pytest.mark.parametrize(("kind", "least"), [(PLAIN, 490), (PART, 215), (COMPLEX, 395)])
def test_no_kind_has_fewer_functions(kind, least):
    assert sum(dispatch.cell(key, kind) is not None for key in dispatch.rows()) >= least


def test_a_cell_that_is_filled_stays_where_a_formula_takes_every_kind():
    def key():
        raise AssertionError

    dispatch.put(key, min, COMPLEX)
    dispatch.put(key, max, EVERY)
    assert [dispatch.cell(key, kind) for kind in EVERY] == [max, max, min]
    del dispatch._table[key]


def test_a_function_that_a_kind_has_not_is_refused_by_its_name():
    def function(x):
        return np.median(x[x > 0])

    with pytest.raises(ckad.errors.UnsupportedFunctionError, match=r"np.median is not supported"):
        ckad.jit(function)(np.arange(3.0))


def test_the_page_shows_which_functions_take_what():
    assert kinds.shown() == kinds.table(), "python -m tests.kinds writes it anew"


def test_the_page_says_of_every_function_what_it_does():
    titles = [row.split("|")[1] for row in kinds.described()]
    assert len(set(titles)) == len(titles) > 30
    words = set(re.findall(r"\w+", kinds.PAGE.read_text().replace(kinds.shown(), "")))
    listed = re.findall(r"`([\w.]+)`", kinds.shown())
    elsewhere = ("testing.", "emath.logn")  # docs/programs.md, "those of np.emath"
    left = {x.rpartition(".")[2] for x in listed if not x.startswith(elsewhere)}
    assert left - words == set()
