"""Check of a model's nodes with targets, for `lite check --targets`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from lite_core.ir import Graph
from lite_core.plugins import default_plugins
from lite_core.session import make_ready
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK, EXIT_UNAVAILABLE
from lite_tools.commands.printing import console, print_json, table
from lite_tools.conversion import Coverage, coverage_of, find_targets

__all__ = ["check_targets", "split_targets"]


def split_targets(text: str, option: str = "--targets") -> list[str]:
    """Split names separated by commas or spaces; ``option`` is the option's name in the error for an empty list."""
    names = text.replace(",", " ").split()
    if not names:
        raise click.BadParameter("name at least one target, such as x86", param_hint=option)
    return names


def check_targets(model: str, graph: Graph, names: Sequence[str], as_json: bool) -> int:
    """Ask targets about the nodes of a model, print the answers, and return the exit code.

    Args:
        model: the model's path as the user wrote it.
        graph: the graph as it was read.
        names: the names of the targets.
        as_json: print JSON.
    """
    ready = make_ready(graph).graph
    targets, missing = find_targets(names, default_plugins())
    coverages = [coverage_of(ready, target) for target in targets]
    refusals = Counter(
        (refusal.op, coverage.target.name, refusal.reason)
        for coverage in coverages
        for refusal in coverage.refusals or ()
    )
    code = EXIT_FAILURE if refusals else EXIT_UNAVAILABLE if missing else EXIT_OK
    if as_json:
        print_json(
            {
                "model": model,
                "ok": code == EXIT_OK,
                "targets": [_coverage_as_dict(coverage) for coverage in coverages],
                "refusals": [{"op": o, "target": t, "reason": r, "nodes": c} for (o, t, r), c in refusals.items()],
                "missing": missing,
            }
        )
        return code
    if coverages:
        columns = ("target", "plugin", "device", "supported nodes", "all nodes")
        table(columns, [tuple(_coverage_as_dict(coverage).values()) for coverage in coverages])
    if refusals:
        console.print()
        table(("operator", "refused by", "nodes", "reason"), [(o, t, c, r) for (o, t, r), c in refusals.items()])
    for problem in missing:
        console.print(f"\n{problem}", markup=False)
    return code


def _coverage_as_dict(coverage: Coverage) -> dict[str, Any]:
    target = coverage.target
    device = "none" if target.candidate is None else target.candidate.device.name or target.candidate.device.label
    return {
        "target": target.name,
        "plugin": target.plugin,
        "device": f"{device} (not available: {target.absent})" if target.absent else device,
        "supported": "not asked" if coverage.supported is None else coverage.supported,
        "nodes": coverage.nodes,
    }
