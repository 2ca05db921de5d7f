"""The table of peers, and what several cases need to build a peer's form.

Every helper imports its peer itself, so that a peer that is not installed costs the others nothing.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.case import Gradient, Inputs, Settings, Value

C_FLAGS = ("-O3", "-march=native", "-ffast-math", "-std=c11")


@dataclass(frozen=True)
class Peer:
    """A contender.

    Parameters
    ----------
    title : str
        Its name in words.
    module : str
        What is imported before the first call is timed.
    distributions : tuple of str
        The distributions whose versions count.
    environment : mapping
        Variables that are set in its processes before the import.
    programs : tuple of str
        Programs of which one must be found; its version is reported.
    """

    title: str
    module: str
    distributions: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()

    def installed(self) -> bool:
        program_found = not self.programs or found_program(self.programs) is not None
        return program_found and find_spec(self.module) is not None


JAX_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
C_COMPILERS = ("gcc", "cc")

PEERS = {
    "ckad": Peer("ckad", "ckad", ("ckad", "numba", "llvmlite")),
    "jax": Peer("JAX", "jax", ("jax", "jaxlib"), JAX_ENVIRONMENT),
    "numba": Peer("Numba, adjoint by hand", "numba", ("numba", "llvmlite")),
    "casadi": Peer("CasADi", "casadi", ("casadi",)),
    "diffrax": Peer("diffrax", "diffrax", ("diffrax", "jax", "jaxlib"), JAX_ENVIRONMENT),
    "torch": Peer("PyTorch", "torch", ("torch",)),
    "c": Peer("C, adjoint by hand", "ctypes", (), programs=C_COMPILERS),
}


def found_program(names: Sequence[str]) -> str | None:
    """The path of the first of these programs that exists."""
    return next(filter(None, map(shutil.which, names)), None)


# ckad --------------------------------------------------------------------------------------------


def ckad_gradient(value: Callable, n_inputs: int, data: Inputs = (), **options: Any) -> Gradient:
    """The gradient of `value(*inputs, *data)` in the inputs; options are ckad's."""
    import ckad

    gradient = ckad.value_and_grad(value, argnums=tuple(range(n_inputs)), **options)
    return lambda arrays: gradient(*arrays, *data)


def ckad_primal(value: Callable, data: Inputs = (), **options: Any) -> Value:
    """The value alone."""
    import ckad

    run = ckad.jit(value, **options)
    return lambda arrays: float(run(*arrays, *data))


def ckad_builders(
    value_of: Callable[[Settings], Callable],
    n_inputs: int,
    data_of: Callable[[Settings], Inputs] = lambda settings: (),
) -> tuple[Callable[..., Gradient], Callable[..., Value]]:
    """A case's builders of its gradient and of its value, which take ckad's options.

    `value_of(settings)` is the function of the inputs, and of what `data_of(settings)` adds.
    """

    def gradient(settings: Settings, **options: Any) -> Gradient:
        return ckad_gradient(value_of(settings), n_inputs, data_of(settings), **options)

    def primal(settings: Settings, **options: Any) -> Value:
        return ckad_primal(value_of(settings), data_of(settings), **options)

    return gradient, primal


# JAX and diffrax ---------------------------------------------------------------------------------


def jax_gradient(jax: Any, value: Callable, n_inputs: int) -> Gradient:
    """The compiled reverse-mode gradient, from and to NumPy arrays."""
    compiled = jax.jit(jax.value_and_grad(value, argnums=tuple(range(n_inputs))))

    def gradient(arrays):
        result, cotangents = jax.block_until_ready(compiled(*arrays))
        return float(result), tuple(np.asarray(cotangent) for cotangent in cotangents)

    return gradient


def jax_nested_scan(
    advance: Callable, start: Any, length: int, levels: int, remat_step: bool, unroll: int = 1
) -> Any:
    """The carry after `length` steps, as one scan or as a scan of checkpointed scans.

    `remat_step` checkpoints each step too: its scan then stores the carry and nothing else.
    """
    import jax

    advance = jax.checkpoint(advance) if remat_step else advance
    if levels == 1:
        return jax.lax.scan(advance, start, None, length=length, unroll=unroll)[0]
    period = max(1, isqrt(length))

    def block(carry, _):
        return jax.lax.scan(advance, carry, None, length=period, unroll=unroll)

    carry, _ = jax.lax.scan(jax.checkpoint(block), start, None, length=length // period)
    return jax.lax.scan(advance, carry, None, length=length % period, unroll=unroll)[0]


def diffrax_rk4(
    velocity: Callable, start: Any, parameters: Any, length: int, h: float, checkpoints: int | None
) -> Any:
    """The state after `length` classical RK4 steps of size `h`; to be traced by JAX.

    `velocity(state, parameters)` is autonomous; states are pytrees. The adjoint is diffrax's
    default, `RecursiveCheckpointAdjoint`, with its default number of checkpoints for None. Time
    counts steps and the velocity is scaled by `h`, so that no rounding of t adds a step.
    """
    import diffrax
    import jax

    def scaled(t, state, parameters):
        return jax.tree.map(lambda slope: h * slope, velocity(state, parameters))

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(scaled),
        classical_rk4(diffrax),
        t0=0.0,
        t1=float(length),
        dt0=1.0,
        y0=start,
        args=parameters,
        saveat=diffrax.SaveAt(t1=True),
        stepsize_controller=diffrax.ConstantStepSize(),
        adjoint=diffrax.RecursiveCheckpointAdjoint(checkpoints=checkpoints),
        max_steps=length,
    )
    return jax.tree.map(lambda leaf: leaf[0], solution.ys)


def classical_rk4(diffrax: Any) -> Any:
    """diffrax has no fixed-step RK4, but takes any explicit Butcher tableau."""

    class ClassicalRK4(diffrax.AbstractERK):
        tableau = diffrax.ButcherTableau(
            a_lower=(np.array([0.5]), np.array([0.0, 0.5]), np.array([0.0, 0.0, 1.0])),
            b_sol=np.array([1.0, 2.0, 2.0, 1.0]) / 6,
            b_error=np.zeros(4),
            c=np.array([0.5, 0.5, 1.0]),
        )
        interpolation_cls = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

        def order(self, terms):
            return 4

    return ClassicalRK4()


# PyTorch -----------------------------------------------------------------------------------------


def torch_gradient(value: Callable) -> Gradient:
    """The gradient of `value(*tensors)`, run eagerly, from and to NumPy arrays; all float64."""
    import torch

    def gradient(arrays):
        tensors = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
        result = value(*tensors)
        result.backward()
        return float(result.detach()), tuple(tensor.grad.numpy() for tensor in tensors)

    return gradient


# CasADi ------------------------------------------------------------------------------------------


CASADI_C = {
    "jit": True,
    "jit_cleanup": False,  # its files go with their directory
    "compiler": "shell",
    "jit_options": {"flags": ["-O3", "-march=native"], "cleanup": False, "verbose": False},
}


def casadi_gradient(
    value: Callable, inputs: Sequence[np.ndarray], through_c: bool = False
) -> Gradient:
    """The reverse-mode gradient of `value(*columns)`, from and to NumPy arrays.

    `value` takes one MX column per input, with the input's elements in C order, and returns a
    1x1 MX. Shapes are those of `inputs`, whose numbers do not matter. `through_c` lets CasADi
    write C and compile it, where a compiler is found, instead of running its own interpreter.
    """
    import casadi

    columns = [casadi.MX.sym(f"x{i}", array.size) for i, array in enumerate(inputs)]
    result = value(*columns)
    outputs = [result, *(casadi.gradient(result, column) for column in columns)]
    with TemporaryDirectory() as directory, chdir(directory):  # CasADi's C files land here
        compiled = casadi.Function("gradient", columns, outputs, CASADI_C if through_c else {})

    def gradient(arrays):
        result, *cotangents = compiled(*(array.ravel() for array in arrays))
        shapes = [array.shape for array in arrays]
        pairs = zip(cotangents, shapes, strict=True)
        return float(result), tuple(np.array(ct, order="C").reshape(shape) for ct, shape in pairs)

    return gradient


def casadi_loop(
    advance: Callable, state: Any, constants: Any, length: int, base: int, symbol: str = "SX"
) -> Any:
    """The state column after `length` steps of `advance(state, constants)`, by `mapaccum`.

    `advance` takes and returns columns of CasADi scalars (`symbol="MX"`: of whole matrices), and is
    expanded once. `mapaccum` nests unrolled loops of at most `base` iterations: a small base
    keeps little and computes again at each level, a large one keeps more and builds longer.
    """
    import casadi

    kind = getattr(casadi, symbol)
    inner = kind.sym("state", *state.shape), kind.sym("constants", *constants.shape)
    step = casadi.Function("step", inner, [advance(*inner), inner[1]])
    loop = step.mapaccum("loop", length, 2, {"base": base})
    return loop(state, constants)[0][:, -1]


# C -----------------------------------------------------------------------------------------------


def compile_c(source: str, flags: Sequence[str] = C_FLAGS) -> ctypes.CDLL:
    """The functions of a C source text, built by the machine's compiler and loaded.

    Arguments are declared by the caller, for instance
    ``library.f.argtypes = [np.ctypeslib.ndpointer(np.float64, flags="C"), ctypes.c_int64]``.
    """
    compiler = found_program(C_COMPILERS)
    if compiler is None:
        raise RuntimeError(f"no C compiler was found; there has to be {' or '.join(C_COMPILERS)}.")
    with TemporaryDirectory() as directory:
        text, library = Path(directory, "case.c"), Path(directory, "case.so")
        text.write_text(source)
        command = [compiler, *flags, "-shared", "-fPIC", str(text), "-o", str(library), "-lm"]
        finished = subprocess.run(command, capture_output=True, text=True)
        if finished.returncode:
            raise RuntimeError(f"{Path(compiler).name} failed: {finished.stderr.strip()}")
        return ctypes.CDLL(str(library))  # stays mapped when the file is gone
