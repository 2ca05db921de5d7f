"""What it takes to make schedules: rows and bytes are counted; times are least of several."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from ckad.schedules import disk_revolve, forward_steps, hrevolve, mixed, mixed_bytes, revolve


def least_time(function, *arguments, **options):
    """Seconds of the processor, of the second run and those after it."""
    function(*arguments, **options)
    times = []
    for _ in range(4):
        begin = time.process_time()
        function(*arguments, **options)
        times.append(time.process_time() - begin)
    return min(times)


def stream(build, *arguments):
    return sum(rows.kind.size for rows in build(*arguments).chunks())


@pytest.mark.parametrize("build", [revolve, mixed])
def test_a_million_steps_in_a_fifth_of_a_second_and_ten_megabytes(build):
    assert least_time(stream, build, 10**6, 30) < 0.2
    tracemalloc.start()
    try:
        assert stream(build, 10**6, 30) > 10**5
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("family", "arguments"),
    [
        *(("revolve", (10**9, 30)), ("mixed", (10**9, 30)), ("mixed", (10**9, 10**5))),
        *(
            ("multistage", (10**9, 20, 10)),
            ("periodic_disk", (10**9, 30)),
            ("periodic", (10**9, 9)),
        ),
        *(("two_level", (10**9,)), ("store_all", (10**9,))),
    ],
)
def test_closed_forms_take_less_than_a_millisecond(family, arguments):
    assert least_time(forward_steps, family, *arguments) < 1e-3


def test_searches():
    assert least_time(hrevolve, 10**4, 10, 10) < 1
    assert least_time(mixed_bytes, 10**6, 10**6, 2400, 7200) < 2


@pytest.mark.slow
def test_disk_revolve_of_long_loops():
    assert least_time(disk_revolve, 10**5, 10) < 2
    tracemalloc.start()
    try:
        disk_revolve(10**5, 10)
        assert tracemalloc.get_traced_memory()[1] < 64e6
    finally:
        tracemalloc.stop()
