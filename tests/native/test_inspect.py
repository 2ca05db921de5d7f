"""A look inside of compiled programs: text, machine code, operations and bytes of a step."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ckad
from ckad.engines import counts
from ckad.engines.native.running.program import prepare
from ckad.errors import EngineError
from ckad.loops.compiled import Compiled

N = 200


def heat(u, kappa):
    def step(i, u):
        u[1:-1] += kappa[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    return np.sum(ckad.fori_loop(0, 50, step, u) ** 2)


def oscillator(y):
    def step(i, y):
        return y + 0.01 * np.stack([y[1], -np.sin(y[0])])

    return np.sum(ckad.fori_loop(0, 100, step, y))


def gradient_of(fun, *args, **options) -> Compiled:
    return ckad.value_and_grad(fun, **options).compiled(*args)


@pytest.fixture(scope="module")
def stencil() -> Compiled:
    return heat_gradient(schedule="two_level")


def heat_gradient(**options):
    return gradient_of(
        heat, np.ones(N), np.full(N, 0.1), engine="native", argnums=(0, 1), **options
    )


def functions(text: str) -> dict[str, str]:
    """The parts of a text by the name of their function."""
    parts = text.split("\n\n")
    return {part.partition(":")[0]: part for part in parts}


# --- text ---------------------------------------------------------------------------------------


def test_the_text_has_the_parts_of_a_loop_and_its_reverse(stencil):
    kinds = {name.rstrip("0123456789_") for name in functions(stencil.text)}
    assert {"body", "advance", "tape", "retape", "reverse"} <= kinds
    assert "the reverse of a step of loop 0 (50 steps), test_inspect.py:" in stencil.text


def test_what_keeps_all_residuals_has_no_code_to_run_steps_again(stencil):
    kinds = {name.rstrip("0123456789_") for name in functions(heat_gradient().text)}
    assert {"body", "tape", "reverse"} <= kinds
    assert not {"advance", "retape"} & kinds


def test_a_stencil_reads_like_its_formula(stencil):
    (step,) = (x for k, x in functions(stencil.text).items() if k.startswith("tape"))
    assert f"for i in [0, {N})  # borders [[0, 1, {N - 1}, {N}]]" in step
    assert re.search(r"%1\[i \+ 1\]", step)
    assert re.search(r"%1\[i - 1\]", step)
    assert re.search(r"%\d+\[i\] = t\d+", step)


def test_rows_in_registers_are_shown_with_their_lines():
    text = gradient_of(oscillator, np.ones(2), engine="native").text
    (step,) = (x for k, x in functions(text).items() if k.startswith("tape"))
    assert "nest" not in step
    assert re.search(r"%\d+ = sin\(%\d+\) : f64\[\]  # test_inspect.py:\d+", step)
    assert re.search(r"%\d+ = %\d+ \* %\d+ \+ %1 : f64\[2\]", step)  # fused


def test_the_names_are_those_of_the_machine_code(stencil):
    written = set(re.findall(r"\bnest_\d+", stencil.text))
    assert written
    assert written == set(re.findall(r"\bnest_\d+", stencil.asm))
    assert "define" in stencil.llvm


def test_loops_and_branches_inside():
    def fun(x):
        def step(i, x):
            x = ckad.fori_loop(0, 3, lambda j, x: x * np.cos(x), x)
            return ckad.cond(x > 0.0, lambda x: x + 1.0, lambda x: x - 1.0, x)

        return ckad.fori_loop(0, 10, step, x)

    text = ckad.jit(fun, engine="native").compiled(0.5).text
    for title in (
        "the program",
        "a step of a loop (10 steps)",
        "a step of a loop (3 steps)",
        "where the condition holds",
        "where the condition does not hold",
    ):
        assert f": {title}" in text
    gradient = gradient_of(fun, 0.5, engine="native").text
    assert "of loop 0 (" in gradient
    assert "of loop 1 (" in gradient


def test_the_vm_shows_its_tape():
    compiled = gradient_of(oscillator, np.ones(2), engine="vm")
    assert compiled.text == str(compiled.tape)


@pytest.mark.parametrize("what", ["llvm", "asm"])
def test_the_vm_has_no_machine_code(what):
    compiled = ckad.jit(oscillator, engine="vm").compiled(np.ones(2))
    with pytest.raises(EngineError, match=r'test_inspect\.py.*Pass engine="native"'):
        getattr(compiled, what)


# --- compilation --------------------------------------------------------------------------------


def test_time_of_compilation_and_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CKAD_CACHE_DIR", str(tmp_path / "cache"))
    tape = ckad.trace(lambda x: np.sin(x) * 0.123456)(1.0)
    first = prepare(tape, keeps_all=False).library
    seconds, cached = first.seconds, first.cached
    del first  # which an assertion would keep
    assert seconds > 0
    assert not cached
    second = prepare(tape, keeps_all=False).library
    assert second.seconds == 0
    assert second.cached


def test_what_is_printed(stencil):
    lines = str(stencil).splitlines()
    assert lines[0].startswith("engine native, ")
    assert re.match(r"one of 50 steps: .* flops, .* bytes moved; its reverse: ", lines[1])
    assert lines[2].startswith("Plan: ")
    assert repr(stencil).startswith("<Compiled for engine native: (f64[200], f64[200]) -> (f64[]")
    assert stencil.engine == stencil.plan.engine == "native"
    alone = ckad.jit(lambda x: x * 2.0, engine="vm").compiled(1.0)
    assert str(alone).splitlines()[1] == "one run: 1 flops, 24 bytes moved"


# --- counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fun", "args", "n"),
    [
        (lambda x, y: x * y + np.exp(x), (np.ones(10), np.ones(10)), 30),
        (lambda x, y: np.where(x > y, -x, np.abs(y)), (np.ones(10), np.ones(10)), 0),
        (lambda x: np.sum(x), (np.ones((4, 5)),), 19),
        (lambda x: np.sum(x, axis=0), (np.ones((4, 5)),), 15),
        (lambda x: np.cumsum(x), (np.ones(10),), 10),
        (lambda a, b: a @ b, (np.ones((3, 4)), np.ones((4, 5))), 120),
        (lambda a, b: a.T @ b, (np.ones((4, 3)), np.ones((4, 5))), 120),
        (lambda x: np.argmax(x) + 2, (np.ones(10),), 0),
        (lambda x: ckad.fori_loop(0, 7, lambda i, x: x * x, x), (np.ones(10),), 70),
    ],
)
def test_operations_of_a_tape(fun, args, n):
    assert counts.flops(ckad.trace(fun)(*args)) == n


def test_a_fused_op_counts_as_two(stencil):
    fused = ckad.jit(heat, engine="native").compiled(np.ones(N), np.full(N, 0.1))
    plain = ckad.jit(heat, engine="vm").compiled(np.ones(N), np.full(N, 0.1))
    assert fused.flops_per_step == plain.flops_per_step
    assert fused.flops_per_step.primal == 5 * (N - 2)
    assert fused.flops_per_step.reverse == 0
    assert stencil.flops_per_step.primal == 5 * (N - 2)
    assert stencil.flops_per_step.reverse > 5 * (N - 2)


def test_bytes_of_a_stencil(stencil):
    moved = stencil.bytes_per_step
    assert moved.primal == 3 * 8 * N  # u, kappa, and the new u
    assert moved.reverse == 6 * 8 * N  # u, kappa, both cotangents, and these two anew


def test_bytes_of_what_is_in_registers():
    compiled = gradient_of(oscillator, np.ones(2), engine="native")
    assert compiled.bytes_per_step.primal == 0
    assert compiled.bytes_per_step.reverse == compiled.plan.loops[0].residual_bytes


def test_elements_of_xs_and_results_of_steps_count():
    def fun(force):
        _, ys = ckad.scan(lambda c, f: (c + f, c * f), 0.0, force)
        return np.sum(ys)

    compiled = ckad.jit(fun, engine="native").compiled(np.ones(100))
    assert compiled.bytes_per_step.primal == 16


def test_the_loop_with_most_work_is_the_main_one():
    def fun(u, v):
        u = ckad.fori_loop(0, 1000, lambda i, u: u * 0.5, u)
        return np.sum(u) + np.sum(ckad.fori_loop(0, 10, lambda i, v: v * v * v, v))

    compiled = gradient_of(fun, 1.0, np.ones(1000), engine="native")
    assert compiled.flops_per_step.primal == 2000


def test_a_part_changed_in_place_counts_alone():
    def fun(u):
        def step(i, u):
            u[:10] += 1.0
            return u

        return ckad.fori_loop(0, 5, step, u)

    compiled = ckad.jit(fun, engine="native").compiled(np.ones(10_000))
    assert compiled.bytes_per_step.primal < 400


def test_float32_and_the_cells_of_the_vm():
    def fun(u):
        return ckad.fori_loop(0, 5, lambda i, u: np.sin(u), u)

    u = np.ones(100, np.float32)
    assert ckad.jit(fun, engine="native").compiled(u).bytes_per_step.primal == 800
    assert ckad.jit(fun, engine="vm").compiled(u).bytes_per_step.primal == 1600


def test_a_gradient_is_compiled_where_that_pays_for_it_though_not_for_the_value():
    matrices = np.random.default_rng(0).random((1000, 3, 3)) + 3 * np.eye(3)
    determinants = ckad.value_and_grad(lambda a: np.sum(np.linalg.det(a)))
    assert determinants.plan(matrices).engine == "native"
