"""What every test file may use."""

from __future__ import annotations

import gc
import sys
import tempfile
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

import ckad
from ckad.loops import driver, engines
from ckad.tape.tape import Tape
from ckad.transforms import call

from . import tally, vacuous

hypothesis.settings.register_profile("untimed", deadline=None)  # machines may be busy
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (vacuous, tally):
        config.pluginmanager.register(plugin)
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        _keep_bytecode_elsewhere(config)


def _keep_bytecode_elsewhere(config: pytest.Config) -> None:
    """Of the processes that tests start: each would compile the package's sources anew."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    folder = tempfile.TemporaryDirectory(prefix="ckad-bytecode-")
    config.add_cleanup(folder.cleanup)
    patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    patch.setenv("PYTHONPYCACHEPREFIX", folder.name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with many cases each n-th is in the default run; ``slow`` are the others."""
    met: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is None:
            continue
        name = item.nodeid.partition("[")[0]
        if met[name] % sampled.args[0]:
            item.add_marker("slow")
        met[name] += 1


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: nothing is gained by looking at them again.

    Nor by looking for cycles after every 700 objects, which takes a twentieth of the run.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 30)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--generated-seed",
        type=int,
        default=0,
        help="the seed of the first of the random programs of test_generated_programs.py",
    )
    parser.addoption(
        "--generated-seconds",
        type=float,
        default=60.0,
        help="how long its test_as_long_as_asked_for runs (it is marked slow)",
    )


def pytest_report_header() -> str:
    return f"ckad: {Path(ckad.__file__).parent}"


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The source tree, for tests that read files which the wheel does not carry."""
    return Path(__file__).parents[1]


@pytest.fixture(params=engines.ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What engine="auto" means for a test: each of the engines, one after the other."""
    name: str = request.param
    predicted = engines.chosen

    def forced(tape: Tape, engine: str, members: int = 1) -> str:
        return name if engine == engines.AUTO else predicted(tape, engine, members)

    for module in (driver, call):
        monkeypatch.setattr(module, "chosen", forced)
    ckad.clear_caches()  # recordings remember the engine that was chosen for them
    return name
