"""Comparison of two measurements: first what makes them unlike, then each change with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from lite_tools.benchmark.noise import Change, change_of_median
from lite_tools.benchmark.other_load import OtherLoad

__all__ = ["Comparison", "compare_documents"]

_MEASURED = {"latencies_ms": "median latency", "latencies_under_load_ms": "median latency under load"}
_ONCE = ("load_ms", "compile_ms", "first_run_ms")


class Row(NamedTuple):
    """The change of one figure of one result.

    Attributes:
        name: the result's name.
        figure: the figure: ``median latency``, or that under load.
        before_ms: the earlier median in milliseconds.
        after_ms: the present one.
        change: the change, told from noise.
    """

    name: str
    figure: str
    before_ms: float
    after_ms: float
    change: Change


class Comparison(NamedTuple):
    """The comparison of a measurement with an earlier one.

    Attributes:
        unlike: sentences about what differs beside the figures: machine, model, packages, options, results.
        rows: the changes.
        once: figures that were measured only once, by result and figure: the earlier and the present milliseconds.
    """

    unlike: list[str]
    rows: list[Row]
    once: dict[str, dict[str, tuple[float, float]]]

    def as_dict(self, source: str) -> dict[str, Any]:
        """Return plain data; ``source`` names the earlier measurement."""
        return {
            "file": source,
            "unlike": self.unlike,
            "changes": [
                {
                    "name": row.name,
                    "figure": row.figure,
                    "before_ms": row.before_ms,
                    "after_ms": row.after_ms,
                    **row.change.as_dict(),
                }
                for row in self.rows
            ],
            "measured_once": [
                {"name": name, "figure": figure.removesuffix("_ms"), "before_ms": before, "after_ms": after}
                for name, figures in self.once.items()
                for figure, (before, after) in figures.items()
            ],
        }


def compare_documents(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Compare two documents of `lite bench --save`.

    Args:
        before: the earlier measurement.
        after: the present one.
    """
    old, new = ({result["name"]: result for result in document["results"]} for document in (before, after))
    rows, once = [], {}
    for name in (name for name in new if name in old):
        for key, figure in _MEASURED.items():
            then, now = ([time for turn in results[name][key] for time in turn] for results in (old, new))
            if then and now:
                rows.append(Row(name, figure, median(then), median(now), change_of_median(then, now)))
        once[name] = {key: (old[name][key], new[name][key]) for key in _ONCE}
    return Comparison(_unlike(before, after, old, new), rows, once)


def _unlike(
    before: Mapping[str, Any], after: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> list[str]:
    lines = []
    if before["model_sha256"] != after["model_sha256"]:
        lines.append(f"the models differ: {before['model']} then, {after['model']} now have other contents")
    keys = dict.fromkeys((*before["environment"], *after["environment"]))
    for key in keys:
        then, now = before["environment"].get(key), after["environment"].get(key)
        if then != now:
            lines.append(f"{key.replace('_', ' ')}: {_text(then)} then, {_text(now)} now")
    loads = [OtherLoad(**d["other_load"]) if d.get("other_load") else None for d in (before, after)]
    if any(load is not None and not load.is_quiet for load in loads):
        words = [str(load or "the load of other processes is not known") for load in loads]
        lines.append(f"{words[0]} then, {words[1]} now: differences may come from them")
    then, now = before.get("input_types"), after.get("input_types")
    if then != now:
        lines.append(f"inputs: {_text(then)} then, {_text(now)} now")
    lines += _changed_options("", before.get("options", []), after.get("options", []))
    for name in (name for name in new if name in old):
        lines += _changed_options(f"{name}: ", old[name]["options"], new[name]["options"])
        devices = [_text(result.get("devices")) for result in (old[name], new[name])]
        if devices[0] != devices[1]:
            lines.append(f"{name}: ran on {devices[0]} then, on {devices[1]} now")
    lines += [f"{name}: only measured then" for name in old if name not in new]
    return lines + [f"{name}: only measured now" for name in new if name not in old]


def _changed_options(prefix: str, before: list[dict[str, str]], after: list[dict[str, str]]) -> list[str]:
    """Return a line for each option whose value differs."""
    then, now = ({option["name"]: option["value"] for option in options} for options in (before, after))
    return [
        f"{prefix}{name} was {then.get(name, 'not set')}, is {now.get(name, 'not set')}"
        for name in dict.fromkeys((*then, *now))
        if then.get(name) != now.get(name)
    ]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
