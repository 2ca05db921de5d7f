"""The benchmarks run, agree and report: tiny sizes, so no figure here means anything."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ckad.kernel import cache_dir

ROOT = Path(__file__).parents[1]
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("benchmarks are not part of the wheel", allow_module_level=True)

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT)
    from benchmarks import disk, latency, scaling, targets
    from benchmarks.__main__ import main
    from benchmarks.case import PRIMAL
    from benchmarks.cases import CASES
    from benchmarks.compare import Probe, Timing, agrees, largest_disagreement, summarise
    from benchmarks.fit import exponent
    from benchmarks.machine import program_version
    from benchmarks.peers import PEERS, Peer
    from benchmarks.report import shortened, size

zip_all = partial(zip, strict=True)
QUICK = ("--tiny", "--rounds", "2", "--turn", "0.001")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that only reads says, without a process of its own."""
    assert main(arguments) == 0
    return capsys.readouterr().out


def compare(path: Path, cases: str, peers: str, *more: str) -> subprocess.CompletedProcess[str]:
    return run("compare", "--cases", cases, "--peers", peers, "--json", str(path), *QUICK, *more)


# Cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_complete(name):
    case = CASES[name]
    assert case.name == name
    assert set(case.forms) <= set(PEERS)
    assert set(case.defaults) == set(case.tiny)
    for changes in (case.cache_settings, *case.shorter.values()):
        assert set(changes) <= set(case.defaults)
    assert set(case.shorter) <= set(case.forms)
    assert case.steps(case.tiny) >= 1
    assert case.cells(case.tiny) >= 1


@pytest.mark.parametrize("name", CASES)
def test_ckads_gradient_is_the_values_slope(name):
    case = CASES[name]
    # also of a case on float32: differences need the digits
    inputs = tuple(np.asarray(x, np.float64) for x in case.inputs(case.tiny))
    form = case.builder("ckad", case.first_form("ckad"))(case.tiny, engine="vm")
    found, gradient = form(inputs)
    assert [g.shape for g in gradient] == [x.shape for x in inputs]

    # Towards the gradient, so that nothing cancels.
    directions = [g / np.linalg.norm(g) * np.linalg.norm(x) for g, x in zip_all(gradient, inputs)]
    along = sum(float(np.vdot(g, d)) for g, d in zip_all(gradient, directions))

    def value(h):
        return form(tuple(x + h * d for x, d in zip_all(inputs, directions)))[0]

    h = 3e-6  # small: some of these systems are chaotic
    slope = (value(-2 * h) - 8 * value(-h) + 8 * value(h) - value(2 * h)) / (12 * h)
    assert along == pytest.approx(slope, rel=1e-5)
    if case.primal is not None:
        assert case.builder("ckad", PRIMAL)(case.tiny)(inputs) == pytest.approx(found, rel=1e-12)


# compare -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("benchmarks") / "out.json"
    return compare(path, "lorenz63,gray_scott", "ckad,numba", "--first-form"), path


def test_compare_succeeds(finished):
    process, _ = finished
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("case", ["lorenz63", "gray_scott"])
def test_json_holds_the_figures(finished, case):
    report = json.loads(finished[1].read_text())
    record = report["cases"][case]
    assert record["disagreement"]["relative"] <= record["tolerance"] == 1e-8
    assert set(record["peers"]) == {"ckad", "numba"}
    for figures in record["peers"].values():
        assert 0 < figures["min_seconds"] <= figures["median_seconds"] <= figures["max_seconds"]
        assert figures["first_seconds"] > 0
        assert len(figures["turns"]) == 2
        per_step = figures["median_seconds"] / record["steps"] * 1e9
        assert figures["ns_per_step"] == pytest.approx(per_step)
        assert figures["ns_per_cell_step"] == pytest.approx(per_step / record["cells"])
    assert record["peers"]["ckad"]["ratio_to_ckad"] == 1.0


def test_json_holds_machine_and_versions(finished):
    report = json.loads(finished[1].read_text())
    assert report["machine"]["cpu"]
    assert report["machine"]["cores"] >= 1
    assert {"numpy", "numba", "llvmlite", "ckad"} <= set(report["versions"])
    assert str(ROOT) not in json.dumps(report)


def test_table_is_markdown(finished, capsys):
    text = printed(capsys, "table", str(finished[1]))
    assert "| ckad " in text
    assert "**gray_scott** (size=12, n_steps=10)" in text


@pytest.mark.slow
def test_peers_agree_with_the_adjoint_by_hand(tmp_path):
    path = tmp_path / "out.json"
    others = ("jax", "casadi", "torch")
    process = compare(path, "lorenz63", ",".join(("numba", *others)), "--first-form")
    assert process.returncode == 0, process.stderr
    report = json.loads(path.read_text())
    record = report["cases"]["lorenz63"]
    assert set(record["peers"]) | set(report["skipped"]) == {"numba", *others}
    assert all("error" not in f for forms in record["forms"].values() for f in forms.values())
    assert record["peers"]["numba"]["ratio_to_ckad"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_form_agrees(tmp_path, name):
    process = compare(tmp_path / "out.json", name, ",".join(PEERS))
    assert process.returncode == 0, process.stderr
    report = json.loads((tmp_path / "out.json").read_text())
    forms = report["cases"][name]["forms"]
    errors = {
        f"{p}: {f}": r["error"] for p, fs in forms.items() for f, r in fs.items() if "error" in r
    }
    assert not errors


def test_a_shortened_peer_is_checked_at_its_own_size(tmp_path, monkeypatch):
    """A peer with a limit runs at it, and a witness of the other peer's runs there too."""
    from benchmarks import compare as module

    case = CASES["lorenz63"]
    assert case.settings_of("torch", case.defaults)["n_steps"] == 1000
    assert case.settings_of("torch", case.tiny) == case.tiny
    asked = []

    class Recorded:
        def __init__(self, case, peer, form, settings, **_):
            self.steps = settings["n_steps"]
            asked.append((peer, self.steps))

        def ask(self, command, *_):
            answers = {"first": {}, "result": (1.0, (np.array([float(self.steps)]),))}
            return answers.get(command, 2.0)

        def close(self):
            pass

    monkeypatch.setattr(module, "Worker", Recorded)
    timing = module.Timing(rounds=1, first_form_only=True)
    record = module.compare_case(case, ["numba", "torch"], case.defaults, timing)
    assert asked == [("numba", 1_000_000), ("torch", 1000), ("numba", 1000)]
    assert record["disagreement"]["relative"] == 0.0
    assert record["peers"]["torch"]["ns_per_step"] == 2e9 / 1000


def test_forms_that_are_always_timed_keep_their_process(monkeypatch):
    from benchmarks import compare as module

    monkeypatch.setattr(module, "close", lambda probe: closed.append(probe.form))
    closed: list[str] = []
    best: dict[str, Probe] = {}
    for form, seconds in (("auto", 3.0), ("1 MiB", 2.0), ("two-level", 1.0), ("vm", 4.0)):
        candidate = Probe("ckad", form, figures={"probe_seconds": seconds})
        module.keep(best, candidate, also=("1 MiB",))
    assert {name: probe.form for name, probe in best.items()} == {
        "ckad": "two-level",
        "ckad, 1 MiB": "1 MiB",
    }
    assert closed == ["auto", "vm"]


def test_ratios_are_those_per_cell_and_step():
    case = CASES["lorenz63"]
    best = {
        "ckad": Probe("ckad", "a", {"n_steps": 1000, "horizon": 1.0}),
        "torch": Probe("torch", "b", {"n_steps": 10, "horizon": 1.0}),
    }
    figures = summarise(case, best, {"ckad": [1.0], "torch": [1.0]})
    assert figures["ckad"]["ratio_to_ckad"] == 1.0
    assert figures["torch"]["ratio_to_ckad"] == pytest.approx(100.0)
    assert shortened({"n": 10, "size": 2}, {"n": 1000, "size": 2}) == " (only n=10)"
    assert shortened({"n": 10}, {"n": 10}) == ""


def test_pictures_and_tables_are_written(finished, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert "| ckad " in printed(capsys, "table", str(finished[1]), "--plots", str(tmp_path))
    assert (tmp_path / "speed_up.png").stat().st_size > 0


# scaling, ratio, latency -------------------------------------------------------------------------


@pytest.mark.slow
def test_scaling_measures_a_budget(tmp_path):
    pytest.importorskip("matplotlib")
    files = "--json", str(tmp_path / "s.json"), "--markdown", str(tmp_path / "s.md")
    quick = "--tiny", "--rounds", "1", "--turn", "0.001", "--plots", str(tmp_path)
    process = run("scaling", "--only", "budget", *files, *quick)
    assert process.returncode == 0, process.stderr
    record = json.loads((tmp_path / "s.json").read_text())
    budgets = [point["budget"] for point in record["budget"]["points"]]
    assert budgets[0] == record["budget"]["minimum"] <= budgets[-1]
    assert "**budget**, gray_scott" in (tmp_path / "s.md").read_text()
    assert [p.stem for p in tmp_path.glob("*.png")] == ["time_against_memory"]


@pytest.mark.parametrize("name", scaling.AXES)
def test_scaling_finds_exponents(tmp_path, monkeypatch, name):
    """With 2 ms for every call and 1 ns per cell and step, the work alone is linear."""
    pytest.importorskip("matplotlib")
    from benchmarks.plots import draw

    def measured(case, settings, *_):
        return {"call_seconds": 2e-3 + 1e-9 * work(CASES[case], settings)}

    def work(case, settings):
        least = settings in [axis.least for axis in scaling.AXES.values()]
        return 0 if least else case.steps(settings) * case.cells(settings)

    monkeypatch.setattr(scaling, "measured", measured)
    record = scaling.scaling([name], False, Timing(), {})
    axis = record["axes"][name]
    assert axis["overhead_seconds"] == 2e-3
    assert axis["exponent_of_work"] == pytest.approx(1.0)
    assert axis["exponent"] < 1.0
    assert f"**{name}**" in scaling.markdown(record)
    assert [path.stem for path in draw(record, tmp_path)] == [f"time_against_{name}"]


@pytest.mark.slow
def test_ratio_divides_by_the_value(tmp_path):
    process = run("ratio", "--cases", "lorenz63", *QUICK, "--json", str(tmp_path / "r.json"))
    assert process.returncode == 0, process.stderr
    case = json.loads((tmp_path / "r.json").read_text())["cases"]["lorenz63"]
    assert case["ratio"] == pytest.approx(case["gradient_seconds"] / case["value_seconds"])


@pytest.mark.slow
def test_spectral_codes_are_held_against_numpy_and_scipy(tmp_path):
    path = tmp_path / "s.json"
    process = run("spectra", "--cases", "kdv-256", *QUICK, "--json", str(path))
    assert process.returncode == 0, process.stderr
    case = json.loads(path.read_text())["cases"]["kdv-256"]
    assert all(case[kind] > 0 for kind in ("NumPy", "SciPy", "value", "gradient"))
    assert f"{case['gradient'] / case['NumPy']:.2f}" in process.stdout


@pytest.mark.slow
def test_programs_as_they_are_found_are_held_against_numpy(tmp_path):
    chosen = "life.mackey_glass,life.gray_scott_structured"
    path = str(tmp_path / "w.json")
    process = run("wild", "--programs", chosen, *QUICK, "--limit", "500", "--json", path)
    assert process.returncode == 0, process.stderr
    found = json.loads(Path(path).read_text())["programs"]
    assert found["life.mackey_glass"]["ratio"] > 0
    assert found["life.mackey_glass"]["compile"] > 0
    assert found["life.gray_scott_structured"]["ratio"] > 0
    assert "2 of 2 programs are taken" in process.stdout


def test_gradients_of_array_programs_are_held_against_their_values(tmp_path):
    chosen, path = "linear_algebra.durbin,stencils.jacobi_2d", str(tmp_path / "a.json")
    process = run("arrays", "--programs", chosen, *QUICK, "--limit", "500", "--json", path)
    assert process.returncode == 0, process.stderr
    found = json.loads(Path(path).read_text())["programs"]
    assert found["linear_algebra.durbin"]["size"] == 8
    assert found["stencils.jacobi_2d"]["size"] == 49
    assert "2 of 2 programs ran" in process.stdout


def test_loops_are_held_against_njit(tmp_path):
    quick = ["--tiny", "--rounds", "1", "--turn", "0.001"]
    process = run("loops", "--programs", "thomas,lu", *quick, "--json", str(tmp_path / "l.json"))
    assert process.returncode == 0, process.stderr
    programs = json.loads((tmp_path / "l.json").read_text())["programs"]
    assert set(programs) == {"thomas", "lu"}
    assert all(found["gradient"] > 0 for found in programs.values())


def test_programs_of_latency_run():
    for name in latency.FIRST_GRADIENTS:
        figures = latency.run_program(name, (latency.new_number(), "auto"), cache_dir())
        assert figures["total_seconds"] > figures["first_seconds"] > 0
    times = latency.compile_times(cache_dir(), "vm", latency.TINY)
    assert [point["n_ops"] for point in times["points"]] == [41, 81]
    assert latency.run_program("call_overhead", ("vm", 1, 3), cache_dir())["seconds"] > 0
    assert "vm" in latency.known_engines()


@pytest.mark.slow
def test_latency_begins_with_an_empty_cache(tmp_path):
    process = run("latency", "--tiny", "--engine", "vm", "--json", str(tmp_path / "l.json"))
    assert process.returncode == 0, process.stderr
    record = json.loads((tmp_path / "l.json").read_text())
    for moments in record["first_gradient"].values():
        assert not moments["seen before"]["said"]
    assert str(ROOT) not in json.dumps(record)


def test_an_exponent_is_a_slope_in_the_logarithm():
    assert exponent([1, 10, 100], [2e-3, 2e-1, 2e1]) == pytest.approx(2.0)
    assert exponent([10], [1.0]) is None


# Targets -----------------------------------------------------------------------------------------


def test_targets_are_looked_up_in_the_reports():
    rows = {"ckad": ("auto", 2.0), "ckad, 1 MiB": ("1 MiB", 4.0), "jax": ("scan", 300.0)}
    peers = {name: {"form": form, "ns_per_cell_step": ns} for name, (form, ns) in rows.items()}
    report = {"kind": "compare", "cases": {"lorenz63": {"peers": peers}}}
    older = {"kind": "scaling", "axes": {"steps": {"exponent": 1.2}}}
    text = targets.markdown([older, report])
    assert re.search(r"lorenz63, 1 MiB: JAX's best form / ckad +\| ≥ 50 +\| 75 +\| yes", text)
    assert re.search(r"exponent along steps +\| 0.9 to 1.1 +\| 1.2 +\| no", text)
    assert re.search(r"lorenz96: JAX / ckad +\| ≥ 10 +\| not measured", text)


def test_the_fastest_form_stands_for_itself():
    peers = {"ckad": {"form": "1 MiB", "ns_per_cell_step": 3.0}}
    report = {"cases": {"lorenz63": {"peers": peers}}}
    assert targets.seconds(report, "lorenz63", "ckad, 1 MiB") == 3.0


def test_targets_name_cases_that_exist():
    named = {target.text.partition(":")[0].partition(",")[0] for target in targets.TARGETS}
    known = {name for name in named if "exponent" not in name and " " not in name}
    assert known <= set(CASES)


# Peers and arguments -----------------------------------------------------------------------------


def test_a_peer_needs_its_module_and_one_of_its_programs():
    assert Peer("", "json", ()).installed()
    assert not Peer("", "no_such_module", ()).installed()
    assert not Peer("", "json", (), programs=("no-such-program",)).installed()
    assert "/" not in program_version(sys.executable)


def test_sizes_have_units():
    assert [size(n) for n in (None, 45_000, 2_400_000)] == ["not known", "45 kB", "2.4 MB"]


def test_list_names_every_case(capsys):
    text = printed(capsys, "list")
    assert "lorenz63" in text
    assert "gray_scott" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cases", "lorentz"), "no case is called 'lorentz'"),
        (("--peers", "torch7"), "no peer is called 'torch7'"),
        (("--set", "lorenz63.steps=3"), "there are lorenz63.n_steps"),
        (("--set", "lorenz63.n_steps=x"), "not a number"),
        (("--rounds", "0"), "at least 1"),
    ],
)
def test_a_wrong_argument_is_explained(arguments, message, capsys):
    assert main(["compare", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_gradients_that_differ_are_not_timed():
    right = Probe("numba", "a", gradient=(np.array([1.0, 2.0]),))
    wrong = Probe("ckad", "b", gradient=(np.array([1.0, 2.0 * (1 + 1e-7)]),))
    assert agrees(largest_disagreement([right, right]), 1e-8)
    assert not agrees(largest_disagreement([right, wrong]), 1e-8)
    not_a_number = Probe("ckad", "b", gradient=(np.array([1.0, np.nan]),))
    assert not agrees(largest_disagreement([right, not_a_number]), 1e-8)


# Checkpoints on disk -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_disk_is_measured(tmp_path: Path) -> None:
    record = disk.disk(tmp_path, 2**16, 3, 1)
    assert len(record["rows"]) == 12
    assert all(row["GB/s"] > 0 for row in record["rows"].values())
    # a share of what was timed: below 0 where the machine was busy meanwhile
    assert all(row.get("hidden", 0) <= 1 for row in record["rows"].values())
    assert disk.markdown(record).count("written, resume") == 2
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_derivatives_are_measured(tmp_path):
    path = tmp_path / "derivatives.json"
    process = run("derivatives", "--tiny", "--rounds", "1", "--json", str(path))
    assert process.returncode == 0, process.stderr
    record = json.loads(path.read_text())
    assert record["jacobians"]["reaction-diffusion 1-D"]["seeds"] == 3
    assert set(record["products"]) == {"Lorenz", "Burgers", "Gray-Scott", "Kuramoto"}
