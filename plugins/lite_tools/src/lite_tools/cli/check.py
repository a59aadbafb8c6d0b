"""``lite check``: a check that a model can be read and run on this machine or on targets, with all problems."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from lite_core.errors import OperatorProblem, UnsupportedOperatorError
from lite_core.session import Session, load
from lite_tools.cli.model_file import open_verified
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.notes import print_notes
from lite_tools.commands.options import (
    backend_option,
    backend_options_option,
    backends_of,
    json_option,
    model_argument,
    reader_option,
)
from lite_tools.commands.prepared import compiler_notes
from lite_tools.commands.printing import console, print_json, table
from lite_tools.commands.targets import check_targets, split_targets


@click.command("check")
@model_argument
@backend_option
@backend_options_option
@click.option(
    "--no-fallback", is_flag=True, help="Treat nodes that only the slow built-in backend host supports as problems."
)
@click.option(
    "--targets",
    metavar="NAME,...",
    help="Check the nodes with these backends, like `lite convert`, even if they have no device on this machine.",
)
@reader_option
@json_option
def command(
    model: str,
    backend: str,
    backend_options: dict[str, dict[str, Any]],
    no_fallback: bool,
    targets: str | None,
    reader: dict[str, Any],
    as_json: bool,
) -> int:
    """Check that MODEL can be read and run, and show on which devices its nodes would run.

    MODEL is a file or a folder. All problems are listed. The exit code is 1 if the model cannot run on this machine or
    on one of the targets, 3 if only plugins of targets are missing, and 6 if the file is damaged or foreign.
    """
    try:
        if targets is not None:
            return check_targets(model, open_verified(model, reader).graph, split_targets(targets), as_json)
        session = load(
            model,
            backend=backends_of(backend),
            fallback="never" if no_fallback else "host",
            backend_options=backend_options,
            reader_options=reader,
        )
    except UnsupportedOperatorError as error:
        _report_problems(model, error.problems, as_json)
        return EXIT_FAILURE
    _report_coverage(model, session, as_json)
    return EXIT_OK


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
    notes = [*session.notes, *compiler_notes(session)]
    print_notes(notes)
    if as_json:
        print_json(
            {
                "model": model,
                "ok": True,
                "inputs": {n: str(t) for n, t in session.inputs.items()},
                "outputs": {n: str(t) for n, t in session.outputs.items()},
                "coverage": [{"device": d, "op": o, "nodes": c} for (d, o), c in counts.items()],
                "refusals": [{"op": o, "device": d, "reason": r, "nodes": c} for (o, d, r), c in refusals.items()],
                "notes": notes,
            }
        )
        return
    console.print(f"{model} can run\n", markup=False)
    rows = [(device, op, count) for (device, op), count in sorted(counts.items())]
    table(("device", "operator", "nodes"), rows)
    if refusals:
        console.print()
        table(("operator", "refused by", "nodes", "reason"), [(o, d, c, r) for (o, d, r), c in refusals.items()])
