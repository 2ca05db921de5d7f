"""The route of a tape: which passes make what, what they print, what each of them does."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ckad
import ckad.passes
from ckad.passes import pipeline
from ckad.passes.adjoint import adjoint
from ckad.passes.pipeline import Pipeline, Stages
from ckad.passes.tangent import tangent
from ckad.tape.verify import verify

from .recorded import raw

PRIMAL = "together in_range steady hoist ends simplify"
DERIVED = f"{PRIMAL} infinite unseen"
ROUTES = {
    pipeline.recorded: "simplify vectorise products segments",
    pipeline.primal: PRIMAL,
    pipeline.gradient: f"{DERIVED} stacked ends behind threaded adjoint seeded simplify",
    pipeline.pullback: f"{DERIVED} stacked ends behind threaded adjoint",
    pipeline.pushforward: f"{DERIVED} tangent simplify",
    pipeline.hvp: f"{DERIVED} tangent stacked ends behind threaded adjoint seeded simplify",
    pipeline.inlined: "untape simplify",
    pipeline.adjoint_of_tape: "untape infinite unseen threaded adjoint",
    pipeline.tangent_of_tape: "untape infinite unseen tangent simplify",
}
FUSED = [p for p in ROUTES if p not in (pipeline.recorded, pipeline.inlined)]

every_product = pytest.mark.parametrize("product", ROUTES, ids=lambda p: p.__name__)
every_fused = pytest.mark.parametrize("product", FUSED, ids=lambda p: p.__name__)


def names(passes: Pipeline) -> list[str]:
    return [each.name for each in passes.passes]


def diffusion(kappa: Any, u: Any) -> Any:
    """Loops of every kind: over time, over elements, with a branch, until a value is reached."""
    table = np.zeros(6)
    for t in range(40):
        new = u.copy()
        for i in range(1, len(u) - 1):
            flow = u[i + 1] - 2 * u[i] + u[i - 1]
            if flow > 0.1:
                flow = 0.1 + np.tanh(flow - 0.1)
            new[i] = u[i] + kappa[i] * flow
        u = new
        table[t % 6] += u[t % 10]
    x = u[3]
    while x < 2.0:
        x = x * 1.5 + 0.1
    return x + np.sum(u**2) + np.sum(table)


INPUTS = np.linspace(0.1, 0.2, 10), np.sin(np.arange(10.0)) ** 2


def test_the_life_of_one_line_shows_what_passes_of_a_gradient_find(checkout: Path) -> None:
    before, _, page = (checkout / "docs/architecture.md").read_text().partition("gradient:\n")
    shown = re.findall(r"^    (\w+) +\d+ (?:rows|->)", page.partition("```")[0], re.MULTILINE)
    given = f"{ROUTES[pipeline.recorded]} eliminate {ROUTES[pipeline.gradient]}"
    route = given.replace(PRIMAL, f"{PRIMAL} fma").split()
    left = iter(route)
    assert shown
    assert all(name in left for name in shown)  # in this order
    assert f"Of these {len(route)}, " in before


# --- what is listed ------------------------------------------------------------------------------


@every_product
def test_the_passes_of_a_product(product: Callable[..., Pipeline]) -> None:
    assert names(product()) == ROUTES[product].split()


@every_fused
def test_products_and_sums_of_the_primal_are_fused_last(product: Callable[..., Pipeline]) -> None:
    fused = ROUTES[product].replace(PRIMAL, f"{PRIMAL} fma")
    assert names(product(contract=True)) == fused.split()


@every_product
def test_a_pipeline_prints_its_passes_in_order(product: Callable[..., Pipeline]) -> None:
    head, *lines = str(product()).splitlines()
    assert head == f"{product().product}:"
    shown = [re.match(r"    (\w+)  +\S", line) for line in lines]
    assert [found[1] for found in shown if found] == ROUTES[product].split()
    assert max(map(len, lines)) <= 100


def test_the_documents_show_what_is_printed(checkout: Path) -> None:
    printed = str(pipeline.gradient((0,)))
    assert f"```\n{printed}\n```" in (checkout / "docs" / "architecture.md").read_text()


def test_the_printed_pass_says_what_is_differentiated() -> None:
    assert "cotangents of output 0 to those of inputs 0, 2" in str(pipeline.gradient((0, 2)))
    assert "cotangents of output 1 to those of input 0" in str(pipeline.hvp((0,), (0, 1)))
    assert "tangents of inputs 0, 1" in str(pipeline.pushforward((0, 1)))


@every_product
def test_what_a_pass_runs_inside_is_there(product: Callable[..., Pipeline]) -> None:
    """The names after the colon are those of functions, or of the pass itself."""
    modules = pkgutil.walk_packages(ckad.passes.__path__, "ckad.passes.")
    known = {name for m in modules for name in vars(importlib.import_module(m.name))}
    for passes in (product(), *([product(contract=True)] if product in FUSED else [])):
        assert passes.passes
        for each in passes.passes:
            for text in each.inside:
                where, named = text.split(": ")
                assert where
                assert set(named.split(", ")) <= known


# --- what is made --------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["separate", "fused"])
def stages(request: pytest.FixtureRequest) -> Stages:
    passes = pipeline.recorded().then(pipeline.gradient((0, 1), contract=request.param))
    return passes.watch(raw(diffusion, INPUTS))


def test_every_pass_makes_a_tape_that_obeys_the_rules(stages: Stages) -> None:
    assert len(stages.tapes) == 1 + len(stages.pipeline.passes)
    for tape in stages.tapes:
        verify(tape)


def test_what_is_watched_is_what_is_run(stages: Stages) -> None:
    assert stages.pipeline.run(stages.tapes[0]).digest == stages.tapes[-1].digest


def test_stages_print_rows_before_and_after(stages: Stages) -> None:
    head, *lines = str(stages).splitlines()
    assert head == "gradient:"
    assert [line.split()[0] for line in lines] == names(stages.pipeline)
    by_name = dict(zip(names(stages.pipeline), lines, strict=True))
    assert re.search(r"\d+ -> +\d+ rows, 3 -> 2 loops", by_name["vectorise"])
    assert re.search(r"\d+ -> +\d+ rows, \d -> \d loops", by_name["adjoint"])
    assert by_name["threaded"].endswith("rows, unchanged")


def test_explain_shows_what_was_run() -> None:
    explained = ckad.explain(diffusion, *INPUTS, argnums=(0, 1), engine="vm")
    run = ckad.value_and_grad(diffusion, (0, 1), engine="vm").prepare(INPUTS, {})[1]
    assert explained.passes.tapes[-1].digest == run.digest
    assert names(explained.passes.pipeline)[:2] == ROUTES[pipeline.recorded].split()[:2]
    fused = ckad.explain(diffusion, *INPUTS, engine="native").passes
    assert "fma" in names(fused.pipeline)


def test_what_is_recorded_is_left_the_very_tape_that_it_is() -> None:
    tape = pipeline.recorded().run(raw(diffusion, INPUTS))
    for stage in pipeline.recorded().watch(tape).tapes:
        assert stage is tape


@pytest.mark.parametrize("derive", [adjoint, tangent])
def test_taped_loops_are_plain_before_they_are_derived(derive: Callable[..., Any]) -> None:
    taped = pipeline.adjoint_of_tape().run(ckad.trace(diffusion)(*INPUTS))
    with pytest.raises(AssertionError, match="untape"):
        derive(taped)
