"""The builtin through which short runs go: one for all threads, and only for what it knows."""

from __future__ import annotations

import ctypes
import gc
import threading
import time

import numpy as np
import pytest

import ckad
from ckad.engines.native.running import gate


def in_threads(n, run):
    """What ``run`` gives in each of ``n`` threads, all at once."""
    start, found = threading.Barrier(n), []

    def work():
        start.wait()
        found.append(run())

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == n
    return found


def test_threads_that_make_the_first_gates_at_once_have_one_definition(monkeypatch):
    works, tried = gate._works, []

    def slowly(method, trial):
        tried.append(method)
        found = works(method, trial)
        time.sleep(0.05 * len(tried))  # each ends after those before it
        return found

    monkeypatch.setattr(gate, "_definition", [])
    monkeypatch.setattr(gate, "_works", slowly)
    table = np.zeros(len(gate.Word), np.int64)  # of a program with no arguments, called with one
    made = in_threads(4, lambda: gate._builtin(gate._method(), table))
    assert len(tried) == 1
    tried.clear()
    gc.collect()
    junk = [ctypes.create_string_buffer(b"\xff" * 32, 32) for _ in range(1000)]
    assert [run(1) for run in made] == [gate.OTHER] * 4
    assert junk


def test_a_definition_outlives_what_knows_it():
    method = gate._tried()
    table = np.zeros(len(gate.Word), np.int64)
    run = gate._builtin(method, table)
    del method
    gc.collect()
    junk = [ctypes.create_string_buffer(b"\xff" * 32, 32) for _ in range(1000)]
    assert run(1) == gate.OTHER
    assert junk


@pytest.mark.parametrize("dtype", [np.float32, ">f8", np.int64, np.longdouble])
def test_a_program_takes_arrays_of_other_dtypes_and_no_other_shapes(dtype):
    x = np.arange(4.0)
    program = ckad.jit(lambda x: 2.0 * x, engine="native").compiled(x)
    for _ in range(15):
        np.testing.assert_array_equal(program([x.astype(dtype)])[0], 2.0 * x)
    with pytest.raises(ckad.errors.TapeError, match=r"\(4,\).*\(3,\)"):
        program([x[:3]])
