"""``lite check``: can this model be read and run here, or on the targets named, and what is in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from lite_core.errors import OperatorProblem, UnsupportedOperatorError
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.plugins import default_host
from lite_core.session import Session, load
from lite_tools.cli import EXIT_FAILURE, EXIT_UNAVAILABLE, print_json
from lite_tools.cli.common import (
    backend_option,
    backends_of,
    console,
    json_option,
    model_argument,
    reader_option,
    table,
)
from lite_tools.cli.convert import split_targets
from lite_tools.conversion import Coverage, coverage_of, find_targets, optimized


@click.command("check")
@model_argument
@backend_option
@click.option(
    "--no-fallback", is_flag=True, help="Count what only the slow built-in backend, host, can run as a problem."
)
@click.option(
    "--targets",
    metavar="NAME,...",
    help="Ask these backends about every node, as `lite convert` does, whether they have a device here or not.",
)
@reader_option
@json_option
def command(
    model: str, backend: str, no_fallback: bool, targets: str | None, reader: dict[str, Any], as_json: bool
) -> int:
    """Tell whether MODEL can be read and run, where each part would run, and what is in the way.

    MODEL is a file or a folder. Exits with 1 when the model cannot run here, or on one of the targets, and with 3 when
    nothing but the plugin of a target is missing.
    """
    try:
        if targets is not None:
            return check_targets(model, read_model(model, **reader), split_targets(targets), as_json)
        session = load(model, backend=backends_of(backend), fallback="never" if no_fallback else "host", **reader)
    except UnsupportedOperatorError as error:
        _report_problems(model, error.problems, as_json)
        return EXIT_FAILURE
    _report_coverage(model, session, as_json)
    return 0


def check_targets(model: str, graph: Graph, names: Sequence[str], as_json: bool) -> int:
    """Ask targets about a model and print what they say; returns the exit code."""
    ready = optimized(graph, default_host())[0]
    targets, missing = find_targets(names, default_host())
    coverages = [coverage_of(ready, target) for target in targets]
    refusals = Counter(
        (refusal.op, coverage.target.name, refusal.reason)
        for coverage in coverages
        for refusal in coverage.refusals or ()
    )
    code = EXIT_FAILURE if refusals else EXIT_UNAVAILABLE if missing else 0
    if as_json:
        print_json(
            {
                "model": model,
                "ok": code == 0,
                "targets": [_coverage_as_dict(coverage) for coverage in coverages],
                "refusals": [{"op": o, "target": t, "reason": r, "nodes": c} for (o, t, r), c in refusals.items()],
                "missing": missing,
            }
        )
        return code
    if coverages:
        columns = ("target", "from", "device", "runs", "of the nodes")
        table(columns, [tuple(_coverage_as_dict(coverage).values()) for coverage in coverages])
    if refusals:
        console.print()
        table(("operator", "not on", "nodes", "because"), [(o, t, c, r) for (o, t, r), c in refusals.items()])
    for problem in missing:
        console.print(f"\n{problem}", markup=False)
    return code


def _coverage_as_dict(coverage: Coverage) -> dict[str, Any]:
    target = coverage.target
    device = "none" if target.candidate is None else target.candidate.device.name or target.candidate.device.label
    return {
        "target": target.name,
        "plugin": target.plugin,
        "device": f"{device} (not here: {target.absent})" if target.absent else device,
        "supported": "not asked" if coverage.supported is None else coverage.supported,
        "nodes": coverage.nodes,
    }


def _report_problems(model: str, problems: tuple[OperatorProblem, ...], as_json: bool) -> None:
    if as_json:
        listed = [{"op": p.op, "reason": p.reason, "remedy": p.remedy, "nodes": list(p.nodes)} for p in problems]
        print_json({"model": model, "ok": False, "problems": listed})
        return
    console.print(f"{model} cannot run: {len(problems)} operator problem(s)\n", markup=False)
    rows = [(p.op, len(p.nodes), ", ".join(p.nodes[:3]), p.reason, p.remedy) for p in problems]
    table(("operator", "nodes", "for example", "reason", "what to do"), rows)


def _report_coverage(model: str, session: Session, as_json: bool) -> None:
    assignment = session.assignment()
    counts = Counter((assigned.device, assigned.op) for assigned in assignment)
    refusals = Counter((assigned.op, label, reason) for assigned in assignment for label, reason in assigned.refusals)
    if as_json:
        print_json(
            {
                "model": model,
                "ok": True,
                "inputs": {n: str(t) for n, t in session.inputs.items()},
                "outputs": {n: str(t) for n, t in session.outputs.items()},
                "coverage": [{"device": d, "op": o, "nodes": c} for (d, o), c in counts.items()],
                "refusals": [{"op": o, "device": d, "reason": r, "nodes": c} for (o, d, r), c in refusals.items()],
            }
        )
        return
    console.print(f"{model} can run\n", markup=False)
    rows = [(device, op, count) for (device, op), count in sorted(counts.items())]
    table(("device", "operator", "nodes"), rows)
    if refusals:
        console.print()
        table(("operator", "not on", "nodes", "because"), [(o, d, c, r) for (o, d, r), c in refusals.items()])
