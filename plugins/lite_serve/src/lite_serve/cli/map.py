"""``lite map``: a model over a table, arrays or a folder of pictures, in parts that are each finished once."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lite_core.errors import LiteError
from lite_core.processors import useful_threads
from lite_serve.mapping.job import PICTURES_OF_A_PART, ROWS_OF_A_PART, Job, opened_with_digest
from lite_serve.mapping.parts import FORMATS, format_of
from lite_tools.commands import (
    EXIT_FAILURE,
    EXIT_NOTHING,
    EXIT_OK,
    ImageOptions,
    UnavailableError,
    backend_option,
    backend_options_option,
    backends_of,
    console,
    json_option,
    model_argument,
    parse_shapes,
    precision_option,
    print_json,
    print_notes,
    reader_option,
    set_progress,
    shape_option,
    similar_names,
    table,
    threads_option,
    with_correction,
)

if TYPE_CHECKING:
    from lite_core.session import OpenedModel
    from lite_serve.mapping.driver import Run, Summary
    from lite_serve.mapping.manifest import Failed, Finished

_WORDS = "lite_serve.map"
#: An address of a Dask scheduler, with or without the scheme that it needs.
_ADDRESS = re.compile(r"\w+://|[\w.-]+:\d+$")
_MOST_SHOWN = 5


class _Map(click.Command):
    """A command that keeps the words that were typed, for the command to type next."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = (ctx.command_path, *args)
        # `--dask` without an address may stand anywhere: what follows it is its value only if it looks like one.
        followed = zip(args, [*args[1:], ""])
        given = [
            "--dask=" if word == "--dask" and not _ADDRESS.match(next_word) else word for word, next_word in followed
        ]
        return super().parse_args(ctx, given)


@click.command("map", cls=_Map)
@model_argument
@click.argument("source", metavar="INPUT", type=click.Path())
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
    metavar="FOLDER",
    help="Folder for the results: Parquet files, and a manifest of what is finished.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="INPUT=COLUMN",
    help="Column that feeds an input of the model, if it has another name. Repeatable.",
)
@click.option(
    "--result",
    "results",
    multiple=True,
    metavar="OUTPUT[=COLUMN]",
    help="Output to write, and its column. Repeatable.  [default: all outputs, by their names]",
)
@click.option(
    "--keep",
    metavar="COLUMNS",
    help="Columns of INPUT to copy, separated by commas; all, or none.  [default: those that do not feed the model, "
    "without lists, tensors and binary data]",
)
@click.option(
    "--fill", multiple=True, metavar="[COLUMN=]VALUE", help="Value that replaces nulls in a column. Repeatable."
)
@click.option("--cast", is_flag=True, help="Round numbers to the element types of the model.")
@click.option(
    "--before",
    metavar="MODULE:FUNCTION",
    help="Function that prepares rows: it gets a pyarrow.RecordBatch, or a dict of arrays, and returns one of the two.",
)
@click.option(
    "--after",
    metavar="MODULE:FUNCTION",
    help="Function that turns results into columns: it gets a dict of arrays, and the rows, and returns a dict of "
    "columns.",
)
@click.option(
    "--batch",
    type=click.IntRange(1),
    help="Rows of each run.  [default: those that the model is made or prepared for, else 1 to 1024 by their size]",
)
@click.option(
    "--part-rows",
    type=click.IntRange(1),
    help=f"Most rows of a part, which is one file of the output.  [default: {ROWS_OF_A_PART}, fewer if they are large; "
    f"{PICTURES_OF_A_PART} pictures]",
)
@click.option("--format", "format_name", type=click.Choice([*FORMATS]), help="Format of INPUT.  [default: by suffixes]")
@shape_option("Shape of an input, with the batch, where the model leaves it open: x=1x3x224x224. Repeatable.")
@click.option("--mean", default="0", show_default=True, help="For pictures: see `lite run`.")
@click.option("--std", default="1", show_default=True, help="For pictures: see `lite run`.")
@click.option("--bgr", is_flag=True, help="For pictures: see `lite run`.")
@click.option("--again", is_flag=True, help="Begin again, and replace the results in FOLDER.")
@click.option("--keep-going", is_flag=True, help="Do the other parts if one fails.")
@click.option("--workers", type=click.IntRange(1), help="Parts that are done at once.  [default: one per core]")
@click.option(
    "--dask",
    metavar="[ADDRESS]",
    help="Do the parts on the workers of the Dask scheduler at tcp://HOST:PORT or tls://HOST:PORT; without an address, "
    "in processes of this machine.",
)
@backend_option
@precision_option
@backend_options_option
@threads_option
@reader_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: str,
    source: str,
    output: str,
    columns: tuple[str, ...],
    results: tuple[str, ...],
    keep: str | None,
    fill: tuple[str, ...],
    cast: bool,
    before: str | None,
    after: str | None,
    batch: int | None,
    part_rows: int | None,
    format_name: str | None,
    shapes: tuple[str, ...],
    mean: str,
    std: str,
    bgr: bool,
    again: bool,
    keep_going: bool,
    workers: int | None,
    dask: str | None,
    backend: str,
    precision: str | dict[str, str] | None,
    backend_options: dict[str, dict[str, Any]],
    threads: int | None,
    reader: dict[str, Any],
    as_json: bool,
) -> int:
    """Run MODEL on each row of INPUT, and write the results to Parquet files in a folder.

    INPUT is a file or a folder of files: Parquet, Arrow, JSON lines, CSV, .npy, .npz, or pictures. The run can be ended
    at any moment: the same command goes on where it was, and no row is lost or done twice.
    """
    _require_pyarrow()
    from pathlib import Path

    from lite_serve.mapping.functions import Function

    ImageOptions.parse(mean, std, bgr)
    _require_input(source)
    found = format_of(Path(source), format_name or "")
    folder = os.getcwd()
    opened, digest = opened_with_digest(model, reader)
    types = {value.name: value.type for value in opened.graph.inputs}
    named = backends_of(backend)
    job = Job(
        model=os.path.abspath(model),
        input=os.path.abspath(source),
        output=os.path.abspath(output),
        model_digest=digest,
        format=found,
        columns=_pairs(columns, "--column", list(types)),
        results=_results(results),
        keep=None if keep is None else {"none": (), "all": ("*",)}.get(keep, tuple(keep.split(","))),
        fill=_fills(fill),
        rounding=cast,
        shapes=tuple(parse_shapes(types, shapes).items()),
        batch=batch,
        part_rows=part_rows,
        image=(mean, std, bgr),
        before=None if before is None else Function.find(before, folder, "--before"),
        after=None if after is None else Function.find(after, folder, "--after"),
        backend=named if isinstance(named, str) else tuple(named),
        precision=json.dumps(precision),
        backend_options=json.dumps(backend_options),
        reader_options=json.dumps(reader),
        folder=folder if before or after else "",
        threads=threads,
    )
    if dask and workers is not None:
        raise click.BadParameter("--workers is for this machine: the cluster has its own workers", param_hint="--dask")
    return _run(context, job, opened, workers, dask, again, keep_going, (model, source, output), as_json)


def _run(
    context: click.Context,
    job: Job,
    opened: OpenedModel,
    workers: int | None,
    dask: str | None,
    again: bool,
    keep_going: bool,
    typed: tuple[str, str, str],
    as_json: bool,
) -> int:
    """Run a job on an output folder, and show the result."""
    from lite_serve.mapping.driver import OtherJobError, driven
    from lite_serve.mapping.feeding import RoundingError
    from lite_serve.mapping.manifest import Failed
    from lite_serve.mapping.preparation import check_columns
    from lite_serve.mapping.work import model_of

    begin = time.perf_counter()
    summary: Summary | None = None
    notes: list[str] = []
    try:
        with driven(job, again=again) as run:
            print_notes(notes := run.notes)
            at_once = min(workers or useful_threads(), max(1, len(run.todo)))
            if job.threads is None:
                job = replace(job, threads=1 if dask is not None else max(1, useful_threads() // at_once))
            if not run.parts:
                return _nothing(typed, as_json)
            model = model_of(job, opened)
            if run.todo:
                check_columns(job, model, run.todo[0])
            _ = model.before, model.after
            try:
                threads_of_cluster: list[int] = []
                results = _results_of(job, run, at_once, dask, _again(context), threads_of_cluster.append)
                for result in run.record(results):
                    if isinstance(result, Failed) and not keep_going:
                        break
                results.close()
                at_once = sum(threads_of_cluster) or at_once
            finally:
                summary = run.finish()
            if summary.finished > summary.before:
                print_notes(model.session.notes)
    except KeyboardInterrupt:
        told = "" if summary is None else f": {summary.finished} of {summary.parts} parts are finished"
        raise _with_next(click.ClickException(f"interrupted{told}"), _again(context)) from None
    except OtherJobError as error:
        raise _with_next(error, _again(context, "--again")) from None
    except RoundingError as error:
        raise _with_next(error, _again(context, "--cast")) from None
    except OSError as error:
        message = f"the output folder {typed[2]!r} cannot be written: {error.strerror or error}"
        raise _with_next(click.ClickException(message), _again(context)) from error
    seconds = time.perf_counter() - begin
    code = EXIT_OK if summary.is_complete else EXIT_FAILURE
    next_command = "" if summary.is_complete else _after_failures(context, summary)
    if as_json:
        document = _document(typed, summary, model.batch, at_once, seconds, notes)
        print_json({**document, "next": next_command})
    else:
        _show(typed[2], summary, model.batch, at_once, seconds)
        if next_command:
            console.print(f"\nnext: {next_command}", markup=False)
    return code


def _results_of(
    job: Job, run: Run, workers: int, dask: str | None, again: str, began: Callable[[int], object]
) -> Generator[Finished | Failed, None, None]:
    """Yield the results of the parts that are not finished, as they come."""
    from lite_serve.mapping.local import finished_locally

    known = [part.rows for part in run.parts]
    total = None if None in known else sum(rows or 0 for rows in known)
    done = sum(finished.rows for finished in run.finished.values())

    def show(rows: int) -> None:
        whole = "" if total is None else f" of {total:,}"
        set_progress(f"mapping: {done + rows:,}{whole} rows")

    if dask is None:
        yield from finished_locally(job, run.todo, workers, show)
        return
    from lite_serve.mapping.on_dask import finished_on_dask

    rows = 0
    try:
        for result in finished_on_dask(job, run.todo, dask, workers, lambda note: print_notes([note]), began):
            rows += getattr(result, "rows", 0)
            show(rows)
            yield result
    except LiteError as error:
        raise _with_next(error, getattr(error, "next_command", again)) from None


def _nothing(typed: tuple[str, str, str], as_json: bool) -> int:
    raise _with_code(click.ClickException(f"{typed[1]} has no rows: nothing was executed"), EXIT_NOTHING)


def _document(
    typed: tuple[str, str, str], summary: Summary, batch: int, workers: int, seconds: float, notes: Sequence[str]
) -> dict[str, Any]:
    rows = summary.rows - summary.rows_before
    return {
        "model": typed[0],
        "input": typed[1],
        "output": typed[2],
        "complete": summary.is_complete,
        "parts": summary.parts,
        "finished_parts": summary.finished,
        "finished_before": summary.before,
        "rows": summary.rows,
        "rows_before": summary.rows_before,
        "columns": summary.columns,
        "batch": batch,
        "workers": workers,
        "devices": summary.devices,
        "seconds": seconds,
        "rows_per_second": rows / seconds,
        "failures": [{"part": str(failed.part), "message": failed.message} for failed in summary.failures],
        "notes": list(notes),
    }


def _show(output: str, summary: Summary, batch: int, workers: int, seconds: float) -> None:
    if summary.columns:
        table(("column", "type"), list(summary.columns.items()))
        console.print()
    rows = summary.rows - summary.rows_before
    earlier = f", {summary.rows_before:,} of them before" if summary.before else ""
    plural = "s" * (summary.parts != 1)
    done = f"{summary.parts} part{plural}" if summary.is_complete else f"{summary.finished} of {summary.parts} parts"
    console.print(f"{done} with {summary.rows:,} rows finished in {output}{earlier}", markup=False)
    if rows:
        at_once = f"{workers} part{'s' * (workers > 1)} at once"
        speed = f"{rows:,} rows in {seconds:.1f} s, {rows / seconds:,.0f} per second"
        console.print(f"{speed}, on {', '.join(summary.devices)}; batches of {batch}, {at_once}", markup=False)
    for failed in summary.failures[:_MOST_SHOWN]:
        console.print(f"failed: {failed.message}", markup=False)
    if len(summary.failures) > _MOST_SHOWN:
        console.print(f"and {len(summary.failures) - _MOST_SHOWN} more parts failed")


def _after_failures(context: click.Context, summary: Summary) -> str:
    if any("add --cast" in failed.message for failed in summary.failures):
        return _again(context, "--cast")
    return _again(context)


def _again(context: click.Context, *more: str) -> str:
    """Return the command line that was typed, with more words; one that has done its work does not begin again."""
    program, *words = context.meta[_WORDS]
    kept = [word for word in words if word != "--again" or more]
    return " ".join([program, shlex.join([*kept, *(word for word in more if word not in kept)])])


def _with_next(error: Any, command: str) -> Any:
    error.next_command = command
    return error


def _with_code(error: click.ClickException, code: int) -> click.ClickException:
    vars(error)["exit_code"] = code
    return error


def _pairs(texts: Sequence[str], option: str, inputs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        name, separator, column = text.partition("=")
        if not (name and separator and column):
            raise click.BadParameter(f"write INPUT=COLUMN, not {text!r}", param_hint=option)
        if name not in inputs:
            raise click.BadParameter(
                f"there is no input {name!r}; the inputs are {', '.join(inputs)}", param_hint=option
            )
        pairs.append((name, column))
    return tuple(pairs)


def _results(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = [(name, column or name) for name, _, column in (text.partition("=") for text in texts)]
    names = [column for _, column in pairs]
    if len(set(names)) < len(names):
        raise click.BadParameter(f"two columns would have the same name in {', '.join(texts)}", param_hint="--result")
    return tuple(pairs)


def _fills(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name if separator else "*", value if separator else name)
        for name, separator, value in (text.partition("=") for text in texts)
    )


def _require_input(source: str) -> None:
    """Check that there is such a file or folder.

    Raises:
        click.BadParameter: there is none; suggests the most similar one.
    """
    folder, name = os.path.split(source)
    if not os.path.exists(source):
        names = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
        near = [os.path.join(folder, one) for one in similar_names(name, names)]
        hint = f"; did you mean {near[0]}?" if near else ""
        error = click.BadParameter(f"there is no file or folder {source!r}{hint}", param_hint="INPUT")
        raise with_correction(error, source, near, "lite map --help")


def _require_pyarrow() -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise UnavailableError("lite map needs pyarrow, which is not installed", "pip install 'lite-serve[map]'")
