"""``lite bisect``: the node, device, number of threads, precision or graph pass that makes a model's outputs wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.plugins import backend_sources, default_plugins
from lite_core.schedule import CompileError
from lite_core.schedule.precision import Precision
from lite_core.session import Session, load, make_ready
from lite_tools.bisecting import (
    NOTHING,
    UNIT_KINDS,
    Agreement,
    Answers,
    Criterion,
    Trials,
    arrays_hash,
    bisect_passes,
    bisect_units,
    graph_hash,
    parse_check,
    text_hash,
)
from lite_tools.bisecting.advice import Request, next_command, workaround
from lite_tools.bisecting.terminal import print_findings
from lite_tools.cli.model_file import open_verified
from lite_tools.cli.session_inputs import session_inputs
from lite_tools.commands.errors import UnavailableError, check_writable
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.inputs import ImageOptions
from lite_tools.commands.notes import print_notes
from lite_tools.commands.option_words import option_words
from lite_tools.commands.options import (
    backend_options_option,
    backends_of,
    input_option,
    json_option,
    model_argument,
    precision_option,
    reader_option,
    require_own_devices,
    seed_option,
    shape_option,
    threads_option,
)
from lite_tools.commands.printing import console, print_json
from lite_tools.commands.progress import set_progress
from lite_tools.commands.value_types import BACKENDS
from lite_tools.conversion.converter import LIMITS
from lite_tools.precisions import precisions_in, uses_precision

Array = np.ndarray[Any, Any]


@click.command("bisect")
@model_argument
@click.option("--by", required=True, type=click.Choice([*UNIT_KINDS, "pass"]), help="What is to be found.")
@click.option(
    "--a",
    "backend_a",
    type=BACKENDS,
    metavar="BACKEND",
    help="Backend of side a, which is trusted.  [default: host; by threads, precision or pass: that of side b]",
)
@click.option(
    "--b",
    "backend_b",
    type=BACKENDS,
    default="auto",
    show_default=True,
    metavar="BACKEND",
    help="Backend of side b.",
)
@input_option()
@shape_option()
@threads_option
@click.option("--a-threads", type=click.IntRange(1), help="Threads of side a.  [default: as --threads; by threads: 1]")
@precision_option
@click.option(
    "--a-precision", type=click.Choice([*LIMITS]), default="float32", show_default=True, help="Precision of side a."
)
@click.option(
    "--limit",
    type=click.FloatRange(0),
    help="Largest difference from side a, as a share of an output's range.  [default: 0.001; with float16 0.02]",
)
@click.option("--atol", type=click.FloatRange(0), help="Instead of --limit: elements may differ by atol + rtol * |a|.")
@click.option("--rtol", type=click.FloatRange(0), help="See --atol.")
@click.option(
    "--check",
    metavar="COMMAND",
    help="Judge outputs by a command, which gets an .npz file as last argument and exits with 0 if they are good, 1 if "
    "they are wrong, 125 if it cannot tell; or by script.py:function, which gets a dict of arrays and returns a bool.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Run each configuration as often; it is wrong if one run is. For faults that come and go.",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the answers in this file.  [default: in the cache until the end; a bisection that was interrupted "
    "goes on where it was]",
)
@seed_option
@backend_options_option
@reader_option
@json_option
def command(
    model: str,
    by: str,
    backend_a: str | None,
    backend_b: str,
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    threads: int | None,
    a_threads: int | None,
    precision: str | dict[str, str] | None,
    a_precision: str,
    limit: float | None,
    atol: float | None,
    rtol: float | None,
    check: str | None,
    repeat: int,
    state: Path | None,
    seed: int,
    backend_options: dict[str, dict[str, Any]],
    reader: dict[str, Any],
    as_json: bool,
) -> int:
    """Find what makes the outputs of MODEL wrong on side b, with as few runs as possible.

    \b
    lite bisect MODEL --by node --b opencl         the node that is wrong on b
    lite bisect MODEL --by backend --b opencl,x86  the device that is wrong
    lite bisect MODEL --by threads --b x86         wrong with several threads
    lite bisect MODEL --by precision --b opencl    nodes to keep in float32
    lite bisect MODEL --by pass                    the wrong graph pass

    Parts of the model run as on side b, all others as on side a, until the smallest part is found with which the
    outputs are wrong. They are wrong if they differ from those of side a, or if --check says so.

    The exit code is 0 if side b is good, 1 if something was found or runs differ.
    """  # noqa: D301 - \b tells click to keep the line breaks
    _check_usage(limit, atol, rtol, check, state)
    opened = open_verified(model, reader)
    own = opened.file.targets[0].precision if opened.file and opened.file.targets else "float32"
    precision_b = Precision.of(precision or ("float16" if by == "precision" else own))
    if by == "pass" and precision_b.patterns:
        raise click.UsageError("--by pass needs one --precision for all nodes, because passes change their names")
    if by == "threads":
        a_threads = a_threads or 1
    if backend_a is None:
        backend_a = "host" if by in ("node", "backend") else backend_b
    if by == "pass":
        graph = opened.graph
    else:
        graph = make_ready(opened.graph, run_passes=not opened.optimized, copy=False).graph

    def load_side(graph: Any, backend: str, count: int | None, precision: Any) -> Session:
        return load(graph, backends_of(backend), count, precision, optimize=False, backend_options=backend_options)

    def load_b(graph: Any, precision: Any = precision_b.text) -> Session:
        return load_side(graph, backend_b, threads, precision)

    a, b = load_side(graph, backend_a, a_threads or threads, a_precision), load_b(graph)
    arrays, sources, notes = session_inputs(a, inputs, shapes, ImageOptions(), seed, opened.file)
    print_notes(notes)
    allowed = max(LIMITS[each] for each in precisions_in(precision_b)) if limit is None else limit
    judge = parse_check(check) if check is not None else None

    def criterion_of(outputs: Mapping[str, Array]) -> Criterion:
        return judge or Agreement(dict(outputs), allowed, atol, rtol)

    sides = {"a": _about(a, backend_a, a_precision), "b": _about(b, backend_b, precision_b.text)}
    about = {
        "by": by,
        "model": graph_hash(graph),
        "inputs": arrays_hash(arrays),
        **sides,
        "backend_options": backend_options,
        "check": [check, *_content(check)],
        "limits": [allowed, atol, rtol],
        "repeat": repeat,
        "plugins": backend_sources(default_plugins()),
    }
    answers = Answers(about, state)

    def trials_of(criterion: Criterion) -> Trials:
        environment = {"LITE_BISECT_MODEL": model, "LITE_BISECT_BY": by}
        return Trials(criterion, answers, environment, set_progress, repeat)

    if answers.count:
        print_notes([f"{answers.count} answers are known from {answers.file}"])
    if by == "precision":
        _require_precision(b, _shapes(arrays), precision_b)
    try:
        if by == "pass":
            runs = (lambda _: a.run(arrays)), (lambda changed: load_b(changed).run(arrays))
            findings = bisect_passes(graph, default_plugins(), *runs, criterion_of, trials_of)
        else:
            findings = bisect_units(by, a, b, arrays, criterion_of, trials_of, lambda found: load_b(graph, found))
    except KeyboardInterrupt:
        if answers.file is not None and answers.count:
            print_notes([f"{answers.count} answers are kept in {answers.file}: the same command goes on from there"])
        raise
    answers.finish()
    if by == "backend" and backend_b != "auto":
        findings = replace(findings, notes=(*_idle_devices(b, _shapes(arrays)), *findings.notes))
    others = option_words(reader, backend_options)
    values = {"--limit": limit, "--atol": atol, "--rtol": rtol, "--check": check}
    criterion = tuple(word for name, value in values.items() if value is not None for word in (name, str(value)))
    request = Request(
        model, by, backend_a, backend_b, a_threads, threads, a_precision, precision_b, inputs, shapes, seed, others,
        criterion, repeat,
    )  # fmt: skip
    print_notes((*a.notes, *b.notes))
    if as_json:
        shown = [{"name": n, "type": f"{x.dtype.name}{list(x.shape)}", "source": sources[n]} for n, x in arrays.items()]
        found = findings.as_dict()
        advice = {"workaround": workaround(request, findings), "next": next_command(request, findings)}
        print_json({"model": model, "inputs": shown, **sides, **found, **advice})
    else:
        print_findings(findings, sides, by, repeat)
        for line in workaround(request, findings):
            console.print(line, markup=False)
        console.print(f"next: {next_command(request, findings)}", markup=False)
    return EXIT_OK if findings.verdict == NOTHING else EXIT_FAILURE


def _check_usage(
    limit: float | None, atol: float | None, rtol: float | None, check: str | None, state: Path | None
) -> None:
    is_elementwise = atol is not None or rtol is not None
    require_own_devices()
    if limit is not None and is_elementwise:
        raise click.UsageError("--limit and --atol or --rtol exclude each other: give one criterion")
    if check is not None and (limit is not None or is_elementwise):
        raise click.UsageError("--check replaces the comparison with side a: leave out --limit, --atol and --rtol")
    if state is not None:
        check_writable(str(state), "--state")


def _about(session: Session, backend: str, precision: str) -> dict[str, Any]:
    options = session.planner.options
    return {
        "label": backend,
        "devices": list(session.devices),
        "options": {"threads": options.threads, "precision": precision},
    }


def _shapes(arrays: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


def _require_precision(b: Session, shapes: Mapping[str, Sequence[int]], precision: Precision) -> None:
    """Check that a device of side b uses the precision for a node.

    Raises:
        UnavailableError: every device computes in other types.
    """
    try:
        placement = b.plan(shapes).placement
    except CompileError:
        return  # the bisection judges it
    devices = {candidate.device.label: candidate.device for candidate in placement.candidates}
    asked = [(a.device, kind) for a in placement.all_assignments if (kind := precision.of_node(a.node)) != "float32"]
    if asked and not any(uses_precision(devices[label], kind) for label, kind in asked):
        notes = [note for note in b.shortfalls if note.startswith("precision ")]
        raise UnavailableError(f"side b has nothing to bisect by precision: {'; '.join(notes)}", "lite backends")


def _idle_devices(b: Session, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return a line about devices that the user named for side b and that run no node; none if there are none."""
    try:
        candidates = b.plan(shapes).placement.candidates
    except CompileError:
        return []
    idle = [c.device.label for c in candidates if c.device.label not in (*b.devices, "host")]
    return [f"no node of side b runs on {', '.join(dict.fromkeys(idle))}"] if idle else []


def _content(check: str | None) -> list[str]:
    """Return the hash of the script of a check, so that answers of another version are not used."""
    script = (check or "").rpartition(":")[0]
    return [text_hash(Path(script).read_text(errors="replace"))] if os.path.isfile(script) else []
