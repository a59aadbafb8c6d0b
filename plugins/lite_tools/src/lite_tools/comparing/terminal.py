"""A comparison as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["table_rows", "wanted_rows"]

Row = Mapping[str, Any]

#: Rows with the greatest errors that are shown, and rows before and after the one that diverges.
_MOST_SHOWN, _AROUND = 10, 2


def wanted_rows(report: Mapping[str, Any], every: bool = False) -> list[Row]:
    """Return the rows to show, in their order: those around the first that diverges, and those with great errors.

    Args:
        report: the report.
        every: show all rows.
    """
    rows: Sequence[Row] = report["rows"]
    if every:
        return list(rows)
    by_error = sorted(rows, key=lambda row: -_relative(row["local"]))
    chosen = {row["index"] for row in by_error[:_MOST_SHOWN] if _relative(row["local"]) > 0}
    first = report["first"]
    if first is not None:
        chosen.update(range(max(0, first - _AROUND), min(len(rows), first + _AROUND + 1)))
    return [row for row in rows if row["index"] in chosen]


def table_rows(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headers and the cells of a table.

    *local* is the error of the step with true inputs, *accum.* that of the run on its own, both relative to the
    result's largest element; *noise* is the local error in noise floors, where it was compared with float64.
    """
    headers = ("#", "result", "operators", "local", "accum.", "noise", "")
    return headers, [_cells(row) for row in rows]


def _cells(row: Row) -> tuple[str, ...]:
    noise = row["noise"]
    ratio = f"{noise['b'] / noise['floor']:.0e}x" if noise and noise["floor"] else ""
    mark = {"equal": "", "rounding": ""}.get(row["status"], row["status"].upper())
    occurrence = f"#{row['occurrence']}" if row["occurrence"] else ""
    return (
        str(row["index"]),
        row["value"] + occurrence,
        row["op"],
        _number(row["local"]),
        _number(row["accumulated"]),
        ratio,
        mark,
    )


def _number(errors: Mapping[str, Any] | None) -> str:
    if errors is None:
        return "-"
    if errors["misplaced"]:
        return "NaN/Inf"
    if not errors["different"]:
        return "0"
    relative = errors["relative"]
    return f"{errors['max_abs'] if relative is None else relative:.1e}"


def _relative(errors: Mapping[str, Any] | None) -> float:
    if errors is None:
        return 0.0
    if errors["misplaced"] or (errors["relative"] is None and errors["different"]):
        return float("inf")
    return float(errors["relative"] or 0.0)
