"""The report of a comparison as plain data, for JSON and for pages, and its summary in words."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from lite_core.version import __version__
from lite_tools.comparing.compare import Found
from lite_tools.comparing.engine import Row

__all__ = ["report_of", "summary_of", "verdict_of"]


def verdict_of(found: Found) -> str:
    """Return ``"agree"``, ``"differ"``, ``"not deterministic"`` or ``"cannot be compared"``."""
    if found.comparison.changing:
        return "not deterministic"
    if found.first is not None:
        return "differ"
    return "agree" if found.comparison.rows else "cannot be compared"


def summary_of(found: Found, names: tuple[str, str]) -> str:
    """Return what was found in one to four sentences."""
    name_a, name_b = names if names[0] != names[1] else ("side a", "side b")
    rows = [row for row in found.comparison.rows if row.local is not None]
    first = found.first
    if not found.comparison.rows:
        return f"{name_a} and {name_b} have no results in common: nothing was compared."
    if first is None:
        undecided = sum(row.status == "suspect" for row in rows)
        text = f"{name_a} and {name_b} agree: {len(rows)} results compared, none differs by more than rounding."
        if undecided:
            agreed = f"{len(rows) - undecided} of {len(rows)} results"
            text = f"{name_a} and {name_b} agree in {agreed}; {undecided} could not be decided."
        worst = max((e.relative or 0.0 for e in found.comparison.outputs.values()), default=0.0)
        return f"{text} The outputs differ by {worst:.2g} of their largest element." if worst else text
    what = ", ".join(_named(node) for node in found.culprit) or str(first.key)
    seen = found.kernel or first.kernel_b
    where = f"{seen.kernel} on {seen.device or name_b}"
    text = f"The first step that diverges is {what}, computed by {where}: {first.reason}."
    if len(found.culprit) > 1 and found.inside is not None:
        text += " Each of its nodes alone is right: the fault is in the kernel that computes them together."
    errors = first.local
    if errors is not None and first.key not in found.comparison.changing:
        place = list(errors.at)
        text += f" At {place} it is {errors.value_b:.6g} instead of {errors.value_a:.6g}."
    origins = dict.fromkeys(str(node.origin) for node in found.culprit if node.origin)
    if origins:
        text += f" In the user's model: {', '.join(origins)}."
    return text


def _named(node: Any) -> str:
    return f"{node.name or node.op} ({node.qualified_op})"


def report_of(
    found: Found,
    *,
    model: str,
    inputs: list[dict[str, str]],
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the report; docs/comparing.md describes its keys."""
    comparison = found.comparison
    names = str(a["label"]), str(b["label"])
    numbers = {id(row): number for number, row in enumerate(comparison.rows)}
    return {
        "schema_version": 1,
        "model": model,
        "inputs": inputs,
        "a": dict(a),
        "b": dict(b),
        "verdict": verdict_of(found),
        "summary": summary_of(found, names),
        "first": None if found.first is None else numbers[id(found.first)],
        "culprit": [node.name or node.op for node in found.culprit],
        "rows": [_row(row, number) for number, row in enumerate(comparison.rows)],
        "not_compared": [
            {
                "value": str(key),
                "nodes": list(seen.nodes),
                "reason": f"{names[0]} computes it inside a kernel",
            }
            for key, seen in comparison.only_in_b.items()
        ],
        "outputs": [{"name": name, "errors": errors.as_dict()} for name, errors in comparison.outputs.items()],
        "inside": None if found.inside is None else [_row(row, i) for i, row in enumerate(found.inside)],
        "runs": {"count": comparison.runs, "changing": [str(key) for key in comparison.changing]},
        "repro": None if found.repro is None else {"script": str(found.repro[0]), "arrays": str(found.repro[1])},
        "notes": list(found.notes),
        "settings": dict(settings),
        "environment": {"machine": platform.machine(), "python": platform.python_version(), "lite": __version__},
    }


def _row(row: Row, number: int) -> dict[str, Any]:
    region = row.region
    nodes = [] if region is None else region.nodes
    own = next((node for node in nodes if region is not None and region.output in node.outputs), None)
    return {
        "index": number,
        "value": row.key.value,
        "occurrence": row.key.occurrence,
        "type": "" if region is None else str(region.output.type),
        "nodes": [node.name or node.op for node in nodes],
        "op": "" if region is None else region.ops,
        "inputs": [] if region is None else [value.name for value in region.inputs],
        "origin": "; ".join(dict.fromkeys(str(node.origin) for node in nodes if node.origin)),
        "attributes": {} if own is None else {name: _short(value) for name, value in own.attributes.items()},
        "kernel_a": "" if row.kernel_a is None else row.kernel_a.kernel,
        "kernel_b": row.kernel_b.kernel,
        "device_a": "" if row.kernel_a is None else row.kernel_a.device,
        "device_b": row.kernel_b.device,
        "local": None if row.local is None else row.local.as_dict(),
        "accumulated": None if row.accumulated is None else row.accumulated.as_dict(),
        "noise": row.noise,
        "status": row.status,
        "reason": row.reason,
        "histogram": row.histogram,
        "picture": row.picture,
    }


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
