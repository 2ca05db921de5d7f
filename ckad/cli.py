"""The ``ckad`` command: demo, plan, doctor."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

import llvmlite.binding

from ckad import cache, schedules
from ckad.engines import blas
from ckad.errors import CkadError
from ckad.loops.threads import n_threads
from ckad.machine import compiler
from ckad.memory import parse_bytes

#: Names of OpenBLAS for processors with AVX2 alone.
NARROW = ("Haswell", "Zen")
PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "optree", "tqdm", "matplotlib")
FIGURES = (".pdf", ".png", ".svg")
BAD_INPUT = 2  # exit status
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, without the usage in front of it."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: those of the process); return the exit status.

    Raises:
        SystemExit: with status 2 and one line on stderr, if the arguments cannot be carried out;
            with status 0 after ``--help`` and ``--version``.

    >>> from ckad.cli import main
    >>> main(["plan", "--steps", "1000", "--state-bytes", "1 MB", "--memory", "10 MB"])
    steps             1,000
    slots             10
    forward steps     4,636
    recompute factor  4.636
    checkpoints       10.0 MB of the 10.0 MB given
    trajectory        1.0 GB, if every state were kept
    0
    """
    options = command_line().parse_args(arguments)
    status = INTERRUPTED
    try:
        status = options.run(options)
    except (CkadError, OSError) as error:
        options.fail(" ".join(str(error).split()))
    except KeyboardInterrupt:
        print(f"ckad {options.command}: interrupted", file=sys.stderr)
    return status


def command_line() -> Parser:
    parser = Parser(prog="ckad", description="Exact gradients of long loops, inside a byte budget.")
    parser.add_argument("--version", action="version", version=f"ckad {installed('ckad')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="demo | plan | doctor")
    add_demo(commands)
    add_plan(commands)
    add_doctor(commands)
    return parser


Commands = argparse._SubParsersAction  # argparse gives what add_subparsers returns no public name


def add_demo(commands: Commands[Parser]) -> None:
    text = "Recover the diffusivity of hillslopes from what it does to a real terrain."
    parser = commands.add_parser("demo", help=text, description=text)
    parser.add_argument("--small", action="store_true", help="a corner of the map, in seconds")
    parser.add_argument("--memory", type=byte_count, metavar="BYTES", help="default: 64 MiB")
    parser.add_argument("--iterations", type=count, metavar="N", help="of L-BFGS-B; default: 15")
    figure = "where to write the figure; default: %(default)s"
    parser.add_argument(
        "--output", type=figure_path, default="landscape.png", metavar="PATH", help=figure
    )
    parser.add_argument("--no-progress", action="store_true", help="without the progress bar")
    parser.set_defaults(run=run_demo, fail=parser.error)


def add_plan(commands: Commands[Parser]) -> None:
    text = "What reversing a loop costs, from its length, the size of its state and the memory."
    remark = "ckad.plan(fun, *args) in Python counts the work arrays of a given program as well."
    parser = commands.add_parser("plan", help=text, description=text, epilog=remark)
    parser.add_argument("--steps", type=count, required=True, metavar="N", help="in the loop")
    size = "size of the state that a step carries, as 800000 or '1.1 MB'"
    parser.add_argument("--state-bytes", type=byte_count, required=True, metavar="B", help=size)
    memory = "for the checkpoints, as 67108864 or '64 MiB'"
    parser.add_argument("--memory", type=byte_count, required=True, metavar="M", help=memory)
    parser.set_defaults(run=run_plan, fail=parser.error)


def add_doctor(commands: Commands[Parser]) -> None:
    text = "Versions, processor, threads, compiler and cache: what a bug report needs."
    parser = commands.add_parser("doctor", help=text, description=text)
    parser.set_defaults(run=run_doctor, fail=parser.error)


def run_demo(options: argparse.Namespace) -> int:
    try:
        from ckad import demo
    except ModuleNotFoundError as missing:
        if not str(missing.name).startswith("matplotlib"):
            raise
        options.fail(
            "matplotlib, which brings the terrain and draws the figure, is not installed. "
            "Run: pip install 'ckad[demo]'"
        )
    given = {"memory": options.memory, "iterations": options.iterations}
    settings = demo.SMALL if options.small else demo.Settings()
    settings = settings._replace(**{name: value for name, value in given.items() if value})
    demo.run(settings, options.output, progress=not options.no_progress)
    return 0


def run_plan(options: argparse.Namespace) -> int:
    n_slots = min(options.memory // options.state_bytes, options.steps)
    if n_slots < 1:
        options.fail(
            f"--memory {options.memory} holds no checkpoint of --state-bytes "
            f"{options.state_bytes}. Give at least --memory {options.state_bytes}."
        )
    forward_steps = schedules.forward_steps("revolve", options.steps, n_slots)
    used = readable(n_slots * options.state_bytes)
    print(f"steps             {options.steps:,}")
    print(f"slots             {n_slots:,}")
    print(f"forward steps     {forward_steps:,}")
    print(f"recompute factor  {forward_steps / options.steps:.3f}")
    print(f"checkpoints       {used} of the {readable(options.memory)} given")
    trajectory = readable(options.steps * options.state_bytes)
    print(f"trajectory        {trajectory}, if every state were kept")
    return 0


def run_doctor(options: argparse.Namespace) -> int:
    """Status 1 if the cache cannot be used, or the native engine."""
    print(f"ckad        {installed('ckad')}")
    print(f"python      {platform.python_version()} on {platform.platform()}")
    for package in PACKAGES:
        print(f"{package:<11} {installed(package)}")
    print(f"processor   {llvmlite.binding.get_host_cpu_name()}, {os.cpu_count()} cores")
    print(f"threads     {n_threads(None)}")
    print(f"BLAS        {blas_kernels(llvmlite.binding.get_host_cpu_features())}")
    print(f"cache       {cache.cache_dir()}")
    for kind, prefix in (("kernels", cache.KERNELS), ("programs", cache.PROGRAMS)):
        cached = cache.cache_status([prefix])
        print(f"{kind:<11} {cached.n_files} files, {readable(cached.n_bytes)}")
    faults = [fault for fault in (cache.cache_fault(), native_fault()) if fault]
    for fault in faults:
        print(f"not usable: {fault}")
    return 1 if faults else 0


def blas_kernels(features: Mapping[str, bool]) -> str:
    """Whose kernels BLAS has chosen: an OpenBLAS older than a processor may know half of it."""
    found = blas.made_for()
    if found in NARROW and features.get("avx512f"):
        return (
            f"its kernels for {found}, though this processor has AVX-512: with "
            "OPENBLAS_CORETYPE=SkylakeX in the environment products may take half of the time"
        )
    return f"its kernels for {found}" if found else "unknown"


def native_fault() -> str | None:
    """Try the native engine out, and say how long it took; else what is wrong with it."""
    try:
        seconds = compiler.try_out()
    except Exception as error:  # whatever LLVM, the linker or the system have against it
        return f'the native engine; pass engine="vm". {type(error).__name__}: {error}'
    print(f"native      works, compiled a function in {1000 * seconds:.0f} ms")
    return None


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def readable(n_bytes: int) -> str:
    """Decimal units: the largest of which there is at least one."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} B"


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def byte_count(text: str) -> int:
    try:
        n_bytes = parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if n_bytes < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is {n_bytes} bytes; give at least 1")
    return n_bytes


def figure_path(text: str) -> Path:
    # Now, and not after the minutes that the computation takes.
    path = Path(text)
    if path.suffix not in FIGURES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(FIGURES)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent}")
    return path


if __name__ == "__main__":
    sys.exit(main())
