"""`python -m benchmarks list | compare | table`; see benchmarks/README.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.case import Case, Settings
from benchmarks.cases import CASES
from benchmarks.compare import Timing, compare, faults
from benchmarks.peers import PEERS
from benchmarks.report import markdown


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(required=True)
    commands.add_parser("list", help="the cases, their settings and forms").set_defaults(run=show)
    run = commands.add_parser("compare", help="run peers on the same work, in turn")
    run.set_defaults(run=run_compare)
    run.add_argument("--cases", type=names, default=list(CASES), help="default: all of them")
    run.add_argument("--peers", type=names, default=list(PEERS), help="default: all of them")
    run.add_argument("--json", type=Path, help="write the report here too")
    run.add_argument("--tiny", action="store_true", help="the sizes of the tests")
    run.add_argument(
        "--set", nargs="+", default=[], metavar="CASE.KEY=VALUE", help="change single settings"
    )
    run.add_argument("--rounds", type=int, default=Timing.rounds, help="turns per peer")
    run.add_argument("--turn", type=float, default=Timing.turn_seconds, help="seconds of a turn")
    run.add_argument("--forms", action="store_true", help="print every form, not only the best")
    run.add_argument(
        "--first-form",
        action="store_true",
        help="only the first form of each peer: quick",
    )
    table = commands.add_parser("table", help="a report as Markdown")
    table.add_argument("report", type=Path)
    table.add_argument("--forms", action="store_true")
    table.set_defaults(run=print_table)
    return top


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def show(options: argparse.Namespace) -> int:
    for case in CASES.values():
        defaults = ", ".join(f"{key}={value:g}" for key, value in case.defaults.items())
        print(f"{case.name} ({defaults}): {case.title}")
        for peer, forms in case.forms.items():
            missing = "" if PEERS[peer].installed() else " (not installed)"
            print(f"    {peer}{missing}: {'; '.join(forms)}")
    return 0


def run_compare(options: argparse.Namespace) -> int:
    cases = [pick(CASES, name, "case") for name in options.cases]
    for peer in options.peers:
        pick(PEERS, peer, "peer")
    if options.rounds < 1:
        raise ValueError(f"--rounds {options.rounds} times nothing; give at least 1.")
    settings = chosen_settings(cases, options.tiny, options.set)
    timing = Timing(options.rounds, options.turn, first_form_only=options.first_form)
    report = compare(cases, options.peers, settings, timing)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(markdown(report, options.forms))
    for fault in faults(report):
        print(fault, file=sys.stderr)
    return 1 if faults(report) else 0


def pick(choices: dict, name: str, kind: str):
    if name not in choices:
        raise ValueError(f"no {kind} is called {name!r}; there are {', '.join(choices)}.")
    return choices[name]


def chosen_settings(
    cases: Sequence[Case], tiny: bool, changes: Sequence[str]
) -> dict[str, Settings]:
    settings = {case.name: dict(case.tiny if tiny else case.defaults) for case in cases}
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


def print_table(options: argparse.Namespace) -> int:
    print(markdown(json.loads(options.report.read_text()), options.forms))
    return 0


if __name__ == "__main__":
    sys.exit(main())
