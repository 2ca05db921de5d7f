"""Reports as pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.peers import PEERS


def draw(record: Mapping[str, Any], directory: Path) -> list[Path]:
    """One PNG per picture of the report, in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in PICTURES.get(record["kind"], lambda _: iter(()))(record):
        written.append(directory / f"{name}.png")
        figure.savefig(written[-1], dpi=120, bbox_inches="tight")
    return written


def new_axes(width: float = 6.4, height: float = 4.0) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


# compare -----------------------------------------------------------------------------------------


def speed_up(record: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Bars: the time of each peer's best form in units of ckad's, on a logarithmic scale."""
    ratios = {
        case: {peer: row["ratio_to_ckad"] for peer, row in found["peers"].items() if peer != "ckad"}
        for case, found in record["cases"].items()
        if "ckad" in found["peers"]
    }
    ratios = {case: row for case, row in ratios.items() if row}
    peers = [peer for peer in PEERS if any(peer in row for row in ratios.values())]
    if not peers:
        return
    figure, axes = new_axes(width=min(16, max(6.4, 0.15 * len(peers) * len(ratios) + 2)))
    width = 0.8 / len(peers)
    for k, peer in enumerate(peers):
        shown = [(i, row[peer]) for i, row in enumerate(ratios.values()) if peer in row]
        places = [i + (k - (len(peers) - 1) / 2) * width for i, _ in shown]
        heights = [height for _, height in shown]
        # From 1, so that a bar downwards is a peer that is faster.
        axes.bar(places, np.subtract(heights, 1), width, bottom=1, label=PEERS[peer].title)
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(ratios)), list(ratios), rotation=30, ha="right")
    axes.set_ylabel("time / ckad's")
    axes.legend(frameon=False, fontsize="small", ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    yield "speed_up", figure


# scaling -----------------------------------------------------------------------------------------


def scaling(record: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    for name, axis in record["axes"].items():
        yield f"time_against_{name}", growth(axis)
    if "budget" in record:
        yield "time_against_memory", budget(record["budget"])


def growth(axis: Mapping[str, Any]) -> Figure:
    figure, axes = new_axes()
    x = np.array([point[axis["x"]] for point in axis["points"]])
    y = np.array([point["seconds"] for point in axis["points"]])
    axes.loglog(x, y, "o-", label=f"ckad: exponent {axis['exponent']:.3f}")
    work = [point["work_seconds"] for point in axis["points"]]
    fitted = f"without a call's overhead: {axis['exponent_of_work']:.3f}"
    axes.loglog(x, work, "x", label=fitted)
    axes.loglog(x, y[-1] * x / x[-1], ":", color="gray", label="linear")
    axes.set_xlabel(axis["x"])
    axes.set_ylabel("seconds per step" if axis["per_step"] else "seconds")
    axes.set_title(axis["case"])
    axes.legend(frameon=False)
    return figure


def budget(record: Mapping[str, Any]) -> Figure:
    figure, axes = new_axes()
    points, everything = record["points"], record["store_all"]
    megabytes = [point["budget"] / 1e6 for point in points]
    axes.loglog(megabytes, [point["call_seconds"] for point in points], "o-", label="memory=")
    axes.axhline(everything["call_seconds"], linestyle=":", color="gray", label="store all")
    axes.set_xlabel("budget, MB")
    axes.set_ylabel("seconds")
    axes.set_title(record["case"])
    axes.legend(frameon=False)
    return figure


# ratio and latency -------------------------------------------------------------------------------


def ratios(record: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    found = {name: case["ratio"] for name, case in record["cases"].items() if "ratio" in case}
    if found:
        figure, axes = new_axes(width=max(6.4, 0.5 * len(found) + 1))
        axes.bar(list(found), list(found.values()))
        axes.set_ylabel("gradient / value")
        axes.tick_params("x", rotation=45)
        yield "gradient_over_value", figure


def latency(record: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    figure, axes = new_axes()
    for engine, found in record["compile"].items():
        x = [point["n_ops"] for point in found["points"]]
        y = [point["seconds"] for point in found["points"]]
        axes.loglog(x, y, "o-", label=f"{engine}: exponent {found['exponent']:.2f}")
    axes.set_xlabel("scalar ops")
    axes.set_ylabel("seconds to compile")
    axes.legend(frameon=False)
    yield "compile_time", figure


PICTURES: dict[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, Figure]]]] = {
    "compare": speed_up,
    "scaling": scaling,
    "ratio": ratios,
    "latency": latency,
}
