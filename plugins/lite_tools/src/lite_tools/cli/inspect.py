"""``lite inspect``: a model's graph, file sections or memory use, as text or JSON."""

from __future__ import annotations

from typing import Any

import click

from lite_core.container import ModelFile
from lite_core.errors import ModelFormatError
from lite_core.formats import find_model
from lite_core.ir import Graph, format_graph
from lite_core.session import Session, load, make_ready
from lite_tools.cli.graph_data import graph_to_dict
from lite_tools.cli.graph_picture import PictureRequest, picture_options, write_pictures
from lite_tools.cli.memory import memory_report, print_memory_report
from lite_tools.cli.model_file import file_report, open_verified, print_file_report, print_targets
from lite_tools.cli.session_inputs import session_shapes
from lite_tools.cli.taps import print_nodes_options, write_printing_model
from lite_tools.commands.exit_codes import EXIT_FILE
from lite_tools.commands.notes import print_notes
from lite_tools.commands.options import (
    backend_option,
    backend_options_option,
    backends_of,
    json_option,
    model_argument,
    reader_option,
    shape_option,
    threads_option,
)
from lite_tools.commands.printing import console, print_json, table


@click.command("inspect")
@model_argument
@click.option("--ops", "only_ops", is_flag=True, help="Count the operators instead of printing the graph.")
@click.option("--weights", is_flag=True, help="List the constants (weights), largest first.")
@click.option("--optimized", is_flag=True, help="Show the graph after the optimization passes, as it is run.")
@click.option("--origins", is_flag=True, help="Show each node's name and its origin in the model that was read.")
@click.option("--sections", is_flag=True, help="List the sections of a .lite file, and check them for damage.")
@click.option("--memory", is_flag=True, help="Show the memory that a run needs, compared with a lower bound.")
@shape_option("With --memory or a picture: shape of the input NAME, if the model leaves it open. Repeatable.")
@picture_options
@print_nodes_options
@backend_option
@backend_options_option
@threads_option
@reader_option
@json_option
def command(
    model: str,
    only_ops: bool,
    weights: bool,
    optimized: bool,
    origins: bool,
    sections: bool,
    memory: bool,
    shapes: tuple[str, ...],
    html: str | None,
    svg: str | None,
    timed: bool,
    profile: str | None,
    errors: str | None,
    print_nodes: tuple[str, ...],
    output: str | None,
    backend: str,
    backend_options: dict[str, dict[str, Any]],
    threads: int | None,
    reader: dict[str, Any],
    as_json: bool,
) -> None:
    """Print the graph of MODEL, a file or a folder: inputs, outputs, nodes, types.

    With --memory, print the memory that a run on --backend with --threads needs. With --html or --svg, draw the graph;
    with --backend or --shape also its devices, and which nodes one kernel computes. With --print-nodes, write a model
    that prints values.
    """
    if print_nodes or output:
        write_printing_model(model, print_nodes, output, reader, as_json)
        return
    request = PictureRequest(html, svg, timed, profile, errors)
    if request.is_given:
        if only_ops or weights or origins or sections or memory:
            raise click.UsageError("--html and --svg draw the graph: leave the options out that print something else")
        write_pictures(
            model,
            request,
            optimized=optimized,
            shapes=shapes,
            backend=backend,
            threads=threads,
            backend_options=backend_options,
            reader=reader,
            as_json=as_json,
        )
        return
    if (memory or sections) and (only_ops or weights or optimized or origins or (memory and sections)):
        option = "--memory" if memory else "--sections"
        raise click.UsageError(f"{option} cannot be combined with options that show the graph")
    if memory:
        session = load(model, backends_of(backend), threads, backend_options=backend_options, reader_options=reader)
        _show_memory(model, session, shapes, as_json)
        return
    if shapes or threads or backend_options or backend != "auto":
        raise click.UsageError(
            "--shape, --backend, --backend-option and --threads are only for --memory, --html and --svg: add one"
        )
    if sections:
        _show_sections(model, as_json)
        return
    opened = open_verified(model, reader)
    graph = make_ready(opened.graph, run_passes=not opened.optimized).graph if optimized else opened.graph
    if as_json:
        print_json({**graph_to_dict(graph), "op_counts": graph.op_counts(), "parameters": _parameters(graph)})
        return
    _print_summary(graph)
    if opened.file is not None:
        print_targets(opened.file)
        console.print()
    if only_ops:
        table(("operator", "count"), graph.op_counts().items())
    elif weights:
        constants = sorted(graph.constants.items(), key=lambda item: -item[1].nbytes)
        table(("constant", "type", "KiB"), [(v.name, v.type, f"{a.nbytes / 1024:.1f}") for v, a in constants])
    else:
        console.print(format_graph(graph, origins=origins), markup=False)


def _show_memory(model: str, session: Session, shapes: tuple[str, ...], as_json: bool) -> None:
    chosen, notes = session_shapes(session, shapes)
    plan = session.plan(chosen)
    print_notes((*notes, *session.notes))
    report = memory_report(plan)
    if as_json:
        inputs = {value.name: value.type.shape for value in plan.graph.inputs}
        print_json({"model": model, "inputs": inputs, "computes": plan.computes, **report})
        return
    console.print(f"{model}: {', '.join(map(repr, plan.graph.inputs))}", markup=False)
    for line in plan.computes:
        console.print(f"computes {line}", markup=False)
    console.print()
    print_memory_report(report)


def _show_sections(model: str, as_json: bool) -> None:
    found = find_model(model)
    if not found.is_lite_file:
        raise click.UsageError(f"--sections is only for .lite files; convert {model!r} with `lite convert` first")
    report = file_report(ModelFile.open(found.path))
    damaged = [section["name"] for section in report["sections"] if not section["whole"]]
    if as_json:
        print_json(report)  # names the damaged sections: a second document with the error would not be JSON
        if damaged:
            raise click.exceptions.Exit(EXIT_FILE)
        return
    print_file_report(report)
    if damaged:
        raise ModelFormatError(
            f"{model}: {len(damaged)} section(s) are damaged: {', '.join(damaged)}; copy the file again, or convert "
            "the model again"
        )


def _parameters(graph: Graph) -> int:
    return sum(a.size for scope in graph.walk() for a in scope.constants.values())


def _print_summary(graph: Graph) -> None:
    facts = ", ".join(f"{key} {value}" for key, value in graph.metadata.items())
    size = sum(a.nbytes for scope in graph.walk() for a in scope.constants.values())
    console.print(f"{graph.name}: {facts}", markup=False)
    console.print(
        f"{sum(graph.op_counts().values())} nodes, {len(graph.op_counts())} operators, "
        f"{_parameters(graph):,} parameters ({size / 1e6:.1f} MB)\n"
    )
