"""``lite check``: a check that a model can be read and run on this machine or on targets, with all problems."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import click

from lite_core.errors import OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.plugins import default_plugins
from lite_core.session import Session, load, make_ready
from lite_tools.cli.model_file import open_verified
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.next_commands import typed_command
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
from lite_tools.examining.cures import NodeCures, command_of_cures, cure_of_problem

#: The end of a session's note about nodes on host: it names this command, which need not name itself.
_ADVICE = ". `lite check MODEL` says what to do"


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
        _report_problems(model, error.problems, _readable_graph(model, reader) if no_fallback else None, as_json)
        return EXIT_FAILURE
    _report_coverage(model, session, as_json)
    return EXIT_OK


def _readable_graph(model: str, reader: dict[str, Any]) -> Graph | None:
    """Return the graph as sessions run it; None for a model with operators that cannot be read."""
    try:
        opened = open_verified(model, reader)
    except UnsupportedOperatorError:
        return None
    return make_ready(opened.graph, run_passes=not opened.optimized, copy=False).graph


def _report_problems(model: str, problems: tuple[OperatorProblem, ...], graph: Graph | None, as_json: bool) -> None:
    """Print the problems of a model that cannot be read, or whose graph no device may run, with cures."""
    if graph is None:
        cures = [cure_of_problem(problem) for problem in problems]
        next_command = command_of_cures(cures)
    else:
        asked, refusing = NodeCures(graph, default_plugins()), [_refusing(problem) for problem in problems]
        allowed = "no --no-fallback"
        cures = [asked.of(p.nodes[0], names, host=allowed) for p, names in zip(problems, refusing)]
        others = [asked.others(p.nodes[0], names)[:1] for p, names in zip(problems, refusing)]
        added = dict.fromkeys(name for names in (*refusing, *others) for name in names)
        next_command = typed_command("--backend", ",".join(added), dropped=("--backend", "-b"))
        next_command = next_command if all(others) else typed_command(without=("--no-fallback",))
    if as_json:
        rows = zip(problems, cures)
        listed = [{"op": p.op, "reason": p.reason, "remedy": cure, "nodes": list(p.nodes)} for p, cure in rows]
        print_json({"model": model, "ok": False, "problems": listed, "next": next_command})
        return
    console.print(f"{model} cannot run: {len(problems)} operator problem(s)\n", markup=False)
    columns = ("operator", "nodes", "for example", "reason", "what to do")
    table(columns, [(p.op, len(p.nodes), ", ".join(p.nodes[:3]), p.reason, cure) for p, cure in zip(problems, cures)])
    if next_command:
        console.print(f"\nnext: {next_command}", markup=False)


def _refusing(problem: OperatorProblem) -> list[str]:
    """Return the backends that refuse the nodes of a problem, whose labels its reason has before colons."""
    return list(dict.fromkeys(re.findall(r"(?:^|; )([a-z]\w*)(?::\d+)?: ", problem.reason)))


def _report_coverage(model: str, session: Session, as_json: bool) -> None:
    assignment = session.assignment()
    counts = Counter((assigned.device, assigned.op) for assigned in assignment)
    refused: dict[tuple[str, str, str, str], list[str]] = {}
    for assigned in assignment:
        for label, reason in assigned.refusals:
            refused.setdefault((assigned.op, label, reason, assigned.device), []).append(assigned.node)
    asked = NodeCures(session.graph, default_plugins())
    cures = {
        key: asked.of(nodes[0], [key[1].partition(":")[0]], runs_on=key[3].partition(":")[0])
        for key, nodes in refused.items()
    }
    notes = [note.removesuffix(_ADVICE) for note in (*session.notes, *compiler_notes(session))]
    print_notes(notes)
    if as_json:
        print_json(
            {
                "model": model,
                "ok": True,
                "inputs": {n: str(t) for n, t in session.inputs.items()},
                "outputs": {n: str(t) for n, t in session.outputs.items()},
                "coverage": [{"device": d, "op": o, "nodes": c} for (d, o), c in counts.items()],
                "refusals": [
                    {"op": key[0], "device": key[1], "reason": key[2], "nodes": len(nodes), "remedy": cures[key]}
                    for key, nodes in refused.items()
                ],
                "notes": notes,
            }
        )
        return
    console.print(f"{model} can run\n", markup=False)
    rows = [(device, op, count) for (device, op), count in sorted(counts.items())]
    table(("device", "operator", "nodes"), rows)
    if refused:
        console.print()
        columns = ("operator", "refused by", "nodes", "reason", "what to do")
        table(columns, [(*key[:2], len(nodes), key[2], cures[key]) for key, nodes in refused.items()])
