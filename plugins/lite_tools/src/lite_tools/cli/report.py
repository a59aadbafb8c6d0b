"""``lite report``: a bundle for an issue, with the command that repeats what happened."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lite_tools.commands.errors import check_writable
from lite_tools.commands.exit_codes import EXIT_OK
from lite_tools.commands.next_commands import typed_command, with_next_command
from lite_tools.commands.options import (
    backend_option,
    backend_options_option,
    backends_of,
    input_option,
    json_option,
    model_argument,
    precision_option,
    reader_option,
    seed_option,
    shape_option,
    threads_option,
)
from lite_tools.commands.printing import console, print_json, table
from lite_tools.reporting import ReportRequest, ReportResult, write_report


@click.command("report")
@model_argument
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False),
    default="lite-report.zip",
    show_default=True,
    help="The file to write.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@input_option()
@shape_option("Shape of random numbers for the input NAME.  [default: the smallest that fits]  Repeatable.")
@click.option("--with-weights", is_flag=True, help="Include the model's weights.")
@click.option("--with-inputs", is_flag=True, help="Include the arrays of --input.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    help="Time limit of each run; a run that takes longer is reported as one that does not end.",
)
@seed_option
@precision_option
@backend_option
@backend_options_option
@threads_option
@reader_option
@json_option
def command(
    model: str,
    output: str,
    force: bool,
    backend: str,
    reader: dict[str, Any],
    as_json: bool,
    **settings: Any,
) -> int:
    """Load and run MODEL in a process of its own, and write what an issue about it needs into one .zip file.

    The report has the environment, the plan, the log, the error or the crash, the model without its weights, and the
    command that repeats what happened. User name, host name and paths are removed. Nothing is sent anywhere.
    """
    check_writable(output, "--output")
    path = Path(output)
    if path.exists() and not force:
        error = click.BadParameter(f"{output!r} exists; --force replaces it", param_hint="--output")
        raise with_next_command(error, typed_command("--force"))
    result = write_report(ReportRequest(model, backends_of(backend), reader=reader, **settings), path)
    if as_json:
        print_json({"report": output, **asdict(result)})
    else:
        _show(output, result)
    return EXIT_OK


def _show(output: str, result: ReportResult) -> None:
    console.print(f"{result.summary}\n", markup=False)
    table(("file", "contains"), result.files.items())
    console.print("\n".join(["", "left out:", *(f"  {item}" for item in result.left_out)]), markup=False)
    for name, words in result.not_scrubbed.items():
        console.print(f"NOT removed: {name} contains {' and '.join(words)}, in names of nodes or values", markup=False)
    if result.command:
        repeats = "it repeats this" if result.replay == result.outcome else f"tried, it {result.replay} instead"
        console.print(f"\nto repeat, after unpacking: {result.command}  ({repeats})", markup=False)
    console.print(f"written to {output}; look into it before you share it", markup=False)
