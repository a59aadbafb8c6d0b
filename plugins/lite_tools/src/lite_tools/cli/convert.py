"""``lite convert``: conversion of a model to one .lite file for one or several targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from lite_core.errors import ConversionError, ModelFormatError
from lite_core.ir import Graph, TensorType
from lite_core.plugins import available_backends
from lite_tools.cli.model_file import open_verified
from lite_tools.commands.braces import BracesError, expand_braces
from lite_tools.commands.conversions import print_report, size_text
from lite_tools.commands.errors import check_writable
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.next_commands import typed_command, typed_value, with_next_command
from lite_tools.commands.options import (
    json_option,
    model_argument,
    precision_option,
    reader_option,
    seed_option,
    tune_option,
)
from lite_tools.commands.output_names import model_file
from lite_tools.commands.picture_files import require_pillow
from lite_tools.commands.printing import console, print_json
from lite_tools.commands.progress import set_progress
from lite_tools.commands.quantization_tables import print_quantization
from lite_tools.commands.targets import split_targets
from lite_tools.commands.value_types import BACKENDS
from lite_tools.conversion import STORED_TYPES, convert
from lite_tools.conversion.other_formats import write
from lite_tools.conversion.quantizing import QUANTIZED_TYPES, quantized_graph
from lite_tools.quantization import METHODS, MIN_SNR, QuantizationReport
from lite_tools.quantization.blocks import BLOCK

__all__ = ["command"]

#: The options about quantization.
_QUANTIZATION = (
    "quantize",
    "calibrate",
    "calibration_method",
    "percentile",
    "calibration_samples",
    "keep_float",
    "min_snr",
)
#: Options for output in any format; the others apply only to .lite files.
_FORMAT_INDEPENDENT = {"model", "output", "params", "reader", "as_json", *_QUANTIZATION}


@click.command("convert")
@model_argument
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Output file, such as model.lite.")
@click.option(
    "--targets",
    type=BACKENDS,
    default="auto",
    show_default=True,
    metavar="NAME,...",
    help="Backends to prepare the model for, such as x86,opencl. auto: all backends with a device on this machine.",
)
@precision_option
@click.option(
    "--weights",
    type=click.Choice(STORED_TYPES),
    default="float32",
    show_default=True,
    help="Type to store weights in: float16 halves the file, int8 quarters it, int4 takes half a byte for each element"
    " of matrices of products, and int8 for other weights. The loss of accuracy is shown.",
)
@click.option(
    "--weights-block",
    type=int,
    default=BLOCK,
    show_default=True,
    metavar="COUNT",
    help="Weights that share a scale in int4, a multiple of 16: fewer are more exact, and the file is larger.",
)
@click.option(
    "--keep-weights",
    multiple=True,
    metavar="PATTERN",
    help="Constants that --weights does not change: names, with * and ?. Repeatable.",
)
@click.option(
    "--quantize",
    type=click.Choice(QUANTIZED_TYPES),
    help="Compute Conv, Gemm and MatMul with 8-bit integers, with scales from --calibrate. The loss is shown.",
)
@click.option(
    "--calibrate",
    type=click.Path(),
    metavar="FOLDER",
    help="Samples for --quantize: .npz files with an array for each input, or .npy files for one input.",
)
@click.option(
    "--calibration-method",
    type=click.Choice(METHODS),
    default="minmax",
    show_default=True,
    help="How the range of an activation is chosen from the samples.",
)
@click.option(
    "--percentile",
    type=click.FloatRange(0, 100, min_open=True),
    help="Share of elements inside the range, in percent, for the method percentile.  [default: 99.99]",
)
@click.option("--calibration-samples", type=click.IntRange(1), help="Most samples to use.  [default: all]")
@click.option(
    "--keep-float",
    multiple=True,
    metavar="PATTERN",
    help="Nodes that --quantize leaves in float32: names, or op:Gemm. Repeatable.",
)
@click.option(
    "--min-snr",
    type=float,
    metavar="DB",
    help="Signal-to-noise ratio of the outputs below which --quantize leaves layers in float32; -inf quantizes all."
    f"  [default: {MIN_SNR:g}]",
)
@click.option(
    "--input-shape",
    "-s",
    "shapes",
    multiple=True,
    metavar="[NAME=]1x3x48x320",
    help="Input shape to prepare a plan for; 1x3x48x{32..320:32} and {1,4}x3x48x320 are several. Repeatable.",
)
@click.option(
    "--prepare/--no-prepare",
    default=None,
    help="Store compiled code and packed weights in the file.  [default: only with float32 weights]",
)
@click.option(
    "--cpu",
    default="",
    metavar="LEVEL,...",
    help="Processors or their levels to compile for, such as cortex-a53,cortex-a76 or x86-64-v4.  [default: this one]",
)
@click.option("--strip", is_flag=True, help="Leave out constants that no prepared plan reads.")
@click.option("--allow-fallback", is_flag=True, help="Let other targets, then host, run nodes that a target refuses.")
@click.option(
    "--data",
    "--input",
    "-i",
    "data",
    callback=require_pillow,
    multiple=True,
    metavar="[NAME=]FILE",
    help="Input file for the verification (.npy, .npz or an image), see `lite run`.  [default: random numbers]",
)
@click.option("--limit", type=click.FloatRange(0), help="Largest allowed difference, as a share of an output's range.")
@click.option("--no-verify", is_flag=True, help="Do not run the new file to verify it.")
@click.option("--force", is_flag=True, help="Write the file even if its results differ from the model's.")
@click.option("--exact", is_flag=True, help="Forbid algorithms that trade accuracy for speed.")
@tune_option
@click.option("--params", type=click.Path(), help="The model's parameter file, if it is not next to the model.")
@reader_option
@seed_option
@click.option(
    "--threads",
    "-t",
    callback=lambda context, option, text: None if text is None else split_threads(text),
    metavar="COUNT,...",
    help="Numbers of CPU threads to prepare plans for, such as 1,4.  [default: 1 and all, elsewhere 1 and 4]",
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
    precision: str | dict[str, str] | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Convert MODEL, a file or a folder, to one .lite file for all targets.

    Every node is checked with each target, the model is compiled for each target, and the compiled code and packed
    weights are stored in the file. The new file is verified with the references and on every target that has a device
    on this machine.

    With --quantize int8, layers compute with 8-bit integers. Runs on the samples of --calibrate give the ranges of the
    numbers, and tell how much each layer loses; layers that lose too much stay in float32.

    The ending of --output says the format: .lite, which is added to a name without an ending, or that of a format that
    a plugin writes, such as model.onnx, without preparation for targets. Other endings are refused.
    """
    output, writer = model_file(output)
    check_writable(str(output), "--output")
    if writer is not None:
        _refuse_options(output)
    graph = open_verified(model, reader if params is None else {**reader, "params": params}).graph
    if writer is not None:
        quantized = None
        if settings["quantize"] is not None:
            graph, quantized = quantized_graph(graph, set_progress, *(settings[name] for name in _QUANTIZATION))
        try:
            write(writer, graph, output)
        except ModelFormatError as error:  # which stands for damaged files elsewhere
            raise ConversionError(f"model {model!r}: {str(output)!r} is not written", [str(error)]) from error
        _print_written(model, graph, output, writer.name, quantized, as_json)
        return
    types = {value.name: value.type for value in graph.inputs}
    signatures = parse_signatures(types, shapes)
    arrays = None
    if data:
        given = signatures[0] if signatures else {}
        arrays = collect_inputs(
            types, data, given, ImageOptions(), settings["seed"], graph=graph, option="--input-shape"
        )[0]
    report = convert(
        graph,
        output,
        split_targets(targets),
        precision or "float32",
        shapes=signatures or None,
        data=arrays,
        verify=not no_verify,
        progress=set_progress,
        **settings,
    )
    report = replace(report, model=model)
    if as_json:
        print_json(report.as_dict())
    else:
        print_report(report)


def _refuse_options(output: Path) -> None:
    """Reject options that apply only to .lite files."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in _FORMAT_INDEPENDENT and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(
                f"applies only to .lite files, not to {str(output)!r}",
                param_hint=parameter.opts[0],
            )


def _print_written(
    model: str, graph: Graph, output: Path, format: str, report: QuantizationReport | None, as_json: bool
) -> None:
    size = output.stat().st_size
    if as_json:
        data = {"model": model, "output": str(output), "format": format, "nodes": len(graph.nodes), "size": size}
        print_json(data if report is None else {**data, "quantization": report.as_dict()})
    else:
        if report is not None:
            print_quantization(report)
        console.print(f"written: {output} ({format}, {len(graph.nodes)} nodes, {size_text(size)})", markup=False)


def split_threads(text: str) -> list[int]:
    """Parse positive integers, separated by commas."""
    counts = [count.strip() for count in text.split(",")]
    if all(count.isdecimal() and int(count) for count in counts):
        return [int(count) for count in counts]
    wrong = f"write numbers of threads like 1,4, not {text!r}"
    if not available_backends().keys() >= set(counts):
        raise click.BadParameter(wrong)
    error = click.BadParameter(f"{wrong}; --targets takes the names of backends")
    targets = ",".join(dict.fromkeys([*filter(None, [typed_value("--targets")]), *counts]))
    raise with_next_command(error, typed_command("--targets", targets, dropped=("-t", "--threads", "--targets")))


def parse_signatures(types: Mapping[str, TensorType], texts: Sequence[str]) -> list[dict[str, tuple[int, ...]]]:
    """Return the input shapes of each plan: the first shape of every input, then the second, and so on.

    An input with a single shape has that shape in every plan.
    """
    given: dict[str, list[tuple[int, ...]]] = {}
    try:
        single = [each for text in texts for each in expand_braces(text)]
    except BracesError as error:
        raise click.BadParameter(str(error), param_hint="--input-shape") from None
    for text in single:
        for name, shape in parse_shapes(types, [text], "--input-shape").items():
            given.setdefault(name, []).append(shape)
    count = max(map(len, given.values()), default=0)
    uneven = [f"{name} {len(shapes)}" for name, shapes in given.items() if len(shapes) not in (1, count)]
    if uneven:
        raise click.BadParameter(
            f"each input needs one shape, or one for each of {count} plans; given are: {', '.join(uneven)}",
            param_hint="--input-shape",
        )
    return [{name: shapes[min(i, len(shapes) - 1)] for name, shapes in given.items()} for i in range(count)]
