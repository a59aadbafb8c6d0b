"""The process that loads and runs a model for a report. It may die: what it knows is in files before each step.

The request is ``request.json`` in a folder. :func:`main` writes ``facts.json``, ``kernel.json`` with the kernel that
started last, ``model.lite`` and ``inputs.npz`` into it; :func:`cut_node` ``node.lite`` and ``node_inputs.npz``.
"""

from __future__ import annotations

import json
import traceback
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.errors import LiteError
from lite_core.ir import format_graph
from lite_core.observing import IdleObserver
from lite_core.ops.infer import infer_graph
from lite_core.plugins import default_plugins
from lite_core.schedule.partition import cut
from lite_core.session import OpenedModel, load, make_ready, open_model
from lite_core.session.arguments import to_arrays
from lite_tools.checking.random_inputs import candidate_inputs
from lite_tools.cli.model_file import prepared_shapes
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.reporting.scrubbing import Scrubber
from lite_tools.reporting.sizes import smallest_shapes
from lite_tools.reporting.substitutes import for_report
from lite_tools.writing import write_model

__all__ = ["cut_node", "main", "save_arrays"]

Array = np.ndarray[Any, Any]

#: Nodes of a kernel that a report lists; a partition that cannot be observed counts as one kernel.
_MOST_NODES = 64


class Facts:
    """Facts that are known so far; each change is written to a file at once."""

    def __init__(self, path: Path) -> None:
        self._path, self._known = path, dict[str, Any]()

    def add(self, **found: Any) -> None:
        """Add facts, which are plain data, and write all."""
        self._known.update(found)
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(self._known, default=str), encoding="utf-8")
        temporary.replace(self._path)


class KernelRecorder(IdleObserver):
    """An observer that writes the kernel that starts into a file, which outlives this process."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        """Replace the file's content."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps({"kernel": kernel, "nodes": list(nodes)[:_MOST_NODES]}))
        self._file.flush()


def main(folder: Path) -> int:
    """Load and run the model of the request in a folder; return 1 if that fails with an exception."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    facts = Facts(folder / "facts.json")
    try:
        _run(request, folder, facts)
    except Exception as error:
        traceback.print_exc()
        is_of_user = isinstance(error, click.UsageError)
        facts.add(error={"type": type(error).__name__, "message": str(error), "is_of_user": is_of_user})
        return 1
    facts.add(step="ended")
    return 0


def _run(request: dict[str, Any], folder: Path, facts: Facts) -> None:
    scrubber = Scrubber.for_this_machine(request["model"])
    facts.add(step="reading the model")
    opened = open_model(request["model"], reader_options=request["reader"])
    if opened.file is not None:
        opened.file.verify_constants(opened.graph.every_constant())
    facts.add(step="copying the model")
    copied = for_report(opened.graph, scrubber, with_weights=request["with_weights"])
    write_model(folder / "model.lite", copied, optimized=opened.optimized)
    facts.add(step="choosing inputs", graph=format_graph(copied, origins=True), has_code=opened.file is not None)
    arrays = _inputs(request, opened, folder, facts)
    shapes = {name: array.shape for name, array in arrays.items()}
    facts.add(step="loading the model", shapes={name: list(shape) for name, shape in shapes.items()})
    session = load(
        request["model"],
        backend=request["backend"],
        threads=request["threads"],
        precision=request["precision"],
        backend_options=request["backend_options"],
        reader_options=request["reader"],
    )
    assignment = [assignment.describe() for assignment in session.assignment()]
    facts.add(step="planning and compiling", session=session.describe(), notes=session.notes, assignment=assignment)
    plan = session.plan(shapes)
    facts.add(
        step="running",
        plan=plan.describe(),
        session=session.describe(),
        notes=session.notes,
        assignment=[assignment.describe() for assignment in session.assignment()],
        devices={assignment.node: assignment.device for assignment in session.assignment()},
    )
    ordered = list(to_arrays(session.graph.name, session.graph.inputs, arrays, {}).values())
    plan.run(ordered, observer=KernelRecorder(folder / "kernel.json"))
    facts.add(notes=session.notes)


def _inputs(request: dict[str, Any], opened: OpenedModel, folder: Path, facts: Facts) -> dict[str, Array]:
    """Return the arrays to run with, and store those for the report: random numbers of the same types and shapes."""
    types = {value.name: value.type for value in opened.graph.inputs}
    given = parse_shapes(types, request["shapes"])
    chosen: Mapping[str, tuple[int, ...]] = {**prepared_shapes(opened.file), **given}
    chosen = chosen if request["inputs"] else smallest_shapes(opened.graph, chosen)
    arrays, sources = collect_inputs(types, request["inputs"], given, ImageOptions(), request["seed"], chosen)
    shapes = {name: array.shape for name, array in arrays.items()}
    drawn = next(candidate_inputs(opened.graph, request["seed"], shapes=shapes))
    arrays = {n: drawn[n] if sources[n].startswith("random") else array for n, array in arrays.items()}
    kept = arrays if request["with_inputs"] else drawn
    facts.add(inputs={n: {"type": f"{a.dtype}{list(a.shape)}", "source": sources[n]} for n, a in arrays.items()})
    save_arrays(folder / "inputs.npz", kept)
    return arrays


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write inputs to an .npz file, except those of types that such files cannot hold: `lite run` draws them."""
    with zipfile.ZipFile(path, "w") as archive:  # np.savez supports no array of the name "file"
        for name, array in arrays.items():
            if array.dtype.kind in "biuf":
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def cut_node(folder: Path) -> int:
    """Write the nodes that the request names as a model of their own, with random inputs.

    Raises:
        LiteError: the nodes are inside a sub-graph, or the shape of one of their inputs depends on data.
    """
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    opened = open_model(request["model"], reader_options=request["reader"])
    graph = make_ready(opened.graph, default_plugins(), run_passes=not opened.optimized).graph
    infer_graph(graph, {v.name: v.type.with_shape(tuple(request["sizes"][v.name])) for v in graph.inputs})
    chosen = [node for node in graph.nodes if node.name in request["nodes"]]
    if len(chosen) < len(request["nodes"]):
        raise LiteError("it is inside a sub-graph, or in a branch that was decided when the plan was made")
    part = cut(graph, "node", chosen)
    scrubber = Scrubber.for_this_machine(request["model"])
    save_arrays(folder / "node_inputs.npz", next(candidate_inputs(part, request["seed"])))
    write_model(folder / "node.lite", for_report(part, scrubber, with_weights=request["with_weights"]), optimized=True)
    return 0
