"""What generated programs came to: added up over the tests of a run, shown below its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

TALLIES: dict[str, Counter[str]] = {}


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Outcomes, counted by the test."""
    counted: Counter[str] = Counter()
    yield counted
    name = request.node.nodeid.partition("[")[0]
    request.node.user_properties.append(("tally", (name, dict(counted))))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        for key, value in report.user_properties:
            if key == "tally":
                name, counted = value
                TALLIES.setdefault(name, Counter()).update(counted)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, counted in sorted(TALLIES.items()):
        total = counted.total()
        shares = (f"{n} {word} ({n / total:.1%})" for word, n in counted.most_common())
        terminalreporter.write_line(f"{name}: {total} programs, {', '.join(shares)}")
