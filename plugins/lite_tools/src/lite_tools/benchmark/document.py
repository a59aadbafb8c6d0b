"""The result of a measurement as plain data, which ``--json`` prints, and which tables, CSV files and pages show.

Every number has its unit in its key. ``docs/benchmarking.md`` lists the keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lite_core.session import Session
from lite_tools.benchmark.measurement import Measured, Phase
from lite_tools.benchmark.origins import Effective

__all__ = ["SCHEMA_VERSION", "code_text", "flat_rows", "result_of", "with_latencies"]

SCHEMA_VERSION = 1
_TIMED = ("load", "compile", "first_run")
_PHASES = (*_TIMED, "runs", "concurrent_runs")


def result_of(measured: Measured, options: Sequence[Effective], concurrent: int) -> dict[str, Any]:
    """Return the results of one session.

    Args:
        measured: the measurements.
        options: the session's effective options.
        concurrent: the number of threads that ran the session at once.
    """
    session, summary, loaded = measured.session, measured.summary, measured.under_load
    assignment = session.assignment()
    refusals = Counter((a.op, a.device, label, why) for a in assignment for label, why in a.refusals)
    return {
        "name": measured.name,
        "devices": list(session.devices),
        "options": [option._asdict() for option in options],
        **{f"{phase}_ms": measured.phases[phase].seconds * 1e3 for phase in _TIMED},
        "code_from": _origin_of_code(session, measured.shapes),
        "kernels": {
            backend: {"found": c.found, "compiled": c.compiled, "compile_ms": c.seconds * 1e3}
            for backend, c in measured.kernels.items()
            if backend in {label.partition(":")[0] for label in session.devices}
        },
        "runs": summary.runs,
        **summary.in_milliseconds(),
        "throughput_per_second": summary.runs / sum(measured.runs),
        "under_load": None
        if loaded is None
        else {
            "concurrent": concurrent,
            "runs": loaded.runs,
            **loaded.in_milliseconds(),
            "throughput_per_second": measured.throughput,
        },
        "rss_before_mib": _mib(measured.phases["before"]),
        "peak_rss_mib": {name: _mib(measured.phases[name]) for name in _PHASES if name in measured.phases},
        "nodes": dict(Counter(a.device for a in assignment)),
        "refusals": [
            {"op": op, "device": device, "refused_by": label, "reason": why, "nodes": count}
            for (op, device, label, why), count in refusals.items()
        ],
        "notes": list(session.notes),
    }


def with_latencies(document: Mapping[str, Any], measured: Sequence[Measured]) -> dict[str, Any]:
    """Return a document for `lite bench --save`, which also has the time of each run, turn by turn."""
    by_name = {each.name: each for each in measured}
    results = [
        {
            **result,
            "latencies_ms": [_milliseconds(turn) for turn in by_name[result["name"]].turns],
            "latencies_under_load_ms": [_milliseconds(load.latencies) for load in by_name[result["name"]].loads],
        }
        for result in document["results"]
    ]
    return {"schema_version": SCHEMA_VERSION, **document, "results": results}


def flat_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each result with numbers and texts only, for CSV; what was not measured is empty."""
    rows = []
    for result in document["results"]:
        row: dict[str, Any] = {"model": document["model"], "name": result["name"]}
        row["devices"] = " ".join(result["devices"])
        row |= {key: value for key, value in result.items() if isinstance(value, (int, float)) or key == "code_from"}
        loaded = result["under_load"] or {}
        names = [key for key in result if key.startswith("latency_")]
        for key in ("concurrent", "runs", *names, "throughput_per_second"):
            row[f"under_load_{key}"] = loaded.get(key, "")
        row |= {f"peak_rss_{phase}_mib": result["peak_rss_mib"].get(phase, "") for phase in _PHASES}
        for key in ("found", "compiled", "compile_ms"):
            row[f"kernels_{key}"] = sum(counts[key] for counts in result["kernels"].values())
        rows.append({key: "" if value is None else value for key, value in row.items()})
    return rows


def code_text(result: Mapping[str, Any]) -> str:
    """Return where the plan and the kernels of a result came from, in words."""
    counted = [
        f"{backend}: {counts['found']} kernels found, {counts['compiled']} compiled"
        + (f" in {counts['compile_ms']:.0f} ms" if counts["compiled"] else "")
        for backend, counts in result["kernels"].items()
        if counts["found"] or counts["compiled"]
    ]
    return "; ".join(["plan from the .lite file" if result["code_from"] == "file" else "plan made here", *counted])


def _origin_of_code(session: Session, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Return ``file`` if the plan was restored from the model's file, else ``here``."""
    file = session.file
    if file is None or any("compiled again" in note for note in session.notes):
        return "here"
    plans = [plan for target in file.targets if target.backend in session.devices for plan in target.plans]
    return "file" if any(dict(plan.shapes) == dict(shapes) for plan in plans) else "here"


def _milliseconds(times: Sequence[float]) -> list[float]:
    """Return seconds as milliseconds, rounded to nanoseconds, which keeps files small."""
    return [round(seconds * 1e3, 6) for seconds in times]


def _mib(phase: Phase) -> float | None:
    return None if phase.peak_bytes is None else phase.peak_bytes / 2**20
