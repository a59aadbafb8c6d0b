"""``lite opt``: a converter with the options of Paddle-Lite's opt tool, under their names.

It writes Paddle-Lite's files, and Lite's own (``--optimize_out_type=lite``) as ``lite convert`` does. Options without a
counterpart print a sentence that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lite_core import __version__, convert
from lite_core.errors import LiteError
from lite_core.formats import read_model
from lite_core.session import make_ready
from lite_tools.commands import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    ConversionReport,
    check_picture,
    check_targets,
    check_writable,
    console,
    draw_graph,
    json_option,
    print_json,
    print_report,
    print_text,
    shown_progress,
    split_targets,
    version_option,
)

from ..paddle_lite.placing import parse_targets
from .opt_files import FileReport, print_file, write_file
from .opt_lists import print_model_operators, print_names, print_operators

__all__ = ["command"]

_DEFAULT_TARGET = "arm"
#: Values of --valid_targets that stand for several backends, in order of preference.
_SEVERAL = {"x86_opencl": ("opencl", "x86"), "arm_metal": ("metal", "arm"), "x86_metal": ("metal", "x86")}
#: What is appended to the name of the output, unless it is there.
_ENDINGS = {"naive_buffer": ".nb", "protobuf": "", "lite": ".lite"}
_LISTS = ("print_all_ops", "print_all_ops_in_md_format", "print_supported_ops", "display_kernels")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _boolean(name: str, text: str) -> Decorator:
    """Declare an option with the value true or false, which is true when no value follows."""
    choice = click.Choice(["true", "false"], case_sensitive=False)
    decorate: Decorator = click.option(name, type=choice, is_flag=False, flag_value="true", default="false", help=text)
    return decorate


@click.command("opt")
@click.argument("more_targets", nargs=-1, metavar="")
@click.option("--model_dir", type=click.Path(), help="Folder of the model.")
@click.option("--model_file", type=click.Path(), help="The model's program, with --param_file.")
@click.option("--param_file", type=click.Path(), help="The model's parameters.")
@click.option("--model_filename", help="Name of the program in --model_dir.")
@click.option("--param_filename", help="Name of the parameters in --model_dir.")
@click.option("--model_set", "--model_set_dir", "model_set", type=click.Path(), help="Folder of models, all converted.")
@click.option("--optimize_out", help="File or folder to write; an ending that is absent is appended.")
@click.option(
    "--optimize_out_type",
    type=click.Choice(["naive_buffer", "protobuf", "lite"]),
    default="naive_buffer",
    help="naive_buffer: NAME.nb for Paddle-Lite; protobuf: the folder NAME with a Paddle program; lite: NAME.lite.",
    show_default=True,
)
@click.option("--valid_targets", help=f"arm, x86, opencl, x86_opencl, host, ...  [default: {_DEFAULT_TARGET}]")
@_boolean("--quant_model", "Store weights in fewer bits.")
@click.option(
    "--quant_type",
    type=click.Choice(["QUANT_INT8", "QUANT_INT16"]),
    help="Bits of stored weights; .lite files have QUANT_INT8 only.  [default: QUANT_INT16]",
)
@_boolean("--enable_fp16", "Compute in float16 where the target can.")
@_boolean("--sparse_model", "Lite writes no sparse kernels: the model stays dense.")
@click.option("--sparse_threshold", type=click.FloatRange(0, 1), help="Accepted with --sparse_model, and ignored.")
@_boolean("--record_tailoring_info", "List the operators and kernels of a .nb file in a folder beside it.")
@_boolean("--print_all_ops", "List Paddle-Lite's operators: which of them the targets have, and which Lite runs.")
@_boolean("--print_all_ops_in_md_format", "Print the same as a Markdown table.")
@_boolean("--print_supported_ops", "List the operators that Paddle-Lite has on the targets.")
@_boolean("--display_kernels", "List only the names of the operators that Paddle-Lite has on the targets.")
@_boolean("--print_model_ops", "Tell whether the targets can run the model.")
@click.option("--optimized_nb_model_path", type=click.Path(), help="A .nb or .lite file, to draw instead of a model.")
@click.option("--visualization_file_output_path", help="Draw the optimized graph: FILE.html, or FILE.svg.")
@version_option(__version__, "lite opt")
@json_option
def command(more_targets: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Convert a Paddle model for Paddle-Lite or for Lite, with the options of Paddle-Lite's opt.

    Operators that a target cannot run go to the other targets, and then to host, as in Paddle-Lite. Options that take
    true or false mean true when nothing follows. For .lite files, `lite convert` can do more.
    """
    given = {name: value == "true" if value in ("true", "false") else value for name, value in given.items()}
    _refuse_unknown(given)
    chosen = _DEFAULT_TARGET if given["valid_targets"] is None else given["valid_targets"]
    names = split_targets(" ".join([chosen, *more_targets]), "--valid_targets")
    targets = list(dict.fromkeys(backend for name in names for backend in _SEVERAL.get(name, (name,))))
    if _print_operators(given, names, targets, as_json):
        return EXIT_OK
    for note in _notes(given):
        print_text(f"note: {note}", err=True)
    if given["print_model_ops"]:
        path, options = _model(given)
        if given["optimize_out_type"] != "lite":
            supported = print_model_operators(path, options.get("params"), names, targets, as_json=as_json)
            return EXIT_OK if supported else EXIT_FAILURE
        code = check_targets(path, read_model(path, **options), targets, as_json)
        # As in Paddle-Lite, host runs the operators that no target can run.
        return code if code == EXIT_UNAVAILABLE else EXIT_OK
    if given["visualization_file_output_path"]:
        drawn = _draw(given, as_json and not given["optimize_out"])
        if not given["optimize_out"] or given["optimized_nb_model_path"]:
            return drawn
    if given["model_set"]:
        return _convert_set(given, names, targets, as_json)
    path, options = _model(given)
    output = _output_path(given)
    if given["optimize_out_type"] != "protobuf":
        check_writable(str(output), "--optimize_out")
    report = _convert(path, options, output, given, names, targets)
    if as_json:
        print_json(report.as_dict())
    else:
        _print(report)
    return EXIT_OK


def _refuse_unknown(given: dict[str, Any]) -> None:
    """Raise UsageError for requests that Lite cannot serve, and say what to do instead."""
    if given["optimized_nb_model_path"] and not given["visualization_file_output_path"]:
        raise click.UsageError(
            "--optimized_nb_model_path names the file to draw: add --visualization_file_output_path FILE.html, or "
            "print its graph with `lite inspect MODEL`"
        )
    if given["model_set"] and given["visualization_file_output_path"]:
        raise click.UsageError("--visualization_file_output_path draws one model: use --model_dir, not --model_set")
    is_lite = given["optimize_out_type"] == "lite"
    if is_lite and given["quant_model"] and given["quant_type"] != "QUANT_INT8":
        raise click.UsageError(
            "a .lite file stores no weights as int16, opt's default: say --quant_type QUANT_INT8, or use "
            "`lite convert --weights float16`, which takes 16 bits as well"
        )
    if not is_lite and given["quant_model"] and given["enable_fp16"]:
        raise click.UsageError(
            "--quant_model and --enable_fp16 exclude each other in a file for Paddle-Lite, which makes float32 of the "
            "weights in 8 or 16 bits when it loads the file: leave one of them out"
        )


def _notes(given: dict[str, Any]) -> list[str]:
    """Return notes on options whose effect may surprise the user, although the model still runs."""
    notes = []
    is_lite = given["optimize_out_type"] == "lite"
    if given["valid_targets"] is None:
        notes.append(f"--valid_targets is not given and stands for {_DEFAULT_TARGET}, as in Paddle-Lite")
    if given["sparse_model"]:
        notes.append("--sparse_model: Lite has no sparse kernels; the model is stored dense and computes the same")
    if given["record_tailoring_info"] and is_lite:
        notes.append("--record_tailoring_info: Lite is not tailored to models; there is nothing to record")
    elif given["record_tailoring_info"]:
        notes.append(
            "--record_tailoring_info: operators and kernels are listed, but not the source files of Paddle-Lite"
        )
    if given["quant_model"] and given["optimize_out_type"] == "protobuf":
        notes.append("--quant_model: the weights of a Paddle program stay float32")
    if given["enable_fp16"] and is_lite:
        notes.append("--enable_fp16: sessions compute in float16 unless the model is loaded with precision='float32'")
    return notes


def _model(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path to read, and options for the reader."""
    folder, model, params = given["model_dir"], given["model_file"], given["param_file"]
    if folder and not model:
        model = str(Path(folder, given["model_filename"])) if given["model_filename"] else folder
        params = str(Path(folder, given["param_filename"])) if given["param_filename"] else params
    if not model:
        raise click.UsageError("no model is given: use --model_dir FOLDER, or --model_file FILE and --param_file FILE")
    return model, {"params": params} if params else {}


def _draw(given: dict[str, Any], as_json: bool) -> int:
    """Draw the optimized graph of the model into the file that the user named; ``.html`` is its ending by default."""
    option = "--visualization_file_output_path"
    file: str = given["visualization_file_output_path"]
    is_svg = file.endswith(".svg")
    if not is_svg and not file.endswith(".html"):
        file += ".html"
    check_picture(file, option)
    path, options = (given["optimized_nb_model_path"], {}) if given["optimized_nb_model_path"] else _model(given)
    graph = make_ready(read_model(path, **options)).graph
    count = draw_graph(graph, html=None if is_svg else file, svg=file if is_svg else None, option=option)
    if as_json:
        print_json({"model": path, "picture": file, "nodes": count})
    else:
        print_text(f"written: {file} ({count} nodes)", err=True)
    return EXIT_OK


def _output_path(given: dict[str, Any]) -> Path:
    if not given["optimize_out"]:
        raise click.UsageError("no output is given: --optimize_out NAME writes NAME.nb, or NAME.lite for Lite")
    ending = _ENDINGS[given["optimize_out_type"]]
    return Path(given["optimize_out"].removesuffix(ending) + ending)


def _convert(
    model: str, options: dict[str, Any], output: Path, given: dict[str, Any], names: list[str], targets: list[str]
) -> ConversionReport | FileReport:
    if given["optimize_out_type"] != "lite":
        return write_file(
            model,
            options.get("params"),
            output,
            parse_targets(names, fp16=given["enable_fp16"]),
            weight_bits=_weight_bits(given),
            protobuf=given["optimize_out_type"] == "protobuf",
            tailoring=given["record_tailoring_info"],
        )
    with shown_progress() as progress:
        report: ConversionReport = convert(
            model,
            output,
            targets,
            "float16" if given["enable_fp16"] else "float32",
            weights="int8" if given["quant_model"] else "float32",
            allow_fallback=True,
            progress=progress,
            reader_options=options,
        )
    return report


def _weight_bits(given: dict[str, Any]) -> int:
    if not given["quant_model"] or given["optimize_out_type"] == "protobuf":
        return 32
    return 8 if given["quant_type"] == "QUANT_INT8" else 16


def _print(report: ConversionReport | FileReport) -> None:
    if isinstance(report, FileReport):
        print_file(report)
    else:
        print_report(report)


def _convert_set(given: dict[str, Any], names: list[str], targets: list[str], as_json: bool) -> int:
    """Convert each model folder inside a folder into a separate file."""
    ending = _ENDINGS[given["optimize_out_type"]]
    folder, output = Path(given["model_set"]), Path(str(_output_path(given)).removesuffix(ending))
    models = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not models:
        raise click.BadParameter(f"{str(folder)!r} is not a folder that holds model folders", param_hint="--model_set")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(
            f"the folder {str(output)!r} cannot be created: {error}", param_hint="--optimize_out"
        ) from None
    reports, failures = [], []
    for path in models:
        model, options = _model({**given, "model_dir": str(path), "model_file": None})
        try:
            reports.append(_convert(model, options, output / f"{path.name}{ending}", given, names, targets))
        except LiteError as error:
            failures.append(f"{path}: {error}")
    if as_json:
        print_json({"models": [report.as_dict() for report in reports], "failures": failures})
    else:
        for report in reports:
            _print(report)
            console.print()
        for failure in failures:
            print_text(f"error: {failure}", err=True)
    return EXIT_FAILURE if failures else EXIT_OK


def _print_operators(given: dict[str, Any], names: list[str], targets: list[str], as_json: bool) -> bool:
    """Print lists of operators if they were asked for; return True if they were."""
    if not any(given[name] for name in _LISTS):
        return False
    if given["display_kernels"]:
        print_names(names, as_json=as_json)
    else:
        markdown, supported = given["print_all_ops_in_md_format"], given["print_supported_ops"]
        print_operators(names, targets, markdown=markdown, supported_only=supported, as_json=as_json)
    return True
