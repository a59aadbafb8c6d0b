"""Tables of `lite bench` for the terminal, made from the document that ``--json`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lite_tools.benchmark.document import code_text
from lite_tools.benchmark.option_table import option_rows
from lite_tools.commands.printing import console, table

__all__ = ["print_document"]

_STATISTICS = ("mean", "std", "min", "p50", "p90", "p95", "p99", "max")
_PEAKS = ("load", "compile", "first_run", "runs", "concurrent_runs")
_MOST_REFUSALS = 12


def print_document(document: Mapping[str, Any]) -> None:
    """Print inputs, options, devices, phases, latencies, agreement, and the comparison with an earlier measurement."""
    inputs = document["inputs"]
    table(("input", "type", "source"), [(n, t, inputs[n]) for n, t in document["input_types"].items()])
    console.print()
    table(("option", "value", "from"), option_rows(document))
    console.print()
    _print_devices(document)
    _print_phases(document)
    _print_latencies(document)
    for line in document["agreement"]["sentences"]:
        console.print(line, markup=False)
    if document["against"]:
        _print_changes(document["against"])


def _print_devices(document: Mapping[str, Any]) -> None:
    rows = []
    for result in document["results"]:
        nodes = ", ".join(f"{count} on {device}" for device, count in result["nodes"].items())
        rows.append((result["name"], nodes, code_text(result)))
    table(("backend", "nodes", "plan and kernels"), rows)
    refusals = dict.fromkeys(
        (each["nodes"], each["op"], each["device"], each["refused_by"], each["reason"])
        for result in document["results"]
        for each in result["refusals"]
    )
    for count, op, device, refused_by, reason in [*refusals][:_MOST_REFUSALS]:
        console.print(f"{count} x {op} on {device}, not {refused_by}: {reason}", markup=False)
    if len(refusals) > _MOST_REFUSALS:
        console.print(f"and {len(refusals) - _MOST_REFUSALS} more reasons: --json lists all")
    console.print()


def _print_phases(document: Mapping[str, Any]) -> None:
    results = document["results"]
    times = [(r["name"], *(_ms(r[key]) for key in ("load_ms", "compile_ms", "first_run_ms"))) for r in results]
    table(("backend", "load", "compile", "first run"), times, title="phases, in ms")
    console.print()
    phases = [phase for phase in _PEAKS if any(phase in r["peak_rss_mib"] for r in results)]
    peaks = [
        (r["name"], _mib(r["rss_before_mib"]), *(_mib(r["peak_rss_mib"].get(phase)) for phase in phases))
        for r in results
    ]
    heads = ("backend", "before", *(phase.replace("_", " ") for phase in phases))
    table(heads, peaks, title="peak resident memory of the process, in MiB")
    console.print()


def _print_latencies(document: Mapping[str, Any]) -> None:
    latencies: list[tuple[str, ...]] = []
    rates: list[tuple[str, ...]] = []
    first_median = document["results"][0]["latency_p50_ms"]
    for result in document["results"]:
        measured = [(result["name"], result, f"{result['latency_p50_ms'] / first_median:.2f}")]
        if loaded := result["under_load"]:
            measured.append((f"  {loaded['concurrent']} at once", loaded, ""))
        for name, figures, ratio in measured:
            latencies.append((name, *(_ms(figures[f"latency_{key}_ms"]) for key in _STATISTICS)))
            rate = figures["throughput_per_second"]
            rates.append((name, str(figures["runs"]), f"{rate:.4g}" if rate < 1000 else f"{rate:,.0f}", ratio))
    table(("backend", *_STATISTICS), latencies, title="latency, in ms")
    console.print()
    table(("backend", "runs", "runs per second", "median / median of the first"), rates)
    console.print()


def _print_changes(found: Mapping[str, Any]) -> None:
    console.print(f"\nagainst {found['file']}", markup=False)
    for line in found["unlike"]:
        console.print(f"unlike: {line}", markup=False)
    changes = [(c["name"], c["figure"], _ms(c["before_ms"]), _ms(c["after_ms"]), c["text"]) for c in found["changes"]]
    if changes:
        table(("backend", "figure", "then ms", "now ms", "change"), changes)
    else:
        console.print("no measurement has the same name in both, so there is nothing to compare")
    once = [
        (c["name"], c["figure"].replace("_", " "), _ms(c["before_ms"]), _ms(c["after_ms"]), "measured once")
        for c in found["measured_once"]
    ]
    if once:
        table(("backend", "figure", "then ms", "now ms", ""), once)


def _ms(value: float) -> str:
    """Format milliseconds with three digits: more would be noise."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _mib(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0f}"
