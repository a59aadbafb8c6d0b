"""``lite inspect``: a model's graph, file sections or memory use, as text or JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from lite_core.container import ModelFile
from lite_core.errors import ModelFormatError
from lite_core.formats import find_model
from lite_core.ir import Graph, format_graph
from lite_core.session import OpenedModel, Session, load, make_ready
from lite_tools.cli.graph_data import graph_to_dict
from lite_tools.cli.graph_picture import PictureRequest, picture_options, write_pictures
from lite_tools.cli.memory import memory_report, print_memory_report
from lite_tools.cli.model_file import file_report, open_verified, print_file_report, print_targets
from lite_tools.cli.session_inputs import session_shapes
from lite_tools.cli.taps import print_nodes_options, write_printing_model
from lite_tools.commands.exit_codes import EXIT_FILE
from lite_tools.commands.next_commands import with_next_command
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
@click.option("--ops", "only_ops", is_flag=True, help="Count the operators.")
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

    With --ops, --weights, --sections or --memory, print these instead, several of them one after another; --origins
    adds the graph. --memory is that of a run on --backend with --threads. With --html or --svg, draw the graph;
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
    if not memory and (shapes or threads or backend_options or backend != "auto"):
        raise click.UsageError(
            "--shape, --backend, --backend-option and --threads are only for --memory, --html and --svg: add one"
        )
    graph_is_wanted = only_ops or weights or origins or not (memory or sections)
    if optimized and not graph_is_wanted:
        raise click.UsageError("--optimized shows the graph: add --ops, --weights or --origins, or leave it out")
    parts: dict[str, _Part] = {}
    if graph_is_wanted:
        shown = (only_ops, weights, origins or not (only_ops or weights), origins)
        parts["graph"] = _graph_part(open_verified(model, reader), optimized, shown)
    if memory:
        session = load(model, backends_of(backend), threads, backend_options=backend_options, reader_options=reader)
        parts["memory"] = _memory_part(model, session, shapes)
    damaged: list[str] = []
    if sections:
        parts["sections"] = _sections_part(model, damaged)
    if as_json:
        data = {name: part.data for name, part in parts.items()}
        print_json(data if len(data) > 1 else next(iter(data.values())))
        if damaged:  # the document names the damaged sections: a second one with the error would not be JSON
            raise click.exceptions.Exit(EXIT_FILE)
        return
    for number, part in enumerate(parts.values()):
        if number:
            console.print()
        part.show()
    if damaged:
        raise ModelFormatError(
            f"{model}: {len(damaged)} section(s) are damaged: {', '.join(damaged)}; copy the file again, or convert "
            "the model again"
        )


class _Part(NamedTuple):
    """One of the things that can be shown: the graph, the memory or the sections, as data and as text."""

    data: dict[str, Any]
    show: Callable[[], None]


def _graph_part(opened: OpenedModel, optimized: bool, shown: tuple[bool, bool, bool, bool]) -> _Part:
    """Return the graph; ``shown`` tells whether operators, weights and nodes are printed, and nodes with origins."""
    graph = make_ready(opened.graph, run_passes=not opened.optimized).graph if optimized else opened.graph
    ops, weights, nodes, origins = shown

    def show() -> None:
        _print_summary(graph)
        if opened.file is not None:
            print_targets(opened.file)
            console.print()
        if ops:
            table(("operator", "count"), graph.op_counts().items())
        if weights:
            if ops:
                console.print()
            constants = sorted(graph.constants.items(), key=lambda item: -item[1].nbytes)
            table(("constant", "type", "KiB"), [(v.name, v.type, f"{a.nbytes / 1024:.1f}") for v, a in constants])
        if nodes:
            if ops or weights:
                console.print()
            console.print(format_graph(graph, origins=origins), markup=False)

    return _Part({**graph_to_dict(graph), "op_counts": graph.op_counts(), "parameters": _parameters(graph)}, show)


def _memory_part(model: str, session: Session, shapes: tuple[str, ...]) -> _Part:
    chosen, notes = session_shapes(session, shapes)
    plan = session.plan(chosen)
    print_notes((*notes, *session.notes))
    report = memory_report(plan)

    def show() -> None:
        console.print(f"{model}: {', '.join(map(repr, plan.graph.inputs))}", markup=False)
        for line in plan.computes:
            console.print(f"computes {line}", markup=False)
        console.print()
        print_memory_report(report)

    inputs = {value.name: value.type.shape for value in plan.graph.inputs}
    return _Part({"model": model, "inputs": inputs, "computes": plan.computes, **report}, show)


def _sections_part(model: str, damaged: list[str]) -> _Part:
    """Return the sections of a .lite file; the names of those that are damaged are added to ``damaged``."""
    found = find_model(model)
    if not found.is_lite_file:
        written = Path(model).with_suffix(".lite").name
        error = click.UsageError(f"--sections is only for .lite files; convert {model!r} with `lite convert` first")
        raise with_next_command(error, shlex.join(["lite", "convert", model, "-o", written]))
    report = file_report(ModelFile.open(found.path))
    damaged += [section["name"] for section in report["sections"] if not section["whole"]]
    return _Part(report, lambda: print_file_report(report))


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
