"""Check of a model's nodes with targets, for `lite check --targets`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from lite_core.ir import Graph
from lite_core.plugins import available_backends, default_plugins
from lite_core.session import make_ready
from lite_tools.commands.backend_names import known_backends
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK, EXIT_UNAVAILABLE
from lite_tools.commands.next_commands import typed_command
from lite_tools.commands.printing import console, print_json, table
from lite_tools.commands.suggestions import similar_names
from lite_tools.conversion import Coverage, coverage_of, find_targets
from lite_tools.examining.cures import ALLOW_FALLBACK, NodeCures

__all__ = ["check_targets", "split_targets"]


def split_targets(text: str, option: str = "--targets") -> list[str]:
    """Split names separated by commas or spaces; ``option`` is the option's name in the error for an empty list."""
    names = text.replace(",", " ").split()
    if not names:
        raise click.BadParameter("name at least one target, such as x86", param_hint=option)
    return known_backends(*names)


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
    refused: dict[tuple[str, str, str], list[str]] = {}
    for coverage in coverages:
        for refusal in coverage.refusals or ():
            refused.setdefault((refusal.op, coverage.target.name, refusal.reason), []).append(refusal.node)
    asked, devices = NodeCures(ready, default_plugins()), {target.name: target.candidate for target in targets}
    cures = {
        key: asked.of(nodes[0], [devices[key[1]] or key[1]], host=ALLOW_FALLBACK) for key, nodes in refused.items()
    }
    code = EXIT_FAILURE if refused else EXIT_UNAVAILABLE if missing else EXIT_OK
    known = [target.name for target in targets]
    added = [name for key, nodes in refused.items() for name in asked.others(nodes[0], known)[:1]]
    next_command = _next_command(model, dict.fromkeys([*known, *added]), missing, names) if code != EXIT_OK else ""
    if as_json:
        print_json(
            {
                "model": model,
                "ok": code == EXIT_OK,
                "targets": [_coverage_as_dict(coverage) for coverage in coverages],
                "refusals": [
                    {"op": op, "target": name, "reason": why, "nodes": len(nodes), "remedy": cures[op, name, why]}
                    for (op, name, why), nodes in refused.items()
                ],
                "missing": missing,
                "next": next_command,
            }
        )
        return code
    if coverages:
        columns = ("target", "plugin", "device", "supported nodes", "all nodes")
        table(columns, [tuple(_coverage_as_dict(coverage).values()) for coverage in coverages])
    if refused:
        console.print()
        columns = ("operator", "refused by", "nodes", "reason", "what to do")
        table(columns, [(*key[:2], len(nodes), key[2], cures[key]) for key, nodes in refused.items()])
    for problem in missing:
        console.print(f"\n{problem}", markup=False)
    if next_command:
        console.print(f"\nnext: {next_command}", markup=False)
    return code


def _next_command(model: str, targets: Iterable[str], missing: Sequence[str], names: Sequence[str]) -> str:
    """Return the command after a check that failed: the installation of a missing target, or the conversion."""
    if missing:
        package = next((found[0] for problem in missing if (found := re.search(r"pip install [\w-]+", problem))), "")
        installed = [*available_backends(default_plugins())]
        unknown = {name: similar_names(name, installed) for name in names if name not in installed}
        near = {name: meant[0] for name, meant in unknown.items() if meant}
        return package or typed_command(replaced=near) or "lite backends"
    path = Path(model)
    written = path.with_name(f"{path.name}.lite" if path.is_dir() or path.suffix == ".lite" else f"{path.stem}.lite")
    return shlex.join(["lite", "convert", model, "-o", str(written), "--targets", ",".join(targets), ALLOW_FALLBACK])


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
