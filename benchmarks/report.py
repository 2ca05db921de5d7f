"""Reports as tables: Markdown, which reads well in a terminal too."""

from __future__ import annotations

from typing import Any

from benchmarks.compare import VALUE

COLUMNS = (
    "peer",
    "form",
    "first call",
    "median",
    "min, max",
    "per step",
    "per cell and step",
    "peak growth: steady (first)",
    "time / ckad's",
)


def markdown(report: dict[str, Any], every_form: bool = False) -> str:
    """The whole report; `every_form` adds the forms that were slower than their peer's best."""
    parts = [describe(report)]
    for name, case in report["cases"].items():
        parts.append(case_table(name, case))
        if every_form:
            parts.append(form_table(case))
    if len(report["cases"]) > 1:
        parts.append(summary(report["cases"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def describe(report: dict[str, Any]) -> str:
    machine = report["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    lines = [
        f"{machine['cpu']} ({machine['architecture']}), {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}; {packages}."
    ]
    if report.get("skipped"):
        lines.append(f"Not installed, so left out: {', '.join(report['skipped'])}.")
    return "\n".join(lines)


def case_table(name: str, case: dict[str, Any]) -> str:
    heading = f"**{name}** ({settings_text(case['settings'])}). {case['title']}."
    worst = case["disagreement"]
    if worst is not None:
        heading += f" Largest difference between two gradients: {worst['relative']:.1e}."
    rows = [peer_row(peer, figures, case["settings"]) for peer, figures in case["peers"].items()]
    return f"{heading}\n\n{table(COLUMNS, rows)}" if rows else heading


def summary(cases: dict[str, Any]) -> str:
    """A line for each case: what peers take in units of ckad's time, and ckad in its value's."""
    ran = {name: case["peers"] for name, case in cases.items() if "ckad" in case["peers"]}
    peers = list(dict.fromkeys(p for found in ran.values() for p in found if p != "ckad"))
    rows = [
        (
            name,
            duration(found["ckad"]["median_seconds"]),
            *(quotient(found[p], p == VALUE) if p in found else "" for p in peers),
        )
        for name, found in ran.items()
    ]
    titles = ("gradient / value" if p == VALUE else f"{p} / ckad" for p in peers)
    return table(("case", "ckad", *titles), rows) if rows else ""


def quotient(figures: dict[str, Any], inverted: bool) -> str:
    ratio = figures["ratio_to_ckad"]
    return f"{1.0 / ratio if inverted else ratio:.2f}"


def peer_row(peer: str, figures: dict[str, Any], full: dict[str, float]) -> tuple[str, ...]:
    ratio = figures["ratio_to_ckad"]
    return (
        peer,
        figures["form"] + shortened(figures["settings"], full),
        duration(figures["first_seconds"]),
        duration(figures["median_seconds"]),
        f"{duration(figures['min_seconds'])}, {duration(figures['max_seconds'])}",
        duration(figures["ns_per_step"] * 1e-9),
        duration(figures["ns_per_cell_step"] * 1e-9),
        f"{size(figures['peak_growth'])} ({size(figures['first_peak_growth'])})",
        "" if ratio is None else f"{ratio:.2f}",
    )


def shortened(settings: dict[str, float], full: dict[str, float]) -> str:
    """The settings in which a peer ran at a smaller size than the others; empty if in none."""
    smaller = {key: value for key, value in settings.items() if value != full[key]}
    return f" (only {settings_text(smaller)})" if smaller else ""


def settings_text(settings: dict[str, float]) -> str:
    return ", ".join(f"{key}={value:.15g}" for key, value in settings.items())


def form_table(case: dict[str, Any]) -> str:
    rows = [
        (
            peer,
            form + shortened(figures.get("settings", {}), case["settings"]),
            *form_cells(figures),
        )
        for peer, forms in case["forms"].items()
        for form, figures in forms.items()
    ]
    return table(("peer", "form", "first call", "one turn, best", "peak growth"), rows)


def form_cells(figures: dict[str, Any]) -> tuple[str, str, str]:
    if "error" in figures:
        return "failed", figures["error"].splitlines()[0].replace("|", "\\|"), ""
    return (
        duration(figures["first_seconds"]),
        duration(figures["probe_seconds"]),
        size(figures["peak_growth"]),
    )


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [columns, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def size(n_bytes: int | None) -> str:
    if n_bytes is None:
        return "not known"
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.0f} kB"
