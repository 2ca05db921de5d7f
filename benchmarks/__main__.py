"""The benchmarks' command line; benchmarks/README.md says what its commands measure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    arrays,
    budgets,
    derivatives,
    disk,
    driver,
    latency,
    loops,
    ratio,
    report,
    scaling,
    spectra,
    targets,
    wild,
)
from benchmarks.case import Case, Settings
from benchmarks.cases import CASES
from benchmarks.compare import Timing, compare, faults
from benchmarks.peers import PEERS
from benchmarks.worker import FormError

TABLES = {
    "compare": report.markdown,
    "scaling": scaling.markdown,
    "ratio": ratio.markdown,
    "latency": latency.markdown,
    "loops": loops.markdown,
    "wild": wild.markdown,
    "arrays": arrays.markdown,
    "spectra": spectra.markdown,
    "disk": disk.markdown,
    "budgets": budgets.markdown,
    "derivatives": derivatives.markdown,
    "driver": driver.markdown,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ValueError, FormError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


# The command line --------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(required=True)
    commands.add_parser("list", help="the cases, their settings and forms").set_defaults(run=show)
    add_compare(commands)
    add_scaling(commands)
    add_ratio(commands)
    add_latency(commands)
    add_loops(commands)
    add_wild(commands)
    add_arrays(commands)
    add_spectra(commands)
    add_derivatives(commands)
    add_disk(commands)
    add_budgets(commands)
    add_driver(commands)
    table = commands.add_parser("table", help="a report as Markdown, or as pictures")
    table.add_argument("report", type=Path)
    table.add_argument("--forms", action="store_true", help="with every form of a comparison")
    table.add_argument("--plots", type=Path, metavar="DIRECTORY", help="draw it there too")
    table.set_defaults(run=print_table)
    aims = commands.add_parser("targets", help="what ckad sets itself, beside what was measured")
    aims.add_argument("reports", type=Path, nargs="+")
    aims.set_defaults(run=print_targets)
    return top


def add_compare(commands: Any) -> None:
    run = commands.add_parser("compare", help="run peers on the same work, in turn")
    run.set_defaults(run=run_compare)
    add_cases(run)
    run.add_argument("--peers", type=names, default=list(PEERS), help="default: all of them")
    run.add_argument(
        "--first-form", action="store_true", help="only the first form of each peer: quick"
    )
    run.add_argument("--value", action="store_true", help="time ckad's value alone, too")
    add_timing(run)
    add_processor(run)
    add_output(run)


def add_scaling(commands: Any) -> None:
    run = commands.add_parser("scaling", help="ckad's time against steps, cells and memory")
    run.set_defaults(run=run_scaling)
    run.add_argument(
        "--only", type=names, default=list(scaling.PARTS), help=", ".join(scaling.PARTS)
    )
    run.add_argument("--memory", help="a budget for the points along steps and cells")
    add_engine(run)
    add_timing(run, rounds=3)
    add_output(run)


def add_ratio(commands: Any) -> None:
    run = commands.add_parser("ratio", help="ckad's gradient in units of the value alone")
    run.set_defaults(run=run_ratio)
    add_cases(run)
    add_engine(run)
    add_timing(run)
    add_processor(run)
    add_output(run)


def add_latency(commands: Any) -> None:
    run = commands.add_parser("latency", help="first gradients, compile time, call overhead")
    run.set_defaults(run=run_latency)
    add_engine(run)
    run.add_argument("--rounds", type=int, default=latency.Extent.rounds, help="new programs")
    run.add_argument("--tiny", action="store_true", help="the sizes of the tests")
    add_output(run)


def add_loops(commands: Any) -> None:
    run = commands.add_parser("loops", help="loops over elements in units of @njit")
    run.set_defaults(run=run_loops)
    run.add_argument("--programs", type=names, default=list(loops.PROGRAMS), help="default: all")
    run.add_argument("--threads", type=int, default=1, help="of ckad (default: 1, as njit)")
    add_engine(run)
    add_timing(run)
    add_output(run)


def add_wild(commands: Any) -> None:
    run = commands.add_parser("wild", help="programs as they are found, in units of NumPy's run")
    run.set_defaults(run=run_wild)
    run.add_argument("--programs", type=names, help="default: all of tests/wild")
    add_timing(run)
    add_output(run)


def add_arrays(commands: Any) -> None:
    run = commands.add_parser("arrays", help="tests/programs on larger arrays: gradient / value")
    run.set_defaults(run=run_arrays)
    run.add_argument("--programs", type=names, help="default: all that take arrays")
    add_timing(run)
    add_output(run)


def add_spectra(commands: Any) -> None:
    run = commands.add_parser("spectra", help="spectral codes in units of NumPy, SciPy and JAX")
    run.set_defaults(run=run_spectra)
    add_cases(run, [name for name, case in CASES.items() if case.bases])
    add_timing(run)
    add_processor(run)
    add_output(run)


def add_derivatives(commands: Any) -> None:
    run = commands.add_parser("derivatives", help="sparse Jacobians, Hessian products")
    run.set_defaults(run=run_derivatives)
    run.add_argument("--tiny", action="store_true", help="the sizes of the tests")
    run.add_argument("--rounds", type=int, default=31)
    add_output(run)


def add_disk(commands: Any) -> None:
    run = commands.add_parser("disk", help="checkpoints on disk: bytes per second, what is hidden")
    run.set_defaults(run=run_disk)
    run.add_argument("--directory", type=Path, help="default: the system's temporary one")
    run.add_argument("--mib", type=float, default=16.0, help="size of a state")
    run.add_argument("--slots", type=int, default=16)
    run.add_argument("--rounds", type=int, default=5)
    add_output(run)


def add_budgets(commands: Any) -> None:
    run = commands.add_parser("budgets", help="memory and time as planned, and as they are")
    run.set_defaults(run=run_budgets)
    run.add_argument("--programs", type=names, default=list(budgets.PROGRAMS), help="default: all")
    run.add_argument("--points", type=int, default=4, help="budgets, the least and the most too")
    run.add_argument("--rounds", type=int, default=5)
    run.add_argument("--threads", type=int, default=1)
    run.add_argument("--directory", type=Path, help="default: the system's temporary one")
    run.add_argument("--tiny", action="store_true", help="the sizes of the tests")
    add_output(run)


def add_driver(commands: Any) -> None:
    run = commands.add_parser("driver", help="what schedules cost beside steps; revolve by hand")
    run.set_defaults(run=run_driver)
    run.add_argument("--steps", type=int, default=10_000)
    run.add_argument("--cells", type=int, default=100)
    run.add_argument("--slots", type=int, default=20)
    run.add_argument("--rounds", type=int, default=9)
    add_output(run)


def add_cases(run: argparse.ArgumentParser, every: Sequence[str] = tuple(CASES)) -> None:
    run.add_argument("--cases", type=names, default=list(every), help="default: all of them")
    run.add_argument(
        "--set", nargs="+", default=[], metavar="CASE.KEY=VALUE", help="change single settings"
    )


def add_engine(run: argparse.ArgumentParser) -> None:
    run.add_argument("--engine", default="auto", help="ckad's engine= (default: auto)")


def add_timing(run: argparse.ArgumentParser, rounds: int = Timing.rounds) -> None:
    run.add_argument("--tiny", action="store_true", help="the sizes of the tests")
    run.add_argument("--rounds", type=int, default=rounds, help="turns per peer or point")
    run.add_argument("--turn", type=float, default=Timing.turn_seconds, help="seconds of a turn")
    run.add_argument(
        "--limit", type=float, default=Timing.limit_seconds, help="seconds after which it gives up"
    )


def add_processor(run: argparse.ArgumentParser) -> None:
    text = "count seconds of processors, on a busy machine"
    run.add_argument("--processor", action="store_true", help=text)


def add_output(run: argparse.ArgumentParser) -> None:
    run.add_argument("--json", type=Path, help="write the report here")
    run.add_argument("--markdown", type=Path, help="write the tables here")
    run.add_argument("--plots", type=Path, metavar="DIRECTORY", help="draw the report there")
    run.add_argument("--forms", action="store_true", help="show every form of a comparison")


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


# The commands ------------------------------------------------------------------------------------


def show(options: argparse.Namespace) -> int:
    for case in CASES.values():
        print(f"{case.name} ({report.settings_text(case.defaults)}): {case.title}")
        for peer, forms in case.forms.items():
            missing = "" if PEERS[peer].installed() else " (not installed)"
            print(f"    {peer}{missing}: {'; '.join(forms)}")
    return 0


def run_compare(options: argparse.Namespace) -> int:
    cases = [pick(CASES, name, "case") for name in options.cases]
    for peer in options.peers:
        pick(PEERS, peer, "peer")
    settings = chosen_settings(cases, options.tiny, options.set)
    record = compare(cases, options.peers, settings, timing_of(options))
    write(record, options)
    for fault in faults(record):
        print(fault, file=sys.stderr)
    return 1 if faults(record) else 0


def run_scaling(options: argparse.Namespace) -> int:
    for part in options.only:
        pick(dict.fromkeys(scaling.PARTS), part, "part")
    chosen = {"engine": options.engine, "memory": options.memory}
    write(scaling.scaling(options.only, options.tiny, timing_of(options), chosen), options)
    return 0


def run_ratio(options: argparse.Namespace) -> int:
    cases = [pick(CASES, name, "case") for name in options.cases]
    settings = chosen_settings(cases, options.tiny, options.set, in_cache=True)
    record = ratio.ratio(cases, settings, timing_of(options), {"engine": options.engine})
    write(record, options)
    return 1 if any("error" in case for case in record["cases"].values()) else 0


def run_latency(options: argparse.Namespace) -> int:
    check_rounds(options.rounds)
    extent = latency.TINY if options.tiny else latency.Extent(options.rounds)
    write(latency.latency(extent, options.engine), options)
    return 0


def run_loops(options: argparse.Namespace) -> int:
    for name in options.programs:
        pick(loops.PROGRAMS, name, "program")
    chosen = {"engine": options.engine, "threads": options.threads}
    write(loops.loops(options.programs, options.tiny, timing_of(options), chosen), options)
    return 0


def run_wild(options: argparse.Namespace) -> int:
    known = wild.programs()
    for name in options.programs or ():
        pick(known, name, "program")
    write(wild.wild(options.programs or list(known), options.tiny, timing_of(options)), options)
    return 0


def run_arrays(options: argparse.Namespace) -> int:
    known = dict.fromkeys(arrays.programs())
    for name in options.programs or ():
        pick(known, name, "program")
    chosen = options.programs or list(known)
    write(arrays.arrays(chosen, options.tiny, timing_of(options)), options)
    return 0


def run_spectra(options: argparse.Namespace) -> int:
    cases = [pick(CASES, name, "case") for name in options.cases]
    settings = chosen_settings(cases, options.tiny, options.set)
    record = spectra.spectra(cases, settings, timing_of(options))
    write(record, options)
    return 1 if any("error" in case for case in record["cases"].values()) else 0


def run_derivatives(options: argparse.Namespace) -> int:
    check_rounds(options.rounds)
    write(derivatives.derivatives(options.tiny, options.rounds), options)
    return 0


def run_disk(options: argparse.Namespace) -> int:
    n_bytes = int(options.mib * 2**20)
    write(disk.disk(options.directory, n_bytes, options.slots, options.rounds), options)
    return 0


def run_budgets(options: argparse.Namespace) -> int:
    check_rounds(options.rounds)
    for name in options.programs:
        pick(budgets.PROGRAMS, name, "program")
    rest = options.rounds, options.directory, options.threads, options.tiny
    write(budgets.budgets(options.programs, options.points, *rest), options)
    return 0


def run_driver(options: argparse.Namespace) -> int:
    check_rounds(options.rounds)
    sizes = options.steps, options.cells, options.slots
    write(driver.driver(*sizes, options.rounds), options)
    return 0


def print_table(options: argparse.Namespace) -> int:
    options.json = options.markdown = None
    write(json.loads(options.report.read_text()), options)
    return 0


def print_targets(options: argparse.Namespace) -> int:
    print(targets.markdown([json.loads(path.read_text()) for path in options.reports]))
    return 0


# What they share ---------------------------------------------------------------------------------


def write(record: Mapping[str, Any], options: argparse.Namespace) -> None:
    """The report as JSON, as tables on the screen and in a file, and as pictures."""
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    every_form = {"every_form": True} if options.forms and record["kind"] == "compare" else {}
    tables = TABLES[record["kind"]](record, **every_form)
    print(tables)
    if options.markdown:
        options.markdown.write_text(tables)
    if options.plots:
        from benchmarks.plots import draw  # matplotlib may be absent where nothing is drawn

        draw(record, options.plots)


def timing_of(options: argparse.Namespace) -> Timing:
    check_rounds(options.rounds)
    first_form_only = getattr(options, "first_form", False)
    return Timing(
        options.rounds,
        options.turn,
        limit_seconds=options.limit,
        first_form_only=first_form_only,
        with_value=getattr(options, "value", False),
        processor=getattr(options, "processor", False),
    )


def check_rounds(rounds: int) -> None:
    if rounds < 1:
        raise ValueError(f"--rounds {rounds} times nothing; give at least 1.")


def pick(choices: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in choices:
        raise ValueError(f"no {kind} is called {name!r}; there are {', '.join(choices)}.")
    return choices[name]


def chosen_settings(
    cases: Sequence[Case], tiny: bool, changes: Sequence[str], in_cache: bool = False
) -> dict[str, Settings]:
    settings = {case.name: start_settings(case, tiny, in_cache) for case in cases}
    for change in changes:
        name, _, value = change.partition("=")
        case, _, key = name.partition(".")
        if key not in settings.get(case, {}):
            known = ", ".join(f"{c}.{k}" for c, keys in settings.items() for k in keys)
            raise ValueError(f"--set {change}: no such setting; there are {known}.")
        try:
            settings[case][key] = type(settings[case][key])(value)
        except ValueError:
            raise ValueError(f"--set {change}: {value!r} is not a number of its kind.") from None
    return dict(settings)


def start_settings(case: Case, tiny: bool, in_cache: bool) -> dict[str, float]:
    if tiny:
        return dict(case.tiny)
    return {**case.defaults, **case.cache_settings} if in_cache else dict(case.defaults)


if __name__ == "__main__":
    sys.exit(main())
