"""A test that checks nothing fails.

Checks are passed ``assert`` statements, and calls of what raises unless something holds: the
functions of CHECKS. Who means "it ends without an error" says so: ``@pytest.mark.only_runs(why)``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import _pytest.assertion.util
import numpy as np
import pytest

import ckad.testing
from ckad.trace.source.library import asserted  # fills its rows with NumPy's own checks

CHECKS = [
    (pytest, ["raises", "warns"]),
    (np.testing, [name for name in np.testing.__all__ if name.startswith("assert_")]),
    (ckad.testing, ckad.testing.__all__),
]
MESSAGE = """\
{name} asserts nothing: none of its statements compared anything.
Let it assert, take the case out of its parameters, or mark it with @pytest.mark.only_runs("why").
(Bytecode from before a change of options counts no assertions: remove tests/**/__pycache__.)"""


class Seen:
    """Whether the test that runs has checked something."""

    check = False


def counted(check: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(check)
    def noted(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        Seen.check = True
        return check(*args, **options)

    return noted


def pytest_configure(config: pytest.Config) -> None:
    # The assertions of the modules that tests share count, and are explained, as those of tests.
    # Not those of the programs: what is rewritten is no longer what their source says.
    beside = {f"{__package__}.{path.stem}" for path in Path(__file__).parent.iterdir()}
    beside -= {f"{__package__}.programs", f"{__package__}.wild"}
    pytest.register_assert_rewrite(*(beside - set(sys.modules)))
    assert asserted
    for module, names in CHECKS:
        for name in names:
            setattr(module, name, counted(getattr(module, name)))


class Passed:
    """Stands where pytest keeps who wants the texts of passed assertions.

    Each of them asks, so that it is counted here. Nobody wants one: they are dear, and that of two
    equal megabytes takes hours where CI is set, for there it is written in full.
    """

    def __bool__(self) -> bool:
        Seen.check = True
        return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    Seen.check = False
    _pytest.assertion.util._assertion_pass = cast(Any, Passed())
    result = yield
    if not Seen.check and item.get_closest_marker("only_runs") is None:
        pytest.fail(MESSAGE.format(name=item.name), pytrace=False)
    return result
