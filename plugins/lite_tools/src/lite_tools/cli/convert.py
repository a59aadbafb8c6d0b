"""``lite convert``: a model as one .lite file for one or several targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from lite_core.formats import read_model
from lite_core.ir import Graph, TensorType
from lite_tools.cli import print_json
from lite_tools.cli.common import (
    check_writable,
    compute_option,
    console,
    json_option,
    model_argument,
    reader_option,
    seed_option,
    table,
    tune_option,
)
from lite_tools.cli.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.conversion import PRECISIONS, Check, ConversionReport, TargetReport, convert
from lite_tools.conversion.other_formats import writer_for
from lite_tools.quantization import OutputAccuracy

__all__ = ["command", "print_report", "shown_progress", "split_targets"]

_MOST_WEIGHTS = 8
#: What applies to any format; the other options are about what is prepared in Lite's own.
_OF_ANY_FORMAT = {"model", "output", "params", "reader", "as_json"}


@click.command("convert")
@model_argument
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="File to write: model.lite.")
@click.option(
    "--targets",
    default="auto",
    show_default=True,
    metavar="NAME,...",
    help="Backends to prepare the model for: x86,opencl. auto: those that have a device here.",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="How weights are stored: fp16 halves the file, int8w quarters it; what that costs is shown.",
)
@click.option(
    "--input-shape",
    "-s",
    "shapes",
    multiple=True,
    metavar="[NAME=]1x3x48x320",
    help="Shape of an input to prepare a plan for. Repeatable; several shapes of one input make a plan each.",
)
@click.option(
    "--prepare/--no-prepare",
    default=None,
    help="Store compiled code and packed weights, or not.  [default: only with float32 weights]",
)
@click.option("--allow-fallback", is_flag=True, help="Let other targets, then host, run what a target cannot.")
@click.option(
    "--data",
    "--input",
    "-i",
    "data",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Inputs to verify with, .npy, .npz or an image, as for `lite run`.  [default: random numbers]",
)
@click.option("--limit", type=click.FloatRange(0), help="Largest difference, as a share of an output's range.")
@click.option("--no-verify", is_flag=True, help="Do not run the file before it gets its name.")
@click.option("--force", is_flag=True, help="Write the file although it computes something else.")
@compute_option
@click.option("--exact", is_flag=True, help="Forbid algorithms that trade accuracy for speed.")
@tune_option
@click.option("--params", type=click.Path(), help="The model's file of parameters, where it lies elsewhere.")
@reader_option
@seed_option
@click.option(
    "--threads",
    "-t",
    callback=lambda context, option, text: None if text is None else split_threads(text),
    metavar="COUNT,...",
    help="Numbers of CPU threads to prepare plans for: 1,4.  [default: 1 and all]",
)
@json_option
def command(
    model: str,
    output: Path,
    targets: str,
    shapes: tuple[str, ...],
    data: tuple[str, ...],
    params: str | None,
    reader: dict[str, Any],
    no_verify: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Convert MODEL, a file or a folder, into one .lite file that runs on all TARGETS.

    Each target is asked whether it can run every node, the model is compiled for it, and what its backend saves goes
    into the file. The file is run by the references and on every target that is here before it gets its name.

    An --output of another format that a plugin writes, model.onnx, is that: the model as it was read, for no target.
    """
    check_writable(str(output), "--output")
    options = reader if params is None else {**reader, "params": params}
    writer = writer_for(output)
    if writer is not None:
        _refuse_options(output)
        graph = read_model(model, **options)
        writer.write(graph, output)
        _print_written(model, graph, output, writer.name, as_json)
        return
    graph = read_model(model, **options)
    types = {value.name: value.type for value in graph.inputs}
    signatures = parse_signatures(types, shapes)
    arrays = None
    if data:
        given = signatures[0] if signatures else {}
        arrays = collect_inputs(types, data, given, ImageOptions(), settings["seed"])[0]
    with shown_progress() as progress:
        report = convert(
            graph,
            output,
            split_targets(targets),
            shapes=signatures or None,
            data=arrays,
            verify=not no_verify,
            progress=progress,
            **settings,
        )
    report = replace(report, model=model)
    if as_json:
        print_json(report.as_dict())
    else:
        print_report(report)


def _refuse_options(output: Path) -> None:
    """Options that say something of a .lite file say nothing of another."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in _OF_ANY_FORMAT and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(
                f"is for .lite files; {str(output)!r} holds the model itself, prepared for no target",
                param_hint=parameter.opts[0],
            )


def _print_written(model: str, graph: Graph, output: Path, format: str, as_json: bool) -> None:
    size = output.stat().st_size
    if as_json:
        print_json({"model": model, "output": str(output), "format": format, "nodes": len(graph.nodes), "size": size})
    else:
        console.print(f"written: {output} ({format}, {len(graph.nodes)} nodes, {_bytes(size)})", markup=False)


def split_targets(text: str, option: str = "--targets") -> list[str]:
    """Names separated by commas or spaces."""
    names = text.replace(",", " ").split()
    if not names:
        raise click.BadParameter("name at least one target, such as x86", param_hint=option)
    return names


def split_threads(text: str) -> list[int]:
    """Numbers from 1, separated by commas."""
    counts = text.split(",")
    if not all(count.strip().isdecimal() and int(count) for count in counts):
        raise click.BadParameter(f"numbers of threads read like 1,4, not like {text!r}")
    return [int(count) for count in counts]


def parse_signatures(types: Mapping[str, TensorType], texts: Sequence[str]) -> list[dict[str, tuple[int, ...]]]:
    """The shapes of each plan: the first of every input together, then the second, and so on.

    An input with one shape has that in every plan.
    """
    given: dict[str, list[tuple[int, ...]]] = {}
    for text in texts:
        for name, shape in parse_shapes(types, [text], "--input-shape").items():
            given.setdefault(name, []).append(shape)
    count = max(map(len, given.values()), default=0)
    uneven = [f"{name} {len(shapes)}" for name, shapes in given.items() if len(shapes) not in (1, count)]
    if uneven:
        raise click.BadParameter(
            f"one shape for each of {count} plans is needed, or one for all; given are: {', '.join(uneven)}",
            param_hint="--input-shape",
        )
    return [{name: shapes[min(i, len(shapes) - 1)] for name, shapes in given.items()} for i in range(count)]


@contextmanager
def shown_progress() -> Iterator[Callable[[str], None]]:
    """A line that says what is being done, where somebody looks at it."""
    with console.status("") as status:
        yield lambda text: status.update(f"{text} ...")


# **** printing ****


def print_report(report: ConversionReport) -> None:
    """Print a conversion as tables."""
    before, after = report.before, report.after
    console.print(f"{report.model}\n", markup=False)
    sides = [("as it was read", before), ("in the file", after)]
    table(
        ("", "nodes", "operators", "weights"),
        [(w, s.nodes, len(s.operators), _bytes(s.weight_bytes)) for w, s in sides],
    )
    names = dict.fromkeys([*after.operators, *before.operators])
    changed = [(name, before.operators.get(name, 0), after.operators.get(name, 0)) for name in names]
    console.print()
    table(("operator", "read", "written"), [row for row in changed if row[1] != row[2]])
    console.print(f"passes: {', '.join(report.passes) or 'none changed anything'}\n", markup=False)
    heads = ("target", "nodes", "plans", "threads", "saved", "verified")
    table(heads, [_target_row(target, report.checks) for target in report.targets])
    _print_refusals(report.targets)
    _print_accuracy(report)
    if report.checks:
        console.print()
        rows = [
            (c.target, str(c.threads or "-"), _shapes(c.shapes), c.data, _outcome(c), _used(c)) for c in report.checks
        ]
        difference = "largest difference, of an output's range"
        table(("run on", "threads", "input shapes", "inputs", difference, "prepared state used"), rows)
    console.print()
    for warning in report.warnings:
        console.print(f"warning: {warning}", markup=False)
    for note in (*(note for target in report.targets for note in target.notes), *report.notes):
        console.print(f"note: {note}", markup=False)
    console.print(f"written: {report.output} ({_bytes(report.size)})", markup=False)


def _target_row(target: TargetReport, checks: Sequence[Check]) -> tuple[str, ...]:
    nodes = ", ".join(f"{count} on {name}" for name, count in target.nodes.items()) or "not asked"
    plans = "; ".join(map(_shapes, target.plans)) or "none"
    threads = ", ".join(map(str, target.threads)) or "-"
    own = [check.agrees for check in checks if check.target == target.name]
    verified = ("yes" if all(own) else "DISAGREES") if own else "no device here" if target.absent else "no"
    return f"{target.name} ({target.plugin})", nodes, plans, threads, _bytes(target.saved_bytes), verified


def _print_refusals(targets: Sequence[TargetReport]) -> None:
    rows: dict[tuple[str, str, str], int] = {}
    for target in targets:
        for refusal in target.refusals:
            key = (refusal.op, target.name, refusal.reason)
            rows[key] = rows.get(key, 0) + 1
    if rows:
        console.print()
        table(("operator", "not on", "nodes", "because"), [(op, on, n, why) for (op, on, why), n in rows.items()])


def _print_accuracy(report: ConversionReport) -> None:
    if not report.weights:
        return
    stored = [w for w in report.weights if not w.kept]
    console.print(f"\n{len(stored)} of {len(report.weights)} weights are stored as {report.precision}")
    worst = sorted(stored, key=lambda w: -w.relative_rms_error)[:_MOST_WEIGHTS]
    kept = [w for w in report.weights if w.kept]
    if worst:
        table(
            ("weight, the most changed first", "of", "shape", "largest error", "relative RMS error"),
            [(w.name, w.op, _dims(w.shape), f"{w.max_error:.3g}", f"{w.relative_rms_error:.2%}") for w in worst],
        )
    for weight in kept:
        console.print(f"{weight.name} stays as it is: {weight.kept}", markup=False)
    console.print()
    table(
        ("output", "largest difference, of its range", "signal to noise", "same best class"),
        map(_accuracy_row, report.accuracy),
    )


def _accuracy_row(output: OutputAccuracy) -> tuple[str, ...]:
    agreement = "-" if output.top1_agreement is None else f"{output.top1_agreement:.1%}"
    return output.name, f"{output.max_difference:.3g}", f"{output.snr_db:.1f} dB", agreement


def _outcome(check: Check) -> str:
    if check.problem:
        return check.problem
    return f"{check.worst:.3g}, {'within' if check.agrees else 'BEYOND'} {check.limit:.3g}"


def _used(check: Check) -> str:
    return "-" if check.prepared is None else "yes" if check.prepared else "no, see the warning"


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name}={_dims(shape)}" for name, shape in shapes.items())


def _dims(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 10_000 else f"{size} bytes"
